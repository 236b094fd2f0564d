//! Aggregating one group from its rows: the form that serves every aggregate at any kind of time, at a cost of O(group).

use crate::arrange::Layout;
use expr::agg::{of_tuples, write_order_key, AggKind};
use expr::{Aggregate, ColumnOrder, EvalCtx, Scalar};
use repr::{ColType, Diff, RowCodec, SqlError, Value};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Where one aggregate finds what it reads in the wide row.
#[derive(Clone)]
pub struct AggInput {
    pub agg: Aggregate,
    pub args: Range<usize>,
    pub filter: Option<usize>,
    pub order: Vec<ColumnOrder>,
    pub types: Vec<ColType>,
}

impl AggInput {
    /// Appends the expressions that `agg` reads to the wide row. An argument is evaluated only where the filter holds.
    pub fn new(agg: &Aggregate, input: &[ColType], exprs: &mut Vec<Scalar>, wide: &mut Vec<ColType>) -> AggInput {
        let guarded = |s: &Scalar| match &agg.filter {
            None => s.clone(),
            Some(f) => {
                let ty = s.typ(input).with_nullable(true);
                let otherwise = Scalar::Literal(Value::Null, ty.clone());
                Scalar::Case { branches: vec![(f.clone(), s.clone())], otherwise: Box::new(otherwise), ty }
            }
        };
        let mut add = |s: Scalar| {
            wide.push(s.typ(input));
            exprs.push(s);
            wide.len() - 1
        };
        let filter = agg.filter.clone().map(&mut add);
        let first = agg.args.iter().map(|a| add(guarded(a))).min();
        let order = agg.order_by.iter().map(|(s, o)| ColumnOrder { column: add(guarded(s)), ..*o }).collect();
        let first = first.unwrap_or(0);
        let args = first..first + agg.args.len();
        let types = wide[args.clone()].to_vec();
        AggInput { agg: agg.clone(), args, filter, order, types }
    }
    /// Whether a state that adds up is enough.
    pub fn accumulates(&self) -> bool {
        matches!(self.agg.func.kind, AggKind::Accumulable(_)) && !self.agg.distinct
    }
    /// As `accumulates`, once the arguments are made distinct.
    pub fn accumulates_distinct(&self) -> bool {
        matches!(self.agg.func.kind, AggKind::Accumulable(_)) && self.agg.distinct && !self.agg.args.is_empty()
    }
    /// For min and max: whether it is max.
    pub fn extremum(&self) -> Option<bool> {
        match &self.agg.func.kind {
            AggKind::Extremum { max } => Some(*max),
            _ => None,
        }
    }
    /// Whether the aggregate sees the row at all.
    pub fn admits(&self, row: &[Value]) -> bool {
        self.filter.is_none_or(|f| row[f] == Value::Bool(true))
    }
}

/// Evaluates groups.
pub struct Group {
    layout: Rc<Layout>,
    arity: usize,
    inputs: Vec<AggInput>,
    ctx: Arc<EvalCtx>,
    wide: Vec<ColType>,
    /// Key columns whose display form is a member's own, to be chosen.
    forms: RowCodec,
}

impl Group {
    pub fn new(layout: Rc<Layout>, arity: usize, inputs: Vec<AggInput>, ctx: Arc<EvalCtx>) -> Group {
        let wide = layout.types.clone();
        let forms = RowCodec::new(wide[..arity].to_vec());
        Group { layout, arity, inputs, ctx, wide, forms }
    }

    /// The output row of a group that has rows.
    pub fn row(&self, key: &[u8], vals: &[(&[u8], Diff)]) -> Result<Vec<Value>, SqlError> {
        let mut rows: Vec<(Vec<Value>, Diff)> = Vec::with_capacity(vals.len());
        for (v, n) in vals {
            self.ctx.interrupt.check()?;
            rows.push((self.layout.decode_row(key, v), *n));
        }
        let mut out = least_form(&self.forms, self.arity, rows.iter().map(|r| &r.0[..]));
        for input in &self.inputs {
            out.push(self.aggregate(input, &rows)?);
        }
        Ok(out)
    }

    fn aggregate(&self, input: &AggInput, rows: &[(Vec<Value>, Diff)]) -> Result<Value, SqlError> {
        let admitted = rows.iter().filter(|(r, _)| input.admits(r));
        let codec = RowCodec::new(input.types.clone());
        let mut keyed: Vec<(Vec<u8>, Vec<Value>, Diff)> = admitted
            .map(|(r, n)| {
                let mut sort = Vec::new();
                for o in &input.order {
                    write_order_key(&r[o.column], &self.wide[o.column].ty, o, &mut sort);
                }
                let args = r[input.args.clone()].to_vec();
                codec.encode_row(&args, &mut sort);
                (sort, args, *n)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        let mut tuples: Vec<(Vec<Value>, Diff)> = keyed.into_iter().map(|(_, a, n)| (a, n)).collect();
        if input.agg.distinct {
            tuples = distinct(tuples, &input.types);
        }
        of_tuples(&input.agg, &tuples, &input.types, &self.ctx)
    }
}

/// The first of each class of SQL-equal tuples, once.
fn distinct(rows: Vec<(Vec<Value>, Diff)>, types: &[ColType]) -> Vec<(Vec<Value>, Diff)> {
    let codec = RowCodec::new(types.to_vec());
    let mut seen = std::collections::BTreeSet::new();
    rows.into_iter()
        .filter_map(|(r, _)| {
            let mut key = Vec::new();
            codec.encode_key(&r, &mut key);
            seen.insert(key).then_some((r, 1))
        })
        .collect()
}

/// The group key's columns as the least of the members' display forms.
pub fn least_form<'a>(codec: &RowCodec, arity: usize, rows: impl Iterator<Item = &'a [Value]>) -> Vec<Value> {
    let mut rows = rows.map(|r| &r[..arity]);
    let Some(mut best) = rows.next() else { return Vec::new() };
    if codec.types().iter().any(|t| t.ty.equal_is_not_identical()) {
        let bytes = |r: &[Value]| {
            let mut b = Vec::new();
            codec.encode_row(r, &mut b);
            b
        };
        let mut least = bytes(best);
        for r in rows {
            let b = bytes(r);
            if b < least {
                (best, least) = (r, b);
            }
        }
    }
    best.to_vec()
}
