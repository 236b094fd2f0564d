//! Commands and responses between the coordinator and the workers: the same in process and across processes.
//!
//! Every worker receives every command, in the same order. Frontier and peek answers are merged over the workers by
//! [`Cluster`] before the coordinator sees them.

use crate::flow::Credit;
use crate::worker::{self, Hub, Readers};
use crossbeam_channel::Sender;
use plan::{DataflowDesc, Mfp};
use repr::memory::Holder;
use repr::{ColType, Deltas, Diff, GlobalId, SqlError, Timestamp, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use timely::communication::{initialize_from, WorkerGuards};
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};

/// A shard's content at one time, read by the workers in slices.
pub trait SnapshotReader: Send + Sync {
    /// Rows (diffs may be any non-zero number; consolidated or not) of slice `part` of `parts`: the slices are disjoint and together complete.
    /// Columns that are not `wanted` (`None`: all are) are not looked at, whatever they hold.
    fn read(&self, part: usize, parts: usize, wanted: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>;
    /// Whether no diff is negative: rows can be handed on as they are read.
    fn inserts_only(&self) -> bool {
        false
    }
}

/// Changes of shards, tick by tick.
pub type Ticks = Arc<Vec<(Timestamp, GlobalId, Deltas)>>;

#[derive(Clone)]
pub enum Command {
    /// Builds a dataflow. `shards[i]` gives, for each `Import::Shard`, its content at `as_of`.
    CreateDataflow {
        id: GlobalId,
        desc: Arc<DataflowDesc>,
        shards: Vec<(GlobalId, Arc<dyn SnapshotReader>)>,
        /// Whose the memory is that it takes. Told to let go, it stops on each worker, and waits to be dropped.
        holder: Holder,
    },
    /// Changes of shards after the `as_of` of the dataflow that the next `CreateDataflow` with this id builds, in order of time: what went by before it.
    CatchUp {
        id: GlobalId,
        ticks: Ticks,
    },
    /// Ends a dataflow. One whose exports others import ends when the last importer does.
    DropDataflow {
        id: GlobalId,
    },
    /// Changes of the given shards at time `t`; every shard is complete through `t`. Times of successive ticks increase. `parts`: changes that are
    /// too many to be held, read by whoever needs them.
    Tick {
        t: Timestamp,
        shards: Arc<Vec<(GlobalId, Deltas)>>,
        parts: Vec<(GlobalId, Arc<dyn SnapshotReader>)>,
    },
    /// Reads below `since` of arrangement `index` are no longer needed.
    AllowCompaction {
        index: GlobalId,
        since: Timestamp,
    },
    Peek(Arc<PeekRequest>),
    CancelPeek {
        id: GlobalId,
    },
    /// Memory is short: what is free goes back to the system.
    GiveBack,
    Shutdown,
}

/// A read of an arrangement at time `at`: answered once the arrangement is complete through `at`.
#[derive(Debug)]
pub struct PeekRequest {
    pub id: GlobalId,
    pub index: GlobalId,
    pub at: Timestamp,
    /// Complete key values to look up; `None` scans.
    pub keys: Option<Vec<Vec<Value>>>,
    /// Over the object's columns.
    pub mfp: Mfp,
    pub types: Vec<ColType>,
    /// Stop after so many rows (with multiplicity), where any rows will do.
    pub limit: Option<u64>,
    pub ctx: Arc<DataflowCtx>,
}

/// The evaluation context of a peek.
pub struct DataflowCtx(pub expr::EvalCtx);

impl std::fmt::Debug for DataflowCtx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EvalCtx")
    }
}

/// A change that a subscription sends.
pub type RowUpdate = (Vec<Value>, Timestamp, Diff);

#[derive(Debug)]
pub enum Response {
    /// Rows of a peek or `PeekOnce` in parts: columns and diffs. Then `PeekDone`. More are made as credits are dropped. `summed`, the same in all
    /// parts: the diffs are positive. Otherwise rows of any part may cancel others, and the reader adds them up.
    PeekRows { id: GlobalId, rows: Deltas, summed: bool, credit: Credit },
    /// The least error of the collection, or completion.
    PeekDone { id: GlobalId, result: Result<(), SqlError> },
    /// Consolidated changes with times in `[lower, upper)`. `upper` `None`: the subscription ended. An error ends it too, after the last clean time.
    Subscribe { id: GlobalId, lower: Timestamp, upper: Option<Timestamp>, updates: Result<Vec<RowUpdate>, SqlError> },
    /// The arrangement is complete below `upper`; sent when it advances. `records`, `bytes`: its size, summed over the workers.
    Frontier { index: GlobalId, upper: Timestamp, records: u64, bytes: u64 },
    /// A worker stopped unexpectedly: the process must restart.
    WorkerDied { worker: usize, message: String },
}

/// The workers, seen from the coordinator. Dropping it ends them.
pub struct Cluster {
    commands: Vec<Sender<Command>>,
    threads: WorkerGuards<()>,
    hub: Arc<Hub>,
}

/// Threads that answer peeks of arrangements.
const READERS: usize = 2;

impl Cluster {
    /// Starts `workers` worker threads. Responses arrive on `responses`, from threads of the cluster.
    /// Panics: if the operating system gives no threads.
    pub fn start(workers: usize, responses: Sender<Response>) -> Cluster {
        let workers = workers.max(1);
        let hub = Arc::new(Hub::new(workers, responses));
        let readers = Readers::start(READERS, hub.clone());
        let (commands, queues): (Vec<_>, Vec<_>) = (0..workers).map(|_| crossbeam_channel::unbounded::<Command>()).unzip();
        let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
        let (builders, others) = config.try_build().expect("allocators within one process need nothing from outside");
        let worker_hub = hub.clone();
        let run = move |allocator| {
            let mut worker = Worker::new(WorkerConfig::default(), allocator, Some(Instant::now()));
            let index = worker.index();
            let body = AssertUnwindSafe(|| worker::run(&mut worker, &queues[index], worker_hub.clone(), readers.clone()));
            if let Err(panic) = std::panic::catch_unwind(body) {
                let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                worker_hub.send(Response::WorkerDied { worker: index, message: text.unwrap_or_else(|| "no message".to_owned()) });
                // What the panic left half done is not to be dropped: the process restarts.
                std::mem::forget(worker);
            }
        };
        let threads = initialize_from(builders, others, run).expect("a thread for each worker");
        Cluster { commands, threads, hub }
    }

    /// Sends a command to all workers.
    pub fn send(&self, command: Command) {
        if let Command::CancelPeek { id } = &command {
            // At once, for readers that are at work.
            self.hub.cancel_peek(*id);
        }
        for (queue, thread) in self.commands.iter().zip(self.threads.guards()) {
            // A worker that died was reported; the process restarts.
            let _ = queue.send(command.clone());
            thread.thread().unpark();
        }
    }
}

impl Drop for Cluster {
    /// Waits for the workers to end.
    fn drop(&mut self) {
        self.send(Command::Shutdown);
    }
}
