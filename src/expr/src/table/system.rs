//! Set-returning functions over the system: keywords and time zones. Those over what does not exist here return nothing.

use super::{Emit, TableEntry};
use crate::ctx::EvalCtx;
use repr::datetime::TimeZone;
use repr::{ColType, Interval, SqlError, Value};

fn keywords(_: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    for line in include_str!("../data/keywords.tsv").lines() {
        let row = line.split('\t').enumerate().map(|(i, f)| if i == 2 { Value::Bool(f == "t") } else { Value::text(f) });
        if !emit(row.collect()) {
            return Ok(());
        }
    }
    Ok(())
}

/// The IANA zones as they are at `now`: name, abbreviation, offset, and whether it is saved daylight.
pub fn time_zones(now: i64) -> impl Iterator<Item = [Value; 4]> {
    chrono_tz::TZ_VARIANTS.into_iter().map(move |tz| {
        let zone = TimeZone::Named(tz);
        let offset = zone.offset_at(now);
        // Standard time is the least offset of the year.
        let half_year = 182 * 86_400_000_000i64;
        let is_dst = offset > zone.offset_at(now + half_year).min(zone.offset_at(now - half_year));
        let interval = Interval { months: 0, days: 0, micros: i64::from(offset) * 1_000_000 };
        let abbrev = zone.abbreviation_at(now).unwrap_or_default();
        [Value::text(tz.name()), Value::Text(abbrev), Value::Interval(interval), Value::Bool(is_dst)]
    })
}

fn timezone_names(_: &[Value], _: &[ColType], _: &[ColType], ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    for zone in time_zones(ctx.now()?) {
        if !emit(zone.into()) {
            return Ok(());
        }
    }
    Ok(())
}

fn nothing(_: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, _: Emit<'_>) -> Result<(), SqlError> {
    Ok(())
}

pub const ENTRIES: &[TableEntry] = &[
    TableEntry { names: &["pg_get_keywords"], fallible: false, rows: keywords },
    TableEntry { names: &["pg_timezone_names"], fallible: true, rows: timezone_names },
    TableEntry {
        names: &[
            "pg_options_to_table",
            "aclexplode",
            "pg_partition_tree",
            "pg_partition_ancestors",
            "pg_lock_status",
            "pg_available_extensions",
            "pg_available_extension_versions",
            "pg_prepared_xact",
            "pg_listening_channels",
        ],
        fallible: false,
        rows: nothing,
    },
];
