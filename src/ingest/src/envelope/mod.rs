//! Envelopes: what a message means as a change of the relation.
//!
//! ```text
//!   none       every record is a row                              +1
//!   upsert     the last message of a key is its row               -1 old, +1 new
//!   debezium   the same, of `after` in Debezium's change events
//! ```
//! [`Pipeline`] is decoder, envelope and error rows of one output; it holds what was pushed since the last [`Pipeline::take`].
//! Law: cutting the same records into any batches gives the same collection.

/// Debezium's change events.
pub mod debezium;
/// The last row of each key.
pub mod upsert;

use crate::decode::{Decoder, Rows};
use crate::record::Record;
use crate::spec::{errors_desc, ColumnSource, Envelope, Format, OnError, OutputSpec, SourceSpec, StateReader};
use repr::error::state;
use repr::{Col, Deltas, Diff, GlobalId, RowCodec, SqlError, Value};
use std::collections::HashMap;
use upsert::Upsert;

const REASON_CHARS_MAX: usize = 1000;
/// Of [`errors_desc`].
const KEY_COLUMN: usize = 1;

/// From records to changes of one output and of the errors relation.
pub struct Pipeline {
    output: GlobalId,
    errors: GlobalId,
    relation: String,
    on_error: OnError,
    decoder: Decoder,
    kind: Kind,
    rows: Rows,
    bad: Rows,
    /// For each of `bad`, whether it is listed or taken off the list.
    bad_diffs: Vec<Diff>,
    /// Under `ON ERROR = 'fail'`, the error rows of each key whose last message could not be decoded: they go when it is replaced.
    failed_keys: HashMap<Box<[u8]>, Vec<Vec<Value>>>,
    /// Records listed as errors since the start.
    pub error_count: u64,
}

enum Kind {
    None,
    Upsert(Upsert),
    Debezium(Upsert, debezium::Schema),
}

/// What the records of a source become.
pub struct PipelineSpec<'a> {
    pub output: &'a OutputSpec,
    pub errors: GlobalId,
    pub relation: String,
    pub on_error: OnError,
    pub key_format: Option<&'a Format>,
    pub value_format: &'a Format,
    pub envelope: &'a Envelope,
}

impl Pipeline {
    /// Errors: columns that the format cannot bring; an envelope with key whose output has none.
    pub fn new(spec: PipelineSpec<'_>) -> Result<Pipeline, SqlError> {
        let output = spec.output;
        let from_key: Vec<usize> = (0..output.columns.len()).filter(|i| matches!(output.columns[*i], ColumnSource::Key(_))).collect();
        let (key, by_value) = match spec.envelope {
            Envelope::None => (Vec::new(), Vec::new()),
            // The declared key, if it is made of what the message key brings; else all columns of the message key.
            _ => match output.desc.keys.first().filter(|k| !k.is_empty()) {
                Some(k) => (k.clone(), k.iter().copied().filter(|i| !from_key.contains(i)).collect()),
                None => (from_key, Vec::new()),
            },
        };
        if *spec.envelope != Envelope::None && key.is_empty() {
            return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, "ENVELOPE UPSERT and ENVELOPE DEBEZIUM need a key")
                .with_hint("declare PRIMARY KEY (...) NOT ENFORCED over columns of the message key, or INCLUDE KEY"));
        }
        let decoder = Decoder::new(output, spec.key_format, spec.value_format, &by_value)?;
        let upsert = || Upsert::new(decoder.types().to_vec(), key.clone());
        let kind = match spec.envelope {
            Envelope::None => Kind::None,
            Envelope::Upsert => Kind::Upsert(upsert()),
            Envelope::Debezium if *spec.value_format == Format::Json => Kind::Debezium(upsert(), debezium::Schema::default()),
            Envelope::Debezium => return Err(SqlError::unsupported("ENVELOPE DEBEZIUM with a format other than JSON", "use FORMAT JSON")),
        };
        Ok(Pipeline {
            output: output.id,
            errors: spec.errors,
            relation: spec.relation,
            on_error: spec.on_error,
            rows: Rows::new(decoder.types()),
            bad: Rows::new(&errors_desc().types),
            bad_diffs: Vec::new(),
            failed_keys: HashMap::new(),
            decoder,
            kind,
            error_count: 0,
        })
    }

    /// A pipeline for each output of a source.
    /// Errors: as [`Pipeline::new`].
    pub fn of_source(spec: &SourceSpec, key_format: Option<&Format>, value_format: &Format, envelope: &Envelope) -> Result<Vec<Pipeline>, SqlError> {
        spec.outputs
            .iter()
            .map(|output| {
                let relation = if spec.outputs.len() > 1 { output.reference.clone() } else { spec.name.clone() };
                Pipeline::new(PipelineSpec { output, errors: spec.errors, relation, on_error: spec.on_error, key_format, value_format, envelope })
            })
            .collect()
    }

    /// Reads back the rows that are durable, for envelopes that need them.
    pub fn restore(&mut self, state: &dyn StateReader) -> Result<(), SqlError> {
        match &mut self.kind {
            Kind::None => return Ok(()),
            Kind::Upsert(u) | Kind::Debezium(u, _) => u.restore(state.read(self.output)?)?,
        }
        if self.on_error == OnError::Fail {
            self.restore_failed_keys(state)?;
        }
        Ok(())
    }

    fn restore_failed_keys(&mut self, state: &dyn StateReader) -> Result<(), SqlError> {
        let types = errors_desc().types;
        let codec = RowCodec::new(types.clone());
        let mut listed: HashMap<Vec<u8>, Diff> = HashMap::new();
        for part in state.read(self.errors)? {
            let part = part?;
            for i in 0..part.len() {
                let mut row = Vec::new();
                codec.encode_row(&part.rows.row(&types, i), &mut row);
                *listed.entry(row).or_insert(0) += part.diffs.get(i);
            }
        }
        for (row, _) in listed.into_iter().filter(|(_, n)| *n > 0) {
            let row = codec.decode_row(&row);
            let Value::Bytea(key) = &row[KEY_COLUMN] else { continue };
            if let Some(key) = self.key_of_bad(&Record { key: Some(key), ..Record::default() }) {
                self.failed_keys.entry(key).or_default().push(row);
            }
        }
        Ok(())
    }

    pub fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// Takes in one record; one that cannot be decoded is listed in `<source>_errors`. Under `ON ERROR = 'fail'` these rows make whoever reads
    /// the relation fail (the planner sees to that); for envelopes with key until a later message of the key is taken in.
    pub fn push(&mut self, record: &Record<'_>) {
        let before = self.changes_taken();
        let done = match &mut self.kind {
            Kind::None => self.decoder.record(record).and_then(|_| self.decoder.push(record, &mut self.rows)),
            Kind::Upsert(u) => u.push(&mut self.decoder, record),
            Kind::Debezium(u, schema) => debezium::push(u, schema, &mut self.decoder, record),
        };
        match done {
            Err(reason) => self.quarantine(record, &reason),
            Ok(()) if !self.failed_keys.is_empty() && self.changes_taken() > before => self.heal(record),
            Ok(()) => {}
        }
    }

    fn changes_taken(&self) -> u64 {
        match &self.kind {
            Kind::None => 0,
            Kind::Upsert(u) | Kind::Debezium(u, _) => u.taken,
        }
    }

    /// The key of the record that was just taken in has a new row, or none: it is not in error any more.
    fn heal(&mut self, record: &Record<'_>) {
        let key = match &mut self.kind {
            Kind::None => return,
            Kind::Upsert(u) | Kind::Debezium(u, _) => u.key(&self.decoder, record),
        };
        for row in self.failed_keys.remove(&key).into_iter().flatten() {
            self.bad.push_row(&row);
            self.bad_diffs.push(-1);
        }
    }

    /// The key of a record whose value cannot be decoded; `None` if its key cannot be either, or there is none.
    fn key_of_bad(&mut self, record: &Record<'_>) -> Option<Box<[u8]>> {
        let bytes = record.key?;
        self.decoder.begin();
        match &mut self.kind {
            Kind::None => None,
            Kind::Upsert(u) => {
                self.decoder.key(bytes, None).ok()?;
                u.checked_key(&self.decoder, record)
            }
            Kind::Debezium(u, _) => {
                self.decoder.key(bytes, debezium::key_payload(bytes).ok()?).ok()?;
                u.checked_key(&self.decoder, record)
            }
        }
    }

    /// Lists a record in `<source>_errors`.
    pub fn quarantine(&mut self, record: &Record<'_>, reason: &str) {
        self.error_count += 1;
        let headers = if record.headers.is_empty() { Value::Null } else { Value::Text(record.headers_json()) };
        let bytes = |b: Option<&[u8]>| b.map_or(Value::Null, |b| Value::Bytea(b.to_vec()));
        let row = vec![
            Value::Text(record.position()),
            bytes(record.key),
            bytes(record.value),
            headers,
            // A reason may quote a value of any length, which stands beside it anyway.
            Value::Text(reason.chars().take(REASON_CHARS_MAX).collect::<String>().replace('\0', "\\0")),
            Value::Text(self.relation.clone()),
            Value::TimestampTz(now_micros()),
        ];
        self.bad.push_row(&row);
        self.bad_diffs.push(1);
        if self.on_error == OnError::Fail {
            if let Some(key) = self.key_of_bad(record) {
                self.failed_keys.entry(key).or_default().push(row);
            }
        }
    }

    /// Records that wait to be taken.
    pub fn len(&self) -> usize {
        self.bad.len()
            + match &self.kind {
                Kind::None => self.rows.len(),
                Kind::Upsert(u) | Kind::Debezium(u, _) => u.pending(),
            }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the records that wait to be taken.
    pub fn bytes(&self) -> usize {
        self.bad.bytes()
            + match &self.kind {
                Kind::None => self.rows.bytes(),
                Kind::Upsert(u) | Kind::Debezium(u, _) => u.pending_bytes(),
            }
    }

    /// Rows that the envelope keeps, and the bytes they take in memory.
    pub fn state_size(&self) -> (usize, usize) {
        match &self.kind {
            Kind::None => (0, 0),
            Kind::Upsert(u) | Kind::Debezium(u, _) => u.state_size(),
        }
    }

    /// The changes since the last call: for envelopes with key, the net change of each key.
    pub fn take(&mut self) -> Vec<(GlobalId, Deltas)> {
        let mut out = Vec::new();
        let deltas = match &mut self.kind {
            Kind::None => Deltas::inserts(self.rows.take()),
            Kind::Upsert(u) | Kind::Debezium(u, _) => u.take(),
        };
        if !deltas.is_empty() {
            out.push((self.output, deltas));
        }
        if !self.bad.is_empty() {
            out.push((self.errors, Deltas { rows: self.bad.take(), diffs: Col::from_vec(std::mem::take(&mut self.bad_diffs)) }));
        }
        out
    }
}

/// The wall clock in microseconds since 2000.
pub fn now_micros() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_micros());
    i64::try_from(since_1970).unwrap_or(i64::MAX) - crate::decode::cell::EPOCH_SHIFT_MICROS
}
