//! How a store is opened.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};

/// Says how a store is opened. The defaults are durable and suit one machine.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Says what an acknowledged commit survives.
    pub durability: Durability,
    /// Says how often commits of other processes are looked for while somebody commits, and four times as rarely when nobody
    /// has for ten seconds; `None` when no other process opens the file.
    pub other_processes: Option<Duration>,
    /// Bounds how long a call waits for another process that writes; after it the answer is `Busy`.
    pub busy_timeout: Duration,
    /// Bounds the requests of one commit: more share the cost of a sync, fewer wait for each other.
    pub max_group: usize,
    /// Bounds the requests that wait for the writer; callers beyond it wait in line.
    pub max_waiting: usize,
    /// Counts the connections for reading.
    pub readers: usize,
    /// Bounds the write-ahead log, in pages of 4 KiB: beyond it the log is written back after a commit. Readers can
    /// hold it to about four times that.
    pub wal_pages: u32,
    /// Bounds the file, in pages of 4 KiB: calls that need more answer `Full`. `None` leaves it to the disk.
    pub max_pages: Option<u32>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Counts the steps of SQLite's virtual machine, for tests of what a call costs.
    #[doc(hidden)]
    pub count_steps: Option<Arc<AtomicU64>>,
    /// Counts the statements that begin, those that look at the data version apart.
    #[doc(hidden)]
    pub count_statements: Option<Arc<AtomicU64>>,
    /// Counts the commits that wrote something.
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
            count_steps: None,
            count_statements: None,
            count_commits: None,
        }
    }
}

/// Says what an acknowledged commit survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Survives power loss: each commit is synced before it is acknowledged (`synchronous = FULL`).
    #[default]
    PowerLoss,
    /// Survives a crash of the process, not of the machine (`synchronous = NORMAL`). A power cut or a crash of the
    /// system can lose the commits since the last checkpoint, acknowledged ones too. The file stays sound.
    ProcessCrash,
}
