//! Where a store is kept: a SQLite file, or a schema of a PostgreSQL server that counts blocks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use steadfast::providers::Provider;
use steadfast::providers::postgres::{PostgresOptions, PostgresProvider};
use steadfast::providers::sqlite::{Durability, SqliteOptions, SqliteProvider};
use steadfast_cluster::{Schema, Server};
use steadfast_store::Store;
use tokio_postgres::{Client, NoTls};

/// The kinds of stores that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// A SQLite file.
    Sqlite,
    /// A schema of a PostgreSQL server of its own.
    Postgres,
}

impl Backend {
    /// Returns the unit in which work is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Sqlite => "steps",
            Self::Postgres => "blocks",
        }
    }

    /// Returns how many bytes an instance of the generator takes on the disk, with fifty events, indexes and
    /// the write-ahead log; rounded up.
    pub fn bytes_of_instance(self) -> u64 {
        match self {
            Self::Sqlite => 24_000,
            Self::Postgres => 36_000,
        }
    }
}

/// Fails if the stores of so many instances do not fit on the disk.
///
/// # Errors
///
/// The disk has less free space than they need, or cannot be asked.
pub fn check_space(backend: Backend, instances: u64) -> Result<()> {
    let folder = std::env::temp_dir();
    let disk = rustix::fs::statvfs(&folder).with_context(|| folder.display().to_string())?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let needed = instances.saturating_mul(backend.bytes_of_instance());
    if free < needed {
        bail!(
            "{instances} instances need about {} MiB, and {} has {} MiB free: ask for fewer instances, or \
             name a folder on another disk with TMPDIR",
            needed >> 20,
            folder.display(),
            free >> 20
        );
    }
    Ok(())
}

/// What the stores of one run are kept on.
pub enum Host {
    /// The folder for temporary files.
    Files,
    /// A server that counts the blocks of each statement.
    Server(Box<Server>),
}

impl Host {
    /// Starts a server if the kind of store needs one.
    ///
    /// # Errors
    ///
    /// The server cannot be started.
    pub fn start(backend: Backend) -> Result<Self> {
        Ok(match backend {
            Backend::Sqlite => Self::Files,
            Backend::Postgres => {
                let server = Server::durable()?;
                let settings = [
                    ("shared_preload_libraries", "pg_stat_statements"),
                    ("pg_stat_statements.track", "top"),
                    ("pg_stat_statements.max", "5000"),
                    // The data is thrown away: nothing waits for the disk, and nothing cleans up beside the
                    // calls that are counted.
                    ("fsync", "off"),
                    ("synchronous_commit", "off"),
                    ("full_page_writes", "off"),
                    ("autovacuum", "off"),
                    ("max_wal_size", "4GB"),
                    ("shared_buffers", "256MB"),
                ];
                server.start_changed(&settings, &[])?;
                Self::Server(Box::new(server))
            }
        })
    }

    /// Makes an empty place for a store.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub fn site(&self) -> Result<Site> {
        Ok(match self {
            Self::Files => Site::File { folder: tempfile::tempdir()? },
            Self::Server(server) => {
                Site::Schema { url: server.url().to_owned(), schema: server.schema("scale") }
            }
        })
    }
}

/// Where one store is kept.
pub enum Site {
    /// A file in a folder that is removed with the value.
    File {
        /// The folder.
        folder: tempfile::TempDir,
    },
    /// A schema that is removed with the value.
    Schema {
        /// The address of the server.
        url: String,
        /// The name of the schema.
        schema: Schema,
    },
}

impl Site {
    /// Returns the path of the file; `None` for a schema.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File { folder } => Some(folder.path().join("scale.db")),
            Self::Schema { .. } => None,
        }
    }

    /// Opens the store, as a process of its own would.
    ///
    /// # Errors
    ///
    /// The store cannot be opened.
    ///
    /// # Cancel safety
    /// A dropped future leaves a store that opens.
    pub async fn open(&self) -> Result<Opened> {
        match self {
            Self::File { folder } => {
                let steps = Arc::<AtomicU64>::default();
                let options = SqliteOptions {
                    durability: Durability::ProcessCrash,
                    other_processes: None,
                    count_steps: Some(Arc::clone(&steps)),
                    ..SqliteOptions::default()
                };
                let url = format!("sqlite:{}", folder.path().join("scale.db").display());
                let store = Arc::new(SqliteProvider::new(&url, Some(options)).await?);
                Ok(Opened { provider: store.clone(), store, meter: Meter::Steps(steps) })
            }
            Self::Schema { url, schema } => {
                // A parent with very many children is deleted in one statement.
                let statement_timeout = Duration::from_secs(1800);
                let options =
                    PostgresOptions { listen: false, statement_timeout, ..PostgresOptions::default() };
                let client = connect(url).await?;
                client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await?;
                let store =
                    PostgresProvider::new_with_options(url.as_str(), Some(schema.name()), options).await?;
                let store = Arc::new(store);
                Ok(Opened { provider: store.clone(), store, meter: Meter::Blocks(Box::new(client)) })
            }
        }
    }
}

/// A store that is open, and the counter of its work.
pub struct Opened {
    /// The store, for the calls that are counted.
    pub store: Arc<dyn Store>,
    /// The same store, for the runtime.
    pub provider: Arc<dyn Provider>,
    /// Counts the work of the store.
    pub meter: Meter,
}

/// Counts the work of a store.
pub enum Meter {
    /// Steps of SQLite's virtual machine since the store was opened.
    Steps(Arc<AtomicU64>),
    /// Blocks of tables and indexes that statements looked at, in memory or not, since the server started.
    Blocks(Box<Client>),
}

/// Sums the blocks that all statements have looked at.
const BLOCKS: &str = "SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
    FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'";

impl Meter {
    /// Returns how much was done so far.
    ///
    /// # Errors
    ///
    /// The server cannot be asked.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn read(&self) -> Result<u64> {
        Ok(match self {
            Self::Steps(steps) => steps.load(Ordering::Relaxed),
            Self::Blocks(client) => {
                let sum: i64 = client.query_one(BLOCKS, &[]).await?.get(0);
                u64::try_from(sum)?
            }
        })
    }
}

/// Opens a connection to a server.
///
/// # Errors
///
/// The server cannot be reached.
///
/// # Cancel safety
/// A dropped future leaves no connection.
pub async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
