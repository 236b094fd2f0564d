//! The default parser of text search: text to tokens.
//!
//! A machine with a stack of places to come back to, as Postgres's is, so that what looks like a host, a path or a version and turns out
//! to be none is read again as something plainer. A token that has parts (a URL, a word with hyphens) is followed by its parts.
//!
//! ```text
//!   state  ──first rule whose test the next character passes──►  flags, next state, kind of token
//!   PUSH   go on, remembering the rule      POP    back to where that was, at the rule after it
//!   BINGO  a token ends here                CLEAR  forget the last remembered place, CLRALL all of them
//!   RERUN  look at the character again
//! ```

use repr::interrupt::Pace;

/// The kinds of tokens: alias and description, by number from 1.
pub const KINDS: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

const ASCIIWORD: u8 = 1;
const WORD: u8 = 2;
const NUMWORD: u8 = 3;
const EMAIL: u8 = 4;
const URL: u8 = 5;
pub const HOST: u8 = 6;
const SCIENTIFIC: u8 = 7;
const VERSION: u8 = 8;
pub const NUMPART: u8 = 9;
pub const PART: u8 = 10;
pub const ASCIIPART: u8 = 11;
pub const SPACE: u8 = 12;
pub const TAG: u8 = 13;
const PROTOCOL: u8 = 14;
const NUMHWORD: u8 = 15;
const ASCIIHWORD: u8 = 16;
const HWORD: u8 = 17;
const URLPATH: u8 = 18;
const FILE: u8 = 19;
const DECIMAL: u8 = 20;
const SIGNED: u8 = 21;
const UNSIGNED: u8 = 22;
const ENTITY: u8 = 23;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum S {
    /// The state that was.
    Stay,
    Base,
    NumWord,
    AsciiWord,
    Word,
    Unsigned,
    SignedFirst,
    Signed,
    Space,
    UDecimalFirst,
    UDecimal,
    DecimalFirst,
    Decimal,
    VersionFirst,
    Version,
    MantissaFirst,
    MantissaSign,
    Mantissa,
    EntityFirst,
    Entity,
    EntityNumFirst,
    EntityNum,
    EntityHexFirst,
    EntityHex,
    EntityEnd,
    TagFirst,
    XmlBegin,
    TagCloseFirst,
    TagName,
    TagBeginEnd,
    Tag,
    TagQuote,
    TagQuotes,
    TagEnd,
    CommentFirst,
    CommentLast,
    Comment,
    CommentCloseFirst,
    CommentCloseLast,
    CommentEnd,
    HostFirstDomain,
    HostDomainSecond,
    HostDomain,
    PortFirst,
    Port,
    HostFirstAn,
    Host,
    Email,
    FileFirst,
    FileTwiddle,
    PathFirst,
    PathFirstFirst,
    PathSecond,
    File,
    FileNext,
    UrlPathFirst,
    UrlPathStart,
    UrlPath,
    Url,
    ProtocolFirst,
    ProtocolSecond,
    ProtocolEnd,
    HyphenAsciiFirst,
    HyphenAscii,
    HyphenWordFirst,
    HyphenWord,
    HyphenNumFirst,
    HyphenNum,
    HyphenDigits,
    ParseHyphen,
    ParseHyphenHyphen,
    PartWord,
    PartAscii,
    PartNum,
    PartUnsigned,
}

/// A test of the next character.
#[derive(Clone, Copy, PartialEq)]
enum T {
    End,
    Is(char),
    /// A tag is open whose content is no text.
    Ignore,
    AsciiLetter,
    Letter,
    Digit,
    HexDigit,
    Alnum,
    NotAlnum,
    /// A mark that belongs to the letter before it.
    Mark,
    Blank,
    /// A host begins here; it is passed over.
    IsHost,
    /// A path of a URL begins here; it is passed over.
    IsUrlPath,
    UrlChar,
    /// What was asked for is a host.
    StopAtHost,
    Any,
}

const NEXT: u8 = 0;
const BINGO: u8 = 1;
const POP: u8 = 2;
const PUSH: u8 = 4;
const RERUN: u8 = 8;
const CLEAR: u8 = 16;
const CLRALL: u8 = 32;

/// What is done beside.
#[derive(Clone, Copy, PartialEq)]
enum X {
    No,
    /// The parts follow: back to the beginning of the token.
    Hyphen,
    /// The host and the path follow: back to the beginning of the token.
    Url,
    /// A tag named script or style opens or closes.
    Tags,
}

type Rule = (T, u8, S, u8, X);

/// A rule that goes on.
macro_rules! r {
    ($t:expr, $flags:expr, $to:expr) => {
        ($t, $flags, $to, 0, X::No)
    };
}

/// A rule that ends a token.
macro_rules! b {
    ($t:expr, $flags:expr, $to:expr, $kind:expr) => {
        ($t, BINGO | $flags, $to, $kind, X::No)
    };
}

/// A rule that goes back.
macro_rules! pop {
    ($t:expr) => {
        ($t, POP, S::Stay, 0, X::No)
    };
}

/// A rule that ends a word with hyphens, whose parts follow.
macro_rules! hyphen {
    ($t:expr, $kind:expr) => {
        ($t, BINGO | CLRALL, S::ParseHyphen, $kind, X::Hyphen)
    };
}

use T::{Alnum, Any, AsciiLetter, Blank, Digit, End, HexDigit, Ignore, Is, IsHost, IsUrlPath, Letter, Mark, NotAlnum, StopAtHost, UrlChar};

/// The rules of a state, tried in order; the last one always holds.
fn rules(state: S) -> &'static [Rule] {
    match state {
        S::Stay | S::Base => &[
            r!(End, NEXT, S::Stay),
            r!(Is('<'), PUSH, S::TagFirst),
            r!(Ignore, NEXT, S::Space),
            r!(AsciiLetter, NEXT, S::AsciiWord),
            r!(Letter, NEXT, S::Word),
            r!(Digit, NEXT, S::Unsigned),
            r!(Is('-'), PUSH, S::SignedFirst),
            r!(Is('+'), PUSH, S::SignedFirst),
            r!(Is('&'), PUSH, S::EntityFirst),
            r!(Is('~'), PUSH, S::FileTwiddle),
            r!(Is('/'), PUSH, S::FileFirst),
            r!(Is('.'), PUSH, S::PathFirstFirst),
            r!(Any, NEXT, S::Space),
        ],
        S::NumWord => &[
            b!(End, 0, S::Base, NUMWORD),
            r!(Alnum, NEXT, S::NumWord),
            r!(Mark, NEXT, S::NumWord),
            r!(Is('@'), PUSH, S::Email),
            r!(Is('/'), PUSH, S::FileFirst),
            r!(Is('.'), PUSH, S::FileNext),
            r!(Is('-'), PUSH, S::HyphenNumFirst),
            b!(Any, 0, S::Base, NUMWORD),
        ],
        S::AsciiWord => &[
            b!(End, 0, S::Base, ASCIIWORD),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Is('.'), PUSH, S::HostFirstDomain),
            r!(Is('.'), PUSH, S::FileNext),
            r!(Is('-'), PUSH, S::HostFirstAn),
            r!(Is('-'), PUSH, S::HyphenAsciiFirst),
            r!(Is('_'), PUSH, S::HostFirstAn),
            r!(Is('@'), PUSH, S::Email),
            r!(Is(':'), PUSH, S::ProtocolFirst),
            r!(Is('/'), PUSH, S::FileFirst),
            r!(Digit, PUSH, S::Host),
            r!(Digit, NEXT, S::NumWord),
            r!(Letter, NEXT, S::Word),
            r!(Mark, NEXT, S::Word),
            b!(Any, 0, S::Base, ASCIIWORD),
        ],
        S::Word => &[
            b!(End, 0, S::Base, WORD),
            r!(Letter, NEXT, S::Stay),
            r!(Mark, NEXT, S::Stay),
            r!(Digit, NEXT, S::NumWord),
            r!(Is('-'), PUSH, S::HyphenWordFirst),
            b!(Any, 0, S::Base, WORD),
        ],
        S::Unsigned => &[
            b!(End, 0, S::Base, UNSIGNED),
            r!(Digit, NEXT, S::Stay),
            r!(Is('.'), PUSH, S::HostFirstDomain),
            r!(Is('.'), PUSH, S::UDecimalFirst),
            r!(Is('e'), PUSH, S::MantissaFirst),
            r!(Is('E'), PUSH, S::MantissaFirst),
            r!(Is('-'), PUSH, S::HostFirstAn),
            r!(Is('_'), PUSH, S::HostFirstAn),
            r!(Is('@'), PUSH, S::Email),
            r!(AsciiLetter, PUSH, S::Host),
            r!(Letter, NEXT, S::NumWord),
            r!(Mark, NEXT, S::NumWord),
            r!(Is('/'), PUSH, S::FileFirst),
            b!(Any, 0, S::Base, UNSIGNED),
        ],
        S::SignedFirst => &[pop!(End), r!(Digit, CLEAR, S::Signed), pop!(Any)],
        S::Signed => &[
            b!(End, 0, S::Base, SIGNED),
            r!(Digit, NEXT, S::Stay),
            r!(Is('.'), PUSH, S::DecimalFirst),
            r!(Is('e'), PUSH, S::MantissaFirst),
            r!(Is('E'), PUSH, S::MantissaFirst),
            b!(Any, 0, S::Base, SIGNED),
        ],
        S::Space => &[
            b!(End, 0, S::Base, SPACE),
            b!(Is('<'), 0, S::Base, SPACE),
            r!(Ignore, NEXT, S::Stay),
            b!(Is('-'), 0, S::Base, SPACE),
            b!(Is('+'), 0, S::Base, SPACE),
            b!(Is('&'), 0, S::Base, SPACE),
            b!(Is('/'), 0, S::Base, SPACE),
            r!(NotAlnum, NEXT, S::Stay),
            b!(Any, 0, S::Base, SPACE),
        ],
        S::UDecimalFirst => &[pop!(End), r!(Digit, CLEAR, S::UDecimal), pop!(Any)],
        S::UDecimal => &[
            b!(End, 0, S::Base, DECIMAL),
            r!(Digit, NEXT, S::Stay),
            r!(Is('.'), PUSH, S::VersionFirst),
            r!(Is('e'), PUSH, S::MantissaFirst),
            r!(Is('E'), PUSH, S::MantissaFirst),
            b!(Any, 0, S::Base, DECIMAL),
        ],
        S::DecimalFirst => &[pop!(End), r!(Digit, CLEAR, S::Decimal), pop!(Any)],
        S::Decimal => &[
            b!(End, 0, S::Base, DECIMAL),
            r!(Digit, NEXT, S::Stay),
            r!(Is('e'), PUSH, S::MantissaFirst),
            r!(Is('E'), PUSH, S::MantissaFirst),
            b!(Any, 0, S::Base, DECIMAL),
        ],
        S::VersionFirst => &[pop!(End), r!(Digit, CLEAR, S::Version), pop!(Any)],
        S::Version => &[b!(End, 0, S::Base, VERSION), r!(Digit, NEXT, S::Stay), r!(Is('.'), PUSH, S::VersionFirst), b!(Any, 0, S::Base, VERSION)],
        S::MantissaFirst => &[pop!(End), r!(Digit, CLEAR, S::Mantissa), r!(Is('+'), NEXT, S::MantissaSign), r!(Is('-'), NEXT, S::MantissaSign), pop!(Any)],
        S::MantissaSign => &[pop!(End), r!(Digit, CLEAR, S::Mantissa), pop!(Any)],
        S::Mantissa => &[b!(End, 0, S::Base, SCIENTIFIC), r!(Digit, NEXT, S::Stay), b!(Any, 0, S::Base, SCIENTIFIC)],
        S::EntityFirst => &[
            pop!(End),
            r!(Is('#'), NEXT, S::EntityNumFirst),
            r!(AsciiLetter, NEXT, S::Entity),
            r!(Is(':'), NEXT, S::Entity),
            r!(Is('_'), NEXT, S::Entity),
            pop!(Any),
        ],
        S::Entity => &[
            pop!(End),
            r!(Alnum, NEXT, S::Stay),
            r!(Is(':'), NEXT, S::Stay),
            r!(Is('_'), NEXT, S::Stay),
            r!(Is('.'), NEXT, S::Stay),
            r!(Is('-'), NEXT, S::Stay),
            r!(Is(';'), NEXT, S::EntityEnd),
            pop!(Any),
        ],
        S::EntityNumFirst => &[pop!(End), r!(Is('x'), NEXT, S::EntityHexFirst), r!(Is('X'), NEXT, S::EntityHexFirst), r!(Digit, NEXT, S::EntityNum), pop!(Any)],
        S::EntityHexFirst => &[pop!(End), r!(HexDigit, NEXT, S::EntityHex), pop!(Any)],
        S::EntityNum => &[pop!(End), r!(Digit, NEXT, S::Stay), r!(Is(';'), NEXT, S::EntityEnd), pop!(Any)],
        S::EntityHex => &[pop!(End), r!(HexDigit, NEXT, S::Stay), r!(Is(';'), NEXT, S::EntityEnd), pop!(Any)],
        S::EntityEnd => &[b!(Any, CLEAR, S::Base, ENTITY)],
        S::TagFirst => &[
            pop!(End),
            r!(Is('/'), PUSH, S::TagCloseFirst),
            r!(Is('!'), PUSH, S::CommentFirst),
            r!(Is('?'), PUSH, S::XmlBegin),
            r!(AsciiLetter, PUSH, S::TagName),
            r!(Is(':'), PUSH, S::TagName),
            r!(Is('_'), PUSH, S::TagName),
            pop!(Any),
        ],
        S::XmlBegin => &[pop!(End), r!(Is('x'), NEXT, S::Tag), pop!(Any)],
        S::TagCloseFirst => &[pop!(End), r!(AsciiLetter, NEXT, S::TagName), pop!(Any)],
        S::TagName => &[
            pop!(End),
            r!(Is('/'), NEXT, S::TagBeginEnd),
            (Is('>'), NEXT, S::TagEnd, 0, X::Tags),
            (Blank, NEXT, S::Tag, 0, X::Tags),
            r!(Alnum, NEXT, S::Stay),
            r!(Is(':'), NEXT, S::Stay),
            r!(Is('_'), NEXT, S::Stay),
            r!(Is('.'), NEXT, S::Stay),
            r!(Is('-'), NEXT, S::Stay),
            pop!(Any),
        ],
        S::TagBeginEnd => &[pop!(End), r!(Is('>'), NEXT, S::TagEnd), pop!(Any)],
        S::Tag => &[
            pop!(End),
            (Is('>'), NEXT, S::TagEnd, 0, X::Tags),
            r!(Is('\''), NEXT, S::TagQuote),
            r!(Is('"'), NEXT, S::TagQuotes),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Digit, NEXT, S::Stay),
            r!(Is('='), NEXT, S::Stay),
            r!(Is('-'), NEXT, S::Stay),
            r!(Is('_'), NEXT, S::Stay),
            r!(Is('#'), NEXT, S::Stay),
            r!(Is('/'), NEXT, S::Stay),
            r!(Is(':'), NEXT, S::Stay),
            r!(Is('.'), NEXT, S::Stay),
            r!(Is('&'), NEXT, S::Stay),
            r!(Is('?'), NEXT, S::Stay),
            r!(Is('%'), NEXT, S::Stay),
            r!(Is('~'), NEXT, S::Stay),
            (Blank, NEXT, S::Stay, 0, X::Tags),
            pop!(Any),
        ],
        S::TagQuote => &[pop!(End), r!(Is('\''), NEXT, S::Tag), r!(Any, NEXT, S::Stay)],
        S::TagQuotes => &[pop!(End), r!(Is('"'), NEXT, S::Tag), r!(Any, NEXT, S::Stay)],
        S::TagEnd => &[b!(Any, CLRALL, S::Base, TAG)],
        S::CommentFirst => &[pop!(End), r!(Is('-'), NEXT, S::CommentLast), r!(Is('D'), NEXT, S::Tag), r!(Is('d'), NEXT, S::Tag), pop!(Any)],
        S::CommentLast => &[pop!(End), r!(Is('-'), NEXT, S::Comment), pop!(Any)],
        S::Comment => &[pop!(End), r!(Is('-'), NEXT, S::CommentCloseFirst), r!(Any, NEXT, S::Stay)],
        S::CommentCloseFirst => &[pop!(End), r!(Is('-'), NEXT, S::CommentCloseLast), r!(Any, NEXT, S::Comment)],
        S::CommentCloseLast => &[pop!(End), r!(Is('-'), NEXT, S::Stay), r!(Is('>'), NEXT, S::CommentEnd), r!(Any, NEXT, S::Comment)],
        S::CommentEnd => &[b!(Any, CLRALL, S::Base, TAG)],
        S::HostFirstDomain => &[pop!(End), r!(AsciiLetter, NEXT, S::HostDomainSecond), r!(Digit, NEXT, S::Host), pop!(Any)],
        S::HostDomainSecond => &[
            pop!(End),
            r!(AsciiLetter, NEXT, S::HostDomain),
            r!(Digit, PUSH, S::Host),
            r!(Is('-'), PUSH, S::HostFirstAn),
            r!(Is('_'), PUSH, S::HostFirstAn),
            r!(Is('.'), PUSH, S::HostFirstDomain),
            r!(Is('@'), PUSH, S::Email),
            pop!(Any),
        ],
        S::HostDomain => &[
            b!(End, CLRALL, S::Base, HOST),
            r!(AsciiLetter, NEXT, S::HostDomain),
            r!(Digit, PUSH, S::Host),
            r!(Is(':'), PUSH, S::PortFirst),
            r!(Is('-'), PUSH, S::HostFirstAn),
            r!(Is('_'), PUSH, S::HostFirstAn),
            r!(Is('.'), PUSH, S::HostFirstDomain),
            r!(Is('@'), PUSH, S::Email),
            pop!(Digit),
            b!(StopAtHost, CLRALL, S::UrlPathStart, HOST),
            r!(Is('/'), PUSH, S::Url),
            b!(Any, CLRALL, S::Base, HOST),
        ],
        S::PortFirst => &[pop!(End), r!(Digit, NEXT, S::Port), pop!(Any)],
        S::Port => &[
            b!(End, CLRALL, S::Base, HOST),
            r!(Digit, NEXT, S::Stay),
            b!(StopAtHost, CLRALL, S::UrlPathStart, HOST),
            r!(Is('/'), PUSH, S::Url),
            b!(Any, CLRALL, S::Base, HOST),
        ],
        S::HostFirstAn => &[pop!(End), r!(Digit, NEXT, S::Host), r!(AsciiLetter, NEXT, S::Host), pop!(Any)],
        S::Host => &[
            pop!(End),
            r!(Digit, NEXT, S::Stay),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Is('@'), PUSH, S::Email),
            r!(Is('.'), PUSH, S::HostFirstDomain),
            r!(Is('-'), PUSH, S::HostFirstAn),
            r!(Is('_'), PUSH, S::HostFirstAn),
            pop!(Any),
        ],
        S::Email => &[pop!(End), b!(IsHost, CLRALL, S::Base, EMAIL), pop!(Any)],
        S::FileFirst => &[
            pop!(End),
            r!(AsciiLetter, NEXT, S::File),
            r!(Digit, NEXT, S::File),
            r!(Is('.'), NEXT, S::PathFirst),
            r!(Is('_'), NEXT, S::File),
            r!(Is('~'), PUSH, S::FileTwiddle),
            pop!(Any),
        ],
        S::FileTwiddle => {
            &[pop!(End), r!(AsciiLetter, NEXT, S::File), r!(Digit, NEXT, S::File), r!(Is('_'), NEXT, S::File), r!(Is('/'), NEXT, S::FileFirst), pop!(Any)]
        }
        S::PathFirst => &[
            pop!(End),
            r!(AsciiLetter, NEXT, S::File),
            r!(Digit, NEXT, S::File),
            r!(Is('_'), NEXT, S::File),
            r!(Is('.'), NEXT, S::PathSecond),
            r!(Is('/'), NEXT, S::FileFirst),
            pop!(Any),
        ],
        S::PathFirstFirst => &[pop!(End), r!(Is('.'), NEXT, S::PathSecond), r!(Is('/'), NEXT, S::FileFirst), pop!(Any)],
        S::PathSecond => {
            &[b!(End, CLEAR, S::Base, FILE), r!(Is('/'), PUSH, S::FileFirst), b!(Is('/'), CLEAR, S::Base, FILE), b!(Blank, CLEAR, S::Base, FILE), pop!(Any)]
        }
        S::File => &[
            b!(End, 0, S::Base, FILE),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Digit, NEXT, S::Stay),
            r!(Is('.'), PUSH, S::FileNext),
            r!(Is('_'), NEXT, S::Stay),
            r!(Is('-'), NEXT, S::Stay),
            r!(Is('/'), PUSH, S::FileFirst),
            b!(Any, 0, S::Base, FILE),
        ],
        S::FileNext => &[pop!(End), r!(AsciiLetter, CLEAR, S::File), r!(Digit, CLEAR, S::File), r!(Is('_'), CLEAR, S::File), pop!(Any)],
        S::UrlPathFirst => &[pop!(End), r!(UrlChar, NEXT, S::UrlPath), pop!(Any)],
        S::UrlPathStart => &[r!(Any, NEXT, S::UrlPath)],
        S::UrlPath => &[b!(End, 0, S::Base, URLPATH), r!(UrlChar, NEXT, S::Stay), b!(Any, 0, S::Base, URLPATH)],
        S::Url => &[pop!(End), (IsUrlPath, BINGO | CLRALL, S::Base, URL, X::Url), pop!(Any)],
        S::ProtocolFirst => &[pop!(End), r!(Is('/'), NEXT, S::ProtocolSecond), pop!(Any)],
        S::ProtocolSecond => &[pop!(End), r!(Is('/'), NEXT, S::ProtocolEnd), pop!(Any)],
        S::ProtocolEnd => &[b!(Any, CLRALL, S::Base, PROTOCOL)],
        S::HyphenAsciiFirst => {
            &[pop!(End), r!(AsciiLetter, NEXT, S::HyphenAscii), r!(Letter, NEXT, S::HyphenWord), r!(Digit, NEXT, S::HyphenDigits), pop!(Any)]
        }
        S::HyphenAscii => &[
            hyphen!(End, ASCIIHWORD),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Letter, NEXT, S::HyphenWord),
            r!(Mark, NEXT, S::HyphenWord),
            r!(Digit, NEXT, S::HyphenNum),
            r!(Is('-'), PUSH, S::HyphenAsciiFirst),
            hyphen!(Any, ASCIIHWORD),
        ],
        S::HyphenWordFirst => &[pop!(End), r!(Letter, NEXT, S::HyphenWord), r!(Digit, NEXT, S::HyphenDigits), pop!(Any)],
        S::HyphenWord => &[
            hyphen!(End, HWORD),
            r!(Letter, NEXT, S::Stay),
            r!(Mark, NEXT, S::Stay),
            r!(Digit, NEXT, S::HyphenNum),
            r!(Is('-'), PUSH, S::HyphenWordFirst),
            hyphen!(Any, HWORD),
        ],
        S::HyphenNumFirst => &[pop!(End), r!(Letter, NEXT, S::HyphenNum), r!(Digit, NEXT, S::HyphenDigits), pop!(Any)],
        S::HyphenNum => {
            &[hyphen!(End, NUMHWORD), r!(Alnum, NEXT, S::Stay), r!(Mark, NEXT, S::Stay), r!(Is('-'), PUSH, S::HyphenNumFirst), hyphen!(Any, NUMHWORD)]
        }
        S::HyphenDigits => &[pop!(End), r!(Digit, NEXT, S::Stay), r!(Letter, NEXT, S::HyphenNum), r!(Mark, NEXT, S::HyphenNum), pop!(Any)],
        S::ParseHyphen => &[
            r!(End, RERUN, S::Base),
            r!(AsciiLetter, NEXT, S::PartAscii),
            r!(Letter, NEXT, S::PartWord),
            r!(Digit, PUSH, S::PartUnsigned),
            r!(Is('-'), PUSH, S::ParseHyphenHyphen),
            r!(Any, RERUN, S::Base),
        ],
        S::ParseHyphenHyphen => &[pop!(End), b!(Alnum, CLEAR, S::ParseHyphen, SPACE), b!(Mark, CLEAR, S::ParseHyphen, SPACE), pop!(Any)],
        S::PartWord => {
            &[b!(End, 0, S::Base, PART), r!(Letter, NEXT, S::Stay), r!(Mark, NEXT, S::Stay), r!(Digit, NEXT, S::PartNum), b!(Any, 0, S::ParseHyphen, PART)]
        }
        S::PartAscii => &[
            b!(End, 0, S::Base, ASCIIPART),
            r!(AsciiLetter, NEXT, S::Stay),
            r!(Letter, NEXT, S::PartWord),
            r!(Mark, NEXT, S::PartWord),
            r!(Digit, NEXT, S::PartNum),
            b!(Any, 0, S::ParseHyphen, ASCIIPART),
        ],
        S::PartNum => &[b!(End, 0, S::Base, NUMPART), r!(Alnum, NEXT, S::Stay), r!(Mark, NEXT, S::Stay), b!(Any, 0, S::ParseHyphen, NUMPART)],
        S::PartUnsigned => &[pop!(End), r!(Digit, NEXT, S::Stay), r!(Letter, CLEAR, S::PartNum), r!(Mark, CLEAR, S::PartNum), pop!(Any)],
    }
}

/// A place in the text with a state, and the rule by which it was left for another.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    /// Bytes of the token so far.
    len: usize,
    state: S,
    pushed: Option<usize>,
}

/// Reads tokens one after another.
pub struct Parser<'a> {
    text: &'a str,
    here: Place,
    stack: Vec<Place>,
    ignore: bool,
    want_host: bool,
    pace: Pace,
}

/// How deep one parser may start another (`a@b@c@…`).
const NESTED_MAX: usize = 3;

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser { text, here: Place { at: 0, len: 0, state: S::Base, pushed: None }, stack: Vec::new(), ignore: false, want_host: false, pace: Pace::default() }
    }

    fn passes(&mut self, test: T, c: Option<char>, nested: usize) -> bool {
        let Some(ch) = c else { return matches!(test, T::End | T::Any) || (test == T::StopAtHost && self.stop_at_host()) };
        match test {
            T::End => false,
            T::Any => true,
            T::Is(x) => ch == x,
            T::Ignore => self.ignore,
            T::AsciiLetter => ch.is_ascii_alphabetic(),
            T::Letter => is_letter(ch),
            T::Digit => ch.is_ascii_digit(),
            T::HexDigit => ch.is_ascii_hexdigit(),
            T::Alnum => is_letter(ch) || ch.is_ascii_digit(),
            T::NotAlnum => !(is_letter(ch) || ch.is_ascii_digit()),
            T::Mark => is_mark(ch),
            T::Blank => ch.is_whitespace(),
            T::UrlChar => matches!(ch, '!'..='~') && !matches!(ch, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'),
            T::StopAtHost => self.stop_at_host(),
            T::IsHost => self.passed_over(S::Base, true, HOST, nested),
            T::IsUrlPath => self.passed_over(S::UrlPathFirst, false, URLPATH, nested),
        }
    }

    fn stop_at_host(&mut self) -> bool {
        std::mem::take(&mut self.want_host)
    }

    /// Whether another parser finds a token of this kind here; it is then passed over.
    fn passed_over(&mut self, state: S, want_host: bool, kind: u8, nested: usize) -> bool {
        if nested >= NESTED_MAX {
            return false;
        }
        let mut p = Parser {
            text: &self.text[self.here.at..],
            here: Place { at: 0, len: 0, state, pushed: None },
            stack: Vec::new(),
            ignore: false,
            want_host,
            pace: Pace::default(),
        };
        match p.token(nested + 1) {
            Some((k, t)) if k == kind => {
                self.here.at += t.len();
                self.here.len += t.len();
                true
            }
            _ => false,
        }
    }

    /// The next token: its kind and text.
    pub fn next_token(&mut self) -> Option<(u8, &'a str)> {
        self.token(0)
    }

    fn token(&mut self, nested: usize) -> Option<(u8, &'a str)> {
        let start = self.here.at;
        if start >= self.text.len() {
            return None;
        }
        self.here.pushed = None;
        self.here.len = 0;
        loop {
            if self.pace.stop(16) {
                return None;
            }
            let c = self.text[self.here.at..].chars().next();
            let list = rules(self.here.state);
            let mut at = self.here.pushed.take().map_or(0, |i| i + 1).min(list.len() - 1);
            while at + 1 < list.len() && !self.passes(list[at].0, c, nested) {
                at += 1;
            }
            let (_, flags, to, kind, special) = list[at];
            // A token that was passed over moved the place.
            let c = if matches!(list[at].0, T::IsHost | T::IsUrlPath) { None } else { c };
            let end = self.here.len;
            match special {
                X::No => {}
                X::Hyphen => self.here.at -= self.here.len,
                X::Url => {
                    self.here.at -= self.here.len;
                    self.want_host = true;
                }
                X::Tags => self.tag_opened(start),
            }
            if flags & BINGO != 0 {
                self.here.len = 0;
            }
            if flags & POP != 0 {
                self.here = self.stack.pop()?;
            } else if flags & PUSH != 0 {
                self.stack.push(Place { pushed: Some(at), ..self.here });
            } else if flags & CLEAR != 0 {
                self.stack.pop();
            } else if flags & CLRALL != 0 {
                self.stack.clear();
            }
            if to != S::Stay {
                self.here.state = to;
            }
            if flags & BINGO != 0 {
                return Some((kind, &self.text[start..start + end]));
            }
            if self.here.at >= self.text.len() && flags & (RERUN | POP) == 0 && c.is_none() {
                return None;
            }
            if flags & (RERUN | POP) != 0 {
                continue;
            }
            if let Some(c) = c {
                self.here.at += c.len_utf8();
                self.here.len += c.len_utf8();
            }
        }
    }

    /// The content of `<script>` and `<style>` is no text, up to their end.
    fn tag_opened(&mut self, start: usize) {
        let tag = self.text[start..self.here.at].to_ascii_lowercase();
        let (close, name) = match tag.strip_prefix("</") {
            Some(n) => (true, n),
            None => (false, tag.strip_prefix('<').unwrap_or("")),
        };
        if name == "script" || name == "style" {
            self.ignore = !close;
        }
    }
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    c.is_alphanumeric()
}

/// Marks of no width of their own.
fn is_mark(c: char) -> bool {
    matches!(c as u32,
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x5bf | 0x5c1 | 0x5c2 | 0x5c4 | 0x5c5 | 0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x670
        | 0x6d6..=0x6dc | 0x900..=0x903 | 0x93a..=0x93c | 0x93e..=0x94f | 0x951..=0x957 | 0x981..=0x983 | 0x9bc | 0x9be..=0x9cd | 0xe31 | 0xe34..=0xe3a
        | 0xe47..=0xe4e | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f)
}
