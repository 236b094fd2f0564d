//! Keeps the process within its memory: ends the statement, or stops the view, that fills it.
//!
//! ```text
//!   watch (a thread) ── resident > limit ──► chooses the dataflow or session to blame, tells those that work for it to let go
//!                                                └─Event::Memory──► coordinator: a statement gets its error, a view is replaced by one;
//!                                                                   what is free meanwhile goes back to the system
//! ```
//!
//! The thread acts by itself, since the coordinator may be long in one commit, or still loading keys at the start, while workers fill the memory.
//!
//! Whom it blames: the statement that holds most, since it can be run again; else the view that has grown most since it was last up to date
//! (not yet hydrated: at all). What holds little beside the limit is not blamed: ending it would not help. Views that are up to date stay.
//!
//! A view that was stopped answers with its error, as does what is made of it, until it is dropped, replaced, or the process starts anew.

use super::Coordinator;
use crate::catalog::ItemKind;
use crate::coordinator::request::Event;
use crate::session::Cancel;
use crate::Shared;
use expr::{Interrupt, Why};
use parking_lot::Mutex;
use repr::error::state;
use repr::memory::{Holder, Watch, Working};
use repr::{GlobalId, SqlError, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the thread looks, while there is much room and while there is less.
const CALM: Duration = Duration::from_millis(100);
const ALERT: Duration = Duration::from_millis(10);
/// Who holds less than this part of the limit is not to blame.
const SHARE: u64 = 16;
/// For so long nobody else is blamed while what has ended still holds much, nor who holds less than the larger part:
/// what was freed is resident until the threads that had it come to give it back, which takes its time on a busy machine.
const GOING: Duration = Duration::from_secs(5);
const LARGE_SHARE: u64 = 4;
/// A view that has all that was closed so long ago is up to date: ticks may come all the time.
const LAG: Duration = Duration::from_secs(1);
/// Freed memory is the system's again after this time.
const SETTLE: Duration = Duration::from_millis(500);
/// The machine is short of memory when it has less than this part of its own.
const MACHINE_SHARE: u64 = 20;
/// So often the thread asks for free memory where that is not enough; then it asks seldom, and says so.
const ASK_MAX: u32 = 4;
const SELDOM: Duration = Duration::from_secs(30);
const LESS_AT_ONCE: &str = "Let it hold less at once (a condition on what it joins, aggregates or changes), or start the server with a larger --memory-limit.";

/// The dataflows that run, as the memory's guard knows them.
pub struct Guard {
    /// Resident bytes; `None`: there is no limit.
    limit: Option<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<Who, Running>,
    /// Statements of sessions that ever began.
    statements: u64,
    /// What has ended with much memory, which may not be free yet.
    going: Vec<(Watch, Instant)>,
    /// When the last of them ended.
    ended: Option<Instant>,
}

/// Who holds memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Who {
    Dataflow(GlobalId),
    /// A statement in its session, beside its dataflows: the rows of an UPDATE, what a FETCH brings, the variables of a DO.
    Session(u64),
}

struct Running {
    watch: Watch,
    interrupt: Interrupt,
    /// Of a session's statement: what waits is woken, and its error told.
    session: Option<(Arc<Cancel>, Arc<OnceLock<String>>)>,
    /// A one-off result, a subscription, or a session's statement.
    statement: bool,
    as_of: Timestamp,
    /// Complete below this.
    upper: Timestamp,
    /// What it held when it was last up to date.
    base: isize,
}

impl Running {
    /// `due`: what was closed a while ago. Before it is hydrated, it is behind.
    fn is_behind(&self, due: Timestamp) -> bool {
        self.upper <= self.as_of.max(due)
    }
}

impl State {
    fn goes(&mut self, watch: Watch) {
        let now = Instant::now();
        self.going.push((watch, now));
        self.ended = Some(now);
    }
}

/// A dataflow or statement that was told to let go.
#[derive(Debug)]
pub struct Blamed {
    who: Who,
    held: u64,
    limit: u64,
}

impl Blamed {
    /// Of a statement.
    fn detail(&self) -> String {
        format!("the statement held {} when the server came to its limit of {}", size(self.held), size(self.limit))
    }
}

/// A statement of a session, while it runs.
pub(crate) struct Statement<'a> {
    guard: &'a Guard,
    who: Who,
    holder: Holder,
    blamed: Arc<OnceLock<String>>,
}

impl Statement<'_> {
    /// For what works for the statement beside [`Statement::counts`].
    pub(crate) fn holder(&self) -> Holder {
        self.holder.clone()
    }

    /// What the work allocates counts for the statement. Errors: also 53200, once the guard has ended it.
    pub(crate) async fn counts<T>(&self, work: impl Future<Output = Result<T, SqlError>> + Send) -> Result<T, SqlError> {
        let result = Working::new(&self.holder, work).await;
        let Some(detail) = self.blamed.get() else { return result };
        repr::memory::give_back();
        result.map_err(|e| if e.code == state::OUT_OF_MEMORY { e.with_detail(detail).with_hint(LESS_AT_ONCE) } else { e })
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        self.guard.end(self.who);
    }
}

impl Guard {
    /// `limit`: resident bytes.
    pub fn new(limit: Option<u64>) -> Guard {
        Guard { limit, state: Mutex::default() }
    }

    /// A dataflow begins; its memory is to be counted for the holder.
    pub(super) fn begins(&self, id: GlobalId, statement: bool, as_of: Timestamp, interrupt: Interrupt) -> Holder {
        let holder = Holder::default();
        let running = Running { watch: holder.watch(), interrupt, session: None, statement, as_of, upper: 0, base: 0 };
        self.state.lock().running.insert(Who::Dataflow(id), running);
        holder
    }

    /// A session's statement begins, which evaluates under the interrupt. `None`: there is no limit.
    pub(crate) fn statement(&self, cancel: &Arc<Cancel>, interrupt: &Interrupt) -> Option<Statement<'_>> {
        self.limit?;
        let (holder, blamed) = (Holder::default(), Arc::new(OnceLock::new()));
        let session = Some((cancel.clone(), blamed.clone()));
        let running = Running { watch: holder.watch(), interrupt: interrupt.clone(), session, statement: true, as_of: 0, upper: 0, base: 0 };
        let mut state = self.state.lock();
        state.statements += 1;
        let who = Who::Session(state.statements);
        state.running.insert(who, running);
        Some(Statement { guard: self, who, holder, blamed })
    }

    /// It was dropped, and lets go of its memory.
    pub(super) fn ends(&self, id: GlobalId) {
        self.end(Who::Dataflow(id));
    }

    fn end(&self, who: Who) {
        let mut state = self.state.lock();
        let much = self.limit.map_or(isize::MAX, |limit| (limit / SHARE) as isize);
        if let Some(r) = state.running.remove(&who).filter(|r| r.watch.bytes().is_some_and(|b| b > much)) {
            state.goes(r.watch);
        }
    }

    /// It is complete below `upper`.
    pub(super) fn reaches(&self, id: GlobalId, upper: Timestamp) {
        if let Some(r) = self.state.lock().running.get_mut(&Who::Dataflow(id)) {
            r.upper = r.upper.max(upper);
        }
    }

    /// Notes what views hold that are up to date. Whether something that has ended is not gone yet.
    fn look(&self, due: Timestamp) -> bool {
        let mut state = self.state.lock();
        state.going.retain(|(watch, since)| watch.bytes().is_some() || since.elapsed() < SETTLE);
        for r in state.running.values_mut().filter(|r| !r.statement && !r.is_behind(due)) {
            r.base = r.watch.bytes().unwrap_or(0);
        }
        !state.going.is_empty()
    }

    /// Whom to end now that more than `limit` bytes are resident; it is told.
    fn blame(&self, limit: u64, due: Timestamp) -> Option<Blamed> {
        let mut state = self.state.lock();
        let least = limit / if state.ended.is_some_and(|at| at.elapsed() < GOING) { LARGE_SHARE } else { SHARE };
        let holds = |(watch, since): &(Watch, Instant)| since.elapsed() < GOING && watch.bytes().is_some_and(|b| b.max(0) as u64 > least);
        if state.going.iter().any(|g| g.1.elapsed() < SETTLE || holds(g)) {
            return None;
        }
        let grown = |r: &Running| match r.watch.bytes() {
            Some(b) if r.statement || r.is_behind(due) => b.saturating_sub(r.base).max(0) as u64,
            _ => 0,
        };
        let most = state.running.iter().map(|(who, r)| (r.statement, grown(r), *who)).filter(|r| r.1 > least).max();
        let (_, held, who) = most?;
        let r = state.running.remove(&who)?;
        let blamed = Blamed { who, held, limit };
        match &r.session {
            Some((cancel, told)) => {
                let _ = told.set(blamed.detail());
                r.interrupt.set(Why::Memory);
                cancel.wake();
            }
            // The coordinator tells why.
            None => r.interrupt.set(Why::Asked),
        }
        r.watch.end();
        state.goes(r.watch);
        Some(blamed)
    }
}

/// Watches the memory until the coordinator is gone.
pub(super) fn watch(shared: &Shared) {
    let Some(limit) = shared.guard.limit else { return };
    let (mut collected, mut short_for) = (None, 0_u32);
    // Times that were closed within LAG, and the last before them.
    let mut past: VecDeque<(Instant, Timestamp)> = VecDeque::new();
    loop {
        past.push_back((Instant::now(), shared.closed.load(Ordering::Relaxed)));
        while past.get(1).is_some_and(|p| p.0.elapsed() >= LAG) {
            past.pop_front();
        }
        let due = past.front().map_or(0, |p| p.1);
        if shared.guard.look(due) {
            short_for = 0;
        }
        let resident = memory::resident().unwrap_or(0);
        let short = || memory::available().is_some_and(|(free, all)| free < all / MACHINE_SHARE && resident > limit / 4);
        if resident > limit || short() {
            let blamed = shared.guard.blame(limit, due);
            // What has just been freed is not the system's yet; that alone may be enough.
            let pause = if short_for < ASK_MAX { SETTLE } else { SELDOM };
            if blamed.is_some() || collected.is_none_or(|at: Instant| at.elapsed() > pause) {
                collected = blamed.is_none().then(Instant::now);
                short_for = if blamed.is_some() { 0 } else { short_for + 1 };
                if shared.requests.send(Event::Memory(blamed)).is_err() {
                    return;
                }
                if short_for >= ASK_MAX {
                    tracing::warn!("memory: {} are resident, the limit is {}, and nothing that could be ended holds much of it", size(resident), size(limit));
                }
            }
        } else {
            short_for = 0;
        }
        std::thread::sleep(if resident > limit / 2 { ALERT } else { CALM });
    }
}

/// In the units of `--memory-limit`.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        mb if mb >= 1024 => format!("{:.1} GB", mb as f64 / 1024.0),
        mb => format!("{mb} MB"),
    }
}

impl Coordinator {
    /// Somebody was told to let go of memory: who waits for a dataflow is told why.
    pub(super) fn relieve(&mut self, blamed: Blamed) {
        let (held, limit) = (size(blamed.held), size(blamed.limit));
        let out_of_memory = |m: String| SqlError::new(state::OUT_OF_MEMORY, m);
        let warn = || tracing::warn!("memory: a statement that held {held} was ended, the limit is {limit}");
        let Who::Dataflow(id) = blamed.who else { return warn() };
        if self.is_running(id) {
            warn();
            self.fail_read(id, out_of_memory("out of memory".into()).with_detail(blamed.detail()).with_hint(LESS_AT_ONCE));
            return;
        }
        let catalog = self.catalog();
        let Some(item) = catalog.item(id).cloned() else { return };
        let why = format!("{} \"{}\" was stopped: it had grown by {held} when the server came to its memory limit of {limit}", item.noun(), item.name);
        tracing::warn!("memory: {why}");
        let hint = "Drop it, or replace it by one that holds less; it is computed anew when the server starts, which may be with a larger --memory-limit.";
        self.stop_maintained(id, out_of_memory(why).with_hint(hint));
    }

    /// Replaces a view by its error, and makes anew what is made of it. An index goes: what it is on answers without it.
    fn stop_maintained(&mut self, id: GlobalId, why: SqlError) {
        let catalog = self.catalog();
        let mut ids = match catalog.drop_order(&[id], true) {
            Ok(ids) => ids,
            Err(e) => return tracing::error!("what is made of {id} is not known: {e}"),
        };
        ids.retain(|id| self.indexes.contains_key(id));
        self.fail_reads_of(&ids, &why);
        for gone in &ids {
            self.remove_index(*gone);
        }
        self.stopped.insert(id, why);
        if catalog.item(id).is_some_and(|i| matches!(i.kind, ItemKind::Index { .. })) {
            self.planner.withdraw(id);
        }
        for item in ids.iter().rev().filter_map(|id| catalog.item(*id)) {
            // The errors of a view come with it.
            if matches!(item.kind, ItemKind::ViewErrors { .. }) {
                continue;
            }
            if let Err(e) = self.created(&catalog, item, self.closed) {
                (self.fatal)(&format!("{} cannot be made anew: {e}", item.told()));
            }
        }
    }
}

/// What the machine says of memory.
pub mod memory {
    use std::path::Path;

    fn pages_of(statm: &str) -> Option<u64> {
        let mut fields = statm.split_ascii_whitespace().skip(1).map(|f| f.parse::<u64>());
        let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
        Some(resident.saturating_sub(shared))
    }

    /// Bytes of the process that are in memory and in no file. `None` where the system does not say.
    pub fn resident() -> Option<u64> {
        const PAGE_BYTES: u64 = 4096;
        Some(pages_of(&std::fs::read_to_string("/proc/self/statm").ok()?)? * PAGE_BYTES)
    }

    fn meminfo(text: &str, name: &str) -> Option<u64> {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// Bytes that the machine can still give, and all that it has.
    pub fn available() -> Option<(u64, u64)> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        Some((meminfo(&text, "MemAvailable")?, meminfo(&text, "MemTotal")?))
    }

    /// The least limit of the process's control groups, of both versions. `root`: where they are mounted; `groups`: /proc/self/cgroup.
    fn group_limit(root: &Path, groups: &str) -> Option<u64> {
        let limits = groups.lines().flat_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let (base, file) = match controllers {
                "" => (root.to_path_buf(), "memory.max"),
                c if c.split(',').any(|c| c == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
                _ => return vec![],
            };
            // In a container the path may be the host's: then the mount itself is the group.
            let group = Path::new(path.trim_start_matches('/'));
            group.ancestors().filter_map(|g| std::fs::read_to_string(base.join(g).join(file)).ok()?.trim().parse::<u64>().ok()).collect::<Vec<_>>()
        });
        limits.min()
    }

    /// Bytes that the process may use: of the machine, or of its control group where that has a limit.
    pub fn total() -> Option<u64> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let all = available().map(|a| a.1);
        [group_limit(Path::new("/sys/fs/cgroup"), &groups), all].into_iter().flatten().min()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_the_system_says_is_read() {
            assert_eq!(pages_of("250 100 30 1 0 50 0\n"), Some(70));
            assert_eq!(pages_of("garbage"), None);
            assert_eq!(meminfo("MemTotal:       24000 kB\nMemFree: 5 kB\n", "MemTotal"), Some(24_000 * 1024));
            assert_eq!(meminfo("MemTotal:       24000 kB\n", "MemAvailable"), None);
            assert!(resident().is_some_and(|b| b > 1 << 20));
            assert!(total().is_some_and(|b| b > 1 << 26));
        }

        #[test]
        fn the_least_limit_of_the_groups_above_counts() {
            let dir = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let file = dir.path().join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            };
            assert_eq!(group_limit(dir.path(), "0::/a/b\n"), None);
            write("a/b/memory.max", "max\n");
            assert_eq!(group_limit(dir.path(), "0::/a/b\n"), None);
            write("a/memory.max", "5000\n");
            assert_eq!(group_limit(dir.path(), "0::/a/b\n"), Some(5000));
            write("memory/x/memory.limit_in_bytes", "4000\n");
            assert_eq!(group_limit(dir.path(), "3:cpu:/x\n2:memory,hugetlb:/x\n0::/a/b\n"), Some(4000));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repr::memory::{noted, rest};

    const LIMIT: u64 = 1 << 30;

    fn holds(holder: &Holder, bytes: isize) {
        holder.works();
        noted(bytes);
        rest();
    }

    fn begins(guard: &Guard, id: u64, statement: bool, bytes: isize) -> (Holder, Interrupt) {
        let interrupt = Interrupt::default();
        let holder = guard.begins(GlobalId(id), statement, 5_000, interrupt.clone());
        holds(&holder, bytes);
        (holder, interrupt)
    }

    #[test]
    fn the_statement_that_holds_most_goes_before_any_view() {
        let guard = Guard::new(Some(LIMIT));
        let (small, _) = begins(&guard, 1, true, 200 << 20);
        let (large, interrupt) = begins(&guard, 2, true, 300 << 20);
        let (view, _) = begins(&guard, 3, false, 500 << 20);
        assert_eq!(guard.blame(LIMIT, 10).map(|b| b.who), Some(Who::Dataflow(GlobalId(2))));
        assert!(large.is_ended() && interrupt.is_set() && !small.is_ended() && !view.is_ended());
        assert!(guard.blame(LIMIT, 10).is_none(), "one at a time");
    }

    #[test]
    fn a_view_is_blamed_for_what_it_grew_since_it_was_complete() {
        let guard = Guard::new(Some(LIMIT));
        let (old, _) = begins(&guard, 1, false, 900 << 20);
        guard.reaches(GlobalId(1), 5_011);
        guard.look(5_010);
        assert!(guard.blame(LIMIT, 5_010).is_none(), "a view that is up to date stays");
        let (young, _) = begins(&guard, 2, false, 100 << 20);
        holds(&old, 10 << 20);
        assert_eq!(guard.blame(LIMIT, 9_000).map(|b| b.who), Some(Who::Dataflow(GlobalId(2))));
        guard.ends(GlobalId(2));
        drop(young);
        std::thread::sleep(SETTLE);
        assert!(guard.blame(LIMIT, 9_000).is_none(), "it has grown by little");
        holds(&old, 100 << 20);
        assert!(guard.blame(LIMIT, 9_000).is_none(), "what has just ended may still be resident");
        holds(&old, 200 << 20);
        assert_eq!(guard.blame(LIMIT, 9_000).map(|b| (b.who, b.held)), Some((Who::Dataflow(GlobalId(1)), 310 << 20)));
    }

    #[test]
    fn small_statements_that_come_and_go_hold_nothing_up() {
        let guard = Guard::new(Some(LIMIT));
        let (_small, _) = begins(&guard, 1, true, 10 << 20);
        let (large, _) = begins(&guard, 2, true, 300 << 20);
        guard.ends(GlobalId(1));
        assert_eq!(guard.blame(LIMIT, 10).map(|b| b.who), Some(Who::Dataflow(GlobalId(2))));
        assert!(large.is_ended());
    }

    #[test]
    fn who_holds_little_is_not_to_blame() {
        let guard = Guard::new(Some(LIMIT));
        let (statement, _) = begins(&guard, 1, true, 10 << 20);
        assert!(guard.blame(LIMIT, 10).is_none());
        assert!(!statement.is_ended());
    }
}
