//! Looking into JSON text without parsing it: entries and items as slices, so that `json` keeps its spelling.
//!
//! The text is valid JSON (the type's input checked it); on other text the answers are some slices, never a panic.

use repr::SqlError;

/// What a JSON text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Object,
    Array,
    String,
    Null,
    /// Numbers and booleans.
    Scalar,
}

pub fn kind(text: &str) -> Kind {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b'n') => Kind::Null,
        _ => Kind::Scalar,
    }
}

/// The end of the value that begins at byte `at`, blanks before it skipped; and its beginning.
fn value(text: &str, mut at: usize) -> (usize, usize) {
    let b = text.as_bytes();
    while b.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    let start = at;
    let (mut depth, mut quoted) = (0usize, false);
    while let Some(c) = b.get(at) {
        match c {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    at += 1;
                    break;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => break,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    at += 1;
                    break;
                }
            }
            b',' | b':' if depth == 0 => break,
            c if depth == 0 && c.is_ascii_whitespace() => break,
            _ => {}
        }
        at += 1;
    }
    (start, at.min(text.len()))
}

/// Steps over blanks and one of `marks`; `false` at the end of the container.
fn step(text: &str, at: &mut usize, mark: u8) -> bool {
    let b = text.as_bytes();
    while b.get(*at).is_some_and(u8::is_ascii_whitespace) {
        *at += 1;
    }
    if b.get(*at) == Some(&mark) {
        *at += 1;
        return true;
    }
    false
}

/// The items of an array.
pub fn items(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut at = 0;
    if !step(text, &mut at, b'[') {
        return out;
    }
    loop {
        let (a, b) = value(text, at);
        if a == b {
            return out;
        }
        out.push(&text[a..b]);
        at = b;
        if !step(text, &mut at, b',') {
            return out;
        }
    }
}

/// The entries of an object, repeated keys included.
pub fn entries(text: &str) -> Vec<(String, &str)> {
    let mut out = Vec::new();
    let mut at = 0;
    if !step(text, &mut at, b'{') {
        return out;
    }
    loop {
        let (a, b) = value(text, at);
        at = b;
        if a == b || !step(text, &mut at, b':') {
            return out;
        }
        let key = unquote(&text[a..b]);
        let (a, b) = value(text, at);
        out.push((key, &text[a..b]));
        at = b;
        if !step(text, &mut at, b',') {
            return out;
        }
    }
}

/// The characters of a string literal.
pub fn unquote(literal: &str) -> String {
    match serde_json::from_str::<String>(literal) {
        Ok(s) => s,
        Err(_) => literal.trim_matches('"').to_owned(),
    }
}

/// A value as text: strings without quotes, NULL for null, all else as spelled. Errors: 22P05 and 22P02 for escapes that no text has.
pub fn as_text(text: &str) -> Result<Option<String>, SqlError> {
    match kind(text) {
        Kind::Null => Ok(None),
        Kind::String => repr::jsonb::parse(text).map(|j| j.as_text()),
        _ => Ok(Some(text.trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_their_spelling() {
        let t = r#" { "a" : [1,  {"x": "}"}] , "b\u0041":null,"c":"q\"," , "d": 1.50 } "#;
        let e = entries(t);
        let got: Vec<(&str, &str)> = e.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(got, [("a", r#"[1,  {"x": "}"}]"#), ("bA", "null"), ("c", r#""q\",""#), ("d", "1.50")]);
        assert_eq!(items("[1, [2,3] ,\"x\"]"), ["1", "[2,3]", "\"x\""]);
        assert!(items("[ ]").is_empty() && entries("{}").is_empty());
        assert_eq!(as_text("\"x\\n\""), Ok(Some("x\n".into())));
        assert_eq!(as_text(r#""\u0000""#).map_err(|e| e.code.as_str().to_owned()), Err("22P05".into()));
    }
}
