//! Laws of the row codec: decode undoes encode, key bytes order and equate as SQL does, columns and values agree.

use repr::jsonb::Jsonb;
use repr::value::{InetValue, Interval, TimeTz};
use repr::{ArrayValue, Batch, Numeric, RangeValue, RowCodec, SqlType, Value};
use std::cmp::Ordering;

fn num(unscaled: i128, scale: u16) -> Value {
    Value::Numeric(Numeric::Small { unscaled, scale })
}
fn big(digits: &str, scale: u16) -> Value {
    Value::Numeric(Numeric::from_big(digits.parse().expect("digits"), scale))
}
fn array(elems: Vec<Value>, dims: &[(i32, i32)]) -> Value {
    Value::Array(Box::new(ArrayValue { elems, dims: dims.to_vec() }))
}
fn jb(j: Jsonb) -> Value {
    Value::Jsonb(Box::new(j))
}
fn jn(unscaled: i128, scale: u16) -> Jsonb {
    Jsonb::Number(Numeric::Small { unscaled, scale })
}
fn span(l: Option<Value>, u: Option<Value>, li: bool, ui: bool) -> Value {
    Value::Range(Box::new(RangeValue::Span { lower: l.map(Box::new), upper: u.map(Box::new), lower_inc: li, upper_inc: ui }))
}
fn iv(months: i32, days: i32, micros: i64) -> Value {
    Value::Interval(Interval { months, days, micros })
}
fn ip(s: &str, bits: u8) -> Value {
    Value::Inet(InetValue { addr: s.parse().expect("address"), bits })
}

/// Of each type: classes of equal values in ascending SQL order, as PostgreSQL 15 sorts them.
fn ordered() -> Vec<(SqlType, Vec<Vec<Value>>)> {
    let t = Value::text;
    vec![
        (SqlType::Bool, vec![vec![Value::Bool(false)], vec![Value::Bool(true)], vec![Value::Null]]),
        (SqlType::Int2, [i16::MIN, -1, 0, 1, i16::MAX].map(|v| vec![Value::Int2(v)]).into()),
        (SqlType::Int4, [i32::MIN, -256, -1, 0, 1, 255, i32::MAX].map(|v| vec![Value::Int4(v)]).into()),
        (SqlType::Int8, [i64::MIN, -1, 0, 1 << 40, i64::MAX].map(|v| vec![Value::Int8(v)]).into()),
        (SqlType::UInt8, [0, 1, u64::MAX].map(|v| vec![Value::UInt8(v)]).into()),
        (SqlType::Date, [i32::MIN, -1, 0, i32::MAX].map(|v| vec![Value::Date(v)]).into()),
        (
            SqlType::Float8,
            vec![
                vec![Value::Float8(f64::NEG_INFINITY)],
                vec![Value::Float8(-1.5)],
                vec![Value::Float8(-f64::MIN_POSITIVE)],
                vec![Value::Float8(0.0), Value::Float8(-0.0)],
                vec![Value::Float8(1e-300)],
                vec![Value::Float8(2.0)],
                vec![Value::Float8(f64::INFINITY)],
                vec![Value::Float8(f64::NAN)],
                vec![Value::Null],
            ],
        ),
        (
            SqlType::Float4,
            vec![vec![Value::Float4(-2.0)], vec![Value::Float4(-0.0), Value::Float4(0.0)], vec![Value::Float4(3.0)], vec![Value::Float4(f32::NAN)]],
        ),
        (
            SqlType::Numeric,
            vec![
                vec![Value::Numeric(Numeric::NegInf)],
                vec![big("-123456789012345678901234567890123456789012345678901234567890", 2)],
                vec![num(-1001, 1)],
                vec![num(-100, 0), num(-10000, 2)],
                vec![num(-99, 0)],
                vec![num(-5, 1)],
                vec![num(-5, 200)],
                vec![num(0, 0), num(0, 7)],
                vec![num(1, 300)],
                vec![num(1, 1), num(10, 2)],
                vec![num(99, 2)],
                vec![num(1, 0), num(10, 1), num(1000000, 6)],
                vec![num(101, 2)],
                vec![num(9, 0)],
                vec![num(10, 0), num(100, 1)],
                vec![num(11, 0)],
                vec![num(i128::MAX, 0), big("1701411834604692317316873037158841057270", 1)],
                vec![big("1000000000000000000000000000000000000000000000000000000000000000000000000000000", 0)],
                vec![Value::Numeric(Numeric::PosInf)],
                vec![Value::Numeric(Numeric::NaN)],
                vec![Value::Null],
            ],
        ),
        (SqlType::Text, ["", "\u{1}", "a", "a\u{1}b", "a ", "aa", "b", "é"].map(|s| vec![t(s)]).into()),
        (SqlType::Bpchar, vec![vec![t(""), t("  ")], vec![t("a"), t("a  ")], vec![t("a b"), t("a b ")], vec![t("b")]]),
        (SqlType::Bytea, [&b""[..], b"\0", b"\0\0", b"\0a", b"a", b"a\0", b"a\0\xff", b"aa", b"\xff"].map(|v| vec![Value::Bytea(v.to_vec())]).into()),
        (
            SqlType::TimeTz,
            vec![
                vec![Value::TimeTz(TimeTz { micros: 3_600_000_000, zone_secs: -3600 })],
                vec![Value::TimeTz(TimeTz { micros: 0, zone_secs: 0 })],
                vec![Value::TimeTz(TimeTz { micros: 1, zone_secs: 0 })],
                vec![Value::TimeTz(TimeTz { micros: 0, zone_secs: 3600 })],
            ],
        ),
        (
            SqlType::Interval,
            vec![
                vec![iv(i32::MIN, i32::MIN, i64::MIN)],
                vec![iv(-1, 0, 0), iv(0, -30, 0)],
                vec![iv(0, 0, -1)],
                vec![iv(0, 0, 0), iv(1, -30, 0)],
                vec![iv(0, 1, 0), iv(0, 0, 86_400_000_000)],
                vec![iv(0, 1, 1)],
                vec![iv(1, 0, 0), iv(0, 30, 0)],
                vec![iv(i32::MAX, i32::MAX, i64::MAX)],
            ],
        ),
        (SqlType::Uuid, [[0; 16], [1; 16], [255; 16]].map(|v| vec![Value::Uuid(v)]).into()),
        (
            SqlType::Inet,
            vec![
                vec![ip("0.0.0.0", 0)],
                vec![ip("10.0.0.0", 8)],
                vec![ip("10.1.2.3", 8)],
                vec![ip("10.0.0.0", 16)],
                vec![ip("10.0.0.1", 32)],
                vec![ip("192.168.0.0", 31)],
                vec![ip("::1", 128)],
                vec![ip("fe80::", 10)],
            ],
        ),
        (
            SqlType::Jsonb,
            vec![
                vec![jb(Jsonb::Array(vec![]))],
                vec![jb(Jsonb::Null)],
                vec![jb(Jsonb::String("a".into()))],
                vec![jb(Jsonb::String("b".into()))],
                vec![jb(jn(-1, 0))],
                vec![jb(jn(1, 0)), jb(jn(100, 2))],
                vec![jb(Jsonb::Bool(false))],
                vec![jb(Jsonb::Bool(true))],
                vec![jb(Jsonb::Array(vec![Jsonb::Null]))],
                vec![jb(Jsonb::Array(vec![jn(1, 0)])), jb(Jsonb::Array(vec![jn(10, 1)]))],
                vec![jb(Jsonb::Array(vec![Jsonb::Array(vec![])]))],
                vec![jb(Jsonb::Array(vec![jn(1, 0), jn(1, 0)]))],
                vec![jb(Jsonb::Object(vec![]))],
                vec![jb(Jsonb::Object(vec![("a".into(), jn(1, 0))])), jb(Jsonb::Object(vec![("a".into(), jn(10, 1))]))],
                vec![jb(Jsonb::Object(vec![("b".into(), jn(0, 0))]))],
                vec![jb(Jsonb::Object(vec![("a".into(), jn(0, 0)), ("b".into(), jn(0, 0))]))],
            ],
        ),
        (
            SqlType::Numeric.array_of(),
            vec![
                vec![array(vec![], &[])],
                vec![array(vec![num(1, 0)], &[(1, 0)])],
                vec![array(vec![num(1, 0)], &[(1, 1)]), array(vec![num(100, 2)], &[(1, 1)])],
                vec![array(vec![num(1, 0), num(2, 0)], &[(2, 1)])],
                vec![array(vec![num(1, 0), num(2, 0)], &[(1, 1), (2, 1)])],
                vec![array(vec![num(1, 0), num(2, 0)], &[(2, 1), (1, 1)])],
                vec![array(vec![num(1, 0), Value::Null], &[(2, 1)])],
                vec![array(vec![num(2, 0)], &[(1, 1)])],
                vec![array(vec![Value::Null], &[(1, 1)])],
            ],
        ),
        (
            SqlType::Range(Box::new(SqlType::Numeric)),
            vec![
                vec![Value::Range(Box::new(RangeValue::Empty))],
                vec![span(None, Some(num(1, 0)), false, false)],
                vec![span(None, Some(num(1, 0)), false, true), span(None, Some(num(10, 1)), false, true)],
                vec![span(None, None, false, false)],
                vec![span(Some(num(0, 0)), Some(num(1, 0)), true, false)],
                vec![span(Some(num(0, 0)), None, true, false)],
                vec![span(Some(num(0, 0)), Some(num(1, 0)), false, false)],
            ],
        ),
        (
            SqlType::Multirange(Box::new(SqlType::Int4)),
            vec![
                vec![Value::Multirange(vec![])],
                vec![Value::Multirange(vec![int_span(1, 2)])],
                vec![Value::Multirange(vec![int_span(1, 2), int_span(5, 6)])],
                vec![Value::Multirange(vec![int_span(1, 3)])],
            ],
        ),
        (
            record(&[SqlType::Int4, SqlType::Numeric]),
            vec![
                vec![Value::Record(vec![Value::Int4(1), num(1, 0)]), Value::Record(vec![Value::Int4(1), num(10, 1)])],
                vec![Value::Record(vec![Value::Int4(1), Value::Null])],
                vec![Value::Record(vec![Value::Int4(2), num(0, 0)])],
                vec![Value::Record(vec![Value::Null, num(0, 0)])],
            ],
        ),
        (
            record(&[]),
            vec![
                vec![Value::Record(vec![Value::Int4(1), num(1, 0)]), Value::Record(vec![Value::Int4(1), num(10, 1)])],
                vec![Value::Record(vec![Value::Int4(2), t("x")])],
            ],
        ),
        (
            SqlType::Map(Box::new(SqlType::Int4)),
            vec![
                vec![Value::Map(vec![])],
                vec![Value::Map(vec![("a".into(), Value::Int4(1))])],
                vec![Value::Map(vec![("a".into(), Value::Null)])],
                vec![Value::Map(vec![("b".into(), Value::Int4(0))])],
            ],
        ),
    ]
}

fn int_span(l: i32, u: i32) -> RangeValue {
    RangeValue::Span { lower: Some(Box::new(Value::Int4(l))), upper: Some(Box::new(Value::Int4(u))), lower_inc: true, upper_inc: false }
}

fn record(fields: &[SqlType]) -> SqlType {
    let fields = fields.iter().map(|t| ("f".to_string(), t.clone().nullable())).collect();
    SqlType::Record(std::sync::Arc::new(repr::types::RecordType { oid: 2249, array_oid: 0, name: None, fields }))
}

/// Identity, with -0 apart from 0 and NaN itself.
fn same(a: &Value, b: &Value) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

#[test]
fn key_bytes_order_and_equate_as_sql() {
    for (ty, classes) in ordered() {
        let codec = RowCodec::new(vec![ty.clone().nullable()]);
        let key = |v: &Value| {
            let mut k = Vec::new();
            codec.encode_key(std::slice::from_ref(v), &mut k);
            k
        };
        for (i, a) in classes.iter().enumerate() {
            for (j, b) in classes.iter().enumerate() {
                for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
                    assert_eq!(key(x).cmp(&key(y)), i.cmp(&j), "{ty}: {x:?} against {y:?}");
                    assert_eq!(x.sql_cmp(y, &ty), i.cmp(&j));
                }
            }
        }
    }
}

#[test]
fn rows_decode_to_identical_values() {
    // Every value stands in front of a second column with a suffix and one without, so that lengths must be right.
    for (ty, classes) in ordered() {
        let types = vec![ty.clone().nullable(), SqlType::Numeric.nullable(), SqlType::Int4.nullable()];
        let codec = RowCodec::new(types.clone());
        let rows: Vec<Vec<Value>> = classes.iter().flatten().map(|v| vec![v.clone(), num(500, 2), Value::Int4(7)]).collect();
        let batch = Batch::from_rows(&types, rows.iter().map(|r| r.as_slice()));
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        codec.encode_rows(&batch.cols, batch.len, &mut bytes, &mut ends);
        let mut encoded = Vec::new();
        let mut start = 0;
        for (i, row) in rows.iter().enumerate() {
            let slice = &bytes[start..ends[i] as usize];
            start = ends[i] as usize;
            let mut one = Vec::new();
            codec.encode_row(row, &mut one);
            assert_eq!(one, slice, "columns and values encode alike: {row:?}");
            let back = codec.decode_row(slice);
            assert!(back.iter().zip(row).all(|(a, b)| same(a, b)), "{ty}: {row:?} came back as {back:?}");
            let mut key = Vec::new();
            codec.encode_key(row, &mut key);
            assert_eq!(codec.key_len(slice), key.len());
            assert_eq!(codec.decode_row(&key)[0].sql_cmp(&row[0], &ty), Ordering::Equal, "a key gives a plausible representative of {:?}", row[0]);
            assert!(same(&codec.decode_column(slice, 0), &row[0]) && same(&codec.decode_column(slice, 2), &row[2]));
            encoded.push(slice);
        }
        let decoded = codec.decode(encoded.iter().copied());
        for (i, row) in rows.iter().enumerate() {
            let back = decoded.row(&types, i);
            assert!(back.iter().zip(row).all(|(a, b)| same(a, b)), "{ty}: {row:?} came back as {back:?}");
        }
        // Identical rows only: row bytes of equal but different values differ.
        for i in 0..encoded.len() {
            assert!(encoded[..i].iter().all(|e| *e != encoded[i]), "{ty}: two rows share their bytes: {:?}", rows[i]);
        }
    }
}

#[test]
fn damaged_bytes_do_not_panic() {
    for (ty, classes) in ordered() {
        let codec = RowCodec::new(vec![ty.clone().nullable()]);
        for v in classes.iter().flatten() {
            let (mut row, mut cell) = (Vec::new(), Vec::new());
            codec.encode_row(std::slice::from_ref(v), &mut row);
            repr::column::encode_value(v, &ty, &mut cell);
            for cut in 0..row.len() {
                codec.decode_row(&row[..cut]);
                let mut bad = row.clone();
                bad[cut] ^= 0x55;
                codec.decode_row(&bad);
            }
            for cut in 0..cell.len() {
                repr::column::decode_value(&ty, &cell[..cut]);
                let mut bad = cell.clone();
                bad[cut] ^= 0x55;
                repr::column::decode_value(&ty, &bad);
            }
        }
    }
}
