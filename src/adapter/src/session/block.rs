//! DO: the code of a block is carried out, statement by statement.
//!
//! Each statement and expression is planned when its turn comes, with the variables as they stand; what it does is part of the transaction in
//! hand. A block with EXCEPTION sets a savepoint, and goes back to it when one of its handlers takes an error. Rows that a loop goes over are
//! held in memory. Not here: the grammar (`sql::parse`).

use super::query::{constant, Row};
use super::write::text_style;
use super::{Response, Session};
use repr::error::state;
use repr::types::RecordType;
use repr::{ColType, SqlError, SqlState, SqlType, Value};
use sql::ast::block::{Block, Condition, Destination, Loop, Raise, Step, VariableType};
use sql::ast::Ident;
use sql::plan::{Plan, Variable};
use sql::ParsedStatement;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A variable under way.
struct Slot {
    seen: Variable,
    /// `None`: a record, of the type of what it holds.
    ty: Option<ColType>,
    constant: bool,
    not_null: bool,
}

/// What the statement in hand stands in.
struct Scope {
    /// The innermost last.
    slots: Vec<Slot>,
    row_count: i64,
    /// The errors that are being handled.
    caught: Vec<SqlError>,
}

/// What is done after a step.
enum Flow {
    Next,
    Exit(Option<String>),
    Continue(Option<String>),
    Return,
}

/// What a statement has brought.
struct Outcome {
    /// Its columns, if it has any.
    columns: Option<Vec<(String, ColType)>>,
    rows: Vec<Row>,
    count: i64,
}

type Stepping<'a> = Pin<Box<dyn Future<Output = Result<Flow, SqlError>> + Send + 'a>>;

const NO_ROWS: SqlState = SqlState::new("P0002");
const TOO_MANY_ROWS: SqlState = SqlState::new("P0003");
const RAISED: SqlState = SqlState::new("P0001");
const ASSERT_FAILURE: SqlState = SqlState::new("P0004");
const CONSTANT_ASSIGNED: SqlState = SqlState::new("22005");

fn record(columns: &[(String, ColType)]) -> SqlType {
    const RECORD: u32 = 2249;
    SqlType::Record(Arc::new(RecordType { oid: RECORD, array_oid: 0, name: None, fields: columns.to_vec() }))
}

fn takes(condition: &Condition, e: &SqlError) -> bool {
    match condition {
        // As in Postgres: the end of a statement and a broken promise are not for everyone.
        Condition::Others => e.code != state::QUERY_CANCELED && e.code != ASSERT_FAILURE,
        Condition::Code(c) if c.ends_with(b"000") => e.code.0[..2] == c[..2],
        Condition::Code(c) => e.code.0 == *c,
    }
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, message)
}

impl Scope {
    fn seen(&self) -> Vec<Variable> {
        self.slots.iter().map(|s| s.seen.clone()).collect()
    }

    fn slot(&mut self, name: &str) -> Result<&mut Slot, SqlError> {
        self.slots.iter_mut().rev().find(|s| s.seen.name == name).ok_or_else(|| syntax(format!("\"{name}\" is not a known variable")))
    }

    fn add(&mut self, name: &str, value: Value, ty: ColType) {
        self.slots.push(Slot { seen: Variable { name: name.into(), value, ty: ty.ty.clone() }, ty: Some(ty), constant: false, not_null: false });
    }

    fn found(&mut self, yes: bool) {
        if let Some(found) = self.slots.first_mut() {
            found.seen.value = Value::Bool(yes);
        }
    }
}

impl Session {
    pub(super) async fn run_block(&mut self, block: &Block) -> Result<Response, SqlError> {
        let mut scope = Scope { slots: Vec::new(), row_count: 0, caught: Vec::new() };
        scope.add("found", Value::Bool(false), SqlType::Bool.not_null());
        match self.block(block, &mut scope).await? {
            Flow::Exit(_) => Err(syntax("EXIT cannot be used outside a loop, unless it has a label")),
            Flow::Continue(_) => Err(syntax("CONTINUE cannot be used outside a loop")),
            Flow::Next | Flow::Return => Ok(Response::Tag("DO".into())),
        }
    }

    fn block<'a>(&'a mut self, block: &'a Block, scope: &'a mut Scope) -> Stepping<'a> {
        Box::pin(async move {
            let outer = scope.slots.len();
            let flow = self.block_inside(block, scope).await;
            scope.slots.truncate(outer);
            match flow {
                Ok(Flow::Exit(Some(label))) if block.label.as_ref() == Some(&label) => Ok(Flow::Next),
                flow => flow,
            }
        })
    }

    async fn block_inside(&mut self, block: &Block, scope: &mut Scope) -> Result<Flow, SqlError> {
        for v in &block.variables {
            self.declare_variable(v, scope).await?;
        }
        if block.handlers.is_empty() {
            return self.steps(&block.steps, scope).await;
        }
        let mark = self.set_savepoint(String::new());
        let within = scope.slots.len();
        let e = match self.steps(&block.steps, scope).await {
            Ok(flow) => {
                self.end_savepoint(mark)?;
                return Ok(flow);
            }
            Err(e) => e,
        };
        let Some((_, steps)) = block.handlers.iter().find(|h| h.0.iter().any(|c| takes(c, &e))) else { return Err(e) };
        self.go_back_to(mark);
        self.end_savepoint(mark)?;
        scope.slots.truncate(within);
        scope.add("sqlstate", Value::Text(e.code.as_str().into()), SqlType::Text.not_null());
        scope.add("sqlerrm", Value::Text(e.message.clone()), SqlType::Text.not_null());
        scope.caught.push(e);
        let flow = self.steps(steps, scope).await;
        scope.caught.pop();
        flow
    }

    async fn declare_variable(&mut self, v: &sql::ast::block::Variable, scope: &mut Scope) -> Result<(), SqlError> {
        let ty = match &v.ty {
            VariableType::Record => None,
            VariableType::Named(t) => Some(sql::plan::variable_type(t, &self.names())?),
            VariableType::Like(column) => {
                let described = sql::plan::describe(column, &self.names(), &[])?;
                described.result.and_then(|r| r.types.into_iter().next())
            }
        };
        let value = match &v.value {
            Some(e) => Some(self.value(e, scope).await?),
            None if v.not_null => {
                let m = format!("variable \"{}\" must have a default value, since it's declared NOT NULL", v.name.name);
                return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, m));
            }
            None => None,
        };
        let held = ty.as_ref().map_or_else(|| record(&[]), |t| t.ty.clone());
        let seen = Variable { name: v.name.name.clone(), value: Value::Null, ty: held };
        scope.slots.push(Slot { seen, ty, constant: false, not_null: v.not_null });
        if let Some((value, from)) = value {
            self.assign(&v.name, value, &from, scope)?;
        }
        scope.slot(&v.name.name)?.constant = v.constant;
        Ok(())
    }

    /// A value as the type that a variable has, or a condition must have.
    fn as_type(&self, value: Value, from: &SqlType, to: &ColType) -> Result<Value, SqlError> {
        let names = self.names();
        let cast = sql::plan::assigned(value, from, to, &names)?;
        constant(cast, &names.ctx).map_err(|e| SqlError { position: None, ..e })
    }

    fn assign(&mut self, to: &Ident, value: Value, from: &SqlType, scope: &mut Scope) -> Result<(), SqlError> {
        let slot = scope.slot(&to.name)?;
        if slot.constant {
            return Err(SqlError::new(CONSTANT_ASSIGNED, format!("variable \"{}\" is declared CONSTANT", to.name)));
        }
        let (value, ty) = match &slot.ty {
            Some(ty) => (self.as_type(value, from, ty)?, ty.ty.clone()),
            None if matches!(from, SqlType::Record(_)) || value.is_null() => (value, from.clone()),
            None => {
                let m = "cannot assign non-composite value to a record variable";
                return Err(SqlError::new(state::DATATYPE_MISMATCH, m));
            }
        };
        if slot.not_null && value.is_null() {
            let m = format!("null value cannot be assigned to variable \"{}\" declared NOT NULL", to.name);
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, m));
        }
        (slot.seen.value, slot.seen.ty) = (value, ty);
        Ok(())
    }

    /// A row, or no row, into variables: one record, or each column into its own. What is missing is NULL.
    fn assign_row(&mut self, targets: &[Ident], columns: &[(String, ColType)], row: Option<Row>, scope: &mut Scope) -> Result<(), SqlError> {
        let row = row.unwrap_or_else(|| vec![Value::Null; columns.len()]);
        if let [one] = targets {
            if scope.slot(&one.name)?.ty.is_none() {
                return self.assign(one, Value::Record(row), &record(columns), scope);
            }
        }
        let mut row = row.into_iter();
        for (i, to) in targets.iter().enumerate() {
            let ty = columns.get(i).map_or(SqlType::Unknown, |c| c.1.ty.clone());
            self.assign(to, row.next().unwrap_or(Value::Null), &ty, scope)?;
        }
        Ok(())
    }

    /// Runs one statement to its end.
    async fn statement(&mut self, parsed: &ParsedStatement, params: &[(Value, SqlType)], scope: &mut Scope) -> Result<Outcome, SqlError> {
        self.cancel.statement().check()?;
        self.pinned = Some(self.shared.catalog());
        let inside = |e: SqlError| SqlError { position: None, ..e };
        let plan = {
            let names = self.names();
            tokio::task::block_in_place(|| sql::plan::plan_in_block(parsed, &names, params, &scope.seen())).map_err(inside)?
        };
        let refused = match &plan {
            Plan::Begin(..) | Plan::Commit { .. } | Plan::Rollback { .. } => Some("a transaction command"),
            Plan::Savepoint(_) | Plan::ReleaseSavepoint(_) | Plan::RollbackTo(_) => Some("a savepoint"),
            Plan::CopyTo(_) | Plan::CopyFrom(_) => Some("COPY to or from the client"),
            Plan::Subscribe(_) => Some("SUBSCRIBE"),
            Plan::Do(_) => Some("DO"),
            _ => None,
        };
        if let Some(what) = refused {
            return Err(SqlError::unsupported(format!("{what} in the code of DO"), "do it before or after DO; EXCEPTION undoes what its block has done"));
        }
        let outcome = match Box::pin(self.run(plan)).await.map_err(inside)? {
            Response::Rows { desc, mut rows, .. } => {
                let mut all = Vec::new();
                while let Some(part) = rows.next().await {
                    all.append(&mut part.map_err(inside)?);
                }
                let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
                Outcome { columns: Some(desc.names.into_iter().zip(desc.types).collect()), rows: all, count }
            }
            Response::Tag(tag) => Outcome { columns: None, rows: Vec::new(), count: tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0) },
            _ => Outcome { columns: None, rows: Vec::new(), count: 0 },
        };
        scope.row_count = outcome.count;
        Ok(outcome)
    }

    /// The one value of an expression.
    async fn value(&mut self, e: &ParsedStatement, scope: &mut Scope) -> Result<(Value, SqlType), SqlError> {
        let count = scope.row_count;
        let outcome = self.statement(e, &[], scope).await?;
        scope.row_count = count;
        let columns = outcome.columns.unwrap_or_default();
        if outcome.rows.len() > 1 {
            return Err(SqlError::new(state::CARDINALITY_VIOLATION, "query returned more than one row"));
        }
        let [column] = columns.as_slice() else {
            return Err(syntax(format!("query returned {} columns", columns.len())));
        };
        let value = outcome.rows.into_iter().next().and_then(|r| r.into_iter().next()).unwrap_or(Value::Null);
        Ok((value, column.1.ty.clone()))
    }

    async fn is_true(&mut self, e: &ParsedStatement, scope: &mut Scope) -> Result<bool, SqlError> {
        let (value, ty) = self.value(e, scope).await?;
        Ok(self.as_type(value, &ty, &SqlType::Bool.nullable())? == Value::Bool(true))
    }

    async fn text(&mut self, e: &ParsedStatement, scope: &mut Scope) -> Result<Option<String>, SqlError> {
        let (value, ty) = self.value(e, scope).await?;
        match self.as_type(value, &ty, &SqlType::Text.nullable())? {
            Value::Text(s) => Ok(Some(s)),
            _ => Ok(None),
        }
    }

    async fn integer(&mut self, e: &ParsedStatement, what: &str, scope: &mut Scope) -> Result<i32, SqlError> {
        let (value, ty) = self.value(e, scope).await?;
        match self.as_type(value, &ty, &SqlType::Int4.nullable())? {
            Value::Int4(n) => Ok(n),
            _ => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("{what} of FOR loop cannot be null"))),
        }
    }

    /// The statement that EXECUTE makes, with what USING gives it.
    async fn dynamic(&mut self, text: &ParsedStatement, using: &[ParsedStatement], scope: &mut Scope) -> Result<Vec<Outcome>, SqlError> {
        let Some(text) = self.text(text, scope).await? else {
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null"));
        };
        let mut params = Vec::new();
        for e in using {
            params.push(self.value(e, scope).await?);
        }
        // It knows no variables, only what USING gives it.
        let slots = std::mem::take(&mut scope.slots);
        let mut all = Vec::new();
        let mut result = Ok(());
        match sql::parse(&text) {
            Ok(statements) => {
                for s in &statements {
                    match self.statement(s, &params, scope).await {
                        Ok(outcome) => all.push(outcome),
                        Err(e) => {
                            result = Err(e);
                            break;
                        }
                    }
                }
            }
            Err(e) => result = Err(SqlError { position: None, ..e }),
        }
        scope.slots = slots;
        result.map(|()| all)
    }

    fn into_variables(&mut self, into: &Destination, outcome: Outcome, scope: &mut Scope) -> Result<(), SqlError> {
        let Some(columns) = outcome.columns else { return Err(syntax("INTO used with a command that cannot return data")) };
        if into.strict && outcome.rows.is_empty() {
            return Err(SqlError::new(NO_ROWS, "query returned no rows"));
        }
        if into.strict && outcome.rows.len() > 1 {
            return Err(SqlError::new(TOO_MANY_ROWS, "query returned more than one row").with_hint("Make sure the query returns a single row, or use LIMIT 1."));
        }
        scope.found(!outcome.rows.is_empty());
        self.assign_row(&into.targets, &columns, outcome.rows.into_iter().next(), scope)
    }

    fn steps<'a>(&'a mut self, steps: &'a [Step], scope: &'a mut Scope) -> Stepping<'a> {
        Box::pin(async move {
            for step in steps {
                match self.step(step, scope).await? {
                    Flow::Next => {}
                    other => return Ok(other),
                }
            }
            Ok(Flow::Next)
        })
    }

    async fn step(&mut self, step: &Step, scope: &mut Scope) -> Result<Flow, SqlError> {
        match step {
            Step::Null => {}
            Step::Return => return Ok(Flow::Return),
            Step::Sql(statement, into) => {
                let outcome = self.statement(statement, &[], scope).await?;
                match into {
                    Some(into) => self.into_variables(into, outcome, scope)?,
                    None if outcome.columns.is_some() => {
                        let e = syntax("query has no destination for result data");
                        return Err(e.with_hint("If you want to discard the results of a SELECT, use PERFORM instead."));
                    }
                    None => scope.found(outcome.count > 0),
                }
            }
            Step::Perform(query) => {
                let outcome = self.statement(query, &[], scope).await?;
                scope.found(outcome.count > 0);
            }
            Step::Execute { text, using, into } => {
                let last = self.dynamic(text, using, scope).await?.pop();
                if let (Some(into), Some(outcome)) = (into, last) {
                    let found = scope.slots.first().map(|s| s.seen.value.clone());
                    self.into_variables(into, outcome, scope)?;
                    // EXECUTE leaves FOUND as it was.
                    scope.found(found == Some(Value::Bool(true)));
                }
            }
            Step::Assign(to, e) => {
                let (value, ty) = self.value(e, scope).await?;
                self.assign(to, value, &ty, scope)?;
            }
            Step::Block(block) => return self.block(block, scope).await,
            Step::If(arms, other) => {
                for (condition, steps) in arms {
                    if self.is_true(condition, scope).await? {
                        return self.steps(steps, scope).await;
                    }
                }
                return self.steps(other, scope).await;
            }
            Step::Loop { label, rows, steps } => {
                let outer = scope.slots.len();
                let flow = self.each(label.as_deref(), rows, steps, scope).await;
                scope.slots.truncate(outer);
                return flow;
            }
            Step::Leave { label, when, again } => {
                let leaves = match when {
                    Some(e) => self.is_true(e, scope).await?,
                    None => true,
                };
                if leaves {
                    return Ok(if *again { Flow::Continue(label.clone()) } else { Flow::Exit(label.clone()) });
                }
            }
            Step::Raise(raise) => self.raise(raise, scope).await?,
            Step::Assert { holds, message } => {
                if !self.is_true(holds, scope).await? {
                    let message = match message {
                        Some(m) => self.text(m, scope).await?,
                        None => None,
                    };
                    return Err(SqlError::new(ASSERT_FAILURE, message.unwrap_or_else(|| "assertion failed".into())));
                }
            }
            Step::RowCount(to) => self.assign(to, Value::Int8(scope.row_count), &SqlType::Int8, scope)?,
        }
        Ok(Flow::Next)
    }

    /// The body of a loop once: whether the loop goes on, or what is done instead.
    async fn once(&mut self, label: Option<&str>, steps: &[Step], scope: &mut Scope) -> Result<Option<Flow>, SqlError> {
        self.cancel.statement().check()?;
        let own = |to: &Option<String>| to.is_none() || to.as_deref() == label;
        Ok(match self.steps(steps, scope).await? {
            Flow::Next => None,
            Flow::Exit(to) if own(&to) => Some(Flow::Next),
            Flow::Continue(to) if own(&to) => None,
            other => Some(other),
        })
    }

    async fn each(&mut self, label: Option<&str>, rows: &Loop, steps: &[Step], scope: &mut Scope) -> Result<Flow, SqlError> {
        match rows {
            Loop::Forever => loop {
                if let Some(flow) = self.once(label, steps, scope).await? {
                    return Ok(flow);
                }
                tokio::task::yield_now().await;
            },
            Loop::While(condition) => {
                while self.is_true(condition, scope).await? {
                    if let Some(flow) = self.once(label, steps, scope).await? {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            Loop::Integers { variable, from, to, by, reverse } => {
                let mut at = self.integer(from, "lower bound", scope).await?;
                let to = self.integer(to, "upper bound", scope).await?;
                let by = match by {
                    Some(e) => self.integer(e, "BY value", scope).await?,
                    None => 1,
                };
                if by <= 0 {
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "BY value of FOR loop must be greater than zero"));
                }
                let mut any = false;
                scope.add(&variable.name, Value::Null, SqlType::Int4.nullable());
                let place = scope.slots.len() - 1;
                while if *reverse { at >= to } else { at <= to } {
                    any = true;
                    scope.slots[place].seen.value = Value::Int4(at);
                    if let Some(flow) = self.once(label, steps, scope).await? {
                        scope.found(true);
                        return Ok(flow);
                    }
                    match if *reverse { at.checked_sub(by) } else { at.checked_add(by) } {
                        Some(next) => at = next,
                        None => break,
                    }
                }
                scope.found(any);
                Ok(Flow::Next)
            }
            Loop::Query { targets, query } => {
                let outcome = self.statement(query, &[], scope).await?;
                self.over(label, targets, outcome, steps, scope).await
            }
            Loop::Execute { targets, text, using } => match self.dynamic(text, using, scope).await?.pop() {
                Some(outcome) => self.over(label, targets, outcome, steps, scope).await,
                None => Err(syntax("cannot open EXECUTE query as cursor")),
            },
            Loop::Array { variable, array } => {
                let (value, ty) = self.value(array, scope).await?;
                let SqlType::Array(element) = ty.base().clone() else {
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, "FOREACH expression must yield an array, not type ".to_owned() + &ty.sql_name()));
                };
                let Value::Array(array) = value else {
                    return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null"));
                };
                let columns = [(variable.name.clone(), element.nullable())];
                let rows = array.elems.into_iter().map(|v| vec![v]).collect();
                self.over(label, std::slice::from_ref(variable), Outcome { columns: Some(columns.to_vec()), rows, count: 0 }, steps, scope).await
            }
        }
    }

    /// The body once for each row.
    async fn over(&mut self, label: Option<&str>, targets: &[Ident], rows: Outcome, steps: &[Step], scope: &mut Scope) -> Result<Flow, SqlError> {
        let Some(columns) = rows.columns else { return Err(syntax("a FOR loop goes over the rows of a query")) };
        let any = !rows.rows.is_empty();
        for row in rows.rows {
            self.assign_row(targets, &columns, Some(row), scope)?;
            if let Some(flow) = self.once(label, steps, scope).await? {
                scope.found(true);
                return Ok(flow);
            }
        }
        scope.found(any);
        Ok(Flow::Next)
    }

    async fn raise(&mut self, raise: &Raise, scope: &mut Scope) -> Result<(), SqlError> {
        if raise.again {
            let e = scope.caught.last().cloned();
            return Err(e.unwrap_or_else(|| SqlError::new(SqlState::new("0Z002"), "RAISE without parameters cannot be used outside an exception handler")));
        }
        let default = match raise.level {
            "EXCEPTION" => RAISED,
            "WARNING" => SqlState::new("01000"),
            _ => SqlState::new("00000"),
        };
        let mut e = SqlError::new(raise.code.map_or(default, SqlState), String::new());
        if let Some((format, args)) = &raise.message {
            let mut values = Vec::new();
            for a in args {
                let (value, ty) = self.value(a, scope).await?;
                let style = text_style(&self.names().ctx);
                values.push(if value.is_null() { "<NULL>".into() } else { repr::text::to_text(&value, &ty, &style) });
            }
            e.message = filled(format, values);
        }
        for (option, value) in &raise.options {
            let Some(text) = self.text(value, scope).await? else {
                return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("RAISE statement option cannot be null: {}", option.to_uppercase())));
            };
            match option.as_str() {
                "message" => e.message = text,
                "detail" => e.detail = Some(text),
                "hint" => e.hint = Some(text),
                "column" => e = e.of_column(text),
                "constraint" => e = e.of_constraint(text),
                "datatype" => e = e.of_datatype(text),
                "table" => e.fields.get_or_insert_default().table = Some(text),
                "schema" => e.fields.get_or_insert_default().schema = Some(text),
                "errcode" => {
                    let unknown = || SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized exception condition \"{text}\""));
                    e.code = SqlState(sql::parse::code_of(&text).ok_or_else(unknown)?);
                }
                other => return Err(syntax(format!("unrecognized RAISE statement option \"{other}\""))),
            }
        }
        if e.message.is_empty() {
            e.message = e.code.as_str().to_owned();
        }
        if raise.level == "EXCEPTION" {
            return Err(e);
        }
        self.notice(raise.level, e);
        Ok(())
    }
}

/// The format with its places filled in their order; `%%` is a sign.
fn filled(format: &str, values: Vec<String>) -> String {
    let (mut out, mut values, mut signs) = (String::new(), values.into_iter(), format.chars().peekable());
    while let Some(c) = signs.next() {
        match c {
            '%' if signs.peek() == Some(&'%') => {
                signs.next();
                out.push('%');
            }
            '%' => out.extend(values.next()),
            c => out.push(c),
        }
    }
    out
}
