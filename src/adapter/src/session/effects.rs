//! Functions whose point is their effect: `set_config`, `setseed`, `pg_sleep` and its kin, advisory locks.
//!
//! The session carries them out before the query that calls them runs, once each, in the order in which they are written, and
//! puts their results in their places. Calls that depend on rows or stand under a condition are left: evaluating them is 0A000.

use super::{guarded, Session};
use expr::{EvalCtx, Scalar};
use plan::Mir;
use repr::error::state;
use repr::{SqlError, Value};
use std::time::Duration;

const NAMES: [&str; 5] = ["set_config", "setseed", "pg_sleep", "pg_sleep_for", "pg_sleep_until"];

impl Session {
    /// Carries out the plan's effects; true if there were any.
    pub(super) async fn effects(&mut self, mir: &mut Mir) -> Result<bool, SqlError> {
        let mut any = false;
        while let Some(call) = first(mir) {
            let Scalar::Call { func, args, ty } = &call else { break };
            let ctx = self.statement_ctx().1;
            let values = args.iter().map(|a| expr::eval_const(a, &ctx)).collect::<Result<Vec<Value>, _>>()?;
            if let Some(result) = self.advisory(func.name, &values).await? {
                replace(mir, &call, &Scalar::Literal(result, ty.clone()));
                any = true;
                continue;
            }
            let result = match (func.name, values.as_slice()) {
                ("set_config", [name, value, local]) => self.set_config(name, value, local)?,
                ("setseed", [seed]) => self.set_seed(seed)?,
                (_, [length]) => self.sleep(length, &ctx).await?,
                _ => return Err(SqlError::internal(format!("{} with {} arguments", func.name, values.len()))),
            };
            replace(mir, &call, &Scalar::Literal(result, ty.clone()));
            any = true;
        }
        Ok(any)
    }

    fn set_config(&mut self, name: &Value, value: &Value, local: &Value) -> Result<Value, SqlError> {
        let name = name.as_str().ok_or_else(|| SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "SET requires parameter name"))?;
        self.settings.set(name, value.as_str(), *local == Value::Bool(true))?;
        Ok(Value::Text(self.settings.get(name)?))
    }

    fn set_seed(&mut self, seed: &Value) -> Result<Value, SqlError> {
        let Value::Float8(seed) = seed else { return Ok(Value::Null) };
        if !(-1.0..=1.0).contains(seed) {
            return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("setseed parameter {seed} is out of allowed range [-1,1]")));
        }
        self.random = Some(std::sync::Arc::new(expr::Random::seeded(*seed)));
        Ok(Value::text(""))
    }

    async fn sleep(&mut self, length: &Value, ctx: &EvalCtx) -> Result<Value, SqlError> {
        const DAY_SECONDS: f64 = 86_400.0;
        let seconds = match length {
            Value::Null => return Ok(Value::Null),
            Value::Float8(s) => *s,
            Value::Interval(i) => (f64::from(i.months) * 30.0 + f64::from(i.days)) * DAY_SECONDS + i.micros as f64 / 1e6,
            Value::TimestampTz(t) => (t - ctx.statement_micros.unwrap_or(*t)) as f64 / 1e6,
            other => return Err(SqlError::internal(format!("a sleep of {other:?}"))),
        };
        let time = Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).unwrap_or_default();
        guarded(&self.cancel, self.deadline, tokio::time::sleep(time)).await?;
        Ok(Value::text(""))
    }
}

/// The first call with an effect and constant arguments.
fn first(mir: &mut Mir) -> Option<Scalar> {
    let below = mir.children_mut().into_iter().find_map(first);
    below.or_else(|| scalars(mir).iter().find_map(called))
}

fn scalars(mir: &mut Mir) -> &mut [Scalar] {
    match mir {
        Mir::Map { scalars, .. } | Mir::Filter { predicates: scalars, .. } => scalars,
        _ => &mut [],
    }
}

fn called(s: &Scalar) -> Option<Scalar> {
    if matches!(s, Scalar::Case { .. } | Scalar::And(_) | Scalar::Or(_) | Scalar::Coalesce(..)) {
        return None;
    }
    if let Some(inner) = s.children().into_iter().find_map(called) {
        return Some(inner);
    }
    match s {
        Scalar::Call { func, .. } if (NAMES.contains(&func.name) || func.name.contains("_advisory_")) && s.support().is_empty() => Some(s.clone()),
        _ => None,
    }
}

fn replace(mir: &mut Mir, call: &Scalar, by: &Scalar) -> bool {
    if mir.children_mut().into_iter().any(|c| replace(c, call, by)) {
        return true;
    }
    let mut done = false;
    for s in scalars(mir) {
        s.visit_mut(&mut |x| {
            if !done && x == call {
                *x = by.clone();
                done = true;
            }
        });
    }
    done
}
