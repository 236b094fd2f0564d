//! Rows of pg_catalog that tell of sessions: what they have prepared and declared, what they do, which locks they hold.

use super::pg::DATABASE_OID;
use super::{int, oid, text, BuiltinCtx, Rows, OWNER};
use crate::planner::DATABASE;
use repr::Value;

pub fn fill(name: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) {
    match name {
        "pg_prepared_statements" => {
            for (n, p) in ctx.prepared {
                let own = || p.statement.as_ref().map_or_else(String::new, |s| s.text.clone());
                let runs = p.seen.runs.load(std::sync::atomic::Ordering::Relaxed);
                let (generic, custom) = if p.params.is_empty() { (runs, 0) } else { (0, runs) };
                out.add(vec![
                    ("name", text(n)),
                    ("statement", Value::Text(p.seen.from_sql.clone().unwrap_or_else(own))),
                    ("prepare_time", Value::TimestampTz(p.seen.at)),
                    ("parameter_types", Value::array(p.params.iter().map(|t| oid(t.oid())).collect())),
                    ("from_sql", Value::Bool(p.seen.from_sql.is_some())),
                    ("generic_plans", int(generic)),
                    ("custom_plans", int(custom)),
                ]);
            }
        }
        "pg_cursors" => {
            for c in ctx.cursors {
                out.add(vec![
                    ("name", text(&c.name)),
                    ("statement", text(&c.statement)),
                    ("is_holdable", Value::Bool(c.held)),
                    ("is_binary", Value::Bool(c.binary)),
                    ("is_scrollable", Value::Bool(c.scrollable)),
                    ("creation_time", Value::TimestampTz(c.at)),
                ]);
            }
        }
        "pg_stat_activity" => {
            let time = |t: Option<i64>| t.map_or(Value::Null, Value::TimestampTz);
            for b in ctx.backends.all() {
                let seen = b.seen();
                let addr = b.peer.client.map(|a| a.ip().to_canonical());
                let waits = seen.state != "active" && !seen.state.is_empty();
                out.add(vec![
                    ("datid", oid(DATABASE_OID)),
                    ("datname", text(DATABASE)),
                    ("pid", int(i64::from(b.pid))),
                    ("usesysid", oid(OWNER)),
                    ("usename", text(&b.user)),
                    ("application_name", text(&seen.application)),
                    ("client_addr", addr.map_or(Value::Null, |addr| Value::Inet(repr::InetValue { addr, bits: if addr.is_ipv4() { 32 } else { 128 } }))),
                    ("client_port", b.peer.client.map_or(Value::Null, |a| int(i64::from(a.port())))),
                    ("backend_start", Value::TimestampTz(b.started)),
                    ("xact_start", time(seen.xact_start)),
                    ("query_start", time(seen.query_start)),
                    ("state_change", Value::TimestampTz(seen.state_change)),
                    ("wait_event_type", if waits { text("Client") } else { Value::Null }),
                    ("wait_event", if waits { text("ClientRead") } else { Value::Null }),
                    ("state", if seen.state.is_empty() { Value::Null } else { text(seen.state) }),
                    ("query", text(&seen.query)),
                    ("backend_type", text("client backend")),
                ]);
            }
        }
        "pg_locks" => {
            for lock in ctx.locks {
                // As Postgres shows them: one bigint in two halves, or two integers.
                let (two, a, b) = lock.key;
                let (class, object) = if two { (a as u32, b as u32) } else { ((a >> 32) as u32, a as u32) };
                out.add(vec![
                    ("locktype", text("advisory")),
                    ("database", oid(DATABASE_OID)),
                    ("classid", oid(class)),
                    ("objid", oid(object)),
                    ("objsubid", int(if two { 2 } else { 1 })),
                    ("pid", int(i64::from(lock.pid))),
                    ("mode", text(if lock.shared { "ShareLock" } else { "ExclusiveLock" })),
                    ("granted", Value::Bool(true)),
                    ("fastpath", Value::Bool(false)),
                ]);
            }
        }
        _ => {}
    }
}
