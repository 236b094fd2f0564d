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
    /// `from`: it stands in FROM, `Some(true)` with an alias.
    Relation { span: Span, id: GlobalId, name: FullName, from: Option<bool> },
    /// A column by its own name; `qualifier` if none is written and one could be.
    Column { pos: Pos, rel: Option<GlobalId>, column: usize, qualifier: Option<String> },
    /// A column that no word of its own names: merged by USING, part of a whole row.
    Implied { rel: GlobalId, column: usize },
    /// `*`: the columns that it stands for, if they can be written.
    Star { pos: Pos, columns: Option<Vec<String>> },
    /// The column at this position names an output column.
    Output { pos: Pos, name: String },
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
    pub(super) fn note_alias(&self, written: &ObjectName, aliased: bool) {
        if let Some(Named::Relation { span, from, .. }) = self.names.borrow_mut().last_mut() {
            if *span == written.span {
                *from = Some(aliased);
            }
        }
    }

    pub(super) fn note_column(&self, item: &NsItem, i: usize, pos: Pos, qualifier: Option<&str>) {
        let qualifier = qualifier.map(str::to_owned);
        self.names.borrow_mut().push(Named::Column { pos, rel: item.rel, column: i, qualifier });
    }

    pub(super) fn note_merged(&self, items: &[NsItem], name: &str) {
        let hits = items.iter().filter_map(|i| Some((i.rel?, i.cols.iter().position(|c| c.name == name)?)));
        self.names.borrow_mut().extend(hits.map(|(rel, column)| Named::Implied { rel, column }));
    }

    pub(super) fn note_whole(&self, item: &NsItem) {
        let Some(rel) = item.rel else { return };
        self.names.borrow_mut().extend((0..item.cols.len()).map(|column| Named::Implied { rel, column }));
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
            Named::Column { rel: Some(rel), column, .. } | Named::Implied { rel, column } => Some((rel, column)),
            _ => None,
        })
        .collect())
}

/// A stored text as it reads once something is renamed, `catalog` being as before that. `around`: what makes it a query.
/// Errors: 0A000 where the name stands in a place that cannot be rewritten.
pub fn renamed(around: (&str, &str), text: &str, rename: &Rename<'_>, catalog: &dyn SqlCatalog) -> Result<String, SqlError> {
    let whole = format!("{}{text}{}", around.0, around.1);
    let names = traced(&whole, catalog)?;
    let (toks, _) = lex(&whole)?;
    let at = |pos: Pos| toks.iter().find(|t| t.pos == pos);
    let outputs: Vec<(Pos, &str)> = names.iter().filter_map(|n| if let Named::Output { pos, name } = n { Some((*pos, name.as_str())) } else { None }).collect();
    let mut edits = Vec::new();
    for n in &names {
        match (rename, n) {
            (Rename::Column { rel, column, to }, Named::Column { pos, rel: Some(r), column: c, .. }) if r == rel && c == column => {
                let Some(t) = at(*pos) else { continue };
                let as_name = outputs.iter().find(|o| o.0 == *pos).map_or(String::new(), |o| format!(" AS {}", quote_ident(o.1)));
                edits.push(Edit { start: t.span.start, end: t.span.end, by: format!("{}{as_name}", quote_ident(to)) });
            }
            (Rename::Column { rel, column, .. }, Named::Implied { rel: r, column: c }) if r == rel && c == column => {
                return Err(SqlError::unsupported(
                    "renaming a column that a view reads through USING, NATURAL or a whole row",
                    "drop and create the view around the change",
                ));
            }
            (Rename::Relation { rel, schema, name }, Named::Relation { span, id, name: old, from }) if id == rel => {
                let alias = if *from == Some(false) && old.name != *name { format!(" AS {}", quote_ident(&old.name)) } else { String::new() };
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
