//! PostgreSQL's encodings by number, and `to_ascii`. Not here: what text is in them (`repr::encoding`).

use super::lift::Str;
use super::Entry;
use crate::{f1, f2};
use repr::encoding::Encoding;
use repr::error::state;
use repr::SqlError;

/// Each encoding by its number: its name, and the most bytes that a character takes.
#[rustfmt::skip]
const ENCODINGS: [(&str, i32); 42] = [
    ("SQL_ASCII", 1),
    ("EUC_JP", 3),
    ("EUC_CN", 3),
    ("EUC_KR", 3),
    ("EUC_TW", 4),
    ("EUC_JIS_2004", 3),
    ("UTF8", 4),
    ("MULE_INTERNAL", 4),
    ("LATIN1", 1),
    ("LATIN2", 1),
    ("LATIN3", 1),
    ("LATIN4", 1),
    ("LATIN5", 1),
    ("LATIN6", 1),
    ("LATIN7", 1),
    ("LATIN8", 1),
    ("LATIN9", 1),
    ("LATIN10", 1),
    ("WIN1256", 1),
    ("WIN1258", 1),
    ("WIN866", 1),
    ("WIN874", 1),
    ("KOI8R", 1),
    ("WIN1251", 1),
    ("WIN1252", 1),
    ("ISO_8859_5", 1),
    ("ISO_8859_6", 1),
    ("ISO_8859_7", 1),
    ("ISO_8859_8", 1),
    ("WIN1250", 1),
    ("WIN1253", 1),
    ("WIN1254", 1),
    ("WIN1255", 1),
    ("WIN1257", 1),
    ("KOI8U", 1),
    ("SJIS", 2),
    ("BIG5", 2),
    ("GBK", 2),
    ("UHC", 2),
    ("GB18030", 4),
    ("JOHAB", 3),
    ("SHIFT_JIS_2004", 2),
];

const UTF8: usize = 6;

fn number(name: &str) -> Option<usize> {
    let canonical = Encoding::parse(name).ok().flatten().map(|e| e.name());
    let same = |known: &str| known.eq_ignore_ascii_case(canonical.unwrap_or(name));
    ENCODINGS.iter().position(|e| same(e.0))
}

fn entry(n: i32) -> Option<&'static (&'static str, i32)> {
    usize::try_from(n).ok().and_then(|n| ENCODINGS.get(n))
}

/// What the bytes of a code page are without their marks: the encoding, the first byte, a sign for each byte from there on.
const PLAIN: [(&str, u8, &str); 4] = [
    ("LATIN1", 160, "  cL Y  \"Ca  -R     'u .,      ?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"),
    ("LATIN2", 160, " A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt."),
    ("LATIN9", 160, "  cL YS sCa  -R     Zu .z   EeY?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"),
    ("WIN1250", 128, "  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt."),
];

/// Text whose bytes are taken for those of an encoding, in ASCII. Errors: 0A000 for an encoding that it does not know.
fn ascii(text: &str, encoding: usize) -> Result<String, SqlError> {
    let name = ENCODINGS[encoding].0;
    let unknown = || SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("encoding conversion from {name} to ASCII not supported"));
    let (_, first, signs) = PLAIN.iter().find(|p| p.0 == name).ok_or_else(unknown)?;
    let sign = |b: u8| match b {
        b if b.is_ascii() => char::from(b),
        b => b.checked_sub(*first).and_then(|n| signs.as_bytes().get(usize::from(n))).map_or(' ', |s| char::from(*s)),
    };
    Ok(text.bytes().map(sign).collect())
}

pub const FUNCS: &[Entry] = &[
    f1!(["PG_encoding_to_char"], i32 => &'static str, |n| entry(n).map_or("", |e| e.0)),
    f1!(["PG_char_to_encoding"], Str => i32, |s| number(s).map_or(-1, |n| n as i32)),
    f1!(["pg_encoding_max_length_sql"], i32 => Option<i32>, |n| entry(n).map(|e| e.1)),
    f1!(? ["to_ascii_default"], Str => String, |s| ascii(s, UTF8)),
    f2!(? ["to_ascii_enc"], Str, i32 => String, |s, n| {
        let unknown = || SqlError::new(state::UNDEFINED_OBJECT, format!("{n} is not a valid encoding code"));
        ascii(s, usize::try_from(n).ok().filter(|n| *n < ENCODINGS.len()).ok_or_else(unknown)?)
    }),
    f2!(? ["to_ascii_encname"], Str, Str => String, |s, name| {
        ascii(s, number(name).ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("{name} is not a valid encoding name")))?)
    }),
];
