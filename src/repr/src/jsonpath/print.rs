//! Paths as Postgres spells them.

use super::{Expr, Method, Op, Path, Step};
use crate::jsonb::escape_into;
use std::fmt;

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::from(if self.strict { "strict " } else { "" });
        expr(&self.expr, true, &mut out);
        f.write_str(&out)
    }
}

impl Op {
    pub fn symbol(self) -> &'static str {
        match self {
            Op::Or => "||",
            Op::And => "&&",
            Op::Eq => "==",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::StartsWith => "starts with",
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Mod => "%",
        }
    }
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Size => "size",
            Method::Type => "type",
            Method::Floor => "floor",
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::KeyValue => "keyvalue",
        }
    }
}

fn priority(e: &Expr) -> u8 {
    match e {
        Expr::Binary(op, ..) => match op {
            Op::Or => 0,
            Op::And => 1,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::StartsWith => 2,
            Op::Add | Op::Sub => 3,
            Op::Mul | Op::Div | Op::Mod => 4,
        },
        Expr::Neg(_) | Expr::Pos(_) => 5,
        _ => 6,
    }
}

fn expr(e: &Expr, brackets: bool, out: &mut String) {
    match e {
        Expr::Root => out.push('$'),
        Expr::Current => out.push('@'),
        Expr::Last => out.push_str("last"),
        Expr::Variable(v) => {
            out.push('$');
            escape_into(v, out);
        }
        Expr::Null => out.push_str("null"),
        Expr::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Expr::Number(n) => n.print(out),
        Expr::String(s) => escape_into(s, out),
        Expr::Chain(head, steps) => {
            let number = matches!(**head, Expr::Number(_));
            if number {
                out.push('(');
            }
            expr(head, true, out);
            if number {
                out.push(')');
            }
            steps.iter().for_each(|s| step(s, out));
        }
        Expr::Neg(x) | Expr::Pos(x) => {
            if brackets {
                out.push('(');
            }
            out.push(if matches!(e, Expr::Neg(_)) { '-' } else { '+' });
            expr(x, priority(x) <= priority(e), out);
            if brackets {
                out.push(')');
            }
        }
        Expr::Binary(op, l, r) => {
            if brackets {
                out.push('(');
            }
            expr(l, priority(l) <= priority(e), out);
            out.push(' ');
            out.push_str(op.symbol());
            out.push(' ');
            expr(r, priority(r) <= priority(e), out);
            if brackets {
                out.push(')');
            }
        }
        Expr::Not(x) => {
            out.push_str("!(");
            expr(x, false, out);
            out.push(')');
        }
        Expr::IsUnknown(x) => {
            out.push('(');
            expr(x, false, out);
            out.push_str(") is unknown");
        }
        Expr::Exists(x) => {
            out.push_str("exists (");
            expr(x, false, out);
            out.push(')');
        }
        Expr::LikeRegex { value, pattern, flags } => {
            if brackets {
                out.push('(');
            }
            expr(value, priority(value) <= priority(e), out);
            out.push_str(" like_regex ");
            escape_into(pattern, out);
            if !flags.is_empty() {
                out.push_str(" flag ");
                escape_into(flags, out);
            }
            if brackets {
                out.push(')');
            }
        }
    }
}

fn step(s: &Step, out: &mut String) {
    match s {
        Step::Key(k) => {
            out.push('.');
            escape_into(k, out);
        }
        Step::AnyKey => out.push_str(".*"),
        Step::AnyElement => out.push_str("[*]"),
        Step::Elements(list) => {
            out.push('[');
            for (i, (from, to)) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                expr(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    expr(to, false, out);
                }
            }
            out.push(']');
        }
        Step::Descend(Some(0), None) => out.push_str(".**"),
        Step::Descend(from, to) => {
            let level = |l: &Option<u32>| l.map_or("last".to_owned(), |v| v.to_string());
            out.push_str(".**{");
            out.push_str(&level(from));
            if from != to {
                out.push_str(" to ");
                out.push_str(&level(to));
            }
            out.push('}');
        }
        Step::Method(m) => {
            out.push('.');
            out.push_str(m.name());
            out.push_str("()");
        }
        Step::Datetime(template) => {
            out.push_str(".datetime(");
            if let Some(t) = template {
                escape_into(t, out);
            }
            out.push(')');
        }
        Step::Filter(p) => {
            out.push_str("?(");
            expr(p, false, out);
            out.push(')');
        }
    }
}
