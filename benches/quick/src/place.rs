//! Where a workload keeps its data: a SQLite file, or a schema of a PostgreSQL server of its own; both
//! durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use steadfast::providers::Provider;
use steadfast::providers::postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast_cluster::{Schema, Server};

/// What the workloads run on.
pub(crate) enum Backing {
    Sqlite,
    Postgres(Server),
}

impl Backing {
    pub(crate) fn named(name: &str) -> Result<Self> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres(Server::durable()?)),
            other => anyhow::bail!("there is no store {other:?}; there are sqlite, postgres"),
        }
    }

    /// How many slots of each kind do most in a given time: a round trip wants more of them than a file.
    pub(crate) fn many_slots(&self) -> usize {
        match self {
            Self::Sqlite => 16,
            Self::Postgres(_) => 128,
        }
    }

    /// Makes an empty place.
    pub(crate) fn place(&self) -> Result<Place> {
        Ok(match self {
            Self::Sqlite => Place::File(tempfile::tempdir()?),
            Self::Postgres(server) => {
                Place::Schema { url: server.url().to_owned(), schema: server.schema("bench") }
            }
        })
    }

    /// The median of durable commits of one small row.
    pub(crate) async fn bare_commit(&self) -> Result<Duration> {
        let mut times = match self {
            Self::Sqlite => commits_to_a_file()?,
            Self::Postgres(server) => commits_to_a_server(server).await?,
        };
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }
}

/// An empty place, for one workload.
pub(crate) enum Place {
    File(tempfile::TempDir),
    Schema { url: String, schema: Schema },
}

/// Counts what a store asks.
#[derive(Clone)]
pub(crate) enum Asked {
    Sqlite(Arc<AtomicU64>),
    Postgres(Arc<Counts>),
}

impl Asked {
    pub(crate) fn statements(&self) -> u64 {
        match self {
            Self::Sqlite(count) => count.load(Ordering::Relaxed),
            Self::Postgres(counts) => counts.sent.load(Ordering::Relaxed),
        }
    }
}

impl Place {
    /// Opens a store here, as a process of its own would.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Provider>> {
        Ok(match self {
            Self::File(_) => Arc::new(self.file(None).await?),
            Self::Schema { .. } => Arc::new(self.server(None).await?),
        })
    }

    /// Opens a store whose statements are counted.
    pub(crate) async fn counted_store(&self) -> Result<(Arc<dyn Provider>, Asked)> {
        Ok(match self {
            Self::File(_) => {
                let count = Arc::<AtomicU64>::default();
                (Arc::new(self.file(Some(Arc::clone(&count))).await?), Asked::Sqlite(count))
            }
            Self::Schema { .. } => {
                let counts = Arc::<Counts>::default();
                (Arc::new(self.server(Some(Arc::clone(&counts))).await?), Asked::Postgres(counts))
            }
        })
    }

    async fn file(&self, count_statements: Option<Arc<AtomicU64>>) -> Result<SqliteProvider> {
        let Self::File(folder) = self else { anyhow::bail!("this is no file") };
        let url = format!("sqlite:{}", folder.path().join("bench.db").display());
        let options = SqliteOptions { count_statements, ..SqliteOptions::default() };
        Ok(SqliteProvider::new(&url, Some(options)).await?)
    }

    async fn server(&self, counts: Option<Arc<Counts>>) -> Result<PostgresProvider> {
        let Self::Schema { url, schema } = self else { anyhow::bail!("this is no server") };
        let options = PostgresOptions { counts, ..PostgresOptions::default() };
        Ok(PostgresProvider::new_with_options(url, Some(schema.name()), options).await?)
    }
}

const COMMITS: usize = 500;

fn commits_to_a_file() -> Result<Vec<Duration>> {
    let folder = tempfile::tempdir()?;
    let file = rusqlite::Connection::open(folder.path().join("bare.db"))?;
    file.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x TEXT)")?;
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        let began = Instant::now();
        file.execute("INSERT INTO t VALUES ('a row of about the size of a step')", [])?;
        times.push(began.elapsed());
    }
    Ok(times)
}

async fn commits_to_a_server(server: &Server) -> Result<Vec<Duration>> {
    let (client, connection) = tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute("DROP TABLE IF EXISTS bare; CREATE TABLE bare (x TEXT)").await?;
    let insert = client.prepare("INSERT INTO bare VALUES ('a row of about the size of a step')").await?;
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        let began = Instant::now();
        client.execute(&insert, &[]).await?;
        times.push(began.elapsed());
    }
    drop(client);
    connection.await??;
    Ok(times)
}
