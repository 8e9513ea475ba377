//! A machine with a disk, on which stores are opened and the power fails.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use steadfast_clock::VirtualClock;
use steadfast_disk::{Disk, Loss, Mount, VFS};
use steadfast_sqlite::{Durability, OpenError, SqliteOptions, SqliteProvider, Threads};

pub(crate) const FILE: &str = "store.db";

pub(crate) struct Machine {
    pub(crate) disk: Disk,
    pub(crate) clock: VirtualClock,
    pub(crate) durability: Durability,
    pub(crate) wal_pages: u32,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = Disk::new(seed).expect("a disk");
        let clock = VirtualClock::new(1_700_000_000_000);
        // A short log, so that it is written back and begins anew during a test.
        Self { disk, clock, durability: Durability::PowerLoss, wal_pages: 20 }
    }

    /// A machine with an empty store, closed properly.
    pub(crate) fn ready() -> Self {
        let machine = Self::new(1);
        process(async {
            drop(machine.reopen("maker").await);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
        });
        machine
    }

    /// Another machine with the same files.
    pub(crate) fn copy(&self, seed: u64) -> Self {
        let disk = self.disk.copy(seed).expect("a disk");
        let clock = VirtualClock::new(1_700_000_000_000);
        Self { disk, clock, durability: self.durability, wal_pages: self.wal_pages }
    }

    pub(crate) fn options(&self) -> SqliteOptions {
        SqliteOptions {
            clock: Arc::new(self.clock.clone()),
            durability: self.durability,
            threads: Threads::Caller,
            vfs: Some(VFS.to_owned()),
            other_processes: Some(Duration::from_millis(25)),
            busy_timeout: Duration::ZERO,
            wal_pages: self.wal_pages,
            ..SqliteOptions::default()
        }
    }

    /// Opens the store in a process.
    pub(crate) async fn open(&self, mount: &Mount) -> Result<SqliteProvider, OpenError> {
        SqliteProvider::new(&format!("sqlite:{}", mount.path(FILE)), Some(self.options())).await
    }

    /// Opens the store in a process of its own, on a disk that works.
    pub(crate) async fn reopen(&self, name: &str) -> SqliteProvider {
        self.open(&self.disk.mount(name)).await.expect("the store opens")
    }

    pub(crate) fn restart(&self, loss: Loss) {
        self.disk.heal();
        self.disk.crash(loss);
    }

    /// Opens the file as a tool does.
    pub(crate) fn raw(&self) -> Connection {
        let path = self.disk.mount("checker").path(FILE);
        Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS).expect("a file")
    }

    pub(crate) fn assert_sound(&self) {
        let file = self.raw();
        let found: String =
            file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("the file can be checked");
        assert_eq!(found, "ok");
    }
}

/// Runs a process: its tasks end with it, where they stand.
pub(crate) fn process<T>(life: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    tokio.block_on(life)
}
