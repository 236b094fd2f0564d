//! Character encodings that clients speak, by PostgreSQL's names. Inside, text is UTF-8.
//!
//! Promise: text that an encoding cannot hold is 22P05, bytes that are none of its text are 22021 (22P05 where they are well-formed and stand for
//! no character of UTF-8), as PostgreSQL has it. SQL_ASCII is bytes that must be UTF-8. Not here: EUC_TW, JOHAB, MULE_INTERNAL and the two of JIS X 0213, which are known by name only.

use crate::error::state;
use crate::SqlError;
use encoding_rs as rs;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One of PostgreSQL's encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    #[default]
    Utf8,
    SqlAscii,
    /// ISO 8859-1: bytes are code points.
    Latin1,
    /// ISO 8859-9, which differs from Latin 1 in six letters.
    Latin5,
    /// One that the tables of `encoding_rs` know.
    Table(Table),
}

/// Name, and what it is in the web's terms.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    name: &'static str,
    encoding: &'static rs::Encoding,
    /// Windows' code pages have holes, where the web's have control characters.
    holes: bool,
}

impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.name == other.name
    }
}
impl Eq for Table {}

const fn iso(name: &'static str, encoding: &'static rs::Encoding) -> Table {
    Table { name, encoding, holes: false }
}
const fn windows(name: &'static str, encoding: &'static rs::Encoding) -> Table {
    Table { name, encoding, holes: true }
}

static TABLES: [Table; 31] = [
    iso("LATIN2", rs::ISO_8859_2),
    iso("LATIN3", rs::ISO_8859_3),
    iso("LATIN4", rs::ISO_8859_4),
    iso("LATIN6", rs::ISO_8859_10),
    iso("LATIN7", rs::ISO_8859_13),
    iso("LATIN8", rs::ISO_8859_14),
    iso("LATIN9", rs::ISO_8859_15),
    iso("LATIN10", rs::ISO_8859_16),
    iso("ISO_8859_5", rs::ISO_8859_5),
    iso("ISO_8859_6", rs::ISO_8859_6),
    iso("ISO_8859_7", rs::ISO_8859_7),
    iso("ISO_8859_8", rs::ISO_8859_8),
    windows("WIN1250", rs::WINDOWS_1250),
    windows("WIN1251", rs::WINDOWS_1251),
    windows("WIN1252", rs::WINDOWS_1252),
    windows("WIN1253", rs::WINDOWS_1253),
    windows("WIN1254", rs::WINDOWS_1254),
    windows("WIN1255", rs::WINDOWS_1255),
    windows("WIN1256", rs::WINDOWS_1256),
    windows("WIN1257", rs::WINDOWS_1257),
    windows("WIN1258", rs::WINDOWS_1258),
    windows("WIN874", rs::WINDOWS_874),
    iso("WIN866", rs::IBM866),
    iso("KOI8R", rs::KOI8_R),
    iso("KOI8U", rs::KOI8_U),
    iso("EUC_JP", rs::EUC_JP),
    iso("SJIS", rs::SHIFT_JIS),
    iso("BIG5", rs::BIG5),
    iso("GBK", rs::GBK),
    iso("GB18030", rs::GB18030),
    iso("UHC", rs::EUC_KR),
];

/// Parts of the tables: the two-byte characters of which both bytes are beyond ASCII.
static EUC_CN: Table = iso("EUC_CN", rs::GBK);
static EUC_KR: Table = iso("EUC_KR", rs::EUC_KR);

/// Other spellings, letters and digits only, in lower case.
const ALIASES: &[(&str, &str)] = &[
    ("unicode", "utf8"),
    ("iso88591", "latin1"),
    ("iso88592", "latin2"),
    ("iso88593", "latin3"),
    ("iso88594", "latin4"),
    ("iso88599", "latin5"),
    ("iso885910", "latin6"),
    ("iso885913", "latin7"),
    ("iso885914", "latin8"),
    ("iso885915", "latin9"),
    ("iso885916", "latin10"),
    ("abc", "win1258"),
    ("tcvn", "win1258"),
    ("tcvn5712", "win1258"),
    ("vscii", "win1258"),
    ("win", "win1251"),
    ("alt", "win866"),
    ("koi8", "koi8r"),
    ("windows1250", "win1250"),
    ("windows1251", "win1251"),
    ("windows1252", "win1252"),
    ("windows1253", "win1253"),
    ("windows1254", "win1254"),
    ("windows1255", "win1255"),
    ("windows1256", "win1256"),
    ("windows1257", "win1257"),
    ("windows1258", "win1258"),
    ("windows866", "win866"),
    ("windows874", "win874"),
    ("windows932", "sjis"),
    ("windows936", "gbk"),
    ("windows949", "uhc"),
    ("windows950", "big5"),
    ("mskanji", "sjis"),
    ("shiftjis", "sjis"),
];

const UNSUPPORTED: &[&str] = &["EUC_TW", "JOHAB", "MULE_INTERNAL", "EUC_JIS_2004", "SHIFT_JIS_2004"];

fn key(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ")
}

impl Table {
    /// Whether the bytes of one character are such as the encoding has, be there a character or not.
    fn well_formed(&self, bytes: &[u8]) -> bool {
        let euc = |b: &u8| (0xa1..=0xfe).contains(b);
        match (self.name, bytes) {
            (_, [first]) if *first < 0x80 => true,
            ("EUC_JP", [0x8e, kana]) => (0xa1..=0xdf).contains(kana),
            ("EUC_JP", [0x8f, rest @ ..]) => rest.iter().all(euc),
            ("EUC_JP" | "EUC_CN" | "EUC_KR", all) => all.len() == 2 && all.iter().all(euc),
            ("SJIS", [first]) => (0xa1..=0xdf).contains(first),
            ("SJIS", [first, second]) => matches!(first, 0x81..=0x9f | 0xe0..=0xfc) && matches!(second, 0x40..=0x7e | 0x80..=0xfc),
            ("GB18030", [_, second]) => matches!(second, 0x40..=0x7e | 0x80..=0xfe),
            ("BIG5" | "GBK" | "UHC" | "GB18030", [first]) => *first < 0x80,
            _ => true,
        }
    }

    /// Whether what the web reads there is not PostgreSQL's: control characters in the holes of code pages, characters of private use, the Hong
    /// Kong characters beside Big 5.
    fn foreign(&self, bytes: &[u8], text: &str) -> bool {
        let hole = self.holes && text.chars().any(|c| ('\u{80}'..='\u{9f}').contains(&c));
        let private = matches!(self.name, "SJIS" | "GBK" | "BIG5") && text.chars().any(|c| ('\u{e000}'..='\u{f8ff}').contains(&c));
        hole || private || self.name == "BIG5" && bytes.len() == 2 && !(0xa1..=0xf9).contains(&bytes[0])
    }
}

/// The characters of JIS X 0212, three bytes in EUC_JP, which the web reads and does not write.
fn supplement() -> &'static HashMap<char, [u8; 3]> {
    static SUPPLEMENT: OnceLock<HashMap<char, [u8; 3]>> = OnceLock::new();
    SUPPLEMENT.get_or_init(|| {
        let mut out = HashMap::new();
        for (a, b) in (0xa1..=0xfe).flat_map(|a| (0xa1..=0xfe).map(move |b| (a, b))) {
            let bytes = [0x8f, a, b];
            let (text, wrong) = rs::EUC_JP.decode_without_bom_handling(&bytes);
            if let (false, Some(c)) = (wrong, text.chars().next()) {
                out.entry(c).or_insert(bytes);
            }
        }
        out
    })
}

impl Encoding {
    /// By name, in any spelling that PostgreSQL knows. `None`: there is no such encoding. Errors: 0A000 for those that are not read here.
    pub fn parse(name: &str) -> Result<Option<Encoding>, SqlError> {
        let given = key(name);
        let wanted = ALIASES.iter().find(|a| a.0 == given).map_or(given.as_str(), |a| a.1);
        if let Some(known) = UNSUPPORTED.iter().find(|u| key(u) == wanted) {
            return Err(SqlError::unsupported(format!("encoding {known}"), "use UTF8"));
        }
        let table = TABLES.iter().chain([&EUC_CN, &EUC_KR]).find(|t| key(t.name) == wanted);
        Ok(match wanted {
            "utf8" => Some(Encoding::Utf8),
            "sqlascii" => Some(Encoding::SqlAscii),
            "latin1" => Some(Encoding::Latin1),
            "latin5" => Some(Encoding::Latin5),
            _ => table.map(|t| Encoding::Table(*t)),
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF8",
            Encoding::SqlAscii => "SQL_ASCII",
            Encoding::Latin1 => "LATIN1",
            Encoding::Latin5 => "LATIN5",
            Encoding::Table(t) => t.name,
        }
    }

    /// Whether its text is our bytes.
    pub fn is_utf8(&self) -> bool {
        matches!(self, Encoding::Utf8 | Encoding::SqlAscii)
    }

    /// Text from bytes. Errors: 22021, 22P05.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, SqlError> {
        if let Some(at) = bytes.iter().position(|b| *b == 0) {
            return Err(self.invalid(&bytes[at..=at]));
        }
        match self {
            Encoding::Utf8 | Encoding::SqlAscii => match std::str::from_utf8(bytes) {
                Ok(s) => Ok(Cow::Borrowed(s)),
                Err(e) => {
                    let rest = &bytes[e.valid_up_to()..];
                    Err(Encoding::Utf8.invalid(&rest[..utf8_len(rest[0]).min(rest.len())]))
                }
            },
            _ if bytes.is_ascii() => Ok(std::str::from_utf8(bytes).map_or(Cow::Borrowed(""), Cow::Borrowed)),
            Encoding::Latin1 => Ok(Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect())),
            Encoding::Latin5 => Ok(Cow::Owned(bytes.iter().map(|b| latin5(*b)).collect())),
            Encoding::Table(t) => {
                let mut out = String::with_capacity(bytes.len() * 2);
                let mut rest = bytes;
                while !rest.is_empty() {
                    let len = self.char_len(rest);
                    let one = &rest[..len.min(rest.len())];
                    if one.len() < len || !t.well_formed(one) {
                        return Err(self.invalid(one));
                    }
                    let (text, wrong) = t.encoding.decode_without_bom_handling(one);
                    if wrong || t.foreign(one, &text) {
                        let m = format!("character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"UTF8\"", hex(one), self.name());
                        return Err(SqlError::new(state::UNTRANSLATABLE_CHARACTER, m));
                    }
                    out.push_str(&text);
                    rest = &rest[len..];
                }
                Ok(Cow::Owned(out))
            }
        }
    }

    /// How many bytes the first character takes, by its first byte.
    fn char_len(&self, bytes: &[u8]) -> usize {
        let first = bytes.first().copied().unwrap_or(0);
        let two = usize::from(first >= 0x80) + 1;
        match self.name() {
            "EUC_JP" if first == 0x8f => 3,
            "SJIS" if (0xa1..=0xdf).contains(&first) => 1,
            "GB18030" if first >= 0x80 && bytes.get(1).is_some_and(|b| (0x30..=0x39).contains(b)) => 4,
            "EUC_JP" | "SJIS" | "BIG5" | "GBK" | "GB18030" | "UHC" | "EUC_CN" | "EUC_KR" => two,
            _ => 1,
        }
    }

    fn invalid(&self, bytes: &[u8]) -> SqlError {
        SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, format!("invalid byte sequence for encoding \"{}\": {}", self.name(), hex(bytes)))
    }

    /// Bytes of a text. Errors: 22P05.
    pub fn encode<'a>(&self, text: &'a str) -> Result<Cow<'a, [u8]>, SqlError> {
        if self.is_utf8() || text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let mut out = Vec::with_capacity(text.len());
        let mut buffer = [0; 4];
        for c in text.chars() {
            if !self.put(c, &mut out) {
                let bytes = hex(c.encode_utf8(&mut buffer).as_bytes());
                let m = format!("character with byte sequence {bytes} in encoding \"UTF8\" has no equivalent in encoding \"{}\"", self.name());
                return Err(SqlError::new(state::UNTRANSLATABLE_CHARACTER, m));
            }
        }
        Ok(Cow::Owned(out))
    }

    /// As [`Encoding::encode`], with a question mark for what the encoding does not have: for messages about errors.
    pub fn encode_lossy<'a>(&self, text: &'a str) -> Cow<'a, [u8]> {
        self.encode(text).unwrap_or_else(|_| {
            let mut out = Vec::with_capacity(text.len());
            for c in text.chars() {
                if !self.put(c, &mut out) {
                    out.push(b'?');
                }
            }
            Cow::Owned(out)
        })
    }

    /// Appends a character; false if there is none like it.
    fn put(&self, c: char, out: &mut Vec<u8>) -> bool {
        if c.is_ascii() {
            out.push(c as u8);
            return true;
        }
        match self {
            Encoding::Utf8 | Encoding::SqlAscii => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                true
            }
            Encoding::Latin1 | Encoding::Latin5 => {
                let byte = (0x80..=0xff).find(|b| if *self == Encoding::Latin1 { char::from(*b) } else { latin5(*b) } == c);
                out.extend(byte);
                byte.is_some()
            }
            Encoding::Table(t) if t.holes && ('\u{80}'..='\u{9f}').contains(&c) => false,
            Encoding::Table(t) => {
                let mut buffer = [0; 4];
                let (bytes, _, wrong) = t.encoding.encode(c.encode_utf8(&mut buffer));
                if wrong && t.name == "EUC_JP" {
                    let three = supplement().get(&c);
                    out.extend(three.into_iter().flatten());
                    return three.is_some();
                }
                if wrong || !t.well_formed(&bytes) || t.foreign(&bytes, c.encode_utf8(&mut [0; 4])) {
                    return false;
                }
                out.extend_from_slice(&bytes);
                true
            }
        }
    }
}

fn latin5(b: u8) -> char {
    match b {
        0xd0 => 'Ğ',
        0xdd => 'İ',
        0xde => 'Ş',
        0xf0 => 'ğ',
        0xfd => 'ı',
        0xfe => 'ş',
        other => char::from(other),
    }
}

fn utf8_len(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

/// Bytes that come in pieces cut anywhere, as UTF-8.
pub struct Stream {
    encoding: Encoding,
    /// The beginning of a character whose end is still to come.
    rest: Vec<u8>,
}

impl Stream {
    pub fn new(encoding: Encoding) -> Stream {
        Stream { encoding, rest: Vec::new() }
    }

    /// Appends what the bytes say. Errors: as [`Encoding::decode`].
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.encoding.is_utf8() {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        self.rest.extend_from_slice(bytes);
        let mut whole = 0;
        while whole < self.rest.len() {
            // The length of some characters stands in their second byte.
            let short = self.rest.len() - whole < 2 && self.rest[whole] >= 0x80;
            let len = self.encoding.char_len(&self.rest[whole..]);
            if whole + len > self.rest.len() || short && len > 1 {
                break;
            }
            whole += len;
        }
        let text = self.encoding.decode(&self.rest[..whole])?;
        out.extend_from_slice(text.as_bytes());
        self.rest.drain(..whole);
        Ok(())
    }

    /// Errors: 22021 if a character is not whole.
    pub fn finish(&self) -> Result<(), SqlError> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.encoding.invalid(&self.rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Encoding {
        Encoding::parse(name).unwrap().unwrap()
    }

    #[test]
    fn names() {
        assert_eq!(find("utf-8"), Encoding::Utf8);
        assert_eq!(find("ISO-8859-15").name(), "LATIN9");
        assert_eq!(find("windows-1252").name(), "WIN1252");
        assert_eq!(Encoding::parse("klingon").unwrap(), None);
        assert_eq!(Encoding::parse("JOHAB").unwrap_err().code, state::FEATURE_NOT_SUPPORTED);
    }

    #[test]
    fn there_and_back() {
        for name in ["LATIN1", "LATIN5", "LATIN9", "WIN1252", "WIN1251", "KOI8R", "EUC_JP", "SJIS", "GBK", "BIG5", "UHC"] {
            let e = find(name);
            let mut kept = 0;
            for c in (0x80..0xffff).filter_map(char::from_u32) {
                if let Ok(bytes) = e.encode(&c.to_string()) {
                    kept += 1;
                    let back = e.decode(&bytes).unwrap();
                    // Some have two codes for what is one character elsewhere.
                    assert!(back == c.to_string() || matches!(name, "EUC_JP" | "SJIS"), "{name} {c:?} {bytes:?} {back:?}");
                }
            }
            assert!(kept > 60, "{name} has {kept}");
        }
    }

    #[test]
    fn what_is_not_there() {
        assert_eq!(find("LATIN1").encode("€").unwrap_err().code, state::UNTRANSLATABLE_CHARACTER);
        assert_eq!(&*find("LATIN9").encode("€").unwrap(), b"\xa4");
        assert_eq!(&*find("WIN1252").encode("€").unwrap(), b"\x80");
        assert_eq!(find("WIN1252").decode(b"\x81").unwrap_err().code, state::UNTRANSLATABLE_CHARACTER);
        assert_eq!(find("EUC_JP").decode(b"\xa4").unwrap_err().code, state::CHARACTER_NOT_IN_REPERTOIRE);
        assert_eq!(&*find("LATIN1").encode_lossy("a€b"), b"a?b");
    }

    #[test]
    fn streams_are_cut_anywhere() {
        let e = find("SJIS");
        let bytes = e.encode("日本語 ｱ abc").unwrap().into_owned();
        for cut in 0..bytes.len() {
            let (mut s, mut out) = (Stream::new(e), Vec::new());
            s.push(&bytes[..cut], &mut out).unwrap();
            s.push(&bytes[cut..], &mut out).unwrap();
            s.finish().unwrap();
            assert_eq!(out, "日本語 ｱ abc".as_bytes());
        }
    }
}
