//! Where the store is, as one process tells another.

use std::{
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use steadfast::providers::{
    Provider,
    postgres::PostgresProvider,
    sqlite::{SqliteOptions, SqliteProvider},
};
use steadfast_clock::{Clock, SystemClock};

/// The schema of a run. The server is the run's own.
pub const SCHEMA: &str = "harness";

/// The address of a store: `sqlite:PATH` or `postgres://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file.
    Sqlite(PathBuf),
    /// The URL of a server.
    Postgres(String),
}

impl Address {
    /// Opens the store with the options that a user gets by default.
    ///
    /// # Errors
    ///
    /// What the store says: it may be away at the moment.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may have migrated the store.
    pub async fn open(&self) -> Result<Arc<dyn Provider>> {
        self.open_by(Arc::new(SystemClock)).await
    }

    /// Opens the store; if it is a file, in a process that has this clock.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    ///
    /// As [`open`](Self::open).
    pub async fn open_by(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>> {
        Ok(match self {
            Self::Sqlite(_) => {
                let options = SqliteOptions { clock, ..SqliteOptions::default() };
                let store = SqliteProvider::new(&self.to_string(), Some(options)).await;
                Arc::new(store.context("the file does not open")?)
            }
            Self::Postgres(url) => {
                let store = PostgresProvider::new_with_schema(url, Some(SCHEMA)).await;
                Arc::new(store.context("the server's schema does not open")?)
            }
        })
    }

    /// Returns the path of a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(url),
        }
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("sqlite:") {
            Some("") => bail!("a path is missing after `sqlite:`"),
            Some(path) => Ok(Self::Sqlite(PathBuf::from(path))),
            None if text.starts_with("postgres://") => Ok(Self::Postgres(text.to_owned())),
            None => bail!("`{text}` is no address: give `sqlite:PATH` or `postgres://…`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["sqlite:/tmp/a b/store.db", "postgres://postgres@127.0.0.1:5/postgres"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!("sqlite:".parse::<Address>().is_err() && "mysql://x".parse::<Address>().is_err());
    }
}
