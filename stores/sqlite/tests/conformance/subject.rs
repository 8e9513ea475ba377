//! A SQLite file as a subject of the conformance kit, and the store that it is compared with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use steadfast_clock::Clock;
use steadfast_conformance::{BoxError, Damage, Subject, async_trait};
use steadfast_memory::MemoryStore;
use steadfast_sqlite::{SqliteOptions, SqliteProvider, Threads};
use steadfast_store::Provider;
use tempfile::TempDir;

/// Opens each store in a folder of its own, which lives as long as the store.
#[derive(Default)]
pub(crate) struct File {
    threads: Threads,
    opened: Mutex<BTreeMap<usize, Opened>>,
}

struct Opened {
    folder: Arc<TempDir>,
    steps: Arc<AtomicU64>,
}

impl File {
    /// Opens stores whose statements run there.
    pub(crate) fn on(threads: Threads) -> Self {
        Self { threads, ..Self::default() }
    }

    async fn open_in(
        &self,
        folder: Arc<TempDir>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Provider>, BoxError> {
        let steps = Arc::new(AtomicU64::new(0));
        let count_steps = Some(Arc::clone(&steps));
        let threads = self.threads;
        let options =
            SqliteOptions { clock, threads, other_processes: None, count_steps, ..SqliteOptions::default() };
        let url = format!("sqlite:{}", file_of(&folder).display());
        let provider: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, Some(options)).await?);
        self.opened().insert(address(&provider), Opened { folder, steps });
        Ok(provider)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Subject for File {
    fn name(&self) -> &str {
        match self.threads {
            Threads::Own => "sqlite",
            Threads::Caller => "sqlite, inline",
        }
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        self.open_in(Arc::new(TempDir::new()?), clock).await
    }

    async fn reopen(
        &self,
        provider: Arc<dyn Provider>,
        clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Provider>, BoxError>> {
        let folder = self.opened().remove(&address(&provider))?.folder;
        drop(provider);
        Some(self.open_in(folder, clock).await)
    }

    fn close(&self, provider: Arc<dyn Provider>) {
        let opened = self.opened().remove(&address(&provider));
        drop(provider);
        drop(opened);
    }

    fn walks(&self) -> u64 {
        match self.threads {
            Threads::Own => 10,
            Threads::Caller => 3,
        }
    }

    fn goes_by_this_machine(&self) -> bool {
        true
    }

    async fn damage(&self, provider: &Arc<dyn Provider>, what: Damage<'_>, text: &str) -> Option<usize> {
        let folder = Arc::clone(&self.opened().get(&address(provider))?.folder);
        let file = Connection::open(file_of(&folder)).ok()?;
        let key = "(SELECT key FROM instances WHERE instance = ?2)";
        match what {
            Damage::Messages { instance } => {
                file.execute(&format!("UPDATE messages SET item = ?1 WHERE key = {key}"), [text, instance])
            }
            Damage::Work { instance } => {
                file.execute(&format!("UPDATE work SET item = ?1 WHERE key = {key}"), [text, instance])
            }
            Damage::Event { instance, execution_id, event_id } => file.execute(
                &format!(
                    "UPDATE history SET event = ?1 WHERE key = {key} AND execution = ?3 AND event_id = ?4"
                ),
                rusqlite::params![text, instance, execution_id as i64, event_id as i64],
            ),
        }
        .ok()
    }

    async fn cost(&self, provider: &Arc<dyn Provider>) -> Option<u64> {
        Some(self.opened().get(&address(provider))?.steps.load(Ordering::Relaxed))
    }
}

/// The memory store, which random walks compare the file with.
pub(crate) struct Oracle;

#[async_trait]
impl Subject for Oracle {
    fn name(&self) -> &str {
        "memory"
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        Ok(Arc::new(MemoryStore::with_clock(clock)))
    }
}

fn address(provider: &Arc<dyn Provider>) -> usize {
    Arc::as_ptr(provider).cast::<()>().addr()
}

fn file_of(folder: &TempDir) -> PathBuf {
    folder.path().join("store.db")
}
