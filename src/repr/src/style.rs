//! The session settings that text input and output read.

use crate::datetime::TimeZone;
use crate::error::SqlError;
use crate::types::RegKind;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DateStyle {
    pub format: DateFormat,
    pub order: DateOrder,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateFormat {
    Iso,
    Sql,
    Postgres,
    German,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

/// Names of catalog objects, for the `reg*` types.
pub trait RegNames: Send + Sync {
    /// The name as the type prints it; `None` if there is no such object.
    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String>;
    /// The object that a text names.
    fn reg_oid(&self, kind: RegKind, name: &str) -> Result<u32, SqlError>;
}

/// What text input and output depend on beside the type.
#[derive(Clone)]
pub struct TextStyle {
    pub timezone: TimeZone,
    pub date_style: DateStyle,
    pub interval_style: IntervalStyle,
    pub extra_float_digits: i32,
    pub bytea_escape: bool,
    /// The transaction's time, for `'now'`, `'today'` and the like: microseconds since 2000-01-01 UTC. `None` refuses them.
    pub now_micros: Option<i64>,
    /// `None`: the `reg*` types print and read numbers, and the names of built-in types.
    pub reg_names: Option<Arc<dyn RegNames>>,
}

impl Default for TextStyle {
    fn default() -> TextStyle {
        TextStyle {
            timezone: TimeZone::UTC,
            date_style: DateStyle { format: DateFormat::Iso, order: DateOrder::Mdy },
            interval_style: IntervalStyle::Postgres,
            extra_float_digits: 1,
            bytea_escape: false,
            now_micros: None,
            reg_names: None,
        }
    }
}
