//! What an evaluation may know beside its arguments: session settings, the time, the catalog.

use repr::error::state;
use repr::interrupt::Interrupt;
pub use repr::{DateFormat, DateOrder, DateStyle, IntervalStyle};
use repr::{SqlError, SqlType, TextStyle, Timestamp, Value};
use std::sync::Arc;

/// The settings and times that stable functions read. A maintained view captures one at its creation (DECISIONS 18);
/// a one-off query has the session's.
#[derive(Clone)]
pub struct EvalCtx {
    /// `now()`: microseconds since 2000-01-01 UTC. `None` in maintained views, where `now()` is legal only in temporal filters.
    pub now_micros: Option<i64>,
    pub statement_micros: Option<i64>,
    /// `mz_now()` of a one-off query.
    pub logical_now: Option<Timestamp>,
    /// IANA name or a POSIX offset, as `SHOW timezone` prints it.
    pub timezone: String,
    pub date_style: DateStyle,
    pub interval_style: IntervalStyle,
    pub extra_float_digits: i32,
    pub bytea_escape: bool,
    pub user: String,
    pub database: String,
    pub search_path: Vec<String>,
    /// What `random()` draws from after `setseed`; else from the machine.
    pub random: Option<Arc<crate::Random>>,
    /// Set from outside when nobody waits for the results any more.
    pub interrupt: Interrupt,
    /// Object names, for `regclass`, `format_type`, `pg_get_viewdef` and the like.
    pub catalog: Arc<dyn CatalogView>,
}

/// What functions over the catalog ask. OIDs are those that `pg_catalog` shows.
pub trait CatalogView: Send + Sync {
    /// `(oid, schema-qualified unless visible)` name of a relation.
    fn relation_name(&self, oid: u32) -> Option<String>;
    /// The OID of a possibly qualified relation name, already split into parts.
    fn relation_oid(&self, parts: &[String]) -> Option<u32>;
    fn relation_is_visible(&self, oid: u32) -> bool;
    /// The names of a relation's columns; none if there is no such relation.
    fn columns(&self, _relation: u32) -> Vec<String> {
        Vec::new()
    }
    fn is_sequence(&self, _relation: u32) -> bool {
        false
    }
    /// The table, as it is shown, whose key an index is.
    fn key_table(&self, _index: u32) -> Option<String> {
        None
    }
    fn is_materialized_view(&self, _relation: u32) -> bool {
        false
    }
    fn type_by_oid(&self, oid: u32) -> Option<SqlType>;
    /// A possibly qualified user-defined type name.
    fn type_by_name(&self, parts: &[String]) -> Option<SqlType>;
    fn namespace_name(&self, oid: u32) -> Option<String>;
    fn namespace_oid(&self, name: &str) -> Option<u32>;
    /// The name of a type of the user's, schema-qualified unless visible.
    fn type_name(&self, _oid: u32) -> Option<String> {
        None
    }
    fn type_is_visible(&self, _oid: u32) -> bool {
        false
    }
    /// `pg_get_viewdef` and its like. `pretty`: without brackets and names of schemas that are not needed.
    fn view_definition(&self, oid: u32, pretty: bool) -> Option<String>;
    fn index_definition(&self, oid: u32, column: i32, pretty: bool) -> Option<String>;
    fn constraint_definition(&self, oid: u32, pretty: bool) -> Option<String>;
    /// `pg_get_ruledef` of a view's rule.
    fn rule_definition(&self, _rule: u32, _pretty: bool) -> Option<String> {
        None
    }
    /// `pg_get_expr`: a stored expression over the columns of a relation.
    fn expression(&self, text: &str, _relation: u32, _pretty: bool) -> String {
        text.to_owned()
    }
    fn role_name(&self, oid: u32) -> Option<String>;
    fn role_oid(&self, name: &str) -> Option<u32>;
    /// `obj_description` / `col_description` (column 0: the object itself).
    fn comment(&self, class: &str, oid: u32, column: i32) -> Option<String>;
    /// `pg_relation_is_updatable`: the events (4 UPDATE, 8 INSERT, 16 DELETE) that a relation takes, as far as this column, from 1, is concerned.
    fn updatable(&self, _relation: u32, _column: Option<i64>) -> i32 {
        0
    }
    fn setting(&self, name: &str) -> Option<String>;
    /// `None` where there is no session.
    fn backend(&self) -> Option<Backend> {
        None
    }
    /// Stops the statement of the session `pid`, or ends the session; false if there is none. Errors: 0A000 where there is no session.
    fn signal(&self, _pid: i32, _end: bool) -> Result<bool, SqlError> {
        Err(no_session())
    }
    /// `nextval`. Errors: 42809 for what is no sequence, 2200H at its end, 0A000 where there is no session.
    fn next_value(&self, _sequence: u32) -> Result<i64, SqlError> {
        Err(no_session())
    }
    /// `currval` of a sequence, `lastval` of whichever came last. Errors: 55000 before the first `nextval`.
    fn current_value(&self, _sequence: Option<u32>) -> Result<i64, SqlError> {
        Err(no_session())
    }
    /// `setval`. Errors: 22003.
    fn set_value(&self, _sequence: u32, _value: i64, _called: bool) -> Result<(), SqlError> {
        Err(no_session())
    }
    /// The last value that a sequence gave out.
    fn last_value(&self, _sequence: u32) -> Option<i64> {
        None
    }
    /// The name of the sequence that a column owns. Errors: 42703.
    fn owned_sequence(&self, _table: u32, _column: &str) -> Result<Option<String>, SqlError> {
        Ok(None)
    }
    /// `pg_index.indkey`: the numbers of an index's columns, 0 for an expression.
    fn index_columns(&self, _index: u32) -> Vec<i16> {
        Vec::new()
    }
    /// What `pg_sequence_parameters` returns, column by column. Errors: XX000 for what is no sequence.
    fn sequence_parameters(&self, sequence: u32) -> Result<Vec<Value>, SqlError> {
        Err(SqlError::internal(format!("cache lookup failed for sequence {sequence}")))
    }
    /// The kind of an object and what it is called, if it is there. Errors: XX000 for a class that has no names.
    fn object(&self, class: u32, _oid: u32, _column: i32) -> Result<(&'static str, Option<ObjectName>), SqlError> {
        Err(SqlError::internal(format!("unrecognized object class: {class}")))
    }
    /// Class, OID and column of what is called so. Errors: 22023 for a kind or a list that is none, those of what does not exist.
    fn object_address(&self, kind: &str, _names: &[String], _args: &[String]) -> Result<(u32, u32, i32), SqlError> {
        Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized object type \"{kind}\"")))
    }
}

/// What an object is called, in the forms of `pg_describe_object` and its kin.
#[derive(Clone, Debug, Default)]
pub struct ObjectName {
    /// For people, with the schema where it is not visible.
    pub description: String,
    /// Of what is unique by schema and name, both quoted where they must be.
    pub schema: Option<String>,
    pub name: Option<String>,
    /// The whole name, always with the schema.
    pub identity: String,
    /// What `pg_get_object_address` finds it by.
    pub names: Vec<String>,
    pub args: Vec<String>,
}

fn no_session() -> SqlError {
    SqlError::unsupported("a sequence or a session in a maintained object", "call the function in a statement")
}

/// The session that evaluates.
#[derive(Clone, Debug)]
pub struct Backend {
    pub pid: i32,
    /// The two ends of its connection.
    pub client: Option<std::net::SocketAddr>,
    pub server: Option<std::net::SocketAddr>,
    /// The text of its statement.
    pub query: String,
}

/// A catalog without objects: constant folding, tests.
pub struct NoCatalog;

impl CatalogView for NoCatalog {
    fn relation_name(&self, _: u32) -> Option<String> {
        None
    }
    fn relation_oid(&self, _: &[String]) -> Option<u32> {
        None
    }
    fn relation_is_visible(&self, _: u32) -> bool {
        false
    }
    fn type_by_oid(&self, oid: u32) -> Option<SqlType> {
        SqlType::from_oid(oid)
    }
    fn type_by_name(&self, _: &[String]) -> Option<SqlType> {
        None
    }
    fn namespace_name(&self, _: u32) -> Option<String> {
        None
    }
    fn namespace_oid(&self, _: &str) -> Option<u32> {
        None
    }
    fn view_definition(&self, _: u32, _: bool) -> Option<String> {
        None
    }
    fn index_definition(&self, _: u32, _: i32, _: bool) -> Option<String> {
        None
    }
    fn constraint_definition(&self, _: u32, _: bool) -> Option<String> {
        None
    }
    fn role_name(&self, _: u32) -> Option<String> {
        None
    }
    fn role_oid(&self, _: &str) -> Option<u32> {
        None
    }
    fn comment(&self, _: &str, _: u32, _: i32) -> Option<String> {
        None
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

impl Default for EvalCtx {
    fn default() -> EvalCtx {
        EvalCtx {
            now_micros: None,
            statement_micros: None,
            logical_now: None,
            timezone: "UTC".into(),
            date_style: DateStyle { format: DateFormat::Iso, order: DateOrder::Mdy },
            interval_style: IntervalStyle::Postgres,
            extra_float_digits: 1,
            bytea_escape: false,
            user: "riverdelta".into(),
            database: "riverdelta".into(),
            search_path: vec!["public".into()],
            random: None,
            interrupt: Interrupt::default(),
            catalog: Arc::new(NoCatalog),
        }
    }
}

impl EvalCtx {
    /// The session time at which a `now()`-like function is evaluated, or the error that maintained views give.
    pub fn now(&self) -> Result<i64, SqlError> {
        self.now_micros.ok_or_else(|| {
            SqlError::unsupported("now() here", "in a maintained view, compare now() or mz_now() with an expression over columns in WHERE: a temporal filter")
        })
    }

    /// What text input and output need of this context. An unknown zone is UTC. Made once an evaluation, not per row.
    pub fn text_style(&self) -> TextStyle {
        TextStyle {
            timezone: repr::datetime::TimeZone::parse(&self.timezone).unwrap_or(repr::datetime::TimeZone::UTC),
            date_style: self.date_style,
            interval_style: self.interval_style,
            extra_float_digits: self.extra_float_digits,
            bytea_escape: self.bytea_escape,
            now_micros: self.now_micros,
            reg_names: Some(Arc::new(crate::func::system::CatalogNames(self.catalog.clone()))),
        }
    }
}
