//! SELECT, VALUES, WITH, set operations, FROM, windows.

use super::cursor::{Parser, SET_CHAIN_MAX};
use super::lex::Tok;
use crate::ast::*;
use expr::{FrameExclude, FrameUnits};
use repr::error::state;
use repr::SqlError;

/// Words that go on with a query.
const QUERY_REST: &[&str] = &["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"];

impl Parser<'_> {
    /// Does a query begin here?
    pub fn at_query_word(&self) -> bool {
        self.is_any_kw(&["select", "values", "with"]) || (self.is_kw("table") && !self.is_punct_at(1, "("))
    }

    /// Does a query begin here, after any number of parentheses beyond the first `skip` tokens?
    pub fn at_query(&self, skip: usize) -> bool {
        let mut n = skip;
        while self.is_punct_at(n, "(") {
            n += 1;
        }
        matches!(self.tok_at(n), Tok::Word(w) if matches!(w.as_str(), "select" | "values" | "with"))
            || (self.is_kw_at(n, "table") && !self.is_punct_at(n + 1, "("))
    }

    /// Is what begins here a query up to the closing parenthesis? A parenthesised one may be the first operand of an expression instead.
    pub fn at_whole_query(&self) -> bool {
        if !self.is_punct("(") {
            return true;
        }
        let (mut open, mut n) = (1, 1);
        while open > 0 && *self.tok_at(n) != Tok::Eof {
            open += usize::from(self.is_punct_at(n, "("));
            open -= usize::from(self.is_punct_at(n, ")"));
            n += 1;
        }
        self.is_punct_at(n, ")") || QUERY_REST.iter().any(|w| self.is_kw_at(n, w))
    }

    /// Can what follows only continue a query?
    pub fn at_query_rest(&self) -> bool {
        self.is_any_kw(QUERY_REST)
    }

    pub fn query(&mut self) -> Result<Query, SqlError> {
        self.deeper(|p| {
            let (pos, start) = (p.pos(), p.span().start);
            let with = p.with_opt()?;
            let first = p.set_operand(2)?;
            p.query_rest(with, first, pos, start)
        })
    }

    /// Goes on after a parenthesised query.
    pub fn query_from(&mut self, first: Query) -> Result<Query, SqlError> {
        let (pos, start) = (first.pos, first.span.start);
        let first = self.set_ops(first, 2)?;
        self.query_rest(None, first, pos, start)
    }

    fn query_rest(&mut self, with: Option<With>, first: Query, pos: Pos, start: usize) -> Result<Query, SqlError> {
        let first = self.set_ops(first, 1)?;
        // What stands behind a query in parentheses is its own: `(… LIMIT 1) ORDER BY x` orders, then takes one row.
        if let (Some(_), Some(_)) = (&with, &first.with) {
            return Err(self.error_at("multiple WITH clauses not allowed", pos));
        }
        let mut q = Query { with: with.or(first.with.clone()), ..first };
        self.query_tail(&mut q)?;
        q.pos = pos;
        q.span = self.span_from(start);
        Ok(q)
    }

    /// `AS OF time`, and not a label or alias `of`.
    fn at_as_of(&self) -> bool {
        let ends = match self.tok_at(2) {
            Tok::Eof | Tok::Punct(")" | "," | ";") => true,
            Tok::Word(w) => w == "from" || w == "where",
            _ => false,
        };
        self.is_kws(&["as", "of"]) && !ends
    }

    fn query_tail(&mut self, q: &mut Query) -> Result<(), SqlError> {
        if self.is_kws(&["order", "by"]) {
            if !q.order_by.is_empty() {
                return Err(self.error_at("multiple ORDER BY clauses not allowed", self.pos()));
            }
            q.order_by = self.order_by_opt()?;
        }
        loop {
            let pos = self.pos();
            if self.eat_kw("limit") {
                if q.limit.is_some() {
                    return Err(self.error_at("multiple LIMIT clauses not allowed", pos));
                }
                q.limit = if self.eat_kw("all") { Some(Expr::new(ExprKind::Null, pos)) } else { Some(self.expr()?) };
                if self.is_punct(",") {
                    return Err(self.error_at("LIMIT #,# syntax is not supported", pos).with_hint("Use separate LIMIT and OFFSET clauses."));
                }
            } else if self.eat_kw("offset") {
                if q.offset.is_some() {
                    return Err(self.error_at("multiple OFFSET clauses not allowed", pos));
                }
                q.offset = Some(self.expr()?);
                let _ = self.eat_kw("row") || self.eat_kw("rows");
            } else if self.is_kw("fetch") && (self.is_kw_at(1, "first") || self.is_kw_at(1, "next")) {
                self.next();
                self.next();
                if q.limit.is_some() {
                    return Err(self.error_at("multiple LIMIT clauses not allowed", pos));
                }
                let one = Expr::new(ExprKind::Number("1".into()), pos);
                q.limit = Some(if self.is_any_kw(&["row", "rows"]) { one } else { self.fetch_count()? });
                if !self.eat_kw("row") {
                    self.expect_kw("rows")?;
                }
                if self.eat_kw("with") {
                    self.expect_kw("ties")?;
                    q.with_ties = true;
                    if q.order_by.is_empty() {
                        return Err(self.error_at("WITH TIES cannot be specified without ORDER BY clause", pos));
                    }
                } else {
                    self.expect_kw("only")?;
                }
            } else if self.is_kw("for") && self.is_any_kw_at(1, &["update", "share", "no", "key"]) {
                self.next();
                let verb = if self.eat_kw("update") {
                    "FOR UPDATE"
                } else if self.eat_kw("share") {
                    "FOR SHARE"
                } else if self.eat_kw("no") {
                    self.expect_kw("key")?;
                    self.expect_kw("update")?;
                    "FOR NO KEY UPDATE"
                } else {
                    self.expect_kw("key")?;
                    self.expect_kw("share")?;
                    "FOR KEY SHARE"
                };
                let of = if self.eat_kw("of") { self.comma_list(Self::object_name)? } else { Vec::new() };
                if self.eat_kw("skip") {
                    self.expect_kw("locked")?;
                    if q.with_ties {
                        let m = "SKIP LOCKED and WITH TIES options cannot be used together";
                        return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m));
                    }
                } else {
                    let _ = self.eat_kw("nowait");
                }
                q.locking.push(Locking { verb, of });
            } else if self.eat_kws(&["for", "read", "only"]) {
            } else if self.at_as_of() {
                q.as_of = self.as_of_opt()?;
            } else {
                return Ok(());
            }
        }
    }

    fn is_any_kw_at(&self, ahead: usize, words: &[&str]) -> bool {
        words.iter().any(|w| self.is_kw_at(ahead, w))
    }

    fn fetch_count(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        match self.tok().clone() {
            Tok::Punct("(") => self.parens(Self::expr),
            Tok::Number(n) => {
                self.next();
                Ok(Expr::new(ExprKind::Number(n), pos))
            }
            Tok::Op(o) if o == "-" || o == "+" => {
                self.next();
                let n = self.integer()?;
                Ok(Expr::new(ExprKind::Number(if o == "-" { format!("-{n}") } else { n.to_string() }), pos))
            }
            _ => self.b_expr(),
        }
    }

    /// AS OF [AT LEAST] time.
    pub fn as_of_opt(&mut self) -> Result<Option<AsOf>, SqlError> {
        if !self.at_as_of() {
            return Ok(None);
        }
        self.next();
        self.next();
        let at_least = self.eat_kws(&["at", "least"]);
        Ok(Some(AsOf { at_least, time: self.expr()? }))
    }

    /// UNION and EXCEPT bind at 1, INTERSECT at 2; all to the left.
    fn set_ops(&mut self, mut left: Query, min: u8) -> Result<Query, SqlError> {
        let mut chain = 0;
        loop {
            let (op, level) = match self.tok() {
                Tok::Word(w) if w == "union" => (SetOp::Union, 1),
                Tok::Word(w) if w == "except" => (SetOp::Except, 1),
                Tok::Word(w) if w == "intersect" => (SetOp::Intersect, 2),
                _ => return Ok(left),
            };
            if level < min {
                return Ok(left);
            }
            chain += 1;
            if chain > SET_CHAIN_MAX {
                return Err(self.too_deep(&format!("a chain may have {SET_CHAIN_MAX} set operations")));
            }
            self.next();
            let all = self.eat_kw("all");
            if !all {
                self.eat_kw("distinct");
            }
            let right = self.set_operand(level + 1)?;
            let (pos, start) = (left.pos, left.span.start);
            let span = self.span_from(start);
            left = Query { span, ..Query::of(QueryBody::SetOp { op, all, left: Box::new(left), right: Box::new(right) }, pos) };
        }
    }

    /// One operand and the set operations that bind tighter than its left neighbour.
    fn set_operand(&mut self, min: u8) -> Result<Query, SqlError> {
        let (pos, start) = (self.pos(), self.span().start);
        let body = if self.is_punct("(") {
            let q = self.deeper(|p| p.parens(Self::query))?;
            return self.set_ops(q, min);
        } else if self.is_kw("values") {
            self.next();
            QueryBody::Values(self.comma_list(|p| p.parens(|p| p.comma_list(Self::value_field)))?)
        } else if self.is_kw("table") {
            self.next();
            self.eat_kw("only");
            let name = self.object_name()?;
            let star = Select::of_row(vec![Expr::new(ExprKind::Star(Vec::new()), pos)], pos);
            QueryBody::Select(Box::new(Select { from: vec![TableRef::Relation { name, alias: None }], ..star }))
        } else if self.is_kw("select") {
            QueryBody::Select(Box::new(self.select()?))
        } else {
            return Err(self.error());
        };
        let span = self.span_from(start);
        self.set_ops(Query { span, ..Query::of(body, pos) }, min)
    }

    /// An expression, or DEFAULT.
    pub fn value_field(&mut self) -> Result<Expr, SqlError> {
        if self.is_kw("default") {
            let pos = self.pos();
            self.next();
            return Ok(Expr::new(ExprKind::Default, pos));
        }
        self.expr()
    }

    fn select(&mut self) -> Result<Select, SqlError> {
        let pos = self.pos();
        self.expect_kw("select")?;
        let distinct = if self.eat_kw("distinct") {
            if self.eat_kw("on") {
                Distinct::On(self.parens(Self::expr_list)?)
            } else {
                Distinct::Distinct
            }
        } else {
            self.eat_kw("all");
            Distinct::All
        };
        let targets = if distinct == Distinct::All && self.at_target_end() { Vec::new() } else { self.comma_list(Self::target)? };
        let into = if self.eat_kw("into") {
            let temporary = self.eat_kw("temporary") || self.eat_kw("temp");
            if !temporary {
                self.eat_kw("unlogged");
            }
            self.eat_kw("table");
            let name = self.object_name()?;
            name.check_temp(temporary)?;
            Some(name.in_temp(temporary))
        } else {
            None
        };
        let from = if self.eat_kw("from") { self.comma_list(Self::table_ref)? } else { Vec::new() };
        let filter = if self.eat_kw("where") { Some(self.expr()?) } else { None };
        let (mut group_by, mut group_distinct) = (Vec::new(), false);
        if self.eat_kw("group") {
            self.expect_kw("by")?;
            group_distinct = self.eat_kw("distinct");
            if !group_distinct {
                self.eat_kw("all");
            }
            group_by = self.comma_list(Self::group_item)?;
        }
        let having = if self.eat_kw("having") { Some(self.expr()?) } else { None };
        let mut qualify = self.qualify_opt()?;
        let windows = if self.eat_kw("window") {
            self.comma_list(|p| {
                let name = p.col_id()?;
                p.expect_kw("as")?;
                Ok((name, p.window_spec()?))
            })?
        } else {
            Vec::new()
        };
        if qualify.is_none() {
            qualify = self.qualify_opt()?;
        }
        Ok(Select { distinct, targets, into, from, filter, group_by, group_distinct, having, qualify, windows, pos })
    }

    fn at_target_end(&self) -> bool {
        self.at_end()
            || self.is_punct(")")
            || self.is_punct(";")
            || self.is_any_kw(&[
                "from",
                "where",
                "into",
                "group",
                "having",
                "window",
                "union",
                "intersect",
                "except",
                "order",
                "limit",
                "offset",
                "fetch",
                "for",
            ])
    }

    pub fn target(&mut self) -> Result<Target, SqlError> {
        let pos = self.pos();
        if self.eat_op("*") {
            let except = self.except_columns()?;
            return Ok(Target { expr: Expr::new(ExprKind::Star(Vec::new()), pos), alias: None, except });
        }
        let outer = std::mem::replace(&mut self.label_depth, self.depth + 1);
        let expr = self.expr()?;
        self.label_depth = outer;
        if self.at_as_of() {
            return Ok(Target { expr, alias: None, except: Vec::new() });
        }
        if matches!(&*expr.kind, ExprKind::Star(_)) {
            let except = self.except_columns()?;
            return Ok(Target { expr, alias: None, except });
        }
        let alias = if self.eat_kw("as") { Some(self.col_label()?) } else { self.bare_label() };
        Ok(Target { expr, alias, except: Vec::new() })
    }

    /// EXCEPT (a, b) behind a star, and not the set operation.
    fn except_columns(&mut self) -> Result<Vec<Ident>, SqlError> {
        let query = |t: &Tok| matches!(t, Tok::Punct("(")) || matches!(t, Tok::Word(w) if matches!(w.as_str(), "select" | "values" | "with" | "table"));
        if !self.is_kw("except") || !self.is_punct_at(1, "(") || query(self.tok_at(2)) {
            return Ok(Vec::new());
        }
        self.next();
        self.col_id_list()
    }

    /// QUALIFY condition.
    fn qualify_opt(&mut self) -> Result<Option<Expr>, SqlError> {
        Ok(if self.at_qualify() && self.eat_kw("qualify") { Some(self.expr()?) } else { None })
    }

    /// Whether QUALIFY stands here as a clause: a relation may have it as its alias.
    fn at_qualify(&self) -> bool {
        let ends = match self.tok_at(1) {
            Tok::Eof | Tok::Punct(")" | "," | ";") => true,
            Tok::Word(w) => matches!(
                w.as_str(),
                "where"
                    | "group"
                    | "having"
                    | "window"
                    | "order"
                    | "limit"
                    | "offset"
                    | "fetch"
                    | "for"
                    | "union"
                    | "except"
                    | "intersect"
                    | "join"
                    | "inner"
                    | "left"
                    | "right"
                    | "full"
                    | "cross"
                    | "natural"
                    | "on"
                    | "using"
                    | "tablesample"
                    | "as"
                    | "returning"
                    | "set"
            ),
            _ => false,
        };
        self.is_kw("qualify") && !ends
    }

    fn group_item(&mut self) -> Result<GroupItem, SqlError> {
        if self.is_punct("(") && self.is_punct_at(1, ")") {
            self.next();
            self.next();
            return Ok(GroupItem::Empty);
        }
        if self.is_kw("rollup") && self.is_punct_at(1, "(") {
            self.next();
            return Ok(GroupItem::Rollup(self.parens(|p| p.comma_list(Self::group_list))?));
        }
        if self.is_kw("cube") && self.is_punct_at(1, "(") {
            self.next();
            return Ok(GroupItem::Cube(self.parens(|p| p.comma_list(Self::group_list))?));
        }
        if self.is_kw("grouping") && self.is_kw_at(1, "sets") {
            self.next();
            self.next();
            return Ok(GroupItem::Sets(self.parens(|p| p.comma_list(Self::group_item))?));
        }
        self.group_list()
    }

    /// An expression; an implicit row `(a, b)` is a list of group expressions.
    fn group_list(&mut self) -> Result<GroupItem, SqlError> {
        let e = self.expr()?;
        Ok(match *e.kind {
            ExprKind::Row { fields, explicit: false } => GroupItem::List(fields),
            kind => GroupItem::Expr(Expr::new(kind, e.pos)),
        })
    }

    pub fn order_by_opt(&mut self) -> Result<Vec<OrderBy>, SqlError> {
        if self.eat_kws(&["order", "by"]) {
            return self.order_by_list();
        }
        Ok(Vec::new())
    }

    pub fn order_by_list(&mut self) -> Result<Vec<OrderBy>, SqlError> {
        self.comma_list(Self::order_by_item)
    }

    pub fn order_by_item(&mut self) -> Result<OrderBy, SqlError> {
        let expr = self.expr()?;
        let mut using = None;
        let mut desc = false;
        if self.eat_kw("using") {
            using = Some(self.op_name()?.name);
        } else {
            desc = self.eat_kw("desc");
            if !desc {
                self.eat_kw("asc");
            }
        }
        let nulls_first = if self.eat_kws(&["nulls", "first"]) {
            Some(true)
        } else if self.eat_kws(&["nulls", "last"]) {
            Some(false)
        } else {
            None
        };
        Ok(OrderBy { expr, desc, nulls_first, using })
    }

    fn with_opt(&mut self) -> Result<Option<With>, SqlError> {
        if self.is_kw("with") {
            return Ok(Some(self.with()?));
        }
        Ok(None)
    }

    pub fn with(&mut self) -> Result<With, SqlError> {
        self.expect_kw("with")?;
        let mut mutual = None;
        if self.eat_kws(&["mutually", "recursive"]) {
            let mut m = Mutual::default();
            if self.eat_punct("(") {
                // A limit that is reached is an error unless the state reached is asked for.
                m.return_at_limit = self.eat_kw("return");
                if m.return_at_limit || self.eat_kw("error") {
                    self.expect_kw("at")?;
                }
                self.expect_kws(&["recursion", "limit"])?;
                self.eat_op("=");
                m.limit = Some(self.integer()?);
                self.expect_punct(")")?;
            }
            mutual = Some(m);
        }
        // A query may be named `recursive`.
        let recursive = mutual.is_none() && !self.is_kw_at(1, "as") && self.eat_kw("recursive");
        let typed = mutual.is_some();
        let ctes = self.comma_list(|p| p.cte(typed))?;
        Ok(With { recursive, ctes, mutual })
    }

    fn search_opt(&mut self) -> Result<Option<Search>, SqlError> {
        if !self.eat_kw("search") {
            return Ok(None);
        }
        let breadth_first = self.eat_kw("breadth");
        if !breadth_first {
            self.expect_kw("depth")?;
        }
        self.expect_kws(&["first", "by"])?;
        let by = self.comma_list(Self::col_id)?;
        self.expect_kw("set")?;
        Ok(Some(Search { breadth_first, by, set: self.col_id()? }))
    }

    fn cycle_opt(&mut self) -> Result<Option<Cycle>, SqlError> {
        if !self.eat_kw("cycle") {
            return Ok(None);
        }
        let pos = self.pos();
        let by = self.comma_list(Self::col_id)?;
        self.expect_kw("set")?;
        let mark = self.col_id()?;
        let mut marks = [true, false].map(|b| Expr::new(ExprKind::Bool(b), pos));
        if self.eat_kw("to") {
            marks[0] = self.expr()?;
            self.expect_kw("default")?;
            marks[1] = self.expr()?;
        }
        self.expect_kw("using")?;
        let [to, default] = marks;
        Ok(Some(Cycle { by, mark, to, default, path: self.col_id()? }))
    }

    fn cte(&mut self, typed: bool) -> Result<Cte, SqlError> {
        let name = self.col_id()?;
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        if typed {
            for d in self.column_decls()? {
                columns.push(d.name);
                types.push(d.ty);
            }
        } else if self.is_punct("(") {
            columns = self.col_id_list()?;
        }
        self.expect_kw("as")?;
        let materialized = match self.eat_kw("materialized") {
            true => Some(true),
            false => self.eat_kws(&["not", "materialized"]).then_some(false),
        };
        let query = self.parens(|p| {
            if p.is_kw("merge") {
                return Err(SqlError::new(repr::error::state::FEATURE_NOT_SUPPORTED, "MERGE not supported in WITH query").at(name.pos));
            }
            if p.is_any_kw(&["insert", "update", "delete", "with"]) {
                return Ok(match p.statement()? {
                    Statement::Select(q) => CteBody::Query(q),
                    s => CteBody::Modify(Box::new(s)),
                });
            }
            Ok(CteBody::Query(Box::new(p.query()?)))
        })?;
        let (search, cycle) = (self.search_opt()?, self.cycle_opt()?);
        Ok(Cte { name, columns, types, materialized, query, search, cycle })
    }

    fn column_decls(&mut self) -> Result<Vec<ColumnDecl>, SqlError> {
        self.parens(|p| {
            p.comma_list(|p| {
                let name = p.col_id()?;
                let ty = p.collated_type()?;
                // WITH MUTUALLY RECURSIVE columns may say NOT NULL.
                p.eat_kws(&["not", "null"]);
                Ok(ColumnDecl { name, ty })
            })
        })
    }

    pub fn table_ref(&mut self) -> Result<TableRef, SqlError> {
        self.deeper(|p| {
            let mut left = p.table_primary()?;
            let mut chain = 0;
            while let Some((natural, kind, pos)) = p.join_word()? {
                chain += 1;
                p.check_depth(chain)?;
                // The right side may itself be a chain of joins whose conditions come later: a JOIN b JOIN c ON … ON ….
                let mut right = p.table_primary()?;
                let cond = if natural {
                    JoinCond::Natural
                } else if kind == JoinType::Cross {
                    JoinCond::None
                } else {
                    while !p.is_any_kw(&["on", "using"]) {
                        match p.join_word()? {
                            Some((natural, kind, pos)) => right = p.join_rest(right, natural, kind, pos)?,
                            None => return Err(p.error()),
                        }
                    }
                    p.join_cond()?
                };
                left = TableRef::Join { left: Box::new(left), right: Box::new(right), kind, cond, alias: None, pos };
            }
            Ok(left)
        })
    }

    fn join_rest(&mut self, left: TableRef, natural: bool, kind: JoinType, pos: Pos) -> Result<TableRef, SqlError> {
        self.deeper(|p| {
            let mut right = p.table_primary()?;
            let cond = if natural {
                JoinCond::Natural
            } else if kind == JoinType::Cross {
                JoinCond::None
            } else {
                while !p.is_any_kw(&["on", "using"]) {
                    match p.join_word()? {
                        Some((natural, kind, pos)) => right = p.join_rest(right, natural, kind, pos)?,
                        None => return Err(p.error()),
                    }
                }
                p.join_cond()?
            };
            Ok(TableRef::Join { left: Box::new(left), right: Box::new(right), kind, cond, alias: None, pos })
        })
    }

    fn join_cond(&mut self) -> Result<JoinCond, SqlError> {
        if self.eat_kw("on") {
            return Ok(JoinCond::On(self.expr()?));
        }
        self.expect_kw("using")?;
        let cols = self.col_id_list()?;
        let alias = if !self.at_as_of() && self.eat_kw("as") { Some(self.col_id()?) } else { None };
        Ok(JoinCond::Using(cols, alias))
    }

    fn join_word(&mut self) -> Result<Option<(bool, JoinType, Pos)>, SqlError> {
        let pos = self.pos();
        if self.eat_kw("cross") {
            self.expect_kw("join")?;
            return Ok(Some((false, JoinType::Cross, pos)));
        }
        let natural = self.eat_kw("natural");
        let kind = match self.tok() {
            Tok::Word(w) => match w.as_str() {
                "join" => JoinType::Inner,
                "inner" => JoinType::Inner,
                "left" => JoinType::Left,
                "right" => JoinType::Right,
                "full" => JoinType::Full,
                _ if natural => return Err(self.error()),
                _ => return Ok(None),
            },
            _ if natural => return Err(self.error()),
            _ => return Ok(None),
        };
        if !self.is_kw("join") {
            self.next();
            if kind != JoinType::Inner {
                self.eat_kw("outer");
            }
        }
        self.expect_kw("join")?;
        Ok(Some((natural, kind, pos)))
    }

    fn table_primary(&mut self) -> Result<TableRef, SqlError> {
        let lateral = self.eat_kw("lateral");
        if self.is_punct("(") {
            if self.at_query(0) {
                let mark = self.mark();
                // `((SELECT 1) AS a JOIN b …)` begins like a query.
                match self.parens(Self::query) {
                    Ok(query) => {
                        let alias = self.alias_opt()?;
                        return Ok(TableRef::Subquery { lateral, query: Box::new(query), alias });
                    }
                    Err(e) if lateral || !matches!(self.toks_behind(mark), Some(Tok::Punct("("))) => return Err(e),
                    Err(_) => self.reset(mark),
                }
            }
            if lateral {
                return Err(self.error());
            }
            let inner = self.parens(Self::table_ref)?;
            let TableRef::Join { left, right, kind, cond, alias: None, pos } = inner else { return Err(self.error()) };
            let alias = self.alias_opt()?;
            return Ok(TableRef::Join { left, right, kind, cond, alias, pos });
        }
        if self.is_kws(&["rows", "from"]) && self.is_punct_at(2, "(") {
            self.next();
            self.next();
            let functions = self.parens(|p| {
                p.comma_list(|p| {
                    let f = p.func_in_from()?;
                    let decls = if p.is_kw("as") {
                        p.next();
                        p.column_decls()?
                    } else {
                        Vec::new()
                    };
                    Ok((f, decls))
                })
            })?;
            return self.function_rest(lateral, functions, true);
        }
        self.eat_kw("only");
        if lateral || self.function_follows() {
            let f = self.func_in_from()?;
            return self.function_rest(lateral, vec![(f, Vec::new())], false);
        }
        let name = self.object_name()?;
        self.eat_op("*");
        let alias = self.alias_opt()?;
        if self.is_kw("tablesample") {
            return Err(SqlError::unsupported("TABLESAMPLE", "filter by a hash of the key instead").at(self.pos()));
        }
        Ok(TableRef::Relation { name, alias })
    }

    /// The token behind the one at `mark`.
    fn toks_behind(&mut self, mark: usize) -> Option<Tok> {
        let now = self.mark();
        self.reset(mark);
        let t = self.tok_at(1).clone();
        self.reset(now);
        Some(t)
    }

    /// A call, or a function written as a keyword.
    fn function_follows(&self) -> bool {
        let mut n = 0;
        loop {
            match self.tok_at(n) {
                Tok::Word(_) | Tok::Quoted(_) => {}
                _ => return false,
            }
            match self.tok_at(n + 1) {
                Tok::Punct(".") => n += 2,
                Tok::Punct("(") => return true,
                _ => break,
            }
        }
        n == 0
            && matches!(self.tok(), Tok::Word(w) if matches!(w.as_str(), "current_date" | "current_time" | "current_timestamp" | "localtime" | "localtimestamp"
                | "current_user" | "current_role" | "session_user" | "user" | "current_catalog" | "current_schema"))
    }

    fn func_in_from(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        if let Tok::Word(w) = self.tok().clone() {
            if let Some(e) = self.keyword_primary(&w, pos)? {
                return Ok(e);
            }
        }
        let mut name = vec![if self.is_punct_at(1, ".") { self.col_id()? } else { self.func_id()? }];
        while self.eat_punct(".") {
            name.push(self.col_label()?);
        }
        Ok(Expr::new(ExprKind::Func(self.call_rest(name)?), pos))
    }

    fn function_rest(&mut self, lateral: bool, functions: Vec<(Expr, Vec<ColumnDecl>)>, rows_from: bool) -> Result<TableRef, SqlError> {
        let ordinality = self.eat_kws(&["with", "ordinality"]);
        let (mut alias, mut columns) = (None, Vec::new());
        let as_word = self.eat_kw("as");
        if as_word && self.is_punct("(") {
            columns = self.column_decls()?;
        } else if as_word || self.is_col_id() {
            let name = self.col_id()?;
            let mut cols = Vec::new();
            if self.is_punct("(") {
                // `t(a int, …)` or `t(a, …)`.
                if matches!(self.tok_at(2), Tok::Punct("," | ")")) {
                    cols = self.col_id_list()?;
                } else {
                    columns = self.column_decls()?;
                }
            }
            alias = Some(Alias { name, columns: cols });
        }
        Ok(TableRef::Function { lateral, functions, rows_from, ordinality, alias, columns })
    }

    pub fn alias_opt(&mut self) -> Result<Option<Alias>, SqlError> {
        let as_word = self.is_kw("as") && !self.at_as_of();
        if as_word {
            self.next();
        } else if !self.is_col_id() || self.is_own_clause() {
            return Ok(None);
        }
        let name = self.col_id()?;
        let columns = if self.is_punct("(") { self.col_id_list()? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }

    /// Words that begin a clause of our own where Postgres would take them for an alias.
    fn is_own_clause(&self) -> bool {
        self.at_qualify()
            || (self.is_kw("up") && self.is_kw_at(1, "to"))
            || (self.is_kw("within") && self.is_kw_at(1, "timestamp"))
            || (self.is_kw("envelope") && self.is_any_kw_at(1, &["upsert", "debezium", "none"]))
    }

    pub fn window_spec(&mut self) -> Result<WindowSpec, SqlError> {
        let pos = self.pos();
        self.parens(|p| {
            let mut base = None;
            if p.is_col_id() && !p.is_any_kw(&["partition", "range", "rows", "groups"]) {
                base = Some(p.col_id()?);
            }
            let partition_by = if p.eat_kw("partition") {
                p.expect_kw("by")?;
                p.expr_list()?
            } else {
                Vec::new()
            };
            let order_by = p.order_by_opt()?;
            let frame = p.frame_opt()?;
            Ok(WindowSpec { base, partition_by, order_by, frame, pos })
        })
    }

    fn frame_opt(&mut self) -> Result<Option<FrameClause>, SqlError> {
        let pos = self.pos();
        let units = match self.tok() {
            Tok::Word(w) if w == "rows" => FrameUnits::Rows,
            Tok::Word(w) if w == "range" => FrameUnits::Range,
            Tok::Word(w) if w == "groups" => FrameUnits::Groups,
            _ => return Ok(None),
        };
        self.next();
        let between = self.eat_kw("between");
        let (start, end) = if between {
            let start = self.frame_edge()?;
            self.expect_kw("and")?;
            (start, self.frame_edge()?)
        } else {
            (self.frame_edge()?, FrameEdge::CurrentRow)
        };
        let exclude = if self.eat_kw("exclude") {
            if self.eat_kws(&["current", "row"]) {
                FrameExclude::CurrentRow
            } else if self.eat_kw("group") {
                FrameExclude::Group
            } else if self.eat_kw("ties") {
                FrameExclude::Ties
            } else {
                self.expect_kws(&["no", "others"])?;
                FrameExclude::NoOthers
            }
        } else {
            FrameExclude::NoOthers
        };
        let bad = |m: &str| Err(SqlError::new(state::WINDOWING_ERROR, m).at(pos));
        match (&start, &end) {
            (FrameEdge::UnboundedFollowing, _) => return bad("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, FrameEdge::UnboundedPreceding) => return bad("frame end cannot be UNBOUNDED PRECEDING"),
            (FrameEdge::CurrentRow, FrameEdge::Preceding(_)) => return bad("frame starting from current row cannot have preceding rows"),
            (FrameEdge::Following(_), FrameEdge::Preceding(_)) | (FrameEdge::Following(_), FrameEdge::CurrentRow) => {
                return bad("frame starting from following row cannot have preceding rows")
            }
            _ => {}
        }
        Ok(Some(FrameClause { units, start, end, exclude, between, pos }))
    }

    fn frame_edge(&mut self) -> Result<FrameEdge, SqlError> {
        if self.eat_kws(&["unbounded", "preceding"]) {
            return Ok(FrameEdge::UnboundedPreceding);
        }
        if self.eat_kws(&["unbounded", "following"]) {
            return Ok(FrameEdge::UnboundedFollowing);
        }
        if self.eat_kws(&["current", "row"]) {
            return Ok(FrameEdge::CurrentRow);
        }
        let e = self.expr()?;
        if self.eat_kw("preceding") {
            return Ok(FrameEdge::Preceding(e));
        }
        self.expect_kw("following")?;
        Ok(FrameEdge::Following(e))
    }
}

impl Query {
    pub fn of(body: QueryBody, pos: Pos) -> Query {
        Query {
            with: None,
            body,
            order_by: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
            locking: Vec::new(),
            as_of: None,
            pos,
            span: Span::default(),
        }
    }
}
