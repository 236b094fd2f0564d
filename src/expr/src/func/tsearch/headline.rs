//! `ts_headline`: the part of a text that shows best why it satisfies a query.
//!
//! ```text
//!   text ──parser, dict──► words, each with the operand of the query that it is
//!     covers: shortest runs of words that satisfy the query and begin and end with words of it
//!     one headline: the best cover, lengthened or cut;  fragments: the best covers, lengthened, apart from one another
//! ```
//!
//! Words are counted without blanks, tags and the wholes of words with hyphens, whose parts follow them. Not here: who matches (`matching`).

use super::dict::Config;
use super::matching::{holds, Document, Known};
use super::parser::{Parser, KINDS};
use repr::error::state;
use repr::tsearch::{Node, Operand, TsQuery, POSITION_LIMIT, WORD_BYTES_MAX};
use repr::SqlError;

/// What the last argument says.
pub struct Options {
    max_words: usize,
    min_words: usize,
    /// Words of so many bytes or fewer are no good ends.
    short_word: usize,
    max_fragments: usize,
    highlight_all: bool,
    start: String,
    stop: String,
    delimiter: String,
}

/// `name = value, name = "value"`. Errors: 42601.
fn settings(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let bad = || SqlError::new(state::SYNTAX_ERROR, format!("invalid parameter list format: \"{text}\""));
    let mut out = Vec::new();
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    while !rest.is_empty() {
        let (key, tail) = if let Some(quoted) = rest.strip_prefix('"') {
            taken(quoted, '"').ok_or_else(bad)?
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '=').ok_or_else(bad)?;
            (rest[..end].to_lowercase(), &rest[end..])
        };
        let tail = tail.trim_start().strip_prefix('=').ok_or_else(bad)?.trim_start();
        let (value, tail) = match tail.chars().next() {
            Some(q @ ('"' | '\'')) => taken(&tail[1..], q).ok_or_else(bad)?,
            Some('E') if tail[1..].starts_with('\'') => taken(&tail[2..], '\'').ok_or_else(bad)?,
            None => return Err(bad()),
            Some(_) => {
                let end = tail.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(tail.len());
                (tail[..end].to_owned(), &tail[end..])
            }
        };
        out.push((key, value));
        let tail = tail.trim_start();
        if !tail.is_empty() && !tail.starts_with(',') {
            return Err(bad());
        }
        rest = tail.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    Ok(out)
}

/// What stands before the closing quote (a doubled one is one), and what comes after it.
fn taken(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' if quote == '\'' => out.push(chars.next()?.1),
            c if c == quote => match chars.peek() {
                Some((_, n)) if *n == quote => {
                    chars.next();
                    out.push(quote);
                }
                _ => return Some((out, &text[i + c.len_utf8()..])),
            },
            c => out.push(c),
        }
    }
    None
}

impl Options {
    /// Errors: 22023, 22P02, 42601.
    pub fn parse(text: &str) -> Result<Options, SqlError> {
        let mut o = Options {
            max_words: 35,
            min_words: 15,
            short_word: 3,
            max_fragments: 0,
            highlight_all: false,
            start: "<b>".into(),
            stop: "</b>".into(),
            delimiter: " ... ".into(),
        };
        let (mut max_words, mut min_words, mut short_word, mut max_fragments) = (35, 15, 3, 0);
        for (key, value) in settings(text)? {
            let number = || repr::text::parse_int::<i32>(&value, "integer");
            match key.to_lowercase().as_str() {
                "maxwords" => max_words = number()?,
                "minwords" => min_words = number()?,
                "shortword" => short_word = number()?,
                "maxfragments" => max_fragments = number()?,
                "startsel" => o.start = value,
                "stopsel" => o.stop = value,
                "fragmentdelimiter" => o.delimiter = value,
                "highlightall" => o.highlight_all = ["1", "on", "true", "t", "y", "yes"].contains(&value.to_lowercase().as_str()),
                _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized headline parameter: \"{key}\""))),
            }
        }
        if !o.highlight_all {
            let wrong = [
                (min_words >= max_words, "MinWords should be less than MaxWords"),
                (min_words <= 0, "MinWords should be positive"),
                (short_word < 0, "ShortWord should be >= 0"),
                (max_fragments < 0, "MaxFragments should be >= 0"),
            ];
            if let Some((_, m)) = wrong.into_iter().find(|w| w.0) {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
            }
        }
        let positive = |n: i32| usize::try_from(n).unwrap_or(0);
        (o.max_words, o.min_words) = (positive(max_words), positive(min_words));
        (o.short_word, o.max_fragments) = (positive(short_word), positive(max_fragments));
        Ok(o)
    }
}

/// A token of the text. One that is several operands of the query is repeated, once for each.
struct Word<'a> {
    text: &'a str,
    kind: u8,
    /// The operand that it is, by its number.
    item: Option<usize>,
    pos: u16,
    repeated: bool,
    shown: bool,
    selected: bool,
    replaced: bool,
    skipped: bool,
}

fn is_kind(kind: u8, names: &[&str]) -> bool {
    names.contains(&KINDS[usize::from(kind) - 1].0)
}

/// Wholes whose parts follow.
fn is_whole(kind: u8) -> bool {
    is_kind(kind, &["url", "numhword", "asciihword", "hword"])
}

struct Text<'a> {
    words: Vec<Word<'a>>,
    operands: Vec<&'a Operand>,
    query: Option<&'a Node>,
}

/// A run of a text's words as a document.
struct Run<'a> {
    words: &'a [Word<'a>],
    operands: &'a [&'a Operand],
}

impl Document for Run<'_> {
    fn find(&self, operand: &Operand, places: Option<&mut Vec<u16>>) -> Known {
        let item = self.operands.iter().position(|o| std::ptr::eq(*o, operand));
        let mut hits = self.words.iter().filter(|w| w.item.is_some() && w.item == item).peekable();
        let known = if hits.peek().is_some() { Known::Yes } else { Known::No };
        if let Some(out) = places {
            out.extend(hits.map(|w| w.pos));
            out.sort_unstable();
            out.dedup();
        }
        known
    }
}

/// The operands in the order in which a query holds them: the right side of an operator before the left.
fn operands<'a>(n: &'a Node, out: &mut Vec<&'a Operand>) {
    match n {
        Node::Val(o) => out.push(o),
        Node::Not(inner) => operands(inner, out),
        Node::And(p) | Node::Or(p) | Node::Phrase(p, _) => {
            operands(&p.1, out);
            operands(&p.0, out);
        }
    }
}

/// Something that could be shown: a cover cut to what fits.
struct Piece {
    from: usize,
    to: usize,
    /// How many words it has, and how many that the query asks for.
    words: usize,
    hits: usize,
    done: bool,
}

impl<'a> Text<'a> {
    fn new(config: Config, text: &'a str, query: &'a TsQuery) -> Text<'a> {
        let mut t = Text { words: Vec::new(), operands: Vec::new(), query: query.0.as_ref() };
        if let Some(n) = t.query {
            operands(n, &mut t.operands);
        }
        let mut p = Parser::new(text);
        let mut pos = 0u32;
        while let Some((kind, token)) = p.next_token() {
            if token.len() >= WORD_BYTES_MAX {
                continue;
            }
            let lexeme = config.dictionary(kind).and_then(|d| {
                pos += 1;
                d.lexeme(token)
            });
            let at = pos.min(u32::from(POSITION_LIMIT) - 1) as u16;
            let is = |o: &Operand, l: &str| if o.prefix { l.starts_with(&o.word) } else { l == o.word };
            let items = |l: &String| t.operands.iter().enumerate().filter(|(_, o)| is(o, l)).map(|(i, _)| i).collect::<Vec<_>>();
            let items = lexeme.as_ref().map_or_else(Vec::new, items);
            for n in 0..items.len().max(1) {
                let item = items.get(n).copied();
                t.words.push(Word { text: token, kind, item, pos: at, repeated: n > 0, shown: false, selected: false, replaced: false, skipped: false });
            }
        }
        t
    }

    fn next_item(&self, from: usize) -> Option<usize> {
        (from..self.words.len()).find(|i| self.words[*i].item.is_some())
    }

    /// The first shortest run from `from` on that satisfies the query, of at most `longest` words.
    fn cover(&self, from: usize, longest: usize) -> Option<(usize, usize)> {
        let query = self.query?;
        let mut first = self.next_item(from);
        while let Some(p) = first {
            let mut last = Some(p);
            while let Some(q) = last.filter(|q| q - p < longest) {
                if holds(query, &Run { words: &self.words[p..=q], operands: &self.operands }) {
                    return Some((p, q));
                }
                last = self.next_item(q + 1);
            }
            first = self.next_item(p + 1);
        }
        None
    }

    fn counts(&self, i: usize) -> bool {
        let kind = self.words[i].kind;
        !(is_kind(kind, &["blank", "tag"]) || is_whole(kind))
    }

    fn is_hit(&self, i: usize) -> bool {
        self.words[i].item.is_some() && !self.words[i].repeated
    }

    fn bad_end(&self, i: usize, o: &Options) -> bool {
        let w = &self.words[i];
        let never = !self.counts(i) || is_kind(w.kind, &["sfloat", "version", "float", "int", "uint", "tag", "protocol", "entity"]);
        (never || w.text.len() <= o.short_word) && !self.is_hit(i)
    }

    fn show(&mut self, from: usize, to: usize, all: bool) {
        for w in self.words.iter_mut().take(to + 1).skip(from) {
            w.selected |= w.item.is_some();
            w.replaced |= !all && is_kind(w.kind, &["tag"]);
            w.skipped |= is_whole(w.kind);
            w.shown = !w.repeated;
        }
    }

    /// The first words, where nothing satisfies the query.
    fn beginning(&self, o: &Options) -> usize {
        let (mut words, mut last) = (0, 0);
        for i in 0..self.words.len() {
            if words >= o.min_words {
                break;
            }
            words += usize::from(self.counts(i));
            last = i;
        }
        last
    }

    /// One headline around a cover: its ends, and how many words asked for it has.
    fn around(&self, p: usize, q: usize, o: &Options) -> (usize, usize, usize) {
        let (mut from, mut to) = (p, p);
        let (mut words, mut hits) = (0, 0);
        let count = |i: usize| (usize::from(self.counts(i)), usize::from(self.is_hit(i)));
        let mut i = p;
        while i <= q && words < o.max_words {
            let (w, h) = count(i);
            (words, hits, to) = (words + w, hits + h, i);
            i += 1;
        }
        if words < o.max_words {
            // On to a good end.
            i -= 1;
            while i < self.words.len() && words < o.max_words {
                if i > q {
                    let (w, h) = count(i);
                    (words, hits) = (words + w, hits + h);
                }
                to = i;
                if !self.bad_end(i, o) && words >= o.min_words {
                    break;
                }
                i += 1;
            }
            if words < o.min_words {
                // The text has ended: back from the beginning of the cover.
                from = 0;
                for i in (0..p).rev() {
                    let (w, h) = count(i);
                    (words, hits) = (words + w, hits + h);
                    if words >= o.max_words || !self.bad_end(i, o) && words >= o.min_words {
                        from = i;
                        break;
                    }
                }
            }
        } else {
            i = i.min(q);
            while words > o.min_words && self.bad_end(i, o) {
                let (w, h) = count(i);
                (words, hits) = (words - w, hits - h);
                let Some(before) = i.checked_sub(1) else { break };
                (to, i) = (before, before);
            }
        }
        (from, to, hits)
    }

    fn one(&mut self, o: &Options, longest: usize) {
        let mut best: Option<(bool, usize, bool, usize, usize)> = None;
        let mut p = 0;
        while let Some((from, to)) = self.cover(p, longest) {
            let (b, e, hits) = self.around(from, to, o);
            let made = (b <= from && e >= to, hits, !self.bad_end(e, o), b, e);
            if best.is_none_or(|best| (made.0, made.1, made.2) > (best.0, best.1, best.2)) {
                best = Some(made);
            }
            p = from + 1;
        }
        let (from, to) = best.map_or_else(|| (0, self.beginning(o)), |b| (b.3, b.4));
        self.show(from, to, false);
    }

    /// The pieces of a cover that has too many words: each begins and ends with a word of the query.
    fn pieces(&self, p: usize, q: usize, o: &Options, out: &mut Vec<Piece>) {
        let mut start = p;
        while start <= q {
            let from = (start..=q).find(|i| self.is_hit(*i)).unwrap_or(q);
            let (mut words, mut hits, mut i) = (0, 0, from);
            while i <= q && words < o.max_words {
                words += usize::from(self.counts(i));
                hits += usize::from(self.is_hit(i));
                i += 1;
            }
            let mut to = q;
            if q > i {
                to = i;
                for k in (from..=i).rev() {
                    to = k;
                    if self.is_hit(k) {
                        break;
                    }
                    words -= usize::from(self.counts(k)).min(words);
                }
            }
            out.push(Piece { from, to, words, hits, done: false });
            start = to + 1;
        }
    }

    /// A piece lengthened to both sides, up to the next one shown.
    fn stretched(&self, piece: &Piece, o: &Options) -> (usize, usize) {
        let (mut from, mut to, mut words) = (piece.from, piece.to, piece.words);
        if words >= o.max_words {
            return (from, to);
        }
        let most = (o.max_words - words) / 2;
        let (mut added, mut mark) = (0, from);
        for i in (0..from).rev() {
            if added >= most || self.words[i].shown {
                break;
            }
            let w = usize::from(self.counts(i));
            (words, added, mark) = (words + w, added + w, i);
        }
        while mark < from && self.bad_end(mark, o) {
            words -= usize::from(self.counts(mark));
            mark += 1;
        }
        from = mark;
        mark = to;
        for i in to + 1..self.words.len() {
            if words >= o.max_words || self.words[i].shown {
                break;
            }
            words += usize::from(self.counts(i));
            mark = i;
        }
        while mark > to && self.bad_end(mark, o) {
            mark -= 1;
        }
        to = mark;
        (from, to)
    }

    fn fragments(&mut self, o: &Options, longest: usize) {
        let mut pieces = Vec::new();
        let mut p = 0;
        while let Some((from, to)) = self.cover(p, longest) {
            self.pieces(from, to, o, &mut pieces);
            p = from + 1;
        }
        let mut shown = 0;
        for _ in 0..o.max_fragments {
            let mut best: Option<usize> = None;
            for (i, c) in pieces.iter().enumerate().filter(|(_, c)| !c.done && c.hits > 0) {
                if best.is_none_or(|b| (c.hits, std::cmp::Reverse(c.words)) > (pieces[b].hits, std::cmp::Reverse(pieces[b].words))) {
                    best = Some(i);
                }
            }
            let Some(best) = best else { break };
            let (from, to) = self.stretched(&pieces[best], o);
            self.show(from, to, o.highlight_all);
            shown += 1;
            pieces[best].done = true;
            let overlaps = |c: &Piece| from <= c.from && c.from <= to || from <= c.to && c.to <= to || c.from < from && c.to > to;
            pieces.iter_mut().filter(|c| overlaps(c)).for_each(|c| c.done = true);
        }
        if shown == 0 {
            let last = self.beginning(o);
            self.show(0, last, o.highlight_all);
        }
    }

    fn print(&self, o: &Options) -> String {
        let mut out = String::new();
        let (mut inside, mut fragments) = (false, 0);
        for w in self.words.iter().filter(|w| !w.repeated) {
            if w.shown {
                if !inside {
                    fragments += 1;
                    if fragments > 1 {
                        out.push_str(&o.delimiter);
                    }
                }
                if w.replaced {
                    out.push(' ');
                } else if !w.skipped {
                    let (start, stop) = if w.selected { (o.start.as_str(), o.stop.as_str()) } else { ("", "") };
                    out.extend([start, w.text, stop]);
                }
            }
            inside = w.shown;
        }
        out
    }
}

/// The headline of a text.
pub fn headline(config: Config, text: &str, query: &TsQuery, o: &Options) -> String {
    let mut t = Text::new(config, text, query);
    let longest = o.max_words.saturating_mul(10).max(100).saturating_mul(o.max_fragments.max(1));
    match (o.max_fragments, o.highlight_all) {
        (0, true) => t.show(0, t.words.len(), true),
        (0, false) => t.one(o, longest),
        _ => t.fragments(o, longest),
    }
    t.print(o)
}
