//! Random queries over a few tiny tables of nullable integers.

use super::{Rows, Tables};
use expr::ColumnOrder;
use plan::LocalId;
use repr::{ColType, GlobalId, SqlType, Value};
use sql::hir::{ColumnRef, Hir, HirAggregate, HirScalar, HirWindow, HirWindowFunc, JoinKind, Quantifier};

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as usize) % n
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

pub fn int() -> ColType {
    SqlType::Int4.nullable()
}

fn widths() -> [(u64, usize, bool); 3] {
    [(1, 2, false), (2, 3, false), (3, 2, true)]
}

/// Tables u1 (a, b), u2 (a, b, c) without keys, u3 (k, v) with the key k.
pub fn tables(rng: &mut Rng) -> Tables {
    let mut tables = Tables::new();
    for (id, width, keyed) in widths() {
        let mut rows: Rows = Vec::new();
        for i in 0..rng.below(5) {
            let mut row: Vec<Value> = (0..width).map(|_| if rng.chance(20) { Value::Null } else { Value::Int4(rng.below(3) as i32) }).collect();
            if keyed {
                row[0] = Value::Int4(i as i32);
            }
            let types = vec![int(); width];
            match rows.iter_mut().find(|r| r.0 == row) {
                Some(r) => r.1 += 1,
                None => rows.push((row, 1)),
            }
            rows = super::consolidate(rows, &types);
        }
        tables.insert(GlobalId(id), rows);
    }
    tables
}

pub fn func(oid: u32) -> &'static expr::FuncDef {
    expr::func::by_oid(oid).expect("the function is there")
}

pub fn agg(oid: u32) -> &'static expr::AggDef {
    expr::agg::by_oid(oid).expect("the aggregate is there")
}

/// Widths of the enclosing rows, the innermost last; bindings in scope.
#[derive(Clone, Default)]
pub struct Scope {
    outer: Vec<usize>,
    locals: Vec<(LocalId, usize)>,
}

pub struct Queries<'a> {
    pub rng: &'a mut Rng,
    pub next_local: u64,
}

impl Queries<'_> {
    pub fn relation(&mut self, fuel: usize, scope: &Scope) -> Hir {
        if fuel == 0 {
            return self.leaf(scope);
        }
        let f = fuel - 1;
        match self.rng.below(21) {
            0 | 1 => {
                let input = self.relation(f, scope);
                let n = input.arity();
                let scalars: Vec<_> = (0..1 + self.rng.below(2)).map(|_| self.int(f, n, scope)).collect();
                Hir::Map { input: Box::new(input), scalars }
            }
            2 => {
                let input = self.relation(f, scope);
                let n = input.arity();
                let outputs = (0..1 + self.rng.below(2)).map(|_| self.rng.below(n)).collect();
                Hir::Project { input: Box::new(input), outputs }
            }
            3..=6 => {
                let input = self.relation(f, scope);
                let n = input.arity();
                let predicates = (0..1 + self.rng.below(2)).map(|_| self.bool(f, n, scope)).collect();
                Hir::Filter { input: Box::new(input), predicates }
            }
            7..=9 => self.join(f, scope),
            10 | 11 => self.reduce(f, scope, None),
            12 => Hir::Distinct { input: Box::new(self.relation(f, scope)) },
            13 => {
                let input = self.relation(f, scope);
                let n = input.arity();
                let group_key = if self.rng.chance(50) { vec![self.rng.below(n)] } else { vec![] };
                let order_by = vec![ColumnOrder { column: self.rng.below(n), desc: self.rng.chance(50), nulls_last: true }];
                let limit = Some(self.count(scope));
                let offset = if self.rng.chance(30) { Some(self.count(scope)) } else { None };
                Hir::TopK { input: Box::new(input), group_key, order_by, limit, offset, with_ties: self.rng.chance(20) }
            }
            14 => {
                let id = LocalId(self.next_local);
                self.next_local += 1;
                let value = self.relation(f, scope);
                let mut inner = scope.clone();
                inner.locals.push((id, value.arity()));
                let body = self.relation(f, &inner);
                Hir::Let { id, value: Box::new(value), body: Box::new(body) }
            }
            15 => {
                let (a, b) = (self.one_column(f, scope), self.one_column(f, scope));
                let all = self.rng.chance(50);
                match self.rng.below(3) {
                    0 => Hir::Union { inputs: vec![a, b] },
                    1 => Hir::Intersect { left: Box::new(a), right: Box::new(b), all },
                    _ => Hir::Except { left: Box::new(a), right: Box::new(b), all },
                }
            }
            16 => {
                let input = self.relation(f, scope);
                let n = input.arity();
                let e = HirWindow {
                    func: if self.rng.chance(50) { HirWindowFunc::RowNumber } else { HirWindowFunc::Rank },
                    units: expr::FrameUnits::Rows,
                    start: sql::hir::HirBound::UnboundedPreceding,
                    end: sql::hir::HirBound::CurrentRow,
                    exclude: expr::FrameExclude::NoOthers,
                    ty: SqlType::Int8.not_null(),
                };
                let order_by = vec![ColumnOrder { column: self.rng.below(n), desc: false, nulls_last: true }];
                let w = Hir::Window { input: Box::new(input), partition: vec![self.rng.below(n)], order_by, exprs: vec![e] };
                let number = HirScalar::Column(ColumnRef { level: 0, column: n }, SqlType::Int8.not_null());
                let mapped = Hir::Map { input: Box::new(w), scalars: vec![HirScalar::Call { func: func(480), args: vec![number], ty: int() }] };
                Hir::Project { input: Box::new(mapped), outputs: (0..n).chain([n + 1]).collect() }
            }
            17 => self.call(scope),
            18 => Hir::RowsFrom { functions: vec![self.call(scope), self.call(scope)], with_ordinality: false },
            19 => {
                // Everything reachable, from the enclosing rows' columns or a table.
                let id = LocalId(self.next_local);
                self.next_local += 1;
                let base = self.one_column(f, scope);
                let mut inner = scope.clone();
                inner.locals.push((id, 1));
                let here = Hir::GetLocal { id, types: vec![int()] };
                let step = Hir::Get { id: GlobalId(1), types: vec![int(); 2], keys: vec![] };
                let column = |c| HirScalar::Column(ColumnRef { level: 0, column: c }, int());
                let on = HirScalar::Call { func: func(65), args: vec![column(0), column(1)], ty: SqlType::Bool.nullable() };
                let joined = Hir::Join { left: Box::new(here), right: Box::new(step), on, kind: JoinKind::Inner, lateral: false };
                let next = Hir::Project { input: Box::new(joined), outputs: vec![2] };
                let value = Hir::Distinct { input: Box::new(Hir::Union { inputs: vec![base, next] }) };
                let bindings = vec![sql::hir::HirRec { id, types: vec![int()], value }];
                Hir::LetRec { bindings, limit: None, return_at_limit: false, body: Box::new(self.relation(f.min(1), &inner)) }
            }
            _ => self.leaf(scope),
        }
    }

    /// generate_series from 0 to a literal or an enclosing column.
    fn call(&mut self, scope: &Scope) -> Hir {
        let zero = HirScalar::Literal(Value::Int4(0), SqlType::Int4.not_null());
        let to = match scope.outer.len() {
            0 => HirScalar::Literal(Value::Int4(self.rng.below(3) as i32), int()),
            n => {
                let level = 1 + self.rng.below(n);
                self.column(level, scope.outer[n - level])
            }
        };
        let func = expr::table::by_oid(1067).expect("generate_series is there");
        Hir::CallTable { func, args: vec![zero, to], columns: vec![int()], with_ordinality: false }
    }

    fn leaf(&mut self, scope: &Scope) -> Hir {
        if !scope.locals.is_empty() && self.rng.chance(40) {
            let (id, n) = scope.locals[self.rng.below(scope.locals.len())];
            return Hir::GetLocal { id, types: vec![int(); n] };
        }
        if self.rng.chance(10) {
            let rows = (0..self.rng.below(3)).map(|i| (vec![Value::Int4(i as i32)], 1)).collect();
            return Hir::Constant { rows, types: vec![int()] };
        }
        let (id, n, keyed) = widths()[self.rng.below(3)];
        Hir::Get { id: GlobalId(id), types: vec![int(); n], keys: if keyed { vec![vec![0]] } else { vec![] } }
    }

    fn one_column(&mut self, fuel: usize, scope: &Scope) -> Hir {
        let input = self.relation(fuel, scope);
        let c = self.rng.below(input.arity());
        Hir::Project { input: Box::new(input), outputs: vec![c] }
    }

    /// A LIMIT or OFFSET: a literal or an enclosing column.
    fn count(&mut self, scope: &Scope) -> HirScalar {
        let n = self.rng.below(3) as i64;
        let literal = HirScalar::Literal(Value::Int8(n), SqlType::Int8.not_null());
        match scope.outer.last() {
            Some(width) if self.rng.chance(40) => {
                let c = HirScalar::Column(ColumnRef { level: 1, column: self.rng.below(*width) }, int());
                HirScalar::Call { func: func(481), args: vec![c], ty: SqlType::Int8.nullable() }
            }
            _ => literal,
        }
    }

    fn join(&mut self, fuel: usize, scope: &Scope) -> Hir {
        let left = self.relation(fuel, scope);
        let lateral = self.rng.chance(40);
        let mut inner = scope.clone();
        if lateral {
            inner.outer.push(left.arity());
        }
        let right = self.relation(fuel, &inner);
        let kind = match self.rng.below(if lateral { 4 } else { 6 }) {
            0 | 1 => JoinKind::Inner,
            2 | 3 => JoinKind::Left,
            4 => JoinKind::Right,
            _ => JoinKind::Full,
        };
        let (l, r) = (left.arity(), right.arity());
        let on = if self.rng.chance(60) {
            let (a, b) = (self.column(0, l), self.column(0, r));
            let b = match b {
                HirScalar::Column(c, t) => HirScalar::Column(ColumnRef { level: 0, column: c.column + l }, t),
                other => other,
            };
            let equal = HirScalar::Call { func: func(65), args: vec![a, b], ty: SqlType::Bool.nullable() };
            if self.rng.chance(40) {
                HirScalar::And(vec![equal, self.bool(0, l + r, scope)])
            } else {
                equal
            }
        } else {
            self.bool(fuel, l + r, scope)
        };
        Hir::Join { left: Box::new(left), right: Box::new(right), on, kind, lateral }
    }

    fn reduce(&mut self, fuel: usize, scope: &Scope, scalar: Option<bool>) -> Hir {
        let input = self.relation(fuel, scope);
        let n = input.arity();
        let scalar = scalar.unwrap_or_else(|| self.rng.chance(50));
        let group_key: Vec<usize> = if scalar { vec![] } else { vec![self.rng.below(n)] };
        let arg = self.int(fuel.min(1), n, scope);
        let distinct = self.rng.chance(20);
        let filter = if self.rng.chance(20) { Some(self.bool(0, n, scope)) } else { None };
        let (oid, args, ty) = match self.rng.below(3) {
            0 => (2116, vec![arg], int()),
            1 => (2132, vec![arg], int()),
            _ => (2147, vec![arg], SqlType::Int8.not_null()),
        };
        let counts = oid == 2147;
        let a = HirAggregate { func: agg(oid), args, direct: 0, distinct, filter, order_by: vec![], ty };
        let k = group_key.len();
        let reduced = Hir::Reduce { input: Box::new(input), group_key, aggregates: vec![a], scalar };
        if !counts {
            return reduced;
        }
        let number = HirScalar::Column(ColumnRef { level: 0, column: k }, SqlType::Int8.not_null());
        let mapped = Hir::Map { input: Box::new(reduced), scalars: vec![HirScalar::Call { func: func(480), args: vec![number], ty: int() }] };
        Hir::Project { input: Box::new(mapped), outputs: (0..k).chain([k + 1]).collect() }
    }

    fn column(&mut self, level: usize, width: usize) -> HirScalar {
        HirScalar::Column(ColumnRef { level, column: self.rng.below(width) }, int())
    }

    /// An integer over a row of `n` columns.
    fn int(&mut self, fuel: usize, n: usize, scope: &Scope) -> HirScalar {
        let inner = || {
            let mut s = scope.clone();
            s.outer.push(n);
            s
        };
        match self.rng.below(if fuel == 0 { 5 } else { 11 }) {
            0 | 1 => self.column(0, n),
            2 | 3 if !scope.outer.is_empty() => {
                let level = 1 + self.rng.below(scope.outer.len());
                self.column(level, scope.outer[scope.outer.len() - level])
            }
            2 => HirScalar::Coalesce(vec![self.column(0, n), HirScalar::Literal(Value::Int4(1), SqlType::Int4.not_null())], int()),
            3 | 4 => HirScalar::Literal(if self.rng.chance(20) { Value::Null } else { Value::Int4(self.rng.below(3) as i32) }, int()),
            5 => HirScalar::Case {
                branches: vec![(self.bool(fuel - 1, n, scope), self.int(fuel - 1, n, scope))],
                otherwise: Box::new(self.int(fuel - 1, n, scope)),
                ty: int(),
            },
            6 => {
                // At most one row, so that errors do not drown everything.
                let one = self.one_column(fuel - 1, &inner());
                let limit = Some(HirScalar::Literal(Value::Int8(1), SqlType::Int8.not_null()));
                let top = Hir::TopK { input: Box::new(one), group_key: vec![], order_by: vec![], limit, offset: None, with_ties: false };
                HirScalar::Subquery(Box::new(top), int())
            }
            7 => {
                let mut r = self.reduce(fuel - 1, &inner(), Some(true));
                if r.arity() != 1 {
                    r = Hir::Project { input: Box::new(r), outputs: vec![0] };
                }
                HirScalar::Subquery(Box::new(r), int())
            }
            8 => {
                let input = self.one_column(fuel - 1, &inner());
                let ty = SqlType::Array(Box::new(SqlType::Int4)).not_null();
                let array = HirScalar::ArraySubquery {
                    input: Box::new(input),
                    order_by: vec![ColumnOrder { column: 0, desc: true, nulls_last: false }],
                    column: 0,
                    ty,
                };
                let length = HirScalar::Literal(Value::Int4(1), SqlType::Int4.not_null());
                HirScalar::Call { func: func(2176), args: vec![array, length], ty: int() }
            }
            9 => {
                // A division that CASE keeps from failing.
                let by = self.column(0, n);
                let zero = HirScalar::Literal(Value::Int4(0), SqlType::Int4.not_null());
                let is_zero = HirScalar::Call { func: func(65), args: vec![by.clone(), zero.clone()], ty: SqlType::Bool.nullable() };
                let by = deeper(by);
                let divided = HirScalar::Call { func: func(154), args: vec![self.column(0, 1), by], ty: int() };
                let input = self.one_column(fuel - 1, &inner());
                let mapped = Hir::Map { input: Box::new(input), scalars: vec![divided] };
                let a = HirAggregate {
                    func: agg(2116),
                    args: vec![HirScalar::Column(ColumnRef { level: 0, column: 1 }, int())],
                    direct: 0,
                    distinct: false,
                    filter: None,
                    order_by: vec![],
                    ty: int(),
                };
                let sub = Hir::Reduce { input: Box::new(mapped), group_key: vec![], aggregates: vec![a], scalar: true };
                HirScalar::Case { branches: vec![(is_zero, zero)], otherwise: Box::new(HirScalar::Subquery(Box::new(sub), int())), ty: int() }
            }
            _ => HirScalar::Subquery(Box::new(self.one_column(fuel - 1, &inner())), int()),
        }
    }

    fn bool(&mut self, fuel: usize, n: usize, scope: &Scope) -> HirScalar {
        let inner = || {
            let mut s = scope.clone();
            s.outer.push(n);
            s
        };
        let compare = |oid, a, b| HirScalar::Call { func: func(oid), args: vec![a, b], ty: SqlType::Bool.nullable() };
        let oid = [65, 66, 144][self.rng.below(3)];
        match self.rng.below(if fuel == 0 { 6 } else { 12 }) {
            0..=2 => {
                let (a, b) = (self.int(fuel.saturating_sub(1), n, scope), self.int(0, n, scope));
                compare(oid, a, b)
            }
            3 => HirScalar::IsNull(Box::new(self.int(0, n, scope))),
            4 => HirScalar::Not(Box::new(self.bool(fuel.saturating_sub(1), n, scope))),
            5 => {
                let f = fuel.saturating_sub(1);
                let parts = vec![self.bool(f, n, scope), self.bool(f, n, scope)];
                if self.rng.chance(50) {
                    HirScalar::And(parts)
                } else {
                    HirScalar::Or(parts)
                }
            }
            6..=8 => HirScalar::Exists(Box::new(self.relation(fuel - 1, &inner()))),
            _ => {
                let input = self.one_column(fuel - 1, &inner());
                let a = self.int(0, n, scope);
                let a = deeper(a);
                let comparison = compare(oid, a, HirScalar::Column(ColumnRef { level: 0, column: 0 }, int()));
                let quantifier = if self.rng.chance(50) { Quantifier::Any } else { Quantifier::All };
                HirScalar::Quantified { quantifier, comparison: Box::new(comparison), input: Box::new(input) }
            }
        }
    }
}

/// The scalar one row further in.
fn deeper(s: HirScalar) -> HirScalar {
    match s {
        HirScalar::Column(c, t) => HirScalar::Column(ColumnRef { level: c.level + 1, ..c }, t),
        HirScalar::Coalesce(xs, t) => HirScalar::Coalesce(xs.into_iter().map(deeper).collect(), t),
        other => other,
    }
}
