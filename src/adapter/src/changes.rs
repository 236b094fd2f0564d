//! Changes to a table on their way to the commit: in memory, or as parts in files.
//!
//! ```text
//!   statement ─► rows, rows, ... ─(the transaction holds too much)─► staged parts ─┬─► named by the tick that commits them
//!                                                                                  └─► removed with the last handle
//! ```
//!
//! Not here: when a transaction holds too much (`session/transaction.rs`), the files (`storage`).

use repr::{ColType, Deltas, GlobalId, SqlError};
use std::sync::Arc;
use storage::{StagedUnit, StoreHandle};

/// A part is written once it has so many bytes, about.
const PART_BYTES: usize = 32 << 20;

/// Changes to one table, in no order that matters: what counts is their sum.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    rows: Vec<Deltas>,
    parts: Vec<Arc<Part>>,
}

/// Changes in a file that no tick names yet.
struct Part {
    store: StoreHandle,
    unit: StagedUnit,
    types: Vec<ColType>,
    rows: u64,
    removes: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        // Of what a tick has named nothing is removed.
        self.store.unstage(&self.unit.files);
    }
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Part({:?}, {} rows)", self.unit.files, self.rows)
    }
}

impl From<Deltas> for Changes {
    fn from(deltas: Deltas) -> Changes {
        Changes { rows: vec![deltas], parts: vec![] }
    }
}

impl FromIterator<Deltas> for Changes {
    fn from_iter<I: IntoIterator<Item = Deltas>>(deltas: I) -> Changes {
        Changes { rows: deltas.into_iter().collect(), parts: vec![] }
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.rows.iter().all(Deltas::is_empty)
    }

    /// Changes of rows.
    pub fn len(&self) -> usize {
        self.rows.iter().map(Deltas::len).sum::<usize>() + self.parts.iter().map(|p| p.rows as usize).sum::<usize>()
    }

    /// Bytes of what is in memory, about.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(bytes).sum()
    }

    /// What is in memory.
    pub fn rows(&self) -> &[Deltas] {
        &self.rows
    }

    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The parts in files, to be named by the tick that commits them. They live as long as these changes, or a tick names them.
    pub fn staged(&self) -> impl Iterator<Item = StagedUnit> + '_ {
        self.parts.iter().map(|p| p.unit.clone())
    }

    /// Whether any row is taken away.
    pub fn removes(&self) -> bool {
        self.parts.iter().any(|p| p.removes) || self.rows.iter().any(|d| d.diffs.iter().any(|n| *n < 0))
    }

    /// Calls `f` with everything, piece by piece. Errors: those of `f`; a part cannot be read back.
    pub fn each(&self, mut f: impl FnMut(&Deltas) -> Result<(), SqlError>) -> Result<(), SqlError> {
        self.rows.iter().filter(|d| !d.is_empty()).try_for_each(&mut f)?;
        for part in &self.parts {
            for deltas in part.store.unnamed(&part.unit, &part.types)?.read(0, 1) {
                f(&deltas?)?;
            }
        }
        Ok(())
    }

    /// Slice `part` of `parts` of everything. Slices are disjoint and together complete. Nothing follows an error.
    pub fn read(&self, part: usize, parts: usize) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        let rows = self.rows.clone().into_iter().map(move |d| {
            let (from, to) = (d.len() * part / parts, d.len() * (part + 1) / parts);
            Ok(Deltas { rows: d.rows.slice(from, to - from), diffs: d.diffs.slice(from, to - from) })
        });
        let files = self.parts.clone().into_iter().flat_map(move |p| match p.store.unnamed(&p.unit, &p.types) {
            Ok(snapshot) => snapshot.read(part, parts),
            Err(e) => Box::new(std::iter::once(Err(e))),
        });
        Box::new(rows.chain(files))
    }

    /// Puts the changes of `other` to these.
    pub fn append(&mut self, other: Changes) {
        self.rows.extend(other.rows);
        self.parts.extend(other.parts);
    }

    /// Writes what is in memory to files, as parts of the table's shard. Errors: 53100 or 58030 from the disk; all is as it was then.
    pub fn stage(&mut self, store: &StoreHandle, table: GlobalId, types: &[ColType]) -> Result<(), SqlError> {
        let (mut made, mut open, mut open_bytes) = (Vec::new(), Vec::new(), 0);
        for deltas in &self.rows {
            for piece in deltas.rows.pieces() {
                let piece = Deltas { rows: deltas.rows.slice(piece.start, piece.len()), diffs: deltas.diffs.slice(piece.start, piece.len()) };
                open_bytes += bytes(&piece);
                open.push(piece);
                if open_bytes >= PART_BYTES {
                    made.push(part(store, table, types, std::mem::take(&mut open))?);
                    open_bytes = 0;
                }
            }
        }
        if !open.is_empty() {
            made.push(part(store, table, types, open)?);
        }
        self.parts.append(&mut made);
        self.rows.clear();
        Ok(())
    }
}

fn part(store: &StoreHandle, table: GlobalId, types: &[ColType], pieces: Vec<Deltas>) -> Result<Arc<Part>, SqlError> {
    let deltas = Deltas::concat(pieces);
    let (rows, removes) = (deltas.len() as u64, deltas.diffs.iter().any(|d| *d < 0));
    let files = vec![store.stage_as(table, types, &deltas)?];
    Ok(Arc::new(Part { store: store.clone(), unit: StagedUnit { shard: table, files }, types: types.to_vec(), rows, removes }))
}

/// Bytes that the rows take, about: of a slice of a column, its own. One row costs little less than many.
fn bytes(deltas: &Deltas) -> usize {
    const COLUMN_BYTES: usize = 256;
    deltas.rows.cols.iter().map(|c| COLUMN_BYTES + repr::column::column_bytes(c) + c.len() * 8).sum::<usize>() + deltas.len() * 8
}
