//! The extended protocol: statements prepared once, portals that run them in parts.
//!
//! ```text
//!   Parse ──► Prepared ──► Bind ──► Portal(New) ──► Execute ──► Running ─(row limit)─► PortalSuspended ──► Execute ..
//!                                                                  └────────────────► CommandComplete, Done
//! ```
//!
//! A portal that is suspended keeps its row stream: the query behind it waits on the bounded channel. As in Postgres a
//! limit that is reached suspends even if there are no more rows, and the tag counts the rows of one Execute.

use super::connection::{row_tag, Connection, Failure};
use super::frame::{Bind, Message, Target};
use super::reply::format_of;
use super::values;
use adapter::{Prepared, Response, RowStream};
use repr::error::state;
use repr::{RelDesc, SqlError, SqlType, Value};
use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncWrite};

/// A prepared statement with its parameters bound.
pub struct Portal {
    prepared: Prepared,
    result_formats: Vec<i16>,
    state: PortalState,
    /// While it is lent: the tag of its statement.
    tag: &'static str,
}

enum PortalState {
    New(Vec<Value>),
    /// `pending`: rows received but not sent.
    Running {
        desc: RelDesc,
        rows: RowStream,
        pending: VecDeque<Vec<Value>>,
        tag: &'static str,
        ended: bool,
    },
    Done,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub async fn extended(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Parse { name, sql, types } => self.parse(name, &sql, &types).await,
            Message::Bind(bind) => Ok(self.bind(bind)?),
            Message::Describe { target: Target::Statement, name } => {
                let prepared = self.prepared(&name)?;
                self.out.parameter_description(&prepared.params);
                self.session.check_result(&prepared)?;
                self.describe(&prepared, &[]);
                Ok(())
            }
            Message::Describe { target: Target::Portal, name } => {
                if let Some(portal) = self.portals.get(&name) {
                    let (prepared, formats) = (portal.prepared.clone(), portal.result_formats.clone());
                    self.describe(&prepared, &formats);
                } else {
                    // A cursor that DECLARE opened is a portal too.
                    let desc = self.session.cursor_columns(&name).ok_or_else(|| no_portal(&name))?;
                    let formats: &[i16] = if self.session.is_binary_cursor(&name) { &[1] } else { &[] };
                    self.out.row_description(&desc, formats, &[]);
                }
                Ok(())
            }
            Message::Execute { portal, row_count_max } => self.run(&portal, row_count_max).await,
            Message::Close { target, name } => {
                match target {
                    Target::Statement if name.is_empty() => self.unnamed = None,
                    Target::Statement => self.session.remove_prepared(&name),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                self.out.close_complete();
                Ok(())
            }
            other => Err(SqlError::new(state::PROTOCOL_VIOLATION, format!("unexpected message {other:?}")).into()),
        }
    }

    async fn parse(&mut self, name: String, sql: &str, types: &[u32]) -> Result<(), Failure> {
        let mut statements = self.session.parse(sql)?;
        if statements.len() > 1 {
            return Err(SqlError::new(state::SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement").into());
        }
        let mut params = Vec::with_capacity(types.len());
        for oid in types {
            params.push(match oid {
                0 => None,
                oid => Some(self.type_of(*oid)?),
            });
        }
        let prepared = self.prepare(statements.pop(), params).await?;
        if name.is_empty() {
            self.unnamed = Some(prepared);
        } else {
            self.session.set_prepared(name, prepared)?;
        }
        self.out.parse_complete();
        Ok(())
    }

    fn type_of(&self, oid: u32) -> Result<SqlType, SqlError> {
        SqlType::from_oid(oid)
            .or_else(|| self.session.text_context().catalog.type_by_oid(oid))
            .ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("type with OID {oid} does not exist")))
    }

    fn prepared(&self, name: &str) -> Result<Prepared, SqlError> {
        match (name, &self.unnamed) {
            ("", Some(p)) => Ok(p.clone()),
            ("", None) => Err(SqlError::new(state::INVALID_SQL_STATEMENT_NAME, "unnamed prepared statement does not exist")),
            _ => self.session.get_prepared(name),
        }
    }

    fn bind(&mut self, bind: Bind) -> Result<(), SqlError> {
        let violation = |message| Err(SqlError::new(state::PROTOCOL_VIOLATION, message));
        let prepared = self.prepared(&bind.statement)?;
        let (given, wanted) = (bind.params.len(), prepared.params.len());
        if bind.param_formats.len() > 1 && bind.param_formats.len() != given {
            return violation(format!("bind message has {} parameter formats but {given} parameters", bind.param_formats.len()));
        }
        if given != wanted {
            return violation(format!("bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}", bind.statement));
        }
        self.session.check_result(&prepared)?;
        let columns = prepared.result.as_ref().map_or(0, RelDesc::arity);
        if bind.result_formats.len() > 1 && bind.result_formats.len() != columns {
            return violation(format!("bind message has {} result formats but query has {columns} columns", bind.result_formats.len()));
        }
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(SqlError::new(state::DUPLICATE_CURSOR, format!("cursor \"{}\" already exists", bind.portal)));
        }
        let style = self.session.text_context().text_style();
        let mut params = Vec::with_capacity(given);
        for (i, (bytes, ty)) in bind.params.iter().zip(&prepared.params).enumerate() {
            params.push(match bytes {
                None => Value::Null,
                Some(bytes) if format_of(&bind.param_formats, i) == 0 => values::read_text(bytes, ty, &style, self.input.encoding)?,
                Some(bytes) => values::read_binary(bytes, ty, i + 1, self.input.encoding)?,
            });
        }
        let portal = Portal { prepared, result_formats: bind.result_formats, state: PortalState::New(params), tag: "" };
        self.portals.insert(bind.portal, portal);
        self.out.bind_complete();
        Ok(())
    }

    fn describe(&mut self, prepared: &Prepared, formats: &[i16]) {
        match &prepared.result {
            Some(desc) => self.out.row_description(desc, formats, &prepared.origins),
            None => self.out.no_data(),
        }
    }

    async fn run(&mut self, name: &str, row_count_max: i32) -> Result<(), Failure> {
        // The portal is taken out while it runs: an error leaves it closed.
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        if let PortalState::New(params) = &mut portal.state {
            let params = std::mem::take(params);
            if self.input.sync_is_next().await {
                self.session.expect_sync();
            }
            match self.execute(&portal.prepared, params).await? {
                Response::Rows { desc, rows, tag } => {
                    self.news();
                    portal.state = PortalState::Running { desc, rows, pending: VecDeque::new(), tag, ended: false };
                }
                Response::Tag(tag) => {
                    self.finish(name, portal, Some(tag));
                    return Ok(());
                }
                Response::Empty => {
                    self.finish(name, portal, None);
                    return Ok(());
                }
                Response::CopyOut { columns, binary, data, rows } => {
                    let tag = self.copy_out(columns, binary, data, rows).await?;
                    self.finish(name, portal, Some(tag));
                    return Ok(());
                }
                Response::CopyIn { columns, binary, sink } => {
                    let tag = self.copy_in(columns, binary, sink).await?;
                    self.finish(name, portal, Some(tag));
                    return Ok(());
                }
            }
        }
        let tag = match self.send_rows(&mut portal, row_count_max).await? {
            Some(tag) => tag,
            None => {
                self.out.portal_suspended();
                self.portals.insert(name.to_owned(), portal);
                return Ok(());
            }
        };
        self.news();
        self.out.complete(tag);
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// Lends a portal to the session, begun if it was not. `None`: there is none of this name, or it is over.
    pub async fn lend(&mut self, name: String) -> Result<Option<(String, Portal)>, Failure> {
        let Some(mut portal) = self.portals.remove(&name) else { return Ok(None) };
        if let PortalState::New(params) = &mut portal.state {
            // A statement that changes something is not run by looking at it.
            if portal.prepared.result.is_none() {
                self.portals.insert(name, portal);
                return Ok(None);
            }
            let params = std::mem::take(params);
            if let Response::Rows { desc, rows, tag } = self.execute_one(&portal.prepared, params).await? {
                portal.state = PortalState::Running { desc, rows, pending: VecDeque::new(), tag, ended: false };
            }
        }
        match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Running { desc, rows, pending, tag, ended } => {
                self.session.lend_portal(&name, adapter::Portal { desc, rows, pending, ended });
                portal.tag = tag;
                Ok(Some((name, portal)))
            }
            state => {
                self.portals.insert(name, Portal { state, ..portal });
                Ok(None)
            }
        }
    }

    /// Takes a lent portal back, unless it was closed.
    pub fn take_back(&mut self, name: String, portal: Portal) {
        if let Some(adapter::Portal { desc, rows, pending, ended }) = self.session.take_portal_back(&name) {
            let state = PortalState::Running { desc, rows, pending, tag: portal.tag, ended };
            self.portals.insert(name, Portal { state, ..portal });
        }
    }

    /// The columns that FETCH from a portal has.
    pub fn portal_columns(&self, prepared: &Prepared, name: &str) -> Option<RelDesc> {
        let portal = self.portals.get(name).filter(|_| self.session.fetches(prepared))?;
        portal.prepared.result.clone()
    }

    fn finish(&mut self, name: &str, mut portal: Portal, tag: Option<String>) {
        portal.state = PortalState::Done;
        self.portals.insert(name.to_owned(), portal);
        self.news();
        match tag {
            Some(tag) => self.out.complete(tag),
            None => self.out.empty_query(),
        }
    }

    /// Sends up to `row_count_max` rows (0: all). Returns the tag, or `None` if the limit was reached.
    async fn send_rows(&mut self, portal: &mut Portal, row_count_max: i32) -> Result<Option<String>, Failure> {
        let PortalState::Running { desc, rows, pending, tag, ended } = &mut portal.state else {
            return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "portal cannot be run").into());
        };
        let limit = u64::try_from(row_count_max).ok().filter(|n| *n > 0).unwrap_or(u64::MAX);
        let style = self.session.text_context().text_style();
        let mut count = 0;
        loop {
            while let Some(row) = pending.pop_front() {
                self.out.row(&row, desc, &portal.result_formats, &style)?;
                count += 1;
                if self.out.is_full() {
                    self.out.flush().await?;
                }
                if count == limit {
                    return Ok(None);
                }
            }
            if *ended {
                return Ok(Some(row_tag(tag, count)));
            }
            match self.next_part(&mut rows.receiver).await? {
                Some(part) => pending.extend(part),
                None => *ended = true,
            }
        }
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(state::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
