//! Postgres's pg_type, pg_cast, pg_operator, pg_proc, pg_aggregate and their like, as exported from PostgreSQL 15.
//!
//! ```text
//!   data/*.tsv  ──parsed once, on first use──►  static tables + indexes by OID, by name, by (source, target)
//! ```
//!
//! The rows decide overload resolution and implicit casts (`sql`), strictness and volatility (`func`), and fill `pg_catalog`
//! (`adapter`). What a function does is not here: see `func`, keyed by the OID. `data/extra_*.tsv` holds the rows that
//! Postgres does not have (`mz_now`, unsigned integers); their OIDs lie in 9000..10000, which no Postgres release uses.
//!
//! Columns that no reader needs (owners, ACLs, planner estimators' arguments) are left out of the export.

use std::collections::HashMap;
use std::sync::OnceLock;

/// A row of `pg_type`. OIDs of 0 mean "none" throughout.
#[derive(Clone, Debug)]
pub struct PgType {
    pub oid: u32,
    pub name: &'static str,
    pub namespace: u32,
    /// Bytes, -1 for a varlena, -2 for a C string.
    pub len: i16,
    pub by_val: bool,
    /// `b` base, `c` composite, `d` domain, `e` enum, `p` pseudo, `r` range, `m` multirange.
    pub kind: char,
    /// `typcategory`: `N` numeric, `S` string, `D` date/time, ...
    pub category: char,
    pub is_preferred: bool,
    pub is_defined: bool,
    pub delim: char,
    pub relid: u32,
    pub elem: u32,
    pub array: u32,
    pub input: u32,
    pub output: u32,
    pub receive: u32,
    pub send: u32,
    pub typmod_in: u32,
    pub typmod_out: u32,
    pub align: char,
    pub storage: char,
    pub not_null: bool,
    pub base_type: u32,
    pub typmod: i32,
    pub ndims: i32,
    pub collation: u32,
    pub subscript: u32,
}

/// A row of `pg_range`.
#[derive(Clone, Debug)]
pub struct PgRange {
    pub range: u32,
    pub subtype: u32,
    pub multirange: u32,
    pub collation: u32,
    pub subopc: u32,
    pub canonical: u32,
    pub subdiff: u32,
}

/// Where a cast may be applied without being written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CastContext {
    Implicit,
    Assignment,
    Explicit,
}

/// How a cast is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastMethod {
    /// By the function `func`: `f(value)`, or `f(value, typmod, is_explicit)` where the function takes three arguments.
    Function,
    /// Through the text form.
    InOut,
    /// The bytes stay as they are.
    Binary,
}

/// A row of `pg_cast`. A cast from a type to itself with a function is the type's length coercion.
#[derive(Clone, Debug)]
pub struct PgCast {
    pub oid: u32,
    pub source: u32,
    pub target: u32,
    pub func: u32,
    pub context: CastContext,
    pub method: CastMethod,
}

/// A row of `pg_operator`; a prefix operator has `left` 0.
#[derive(Clone, Debug)]
pub struct PgOperator {
    pub oid: u32,
    pub name: &'static str,
    pub namespace: u32,
    /// `b` infix, `l` prefix.
    pub kind: char,
    pub can_merge: bool,
    pub can_hash: bool,
    pub left: u32,
    pub right: u32,
    pub result: u32,
    pub commutator: u32,
    pub negator: u32,
    /// The pg_proc OID of the implementation.
    pub func: u32,
    pub rest: u32,
    pub join: u32,
}

/// What a row of `pg_proc` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcKind {
    Function,
    Aggregate,
    Window,
    Procedure,
}

/// A row of `pg_proc`.
#[derive(Clone, Debug)]
pub struct PgProc {
    pub oid: u32,
    pub name: &'static str,
    pub namespace: u32,
    pub lang: u32,
    pub kind: ProcKind,
    pub strict: bool,
    pub returns_set: bool,
    /// `i` immutable, `s` stable, `v` volatile.
    pub volatility: char,
    pub parallel: char,
    pub leakproof: bool,
    pub cost: f32,
    pub rows: f32,
    /// Element type of the VARIADIC array parameter (2276 for `VARIADIC "any"`), 0 if not variadic.
    pub variadic: u32,
    pub ret: u32,
    /// Input argument types, the variadic array included.
    pub args: Vec<u32>,
    /// All argument types, outputs included, where there are outputs.
    pub all_args: Option<Vec<u32>>,
    /// Mode of each of `all_args`: `i`, `o`, `b`, `v`, `t`.
    pub modes: Option<Vec<char>>,
    /// Names of all arguments (of `all_args` if there are, else of `args`); empty where unnamed.
    pub arg_names: Vec<&'static str>,
    /// SQL text of the defaults of the last `defaults.len()` of `args`.
    pub defaults: Vec<&'static str>,
    /// C name, or the body of an SQL-language function.
    pub src: &'static str,
}

/// A row of `pg_aggregate`.
#[derive(Clone, Debug)]
pub struct PgAggregate {
    pub oid: u32,
    /// `n` normal, `o` ordered-set, `h` hypothetical-set.
    pub kind: char,
    pub direct_args: u16,
    pub trans_func: u32,
    pub final_func: u32,
    pub sort_op: u32,
    pub trans_type: u32,
    pub init: Option<&'static str>,
}

/// A row of `pg_opclass`.
#[derive(Clone, Debug)]
pub struct PgOpclass {
    pub oid: u32,
    pub method: u32,
    pub name: &'static str,
    pub namespace: u32,
    pub family: u32,
    pub in_type: u32,
    pub is_default: bool,
    pub key_type: u32,
}

/// A row of `pg_am`.
#[derive(Clone, Debug)]
pub struct PgAm {
    pub oid: u32,
    pub name: &'static str,
    pub handler: u32,
    pub kind: char,
}

/// A row of `pg_namespace`.
#[derive(Clone, Debug)]
pub struct PgNamespace {
    pub oid: u32,
    pub name: &'static str,
}

/// A row of `pg_collation`, those of ICU left out.
#[derive(Clone, Debug)]
pub struct PgCollation {
    pub oid: u32,
    pub name: &'static str,
    pub namespace: u32,
    pub provider: char,
    pub is_deterministic: bool,
    pub encoding: i32,
    pub collate: Option<&'static str>,
    pub ctype: Option<&'static str>,
}

/// OIDs of the pseudo-types that overload resolution treats specially.
pub mod pseudo {
    pub const ANY: u32 = 2276;
    pub const ANYARRAY: u32 = 2277;
    pub const ANYELEMENT: u32 = 2283;
    pub const ANYNONARRAY: u32 = 2776;
    pub const ANYENUM: u32 = 3500;
    pub const ANYRANGE: u32 = 3831;
    pub const ANYMULTIRANGE: u32 = 4537;
    pub const ANYCOMPATIBLE: u32 = 5077;
    pub const ANYCOMPATIBLEARRAY: u32 = 5078;
    pub const ANYCOMPATIBLENONARRAY: u32 = 5079;
    pub const ANYCOMPATIBLERANGE: u32 = 5080;
    pub const ANYCOMPATIBLEMULTIRANGE: u32 = 4538;
    pub const RECORD: u32 = 2249;
    pub const RECORD_ARRAY: u32 = 2287;
    pub const CSTRING: u32 = 2275;
    pub const INTERNAL: u32 = 2281;
    pub const VOID: u32 = 2278;
    pub const UNKNOWN: u32 = 705;
}

/// All tables with their indexes.
struct Catalog {
    types: Vec<PgType>,
    type_oid: HashMap<u32, usize>,
    type_name: HashMap<&'static str, usize>,
    ranges: Vec<PgRange>,
    casts: Vec<PgCast>,
    cast_pair: HashMap<(u32, u32), usize>,
    operators: Vec<PgOperator>,
    operator_oid: HashMap<u32, usize>,
    operator_name: HashMap<&'static str, Vec<usize>>,
    procs: Vec<PgProc>,
    proc_oid: HashMap<u32, usize>,
    proc_name: HashMap<&'static str, Vec<usize>>,
    aggregates: Vec<PgAggregate>,
    aggregate_oid: HashMap<u32, usize>,
    opclasses: Vec<PgOpclass>,
    ams: Vec<PgAm>,
    namespaces: Vec<PgNamespace>,
    collations: Vec<PgCollation>,
}

/// All rows of `pg_type`, by OID.
pub fn types() -> &'static [PgType] {
    &catalog().types
}

pub fn type_by_oid(oid: u32) -> Option<&'static PgType> {
    let c = catalog();
    c.type_oid.get(&oid).map(|i| &c.types[*i])
}

/// The type with this `typname` (`int4`, `_text`) in `pg_catalog`.
pub fn type_by_name(name: &str) -> Option<&'static PgType> {
    let c = catalog();
    c.type_name.get(name).map(|i| &c.types[*i])
}

pub fn ranges() -> &'static [PgRange] {
    &catalog().ranges
}

pub fn casts() -> &'static [PgCast] {
    &catalog().casts
}

/// The `pg_cast` row from `source` to `target`. Array-to-array casts, casts of records and I/O conversions have no row.
pub fn cast(source: u32, target: u32) -> Option<&'static PgCast> {
    let c = catalog();
    c.cast_pair.get(&(source, target)).map(|i| &c.casts[*i])
}

pub fn operators() -> &'static [PgOperator] {
    &catalog().operators
}

/// The operators of this name, infix and prefix, in order of OID.
pub fn operators_by_name(name: &str) -> impl Iterator<Item = &'static PgOperator> {
    let c = catalog();
    c.operator_name.get(name).into_iter().flatten().map(move |i| &c.operators[*i])
}

pub fn operator_by_oid(oid: u32) -> Option<&'static PgOperator> {
    let c = catalog();
    c.operator_oid.get(&oid).map(|i| &c.operators[*i])
}

pub fn procs() -> &'static [PgProc] {
    &catalog().procs
}

/// Functions, aggregates, window functions and procedures of this name, in order of OID.
pub fn procs_by_name(name: &str) -> impl Iterator<Item = &'static PgProc> {
    let c = catalog();
    c.proc_name.get(name).into_iter().flatten().map(move |i| &c.procs[*i])
}

pub fn proc_by_oid(oid: u32) -> Option<&'static PgProc> {
    let c = catalog();
    c.proc_oid.get(&oid).map(|i| &c.procs[*i])
}

pub fn aggregates() -> &'static [PgAggregate] {
    &catalog().aggregates
}

pub fn aggregate_by_oid(oid: u32) -> Option<&'static PgAggregate> {
    let c = catalog();
    c.aggregate_oid.get(&oid).map(|i| &c.aggregates[*i])
}

pub fn opclasses() -> &'static [PgOpclass] {
    &catalog().opclasses
}

pub fn access_methods() -> &'static [PgAm] {
    &catalog().ams
}

pub fn namespaces() -> &'static [PgNamespace] {
    &catalog().namespaces
}

pub fn collations() -> &'static [PgCollation] {
    &catalog().collations
}

fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(Catalog::load)
}

/// One line of a COPY text file.
struct Row {
    fields: std::str::Split<'static, char>,
}

impl Row {
    /// The next field; `None` for NULL.
    fn opt(&mut self) -> Option<&'static str> {
        let f = self.fields.next().expect("the exported line has all columns");
        match f {
            "\\N" => None,
            f if f.contains('\\') => Some(unescape(f)),
            f => Some(f),
        }
    }
    fn text(&mut self) -> &'static str {
        self.opt().unwrap_or("")
    }
    fn num<T: std::str::FromStr + Default>(&mut self) -> T {
        self.opt().and_then(|f| f.parse().ok()).unwrap_or_default()
    }
    fn bool(&mut self) -> bool {
        self.text() == "t"
    }
    fn char(&mut self) -> char {
        self.text().chars().next().unwrap_or('\0')
    }
    fn oids(&mut self) -> Option<Vec<u32>> {
        self.opt().map(|f| f.split_ascii_whitespace().filter_map(|x| x.parse().ok()).collect())
    }
}

/// Undoes COPY's backslashes. The result lives as long as the process: it is made once.
fn unescape(field: &str) -> &'static str {
    let mut out = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some('v') => out.push('\u{b}'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    Box::leak(out.into_boxed_str())
}

fn load<T>(files: &[&'static str], parse: impl Fn(&mut Row) -> T) -> Vec<T> {
    files.iter().flat_map(|f| f.lines()).filter(|l| !l.is_empty()).map(|l| parse(&mut Row { fields: l.split('\t') })).collect()
}

fn index<T, K: std::hash::Hash + Eq>(rows: &[T], key: impl Fn(&T) -> K) -> HashMap<K, usize> {
    rows.iter().enumerate().map(|(i, r)| (key(r), i)).collect()
}

fn multi_index<T>(rows: &[T], key: impl Fn(&T) -> &'static str) -> HashMap<&'static str, Vec<usize>> {
    let mut map: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (i, r) in rows.iter().enumerate() {
        map.entry(key(r)).or_default().push(i);
    }
    map
}

impl Catalog {
    fn load() -> Catalog {
        let types = load(&[include_str!("data/pg_type.tsv"), include_str!("data/extra_type.tsv")], parse_type);
        let casts = load(&[include_str!("data/pg_cast.tsv"), include_str!("data/extra_cast.tsv")], parse_cast);
        let operators = load(&[include_str!("data/pg_operator.tsv"), include_str!("data/extra_operator.tsv")], parse_operator);
        let procs = load(&[include_str!("data/pg_proc.tsv"), include_str!("data/extra_proc.tsv")], parse_proc);
        let aggregates = load(&[include_str!("data/pg_aggregate.tsv")], |r| PgAggregate {
            oid: r.num(),
            kind: r.char(),
            direct_args: r.num(),
            trans_func: r.num(),
            final_func: r.num(),
            sort_op: r.num(),
            trans_type: r.num(),
            init: r.opt(),
        });
        Catalog {
            type_oid: index(&types, |t: &PgType| t.oid),
            type_name: index(&types, |t: &PgType| t.name),
            cast_pair: index(&casts, |c: &PgCast| (c.source, c.target)),
            operator_oid: index(&operators, |o: &PgOperator| o.oid),
            operator_name: multi_index(&operators, |o: &PgOperator| o.name),
            proc_oid: index(&procs, |p: &PgProc| p.oid),
            proc_name: multi_index(&procs, |p: &PgProc| p.name),
            aggregate_oid: index(&aggregates, |a: &PgAggregate| a.oid),
            types,
            casts,
            operators,
            procs,
            aggregates,
            ranges: load(&[include_str!("data/pg_range.tsv")], |r| PgRange {
                range: r.num(),
                subtype: r.num(),
                multirange: r.num(),
                collation: r.num(),
                subopc: r.num(),
                canonical: r.num(),
                subdiff: r.num(),
            }),
            opclasses: load(&[include_str!("data/pg_opclass.tsv")], |r| PgOpclass {
                oid: r.num(),
                method: r.num(),
                name: r.text(),
                namespace: r.num(),
                family: r.num(),
                in_type: r.num(),
                is_default: r.bool(),
                key_type: r.num(),
            }),
            ams: load(&[include_str!("data/pg_am.tsv")], |r| PgAm { oid: r.num(), name: r.text(), handler: r.num(), kind: r.char() }),
            namespaces: load(&[include_str!("data/pg_namespace.tsv")], |r| PgNamespace { oid: r.num(), name: r.text() }),
            collations: load(&[include_str!("data/pg_collation.tsv")], |r| PgCollation {
                oid: r.num(),
                name: r.text(),
                namespace: r.num(),
                provider: r.char(),
                is_deterministic: r.bool(),
                encoding: r.num(),
                collate: r.opt(),
                ctype: r.opt(),
            }),
        }
    }
}

fn parse_type(r: &mut Row) -> PgType {
    PgType {
        oid: r.num(),
        name: r.text(),
        namespace: r.num(),
        len: r.num(),
        by_val: r.bool(),
        kind: r.char(),
        category: r.char(),
        is_preferred: r.bool(),
        is_defined: r.bool(),
        delim: r.char(),
        relid: r.num(),
        elem: r.num(),
        array: r.num(),
        input: r.num(),
        output: r.num(),
        receive: r.num(),
        send: r.num(),
        typmod_in: r.num(),
        typmod_out: r.num(),
        align: r.char(),
        storage: r.char(),
        not_null: r.bool(),
        base_type: r.num(),
        typmod: r.num(),
        ndims: r.num(),
        collation: r.num(),
        subscript: r.num(),
    }
}

fn parse_cast(r: &mut Row) -> PgCast {
    PgCast {
        oid: r.num(),
        source: r.num(),
        target: r.num(),
        func: r.num(),
        context: match r.char() {
            'i' => CastContext::Implicit,
            'a' => CastContext::Assignment,
            _ => CastContext::Explicit,
        },
        method: match r.char() {
            'f' => CastMethod::Function,
            'i' => CastMethod::InOut,
            _ => CastMethod::Binary,
        },
    }
}

fn parse_operator(r: &mut Row) -> PgOperator {
    PgOperator {
        oid: r.num(),
        name: r.text(),
        namespace: r.num(),
        kind: r.char(),
        can_merge: r.bool(),
        can_hash: r.bool(),
        left: r.num(),
        right: r.num(),
        result: r.num(),
        commutator: r.num(),
        negator: r.num(),
        func: r.num(),
        rest: r.num(),
        join: r.num(),
    }
}

fn parse_proc(r: &mut Row) -> PgProc {
    PgProc {
        oid: r.num(),
        name: r.text(),
        namespace: r.num(),
        lang: r.num(),
        kind: match r.char() {
            'a' => ProcKind::Aggregate,
            'w' => ProcKind::Window,
            'p' => ProcKind::Procedure,
            _ => ProcKind::Function,
        },
        strict: r.bool(),
        returns_set: r.bool(),
        volatility: r.char(),
        parallel: r.char(),
        leakproof: r.bool(),
        cost: r.num(),
        rows: r.num(),
        variadic: r.num(),
        ret: r.num(),
        args: r.oids().unwrap_or_default(),
        all_args: r.oids(),
        modes: r.opt().map(|f| f.split(' ').filter_map(|m| m.chars().next()).collect()),
        arg_names: r.opt().filter(|f| !f.is_empty()).map(|f| f.split(',').collect()).unwrap_or_default(),
        defaults: {
            let _count = r.text();
            r.opt().map(|f| f.split("; ").collect()).unwrap_or_default()
        },
        src: r.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_indexes() {
        assert_eq!(type_by_name("int4").unwrap().oid, 23);
        assert!(type_by_oid(701).unwrap().is_preferred);
        let c = cast(20, 23).unwrap();
        assert_eq!((c.func, c.context, c.method), (480, CastContext::Assignment, CastMethod::Function));
        assert_eq!(operators_by_name("+").filter(|o| o.left == 23 && o.right == 23).map(|o| o.func).collect::<Vec<_>>(), [177]);
        let p = procs_by_name("make_interval").next().unwrap();
        assert_eq!(p.defaults.len(), 7);
        assert_eq!(p.arg_names[0], "years");
        let q = procs_by_name("jsonb_path_query").next().unwrap();
        assert_eq!(q.defaults, ["'{}'::jsonb", "false"]);
        assert_eq!(aggregate_by_oid(2803).unwrap().kind, 'n');
        assert_eq!(proc_by_oid(3958).unwrap().modes.as_ref().unwrap(), &['i', 'o', 'o']);
    }
}
