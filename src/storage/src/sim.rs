//! A disk in memory that crashes and fails on demand.
//!
//! It keeps what was written and what was synced apart. A crash leaves what was synced and, as a seed decides, any part of the rest:
//! a prefix of what was appended, perhaps with a torn last sector; each creation, renaming and removal of a name done or not done.
//!
//! ```text
//!   let disk = SimDisk::new();
//!   disk.power_off_after(n);          // the n-th change fails, and all after it
//!   disk.fail(n, Fault::DiskFull);    // the n-th change fails that way, once or from then on
//!   let disk = disk.crash(seed);      // what is left: open the store on it again
//! ```
//!
//! Calls that change something are counted, so a test can put a fault at each of them in turn. The metadata store is simulated too:
//! a commit that was not durable yet may have happened or not.

use crate::disk::{Disk, DiskFile, Lock};
use crate::meta::{Meta, MetaChange};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error; nothing is done.
    Io,
    /// Half of the bytes are written, then an I/O error. Other calls: as `Io`.
    ShortWrite,
    /// Half of the bytes are written, then "no space left". Syncs and removals work.
    DiskFull,
}

type Inode = u64;

#[derive(Clone, Default)]
struct Contents {
    data: Vec<u8>,
    /// What a crash leaves at least.
    synced: Vec<u8>,
}

#[derive(Clone)]
enum NameOp {
    Set(PathBuf, Inode),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Inode),
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Sim {
    files: BTreeMap<Inode, Contents>,
    /// Names as the process sees them, and as a crash leaves them at least.
    names: BTreeMap<PathBuf, Inode>,
    durable: BTreeMap<PathBuf, Inode>,
    /// Since the last sync of their directory.
    ops: Vec<NameOp>,
    next_inode: Inode,
    meta: Entries,
    meta_durable: Entries,
    locked: bool,
    calls: u64,
    power_off_at: Option<u64>,
    fault: Option<(u64, Fault, bool)>,
    /// Reads until one fails.
    read_fault: Option<u64>,
}

/// Cheap to clone: clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    sim: Arc<Mutex<Sim>>,
}

/// splitmix64: what the tests of crashes draw from.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
    /// One of `0..n`; 0 of none.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn roll(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }
}

enum Kind {
    Write,
    Free,
}

impl Sim {
    /// Counts a change and says how it is to fail.
    fn change(&mut self, kind: Kind) -> Result<(), (io::Error, Fault)> {
        self.calls += 1;
        if self.power_off_at.is_some_and(|n| self.calls >= n) {
            return Err((io::Error::other("the power is off"), Fault::Io));
        }
        let Some((n, fault, always)) = self.fault else {
            return Ok(());
        };
        if self.calls < n || (fault == Fault::DiskFull && matches!(kind, Kind::Free)) {
            return Ok(());
        }
        if !always {
            self.fault = None;
        }
        let kind = if fault == Fault::DiskFull { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
        Err((io::Error::new(kind, "simulated fault"), fault))
    }

    fn plain(&mut self, kind: Kind) -> io::Result<()> {
        self.change(kind).map_err(|e| e.0)
    }

    fn read(&mut self) -> io::Result<()> {
        self.read_fault = self.read_fault.map(|n| n.saturating_sub(1));
        match self.read_fault.take_if(|n| *n == 0) {
            Some(_) => Err(io::Error::other("simulated fault of a read")),
            None => Ok(()),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<Inode> {
        self.names.get(path).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn contents(&mut self, inode: Inode) -> &mut Contents {
        self.files.entry(inode).or_default()
    }
}

fn apply(names: &mut BTreeMap<PathBuf, Inode>, op: &NameOp) {
    match op {
        NameOp::Set(path, inode) => {
            names.insert(path.clone(), *inode);
        }
        NameOp::Remove(path) => {
            names.remove(path);
        }
        NameOp::Rename(from, to, inode) => {
            names.remove(from);
            names.insert(to.clone(), *inode);
        }
    }
}

impl SimDisk {
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// Changes so far: writes, syncs, names, metadata.
    pub fn calls(&self) -> u64 {
        self.sim.lock().calls
    }

    /// The `n`-th change from now, and all after it, fail.
    pub fn power_off_after(&self, n: u64) {
        let mut sim = self.sim.lock();
        sim.power_off_at = Some(sim.calls + n);
    }

    /// The `n`-th change from now fails, and if `always` all after it.
    pub fn fail(&self, n: u64, fault: Fault, always: bool) {
        let mut sim = self.sim.lock();
        sim.fault = Some((sim.calls + n, fault, always));
    }

    /// Takes back what `fail` asked for.
    pub fn heal(&self) {
        self.sim.lock().fault = None;
    }

    /// The `n`-th read from now fails: opening, reading, listing, also of the metadata. `None`: none does.
    pub fn fail_read(&self, n: Option<u64>) {
        self.sim.lock().read_fault = n;
    }

    /// After a power cut that only the process saw: what was written is there.
    pub fn power_on(&self) {
        self.sim.lock().power_off_at = None;
    }

    /// Changes one bit of a file where it lies, as a failing disk does.
    pub fn flip_bit(&self, path: &Path, offset: u64) {
        let mut sim = self.sim.lock();
        if let Ok(inode) = sim.inode(path) {
            let at = offset as usize;
            let c = sim.contents(inode);
            if let Some(b) = c.data.get_mut(at) {
                *b ^= 1;
            }
            if let Some(b) = c.synced.get_mut(at) {
                *b ^= 1;
            }
        }
    }

    /// Bytes of all files that have a name.
    pub fn bytes(&self) -> u64 {
        let sim = self.sim.lock();
        sim.names.values().filter_map(|i| sim.files.get(i)).map(|c| c.data.len() as u64).sum()
    }

    /// What a power cut leaves: another disk, all faults off.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let sim = self.sim.lock();
        let mut dice = Rng::new(seed);
        let mut names = sim.durable.clone();
        // Journaling file systems keep the order of changes to names, others do not.
        let in_order = dice.roll(2) == 0;
        let kept = dice.roll(sim.ops.len() + 1);
        for (i, op) in sim.ops.iter().enumerate() {
            if if in_order { i < kept } else { dice.roll(2) == 0 } {
                apply(&mut names, op);
            }
        }
        let mut files = BTreeMap::new();
        for inode in names.values() {
            let c = sim.files.get(inode).cloned().unwrap_or_default();
            files.insert(*inode, torn(c, &mut dice));
        }
        let meta = if dice.roll(2) == 0 { sim.meta.clone() } else { sim.meta_durable.clone() };
        let after = Sim { files, durable: names.clone(), names, next_inode: sim.next_inode, meta_durable: meta.clone(), meta, ..Sim::default() };
        SimDisk { sim: Arc::new(Mutex::new(after)) }
    }
}

/// A file after a crash: what was synced, then a part of the rest, the last sector perhaps of zeros.
fn torn(c: Contents, dice: &mut Rng) -> Contents {
    let mut data = c.synced;
    if c.data.starts_with(&data) {
        let rest = c.data.len() - data.len();
        let kept = match dice.roll(4) {
            0 => 0,
            1 => rest,
            _ => dice.roll(rest + 1),
        };
        let from = data.len();
        data.extend_from_slice(&c.data[from..from + kept]);
        if kept > 0 && dice.roll(3) == 0 {
            let sector = from + (kept - 1) / 512 * 512;
            data[sector..].fill(0);
        }
    } else if dice.roll(2) == 0 {
        // Cut back without a sync: either length may be found.
        data = c.data;
    }
    Contents { synced: data.clone(), data }
}

struct SimFile {
    sim: Arc<Mutex<Sim>>,
    inode: Inode,
}

impl DiskFile for SimFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut sim = self.sim.lock();
        let failed = sim.change(Kind::Write).err();
        let data = &mut sim.contents(self.inode).data;
        match failed {
            None => {
                data.extend_from_slice(bytes);
                Ok(())
            }
            Some((e, fault)) => {
                if fault != Fault::Io {
                    data.extend_from_slice(&bytes[..bytes.len() / 2]);
                }
                Err(e)
            }
        }
    }
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut sim = self.sim.lock();
        sim.read()?;
        let at = offset as usize;
        sim.contents(self.inode).data.get(at..at + len).map(<[u8]>::to_vec).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }
    fn sync(&self) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Free)?;
        let c = sim.contents(self.inode);
        c.synced = c.data.clone();
        Ok(())
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Free)?;
        sim.contents(self.inode).data.truncate(len as usize);
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.sim.lock().contents(self.inode).data.len() as u64)
    }
}

struct SimLock(Arc<Mutex<Sim>>);

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.lock().locked = false;
    }
}

struct SimMeta(Arc<Mutex<Sim>>);

impl Meta for SimMeta {
    fn load(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut sim = self.0.lock();
        sim.read()?;
        Ok(sim.meta.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
    }
    fn commit(&self, changes: &[MetaChange]) -> io::Result<()> {
        let mut sim = self.0.lock();
        sim.plain(Kind::Write)?;
        for (key, value) in changes {
            match value {
                Some(v) => sim.meta.insert(key.clone(), v.clone()),
                None => sim.meta.remove(key),
            };
        }
        sim.plain(Kind::Free)?;
        sim.meta_durable = sim.meta.clone();
        Ok(())
    }
}

impl Disk for SimDisk {
    /// Directories are not simulated: a name implies its directory.
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Write)?;
        sim.next_inode += 1;
        let inode = sim.next_inode;
        sim.files.insert(inode, Contents::default());
        sim.names.insert(path.to_owned(), inode);
        sim.ops.push(NameOp::Set(path.to_owned(), inode));
        Ok(Box::new(SimFile { sim: self.sim.clone(), inode }))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut sim = self.sim.lock();
        sim.read()?;
        let inode = sim.inode(path)?;
        Ok(Box::new(SimFile { sim: self.sim.clone(), inode }))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Free)?;
        let (synced, rest) = std::mem::take(&mut sim.ops).into_iter().partition(|op| {
            let (NameOp::Set(p, _) | NameOp::Remove(p) | NameOp::Rename(_, p, _)) = op;
            p.parent() == Some(path)
        });
        sim.ops = rest;
        let synced: Vec<NameOp> = synced;
        for op in &synced {
            apply(&mut sim.durable, op);
        }
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Free)?;
        let inode = sim.inode(from)?;
        let op = NameOp::Rename(from.to_owned(), to.to_owned(), inode);
        apply(&mut sim.names, &op);
        sim.ops.push(op);
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.plain(Kind::Free)?;
        sim.inode(path)?;
        let op = NameOp::Remove(path.to_owned());
        apply(&mut sim.names, &op);
        sim.ops.push(op);
        Ok(())
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut sim = self.sim.lock();
        sim.read()?;
        let inside = sim.names.keys().filter(|p| p.parent() == Some(path));
        Ok(inside.filter_map(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned()).collect())
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.sim.lock().names.contains_key(path))
    }
    fn lock(&self, _: &Path, _: &str) -> io::Result<Lock> {
        let mut sim = self.sim.lock();
        if sim.locked {
            return Ok(Lock::Busy("simulated".into()));
        }
        sim.locked = true;
        Ok(Lock::Held(Box::new(SimLock(self.sim.clone()))))
    }
    /// Whether there is room is a matter of faults.
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
    fn set_aside(&self, _: &Path, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open_meta(self: Arc<Self>, _: &Path) -> io::Result<Box<dyn Meta>> {
        Ok(Box::new(SimMeta(self.sim.clone())))
    }
}
