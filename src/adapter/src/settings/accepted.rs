//! Settings of Postgres's planner, memory and storage, which clients, dumps and tools SET: checked, kept and shown as there.
//! None of them has an effect: queries are planned once, without statistics, and the engine has its own memory.
//!
//! Not here: settings that change what a statement gives; those are refused unless this engine does what they say.

use super::{def, Check, Def};

const TEXT: &str = "Accepted for compatibility: without effect.";
const LEVELS: &[&str] = &["debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic"];
const BIG: i64 = i32::MAX as i64;

const fn flag(name: &'static str, default: &'static str) -> Def {
    def(name, default, Check::Bool, TEXT)
}
const fn number(name: &'static str, default: &'static str, min: i64, max: i64) -> Def {
    def(name, default, Check::Int { min, max }, TEXT)
}
const fn real(name: &'static str, default: &'static str, min: f64, max: f64) -> Def {
    def(name, default, Check::Real { min, max }, TEXT)
}
/// `block`: kilobytes that a number without unit counts in.
const fn memory(name: &'static str, default: &'static str, block: i64, min: i64, max: i64) -> Def {
    def(name, default, Check::Memory { block, min, max }, TEXT)
}
const fn one_of(name: &'static str, default: &'static str, options: &'static [&'static str]) -> Def {
    def(name, default, Check::OneOf(options), TEXT)
}

pub(super) const ACCEPTED: &[Def] = &[
    one_of("array_nulls", "on", &["on"]),
    memory("backend_flush_after", "0", 8, 0, 256),
    number("commit_delay", "0", 0, 100_000),
    number("commit_siblings", "5", 0, 1000),
    one_of("compute_query_id", "auto", &["auto", "regress", "on", "off"]),
    one_of("constraint_exclusion", "partition", &["partition", "on", "off"]),
    real("cpu_index_tuple_cost", "0.005", 0.0, f64::MAX),
    real("cpu_operator_cost", "0.0025", 0.0, f64::MAX),
    real("cpu_tuple_cost", "0.01", 0.0, f64::MAX),
    real("cursor_tuple_fraction", "0.1", 0.0, 1.0),
    def("deadlock_timeout", "1s", Check::Millis, "Accepted for compatibility: no statement waits for a lock."),
    number("default_statistics_target", "100", 1, 10_000),
    def("default_tablespace", "", Check::Any, TEXT),
    one_of("default_toast_compression", "pglz", &["pglz", "lz4"]),
    one_of("default_with_oids", "off", &["off"]),
    memory("effective_cache_size", "4GB", 8, 1, BIG),
    number("effective_io_concurrency", "1", 0, 1000),
    flag("enable_async_append", "on"),
    flag("enable_bitmapscan", "on"),
    flag("enable_gathermerge", "on"),
    flag("enable_hashagg", "on"),
    flag("enable_hashjoin", "on"),
    flag("enable_incremental_sort", "on"),
    flag("enable_indexonlyscan", "on"),
    flag("enable_indexscan", "on"),
    flag("enable_material", "on"),
    flag("enable_memoize", "on"),
    flag("enable_mergejoin", "on"),
    flag("enable_nestloop", "on"),
    flag("enable_parallel_append", "on"),
    flag("enable_parallel_hash", "on"),
    flag("enable_partition_pruning", "on"),
    flag("enable_partitionwise_aggregate", "off"),
    flag("enable_partitionwise_join", "off"),
    flag("enable_seqscan", "on"),
    flag("enable_sort", "on"),
    flag("enable_tidscan", "on"),
    one_of("force_parallel_mode", "off", &["off", "on", "regress"]),
    number("from_collapse_limit", "8", 1, BIG),
    flag("geqo", "on"),
    number("geqo_effort", "5", 1, 10),
    number("geqo_generations", "0", 0, BIG),
    number("geqo_pool_size", "0", 0, BIG),
    real("geqo_seed", "0", 0.0, 1.0),
    real("geqo_selection_bias", "2", 1.5, 2.0),
    number("geqo_threshold", "12", 2, BIG),
    number("gin_fuzzy_search_limit", "0", 0, BIG),
    memory("gin_pending_list_limit", "4MB", 1, 64, BIG),
    real("hash_mem_multiplier", "2", 1.0, 1000.0),
    flag("jit", "off"),
    real("jit_above_cost", "100000", -1.0, f64::MAX),
    real("jit_inline_above_cost", "500000", -1.0, f64::MAX),
    real("jit_optimize_above_cost", "500000", -1.0, f64::MAX),
    number("join_collapse_limit", "8", 1, BIG),
    flag("lo_compat_privileges", "off"),
    flag("log_duration", "off"),
    one_of("log_error_verbosity", "default", &["terse", "default", "verbose"]),
    flag("log_lock_waits", "off"),
    one_of("log_min_error_statement", "error", LEVELS),
    one_of("log_min_messages", "warning", LEVELS),
    one_of("log_statement", "none", &["none", "ddl", "mod", "all"]),
    memory("logical_decoding_work_mem", "64MB", 1, 64, BIG),
    number("maintenance_io_concurrency", "10", 0, 1000),
    memory("maintenance_work_mem", "64MB", 1, 1024, BIG),
    number("max_parallel_maintenance_workers", "2", 0, 1024),
    number("max_parallel_workers", "8", 0, 1024),
    number("max_parallel_workers_per_gather", "2", 0, 1024),
    memory("max_stack_depth", "2MB", 1, 100, BIG),
    memory("min_parallel_index_scan_size", "512kB", 8, 0, BIG / 3),
    memory("min_parallel_table_scan_size", "8MB", 8, 0, BIG / 3),
    flag("parallel_leader_participation", "on"),
    real("parallel_setup_cost", "1000", 0.0, f64::MAX),
    real("parallel_tuple_cost", "0.1", 0.0, f64::MAX),
    one_of("plan_cache_mode", "auto", &["auto", "force_generic_plan", "force_custom_plan"]),
    one_of("quote_all_identifiers", "off", &["off"]),
    real("random_page_cost", "4", 0.0, f64::MAX),
    real("recursive_worktable_factor", "10", 0.001, 1e6),
    flag("row_security", "on"),
    real("seq_page_cost", "1", 0.0, f64::MAX),
    one_of("session_replication_role", "origin", &["origin", "replica", "local"]),
    one_of("stats_fetch_consistency", "cache", &["none", "cache", "snapshot"]),
    flag("synchronize_seqscans", "on"),
    def(
        "synchronous_commit",
        "on",
        Check::OneOf(&["local", "remote_write", "remote_apply", "on", "off"]),
        "Accepted for compatibility: what is acknowledged is always durable.",
    ),
    memory("temp_buffers", "8MB", 8, 100, BIG / 2),
    def("temp_tablespaces", "", Check::Any, TEXT),
    flag("track_activities", "on"),
    flag("track_counts", "on"),
    one_of("track_functions", "none", &["none", "pl", "all"]),
    flag("track_io_timing", "off"),
    flag("track_wal_io_timing", "off"),
    one_of("transform_null_equals", "off", &["off"]),
    def("vacuum_cost_delay", "0", Check::RealMillis { min: 0.0, max: 100.0 }, TEXT),
    number("vacuum_cost_limit", "200", 1, 10_000),
    number("vacuum_cost_page_dirty", "20", 0, 10_000),
    number("vacuum_cost_page_hit", "1", 0, 10_000),
    number("vacuum_cost_page_miss", "2", 0, 10_000),
    number("vacuum_failsafe_age", "1600000000", 0, 2_100_000_000),
    number("vacuum_freeze_min_age", "50000000", 0, 1_000_000_000),
    number("vacuum_freeze_table_age", "150000000", 0, 2_000_000_000),
    number("vacuum_multixact_failsafe_age", "1600000000", 0, 2_100_000_000),
    number("vacuum_multixact_freeze_min_age", "5000000", 0, 1_000_000_000),
    number("vacuum_multixact_freeze_table_age", "150000000", 0, 2_000_000_000),
    flag("wal_init_zero", "on"),
    flag("wal_recycle", "on"),
    memory("work_mem", "4MB", 1, 64, BIG),
    one_of("xmlbinary", "base64", &["base64", "hex"]),
    one_of("xmloption", "content", &["content", "document"]),
];

/// The number, and what stands behind it.
fn split(s: &str) -> Option<(f64, &str)> {
    let s = s.trim();
    let end = s.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))).unwrap_or(s.len());
    Some((s[..end].parse().ok()?, s[end..].trim()))
}

/// A size in blocks of `block` kilobytes. `Err`: whether the unit alone is wrong.
pub(super) fn parse_memory(s: &str, block: i64) -> Result<f64, bool> {
    let (number, unit) = split(s).ok_or(false)?;
    let kilobytes = match unit {
        "" => block as f64,
        "B" => 1.0 / 1024.0,
        "kB" => 1.0,
        "MB" => 1024.0,
        "GB" => 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(true),
    };
    Ok((number * kilobytes / block as f64).round_ties_even())
}

/// In the largest unit that says it in whole numbers.
pub(super) fn print_memory(blocks: i64, block: i64) -> String {
    let kilobytes = blocks * block;
    let unit = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)].into_iter().find(|u| kilobytes % u.1 == 0);
    match unit {
        Some((unit, size)) if kilobytes > 0 => format!("{}{unit}", kilobytes / size),
        _ => kilobytes.to_string(),
    }
}

/// A number with six digits at most, as `%g` of C.
pub(super) fn print_real(v: f64) -> String {
    let scientific = format!("{v:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() };
    if (-4..6).contains(&exponent) {
        return trimmed(&format!("{v:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_c() {
        for (v, text) in [(0.0, "0"), (0.0025, "0.0025"), (1.1, "1.1"), (100_000.0, "100000"), (1e6, "1e+06"), (1e-5, "1e-05"), (f64::MAX, "1.79769e+308")] {
            assert_eq!(print_real(v), text);
        }
        for (v, block, text) in [("64", 1, "64kB"), ("1.5GB", 1, "1536MB"), ("2048", 8, "16MB"), ("0", 8, "0"), ("1TB", 8, "1TB")] {
            assert_eq!(print_memory(parse_memory(v, block).unwrap() as i64, block), text);
        }
    }
}
