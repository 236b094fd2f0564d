//! Scalars as text: operators between their operands, as SQL writes them.

use expr::{Aggregate, ColumnOrder, Frame, FrameBound, FrameExclude, FrameUnits, Scalar, TableFunc, WindowExpr, WindowFunc};
use repr::text::to_text;
use repr::{ColType, SqlType, Value};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The operator, and whether it is a prefix, that a pg_proc OID implements.
fn operator(oid: u32) -> Option<(&'static str, bool)> {
    static BY_FUNC: OnceLock<HashMap<u32, (&'static str, bool)>> = OnceLock::new();
    let map = BY_FUNC.get_or_init(|| {
        let mut m = HashMap::new();
        for o in expr::catalog::operators() {
            m.entry(o.func).or_insert((o.name, o.kind == 'l'));
        }
        m
    });
    map.get(&oid).copied()
}

/// A literal as SQL would take it.
pub(super) fn literal(v: &Value, t: &ColType) -> String {
    match v {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::Numeric(_) | Value::Float4(_) | Value::Float8(_) => to_text(v, &t.ty, &Default::default()),
        _ => {
            let text = to_text(v, &t.ty, &Default::default()).replace('\'', "''");
            if t.ty == SqlType::Text {
                format!("'{text}'")
            } else {
                format!("'{text}'::{}", t.ty)
            }
        }
    }
}

/// The scalar, with `names` for its columns.
pub fn scalar(s: &Scalar, names: &[String]) -> String {
    write(s, names, false)
}

fn write(s: &Scalar, names: &[String], inner: bool) -> String {
    let go = |x: &Scalar| write(x, names, true);
    let all = |xs: &[Scalar]| xs.iter().map(|x| write(x, names, false)).collect::<Vec<_>>().join(", ");
    let parens = |text: String| if inner { format!("({text})") } else { text };
    match s {
        Scalar::Column(i) => names.get(*i).cloned().unwrap_or_else(|| format!("#{i}")),
        Scalar::Literal(v, t) => literal(v, t),
        Scalar::Error(e, _) => format!("error({:?})", e.message),
        Scalar::Call { func, args, ty } => match (operator(func.oid).filter(|_| func.oid != 0), &args[..]) {
            (Some((name, false)), [a, b]) => parens(format!("{} {name} {}", go(a), go(b))),
            (Some((name, true)), [a]) => parens(format!("{name} {}", go(a))),
            _ if args.len() == 1 && (func.oid == 0 || func.name == ty.ty.to_string()) && func.name.contains("cast") => format!("{}::{}", go(&args[0]), ty.ty),
            _ => format!("{}({})", func.name, all(args)),
        },
        Scalar::And(xs) => parens(xs.iter().map(go).collect::<Vec<_>>().join(" and ")),
        Scalar::Or(xs) => parens(xs.iter().map(go).collect::<Vec<_>>().join(" or ")),
        Scalar::Case { branches, otherwise, .. } => {
            let mut text = "case".to_string();
            for (c, r) in branches {
                text += &format!(" when {} then {}", write(c, names, false), write(r, names, false));
            }
            format!("{text} else {} end", write(otherwise, names, false))
        }
        Scalar::Coalesce(xs, _) => format!("coalesce({})", all(xs)),
        Scalar::IsNull(x) => parens(format!("{} is null", go(x))),
        Scalar::Not(x) => match &**x {
            Scalar::IsNull(y) => parens(format!("{} is not null", go(y))),
            x => parens(format!("not {}", go(x))),
        },
    }
}

fn order(order_by: &[ColumnOrder], name: &dyn Fn(usize) -> String) -> String {
    let one = |o: &ColumnOrder| {
        let nulls = match (o.desc, o.nulls_last) {
            (false, true) | (true, false) => "",
            (false, false) => " nulls first",
            (true, true) => " nulls last",
        };
        format!("{}{}{nulls}", name(o.column), if o.desc { " desc" } else { "" })
    };
    order_by.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(super) fn aggregate(a: &Aggregate, names: &[String]) -> String {
    let args = if a.args.is_empty() { "*".to_string() } else { a.args.iter().map(|x| scalar(x, names)).collect::<Vec<_>>().join(", ") };
    let mut text = format!("{}({}{args}", a.func.name, if a.distinct { "distinct " } else { "" });
    if !a.order_by.is_empty() {
        let keys: Vec<ColumnOrder> = a.order_by.iter().enumerate().map(|(i, (_, o))| ColumnOrder { column: i, ..*o }).collect();
        text += &format!(" order by {}", order(&keys, &|i| scalar(&a.order_by[i].0, names)));
    }
    text.push(')');
    if let Some(f) = &a.filter {
        text += &format!(" filter ({})", scalar(f, names));
    }
    text
}

pub(super) fn table_function(f: &TableFunc, names: &[String]) -> String {
    let args = f.args.iter().map(|x| scalar(x, names)).collect::<Vec<_>>().join(", ");
    format!("FlatMap {}({args}){}", f.func.name, if f.with_ordinality { " with ordinality" } else { "" })
}

pub(super) fn columns(columns: &[usize], names: &[String]) -> String {
    columns.iter().map(|c| names[*c].clone()).collect::<Vec<_>>().join(", ")
}

pub(super) fn top_k(group: &[usize], order_by: &[ColumnOrder], limit: Option<&Scalar>, offset: u64, with_ties: bool, names: &[String]) -> String {
    let mut parts = vec!["TopK".to_string()];
    if !group.is_empty() {
        parts.push(format!("by {}", columns(group, names)));
    }
    if !order_by.is_empty() {
        parts.push(format!("order {}", order(order_by, &|c| names[c].clone())));
    }
    if let Some(l) = limit {
        parts.push(format!("limit {}{}", scalar(l, names), if with_ties { " with ties" } else { "" }));
    }
    if offset > 0 {
        parts.push(format!("offset {offset}"));
    }
    parts.join(" ")
}

pub(super) fn window(partition: &[usize], order_by: &[ColumnOrder], exprs: &[WindowExpr], names: &[String]) -> String {
    let mut text = format!("Window {}", exprs.iter().map(|e| window_function(e, names)).collect::<Vec<_>>().join(", "));
    if !partition.is_empty() {
        text += &format!(" partition {}", columns(partition, names));
    }
    if !order_by.is_empty() {
        text += &format!(" order {}", order(order_by, &|c| names[c].clone()));
    }
    text
}

fn window_function(e: &WindowExpr, names: &[String]) -> String {
    let s = |x: &Scalar| scalar(x, names);
    let (name, framed) = match &e.func {
        WindowFunc::RowNumber => ("row_number()".to_string(), false),
        WindowFunc::Rank => ("rank()".into(), false),
        WindowFunc::DenseRank => ("dense_rank()".into(), false),
        WindowFunc::PercentRank => ("percent_rank()".into(), false),
        WindowFunc::CumeDist => ("cume_dist()".into(), false),
        WindowFunc::Ntile(x) => (format!("ntile({})", s(x)), false),
        WindowFunc::Lag { value, offset, default } => (format!("lag({}, {}, {})", s(value), s(offset), s(default)), false),
        WindowFunc::Lead { value, offset, default } => (format!("lead({}, {}, {})", s(value), s(offset), s(default)), false),
        WindowFunc::FirstValue(x) => (format!("first_value({})", s(x)), true),
        WindowFunc::LastValue(x) => (format!("last_value({})", s(x)), true),
        WindowFunc::NthValue(x, n) => (format!("nth_value({}, {})", s(x), s(n)), true),
        WindowFunc::Aggregate(a) => (aggregate(a, names), true),
    };
    if framed {
        format!("{name} {}", frame(&e.frame, names))
    } else {
        name
    }
}

fn frame(f: &Frame, names: &[String]) -> String {
    let units = match f.units {
        FrameUnits::Rows => "rows",
        FrameUnits::Range => "range",
        FrameUnits::Groups => "groups",
    };
    let bound = |b: &FrameBound| match b {
        FrameBound::UnboundedPreceding => "unbounded preceding".to_string(),
        FrameBound::Preceding(x) => format!("{} preceding", scalar(x, names)),
        FrameBound::CurrentRow => "current row".into(),
        FrameBound::Following(x) => format!("{} following", scalar(x, names)),
        FrameBound::UnboundedFollowing => "unbounded following".into(),
    };
    let exclude = match f.exclude {
        FrameExclude::NoOthers => "",
        FrameExclude::CurrentRow => " exclude current row",
        FrameExclude::Group => " exclude group",
        FrameExclude::Ties => " exclude ties",
    };
    format!("{units} {} to {}{exclude}", bound(&f.start), bound(&f.end))
}
