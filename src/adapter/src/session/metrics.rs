//! Counters for Prometheus.

use prometheus::{Encoder, Histogram, HistogramOpts, IntCounter, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};

pub struct Metrics {
    registry: Registry,
    pub sessions: IntGauge,
    pub statements: IntCounter,
    pub errors: IntCounter,
    pub statement_seconds: Histogram,
    pub ticks: IntCounter,
    pub tick_seconds: Histogram,
    pub rows_ingested: IntCounter,
    /// By source and statistic (rows, errors, lag of a partition, ...).
    pub sources: IntGaugeVec,
    /// By object and measure (records, bytes, lag_ms).
    pub arrangements: IntGaugeVec,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str| IntGauge::new(name, help).expect("the name is valid");
        let counter = |name: &str, help: &str| IntCounter::new(name, help).expect("the name is valid");
        let seconds = |name: &str, help: &str| {
            let buckets = prometheus::exponential_buckets(0.000_1, 2.0, 18).expect("the buckets are valid");
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)).expect("the name is valid")
        };
        let labelled = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels).expect("the name is valid");
        let m = Metrics {
            sessions: gauge("riverdelta_sessions", "Open sessions."),
            statements: counter("riverdelta_statements_total", "Statements executed."),
            errors: counter("riverdelta_statement_errors_total", "Statements that ended in an error."),
            statement_seconds: seconds("riverdelta_statement_seconds", "Time from execution to the first response of a statement."),
            ticks: counter("riverdelta_ticks_total", "Ticks made durable."),
            tick_seconds: seconds("riverdelta_tick_seconds", "Time that a tick took, its fdatasync included."),
            rows_ingested: counter("riverdelta_rows_ingested_total", "Changes committed, from tables and sources."),
            sources: labelled("riverdelta_source", "Statistics of sources.", &["source", "statistic"]),
            arrangements: labelled("riverdelta_arrangement", "Sizes and lag of views and indexes.", &["object", "measure"]),
            registry,
        };
        let all: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(m.sessions.clone()),
            Box::new(m.statements.clone()),
            Box::new(m.errors.clone()),
            Box::new(m.statement_seconds.clone()),
            Box::new(m.ticks.clone()),
            Box::new(m.tick_seconds.clone()),
            Box::new(m.rows_ingested.clone()),
            Box::new(m.sources.clone()),
            Box::new(m.arrangements.clone()),
        ];
        for c in all {
            m.registry.register(c).expect("each name is registered once");
        }
        m
    }
}

impl Metrics {
    /// Prometheus text.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        if let Err(e) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::warn!("metrics cannot be encoded: {e}");
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}
