//! The consistent first copy of tables: read through a slot's exported snapshot into a spool, then handed over.
//!
//! The spool (memory, then an unnamed temporary file) ends the upstream transaction as early as the network allows, and means that
//! nothing is handed over before all of it was read: a connection lost on the way costs a new try and never half a unit.

use super::engine::{Engine, Halt};
use super::inspect::{query_error, quote, Published};
use super::lsn::Lsn;
use super::pgoutput::Cell;
use futures::TryStreamExt;
use repr::{SqlError, Value};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Seek, Write};
use tokio_postgres::Client;

const SPOOL_MEMORY: usize = 32 << 20;

/// Lines of COPY text.
#[derive(Default)]
pub struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.memory.extend_from_slice(bytes);
        if self.memory.len() >= SPOOL_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        Ok(())
    }

    fn into_reader(mut self) -> io::Result<Box<dyn BufRead + Send>> {
        let tail = Cursor::new(self.memory);
        match self.file.take() {
            None => Ok(Box::new(tail)),
            Some(mut file) => {
                file.rewind()?;
                Ok(Box::new(BufReader::with_capacity(1 << 20, io::Read::chain(file, tail))))
            }
        }
    }
}

/// Copies of tables (by number) at one position.
pub struct Snapshot {
    pub lsn: Lsn,
    pub tables: Vec<(usize, Spool)>,
}

/// Reads tables at an exported snapshot. `progress` gets the rows read so far.
pub async fn copy(
    client: &Client,
    exported: &str,
    lsn: Lsn,
    wanted: &[(usize, &Published, &[String])],
    mut progress: impl FnMut(u64),
) -> Result<Snapshot, SqlError> {
    let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{}'", exported.replace('\'', "''"));
    client.batch_execute(&begin).await.map_err(query_error)?;
    let (mut tables, mut rows) = (Vec::new(), 0);
    for (number, published, names) in wanted {
        let table = &published.table;
        let columns: Vec<String> = names.iter().map(|n| quote(n)).collect();
        let only = if published.is_partitioned { "" } else { "ONLY " };
        let filter = published.row_filter.as_ref().map(|f| format!(" WHERE {f}")).unwrap_or_default();
        let sql = format!("COPY (SELECT {} FROM {only}{}.{}{filter}) TO STDOUT", columns.join(", "), quote(&table.schema), quote(&table.name));
        let mut spool = Spool::default();
        let mut stream = Box::pin(client.copy_out(&sql).await.map_err(query_error)?);
        while let Some(bytes) = stream.try_next().await.map_err(query_error)? {
            rows += bytes.iter().filter(|b| **b == b'\n').count() as u64;
            spool.write(&bytes).map_err(|e| SqlError::new(repr::SqlState::new("58030"), format!("could not write the temporary file of a snapshot: {e}")))?;
            if rows % 8192 == 0 {
                progress(rows);
            }
        }
        tables.push((*number, spool));
    }
    client.batch_execute("COMMIT").await.map_err(query_error)?;
    progress(rows);
    Ok(Snapshot { lsn, tables })
}

/// Reads a spool into its table, some rows at a time.
pub struct Unspool {
    table: usize,
    lsn: Lsn,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
}

impl Unspool {
    pub fn new(table: usize, lsn: Lsn, spool: Spool) -> io::Result<Unspool> {
        Ok(Unspool { table, lsn, reader: spool.into_reader()?, line: Vec::new() })
    }

    /// Gives up to `limit` rows to the engine; `false` when none is left.
    pub fn step(&mut self, engine: &mut Engine, limit: usize) -> Result<bool, Halt> {
        for _ in 0..limit {
            self.line.clear();
            let n = self.reader.read_until(b'\n', &mut self.line).map_err(|e| Halt::Fail(format!("could not read the temporary file of a snapshot: {e}")))?;
            if n == 0 {
                return Ok(false);
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if let Err(why) = row(engine, self.table, line) {
                let raw = String::from_utf8_lossy(line).into_owned();
                engine.bad_row(self.table, self.lsn, &[Cell::Text(&raw)], &why)?;
            }
        }
        Ok(true)
    }
}

fn row(engine: &mut Engine, table: usize, line: &[u8]) -> Result<(), String> {
    let table = &mut engine.tables[table];
    let line = std::str::from_utf8(line).map_err(|_| "the row is not UTF-8")?;
    let width = table.names().len();
    let mut values = Vec::with_capacity(width);
    if width > 0 {
        for (i, field) in line.split('\t').enumerate() {
            if i >= width {
                return Err("the row has more columns than were asked for".into());
            }
            values.push(match field {
                "\\N" => Value::Null,
                plain if !plain.contains('\\') => table.value(i, plain)?,
                escaped => table.value(i, &unescape(escaped))?,
            });
        }
        if values.len() != width {
            return Err("the row has fewer columns than were asked for".into());
        }
    }
    table.push_snapshot(&values);
    Ok(())
}

/// What COPY's text format escapes.
fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('v') => out.push('\u{b}'),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_text_is_unescaped() {
        assert_eq!(unescape(r"a\tb\\n\nc\\"), "a\tb\\n\nc\\");
    }

    #[test]
    fn a_spool_gives_back_what_went_into_memory_and_file() {
        let mut spool = Spool::default();
        let chunk = vec![b'x'; SPOOL_MEMORY / 2];
        for _ in 0..3 {
            spool.write(&chunk).unwrap();
        }
        spool.write(b"end").unwrap();
        let mut all = Vec::new();
        io::Read::read_to_end(&mut spool.into_reader().unwrap(), &mut all).unwrap();
        assert_eq!(all.len(), chunk.len() * 3 + 3);
        assert!(all.ends_with(b"end"));
    }
}
