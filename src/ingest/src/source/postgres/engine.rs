//! The state machine between the replication stream and the committer: whole transactions in, changes by relation out.
//!
//! ```text
//!   begin ─ change ─ change ─ ... ─ commit    begin ─ ... ─ commit      take(false): one or more whole transactions, a unit
//!                └─ take(true): a part of a unit that is too large
//! ```
//!
//! No I/O. When a change needs a table's old rows it is refused once, the driver loads them, and gives it again.
//! After a lost connection the stream begins again at the last commit seen; changes of the transaction that was cut are counted
//! and skipped, since upstream decodes a transaction always the same way.

use super::lsn::Lsn;
use super::pgoutput::{parse, Cell, Message, Old};
use super::table::{Refused, Table};
use crate::decode::Rows;
use crate::envelope::now_micros;
use crate::spec::{errors_desc, OnError, SourceSpec};
use repr::{Deltas, GlobalId, Value};
use std::collections::HashMap;

/// Why the driver must act.
#[derive(Debug, PartialEq, Eq)]
pub enum Halt {
    /// Load the rows of this table, then give the same message again.
    NeedsState(usize),
    /// Ask upstream whether this table's rows are unique by the key that they had, and by the columns that name them from here on
    /// ([`Table::confirm`]), then give the same message again.
    KeyInDoubt {
        table: usize,
        named_by: Vec<String>,
    },
    Fail(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Txn {
    final_lsn: Lsn,
    xid: u32,
    /// Changes taken in.
    done: u64,
    /// Changes still to be skipped.
    skip: u64,
    /// All of it is contained already.
    skip_all: bool,
}

pub struct Engine {
    pub tables: Vec<Table>,
    /// Which of the tables follow an upstream relation; none, one, or several.
    relations: HashMap<u32, Vec<usize>>,
    errors: GlobalId,
    on_error: OnError,
    bad: Rows,
    /// Everything that committed before this was taken in.
    pub processed: Lsn,
    txn: Option<Txn>,
    /// The transaction that a lost connection cut.
    cut: Option<Txn>,
    pub error_count: u64,
    pub change_count: u64,
}

impl Engine {
    pub fn new(spec: &SourceSpec, processed: Lsn) -> Result<Engine, String> {
        Ok(Engine {
            tables: spec.outputs.iter().map(Table::new).collect::<Result<_, _>>()?,
            relations: HashMap::new(),
            errors: spec.errors,
            on_error: spec.on_error,
            bad: Rows::new(&errors_desc().types),
            processed,
            txn: None,
            cut: None,
            error_count: 0,
            change_count: 0,
        })
    }

    pub fn is_in_transaction(&self) -> bool {
        self.txn.is_some()
    }

    /// The open transaction.
    pub fn xid(&self) -> Option<u32> {
        self.txn.map(|t| t.xid)
    }

    /// A lost connection cut a transaction of which changes wait or were handed over; it comes again.
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Changes that wait to be taken.
    pub fn pending(&self) -> usize {
        self.bad.len() + self.tables.iter().map(Table::pending).sum::<usize>()
    }

    /// About the bytes of these.
    pub fn pending_bytes(&self) -> usize {
        self.bad.bytes() + self.tables.iter().map(Table::pending_bytes).sum::<usize>()
    }

    /// A new stream begins, from [`Engine::processed`] on.
    pub fn reconnected(&mut self) {
        if let Some(txn) = self.txn.take() {
            let done = txn.done + txn.skip;
            self.cut = Some(Txn { done, skip: 0, ..txn }).filter(|t| t.done > 0);
        }
        self.relations.clear();
    }

    /// A transaction whose commit stands at `final_lsn`: contained already if that is before [`Engine::processed`].
    pub fn begin(&mut self, final_lsn: Lsn, xid: u32) {
        let again = self.cut.filter(|c| (c.final_lsn, c.xid) == (final_lsn, xid));
        let skip = again.map_or(0, |c| c.done);
        self.txn = Some(Txn { final_lsn, xid, done: 0, skip, skip_all: final_lsn < self.processed });
    }

    pub fn commit(&mut self, end_lsn: Lsn) {
        self.txn = None;
        self.cut = None;
        self.processed = self.processed.max(end_lsn);
    }

    /// Takes in a message of the open transaction, which stood at `at`.
    pub fn change(&mut self, at: Lsn, bytes: &[u8]) -> Result<(), Halt> {
        let message = parse(bytes).map_err(Halt::Fail)?;
        match &message {
            Message::Relation(r) => {
                let reference = format!("{}.{}", r.schema, r.table);
                let tables: Vec<usize> = (0..self.tables.len()).filter(|i| self.tables[*i].reference == reference).collect();
                // A name may stand for another table by now.
                let other = self.tables.iter().find(|t| t.active && t.oid.is_some_and(|oid| (oid == r.oid) != (t.reference == reference)));
                if let Some(t) = other {
                    return Err(Halt::Fail(super::table::made_again(&t.reference)));
                }
                if let Some(i) = tables.iter().find(|i| !self.tables[**i].is_sure_of_key(r)) {
                    return Err(Halt::KeyInDoubt { table: *i, named_by: r.key_names().iter().map(|n| n.to_string()).collect() });
                }
                self.relations.insert(r.oid, tables.clone());
                for i in tables {
                    let ignored = self.tables[i].set_relation(r).map_err(Halt::Fail)?;
                    if !ignored.is_empty() {
                        tracing::info!(table = reference, columns = ?ignored, "upstream columns that the relation does not have are ignored");
                    }
                }
                return Ok(());
            }
            Message::Other => return Ok(()),
            _ => {}
        }
        let Some(txn) = &mut self.txn else {
            return Err(Halt::Fail("a change outside a transaction".into()));
        };
        if txn.skip_all {
            return Ok(());
        }
        if txn.skip > 0 {
            (txn.skip, txn.done) = (txn.skip - 1, txn.done + 1);
            return Ok(());
        }
        match &message {
            Message::Insert { relation, new } => self.each(*relation, None, at, new, |t| t.insert(new))?,
            Message::Update { relation, old, new } => self.each(*relation, Some(old), at, new, |t| t.update(old, new))?,
            Message::Delete { relation, old } => {
                let shown = match old {
                    Old::Key(cells) | Old::Row(cells) => cells.as_slice(),
                    Old::Absent => &[],
                };
                self.each(*relation, Some(old), at, shown, |t| t.delete(old))?;
            }
            Message::Truncate { relations } => {
                // All that must be loaded is, before the first one is emptied: this message comes again whole.
                let tables: Vec<usize> = relations.iter().filter_map(|r| self.relations.get(r)).flatten().copied().collect();
                for i in tables {
                    self.one_table(i, at, &[], |t| t.truncate())?;
                }
            }
            Message::Relation(_) | Message::Other => {}
        }
        if let Some(txn) = &mut self.txn {
            txn.done += 1;
        }
        self.change_count += 1;
        Ok(())
    }

    /// Applies a change to each table that follows the relation; to none if one of them lacks its rows.
    fn each(
        &mut self,
        relation: u32,
        old: Option<&Old<'_>>,
        at: Lsn,
        shown: &[Cell<'_>],
        apply: impl Fn(&mut Table) -> Result<(), Refused>,
    ) -> Result<(), Halt> {
        let Some(tables) = self.relations.get(&relation) else {
            return Err(Halt::Fail(format!("a change of relation {relation} came before its description")));
        };
        // A table of the publication that nobody reads has none.
        let tables = tables.clone();
        if let Some(i) = tables.iter().find(|i| old.is_some_and(|old| self.tables[**i].active && self.tables[**i].lacks_rows(old))) {
            return Err(Halt::NeedsState(*i));
        }
        for i in tables {
            self.one_table(i, at, shown, &apply)?;
        }
        Ok(())
    }

    fn one_table(&mut self, i: usize, at: Lsn, shown: &[Cell<'_>], apply: impl FnOnce(&mut Table) -> Result<(), Refused>) -> Result<(), Halt> {
        if !self.tables[i].active {
            return Ok(());
        }
        match apply(&mut self.tables[i]) {
            Ok(()) => Ok(()),
            Err(Refused::NeedsState) => Err(Halt::NeedsState(i)),
            Err(Refused::Fatal(why)) => Err(Halt::Fail(why)),
            Err(Refused::Bad(why)) => self.bad_row(i, at, shown, &why),
        }
    }

    /// Lists a row in `<source>_errors`, or fails if the source is declared so.
    pub fn bad_row(&mut self, table: usize, at: Lsn, cells: &[Cell<'_>], why: &str) -> Result<(), Halt> {
        let reference = &self.tables[table].reference;
        if self.on_error == OnError::Fail {
            return Err(Halt::Fail(format!("table \"{reference}\" at {at}: {why}")));
        }
        self.error_count += 1;
        let shown: Vec<&str> = cells
            .iter()
            .map(|c| match c {
                Cell::Text(t) => t,
                Cell::Null => "\\N",
                Cell::Unchanged => "(unchanged)",
            })
            .collect();
        self.bad.push_row(&[
            Value::Text(at.to_string()),
            Value::Null,
            Value::Bytea(shown.join("\t").into_bytes()),
            Value::Null,
            Value::Text(why.replace('\0', "\\0")),
            Value::Text(reference.clone()),
            Value::TimestampTz(now_micros()),
        ]);
        Ok(())
    }

    /// A table whose rows must be loaded before a part of the open unit may be taken.
    pub fn must_load_before_part(&self) -> Option<usize> {
        self.tables.iter().position(Table::must_load_before_part)
    }

    /// Changes to hand over, by relation; `more` of the same unit will follow.
    pub fn take(&mut self, more: bool) -> Vec<(GlobalId, Deltas)> {
        let mut out = Vec::new();
        for table in &mut self.tables {
            let id = table.id;
            out.extend(table.take(more).into_iter().map(|d| (id, d)));
        }
        if !self.bad.is_empty() {
            out.push((self.errors, Deltas::inserts(self.bad.take())));
        }
        out
    }
}
