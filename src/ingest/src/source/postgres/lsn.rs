//! Positions in the write-ahead log, and the position that a source resumes from.

use serde::{Deserialize, Serialize};
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

/// Everything that committed before `lsn` is contained. `system` tells whether it is still the same database cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub lsn: Lsn,
    pub system: String,
}

#[derive(Serialize, Deserialize)]
struct Json {
    lsn: String,
    #[serde(default)]
    system: String,
}

impl Position {
    pub fn to_json(&self) -> String {
        serde_json::json!({ "lsn": self.lsn.to_string(), "system": self.system }).to_string()
    }
    pub fn from_json(text: &str) -> Result<Position, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("the durable position {text} cannot be read: {e}"))?;
        Ok(Position { lsn: json.lsn.parse()?, system: json.system })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip() {
        let p = Position { lsn: Lsn(0x16_0000_00ab), system: "7".into() };
        assert_eq!(p.lsn.to_string(), "16/AB");
        assert_eq!(Position::from_json(&p.to_json()), Ok(p));
        assert!(Position::from_json("{\"lsn\":\"x\"}").is_err());
    }
}
