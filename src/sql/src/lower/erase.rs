//! Domains are types of the binder only: below it a value has the type that its domain is over.
//!
//! Casts that then change nothing go. Not here: the tests, which are calls like others by now (see `plan::domain`).

use crate::hir::{Hir, HirAggregate, HirScalar};
use crate::plan::walk;
use repr::ColType;

/// Replaces the types of a query and of all expressions in it.
pub(super) fn erase(h: &mut Hir) {
    relation(h);
    walk::rewrite_hir(h, 0, &mut |s, _| {
        scalar(s);
        true
    });
}

fn plain(t: &mut ColType) {
    if t.ty.has_domain() {
        *t = t.without_domains();
    }
}

/// A node's own type; what is below it comes later.
fn scalar(s: &mut HirScalar) {
    while let HirScalar::Call { func, args, ty } = s {
        plain(ty);
        let [arg] = args.as_mut_slice() else { break };
        let mut from = arg.typ();
        plain(&mut from);
        if func.name != "relabel" || from.ty != ty.ty || from.typmod != ty.typmod {
            break;
        }
        *s = std::mem::replace(arg, HirScalar::Literal(repr::Value::Null, from));
    }
    match s {
        HirScalar::Column(_, t)
        | HirScalar::Parameter(_, t)
        | HirScalar::Literal(_, t)
        | HirScalar::Error(_, t)
        | HirScalar::Coalesce(_, t)
        | HirScalar::Call { ty: t, .. }
        | HirScalar::Case { ty: t, .. } => plain(t),
        HirScalar::Subquery(h, t) => {
            plain(t);
            relation(h);
        }
        HirScalar::ArraySubquery { input, ty, .. } => {
            plain(ty);
            relation(input);
        }
        HirScalar::Exists(h) => relation(h),
        HirScalar::Quantified { input, .. } => relation(input),
        HirScalar::And(_) | HirScalar::Or(_) | HirScalar::IsNull(_) | HirScalar::Not(_) => {}
    }
}

fn aggregate(a: &mut HirAggregate) {
    plain(&mut a.ty);
}

/// The types that stand in relational nodes. Those in their expressions, relations of subqueries included, are [`scalar`]'s.
fn relation(h: &mut Hir) {
    match h {
        Hir::Constant { types, .. } | Hir::Get { types, .. } | Hir::GetLocal { types, .. } => types.iter_mut().for_each(plain),
        Hir::LetRec { bindings, .. } => bindings.iter_mut().flat_map(|b| &mut b.types).for_each(plain),
        Hir::CallTable { columns, .. } => columns.iter_mut().for_each(plain),
        Hir::Reduce { aggregates, .. } => aggregates.iter_mut().for_each(aggregate),
        Hir::Window { exprs, .. } => {
            for w in exprs {
                plain(&mut w.ty);
                if let crate::hir::HirWindowFunc::Aggregate(a) = &mut w.func {
                    aggregate(a);
                }
            }
        }
        _ => {}
    }
    super::env::children_mut(h).into_iter().for_each(relation);
}
