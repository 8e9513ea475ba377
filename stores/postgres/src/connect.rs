//! Connections: from a URL to a pool.

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{Config, NoTls};

use crate::error::chain;
use crate::open::OpenError;
use crate::options::PostgresOptions;

/// Reads a connection URL.
pub(crate) fn config_of(url: &str, options: &PostgresOptions) -> Result<Config, OpenError> {
    let refused = |why: String| OpenError::Url { url: url.to_owned(), why };
    let mut config: Config = url.parse().map_err(|error| refused(chain(&error)))?;
    config.connect_timeout(options.connect_timeout);
    if config.get_application_name().is_none() {
        config.application_name("steadfast");
    }
    Ok(config)
}

/// Makes a pool; no connection is made yet.
pub(crate) fn pool_of(config: &Config, options: &PostgresOptions) -> Result<Pool, OpenError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), NoTls, recycling);
    Pool::builder(manager)
        .max_size(options.max_connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(options.connect_timeout))
        .create_timeout(Some(options.connect_timeout))
        .build()
        .map_err(|error| OpenError::Option { option: "max_connections", why: chain(&error) })
}
