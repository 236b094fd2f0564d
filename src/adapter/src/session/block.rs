//! DO: the code of a block is carried out, statement by statement.
//!
//! Each statement and expression is planned when its turn comes, with the variables as they stand; what it does is part of the transaction in
//! hand. A block with EXCEPTION sets a savepoint, and goes back to it when one of its handlers takes an error. Rows that a loop goes over are
//! held in memory. Not here: the grammar (`sql::parse`).

use super::cursor::Declared;
use super::query::{constant, Row};
use super::write::text_style;
use super::{Response, Session};
use repr::error::state;
use repr::types::RecordType;
use repr::{ColType, SqlError, SqlState, SqlType, Value};
use sql::ast::block::{Block, BoundCursor, Condition, CursorArgs, Destination, Loop, Opened, Raise, Step, Steps, VariableType, SUBJECT};
use sql::ast::{FetchDirection, Ident};
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
    /// A cursor that was declared with its query.
    cursor: Option<Arc<BoundCursor>>,
}

/// What the statement in hand stands in.
struct Scope {
    /// The innermost last.
    slots: Vec<Slot>,
    row_count: i64,
    /// The line of the step in hand, and what it is called.
    at: (u32, &'static str),
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
const CASE_NOT_FOUND: SqlState = SqlState::new("20000");
const NO_HANDLER: SqlState = SqlState::new("0Z002");
/// How many rows a loop over a cursor fetches at once.
const FETCHED: u64 = 50;

/// What is at fault, unless it is known more closely: an expression, a statement. What is wrong with a text itself is told by its position.
fn within(e: SqlError, what: impl FnOnce() -> String) -> SqlError {
    let known = e.fields.as_ref().is_some_and(|f| f.context.is_some());
    if known || e.code.as_str().starts_with("42") {
        e
    } else {
        e.in_context(what())
    }
}

/// The line that tells where in a block an error arose.
fn place((line, what): (u32, &str)) -> String {
    format!("PL/pgSQL function inline_code_block line {line} {what}")
}

/// An error with the place where it arose, which is the innermost.
fn told(e: SqlError, at: (u32, &str)) -> SqlError {
    let context = e.fields.as_ref().and_then(|f| f.context.clone());
    match context {
        Some(c) if c.contains("PL/pgSQL function ") => e,
        Some(c) => e.in_context(format!("{c}\n{}", place(at))),
        None => e.in_context(place(at)),
    }
}

/// What a step is called where an error in it is told.
fn called(step: &Step) -> &'static str {
    match step {
        Step::Null => "at NULL",
        Step::Return => "at RETURN",
        Step::Sql(..) => "at SQL statement",
        Step::Perform(_) => "at PERFORM",
        Step::Execute { .. } => "at EXECUTE",
        Step::Assign(..) | Step::AssignPart(..) => "at assignment",
        Step::Block(_) => "at statement block",
        Step::If(..) => "at IF",
        Step::Case { .. } => "at CASE",
        Step::Loop { rows, .. } => match rows {
            Loop::Forever => "at LOOP",
            Loop::While(_) => "at WHILE",
            Loop::Integers { .. } => "at FOR with integer loop variable",
            Loop::Query { .. } => "at FOR over SELECT rows",
            Loop::Execute { .. } => "at FOR over EXECUTE statement",
            Loop::Array { .. } => "at FOREACH over array",
            Loop::Cursor { .. } => "at FOR over cursor",
        },
        Step::Leave { again, .. } => {
            if *again {
                "at CONTINUE"
            } else {
                "at EXIT"
            }
        }
        Step::Raise(_) => "at RAISE",
        Step::Assert { .. } => "at ASSERT",
        Step::Open { .. } => "at OPEN",
        Step::Fetch { into, .. } => {
            if into.is_some() {
                "at FETCH"
            } else {
                "at MOVE"
            }
        }
        Step::Close(_) => "at CLOSE",
        Step::Diagnostics { stacked, .. } => {
            if *stacked {
                "at GET STACKED DIAGNOSTICS"
            } else {
                "at GET DIAGNOSTICS"
            }
        }
    }
}

/// An expression as it was written: the query that it is without its first word.
fn written(e: &ParsedStatement) -> &str {
    e.text.strip_prefix("SELECT ").unwrap_or(&e.text)
}

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
        self.slots.push(Slot { seen: Variable { name: name.into(), value, ty: ty.ty.clone() }, ty: Some(ty), constant: false, not_null: false, cursor: None });
    }

    fn found(&mut self, yes: bool) {
        if let Some(found) = self.slots.first_mut() {
            found.seen.value = Value::Bool(yes);
        }
    }
}

impl Session {
    pub(super) async fn run_block(&mut self, block: &Block) -> Result<Response, SqlError> {
        let mut scope = Scope { slots: Vec::new(), row_count: 0, at: (1, "at statement block"), caught: Vec::new() };
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
        scope.at = (block.line, "during statement block local variable initialization");
        for v in &block.variables {
            if let Err(e) = self.declare_variable(v, scope).await {
                return Err(told(e, scope.at));
            }
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
            VariableType::Cursor(_) => Some(SqlType::RefCursor.nullable()),
            VariableType::OfVariable(other) => {
                let unknown = || SqlError::new(state::UNDEFINED_OBJECT, format!("variable \"{}\" does not exist", other.name));
                let slot = scope.slots.iter().rev().find(|s| s.seen.name == other.name).ok_or_else(unknown)?;
                slot.ty.clone()
            }
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
        let cursor = match &v.ty {
            VariableType::Cursor(c) => Some(Arc::new((**c).clone())),
            _ => None,
        };
        // One that is declared with its query is called as its variable is.
        let held_value = if cursor.is_some() { Value::Text(v.name.name.clone()) } else { Value::Null };
        let seen = Variable { name: v.name.name.clone(), value: held_value, ty: held };
        scope.slots.push(Slot { seen, ty, constant: false, not_null: v.not_null, cursor });
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
        self.carried_out(parsed, params, scope).await.map_err(|e| within(e, || format!("SQL statement \"{}\"", parsed.text)))
    }

    /// As [`Session::statement`]; its errors do not tell which statement it was.
    async fn carried_out(&mut self, parsed: &ParsedStatement, params: &[(Value, SqlType)], scope: &mut Scope) -> Result<Outcome, SqlError> {
        self.check_interrupt()?;
        self.pinned = Some(self.shared.catalog());
        let inside = |e: SqlError| SqlError { position: None, ..e };
        let plan = {
            let names = self.names();
            tokio::task::block_in_place(|| sql::plan::plan_in_block(parsed, &names, params, &scope.seen())).map_err(inside)?
        };
        let refused = match &plan {
            Plan::Begin(..) | Plan::Commit { .. } | Plan::Rollback { .. } | Plan::PrepareTransaction => Some("a transaction command"),
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
        self.value_for(e, scope, || format!("SQL expression \"{}\"", written(e))).await
    }

    /// The one value of an expression; `what` tells of it where there is none.
    async fn value_for(&mut self, e: &ParsedStatement, scope: &mut Scope, what: impl FnOnce() -> String) -> Result<(Value, SqlType), SqlError> {
        let count = scope.row_count;
        let outcome = self.carried_out(e, &[], scope).await.map_err(|e| within(e, what))?;
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

    fn steps<'a>(&'a mut self, steps: &'a Steps, scope: &'a mut Scope) -> Stepping<'a> {
        Box::pin(async move {
            for (line, step) in steps {
                scope.at = (*line, called(step));
                match self.step(step, scope).await.map_err(|e| told(e, (*line, called(step))))? {
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
                let (value, ty) = self.value_for(e, scope, || format!("PL/pgSQL assignment \"{} := {}\"", to.name, written(e))).await?;
                self.assign(to, value, &ty, scope)?;
            }
            Step::AssignPart(to, e) => {
                let value = self.value(e, scope).await?;
                let names = self.names();
                let slot = scope.slot(&to.column.name)?;
                if slot.constant {
                    return Err(SqlError::new(CONSTANT_ASSIGNED, format!("variable \"{}\" is declared CONSTANT", to.column.name)));
                }
                let (whole, ty) = (slot.seen.value.clone(), slot.ty.clone().unwrap_or_else(|| slot.seen.ty.clone().nullable()));
                let made = sql::plan::part_assigned(to, (whole, &ty), (value.0, &value.1), &names, &scope.seen())?;
                let made = constant(made, &names.ctx).map_err(|e| SqlError { position: None, ..e })?;
                scope.slot(&to.column.name)?.seen.value = made;
            }
            Step::Case { subject, arms, other } => {
                let outer = scope.slots.len();
                let flow = self.case(subject.as_ref(), arms, other.as_ref(), scope).await;
                scope.slots.truncate(outer);
                return flow;
            }
            Step::Open { cursor, scroll, what } => {
                self.open_cursor(cursor, *scroll, what, scope).await?;
            }
            Step::Fetch { cursor, direction, into } => {
                let name = self.cursor_name(cursor, scope)?;
                match (self.fetch(&name, *direction, into.is_none(), None).await?, into) {
                    (Response::Rows { desc, mut rows, .. }, Some(into)) => {
                        let mut all = Vec::new();
                        while let Some(part) = rows.next().await {
                            all.append(&mut part?);
                        }
                        scope.row_count = i64::try_from(all.len()).unwrap_or(i64::MAX);
                        scope.found(!all.is_empty());
                        let columns: Vec<(String, ColType)> = desc.names.into_iter().zip(desc.types).collect();
                        self.assign_row(into, &columns, all.into_iter().next(), scope)?;
                    }
                    (Response::Tag(tag), _) => {
                        scope.row_count = tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                        scope.found(scope.row_count > 0);
                    }
                    _ => {}
                }
            }
            Step::Close(cursor) => {
                let name = self.cursor_name(cursor, scope)?;
                self.close(Some(&name))?;
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
            Step::Diagnostics { stacked, items } => {
                for (to, item) in items {
                    let (value, ty) = match (stacked, item.as_str()) {
                        (false, "row_count") => (Value::Int8(scope.row_count), SqlType::Int8),
                        (false, _) => (Value::Text(place(scope.at)), SqlType::Text),
                        (true, item) => (Value::Text(diagnosed(item, scope)?), SqlType::Text),
                    };
                    self.assign(to, value, &ty, scope)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// The body of a loop once: whether the loop goes on, or what is done instead.
    async fn once(&mut self, label: Option<&str>, steps: &Steps, scope: &mut Scope) -> Result<Option<Flow>, SqlError> {
        self.check_interrupt()?;
        let own = |to: &Option<String>| to.is_none() || to.as_deref() == label;
        Ok(match self.steps(steps, scope).await? {
            Flow::Next => None,
            Flow::Exit(to) if own(&to) => Some(Flow::Next),
            Flow::Continue(to) if own(&to) => None,
            other => Some(other),
        })
    }

    async fn each(&mut self, label: Option<&str>, rows: &Loop, steps: &Steps, scope: &mut Scope) -> Result<Flow, SqlError> {
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
                Ok(self.over(label, targets, outcome, steps, scope).await?.1)
            }
            Loop::Execute { targets, text, using } => match self.dynamic(text, using, scope).await?.pop() {
                Some(outcome) => Ok(self.over(label, targets, outcome, steps, scope).await?.1),
                None => Err(syntax("cannot open EXECUTE query as cursor")),
            },
            Loop::Cursor { variable, cursor, args } => {
                if scope.slot(&cursor.name)?.cursor.is_none() {
                    return Err(syntax("cursor FOR loop must use a bound cursor variable"));
                }
                let name = self.open_cursor(cursor, None, &Opened::Bound(args.clone()), scope).await?;
                scope.slots.push(Slot {
                    seen: Variable { name: variable.name.clone(), value: Value::Null, ty: record(&[]) },
                    ty: None,
                    constant: false,
                    not_null: false,
                    cursor: None,
                });
                let mut any = false;
                let flow = loop {
                    let Response::Rows { desc, mut rows, .. } = self.fetch(&name, FetchDirection::Forward(FETCHED), false, None).await? else {
                        return Err(SqlError::internal("FETCH without rows"));
                    };
                    let mut fetched = Vec::new();
                    while let Some(part) = rows.next().await {
                        fetched.append(&mut part?);
                    }
                    if fetched.is_empty() {
                        break Flow::Next;
                    }
                    any = true;
                    let columns = Some(desc.names.into_iter().zip(desc.types).collect());
                    let outcome = Outcome { columns, rows: fetched, count: 0 };
                    match self.over(label, std::slice::from_ref(variable), outcome, steps, scope).await? {
                        (true, _) => {}
                        (false, flow) => break flow,
                    }
                };
                if self.has_cursor(&name) {
                    self.close(Some(&name))?;
                }
                scope.found(any);
                Ok(flow)
            }
            Loop::Array { variable, slice, array } => {
                let (value, ty) = self.value(array, scope).await?;
                let SqlType::Array(element) = ty.base().clone() else {
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, "FOREACH expression must yield an array, not type ".to_owned() + &ty.sql_name()));
                };
                let Value::Array(array) = value else {
                    return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null"));
                };
                let (part, parts) = match *slice {
                    0 => (*element, array.elems),
                    n => (ty, slices(*array, n)?),
                };
                let columns = [(variable.name.clone(), part.nullable())];
                let rows = parts.into_iter().map(|v| vec![v]).collect();
                let outcome = Outcome { columns: Some(columns.to_vec()), rows, count: 0 };
                Ok(self.over(label, std::slice::from_ref(variable), outcome, steps, scope).await?.1)
            }
        }
    }

    /// The body once for each row: whether it came to the last, and what is done then.
    async fn over(&mut self, label: Option<&str>, targets: &[Ident], rows: Outcome, steps: &Steps, scope: &mut Scope) -> Result<(bool, Flow), SqlError> {
        let Some(columns) = rows.columns else { return Err(syntax("a FOR loop goes over the rows of a query")) };
        let any = !rows.rows.is_empty();
        for row in rows.rows {
            self.assign_row(targets, &columns, Some(row), scope)?;
            if let Some(flow) = self.once(label, steps, scope).await? {
                scope.found(true);
                return Ok((false, flow));
            }
        }
        scope.found(any);
        Ok((true, Flow::Next))
    }

    async fn case(
        &mut self,
        subject: Option<&ParsedStatement>,
        arms: &[(ParsedStatement, Steps)],
        other: Option<&Steps>,
        scope: &mut Scope,
    ) -> Result<Flow, SqlError> {
        if let Some(e) = subject {
            let (value, ty) = self.value(e, scope).await?;
            scope.add(SUBJECT, value, ty.nullable());
        }
        for (condition, steps) in arms {
            if self.is_true(condition, scope).await? {
                return self.steps(steps, scope).await;
            }
        }
        match other {
            Some(steps) => self.steps(steps, scope).await,
            None => Err(SqlError::new(CASE_NOT_FOUND, "case not found").with_hint("CASE statement is missing ELSE part.")),
        }
    }

    /// What the cursor that a variable holds is called. Errors: 42804, 22004.
    fn cursor_name(&self, cursor: &Ident, scope: &mut Scope) -> Result<String, SqlError> {
        let slot = scope.slot(&cursor.name)?;
        if slot.seen.ty != SqlType::RefCursor {
            return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("variable \"{}\" must be of type cursor or refcursor", cursor.name)));
        }
        match &slot.seen.value {
            Value::Text(name) => Ok(name.clone()),
            _ => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("cursor variable \"{}\" is null", cursor.name))),
        }
    }

    /// OPEN: what the cursor is called.
    async fn open_cursor(&mut self, cursor: &Ident, scroll: Option<bool>, what: &Opened, scope: &mut Scope) -> Result<String, SqlError> {
        let name = match self.cursor_name(cursor, scope) {
            Err(e) if e.code == state::NULL_VALUE_NOT_ALLOWED => {
                (1..).map(|n| format!("<unnamed portal {n}>")).find(|n| !self.has_cursor(n)).unwrap_or_default()
            }
            name => name?,
        };
        if self.has_cursor(&name) {
            return Err(SqlError::new(state::DUPLICATE_CURSOR, format!("cursor \"{name}\" already in use")));
        }
        let outer = scope.slots.len();
        let opened = self.declare_opened(cursor, &name, scroll, what, scope).await;
        scope.slots.truncate(outer);
        opened?;
        scope.slot(&cursor.name)?.seen.value = Value::Text(name.clone());
        Ok(name)
    }

    async fn declare_opened(&mut self, cursor: &Ident, name: &str, scroll: Option<bool>, what: &Opened, scope: &mut Scope) -> Result<(), SqlError> {
        let (mut params, mut variables, mut scroll) = (Vec::new(), None, scroll);
        let query = match what {
            Opened::Query(query) => query.clone(),
            Opened::Execute { text, using } => {
                let Some(text) = self.text(text, scope).await? else {
                    return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null"));
                };
                for e in using {
                    params.push(self.value(e, scope).await?);
                }
                // It knows no variables, only what USING gives it.
                variables = Some(Vec::new());
                sql::parse(&text)?.into_iter().next().ok_or_else(|| syntax("cannot open EXECUTE query as cursor"))?
            }
            Opened::Bound(args) => {
                let Some(bound) = scope.slot(&cursor.name)?.cursor.clone() else {
                    return Err(syntax(format!("cursor \"{}\" has no query of its own: say FOR", cursor.name)));
                };
                self.bind_args(cursor, &bound, args, scope).await?;
                scroll = scroll.or(bound.scroll);
                bound.query.clone()
            }
        };
        let inside = |e: SqlError| SqlError { position: None, ..e };
        let plan = {
            let names = self.names();
            let variables = variables.unwrap_or_else(|| scope.seen());
            tokio::task::block_in_place(|| sql::plan::plan_in_block(&query, &names, &params, &variables)).map_err(inside)?
        };
        if !matches!(plan, Plan::Select(_)) {
            let word = query.text.split_whitespace().next().unwrap_or("").to_uppercase();
            return Err(SqlError::new(state::INVALID_CURSOR_DEFINITION, format!("cannot open {word} query as cursor")));
        }
        let declared = Declared { text: query.text.clone(), hold: false, scroll, binary: false };
        self.declare(name.to_owned(), declared, plan).await.map_err(|e| within(inside(e), || format!("SQL statement \"{}\"", query.text)))?;
        Ok(())
    }

    /// The parameters of a cursor as variables. Errors: 42601 for those that are missing, too many or unknown.
    async fn bind_args(&mut self, cursor: &Ident, bound: &BoundCursor, args: &CursorArgs, scope: &mut Scope) -> Result<(), SqlError> {
        let name = &cursor.name;
        let mut values = vec![None; bound.params.len()];
        for (n, (by, e)) in args.iter().enumerate() {
            let at = match by {
                Some(by) => bound.params.iter().position(|p| p.0.name == by.name),
                None => Some(n),
            };
            let place = match (at.and_then(|at| values.get_mut(at)), by) {
                (Some(place), _) => place,
                (None, Some(by)) => return Err(syntax(format!("cursor \"{name}\" has no argument named \"{}\"", by.name))),
                (None, None) if bound.params.is_empty() => return Err(syntax(format!("cursor \"{name}\" has no arguments"))),
                (None, None) => return Err(syntax(format!("too many arguments for cursor \"{name}\""))),
            };
            if place.is_some() {
                return Err(syntax(format!("value for parameter \"{}\" of cursor \"{name}\" specified more than once", bound.params[at.unwrap_or(n)].0.name)));
            }
            *place = Some(e);
        }
        let mut bound_values = Vec::new();
        for ((param, ty), e) in bound.params.iter().zip(values) {
            let e = e.ok_or_else(|| syntax(format!("not enough arguments for cursor \"{name}\"")))?;
            let (value, from) = self.value(e, scope).await?;
            let ty = sql::plan::variable_type(ty, &self.names())?;
            bound_values.push((param.name.clone(), self.as_type(value, &from, &ty)?, ty));
        }
        bound_values.into_iter().for_each(|(name, value, ty)| scope.add(&name, value, ty));
        Ok(())
    }

    async fn raise(&mut self, raise: &Raise, scope: &mut Scope) -> Result<(), SqlError> {
        if raise.again {
            let e = scope.caught.last().cloned();
            return Err(e.unwrap_or_else(|| SqlError::new(NO_HANDLER, "RAISE without parameters cannot be used outside an exception handler")));
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

/// An item of the error that is being handled; empty where it has none. Errors: 0Z002 where none is.
fn diagnosed(item: &str, scope: &Scope) -> Result<String, SqlError> {
    let none = || SqlError::new(NO_HANDLER, "GET STACKED DIAGNOSTICS cannot be used outside an exception handler");
    let e = scope.caught.last().ok_or_else(none)?;
    let fields = e.fields.clone().unwrap_or_default();
    Ok(match item {
        "returned_sqlstate" => Some(e.code.as_str().to_owned()),
        "message_text" => Some(e.message.clone()),
        "pg_exception_detail" => e.detail.clone(),
        "pg_exception_hint" => e.hint.clone(),
        "pg_exception_context" => fields.context,
        "column_name" => fields.column,
        "constraint_name" => fields.constraint,
        "pg_datatype_name" => fields.datatype,
        "table_name" => fields.table,
        _ => fields.schema,
    }
    .unwrap_or_default())
}

/// The parts of an array that have its last `n` dimensions. Errors: 2202E.
fn slices(array: repr::ArrayValue, n: i64) -> Result<Vec<Value>, SqlError> {
    let dims = array.dims.len();
    let Some(inner) = usize::try_from(n).ok().filter(|n| *n <= dims) else {
        let m = format!("slice dimension ({n}) is out of the valid range 0..{dims}");
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, m));
    };
    let dims: Vec<(i32, i32)> = array.dims[dims - inner..].to_vec();
    let size = dims.iter().map(|d| usize::try_from(d.0).unwrap_or(0)).product::<usize>().max(1);
    Ok(array.elems.chunks(size).map(|c| Value::Array(Box::new(repr::ArrayValue { elems: c.to_vec(), dims: dims.clone() }))).collect())
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
