//! The options that a store is opened with.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};

/// The options that a store is opened with. The defaults survive power loss and suit one machine.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The failures that an acknowledged commit survives; power loss by default.
    pub durability: Durability,
    /// How often the store looks for commits of other processes, every 25 ms by default; four times as rarely
    /// if no process has committed for ten seconds. A longer interval wakes waiting calls later. `None` never
    /// looks: only for a file that no other process opens.
    pub other_processes: Option<Duration>,
    /// How long a call waits for another process that writes, 5 seconds by default; then it answers `Busy`.
    /// Too short a time fails calls under load; with a long one, a process that hangs while it writes holds
    /// up the others.
    pub busy_timeout: Duration,
    /// The largest number of requests in one commit, 64 by default. A larger group shares the cost of a sync
    /// among more requests; a smaller one makes them wait less for each other. 0 means 1.
    pub max_group: usize,
    /// The largest number of requests that wait for the writer, 1024 by default; further callers wait for a
    /// place. A small bound makes callers wait earlier; a large one holds more requests in memory when the
    /// writer is slow. 0 means 1.
    pub max_waiting: usize,
    /// The number of connections for reading, 2 by default: so many reads run at a time. 0 means 1. A
    /// database in memory has none and reads through the writer.
    pub readers: usize,
    /// Bounds the write-ahead log, in pages of 4 KiB, 1000 by default: a longer log is written back after a
    /// commit. Readers can keep it from being written back; then it may grow to about four times that. A
    /// small bound costs more writes, a large one more disk and a longer start after a crash.
    pub wal_pages: u32,
    /// Bounds the file, in pages of 4 KiB: calls that need more answer `Full`. `None`, the default, leaves
    /// the bound to the disk.
    pub max_pages: Option<u32>,
    /// The clock that the time of the file follows; the system clock by default. A test can pass a virtual
    /// one. Several processes on one file agree by [`Clock::machine`], so their clocks must share its origin;
    /// those that do not go by their wall clocks, with a warning.
    pub clock: Arc<dyn Clock>,
    /// Where the statements run; threads of the store's own by default.
    #[doc(hidden)]
    pub threads: Threads,
    /// The name of the SQLite VFS that files are opened with. `None`, the default, is that of the system. The
    /// path of the file means what the VFS takes it for: no folder is looked for.
    #[doc(hidden)]
    pub vfs: Option<String>,
    /// Counts the steps of SQLite's virtual machine, for tests of what a call costs.
    #[doc(hidden)]
    pub count_steps: Option<Arc<AtomicU64>>,
    /// Counts the statements that begin, except the looks at the data version.
    #[doc(hidden)]
    pub count_statements: Option<Arc<AtomicU64>>,
    /// Counts the commits that wrote a row.
    #[doc(hidden)]
    pub count_commits: Option<Arc<AtomicU64>>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::PowerLoss,
            other_processes: Some(Duration::from_millis(25)),
            busy_timeout: Duration::from_secs(5),
            max_group: 64,
            max_waiting: 1024,
            readers: 2,
            wal_pages: 1000,
            max_pages: None,
            clock: Arc::new(SystemClock),
            threads: Threads::Own,
            vfs: None,
            count_steps: None,
            count_statements: None,
            count_commits: None,
        }
    }
}

/// The failures that an acknowledged commit survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Survives power loss: each commit is synced before it is acknowledged (`synchronous = FULL`).
    #[default]
    PowerLoss,
    /// Survives a crash of the process, but not of the machine (`synchronous = NORMAL`). A power cut or a
    /// crash of the system can lose the commits since the last checkpoint, acknowledged ones too. The file
    /// stays valid.
    ProcessCrash,
}

/// Where the statements of a store run.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// Writes run on a thread of the store, reads on blocking threads of tokio.
    #[default]
    Own,
    /// All run on the tokio runtime that opened the store, each to its end before another task runs: for
    /// tests that decide the order of everything. The store writes while that runtime runs. If the runtime
    /// is dropped, the store ends as in a process that is killed: leases that were on their way to a caller
    /// stay until they expire.
    Caller,
}
