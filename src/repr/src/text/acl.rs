//! `aclitem`: what one role has granted another, `grantee=privileges/grantor`, as text.

use crate::error::state;
use crate::style::TextStyle;
use crate::types::RegKind;
use crate::SqlError;

/// The letter and the name of each privilege, in the order in which they are shown.
pub const PRIVILEGES: [(char, &str); 14] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('s', "SET"),
    ('A', "ALTER SYSTEM"),
];

/// Who is meant where nobody says who grants.
const SUPERUSER: u32 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AclItem {
    /// 0: everybody.
    pub grantee: u32,
    pub grantor: u32,
    /// Bit `i`: the `i`th of [`PRIVILEGES`].
    pub privileges: u16,
    /// Which of them may be granted on.
    pub grantable: u16,
}

fn bad(message: &str) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, message)
}

/// A role's name, which may be quoted, at the start of a text, and what follows it.
fn role(text: &str) -> (String, &str) {
    let text = text.trim_ascii_start();
    let (mut name, mut quoted, mut chars) = (String::new(), false, text.char_indices().peekable());
    while let Some((i, c)) = chars.next() {
        match c {
            '"' if quoted && chars.peek().is_some_and(|n| n.1 == '"') => {
                chars.next();
                name.push('"');
            }
            '"' => quoted = !quoted,
            c if quoted || c.is_alphanumeric() || c == '_' => name.push(c),
            _ => return (name, text[i..].trim_ascii_start()),
        }
    }
    (name, "")
}

fn role_oid(name: &str, style: &TextStyle) -> Result<u32, SqlError> {
    let missing = || SqlError::new(state::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"));
    let names = style.reg_names.as_ref().ok_or_else(missing)?;
    names.reg_oid(RegKind::Role, &format!("\"{}\"", name.replace('"', "\"\"")))
}

impl AclItem {
    /// Errors: 22P02, 42704 for a role that does not exist.
    pub fn parse(text: &str, style: &TextStyle) -> Result<AclItem, SqlError> {
        let (mut name, mut rest) = role(text);
        if !rest.starts_with('=') {
            if name != "group" && name != "user" {
                let e = bad(&format!("unrecognized key word: \"{name}\""));
                return Err(e.with_hint("ACL key word must be \"group\" or \"user\"."));
            }
            (name, rest) = role(rest);
            if name.is_empty() {
                return Err(bad("missing name").with_hint("A name must follow the \"group\" or \"user\" key word."));
            }
        }
        let Some(mut rest) = rest.strip_prefix('=') else { return Err(bad("missing \"=\" sign")) };
        let mut item = AclItem { grantor: SUPERUSER, ..AclItem::default() };
        let mut last = 0;
        while let Some(c) = rest.chars().next().filter(|c| *c != '/' && !c.is_ascii_whitespace()) {
            match PRIVILEGES.iter().position(|p| p.0 == c) {
                _ if c == '*' => item.grantable |= last,
                Some(i) => {
                    last = 1 << i;
                    item.privileges |= last;
                }
                None => return Err(bad("invalid mode character: must be one of \"arwdDxtXUCTcsA\"")),
            }
            rest = &rest[c.len_utf8()..];
        }
        if !name.is_empty() {
            item.grantee = role_oid(&name, style)?;
        }
        if let Some(by) = rest.strip_prefix('/') {
            let (name, after) = role(by);
            if name.is_empty() {
                return Err(bad("a name must follow the \"/\" sign"));
            }
            item.grantor = role_oid(&name, style)?;
            rest = after;
        }
        match rest.trim_ascii() {
            "" => Ok(item),
            _ => Err(bad("extra garbage at the end of the ACL specification")),
        }
    }

    pub fn print(&self, style: &TextStyle) -> String {
        let name = |oid: u32| style.reg_names.as_ref().and_then(|n| n.reg_name(RegKind::Role, oid)).unwrap_or_else(|| oid.to_string());
        let mut out = if self.grantee == 0 { String::new() } else { name(self.grantee) };
        out.push('=');
        for (i, (letter, _)) in PRIVILEGES.iter().enumerate() {
            if self.privileges >> i & 1 == 1 {
                out.push(*letter);
            }
            if self.grantable >> i & 1 == 1 {
                out.push('*');
            }
        }
        out.push('/');
        out.push_str(&name(self.grantor));
        out
    }
}
