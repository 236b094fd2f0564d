//! Postgres's advanced regular expressions, rewritten for a Perl-like engine.
//!
//! | Postgres | here |
//! |---|---|
//! | `.` and `[^..]` match newlines, `^` `$` only the ends of the string; `(?n)` `(?p)` `(?w)` change that | `(?s:.)`, `(?m:^)` ... written out |
//! | `\m \M \y \Y \A \Z` | word and string boundaries |
//! | `\d \w \s` and `[[:class:]]` | `\d` is 0-9 only |
//! | `{` before a non-digit | a literal |
//! | the whole match is longest or shortest, by the first quantifier | [`Translated::prefer`], applied by the matcher |
//!
//! Errors: 2201B, in Postgres's words.

use repr::error::state;
use repr::SqlError;

/// Which of the matches that begin leftmost is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefer {
    /// The engine's own choice is the right one.
    First,
    Longest,
    Shortest,
}

/// A rewritten pattern.
pub struct Translated {
    pub pattern: String,
    pub groups: usize,
    pub prefer: Prefer,
    /// Has back references or look-around: only a backtracking engine can run it.
    pub fancy: bool,
}

/// Flags of the `regexp_*` functions and of `(?..)` at the pattern's start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags {
    pub global: bool,
    pub ignore_case: bool,
    /// `.` and negated brackets do not match newlines.
    pub dot_stops: bool,
    /// `^` and `$` match at lines.
    pub lines: bool,
    pub expanded: bool,
    pub literal: bool,
}

impl Flags {
    /// Reads a flag string. Errors: 22023 for an unknown letter.
    pub fn parse(flags: &str) -> Result<Flags, SqlError> {
        let mut f = Flags::default();
        for c in flags.chars() {
            if c == 'g' {
                f.global = true;
            } else if !f.set(c) {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid regular expression option: \"{c}\"")));
            }
        }
        Ok(f)
    }

    fn set(&mut self, c: char) -> bool {
        match c {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => (self.dot_stops, self.lines) = (true, true),
            's' => (self.dot_stops, self.lines) = (false, false),
            'p' => (self.dot_stops, self.lines) = (true, false),
            'w' => (self.dot_stops, self.lines) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'b' | 'e' => {}
            _ => return false,
        }
        true
    }
}

/// 2201B.
pub fn invalid(why: &str) -> SqlError {
    SqlError::new(state::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {why}"))
}

/// Character classes as the C library has them: no-break spaces are no spaces, numbers that are no digits are punctuation.
const SPACE: &str = "\\t-\\r \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{205f}\\x{3000}";
const ALNUM: &str = "\\p{Alphabetic}\\p{Nd}";
const WORD: &str = "\\p{Alphabetic}\\p{Nd}_";
const GRAPH: &str = "[\\P{Cn}--[\\p{Cc}\\t-\\r \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{205f}\\x{3000}]]";

/// One open group.
struct Frame {
    /// Whether the branch so far is greedy, by its first quantified atom.
    greedy: Option<bool>,
    alternation: bool,
    look: bool,
    /// How many quantifiers stand before it.
    quantifiers: usize,
}

/// A quantifier that has been written: where its `?` stands or would stand.
struct Quantifier {
    at: usize,
    lazy: bool,
}

struct Parser {
    s: Vec<char>,
    i: usize,
    flags: Flags,
    out: String,
    groups: usize,
    frames: Vec<Frame>,
    /// An atom stands before the cursor: its own greediness. `None`: nothing to quantify.
    atom: Option<Option<bool>>,
    /// The first of `written` that is within that atom.
    within: usize,
    written: Vec<Quantifier>,
    quantifiers: usize,
    lazy: bool,
    alternations: bool,
    fancy: bool,
}

/// Rewrites `pattern` under `flags`.
pub fn translate(pattern: &str, mut flags: Flags) -> Result<Translated, SqlError> {
    let mut s = pattern;
    if let Some(rest) = s.strip_prefix("***=") {
        flags.literal = true;
        s = rest;
    } else if let Some(rest) = s.strip_prefix("***:") {
        s = rest;
    }
    if !flags.literal {
        // Embedded options: (?letters) at the start.
        if let Some(rest) = s.strip_prefix("(?").filter(|r| r.starts_with(|c: char| c.is_ascii_alphabetic())) {
            let end = rest.find(')').ok_or_else(|| invalid("invalid embedded option"))?;
            for c in rest[..end].chars() {
                if !flags.set(c) {
                    return Err(invalid("invalid embedded option"));
                }
            }
            s = &rest[end + 1..];
        }
    }
    let mut p = Parser {
        s: s.chars().collect(),
        i: 0,
        flags,
        out: String::with_capacity(pattern.len() + 8),
        groups: 0,
        frames: vec![Frame { greedy: None, alternation: false, look: false, quantifiers: 0 }],
        atom: None,
        within: 0,
        written: Vec::new(),
        quantifiers: 0,
        lazy: false,
        alternations: false,
        fancy: false,
    };
    if flags.ignore_case {
        p.out.push_str("(?i)");
    }
    if flags.literal {
        s.chars().for_each(|c| push_literal(c, &mut p.out));
        return Ok(Translated { pattern: p.out, groups: 0, prefer: Prefer::First, fancy: false });
    }
    p.run()?;
    let root = &p.frames[0];
    let greedy = root.alternation || root.greedy != Some(false);
    let prefer = match greedy {
        true if p.alternations || p.lazy || p.quantifiers > 1 => Prefer::Longest,
        false if p.quantifiers > 1 => Prefer::Shortest,
        _ => Prefer::First,
    };
    Ok(Translated { pattern: p.out, groups: p.groups, prefer, fancy: p.fancy })
}

fn push_literal(c: char, out: &mut String) {
    if matches!(c, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '#' | '&' | '-' | '~' | ' ') {
        out.push('\\');
    }
    match c {
        '\n' => out.push_str("\\n"),
        c => out.push(c),
    }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.s.get(self.i).copied()
    }
    fn looking_at(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(k, c)| self.s.get(self.i + k) == Some(&c))
    }

    /// The atom before the cursor is complete: its greediness counts for the branch.
    fn settle(&mut self) {
        self.within = self.written.len();
        if let Some(Some(g)) = self.atom.take() {
            if let Some(f) = self.frames.last_mut() {
                f.greedy = f.greedy.or(Some(g));
            }
        }
    }

    fn run(&mut self) -> Result<(), SqlError> {
        while let Some(c) = self.peek() {
            self.i += 1;
            match c {
                '(' => self.open(),
                ')' => self.close()?,
                '|' => {
                    self.settle();
                    self.alternations = true;
                    if let Some(f) = self.frames.last_mut() {
                        f.alternation = true;
                    }
                    self.out.push('|');
                }
                '*' | '+' | '?' => self.quantifier(c.to_string(), Some(()))?,
                '{' if self.peek().is_some_and(|d| d.is_ascii_digit()) => self.bound()?,
                '[' => self.bracket()?,
                '\\' => self.escape()?,
                '.' => self.push_atom(if self.flags.dot_stops { "[^\\n]" } else { "(?s:.)" }),
                '^' | '$' => {
                    self.settle();
                    let piece = match (c, self.flags.lines) {
                        ('^', true) => "(?m:^)",
                        ('^', false) => "\\A",
                        (_, true) => "(?m:$)",
                        _ => "\\z",
                    };
                    self.out.push_str(piece);
                    // A constraint: quantifying it is an error in Postgres.
                }
                c if self.flags.expanded && c.is_whitespace() => {}
                '#' if self.flags.expanded => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.i += 1;
                    }
                }
                c => {
                    self.settle();
                    push_literal(c, &mut self.out);
                    self.atom = Some(None);
                }
            }
        }
        if self.frames.len() > 1 {
            return Err(invalid("parentheses () not balanced"));
        }
        self.settle();
        Ok(())
    }

    fn push_atom(&mut self, piece: &str) {
        self.settle();
        self.out.push_str(piece);
        self.atom = Some(None);
    }

    fn open(&mut self) {
        self.settle();
        let look = ["?=", "?!", "?<=", "?<!"].into_iter().find(|l| self.looking_at(l));
        if let Some(look) = look {
            self.i += look.len();
            self.out.push('(');
            self.out.push_str(look);
            self.fancy = true;
        } else if self.looking_at("?:") {
            self.i += 2;
            self.out.push_str("(?:");
        } else if self.looking_at("?#") {
            while self.peek().is_some_and(|c| c != ')') {
                self.i += 1;
            }
            self.i += 1;
            return;
        } else if self.frames.iter().any(|f| f.look) {
            // Look-around captures nothing.
            self.out.push_str("(?:");
        } else {
            self.groups += 1;
            self.out.push('(');
        }
        self.frames.push(Frame { greedy: None, alternation: false, look: look.is_some(), quantifiers: self.written.len() });
    }

    fn close(&mut self) -> Result<(), SqlError> {
        self.settle();
        if self.frames.len() == 1 {
            return Err(invalid("parentheses () not balanced"));
        }
        if let Some(f) = self.frames.pop() {
            self.out.push(')');
            self.within = f.quantifiers;
            self.atom = if f.look { None } else { Some(if f.alternation { Some(true) } else { f.greedy }) };
        }
        Ok(())
    }

    /// `variable`: the quantifier has a greediness (a fixed `{m}` has none).
    fn quantifier(&mut self, q: String, variable: Option<()>) -> Result<(), SqlError> {
        if self.atom.is_none() {
            return Err(invalid("quantifier operand invalid"));
        }
        self.quantifiers += 1;
        let lazy = self.peek() == Some('?');
        if lazy {
            self.i += 1;
            self.lazy = true;
        }
        if q == "{1,1}" {
            self.force(lazy);
        } else {
            self.out.push_str(&q);
            self.written.push(Quantifier { at: self.out.len(), lazy });
            if lazy {
                self.out.push('?');
            }
        }
        if variable.is_some() {
            self.atom = Some(Some(!lazy));
        }
        self.settle();
        self.atom = None;
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(())
    }

    /// `{1,1}` and `{1,1}?`: all of the atom takes as much or as little as it can. The engine does not carry a greediness inward, so the
    /// atom's own quantifiers are rewritten.
    fn force(&mut self, lazy: bool) {
        let Some(start) = self.written.get(self.within).map(|q| q.at) else { return };
        let rest = self.out.split_off(start);
        let mut done = start;
        for q in &mut self.written[self.within..] {
            self.out.push_str(&rest[done - start..q.at - start]);
            done = q.at + usize::from(q.lazy);
            *q = Quantifier { at: self.out.len(), lazy };
            if lazy {
                self.out.push('?');
            }
        }
        self.out.push_str(&rest[done - start..]);
    }

    fn bound(&mut self) -> Result<(), SqlError> {
        let end = self.s[self.i..].iter().position(|c| *c == '}').ok_or_else(|| invalid("braces {} not balanced"))?;
        let body: String = self.s[self.i..self.i + end].iter().collect();
        self.i += end + 1;
        let (lo, hi) = body.split_once(',').map_or((body.as_str(), None), |(a, b)| (a, Some(b)));
        let number = |t: &str| t.parse::<u32>().ok().filter(|n| *n <= 255).ok_or_else(|| invalid("invalid repetition count(s)"));
        let low = number(lo)?;
        let variable = match hi {
            None => false,
            Some("") => true,
            Some(h) => {
                let high = number(h)?;
                if high < low {
                    return Err(invalid("invalid repetition count(s)"));
                }
                // {1,1} and {1,1}? are the way to force a greediness.
                true
            }
        };
        self.quantifier(format!("{{{body}}}"), variable.then_some(()))
    }

    /// The code of `\uXXXX`, `\xHH` and their like, digits from the cursor on.
    fn hex(&mut self, digits: usize) -> Result<char, SqlError> {
        let text: String = self.s[self.i..].iter().take(digits).collect();
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| text.len() == digits).and_then(char::from_u32);
        self.i += digits;
        code.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// A character escape that is the same inside and outside brackets.
    fn char_escape(&mut self, c: char) -> Result<Option<char>, SqlError> {
        Ok(Some(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'c' => {
                let x = self.peek().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                self.i += 1;
                char::from((x as u32 & 0x1f) as u8)
            }
            'u' => self.hex(4)?,
            'U' => self.hex(8)?,
            'x' => {
                let mut n = 0u32;
                let mut any = false;
                while let Some(d) = self.peek().and_then(|d| d.to_digit(16)) {
                    n = n.wrapping_mul(16).wrapping_add(d);
                    any = true;
                    self.i += 1;
                }
                char::from_u32(n).filter(|_| any).ok_or_else(|| invalid("invalid escape \\ sequence"))?
            }
            '0' => {
                let mut n = 0u32;
                for _ in 0..2 {
                    if let Some(d) = self.peek().and_then(|d| d.to_digit(8)) {
                        n = n * 8 + d;
                        self.i += 1;
                    }
                }
                char::from_u32(n).unwrap_or('\0')
            }
            _ => return Ok(None),
        }))
    }

    fn escape(&mut self) -> Result<(), SqlError> {
        let c = self.peek().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        self.i += 1;
        if !c.is_ascii_alphanumeric() {
            self.settle();
            push_literal(c, &mut self.out);
            self.atom = Some(None);
            return Ok(());
        }
        let class = match c {
            'd' | 'D' => "0-9",
            'w' | 'W' => WORD,
            's' | 'S' => SPACE,
            _ => "",
        };
        if !class.is_empty() {
            let newline = if c == 'S' || !self.flags.dot_stops { "" } else { "\\n" };
            self.push_atom(&if c.is_ascii_uppercase() { format!("[^{class}{newline}]") } else { format!("[{class}]") });
            return Ok(());
        }
        let constraint = match c {
            'm' => "\\b(?=\\w)",
            'M' => "\\b(?<=\\w)",
            'y' => "\\b",
            'Y' => "\\B",
            'A' => "\\A",
            'Z' => "\\z",
            _ => "",
        };
        if !constraint.is_empty() {
            self.settle();
            self.fancy |= matches!(c, 'm' | 'M');
            self.out.push_str(constraint);
            return Ok(());
        }
        if let Some(d) = c.to_digit(10).filter(|d| *d > 0) {
            let mut n = d as usize;
            while let Some(e) = self.peek().and_then(|e| e.to_digit(10)) {
                if n * 10 + e as usize > self.groups {
                    break;
                }
                n = n * 10 + e as usize;
                self.i += 1;
            }
            if n > self.groups || self.frames.iter().any(|f| f.look) {
                return Err(invalid("invalid backreference number"));
            }
            self.fancy = true;
            self.push_atom(&format!("(?:\\{n})"));
            return Ok(());
        }
        match self.char_escape(c)? {
            Some(x) => {
                self.settle();
                push_literal(x, &mut self.out);
                self.atom = Some(None);
                Ok(())
            }
            None => Err(invalid("invalid escape \\ sequence")),
        }
    }

    /// `[...]`; the cursor is behind the opening bracket.
    fn bracket(&mut self) -> Result<(), SqlError> {
        // [[:<:]] and [[:>:]] are word boundaries.
        for (what, is) in [("[:<:]]", "\\b(?=\\w)"), ("[:>:]]", "\\b(?<=\\w)")] {
            if self.looking_at(what) {
                self.i += what.len();
                self.settle();
                self.out.push_str(is);
                self.fancy = true;
                return Ok(());
            }
        }
        let unbalanced = || invalid("brackets [] not balanced");
        let mut set = String::from("[");
        let negated = self.peek() == Some('^');
        if negated {
            self.i += 1;
            set.push('^');
        }
        let mut first = true;
        loop {
            let c = self.peek().ok_or_else(unbalanced)?;
            self.i += 1;
            if c == ']' && !first {
                break;
            }
            first = false;
            if c == '[' && self.peek() == Some(':') {
                set.push_str(&self.class()?);
                continue;
            }
            if c == '\\' {
                let e = self.peek().ok_or_else(unbalanced)?;
                let class = match e {
                    'd' => "0-9".to_owned(),
                    'w' => WORD.into(),
                    's' => SPACE.into(),
                    'D' => "[^0-9]".into(),
                    'W' => format!("[^{WORD}]"),
                    'S' => format!("[^{SPACE}]"),
                    _ => String::new(),
                };
                if !class.is_empty() {
                    self.i += 1;
                    set.push_str(&class);
                    continue;
                }
            }
            let lo = self.member(c)?;
            if self.peek() == Some('-') && self.s.get(self.i + 1).is_some_and(|n| *n != ']') {
                self.i += 1;
                let d = self.peek().ok_or_else(unbalanced)?;
                self.i += 1;
                let hi = self.member(d)?;
                if hi < lo {
                    return Err(invalid("invalid character range"));
                }
                push_member(lo, &mut set);
                set.push('-');
                push_member(hi, &mut set);
            } else {
                push_member(lo, &mut set);
            }
        }
        if negated && self.flags.dot_stops {
            set.push_str("\\n");
        }
        set.push(']');
        self.push_atom(&set);
        Ok(())
    }

    /// One character inside brackets; `c` is already read.
    fn member(&mut self, c: char) -> Result<char, SqlError> {
        match c {
            '[' if matches!(self.peek(), Some('.' | '=')) => {
                let mark = self.s[self.i];
                let close = self.s[self.i + 1..].windows(2).position(|w| w[0] == mark && w[1] == ']');
                match close {
                    Some(1) => {
                        let x = self.s[self.i + 1];
                        self.i += 4;
                        Ok(x)
                    }
                    _ => Err(invalid("invalid collating element")),
                }
            }
            '\\' => {
                let e = self.peek().ok_or_else(|| invalid("brackets [] not balanced"))?;
                self.i += 1;
                if !e.is_ascii_alphanumeric() {
                    return Ok(e);
                }
                self.char_escape(e)?.ok_or_else(|| invalid("invalid escape \\ sequence"))
            }
            c => Ok(c),
        }
    }

    /// `[:name:]` inside brackets.
    fn class(&mut self) -> Result<String, SqlError> {
        let rest: String = self.s[self.i + 1..].iter().take(16).collect();
        let end = rest.find(":]").ok_or_else(|| invalid("brackets [] not balanced"))?;
        self.i += 1 + end + 2;
        Ok(match &rest[..end] {
            "alnum" => ALNUM.to_owned(),
            // Digits other than ASCII's are letters.
            "alpha" => "\\p{Alphabetic}[\\p{Nd}--[0-9]]".into(),
            "blank" => " \\t".into(),
            "cntrl" => "\\p{Cc}\\p{Zl}\\p{Zp}".into(),
            "digit" => "0-9".into(),
            "graph" => GRAPH.to_owned(),
            "lower" => "\\p{Lowercase}\\p{Lt}".into(),
            "print" => "[\\P{Cn}--[\\p{Cc}\\p{Zl}\\p{Zp}]]".into(),
            "punct" => format!("[{GRAPH}--[{ALNUM}]]"),
            "space" => SPACE.to_owned(),
            "upper" => "\\p{Uppercase}\\p{Lt}".into(),
            "xdigit" => "0-9a-fA-F".into(),
            "word" => WORD.to_owned(),
            _ => return Err(invalid("invalid character class")),
        })
    }
}

fn push_member(c: char, out: &mut String) {
    match c {
        '\\' | '[' | ']' | '^' | '-' | '&' | '~' => {
            out.push('\\');
            out.push(c);
        }
        '\n' => out.push_str("\\n"),
        c => out.push(c),
    }
}
