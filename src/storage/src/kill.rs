//! Named places at which a test may end the process.
//!
//! `RIVERDELTA_KILL_AT=append-after-sync` aborts at the first passing of that point, `RIVERDELTA_KILL_AT=fold-after-meta:3` at the
//! third. Without the variable a point costs one relaxed load. The points of this crate are listed in `docs/storage-format.md`.
//!
//! Not here: simulated crashes (`sim`), which need no process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

struct Wanted {
    name: String,
    nth: u64,
    seen: AtomicU64,
}

fn wanted() -> Option<&'static Wanted> {
    static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
    WANTED
        .get_or_init(|| {
            let text = std::env::var("RIVERDELTA_KILL_AT").ok()?;
            let (name, nth) = match text.split_once(':') {
                Some((name, nth)) => (name.to_owned(), nth.parse().ok()?),
                None => (text, 1),
            };
            Some(Wanted { name, nth, seen: AtomicU64::new(0) })
        })
        .as_ref()
}

/// Aborts the process if the environment asks for it at this point; otherwise does nothing.
pub fn kill_point(name: &str) {
    if let Some(w) = wanted() {
        if w.name == name && w.seen.fetch_add(1, Ordering::Relaxed) + 1 == w.nth {
            eprintln!("killed at {name} as RIVERDELTA_KILL_AT asks");
            std::process::abort();
        }
    }
}
