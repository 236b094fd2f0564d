//! Temporal filters: conditions that compare the time with an expression over columns become bounds between which a row is there.
//!
//! ```text
//!   now() < ts + '5 min'                 until  millis_at_or_after(ts + '5 min')
//!   ts < now() - '1 h'                   from   millis_after(ts + '1 h')
//!   mz_now() >= valid_from               from   valid_from
//!   mz_now() < price                     until  numeric_at_or_after(price)
//!   now() - ts < '1 h'                   until  millis_at_or_after(ts + '1 h' in microseconds)
//! ```
//!
//! Everywhere else a maintained plan may not ask for the time: 0A000 with a hint. In a query that is answered once the time
//! is a constant, and none of this happens.

use expr::{FuncDef, Scalar};
use plan::{Mfp, Mir};
use repr::{ColType, Interval, SqlError, SqlType, Value};

/// Whether the function's value is the time.
pub fn is_time(func: &FuncDef) -> bool {
    is_now(func) || is_mz_now(func) || matches!(func.name, "clock_timestamp" | "timeofday") || (func.oid == 0 && is_sql_time(func.name))
}

/// CURRENT_DATE and its kin.
fn is_sql_time(name: &str) -> bool {
    matches!(name, "current_date" | "current_time" | "current_timestamp" | "localtime" | "localtimestamp")
}

fn is_now(func: &FuncDef) -> bool {
    matches!(func.name, "now" | "transaction_timestamp" | "statement_timestamp") || (func.oid == 0 && func.name == "current_timestamp")
}

fn is_mz_now(func: &FuncDef) -> bool {
    matches!(func.name, "mz_now" | "mz_logical_timestamp")
}

/// Whether the scalar asks for the time.
pub fn reads_time(s: &Scalar) -> bool {
    let mut yes = false;
    s.visit(&mut |x| {
        if let Scalar::Call { func, .. } = x {
            yes |= is_time(func);
        }
    });
    yes
}

/// Refuses what a maintained plan cannot hold: the time outside temporal filters, chance, the user of the session.
pub fn check_maintained(mir: &Mir) -> Result<(), SqlError> {
    if let Mir::Filter { input, predicates } = mir {
        let types = input.types();
        for p in predicates.iter().cloned().flat_map(conjuncts) {
            allowed(&p)?;
            if reads_time(&p) {
                bounds(&p, &types).ok_or_else(|| misplaced(&p))?;
            }
        }
    } else {
        for s in scalars(mir) {
            allowed(s)?;
            if reads_time(s) {
                return Err(misplaced(s));
            }
        }
    }
    mir.children().into_iter().try_for_each(check_maintained)
}

fn allowed(s: &Scalar) -> Result<(), SqlError> {
    let mut found: Option<&'static str> = None;
    s.visit(&mut |x| {
        if let Scalar::Call { func, .. } = x {
            if is_session(func) || (func.volatility == expr::func::Volatility::Volatile && !is_time(func)) {
                found = found.or(Some(func.name));
            }
        }
    });
    match found {
        Some(name) => {
            Err(SqlError::unsupported(format!("{name}() in a maintained query"), "its value does not follow from the data; use it in a one-off SELECT"))
        }
        None => Ok(()),
    }
}

/// `age` of a transaction's number; those of times are named so too.
const AGE_OF_XID: u32 = 1181;

/// Functions whose value is who asks, or in which transaction.
pub(crate) fn is_session(func: &FuncDef) -> bool {
    let who = matches!(func.name, "current_user" | "session_user" | "user" | "current_role" | "pg_backend_pid" | "pg_my_temp_schema");
    let whence = matches!(func.name, "inet_client_addr" | "inet_client_port" | "inet_server_addr" | "inet_server_port");
    let current = ["txid_current", "txid_current_if_assigned", "pg_current_xact_id", "pg_current_xact_id_if_assigned"];
    let snapshot = ["txid_current_snapshot", "pg_current_snapshot", "txid_status", "pg_xact_status", "mxid_age"];
    who || whence || current.contains(&func.name) || snapshot.contains(&func.name) || func.oid == AGE_OF_XID
}

fn misplaced(s: &Scalar) -> SqlError {
    let mut written = None;
    s.visit(&mut |x| {
        if let Scalar::Call { func, .. } = x {
            if is_time(func) && written.is_none() {
                written = Some(if is_sql_time(func.name) { func.name.to_uppercase() } else { format!("{}()", func.name) });
            }
        }
    });
    SqlError::unsupported(
        format!("{} here", written.as_deref().unwrap_or("now()")),
        "in a maintained query, compare now() or mz_now() with an expression over columns in WHERE, as in now() < ts + interval '5 minutes': a temporal filter",
    )
}

fn conjuncts(p: Scalar) -> Vec<Scalar> {
    match p {
        Scalar::And(xs) => xs.into_iter().flat_map(conjuncts).collect(),
        p => vec![p],
    }
}

pub(crate) fn scalars(mir: &Mir) -> Vec<&Scalar> {
    match mir {
        Mir::Map { scalars, .. } => scalars.iter().collect(),
        Mir::FlatMap { func, .. } => func.args.iter().collect(),
        Mir::Join { equivalences, .. } => equivalences.iter().flat_map(|e| &e.exprs).collect(),
        Mir::Reduce { group_key, aggregates, .. } => {
            let in_aggregates = aggregates.iter().flat_map(|a| a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|(s, _)| s)));
            group_key.iter().chain(in_aggregates).collect()
        }
        Mir::TopK { limit, .. } => limit.iter().collect(),
        Mir::Window { exprs, .. } => exprs.iter().flat_map(|e| window_scalars(&e.func)).collect(),
        _ => vec![],
    }
}

fn window_scalars(f: &expr::WindowFunc) -> Vec<&Scalar> {
    use expr::WindowFunc::*;
    match f {
        RowNumber | Rank | DenseRank | PercentRank | CumeDist => vec![],
        Ntile(x) | FirstValue(x) | LastValue(x) => vec![x],
        NthValue(x, n) => vec![x, n],
        Lag { value, offset, default } | Lead { value, offset, default } => vec![value, offset, default],
        Aggregate(a) => a.args.iter().chain(&a.filter).collect(),
    }
}

/// Moves the temporal predicates of a chain into its bounds.
pub fn into_bounds(mut mfp: Mfp, input: &[ColType]) -> Result<Mfp, SqlError> {
    if !mfp.predicates.iter().any(|(_, p)| reads_time(p)) {
        return Ok(mfp);
    }
    let mut types = input.to_vec();
    for m in &mfp.maps {
        let t = m.typ(&types);
        types.push(t);
    }
    let mut kept = Vec::new();
    for (at, p) in std::mem::take(&mut mfp.predicates) {
        if !reads_time(&p) {
            kept.push((at, p));
            continue;
        }
        let (lower, upper) = bounds(&p, &types).ok_or_else(|| misplaced(&p))?;
        mfp.lower.extend(lower);
        mfp.upper.extend(upper);
    }
    mfp.predicates = kept;
    Ok(mfp)
}

/// How a comparison reads with the time on the left.
#[derive(Clone, Copy, PartialEq)]
enum Cmp {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
}

impl Cmp {
    fn flipped(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            Cmp::Eq => Cmp::Eq,
        }
    }
    fn negated(self) -> Option<Cmp> {
        Some(match self {
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
            Cmp::Eq => return None,
        })
    }
}

/// A comparison of the types that times have.
fn comparison(func: &FuncDef) -> Option<Cmp> {
    let name = func.name;
    let stems = ["timestamptz_", "timestamp_", "date_", "interval_", "int8", "int84", "int48", "int82", "int28", "numeric_", "float8", "float84", "float48"];
    for (word, cmp) in [("lt", Cmp::Lt), ("le", Cmp::Le), ("gt", Cmp::Gt), ("ge", Cmp::Ge), ("eq", Cmp::Eq)] {
        let of_one_type = name.strip_suffix(word).is_some_and(|stem| stems.contains(&stem));
        let of_two = name.split_once(&format!("_{word}_")).is_some_and(|(a, b)| {
            let time = |t: &str| matches!(t, "timestamptz" | "timestamp" | "date");
            time(a) && time(b)
        });
        if of_one_type || of_two {
            return Some(cmp);
        }
    }
    None
}

type Bounds = (Option<Scalar>, Option<Scalar>);

/// The bounds (from, until) that a predicate sets, in milliseconds; `None` if it is no temporal filter.
fn bounds(p: &Scalar, types: &[ColType]) -> Option<Bounds> {
    let (call, negated) = match p {
        Scalar::Not(x) => (&**x, true),
        p => (p, false),
    };
    let Scalar::Call { func, args, .. } = call else { return None };
    let [a, b] = &args[..] else { return None };
    let mut cmp = comparison(func)?;
    let (time, other) = match (reads_time(a), reads_time(b)) {
        (true, false) => (a, b),
        (false, true) => {
            cmp = cmp.flipped();
            (b, a)
        }
        _ => return None,
    };
    if negated {
        cmp = cmp.negated()?;
    }
    let (clock, cmp, limit) = isolate(time, cmp, other.clone(), types)?;
    let (at, after) = match clock {
        Clock::Now => {
            let limit = timestamptz(limit, types)?;
            (call1("millis_at_or_after", limit.clone())?, call1("millis_after", limit)?)
        }
        Clock::MzNow => {
            let limit = int8(limit, types)?;
            (limit.clone(), call1("int8_after", limit)?)
        }
        Clock::MzNowAsNumeric => (call1("numeric_at_or_after", limit.clone())?, call1("numeric_after", limit)?),
        Clock::MzNowAsFloat if limit.typ(types).ty == SqlType::Float4 => {
            let limit = Scalar::Call { func: expr::func::by_oid(311)?, args: vec![limit], ty: SqlType::Float8.nullable() };
            (call1("float8_at_or_after", limit.clone())?, call1("float8_after", limit)?)
        }
        Clock::MzNowAsFloat => (call1("float8_at_or_after", limit.clone())?, call1("float8_after", limit)?),
    };
    Some(match cmp {
        Cmp::Lt => (None, Some(at)),
        Cmp::Le => (None, Some(after)),
        Cmp::Gt => (Some(after), None),
        Cmp::Ge => (Some(at), None),
        // now() is whole milliseconds: between an instant and the next one, or never.
        Cmp::Eq => (Some(at), Some(after)),
    })
}

enum Clock {
    Now,
    MzNow,
    /// Compared as a number that need not be whole.
    MzNowAsNumeric,
    MzNowAsFloat,
}

/// Brings everything but the time itself to the other side.
fn isolate(time: &Scalar, cmp: Cmp, other: Scalar, types: &[ColType]) -> Option<(Clock, Cmp, Scalar)> {
    let Scalar::Call { func, args, .. } = time else { return None };
    if args.is_empty() || (func.oid == 0 && func.name == "current_timestamp") {
        return match () {
            _ if is_now(func) => Some((Clock::Now, cmp, other)),
            _ if is_mz_now(func) => Some((Clock::MzNow, cmp, other)),
            _ => None,
        };
    }
    // The casts from bigint to numeric and to float8.
    if let ([Scalar::Call { func: inner, .. }], 1781 | 482) = (&args[..], func.oid) {
        let clock = if func.oid == 482 { Clock::MzNowAsFloat } else { Clock::MzNowAsNumeric };
        return is_mz_now(inner).then_some((clock, cmp, other));
    }
    let [a, b] = &args[..] else { return None };
    let ty = SqlType::TimestampTz.nullable();
    let apply = |oid: u32, x: Scalar, y: Scalar, ty: ColType| Some(Scalar::Call { func: expr::func::by_oid(oid)?, args: vec![x, y], ty });
    match func.name {
        // now() + i < x is now() < x - i, if i has no months: their length depends on where they start.
        "timestamptz_pl_interval" if fixed(b) => isolate(a, cmp, apply(1190, timestamptz(other, types)?, b.clone(), ty)?, types),
        "interval_pl_timestamptz" if fixed(a) => isolate(b, cmp, apply(1190, timestamptz(other, types)?, a.clone(), ty)?, types),
        "timestamptz_mi_interval" if fixed(b) => isolate(a, cmp, apply(1189, timestamptz(other, types)?, b.clone(), ty)?, types),
        // now() - x < i is now() < x + i, and x - now() < i is now() > x - i; intervals compare by their span.
        "timestamptz_mi" => {
            let span = span(&other)?;
            if reads_time(a) {
                isolate(a, cmp, apply(1189, timestamptz(b.clone(), types)?, span, ty)?, types)
            } else {
                isolate(b, cmp.flipped(), apply(1190, timestamptz(a.clone(), types)?, span, ty)?, types)
            }
        }
        "int8pl" | "int84pl" | "int82pl" if !reads_time(b) => {
            isolate(a, cmp, apply(464, int8(other, types)?, int8(b.clone(), types)?, SqlType::Int8.nullable())?, types)
        }
        "int8pl" | "int48pl" | "int28pl" if !reads_time(a) => {
            isolate(b, cmp, apply(464, int8(other, types)?, int8(a.clone(), types)?, SqlType::Int8.nullable())?, types)
        }
        "int8mi" | "int84mi" | "int82mi" if !reads_time(b) => {
            isolate(a, cmp, apply(463, int8(other, types)?, int8(b.clone(), types)?, SqlType::Int8.nullable())?, types)
        }
        _ => None,
    }
}

/// An interval literal without months.
fn fixed(s: &Scalar) -> bool {
    matches!(s, Scalar::Literal(Value::Interval(i), _) if i.months == 0)
}

/// An interval literal as microseconds alone: the span by which intervals compare.
fn span(s: &Scalar) -> Option<Scalar> {
    let Scalar::Literal(Value::Interval(i), _) = s else { return None };
    let micros = i64::try_from(i.span_micros()).ok()?;
    Some(Scalar::literal(Value::Interval(Interval { months: 0, days: 0, micros }), SqlType::Interval))
}

fn timestamptz(s: Scalar, types: &[ColType]) -> Option<Scalar> {
    let oid = match s.typ(types).ty {
        SqlType::TimestampTz => return Some(s),
        SqlType::Timestamp => 2028,
        SqlType::Date => 1174,
        _ => return None,
    };
    Some(Scalar::Call { func: expr::func::by_oid(oid)?, args: vec![s], ty: SqlType::TimestampTz.nullable() })
}

fn int8(s: Scalar, types: &[ColType]) -> Option<Scalar> {
    let oid = match s.typ(types).ty {
        SqlType::Int8 => return Some(s),
        SqlType::Int4 => 481,
        SqlType::Int2 => 754,
        _ => return None,
    };
    Some(Scalar::Call { func: expr::func::by_oid(oid)?, args: vec![s], ty: SqlType::Int8.nullable() })
}

fn call1(name: &str, arg: Scalar) -> Option<Scalar> {
    Some(Scalar::Call { func: expr::func::internal(name)?, args: vec![arg], ty: SqlType::Int8.nullable() })
}
