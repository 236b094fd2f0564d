//! Session settings: names, checks, how they print, which are reported to the client.

mod accepted;

use repr::datetime::TimeZone;
use repr::encoding::Encoding;
use repr::error::state;
use repr::{DateFormat, DateOrder, DateStyle, IntervalStyle, SqlError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a setting's text is checked.
#[derive(Clone, Copy)]
enum Check {
    Any,
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// A number of blocks of so many kilobytes, with Postgres's units.
    Memory {
        block: i64,
        min: i64,
        max: i64,
    },
    /// Milliseconds, with Postgres's units.
    Millis,
    /// The same, with parts of them.
    RealMillis {
        min: f64,
        max: f64,
    },
    OneOf(&'static [&'static str]),
    TimeZone,
    /// A name that Postgres knows for a character encoding.
    Encoding,
    DateStyle,
    /// The session's user; `none` for the role beside it.
    Role,
    ReadOnly,
}

struct Def {
    name: &'static str,
    default: &'static str,
    check: Check,
    reported: bool,
    description: &'static str,
}

const fn def(name: &'static str, default: &'static str, check: Check, description: &'static str) -> Def {
    Def { name, default, check, reported: false, description }
}
const fn reported(name: &'static str, default: &'static str, check: Check, description: &'static str) -> Def {
    Def { name, default, check, reported: true, description }
}

const ISOLATION: &[&str] = &["strict serializable", "serializable", "repeatable read", "read committed", "read uncommitted"];

const DEFS: &[Def] = &[
    reported("application_name", "", Check::Any, "Sets the application name to be reported in statistics and logs."),
    def("backslash_quote", "safe_encoding", Check::OneOf(&["safe_encoding", "on", "off"]), "Sets whether \"\\'\" is allowed in string literals."),
    def("bytea_output", "hex", Check::OneOf(&["hex", "escape"]), "Sets the output format for bytea."),
    def("check_function_bodies", "on", Check::Bool, "Check routine bodies during CREATE."),
    reported("client_encoding", "UTF8", Check::Encoding, "Sets the client's character set encoding."),
    def(
        "client_min_messages",
        "notice",
        Check::OneOf(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]),
        "Sets the message levels that are sent to the client.",
    ),
    reported("DateStyle", "ISO, MDY", Check::DateStyle, "Sets the display format for date and time values."),
    def("default_table_access_method", "heap", Check::Any, "Accepted for compatibility."),
    def(
        "default_text_search_config",
        "pg_catalog.english",
        Check::OneOf(&["pg_catalog.english", "pg_catalog.simple", "english", "simple"]),
        "Sets default text search configuration.",
    ),
    def("default_transaction_deferrable", "off", Check::Bool, "Sets the default deferrable status of new transactions."),
    def("default_transaction_isolation", "serializable", Check::OneOf(ISOLATION), "Sets the transaction isolation level of each new transaction."),
    reported("default_transaction_read_only", "off", Check::Bool, "Sets the default read-only status of new transactions."),
    def("escape_string_warning", "on", Check::Bool, "Warn about backslash escapes in ordinary string literals."),
    def("extra_float_digits", "1", Check::Int { min: -15, max: 3 }, "Sets the number of digits displayed for floating-point values."),
    def(
        "idle_in_transaction_session_timeout",
        "60s",
        Check::Millis,
        "Sets the maximum allowed idle time between queries, when in a transaction that has written.",
    ),
    reported("in_hot_standby", "off", Check::ReadOnly, "Shows whether hot standby is currently active."),
    reported("integer_datetimes", "on", Check::ReadOnly, "Shows whether datetimes are integer based."),
    reported(
        "IntervalStyle",
        "postgres",
        Check::OneOf(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "Sets the display format for interval values.",
    ),
    reported("is_superuser", "on", Check::ReadOnly, "Shows whether the current user is a superuser."),
    def("lc_collate", "C", Check::ReadOnly, "Shows the collation order locale."),
    def("lc_ctype", "C.UTF-8", Check::ReadOnly, "Shows the character classification and case conversion locale."),
    def("lc_messages", "C", Check::Any, "Sets the language in which messages are displayed."),
    def("lc_monetary", "C", Check::Any, "Sets the locale for formatting monetary amounts."),
    def("lc_numeric", "C", Check::Any, "Sets the locale for formatting numbers."),
    def("lc_time", "C", Check::Any, "Sets the locale for formatting date and time values."),
    def("lock_timeout", "0", Check::Millis, "Accepted for compatibility: no statement waits for a lock."),
    def("max_connections", "262143", Check::ReadOnly, "Sets the maximum number of concurrent connections: there is no limit but the machine's."),
    def("max_identifier_length", "63", Check::ReadOnly, "Shows the maximum identifier length."),
    def("max_index_keys", "32", Check::ReadOnly, "Shows the maximum number of index keys."),
    def("optimizer", "on", Check::Bool, "Whether plans are optimized beyond what execution needs."),
    def("role", "none", Check::Role, "Sets the current role."),
    def("search_path", "\"$user\", public", Check::Any, "Sets the schema search order for names that are not schema-qualified."),
    reported("server_encoding", "UTF8", Check::ReadOnly, "Shows the server (database) character set encoding."),
    reported("server_version", "15.0", Check::ReadOnly, "Shows the server version."),
    def("server_version_num", "150000", Check::ReadOnly, "Shows the server version as an integer."),
    reported("session_authorization", "riverdelta", Check::Role, "Shows the session user name."),
    reported("standard_conforming_strings", "on", Check::OneOf(&["on"]), "Causes '...' strings to treat backslashes literally."),
    def("statement_timeout", "0", Check::Millis, "Sets the maximum allowed duration of any statement."),
    reported("TimeZone", "UTC", Check::TimeZone, "Sets the time zone for displaying and interpreting time stamps."),
    def(
        "transaction_deferrable",
        "off",
        Check::Bool,
        "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures: it always can.",
    ),
    def("transaction_isolation", "serializable", Check::OneOf(ISOLATION), "Sets the current transaction's isolation level."),
    def("transaction_read_only", "off", Check::Bool, "Sets the current transaction's read-only status."),
];

/// The settings of one session. Names compare case-insensitively.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Values that differ from the default, by lower-case name.
    values: BTreeMap<String, String>,
    /// What RESET goes back to, where it is not the default (startup parameters).
    session_defaults: BTreeMap<String, String>,
    /// `SET LOCAL` and what SET changed in the block: (name, value before), undone from the end.
    undo: Vec<(String, Option<String>, bool)>,
}

/// What a maintained object captures of its creator's session (DECISIONS 18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedSettings {
    pub timezone: String,
    pub date_style: String,
    pub interval_style: String,
    pub extra_float_digits: i32,
    pub bytea_escape: bool,
    pub search_path: Vec<String>,
    pub user: String,
    /// Empty: the default.
    #[serde(default)]
    pub text_search: String,
}

fn find(name: &str) -> Option<&'static Def> {
    DEFS.iter().chain(accepted::ACCEPTED).find(|d| d.name.eq_ignore_ascii_case(name))
}

/// What a setting is unless it is set.
pub fn default_of(name: &str) -> Option<&'static str> {
    find(name).map(|d| d.default)
}

/// Whether a setting that is none of ours may have the name: identifiers with dots between them.
fn is_free_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_word = |w: &str| w.starts_with(letter) && w.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '$');
    name.contains('.') && name.split('.').all(is_word)
}

fn parse_bool(s: &str) -> Option<bool> {
    let l = s.trim().to_ascii_lowercase();
    match l.as_str() {
        "" | "o" => None,
        _ if "true".starts_with(&l) || "yes".starts_with(&l) || l == "on" || l == "1" => Some(true),
        _ if "false".starts_with(&l) || "no".starts_with(&l) || "off".starts_with(&l) || l == "0" => Some(false),
        _ => None,
    }
}

/// Milliseconds from Postgres's duration text (`5s`, `100ms`, `1min`, plain milliseconds).
fn parse_millis(s: &str) -> Option<i64> {
    let ms = parse_real_millis(s)?.round();
    (0.0..=2_147_483_647.0).contains(&ms).then_some(ms as i64)
}

fn parse_real_millis(s: &str) -> Option<f64> {
    let s = s.trim();
    let digits = s.find(|c: char| !(c.is_ascii_digit() || c == '-' || c == '.')).unwrap_or(s.len());
    let number: f64 = s[..digits].parse().ok()?;
    let factor = match s[digits..].trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(number * factor)
}

fn print_real_millis(ms: f64) -> String {
    match ms {
        _ if ms.fract() == 0.0 => print_millis(ms as i64),
        _ => format!("{}us", accepted::print_real(ms * 1000.0)),
    }
}

fn print_millis(ms: i64) -> String {
    match ms {
        0 => "0".into(),
        _ if ms % 86_400_000 == 0 => format!("{}d", ms / 86_400_000),
        _ if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        _ if ms % 60_000 == 0 => format!("{}min", ms / 60_000),
        _ if ms % 1000 == 0 => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

fn parse_date_style(text: &str, mut current: DateStyle) -> Option<DateStyle> {
    for word in text.split(',') {
        let w = word.trim().to_ascii_lowercase();
        match w.as_str() {
            "iso" => current.format = DateFormat::Iso,
            "sql" => current.format = DateFormat::Sql,
            "german" => {
                current.format = DateFormat::German;
                current.order = DateOrder::Dmy;
            }
            "default" => current = DateStyle { format: DateFormat::Iso, order: DateOrder::Mdy },
            _ if w.starts_with("postgres") => current.format = DateFormat::Postgres,
            "dmy" | "euro" | "european" => current.order = DateOrder::Dmy,
            "mdy" | "us" | "noneuro" | "noneuropean" => current.order = DateOrder::Mdy,
            "ymd" => current.order = DateOrder::Ymd,
            _ => return None,
        }
    }
    Some(current)
}

fn print_date_style(s: DateStyle) -> String {
    let format = match s.format {
        DateFormat::Iso => "ISO",
        DateFormat::Sql => "SQL",
        DateFormat::Postgres => "Postgres",
        DateFormat::German => "German",
    };
    let order = match s.order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{format}, {order}")
}

impl Settings {
    /// The canonical value, or the error that SET gives.
    fn check(&self, def: &Def, value: &str) -> Result<String, SqlError> {
        let invalid = || SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{}\": \"{value}\"", def.name));
        match def.check {
            Check::Any => Ok(value.to_string()),
            Check::Bool => match parse_bool(value) {
                Some(true) => Ok("on".into()),
                Some(false) => Ok("off".into()),
                None => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("parameter \"{}\" requires a Boolean value", def.name))),
            },
            Check::Int { min, max } => {
                let v: i64 = value.trim().parse().map_err(|_| invalid())?;
                if !(min..=max).contains(&v) {
                    let m = format!("{v} is outside the valid range for parameter \"{}\" ({min} .. {max})", def.name);
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                Ok(v.to_string())
            }
            Check::Real { min, max } => {
                let v: f64 = value.trim().parse().ok().filter(|v: &f64| !v.is_nan()).ok_or_else(invalid)?;
                if !(min..=max).contains(&v) {
                    let [v, min, max] = [v, min, max].map(accepted::print_real);
                    let m = format!("{v} is outside the valid range for parameter \"{}\" ({min} .. {max})", def.name);
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                Ok(accepted::print_real(v))
            }
            Check::Memory { block, min, max } => {
                let v = accepted::parse_memory(value, block).map_err(|unit| match unit {
                    true => invalid().with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
                    false => invalid(),
                })?;
                if v.abs() > i32::MAX as f64 {
                    return Err(invalid().with_hint("Value exceeds integer range."));
                }
                let v = v as i64;
                if !(min..=max).contains(&v) {
                    let unit = if block == 1 { "kB".to_owned() } else { format!("{block}kB") };
                    let m = format!("{v} {unit} is outside the valid range for parameter \"{}\" ({min} .. {max})", def.name);
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                Ok(accepted::print_memory(v, block))
            }
            Check::Millis => parse_millis(value)
                .map(print_millis)
                .ok_or_else(|| invalid().with_hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")),
            Check::RealMillis { min, max } => {
                let v = parse_real_millis(value)
                    .ok_or_else(|| invalid().with_hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."))?;
                if !(min..=max).contains(&v) {
                    let [v, min, max] = [v, min, max].map(accepted::print_real);
                    let m = format!("{v} ms is outside the valid range for parameter \"{}\" ({min} .. {max})", def.name);
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                Ok(print_real_millis(v))
            }
            Check::OneOf(options) => {
                let v = value.trim().to_ascii_lowercase();
                // Where on and off are among others, their other spellings are too, and where there is nothing else, their beginnings.
                let whole = matches!(v.as_str(), "true" | "yes" | "1" | "false" | "no" | "0");
                let alone = options.iter().all(|o| matches!(*o, "on" | "off"));
                let truth = match parse_bool(&v).filter(|_| whole || alone) {
                    Some(true) => "on",
                    Some(false) => "off",
                    None => v.as_str(),
                };
                if options.contains(&truth) {
                    Ok(truth.to_owned())
                } else if def.name == "default_with_oids" && truth == "on" {
                    Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "tables declared WITH OIDS are not supported"))
                } else {
                    Err(invalid().with_hint(format!("Available values: {}.", options.join(", "))))
                }
            }
            Check::Encoding => Encoding::parse(value)?.map(|e| e.name().to_owned()).ok_or_else(invalid),
            Check::TimeZone => TimeZone::parse(value.trim()).filter(|z| z.offset_at(0) % 60 == 0).map(|z| z.name().to_string()).ok_or_else(invalid),
            Check::DateStyle => parse_date_style(value, self.date_style()).map(print_date_style).ok_or_else(invalid),
            Check::Role if value == self.value("session_authorization") || (value == "none" && def.name == "role") => Ok(value.to_string()),
            Check::Role => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("role \"{value}\" does not exist"))),
            Check::ReadOnly => Err(SqlError::new(repr::SqlState::new("55P02"), format!("parameter \"{}\" cannot be changed", def.name))),
        }
    }

    fn unknown(name: &str) -> SqlError {
        SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
    }

    /// A parameter of the startup message: unknown ones are refused like SET does.
    pub fn set_at_startup(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let def = find(name).ok_or_else(|| Self::unknown(name))?;
        let key = def.name.to_ascii_lowercase();
        let value = self.check(def, value)?;
        self.session_defaults.insert(key.clone(), value.clone());
        self.values.insert(key, value);
        Ok(())
    }

    /// What the server itself fixes for a session.
    pub fn force(&mut self, name: &str, value: &str) {
        let key = name.to_ascii_lowercase();
        self.session_defaults.insert(key.clone(), value.to_string());
        self.values.insert(key, value.to_string());
    }

    /// SET (`local`: SET LOCAL). `None` is DEFAULT. Names with a dot are free, as in Postgres.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        let (key, new) = match find(name) {
            Some(def) => {
                let key = def.name.to_ascii_lowercase();
                let new = match value {
                    Some(v) => Some(self.check(def, v)?),
                    None if matches!(def.check, Check::ReadOnly) => Some(self.check(def, "")?),
                    None => self.session_defaults.get(&key).cloned(),
                };
                (key, new)
            }
            None if is_free_name(name) => (name.to_ascii_lowercase(), value.map(str::to_string)),
            None if name.contains('.') => {
                let e = SqlError::new(repr::SqlState::new("42602"), format!("invalid configuration parameter name \"{name}\""));
                return Err(e.with_detail("Custom parameter names must be two or more simple identifiers separated by dots."));
            }
            None => return Err(Self::unknown(name)),
        };
        self.undo.push((key.clone(), self.values.get(&key).cloned(), local));
        self.put(key, new);
        Ok(())
    }

    fn put(&mut self, key: String, value: Option<String>) {
        match value {
            Some(v) => self.values.insert(key, v),
            // Once named, a free name is known: it is empty then.
            None if find(&key).is_none() => self.values.insert(key, String::new()),
            None => self.values.remove(&key),
        };
    }

    pub fn reset_all(&mut self) {
        self.undo.extend(self.values.clone().into_iter().map(|(k, v)| (k, Some(v), false)));
        let free = std::mem::take(&mut self.values).into_keys().filter(|k| find(k).is_none()).map(|k| (k, String::new()));
        self.values = free.chain(self.session_defaults.clone()).collect();
    }

    /// How many changes the transaction has made, for [`Settings::go_back`].
    pub fn changes(&self) -> usize {
        self.undo.len()
    }

    /// Undoes all but the first `n` changes of the transaction.
    pub fn go_back(&mut self, n: usize) {
        for (key, before, _) in self.undo.split_off(n.min(self.undo.len())).into_iter().rev() {
            self.put(key, before);
        }
    }

    /// Ends a transaction: a rollback undoes every SET since its start, a commit only SET LOCAL.
    pub fn end_transaction(&mut self, committed: bool) {
        for (key, before, local) in std::mem::take(&mut self.undo).into_iter().rev() {
            if local || !committed {
                self.put(key, before);
            }
        }
    }

    /// SHOW.
    pub fn get(&self, name: &str) -> Result<String, SqlError> {
        let key = name.to_ascii_lowercase();
        match (self.values.get(&key), find(name)) {
            (Some(v), _) => Ok(v.clone()),
            // A transaction that does not say is as the session has it.
            (None, Some(def)) if def.name.starts_with("transaction_") => self.get(&format!("default_{}", def.name)),
            (None, Some(def)) => Ok(def.default.to_string()),
            (None, None) => Err(Self::unknown(name)),
        }
    }

    fn value(&self, name: &'static str) -> String {
        self.get(name).unwrap_or_default()
    }

    /// (name, value, description), for SHOW ALL and pg_settings.
    pub fn all(&self) -> Vec<(String, String, String)> {
        let known = DEFS.iter().chain(accepted::ACCEPTED).map(|d| (d.name.to_string(), self.value(d.name), d.description.to_string()));
        let free = self.values.iter().filter(|(k, _)| find(k).is_none()).map(|(k, v)| (k.clone(), v.clone(), String::new()));
        let mut all: Vec<_> = known.chain(free).collect();
        all.sort_by_key(|s| s.0.to_ascii_lowercase());
        all
    }

    /// Parameters that clients are told of: (name, value).
    pub fn reported(&self) -> Vec<(String, String)> {
        DEFS.iter().filter(|d| d.reported).map(|d| (d.name.to_string(), self.value(d.name))).collect()
    }

    pub fn date_style(&self) -> DateStyle {
        let default = DateStyle { format: DateFormat::Iso, order: DateOrder::Mdy };
        parse_date_style(&self.value("DateStyle"), default).unwrap_or(default)
    }
    pub fn interval_style(&self) -> IntervalStyle {
        interval_style(&self.value("IntervalStyle"))
    }
    pub fn timezone(&self) -> String {
        self.value("TimeZone")
    }
    pub fn extra_float_digits(&self) -> i32 {
        self.value("extra_float_digits").parse().unwrap_or(1)
    }
    pub fn bytea_escape(&self) -> bool {
        self.value("bytea_output") == "escape"
    }
    pub fn statement_timeout(&self) -> Option<Duration> {
        millis(&self.value("statement_timeout"))
    }
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        millis(&self.value("idle_in_transaction_session_timeout"))
    }
    pub fn optimizer_enabled(&self) -> bool {
        self.value("optimizer") == "on"
    }
    /// Schemas in search order, without `pg_catalog` (which is always first unless named).
    pub fn search_path(&self) -> Vec<String> {
        let user = self.value("session_authorization");
        split_identifiers(&self.value("search_path")).into_iter().map(|s| if s == "$user" { user.clone() } else { s }).collect()
    }

    pub fn capture(&self) -> CapturedSettings {
        CapturedSettings {
            timezone: self.timezone(),
            date_style: self.value("DateStyle"),
            interval_style: self.value("IntervalStyle"),
            extra_float_digits: self.extra_float_digits(),
            bytea_escape: self.bytea_escape(),
            search_path: self.search_path(),
            user: self.value("session_authorization"),
            text_search: self.value("default_text_search_config"),
        }
    }
}

impl CapturedSettings {
    pub fn date_style(&self) -> DateStyle {
        let default = DateStyle { format: DateFormat::Iso, order: DateOrder::Mdy };
        parse_date_style(&self.date_style, default).unwrap_or(default)
    }
    pub fn interval_style(&self) -> IntervalStyle {
        interval_style(&self.interval_style)
    }
}

fn interval_style(name: &str) -> IntervalStyle {
    match name {
        "postgres_verbose" => IntervalStyle::PostgresVerbose,
        "sql_standard" => IntervalStyle::SqlStandard,
        "iso_8601" => IntervalStyle::Iso8601,
        _ => IntervalStyle::Postgres,
    }
}

fn millis(text: &str) -> Option<Duration> {
    parse_millis(text).filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms as u64))
}

/// A comma-separated list of identifiers, quoted or not.
pub fn split_identifiers(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() {
        let mut name = String::new();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    name.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => break,
                c if quoted => name.push(c),
                c if c.is_whitespace() => {}
                c => name.extend(c.to_lowercase()),
            }
        }
        if !name.is_empty() {
            out.push(name);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_is_undone_by_rollback_and_set_local_by_commit() {
        let mut s = Settings::default();
        s.set("statement_timeout", Some("5s"), false).unwrap();
        s.end_transaction(true);
        assert_eq!(s.get("STATEMENT_TIMEOUT").unwrap(), "5s");
        s.set("statement_timeout", Some("1min"), false).unwrap();
        s.end_transaction(false);
        assert_eq!(s.get("statement_timeout").unwrap(), "5s");
        s.set("statement_timeout", Some("100"), true).unwrap();
        assert_eq!(s.statement_timeout(), Some(Duration::from_millis(100)));
        s.end_transaction(true);
        assert_eq!(s.get("statement_timeout").unwrap(), "5s");
    }

    #[test]
    fn bad_names_and_values_are_refused() {
        let mut s = Settings::default();
        assert_eq!(s.set("no_such", Some("1"), false).unwrap_err().code.as_str(), "42704");
        assert_eq!(s.set("extra_float_digits", Some("9"), false).unwrap_err().code.as_str(), "22023");
        assert_eq!(s.set("server_version", Some("9"), false).unwrap_err().code.as_str(), "55P02");
        assert_eq!(s.set("role", Some("nobody"), false).unwrap_err().code.as_str(), "22023");
        assert!(s.set("role", Some("none"), false).is_ok() && s.set("session_authorization", None, false).is_ok());
        assert!(s.set("my.own", Some("x"), false).is_ok());
        assert_eq!(split_identifiers("\"$user\", Public, \"A b\""), ["$user", "public", "A b"]);
    }
}
