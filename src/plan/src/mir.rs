//! Logical relations, decorrelated: every node is a collection `(row, diff)`; scalars hold no subqueries.

use expr::{Aggregate, ColumnOrder, Scalar, TableFunc, WindowExpr};
use repr::{ColType, Diff, GlobalId, SqlError, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    Global(GlobalId),
    Local(LocalId),
}

/// A relational expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Mir {
    /// Literal rows with diffs, or an error that evaluating the relation raises.
    Constant {
        rows: Result<Vec<(Vec<Value>, Diff)>, SqlError>,
        types: Vec<ColType>,
    },
    /// A catalog relation or a `Let`. `keys`: column sets no two rows agree on.
    Get {
        id: Id,
        types: Vec<ColType>,
        keys: Vec<Vec<usize>>,
    },
    Let {
        id: LocalId,
        value: Box<Mir>,
        body: Box<Mir>,
    },
    /// Mutually recursive bindings: least fixed point from empty collections, iterated at most `limit` times
    /// (then an error, or with `return_at_limit` the state reached).
    LetRec {
        bindings: Vec<RecBinding>,
        limit: Option<u64>,
        return_at_limit: bool,
        body: Box<Mir>,
    },
    /// Keeps columns `outputs`, in that order, repetitions allowed.
    Project {
        input: Box<Mir>,
        outputs: Vec<usize>,
    },
    /// Appends one column a scalar; later scalars see the earlier ones' columns.
    Map {
        input: Box<Mir>,
        scalars: Vec<Scalar>,
    },
    /// Keeps rows on which all predicates are true. An error in a predicate is an error of the collection.
    Filter {
        input: Box<Mir>,
        predicates: Vec<Scalar>,
    },
    /// Appends the columns of a set-returning function of each row: inner (a row without results vanishes).
    FlatMap {
        input: Box<Mir>,
        func: TableFunc,
    },
    /// All combinations of the inputs' rows on which every class of `equivalences` holds. Expressions are over the
    /// concatenation of the inputs' columns. No two columns of a class need be of one input; types within a class are the same.
    Join {
        inputs: Vec<Mir>,
        equivalences: Vec<Equivalence>,
    },
    /// One row a group of equal keys (NULLs are equal here): keys, then aggregates. Without a key: a group only if there are input rows
    /// (`sql` adds the row of the empty input). Without aggregates: DISTINCT.
    Reduce {
        input: Box<Mir>,
        group_key: Vec<Scalar>,
        aggregates: Vec<Aggregate>,
    },
    /// In each group of equal `group_key` columns the rows from `offset` on, at most `limit`, in `order_by` order, ties
    /// broken by row bytes. `limit` is an expression over the group key's columns (positions in the input).
    /// `with_ties`: rows equal to the last one kept are kept too.
    TopK {
        input: Box<Mir>,
        group_key: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        limit: Option<Scalar>,
        offset: u64,
        with_ties: bool,
    },
    /// Appends one column a window function, evaluated in each partition of equal `partition` columns in `order_by` order.
    Window {
        input: Box<Mir>,
        partition: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        exprs: Vec<WindowExpr>,
    },
    Negate {
        input: Box<Mir>,
    },
    /// Keeps rows with positive counts.
    Threshold {
        input: Box<Mir>,
    },
    /// At least one input; all have the same column types.
    Union {
        inputs: Vec<Mir>,
    },
}

/// Expressions that are equal on every row of a join, in the sense of SQL's `=` (one class of key bytes).
#[derive(Clone, Debug, PartialEq)]
pub struct Equivalence {
    pub exprs: Vec<Scalar>,
    /// Whether NULLs are equal to each other here, as in IS NOT DISTINCT FROM. Otherwise a NULL equals nothing.
    pub null_safe: bool,
}

impl Equivalence {
    pub fn new(exprs: Vec<Scalar>) -> Equivalence {
        Equivalence { exprs, null_safe: false }
    }
    pub fn null_safe(exprs: Vec<Scalar>) -> Equivalence {
        Equivalence { exprs, null_safe: true }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RecBinding {
    pub id: LocalId,
    pub types: Vec<ColType>,
    pub value: Mir,
}

impl Mir {
    pub fn constant(rows: Vec<Vec<Value>>, types: Vec<ColType>) -> Mir {
        Mir::Constant { rows: Ok(rows.into_iter().map(|r| (r, 1)).collect()), types }
    }
    /// The relation of one row without columns.
    pub fn unit() -> Mir {
        Mir::constant(vec![vec![]], vec![])
    }
    pub fn empty(types: Vec<ColType>) -> Mir {
        Mir::Constant { rows: Ok(vec![]), types }
    }
    pub fn boxed(self) -> Box<Mir> {
        Box::new(self)
    }
    pub fn project(self, outputs: Vec<usize>) -> Mir {
        Mir::Project { input: self.boxed(), outputs }
    }
    pub fn map(self, scalars: Vec<Scalar>) -> Mir {
        if scalars.is_empty() {
            return self;
        }
        Mir::Map { input: self.boxed(), scalars }
    }
    pub fn filter(self, predicates: Vec<Scalar>) -> Mir {
        if predicates.is_empty() {
            return self;
        }
        Mir::Filter { input: self.boxed(), predicates }
    }
    pub fn negate(self) -> Mir {
        Mir::Negate { input: self.boxed() }
    }
    pub fn threshold(self) -> Mir {
        Mir::Threshold { input: self.boxed() }
    }
    pub fn union(self, other: Mir) -> Mir {
        Mir::Union { inputs: vec![self, other] }
    }
    pub fn distinct(self) -> Mir {
        let n = self.arity();
        Mir::Reduce { input: self.boxed(), group_key: (0..n).map(Scalar::Column).collect(), aggregates: vec![] }
    }

    pub fn arity(&self) -> usize {
        match self {
            Mir::Constant { types, .. } | Mir::Get { types, .. } => types.len(),
            Mir::Let { body, .. } | Mir::LetRec { body, .. } => body.arity(),
            Mir::Project { outputs, .. } => outputs.len(),
            Mir::Map { input, scalars } => input.arity() + scalars.len(),
            Mir::Filter { input, .. } | Mir::TopK { input, .. } | Mir::Negate { input } | Mir::Threshold { input } => input.arity(),
            Mir::FlatMap { input, func } => input.arity() + func.columns.len() + usize::from(func.with_ordinality),
            Mir::Join { inputs, .. } => inputs.iter().map(Mir::arity).sum(),
            Mir::Reduce { group_key, aggregates, .. } => group_key.len() + aggregates.len(),
            Mir::Window { input, exprs, .. } => input.arity() + exprs.len(),
            Mir::Union { inputs } => inputs[0].arity(),
        }
    }

    pub fn types(&self) -> Vec<ColType> {
        match self {
            Mir::Constant { types, .. } | Mir::Get { types, .. } => types.clone(),
            Mir::Let { body, .. } | Mir::LetRec { body, .. } => body.types(),
            Mir::Project { input, outputs } => {
                let t = input.types();
                outputs.iter().map(|i| t[*i].clone()).collect()
            }
            Mir::Map { input, scalars } => {
                let mut t = input.types();
                for s in scalars {
                    let ty = s.typ(&t);
                    t.push(ty);
                }
                t
            }
            Mir::Filter { input, .. } | Mir::TopK { input, .. } | Mir::Negate { input } | Mir::Threshold { input } => input.types(),
            Mir::FlatMap { input, func } => {
                let mut t = input.types();
                t.extend(func.columns.iter().cloned());
                if func.with_ordinality {
                    t.push(repr::SqlType::Int8.not_null());
                }
                t
            }
            Mir::Join { inputs, .. } => inputs.iter().flat_map(|i| i.types()).collect(),
            Mir::Reduce { input, group_key, aggregates } => {
                let t = input.types();
                group_key.iter().map(|k| k.typ(&t)).chain(aggregates.iter().map(|a| a.ty.clone())).collect()
            }
            Mir::Window { input, exprs, .. } => {
                let mut t = input.types();
                t.extend(exprs.iter().map(|e| e.ty.clone()));
                t
            }
            Mir::Union { inputs } => {
                let mut t = inputs[0].types();
                for other in &inputs[1..] {
                    for (a, b) in t.iter_mut().zip(other.types()) {
                        a.nullable |= b.nullable;
                        if a.typmod != b.typmod {
                            a.typmod = -1;
                        }
                    }
                }
                t
            }
        }
    }

    pub fn children(&self) -> Vec<&Mir> {
        match self {
            Mir::Constant { .. } | Mir::Get { .. } => vec![],
            Mir::Let { value, body, .. } => vec![value, body],
            Mir::LetRec { bindings, body, .. } => bindings.iter().map(|b| &b.value).chain([&**body]).collect(),
            Mir::Project { input, .. }
            | Mir::Map { input, .. }
            | Mir::Filter { input, .. }
            | Mir::FlatMap { input, .. }
            | Mir::Reduce { input, .. }
            | Mir::TopK { input, .. }
            | Mir::Window { input, .. }
            | Mir::Negate { input }
            | Mir::Threshold { input } => vec![input],
            Mir::Join { inputs, .. } | Mir::Union { inputs } => inputs.iter().collect(),
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Mir> {
        match self {
            Mir::Constant { .. } | Mir::Get { .. } => vec![],
            Mir::Let { value, body, .. } => vec![value, body],
            Mir::LetRec { bindings, body, .. } => bindings.iter_mut().map(|b| &mut b.value).chain([&mut **body]).collect(),
            Mir::Project { input, .. }
            | Mir::Map { input, .. }
            | Mir::Filter { input, .. }
            | Mir::FlatMap { input, .. }
            | Mir::Reduce { input, .. }
            | Mir::TopK { input, .. }
            | Mir::Window { input, .. }
            | Mir::Negate { input }
            | Mir::Threshold { input } => vec![input],
            Mir::Join { inputs, .. } | Mir::Union { inputs } => inputs.iter_mut().collect(),
        }
    }

    /// The largest number of a binding in the expression; 0 if there is none.
    pub fn max_local(&self) -> u64 {
        let own = match self {
            Mir::Let { id, .. } => id.0,
            Mir::LetRec { bindings, .. } => bindings.iter().map(|b| b.id.0).max().unwrap_or(0),
            _ => 0,
        };
        self.children().into_iter().map(Mir::max_local).fold(own, u64::max)
    }

    /// Numbers the bindings of a whole plan anew, so that it can stand in another: `by` further up.
    pub fn shift_locals(&mut self, by: u64) {
        match self {
            Mir::Let { id, .. } | Mir::Get { id: Id::Local(id), .. } => id.0 += by,
            Mir::LetRec { bindings, .. } => bindings.iter_mut().for_each(|b| b.id.0 += by),
            _ => {}
        }
        self.children_mut().into_iter().for_each(|c| c.shift_locals(by));
    }

    /// The catalog relations that the expression reads, each once, in order of id.
    pub fn global_ids(&self) -> Vec<GlobalId> {
        fn walk(m: &Mir, out: &mut Vec<GlobalId>) {
            if let Mir::Get { id: Id::Global(g), .. } = m {
                out.push(*g);
            }
            m.children().into_iter().for_each(|c| walk(c, out));
        }
        let mut ids = Vec::new();
        walk(self, &mut ids);
        ids.sort();
        ids.dedup();
        ids
    }
}
