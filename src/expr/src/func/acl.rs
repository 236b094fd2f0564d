//! `aclitem`: who may do what. Not here: its text (`repr`), and whether somebody may (`privilege`).

use super::cast::with_style;
use super::lift::Call;
use super::system::oid_of;
use super::Entry;
use crate::ctx::EvalCtx;
use crate::{f2, val};
use repr::error::state;
use repr::text::acl::{AclItem, PRIVILEGES};
use repr::{SqlError, Value};

fn items(v: &Value, ctx: &EvalCtx) -> Result<Vec<AclItem>, SqlError> {
    let Value::Array(a) = v else { return Ok(Vec::new()) };
    if a.dims.len() > 1 {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "ACL arrays must be one-dimensional"));
    }
    let one = |v: &Value| match v {
        Value::Text(s) => with_style(ctx, |style| AclItem::parse(s, style)),
        _ => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "ACL arrays must not contain null values")),
    };
    a.elems.iter().map(one).collect()
}

/// Grantor, grantee, privilege, whether it may be granted on: a row for each privilege.
pub(crate) fn explode(v: &Value, ctx: &EvalCtx) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut out = Vec::new();
    for item in items(v, ctx)? {
        for (i, (_, name)) in PRIVILEGES.iter().enumerate().filter(|(i, _)| item.privileges >> i & 1 == 1) {
            let grantable = item.grantable >> i & 1 == 1;
            out.push(vec![Value::UInt4(item.grantor), Value::UInt4(item.grantee), Value::text(*name), Value::Bool(grantable)]);
        }
    }
    Ok(out)
}

fn make(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let mut item = AclItem { grantee: oid_of(&a[0]), grantor: oid_of(&a[1]), ..AclItem::default() };
    let word = a[2].as_str().unwrap_or("");
    let short = if word.eq_ignore_ascii_case("temp") { "TEMPORARY" } else { word };
    let place = PRIVILEGES.iter().position(|p| p.1.eq_ignore_ascii_case(short));
    let i = place.ok_or_else(|| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized privilege type: \"{word}\"")))?;
    item.privileges = 1 << i;
    if a[3] == Value::Bool(true) {
        item.grantable = item.privileges;
    }
    Ok(Value::Text(with_style(call.ctx, |style| item.print(style))))
}

fn contains(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let one = with_style(call.ctx, |style| AclItem::parse(a[1].as_str().unwrap_or(""), style))?;
    let held = |i: &AclItem| {
        i.grantee == one.grantee && i.grantor == one.grantor && i.privileges & one.privileges == one.privileges && i.grantable & one.grantable == one.grantable
    };
    Ok(Value::Bool(items(&a[0], call.ctx)?.iter().any(held)))
}

/// What nobody has granted anything on: the letter of a kind of objects, what everybody may, what its owner may.
const DEFAULTS: [(&str, &str, &str); 13] = [
    ("c", "", ""),
    ("r", "", "arwdDxt"),
    ("s", "", "rwU"),
    ("d", "Tc", "CTc"),
    ("f", "X", "X"),
    ("l", "U", "U"),
    ("L", "", "rw"),
    ("n", "", "UC"),
    ("p", "", "sA"),
    ("t", "", "C"),
    ("F", "", "U"),
    ("S", "", "U"),
    ("T", "U", "U"),
];

fn default(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (kind, owner) = (a[0].as_str().unwrap_or(""), oid_of(&a[1]));
    let found = DEFAULTS.iter().find(|d| d.0 == kind);
    let (_, everybody, own) = found.ok_or_else(|| SqlError::internal(format!("unrecognized objtype abbreviation: {kind}")))?;
    let bits = |letters: &str| PRIVILEGES.iter().enumerate().filter(|p| letters.contains(p.1 .0)).fold(0, |bits, p| bits | 1 << p.0);
    let grants = [(0, everybody), (owner, own)].into_iter().filter(|g| !g.1.is_empty());
    let item = |(grantee, letters): (u32, &&str)| AclItem { grantee, grantor: owner, privileges: bits(letters), grantable: 0 };
    Ok(Value::array(grants.map(|g| Value::Text(with_style(call.ctx, |style| item(g).print(style)))).collect()))
}

fn not_by_operator(word: &'static str) -> SqlError {
    SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{word} is no longer supported"))
}

pub const FUNCS: &[Entry] = &[
    val!(? ["makeaclitem"], make),
    val!(? ["aclcontains"], contains),
    val!(? ["acldefault_sql"], default),
    f2!(["aclitem_eq"], super::lift::Str, super::lift::Str => bool, |a, b| a == b),
    val!(? ["aclinsert"], |_, _| Err(not_by_operator("aclinsert"))),
    val!(? ["aclremove"], |_, _| Err(not_by_operator("aclremove"))),
];
