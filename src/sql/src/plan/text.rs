//! Stored texts of views, checks and index keys: names in full, and what becomes of them when objects change.
//!
//! A view is stored as text and bound again at each start, so its text must go on meaning what it meant when it was made:
//!
//! ```text
//!   select * from t, u where x > 1        written
//!   select t.a, t.b, u.x from public.t, public.u where u.x > 1        stored: a new column of t changes nothing
//! ```
//!
//! Binding notes what each name in the text means ([`Named`]); the notes say where to write a qualifier, which columns a view reads, and
//! which words change when a column or a relation is renamed. Not here: which objects to look at (the catalog's owner knows).

use super::scope::{Env, NsItem};
use super::*;
use crate::ast::{ObjectName, Span};
use crate::catalog::Relation;
use crate::parse::lex::{lex, Lexed, Tok};
use crate::parse::{quote_ident, ParsedStatement};

/// A name in a text and what it means.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// `from`: it stands in FROM.
    Relation { span: Span, id: GlobalId, name: FullName, from: Option<Reference> },
    /// A column by its name, which is its own unless an alias gave it; `qualifier` if none is written and one could be.
    Column { pos: Pos, rel: Option<GlobalId>, column: usize, own: bool, qualifier: Option<String> },
    /// A column that no word of its own names: merged by USING, part of a join with a name.
    Implied { rel: GlobalId, column: usize },
    /// A row of the relation is a value, or the type of its rows is named.
    Rows { rel: GlobalId },
    /// A field of such a row, by its name if it has a position.
    Field { pos: Option<Pos>, rel: GlobalId, column: usize },
    /// `*`: the columns that it stands for, if they can be written.
    Star { pos: Pos, columns: Option<Vec<String>> },
    /// The column at this position names an output column.
    Output { pos: Pos, name: String },
}

/// A relation where it stands in FROM: its alias, and what its columns are called there, the first `aliased` of them by the alias.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub alias: Option<Pos>,
    pub columns: Vec<String>,
    pub aliased: usize,
}

/// What is to be called otherwise.
pub enum Rename<'a> {
    Column { rel: GlobalId, column: usize, to: &'a str },
    Relation { rel: GlobalId, schema: &'a str, name: &'a str },
}

/// A change to a text: what stands between two bytes becomes something else.
struct Edit {
    start: usize,
    end: usize,
    by: String,
}

impl Binder<'_> {
    pub(super) fn note_relation(&self, name: &ObjectName, rel: &Relation) {
        self.names.borrow_mut().push(Named::Relation { span: name.span, id: rel.id, name: rel.name.clone(), from: None });
    }

    /// The relation just noted stands in FROM.
    pub(super) fn note_alias(&self, written: &ObjectName, alias: Option<Pos>, item: &NsItem) {
        if let Some(Named::Relation { span, from, .. }) = self.names.borrow_mut().last_mut() {
            if *span == written.span {
                let columns = item.cols.iter().map(|c| c.name.clone()).collect();
                *from = Some(Reference { alias, columns, aliased: item.aliased });
            }
        }
    }

    pub(super) fn note_column(&self, item: &NsItem, i: usize, pos: Pos, qualifier: Option<&str>) {
        let qualifier = qualifier.map(str::to_owned);
        self.names.borrow_mut().push(Named::Column { pos, rel: item.rel, column: i, own: i >= item.aliased, qualifier });
    }

    pub(super) fn note_merged(&self, items: &[NsItem], name: &str) {
        let hits = items.iter().filter_map(|i| Some((i.rel?, i.cols.iter().position(|c| c.name == name)?)));
        self.names.borrow_mut().extend(hits.map(|(rel, column)| Named::Implied { rel, column }));
    }

    pub(super) fn note_whole(&self, item: &NsItem) {
        let Some(rel) = item.rel else { return };
        self.names.borrow_mut().extend((0..item.cols.len()).map(|column| Named::Implied { rel, column }));
    }

    /// A row as a value is whatever its relation's rows are.
    pub(super) fn note_rows(&self, ty: &SqlType) {
        if let SqlType::Record(r) = ty {
            self.names.borrow_mut().extend(r.relation().map(|rel| Named::Rows { rel }));
        }
    }

    /// A field of such a row is a column that must stay. `pos`: of its name.
    pub(super) fn note_field(&self, row: &repr::types::RecordType, column: usize, pos: Option<Pos>) {
        self.names.borrow_mut().extend(row.relation().map(|rel| Named::Field { pos, rel, column }));
    }

    pub(super) fn note_output(&self, pos: Pos, name: &str) {
        self.names.borrow_mut().push(Named::Output { pos, name: name.to_owned() });
    }

    pub(super) fn note_star<'i>(&self, items: impl Iterator<Item = &'i NsItem>, env: &Env, pos: Pos, except: &dyn Fn(&str) -> bool) {
        let here: &[NsItem] = env.level().map_or(&[], |l| &l.items);
        let mut columns = Some(Vec::new());
        for item in items {
            if let Some(rel) = item.rel {
                self.names.borrow_mut().extend((0..item.cols.len()).map(|column| Named::Implied { rel, column }));
            }
            for c in item.cols.iter().filter(|c| !except(&c.name)) {
                // Where a join has no name, the column of the side that it is.
                let named = |i: &&NsItem| i.rel_visible && !i.name.is_empty();
                let owner =
                    if named(&item) { Some(item) } else { here.iter().filter(named).find(|i| i.cols.iter().any(|x| x.pos == c.pos && x.name == c.name)) };
                let unique = |i: &NsItem| i.cols.iter().filter(|x| x.name == c.name).count() == 1;
                let bare = item.cols.iter().filter(|x| x.name == c.name).count() == 1;
                let text = match owner {
                    Some(i) if unique(i) && here.len() == 1 => Some(quote_ident(&c.name)),
                    Some(i) if unique(i) => Some(format!("{}.{}", quote_ident(&i.name), quote_ident(&c.name))),
                    None if bare => Some(quote_ident(&c.name)),
                    _ => None,
                };
                match (text, &mut columns) {
                    (Some(t), Some(list)) => list.push(t),
                    _ => columns = None,
                }
            }
        }
        self.names.borrow_mut().push(Named::Star { pos, columns });
    }

    /// The text of a query with every name written in full.
    pub(super) fn qualified_text(&self, p: &ParsedStatement, span: Span, pos: Pos) -> String {
        let text = p.slice(span);
        let Ok((toks, _)) = lex(text) else { return text.to_owned() };
        let at = |pos_: Pos| toks.iter().position(|t| t.pos + pos - 1 == pos_);
        let mut edits = Vec::new();
        for n in self.names.borrow().iter() {
            match n {
                Named::Relation { span: s, name, .. } if s.start >= span.start && s.end <= span.end => {
                    edits.push(Edit { start: s.start - span.start, end: s.end - span.start, by: full(&name.schema, &name.name) });
                }
                Named::Column { pos, qualifier: Some(q), .. } => {
                    let Some(t) = at(*pos).map(|i| &toks[i]) else { continue };
                    edits.push(Edit { start: t.span.start, end: t.span.start, by: format!("{}.", quote_ident(q)) });
                }
                Named::Star { pos, columns: Some(columns) } => edits.extend(at(*pos).and_then(|i| expanded(&toks, i, columns))),
                _ => {}
            }
        }
        edited(text, edits)
    }
}

/// An expression over the row of one relation, without the relation's name before its columns: it may be called otherwise.
pub(super) fn bare_columns(text: &str, relation: &str) -> String {
    let Ok((toks, _)) = lex(text) else { return text.to_owned() };
    let name = |i: usize| match toks.get(i).map(|t| &t.tok) {
        Some(Tok::Word(w) | Tok::Quoted(w)) => Some(w.as_str()),
        _ => None,
    };
    let is = |i: usize, p: &'static str| toks.get(i).is_some_and(|t| t.tok == Tok::Punct(p));
    let mut edits = Vec::new();
    let mut i = 0;
    while i < toks.len() {
        let mut last = i;
        while name(last).is_some() && is(last + 1, ".") && name(last + 2).is_some() {
            last += 2;
        }
        // Names of functions and types have a schema before them.
        let of_type = i > 0 && (is(i - 1, "::") || name(i - 1) == Some("as"));
        if last > i && name(last - 2) == Some(relation) && !is(last + 1, "(") && !of_type {
            edits.push(Edit { start: toks[i].span.start, end: toks[last].span.start, by: String::new() });
        }
        i = last + 1;
    }
    edited(text, edits)
}

fn full(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// `*`, `t.*`, `* EXCEPT (…)` or the word TABLE at token `i`, written as a list of columns.
fn expanded(toks: &[Lexed], i: usize, columns: &[String]) -> Option<Edit> {
    let start = toks[i].span.start;
    let list = columns.join(", ");
    if matches!(&toks[i].tok, Tok::Word(w) if w == "table") {
        return Some(Edit { start, end: toks[i].span.end, by: format!("SELECT {list} FROM") });
    }
    let mut at = i;
    while matches!(toks.get(at)?.tok, Tok::Word(_) | Tok::Quoted(_)) && toks.get(at + 1)?.tok == Tok::Punct(".") {
        at += 2;
    }
    if !matches!(&toks.get(at)?.tok, Tok::Op(o) if o == "*") {
        return None;
    }
    let mut last = at;
    if matches!(&toks.get(at + 1)?.tok, Tok::Word(w) if w == "except" || w == "exclude") && toks.get(at + 2)?.tok == Tok::Punct("(") {
        last = at + 3;
        while toks.get(last)?.tok != Tok::Punct(")") {
            last += 1;
        }
    }
    Some(Edit { start, end: toks[last].span.end, by: list })
}

/// The text with all changes made; of several at one place the first counts.
fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|e| (e.start, e.end));
    edits.dedup_by_key(|e| e.start);
    let (mut out, mut at) = (String::new(), 0);
    for e in edits.iter().filter(|e| e.end <= text.len()) {
        if e.start < at {
            continue;
        }
        out.push_str(&text[at..e.start]);
        out.push_str(&e.by);
        at = e.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Binds a stored text between a prefix and a suffix that make it a query.
fn traced(text: &str, catalog: &dyn SqlCatalog) -> Result<Vec<Named>, SqlError> {
    let parsed = crate::parse::parse(text)?;
    let b = Binder::new(catalog);
    for p in &parsed {
        b.statement(p, &p.statement)?;
    }
    Ok(b.names.take())
}

/// The columns that a stored text names, each once: (relation, position). `around`: what makes it a query.
/// Errors: what no longer binds.
pub fn columns_read(around: (&str, &str), text: &str, catalog: &dyn SqlCatalog) -> Result<BTreeSet<(GlobalId, usize)>, SqlError> {
    let names = traced(&format!("{}{text}{}", around.0, around.1), catalog)?;
    Ok(names
        .into_iter()
        .filter_map(|n| match n {
            Named::Column { rel: Some(rel), column, .. } | Named::Implied { rel, column } | Named::Field { rel, column, .. } => Some((rel, column)),
            _ => None,
        })
        .collect())
}

/// Whether a stored text has rows of the relation as values, whose fields have names. `around`: what makes it a query. Errors: what no longer binds.
pub fn has_rows(around: (&str, &str), text: &str, rel: GlobalId, catalog: &dyn SqlCatalog) -> Result<bool, SqlError> {
    let names = traced(&format!("{}{text}{}", around.0, around.1), catalog)?;
    Ok(names.iter().any(|n| matches!(n, Named::Rows { rel: r } | Named::Field { rel: r, .. } if *r == rel)))
}

/// The names of a relation's columns where it stands in FROM, written behind its alias so that they stay what they are.
fn pinned(toks: &[Lexed], span: Span, name: &FullName, at: &Reference, columns: &[String]) -> Option<Edit> {
    let list = columns.iter().map(|c| quote_ident(c)).collect::<Vec<_>>().join(", ");
    let Some(alias) = at.alias else {
        let by = format!("{} AS {}({list})", full(&name.schema, &name.name), quote_ident(&name.name));
        return Some(Edit { start: span.start, end: span.end, by });
    };
    let i = toks.iter().position(|t| t.pos == alias)?;
    let mut last = i;
    if at.aliased > 0 {
        last += toks[i..].iter().position(|t| t.tok == Tok::Punct(")"))?;
    }
    let (start, end) = (toks[i].span.end, toks[last].span.end);
    Some(Edit { start, end, by: if list.is_empty() { String::new() } else { format!("({list})") } })
}

/// `schema.rel.column` at this position without the schema, which an alias cannot have.
fn unqualified(toks: &[Lexed], pos: Pos) -> Option<Edit> {
    let i = toks.iter().position(|t| t.pos == pos)?;
    let dot = |at: Option<usize>| at.and_then(|at| toks.get(at)).is_some_and(|t| t.tok == Tok::Punct("."));
    let mut first = i.checked_sub(2).filter(|_| dot(i.checked_sub(1)))?;
    let relation = first;
    while dot(first.checked_sub(1)) {
        first = first.checked_sub(2)?;
    }
    (first < relation).then(|| Edit { start: toks[first].span.start, end: toks[relation].span.start, by: String::new() })
}

/// A stored query as it reads once a relation has other columns, `catalog` being as before that. `now`: their names, `origin` what they were.
///
/// A column that comes is of no concern to the query. Where it could be taken for another (its name is one of the text's words, or NATURAL or USING
/// match columns by name), an alias hides it: `t NATURAL JOIN u` reads `t AS t(a, b, c_1) NATURAL JOIN u` once t has a column c.
pub fn reshaped(text: &str, rel: GlobalId, origin: &[Option<usize>], now: &[String], catalog: &dyn SqlCatalog) -> Result<String, SqlError> {
    let names = traced(text, catalog)?;
    let (toks, _) = lex(text)?;
    let word = |w: &str| toks.iter().any(|t| matches!(&t.tok, Tok::Word(x) | Tok::Quoted(x) if x == w));
    let matched = word("natural") || word("using");
    let mut taken: BTreeSet<String> = now.iter().cloned().collect();
    taken.extend(names.iter().filter_map(|n| if let Named::Relation { from: Some(f), .. } = n { Some(f.columns.clone()) } else { None }).flatten());
    let mut edits = Vec::new();
    for n in &names {
        let Named::Relation { span, id, name, from: Some(at) } = n else { continue };
        if *id != rel {
            continue;
        }
        let (mut columns, mut wanted) = (Vec::new(), 0);
        for (i, o) in origin.iter().enumerate() {
            columns.push(match o {
                Some(o) => at.columns[*o].clone(),
                None if matched || word(&now[i]) => {
                    let free = (1..).map(|k| format!("{}_{k}", now[i])).find(|f| !taken.contains(f) && !word(f));
                    let free = free.unwrap_or_else(|| now[i].clone());
                    taken.insert(free.clone());
                    free
                }
                None => now[i].clone(),
            });
            if columns[i] != now[i] || o.is_some_and(|o| o < at.aliased) {
                wanted = i + 1;
            }
        }
        columns.truncate(wanted);
        if wanted > at.aliased || at.columns[..at.aliased] != columns[..] {
            edits.extend(pinned(&toks, *span, name, at, &columns));
        }
    }
    if !edits.is_empty() {
        edits.extend(names.iter().filter_map(|n| match n {
            Named::Column { pos, rel: Some(r), .. } if *r == rel => unqualified(&toks, *pos),
            _ => None,
        }));
    }
    Ok(edited(text, edits))
}

/// A stored text as it reads once something is renamed, `catalog` being as before that. `around`: what makes it a query.
/// A column that is matched by its name keeps it there, given by an alias.
pub fn renamed(around: (&str, &str), text: &str, rename: &Rename<'_>, catalog: &dyn SqlCatalog) -> Result<String, SqlError> {
    let whole = format!("{}{text}{}", around.0, around.1);
    let names = traced(&whole, catalog)?;
    let (toks, _) = lex(&whole)?;
    let at = |pos: Pos| toks.iter().find(|t| t.pos == pos);
    // An expression has no output column that would have to keep its name.
    let query = around.0.is_empty();
    let outputs: Vec<(Pos, &str)> =
        names.iter().filter(|_| query).filter_map(|n| if let Named::Output { pos, name } = n { Some((*pos, name.as_str())) } else { None }).collect();
    let mut edits = Vec::new();
    let matched = |rel: &GlobalId, column: &usize| names.iter().any(|n| matches!(n, Named::Implied { rel: r, column: c } if r == rel && c == column));
    for n in &names {
        match (rename, n) {
            (Rename::Column { rel, column, .. }, Named::Relation { span, id, name, from: Some(at) }) if id == rel && matched(rel, column) => {
                let columns = &at.columns[..at.aliased.max(column + 1)];
                edits.extend(pinned(&toks, *span, name, at, columns).filter(|_| *column >= at.aliased));
            }
            (Rename::Column { rel, column, .. }, Named::Column { pos, rel: Some(r), .. }) if r == rel && matched(rel, column) => {
                edits.extend(unqualified(&toks, *pos));
            }
            (
                Rename::Column { rel, column, to },
                Named::Column { pos, rel: Some(r), column: c, own: true, .. } | Named::Field { pos: Some(pos), rel: r, column: c },
            ) if r == rel && c == column => {
                let Some(t) = at(*pos) else { continue };
                let as_name = outputs.iter().find(|o| o.0 == *pos).map_or(String::new(), |o| format!(" AS {}", quote_ident(o.1)));
                edits.push(Edit { start: t.span.start, end: t.span.end, by: format!("{}{as_name}", quote_ident(to)) });
            }
            (Rename::Relation { rel, schema, name }, Named::Relation { span, id, name: old, from }) if id == rel => {
                let alias = if from.as_ref().is_some_and(|f| f.alias.is_none()) && old.name != *name {
                    format!(" AS {}", quote_ident(&old.name))
                } else {
                    String::new()
                };
                edits.push(Edit { start: span.start, end: span.end, by: format!("{}{alias}", full(schema, name)) });
            }
            _ => {}
        }
    }
    let (from, to) = (around.0.len(), whole.len() - around.1.len());
    edits.retain(|e| e.start >= from && e.end <= to);
    edits.iter_mut().for_each(|e| {
        e.start -= from;
        e.end -= from;
    });
    Ok(edited(text, edits))
}
