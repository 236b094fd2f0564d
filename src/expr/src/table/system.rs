//! Set-returning functions over the system: keywords and time zones. Those over what does not exist here return nothing.

use super::{Emit, TableEntry};
use crate::ctx::EvalCtx;
use crate::func::{acl, transaction};
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

fn tablespace_databases(a: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    const DEFAULT: i64 = 1663;
    const DATABASE: u32 = 5;
    give((a[0].as_i64() == Some(DEFAULT)).then(|| vec![Value::UInt4(DATABASE)]), emit)
}

fn timezone_names(_: &[Value], _: &[ColType], _: &[ColType], ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    give(time_zones(ctx.now()?).map(Vec::from), emit)
}

fn nothing(_: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, _: Emit<'_>) -> Result<(), SqlError> {
    Ok(())
}

/// Rows to a caller, until it wants no more.
fn give(rows: impl IntoIterator<Item = Vec<Value>>, emit: Emit<'_>) -> Result<(), SqlError> {
    for row in rows {
        if !emit(row) {
            break;
        }
    }
    Ok(())
}

/// PostgreSQL's abbreviations of time zones as they are at `now`: abbreviation, offset, whether it is saved daylight.
pub fn zone_abbreviations(now: i64) -> impl Iterator<Item = [Value; 3]> {
    repr::datetime::abbreviations_at(now).map(|(name, east, saved)| {
        let offset = Interval { months: 0, days: 0, micros: i64::from(east) * 1_000_000 };
        [Value::Text(name), Value::Interval(offset), Value::Bool(saved)]
    })
}

/// The constants of a build that PostgreSQL tells.
pub fn build_settings() -> impl Iterator<Item = [Value; 2]> {
    const NAMES: [&str; 22] = [
        "BINDIR",
        "DOCDIR",
        "HTMLDIR",
        "INCLUDEDIR",
        "PKGINCLUDEDIR",
        "INCLUDEDIR-SERVER",
        "LIBDIR",
        "PKGLIBDIR",
        "LOCALEDIR",
        "MANDIR",
        "SHAREDIR",
        "SYSCONFDIR",
        "PGXS",
        "CONFIGURE",
        "CC",
        "CPPFLAGS",
        "CFLAGS",
        "CFLAGS_SL",
        "LDFLAGS",
        "LDFLAGS_EX",
        "LDFLAGS_SL",
        "LIBS",
    ];
    let version = [Value::text("VERSION"), Value::Text(crate::func::system::version())];
    NAMES.into_iter().map(|n| [Value::text(n), Value::text("not recorded")]).chain([version])
}

/// Which columns of the system's relations refer to which.
fn catalog_foreign_keys(_: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let names = |f: &str| Value::array(f.split(' ').map(Value::text).collect());
    let row = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [child, columns, parent, keys, is_array, optional] => Some(vec![
            Value::UInt4(child.parse().ok()?),
            names(columns),
            Value::UInt4(parent.parse().ok()?),
            names(keys),
            Value::Bool(is_array == "t"),
            Value::Bool(optional == "t"),
        ]),
        _ => None,
    };
    give(include_str!("../data/catalog_foreign_keys.tsv").lines().filter_map(row), emit)
}

pub const ENTRIES: &[TableEntry] = &[
    TableEntry { names: &["pg_get_catalog_foreign_keys"], fallible: false, rows: catalog_foreign_keys },
    TableEntry { names: &["pg_config"], fallible: false, rows: |_, _, _, _, emit| give(build_settings().map(Vec::from), emit) },
    TableEntry { names: &["pg_timezone_abbrevs"], fallible: true, rows: |_, _, _, ctx, emit| give(zone_abbreviations(ctx.now()?).map(Vec::from), emit) },
    TableEntry { names: &["aclexplode"], fallible: true, rows: |a, _, _, ctx, emit| give(acl::explode(&a[0], ctx)?, emit) },
    TableEntry {
        names: &["pg_snapshot_xip"],
        fallible: true,
        rows: |a, _, columns, _, emit| give(transaction::in_progress(&a[0], &columns[0].ty)?.into_iter().map(|v| vec![v]), emit),
    },
    // One database, in the default place.
    TableEntry { names: &["pg_tablespace_databases"], fallible: false, rows: tablespace_databases },
    TableEntry { names: &["pg_get_keywords"], fallible: false, rows: keywords },
    TableEntry { names: &["pg_timezone_names"], fallible: true, rows: timezone_names },
    TableEntry {
        names: &[
            "pg_options_to_table",
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
