//! Messages of `pgoutput` (protocol version 1) inside a transaction, as bytes to borrowed values.
//!
//! ```text
//!   R relation: oid, schema, table, replica identity, columns      I insert: new        T truncate: oids
//!   Y type, O origin, M message: of no use here                    U update: old key or old row, new     D delete: old key or old row
//! ```
//!
//! Begin and commit are told apart by the replication client. Not here: what a change means (`engine`).

/// A column of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    Null,
    /// A TOASTed value that the update left as it was: not sent.
    Unchanged,
    Text(&'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub oid: u32,
    pub schema: String,
    pub table: String,
    /// `d` default, `f` full, `n` nothing, `i` index.
    pub identity: char,
    pub columns: Vec<RelationColumn>,
}

impl Relation {
    /// The columns that the stream names rows by.
    pub fn key_names(&self) -> Vec<&str> {
        self.columns.iter().filter(|c| c.is_key).map(|c| c.name.as_str()).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn {
    pub name: String,
    pub is_key: bool,
    pub type_oid: u32,
}

/// What an update or delete says of the row as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old<'a> {
    /// The key did not change: it is in the new row.
    Absent,
    /// Only the key's columns are set.
    Key(Vec<Cell<'a>>),
    Row(Vec<Cell<'a>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Relation(Relation),
    Insert { relation: u32, new: Vec<Cell<'a>> },
    Update { relation: u32, old: Old<'a>, new: Vec<Cell<'a>> },
    Delete { relation: u32, old: Old<'a> },
    Truncate { relations: Vec<u32> },
    Other,
}

struct Reader<'a> {
    bytes: &'a [u8],
}

type Parsed<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Parsed<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or("a replication message ends early")?;
        self.bytes = tail;
        Ok(head)
    }
    fn u8(&mut self) -> Parsed<u8> {
        Ok(self.take(1)?[0])
    }
    fn u16(&mut self) -> Parsed<usize> {
        let b = self.take(2)?;
        Ok(usize::from(u16::from_be_bytes([b[0], b[1]])))
    }
    fn u32(&mut self) -> Parsed<u32> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn text(&mut self, n: usize) -> Parsed<&'a str> {
        std::str::from_utf8(self.take(n)?).map_err(|_| "a replication message holds text that is not UTF-8".into())
    }
    fn cstr(&mut self) -> Parsed<&'a str> {
        let n = self.bytes.iter().position(|b| *b == 0).ok_or("a replication message ends inside a name")?;
        let text = self.text(n)?;
        self.take(1)?;
        Ok(text)
    }
    fn tuple(&mut self) -> Parsed<Vec<Cell<'a>>> {
        let n = self.u16()?;
        let mut cells = Vec::with_capacity(n);
        for _ in 0..n {
            cells.push(match self.u8()? {
                b'n' => Cell::Null,
                b'u' => Cell::Unchanged,
                b't' => {
                    let len = self.u32()? as usize;
                    Cell::Text(self.text(len)?)
                }
                other => return Err(format!("column data of unknown kind {:?}", char::from(other))),
            });
        }
        Ok(cells)
    }
    fn relation(&mut self) -> Parsed<Relation> {
        let oid = self.u32()?;
        let schema = self.cstr()?;
        let table = self.cstr()?.to_owned();
        let identity = char::from(self.u8()?);
        let n = self.u16()?;
        let mut columns = Vec::with_capacity(n);
        for _ in 0..n {
            let is_key = self.u8()? & 1 == 1;
            let name = self.cstr()?.to_owned();
            let type_oid = self.u32()?;
            self.u32()?;
            columns.push(RelationColumn { name, is_key, type_oid });
        }
        // pgoutput leaves the name of pg_catalog out.
        let schema = if schema.is_empty() { "pg_catalog" } else { schema }.to_owned();
        Ok(Relation { oid, schema, table, identity, columns })
    }
}

/// Reads one message. Errors: what is wrong with it.
pub fn parse(bytes: &[u8]) -> Parsed<Message<'_>> {
    let mut r = Reader { bytes };
    Ok(match r.u8()? {
        b'R' => Message::Relation(r.relation()?),
        b'I' => {
            let relation = r.u32()?;
            r.u8()?;
            Message::Insert { relation, new: r.tuple()? }
        }
        b'U' => {
            let relation = r.u32()?;
            let (mut kind, mut old) = (r.u8()?, Old::Absent);
            if kind == b'K' || kind == b'O' {
                let cells = r.tuple()?;
                old = if kind == b'K' { Old::Key(cells) } else { Old::Row(cells) };
                kind = r.u8()?;
            }
            if kind != b'N' {
                return Err(format!("an update with a tuple of unknown kind {:?}", char::from(kind)));
            }
            Message::Update { relation, old, new: r.tuple()? }
        }
        b'D' => {
            let relation = r.u32()?;
            let old = match r.u8()? {
                b'K' => Old::Key(r.tuple()?),
                b'O' => Old::Row(r.tuple()?),
                other => return Err(format!("a delete with a tuple of unknown kind {:?}", char::from(other))),
            };
            Message::Delete { relation, old }
        }
        b'T' => {
            let n = r.u32()?;
            r.u8()?;
            Message::Truncate { relations: (0..n).map(|_| r.u32()).collect::<Parsed<_>>()? }
        }
        _ => Message::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_cut_ones_are_errors() {
        let mut update = b"U\0\0\0\x07K\0\x02t\0\0\0\x011nN\0\x03t\0\0\0\x03abcnu".to_vec();
        let want = Message::Update { relation: 7, old: Old::Key(vec![Cell::Text("1"), Cell::Null]), new: vec![Cell::Text("abc"), Cell::Null, Cell::Unchanged] };
        assert_eq!(parse(&update), Ok(want));
        while update.len() > 1 {
            update.pop();
            assert!(parse(&update).is_err(), "{update:?}");
        }
        let relation = b"R\0\0\0\x01public\0t\0d\0\x01\x01a\0\0\0\0\x17\xff\xff\xff\xff";
        let columns = vec![RelationColumn { name: "a".into(), is_key: true, type_oid: 23 }];
        assert_eq!(parse(relation), Ok(Message::Relation(Relation { oid: 1, schema: "public".into(), table: "t".into(), identity: 'd', columns })));
        assert_eq!(parse(b"T\0\0\0\x02\x01\0\0\0\x05\0\0\0\x06"), Ok(Message::Truncate { relations: vec![5, 6] }));
        assert!(parse(b"I\0\0\0\x01N\0\x01t\0\0\0\x01\xff").is_err());
    }
}
