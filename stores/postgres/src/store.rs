//! The provider: opening it, and the store trait on top of the batches.

use std::sync::Arc;

use steadfast_store::{StoreClock, Waiters};

use crate::connect::{config_of, pool_of};
use crate::db::Db;
use crate::error::chain;
use crate::migrate::migrate;
use crate::open::{OpenError, quoted};
use crate::options::PostgresOptions;

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
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        let quoted = quoted(schema)?;
        let config = config_of(database_url, &options)?;
        let pool = pool_of(&config, &options)?;
        let mut connection = pool
            .get()
            .await
            .map_err(|error| OpenError::Connect { server: "the server".to_owned(), why: chain(&error) })?;
        migrate(&mut connection, schema).await?;
        drop(connection);
        let clock = options.clock.clone().map(StoreClock::new);
        Ok(Self { db: Db::new(pool, quoted, clock), waiters: Arc::new(Waiters::default()) })
    }
}
