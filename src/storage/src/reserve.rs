//! Room that is kept on the disk, so that a full one can be freed from within.
//!
//! ```text
//!   held ─ a tick that frees space finds no room ─► taken: the file is removed, the tick goes in, folding removes what was dropped ─► held again
//! ```
//!
//! It also lets a process start on a full disk, where the metadata store writes as it is opened. While it is taken only ticks that free space
//! are written, so that the room serves them and folding alone.
//!
//! Not here: what frees space (`store`), folding in small parts where room is scarce (`fold`).

use crate::disk::Disk;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// Two segments of the log: folding makes progress in them, whatever else is there.
const BYTES_MAX: u64 = 32 << 20;
/// Less would hold nothing.
const BYTES_MIN: u64 = 64 << 10;
/// This part of what is free at most.
const PART: u64 = 16;

pub(crate) struct Reserve {
    path: PathBuf,
    room: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    bytes: u64,
    /// What it was before it was taken.
    taken: Option<u64>,
}

impl Reserve {
    /// As the last process left it.
    pub(crate) fn new(disk: &dyn Disk, dir: &Path) -> Reserve {
        let path = dir.join("reserve");
        let bytes = disk.open(&path).and_then(|file| file.len()).unwrap_or(0);
        Reserve { path, room: Mutex::new(Room { bytes, taken: None }) }
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.room.lock().taken.is_some()
    }

    /// Gives the room to what frees space. False: there was none.
    pub(crate) fn take(&self, disk: &dyn Disk) -> bool {
        let mut room = self.room.lock();
        if room.bytes == 0 || disk.remove(&self.path).is_err() {
            return false;
        }
        tracing::warn!("the disk is full: what frees space may use the {} kB that were kept for it", room.bytes >> 10);
        *room = Room { bytes: 0, taken: Some(room.bytes) };
        true
    }

    /// Sets aside again what was not used of what was taken.
    pub(crate) fn put_back(&self, disk: &dyn Disk) {
        let mut room = self.room.lock();
        let mut want = room.taken.take().unwrap_or(0).min(disk.free_bytes(&self.path).unwrap_or(0));
        while want > 0 && room.bytes == 0 {
            match disk.set_aside(&self.path, want) {
                Ok(()) => room.bytes = want,
                Err(_) => {
                    let _ = disk.remove(&self.path);
                    want /= 2;
                }
            }
        }
    }

    /// Makes it, or makes it larger, if there is room. A file system that cannot set room aside has none.
    pub(crate) fn fill(&self, disk: &dyn Disk) {
        let mut room = self.room.lock();
        let Ok(free) = disk.free_bytes(&self.path) else { return };
        let free = free + room.bytes;
        let want = (free / PART).max(room.taken.unwrap_or(0)).min(BYTES_MAX);
        if want < BYTES_MIN.max(room.bytes * 2) || free / 2 < want {
            return;
        }
        match disk.set_aside(&self.path, want) {
            Ok(()) => *room = Room { bytes: want, taken: None },
            Err(e) => {
                tracing::debug!(error = %e, "no room could be set aside on the disk");
                let _ = disk.remove(&self.path);
                *room = Room { bytes: 0, taken: None };
            }
        }
    }
}
