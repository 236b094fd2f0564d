//! `pg_snapshot`: which transactions a reader sees, `xmin:xmax:xip,…`.

use crate::error::state;
use crate::SqlError;
use std::fmt;

/// What is before `xmin` is seen, what is at or beyond `xmax` is not, nor is what is in `xip`, which is in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub xmin: u64,
    pub xmax: u64,
    pub xip: Vec<u64>,
}

impl Snapshot {
    /// Numbers that come twice count once. `None`: they are out of order or of range.
    pub fn new(xmin: u64, xmax: u64, mut xip: Vec<u64>) -> Option<Snapshot> {
        let ordered = xip.windows(2).all(|w| w[0] <= w[1]);
        let inside = xip.iter().all(|x| (xmin..xmax).contains(x));
        xip.dedup();
        (xmin > 0 && xmin <= xmax && ordered && inside).then_some(Snapshot { xmin, xmax, xip })
    }

    /// Errors: 22P02.
    pub fn parse(text: &str) -> Result<Snapshot, SqlError> {
        let number = |s: &str| s.trim_ascii_start().parse::<u64>().ok();
        let parts = || {
            let mut parts = text.splitn(3, ':');
            let (xmin, xmax, list) = (number(parts.next()?)?, number(parts.next()?)?, parts.next()?);
            let list = list.strip_suffix(',').unwrap_or(list);
            let xip = if list.is_empty() { Some(Vec::new()) } else { list.split(',').map(number).collect() };
            Snapshot::new(xmin, xmax, xip?)
        };
        parts().ok_or_else(|| SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type pg_snapshot: \"{text}\"")))
    }

    pub fn sees(&self, transaction: u64) -> bool {
        transaction < self.xmin || transaction < self.xmax && self.xip.binary_search(&transaction).is_err()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        self.xip.iter().enumerate().try_for_each(|(i, x)| write!(f, "{}{x}", if i > 0 { "," } else { "" }))
    }
}
