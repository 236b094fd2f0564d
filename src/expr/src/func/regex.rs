//! Regular expressions in Postgres's flavour: `~`, `regexp_*`, `substring(x from pattern)`.
//!
//! A pattern is rewritten (`translate`), compiled once and kept in a small cache of the thread. The match begins leftmost;
//! where Postgres's rule of the longest or shortest whole match differs from the engine's choice, the end is found first
//! and the groups inside it after.

use super::lift::Str;
use super::Entry;
use crate::{f2, f3, val};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};
use repr::error::state;
use repr::interrupt::Pace;
use repr::{SqlError, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Postgres's syntax, rewritten.
mod translate;

pub use translate::Flags;
use translate::{invalid, translate, Prefer};

/// A compiled pattern.
pub struct Regex {
    /// As the engine chooses.
    first: fancy_regex::Regex,
    /// The same pattern up to the end of the text, to find the groups inside a known match.
    whole: Option<fancy_regex::Regex>,
    longest: Option<RefCell<(DFA, Cache)>>,
    prefer: Prefer,
    pub groups: usize,
}

/// A match: the whole first, then the groups, as byte ranges.
pub type Groups = Vec<Option<(usize, usize)>>;

fn engine_error(e: impl std::fmt::Display) -> SqlError {
    invalid(&e.to_string().lines().last().unwrap_or("cannot be compiled").to_ascii_lowercase())
}

impl Regex {
    fn new(pattern: &str, flags: Flags) -> Result<Regex, SqlError> {
        let t = translate(pattern, flags)?;
        let first = fancy_regex::Regex::new(&t.pattern).map_err(engine_error)?;
        let mut prefer = t.prefer;
        let longest = if prefer == Prefer::Longest && !t.fancy {
            let config = DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true);
            DFA::builder().configure(config).build(&t.pattern).ok().map(|dfa| {
                let cache = dfa.create_cache();
                RefCell::new((dfa, cache))
            })
        } else {
            None
        };
        if prefer == Prefer::Longest && longest.is_none() {
            prefer = Prefer::First;
        }
        // The shortest match is sought in shortened text, where what looks at the text behind would be misled.
        if prefer == Prefer::Shortest && (t.fancy || ["\\z", "(?m:$)", "\\b", "\\B"].iter().any(|c| t.pattern.contains(c))) {
            prefer = Prefer::First;
        }
        let whole = match prefer {
            Prefer::First => None,
            _ => Some(fancy_regex::Regex::new(&format!("(?:{})\\z", t.pattern)).map_err(engine_error)?),
        };
        Ok(Regex { first, whole, longest, prefer, groups: t.groups })
    }

    pub fn is_match(&self, s: &str) -> Result<bool, SqlError> {
        self.first.is_match(s).map_err(engine_error)
    }

    /// The first match at or after byte `from`.
    pub fn find(&self, s: &str, from: usize) -> Result<Option<Groups>, SqlError> {
        if self.prefer == Prefer::First {
            return captures(&self.first, s, from);
        }
        let Some(m) = self.first.find_from_pos(s, from).map_err(engine_error)? else { return Ok(None) };
        let end = match (self.prefer, &self.longest) {
            (Prefer::Longest, Some(dfa)) => {
                let (dfa, cache) = &mut *dfa.borrow_mut();
                let input = Input::new(s).range(m.start()..).anchored(Anchored::Yes);
                match dfa.try_search_fwd(cache, &input) {
                    Ok(Some(half)) => half.offset(),
                    _ => m.end(),
                }
            }
            _ => self.shortest(s, m.start(), m.end())?,
        };
        if let Some(whole) = &self.whole {
            if let Some(g) = captures(whole, &s[..end], m.start())?.filter(|g| g[0] == Some((m.start(), end))) {
                return Ok(Some(g));
            }
        }
        captures(&self.first, s, from)
    }

    /// The end of the shortest match that begins at `start`.
    fn shortest(&self, s: &str, start: usize, known: usize) -> Result<usize, SqlError> {
        let Some(whole) = &self.whole else { return Ok(known) };
        let ends = s[start..known].char_indices().map(|(i, _)| start + i);
        let pace = Pace::default();
        for end in ends {
            if pace.stop(64 + end - start) {
                break;
            }
            if whole.find_from_pos(&s[..end], start).map_err(engine_error)?.is_some_and(|m| m.start() == start) {
                return Ok(end);
            }
        }
        Ok(known)
    }

    /// All matches from byte `from` on, one after another. Empty ones count once at each place.
    pub fn find_all(&self, s: &str, from: usize, global: bool, mut f: impl FnMut(Groups) -> bool) -> Result<(), SqlError> {
        let (mut at, pace) = (from, Pace::default());
        while at <= s.len() && !pace.stop(64) {
            let Some(g) = self.find(s, at)? else { return Ok(()) };
            let Some((start, end)) = g[0] else { return Ok(()) };
            if !f(g) || !global {
                return Ok(());
            }
            at = if end > start { end } else { end + s[end..].chars().next().map_or(1, char::len_utf8) };
        }
        Ok(())
    }
}

fn captures(re: &fancy_regex::Regex, s: &str, from: usize) -> Result<Option<Groups>, SqlError> {
    let found = re.captures_from_pos(s, from).map_err(engine_error)?;
    Ok(found.map(|c| (0..c.len()).map(|i| c.get(i).map(|m| (m.start(), m.end()))).collect()))
}

/// Patterns kept compiled, a thread.
const CACHE_MAX: usize = 64;

/// The compiled form of a pattern.
pub fn compile(pattern: &str, flags: Flags) -> Result<Rc<Regex>, SqlError> {
    type Key = (String, Flags);
    thread_local! {
        static CACHE: RefCell<HashMap<Key, Rc<Regex>>> = RefCell::new(HashMap::new());
        static LAST: RefCell<Option<(Key, Rc<Regex>)>> = const { RefCell::new(None) };
    }
    // Mostly one pattern serves all rows: it is found without an owned key.
    let last = LAST.with_borrow(|l| l.as_ref().filter(|((p, f), _)| p == pattern && *f == flags).map(|(_, r)| r.clone()));
    if let Some(r) = last {
        return Ok(r);
    }
    let key = (pattern.to_owned(), flags);
    let r = CACHE.with_borrow_mut(|cache| {
        if let Some(r) = cache.get(&key) {
            return Ok(r.clone());
        }
        let r = Rc::new(Regex::new(pattern, flags)?);
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        cache.insert(key.clone(), r.clone());
        Ok(r)
    })?;
    LAST.set(Some((key, r.clone())));
    Ok(r)
}

/// Whether a pattern compiles.
pub fn is_valid(pattern: &str) -> bool {
    compile(pattern, Flags::default()).is_ok()
}

fn is_match(s: &str, p: &str, ignore_case: bool) -> Result<bool, SqlError> {
    compile(p, Flags { ignore_case, ..Flags::default() })?.is_match(s)
}

fn not_global(flags: &str, name: &str) -> Result<Flags, SqlError> {
    let f = Flags::parse(flags)?;
    if f.global {
        let e = SqlError::new(state::INVALID_PARAMETER_VALUE, format!("{name} does not support the \"global\" option"));
        return Err(if name == "regexp_match()" { e.with_hint("Use the regexp_matches function instead.") } else { e });
    }
    Ok(f)
}

fn part(s: &str, g: Option<(usize, usize)>) -> Value {
    g.map_or(Value::Null, |(a, b)| Value::text(&s[a..b]))
}

/// The groups of a match as an array; without groups, the match itself.
pub fn groups_array(s: &str, g: &Groups) -> Value {
    let parts = if g.len() > 1 { &g[1..] } else { &g[..] };
    Value::array(parts.iter().map(|p| part(s, *p)).collect())
}

fn regexp_match(s: &str, p: &str, flags: Flags) -> Result<Value, SqlError> {
    let re = compile(p, flags)?;
    Ok(re.find(s, 0)?.map_or(Value::Null, |g| groups_array(s, &g)))
}

/// `substring(s from p)`: the first group, or the match.
fn substring(s: &str, p: &str) -> Result<Option<String>, SqlError> {
    let re = compile(p, Flags::default())?;
    let Some(g) = re.find(s, 0)? else { return Ok(None) };
    Ok(g[usize::from(g.len() > 1)].map(|(a, b)| s[a..b].to_owned()))
}

/// Appends the replacement of one match: `\1`..`\9`, `\&`, `\\`.
fn put_replacement(s: &str, g: &Groups, with: &str, out: &mut String) {
    let mut it = with.chars();
    while let Some(c) = it.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match it.next() {
            Some('&') => out.push_str(g[0].map_or("", |(a, b)| &s[a..b])),
            Some(d @ '1'..='9') => {
                let i = d as usize - '0' as usize;
                out.push_str(g.get(i).copied().flatten().map_or("", |(a, b)| &s[a..b]));
            }
            Some('\\') => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
}

/// Replaces match number `n` (from 1) at or after byte `from`; 0: all.
fn replace(s: &str, p: &str, with: &str, flags: Flags, from: usize, n: i32) -> Result<String, SqlError> {
    let re = compile(p, flags)?;
    let (mut out, mut done, mut seen) = (String::with_capacity(s.len()), 0, 0);
    re.find_all(s, from, true, |g| {
        seen += 1;
        if let Some((a, b)) = g[0].filter(|_| n == 0 || seen == n) {
            out.push_str(&s[done..a]);
            put_replacement(s, &g, with, &mut out);
            done = b;
        }
        (n == 0 || seen < n) && repr::column::fits(out.len())
    })?;
    out.push_str(&s[done..]);
    Ok(out)
}

fn bad_parameter(name: &str, v: i32) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": {v}"))
}

/// Byte offset of character `start` (from 1).
fn start_offset(s: &str, start: i32) -> Result<usize, SqlError> {
    if start <= 0 {
        return Err(bad_parameter("start", start));
    }
    Ok(s.char_indices().nth(start as usize - 1).map_or(if start as usize > s.chars().count() + 1 { s.len() + 1 } else { s.len() }, |(i, _)| i))
}

/// The optional arguments after string and pattern, by position.
struct Options<'a> {
    args: &'a [Value],
}

impl Options<'_> {
    fn int(&self, i: usize, default: i32) -> i32 {
        self.args.get(i).and_then(Value::as_i64).and_then(|v| i32::try_from(v).ok()).unwrap_or(default)
    }
    fn text(&self, i: usize) -> &str {
        self.args.get(i).and_then(Value::as_str).unwrap_or("")
    }
}

fn replace_call(a: &[Value]) -> Result<Value, SqlError> {
    let o = Options { args: a };
    let (s, p, with) = (o.text(0), o.text(1), o.text(2));
    let (from, n, flags) = match a {
        [_, _, _] => (0, 1, Flags::default()),
        [_, _, _, Value::Text(f)] => {
            if f.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid regular expression option: \"{}\"", &f[..1]))
                    .with_hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."));
            }
            let flags = Flags::parse(f)?;
            (0, if flags.global { 0 } else { 1 }, flags)
        }
        _ => {
            let from = start_offset(s, o.int(3, 1))?;
            if o.int(4, 1) < 0 {
                return Err(bad_parameter("n", o.int(4, 1)));
            }
            let flags = Flags::parse(o.text(5))?;
            let n = if a.len() > 4 { o.int(4, 1) } else { i32::from(!flags.global) };
            (from, n, flags)
        }
    };
    replace(s, p, with, flags, from.min(s.len()), n).map(Value::Text)
}

fn count_call(a: &[Value]) -> Result<Value, SqlError> {
    let o = Options { args: a };
    let s = o.text(0);
    let from = start_offset(s, o.int(2, 1))?;
    let flags = not_global(o.text(3), "regexp_count()")?;
    let mut n = 0;
    compile(o.text(1), flags)?.find_all(s, from, true, |_| {
        n += 1;
        true
    })?;
    Ok(Value::Int4(n))
}

/// The byte from which to search for match number `n` from character `start` on.
fn checked_start(s: &str, start: i32, n: i32) -> Result<usize, SqlError> {
    let from = start_offset(s, start)?;
    if n <= 0 {
        return Err(bad_parameter("n", n));
    }
    Ok(from)
}

/// Match number `n` from byte `from` on.
fn nth(s: &str, p: &str, from: usize, n: i32, flags: Flags) -> Result<Option<Groups>, SqlError> {
    let (mut seen, mut hit) = (0, None);
    compile(p, flags)?.find_all(s, from, true, |g| {
        seen += 1;
        if seen == n {
            hit = Some(g);
        }
        seen < n
    })?;
    Ok(hit)
}

/// string, pattern, start, n, endoption, flags, subexpr
fn instr_call(a: &[Value]) -> Result<Value, SqlError> {
    let o = Options { args: a };
    let s = o.text(0);
    let from = checked_start(s, o.int(2, 1), o.int(3, 1))?;
    let end = o.int(4, 0);
    if end != 0 && end != 1 {
        return Err(bad_parameter("endoption", end));
    }
    let sub = o.int(6, 0);
    if sub < 0 {
        return Err(bad_parameter("subexpr", sub));
    }
    let flags = not_global(o.text(5), "regexp_instr()")?;
    let hit = nth(s, o.text(1), from, o.int(3, 1), flags)?;
    let range = hit.and_then(|g| g.get(sub as usize).copied().flatten());
    Ok(Value::Int4(range.map_or(0, |(a, b)| s[..if end == 1 { b } else { a }].chars().count() as i32 + 1)))
}

/// string, pattern, start, n, flags, subexpr
fn substr_call(a: &[Value]) -> Result<Value, SqlError> {
    let o = Options { args: a };
    let s = o.text(0);
    let from = checked_start(s, o.int(2, 1), o.int(3, 1))?;
    let sub = o.int(5, 0);
    if sub < 0 {
        return Err(bad_parameter("subexpr", sub));
    }
    let flags = not_global(o.text(4), "regexp_substr()")?;
    let hit = nth(s, o.text(1), from, o.int(3, 1), flags)?;
    Ok(hit.and_then(|g| g.get(sub as usize).copied().flatten()).map_or(Value::Null, |r| part(s, Some(r))))
}

/// The pieces between matches; empty matches split only between characters.
pub fn split(s: &str, p: &str, flags: Flags) -> Result<Vec<Value>, SqlError> {
    let re = compile(p, flags)?;
    let (mut out, mut done) = (Vec::new(), 0);
    re.find_all(s, 0, true, |g| {
        // A match is degenerate if it is empty at the start, at the end, or right behind the last one.
        if let Some((a, b)) = g[0].filter(|(a, b)| *a < s.len() && *b > done) {
            out.push(Value::text(&s[done..a]));
            done = b;
        }
        true
    })?;
    out.push(Value::text(&s[done..]));
    Ok(out)
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["textregexeq", "nameregexeq"], Str, Str => bool, |s, p| is_match(s, p, false)),
    f2!(? ["textregexne", "nameregexne"], Str, Str => bool, |s, p| is_match(s, p, false).map(|b| !b)),
    f2!(? ["texticregexeq", "nameicregexeq"], Str, Str => bool, |s, p| is_match(s, p, true)),
    f2!(? ["texticregexne", "nameicregexne"], Str, Str => bool, |s, p| is_match(s, p, true).map(|b| !b)),
    f2!(? ["textregexsubstr"], Str, Str => Option<String>, substring),
    // substring(x similar y escape z), written in SQL in Postgres
    val!(? ["2074"], |a, call| {
        let similar = super::by_oid(1986).ok_or_else(|| SqlError::internal("similar_to_escape"))?;
        let text = repr::SqlType::Text.nullable();
        let p = crate::eval::call_values(similar, &a[1..], &[text.clone(), text.clone()], &text, call.ctx)?;
        Ok(substring(a[0].as_str().unwrap_or(""), p.as_str().unwrap_or(""))?.map_or(Value::Null, Value::Text))
    }),
    f2!(? ["regexp_match_no_flags"], Str, Str => Value, |s, p| regexp_match(s, p, Flags::default())),
    f3!(? ["regexp_match"], Str, Str, Str => Value, |s, p, f| regexp_match(s, p, not_global(f, "regexp_match()")?)),
    f2!(? ["regexp_like_no_flags"], Str, Str => bool, |s, p| is_match(s, p, false)),
    f3!(? ["regexp_like"], Str, Str, Str => bool, |s, p, f| compile(p, not_global(f, "regexp_like()")?)?.is_match(s)),
    val!(? ["textregexreplace_noopt", "textregexreplace", "textregexreplace_extended", "textregexreplace_extended_no_flags", "textregexreplace_extended_no_n"],
        |a, _| replace_call(a)),
    val!(? ["regexp_count", "regexp_count_no_flags", "regexp_count_no_start"], |a, _| count_call(a)),
    val!(? ["regexp_instr", "regexp_instr_no_endoption", "regexp_instr_no_flags", "regexp_instr_no_n", "regexp_instr_no_start", "regexp_instr_no_subexpr"],
        |a, _| instr_call(a)),
    val!(? ["regexp_substr", "regexp_substr_no_flags", "regexp_substr_no_n", "regexp_substr_no_start", "regexp_substr_no_subexpr"], |a, _| substr_call(a)),
    f2!(? ["regexp_split_to_array_no_flags"], Str, Str => Value, |s, p| split(s, p, Flags::default()).map(Value::array)),
    f3!(? ["regexp_split_to_array"], Str, Str, Str => Value, |s, p, f| split(s, p, not_global(f, "regexp_split_to_array()")?).map(Value::array)),
];
