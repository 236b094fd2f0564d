//! Primaries that begin with a keyword, and function calls.

use super::cursor::Parser;
use super::keywords::{is_col_name, is_keyword};
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    /// A primary that keyword `w` begins; `None` if it is an ordinary name here.
    pub fn keyword_primary(&mut self, w: &str, pos: Pos) -> Result<Option<Expr>, SqlError> {
        // Words with a form of their own are ordinary names where no parenthesis follows.
        if is_col_name(w) && !matches!(w, "interval") && !self.is_punct_at(1, "(") {
            return Ok(None);
        }
        let kind = match w {
            "null" => self.taking(ExprKind::Null),
            "true" => self.taking(ExprKind::Bool(true)),
            "false" => self.taking(ExprKind::Bool(false)),
            "case" => self.case()?,
            "cast" => {
                self.next();
                self.parens(|p| {
                    let arg = p.expr()?;
                    p.expect_kw("as")?;
                    Ok(ExprKind::Cast { arg, ty: p.type_name()? })
                })?
            }
            "exists" => {
                self.next();
                let q = self.parens(Self::query)?;
                ExprKind::Exists(Box::new(q))
            }
            "array" => {
                self.next();
                if self.is_punct("(") {
                    ExprKind::ArraySubquery(Box::new(self.parens(Self::query)?))
                } else {
                    self.array_literal()?
                }
            }
            // A constructor, unless it reads as a subscript of a column of that name.
            "list" | "map" if self.is_punct_at(1, "[") => match self.collection(w)? {
                Some(kind) => kind,
                None => return Ok(None),
            },
            "row" => {
                self.next();
                let fields = self.parens(|p| if p.is_punct(")") { Ok(Vec::new()) } else { p.comma_list(Self::value_field) })?;
                ExprKind::Row { fields, explicit: true }
            }
            "coalesce" => {
                self.next();
                ExprKind::Coalesce(self.parens(Self::expr_list)?)
            }
            "greatest" | "least" => {
                self.next();
                ExprKind::MinMax { greatest: w == "greatest", args: self.parens(Self::expr_list)? }
            }
            "nullif" => {
                self.next();
                self.parens(|p| {
                    let a = p.expr()?;
                    p.expect_punct(",")?;
                    Ok(ExprKind::NullIf(a, p.expr()?))
                })?
            }
            "grouping" => {
                self.next();
                ExprKind::Grouping(self.parens(Self::expr_list)?)
            }
            "interval" => return self.interval_literal(pos),
            "treat" => {
                // A cast by the function of the type's name, and nothing else: Postgres has no more of it.
                self.next();
                self.parens(|p| {
                    let arg = p.expr()?;
                    p.expect_kw("as")?;
                    let ty = p.type_name()?;
                    let name = ty.names.last().cloned().unwrap_or_default();
                    Ok(ExprKind::Func(FuncCall::system(&name, vec![arg], pos)))
                })?
            }
            "extract" | "position" | "substring" | "overlay" | "trim" | "normalize" => {
                self.next();
                ExprKind::Func(self.special_call(w, pos)?)
            }
            "xmlconcat" | "xmlelement" | "xmlexists" | "xmlforest" | "xmlparse" | "xmlpi" | "xmlroot" | "xmlserialize" | "xmltable"
                if self.is_punct_at(1, "(") =>
            {
                return Err(SqlError::unsupported(w.to_uppercase(), "there is no XML here: build text with format(), or json").at(pos));
            }
            "collation" if self.is_kw_at(1, "for") => {
                self.next();
                self.next();
                let arg = self.parens(Self::expr)?;
                ExprKind::Func(FuncCall::system("pg_collation_for", vec![arg], pos))
            }
            "current_date" => self.taking(ExprKind::SqlValue(SqlValue::CurrentDate, None)),
            "current_time" => self.sql_value(SqlValue::CurrentTime)?,
            "current_timestamp" => self.sql_value(SqlValue::CurrentTimestamp)?,
            "localtime" => self.sql_value(SqlValue::LocalTime)?,
            "localtimestamp" => self.sql_value(SqlValue::LocalTimestamp)?,
            "current_user" => self.taking(ExprKind::SqlValue(SqlValue::CurrentUser, None)),
            "current_role" => self.taking(ExprKind::SqlValue(SqlValue::CurrentRole, None)),
            "session_user" => self.taking(ExprKind::SqlValue(SqlValue::SessionUser, None)),
            "user" => self.taking(ExprKind::SqlValue(SqlValue::User, None)),
            "current_catalog" => self.taking(ExprKind::SqlValue(SqlValue::CurrentCatalog, None)),
            "current_schema" if !self.is_punct_at(1, "(") => self.taking(ExprKind::SqlValue(SqlValue::CurrentSchema, None)),
            _ => return Ok(None),
        };
        // SQL value keywords and special forms may still be windowed or filtered like any call.
        if let ExprKind::Func(call) = kind {
            let call = self.call_suffix(call)?;
            return Ok(Some(Expr::new(ExprKind::Func(call), pos)));
        }
        Ok(Some(Expr::new(kind, pos)))
    }

    fn taking(&mut self, kind: ExprKind) -> ExprKind {
        self.next();
        kind
    }

    fn sql_value(&mut self, what: SqlValue) -> Result<ExprKind, SqlError> {
        self.next();
        let precision = if self.is_punct("(") { Some(self.parens(Self::integer)?) } else { None };
        Ok(ExprKind::SqlValue(what, precision.map(|p| i32::try_from(p).unwrap_or(i32::MAX))))
    }

    /// `LIST[a, [b], ..]` and `MAP[k => v, ..]` as calls of `list` and `map`; `None`, and nothing taken, if it is neither.
    fn collection(&mut self, word: &str) -> Result<Option<ExprKind>, SqlError> {
        let (start, pos) = (self.mark(), self.pos());
        self.next();
        let args = self.collection_items(word)?;
        if args.is_none() {
            self.reset(start);
        }
        Ok(args.map(|args| ExprKind::Func(FuncCall::system(word, args, pos))))
    }

    fn collection_items(&mut self, word: &str) -> Result<Option<Vec<Expr>>, SqlError> {
        self.expect_punct("[")?;
        let mut args = Vec::new();
        while !self.is_punct("]") {
            if !args.is_empty() && !self.eat_punct(",") {
                return Ok(None);
            }
            for part in 0..if word == "map" { 2 } else { 1 } {
                if part == 1 && !self.eat_punct("=>") {
                    return Ok(None);
                }
                // Inner ones need no word.
                let pos = self.pos();
                if self.is_punct("[") && (word == "list" || part == 1) {
                    let Some(inner) = self.deeper(|p| p.collection_items(word))? else { return Ok(None) };
                    args.push(Expr::new(ExprKind::Func(FuncCall::system(word, inner, pos)), pos));
                } else {
                    args.push(self.expr()?);
                }
            }
        }
        self.expect_punct("]")?;
        Ok(Some(args))
    }

    fn array_literal(&mut self) -> Result<ExprKind, SqlError> {
        self.expect_punct("[")?;
        let mut elems = Vec::new();
        if !self.is_punct("]") {
            elems = self.comma_list(|p| {
                let pos = p.pos();
                if p.is_punct("[") {
                    let inner = p.deeper(Self::array_literal)?;
                    return Ok(Expr::new(inner, pos));
                }
                p.expr()
            })?;
        }
        self.expect_punct("]")?;
        Ok(ExprKind::Array(elems))
    }

    fn case(&mut self) -> Result<ExprKind, SqlError> {
        self.expect_kw("case")?;
        let operand = if self.is_kw("when") { None } else { Some(self.expr()?) };
        let mut branches = Vec::new();
        while self.eat_kw("when") {
            let cond = self.expr()?;
            self.expect_kw("then")?;
            branches.push((cond, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.eat_kw("else") { Some(self.expr()?) } else { None };
        self.expect_kw("end")?;
        Ok(ExprKind::Case { operand, branches, otherwise })
    }

    /// INTERVAL 'x' [fields], INTERVAL(p) 'x'; a column named interval otherwise.
    fn interval_literal(&mut self, pos: Pos) -> Result<Option<Expr>, SqlError> {
        let mark = self.mark();
        self.next();
        let mut modifiers = Vec::new();
        if self.is_punct("(") && matches!((self.tok_at(1), self.tok_at(2), self.tok_at(3)), (Tok::Number(_), Tok::Punct(")"), Tok::String(_))) {
            let n = self.parens(Self::integer)?;
            modifiers = vec![Expr::new(ExprKind::Number("32767".into()), pos), Expr::new(ExprKind::Number(n.to_string()), pos)];
        }
        let text_pos = self.pos();
        let Ok(text) = self.string() else {
            self.reset(mark);
            return Ok(None);
        };
        if modifiers.is_empty() {
            modifiers = self.interval_fields()?;
        }
        let ty = TypeName { modifiers, ..TypeName::system("interval", pos) };
        Ok(Some(Expr::new(ExprKind::Cast { arg: Expr::string(text, text_pos), ty }, pos)))
    }

    /// EXTRACT(f FROM x) and its like, as calls. The keyword is already taken.
    fn special_call(&mut self, w: &str, pos: Pos) -> Result<FuncCall, SqlError> {
        self.expect_punct("(")?;
        if matches!(w, "overlay" | "substring") && self.eat_punct(")") {
            let mut call = FuncCall::system(w, Vec::new(), pos);
            (call.system, call.name) = (false, vec![Ident { name: w.into(), pos }]);
            return Ok(call);
        }
        let call = match w {
            "extract" => {
                let field_pos = self.pos();
                let field = match self.tok().clone() {
                    Tok::Word(f) if is_keyword(&f) && !matches!(f.as_str(), "year" | "month" | "day" | "hour" | "minute" | "second") => {
                        return Err(self.error())
                    }
                    Tok::Word(f) | Tok::Quoted(f) | Tok::String(f) => f,
                    _ => return Err(self.error()),
                };
                self.next();
                self.expect_kw("from")?;
                let x = self.expr()?;
                FuncCall::system("extract", vec![Expr::string(field, field_pos), x], pos)
            }
            "position" => {
                let needle = self.b_expr()?;
                self.expect_kw("in")?;
                let hay = self.b_expr()?;
                FuncCall::system("position", vec![hay, needle], pos)
            }
            "overlay" => {
                let first = self.func_arg()?;
                let x = first.expr.clone();
                if first.name.is_none() && self.eat_kw("placing") {
                    let mut args = vec![x, self.expr()?];
                    self.expect_kw("from")?;
                    args.push(self.expr()?);
                    if self.eat_kw("for") {
                        args.push(self.expr()?);
                    }
                    FuncCall::system("overlay", args, pos)
                } else {
                    self.plain_args("overlay", first, pos)?
                }
            }
            "substring" => self.substring_args(pos)?,
            "trim" => self.trim_args(pos)?,
            _ => {
                let mut args = vec![self.expr()?];
                if self.eat_punct(",") {
                    let form_pos = self.pos();
                    let Tok::Word(form) = self.next() else { return Err(self.error()) };
                    args.push(Expr::string(form.to_uppercase(), form_pos));
                }
                FuncCall::system("normalize", args, pos)
            }
        };
        self.expect_punct(")")?;
        Ok(call)
    }

    /// The arguments behind the first as any function takes them.
    fn plain_args(&mut self, name: &str, first: FuncArg, pos: Pos) -> Result<FuncCall, SqlError> {
        let mut call = FuncCall::system(name, Vec::new(), pos);
        call.args.push(first);
        while self.eat_punct(",") {
            call.args.push(self.func_arg()?);
        }
        call.system = false;
        call.name.remove(0);
        Ok(call)
    }

    fn substring_args(&mut self, pos: Pos) -> Result<FuncCall, SqlError> {
        if self.is_kw("variadic") {
            return Err(self.error());
        }
        let first = self.func_arg()?;
        if first.name.is_some() || self.is_punct(",") {
            return self.plain_args("substring", first, pos);
        }
        let x = first.expr;
        let one = || Expr::new(ExprKind::Number("1".into()), pos);
        if self.eat_kw("from") {
            let mut args = vec![x, self.expr()?];
            if self.eat_kw("for") {
                args.push(self.expr()?);
            }
            return Ok(FuncCall::system("substring", args, pos));
        }
        if self.eat_kw("for") {
            let n = self.expr()?;
            if self.eat_kw("from") {
                let from = self.expr()?;
                return Ok(FuncCall::system("substring", vec![x, from, n], pos));
            }
            let n = Expr::new(ExprKind::Cast { arg: n, ty: TypeName::system("int4", pos) }, pos);
            return Ok(FuncCall::system("substring", vec![x, one(), n], pos));
        }
        if self.eat_kw("similar") {
            let pattern = self.expr()?;
            self.expect_kw("escape")?;
            let escape = self.expr()?;
            return Ok(FuncCall::system("substring", vec![x, pattern, escape], pos));
        }
        self.plain_args("substring", FuncArg { name: None, variadic: false, expr: x }, pos)
    }

    fn trim_args(&mut self, pos: Pos) -> Result<FuncCall, SqlError> {
        let name = if self.eat_kw("leading") {
            "ltrim"
        } else if self.eat_kw("trailing") {
            "rtrim"
        } else {
            self.eat_kw("both");
            "btrim"
        };
        let args = if self.eat_kw("from") {
            self.expr_list()?
        } else {
            let first = self.expr()?;
            if self.eat_kw("from") {
                let mut args = self.expr_list()?;
                args.push(first);
                args
            } else {
                let mut args = vec![first];
                while self.eat_punct(",") {
                    args.push(self.expr()?);
                }
                args
            }
        };
        Ok(FuncCall::system(name, args, pos))
    }

    /// The arguments and what follows them; the name is taken.
    pub fn call_rest(&mut self, name: Vec<Ident>) -> Result<FuncCall, SqlError> {
        let mut call = FuncCall {
            name,
            args: Vec::new(),
            star: false,
            distinct: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
            system: false,
        };
        self.expect_punct("(")?;
        if self.eat_op("*") {
            call.star = true;
        } else if !self.is_punct(")") {
            call.distinct = self.eat_kw("distinct");
            if !call.distinct {
                self.eat_kw("all");
            }
            call.args = vec![self.func_arg()?];
            // VARIADIC stands before the last argument only.
            while !call.args.iter().any(|a| a.variadic) && self.eat_punct(",") {
                call.args.push(self.func_arg()?);
            }
            call.order_by = self.order_by_opt()?;
        }
        self.expect_punct(")")?;
        self.call_suffix(call).map(FuncCall::aggregate_by_array)
    }

    fn func_arg(&mut self) -> Result<FuncArg, SqlError> {
        let variadic = self.eat_kw("variadic");
        let named = matches!(self.tok(), Tok::Word(_) | Tok::Quoted(_)) && (self.is_punct_at(1, "=>") || self.is_punct_at(1, ":="));
        let name = if named {
            let n = self.func_id()?.name;
            self.next();
            Some(n)
        } else {
            None
        };
        Ok(FuncArg { name, variadic, expr: self.expr()? })
    }

    /// WITHIN GROUP, FILTER, OVER.
    fn call_suffix(&mut self, mut call: FuncCall) -> Result<FuncCall, SqlError> {
        if self.is_kw("within") && self.is_kw_at(1, "group") {
            let pos = self.pos();
            self.next();
            self.next();
            if call.distinct {
                return Err(self.error_at("cannot use DISTINCT with WITHIN GROUP", pos));
            }
            if !call.order_by.is_empty() {
                return Err(self.error_at("cannot use multiple ORDER BY clauses with WITHIN GROUP", pos));
            }
            if call.args.iter().any(|a| a.variadic) {
                return Err(self.error_at("cannot use VARIADIC with WITHIN GROUP", pos));
            }
            call.order_by = self.parens(|p| {
                p.expect_kws(&["order", "by"])?;
                p.order_by_list()
            })?;
            call.within_group = true;
        }
        if self.is_kw("filter") && self.is_punct_at(1, "(") {
            self.next();
            call.filter = Some(self.parens(|p| {
                p.expect_kw("where")?;
                p.expr()
            })?);
        }
        if self.is_kw("over") && (self.is_punct_at(1, "(") || matches!(self.tok_at(1), Tok::Word(_) | Tok::Quoted(_))) {
            self.next();
            call.over = Some(if self.is_punct("(") { Over::Spec(self.window_spec()?) } else { Over::Name(self.col_id()?) });
        }
        Ok(call)
    }
}
