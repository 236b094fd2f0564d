//! One upstream table on its way into one relation: tuples to rows, old rows found by key.
//!
//! ```text
//!   identity      update, delete name the old row by     state here
//!   default, index   key (old key, or the new row's)     every row by key ([`KeyedRows`]), once it is needed
//!   full             the whole old row                   none
//! ```
//!
//! The state is read back from what is durable when the first update, delete or truncation comes; what the open unit changed
//! since is laid over it. A table that is only inserted into never costs that memory.
//!
//! Law: after any prefix of whole transactions the sum of all changes handed over is the table's content at that position.

use super::pgoutput::{Cell, Old, Relation};
use crate::decode::Rows;
use crate::spec::{ColumnSource, OutputSpec};
use repr::keyed::Loading;
use repr::style::TextStyle;
use repr::text::from_text;
use repr::{Col, ColType, Deltas, Diff, GlobalId, KeyedRows, RowCodec, SqlError, SqlType, Value};
use std::collections::HashMap;

type Content = HashMap<Box<[u8]>, Diff, foldhash::fast::RandomState>;

/// Rows of an open unit that are remembered once they were handed over, and their bytes: what comes later in the unit may change them.
const REMEMBERED_ROWS: usize = 1_000_000;
const REMEMBERED_BYTES: usize = 256 << 20;

/// Why a table is not followed any more whose name stands for another one.
pub fn made_again(reference: &str) -> String {
    format!("upstream table \"{reference}\" was dropped and made again, or renamed: drop the table and create it again")
}

/// Why a change was not taken in. Nothing of it was then.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// [`Table::load`] must come first; then the same change again.
    NeedsState,
    /// This row cannot be taken in; others can.
    Bad(String),
    /// The source cannot go on.
    Fatal(String),
}

impl From<String> for Refused {
    fn from(reason: String) -> Refused {
        Refused::Bad(reason)
    }
}

/// How the upstream table's columns become ours, as the last relation message says.
struct Mapping {
    /// For each of our columns its place in a tuple.
    cols: Vec<usize>,
    /// Our columns that make up the replica identity's key; empty if there is none.
    key: Vec<usize>,
    key_codec: RowCodec,
    is_full: bool,
    width: usize,
}

pub struct Table {
    pub id: GlobalId,
    pub reference: String,
    /// The upstream table that the reference named when it was copied.
    pub oid: Option<u32>,
    /// Its snapshot is contained, so changes are taken in.
    pub active: bool,
    /// Its replica identity has a column that the stream does not have, or is not unique any more.
    key_is_hidden: bool,
    /// The primary key that it had when it was made here: plans rest on it.
    unique: Option<Vec<String>>,
    /// Upstream said that it still has that key, for the description that comes next.
    confirmed: bool,
    names: Vec<String>,
    types: Vec<ColType>,
    codec: RowCodec,
    style: TextStyle,
    mapping: Option<Mapping>,
    /// Rows by key. `None`: not needed so far.
    map: Option<KeyedRows>,
    /// Content of a table without key, for the TRUNCATE that asked for it.
    content: Option<Content>,
    rows: Rows,
    diffs: Vec<Diff>,
    /// Changes before those in `rows`, not handed over yet.
    ready: Vec<Deltas>,
    /// Changes of the open unit that were handed over.
    sent: Vec<Deltas>,
    sent_rows: usize,
    sent_bytes: usize,
    scratch: Vec<u8>,
}

impl Table {
    /// Errors: a column that no upstream column brings.
    pub fn new(output: &OutputSpec) -> Result<Table, String> {
        let name = |c: &ColumnSource| match c {
            ColumnSource::Value(name) => Ok(name.clone()),
            other => Err(format!("column source {other:?} does not exist for PostgreSQL")),
        };
        let types = output.desc.types.clone();
        Ok(Table {
            id: output.id,
            reference: output.reference.clone(),
            oid: None,
            active: output.snapshot_done,
            key_is_hidden: false,
            unique: output.desc.keys.first().map(|key| key.iter().map(|i| output.desc.names[*i].clone()).collect()),
            confirmed: false,
            names: output.columns.iter().map(name).collect::<Result<_, _>>()?,
            codec: RowCodec::new(types.clone()),
            style: TextStyle::default(),
            mapping: None,
            map: None,
            content: None,
            rows: Rows::new(&types),
            diffs: Vec::new(),
            ready: Vec::new(),
            sent: Vec::new(),
            sent_rows: 0,
            sent_bytes: 0,
            scratch: Vec::new(),
            types,
        })
    }

    /// Names of the upstream columns, in the order of ours.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Rows that are kept by key, and the bytes they take in memory.
    pub fn state_size(&self) -> (usize, usize) {
        self.map.as_ref().map_or((0, 0), |m| (m.len(), m.bytes()))
    }

    /// Changes that wait to be taken.
    pub fn pending(&self) -> usize {
        self.diffs.len() + self.ready.iter().map(Deltas::len).sum::<usize>()
    }

    /// About the bytes of these.
    pub fn pending_bytes(&self) -> usize {
        self.rows.bytes() + self.ready.iter().map(|d| d.rows.bytes()).sum::<usize>()
    }

    /// Whether the rows are still unique by the key that they had and by the columns that name them, as far as the description says:
    /// a default identity is the primary key, but generated columns of it are not told. Of others upstream is asked, once for each description.
    pub fn is_sure_of_key(&self, relation: &Relation) -> bool {
        let names = relation.key_names();
        self.confirmed
            || match &self.unique {
                Some(unique) => relation.identity == 'd' && names.len() == unique.len() && names.iter().all(|n| unique.iter().any(|u| u == n)),
                None => relation.identity == 'f' || names.is_empty(),
            }
    }

    /// Upstream still has the key, as of the description that comes next; whether the columns that it names rows by are unique.
    pub fn confirm(&mut self, is_unique: bool) {
        self.confirmed = true;
        self.key_is_hidden = !is_unique;
    }

    /// Errors: the primary key upstream is not the one that the rows had.
    pub fn check_key(&self, now: &[String]) -> Result<(), String> {
        if let Some(unique) = self.unique.as_ref().filter(|u| u.len() != now.len() || !u.iter().all(|c| now.contains(c))) {
            return Err(format!(
                "the primary key of upstream table \"{}\" is not ({}) any more, so that its rows may repeat: drop the table and create it again",
                self.reference,
                unique.join(", ")
            ));
        }
        Ok(())
    }

    /// Takes in how the table looks from here on. Answers with the names of columns that are ignored.
    /// Errors: a column was dropped, or has another type.
    pub fn set_relation(&mut self, relation: &Relation) -> Result<Vec<String>, String> {
        let again = "drop the table and create it again";
        self.key_is_hidden &= std::mem::take(&mut self.confirmed);
        let mut cols = Vec::with_capacity(self.names.len());
        for (name, ty) in self.names.iter().zip(&self.types) {
            let Some(at) = relation.columns.iter().position(|c| c.name == *name) else {
                return Err(format!("column \"{name}\" of upstream table \"{}\" was dropped or renamed: {again}", self.reference));
            };
            if let Some(now) = incompatible(relation.columns[at].type_oid, &ty.ty) {
                return Err(format!("column \"{name}\" of upstream table \"{}\" has type {now} now, not {}: {again}", self.reference, ty.ty));
            }
            cols.push(at);
        }
        let is_full = relation.identity == 'f';
        let mut key = Vec::new();
        for (at, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.is_key && !is_full && !self.key_is_hidden) {
            match cols.iter().position(|c| *c == at) {
                Some(i) => key.push(i),
                None => {
                    return Err(format!(
                        "key column \"{}\" of upstream table \"{}\" is not a column of the relation: include it, or run ALTER TABLE {} REPLICA IDENTITY FULL upstream",
                        column.name, self.reference, self.reference
                    ))
                }
            }
        }
        let same_key = self.mapping.as_ref().is_some_and(|m| m.key == key && m.is_full == is_full);
        if !same_key {
            // Rows by another key, or rows that were not kept up to date: read again when needed.
            self.map = None;
        }
        let ignored = relation.columns.iter().enumerate().filter(|(i, _)| !cols.contains(i)).map(|(_, c)| c.name.clone()).collect();
        let key_codec = RowCodec::new(key.iter().map(|i| self.types[*i].clone()).collect());
        self.mapping = Some(Mapping { cols, key, key_codec, is_full, width: relation.columns.len() });
        Ok(ignored)
    }

    /// Values of a tuple; those left unchanged come from `old`.
    fn values(&self, mapping: &Mapping, cells: &[Cell<'_>], old: Option<&[Value]>) -> Result<Vec<Value>, String> {
        if cells.len() != mapping.width {
            return Err(format!("a row of {} columns where {} were announced", cells.len(), mapping.width));
        }
        let mut out = Vec::with_capacity(mapping.cols.len());
        for (i, at) in mapping.cols.iter().enumerate() {
            out.push(match cells[*at] {
                Cell::Text(text) => self.value(i, text)?,
                Cell::Null => Value::Null,
                Cell::Unchanged => match old {
                    Some(old) => old[i].clone(),
                    None => return Err(format!("column \"{}\" was left unchanged in a row that is not known", self.names[i])),
                },
            });
        }
        Ok(out)
    }

    /// Plans rest on columns that are NOT NULL here.
    fn check_nulls(&self, values: &[Value]) -> Result<(), Refused> {
        match values.iter().zip(&self.types).position(|(v, t)| v.is_null() && !t.nullable) {
            None => Ok(()),
            Some(i) => Err(Refused::Fatal(format!(
                "column \"{}\" of upstream table \"{}\" may be NULL now, it was NOT NULL: drop the table and create it again",
                self.names[i], self.reference
            ))),
        }
    }

    /// The value of column `i` from its text.
    pub fn value(&self, i: usize, text: &str) -> Result<Value, String> {
        from_text(text, &self.types[i].ty, -1, &self.style).map_err(|e| format!("column \"{}\": {e}", self.names[i]))
    }

    /// Key bytes of the key's cells in a tuple; `None` if one of them was not sent.
    fn key_of_cells(&self, mapping: &Mapping, cells: &[Cell<'_>]) -> Result<Option<Vec<u8>>, String> {
        let mut key = Vec::with_capacity(mapping.key.len());
        for i in &mapping.key {
            match cells.get(mapping.cols[*i]) {
                Some(Cell::Text(text)) => key.push(self.value(*i, text)?),
                Some(Cell::Null) => key.push(Value::Null),
                Some(Cell::Unchanged) | None => return Ok(None),
            }
        }
        let mut out = Vec::new();
        mapping.key_codec.encode_key(&key, &mut out);
        Ok(Some(out))
    }

    fn push(&mut self, row: &[Value], diff: Diff) {
        self.rows.push_row(row);
        self.diffs.push(diff);
    }

    /// Adds a row of the snapshot.
    pub fn push_snapshot(&mut self, row: &[Value]) {
        self.push(row, 1);
    }

    fn mapping(&self) -> Result<&Mapping, Refused> {
        self.mapping.as_ref().ok_or_else(|| Refused::Fatal(format!("a change of table \"{}\" came before its description", self.reference)))
    }

    /// Whether a change with this old row or key cannot be applied before [`Table::load`].
    pub fn lacks_rows(&self, old: &Old<'_>) -> bool {
        let says_all = |m: &Mapping| m.key.is_empty() || (m.is_full && matches!(old, Old::Row(_)));
        self.map.is_none() && !self.mapping.as_ref().is_some_and(says_all)
    }

    pub fn insert(&mut self, new: &[Cell<'_>]) -> Result<(), Refused> {
        let mapping = self.mapping()?;
        let values = self.values(mapping, new, None)?;
        self.check_nulls(&values)?;
        let replaced = self.put(&values);
        if let Some(old) = replaced {
            self.push(&old, -1);
        }
        self.push(&values, 1);
        Ok(())
    }

    /// Keeps the row under its key. Answers with the row that had the key.
    fn put(&mut self, values: &[Value]) -> Option<Vec<Value>> {
        let (Some(mapping), Some(map)) = (&self.mapping, &mut self.map) else {
            return None;
        };
        self.scratch.clear();
        self.codec.encode_row(values, &mut self.scratch);
        let mut key = Vec::new();
        self.codec.key_of(&self.scratch, &mapping.key, &mut key);
        map.insert(&key, &self.scratch).map(|old| self.codec.decode_row(&old))
    }

    pub fn update(&mut self, old: &Old<'_>, new: &[Cell<'_>]) -> Result<(), Refused> {
        let mapping = self.mapping()?;
        if let (true, Old::Row(cells)) = (mapping.is_full, old) {
            let before = self.values(mapping, cells, None)?;
            let after = self.values(mapping, new, Some(&before))?;
            self.check_nulls(&after)?;
            self.push(&before, -1);
            self.push(&after, 1);
            return Ok(());
        }
        let key = self.old_key(mapping, old, Some(new))?;
        let map = self.map.as_ref().ok_or(Refused::NeedsState)?;
        let before = map.get(&key).map(|row| self.codec.decode_row(row));
        let after = self.values(mapping, new, before.as_deref())?;
        self.check_nulls(&after)?;
        if let Some(map) = &mut self.map {
            map.remove(&key);
        }
        if let Some(before) = before {
            self.push(&before, -1);
        }
        if let Some(replaced) = self.put(&after) {
            self.push(&replaced, -1);
        }
        self.push(&after, 1);
        Ok(())
    }

    pub fn delete(&mut self, old: &Old<'_>) -> Result<(), Refused> {
        let mapping = self.mapping()?;
        if let (true, Old::Row(cells)) = (mapping.is_full, old) {
            let before = self.values(mapping, cells, None)?;
            self.push(&before, -1);
            return Ok(());
        }
        let key = self.old_key(mapping, old, None)?;
        let map = self.map.as_mut().ok_or(Refused::NeedsState)?;
        let row = map.remove(&key).ok_or_else(|| Refused::Bad("the row to delete is not known".into()))?;
        let before = self.codec.decode_row(&row);
        self.push(&before, -1);
        Ok(())
    }

    fn old_key(&self, mapping: &Mapping, old: &Old<'_>, new: Option<&[Cell<'_>]>) -> Result<Vec<u8>, Refused> {
        if mapping.key.is_empty() {
            return Err(Refused::Fatal(format!(
                "upstream table \"{}\" has no replica identity of columns that are replicated, so its changes cannot be followed: run ALTER TABLE {} REPLICA IDENTITY FULL upstream, then drop the table here and create it again",
                self.reference, self.reference
            )));
        }
        let cells = match (old, new) {
            (Old::Key(cells) | Old::Row(cells), _) => cells,
            (Old::Absent, Some(new)) => new,
            (Old::Absent, None) => return Err(Refused::Bad("a delete without a key".into())),
        };
        self.key_of_cells(mapping, cells)?.ok_or_else(|| Refused::Bad("a change without its key".into()))
    }

    pub fn truncate(&mut self) -> Result<(), Refused> {
        if let Some(map) = &mut self.map {
            for row in map.iter() {
                self.rows.push_row(&self.codec.decode_row(row));
                self.diffs.push(-1);
            }
            map.clear();
            return Ok(());
        }
        let content = self.content.take().ok_or(Refused::NeedsState)?;
        for (row, count) in content {
            let values = self.codec.decode_row(&row);
            self.push(&values, -count);
        }
        Ok(())
    }

    /// Whether handing over a part of the open unit now would lose what [`Table::load`] needs later: a bulk load is not remembered whole.
    pub fn must_load_before_part(&self) -> bool {
        let forgets = self.sent_rows + self.pending() > REMEMBERED_ROWS || self.sent_bytes + self.pending_bytes() > REMEMBERED_BYTES;
        self.map.is_none() && self.pending() > 0 && forgets && self.mapping.as_ref().is_some_and(|m| !m.key.is_empty())
    }

    /// Takes in the content before the open unit, in parts; the unit's own changes are laid over it.
    /// Errors: a part that cannot be read; a key with two rows; a unit too large to be truncated.
    pub fn load(&mut self, parts: impl Iterator<Item = Result<Deltas, SqlError>>) -> Result<(), String> {
        if self.forgot() {
            return Err(format!(
                "table \"{}\" was truncated in a transaction that changed more than {REMEMBERED_ROWS} of its rows or {} MB: drop the table and create it again",
                self.reference,
                REMEMBERED_BYTES >> 20
            ));
        }
        self.settle();
        let mine = self.sent.iter().chain(&self.ready).cloned().map(Ok).collect::<Vec<_>>();
        let parts = parts.chain(mine);
        match self.mapping.as_ref().filter(|m| !m.key.is_empty()) {
            None => {
                let mut content = Content::default();
                self.each_row(parts, |row, diff| match content.get_mut(row) {
                    Some(sum) if *sum + diff == 0 => drop(content.remove(row)),
                    Some(sum) => *sum += diff,
                    None => drop(content.insert(row.into(), diff)),
                })?;
                self.content = Some(content);
            }
            Some(mapping) => {
                let mut loading = Loading::new(self.types.clone(), mapping.key.clone());
                self.each_row(parts, |row, diff| loading.add(row, diff))?;
                let again = || format!("the durable rows of table \"{}\" do not have unique keys: drop the table and create it again", self.reference);
                self.map = Some(loading.finish().ok_or_else(again)?);
            }
        }
        Ok(())
    }

    fn each_row(&self, parts: impl Iterator<Item = Result<Deltas, SqlError>>, mut take: impl FnMut(&[u8], Diff)) -> Result<(), String> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for part in parts {
            let part = part.map_err(|e| e.to_string())?;
            bytes.clear();
            ends.clear();
            self.codec.encode_rows(&part.rows.cols, part.len(), &mut bytes, &mut ends);
            let mut start = 0;
            for (i, end) in ends.iter().enumerate() {
                take(&bytes[start..*end as usize], *part.diffs.get(i));
                start = *end as usize;
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        if !self.rows.is_empty() {
            let diffs = Col::from_vec(std::mem::take(&mut self.diffs));
            self.ready.push(Deltas { rows: self.rows.take(), diffs });
        }
    }

    /// Changes to hand over; `more` of the same unit will follow.
    pub fn take(&mut self, more: bool) -> Vec<Deltas> {
        self.settle();
        let out = std::mem::take(&mut self.ready);
        if more && self.map.is_none() && self.active {
            self.sent_rows += out.iter().map(Deltas::len).sum::<usize>();
            self.sent_bytes += out.iter().map(|d| d.rows.bytes()).sum::<usize>();
            if self.forgot() {
                self.sent.clear();
            } else {
                self.sent.extend(out.iter().cloned());
            }
        } else {
            self.sent.clear();
            (self.sent_rows, self.sent_bytes) = (0, 0);
        }
        out
    }

    fn forgot(&self) -> bool {
        self.sent_rows > REMEMBERED_ROWS || self.sent_bytes > REMEMBERED_BYTES
    }
}

/// The type's name, if a column whose type has this oid cannot be read as `ours`.
fn incompatible(oid: u32, ours: &SqlType) -> Option<String> {
    // Types of the user's own came in as their base type or as text; only their oid is known here.
    const FIRST_USER_OID: u32 = 16_384;
    if oid >= FIRST_USER_OID || *ours == SqlType::Text {
        return None;
    }
    let now = super::inspect::our_type(oid);
    let texts = [SqlType::Text, SqlType::Varchar];
    (now != *ours && !(texts.contains(&now) && texts.contains(ours))).then(|| now.to_string())
}
