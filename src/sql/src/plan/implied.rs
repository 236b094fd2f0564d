//! Conditions that follow from conditions (`predicate_implied_by`): whether ON CONFLICT (…) WHERE speaks of an index's rows only.

use super::query::conjuncts;
use super::Binder;
use crate::hir::HirScalar;
use expr::catalog;
use repr::Value;
use std::cmp::Ordering;

impl Binder<'_> {
    /// Whether each row for which all of `said` hold is one for which `wanted` holds, as far as PostgreSQL finds out.
    pub fn implied(&self, said: &[HirScalar], wanted: &HirScalar) -> bool {
        match (said, wanted) {
            (_, HirScalar::And(all)) => all.iter().all(|w| self.implied(said, w)),
            ([HirScalar::And(all)], _) => self.implied(all, wanted),
            ([HirScalar::Or(any)], _) => any.iter().all(|s| self.implied(std::slice::from_ref(s), wanted)),
            (_, HirScalar::Or(any)) if any.iter().any(|w| self.implied(said, w)) => true,
            ([one], _) => self.follows(one, wanted),
            _ => said.iter().any(|s| self.implied(std::slice::from_ref(s), wanted)),
        }
    }

    fn follows(&self, said: &HirScalar, wanted: &HirScalar) -> bool {
        if said == wanted {
            return true;
        }
        if let HirScalar::Not(x) = wanted {
            return matches!(&**x, HirScalar::IsNull(x) if null_if_null(said, x));
        }
        let (Some((x, s, a)), Some((y, w, b))) = (self.comparison_of(said), self.comparison_of(wanted)) else { return false };
        if x != y || a.typ().ty != b.typ().ty {
            return false;
        }
        let (HirScalar::Literal(a, ty), HirScalar::Literal(b, _)) = (a, b) else { return false };
        if a.is_null() || b.is_null() {
            return false;
        }
        let order = a.sql_cmp(&b, &ty.ty);
        let (below, above) = (order != Ordering::Greater, order != Ordering::Less);
        match (s, w) {
            ("<", "<" | "<=" | "<>") | ("<=", "<=") => below,
            ("<=", "<" | "<>") => order == Ordering::Less,
            (">", ">" | ">=" | "<>") | (">=", ">=") => above,
            (">=", ">" | "<>") => order == Ordering::Greater,
            ("=", "<") => order == Ordering::Less,
            ("=", "<=") => below,
            ("=", ">") => order == Ordering::Greater,
            ("=", ">=") => above,
            ("=", "=") | ("<>", "<>") => order == Ordering::Equal,
            ("=", "<>") => order != Ordering::Equal,
            _ => false,
        }
    }

    /// A comparison with a constant: what is compared, how, and the constant, which stands right.
    fn comparison_of(&self, e: &HirScalar) -> Option<(HirScalar, &'static str, HirScalar)> {
        let HirScalar::Call { func, args, .. } = e else { return None };
        let [left, right] = &args[..] else { return None };
        let named = |o: &&catalog::PgOperator| o.func == func.oid && matches!(o.name, "<" | "<=" | "=" | ">=" | ">" | "<>");
        let name = catalog::operators().iter().find(named)?.name;
        let (left, right) = (self.folded(left.clone()), self.folded(right.clone()));
        let turned = match name {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            ">=" => "<=",
            other => other,
        };
        match (&left, &right) {
            (HirScalar::Literal(..), _) => Some((right, turned, left)),
            (_, HirScalar::Literal(..)) => Some((left, name, right)),
            _ => None,
        }
    }
}

/// Whether `e` is not true where `x` is NULL.
fn null_if_null(e: &HirScalar, x: &HirScalar) -> bool {
    match e {
        HirScalar::Call { func, args, .. } if func.strict => args.iter().any(|a| a == x || null_if_null(a, x)),
        HirScalar::Literal(Value::Null, _) => true,
        _ => false,
    }
}

/// Whether the conditions of an index hold wherever those of a statement do.
pub(super) fn all_implied(b: &Binder<'_>, said: Option<HirScalar>, wanted: &[HirScalar]) -> bool {
    let said = said.map(conjuncts).unwrap_or_default();
    wanted.iter().all(|w| b.implied(&said, w))
}
