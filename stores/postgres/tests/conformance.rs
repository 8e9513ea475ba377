//! All conformance cases on a PostgreSQL server, and random walks that compare it with the memory store.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use steadfast_clock::Clock;
use steadfast_cluster::{Database, Schema, Server};
use steadfast_conformance::{BoxError, Damage, Subject, async_trait};
use steadfast_memory::MemoryStore;
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::Provider;
use tokio_postgres::NoTls;

/// Opens each store in a schema of its own, which lives as long as the store; one whose blocks are counted in
/// a database of its own, because rows that were deleted are read for as long as a transaction in the same
/// database may see them.
#[derive(Default)]
struct Postgres {
    opened: Mutex<BTreeMap<usize, Opened>>,
}

struct Opened {
    place: Arc<Place>,
    counts: Arc<Counts>,
}

/// Where a store is.
enum Place {
    Shared(Schema),
    Alone(Database),
}

impl Place {
    fn url(&self) -> Result<&str, BoxError> {
        match self {
            Self::Shared(_) => Ok(server()?.url()),
            Self::Alone(database) => Ok(database.url()),
        }
    }

    fn schema(&self) -> &str {
        match self {
            Self::Shared(schema) => schema.name(),
            Self::Alone(database) => database.name(),
        }
    }
}

/// Returns the server of this process, which the first case joins.
fn server() -> Result<&'static Server, BoxError> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    let joined = SERVER.get_or_init(|| Server::join().map_err(|error| error.to_string()));
    joined.as_ref().map_err(|error| error.as_str().into())
}

impl Postgres {
    async fn open_in(&self, place: Arc<Place>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        let counts = Arc::new(Counts { with_blocks: true, ..Counts::default() });
        let options = PostgresOptions {
            clock: Some(clock),
            // No other process notifies, and the statements of a listener would be counted as cost.
            listen: false,
            counts: Some(Arc::clone(&counts)),
            ..PostgresOptions::default()
        };
        let opened = PostgresProvider::new_with_options(place.url()?, Some(place.schema()), options).await?;
        let provider: Arc<dyn Provider> = Arc::new(opened);
        self.opened().insert(address(&provider), Opened { place, counts });
        Ok(provider)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Subject for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        self.open_in(Arc::new(Place::Shared(server()?.schema("conformance"))), clock).await
    }

    async fn open_to_count(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        self.open_in(Arc::new(Place::Alone(server()?.database("counted")?)), clock).await
    }

    async fn reopen(
        &self,
        provider: Arc<dyn Provider>,
        clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Provider>, BoxError>> {
        let place = self.opened().remove(&address(&provider))?.place;
        drop(provider);
        Some(self.open_in(place, clock).await)
    }

    fn close(&self, provider: Arc<dyn Provider>) {
        let opened = self.opened().remove(&address(&provider));
        drop(provider);
        drop(opened);
    }

    async fn damage(&self, provider: &Arc<dyn Provider>, what: Damage<'_>, text: &str) -> Option<usize> {
        let place = Arc::clone(&self.opened().get(&address(provider))?.place);
        let (client, connection) = tokio_postgres::connect(place.url().ok()?, NoTls).await.ok()?;
        let connection = tokio::spawn(connection);
        let schema = place.schema();
        let changed = match what {
            Damage::Messages { instance } => {
                let sql = format!(
                    "UPDATE \"{schema}\".orchestrator_queue SET work_item = $1 WHERE instance_id = $2"
                );
                client.execute(&sql, &[&text, &instance]).await
            }
            Damage::Work { instance } => {
                let sql =
                    format!("UPDATE \"{schema}\".worker_queue SET work_item = $1 WHERE instance_id = $2");
                client.execute(&sql, &[&text, &instance]).await
            }
            Damage::Event { instance, execution_id, event_id } => {
                let sql = format!(
                    "UPDATE \"{schema}\".history SET event_data = $1
                     WHERE instance_id = $2 AND execution_id = $3 AND event_id = $4"
                );
                let (execution_id, event_id) = (execution_id as i64, event_id as i64);
                client.execute(&sql, &[&text, &instance, &execution_id, &event_id]).await
            }
        };
        drop(client);
        connection.await.ok()?.ok()?;
        usize::try_from(changed.ok()?).ok()
    }

    fn walks(&self) -> u64 {
        3 // Each step is a few round trips.
    }

    async fn cost(&self, provider: &Arc<dyn Provider>) -> Option<u64> {
        Some(self.opened().get(&address(provider))?.counts.blocks.load(Ordering::Relaxed))
    }
}

/// The memory store, which random walks compare the server with.
struct Oracle;

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

fn main() {
    steadfast_conformance::main_with_oracle(Arc::new(Postgres::default()), Arc::new(Oracle));
}
