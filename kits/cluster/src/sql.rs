//! Runs a few statements for a caller that may be inside or outside an async runtime.

use std::{panic, thread, time::Duration};

use tokio_postgres::{Config, NoTls};

use crate::ServerError;

/// The limit for connecting and running all statements of one call.
const LIMIT: Duration = Duration::from_secs(30);
/// Limits that the server keeps. They are shorter than [`LIMIT`], so that the server reports what a statement
/// waited for.
const OPTIONS: &str = "-c lock_timeout=10s -c statement_timeout=20s";

/// Runs statements one after the other on a connection of their own.
///
/// They run on a thread of their own: the caller may be a `drop` inside a runtime, which must not block on
/// another runtime.
///
/// # Errors
///
/// [`ServerError::Sql`], [`ServerError::Waited`].
pub(crate) fn run(url: &str, what: &str, statements: &[String]) -> Result<(), ServerError> {
    thread::scope(|scope| {
        let ran = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(ServerError::file("start a runtime to connect to", url))?;
            let timely =
                runtime.block_on(async { tokio::time::timeout(LIMIT, execute(url, statements)).await });
            match timely {
                Ok(executed) => executed.map_err(|source| ServerError::Sql { what: what.to_owned(), source }),
                Err(_) => Err(ServerError::Waited {
                    what: format!("the server to {what}"),
                    limit: LIMIT,
                    output: String::new(),
                }),
            }
        });
        ran.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// Puts a name into the text of a statement; names are made by [`crate::name::unique`] and need no quoting.
pub(crate) fn with_name(statement: &str, name: &str) -> String {
    statement.replace("{name}", name)
}

async fn execute(url: &str, statements: &[String]) -> Result<(), tokio_postgres::Error> {
    let mut config: Config = url.parse()?;
    config.options(OPTIONS).connect_timeout(LIMIT);
    let (client, connection) = config.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    for statement in statements {
        client.batch_execute(statement).await?;
    }
    drop(client);
    // Wait for the connection to close. An error here changes nothing: the statements have succeeded.
    connection.await.ok();
    Ok(())
}
