//! The provider, and how it is opened.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use steadfast_clock::{Clock, Random, SystemClock, SystemRandom};
use steadfast_store::{StoreClock, Waiters};

use crate::link::connect::Connector;
use crate::link::db::Db;
use crate::link::error::{chain, unreached};
use crate::link::lanes::{CallLane, Lanes};
use crate::link::listen::Listener;
use crate::link::open::{OpenError, quoted};
use crate::link::options::{PostgresOptions, PostgresPlan};
use crate::merge::calls::MergedCalls;
use crate::merge::undelivered::Undelivered;
use crate::schema::build::Build;
use crate::schema::migrate::{migrate, pending};
use crate::schema::migrations_pending::PendingMigrations;
use crate::verbs::admin::age::MAX_STEP;
use crate::verbs::backend::Backend;
use crate::verbs::poll::NextMoments;

/// Keeps orchestrations in one schema of a PostgreSQL database, for any number of processes.
///
/// Its methods of the store contract follow that contract's rules of cancel safety: a dropped write may
/// happen or not, and a dropped fetch leaves no lease.
#[derive(Debug)]
pub struct PostgresProvider {
    pub(crate) backend: Backend,
    pub(crate) merged: MergedCalls,
    /// The clock that waits are measured by. It is not the store's time.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) poll_interval: Duration,
    pub(crate) moments: NextMoments,
    _listener: Option<Listener>,
}

/// The schema that is used if the caller names no schema.
const DEFAULT_SCHEMA: &str = "public";

impl PostgresProvider {
    /// Opens a database, `postgres://user:password@host:5432/database`, in its schema `public`, with default
    /// options.
    ///
    /// # Errors
    /// If the URL, the server, the rights of the user or the schema cannot be used; the error says why, and
    /// what to do.
    ///
    /// # Cancel safety
    /// A migration that was begun is rolled back.
    pub async fn new(database_url: &str) -> Result<Self, OpenError> {
        Self::new_with_schema(database_url, None).await
    }

    /// Opens a database in a schema, with default options. `None` stands for the schema `public`.
    ///
    /// The schema is created if it does not exist. Stores in different schemas do not see each other.
    ///
    /// # Errors
    /// If the URL, the server, the rights of the user or the schema cannot be used; the error says why, and
    /// what to do.
    ///
    /// # Cancel safety
    /// A migration that was begun is rolled back.
    pub async fn new_with_schema(database_url: &str, schema: Option<&str>) -> Result<Self, OpenError> {
        Self::new_with_options(database_url, schema, PostgresOptions::default()).await
    }

    /// Opens a database in a schema, with options. No schema stands for `public`.
    ///
    /// # Errors
    /// If the URL, the options, the server, the rights of the user or the schema cannot be used; the error
    /// says why, and what to do.
    ///
    /// # Cancel safety
    /// A migration that was begun is rolled back.
    pub async fn new_with_options<'s>(
        database_url: &str,
        schema: impl Into<Option<&'s str>>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        let plan = PostgresPlan::try_from(options)?;
        let connector = Connector::new(database_url, &plan)?;
        let lanes = Lanes::divided(&connector, &plan)?;
        Self::open(lanes, Some(connector), schema.into(), plan).await
    }

    /// Opens a database in a schema, with a pool that exists already. No schema stands for `public`.
    ///
    /// The pool decides how connections are made: its URL, its TLS, its bounds and timeouts. No connection
    /// listens, because a pool does not tell how it connects; commits of other processes are noticed every
    /// `poll_interval`.
    ///
    /// # Errors
    /// If the options, the server, the rights of the user or the schema cannot be used; the error says why,
    /// and what to do.
    ///
    /// # Cancel safety
    /// A migration that was begun is rolled back.
    pub async fn with_pool<'s>(
        pool: Pool,
        schema: impl Into<Option<&'s str>>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        Self::open(Lanes::shared(pool), None, schema.into(), PostgresPlan::try_from(options)?).await
    }

    /// Lists the changes that opening a schema with this build would make, without making them. No schema
    /// stands for `public`.
    ///
    /// # Errors
    /// The errors of opening the schema.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn pending_migrations<'s>(
        database_url: &str,
        schema: impl Into<Option<&'s str>>,
    ) -> Result<PendingMigrations, OpenError> {
        let schema = schema.into().unwrap_or(DEFAULT_SCHEMA);
        quoted(schema)?;
        let options = PostgresOptions { max_connections: 1, ..PostgresOptions::default() };
        let plan = PostgresPlan::try_from(options)?;
        let connector = Connector::new(database_url, &plan)?;
        let mut connection = first_connection(&connector.pool(&plan, 1)?, Some(&connector)).await?;
        pending(&mut connection, schema, &Build::this()).await
    }

    async fn open(
        lanes: Lanes,
        connector: Option<Connector>,
        schema: Option<&str>,
        plan: PostgresPlan,
    ) -> Result<Self, OpenError> {
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        let quoted = quoted(schema)?;
        let mut connection = first_connection(lanes.of(CallLane::Other), connector.as_ref()).await?;
        migrate(&mut connection, schema, &Build::this(), plan.migration_timeout).await?;
        if let Some(connector) = &connector {
            connector.recognise(&connection).await.map_err(|error| OpenError::Connect {
                server: connector.server().to_owned(),
                why: chain(&error),
            })?;
        }
        drop(connection);
        let store_clock = plan.clock.clone().map(StoreClock::new);
        let db = Db::new(lanes, quoted, store_clock, plan.counts.clone())
            .bounded(plan.statement_timeout, connector.clone());
        let waiters = Arc::new(Waiters::default());
        let me: Arc<str> = format!("{:032x}", SystemRandom.draw()).into();
        let undelivered = Undelivered::new(db.clone(), Arc::clone(&waiters), Arc::clone(&me));
        let deletion_step = Arc::new(AtomicU32::new(MAX_STEP));
        let backend = Backend { db, waiters, me, undelivered, deletion_step };
        let merged = MergedCalls::new(&backend, &plan);
        // Behind a pooler a connection is shared, and would hear notifications that other clients listen for.
        let listener = connector
            .filter(|connector| plan.listen && !connector.is_pooled())
            .map(|connector| Listener::spawn(connector, schema, backend.clone()));
        Ok(Self {
            backend,
            merged,
            clock: plan.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            poll_interval: plan.poll_interval,
            moments: NextMoments::new(),
            _listener: listener,
        })
    }

    pub(crate) fn db(&self) -> &Db {
        &self.backend.db
    }
}

/// Makes the first connection. Its error explains why the server cannot be used.
async fn first_connection(pool: &Pool, connector: Option<&Connector>) -> Result<Object, OpenError> {
    let server = connector.map_or("the server of the pool", Connector::server);
    pool.get().await.map_err(|error| OpenError::Connect { server: server.to_owned(), why: unreached(&error) })
}
