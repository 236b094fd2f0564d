//! A committer for tests: takes in what a source hands over as the real one does, and can start it again from what is durable.

#![allow(dead_code)]

use ingest::*;
use repr::batch::Col;
use repr::{Batch, ColType, Deltas, GlobalId, RelDesc, SqlError, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const SOURCE: GlobalId = GlobalId(1);
pub const ERRORS: GlobalId = GlobalId(2);
pub const OUTPUT: GlobalId = GlobalId(10);

/// A relation by column: name, type, where it comes from.
pub fn output(id: GlobalId, reference: &str, columns: &[(&str, ColType, ColumnSource)], key: &[usize]) -> OutputSpec {
    OutputSpec {
        id,
        reference: reference.into(),
        desc: RelDesc {
            names: columns.iter().map(|c| c.0.into()).collect(),
            types: columns.iter().map(|c| c.1.clone()).collect(),
            keys: if key.is_empty() { vec![] } else { vec![key.to_vec()] },
        },
        columns: columns.iter().map(|c| c.2.clone()).collect(),
        snapshot_done: false,
    }
}

/// Columns named as their members.
pub fn members(columns: &[(&str, ColType)]) -> Vec<(String, ColType, ColumnSource)> {
    columns.iter().map(|(n, t)| (n.to_string(), t.clone(), ColumnSource::Value(n.to_string()))).collect()
}

pub fn relation(columns: &[(&str, ColType)], key: &[usize]) -> OutputSpec {
    let m = members(columns);
    let list: Vec<(&str, ColType, ColumnSource)> = m.iter().map(|c| (c.0.as_str(), c.1.clone(), c.2.clone())).collect();
    output(OUTPUT, "", &list, key)
}

pub fn spec(connector: Connector, outputs: Vec<OutputSpec>) -> SourceSpec {
    SourceSpec { id: SOURCE, name: "s".into(), connector, outputs, errors: ERRORS, on_error: OnError::Quarantine }
}

/// What is durable.
#[derive(Clone, Default)]
pub struct Durable {
    pub position: Option<String>,
    pub rows: BTreeMap<GlobalId, Vec<(Vec<Value>, i64)>>,
    pub snapshots: Vec<GlobalId>,
}

struct State(Durable, BTreeMap<GlobalId, Vec<ColType>>);

impl StateReader for State {
    fn read(&self, output: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError> {
        let rows = self.0.rows.get(&output).cloned().unwrap_or_default();
        let types = &self.1[&output];
        let batch = Batch::from_rows(types, rows.iter().map(|r| r.0.as_slice()));
        Ok(Box::new(std::iter::once(Ok(Deltas { rows: batch, diffs: Col::from_vec(rows.iter().map(|r| r.1).collect()) }))))
    }
}

/// A running source with its committer.
pub struct Run {
    runtime: tokio::runtime::Runtime,
    receiver: tokio::sync::mpsc::Receiver<SourceEvent>,
    pub handle: Option<Box<dyn SourceHandle>>,
    types: BTreeMap<GlobalId, Vec<ColType>>,
    parts: Vec<(GlobalId, Deltas)>,
    pub durable: Durable,
    pub status: SourceStatus,
    pub staged: usize,
}

impl Run {
    pub fn start(spec: SourceSpec) -> Run {
        Run::resume(spec, Durable::default())
    }

    pub fn resume(mut spec: SourceSpec, durable: Durable) -> Run {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (events, receiver) = tokio::sync::mpsc::channel(4);
        let mut types: BTreeMap<GlobalId, Vec<ColType>> = spec.outputs.iter().map(|o| (o.id, o.desc.types.clone())).collect();
        types.insert(spec.errors, errors_desc().types);
        for o in &mut spec.outputs {
            o.snapshot_done = durable.snapshots.contains(&o.id);
        }
        let start = StartSource {
            spec,
            resume: durable.position.clone(),
            state: Arc::new(State(durable.clone(), types.clone())),
            events,
            runtime: runtime.handle().clone(),
        };
        let handle = Some(ingest::start(start));
        Run { runtime, receiver, handle, types, parts: Vec::new(), durable, status: SourceStatus::Starting, staged: 0 }
    }

    /// Takes in events until `done`, at most 20 s.
    pub fn until(&mut self, what: &str, done: impl Fn(&Run) -> bool) -> &mut Run {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {what} in vain: status {:?}, rows {:?}, errors {:?}", self.status, self.table(OUTPUT), self.errors());
            self.step(left.min(Duration::from_millis(200)));
        }
        self
    }

    /// Takes in events for some time.
    pub fn settle(&mut self, time: Duration) -> &mut Run {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step(end.saturating_duration_since(Instant::now()));
        }
        self
    }

    fn step(&mut self, wait: Duration) {
        let receiver = &mut self.receiver;
        let event = self.runtime.block_on(async { tokio::time::timeout(wait, receiver.recv()).await });
        match event {
            Ok(Some(SourceEvent::Status { status, .. })) => self.status = status,
            Ok(Some(SourceEvent::Staged(s))) => {
                self.staged += 1;
                self.parts.extend(s.deltas);
                if !s.more {
                    for (id, d) in std::mem::take(&mut self.parts) {
                        let rows = self.durable.rows.entry(id).or_default();
                        for i in 0..d.len() {
                            rows.push((d.rows.row(&self.types[&id], i), *d.diffs.get(i)));
                        }
                    }
                    self.durable.position = Some(s.position);
                    self.durable.snapshots.extend(s.snapshot_of);
                }
            }
            Ok(None) => std::thread::sleep(wait.min(Duration::from_millis(10))),
            Err(_) => {}
        }
    }

    /// Stops the source at once, without taking in what is under way, as a crash would.
    pub fn crash(mut self) -> Durable {
        self.handle = None;
        std::mem::take(&mut self.durable)
    }

    /// The consolidated rows of a relation as text, sorted, with `*n` where the multiplicity is not 1.
    pub fn table(&self, id: GlobalId) -> Vec<String> {
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (row, diff) in self.durable.rows.get(&id).into_iter().flatten() {
            *sums.entry(row.iter().map(show).collect::<Vec<_>>().join("|")).or_default() += diff;
        }
        sums.into_iter().filter(|s| s.1 != 0).map(|(r, n)| if n == 1 { r } else { format!("{r} *{n}") }).collect()
    }

    pub fn rows(&self) -> Vec<String> {
        self.table(OUTPUT)
    }

    /// (position, reason) of each error row.
    pub fn errors(&self) -> Vec<String> {
        let rows = self.durable.rows.get(&ERRORS).into_iter().flatten();
        rows.map(|(r, _)| format!("{}: {}", show(&r[0]), show(&r[4]))).collect()
    }

    pub fn snapshot_done(&self) -> bool {
        self.durable.snapshots.contains(&OUTPUT)
    }

    pub fn statistic(&self, name: &str) -> Option<i64> {
        self.handle.as_ref().and_then(|h| h.statistics().into_iter().find(|s| s.0 == name)).and_then(|s| s.1.as_i64())
    }
}

/// A value in short.
pub fn show(v: &Value) -> String {
    match v {
        Value::Null => "NULL".into(),
        Value::Bool(b) => b.to_string(),
        Value::Text(t) => t.clone(),
        Value::Bytea(b) => String::from_utf8_lossy(b).into_owned(),
        Value::Float4(f) => f.to_string(),
        Value::Float8(f) => f.to_string(),
        Value::Numeric(repr::Numeric::Small { unscaled, scale }) => format!("{unscaled}e-{scale}"),
        Value::Date(d) => format!("d{d}"),
        Value::Timestamp(t) | Value::TimestampTz(t) => format!("t{t}"),
        Value::Array(a) => format!("{:?}{{{}}}", a.dims.iter().map(|d| d.0).collect::<Vec<_>>(), a.elems.iter().map(show).collect::<Vec<_>>().join(",")),
        v => v.as_i64().map_or_else(|| format!("{v:?}"), |n| n.to_string()),
    }
}
