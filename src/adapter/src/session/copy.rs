//! COPY in and out: text, CSV and binary as Postgres writes them.

use super::query::{rows_stream, Row};
use super::write::{evaluate_plain, fill};
use super::{Response, Session};
use crate::client::{ByteStream, RowStream};
use repr::batch::{BatchBuilder, PIECE_BYTES};
use repr::encoding::{Encoding, Stream};
use repr::error::state;
use repr::text::{from_text, to_text};
use repr::{binary, ColType, Deltas, RelDesc, SqlError, TextStyle, Value};
use sql::plan::{CopyFormat, CopyFromPlan, CopyHeader, CopySource, CopyToPlan};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::mpsc;

const BINARY_SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

impl Session {
    pub(super) async fn copy_to(&mut self, p: CopyToPlan) -> Result<Response, SqlError> {
        if p.file.is_some() {
            return Err(SqlError::unsupported("COPY TO a file on the server", "write COPY ... TO STDOUT (psql: \\copy)"));
        }
        let (desc, rows) = match p.source {
            CopySource::Select(s) => (s.desc.clone(), self.start_select(*s).await?.into_stream()),
            CopySource::Modify(p) => {
                let (desc, rows) = self.written(*p).await?.returned.ok_or_else(|| SqlError::internal("COPY of what returns no rows"))?;
                let stream = rows_stream(rows);
                (desc, stream)
            }
            CopySource::Subscribe(s) => (s.result.clone(), self.start_subscribe(*s).await?),
        };
        let encoding = self.copy_encoding(p.encoding, &p.format)?;
        let style = self.statement_ctx().1.text_style();
        let count = Arc::new(AtomicU64::new(0));
        let (tx, receiver) = mpsc::channel(4);
        let (columns, is_binary) = (desc.arity(), p.format == CopyFormat::Binary);
        tokio::spawn(write_out(rows, desc, p.format, encoding, style, count.clone(), tx));
        Ok(Response::CopyOut { columns, binary: is_binary, data: ByteStream { receiver }, rows: count })
    }

    pub(super) async fn copy_from(&mut self, p: CopyFromPlan) -> Result<Response, SqlError> {
        if p.file.is_some() {
            return Err(SqlError::unsupported("COPY FROM a file on the server", "write COPY ... FROM STDIN (psql: \\copy), or create a FILE source"));
        }
        let style = self.statement_ctx().1.text_style();
        let (columns, binary) = (p.columns.len(), p.format == CopyFormat::Binary);
        let stream = Stream::new(self.copy_encoding(p.encoding, &p.format)?);
        let table = self.table(p.table)?.name.clone();
        let sink = CopySink {
            plan: p,
            table,
            style,
            stream,
            buffer: Vec::new(),
            rows: Vec::new(),
            fresh_bytes: 0,
            piece: None,
            count: 0,
            line: 0,
            begun: false,
            ended: false,
        };
        Ok(Response::CopyIn { columns, binary, sink })
    }

    /// The encoding of the text that COPY reads or writes. Errors: 0A000 for binary data of another encoding than UTF-8.
    fn copy_encoding(&self, given: Option<Encoding>, format: &CopyFormat) -> Result<Encoding, SqlError> {
        let client = || self.text_context().catalog.setting("client_encoding").and_then(|name| Encoding::parse(&name).ok().flatten());
        let encoding = given.or_else(client).unwrap_or_default();
        match format {
            CopyFormat::Binary if !encoding.is_utf8() => {
                Err(SqlError::unsupported(format!("binary COPY in encoding {}", encoding.name()), "use the text format, or ENCODING 'UTF8'"))
            }
            _ => Ok(encoding),
        }
    }
}

/// Rows that wait as values.
const PART_ROWS: usize = 4096;

/// Takes COPY ... FROM STDIN: decodes whole records as they come, checks and writes them in pieces.
pub struct CopySink {
    plan: CopyFromPlan,
    /// The table's name.
    table: String,
    style: TextStyle,
    /// What comes, as UTF-8.
    stream: Stream,
    buffer: Vec<u8>,
    /// The given columns of the newest rows, and the bytes that came with them.
    rows: Vec<Row>,
    fresh_bytes: usize,
    /// Rows with all their columns that are not written yet.
    piece: Option<BatchBuilder>,
    /// Rows taken so far.
    count: u64,
    line: usize,
    /// The header (binary signature, CSV header line) is read.
    begun: bool,
    /// The end marker was seen: what follows is ignored.
    ended: bool,
}

impl CopySink {
    /// A CopyData message, cut anywhere, for the session that the sink came from.
    pub async fn push(&mut self, data: &[u8], session: &mut Session) -> Result<(), SqlError> {
        self.stream.push(data, &mut self.buffer)?;
        self.decode(false)?;
        self.fresh_bytes += data.len();
        if self.rows.len() >= PART_ROWS || self.fresh_bytes >= PIECE_BYTES {
            self.settle(session).await?;
        }
        Ok(())
    }

    /// CopyDone. Returns the tag.
    pub async fn finish(mut self, session: &mut Session) -> Result<String, SqlError> {
        let result = async {
            self.stream.finish()?;
            self.decode(true)?;
            self.settle(session).await?;
            self.write(session).await?;
            let item = session.table(self.plan.table)?;
            session.end_pieces(&item).await?;
            Ok(format!("COPY {}", self.count))
        }
        .await;
        if result.is_err() {
            session.fail();
        }
        result
    }

    /// Completes and checks the rows that have come; writes them once there are enough.
    async fn settle(&mut self, session: &mut Session) -> Result<(), SqlError> {
        self.fresh_bytes = 0;
        let item = session.table(self.plan.table)?;
        let (_, ctx) = session.statement_ctx();
        let (types, arity) = (&item.desc.types, item.desc.arity());
        let own = self.plan.defaults.iter().enumerate().filter(|(c, _)| !self.plan.columns.contains(c));
        let defaults: Vec<(usize, sql::HirScalar)> = own.filter_map(|(c, d)| Some((c, d.clone()?))).collect();
        for given in std::mem::take(&mut self.rows).chunks_mut(PART_ROWS) {
            let whole = |given: &mut Row| {
                let mut row: Row = vec![Value::Null; arity];
                self.plan.columns.iter().zip(given.iter_mut()).for_each(|(c, v)| row[*c] = std::mem::replace(v, Value::Null));
                row
            };
            let mut rows: Vec<Row> = given.iter_mut().map(whole).collect();
            fill(&mut rows, &defaults, types, &ctx)?;
            if let Some(f) = &self.plan.filter {
                let holds = evaluate_plain(std::slice::from_ref(f), &rows, types, &ctx)?;
                let mut holds = holds.into_iter().map(|h| h[0] == Value::Bool(true));
                rows.retain(|_| holds.next().unwrap_or(false));
            }
            session.check_rows(&item, &mut rows, &self.plan.checks, &ctx).map_err(|e| e.in_context(format!("COPY {}", item.name)))?;
            self.count += rows.len() as u64;
            for row in rows {
                let piece = self.piece.get_or_insert_with(|| BatchBuilder::new(types));
                if !piece.push(&row) {
                    return Err(SqlError::internal("a value alone is below 1 GB"));
                }
                if piece.is_full() {
                    self.write(session).await?;
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let Some(piece) = self.piece.take() else { return Ok(()) };
        let item = session.table(self.plan.table)?;
        let written = session.write_piece(&item, Deltas::inserts(piece.finish())).await;
        written.map_err(|e| if e.code == state::UNIQUE_VIOLATION { e.in_context(format!("COPY {}", item.name)) } else { e })
    }

    /// CopyFail, or the client vanished.
    pub fn abort(self, session: &mut Session, message: String) -> SqlError {
        session.fail();
        SqlError::new(state::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }

    /// Decodes the whole records in the buffer; with `last` all of it.
    fn decode(&mut self, last: bool) -> Result<(), SqlError> {
        if self.ended {
            self.buffer.clear();
            return Ok(());
        }
        match self.plan.format.clone() {
            CopyFormat::Binary => self.decode_binary(last),
            CopyFormat::Text { delimiter, null, header } => self.decode_text(delimiter, &null, header, last),
            CopyFormat::Csv { delimiter, null, header, quote, escape, force_not_null, force_null, .. } => {
                self.decode_csv(&Csv { delimiter, null, quote, escape, force_not_null, force_null }, header, last)
            }
        }
    }

    fn column(&self, i: usize) -> &ColType {
        &self.plan.desc.types[self.plan.columns[i]]
    }

    fn value(&self, i: usize, field: Option<&str>) -> Result<Value, SqlError> {
        let Some(text) = field else { return Ok(Value::Null) };
        let ty = self.column(i);
        from_text(text, &ty.ty, ty.typmod, &self.style).map_err(|e| self.context(e, Some((&self.plan.desc.names[self.plan.columns[i]], text))))
    }

    /// Says where in the data an error is, as Postgres does: the line, and of it what is known.
    fn context(&self, e: SqlError, what: Option<(&str, &str)>) -> SqlError {
        let place = format!("COPY {}, line {}", self.table, self.line);
        e.in_context(match what {
            Some(("", line)) => format!("{place}: \"{}\"", shortened(line)),
            Some((column, value)) => format!("{place}, column {column}: \"{}\"", shortened(value)),
            None => place,
        })
    }

    fn bad(&self, message: String) -> SqlError {
        self.context(SqlError::new(state::BAD_COPY_FILE_FORMAT, message), None)
    }

    /// `line`: as it came.
    fn push_fields(&mut self, fields: Vec<Option<String>>, line: &str) -> Result<(), SqlError> {
        let n = self.plan.columns.len();
        if fields.len() > n {
            let e = SqlError::new(state::BAD_COPY_FILE_FORMAT, "extra data after last expected column");
            return Err(self.context(e, Some(("", line))));
        }
        if fields.iter().flatten().any(|f| f.contains('\0')) {
            let e = SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\": 0x00");
            return Err(self.context(e, None));
        }
        let row = fields.iter().enumerate().map(|(i, f)| self.value(i, f.as_deref())).collect::<Result<Row, _>>()?;
        if row.len() < n {
            let missing = &self.plan.desc.names[self.plan.columns[row.len()]];
            let e = SqlError::new(state::BAD_COPY_FILE_FORMAT, format!("missing data for column \"{missing}\""));
            return Err(self.context(e, Some(("", line))));
        }
        self.rows.push(row);
        Ok(())
    }

    fn decode_text(&mut self, delimiter: u8, null: &str, header: CopyHeader, last: bool) -> Result<(), SqlError> {
        let mut start = 0;
        let buffer = std::mem::take(&mut self.buffer);
        while start < buffer.len() && !self.ended {
            let end = match line_end(&buffer[start..]) {
                Some(n) => start + n,
                None if last => buffer.len(),
                None => break,
            };
            self.line += 1;
            let mut line = &buffer[start..end];
            start = end + 1;
            if line.last() == Some(&b'\r') {
                line = &line[..line.len() - 1];
            }
            if line == b"\\." {
                self.ended = true;
                break;
            }
            let text = std::str::from_utf8(line).map_err(|_| self.context(invalid_utf8(), None))?;
            let fields = |text: &str| split_text(text, delimiter).into_iter().map(|f| if f == null { Ok(None) } else { unescape(f).map(Some) }).collect();
            if header != CopyHeader::No && !self.begun {
                self.begun = true;
                let names: Result<Vec<_>, _> = fields(text);
                self.check_header(header, &names.map_err(|e| self.context(e, None))?)?;
                continue;
            }
            if self.plan.columns.is_empty() && text.is_empty() {
                self.rows.push(vec![]);
                continue;
            }
            let fields: Result<Vec<_>, _> = fields(text);
            let fields = fields.map_err(|e| self.context(e, None))?;
            self.push_fields(fields, text)?;
        }
        self.buffer = buffer[start.min(buffer.len())..].to_vec();
        Ok(())
    }

    /// Errors: 22P04 where the header is to name the columns and does not.
    fn check_header(&self, header: CopyHeader, names: &[Option<String>]) -> Result<(), SqlError> {
        if header != CopyHeader::Match {
            return Ok(());
        }
        let wanted: Vec<&str> = self.plan.columns.iter().map(|c| self.plan.desc.names[*c].as_str()).collect();
        if names.len() != wanted.len() {
            return Err(self.bad(format!("wrong number of fields in header line: got {}, expected {}", names.len(), wanted.len())));
        }
        for (i, (got, want)) in names.iter().zip(wanted).enumerate() {
            let got = match got {
                Some(g) if g == want => continue,
                Some(g) => format!("\"{g}\""),
                None => "null value".to_owned(),
            };
            return Err(self.bad(format!("column name mismatch in header line field {}: got {got}, expected \"{want}\"", i + 1)));
        }
        Ok(())
    }

    fn decode_csv(&mut self, csv: &Csv, header: CopyHeader, last: bool) -> Result<(), SqlError> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while start < buffer.len() && !self.ended {
            let Some((fields, used)) = csv.record(&buffer[start..], last).map_err(|m| self.bad(m))? else { break };
            self.line += 1;
            start += used;
            if matches!(fields.as_slice(), [(f, false)] if f == "\\.") {
                self.ended = true;
                break;
            }
            if header != CopyHeader::No && !self.begun {
                self.begun = true;
                let names: Vec<_> = fields.into_iter().map(|(f, quoted)| (quoted || f != csv.null).then_some(f)).collect();
                self.check_header(header, &names)?;
                continue;
            }
            let fields: Vec<Option<String>> = fields
                .into_iter()
                .enumerate()
                .map(|(i, (f, quoted))| {
                    let column = self.plan.columns.get(i).copied().unwrap_or(usize::MAX);
                    let is_null =
                        if quoted { csv.force_null.contains(&column) && f == csv.null } else { f == csv.null && !csv.force_not_null.contains(&column) };
                    if is_null {
                        None
                    } else {
                        Some(f)
                    }
                })
                .collect();
            self.push_fields(fields, String::from_utf8_lossy(&buffer[start - used..start]).trim_end_matches(['\r', '\n']))?;
        }
        self.buffer = buffer[start.min(buffer.len())..].to_vec();
        Ok(())
    }

    fn decode_binary(&mut self, last: bool) -> Result<(), SqlError> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        if !self.begun {
            let Some(header) = buffer.get(..19) else {
                self.buffer = buffer;
                return if last { Err(self.bad("COPY file signature not recognized".into())) } else { Ok(()) };
            };
            if &header[..11] != BINARY_SIGNATURE {
                return Err(self.bad("COPY file signature not recognized".into()));
            }
            let extension = u32::from_be_bytes([header[15], header[16], header[17], header[18]]) as usize;
            if buffer.len() < 19 + extension {
                self.buffer = buffer;
                return if last { Err(self.bad("invalid COPY file header (wrong length)".into())) } else { Ok(()) };
            }
            at = 19 + extension;
            self.begun = true;
        }
        loop {
            match self.binary_tuple(&buffer[at..])? {
                Tuple::End => {
                    self.ended = true;
                    return Ok(());
                }
                Tuple::Row(row, used) => {
                    self.rows.push(row);
                    at += used;
                }
                Tuple::Partial => break,
            }
        }
        if last && at < buffer.len() {
            return Err(self.bad("unexpected EOF in COPY data".into()));
        }
        self.buffer = buffer[at..].to_vec();
        Ok(())
    }

    fn binary_tuple(&mut self, b: &[u8]) -> Result<Tuple, SqlError> {
        let Some(n) = b.get(..2) else { return Ok(Tuple::Partial) };
        let n = i16::from_be_bytes([n[0], n[1]]);
        if n == -1 {
            return Ok(Tuple::End);
        }
        self.line += 1;
        if usize::try_from(n).ok() != Some(self.plan.columns.len()) {
            return Err(self.bad(format!("row field count is {n}, expected {}", self.plan.columns.len())));
        }
        let mut at = 2;
        let mut row = Vec::with_capacity(self.plan.columns.len());
        for i in 0..self.plan.columns.len() {
            let Some(len) = b.get(at..at + 4) else {
                self.line -= 1;
                return Ok(Tuple::Partial);
            };
            let len = i32::from_be_bytes([len[0], len[1], len[2], len[3]]);
            at += 4;
            if len == -1 {
                row.push(Value::Null);
                continue;
            }
            let len = usize::try_from(len).map_err(|_| self.bad("invalid field size".into()))?;
            let Some(field) = b.get(at..at + len) else {
                self.line -= 1;
                return Ok(Tuple::Partial);
            };
            let ty = self.column(i);
            let value = binary::from_binary(field, &ty.ty).and_then(|v| repr::text::apply_typmod(v, &ty.ty, ty.typmod, false));
            row.push(value.map_err(|e| self.context(e, Some((&self.plan.desc.names[self.plan.columns[i]], ""))))?);
            at += len;
        }
        Ok(Tuple::Row(row, at))
    }
}

enum Tuple {
    Row(Row, usize),
    End,
    Partial,
}

/// Long values are cut, as Postgres cuts them.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn invalid_utf8() -> SqlError {
    SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
}

/// The position of the newline that ends a text line; one after a backslash belongs to the data.
fn line_end(b: &[u8]) -> Option<usize> {
    let mut i = 0;
    while i < b.len() {
        match b[i] {
            b'\n' => return Some(i),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
    None
}

/// Fields of a text line, escapes still in place.
fn split_text(line: &str, delimiter: u8) -> Vec<&str> {
    let b = line.as_bytes();
    let (mut out, mut start, mut i) = (Vec::new(), 0, 0);
    while i < b.len() {
        if b[i] == b'\\' {
            i += 2;
        } else if b[i] == delimiter {
            out.push(&line[start..i]);
            i += 1;
            start = i;
        } else {
            i += 1;
        }
    }
    out.push(&line[start..]);
    out
}

fn unescape(field: &str) -> Result<String, SqlError> {
    if !field.contains('\\') {
        return Ok(field.to_string());
    }
    let mut out: Vec<u8> = Vec::with_capacity(field.len());
    let b = field.as_bytes();
    let mut i = 0;
    let number = |from: usize, radix: u32, max: usize| {
        let digits = b[from..].iter().take(max).take_while(|c| (**c as char).is_digit(radix)).count();
        (u32::from_str_radix(&field[from..from + digits], radix).unwrap_or(0) as u8, digits)
    };
    while i < b.len() {
        if b[i] != b'\\' || i + 1 >= b.len() {
            out.push(b[i]);
            i += 1;
            continue;
        }
        let c = b[i + 1];
        i += 2;
        match c {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let (value, digits) = number(i - 1, 8, 3);
                out.push(value);
                i += digits - 1;
            }
            b'x' if b.get(i).is_some_and(u8::is_ascii_hexdigit) => {
                let (value, digits) = number(i, 16, 2);
                out.push(value);
                i += digits;
            }
            other => out.push(other),
        }
    }
    String::from_utf8(out).map_err(|_| invalid_utf8())
}

struct Csv {
    delimiter: u8,
    null: String,
    quote: u8,
    escape: u8,
    force_not_null: Vec<usize>,
    force_null: Vec<usize>,
}

/// Fields, each with whether it was quoted.
type CsvRecord = Vec<(String, bool)>;

impl Csv {
    /// The first record and the bytes it takes; `None` if it is not whole.
    fn record(&self, b: &[u8], last: bool) -> Result<Option<(CsvRecord, usize)>, String> {
        let mut fields = Vec::new();
        let (mut field, mut quoted, mut inside) = (Vec::new(), false, false);
        let mut i = 0;
        let text = |f: Vec<u8>| String::from_utf8(f).map_err(|_| "invalid byte sequence for encoding \"UTF8\"".to_string());
        while i < b.len() {
            let c = b[i];
            if inside {
                if c == self.escape && b.get(i + 1).is_some_and(|n| *n == self.quote || (*n == self.escape && self.escape != self.quote)) {
                    field.push(b[i + 1]);
                    i += 2;
                    continue;
                }
                if c == self.quote {
                    // A doubled quote may be cut by the end of the buffer.
                    if i + 1 == b.len() && !last {
                        return Ok(None);
                    }
                    inside = false;
                } else {
                    field.push(c);
                }
            } else if c == self.quote {
                inside = true;
                quoted = true;
            } else if c == self.delimiter {
                fields.push((text(std::mem::take(&mut field))?, quoted));
                quoted = false;
            } else if c == b'\n' {
                if field.last() == Some(&b'\r') && !quoted {
                    field.pop();
                }
                fields.push((text(field)?, quoted));
                return Ok(Some((fields, i + 1)));
            } else if !(c == b'\r' && b.get(i + 1) == Some(&b'\n')) {
                field.push(c);
            }
            i += 1;
        }
        if !last {
            return Ok(None);
        }
        if inside {
            return Err("unterminated CSV quoted field".into());
        }
        fields.push((text(field)?, quoted));
        Ok(Some((fields, b.len())))
    }

    fn write(&self, out: &mut Vec<u8>, value: Option<&str>, force: bool) {
        let Some(v) = value else {
            out.extend_from_slice(self.null.as_bytes());
            return;
        };
        let special = |c: u8| c == self.delimiter || c == self.quote || c == b'\n' || c == b'\r';
        if force || v == self.null || v == "\\." || v.bytes().any(special) || v.starts_with(' ') && self.delimiter == b' ' {
            out.push(self.quote);
            for c in v.bytes() {
                if c == self.quote || c == self.escape {
                    out.push(self.escape);
                }
                out.push(c);
            }
            out.push(self.quote);
        } else {
            out.extend_from_slice(v.as_bytes());
        }
    }
}

fn write_text(out: &mut Vec<u8>, value: Option<&str>, delimiter: u8, null: &str) {
    let Some(v) = value else {
        out.extend_from_slice(null.as_bytes());
        return;
    };
    for c in v.bytes() {
        match c {
            b'\\' => out.extend_from_slice(b"\\\\"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            11 => out.extend_from_slice(b"\\v"),
            c if c == delimiter => out.extend_from_slice(&[b'\\', c]),
            c => out.push(c),
        }
    }
}

type Messages = Result<Vec<Vec<u8>>, SqlError>;

async fn write_out(
    mut rows: RowStream,
    desc: RelDesc,
    format: CopyFormat,
    encoding: Encoding,
    style: TextStyle,
    count: Arc<AtomicU64>,
    tx: mpsc::Sender<Messages>,
) {
    let RelDesc { names, types, .. } = desc;
    let message = |row: &[Value], types: &[ColType]| {
        let mut out = Vec::new();
        write_row(&mut out, row, types, &format, &style);
        encoded(out, encoding)
    };
    let binary = format == CopyFormat::Binary;
    let mut first = Vec::new();
    // The binary header has no message of its own: it begins the first one, and drivers rely on that.
    let mut header = if binary { [BINARY_SIGNATURE, &[0; 8]].concat() } else { Vec::new() };
    if matches!(&format, CopyFormat::Text { header: CopyHeader::Yes, .. } | CopyFormat::Csv { header: CopyHeader::Yes, .. }) {
        let titles: Vec<Value> = names.iter().map(|n| Value::text(n.clone())).collect();
        let text: Vec<ColType> = names.iter().map(|_| repr::SqlType::Text.not_null()).collect();
        // Titles are quoted only where they must be, whatever FORCE_QUOTE says of values.
        let mut plain = format.clone();
        if let CopyFormat::Csv { force_quote, .. } = &mut plain {
            force_quote.clear();
        }
        let mut line = Vec::new();
        write_row(&mut line, &titles, &text, &plain, &style);
        match encoded(line, encoding) {
            Ok(line) => first.push(line),
            Err(e) => {
                let _ = tx.send(Err(e)).await;
                return;
            }
        }
    }
    if !first.is_empty() && tx.send(Ok(first)).await.is_err() {
        return;
    }
    loop {
        let part = tokio::select! {
            p = rows.next() => p,
            () = tx.closed() => return,
        };
        let messages = match part {
            Some(Ok(part)) => {
                count.fetch_add(part.len() as u64, Ordering::Relaxed);
                let with_header = |m: Vec<u8>| if header.is_empty() { m } else { [std::mem::take(&mut header), m].concat() };
                part.iter().map(|row| message(row, &types)).collect::<Result<Vec<_>, _>>().map(|rows| rows.into_iter().map(with_header).collect())
            }
            Some(Err(e)) => Err(e),
            None => break,
        };
        let ends = messages.is_err();
        if tx.send(messages).await.is_err() || ends {
            return;
        }
    }
    if binary {
        header.extend_from_slice(&(-1_i16).to_be_bytes());
        let _ = tx.send(Ok(vec![header])).await;
    }
}

/// A message of text in another encoding. Errors: 22P05.
fn encoded(message: Vec<u8>, to: Encoding) -> Result<Vec<u8>, SqlError> {
    match std::str::from_utf8(&message) {
        Ok(text) if !to.is_utf8() => to.encode(text).map(std::borrow::Cow::into_owned),
        _ => Ok(message),
    }
}

fn write_row(out: &mut Vec<u8>, row: &[Value], types: &[ColType], format: &CopyFormat, style: &TextStyle) {
    let text = |v: &Value, t: &ColType| if v.is_null() { None } else { Some(to_text(v, &t.ty, style)) };
    match format {
        CopyFormat::Binary => {
            out.extend_from_slice(&i16::try_from(row.len()).unwrap_or(i16::MAX).to_be_bytes());
            for (v, t) in row.iter().zip(types) {
                if v.is_null() {
                    out.extend_from_slice(&(-1_i32).to_be_bytes());
                } else {
                    let bytes = binary::to_binary(v, &t.ty);
                    out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
                    out.extend_from_slice(&bytes);
                }
            }
        }
        CopyFormat::Text { delimiter, null, .. } => {
            for (i, (v, t)) in row.iter().zip(types).enumerate() {
                if i > 0 {
                    out.push(*delimiter);
                }
                write_text(out, text(v, t).as_deref(), *delimiter, null);
            }
            out.push(b'\n');
        }
        CopyFormat::Csv { delimiter, null, quote, escape, force_quote, .. } => {
            let csv = Csv { delimiter: *delimiter, null: null.clone(), quote: *quote, escape: *escape, force_not_null: vec![], force_null: vec![] };
            for (i, (v, t)) in row.iter().zip(types).enumerate() {
                if i > 0 {
                    out.push(*delimiter);
                }
                csv.write(out, text(v, t).as_deref(), force_quote.contains(&i));
            }
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_records_may_be_cut_anywhere() {
        let csv = Csv { delimiter: b',', null: String::new(), quote: b'"', escape: b'"', force_not_null: vec![], force_null: vec![] };
        let all = b"a,\"b\"\"\nc\",\nd\r\n";
        assert!(csv.record(&all[..6], false).unwrap().is_none(), "a doubled quote is cut");
        let (first, used) = csv.record(all, false).unwrap().unwrap();
        assert_eq!(first, vec![("a".into(), false), ("b\"\nc".into(), true), (String::new(), false)]);
        let (second, _) = csv.record(&all[used..], false).unwrap().unwrap();
        assert_eq!(second, vec![("d".into(), false)]);
        assert!(csv.record(b"\"open", true).is_err());
    }

    #[test]
    fn text_escapes_go_both_ways() {
        let mut out = Vec::new();
        write_text(&mut out, Some("a\tb\\c\nd"), b'\t', "\\N");
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line, "a\\tb\\\\c\\nd");
        assert_eq!(unescape(&line).as_deref(), Ok("a\tb\\c\nd"));
        assert_eq!(unescape("\\101\\x42\\q\\501").as_deref(), Ok("ABqA"));
        assert!(unescape("\\xff").is_err());
    }
}
