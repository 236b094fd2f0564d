//! Text search: documents (`tsvector`) from text, queries (`tsquery`), matching, ranking.
//!
//! ```text
//!   text ──parser──► tokens ──dict──► lexemes with positions ──► tsvector        query, matching, rank: what is asked of it
//! ```
//!
//! Not here: text and bytes of the two types (`repr::tsearch`), functions that return rows (`table::tsearch`).

use super::lift::Call;
use super::Entry;
use crate::ctx::EvalCtx;
use crate::val;
use repr::error::state;
use repr::jsonb::Jsonb;
use repr::tsearch::{Lexeme, Node, TsQuery, TsVector, POSITION_LIMIT, WORD_BYTES_MAX};
use repr::{ArrayValue, SqlError, Value};

/// Configurations and dictionaries.
pub mod dict;
/// The part of a text that shows a match.
mod headline;
/// Whether a document satisfies a query.
mod matching;
/// Tokens.
pub mod parser;
/// Queries.
mod query;
/// Ranks.
mod rank;

use dict::{Config, Dictionary, Words};
use query::Join;

type Res = Result<Value, SqlError>;

/// A document from a value.
pub fn vector(v: &Value) -> TsVector {
    match v {
        Value::Bytea(b) => TsVector::read(b),
        _ => TsVector::default(),
    }
}

fn tsquery(v: &Value) -> TsQuery {
    match v {
        Value::Bytea(b) => TsQuery::read(b),
        _ => TsQuery::default(),
    }
}

fn text(v: &Value) -> &str {
    match v {
        Value::Text(s) => s,
        _ => "",
    }
}

fn of_vector(v: TsVector) -> Value {
    Value::Bytea(v.to_bytes())
}

fn of_query(q: TsQuery) -> Value {
    Value::Bytea(q.to_bytes())
}

fn elements(v: &Value) -> &[Value] {
    match v {
        Value::Array(a) => &a.elems,
        _ => &[],
    }
}

/// The session's configuration.
pub fn current(ctx: &EvalCtx) -> Result<Config, SqlError> {
    match ctx.catalog.setting("default_text_search_config") {
        Some(name) => Config::of_name(&name),
        None => Ok(Config::English),
    }
}

/// The configuration that is the first argument, or the session's, and the arguments after it.
fn configured<'a>(args: &'a [Value], call: &Call<'_>) -> Result<(Config, &'a [Value]), SqlError> {
    match args {
        [Value::UInt4(oid), rest @ ..] => Ok((Config::of_oid(*oid)?, rest)),
        rest => Ok((current(call.ctx)?, rest)),
    }
}

fn words(config: Config, text: &str) -> Result<TsVector, SqlError> {
    let mut w = Words::default();
    w.add(config, text);
    w.into_vector()
}

/// The number of a weight: 3 for A down to 0 for D.
fn weight(v: &Value) -> Result<u8, SqlError> {
    match text(v).bytes().next().map(|b| b.to_ascii_lowercase()) {
        Some(b @ b'a'..=b'd') => Ok(b'd' - b),
        _ => {
            let shown = match text(v).bytes().next().unwrap_or(0) {
                0 => "\\000".to_owned(),
                b if b.is_ascii() => char::from(b).to_string(),
                b => format!("\\{b:03o}"),
            };
            Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized weight: \"{shown}\"")))
        }
    }
}

fn set_weight(args: &[Value], _: &Call<'_>) -> Res {
    let (mut v, w) = (vector(&args[0]), weight(&args[1])?);
    let only = args.get(2).map(elements);
    for l in &mut v.0 {
        if only.is_none_or(|o| o.iter().any(|x| matches!(x, Value::Text(s) if *s == l.word))) {
            l.places.iter_mut().for_each(|p| p.weight = w);
        }
    }
    Ok(of_vector(v))
}

fn delete(args: &[Value], _: &Call<'_>) -> Res {
    let mut v = vector(&args[0]);
    match &args[1] {
        Value::Text(word) => v.0.retain(|l| l.word != *word),
        gone => v.0.retain(|l| !elements(gone).iter().any(|x| matches!(x, Value::Text(s) if *s == l.word))),
    }
    Ok(of_vector(v))
}

fn filter(args: &[Value], _: &Call<'_>) -> Res {
    let mut mask = 0u8;
    for w in elements(&args[1]) {
        let Value::Text(s) = w else {
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "weight array may not contain nulls"));
        };
        let bit = weight(w).map_err(|_| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized weight: \"{s}\"")))?;
        mask |= 1 << bit;
    }
    let mut v = vector(&args[0]);
    v.0.iter_mut().for_each(|l| l.places.retain(|p| mask >> p.weight & 1 == 1));
    v.0.retain(|l| !l.places.is_empty());
    Ok(of_vector(v))
}

fn from_array(args: &[Value], _: &Call<'_>) -> Res {
    let mut out = Vec::new();
    for e in elements(&args[0]) {
        match e {
            Value::Text(s) if s.is_empty() => {
                return Err(SqlError::new(state::ZERO_LENGTH_CHARACTER_STRING, "lexeme array may not contain empty strings"));
            }
            Value::Text(s) if s.len() > WORD_BYTES_MAX => {
                return Err(repr::tsearch::too_large(format!("word is too long ({} bytes, max {WORD_BYTES_MAX} bytes)", s.len())));
            }
            Value::Text(s) => out.push(Lexeme { word: s.clone(), places: Vec::new() }),
            _ => return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "lexeme array may not contain nulls")),
        }
    }
    TsVector::of(out).map(of_vector)
}

/// One document after the other: the positions of the second come after those of the first.
fn concat(args: &[Value], _: &Call<'_>) -> Res {
    let (a, b) = (vector(&args[0]), vector(&args[1]));
    let shift = a.0.iter().filter_map(|l| l.places.last()).map(|p| p.pos).max().unwrap_or(0);
    let mut out = a.0;
    for mut l in b.0 {
        l.places.iter_mut().for_each(|p| p.pos = p.pos.saturating_add(shift).min(POSITION_LIMIT - 1));
        out.push(l);
    }
    TsVector::of(out).map(of_vector)
}

fn strip(args: &[Value], _: &Call<'_>) -> Res {
    let mut v = vector(&args[0]);
    v.0.iter_mut().for_each(|l| l.places.clear());
    Ok(of_vector(v))
}

/// What of a JSON document becomes words.
struct Wanted {
    keys: bool,
    strings: bool,
    numbers: bool,
    booleans: bool,
}

/// What the argument `filter` asks for. Errors: 22023.
fn wanted(filter: &Jsonb) -> Result<Wanted, SqlError> {
    let bad = |what: String| SqlError::new(state::INVALID_PARAMETER_VALUE, what);
    let one = [filter];
    let many: Vec<&Jsonb>;
    let flags: &[&Jsonb] = match filter {
        Jsonb::Array(list) => {
            many = list.iter().collect();
            &many
        }
        Jsonb::Object(_) => return Err(bad("wrong flag type, only arrays and scalars are allowed".into())),
        _ => &one,
    };
    let mut out = Wanted { keys: false, strings: false, numbers: false, booleans: false };
    for f in flags {
        let Jsonb::String(s) = f else {
            return Err(
                bad("flag array element is not a string".into()).with_hint("Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".")
            );
        };
        match s.to_ascii_lowercase().as_str() {
            "all" => out = Wanted { keys: true, strings: true, numbers: true, booleans: true },
            "key" => out.keys = true,
            "string" => out.strings = true,
            "numeric" => out.numbers = true,
            "boolean" => out.booleans = true,
            _ => {
                return Err(bad(format!("wrong flag in flag array: \"{s}\""))
                    .with_hint("Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\"."));
            }
        }
    }
    Ok(out)
}

fn add_text(config: Config, text: &str, out: &mut Words) {
    let before = out.list.len();
    out.add(config, text);
    out.gap(before);
}

fn add_jsonb(config: Config, j: &Jsonb, want: &Wanted, out: &mut Words) {
    match j {
        Jsonb::Null => {}
        Jsonb::Bool(b) if want.booleans => add_text(config, if *b { "true" } else { "false" }, out),
        Jsonb::Number(n) if want.numbers => {
            let mut s = String::new();
            n.print(&mut s);
            add_text(config, &s, out);
        }
        Jsonb::String(s) if want.strings => add_text(config, s, out),
        Jsonb::Array(list) => list.iter().for_each(|j| add_jsonb(config, j, want, out)),
        Jsonb::Object(entries) => {
            for (k, v) in entries {
                if want.keys {
                    add_text(config, k, out);
                }
                add_jsonb(config, v, want, out);
            }
        }
        _ => {}
    }
}

/// As [`add_jsonb`], in the order of the text.
fn add_json(config: Config, j: &str, want: &Wanted, out: &mut Words) -> Result<(), SqlError> {
    use super::json_text::{as_text, entries, items, kind, Kind};
    match kind(j) {
        Kind::Object => {
            for (k, v) in entries(j) {
                if want.keys {
                    add_text(config, &k, out);
                }
                add_json(config, v, want, out)?;
            }
        }
        Kind::Array => items(j).into_iter().try_for_each(|v| add_json(config, v, want, out))?,
        _ => {
            let wanted = match j.trim_start().bytes().next() {
                Some(b'"') => want.strings,
                Some(b't' | b'f') => want.booleans,
                Some(b'n') | None => false,
                _ => want.numbers,
            };
            if let Some(s) = as_text(j)?.filter(|_| wanted) {
                add_text(config, &s, out);
            }
        }
    }
    Ok(())
}

fn json_vector(args: &[Value], call: &Call<'_>) -> Res {
    let (config, args) = configured(args, call)?;
    let want = match args.get(1) {
        Some(Value::Jsonb(f)) => wanted(f)?,
        _ => Wanted { keys: false, strings: true, numbers: false, booleans: false },
    };
    let mut out = Words::default();
    match &args[0] {
        Value::Jsonb(j) => add_jsonb(config, j, &want, &mut out),
        j => add_json(config, text(j), &want, &mut out)?,
    }
    out.into_vector().map(of_vector)
}

/// Of a text, or of each string of a JSON document.
fn headlines(args: &[Value], call: &Call<'_>) -> Res {
    let (config, args) = configured(args, call)?;
    let options = headline::Options::parse(args.get(2).map_or("", text))?;
    let query = tsquery(&args[1]);
    let one = |s: &str| headline::headline(config, s, &query, &options);
    Ok(match (&args[0], &call.ret.ty) {
        (Value::Jsonb(j), _) => Value::Jsonb(Box::new(headlines_of(j, &one))),
        (Value::Text(s), repr::SqlType::Json) => {
            let mut out = String::new();
            json_headlines(s, &one, &mut out);
            Value::Text(out)
        }
        (other, _) => Value::Text(one(text(other))),
    })
}

fn headlines_of(j: &Jsonb, one: &dyn Fn(&str) -> String) -> Jsonb {
    match j {
        Jsonb::String(s) => Jsonb::String(one(s)),
        Jsonb::Array(list) => Jsonb::Array(list.iter().map(|j| headlines_of(j, one)).collect()),
        Jsonb::Object(entries) => Jsonb::Object(entries.iter().map(|(k, v)| (k.clone(), headlines_of(v, one))).collect()),
        other => other.clone(),
    }
}

/// As [`headlines_of`], in the order of the text and without blanks.
fn json_headlines(j: &str, one: &dyn Fn(&str) -> String, out: &mut String) {
    use super::json_text::{entries, items, kind, unquote, Kind};
    let j = j.trim();
    match kind(j) {
        Kind::Object => {
            out.push('{');
            for (i, (k, v)) in entries(j).into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                repr::jsonb::escape_into(&k, out);
                out.push(':');
                json_headlines(v, one, out);
            }
            out.push('}');
        }
        Kind::Array => {
            let list = items(j);
            out.push('[');
            for (i, v) in list.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json_headlines(v, one, out);
            }
            out.push(']');
        }
        _ if j.starts_with('"') => repr::jsonb::escape_into(&one(&unquote(j)), out),
        _ => out.push_str(j),
    }
}

fn rank_args(args: &[Value]) -> Result<(rank::Weights, TsVector, TsQuery, i32), SqlError> {
    let (w, rest) = match args {
        [Value::Array(a), rest @ ..] => {
            let ArrayValue { elems, dims } = &**a;
            let given: Vec<Option<f32>> = elems.iter().map(|v| if let Value::Float4(f) = v { Some(*f) } else { None }).collect();
            (rank::weights(&given, dims.len())?, rest)
        }
        rest => (rank::DEFAULT, rest),
    };
    let method = rest.get(2).and_then(Value::as_i64).unwrap_or(0) as i32;
    Ok((w, vector(&rest[0]), tsquery(&rest[1]), method))
}

fn matched(a: &Value, b: &Value) -> Value {
    Value::Bool(matching::matches(&vector(a), &tsquery(b)))
}

fn lexize(args: &[Value], _: &Call<'_>) -> Res {
    let oid = args[0].as_i64().unwrap_or(0);
    let d = Dictionary::ALL.into_iter().find(|d| i64::from(d.oid()) == oid);
    let d = d.ok_or_else(|| SqlError::new(state::INTERNAL_ERROR, format!("cache lookup failed for text search dictionary {oid}")))?;
    Ok(Value::array(d.lexeme(text(&args[1])).into_iter().map(Value::Text).collect()))
}

pub const FUNCS: &[Entry] = &[
    val!(? ["to_tsvector", "to_tsvector_byid"], |a, c| {
        let (config, a) = configured(a, c)?;
        words(config, text(&a[0])).map(of_vector)
    }),
    val!(? ["jsonb_string_to_tsvector", "json_string_to_tsvector", "jsonb_string_to_tsvector_byid", "json_string_to_tsvector_byid",
        "jsonb_to_tsvector", "jsonb_to_tsvector_byid", "json_to_tsvector", "json_to_tsvector_byid"], json_vector),
    val!(? ["to_tsquery", "to_tsquery_byid"], |a, c| {
        let (config, a) = configured(a, c)?;
        query::to_query(config, text(&a[0])).map(of_query)
    }),
    val!(? ["plainto_tsquery", "plainto_tsquery_byid"], |a, c| {
        let (config, a) = configured(a, c)?;
        query::plain(config, text(&a[0]), Join::And).map(of_query)
    }),
    val!(? ["phraseto_tsquery", "phraseto_tsquery_byid"], |a, c| {
        let (config, a) = configured(a, c)?;
        query::plain(config, text(&a[0]), Join::Phrase).map(of_query)
    }),
    val!(? ["websearch_to_tsquery", "websearch_to_tsquery_byid"], |a, c| {
        let (config, a) = configured(a, c)?;
        query::web(config, text(&a[0])).map(of_query)
    }),
    val!(? ["get_current_ts_config"], |_, c| current(c.ctx).map(|c| Value::UInt4(c.oid()))),
    val!(["ts_match_vq"], |a, _| Ok(matched(&a[0], &a[1]))),
    val!(["ts_match_qv"], |a, _| Ok(matched(&a[1], &a[0]))),
    val!(? ["ts_match_tq"], |a, c| {
        let v = words(current(c.ctx)?, text(&a[0]))?;
        Ok(Value::Bool(matching::matches(&v, &tsquery(&a[1]))))
    }),
    val!(? ["ts_match_tt"], |a, c| {
        let config = current(c.ctx)?;
        Ok(Value::Bool(matching::matches(&words(config, text(&a[0]))?, &query::plain(config, text(&a[1]), Join::And)?)))
    }),
    val!(? ["tsvector_concat"], concat),
    val!(["tsvector_strip"], strip),
    val!(["tsvector_length"], |a, _| Ok(Value::Int4(vector(&a[0]).0.len() as i32))),
    val!(? ["tsvector_setweight", "tsvector_setweight_by_filter"], set_weight),
    val!(["tsvector_delete_str", "tsvector_delete_arr"], delete),
    val!(? ["tsvector_filter"], filter),
    val!(["tsvector_to_array"], |a, _| Ok(Value::array(vector(&a[0]).0.into_iter().map(|l| Value::Text(l.word)).collect()))),
    val!(? ["array_to_tsvector"], from_array),
    val!(? ["tsquery_and"], |a, _| query::both(tsquery(&a[0]), tsquery(&a[1]), Node::And).map(of_query)),
    val!(? ["tsquery_or"], |a, _| query::both(tsquery(&a[0]), tsquery(&a[1]), Node::Or).map(of_query)),
    val!(? ["tsquery_not"], |a, _| query::not(tsquery(&a[0])).map(of_query)),
    val!(? ["tsquery_phrase"], |a, _| query::phrase(tsquery(&a[0]), tsquery(&a[1]), 1).map(of_query)),
    val!(? ["tsquery_phrase_distance"], |a, _| {
        query::phrase(tsquery(&a[0]), tsquery(&a[1]), a[2].as_i64().unwrap_or(1) as i32).map(of_query)
    }),
    val!(["tsq_mcontains"], |a, _| Ok(Value::Bool(query::contains(&tsquery(&a[0]), &tsquery(&a[1]))))),
    val!(["tsq_mcontained"], |a, _| Ok(Value::Bool(query::contains(&tsquery(&a[1]), &tsquery(&a[0]))))),
    val!(["tsquery_numnode"], |a, _| Ok(Value::Int4(tsquery(&a[0]).0.map_or(0, |n| n.items() as i32)))),
    val!(["tsquerytree"], |a, _| Ok(Value::Text(query::query_tree(&tsquery(&a[0]))))),
    val!(? ["tsquery_rewrite"], |a, _| query::rewrite(tsquery(&a[0]), &tsquery(&a[1]), &tsquery(&a[2])).map(of_query)),
    val!(? ["ts_rank_wttf", "ts_rank_wtt", "ts_rank_ttf", "ts_rank_tt"], |a, _| {
        let (w, v, q, method) = rank_args(a)?;
        Ok(Value::Float4(rank::rank(&w, &v, &q, method)))
    }),
    val!(? ["ts_rankcd_wttf", "ts_rankcd_wtt", "ts_rankcd_ttf", "ts_rankcd_tt"], |a, _| {
        let (w, v, q, method) = rank_args(a)?;
        Ok(Value::Float4(rank::rank_cover(&w, &v, &q, method)))
    }),
    val!(? ["ts_headline", "ts_headline_opt", "ts_headline_byid", "ts_headline_byid_opt", "ts_headline_json", "ts_headline_json_opt",
        "ts_headline_json_byid", "ts_headline_json_byid_opt", "ts_headline_jsonb", "ts_headline_jsonb_opt", "ts_headline_jsonb_byid",
        "ts_headline_jsonb_byid_opt"], headlines),
    val!(? ["ts_lexize"], lexize),
    val!(? ["tsvectorin", "tsqueryin"], |a, c| super::cast::io_cast(&a[0], &c.arg_types[0].ty, c.ret, c.ctx)),
    val!(["tsvectorout", "tsqueryout"], |a, c| Ok(Value::Text(super::cast::text_out(&a[0], &c.arg_types[0].ty, c.ctx)))),
    val!(["tsvectorsend"], |a, _| Ok(Value::Bytea(vector(&a[0]).to_wire()))),
    val!(["tsquerysend"], |a, _| Ok(Value::Bytea(tsquery(&a[0]).to_wire()))),
];
