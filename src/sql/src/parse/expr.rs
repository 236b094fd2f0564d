//! Scalar expressions, by precedence climbing over Postgres's table.
//!
//! ```text
//!   OR  <  AND  <  NOT  <  IS  <  comparison  <  BETWEEN IN LIKE  <  other operators  <  + -  <  * / %  <  ^  <  AT  <  COLLATE  <  unary -  <  [] :: .
//! ```

use super::cursor::Parser;
use super::keywords::{is_bare_label, is_col_name, is_reserved, is_type_func_name};
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const LIKE: u8 = 6;
const OTHER: u8 = 7;
const PLUS: u8 = 8;
const TIMES: u8 = 9;
const POWER: u8 = 10;
const AT: u8 = 11;
const COLLATE: u8 = 12;
const UNARY: u8 = 13;

/// What can follow an operand.
enum Infix {
    Or,
    And,
    Op(u8),
    Is,
    IsNull(bool),
    Like(bool),
    Between(bool),
    In(bool),
    AtTimeZone,
    Collate,
    Overlaps,
}

impl Parser<'_> {
    pub fn expr(&mut self) -> Result<Expr, SqlError> {
        self.expr_at(0)
    }

    pub fn expr_list(&mut self) -> Result<Vec<Expr>, SqlError> {
        self.comma_list(Self::expr)
    }

    /// An operand without boolean operators: Postgres's `b_expr` where the difference shows (a DEFAULT, a frame bound).
    pub fn b_expr(&mut self) -> Result<Expr, SqlError> {
        self.expr_at(OTHER)
    }

    fn expr_at(&mut self, min: u8) -> Result<Expr, SqlError> {
        self.deeper(|p| {
            let left = p.prefix()?;
            p.infix_loop(left, min)
        })
    }

    fn infix_loop(&mut self, mut left: Expr, min: u8) -> Result<Expr, SqlError> {
        let mut chain = 0;
        while let Some((infix, level)) = self.infix() {
            if level < min || self.is_label() {
                break;
            }
            // AND and OR are flat lists: they make no deep tree.
            if level > AND {
                chain += 1;
            }
            self.check_depth(chain)?;
            left = self.infix_rest(left, infix)?;
            // What has a closing end of its own (IS NULL, IN (…), = ANY (…)) is an operand: `::` casts all of it.
            while self.is_punct("::") {
                chain += 1;
                self.check_depth(chain)?;
                let pos = self.pos();
                self.next();
                left = Expr::new(ExprKind::Cast { arg: left, ty: self.type_name()? }, pos);
            }
        }
        Ok(left)
    }

    /// Whether the word at the cursor is the label of a select list's expression although it could go on: `SELECT 1 and FROM t`.
    fn is_label(&self) -> bool {
        let ends = match self.tok_at(1) {
            Tok::Eof | Tok::Punct(")" | "," | ";") => true,
            Tok::Word(w) => matches!(
                w.as_str(),
                "from" | "where" | "group" | "having" | "order" | "limit" | "offset" | "fetch" | "for" | "union" | "except" | "intersect" | "window" | "into"
            ),
            _ => false,
        };
        self.depth == self.label_depth && ends && matches!(self.tok(), Tok::Word(w) if is_bare_label(w))
    }

    fn prefix(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        if self.eat_kw("not") {
            return Ok(Expr::new(ExprKind::Not(self.expr_at(NOT)?), pos));
        }
        if let Tok::Op(o) = self.tok() {
            let name = o.clone();
            // `*` begins no operand; other operators may be prefix operators.
            if matches!(name.as_str(), "*" | "/" | "<" | ">" | "=" | "<=" | ">=" | "<>" | "^" | "%") {
                return Err(self.error());
            }
            self.next();
            let level = if matches!(name.as_str(), "-" | "+") { UNARY } else { OTHER + 1 };
            let arg = self.expr_at(level)?;
            if name == "-" {
                // A negative constant, as Postgres folds it, so that -9223372036854775808 fits and -1 is a literal.
                if let ExprKind::Number(n) = &*arg.kind {
                    let negated = n.strip_prefix('-').map_or_else(|| format!("-{n}"), str::to_owned);
                    return Ok(Expr::new(ExprKind::Number(negated), pos));
                }
            }
            return Ok(Expr::new(ExprKind::Unary { op: OpName { schema: None, name, pos }, arg }, pos));
        }
        if self.is_kw("operator") && self.is_punct_at(1, "(") {
            let op = self.op_name()?;
            let arg = self.expr_at(OTHER + 1)?;
            return Ok(Expr::new(ExprKind::Unary { op, arg }, pos));
        }
        self.primary()
    }

    /// The infix or postfix at the current token and its level.
    fn infix(&self) -> Option<(Infix, u8)> {
        let not = |p: &Self, w: &str| p.is_kw("not") && p.is_kw_at(1, w);
        Some(match self.tok() {
            Tok::Op(o) => {
                let level = match o.as_str() {
                    "<" | ">" | "=" | "<=" | ">=" | "<>" => COMPARE,
                    "+" | "-" => PLUS,
                    "*" | "/" | "%" => TIMES,
                    "^" => POWER,
                    _ => OTHER,
                };
                (Infix::Op(level), level)
            }
            Tok::Word(w) => match w.as_str() {
                "or" => (Infix::Or, OR),
                "and" => (Infix::And, AND),
                "is" => (Infix::Is, IS),
                "isnull" => (Infix::IsNull(false), IS),
                "notnull" => (Infix::IsNull(true), IS),
                "like" | "ilike" => (Infix::Like(false), LIKE),
                "similar" if self.is_kw_at(1, "to") => (Infix::Like(false), LIKE),
                "between" => (Infix::Between(false), LIKE),
                "in" => (Infix::In(false), LIKE),
                "not" if not(self, "like") || not(self, "ilike") || not(self, "similar") => (Infix::Like(true), LIKE),
                "not" if not(self, "between") => (Infix::Between(true), LIKE),
                "not" if not(self, "in") => (Infix::In(true), LIKE),
                "at" if self.is_kw_at(1, "time") => (Infix::AtTimeZone, AT),
                "collate" => (Infix::Collate, COLLATE),
                "overlaps" => (Infix::Overlaps, OTHER),
                "operator" if self.is_punct_at(1, "(") => (Infix::Op(OTHER), OTHER),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn infix_rest(&mut self, left: Expr, infix: Infix) -> Result<Expr, SqlError> {
        let pos = self.pos();
        let start = left.pos;
        match infix {
            Infix::Or | Infix::And => {
                self.next();
                let is_or = matches!(infix, Infix::Or);
                let right = self.expr_at(if is_or { OR + 1 } else { AND + 1 })?;
                let mut all = match *left.kind {
                    ExprKind::Or(xs) if is_or => xs,
                    ExprKind::And(xs) if !is_or => xs,
                    kind => vec![Expr::new(kind, start)],
                };
                all.push(right);
                Ok(Expr::new(if is_or { ExprKind::Or(all) } else { ExprKind::And(all) }, pos))
            }
            Infix::Op(level) => {
                let op = self.op_name()?;
                if self.is_any_kw(&["any", "some", "all"]) && self.is_punct_at(1, "(") {
                    return self.quantified(left, op);
                }
                let right = self.expr_at(level + 1)?;
                if level == COMPARE && matches!(self.infix(), Some((_, COMPARE))) {
                    return Err(self.error());
                }
                Ok(Expr::new(ExprKind::Binary { op, left, right }, pos))
            }
            Infix::IsNull(not) => {
                self.next();
                Ok(Expr::new(ExprKind::IsNull { arg: left, not }, pos))
            }
            Infix::Is => self.is_rest(left, pos),
            Infix::Like(not) => self.like_rest(left, not),
            Infix::Between(not) => {
                if not {
                    self.next();
                }
                self.next();
                let symmetric = self.eat_kw("symmetric");
                if !symmetric {
                    self.eat_kw("asymmetric");
                }
                let low = self.expr_at(OTHER)?;
                self.expect_kw("and")?;
                let high = self.expr_at(OTHER)?;
                if matches!(self.infix(), Some((_, LIKE))) {
                    return Err(self.error());
                }
                Ok(Expr::new(ExprKind::Between { arg: left, low, high, not, symmetric }, pos))
            }
            Infix::In(not) => {
                if not {
                    self.next();
                }
                self.next();
                self.expect_punct("(")?;
                if self.at_query(0) && self.at_whole_query() {
                    let query = Box::new(self.query()?);
                    self.expect_punct(")")?;
                    return Ok(Expr::new(ExprKind::InSubquery { arg: left, query, not }, pos));
                }
                let list = self.expr_list()?;
                self.expect_punct(")")?;
                // `x IN ((SELECT …))` is a list of one scalar subquery; Postgres takes the doubled parentheses for a subquery.
                if let [Expr { kind, .. }] = list.as_slice() {
                    if let ExprKind::Subquery(q) = &**kind {
                        return Ok(Expr::new(ExprKind::InSubquery { arg: left, query: q.clone(), not }, pos));
                    }
                }
                Ok(Expr::new(ExprKind::InList { arg: left, list, not }, pos))
            }
            Infix::AtTimeZone => {
                self.expect_kws(&["at", "time", "zone"])?;
                let zone = self.expr_at(AT + 1)?;
                Ok(Expr::call("timezone", vec![zone, left], pos))
            }
            Infix::Overlaps => {
                self.next();
                let right = self.expr_at(OTHER + 1)?;
                let (ExprKind::Row { fields: a, .. }, ExprKind::Row { fields: b, .. }) = (*left.kind, *right.kind) else {
                    return Err(super::lex::syntax("syntax error", "overlaps", pos));
                };
                if a.len() != 2 || b.len() != 2 {
                    let side = if a.len() != 2 { "left" } else { "right" };
                    return Err(self.error_at(format!("wrong number of parameters on {side} side of OVERLAPS expression"), pos));
                }
                Ok(Expr::call("overlaps", a.into_iter().chain(b).collect(), pos))
            }
            Infix::Collate => {
                self.next();
                let collation = self.object_name()?.parts;
                Ok(Expr::new(ExprKind::Collate { arg: left, collation }, pos))
            }
        }
    }

    fn is_rest(&mut self, arg: Expr, pos: Pos) -> Result<Expr, SqlError> {
        self.expect_kw("is")?;
        let not = self.eat_kw("not");
        let kind = if self.eat_kw("null") {
            ExprKind::IsNull { arg, not }
        } else if self.eat_kw("true") {
            ExprKind::IsBool { arg, test: BoolTest::True, not }
        } else if self.eat_kw("false") {
            ExprKind::IsBool { arg, test: BoolTest::False, not }
        } else if self.eat_kw("unknown") {
            ExprKind::IsBool { arg, test: BoolTest::Unknown, not }
        } else if self.eat_kws(&["distinct", "from"]) {
            let right = self.expr_at(COMPARE)?;
            if matches!(self.infix(), Some((_, IS))) {
                return Err(self.error());
            }
            ExprKind::IsDistinct { left: arg, right, not }
        } else if self.is_any_kw(&["nfc", "nfd", "nfkc", "nfkd", "normalized"]) {
            let mut args = vec![arg];
            if !self.is_kw("normalized") {
                if let Tok::Word(form) = self.next() {
                    args.push(Expr::string(form.to_uppercase(), pos));
                }
            }
            self.expect_kw("normalized")?;
            let call = Expr::call("is_normalized", args, pos);
            return Ok(if not { Expr::new(ExprKind::Not(call), pos) } else { call });
        } else {
            return Err(self.error());
        };
        Ok(Expr::new(kind, pos))
    }

    fn like_rest(&mut self, arg: Expr, not: bool) -> Result<Expr, SqlError> {
        let pos = self.pos();
        if not {
            self.next();
        }
        let Tok::Word(word) = self.next() else { return Err(self.error()) };
        let op = match (word.as_str(), not) {
            ("like", false) => "~~",
            ("like", true) => "!~~",
            ("ilike", false) => "~~*",
            ("ilike", true) => "!~~*",
            (_, false) => "~",
            (_, true) => "!~",
        };
        let similar = word == "similar";
        if similar {
            self.expect_kw("to")?;
        }
        if !similar && self.is_any_kw(&["any", "some", "all"]) && self.is_punct_at(1, "(") {
            return self.quantified(arg, OpName { schema: Some("pg_catalog".into()), name: op.into(), pos });
        }
        let mut pattern = self.expr_at(OTHER)?;
        let escape = if self.eat_kw("escape") { Some(self.expr_at(OTHER)?) } else { None };
        if similar || escape.is_some() {
            let mut args = vec![pattern];
            args.extend(escape);
            pattern = Expr::call(if similar { "similar_to_escape" } else { "like_escape" }, args, pos);
        }
        if matches!(self.infix(), Some((_, LIKE))) {
            return Err(self.error());
        }
        Ok(Expr::new(ExprKind::Like { op, arg, pattern }, pos))
    }

    fn quantified(&mut self, arg: Expr, op: OpName) -> Result<Expr, SqlError> {
        let all = self.is_kw("all");
        let pos = op.pos;
        self.next();
        self.expect_punct("(")?;
        let rhs = if self.at_query(0) {
            QuantifiedRhs::Query(Box::new(self.query()?))
        } else {
            match self.expr()? {
                Expr { kind, .. } if matches!(&*kind, ExprKind::Subquery(_)) => match *kind {
                    ExprKind::Subquery(q) => QuantifiedRhs::Query(q),
                    _ => return Err(self.error()),
                },
                e => QuantifiedRhs::Array(e),
            }
        };
        self.expect_punct(")")?;
        Ok(Expr::new(ExprKind::Quantified { arg, op, all, rhs }, pos))
    }

    /// An operator token or `OPERATOR(schema.op)`.
    pub fn op_name(&mut self) -> Result<OpName, SqlError> {
        let pos = self.pos();
        match self.next() {
            Tok::Op(name) => Ok(OpName { schema: None, name, pos }),
            Tok::Word(w) if w == "operator" => self.parens(|p| {
                let mut schema = None;
                while !matches!(p.tok(), Tok::Op(_)) {
                    schema = Some(p.col_id()?.name);
                    p.expect_punct(".")?;
                }
                match p.next() {
                    Tok::Op(name) => Ok(OpName { schema, name, pos }),
                    _ => Err(p.error()),
                }
            }),
            _ => Err(self.error()),
        }
    }

    fn primary(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        let parenthesised = self.is_punct("(");
        let e = match self.tok().clone() {
            Tok::Number(n) => {
                self.next();
                Expr::new(ExprKind::Number(n), pos)
            }
            Tok::String(s) => {
                self.next();
                Expr::string(s, pos)
            }
            Tok::BitString(s) => {
                self.next();
                Expr::new(ExprKind::BitString(s), pos)
            }
            Tok::Param(n) => {
                self.next();
                Expr::new(ExprKind::Param(n), pos)
            }
            Tok::Punct("(") => self.parenthesised()?,
            Tok::Word(w) => match self.keyword_primary(&w, pos)? {
                Some(e) => e,
                None => self.name_primary()?,
            },
            Tok::Quoted(_) => self.name_primary()?,
            _ => return Err(self.error()),
        };
        // Calls, constructors and constants take subscripts and fields only in parentheses.
        let indirect = parenthesised || matches!(&*e.kind, ExprKind::Column(_) | ExprKind::Param(_));
        self.postfix(e, indirect)
    }

    /// Subscripts, field selection and `::`, which bind tightest.
    fn postfix(&mut self, mut e: Expr, mut indirect: bool) -> Result<Expr, SqlError> {
        let mut chain = 0;
        loop {
            chain += 1;
            self.check_depth(chain)?;
            let pos = self.pos();
            if self.eat_punct("::") {
                let ty = self.type_name()?;
                e = Expr::new(ExprKind::Cast { arg: e, ty }, pos);
                indirect = false;
                continue;
            }
            let path = if indirect { self.indirection()? } else { Vec::new() };
            if path.is_empty() {
                return Ok(e);
            }
            let start = e.pos;
            e = Expr::new(ExprKind::Indirection { arg: e, path }, start);
        }
    }

    pub fn indirection(&mut self) -> Result<Vec<Indirection>, SqlError> {
        let mut path = Vec::new();
        loop {
            if self.eat_punct("[") {
                if self.eat_punct(":") {
                    let upper = if self.is_punct("]") { None } else { Some(self.expr()?) };
                    path.push(Indirection::Slice(None, upper));
                } else {
                    let index = self.expr()?;
                    if self.eat_punct(":") {
                        let upper = if self.is_punct("]") { None } else { Some(self.expr()?) };
                        path.push(Indirection::Slice(Some(index), upper));
                    } else {
                        path.push(Indirection::Index(index));
                    }
                }
                self.expect_punct("]")?;
            } else if self.is_punct(".") {
                self.next();
                if self.eat_op("*") {
                    path.push(Indirection::Star);
                } else {
                    path.push(Indirection::Field(self.col_label()?));
                }
            } else {
                return Ok(path);
            }
        }
    }

    /// `( … )`: a subquery, a row, or one expression.
    fn parenthesised(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        self.expect_punct("(")?;
        if self.at_query_word() {
            let q = self.query()?;
            self.expect_punct(")")?;
            return Ok(Expr::new(ExprKind::Subquery(Box::new(q)), pos));
        }
        let first = if self.is_punct("(") && self.at_query(0) {
            // A parenthesised query goes on as a query after UNION, ORDER BY, …, else as an operand; nothing is read twice.
            let inner = self.deeper(Self::parenthesised)?;
            match *inner.kind {
                ExprKind::Subquery(q) if self.is_punct(")") || self.at_query_rest() => {
                    let q = self.query_from(*q)?;
                    self.expect_punct(")")?;
                    return Ok(Expr::new(ExprKind::Subquery(Box::new(q)), pos));
                }
                kind => {
                    let left = self.postfix(Expr::new(kind, inner.pos), true)?;
                    self.infix_loop(left, 0)?
                }
            }
        } else {
            self.value_field()?
        };
        if self.eat_punct(",") {
            let mut fields = vec![first];
            fields.extend(self.comma_list(Self::value_field)?);
            self.expect_punct(")")?;
            return Ok(Expr::new(ExprKind::Row { fields, explicit: false }, pos));
        }
        self.expect_punct(")")?;
        Ok(first)
    }

    /// A column, function call or typed literal, beginning with a name.
    fn name_primary(&mut self) -> Result<Expr, SqlError> {
        let pos = self.pos();
        let (word, quoted) = match self.tok() {
            Tok::Word(w) => (w.clone(), false),
            Tok::Quoted(w) => (w.clone(), true),
            _ => return Err(self.error()),
        };
        if !quoted && is_reserved(&word) {
            return Err(self.error());
        }
        // INTEGER '1', CHARACTER VARYING(5) 'x': types with their own syntax.
        if !quoted && is_col_name(&word) && super::types::is_type_keyword(&word) {
            let mark = self.mark();
            let written = self.is_punct_at(1, "(") || self.is_punct_at(2, "(");
            match self.simple_type() {
                Ok(mut ty) if matches!(self.tok(), Tok::String(_)) => {
                    // A literal of type char or bit has the length it has.
                    if !written && ty.names.last().is_some_and(|n| n == "bpchar" || n == "bit") {
                        ty.modifiers.clear();
                    }
                    return self.typed_literal(ty, pos);
                }
                // float(0)
                Err(e) if e.code != repr::error::state::SYNTAX_ERROR => return Err(e),
                _ => {}
            }
            self.reset(mark);
        }
        if !quoted && word == "double" && self.is_kw_at(1, "precision") && matches!(self.tok_at(2), Tok::String(_)) {
            let ty = self.simple_type()?;
            return self.typed_literal(ty, pos);
        }
        let func_only = !quoted && is_type_func_name(&word);
        self.next();
        let mut name = vec![Ident { name: word.clone(), pos }];
        while self.is_punct(".") {
            if matches!(self.tok_at(1), Tok::Op(o) if o == "*") {
                self.next();
                self.next();
                return Ok(Expr::new(ExprKind::Star(name), pos));
            }
            self.next();
            name.push(self.col_label()?);
        }
        let callable = quoted || name.len() > 1 || !is_col_name(&word);
        if callable && matches!(self.tok(), Tok::String(_)) {
            let ty = TypeName::named(name.into_iter().map(|i| i.name).collect(), pos);
            return self.typed_literal(ty, pos);
        }
        if callable && self.is_punct("(") {
            let call = self.call_rest(name)?;
            // numeric(10,2) '1.5'
            if matches!(self.tok(), Tok::String(_)) && !call.star && call.over.is_none() && call.args.iter().all(|a| a.name.is_none()) {
                let mut ty = TypeName::named(call.name.into_iter().map(|i| i.name).collect(), pos);
                ty.modifiers = call.args.into_iter().map(|a| a.expr).collect();
                return self.typed_literal(ty, pos);
            }
            return Ok(Expr::new(ExprKind::Func(call), pos));
        }
        if func_only && name.len() == 1 {
            return Err(self.error());
        }
        Ok(Expr::new(ExprKind::Column(name), pos))
    }

    fn typed_literal(&mut self, ty: TypeName, pos: Pos) -> Result<Expr, SqlError> {
        let text_pos = self.pos();
        let text = self.string()?;
        Ok(Expr::new(ExprKind::Cast { arg: Expr::string(text, text_pos), ty }, pos))
    }
}
