//! FROM: relations, subqueries, functions, joins.
//!
//! A FROM item becomes a relation and the names of its columns, positions counted from the item's own first column. An item that may be
//! lateral (a function, LATERAL) is bound with its left neighbours as one more enclosing level; if it turns out not to read them, the
//! level is taken out again and the join is a plain one.

use super::scope::{row_type_of, Clause, Env, Level, NsCol, NsItem};
use super::walk::{hir_reads_level, renumber_locals, rewrite, shift_hir};
use super::Binder;
use crate::ast::*;
use crate::catalog::{Relation, RelationKind};
use crate::hir::{ColumnRef, Hir, HirScalar, JoinKind};
use expr::catalog::{pseudo, CastContext};
use expr::ColumnOrder;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};
use std::rc::Rc;

/// A bound FROM item.
pub struct Part {
    pub hir: Hir,
    pub types: Vec<ColType>,
    pub items: Vec<NsItem>,
    /// The order in which the rows come, as they do in Postgres: a subquery's, a function's, that of a list of VALUES; of a table, that of
    /// its primary key. What is not told another order takes it.
    pub order: Vec<ColumnOrder>,
    /// No ORDER BY asks for that order.
    pub natural: bool,
    /// All rows are those of system relations.
    pub system: bool,
}

pub fn true_() -> HirScalar {
    HirScalar::Literal(Value::Bool(true), SqlType::Bool.not_null())
}

pub fn unit() -> Hir {
    Hir::Constant { rows: vec![(Vec::new(), 1)], types: Vec::new() }
}

/// Says of a relation that is not found in a part of FROM that it stands beside that part.
pub fn beside(e: SqlError, items: &[NsItem]) -> SqlError {
    let name = e.message.strip_prefix("missing FROM-clause entry for table \"").and_then(|m| m.strip_suffix('"'));
    match name.filter(|n| items.iter().any(|i| i.rel_visible && i.name == **n)) {
        Some(name) => {
            let hint = format!("There is an entry for table \"{name}\", but it cannot be referenced from this part of the query.");
            let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
            SqlError { message, ..e }.with_hint(hint)
        }
        None => e,
    }
}

/// A view's query and the order that it asks for. Columns that only the order needs are added behind the others.
fn ordered(h: Hir) -> (Hir, Vec<ColumnOrder>) {
    match h {
        Hir::Project { input, mut outputs } => match &*input {
            Hir::TopK { group_key, order_by, .. } if group_key.is_empty() && !order_by.is_empty() => {
                let mut place = |c: usize| match outputs.iter().position(|o| *o == c) {
                    Some(p) => p,
                    None => {
                        outputs.push(c);
                        outputs.len() - 1
                    }
                };
                let order = order_by.iter().map(|o| ColumnOrder { column: place(o.column), ..*o }).collect();
                (Hir::Project { input, outputs }, order)
            }
            _ => (Hir::Project { input, outputs }, Vec::new()),
        },
        Hir::TopK { ref group_key, ref order_by, .. } if group_key.is_empty() => {
            let order = order_by.clone();
            (h, order)
        }
        other => (other, Vec::new()),
    }
}

impl Binder<'_> {
    /// The FROM list as one relation.
    pub fn from_list(&self, from: &[TableRef], env: &Env) -> Result<Part, SqlError> {
        let env = &env.entered();
        let mut acc: Option<Part> = None;
        for t in from {
            acc = Some(match acc {
                None => self.table_ref(t, env)?,
                Some(left) => {
                    let (right, lateral) = self.right_item(t, &left, env, JoinKind::Inner)?;
                    self.check_aliases(&left.items, &right.items, t)?;
                    self.join_parts(left, right, true_(), JoinKind::Inner, lateral)
                }
            });
        }
        Ok(acc.unwrap_or_else(|| Part { hir: unit(), types: Vec::new(), items: Vec::new(), order: Vec::new(), natural: true, system: false }))
    }

    /// Binds `t` where it may refer to `left`; says whether it does.
    fn right_item(&self, t: &TableRef, left: &Part, env: &Env, kind: JoinKind) -> Result<(Part, bool), SqlError> {
        if !may_be_lateral(t) {
            return self.table_ref(t, env).map(|right| (right, false)).map_err(|e| beside(e, &left.items));
        }
        let level = Rc::new(Level::new(left.items.clone(), Clause::FromFunction));
        let mut right = self.table_ref(t, &env.push_lateral(level))?;
        if hir_reads_level(&mut right.hir, 1) {
            if matches!(kind, JoinKind::Right | JoinKind::Full) {
                let name = left.items.first().map_or("", |i| i.name.as_str());
                return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, format!("invalid reference to FROM-clause entry for table \"{name}\""))
                    .with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference."));
            }
            return Ok((right, true));
        }
        shift_hir(&mut right.hir, 2, -1);
        Ok((right, false))
    }

    fn join_parts(&self, left: Part, right: Part, on: HirScalar, kind: JoinKind, lateral: bool) -> Part {
        let n = left.types.len();
        // A function is run for one row of the left side after the other. System relations are small, and programs rely on how their rows come:
        // columns in their table's order, whatever they are joined with.
        let called = matches!(right.hir, Hir::CallTable { .. } | Hir::RowsFrom { .. }) && matches!(kind, JoinKind::Inner | JoinKind::Left);
        let in_turn = called || left.system && right.system && matches!(kind, JoinKind::Inner | JoinKind::Left);
        let system = left.system && (right.system || called);
        let (mut order, natural) = if in_turn { (left.order, left.natural) } else { (Vec::new(), true) };
        if in_turn {
            order.extend(right.order.iter().map(|o| ColumnOrder { column: n + o.column, ..*o }));
        }
        let mut items = left.items;
        let mut moved = right.items;
        for i in &mut moved {
            i.shift(n);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            items.iter_mut().for_each(extend_with_null);
        }
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            moved.iter_mut().for_each(extend_with_null);
        }
        items.extend(moved);
        let hir = Hir::Join { left: Box::new(left.hir), right: Box::new(right.hir), on, kind, lateral };
        let mut types = left.types;
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            types.iter_mut().for_each(|t| t.nullable = true);
        }
        let null_right = matches!(kind, JoinKind::Left | JoinKind::Full);
        types.extend(right.types.into_iter().map(|t| if null_right { t.with_nullable(true) } else { t }));
        Part { hir, types, items, order, natural, system }
    }

    fn check_aliases(&self, left: &[NsItem], right: &[NsItem], t: &TableRef) -> Result<(), SqlError> {
        for r in right.iter().filter(|r| r.rel_visible && !r.name.is_empty()) {
            let clash = left.iter().any(|l| l.rel_visible && l.name == r.name && (l.schema.is_none() || r.schema.is_none() || l.schema == r.schema));
            if clash {
                return Err(SqlError::new(state::DUPLICATE_ALIAS, format!("table name \"{}\" specified more than once", r.name)).at(position(t)));
            }
        }
        Ok(())
    }

    pub fn table_ref(&self, t: &TableRef, env: &Env) -> Result<Part, SqlError> {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || match t {
            TableRef::Relation { name, alias } => self.relation(name, alias.as_ref(), env),
            TableRef::Subquery { lateral, query, alias } => {
                let inner = if *lateral { env.clone() } else { env.masked() };
                let b = self.query(query, &inner, true)?;
                let (names, order, natural, system) = (b.names.clone(), b.order.clone(), b.natural, b.system);
                // Columns that only the order needs stay, without a name.
                let hir = if order.is_empty() { b.into_relation() } else { b.limited() };
                let types = hir.types();
                let Some(alias) = alias else {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "subquery in FROM must have an alias")
                        .with_hint("For example, FROM (SELECT ...) [AS] foo.")
                        .at(query.pos));
                };
                let item = named_item(&alias.name.name, names, &types);
                let mut part = Part { hir, types, items: vec![item], order, natural, system };
                apply_columns(&mut part.items[0], alias)?;
                Ok(part)
            }
            TableRef::Function { functions, ordinality, alias, columns, rows_from, .. } => {
                self.function_item(functions, *rows_from, *ordinality, alias.as_ref(), columns, env)
            }
            TableRef::Join { left, right, kind, cond, alias, pos } => self.join(left, right, *kind, cond, alias.as_ref(), *pos, env),
        })
    }

    fn relation(&self, name: &ObjectName, alias: Option<&Alias>, env: &Env) -> Result<Part, SqlError> {
        if let [n] = name.parts.as_slice() {
            if let Some(cte) = env.ctes.find(n) {
                if let Some((code, m)) = &cte.forbidden {
                    return Err(SqlError::new(*code, m.clone()).at(name.pos));
                }
                cte.used.set(true);
                let (order, natural) = cte.order.clone();
                let hir = Hir::GetLocal { id: cte.id, types: cte.types.clone() };
                let mut item = named_item(alias.map_or(n, |a| &a.name.name), cte.names.clone(), &cte.types);
                if let Some(a) = alias {
                    apply_columns(&mut item, a)?;
                }
                return Ok(Part { hir, types: cte.types.clone(), items: vec![item], order, natural, system: false });
            }
        }
        let rel = self.resolve_relation(name)?;
        let (hir, mut order) = ordered(self.relation_hir(&rel, name.pos)?);
        let mut types = rel.desc.types.clone();
        types.extend(hir.types().into_iter().skip(types.len()));
        let mut item = named_item(alias.map_or(&rel.name.name, |a| &a.name.name), rel.desc.names.clone(), &types);
        item.schema = alias.is_none().then(|| rel.name.schema.clone());
        item.row_oid = match row_type_of(&rel) {
            SqlType::Record(r) => r.oid,
            _ => pseudo::RECORD,
        };
        item.hidden = alias.filter(|a| a.name.name != rel.name.name).map(|_| rel.name.name.clone());
        item.rel_oid = rel.oid;
        item.rel = Some(rel.id);
        item.key = rel.primary_key().cloned().filter(|_| matches!(rel.kind, RelationKind::Table));
        let natural = order.is_empty();
        if let (true, Some(key)) = (natural, &item.key) {
            order = key.iter().map(|k| ColumnOrder { column: item.cols[*k].pos, desc: false, nulls_last: true }).collect();
        }
        if let (true, RelationKind::Builtin) = (natural, &rel.kind) {
            order = catalog_order(&rel.desc.names).into_iter().map(|column| ColumnOrder { column, desc: false, nulls_last: true }).collect();
        }
        if let Some(a) = alias {
            apply_columns(&mut item, a)?;
            item.row_names = (!a.columns.is_empty() && item.row_oid != pseudo::RECORD).then(|| rel.desc.names.clone());
            item.aliased = a.columns.len();
        }
        self.note_alias(name, alias.map(|a| a.name.pos), &item);
        let system = matches!(rel.kind, RelationKind::Builtin);
        Ok(Part { hir, types, items: vec![item], order, natural, system })
    }

    /// The relation a name means; it is noted as a dependency and where the text mentions it.
    pub fn resolve_relation(&self, name: &ObjectName) -> Result<Rc<Relation>, SqlError> {
        let rel = self.catalog.resolve_relation(&name.parts).map_err(|e| e.at(name.pos))?;
        let Some(rel) = rel else { return Err(self.undefined_relation(name)) };
        self.depends_on.borrow_mut().insert(rel.id);
        self.note_relation(name, &rel);
        Ok(Rc::new((*rel).clone()))
    }

    pub fn undefined_relation(&self, name: &ObjectName) -> SqlError {
        SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")).at(name.pos)
    }

    /// Reading a relation; a plain view is put in place.
    pub fn relation_hir(&self, rel: &Relation, pos: Pos) -> Result<Hir, SqlError> {
        match &rel.kind {
            RelationKind::View(body) => {
                let mut h = (**body).clone();
                renumber_locals(&mut h, &mut || self.fresh_local());
                Ok(h)
            }
            RelationKind::Tables => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("source \"{}\" has no rows of its own", rel.name.name))
                .with_hint("Read one of its tables; CREATE TABLE … FROM SOURCE makes more.")
                .at(pos)),
            RelationKind::Other => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot open relation \"{}\"", rel.name.name))
                .with_detail("This operation is not supported for indexes.")
                .at(pos)),
            _ => Ok(Hir::Get { id: rel.id, types: rel.desc.types.clone(), keys: rel.desc.keys.clone() }),
        }
    }

    fn function_item(
        &self,
        functions: &[(Expr, Vec<ColumnDecl>)],
        rows_from: bool,
        ordinality: bool,
        alias: Option<&Alias>,
        columns: &[ColumnDecl],
        env: &Env,
    ) -> Result<Part, SqlError> {
        let mut parts: Vec<(Hir, Vec<String>, bool)> = Vec::new();
        for (f, decls) in functions {
            let decls = if decls.is_empty() && !rows_from { columns } else { decls };
            parts.extend(self.table_function(f, decls, rows_from, env)?);
        }
        let scalar = parts.len() == 1 && parts[0].2;
        let default_name = match &*functions[0].0.kind {
            ExprKind::Func(c) => c.name.last().map_or(String::new(), |n| n.name.clone()),
            _ => super::query::figure_name(&functions[0].0).unwrap_or_else(|| "?column?".into()),
        };
        let mut names: Vec<String> = parts.iter().flat_map(|p| p.1.clone()).collect();
        // One function's one plain column is named by the alias, unless it has a name of its own (json_array_elements).
        if scalar && !(matches!(parts[0].0, Hir::CallTable { .. }) && names[0] != default_name) {
            if let Some(a) = alias {
                names[0] = a.name.name.clone();
            }
        }
        // The number of the row is there in any case, since it is the order of the rows; ordinality gives it a name.
        let multiple = parts.len() > 1;
        let mut numbered = true;
        let hir = if multiple {
            Hir::RowsFrom { functions: parts.into_iter().map(|p| p.0).collect(), with_ordinality: true }
        } else {
            match parts.swap_remove(0).0 {
                Hir::CallTable { func, args, columns, .. } => Hir::CallTable { func, args, columns, with_ordinality: true },
                other if ordinality => Hir::RowsFrom { functions: vec![other], with_ordinality: true },
                other => {
                    numbered = false;
                    other
                }
            }
        };
        if ordinality {
            names.push("ordinality".into());
        }
        let types = hir.types();
        let mut item = named_item(alias.map_or(&default_name, |a| &a.name.name), names, &types);
        item.scalar = scalar && !ordinality;
        if let Some(a) = alias {
            apply_columns(&mut item, a)?;
        }
        let order = if numbered { vec![ColumnOrder { column: types.len() - 1, desc: false, nulls_last: true }] } else { Vec::new() };
        Ok(Part { hir, types, items: vec![item], order, natural: true, system: false })
    }

    /// Of a set-returning function among the arguments, the call around it is told first, if there is no such function.
    fn of_outer_call(&self, e: SqlError, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> SqlError {
        let Some(level) = env.level().filter(|_| e.code == state::FEATURE_NOT_SUPPORTED) else { return e };
        level.calls.clause.set(Clause::Select);
        let outer = self.call_args(call, env).and_then(|(args, names, _, variadic)| {
            let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
            self.function(name, &types, &names, variadic, pos)
        });
        match outer {
            Err(outer) if outer.code == state::UNDEFINED_FUNCTION => outer,
            _ => e,
        }
    }

    /// One function in FROM: its relation, column names, and whether it gives one plain column. `unnest(a, b)` gives several.
    #[allow(clippy::type_complexity)]
    fn table_function(&self, f: &Expr, decls: &[ColumnDecl], rows_from: bool, env: &Env) -> Result<Vec<(Hir, Vec<String>, bool)>, SqlError> {
        // The function's arguments see the neighbours and outer rows as levels from 1: there is no row of its own.
        let own = Rc::new(Level::new(Vec::new(), Clause::FromFunction));
        let inner = env.push(own);
        if let ExprKind::Func(call) = &*f.kind {
            let name: Vec<&str> = call.name.iter().map(|n| n.name.as_str()).collect();
            if name.last() == Some(&"unnest") && call.args.len() > 1 {
                let mut out = Vec::new();
                for a in &call.args {
                    let one = FuncCall { args: vec![a.clone()], ..call.clone() };
                    out.extend(self.table_function(&Expr::new(ExprKind::Func(one), f.pos), &[], rows_from, env)?);
                }
                return Ok(out);
            }
            if name.last() == Some(&"ts_stat") {
                if let Some(made) = self.ts_stat(call, &inner, f.pos)? {
                    return Ok(vec![made]);
                }
            }
            let kind = self.kind_of(&name, false);
            if matches!(kind, Some(expr::catalog::ProcKind::Function)) && call.over.is_none() {
                let (args, names, positions, variadic) = self.call_args(call, &inner).map_err(|e| self.of_outer_call(e, call, &name, f.pos, &inner))?;
                let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
                if let Ok(r) = self.function(&name, &types, &names, variadic, f.pos) {
                    if r.proc.returns_set {
                        return self.set_function(&r, args, &positions, decls, f.pos).map(|x| vec![x]);
                    }
                    let e = self.plain_call(r, args, &positions)?;
                    return self.scalar_function(e, f, decls).map(|x| vec![x]);
                }
            }
        }
        let e = self.expr(f, &inner)?;
        let e = self.text_if_unknown(e, f.pos)?;
        self.scalar_function(e, f, decls).map(|x| vec![x])
    }

    /// `ts_stat` of a query that is written as a literal: the query's words, counted. `None`: the query is made when it runs.
    fn ts_stat(&self, call: &FuncCall, env: &Env, pos: Pos) -> Result<Option<(Hir, Vec<String>, bool)>, SqlError> {
        let texts: Option<Vec<&str>> = call.args.iter().map(|a| if let ExprKind::String(s) = &*a.expr.kind { Some(s.as_str()) } else { None }).collect();
        let (query, weights) = match texts.as_deref() {
            Some([query]) => (query.trim().trim_end_matches(';'), None),
            Some([query, weights]) => (query.trim().trim_end_matches(';'), Some(*weights)),
            _ => return Ok(None),
        };
        let count = match weights {
            None => "coalesce(pg_catalog.cardinality(u.positions), 1)".to_owned(),
            Some(w) => {
                let wanted: Vec<String> = w.to_ascii_uppercase().chars().filter(|c| matches!(c, 'A'..='D')).map(String::from).collect();
                format!("(SELECT pg_catalog.count(*) FROM pg_catalog.unnest(u.weights) AS w WHERE w = ANY ('{{{}}}'::pg_catalog.text[]))", wanted.join(","))
            }
        };
        // Its names are those of the text in the literal, not of the statement's.
        let names = self.names.take();
        let bound = (|| {
            let b = self.query(&crate::parse::parse_query(query)?, &env.masked(), true)?;
            let types = b.into_relation().types();
            if types.len() != 1 || *types[0].ty.base() != SqlType::TsVector {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "ts_stat query must return one tsvector column"));
            }
            let counted = format!(
                "SELECT u.lexeme AS word, pg_catalog.count(*)::pg_catalog.int4 AS ndoc, pg_catalog.sum({count})::pg_catalog.int4 AS nentry \
                 FROM ({query}) AS q(v), LATERAL pg_catalog.unnest(q.v) AS u WHERE {count} > 0 GROUP BY u.lexeme"
            );
            self.query(&crate::parse::parse_query(&counted)?, &env.masked(), true)
        })();
        self.names.replace(names);
        let b = bound.map_err(|e| SqlError { position: None, ..e }.at(pos))?;
        let names = b.names.clone();
        Ok(Some((b.into_relation(), names, false)))
    }

    fn decl_types(&self, decls: &[ColumnDecl]) -> Result<(Vec<String>, Vec<ColType>), SqlError> {
        let mut out = (Vec::new(), Vec::new());
        for d in decls {
            out.0.push(d.name.name.clone());
            out.1.push(self.resolve_type(&d.ty)?);
        }
        Ok(out)
    }

    fn set_function(
        &self,
        r: &super::func::Resolved,
        args: Vec<HirScalar>,
        positions: &[Pos],
        decls: &[ColumnDecl],
        pos: Pos,
    ) -> Result<(Hir, Vec<String>, bool), SqlError> {
        let ret = self.return_type(r.proc, &r.ret, &[]);
        let record = matches!(&ret, SqlType::Record(t) if t.fields.is_empty());
        // Rows like a row that is given have its fields, whatever the list calls them.
        let anonymous = matches!(&ret, SqlType::Record(t) if t.name.is_none() && !t.fields.is_empty());
        let given = anonymous && (r.proc.name.contains("_populate_record") || r.proc.name == "unnest" && !decls.is_empty());
        if (record || given) && decls.is_empty() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "a column definition list is required for functions returning \"record\"").at(pos));
        }
        if !record && !given && !decls.is_empty() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "a column definition list is only allowed for functions returning \"record\"").at(pos));
        }
        let (func, mut columns, mut names, mut args) = self.table_call(r, args, positions, pos)?;
        if record {
            (names, columns) = self.decl_types(decls)?;
            // The function cannot see the names otherwise.
            let list = Value::array(names.iter().cloned().map(Value::Text).collect());
            args.push(HirScalar::Literal(list, SqlType::Text.array_of().not_null()));
        }
        if given {
            names = self.declared_as(&columns, decls)?;
        }
        let scalar = columns.len() == 1 && !matches!(r.ret.base(), SqlType::Record(_));
        if let SqlType::Domain(_) = &r.ret {
            if let SqlType::Record(_) = r.ret.base() {
                let n = columns.len();
                let fields = columns.iter().enumerate().map(|(column, t)| HirScalar::Column(ColumnRef { level: 0, column }, t.clone())).collect();
                let row = self.internal("row_construct", fields, r.ret.base().clone().not_null())?;
                let row = self.coerce(row, &r.ret.clone().nullable(), CastContext::Implicit, pos)?;
                let row = self.without_domain(row)?;
                let scalars = (0..n).map(|i| self.field_select(row.clone(), i)).collect::<Result<Vec<_>, _>>()?;
                let made = Hir::CallTable { func, args, columns, with_ordinality: false };
                let mapped = Hir::Map { input: Box::new(made), scalars };
                return Ok((Hir::Project { input: Box::new(mapped), outputs: (n..2 * n).collect() }, names, false));
            }
        }
        if columns.iter().any(|c| c.ty.has_domain()) && r.proc.name.starts_with("json") {
            // What it makes has not been tested.
            let plain: Vec<ColType> = columns.iter().map(ColType::without_domains).collect();
            let value = |(column, t): (usize, &ColType)| HirScalar::Column(ColumnRef { level: 0, column }, t.clone());
            let tested = plain.iter().enumerate().map(value).zip(&columns);
            let scalars = tested.map(|(e, to)| self.coerce(e, to, CastContext::Implicit, pos)).collect::<Result<Vec<_>, _>>()?;
            let n = plain.len();
            let made = Hir::CallTable { func, args, columns: plain, with_ordinality: false };
            let mapped = Hir::Map { input: Box::new(made), scalars };
            return Ok((Hir::Project { input: Box::new(mapped), outputs: (n..2 * n).collect() }, names, scalar));
        }
        Ok((Hir::CallTable { func, args, columns, with_ordinality: false }, names, scalar))
    }

    /// The names that a column definition list gives to columns that are there. Errors: 42804 where it says something else of them.
    fn declared_as(&self, columns: &[ColType], decls: &[ColumnDecl]) -> Result<Vec<String>, SqlError> {
        let (names, wanted) = self.decl_types(decls)?;
        let plural = if columns.len() == 1 { "attribute" } else { "attributes" };
        let detail = match columns.iter().zip(&wanted).position(|(c, w)| c.ty != w.ty && !(w.ty.has_bare_record() && c.ty.oid() == w.ty.oid())) {
            _ if columns.len() != wanted.len() => format!("Returned row contains {} {plural}, but query expects {}.", columns.len(), wanted.len()),
            Some(i) => {
                format!("Returned type {} at ordinal position {}, but query expects {}.", columns[i].ty.sql_name(), i + 1, wanted[i].ty.sql_name())
            }
            None => return Ok(names),
        };
        Err(SqlError::new(state::DATATYPE_MISMATCH, "function return row and query-specified return row do not match").with_detail(detail))
    }

    /// A plain function in FROM is a relation of one row; a row type spreads into columns.
    fn scalar_function(&self, e: HirScalar, f: &Expr, decls: &[ColumnDecl]) -> Result<(Hir, Vec<String>, bool), SqlError> {
        // Bound with a level of its own that has no columns: a one-row relation takes that place.
        let e = if matches!(e.typ().ty.base(), SqlType::Record(_)) { self.without_domain(e)? } else { e };
        let ty = e.typ();
        let name = super::query::figure_name(f).unwrap_or_else(|| "?column?".into());
        if let SqlType::Record(r) = &ty.ty {
            let anonymous = r.oid == pseudo::RECORD && r.name.is_none();
            let given = anonymous && !r.fields.is_empty() && matches!(&e, HirScalar::Call { func, .. } if func.name.ends_with("_populate_record"));
            let record = r.fields.is_empty() || anonymous && !decls.is_empty();
            if (record || given) && decls.is_empty() {
                return Err(SqlError::new(state::SYNTAX_ERROR, "a column definition list is required for functions returning \"record\"").at(f.pos));
            }
            if given {
                let columns: Vec<ColType> = r.fields.iter().map(|f| f.1.clone()).collect();
                let names = self.declared_as(&columns, decls)?;
                let fields = (0..names.len()).map(|i| self.field_select(column_of(&e, 0), i)).collect::<Result<Vec<_>, _>>()?;
                return Ok((spread(e, fields), names, false));
            }
            if record {
                let (names, columns) = self.decl_types(decls)?;
                let n = columns.len();
                let want = SqlType::Record(std::sync::Arc::new(repr::types::RecordType {
                    oid: pseudo::RECORD,
                    array_oid: 0,
                    name: None,
                    fields: names.iter().cloned().zip(columns.iter().cloned()).collect(),
                }));
                // json_to_record and its like make the row in the shape that the call's type says.
                let e = match e {
                    HirScalar::Call { func, args, .. } if want.has_domain() => {
                        let made = HirScalar::Call { func, args, ty: want.without_domains().nullable() };
                        self.coerce(made, &want.nullable(), CastContext::Implicit, f.pos)?
                    }
                    HirScalar::Call { func, args, .. } => HirScalar::Call { func, args, ty: want.nullable() },
                    other => self.coerce(other, &want.nullable(), CastContext::Implicit, f.pos)?,
                };
                let fields = (0..n).map(|i| self.field_select(column_of(&e, 0), i)).collect::<Result<Vec<_>, _>>()?;
                return Ok((spread(e, fields), names, false));
            }
            let names: Vec<String> = r.fields.iter().map(|x| x.0.clone()).collect();
            let fields = (0..names.len()).map(|i| self.field_select(column_of(&e, 0), i)).collect::<Result<Vec<_>, _>>()?;
            return Ok((spread(e, fields), names, false));
        }
        if !decls.is_empty() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "a column definition list is only allowed for functions returning \"record\"").at(f.pos));
        }
        Ok((Hir::Map { input: Box::new(unit()), scalars: vec![e] }, vec![name], true))
    }

    #[allow(clippy::too_many_arguments)]
    fn join(&self, left: &TableRef, right: &TableRef, kind: JoinType, cond: &JoinCond, alias: Option<&Alias>, pos: Pos, env: &Env) -> Result<Part, SqlError> {
        let hir_kind = match kind {
            JoinType::Inner | JoinType::Cross => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::Right => JoinKind::Right,
            JoinType::Full => JoinKind::Full,
        };
        let l = self.table_ref(left, env)?;
        let (r, lateral) = self.right_item(right, &l, env, hir_kind)?;
        self.check_aliases(&l.items, &r.items, right)?;
        let mut part = match cond {
            JoinCond::None => self.join_parts(l, r, true_(), hir_kind, lateral),
            JoinCond::On(e) => {
                let n = l.types.len();
                let mut items = l.items.clone();
                items.extend(r.items.iter().cloned().map(|mut i| {
                    i.shift(n);
                    i
                }));
                let level = Rc::new(Level::new(items, Clause::JoinOn));
                let on = self.condition(e, &env.masked().push(level), "JOIN/ON")?;
                self.join_parts(l, r, on, hir_kind, lateral)
            }
            JoinCond::Natural => {
                let rnames: Vec<&str> = visible(&r.items).map(|c| c.name.as_str()).collect();
                let mut names: Vec<Ident> = Vec::new();
                for c in visible(&l.items) {
                    if rnames.contains(&c.name.as_str()) && !names.iter().any(|n| n.name == c.name) {
                        names.push(Ident { name: c.name.clone(), pos });
                    }
                }
                self.join_using(l, r, &names, None, hir_kind, lateral, pos)?
            }
            JoinCond::Using(names, using_alias) => self.join_using(l, r, names, using_alias.as_ref(), hir_kind, lateral, pos)?,
        };
        if let Some(a) = alias {
            // The join as a whole has a name: what is inside cannot be named any more.
            part.items.iter().for_each(|i| self.note_whole(i));
            let cols: Vec<NsCol> = visible(&part.items).cloned().collect();
            let mut item = NsItem {
                name: a.name.name.clone(),
                schema: None,
                cols,
                rel_visible: true,
                cols_visible: true,
                row_oid: pseudo::RECORD,
                row_names: None,
                aliased: 0,
                hidden: None,
                rel_oid: 0,
                rel: None,
                scalar: false,
                null_extended: false,
                key: None,
            };
            apply_columns(&mut item, a)?;
            part.items = vec![item];
        }
        Ok(part)
    }

    #[allow(clippy::too_many_arguments)]
    fn join_using(&self, l: Part, r: Part, names: &[Ident], alias: Option<&Ident>, kind: JoinKind, lateral: bool, pos: Pos) -> Result<Part, SqlError> {
        let n = l.types.len();
        let (mut on, mut merged) = (Vec::new(), Vec::new());
        for (i, name) in names.iter().enumerate() {
            if names[..i].iter().any(|x| x.name == name.name) {
                return Err(
                    SqlError::new(state::DUPLICATE_COLUMN, format!("column name \"{}\" appears more than once in USING clause", name.name)).at(name.pos)
                );
            }
            let find = |items: &[NsItem], side: &str| -> Result<NsCol, SqlError> {
                self.note_merged(items, &name.name);
                let mut hits = visible(items).filter(|c| c.name == name.name);
                let Some(c) = hits.next() else {
                    return Err(SqlError::new(
                        state::UNDEFINED_COLUMN,
                        format!("column \"{}\" specified in USING clause does not exist in {side} table", name.name),
                    )
                    .at(name.pos));
                };
                if hits.next().is_some() {
                    return Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("common column name \"{}\" appears more than once in {side} table", name.name))
                        .at(name.pos));
                }
                Ok(c.clone())
            };
            let (a, b) = (find(&l.items, "left")?, find(&r.items, "right")?);
            let x = HirScalar::Column(ColumnRef { level: 0, column: a.pos }, a.ty.clone());
            let y = HirScalar::Column(ColumnRef { level: 0, column: b.pos + n }, b.ty.clone());
            on.push(self.apply_binary(&super::scalar::op_at("=", pos), x.clone(), pos, y.clone(), pos)?);
            merged.push((name.name.clone(), a, b));
        }
        let on = if on.is_empty() {
            true_()
        } else if on.len() == 1 {
            on.remove(0)
        } else {
            HirScalar::And(on)
        };
        if let Some(a) = alias.filter(|a| l.items.iter().chain(&r.items).any(|i| i.rel_visible && i.name == a.name)) {
            return Err(SqlError::new(state::DUPLICATE_ALIAS, format!("table name \"{}\" specified more than once", a.name)).at(a.pos));
        }
        let mut part = self.join_parts(l, r, on, kind, lateral);
        // The merged columns: one side's where that suffices, else computed.
        let (mut cols, mut scalars) = (Vec::new(), Vec::new());
        for (name, a, b) in merged {
            let ty = self.common_type(&[(a.ty.ty.clone(), pos), (b.ty.ty.clone(), pos)], "JOIN/USING")?;
            let typmod = if a.ty.typmod == b.ty.typmod && a.ty.ty == b.ty.ty { a.ty.typmod } else { -1 };
            let side = |c: usize| HirScalar::Column(ColumnRef { level: 0, column: c }, part.types[c].clone());
            let (lc, rc) = (side(a.pos), side(b.pos + n));
            let one = match kind {
                JoinKind::Inner if lc.typ().ty != ty && rc.typ().ty == ty => Some((rc.clone(), b.pos + n)),
                JoinKind::Inner | JoinKind::Left => Some((lc.clone(), a.pos)),
                JoinKind::Right => Some((rc.clone(), b.pos + n)),
                JoinKind::Full => None,
            };
            let out = match one {
                Some((e, p)) if e.typ().ty == ty => {
                    cols.push(NsCol { name, pos: p, ty: e.typ(), whole: None });
                    continue;
                }
                Some((e, _)) => self.coerce_common(e, &ty, "JOIN/USING", pos)?,
                None => {
                    let x = self.coerce_common(lc, &ty, "JOIN/USING", pos)?;
                    let y = self.coerce_common(rc, &ty, "JOIN/USING", pos)?;
                    HirScalar::Coalesce(vec![x, y], ColType { ty, typmod, nullable: true })
                }
            };
            let p = part.types.len() + scalars.len();
            cols.push(NsCol { name, pos: p, ty: out.typ(), whole: Some(out.clone()) });
            scalars.push(out);
        }
        if !scalars.is_empty() {
            part.types.extend(scalars.iter().map(HirScalar::typ));
            part.hir = Hir::Map { input: Box::new(part.hir), scalars };
        }
        // Unqualified names and `*` see the merged columns first, then the rest of both sides.
        let rest: Vec<NsCol> = visible(&part.items).filter(|c| !names.iter().any(|n| n.name == c.name)).cloned().collect();
        let merged_item = |name: &str, cols: Vec<NsCol>, rel: bool, vis: bool| NsItem {
            name: name.into(),
            schema: None,
            cols,
            rel_visible: rel,
            cols_visible: vis,
            row_oid: pseudo::RECORD,
            row_names: None,
            aliased: 0,
            hidden: None,
            rel_oid: 0,
            rel: None,
            scalar: false,
            null_extended: false,
            key: None,
        };
        part.items.iter_mut().for_each(|i| i.cols_visible = false);
        if let Some(a) = alias {
            part.items.push(merged_item(&a.name, cols.clone(), true, false));
        }
        cols.extend(rest);
        part.items.push(merged_item("", cols, false, true));
        Ok(part)
    }

    /// `*` and `t.*`: name, column, and position for errors. `except`: names that the caller leaves out.
    pub fn expand_star(&self, parts: &[Ident], env: &Env, pos: Pos, except: &dyn Fn(&str) -> bool) -> Result<Vec<(String, HirScalar, Pos)>, SqlError> {
        let Some(rel) = parts.last() else {
            let Some(level) = env.level() else { return Err(SqlError::new(state::SYNTAX_ERROR, "SELECT * with no tables specified is not valid").at(pos)) };
            let mut out = Vec::new();
            let mut any = false;
            self.note_star(level.items.iter().filter(|i| i.cols_visible), env, pos, except);
            for item in level.items.iter().filter(|i| i.cols_visible) {
                any = true;
                for (i, c) in item.cols.iter().enumerate() {
                    out.push((c.name.clone(), item.column(0, i), pos));
                }
            }
            if !any {
                return Err(SqlError::new(state::SYNTAX_ERROR, "SELECT * with no tables specified is not valid").at(pos));
            }
            return Ok(out);
        };
        match parts {
            [db, _, _] if db.name != self.catalog.database() => {
                let written: Vec<&str> = parts.iter().map(|p| p.name.as_str()).collect();
                let m = format!("cross-database references are not implemented: {}.*", written.join("."));
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).at(pos));
            }
            [_, _, _, _, ..] => return Err(SqlError::new(state::SYNTAX_ERROR, "improper qualified name (too many dotted names)").at(pos)),
            _ => {}
        }
        let schema = parts.len().checked_sub(2).map(|i| parts[i].name.as_str());
        let Some((level, item)) = self.find_item(schema, &rel.name, env, pos)? else {
            return Err(self.missing_relation(schema, &rel.name, env, pos));
        };
        self.note_star(std::iter::once(item), env, pos, except);
        Ok((0..item.cols.len()).map(|i| (item.cols[i].name.clone(), item.column(level, i), pos)).collect())
    }
}

/// The columns by which a system relation is ordered: those that say which row it is, so that what is gathered from its rows goes together.
fn catalog_order(names: &[String]) -> Vec<usize> {
    const KEYS: [&[&str]; 6] = [
        &["oid"],
        &["attrelid", "attnum"],
        &["indexrelid"],
        &["classid", "objid", "objsubid", "refobjid", "refobjsubid"],
        &["table_schema", "table_name", "ordinal_position"],
        &["constraint_schema", "constraint_name", "ordinal_position"],
    ];
    let place = |name: &&str| names.iter().position(|n| n == name);
    KEYS.iter().find_map(|key| key.iter().map(place).collect()).unwrap_or_default()
}

/// The columns that unqualified names see.
fn visible(items: &[NsItem]) -> impl Iterator<Item = &NsCol> {
    items.iter().filter(|i| i.cols_visible).flat_map(|i| i.cols.iter())
}

fn extend_with_null(i: &mut NsItem) {
    i.null_extended = true;
    i.key = None;
    for c in &mut i.cols {
        c.ty.nullable = true;
        if let Some(whole) = &mut c.whole {
            rewrite(whole, 0, &mut |s, _| {
                match s {
                    HirScalar::Column(_, t) | HirScalar::Call { ty: t, .. } | HirScalar::Coalesce(_, t) => t.nullable = true,
                    _ => {}
                }
                true
            });
        }
    }
}

fn named_item(name: &str, names: Vec<String>, types: &[ColType]) -> NsItem {
    let cols = names.into_iter().zip(types).enumerate().map(|(pos, (name, ty))| NsCol { name, pos, ty: ty.clone(), whole: None }).collect();
    NsItem {
        name: name.to_owned(),
        schema: None,
        cols,
        rel_visible: true,
        cols_visible: true,
        row_oid: pseudo::RECORD,
        row_names: None,
        aliased: 0,
        hidden: None,
        rel_oid: 0,
        rel: None,
        scalar: false,
        null_extended: false,
        key: None,
    }
}

/// `AS t(a, b)`.
fn apply_columns(item: &mut NsItem, alias: &Alias) -> Result<(), SqlError> {
    if alias.columns.len() > item.cols.len() {
        return Err(SqlError::new(
            state::INVALID_COLUMN_REFERENCE,
            format!("table \"{}\" has {} columns available but {} columns specified", alias.name.name, item.cols.len(), alias.columns.len()),
        )
        .at(alias.name.pos));
    }
    for (c, n) in item.cols.iter_mut().zip(&alias.columns) {
        c.name = n.name.clone();
    }
    Ok(())
}

/// A row of one value, `e`, spread over `fields`, which read it as column 0.
fn spread(e: HirScalar, fields: Vec<HirScalar>) -> Hir {
    let n = fields.len();
    let row = Hir::Map { input: Box::new(unit()), scalars: vec![e] };
    Hir::Project { input: Box::new(Hir::Map { input: Box::new(row), scalars: fields }), outputs: (1..=n).collect() }
}

fn column_of(e: &HirScalar, column: usize) -> HirScalar {
    HirScalar::Column(ColumnRef { level: 0, column }, e.typ())
}

/// Could this item refer to its left neighbours?
pub fn may_be_lateral(t: &TableRef) -> bool {
    match t {
        TableRef::Relation { .. } => false,
        TableRef::Subquery { lateral, .. } => *lateral,
        TableRef::Function { .. } => true,
        TableRef::Join { left, right, .. } => may_be_lateral(left) || may_be_lateral(right),
    }
}

fn position(t: &TableRef) -> Pos {
    match t {
        TableRef::Relation { name, alias } => alias.as_ref().map_or(name.pos, |a| a.name.pos),
        TableRef::Subquery { query, .. } => query.pos,
        TableRef::Function { functions, .. } => functions.first().map_or(0, |f| f.0.pos),
        TableRef::Join { pos, .. } => *pos,
    }
}
