//! Numbers of transactions and what a snapshot sees of them. A number is the time that the statement reads at: what came before is seen.
//!
//! Not here: text form (`repr`).

use super::lift::{constant, Call};
use super::Entry;
use crate::ctx::EvalCtx;
use crate::{f1, kernel, val};
use repr::error::state;
use repr::text::snapshot::Snapshot;
use repr::{SqlError, SqlType, Value};

/// `FirstNormalTransactionId`: those before it are of the making of a database.
const FIRST_NORMAL: u64 = 3;

fn current(ctx: &EvalCtx) -> u64 {
    ctx.logical_now.unwrap_or(1).max(1)
}

fn number(n: u64, ty: &SqlType) -> Value {
    match ty {
        SqlType::Xid8 => Value::UInt8(n),
        // `txid_current` and its kin have an older type.
        _ => Value::Int8(i64::try_from(n).unwrap_or(i64::MAX)),
    }
}

fn snapshot(v: &Value) -> Result<Snapshot, SqlError> {
    Snapshot::parse(v.as_str().unwrap_or(""))
}

/// The transactions that a snapshot of this text leaves out though others beyond them are seen.
pub(crate) fn in_progress(v: &Value, ty: &SqlType) -> Result<Vec<Value>, SqlError> {
    Ok(snapshot(v)?.xip.into_iter().map(|x| number(x, ty)).collect())
}

/// Whether it went well: of a transaction that is over nothing is kept.
fn status(v: &Value, call: &Call<'_>) -> Result<Value, SqlError> {
    let (asked, now) = (transaction(v), current(call.ctx));
    match asked {
        0 => Ok(Value::Null),
        n if n < FIRST_NORMAL => Ok(Value::text("committed")),
        n if n == now => Ok(Value::text("in progress")),
        n if n > now => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("transaction ID {n} is in the future"))),
        _ => Ok(Value::Null),
    }
}

fn transaction(v: &Value) -> u64 {
    match v {
        Value::UInt8(n) => *n,
        v => v.as_i64().map_or(0, |n| n as u64),
    }
}

fn no_commit_times() -> SqlError {
    SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "could not get commit timestamp data")
        .with_hint("Make sure the configuration parameter \"track_commit_timestamp\" is set.")
}

pub const FUNCS: &[Entry] = &[
    kernel!(["pg_current_xact_id"], |c| match c.ret.ty {
        SqlType::Xid8 => constant(c, |ctx| Ok(number(current(ctx), &SqlType::Xid8))),
        _ => constant(c, |ctx| Ok(number(current(ctx), &SqlType::Int8))),
    }),
    val!(["pg_current_xact_id_if_assigned", "pg_last_xact_replay_timestamp"], |_, _| Ok(Value::Null)),
    kernel!(["pg_current_snapshot"], |c| constant(c, |ctx| {
        let now = current(ctx);
        Ok(Value::Text(Snapshot { xmin: now, xmax: now, xip: Vec::new() }.to_string()))
    })),
    val!(? ["pg_snapshot_xmin"], |a, call| Ok(number(snapshot(&a[0])?.xmin, &call.ret.ty))),
    val!(? ["pg_snapshot_xmax"], |a, call| Ok(number(snapshot(&a[0])?.xmax, &call.ret.ty))),
    val!(? ["pg_visible_in_snapshot"], |a, _| Ok(Value::Bool(snapshot(&a[1])?.sees(transaction(&a[0]))))),
    val!(? ["pg_xact_status"], |a, call| status(&a[0], call)),
    val!(? ["pg_xact_commit_timestamp", "pg_xact_commit_timestamp_origin", "pg_last_committed_xact"], |_, _| Err(no_commit_times())),
    // The 32 lower bits of the number count on in a circle; those of a database's making are as old as can be.
    val!(["xid_age"], |a, call| Ok(Value::Int4(match transaction(&a[0]) {
        n if n < FIRST_NORMAL => i32::MAX,
        n => (current(call.ctx) as u32).wrapping_sub(n as u32) as i32,
    }))),
    f1!(["mxid_age"], u32 => i32, |n| if n == 0 { i32::MAX } else { 1u32.wrapping_sub(n) as i32 }),
];
