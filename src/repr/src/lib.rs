//! Values, types, rows and errors: what every other crate speaks, knowing nobody itself.
//!
//! ```text
//!   SqlType ──► physical Arrow type ──► key bytes (canonical under SQL equality) ──► text / binary on the wire
//!   Value    one SQL value, owned                    Batch    columns of one length
//!   RowCodec batch rows <-> order-preserving bytes   Deltas   a batch with one diff a row
//! ```
//!
//! Not here: evaluation of anything (`expr`), names of catalog objects (`adapter`).

/// Batches of rows and of changes.
pub mod batch;
/// Binary input and output of each type, as Postgres's wire protocol writes it.
pub mod binary;
/// The canonical bytes of one value, and the suffix they leave out.
pub mod canonical;
/// Columns: the physical (Arrow) form of each type.
pub mod column;
/// Dates, times, intervals: calendar, zones, text, arithmetic.
pub mod datetime;
/// Character encodings of clients.
pub mod encoding;
/// Errors with SQLSTATE.
pub mod error;
/// Geometric values.
pub mod geo;
/// Identifiers, timestamps, diffs.
pub mod ids;
/// Ends evaluation from another thread.
pub mod interrupt;
/// JSON documents as Postgres orders them.
pub mod jsonb;
/// Paths over JSON documents.
pub mod jsonpath;
/// Rows by key, packed.
pub mod keyed;
/// Who holds memory.
pub mod memory;
/// Exact decimal numbers.
pub mod numeric;
/// Ranges: canonical form, order of bounds.
pub mod range;
/// Rows as order-preserving bytes.
pub mod row;
/// The session settings that text depends on.
pub mod style;
/// Keys with sums.
pub mod tally;
/// Text input and output of each type, as Postgres writes it.
pub mod text;
/// Documents and queries of text search.
pub mod tsearch;
/// SQL types and column types.
pub mod types;
/// One SQL value.
pub mod value;
/// What Binary columns hold for a value.
pub mod value_bytes;

pub use batch::{Batch, Col, Deltas};
pub use column::ColumnBuilder;
pub use error::{SqlError, SqlState};
pub use ids::{Diff, GlobalId, Timestamp};
pub use keyed::KeyedRows;
pub use numeric::Numeric;
pub use row::RowCodec;
pub use style::{DateFormat, DateOrder, DateStyle, IntervalStyle, TextStyle};
pub use tally::Tally;
pub use types::{ColType, RelDesc, SqlType};
pub use value::{ArrayValue, InetValue, Interval, RangeValue, TimeTz, Value};
