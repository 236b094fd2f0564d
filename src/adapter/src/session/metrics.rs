//! Counters and gauges for Prometheus. What each tells an operator stands in docs/operating.md.

use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{Encoder, Histogram, HistogramOpts, IntCounter, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use std::collections::BTreeSet;

/// Gauges by labels, of which some come and go.
pub struct Labelled {
    gauges: IntGaugeVec,
    shown: Mutex<BTreeSet<Vec<String>>>,
}

impl Labelled {
    /// Sets all gauges that there are; others vanish. A scrape in the middle of it sees old and new ones, never none.
    pub fn show(&self, values: Vec<(Vec<String>, i64)>) {
        let mut shown = self.shown.lock();
        let mut now = BTreeSet::new();
        for (labels, value) in values {
            self.gauges.with_label_values(&labels).set(value);
            now.insert(labels);
        }
        for gone in shown.difference(&now) {
            // It was set before, so it is there.
            let _ = self.gauges.remove_label_values(gone);
        }
        *shown = now;
    }
}

pub struct Metrics {
    registry: Registry,
    pub sessions: IntGauge,
    pub statements: IntCounter,
    pub errors: IntCounter,
    pub statement_seconds: Histogram,
    pub ticks: IntCounter,
    pub ticks_abandoned: IntCounter,
    pub tick_seconds: Histogram,
    pub log_sync_seconds: Histogram,
    pub rows_ingested: IntCounter,
    /// By source and statistic (rows, errors, lag of a partition, ...).
    pub sources: Labelled,
    /// 1 for the status that a source has.
    pub source_status: Labelled,
    /// By object and measure (records, bytes, lag_ms).
    pub arrangements: Labelled,
    /// By measure: log, files, folds, merges.
    pub storage: Labelled,
    memory: IntGauge,
    open_files: IntGauge,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let registry = Registry::new();
        let mut all: Vec<Box<dyn Collector>> = Vec::new();
        let gauge = |all: &mut Vec<Box<dyn Collector>>, name: &str, help: &str| {
            let made = IntGauge::new(name, help).expect("the name is valid");
            all.push(Box::new(made.clone()));
            made
        };
        let counter = |all: &mut Vec<Box<dyn Collector>>, name: &str, help: &str| {
            let made = IntCounter::new(name, help).expect("the name is valid");
            all.push(Box::new(made.clone()));
            made
        };
        let seconds = |all: &mut Vec<Box<dyn Collector>>, name: &str, help: &str| {
            let buckets = prometheus::exponential_buckets(0.000_1, 2.0, 18).expect("the buckets are valid");
            let made = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)).expect("the name is valid");
            all.push(Box::new(made.clone()));
            made
        };
        let labelled = |all: &mut Vec<Box<dyn Collector>>, name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels).expect("the name is valid");
            all.push(Box::new(gauges.clone()));
            Labelled { gauges, shown: Mutex::default() }
        };
        let m = Metrics {
            sessions: gauge(&mut all, "riverdelta_sessions", "Open sessions."),
            statements: counter(&mut all, "riverdelta_statements_total", "Statements executed."),
            errors: counter(&mut all, "riverdelta_statement_errors_total", "Statements that ended in an error."),
            statement_seconds: seconds(&mut all, "riverdelta_statement_seconds", "Time from execution to the first response of a statement."),
            ticks: counter(&mut all, "riverdelta_ticks_total", "Ticks made durable."),
            ticks_abandoned: counter(&mut all, "riverdelta_ticks_abandoned_total", "Ticks that could not be written, as on a full disk."),
            tick_seconds: seconds(&mut all, "riverdelta_tick_seconds", "Time that a tick took, its fdatasync included."),
            log_sync_seconds: seconds(&mut all, "riverdelta_log_sync_seconds", "Time that the fdatasync of a tick took."),
            rows_ingested: counter(&mut all, "riverdelta_rows_ingested_total", "Changes committed, from tables and sources."),
            sources: labelled(&mut all, "riverdelta_source", "Statistics of sources.", &["schema", "source", "statistic"]),
            source_status: labelled(&mut all, "riverdelta_source_status", "1 for the status that a source has.", &["schema", "source", "status"]),
            arrangements: labelled(&mut all, "riverdelta_arrangement", "Sizes and lag of views and indexes.", &["schema", "object", "measure"]),
            storage: labelled(&mut all, "riverdelta_storage", "What the data directory holds.", &["measure"]),
            memory: gauge(&mut all, "process_resident_memory_bytes", "Resident memory."),
            open_files: gauge(&mut all, "process_open_fds", "Open file descriptors."),
            registry,
        };
        for c in all {
            m.registry.register(c).expect("each name is registered once");
        }
        m
    }
}

impl Metrics {
    /// Prometheus text.
    pub fn text(&self) -> String {
        const PAGE_BYTES: i64 = 4096;
        let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|s| s.split(' ').nth(1)?.parse::<i64>().ok());
        self.memory.set(pages.unwrap_or(0) * PAGE_BYTES);
        self.open_files.set(std::fs::read_dir("/proc/self/fd").map_or(0, |d| i64::try_from(d.count()).unwrap_or(i64::MAX)));
        let mut out = Vec::new();
        if let Err(e) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::warn!("metrics cannot be encoded: {e}");
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}
