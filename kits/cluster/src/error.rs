//! Why a test has no server, each with its remedy.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::INSTALL;

/// Why there is no server. Each text names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No `initdb` and `pg_ctl` on this machine.
    #[error(
        "no PostgreSQL server is installed (looked for initdb, pg_ctl and postgres in {looked}); \
         install one: {INSTALL}; or set PG_BIN to its folder, or TEST_DATABASE_URL to a running server"
    )]
    NotInstalled {
        /// The places that were looked at, in order.
        looked: String,
    },

    /// A small program of the system is missing.
    #[error("the program `{program}` is missing; install it: {remedy}")]
    MissingProgram {
        /// The program.
        program: &'static str,
        /// The command that installs it.
        remedy: &'static str,
    },

    /// The server refuses to run as root, and there is no account to run it as.
    #[error(
        "PostgreSQL does not run as root, and /etc/passwd has neither `postgres` nor `nobody`; \
         add one: useradd --system postgres; or run the tests as another user"
    )]
    NoAccount,

    /// The folder of the clusters belongs to another user, or is no folder.
    #[error(
        "{} is not a folder of the user who runs the tests; \
         remove it, or set STEADFAST_CLUSTER_DIR to a folder of your own", .path.display()
    )]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },

    /// The tests run as root, the server does not, and cannot get to one of its folders.
    #[error(
        "the account that runs the server instead of root cannot enter {0}; open it: chmod o+x {0}; \
         or name another folder with TMPDIR or STEADFAST_CLUSTER_DIR (clusters), or PG_BIN (programs)",
        .path.display()
    )]
    Closed {
        /// The folder that is closed.
        path: PathBuf,
    },

    /// A file or folder could not be used.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The disk is full.
    #[error(
        "{} has only {} MiB left and a cluster needs about {} MiB; \
         free some, or set STEADFAST_CLUSTER_DIR to a folder on another disk\n{output}",
        .path.display(), .free_mib, .needed_mib
    )]
    NoSpace {
        /// The folder of the clusters.
        path: PathBuf,
        /// What is free there.
        free_mib: u64,
        /// What is needed there.
        needed_mib: u64,
        /// What the failing program printed.
        output: String,
    },

    /// A program of PostgreSQL failed.
    #[error("`{command}` failed ({status})\n{output}")]
    Command {
        /// The command, as one would type it.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed, and the end of the server's log if there is one.
        output: String,
    },

    /// Something took too long.
    #[error("waited {} s for {what}{}", .limit.as_secs_f64(), after(.output))]
    Waited {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What is known about it, perhaps nothing.
        output: String,
    },

    /// Every port that was tried is in use.
    #[error("no free port on 127.0.0.1 between {first} and {last} in {tries} tries; stop what listens there")]
    NoPort {
        /// The lowest port that is tried.
        first: u16,
        /// The highest.
        last: u16,
        /// How many were.
        tries: usize,
    },

    /// Other tests use this server.
    #[error("a server that others use is not {what}; take Server::durable()")]
    Shared {
        /// What was to be done to it.
        what: &'static str,
    },

    /// A variable of the environment has a value that makes no sense.
    #[error("{variable} is `{value}`, and must be {expected}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },

    /// The server refused.
    #[error("cannot {what}: {}", in_full(.source))]
    Sql {
        /// What was to be done.
        what: String,
        /// What the server or the connection said.
        source: tokio_postgres::Error,
    },
}

impl ServerError {
    /// Prepares the conversion of what the system says about a file.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> ServerError {
        let path = path.into();
        move |source| ServerError::File { what, path, source }
    }
}

fn after(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("\n{output}") }
}

/// Writes an error with its causes: the outermost alone says `db error`.
fn in_full(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}
