//! SQL types and column types.

use crate::GlobalId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A SQL type without modifiers. The modifier (`numeric(10,2)`, `varchar(5)`) is in [`ColType::typmod`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum SqlType {
    Bool,
    Int2,
    Int4,
    Int8,
    /// Unsigned integers of the Materialize dialect: `uint2`, `uint4`, `uint8`.
    UInt2,
    UInt4,
    UInt8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    /// `char(n)`; trailing blanks do not count in comparisons.
    Bpchar,
    /// The one-byte type `"char"`.
    Char,
    Name,
    Bytea,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    JsonPath,
    Oid,
    Xid,
    /// A transaction number that does not wrap: an unsigned integer of 8 bytes.
    Xid8,
    /// The number of a command in a transaction.
    Cid,
    /// A row's place, `(block,offset)`: the block in the upper bits, the offset in the lower 16 of 8 bytes.
    Tid,
    /// A place in the log, in 8 bytes: `16/B374D848`.
    PgLsn,
    /// `xmin:xmax:xip,…` as text: `pg_snapshot`, and `txid_snapshot`, its older name.
    Snapshot,
    TxidSnapshot,
    /// What a role may do, as text: `grantee=privileges/grantor`.
    AclItem,
    /// The name of a cursor.
    RefCursor,
    /// `regclass`, `regtype`, `regproc`, `regprocedure`, `regoper`, `regoperator`, `regnamespace`, `regrole`, `regcollation`, `regconfig`, `regdictionary`.
    Reg(RegKind),
    Inet,
    Cidr,
    /// 6 and 8 bytes.
    MacAddr,
    MacAddr8,
    /// `point`, `line` and their like.
    Geo(GeoKind),
    TsVector,
    TsQuery,
    /// Cents, in 8 bytes.
    Money,
    /// `bit(n)` and `bit varying(n)`: a value is its digits, 0 and 1. Ordered as text, they are ordered as Postgres orders bits.
    Bit,
    VarBit,
    /// An array of any dimension.
    Array(Box<SqlType>),
    /// `int2vector` and `oidvector`: zero-based one-dimensional arrays of the catalogs.
    Int2Vector,
    OidVector,
    Range(Box<SqlType>),
    Multirange(Box<SqlType>),
    /// A range type of CREATE TYPE … AS RANGE, and its multirange. The built-in ones above are told by what they range over.
    UserRange(Arc<RangeType>),
    UserMultirange(Arc<RangeType>),
    /// An anonymous or named composite type.
    Record(Arc<RecordType>),
    Enum(Arc<EnumType>),
    /// A type with conditions. What its values look like, the type that it is over says ([`SqlType::base`]).
    Domain(Arc<DomainType>),
    /// Materialize's `T LIST` and `map[text=>T]`.
    List(Box<SqlType>),
    Map(Box<SqlType>),
    /// A string literal or parameter whose type is not known yet.
    Unknown,
    Void,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RegKind {
    Class,
    Type,
    Proc,
    Procedure,
    Oper,
    Operator,
    Namespace,
    Role,
    Collation,
    Config,
    Dictionary,
}

/// The geometric types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum GeoKind {
    Point,
    Lseg,
    Path,
    Box,
    Polygon,
    Line,
    Circle,
}

impl GeoKind {
    pub fn name(self) -> &'static str {
        match self {
            GeoKind::Point => "point",
            GeoKind::Lseg => "lseg",
            GeoKind::Path => "path",
            GeoKind::Box => "box",
            GeoKind::Polygon => "polygon",
            GeoKind::Line => "line",
            GeoKind::Circle => "circle",
        }
    }
}

/// The fields of a composite type; `oid` is 2249 (`record`) for an anonymous one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RecordType {
    pub oid: u32,
    /// 0: arrays of it are `record[]`.
    #[serde(default)]
    pub array_oid: u32,
    pub name: Option<String>,
    pub fields: Vec<(String, ColType)>,
}

/// Arrays of a relation's rows are numbered so far beyond the rows themselves.
const ROW_ARRAYS: u32 = 0x0800_0000;
/// OIDs of row types begin here: objects have theirs below, constraints above.
pub const ROW_TYPES: u32 = 0x2000_0000;
const FIRST_USER_OID: u32 = 20_000;

impl RecordType {
    /// The rows of a relation; `oid` is 2249 where they have no type of their own. Arrays of a system relation's rows are `record[]`.
    pub fn of_relation(oid: u32, name: Option<String>, fields: Vec<(String, ColType)>) -> RecordType {
        let array_oid = if oid < FIRST_USER_OID { 0 } else { oid + ROW_ARRAYS };
        RecordType { oid, array_oid, name, fields }
    }

    /// The relation whose rows these are.
    pub fn relation(&self) -> Option<GlobalId> {
        self.oid.checked_sub(ROW_TYPES).map(|id| GlobalId(id.into()))
    }
}

/// A domain as the type of a value: which one it is and what it is over. What its values must satisfy changes, and is asked of the catalog
/// ([`Domain`]) where a value is made. One number is one type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DomainType {
    pub oid: u32,
    pub array_oid: u32,
    pub name: String,
    /// Never a domain: those of a domain over another are flattened.
    pub base: ColType,
}

impl PartialEq for DomainType {
    fn eq(&self, other: &DomainType) -> bool {
        self.oid == other.oid
    }
}
impl Eq for DomainType {}
impl PartialOrd for DomainType {
    fn partial_cmp(&self, other: &DomainType) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for DomainType {
    fn cmp(&self, other: &DomainType) -> std::cmp::Ordering {
        self.oid.cmp(&other.oid)
    }
}
impl std::hash::Hash for DomainType {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

/// A domain's definition: what its values must satisfy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Domain {
    pub oid: u32,
    /// 0: it was made before domains had arrays.
    #[serde(default)]
    pub array_oid: u32,
    pub name: String,
    /// Never a domain: those of a domain over another are flattened.
    pub base: ColType,
    /// The domain that it is over, if it is over one.
    #[serde(default)]
    pub parent: Option<u32>,
    pub not_null: bool,
    /// SQL text.
    pub default: Option<String>,
    /// Name and SQL text over VALUE, in the order they are tested.
    pub checks: Vec<(String, String)>,
}

impl Domain {
    /// The type of its values.
    pub fn as_type(&self) -> SqlType {
        SqlType::Domain(Arc::new(DomainType { oid: self.oid, array_oid: self.array_oid, name: self.name.clone(), base: self.base.clone() }))
    }
}

/// An enumeration: labels in their order. A value is its label's code.
///
/// Plans and relations hold copies of the type, which go stale when a label is added; so labels are read from what was last published
/// under the type's number, and the copy's own serve where nothing was. One number is one type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumType {
    pub oid: u32,
    pub array_oid: u32,
    pub name: String,
    labels: Vec<String>,
    /// Each label's code, increasing; empty: 0, 1, 2, … .
    #[serde(default)]
    codes: Vec<u32>,
    /// `enumsortorder` of each label; empty: 1, 2, 3, … .
    #[serde(default)]
    orders: Vec<f32>,
}

type Published = std::sync::RwLock<std::collections::HashMap<u32, Arc<Vec<(u32, String)>>>>;

fn published() -> &'static Published {
    static PUBLISHED: std::sync::OnceLock<Published> = std::sync::OnceLock::new();
    PUBLISHED.get_or_init(Published::default)
}

impl EnumType {
    /// Codes are spread, so that labels can come between.
    pub fn new(oid: u32, array_oid: u32, name: String, labels: Vec<String>) -> EnumType {
        let step = (u32::MAX / (labels.len() as u32).saturating_add(1)).clamp(1, 1 << 24);
        let codes = (1..=labels.len() as u32).map(|i| i.saturating_mul(step)).collect();
        EnumType { oid, array_oid, name, labels, codes, orders: Vec::new() }
    }

    fn own(&self) -> Vec<(u32, String)> {
        let codes = (0..self.labels.len()).map(|i| self.codes.get(i).copied().unwrap_or(i as u32));
        codes.zip(self.labels.iter().cloned()).collect()
    }

    /// What `pg_enum` orders the labels by: a label that came later lies between its neighbours.
    pub fn orders(&self) -> Vec<f32> {
        if self.orders.is_empty() {
            (1..=self.labels.len()).map(|n| n as f32).collect()
        } else {
            self.orders.clone()
        }
    }

    /// This copy's labels.
    pub fn own_labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(String::as_str)
    }

    /// Codes and labels, in order.
    pub fn labels(&self) -> Arc<Vec<(u32, String)>> {
        let all = published().read().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.get(&self.oid).cloned().unwrap_or_else(|| Arc::new(self.own()))
    }

    /// Makes this copy's labels the type's.
    pub fn publish(&self) {
        published().write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(self.oid, Arc::new(self.own()));
    }

    /// The label of a code; empty if there is none.
    pub fn label(&self, code: u32) -> String {
        let labels = self.labels();
        labels.binary_search_by_key(&code, |l| l.0).ok().map_or_else(String::new, |i| labels[i].1.clone())
    }

    pub fn code(&self, label: &str) -> Option<u32> {
        self.labels().iter().find(|l| l.1 == label).map(|l| l.0)
    }

    /// The type with a label at position `at`. `None`: no code is left between its neighbours.
    pub fn with_label(&self, at: usize, label: &str) -> Option<EnumType> {
        let mut all = self.own();
        let below = at.checked_sub(1).and_then(|i| all.get(i)).map_or(0, |l| u64::from(l.0) + 1);
        let code = match all.get(at) {
            Some(above) => {
                let gap = u64::from(above.0).checked_sub(below).filter(|g| *g > 0)?;
                // Labels tend to be put one after the other, before the same one or behind it: most of the gap stays on either side.
                below + if at > 0 { gap / 16 } else { gap - gap / 16 - 1 }
            }
            None => below + if self.codes.is_empty() { 0 } else { (u64::from(u32::MAX).checked_sub(below)? / 16).min(1 << 24) },
        };
        all.insert(at, (u32::try_from(code).ok()?, label.to_owned()));
        let (codes, labels) = all.into_iter().unzip();
        let mut orders = self.orders();
        let order = match (at.checked_sub(1).map(|below| orders[below]), orders.get(at)) {
            (Some(below), Some(above)) => (below + above) / 2.0,
            (Some(below), None) => below + 1.0,
            (None, above) => above.map_or(1.0, |a| a - 1.0),
        };
        orders.insert(at, order);
        Some(EnumType { labels, codes, orders, ..self.clone() })
    }

    pub fn with_name(&self, name: String) -> EnumType {
        EnumType { name, ..self.clone() }
    }

    /// The type with a label renamed.
    pub fn with_renamed(&self, from: &str, to: &str) -> EnumType {
        let labels = self.labels.iter().map(|l| if l == from { to.to_owned() } else { l.clone() }).collect();
        EnumType { labels, ..self.clone() }
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.oid == other.oid
    }
}
impl Eq for EnumType {}
impl PartialOrd for EnumType {
    fn partial_cmp(&self, other: &EnumType) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for EnumType {
    fn cmp(&self, other: &EnumType) -> std::cmp::Ordering {
        self.oid.cmp(&other.oid)
    }
}
impl std::hash::Hash for EnumType {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

/// A range type with its multirange: four types of the catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RangeType {
    pub oid: u32,
    pub array_oid: u32,
    pub multirange_oid: u32,
    pub multirange_array_oid: u32,
    pub name: String,
    pub multirange_name: String,
    pub subtype: SqlType,
}

/// `(SqlType, pg_type name, oid, array oid, SQL display name)` of the simple built-in types.
const SIMPLE: &[(SqlType, &str, u32, u32, &str)] = &[
    (SqlType::Bool, "bool", 16, 1000, "boolean"),
    (SqlType::Bytea, "bytea", 17, 1001, "bytea"),
    (SqlType::Char, "char", 18, 1002, "\"char\""),
    (SqlType::Name, "name", 19, 1003, "name"),
    (SqlType::Int8, "int8", 20, 1016, "bigint"),
    (SqlType::Int2, "int2", 21, 1005, "smallint"),
    (SqlType::Int2Vector, "int2vector", 22, 1006, "int2vector"),
    (SqlType::Int4, "int4", 23, 1007, "integer"),
    (SqlType::Reg(RegKind::Proc), "regproc", 24, 1008, "regproc"),
    (SqlType::Text, "text", 25, 1009, "text"),
    (SqlType::Oid, "oid", 26, 1028, "oid"),
    (SqlType::Tid, "tid", 27, 1010, "tid"),
    (SqlType::Xid, "xid", 28, 1011, "xid"),
    (SqlType::Cid, "cid", 29, 1012, "cid"),
    (SqlType::OidVector, "oidvector", 30, 1013, "oidvector"),
    (SqlType::Json, "json", 114, 199, "json"),
    (SqlType::Geo(GeoKind::Point), "point", 600, 1017, "point"),
    (SqlType::Geo(GeoKind::Lseg), "lseg", 601, 1018, "lseg"),
    (SqlType::Geo(GeoKind::Path), "path", 602, 1019, "path"),
    (SqlType::Geo(GeoKind::Box), "box", 603, 1020, "box"),
    (SqlType::Geo(GeoKind::Polygon), "polygon", 604, 1027, "polygon"),
    (SqlType::Geo(GeoKind::Line), "line", 628, 629, "line"),
    (SqlType::Cidr, "cidr", 650, 651, "cidr"),
    (SqlType::Float4, "float4", 700, 1021, "real"),
    (SqlType::Float8, "float8", 701, 1022, "double precision"),
    (SqlType::Unknown, "unknown", 705, 0, "unknown"),
    (SqlType::Geo(GeoKind::Circle), "circle", 718, 719, "circle"),
    (SqlType::MacAddr8, "macaddr8", 774, 775, "macaddr8"),
    (SqlType::Money, "money", 790, 791, "money"),
    (SqlType::MacAddr, "macaddr", 829, 1040, "macaddr"),
    (SqlType::Inet, "inet", 869, 1041, "inet"),
    (SqlType::AclItem, "aclitem", 1033, 1034, "aclitem"),
    (SqlType::Bpchar, "bpchar", 1042, 1014, "character"),
    (SqlType::Varchar, "varchar", 1043, 1015, "character varying"),
    (SqlType::Date, "date", 1082, 1182, "date"),
    (SqlType::Time, "time", 1083, 1183, "time without time zone"),
    (SqlType::Timestamp, "timestamp", 1114, 1115, "timestamp without time zone"),
    (SqlType::TimestampTz, "timestamptz", 1184, 1185, "timestamp with time zone"),
    (SqlType::Interval, "interval", 1186, 1187, "interval"),
    (SqlType::TimeTz, "timetz", 1266, 1270, "time with time zone"),
    (SqlType::Bit, "bit", 1560, 1561, "bit"),
    (SqlType::VarBit, "varbit", 1562, 1563, "bit varying"),
    (SqlType::Numeric, "numeric", 1700, 1231, "numeric"),
    (SqlType::RefCursor, "refcursor", 1790, 2201, "refcursor"),
    (SqlType::Reg(RegKind::Procedure), "regprocedure", 2202, 2207, "regprocedure"),
    (SqlType::Reg(RegKind::Oper), "regoper", 2203, 2208, "regoper"),
    (SqlType::Reg(RegKind::Operator), "regoperator", 2204, 2209, "regoperator"),
    (SqlType::Reg(RegKind::Class), "regclass", 2205, 2210, "regclass"),
    (SqlType::Reg(RegKind::Type), "regtype", 2206, 2211, "regtype"),
    (SqlType::Void, "void", 2278, 0, "void"),
    (SqlType::TxidSnapshot, "txid_snapshot", 2970, 2949, "txid_snapshot"),
    (SqlType::PgLsn, "pg_lsn", 3220, 3221, "pg_lsn"),
    (SqlType::Snapshot, "pg_snapshot", 5038, 5039, "pg_snapshot"),
    (SqlType::Uuid, "uuid", 2950, 2951, "uuid"),
    (SqlType::TsVector, "tsvector", 3614, 3643, "tsvector"),
    (SqlType::TsQuery, "tsquery", 3615, 3645, "tsquery"),
    (SqlType::Reg(RegKind::Config), "regconfig", 3734, 3735, "regconfig"),
    (SqlType::Reg(RegKind::Dictionary), "regdictionary", 3769, 3770, "regdictionary"),
    (SqlType::Jsonb, "jsonb", 3802, 3807, "jsonb"),
    (SqlType::JsonPath, "jsonpath", 4072, 4073, "jsonpath"),
    (SqlType::Reg(RegKind::Namespace), "regnamespace", 4089, 4090, "regnamespace"),
    (SqlType::Reg(RegKind::Role), "regrole", 4096, 4097, "regrole"),
    (SqlType::Reg(RegKind::Collation), "regcollation", 4191, 4192, "regcollation"),
    (SqlType::Xid8, "xid8", 5069, 271, "xid8"),
    // Not Postgres's: the numbers of the Materialize dialect.
    (SqlType::UInt2, "uint2", 16460, 16461, "uint2"),
    (SqlType::UInt4, "uint4", 16462, 16463, "uint4"),
    (SqlType::UInt8, "uint8", 16464, 16465, "uint8"),
];

/// `(element, name, range oid, range array oid, multirange name, multirange oid, multirange array oid)`.
const RANGES: &[(SqlType, &str, u32, u32, &str, u32, u32)] = &[
    (SqlType::Int4, "int4range", 3904, 3905, "int4multirange", 4451, 6150),
    (SqlType::Numeric, "numrange", 3906, 3907, "nummultirange", 4532, 6151),
    (SqlType::Timestamp, "tsrange", 3908, 3909, "tsmultirange", 4533, 6152),
    (SqlType::TimestampTz, "tstzrange", 3910, 3911, "tstzmultirange", 4534, 6153),
    (SqlType::Date, "daterange", 3912, 3913, "datemultirange", 4535, 6155),
    (SqlType::Int8, "int8range", 3926, 3927, "int8multirange", 4536, 6157),
];

pub const RECORD_OID: u32 = 2249;
pub const RECORD_ARRAY_OID: u32 = 2287;
const LIST_OID: u32 = 16454;
const MAP_OID: u32 = 16455;

impl SqlType {
    /// Postgres's type OID.
    pub fn oid(&self) -> u32 {
        match self {
            SqlType::Array(e) => e.array_oid(),
            SqlType::Range(e) => RANGES.iter().find(|r| r.0 == **e).map_or(0, |r| r.2),
            SqlType::Multirange(e) => RANGES.iter().find(|r| r.0 == **e).map_or(0, |r| r.5),
            SqlType::Record(r) => r.oid,
            SqlType::Enum(e) => e.oid,
            SqlType::Domain(d) => d.oid,
            SqlType::UserRange(r) => r.oid,
            SqlType::UserMultirange(r) => r.multirange_oid,
            SqlType::List(_) => LIST_OID,
            SqlType::Map(_) => MAP_OID,
            simple => SIMPLE.iter().find(|s| s.0 == *simple).map_or(0, |s| s.2),
        }
    }

    /// The OID of the array type over this type; 0 if there is none.
    pub fn array_oid(&self) -> u32 {
        match self {
            SqlType::Range(e) => RANGES.iter().find(|r| r.0 == **e).map_or(0, |r| r.3),
            SqlType::Multirange(e) => RANGES.iter().find(|r| r.0 == **e).map_or(0, |r| r.6),
            SqlType::Record(r) if r.array_oid != 0 => r.array_oid,
            SqlType::Record(_) => RECORD_ARRAY_OID,
            SqlType::Enum(e) => e.array_oid,
            SqlType::Domain(d) => d.array_oid,
            SqlType::UserRange(r) => r.array_oid,
            SqlType::UserMultirange(r) => r.multirange_array_oid,
            SqlType::Array(_) => self.oid(),
            simple => SIMPLE.iter().find(|s| s.0 == *simple).map_or(0, |s| s.3),
        }
    }

    /// The built-in type with this OID; enums and composites live in the catalog.
    pub fn from_oid(oid: u32) -> Option<SqlType> {
        if oid == 0 {
            return None;
        }
        if oid == RECORD_OID {
            return Some(SqlType::Record(Arc::new(RecordType { oid, array_oid: 0, name: None, fields: Vec::new() })));
        }
        for (t, _, o, a, _) in SIMPLE {
            if *o == oid {
                return Some(t.clone());
            }
            if *a == oid {
                return Some(SqlType::Array(Box::new(t.clone())));
            }
        }
        for (t, _, o, a, _, m, ma) in RANGES {
            let (range, multi) = (SqlType::Range(Box::new(t.clone())), SqlType::Multirange(Box::new(t.clone())));
            let hit = match oid {
                x if x == *o => range,
                x if x == *a => SqlType::Array(Box::new(range)),
                x if x == *m => multi,
                x if x == *ma => SqlType::Array(Box::new(multi)),
                _ => continue,
            };
            return Some(hit);
        }
        None
    }

    /// The built-in type with this `pg_type.typname` (`int4`, `_int4`, `numrange`).
    pub fn from_pg_name(name: &str) -> Option<SqlType> {
        if let Some(elem) = name.strip_prefix('_') {
            return SqlType::from_pg_name(elem).map(|e| SqlType::Array(Box::new(e)));
        }
        if name == "record" {
            return SqlType::from_oid(RECORD_OID);
        }
        if let Some(s) = SIMPLE.iter().find(|s| s.1 == name) {
            return Some(s.0.clone());
        }
        RANGES.iter().find_map(|r| match name {
            n if n == r.1 => Some(SqlType::Range(Box::new(r.0.clone()))),
            n if n == r.4 => Some(SqlType::Multirange(Box::new(r.0.clone()))),
            _ => None,
        })
    }

    /// `pg_type.typname`.
    pub fn pg_name(&self) -> String {
        match self {
            SqlType::Array(e) => format!("_{}", e.pg_name()),
            SqlType::Range(e) => RANGES.iter().find(|r| r.0 == **e).map_or_else(|| "anyrange".into(), |r| r.1.into()),
            SqlType::Multirange(e) => RANGES.iter().find(|r| r.0 == **e).map_or_else(|| "anymultirange".into(), |r| r.4.into()),
            SqlType::Record(r) => r.name.clone().unwrap_or_else(|| "record".into()),
            SqlType::Enum(e) => e.name.clone(),
            SqlType::Domain(d) => d.name.clone(),
            SqlType::UserRange(r) => r.name.clone(),
            SqlType::UserMultirange(r) => r.multirange_name.clone(),
            SqlType::List(_) => "list".into(),
            SqlType::Map(_) => "map".into(),
            simple => SIMPLE.iter().find(|s| s.0 == *simple).map_or_else(|| "unknown".into(), |s| s.1.into()),
        }
    }

    /// The type's name as `format_type(oid, NULL)` prints it: `integer`, `text[]`.
    pub fn sql_name(&self) -> String {
        match self {
            SqlType::Array(e) => format!("{}[]", e.sql_name()),
            SqlType::List(e) => format!("{} list", e.sql_name()),
            SqlType::Map(e) => format!("map[text=>{}]", e.sql_name()),
            SqlType::Range(_)
            | SqlType::Multirange(_)
            | SqlType::UserRange(_)
            | SqlType::UserMultirange(_)
            | SqlType::Record(_)
            | SqlType::Enum(_)
            | SqlType::Domain(_) => self.pg_name(),
            simple => SIMPLE.iter().find(|s| s.0 == *simple).map_or_else(|| "unknown".into(), |s| s.4.into()),
        }
    }

    /// `pg_type.typlen`: bytes of a fixed-length type, -1 for a varlena.
    pub fn typlen(&self) -> i16 {
        match self.base() {
            SqlType::Bool | SqlType::Char => 1,
            SqlType::Int2 | SqlType::UInt2 => 2,
            SqlType::Int4
            | SqlType::UInt4
            | SqlType::Float4
            | SqlType::Date
            | SqlType::Oid
            | SqlType::Xid
            | SqlType::Cid
            | SqlType::Reg(_)
            | SqlType::Enum(_)
            | SqlType::Void => 4,
            SqlType::Int8
            | SqlType::UInt8
            | SqlType::Xid8
            | SqlType::PgLsn
            | SqlType::Money
            | SqlType::MacAddr8
            | SqlType::Float8
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz => 8,
            SqlType::MacAddr | SqlType::Tid => 6,
            SqlType::TimeTz | SqlType::AclItem => 12,
            SqlType::Interval | SqlType::Uuid | SqlType::Geo(GeoKind::Point) => 16,
            SqlType::Geo(GeoKind::Line | GeoKind::Circle) => 24,
            SqlType::Geo(GeoKind::Lseg | GeoKind::Box) => 32,
            SqlType::Name => 64,
            SqlType::Unknown => -2,
            _ => -1,
        }
    }

    /// Whether values that are equal can print differently (1.0 and 1.00): such a column's key bytes do not give its value back.
    pub fn equal_is_not_identical(&self) -> bool {
        match self.base() {
            SqlType::Float4 | SqlType::Float8 | SqlType::Numeric | SqlType::Bpchar | SqlType::Interval | SqlType::Jsonb | SqlType::TsQuery => true,
            SqlType::Array(e) | SqlType::Range(e) | SqlType::Multirange(e) | SqlType::List(e) | SqlType::Map(e) => e.equal_is_not_identical(),
            SqlType::UserRange(r) | SqlType::UserMultirange(r) => r.subtype.equal_is_not_identical(),
            SqlType::Record(r) => r.fields.is_empty() || r.fields.iter().any(|f| f.1.ty.equal_is_not_identical()),
            _ => false,
        }
    }

    /// Whether the type has a btree class, so that it can be ordered, grouped and made distinct. Several of the types that have none have an
    /// operator `=` all the same, which is no equality.
    pub fn has_order(&self) -> bool {
        match self.base() {
            SqlType::Geo(_) | SqlType::Json | SqlType::JsonPath => false,
            SqlType::Snapshot | SqlType::TxidSnapshot | SqlType::RefCursor => false,
            SqlType::Array(e) => e.has_order(),
            SqlType::Record(r) => r.fields.iter().all(|f| f.1.ty.has_order()),
            _ => true,
        }
    }

    /// `record` whose fields are not said, or an array of such.
    pub fn has_bare_record(&self) -> bool {
        match self {
            SqlType::Record(r) => r.name.is_none() && r.fields.is_empty(),
            SqlType::Array(e) => e.has_bare_record(),
            _ => false,
        }
    }

    /// What a type without order has none for: the type itself, or the field of a row.
    pub fn unordered(&self) -> Option<&SqlType> {
        match self.base() {
            SqlType::Record(r) => r.fields.iter().find_map(|f| f.1.ty.unordered()),
            t => (!t.has_order()).then_some(t),
        }
    }

    /// What separates elements in the text of an array of this type.
    pub fn delimiter(&self) -> char {
        match self.base() {
            SqlType::Geo(GeoKind::Box) => ';',
            _ => ',',
        }
    }

    /// What a range type ranges over.
    pub fn range_elem(&self) -> Option<&SqlType> {
        match self {
            SqlType::Range(e) => Some(e),
            SqlType::UserRange(r) => Some(&r.subtype),
            _ => None,
        }
    }

    /// What the ranges of a multirange type range over.
    pub fn multirange_elem(&self) -> Option<&SqlType> {
        match self {
            SqlType::Multirange(e) => Some(e),
            SqlType::UserMultirange(r) => Some(&r.subtype),
            _ => None,
        }
    }

    /// A range type's multirange, or a multirange type's range; itself for others.
    pub fn range_partner(&self) -> SqlType {
        match self {
            SqlType::Range(e) => SqlType::Multirange(e.clone()),
            SqlType::Multirange(e) => SqlType::Range(e.clone()),
            SqlType::UserRange(r) => SqlType::UserMultirange(r.clone()),
            SqlType::UserMultirange(r) => SqlType::UserRange(r.clone()),
            other => other.clone(),
        }
    }

    pub fn is_string(&self) -> bool {
        matches!(self, SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name | SqlType::Char | SqlType::Unknown)
    }

    /// What a domain is over; itself for other types. Values of both are the same.
    pub fn base(&self) -> &SqlType {
        match self {
            SqlType::Domain(d) => &d.base.ty,
            other => other,
        }
    }

    /// Whether a domain is named anywhere in the type.
    pub fn has_domain(&self) -> bool {
        match self {
            SqlType::Domain(_) => true,
            SqlType::Array(e) | SqlType::List(e) | SqlType::Map(e) | SqlType::Range(e) | SqlType::Multirange(e) => e.has_domain(),
            SqlType::UserRange(r) | SqlType::UserMultirange(r) => r.subtype.has_domain(),
            SqlType::Record(r) => r.fields.iter().any(|f| f.1.ty.has_domain()),
            _ => false,
        }
    }

    /// The type with every domain in it replaced by what it is over.
    pub fn without_domains(&self) -> SqlType {
        let inner = |e: &SqlType| Box::new(e.without_domains());
        match self {
            t if !t.has_domain() => t.clone(),
            SqlType::Domain(d) => d.base.ty.without_domains(),
            SqlType::Array(e) => match e.without_domains() {
                // An array of a domain over arrays has no name without the domain.
                SqlType::Array(_) => self.clone(),
                e => SqlType::Array(Box::new(e)),
            },
            SqlType::List(e) => SqlType::List(inner(e)),
            SqlType::Map(e) => SqlType::Map(inner(e)),
            SqlType::Record(r) => {
                let fields = r.fields.iter().map(|(n, t)| (n.clone(), t.without_domains())).collect();
                SqlType::Record(Arc::new(RecordType { fields, ..(**r).clone() }))
            }
            other => other.clone(),
        }
    }

    pub fn array_of(self) -> SqlType {
        SqlType::Array(Box::new(self))
    }

    /// A column of this type that may be NULL, without modifier.
    pub fn nullable(self) -> ColType {
        ColType { ty: self, typmod: -1, nullable: true }
    }

    /// A column of this type that is never NULL, without modifier.
    pub fn not_null(self) -> ColType {
        ColType { ty: self, typmod: -1, nullable: false }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql_name())
    }
}

/// The type of a column or expression: type, Postgres's modifier (-1: none), and whether NULL can occur.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ColType {
    pub ty: SqlType,
    pub typmod: i32,
    pub nullable: bool,
}

impl ColType {
    /// The column as one of what its domain is over, modifier included; itself for other types.
    pub fn base(&self) -> ColType {
        match &self.ty {
            SqlType::Domain(d) => ColType { nullable: self.nullable, ..d.base.clone() },
            _ => self.clone(),
        }
    }
    /// [`SqlType::without_domains`], modifier included.
    pub fn without_domains(&self) -> ColType {
        let base = self.base();
        ColType { ty: base.ty.without_domains(), ..base }
    }
    pub fn with_typmod(mut self, typmod: i32) -> ColType {
        self.typmod = typmod;
        self
    }
    pub fn with_nullable(mut self, nullable: bool) -> ColType {
        self.nullable = nullable;
        self
    }
}

/// Column names and types of a relation, with the sets of columns known to be unique.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RelDesc {
    pub names: Vec<String>,
    pub types: Vec<ColType>,
    /// Each entry is a set of column positions no two rows agree on.
    pub keys: Vec<Vec<usize>>,
}

impl RelDesc {
    pub fn arity(&self) -> usize {
        self.types.len()
    }
}
