//! Reading and changing documents: fields, paths, containment, concatenation, printing with indentation.
//!
//! Indexes count from 0, negative ones from the end. Errors carry Postgres's wording: 22023 where a scalar or object cannot take the
//! operation, 22P02 for a path element that is no index, 22004 for a NULL one.

use super::{escape_into, Jsonb};
use crate::error::{state, SqlError};
use crate::interrupt::Pace;
use crate::numeric::Numeric;
use std::cmp::Ordering;
use std::collections::HashSet;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
}

/// What [`Jsonb::set_path`] does with the value at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Replace it; do nothing where there is none.
    Replace,
    /// Replace it or add it.
    Create,
    InsertBefore,
    InsertAfter,
    Delete,
}

impl Change {
    fn adds(self) -> bool {
        matches!(self, Change::Create | Change::InsertBefore | Change::InsertAfter)
    }
}

/// An element of a text path as an array index: digits with a sign and blanks in front.
fn as_index(s: &str) -> Option<i64> {
    let t = s.trim_start();
    t.parse::<i32>().ok().map(i64::from)
}

fn resolve(index: i64, len: usize) -> Option<usize> {
    let i = if index < 0 { index + len as i64 } else { index };
    usize::try_from(i).ok().filter(|i| *i < len)
}

impl Jsonb {
    pub fn is_container(&self) -> bool {
        matches!(self, Jsonb::Array(_) | Jsonb::Object(_))
    }

    /// `jsonb_typeof`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Jsonb::Null => "null",
            Jsonb::Bool(_) => "boolean",
            Jsonb::Number(_) => "number",
            Jsonb::String(_) => "string",
            Jsonb::Array(_) => "array",
            Jsonb::Object(_) => "object",
        }
    }

    /// The value of a key; keys are sorted by length, then bytes.
    pub fn field(&self, key: &str) -> Option<&Jsonb> {
        let Jsonb::Object(o) = self else { return None };
        o.binary_search_by(|e| key_order(&e.0, key)).ok().map(|i| &o[i].1)
    }

    pub fn element(&self, index: i64) -> Option<&Jsonb> {
        match self {
            Jsonb::Array(a) => resolve(index, a.len()).map(|i| &a[i]),
            Jsonb::Object(_) => None,
            // A scalar is stored as an array of one, and Postgres lets that be seen.
            scalar => resolve(index, 1).map(|_| scalar),
        }
    }

    /// The value at a path of keys and indexes.
    pub fn path<S: AsRef<str>>(&self, path: &[S]) -> Option<&Jsonb> {
        path.iter().try_fold(self, |j, p| match j {
            Jsonb::Object(_) => j.field(p.as_ref()),
            Jsonb::Array(_) => j.element(as_index(p.as_ref())?),
            _ => None,
        })
    }

    /// The value as text: strings without quotes, `null` as `None`.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Jsonb::Null => None,
            Jsonb::String(s) => Some(s.clone()),
            other => Some(other.to_string()),
        }
    }

    /// `?`: a key of an object, a string of an array, or the string itself.
    pub fn exists(&self, key: &str) -> bool {
        match self {
            Jsonb::Object(_) => self.field(key).is_some(),
            Jsonb::Array(a) => a.iter().any(|j| matches!(j, Jsonb::String(s) if s == key)),
            Jsonb::String(s) => s == key,
            _ => false,
        }
    }

    /// Equality of SQL: numbers by value.
    pub fn same(&self, other: &Jsonb) -> bool {
        match (self, other) {
            (Jsonb::Number(a), Jsonb::Number(b)) => a.cmp(b) == Ordering::Equal,
            (Jsonb::Array(a), Jsonb::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same(y)),
            (Jsonb::Object(a), Jsonb::Object(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && x.1.same(&y.1)),
            (a, b) => a == b,
        }
    }

    /// `@>`. A top-level array contains a scalar that is among its elements.
    pub fn contains(&self, other: &Jsonb) -> bool {
        match (self, other) {
            (Jsonb::Array(a), b) if !b.is_container() => a.iter().any(|x| x.same(b)),
            _ => self.deep_contains(other, &Pace::default()),
        }
    }

    fn deep_contains(&self, other: &Jsonb, pace: &Pace) -> bool {
        match (self, other) {
            (Jsonb::Object(a), Jsonb::Object(b)) => a.len() >= b.len() && b.iter().all(|(k, v)| self.field(k).is_some_and(|x| x.deep_contains(v, pace))),
            (Jsonb::Array(a), Jsonb::Array(b)) => b.iter().all(|v| {
                a.iter().take_while(|_| !pace.stop(16)).any(|x| match v.is_container() {
                    true => x.is_container() && x.deep_contains(v, pace),
                    false => x.same(v),
                })
            }),
            (a, b) if !a.is_container() && !b.is_container() => a.same(b),
            _ => false,
        }
    }

    /// `||`.
    pub fn concat(self, other: Jsonb) -> Jsonb {
        match (self, other) {
            (Jsonb::Object(mut a), Jsonb::Object(b)) => {
                a.extend(b);
                Jsonb::object(a)
            }
            (a, b) => {
                let parts = |j: Jsonb| match j {
                    Jsonb::Array(a) => a,
                    other => vec![other],
                };
                let mut out = parts(a);
                out.extend(parts(b));
                Jsonb::Array(out)
            }
        }
    }

    /// `- text` and `- text[]`: without these keys, or these strings of an array.
    pub fn delete_keys(self, keys: &[&str]) -> Result<Jsonb, SqlError> {
        let keys: HashSet<&str> = keys.iter().copied().collect();
        match self {
            Jsonb::Object(o) => Ok(Jsonb::Object(o.into_iter().filter(|e| !keys.contains(e.0.as_str())).collect())),
            Jsonb::Array(a) => {
                let gone = |j: &Jsonb| matches!(j, Jsonb::String(s) if keys.contains(s.as_str()));
                Ok(Jsonb::Array(a.into_iter().filter(|j| !gone(j)).collect()))
            }
            _ => Err(invalid("cannot delete from scalar")),
        }
    }

    /// `- integer`.
    pub fn delete_index(self, index: i64) -> Result<Jsonb, SqlError> {
        match self {
            Jsonb::Array(mut a) => {
                if let Some(i) = resolve(index, a.len()) {
                    a.remove(i);
                }
                Ok(Jsonb::Array(a))
            }
            Jsonb::Object(_) => Err(invalid("cannot delete from object using integer index")),
            _ => Err(invalid("cannot delete from scalar")),
        }
    }

    /// `jsonb_set`, `jsonb_insert`, `#-`. `None` in the path is NULL.
    pub fn set_path(self, path: &[Option<String>], value: Option<&Jsonb>, change: Change) -> Result<Jsonb, SqlError> {
        if !self.is_container() {
            let what = if change == Change::Delete { "cannot delete path in scalar" } else { "cannot set path in scalar" };
            return Err(invalid(what));
        }
        let empty = matches!(&self, Jsonb::Array(a) if a.is_empty()) || matches!(&self, Jsonb::Object(o) if o.is_empty());
        if path.is_empty() || (empty && !change.adds()) {
            return Ok(self);
        }
        self.set_level(path, 0, value, change)
    }

    fn set_level(self, path: &[Option<String>], level: usize, value: Option<&Jsonb>, change: Change) -> Result<Jsonb, SqlError> {
        let last = level + 1 == path.len();
        let Some(key) = &path[level] else {
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("path element at position {} is null", level + 1)));
        };
        let new = || value.cloned().unwrap_or(Jsonb::Null);
        match self {
            Jsonb::Object(mut o) => {
                match o.binary_search_by(|e| key_order(&e.0, key)) {
                    Ok(i) if !last => {
                        let v = std::mem::replace(&mut o[i].1, Jsonb::Null);
                        o[i].1 = v.set_level(path, level + 1, value, change)?;
                    }
                    Ok(i) => match change {
                        Change::InsertBefore | Change::InsertAfter => {
                            return Err(invalid("cannot replace existing key").with_hint("Try using the function jsonb_set to replace key value."));
                        }
                        Change::Delete => {
                            o.remove(i);
                        }
                        _ => o[i].1 = new(),
                    },
                    Err(i) if last && change.adds() => o.insert(i, (key.clone(), new())),
                    Err(_) => {}
                }
                Ok(Jsonb::Object(o))
            }
            Jsonb::Array(mut a) => {
                let not_index = || {
                    let m = format!("path element at position {} is not an integer: \"{key}\"", level + 1);
                    SqlError::new(state::INVALID_TEXT_REPRESENTATION, m)
                };
                let index = as_index(key).ok_or_else(not_index)?;
                let at = if index < 0 { index + a.len() as i64 } else { index };
                match usize::try_from(at).ok().filter(|i| *i < a.len()) {
                    Some(i) if !last => {
                        let v = std::mem::replace(&mut a[i], Jsonb::Null);
                        a[i] = v.set_level(path, level + 1, value, change)?;
                    }
                    Some(i) => match change {
                        Change::Delete => {
                            a.remove(i);
                        }
                        Change::InsertBefore => a.insert(i, new()),
                        Change::InsertAfter => a.insert(i + 1, new()),
                        Change::Replace | Change::Create => a[i] = new(),
                    },
                    // Out of range: in front or behind.
                    None if last && change.adds() => {
                        let end = if at < 0 { 0 } else { a.len() };
                        a.insert(end, new());
                    }
                    None => {}
                }
                Ok(Jsonb::Array(a))
            }
            scalar => Ok(scalar),
        }
    }

    /// Without the fields that are null, at any depth; nulls in arrays stay.
    pub fn strip_nulls(self) -> Jsonb {
        match self {
            Jsonb::Object(o) => Jsonb::Object(o.into_iter().filter(|e| e.1 != Jsonb::Null).map(|(k, v)| (k, v.strip_nulls())).collect()),
            Jsonb::Array(a) => Jsonb::Array(a.into_iter().map(Jsonb::strip_nulls).collect()),
            other => other,
        }
    }

    /// `jsonb_pretty`: four blanks a level.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.pretty_into(0, &mut out);
        out
    }

    fn pretty_into(&self, depth: usize, out: &mut String) {
        let line = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth * 4));
        };
        match self {
            Jsonb::Array(a) => {
                out.push('[');
                for (i, v) in a.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    line(depth + 1, out);
                    v.pretty_into(depth + 1, out);
                }
                line(depth, out);
                out.push(']');
            }
            Jsonb::Object(o) => {
                out.push('{');
                for (i, (k, v)) in o.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    line(depth + 1, out);
                    escape_into(k, out);
                    out.push_str(": ");
                    v.pretty_into(depth + 1, out);
                }
                line(depth, out);
                out.push('}');
            }
            scalar => scalar.print(out),
        }
    }

    /// The number that a cast from jsonb takes. Errors: 22023 naming what is there and the type wanted.
    pub fn cast_number(&self, ty: &str) -> Result<&Numeric, SqlError> {
        match self {
            Jsonb::Number(n) => Ok(n),
            other => Err(other.cannot_cast(ty)),
        }
    }

    /// The bool that a cast from jsonb takes.
    pub fn cast_bool(&self) -> Result<bool, SqlError> {
        match self {
            Jsonb::Bool(b) => Ok(*b),
            other => Err(other.cannot_cast("boolean")),
        }
    }

    fn cannot_cast(&self, ty: &str) -> SqlError {
        let what = match self {
            Jsonb::Number(_) => "numeric",
            other => other.type_name(),
        };
        invalid(format!("cannot cast jsonb {what} to type {ty}"))
    }
}

/// The order of an object's keys: by length, then bytes.
pub fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
