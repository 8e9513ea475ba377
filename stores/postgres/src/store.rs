//! The provider: opening it, and the store trait on top of the batches.

use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use steadfast_store::{StoreClock, Waiters};

use crate::connect::Connector;
use crate::db::Db;
use crate::error::unreached;
use crate::migrate::{Build, migrate, pending};
use crate::open::{OpenError, quoted};
use crate::options::{Plan, PostgresOptions};
use crate::pending::PendingMigrations;

/// Keeps everything in one schema of a Postgres database.
#[derive(Debug)]
pub struct PostgresProvider {
    pub(crate) db: Db,
    pub(crate) waiters: Arc<Waiters>,
}

/// The schema of a provider that names none.
const DEFAULT_SCHEMA: &str = "public";

impl PostgresProvider {
    /// Opens a database, `postgres://user:password@host:5432/database`, in its schema `public`.
    ///
    /// # Errors
    /// What is wrong with the URL, the server, the rights of the user or the schema.
    pub async fn new(database_url: &str) -> Result<Self, OpenError> {
        Self::new_with_schema(database_url, None).await
    }

    /// Opens a database in a schema, which is made if it is not there. Schemas are isolated from each other.
    ///
    /// # Errors
    /// What is wrong with the URL, the server, the rights of the user or the schema.
    pub async fn new_with_schema(database_url: &str, schema: Option<&str>) -> Result<Self, OpenError> {
        Self::new_with_options(database_url, schema, PostgresOptions::default()).await
    }

    /// Opens a database in a schema, with options.
    ///
    /// # Errors
    /// What is wrong with the URL, the options, the server, the rights of the user or the schema.
    pub async fn new_with_options(
        database_url: &str,
        schema: Option<&str>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        let plan = Plan::try_from(options)?;
        let connector = Connector::new(database_url, &plan)?;
        let pool = connector.pool(&plan)?;
        Self::open(pool, Some(connector), schema, plan).await
    }

    /// Opens a database in a schema, with a pool that exists already.
    ///
    /// How connections are made is the pool's affair: its URL, its TLS, its bounds and timeouts. No connection listens, because
    /// a pool keeps to itself how it connects; what other processes commit is noticed every `poll_interval`.
    ///
    /// # Errors
    /// What is wrong with the options, the server, the rights of the user or the schema.
    pub async fn with_pool(
        pool: deadpool_postgres::Pool,
        schema: Option<&str>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        Self::open(pool, None, schema, Plan::try_from(options)?).await
    }

    /// Says what opening a schema with this build would do to it, and does nothing.
    ///
    /// # Errors
    /// As opening it would give.
    pub async fn pending_migrations(
        database_url: &str,
        schema: Option<&str>,
    ) -> Result<PendingMigrations, OpenError> {
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        quoted(schema)?;
        let plan = Plan::try_from(PostgresOptions { max_connections: 1, ..PostgresOptions::default() })?;
        let connector = Connector::new(database_url, &plan)?;
        let mut connection = first(&connector.pool(&plan)?, Some(&connector)).await?;
        pending(&mut connection, schema, &Build::this()).await
    }

    async fn open(
        pool: Pool,
        connector: Option<Connector>,
        schema: Option<&str>,
        plan: Plan,
    ) -> Result<Self, OpenError> {
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        let quoted = quoted(schema)?;
        let mut connection = first(&pool, connector.as_ref()).await?;
        migrate(&mut connection, schema, &Build::this(), plan.migration_timeout).await?;
        drop(connection);
        let clock = plan.clock.clone().map(StoreClock::new);
        let db = Db::new(pool, quoted, clock).bounded(plan.statement_timeout, connector);
        Ok(Self { db, waiters: Arc::new(Waiters::default()) })
    }
}

/// Makes the first connection, whose failure says what is wrong.
async fn first(pool: &Pool, connector: Option<&Connector>) -> Result<Object, OpenError> {
    let server = connector.map_or("the server of the pool", Connector::server);
    pool.get().await.map_err(|error| OpenError::Connect { server: server.to_owned(), why: unreached(&error) })
}
