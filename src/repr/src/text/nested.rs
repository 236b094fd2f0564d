//! Types with parts: arrays, vectors, lists, maps, records, ranges, multiranges.

use super::{from_text, write_text};
use crate::canonical::{elem_type, type_of};
use crate::error::{state, SqlError};
use crate::range::{self, Bound};
use crate::style::TextStyle;
use crate::types::SqlType;
use crate::value::{ArrayValue, RangeValue, Value};
use std::fmt::Write;

/// Elements that an array may have (2^27, as in Postgres), and dimensions.
const ARRAY_LEN_MAX: i64 = 134_217_727;
const DIMS_MAX: usize = 6;

pub(super) fn write(value: &Value, ty: &SqlType, style: &TextStyle, out: &mut String) {
    match value {
        Value::Array(a) if matches!(ty, SqlType::Int2Vector | SqlType::OidVector) => {
            for (i, v) in a.elems.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_text(v, &SqlType::Oid, style, out);
            }
        }
        Value::Array(a) => {
            let inferred;
            let elem = match elem_type(ty) {
                Some(e) => e,
                None => {
                    inferred = a.elems.first().map_or(SqlType::Text, type_of);
                    &inferred
                }
            };
            write_array(a, elem, style, out);
        }
        Value::Record(fields) => {
            out.push('(');
            for (i, v) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let inferred;
                let t = match ty {
                    SqlType::Record(r) if i < r.fields.len() => &r.fields[i].1.ty,
                    _ => {
                        inferred = type_of(v);
                        &inferred
                    }
                };
                if !v.is_null() {
                    let start = out.len();
                    write_text(v, t, style, out);
                    let text = &out[start..];
                    if text.is_empty() || text.contains(|c: char| matches!(c, '"' | '\\' | '(' | ')' | ',') || blank(c)) {
                        quote(out, start, true);
                    }
                }
            }
            out.push(')');
        }
        Value::Range(r) => write_range(r, elem_type(ty).unwrap_or(&SqlType::Text), style, out),
        Value::Multirange(rs) => {
            out.push('{');
            for (i, r) in rs.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_range(r, elem_type(ty).unwrap_or(&SqlType::Text), style, out);
            }
            out.push('}');
        }
        Value::Map(entries) => {
            let elem = elem_type(ty).unwrap_or(&SqlType::Text);
            out.push('{');
            for (i, (k, v)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let start = out.len();
                out.push_str(k);
                if needs_quotes(&out[start..], ',') {
                    quote(out, start, false);
                }
                out.push_str("=>");
                write_element(v, elem, style, out);
            }
            out.push('}');
        }
        _ => {}
    }
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Puts quotes around what was written from `start` on. Inner quotes and backslashes get a backslash, or are doubled.
fn quote(out: &mut String, start: usize, double: bool) {
    let text = out.split_off(start);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' if double => out.push_str("\"\""),
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn needs_quotes(text: &str, delimiter: char) -> bool {
    text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(|c: char| matches!(c, '"' | '\\' | '{' | '}') || c == delimiter || blank(c))
}

fn write_element(v: &Value, elem: &SqlType, style: &TextStyle, out: &mut String) {
    match v {
        Value::Null => out.push_str("NULL"),
        // Lists and maps nest without quotes.
        Value::Array(_) | Value::Map(_) if matches!(elem, SqlType::List(_) | SqlType::Map(_)) => write_text(v, elem, style, out),
        v => {
            let start = out.len();
            write_text(v, elem, style, out);
            if needs_quotes(&out[start..], elem.delimiter()) {
                quote(out, start, false);
            }
        }
    }
}

fn write_array(a: &ArrayValue, elem: &SqlType, style: &TextStyle, out: &mut String) {
    if a.dims.is_empty() {
        return out.push_str("{}");
    }
    if a.dims.iter().any(|d| d.1 != 1) {
        for (n, lb) in &a.dims {
            let _ = write!(out, "[{lb}:{}]", i64::from(*lb) + i64::from(*n) - 1);
        }
        out.push('=');
    }
    let mut next = 0;
    write_dim(a, 0, &mut next, elem, style, out);
}

fn write_dim(a: &ArrayValue, dim: usize, next: &mut usize, elem: &SqlType, style: &TextStyle, out: &mut String) {
    out.push('{');
    for i in 0..a.dims[dim].0 {
        if i > 0 {
            out.push(elem.delimiter());
        }
        if dim + 1 < a.dims.len() {
            write_dim(a, dim + 1, next, elem, style, out);
        } else {
            write_element(a.elems.get(*next).unwrap_or(&Value::Null), elem, style, out);
            *next += 1;
        }
    }
    out.push('}');
}

fn write_range(r: &RangeValue, elem: &SqlType, style: &TextStyle, out: &mut String) {
    let RangeValue::Span { lower, upper, lower_inc, upper_inc } = r else { return out.push_str("empty") };
    out.push(if *lower_inc { '[' } else { '(' });
    for (i, bound) in [lower, upper].into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if let Some(v) = bound {
            let start = out.len();
            write_text(v, elem, style, out);
            let text = &out[start..];
            if text.is_empty() || text.contains(|c: char| matches!(c, '"' | '\\' | '(' | ')' | '[' | ']' | ',') || blank(c)) {
                quote_range(out, start);
            }
        }
    }
    out.push(if *upper_inc { ']' } else { ')' });
}

fn quote_range(out: &mut String, start: usize) {
    let text = out.split_off(start);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('"');
}

pub(super) fn read(text: &str, ty: &SqlType, typmod: i32, style: &TextStyle) -> Result<Value, SqlError> {
    match ty {
        SqlType::Array(e) => read_array(text, e, typmod, style),
        SqlType::List(e) => read_list(text, e, style),
        SqlType::Map(e) => read_map(text, e, style),
        SqlType::Int2Vector | SqlType::OidVector => {
            let elem = elem_type(ty).unwrap_or(&SqlType::Oid);
            let elems: Vec<Value> = text.split_ascii_whitespace().map(|t| from_text(t, elem, -1, style)).collect::<Result<_, _>>()?;
            let dims = vec![(elems.len() as i32, 0)];
            Ok(Value::Array(Box::new(ArrayValue { elems, dims })))
        }
        SqlType::Record(r) => {
            if r.fields.is_empty() {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented"));
            }
            read_record(text, &r.fields, style)
        }
        SqlType::Range(_) | SqlType::UserRange(_) => {
            let e = elem_type(ty).unwrap_or(&SqlType::Text);
            let mut p = RangeParser { text, ty, at: 0 };
            let r = p.range(e, style)?;
            match text[p.at..].trim_start_matches(blank).is_empty() {
                true => Ok(Value::Range(Box::new(r))),
                false => Err(p.malformed("Junk after right parenthesis or bracket.")),
            }
        }
        SqlType::Multirange(_) | SqlType::UserMultirange(_) => read_multirange(text, ty, elem_type(ty).unwrap_or(&SqlType::Text), style),
        _ => Err(SqlError::internal(format!("no text input for {ty}"))),
    }
}

fn malformed_array(text: &str, detail: impl Into<String>) -> SqlError {
    let detail = detail.into();
    let e = SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""));
    if detail.is_empty() {
        e
    } else {
        e.with_detail(detail)
    }
}

struct ArrayParser<'a> {
    text: &'a str,
    at: usize,
    elem: &'a SqlType,
    typmod: i32,
    style: &'a TextStyle,
    elems: Vec<Value>,
    lens: Vec<Option<i32>>,
}

fn read_array(text: &str, elem: &SqlType, typmod: i32, style: &TextStyle) -> Result<Value, SqlError> {
    let mut p = ArrayParser { text, at: 0, elem, typmod, style, elems: Vec::new(), lens: Vec::new() };
    p.blanks();
    let given = p.dimensions()?;
    if given.is_none() && p.peek() != Some('{') {
        return Err(malformed_array(text, "Array value must start with \"{\" or dimension information."));
    }
    if p.peek() != Some('{') {
        return Err(malformed_array(text, "Array contents must start with \"{\"."));
    }
    p.level(0)?;
    p.blanks();
    if p.at < text.len() {
        return Err(malformed_array(text, "Junk after closing right brace."));
    }
    let lens: Vec<i32> = p.lens.iter().map(|l| l.unwrap_or(0)).collect();
    let empty = p.elems.is_empty();
    let dims = match given {
        Some(given) => {
            if given.len() != lens.len() || given.iter().zip(&lens).any(|(g, l)| g.0 != *l) {
                return Err(malformed_array(text, "Specified array dimensions do not match array contents."));
            }
            given
        }
        None => lens.into_iter().map(|n| (n, 1)).collect(),
    };
    let dims = if empty { Vec::new() } else { dims };
    Ok(Value::Array(Box::new(ArrayValue { elems: p.elems, dims })))
}

impl ArrayParser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(blank) {
            self.at += 1;
        }
    }

    /// `[l:u][l:u]=` in front.
    fn dimensions(&mut self) -> Result<Option<Vec<(i32, i32)>>, SqlError> {
        let mut dims = Vec::new();
        while self.peek() == Some('[') {
            if dims.len() == DIMS_MAX {
                return Err(too_many_dims(dims.len() + 1));
            }
            let missing = || malformed_array(self.text, "Missing array dimension value.");
            let body = &self.text[self.at + 1..];
            let end = body.find(']').ok_or_else(|| malformed_array(self.text, "Missing \"]\" after array dimensions."))?;
            let (l, u) = match body[..end].split_once(':') {
                Some((l, u)) => (l.trim(), u.trim()),
                None => ("1", body[..end].trim()),
            };
            let range_error = || SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound");
            let introduce = || malformed_array(self.text, "\"[\" must introduce explicitly-specified array dimensions.");
            let l: i32 = l.parse().map_err(|_| introduce())?;
            let u: i32 = u.parse().map_err(|_| missing())?;
            let n = i64::from(u) - i64::from(l) + 1;
            if n < 1 {
                return Err(range_error());
            }
            if n > ARRAY_LEN_MAX {
                return Err(array_too_large());
            }
            dims.push((n as i32, l));
            self.at += end + 2;
            self.blanks();
        }
        if dims.is_empty() {
            return Ok(None);
        }
        if self.peek() != Some('=') {
            return Err(malformed_array(self.text, "Missing \"=\" after array dimensions."));
        }
        self.at += 1;
        self.blanks();
        Ok(Some(dims))
    }

    /// One `{…}`; the cursor stands on the brace.
    fn level(&mut self, depth: usize) -> Result<(), SqlError> {
        if depth >= DIMS_MAX {
            return Err(too_many_dims(depth + 1));
        }
        self.at += 1;
        if self.lens.len() == depth {
            self.lens.push(None);
        }
        let mut n = 0i32;
        let delimiter = self.elem.delimiter();
        self.blanks();
        if self.peek() == Some('}') && depth == 0 {
            self.at += 1;
            return self.close(depth, 0);
        }
        loop {
            self.blanks();
            match self.peek() {
                None => return Err(self.ended()),
                Some('{') => {
                    // Elements were found at this depth before.
                    if self.lens.len() == depth + 1 && n > 0 {
                        return Err(self.unexpected('{'));
                    }
                    self.level(depth + 1)?;
                }
                Some(c) if c == '}' || c == delimiter => return Err(self.unexpected(c)),
                Some(_) => {
                    if self.lens.len() > depth + 1 {
                        return Err(malformed_array(
                            self.text,
                            if n > 0 { "Unexpected array element." } else { "Multidimensional arrays must have sub-arrays with matching dimensions." },
                        ));
                    }
                    let v = self.element()?;
                    self.elems.push(v);
                }
            }
            n += 1;
            self.blanks();
            match self.peek() {
                Some(c) if c == delimiter => self.at += 1,
                Some('}') => {
                    self.at += 1;
                    return self.close(depth, n);
                }
                None => return Err(self.ended()),
                Some('{') => return Err(self.unexpected('{')),
                Some(_) => return Err(malformed_array(self.text, "Unexpected array element.")),
            }
        }
    }

    fn close(&mut self, depth: usize, n: i32) -> Result<(), SqlError> {
        match self.lens[depth] {
            Some(m) if m != n => Err(malformed_array(self.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")),
            _ => {
                self.lens[depth] = Some(n);
                Ok(())
            }
        }
    }

    fn ended(&self) -> SqlError {
        malformed_array(self.text, "Unexpected end of input.")
    }

    fn unexpected(&self, c: char) -> SqlError {
        malformed_array(self.text, format!("Unexpected \"{c}\" character."))
    }

    fn element(&mut self) -> Result<Value, SqlError> {
        let (text, quoted, next) = element_text(self.text, self.at, &[self.elem.delimiter(), '}', '{']).map_err(|e| match e {
            None => self.ended(),
            Some('"') => malformed_array(self.text, "Unexpected array element."),
            Some(c) => self.unexpected(c),
        })?;
        self.at = next;
        if !quoted && text.eq_ignore_ascii_case("null") {
            return Ok(Value::Null);
        }
        from_text(&text, self.elem, self.typmod, self.style)
    }
}

fn too_many_dims(n: usize) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("number of array dimensions ({n}) exceeds the maximum allowed ({DIMS_MAX})"))
}

pub(crate) fn array_too_large() -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("array size exceeds the maximum allowed ({ARRAY_LEN_MAX})"))
}

/// An element's text from `at` on: what it says, whether it was quoted, where it ends. Fails at the end of input (`None`) or at a character.
fn element_text(s: &str, at: usize, stop: &[char]) -> Result<(String, bool, usize), Option<char>> {
    let mut out = String::new();
    let mut chars = s[at..].char_indices();
    let mut quoted = false;
    // Trailing blanks outside quotes do not count.
    let mut keep = 0;
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => {
                let (_, e) = chars.next().ok_or(None)?;
                out.push(e);
                quoted = true;
                keep = out.len();
            }
            '"' => {
                if quoted || !out.is_empty() {
                    return Err(Some('"'));
                }
                loop {
                    match chars.next().ok_or(None)?.1 {
                        '"' => break,
                        '\\' => out.push(chars.next().ok_or(None)?.1),
                        c => out.push(c),
                    }
                }
                // Only blanks may follow.
                for (i, c) in chars.by_ref() {
                    if stop.contains(&c) {
                        return Ok((out, true, at + i));
                    }
                    if !blank(c) {
                        return Err(Some('"'));
                    }
                }
                return Err(None);
            }
            c if stop.contains(&c) => {
                if c == '{' {
                    return Err(Some(c));
                }
                out.truncate(keep);
                return Ok((out, quoted, at + i));
            }
            c => {
                out.push(c);
                if !blank(c) {
                    keep = out.len();
                }
            }
        }
    }
    Err(None)
}

/// `{a,b,{…}}` of a list; nested lists and maps are read by their own type.
fn read_list(text: &str, elem: &SqlType, style: &TextStyle) -> Result<Value, SqlError> {
    let bad = || SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type list: \"{text}\""));
    let mut elems = Vec::new();
    for part in split_braced(text).ok_or_else(bad)? {
        elems.push(read_part(part, elem, style).ok_or_else(bad)??);
    }
    Ok(Value::array(elems))
}

fn read_map(text: &str, elem: &SqlType, style: &TextStyle) -> Result<Value, SqlError> {
    let bad = || SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type map: \"{text}\""));
    let mut entries: Vec<(String, Value)> = Vec::new();
    for part in split_braced(text).ok_or_else(bad)? {
        let cut = if part.starts_with('"') {
            let end = closing_quote(part).ok_or_else(bad)?;
            end + part[end..].find("=>").ok_or_else(bad)?
        } else {
            part.find("=>").ok_or_else(bad)?
        };
        let key = unquote(part[..cut].trim()).ok_or_else(bad)?;
        let value = read_part(part[cut + 2..].trim(), elem, style).ok_or_else(bad)??;
        entries.push((key, value));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries.reverse();
    entries.dedup_by(|a, b| a.0 == b.0);
    entries.reverse();
    Ok(Value::Map(entries))
}

fn closing_quote(s: &str) -> Option<usize> {
    let mut escaped = false;
    s.char_indices()
        .skip(1)
        .find(|(_, c)| {
            let hit = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            hit
        })
        .map(|(i, _)| i + 1)
}

fn unquote(s: &str) -> Option<String> {
    if !s.starts_with('"') {
        return (!s.is_empty()).then(|| s.to_owned());
    }
    let mut out = String::new();
    let mut chars = s.strip_prefix('"')?.strip_suffix('"')?.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(out)
}

fn read_part(part: &str, elem: &SqlType, style: &TextStyle) -> Option<Result<Value, SqlError>> {
    if part.eq_ignore_ascii_case("null") {
        return Some(Ok(Value::Null));
    }
    let text = unquote(part)?;
    Some(from_text(&text, elem, -1, style))
}

/// The parts of `{…}` between top-level commas.
fn split_braced(text: &str) -> Option<Vec<&str>> {
    let body = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    if body.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut out, mut start, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0, false, false);
    for (i, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                out.push(body[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    if quoted || depth != 0 {
        return None;
    }
    out.push(body[start..].trim());
    Some(out)
}

fn read_record(text: &str, fields: &[(String, crate::types::ColType)], style: &TextStyle) -> Result<Value, SqlError> {
    let malformed = |detail: &str| SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("malformed record literal: \"{text}\"")).with_detail(detail);
    let s = text.trim_start_matches(blank);
    let mut chars = s.char_indices().peekable();
    if chars.next().is_none_or(|c| c.1 != '(') {
        return Err(malformed("Missing left parenthesis."));
    }
    let mut out = Vec::new();
    for (i, (_, t)) in fields.iter().enumerate() {
        if i > 0 {
            match chars.peek() {
                Some((_, ',')) => {
                    chars.next();
                }
                _ => return Err(malformed("Too few columns.")),
            }
        }
        if matches!(chars.peek(), Some((_, ',' | ')'))) {
            out.push(Value::Null);
            continue;
        }
        let (mut field, mut quoted) = (String::new(), false);
        while quoted || !matches!(chars.peek(), Some((_, ',' | ')'))) {
            let (_, c) = chars.next().ok_or_else(|| malformed("Unexpected end of input."))?;
            match c {
                '\\' => field.push(chars.next().ok_or_else(|| malformed("Unexpected end of input."))?.1),
                '"' if !quoted => quoted = true,
                '"' if matches!(chars.peek(), Some((_, '"'))) => {
                    chars.next();
                    field.push('"');
                }
                '"' => quoted = false,
                c => field.push(c),
            }
        }
        out.push(from_text(&field, &t.ty, t.typmod, style)?);
    }
    match chars.next() {
        Some((i, ')')) if s[i + 1..].trim_start_matches(blank).is_empty() => Ok(Value::Record(out)),
        Some((_, ')')) => Err(malformed("Junk after right parenthesis.")),
        _ => Err(malformed("Too many columns.")),
    }
}

struct RangeParser<'a> {
    text: &'a str,
    ty: &'a SqlType,
    at: usize,
}

impl RangeParser<'_> {
    fn malformed(&self, detail: &str) -> SqlError {
        let kind = if self.ty.multirange_elem().is_some() { "multirange" } else { "range" };
        SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("malformed {kind} literal: \"{}\"", self.text)).with_detail(detail)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(blank).len();
    }

    fn range(&mut self, elem: &SqlType, style: &TextStyle) -> Result<RangeValue, SqlError> {
        self.blanks();
        if self.rest().get(..5).is_some_and(|w| w.eq_ignore_ascii_case("empty")) {
            self.at += 5;
            self.blanks();
            return match self.rest().is_empty() || self.ty.multirange_elem().is_some() {
                true => Ok(RangeValue::Empty),
                false => Err(self.malformed("Junk after \"empty\" key word.")),
            };
        }
        let lower_inc = match self.rest().chars().next() {
            Some('[') => true,
            Some('(') => false,
            _ => return Err(self.malformed("Missing left parenthesis or bracket.")),
        };
        self.at += 1;
        let lower = self.bound()?;
        if !self.rest().starts_with(',') {
            return Err(self.malformed("Missing comma after lower bound."));
        }
        self.at += 1;
        let upper = self.bound()?;
        let upper_inc = match self.rest().chars().next() {
            Some(']') => true,
            Some(')') => false,
            _ => return Err(self.malformed("Too many commas.")),
        };
        self.at += 1;
        let value = |t: Option<String>| t.map(|t| from_text(&t, elem, -1, style)).transpose();
        range::make(self.ty, Bound { value: value(lower)?, inclusive: lower_inc }, Bound { value: value(upper)?, inclusive: upper_inc })
    }

    /// A bound's text; `None` if nothing stands there.
    fn bound(&mut self) -> Result<Option<String>, SqlError> {
        let mut chars = self.text[self.at..].char_indices().peekable();
        if matches!(chars.peek(), Some((_, ',' | ')' | ']'))) {
            return Ok(None);
        }
        let (mut out, mut quoted) = (String::new(), false);
        loop {
            let ended = || self.malformed("Unexpected end of input.");
            let Some(&(i, c)) = chars.peek() else { return Err(ended()) };
            if !quoted && matches!(c, ',' | ')' | ']') {
                self.at += i;
                return Ok(Some(out));
            }
            chars.next();
            match c {
                '\\' => out.push(chars.next().ok_or_else(ended)?.1),
                '"' if !quoted => quoted = true,
                '"' if matches!(chars.peek(), Some((_, '"'))) => {
                    chars.next();
                    out.push('"');
                }
                '"' => quoted = false,
                c => out.push(c),
            }
        }
    }
}

fn read_multirange(text: &str, ty: &SqlType, elem: &SqlType, style: &TextStyle) -> Result<Value, SqlError> {
    let mut p = RangeParser { text, ty, at: 0 };
    p.blanks();
    if !p.rest().starts_with('{') {
        return Err(p.malformed("Missing left brace."));
    }
    p.at += 1;
    let mut ranges = Vec::new();
    p.blanks();
    if p.rest().starts_with('}') {
        p.at += 1;
    } else {
        loop {
            p.blanks();
            if p.rest().is_empty() {
                return Err(p.malformed("Unexpected end of input."));
            }
            if !p.rest().starts_with(['[', '(', 'e', 'E']) {
                return Err(p.malformed("Expected range start."));
            }
            ranges.push(p.range(elem, style)?);
            p.blanks();
            match p.rest().chars().next() {
                Some(',') => p.at += 1,
                Some('}') => {
                    p.at += 1;
                    break;
                }
                None => return Err(p.malformed("Unexpected end of input.")),
                Some(_) => return Err(p.malformed("Expected comma or end of multirange.")),
            }
        }
    }
    p.blanks();
    match p.rest().is_empty() {
        true => Ok(Value::Multirange(range::make_multi(elem, ranges))),
        false => Err(p.malformed("Junk after closing right brace.")),
    }
}
