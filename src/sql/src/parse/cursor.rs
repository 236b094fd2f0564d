//! The token cursor: looking ahead, taking tokens, names, and syntax errors.

use super::keywords::{is_bare_label, is_col_name, is_reserved, is_type_func_name};
use super::lex::{lex, syntax, Lexed, Tok};
use crate::ast::{Ident, ObjectName, Pos, Span};
use repr::error::state;
use repr::SqlError;

/// Nesting (and length of an operator chain) beyond which 54001 is raised. Every later stage walks the tree, on threads of 512 MB of
/// stack; a level takes up to 32 kB of it in a debug build.
pub const DEPTH_MAX: usize = 4_000;

/// Length of a chain of set operations, which is bound in a loop: only its tree is walked.
pub const SET_CHAIN_MAX: usize = 20_000;

pub struct Parser<'a> {
    pub sql: &'a str,
    toks: Vec<Lexed>,
    at: usize,
    pub depth: usize,
    /// The depth at which an expression of a select list stands: there a word such as `and` may be its label.
    pub label_depth: usize,
    notices: Vec<(usize, SqlError)>,
}

impl<'a> Parser<'a> {
    pub fn new(sql: &'a str) -> Result<Parser<'a>, SqlError> {
        let (toks, notices) = lex(sql)?;
        Ok(Parser { sql, toks, at: 0, depth: 0, label_depth: usize::MAX, notices })
    }

    /// Notices about the text from byte `start` on.
    pub fn notices_from(&self, start: usize) -> Vec<SqlError> {
        let end = self.last_end();
        self.notices.iter().filter(|n| (start..end).contains(&n.0)).map(|n| n.1.clone()).collect()
    }

    pub fn tok(&self) -> &Tok {
        &self.toks[self.at].tok
    }
    pub fn tok_at(&self, ahead: usize) -> &Tok {
        &self.toks[(self.at + ahead).min(self.toks.len() - 1)].tok
    }
    pub fn pos(&self) -> Pos {
        self.toks[self.at].pos
    }
    pub fn span(&self) -> Span {
        self.toks[self.at].span
    }
    /// End of the last token taken.
    pub fn last_end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.toks[i].span.end)
    }
    pub fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.last_end() }
    }
    pub fn at_end(&self) -> bool {
        *self.tok() == Tok::Eof
    }
    pub fn next(&mut self) -> Tok {
        let t = self.toks[self.at].tok.clone();
        if self.at + 1 < self.toks.len() {
            self.at += 1;
        }
        t
    }
    pub fn mark(&self) -> usize {
        self.at
    }
    pub fn reset(&mut self, mark: usize) {
        self.at = mark;
    }

    /// `syntax error at or near "x"` at the current token.
    pub fn error(&self) -> SqlError {
        let t = &self.toks[self.at];
        if t.tok == Tok::Eof {
            return SqlError::new(state::SYNTAX_ERROR, "syntax error at end of input").at(t.pos);
        }
        syntax("syntax error", &self.sql[t.span.start..t.span.end], t.pos)
    }
    pub fn error_at(&self, message: impl Into<String>, pos: Pos) -> SqlError {
        SqlError::new(state::SYNTAX_ERROR, message).at(pos)
    }

    /// Runs `f` one level deeper. Errors: 54001 beyond [`DEPTH_MAX`].
    pub fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        self.check_depth(0)?;
        self.depth += 1;
        let r = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || f(self));
        self.depth -= 1;
        r
    }
    pub fn check_depth(&self, more: usize) -> Result<(), SqlError> {
        if self.depth + more < DEPTH_MAX {
            return Ok(());
        }
        Err(self.too_deep(&format!("expressions may be nested {DEPTH_MAX} levels deep")))
    }
    pub fn too_deep(&self, hint: &str) -> SqlError {
        SqlError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(hint)
    }

    pub fn is_kw(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Word(x) if x == w)
    }
    pub fn is_kw_at(&self, ahead: usize, w: &str) -> bool {
        matches!(self.tok_at(ahead), Tok::Word(x) if x == w)
    }
    pub fn is_kws(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, w)| self.is_kw_at(i, w))
    }
    pub fn is_any_kw(&self, words: &[&str]) -> bool {
        matches!(self.tok(), Tok::Word(x) if words.contains(&x.as_str()))
    }
    pub fn eat_kw(&mut self, w: &str) -> bool {
        let yes = self.is_kw(w);
        if yes {
            self.next();
        }
        yes
    }
    /// Takes all of `words` or nothing.
    pub fn eat_kws(&mut self, words: &[&str]) -> bool {
        let yes = self.is_kws(words);
        if yes {
            words.iter().for_each(|_| {
                self.next();
            });
        }
        yes
    }
    pub fn expect_kw(&mut self, w: &str) -> Result<(), SqlError> {
        if self.eat_kw(w) {
            Ok(())
        } else {
            Err(self.error())
        }
    }
    pub fn expect_kws(&mut self, words: &[&str]) -> Result<(), SqlError> {
        words.iter().try_for_each(|w| self.expect_kw(w))
    }
    pub fn is_punct(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::Punct(x) if *x == p)
    }
    pub fn is_punct_at(&self, ahead: usize, p: &str) -> bool {
        matches!(self.tok_at(ahead), Tok::Punct(x) if *x == p)
    }
    pub fn eat_punct(&mut self, p: &str) -> bool {
        let yes = self.is_punct(p);
        if yes {
            self.next();
        }
        yes
    }
    pub fn expect_punct(&mut self, p: &str) -> Result<(), SqlError> {
        if self.eat_punct(p) {
            Ok(())
        } else {
            Err(self.error())
        }
    }
    pub fn is_op(&self, o: &str) -> bool {
        matches!(self.tok(), Tok::Op(x) if x == o)
    }
    pub fn eat_op(&mut self, o: &str) -> bool {
        let yes = self.is_op(o);
        if yes {
            self.next();
        }
        yes
    }

    /// One or more of `f`, separated by commas.
    pub fn comma_list<T>(&mut self, mut f: impl FnMut(&mut Self) -> Result<T, SqlError>) -> Result<Vec<T>, SqlError> {
        let mut out = vec![f(self)?];
        while self.eat_punct(",") {
            out.push(f(self)?);
        }
        Ok(out)
    }
    pub fn parens<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        self.expect_punct("(")?;
        let x = f(self)?;
        self.expect_punct(")")?;
        Ok(x)
    }

    fn ident_if(&mut self, ok: impl Fn(&str) -> bool) -> Result<Ident, SqlError> {
        let pos = self.pos();
        let name = match self.tok() {
            Tok::Quoted(s) => s.clone(),
            Tok::Word(w) if ok(w) => w.clone(),
            _ => return Err(self.error()),
        };
        self.next();
        Ok(Ident { name, pos })
    }
    /// A name of a column, table, alias.
    pub fn col_id(&mut self) -> Result<Ident, SqlError> {
        self.ident_if(|w| !is_reserved(w) && !is_type_func_name(w))
    }
    pub fn is_col_id(&self) -> bool {
        match self.tok() {
            Tok::Quoted(_) => true,
            Tok::Word(w) => !is_reserved(w) && !is_type_func_name(w),
            _ => false,
        }
    }
    /// A name of a function or type.
    pub fn is_func_name(&self) -> bool {
        match self.tok() {
            Tok::Quoted(_) => true,
            Tok::Word(w) => !is_reserved(w) && !is_col_name(w),
            _ => false,
        }
    }
    /// A name of a function parameter or type: no word that only names columns.
    pub fn func_id(&mut self) -> Result<Ident, SqlError> {
        self.ident_if(|w| !is_reserved(w) && !is_col_name(w))
    }
    /// Any word: after a dot or AS.
    pub fn col_label(&mut self) -> Result<Ident, SqlError> {
        self.ident_if(|_| true)
    }
    /// A column label that stands without AS, if there is one.
    pub fn bare_label(&mut self) -> Option<Ident> {
        self.ident_if(is_bare_label).ok()
    }
    pub fn col_id_list(&mut self) -> Result<Vec<Ident>, SqlError> {
        self.parens(|p| p.comma_list(Self::col_id))
    }
    /// A possibly qualified name.
    pub fn object_name(&mut self) -> Result<ObjectName, SqlError> {
        let (pos, start) = (self.pos(), self.span().start);
        let mut parts = vec![self.col_id()?.name];
        while self.is_punct(".") {
            self.next();
            parts.push(self.col_label()?.name);
        }
        Ok(ObjectName { parts, pos, span: self.span_from(start) })
    }
    pub fn string(&mut self) -> Result<String, SqlError> {
        match self.tok() {
            Tok::String(s) => {
                let s = s.clone();
                self.next();
                Ok(s)
            }
            _ => Err(self.error()),
        }
    }
    /// An unsigned integer.
    pub fn integer(&mut self) -> Result<u64, SqlError> {
        match self.tok() {
            Tok::Number(n) => match n.parse() {
                Ok(n) => {
                    self.next();
                    Ok(n)
                }
                Err(_) => Err(self.error()),
            },
            _ => Err(self.error()),
        }
    }
    pub fn signed_integer(&mut self) -> Result<i64, SqlError> {
        let negative = self.eat_op("-");
        if !negative {
            self.eat_op("+");
        }
        let n = i64::try_from(self.integer()?).map_err(|_| self.error())?;
        Ok(if negative { -n } else { n })
    }
    pub fn if_not_exists(&mut self) -> Result<bool, SqlError> {
        // A table may be named `if`.
        if self.is_kw("if") && !self.is_punct_at(1, "(") && !self.is_punct_at(1, ".") {
            self.next();
            self.expect_kws(&["not", "exists"])?;
            return Ok(true);
        }
        Ok(false)
    }
    pub fn if_exists(&mut self) -> Result<bool, SqlError> {
        Ok(self.eat_kws(&["if", "exists"]))
    }
}
