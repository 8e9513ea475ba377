//! The store of a run: a file in the folder of the run, or a server of the run's own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags};
use steadfast_cluster::{Binaries, Server};
use tokio_postgres::NoTls;

use crate::address::{Address, SCHEMA};

/// The kinds of stores that a run can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// A SQLite file, synchronous FULL
    Sqlite,
    /// A PostgreSQL server of its own, synchronous_commit on
    Postgres,
}

/// Where a run keeps its data.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A server that can be crashed. The last clone stops and deletes it.
    Server(Arc<Server>),
}

/// How much room a store takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Room {
    /// The data, in bytes: what rows take, without what is free.
    pub data: f64,
    /// The files, in bytes.
    pub files: f64,
    /// The write-ahead log, in bytes.
    pub log: f64,
    /// Rows that a vacuum has yet to remove, or free pages of a file.
    pub dead: f64,
}

/// Rows of a SQLite file that should not be there when everything has ended.
const LEFT_IN_FILE: [&str; 11] = [
    "messages",
    "work",
    "heads",
    "watchers",
    "set_aside",
    "torn_messages",
    "torn_work",
    "routes",
    "instances WHERE turn <> 0 OR token IS NOT NULL",
    "executions WHERE status = 'Running'",
    "sessions WHERE instance <> '' AND is_row = 1",
];

/// Rows of a schema that should not be there when everything has ended.
const LEFT_IN_SCHEMA: [&str; 9] = [
    "orchestrator_queue",
    "worker_queue",
    "heads",
    "watchers",
    "set_aside",
    "routes",
    "instance_locks WHERE lock_token IS NOT NULL OR head IS NOT NULL",
    "executions WHERE status = 'Running'",
    "sessions WHERE instance_id <> ''",
];

impl Place {
    /// Makes an empty store; a server takes a few seconds.
    ///
    /// # Errors
    ///
    /// No server can be started.
    pub fn make(kind: StoreKind, folder: &Path) -> Result<Self> {
        Ok(match kind {
            StoreKind::Sqlite => Self::File(folder.join("store.db")),
            StoreKind::Postgres => Self::Server(Arc::new(Server::durable()?)),
        })
    }

    /// Returns the address that processes open the store by.
    pub fn address(&self) -> Address {
        match self {
            Self::File(path) => Address::Sqlite(path.clone()),
            Self::Server(server) => Address::Postgres(server.url().to_owned()),
        }
    }

    /// Names what is left in a store in which everything has ended, and what is broken in it.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn left_over(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        match self {
            Self::File(path) => {
                let file = Connection::open(path)?;
                let check: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
                if check != "ok" {
                    found.push(format!("the file is damaged: {check}"));
                }
                for rows in LEFT_IN_FILE {
                    let text = format!("SELECT count(*) FROM {rows}");
                    let count: i64 = file.query_row(&text, [], |row| row.get(0)).context(rows)?;
                    found.extend((count > 0).then(|| format!("{count} rows are left in {rows}")));
                }
            }
            Self::Server(_) => {
                let client = self.connect().await?;
                for rows in LEFT_IN_SCHEMA {
                    let text = format!("SELECT count(*) FROM {SCHEMA}.{rows}");
                    let count: i64 = client.query_one(&text, &[]).await.context(rows)?.get(0);
                    found.extend((count > 0).then(|| format!("{count} rows are left in {rows}")));
                }
            }
        }
        Ok(found)
    }

    /// Measures the room that the store takes.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn room(&self) -> Result<Room> {
        match self {
            Self::File(path) => {
                let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                let number = |name: &str| file.query_row(name, [], |row| row.get::<_, i64>(0));
                let (page, pages) = (number("PRAGMA page_size")?, number("PRAGMA page_count")?);
                let free = number("PRAGMA freelist_count")?;
                let log = path.with_extension("db-wal");
                // The log is not there before the first write.
                let log = fs::metadata(log).map_or(0, |found| found.len());
                Ok(Room {
                    data: ((pages - free) * page) as f64,
                    files: (pages * page) as f64,
                    log: log as f64,
                    dead: free as f64,
                })
            }
            Self::Server(_) => {
                let text = format!(
                    "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8, \
                     coalesce(sum(n_dead_tup), 0)::float8, \
                     coalesce(sum(n_live_tup), 0)::float8, \
                     (SELECT coalesce(sum(size), 0)::float8 FROM pg_ls_waldir()) \
                     FROM pg_stat_user_tables WHERE schemaname = '{SCHEMA}'"
                );
                let row = self.connect().await?.query_one(&text, &[]).await?;
                Ok(Room { files: row.get(0), dead: row.get(1), data: row.get(2), log: row.get(3) })
            }
        }
    }

    /// Keeps what the store holds in the folder of the run, where it is not kept anyway.
    ///
    /// # Errors
    ///
    /// `pg_dump` is not installed or fails.
    pub fn keep(&self, folder: &Path) -> Result<()> {
        let Self::Server(server) = self else { return Ok(()) };
        let path = folder.join("store.sql");
        let dump = Binaries::find()?.folder().join("pg_dump");
        let status = Command::new(dump)
            .args(["--schema", SCHEMA, "--dbname", server.url()])
            .stdin(Stdio::null())
            .stdout(File::create(&path)?)
            .status()
            .context("pg_dump cannot be started")?;
        ensure!(status.success(), "pg_dump: {status}");
        Ok(())
    }

    /// Connects to the server beside the store.
    ///
    /// # Errors
    ///
    /// The server is away, or this is a file.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves nothing behind.
    pub async fn connect(&self) -> Result<tokio_postgres::Client> {
        let Self::Server(server) = self else { anyhow::bail!("a file has no connections") };
        let (client, connection) = tokio_postgres::connect(server.url(), NoTls).await?;
        // It ends with the client, or when the server is stopped, which the client is told too.
        drop(tokio::spawn(connection));
        Ok(client)
    }
}
