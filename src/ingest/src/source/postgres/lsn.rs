//! Positions in the write-ahead log, and the position that a source resumes from.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A log sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl FromStr for Lsn {
    type Err = String;
    fn from_str(s: &str) -> Result<Lsn, String> {
        let bad = || format!("\"{s}\" is no log sequence number");
        let (hi, lo) = s.split_once('/').ok_or_else(bad)?;
        let half = |t: &str| u32::from_str_radix(t, 16).map(u64::from).map_err(|_| bad());
        Ok(Lsn(half(hi)? << 32 | half(lo)?))
    }
}

/// Which table a name stood for when it was copied, and which of its rows were published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followed {
    pub oid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// Everything that committed before `lsn` is contained. The rest tells whether upstream is still what was copied: the database cluster, the
/// kinds of changes that the publication publishes, the tables by `schema.name`. Positions of earlier versions do not know the last two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub lsn: Lsn,
    pub system: String,
    pub publish: String,
    pub tables: BTreeMap<String, Followed>,
}

#[derive(Serialize, Deserialize)]
struct Json {
    lsn: String,
    #[serde(default)]
    system: String,
    #[serde(default)]
    publish: String,
    #[serde(default)]
    tables: BTreeMap<String, Followed>,
}

impl Position {
    pub fn to_json(&self) -> String {
        let Position { lsn, system, publish, tables } = self;
        serde_json::json!({ "lsn": lsn.to_string(), "system": system, "publish": publish, "tables": tables }).to_string()
    }
    pub fn from_json(text: &str) -> Result<Position, String> {
        let Json { lsn, system, publish, tables } = serde_json::from_str(text).map_err(|e| format!("the durable position {text} cannot be read: {e}"))?;
        Ok(Position { lsn: lsn.parse()?, system, publish, tables })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip() {
        let tables = BTreeMap::from([("a.b".into(), Followed { oid: 7, filter: Some("(x > 1)".into()) }), ("c.d".into(), Followed { oid: 8, filter: None })]);
        let p = Position { lsn: Lsn(0x16_0000_00ab), system: "7".into(), publish: "iud".into(), tables };
        assert_eq!(p.lsn.to_string(), "16/AB");
        assert_eq!(Position::from_json(&p.to_json()), Ok(p));
        assert!(Position::from_json("{\"lsn\":\"x\"}").is_err());
        assert_eq!(Position::from_json("{\"lsn\":\"0/1\"}"), Ok(Position { lsn: Lsn(1), ..Position::default() }));
    }
}
