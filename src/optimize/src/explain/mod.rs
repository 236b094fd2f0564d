//! EXPLAIN: plans as indented text, a node a line.
//!
//! ```text
//!   Join orders.customer = customers.id
//!     Filter orders.total > 5
//!       Get orders
//!     Get customers
//! ```
//!
//! A column shows its name while that is unique in its row, else its number: `#3`. A physical plan also shows each node's
//! number, and which arrangement a join or a read uses.

/// LIR.
mod physical;
/// Scalars, aggregates, window functions.
mod scalar;

pub use physical::{explain_lir, explain_peek};
pub use scalar::scalar;

use plan::{Id, LocalId, Mir};
use repr::GlobalId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Names of catalog objects.
pub struct Names<'a> {
    pub relation: &'a dyn Fn(GlobalId) -> String,
    /// Column names of a relation; may be empty.
    pub columns: &'a dyn Fn(GlobalId) -> Vec<String>,
}

/// Column names of bindings in scope.
type Locals = BTreeMap<LocalId, Vec<String>>;

/// The text of a logical plan.
pub fn explain_mir(mir: &Mir, names: &Names) -> String {
    let mut text = Text { out: String::new(), names };
    text.mir(mir, 0, &mut Locals::new());
    text.out
}

struct Text<'a> {
    out: String,
    names: &'a Names<'a>,
}

/// Names that occur once stay; columns without a name, or with one that is not unique, show their number.
fn distinct_names(names: Vec<String>) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    names.iter().for_each(|n| *count.entry(n).or_default() += 1);
    names.iter().enumerate().map(|(i, n)| if n.is_empty() || count[n.as_str()] > 1 { format!("#{i}") } else { n.clone() }).collect()
}

fn list<T>(items: impl IntoIterator<Item = T>, mut show: impl FnMut(T) -> String) -> String {
    items.into_iter().map(&mut show).collect::<Vec<_>>().join(", ")
}

impl Text<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:width$}{}", "", text, width = depth * 2);
    }

    fn get(&self, id: Id, arity: usize, locals: &Locals) -> (String, Vec<String>) {
        match id {
            Id::Global(g) => {
                let name = (self.names.relation)(g);
                let short = name.rsplit('.').next().unwrap_or(&name).to_string();
                let columns = (self.names.columns)(g);
                let columns = (0..arity).map(|i| columns.get(i).map_or(String::new(), |c| format!("{short}.{c}"))).collect();
                (name, columns)
            }
            Id::Local(l) => (format!("l{}", l.0), locals.get(&l).cloned().unwrap_or_else(|| vec![String::new(); arity])),
        }
    }

    /// Writes the node and returns its columns' names, empty where there is none.
    fn mir(&mut self, mir: &Mir, depth: usize, locals: &mut Locals) -> Vec<String> {
        // Inputs come after their node in the text, but their names are needed in it: write them apart.
        let mut below = Text { out: String::new(), names: self.names };
        let (line, names) = match mir {
            Mir::Constant { rows, types } => (constant(rows, types), vec![String::new(); types.len()]),
            Mir::Get { id, types, .. } => {
                let (name, columns) = self.get(*id, types.len(), locals);
                (format!("Get {name}"), columns)
            }
            Mir::Let { id, value, body } => {
                self.line(depth, &format!("With l{}", id.0));
                let names = self.mir(value, depth + 1, locals);
                locals.insert(*id, names);
                self.line(depth, "Return");
                return self.mir(body, depth + 1, locals);
            }
            Mir::LetRec { bindings, limit, return_at_limit, body } => {
                let limit = match (limit, return_at_limit) {
                    (None, _) => String::new(),
                    (Some(n), false) => format!(" limit {n}"),
                    (Some(n), true) => format!(" return at {n}"),
                };
                for b in bindings {
                    self.line(depth, &format!("With Recursive l{}{limit}", b.id.0));
                    self.mir(&b.value, depth + 1, locals);
                }
                self.line(depth, "Return");
                return self.mir(body, depth + 1, locals);
            }
            Mir::Project { input, outputs } => {
                let names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                (format!("Project {}", list(outputs, |o| shown[*o].clone())), outputs.iter().map(|o| names[*o].clone()).collect())
            }
            Mir::Map { input, scalars } => {
                let mut names = below.mir(input, depth + 1, locals);
                let mut shown = Vec::new();
                for s in scalars {
                    shown.push(scalar(s, &distinct_names(names.clone())));
                    names.push(String::new());
                }
                (format!("Map {}", shown.join(", ")), names)
            }
            Mir::Filter { input, predicates } => {
                let names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                (format!("Filter {}", list(predicates, |p| scalar(p, &shown))), names)
            }
            Mir::FlatMap { input, func } => {
                let mut names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                names.resize(mir.arity(), String::new());
                (scalar::table_function(func, &shown), names)
            }
            Mir::Join { inputs, equivalences } => {
                let names: Vec<String> = inputs.iter().flat_map(|i| below.mir(i, depth + 1, locals)).collect();
                let shown = distinct_names(names.clone());
                let on = list(equivalences, |e| {
                    let sign = if e.null_safe { " is " } else { " = " };
                    e.exprs.iter().map(|x| scalar(x, &shown)).collect::<Vec<_>>().join(sign)
                });
                (if on.is_empty() { "CrossJoin".to_string() } else { format!("Join on {on}") }, names)
            }
            Mir::Reduce { input, group_key, aggregates } => {
                let names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                let key = list(group_key, |k| scalar(k, &shown));
                let line = if aggregates.is_empty() {
                    format!("Distinct {key}")
                } else {
                    let aggregates = list(aggregates, |a| scalar::aggregate(a, &shown));
                    if key.is_empty() {
                        format!("Reduce {aggregates}")
                    } else {
                        format!("Reduce by {key}: {aggregates}")
                    }
                };
                let mut out: Vec<String> = group_key.iter().map(|k| if let expr::Scalar::Column(c) = k { names[*c].clone() } else { String::new() }).collect();
                out.resize(mir.arity(), String::new());
                (line, out)
            }
            Mir::TopK { input, group_key, order_by, limit, offset, with_ties } => {
                let names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                (scalar::top_k(group_key, order_by, limit.as_ref(), *offset, *with_ties, &shown), names)
            }
            Mir::Window { input, partition, order_by, exprs } => {
                let mut names = below.mir(input, depth + 1, locals);
                let shown = distinct_names(names.clone());
                names.resize(mir.arity(), String::new());
                (scalar::window(partition, order_by, exprs, &shown), names)
            }
            Mir::Negate { input } => ("Negate".to_string(), below.mir(input, depth + 1, locals)),
            Mir::Threshold { input } => ("Threshold".to_string(), below.mir(input, depth + 1, locals)),
            Mir::Union { inputs } => {
                let mut names = Vec::new();
                for (i, input) in inputs.iter().enumerate() {
                    let own = below.mir(input, depth + 1, locals);
                    if i == 0 {
                        names = own;
                    }
                }
                ("Union".to_string(), names)
            }
        };
        self.line(depth, &line);
        self.out.push_str(&below.out);
        names
    }
}

const ROWS_SHOWN: usize = 20; // of a constant

fn constant(rows: &Result<Vec<(Vec<repr::Value>, i64)>, repr::SqlError>, types: &[repr::ColType]) -> String {
    match rows {
        Err(e) => format!("Error {:?}", e.message),
        Ok(rows) if rows.is_empty() => "Empty".to_string(),
        Ok(rows) => {
            let shown = list(rows.iter().take(ROWS_SHOWN), |(r, d)| {
                let row = list(r.iter().zip(types), |(v, t)| scalar::literal(v, t));
                if *d == 1 {
                    format!("({row})")
                } else {
                    format!("({row}) x {d}")
                }
            });
            let more = rows.len().saturating_sub(ROWS_SHOWN);
            if more > 0 {
                format!("Constant {shown}, ... {more} more")
            } else {
                format!("Constant {shown}")
            }
        }
    }
}
