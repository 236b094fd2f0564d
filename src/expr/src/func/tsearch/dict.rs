//! Configurations and dictionaries of text search: tokens to lexemes.
//!
//! Configurations are `simple` (every word in lower case) and `english` (words without the stop words, stemmed by Snowball). Others do not
//! exist. Their OIDs are those of PostgreSQL 15.

use super::parser::{self, Parser};
use crate::func::system::name_parts;
use repr::error::state;
use repr::tsearch::{Lexeme, Place, TsVector, POSITION_LIMIT, WORD_BYTES_MAX};
use repr::SqlError;
use rust_stemmers::{Algorithm, Stemmer};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Config {
    Simple,
    English,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dictionary {
    Simple,
    EnglishStem,
}

/// The default parser's OID.
pub const PARSER: u32 = 3722;

impl Config {
    pub const ALL: [Config; 2] = [Config::Simple, Config::English];

    pub fn oid(self) -> u32 {
        match self {
            Config::Simple => 3748,
            Config::English => 13164,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Config::Simple => "simple",
            Config::English => "english",
        }
    }

    /// Errors: XX000 for an OID that no configuration has.
    pub fn of_oid(oid: u32) -> Result<Config, SqlError> {
        let found = Config::ALL.into_iter().find(|c| c.oid() == oid);
        found.ok_or_else(|| SqlError::new(state::INTERNAL_ERROR, format!("cache lookup failed for text search configuration {oid}")))
    }

    /// A configuration by its possibly qualified name. Errors: 42602, 42704.
    pub fn of_name(name: &str) -> Result<Config, SqlError> {
        let parts = name_parts(name)?;
        let plain = match parts.as_slice() {
            [name] => name.as_str(),
            [schema, name] if schema == "pg_catalog" => name.as_str(),
            [_, _] => "",
            [_, _, _] => {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cross-database references are not implemented: {}", parts.join("."))));
            }
            _ => return Err(SqlError::new(state::SYNTAX_ERROR, format!("improper qualified name (too many dotted names): {}", parts.join(".")))),
        };
        let found = Config::ALL.into_iter().find(|c| c.name() == plain);
        found.ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("text search configuration \"{name}\" does not exist")))
    }

    /// What makes lexemes of a kind of token; `None`: nothing does.
    pub fn dictionary(self, kind: u8) -> Option<Dictionary> {
        match (parser::KINDS[usize::from(kind) - 1].0, self) {
            ("blank" | "tag" | "protocol" | "entity", _) => None,
            ("asciiword" | "word" | "hword_part" | "hword_asciipart" | "asciihword" | "hword", Config::English) => Some(Dictionary::EnglishStem),
            _ => Some(Dictionary::Simple),
        }
    }
}

impl Dictionary {
    pub const ALL: [Dictionary; 2] = [Dictionary::Simple, Dictionary::EnglishStem];

    pub fn oid(self) -> u32 {
        match self {
            Dictionary::Simple => 3765,
            Dictionary::EnglishStem => 13163,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Dictionary::Simple => "simple",
            Dictionary::EnglishStem => "english_stem",
        }
    }

    /// A dictionary by its possibly qualified name. Errors: 42704.
    pub fn of_name(name: &str) -> Result<Dictionary, SqlError> {
        let plain = name.trim().trim_start_matches("pg_catalog.").to_ascii_lowercase();
        let found = Dictionary::ALL.into_iter().find(|d| d.name() == plain);
        found.ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("text search dictionary \"{name}\" does not exist")))
    }

    /// A word's lexeme; `None` for a stop word.
    pub fn lexeme(self, word: &str) -> Option<String> {
        // Postgres lowers character by character.
        let lower: String = word
            .chars()
            .map(|c| {
                let mut l = c.to_lowercase();
                match (l.next(), l.next()) {
                    (Some(l), None) => l,
                    _ => c,
                }
            })
            .collect();
        match self {
            Dictionary::Simple => Some(lower),
            // Words of this length are no words.
            Dictionary::EnglishStem if lower.len() > 1000 => Some(lower),
            Dictionary::EnglishStem if lower.is_empty() || STOP_WORDS.binary_search(&lower.as_str()).is_ok() => None,
            Dictionary::EnglishStem => Some(Stemmer::create(Algorithm::English).stem(&lower).into_owned()),
        }
    }
}

/// The words of a text with their positions: what `to_tsvector` and `to_tsquery` are made from. Several texts may follow one another.
#[derive(Default)]
pub struct Words {
    pub list: Vec<(String, u16)>,
    pos: u32,
}

impl Words {
    pub fn add(&mut self, config: Config, text: &str) {
        let mut p = Parser::new(text);
        while let Some((kind, token)) = p.next_token() {
            // Words too long to be indexed are passed over.
            let Some(dictionary) = config.dictionary(kind).filter(|_| token.len() < WORD_BYTES_MAX) else { continue };
            self.pos += 1;
            if let Some(word) = dictionary.lexeme(token) {
                self.list.push((word, self.pos.min(u32::from(POSITION_LIMIT) - 1) as u16));
            }
        }
    }

    /// Leaves a gap, so that no phrase reaches from one text into the next, if the text since `before` had words.
    pub fn gap(&mut self, before: usize) {
        if self.list.len() > before {
            self.pos += 1;
        }
    }

    /// Errors: 54000.
    pub fn into_vector(self) -> Result<TsVector, SqlError> {
        TsVector::of(self.list.into_iter().map(|(word, pos)| Lexeme { word, places: vec![Place { pos, weight: 0 }] }).collect())
    }
}

/// Snowball's English stop words, sorted.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "now",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "s",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn english_stems() {
        let stem = |w| Dictionary::EnglishStem.lexeme(w);
        assert_eq!(stem("Running").as_deref(), Some("run"));
        assert_eq!(stem("skies").as_deref(), Some("sky"));
        assert_eq!(stem("The"), None);
    }
}
