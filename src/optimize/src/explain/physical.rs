//! LIR as text: each node's number, join stages with their keys, and the arrangements that are used.

use super::{constant, distinct_names, list, scalar, Locals, Names, Text};
use plan::lir::{JoinStage, ReduceKind};
use plan::{Id, Import, Lir, LirKind, Mfp, PeekPlan};
use repr::GlobalId;

/// The text of a physical plan, and of what it reads.
pub fn explain_lir(lir: &Lir, imports: &[Import], names: &Names) -> String {
    let mut text = Text { out: String::new(), names };
    text.lir(lir, 0, imports, &mut Locals::new());
    text.imports(imports);
    text.out
}

/// How a one-off query is answered.
pub fn explain_peek(plan: &PeekPlan, imports: &[Import], names: &Names) -> String {
    match plan {
        PeekPlan::Constant { rows, types } => constant(rows, types) + "\n",
        PeekPlan::Dataflow(lir) => explain_lir(lir, imports, names),
        PeekPlan::Arrangement { object, index, keys, mfp, types } => {
            let mut text = Text { out: String::new(), names };
            let (name, columns) = text.get(Id::Global(*object), types.len(), &Locals::new());
            let key_types = imports.iter().find_map(|i| match i {
                Import::Arrangement { index: at, key, .. } if at == index => Some(key.iter().map(|k| k.typ(types)).collect::<Vec<_>>()),
                _ => None,
            });
            let index = text.index(*object, *index);
            let line = match keys {
                Some(keys) => {
                    let of = |r: &Vec<repr::Value>| list(r.iter().zip(key_types.iter().flatten()), |(v, t)| scalar::literal(v, t));
                    format!("Lookup {name} in {index}: {}", list(keys.iter().take(super::ROWS_SHOWN), |r| format!("({})", of(r))))
                }
                None => format!("Scan {name} in {index}"),
            };
            let shown = distinct_names(columns);
            let depth = usize::from(!mfp.is_identity());
            if depth == 1 {
                text.line(0, &format!("Mfp{}", mfp_text(mfp, &shown)));
            }
            text.line(depth, &line);
            text.out
        }
    }
}

fn mfp_text(mfp: &Mfp, names: &[String]) -> String {
    let mut names = names.to_vec();
    let mut maps = Vec::new();
    for m in &mfp.maps {
        maps.push(scalar::scalar(m, &names));
        names.push(format!("#{}", names.len()));
    }
    let mut text = String::new();
    if !mfp.predicates.is_empty() {
        text += &format!(" filter {}", list(&mfp.predicates, |(_, p)| scalar::scalar(p, &names)));
    }
    if !mfp.lower.is_empty() {
        text += &format!(" from {}", list(&mfp.lower, |p| scalar::scalar(p, &names)));
    }
    if !mfp.upper.is_empty() {
        text += &format!(" until {}", list(&mfp.upper, |p| scalar::scalar(p, &names)));
    }
    if !maps.is_empty() {
        text += &format!(" map {}", maps.join(", "));
    }
    if !mfp.project.iter().copied().eq(0..names.len()) {
        text += &format!(" project ({})", scalar::columns(&mfp.project, &names));
    }
    text
}

fn mfp_names(mfp: &Mfp, names: &[String]) -> Vec<String> {
    mfp.project.iter().map(|c| names.get(*c).cloned().unwrap_or_default()).collect()
}

fn kind_text(kind: &ReduceKind, names: &[String]) -> String {
    match kind {
        ReduceKind::Distinct => "distinct".into(),
        ReduceKind::Accumulable(a) => format!("accumulable {}", list(a, |a| scalar::aggregate(a, names))),
        ReduceKind::Hierarchical(a) => format!("hierarchical {}", list(a, |a| scalar::aggregate(a, names))),
        ReduceKind::Monotonic(a) => format!("monotonic {}", list(a, |a| scalar::aggregate(a, names))),
        ReduceKind::Basic(a) => format!("basic {}", list(a, |a| scalar::aggregate(a, names))),
        ReduceKind::Collated(parts) => format!("collated ({})", list(parts, |(_, k)| kind_text(k, names))),
    }
}

impl Text<'_> {
    fn index(&self, object: GlobalId, index: GlobalId) -> String {
        if index == object {
            return "its arrangement".into();
        }
        (self.names.relation)(index)
    }

    fn imports(&mut self, imports: &[Import]) {
        for i in imports {
            match i {
                Import::Shard { id, .. } => {
                    let name = (self.names.relation)(*id);
                    self.line(0, &format!("Reads {name}"));
                }
                Import::Arrangement { object, index, key, types } => {
                    let (name, columns) = self.get(Id::Global(*object), types.len(), &Locals::new());
                    let shown = distinct_names(columns);
                    let index = self.index(*object, *index);
                    self.line(0, &format!("Reads {name} arranged by ({}): {index}", list(key, |k| scalar::scalar(k, &shown))));
                }
            }
        }
    }

    fn lir(&mut self, lir: &Lir, depth: usize, imports: &[Import], locals: &mut Locals) -> Vec<String> {
        let mut below = Text { out: String::new(), names: self.names };
        let arity = lir.types.len();
        let (line, names) = match &lir.kind {
            LirKind::Constant { rows } => (constant(rows, &lir.types), vec![String::new(); arity]),
            LirKind::Get { id } => {
                let (name, columns) = self.get(*id, arity, locals);
                (format!("Get {name}"), columns)
            }
            LirKind::Let { id, value, body } => {
                self.line(depth, &format!("With l{}", id.0));
                let names = self.lir(value, depth + 1, imports, locals);
                locals.insert(*id, names);
                self.line(depth, "Return");
                return self.lir(body, depth + 1, imports, locals);
            }
            LirKind::LetRec { bindings, body, .. } => {
                for (id, value) in bindings {
                    self.line(depth, &format!("With Recursive l{}", id.0));
                    self.lir(value, depth + 1, imports, locals);
                }
                self.line(depth, "Return");
                return self.lir(body, depth + 1, imports, locals);
            }
            LirKind::Mfp { input, mfp } => {
                let names = below.lir(input, depth + 1, imports, locals);
                (format!("Mfp{}", mfp_text(mfp, &distinct_names(names.clone()))), mfp_names(mfp, &names))
            }
            LirKind::FlatMap { input, func } => {
                let mut names = below.lir(input, depth + 1, imports, locals);
                let line = scalar::table_function(func, &distinct_names(names.clone()));
                names.resize(arity, String::new());
                (line, names)
            }
            LirKind::Join { inputs, start, stages } => {
                let all: Vec<Vec<String>> = inputs.iter().map(|i| below.lir(i, depth + 2, imports, locals)).collect();
                let mut so_far = all[*start].clone();
                let mut text = Text { out: String::new(), names: self.names };
                for s in stages {
                    let line = stage(s, inputs, &so_far, &all[s.lookup], imports, self);
                    so_far.extend(all[s.lookup].iter().cloned());
                    let shown = distinct_names(so_far.clone());
                    let extra = if s.mfp.is_identity() { String::new() } else { mfp_text(&s.mfp, &shown) };
                    so_far = mfp_names(&s.mfp, &so_far);
                    text.line(depth + 1, &format!("{line}{extra}"));
                }
                text.line(depth + 1, "Inputs");
                below.out = text.out + &below.out;
                (format!("Join start {start}"), so_far)
            }
            LirKind::Reduce { input, group_key, kind } => {
                let names = below.lir(input, depth + 1, imports, locals);
                let shown = distinct_names(names.clone());
                let mut out: Vec<String> = group_key.iter().map(|k| if let expr::Scalar::Column(c) = k { names[*c].clone() } else { String::new() }).collect();
                out.resize(arity, String::new());
                (format!("Reduce by ({}) {}", list(group_key, |k| scalar::scalar(k, &shown)), kind_text(kind, &shown)), out)
            }
            LirKind::TopK { input, group_key, order_by, limit, offset, with_ties } => {
                let names = below.lir(input, depth + 1, imports, locals);
                (scalar::top_k(group_key, order_by, limit.as_ref(), *offset, *with_ties, &distinct_names(names.clone())), names)
            }
            LirKind::Window { input, partition, order_by, exprs } => {
                let mut names = below.lir(input, depth + 1, imports, locals);
                let line = scalar::window(partition, order_by, exprs, &distinct_names(names.clone()));
                names.resize(arity, String::new());
                (line, names)
            }
            LirKind::Negate { input } => ("Negate".into(), below.lir(input, depth + 1, imports, locals)),
            LirKind::Threshold { input } => ("Threshold".into(), below.lir(input, depth + 1, imports, locals)),
            LirKind::Union { inputs } => {
                let all: Vec<Vec<String>> = inputs.iter().map(|i| below.lir(i, depth + 1, imports, locals)).collect();
                ("Union".into(), all.into_iter().next().unwrap_or_default())
            }
        };
        self.line(depth, &format!("{line}  [{}]", lir.node));
        self.out.push_str(&below.out);
        names
    }
}

fn stage(s: &JoinStage, inputs: &[Lir], so_far: &[String], lookup: &[String], imports: &[Import], text: &Text) -> String {
    let (stream, own) = (distinct_names(so_far.to_vec()), distinct_names(lookup.to_vec()));
    if s.lookup_key.is_empty() {
        return format!("Cross {}", s.lookup);
    }
    let keys = s.stream_key.iter().zip(&s.lookup_key).zip(&s.null_safe);
    let on = list(keys, |((a, b), safe)| format!("{} {} {}", scalar::scalar(a, &stream), if *safe { "is" } else { "=" }, scalar::scalar(b, &own)));
    let arranged = match &inputs[s.lookup].kind {
        LirKind::Get { id: Id::Global(g) } => imports.iter().find_map(|i| match i {
            Import::Arrangement { object, index, key, .. } if object == g && *key == s.lookup_key => Some(text.index(*object, *index)),
            _ => None,
        }),
        _ => None,
    };
    let used = arranged.map_or(String::new(), |a| format!(" using {a}"));
    format!("Lookup {} on {on}{used}", s.lookup)
}
