//! SQL text to statements.
//!
//! ```text
//!   text ──Postgres's scanner rules──► tokens ──recursive descent──► Statement
//! ```
//!
//! The grammar is Postgres's own (its keyword categories, its precedences, its special forms), since the tree must
//! say exactly what Postgres's raw parse tree says: names of result columns, positions of errors and the meaning of `a < b IS NULL` follow from it.
//! Our statements are read by the same parser. Not here: what any name means.

mod alter;
mod block;
mod cursor;
mod ddl;
mod expr;
mod func;
mod keywords;
pub use block::{code_of, parse_block};
pub use keywords::is_reserved;
pub(crate) mod lex;
mod query;
mod session;
mod statement;
mod stream;
mod type_ddl;
mod types;

use crate::ast::{Span, Statement};
use cursor::Parser;
use repr::SqlError;

/// A statement and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// Without the semicolon and surrounding blanks.
    pub text: String,
    /// Where `text` begins in the query string, in bytes: spans in the tree count from the query string's start.
    pub offset: usize,
    pub statement: Statement,
    /// Names that were cut.
    pub notices: Vec<SqlError>,
}

impl ParsedStatement {
    /// The text of a part of the statement.
    pub fn slice(&self, span: Span) -> &str {
        let (start, end) = (span.start.saturating_sub(self.offset), span.end.saturating_sub(self.offset));
        self.text.get(start..end.min(self.text.len())).unwrap_or("")
    }
}

/// Splits a query string into statements and parses each. Empty statements give nothing.
/// Errors: 42601 with the position in the query string, 54001 for expressions nested too deep.
pub fn parse(sql: &str) -> Result<Vec<ParsedStatement>, SqlError> {
    let mut p = Parser::new(sql)?;
    let mut out = Vec::new();
    loop {
        while p.eat_punct(";") {}
        if p.at_end() {
            return Ok(out);
        }
        let start = p.span().start;
        if let Some(text) = p.recursive_view(sql)? {
            if !p.at_end() && !p.is_punct(";") {
                return Err(p.error());
            }
            out.extend(parse(&text)?);
            continue;
        }
        let statement = p.statement()?;
        if !p.at_end() && !p.is_punct(";") {
            return Err(p.error());
        }
        let end = p.last_end();
        let notices = p.notices_from(start);
        out.push(ParsedStatement { text: sql[start..end].to_owned(), offset: start, statement, notices });
    }
}

/// Parses one query: a view's text, or what the binder made for a clause that stands for it.
pub(crate) fn parse_query(sql: &str) -> Result<crate::ast::Query, SqlError> {
    Parser::new(sql)?.query()
}

/// Parses one scalar expression, such as a stored default.
pub fn parse_expr(sql: &str) -> Result<crate::ast::Expr, SqlError> {
    let mut p = Parser::new(sql)?;
    let e = p.expr()?;
    if p.at_end() {
        Ok(e)
    } else {
        Err(p.error())
    }
}

/// The text with every unquoted `word` (in lower case) replaced.
pub fn replace_word(sql: &str, word: &str, by: &str) -> Result<String, SqlError> {
    let (toks, _) = lex::lex(sql)?;
    let (mut out, mut end) = (String::new(), 0);
    for t in toks.iter().filter(|t| matches!(&t.tok, lex::Tok::Word(w) if w == word)) {
        out.push_str(&sql[end..t.span.start]);
        out.push_str(by);
        end = t.span.end;
    }
    out.push_str(&sql[end..]);
    Ok(out)
}

/// Parses a type name such as `numeric(10,2)[]`.
pub fn parse_type(sql: &str) -> Result<crate::ast::TypeName, SqlError> {
    let mut p = Parser::new(sql)?;
    let t = p.type_name()?;
    if p.at_end() {
        Ok(t)
    } else {
        Err(p.error())
    }
}

/// The identifier as Postgres's `quote_ident` writes it: quoted if it is not a plain lower-case word or is a keyword that may not stand bare.
pub fn quote_ident(s: &str) -> String {
    let plain = s.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !keywords::is_reserved(s)
        && !keywords::is_col_name(s)
        && !keywords::is_type_func_name(s);
    if plain {
        s.to_owned()
    } else {
        format!("\"{}\"", s.replace('"', "\"\""))
    }
}

/// A text in which `from.name` has become `to.name`, for each name that is meant. `None`: `from` stands there for something else too,
/// perhaps an alias that qualifies columns.
pub fn requalified(text: &str, from: &str, to: &str, meant: impl Fn(&str) -> bool) -> Option<String> {
    use lex::Tok;
    if !text.contains(from) {
        return Some(text.to_owned());
    }
    let Ok((toks, _)) = lex::lex(text) else { return Some(text.to_owned()) };
    let name = |i: usize| match toks.get(i).map(|t| &t.tok) {
        Some(Tok::Word(w) | Tok::Quoted(w)) => Some(w.as_str()),
        _ => None,
    };
    let dot = |i: usize| matches!(toks.get(i).map(|t| &t.tok), Some(Tok::Punct(".")));
    let (mut out, mut at, mut alone) = (String::new(), 0, false);
    for i in (0..toks.len()).filter(|i| name(*i) == Some(from) && !(*i > 0 && dot(*i - 1))) {
        if dot(i + 1) && name(i + 2).is_some_and(&meant) {
            out.push_str(&text[at..toks[i].span.start]);
            out.push_str(&quote_ident(to));
            at = toks[i].span.end;
        } else {
            alone |= !dot(i + 1);
        }
    }
    out.push_str(&text[at..]);
    (at == 0 || !alone).then_some(out)
}
