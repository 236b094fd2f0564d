//! Errors with SQLSTATE: what a user reads.
//!
//! Message: lower case, no full stop; detail and hint apart. An error is a value too: inside dataflows the
//! `errs` collections carry it, so it has equality, an order and a byte form.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    pub const fn new(code: &str) -> SqlState {
        let b = code.as_bytes();
        assert!(b.len() == 5, "a SQLSTATE has five characters");
        SqlState([b[0], b[1], b[2], b[3], b[4]])
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The SQLSTATEs that are used, by Postgres's names.
pub mod state {
    use super::SqlState;
    macro_rules! states { ($($name:ident $code:literal;)*) => { $(pub const $name: SqlState = SqlState::new($code);)* } }
    states! {
        CONNECTION_FAILURE "08006";
        PROTOCOL_VIOLATION "08P01";
        FEATURE_NOT_SUPPORTED "0A000";
        CARDINALITY_VIOLATION "21000";
        DATA_EXCEPTION "22000";
        ARRAY_SUBSCRIPT_ERROR "2202E";
        CHARACTER_NOT_IN_REPERTOIRE "22021";
        DATETIME_FIELD_OVERFLOW "22008";
        DIVISION_BY_ZERO "22012";
        ESCAPE_CHARACTER_CONFLICT "2200B";
        INTERVAL_FIELD_OVERFLOW "22015";
        INVALID_ARGUMENT_FOR_LOG "2201E";
        INVALID_ARGUMENT_FOR_POWER "2201F";
        INVALID_ARGUMENT_FOR_NTILE "22014";
        INVALID_ARGUMENT_FOR_NTH_VALUE "22016";
        INVALID_ARGUMENT_FOR_WIDTH_BUCKET "2201G";
        INVALID_DATETIME_FORMAT "22007";
        INVALID_ESCAPE_CHARACTER "22019";
        ZERO_LENGTH_CHARACTER_STRING "2200F";
        INVALID_ESCAPE_SEQUENCE "22025";
        INVALID_PARAMETER_VALUE "22023";
        INVALID_PRECEDING_OR_FOLLOWING_SIZE "22013";
        INVALID_REGULAR_EXPRESSION "2201B";
        INVALID_ROW_COUNT_IN_LIMIT "2201W";
        INVALID_ROW_COUNT_IN_OFFSET "2201X";
        INVALID_TEXT_REPRESENTATION "22P02";
        INVALID_BINARY_REPRESENTATION "22P03";
        BAD_COPY_FILE_FORMAT "22P04";
        UNTRANSLATABLE_CHARACTER "22P05";
        INVALID_TIME_ZONE_DISPLACEMENT "22009";
        NULL_VALUE_NOT_ALLOWED "22004";
        NUMERIC_VALUE_OUT_OF_RANGE "22003";
        STRING_DATA_RIGHT_TRUNCATION "22001";
        STRING_DATA_LENGTH_MISMATCH "22026";
        SUBSTRING_ERROR "22011";
        NOT_NULL_VIOLATION "23502";
        UNIQUE_VIOLATION "23505";
        CHECK_VIOLATION "23514";
        INVALID_CURSOR_STATE "24000";
        INVALID_TRANSACTION_STATE "25000";
        ACTIVE_SQL_TRANSACTION "25001";
        READ_ONLY_SQL_TRANSACTION "25006";
        NO_ACTIVE_SQL_TRANSACTION "25P01";
        IN_FAILED_SQL_TRANSACTION "25P02";
        INVALID_SQL_STATEMENT_NAME "26000";
        DEPENDENT_OBJECTS_STILL_EXIST "2BP01";
        INVALID_CURSOR_NAME "34000";
        INVALID_CATALOG_NAME "3D000";
        INVALID_SCHEMA_NAME "3F000";
        SERIALIZATION_FAILURE "40001";
        SYNTAX_ERROR "42601";
        INSUFFICIENT_PRIVILEGE "42501";
        CANNOT_COERCE "42846";
        GROUPING_ERROR "42803";
        WINDOWING_ERROR "42P20";
        INVALID_RECURSION "42P19";
        INVALID_COLUMN_REFERENCE "42P10";
        INVALID_TABLE_DEFINITION "42P16";
        INVALID_OBJECT_DEFINITION "42P17";
        INDETERMINATE_DATATYPE "42P18";
        COLLATION_MISMATCH "42P21";
        WRONG_OBJECT_TYPE "42809";
        DATATYPE_MISMATCH "42804";
        UNDEFINED_COLUMN "42703";
        UNDEFINED_FUNCTION "42883";
        UNDEFINED_TABLE "42P01";
        UNDEFINED_PARAMETER "42P02";
        UNDEFINED_OBJECT "42704";
        DUPLICATE_COLUMN "42701";
        INVALID_CURSOR_DEFINITION "42P11";
        DUPLICATE_CURSOR "42P03";
        DUPLICATE_SCHEMA "42P06";
        DUPLICATE_TABLE "42P07";
        DUPLICATE_ALIAS "42712";
        DUPLICATE_OBJECT "42710";
        DUPLICATE_PREPARED_STATEMENT "42P05";
        AMBIGUOUS_COLUMN "42702";
        AMBIGUOUS_FUNCTION "42725";
        AMBIGUOUS_PARAMETER "42P08";
        AMBIGUOUS_ALIAS "42P09";
        INVALID_NAME "42602";
        NAME_TOO_LONG "42622";
        RESERVED_NAME "42939";
        INVALID_FOREIGN_KEY "42830";
        PROGRAM_LIMIT_EXCEEDED "54000";
        STATEMENT_TOO_COMPLEX "54001";
        TOO_MANY_COLUMNS "54011";
        TOO_MANY_ARGUMENTS "54023";
        OUT_OF_MEMORY "53200";
        DISK_FULL "53100";
        TOO_MANY_CONNECTIONS "53300";
        CONFIGURATION_LIMIT_EXCEEDED "53400";
        OBJECT_NOT_IN_PREREQUISITE_STATE "55000";
        OBJECT_IN_USE "55006";
        QUERY_CANCELED "57014";
        ADMIN_SHUTDOWN "57P01";
        CANNOT_CONNECT_NOW "57P03";
        IO_ERROR "58030";
        IDLE_IN_TRANSACTION_TIMEOUT "25P03";
        SQL_JSON_ARRAY_NOT_FOUND "22039";
        SQL_JSON_OBJECT_NOT_FOUND "2203C";
        SQL_JSON_MEMBER_NOT_FOUND "2203A";
        SQL_JSON_SCALAR_REQUIRED "2203F";
        SINGLETON_SQL_JSON_ITEM_REQUIRED "22038";
        NON_NUMERIC_SQL_JSON_ITEM "22036";
        INVALID_SQL_JSON_SUBSCRIPT "22033";
        INTERNAL_ERROR "XX000";
        DATA_CORRUPTED "XX001";
    }
}

/// An error a user can read: SQLSTATE, message, and where known detail, hint and position (1-based, in characters of the statement).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SqlError {
    pub code: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub position: Option<u32>,
    /// Of an error that a statement meets, not of one that is a value in a dataflow.
    #[serde(default)]
    pub fields: Option<Box<ErrorFields>>,
}

/// What an error is about, for programs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ErrorFields {
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub constraint: Option<String>,
    /// A domain.
    #[serde(default)]
    pub datatype: Option<String>,
    /// Where it arose, as a person reads it: `COPY t, line 3, column a: "x"`.
    pub context: Option<String>,
}

impl SqlError {
    pub fn new(code: SqlState, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), detail: None, hint: None, position: None, fields: None }
    }
    fn fields(&mut self) -> &mut ErrorFields {
        self.fields.get_or_insert_default()
    }
    pub fn of_table(mut self, schema: impl Into<String>, table: impl Into<String>) -> SqlError {
        (self.fields().schema, self.fields().table) = (Some(schema.into()), Some(table.into()));
        self
    }
    pub fn of_column(mut self, column: impl Into<String>) -> SqlError {
        self.fields().column = Some(column.into());
        self
    }
    pub fn of_constraint(mut self, constraint: impl Into<String>) -> SqlError {
        self.fields().constraint = Some(constraint.into());
        self
    }
    pub fn of_datatype(mut self, datatype: impl Into<String>) -> SqlError {
        self.fields().datatype = Some(datatype.into());
        self
    }
    pub fn in_context(mut self, context: impl Into<String>) -> SqlError {
        self.fields().context = Some(context.into());
        self
    }
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }
    /// Sets the position unless a more exact one is already known.
    pub fn at(mut self, position: u32) -> SqlError {
        self.position = self.position.or(Some(position));
        self
    }
    /// A statement or feature that is not supported: SQLSTATE 0A000 with a hint.
    pub fn unsupported(what: impl fmt::Display, hint: impl Into<String>) -> SqlError {
        SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{what} is not supported")).with_hint(hint)
    }
    /// The client asked for the statement's end.
    pub fn canceled() -> SqlError {
        SqlError::new(state::QUERY_CANCELED, "canceling statement due to user request")
    }
    /// The statement took longer than `statement_timeout`.
    pub fn timed_out() -> SqlError {
        SqlError::new(state::QUERY_CANCELED, "canceling statement due to statement timeout")
    }
    /// A bug of ours.
    pub fn internal(message: impl fmt::Display) -> SqlError {
        SqlError::new(state::INTERNAL_ERROR, format!("internal error: {message}"))
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}
