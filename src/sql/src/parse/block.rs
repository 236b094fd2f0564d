//! The code of a DO statement: blocks, declarations, control structures of PL/pgSQL.
//!
//! ```text
//!   [<<label>>] [DECLARE v type := x; …] BEGIN step; … [EXCEPTION WHEN condition THEN step; …] END
//! ```
//!
//! What stands between these words is SQL, cut out as text up to the word or sign that ends it, outside brackets, and parsed by itself.
//! Not here: what it does (`adapter`).

use super::cursor::Parser;
use super::lex::Tok;
use super::{parse, ParsedStatement};
use crate::ast::block::{Block, BoundCursor, Condition, CursorArgs, Destination, Loop, Opened, Raise, Step, Steps, Variable, VariableType, SUBJECT};
use crate::ast::{FetchDirection, Ident, Statement};
use repr::error::state;
use repr::SqlError;

const CONDITIONS: &str = include_str!("../data/conditions.tsv");

/// Parses the code of DO. Errors: 42601, 42704 for an unknown condition, 0A000 for what PL/pgSQL has beyond this; positions, which would
/// count within the code, are left out.
pub fn parse_block(code: &str) -> Result<Block, SqlError> {
    let inner = || {
        let mut p = Parser::new(code)?;
        let label = p.label()?;
        let block = p.block(label)?;
        p.eat_punct(";");
        if p.at_end() {
            Ok(block)
        } else {
            Err(p.error())
        }
    };
    inner().map_err(|e| SqlError { position: None, ..e })
}

/// The SQLSTATEs that a condition's name means.
fn codes(name: &str) -> Vec<[u8; 5]> {
    let code = |line: &str| line.split_once('\t').filter(|(n, _)| *n == name).and_then(|(_, c)| c.as_bytes().try_into().ok());
    CONDITIONS.lines().filter_map(code).collect()
}

/// One statement or expression out of the code.
fn one(text: &str) -> Result<ParsedStatement, SqlError> {
    let mut all = parse(text)?;
    match (all.pop(), all.is_empty()) {
        (Some(s), true) => Ok(s),
        _ => Err(SqlError::new(state::SYNTAX_ERROR, "missing expression")),
    }
}

fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in the code of DO"), "write it with IF, LOOP, FOR, EXECUTE and blocks with EXCEPTION, or do it in the client")
}

impl Parser<'_> {
    fn label(&mut self) -> Result<Option<String>, SqlError> {
        if !self.eat_op("<<") {
            return Ok(None);
        }
        let name = self.col_id()?.name;
        match self.eat_op(">>") {
            true => Ok(Some(name)),
            false => Err(self.error()),
        }
    }

    fn block(&mut self, label: Option<String>) -> Result<Block, SqlError> {
        self.deeper(|p| {
            let mut block = Block { label, line: p.line(), ..Block::default() };
            while p.eat_kw("declare") {
                while !p.is_kw("begin") && !p.is_kw("declare") {
                    block.variables.push(p.variable()?);
                }
            }
            p.expect_kw("begin")?;
            block.steps = p.steps()?;
            if p.eat_kw("exception") {
                while p.eat_kw("when") {
                    let mut conditions = p.conditions()?;
                    while p.eat_kw("or") {
                        conditions.extend(p.conditions()?);
                    }
                    p.expect_kw("then")?;
                    block.handlers.push((conditions, p.steps()?));
                }
                if block.handlers.is_empty() {
                    return Err(p.error());
                }
            }
            p.expect_kw("end")?;
            p.end_label()?;
            Ok(block)
        })
    }

    /// The label that may be repeated behind END.
    fn end_label(&mut self) -> Result<(), SqlError> {
        if !self.is_punct(";") && !self.at_end() {
            self.col_id()?;
        }
        Ok(())
    }

    fn conditions(&mut self) -> Result<Vec<Condition>, SqlError> {
        if self.eat_kw("sqlstate") {
            return Ok(vec![Condition::Code(self.code()?)]);
        }
        let name = self.col_id()?;
        if name.name == "others" {
            return Ok(vec![Condition::Others]);
        }
        match codes(&name.name) {
            none if none.is_empty() => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized exception condition \"{}\"", name.name))),
            some => Ok(some.into_iter().map(Condition::Code).collect()),
        }
    }

    /// A SQLSTATE as a string.
    fn code(&mut self) -> Result<[u8; 5], SqlError> {
        let Tok::String(s) = self.tok().clone() else { return Err(self.error()) };
        let code = s.as_bytes().try_into().ok().filter(|_| s.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()));
        self.next();
        code.ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, "invalid SQLSTATE code"))
    }

    fn variable(&mut self) -> Result<Variable, SqlError> {
        let name = self.col_id()?;
        if self.is_kw("alias") {
            return Err(unsupported("an alias"));
        }
        if self.is_kw("cursor") || self.is_kw("no") && self.is_kw_at(1, "scroll") || self.is_kw("scroll") {
            let cursor = self.bound_cursor()?;
            self.expect_punct(";")?;
            return Ok(Variable { name, ty: VariableType::Cursor(Box::new(cursor)), constant: false, not_null: false, value: None });
        }
        let constant = self.eat_kw("constant");
        let ty = self.variable_type()?;
        if self.eat_kw("collate") {
            self.object_name()?;
        }
        let not_null = self.eat_kws(&["not", "null"]);
        let given = self.eat_kw("default") || self.eat_punct(":=") || self.eat_op("=");
        let value = if given { Some(self.expression(&[";"])?) } else { None };
        self.expect_punct(";")?;
        Ok(Variable { name, ty, constant, not_null, value })
    }

    fn variable_type(&mut self) -> Result<VariableType, SqlError> {
        if self.eat_kw("record") {
            return Ok(VariableType::Record);
        }
        let (mark, start) = (self.mark(), self.span().start);
        let mut parts = 0;
        let name = match self.tok() {
            Tok::Word(w) | Tok::Quoted(w) => Ident { name: w.clone(), pos: 0 },
            _ => return Err(self.error()),
        };
        while matches!(self.tok(), Tok::Word(_) | Tok::Quoted(_)) {
            self.next();
            parts += 1;
            if !self.eat_punct(".") {
                break;
            }
        }
        let written = self.span_from(start);
        if self.eat_op("%") {
            let written = &self.sql[written.start..written.end];
            if self.eat_kw("rowtype") {
                return Ok(VariableType::Record);
            }
            self.expect_kw("type")?;
            return match (parts, written.rsplit_once('.')) {
                (2.., Some((table, column))) => Ok(VariableType::Like(one(&format!("SELECT {column} FROM {table}"))?)),
                _ => Ok(VariableType::OfVariable(name)),
            };
        }
        self.reset(mark);
        Ok(VariableType::Named(self.type_name()?))
    }

    /// `[[NO] SCROLL] CURSOR [(name type, …)] {FOR | IS} query`.
    fn bound_cursor(&mut self) -> Result<BoundCursor, SqlError> {
        let scroll = self.scroll();
        self.expect_kw("cursor")?;
        let params = match self.is_punct("(") {
            true => self.parens(|p| p.comma_list(|p| Ok((p.col_id()?, p.type_name()?))))?,
            false => Vec::new(),
        };
        if !self.eat_kw("for") && !self.eat_kw("is") {
            return Err(self.error());
        }
        Ok(BoundCursor { scroll, params, query: one(&self.text_until(&[])?)? })
    }

    fn scroll(&mut self) -> Option<bool> {
        if self.eat_kws(&["no", "scroll"]) {
            return Some(false);
        }
        self.eat_kw("scroll").then_some(true)
    }

    /// The line that comes next, from 1.
    fn line(&self) -> u32 {
        let before = &self.sql[..self.span().start.min(self.sql.len())];
        before.bytes().filter(|b| *b == b'\n').count() as u32 + 1
    }

    fn steps(&mut self) -> Result<Steps, SqlError> {
        let mut steps = Vec::new();
        while !self.is_any_kw(&["end", "exception", "elsif", "elseif", "else", "when"]) && !self.at_end() {
            let line = self.line();
            steps.push((line, self.step()?));
            self.expect_punct(";")?;
        }
        Ok(steps)
    }

    /// Text up to one of `ends` outside brackets, which is not taken.
    fn text_until(&mut self, ends: &[&str]) -> Result<String, SqlError> {
        let (start, mut open) = (self.span().start, 0_usize);
        loop {
            match self.tok() {
                Tok::Punct(p) if open == 0 && (ends.contains(p) || *p == ";") => break,
                Tok::Word(w) if open == 0 && ends.contains(&w.as_str()) => break,
                Tok::Punct("(" | "[") => open += 1,
                Tok::Punct(")" | "]") => open = open.saturating_sub(1),
                Tok::Eof => return Err(self.error()),
                _ => {}
            }
            self.next();
        }
        if self.span().start == start {
            return Err(SqlError::new(state::SYNTAX_ERROR, "missing expression"));
        }
        Ok(self.sql[start..self.last_end()].to_owned())
    }

    fn expression(&mut self, ends: &[&str]) -> Result<ParsedStatement, SqlError> {
        one(&format!("SELECT {}", self.text_until(ends)?))
    }

    fn expressions(&mut self, ends: &[&str]) -> Result<Vec<ParsedStatement>, SqlError> {
        let ends: Vec<&str> = ends.iter().copied().chain([","]).collect();
        self.comma_list(|p| p.expression(&ends))
    }

    fn step(&mut self) -> Result<Step, SqlError> {
        let label = self.label()?;
        let Tok::Word(w) = self.tok().clone() else {
            return if matches!(self.tok(), Tok::Quoted(_)) { self.assignment_step() } else { Err(self.error()) };
        };
        if self.is_punct_at(1, ":=") || matches!(self.tok_at(1), Tok::Op(o) if o == "=") {
            return self.assignment_step();
        }
        if self.is_punct_at(1, "[") || self.is_punct_at(1, ".") {
            return self.assignment_step();
        }
        let step = match w.as_str() {
            "declare" | "begin" => Step::Block(self.block(label)?),
            "loop" | "while" | "for" | "foreach" => self.loop_step(label)?,
            "if" => self.if_step()?,
            "call" => return Err(unsupported("CALL")),
            "case" => self.case_step()?,
            "open" => self.open_step()?,
            "fetch" | "move" => self.fetch_step(w == "move")?,
            "close" => {
                self.next();
                Step::Close(self.col_id()?)
            }
            "null" => {
                self.next();
                Step::Null
            }
            "return" => {
                self.next();
                Step::Return
            }
            "exit" | "continue" => {
                self.next();
                let label = if self.is_punct(";") || self.is_kw("when") { None } else { Some(self.col_id()?.name) };
                let when = if self.eat_kw("when") { Some(self.expression(&[])?) } else { None };
                Step::Leave { label, when, again: w == "continue" }
            }
            "raise" => Step::Raise(Box::new(self.raise()?)),
            "assert" => {
                self.next();
                let holds = self.expression(&[","])?;
                Step::Assert { holds, message: if self.eat_punct(",") { Some(self.expression(&[])?) } else { None } }
            }
            "get" => {
                self.next();
                let stacked = self.eat_kw("stacked");
                if !stacked {
                    self.eat_kw("current");
                }
                self.expect_kw("diagnostics")?;
                Step::Diagnostics { stacked, items: self.comma_list(|p| p.diagnostics_item(stacked))? }
            }
            "perform" => {
                self.next();
                Step::Perform(self.expression(&[])?)
            }
            "execute" => {
                self.next();
                let text = self.expression(&["into", "using"])?;
                let (mut into, mut using) = (None, Vec::new());
                loop {
                    if self.eat_kw("into") {
                        into = Some(self.into()?);
                    } else if self.eat_kw("using") {
                        using = self.expressions(&["into"])?;
                    } else {
                        break;
                    }
                }
                Step::Execute { text, using, into }
            }
            _ => self.sql_step()?,
        };
        Ok(step)
    }

    fn assignment_step(&mut self) -> Result<Step, SqlError> {
        let target = self.assign_target()?;
        if !self.eat_punct(":=") && !self.eat_op("=") {
            return Err(self.error());
        }
        let value = self.expression(&[])?;
        Ok(if target.path.is_empty() { Step::Assign(target.column, value) } else { Step::AssignPart(target, value) })
    }

    fn diagnostics_item(&mut self, stacked: bool) -> Result<(Ident, String), SqlError> {
        const CURRENT: [&str; 2] = ["row_count", "pg_context"];
        const STACKED: [&str; 10] = [
            "returned_sqlstate",
            "column_name",
            "constraint_name",
            "pg_datatype_name",
            "message_text",
            "table_name",
            "schema_name",
            "pg_exception_detail",
            "pg_exception_hint",
            "pg_exception_context",
        ];
        let variable = self.col_id()?;
        if !self.eat_punct(":=") && !self.eat_op("=") {
            return Err(self.error());
        }
        let item = self.col_id()?.name;
        let known = if stacked { STACKED.contains(&item.as_str()) } else { CURRENT.contains(&item.as_str()) };
        if !known {
            let other = CURRENT.contains(&item.as_str()) || STACKED.contains(&item.as_str());
            let words = if stacked { "GET STACKED DIAGNOSTICS" } else { "GET CURRENT DIAGNOSTICS" };
            return Err(SqlError::new(
                state::SYNTAX_ERROR,
                if other { format!("diagnostics item {} is not allowed in {words}", item.to_uppercase()) } else { "unrecognized GET DIAGNOSTICS item".into() },
            ));
        }
        Ok((variable, item))
    }

    fn case_step(&mut self) -> Result<Step, SqlError> {
        self.deeper(|p| {
            p.expect_kw("case")?;
            let subject = if p.is_kw("when") { None } else { Some(p.expression(&["when"])?) };
            let (mut arms, mut other) = (Vec::new(), None);
            while p.eat_kw("when") {
                let condition = match &subject {
                    None => p.expression(&["then"])?,
                    Some(_) => one(&format!("SELECT \"{SUBJECT}\" IN ({})", p.text_until(&["then"])?))?,
                };
                p.expect_kw("then")?;
                arms.push((condition, p.steps()?));
            }
            if arms.is_empty() {
                return Err(p.error());
            }
            if p.eat_kw("else") {
                other = Some(p.steps()?);
            }
            p.expect_kws(&["end", "case"])?;
            Ok(Step::Case { subject, arms, other })
        })
    }

    fn open_step(&mut self) -> Result<Step, SqlError> {
        self.expect_kw("open")?;
        let cursor = self.col_id()?;
        let scroll = self.scroll();
        if !self.eat_kw("for") {
            return Ok(Step::Open { cursor, scroll, what: Opened::Bound(self.cursor_args()?) });
        }
        let what = if self.eat_kw("execute") {
            let text = self.expression(&["using"])?;
            Opened::Execute { text, using: if self.eat_kw("using") { self.expressions(&[])? } else { Vec::new() } }
        } else {
            Opened::Query(one(&self.text_until(&[])?)?)
        };
        Ok(Step::Open { cursor, scroll, what })
    }

    /// `(x, name := y)`, or nothing.
    fn cursor_args(&mut self) -> Result<CursorArgs, SqlError> {
        if !self.is_punct("(") {
            return Ok(Vec::new());
        }
        self.parens(|p| {
            p.comma_list(|p| {
                let named = p.is_punct_at(1, ":=") || matches!(p.tok_at(1), Tok::Op(o) if o == "=>");
                let name = if named { Some(p.col_id()?) } else { None };
                if named {
                    p.next();
                }
                Ok((name, p.expression(&[",", ")"])?))
            })
        })
    }

    /// FETCH and MOVE as SQL has them; FETCH brings one row, into variables.
    fn fetch_step(&mut self, is_move: bool) -> Result<Step, SqlError> {
        let Statement::Fetch(f) = self.fetch(is_move)? else { return Err(self.error()) };
        let several = match f.direction {
            FetchDirection::Forward(n) | FetchDirection::Backward(n) => n > 1,
            FetchDirection::ForwardAll | FetchDirection::BackwardAll => true,
            FetchDirection::Absolute(_) | FetchDirection::Relative(_) => false,
        };
        if several && !is_move {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "FETCH statement cannot return multiple rows"));
        }
        let into = match is_move {
            true => None,
            false => {
                self.expect_kw("into")?;
                Some(self.comma_list(Self::col_id)?)
            }
        };
        Ok(Step::Fetch { cursor: f.name, direction: f.direction, into })
    }

    fn into(&mut self) -> Result<Destination, SqlError> {
        let strict = self.eat_kw("strict");
        Ok(Destination { strict, targets: self.comma_list(Self::col_id)? })
    }

    /// A statement of SQL. INTO before its end names variables, except behind INSERT and MERGE.
    fn sql_step(&mut self) -> Result<Step, SqlError> {
        let reads = self.is_any_kw(&["select", "with", "insert", "update", "delete", "values", "table"]);
        let (start, mut open, mut before) = (self.span().start, 0_usize, String::new());
        let (mut into, mut cut) = (None, None);
        while !(open == 0 && self.is_punct(";")) {
            match self.tok().clone() {
                Tok::Word(w) if w == "into" && open == 0 && reads && into.is_none() && before != "insert" && before != "merge" => {
                    let from = self.span().start;
                    self.next();
                    into = Some(self.into()?);
                    cut = Some((from, self.last_end()));
                    continue;
                }
                Tok::Word(w) => before = w,
                Tok::Punct("(" | "[") => open += 1,
                Tok::Punct(")" | "]") => open = open.saturating_sub(1),
                Tok::Eof => return Err(self.error()),
                _ => before.clear(),
            }
            self.next();
        }
        let text = match cut {
            Some((from, to)) => format!("{} {}", &self.sql[start..from], &self.sql[to..self.last_end().max(to)]),
            None => self.sql[start..self.last_end()].to_owned(),
        };
        Ok(Step::Sql(one(&text)?, into))
    }

    fn if_step(&mut self) -> Result<Step, SqlError> {
        self.deeper(|p| {
            p.expect_kw("if")?;
            let (mut arms, mut other) = (Vec::new(), Vec::new());
            loop {
                let condition = p.expression(&["then"])?;
                p.expect_kw("then")?;
                arms.push((condition, p.steps()?));
                if !p.eat_kw("elsif") && !p.eat_kw("elseif") {
                    break;
                }
            }
            if p.eat_kw("else") {
                other = p.steps()?;
            }
            p.expect_kws(&["end", "if"])?;
            Ok(Step::If(arms, other))
        })
    }

    fn loop_step(&mut self, label: Option<String>) -> Result<Step, SqlError> {
        self.deeper(|p| {
            let rows = if p.eat_kw("while") {
                Loop::While(p.expression(&["loop"])?)
            } else if p.eat_kw("foreach") {
                let variable = p.col_id()?;
                let slice = if p.eat_kw("slice") { p.signed_integer()? } else { 0 };
                p.expect_kws(&["in", "array"])?;
                Loop::Array { variable, slice, array: p.expression(&["loop"])? }
            } else if p.eat_kw("for") {
                p.for_rows()?
            } else {
                Loop::Forever
            };
            p.expect_kw("loop")?;
            let steps = p.steps()?;
            p.expect_kws(&["end", "loop"])?;
            p.end_label()?;
            Ok(Step::Loop { label, rows, steps })
        })
    }

    fn for_rows(&mut self) -> Result<Loop, SqlError> {
        let targets = self.comma_list(Self::col_id)?;
        self.expect_kw("in")?;
        if self.eat_kw("execute") {
            let text = self.expression(&["using", "loop"])?;
            let using = if self.eat_kw("using") { self.expressions(&["loop"])? } else { Vec::new() };
            return Ok(Loop::Execute { targets, text, using });
        }
        if let (Some(cursor), [variable]) = (self.cursor_in_loop()?, targets.as_slice()) {
            return Ok(Loop::Cursor { variable: variable.clone(), cursor: cursor.0, args: cursor.1 });
        }
        let reverse = self.eat_kw("reverse");
        let text = self.text_until(&["..", "loop"])?;
        if !self.eat_punct("..") {
            return Ok(Loop::Query { targets, query: one(&text)? });
        }
        let [variable] = targets.as_slice() else {
            return Err(SqlError::new(state::SYNTAX_ERROR, "integer FOR loop must have only one target variable"));
        };
        let (variable, from) = (variable.clone(), one(&format!("SELECT {text}"))?);
        let to = self.expression(&["by", "loop"])?;
        let by = if self.eat_kw("by") { Some(self.expression(&["loop"])?) } else { None };
        Ok(Loop::Integers { variable, from, to, by, reverse })
    }

    /// A cursor's name, with the values of its parameters, where that is all that a loop goes over.
    fn cursor_in_loop(&mut self) -> Result<Option<(Ident, CursorArgs)>, SqlError> {
        let mark = self.mark();
        if !matches!(self.tok(), Tok::Word(_) | Tok::Quoted(_)) || self.is_any_kw(&["select", "values", "with", "table"]) {
            return Ok(None);
        }
        if let Ok(cursor) = self.col_id() {
            if let Ok(args) = self.cursor_args() {
                if self.is_kw("loop") {
                    return Ok(Some((cursor, args)));
                }
            }
        }
        self.reset(mark);
        Ok(None)
    }

    fn raise(&mut self) -> Result<Raise, SqlError> {
        self.expect_kw("raise")?;
        let mut raise = Raise { level: "EXCEPTION", message: None, code: None, options: Vec::new(), again: self.is_punct(";") };
        if let Some(level) = ["DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "EXCEPTION"].into_iter().find(|l| self.eat_kw(&l.to_lowercase())) {
            raise.level = level;
        }
        match self.tok().clone() {
            Tok::String(format) => {
                self.next();
                let args = if self.eat_punct(",") { self.expressions(&["using"])? } else { Vec::new() };
                // `%%` is a sign, every other `%` a place.
                if format.replace("%%", "").matches('%').count() != args.len() {
                    let few = format.replace("%%", "").matches('%').count() > args.len();
                    return Err(SqlError::new(state::SYNTAX_ERROR, format!("too {} parameters specified for RAISE", if few { "few" } else { "many" })));
                }
                raise.message = Some((format, args));
            }
            Tok::Word(w) if w == "sqlstate" => {
                self.next();
                raise.code = Some(self.code()?);
            }
            Tok::Word(w) if w != "using" => {
                self.next();
                let code = codes(&w).first().copied();
                raise.code = Some(code.ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized exception condition \"{w}\"")))?);
                raise.message = Some((w, Vec::new()));
            }
            _ => {}
        }
        if self.eat_kw("using") {
            raise.options = self.comma_list(|p| {
                let name = p.col_label()?.name;
                if !p.eat_op("=") && !p.eat_punct(":=") {
                    return Err(p.error());
                }
                Ok((name, p.expression(&[","])?))
            })?;
        }
        Ok(raise)
    }
}

/// The SQLSTATE that ERRCODE means, written as such or as a condition's name.
pub fn code_of(text: &str) -> Option<[u8; 5]> {
    codes(text).first().copied().or_else(|| text.as_bytes().try_into().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())))
}
