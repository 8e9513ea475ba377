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
        /// The places that were searched, in order.
        looked: String,
    },

    /// A small program of the system is missing.
    #[error("the program `{program}` is missing; install it: {remedy}")]
    MissingProgram {
        /// The name of the program.
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
        /// The folder that `STEADFAST_CLUSTER_DIR` or the default names.
        path: PathBuf,
    },

    /// The tests run as root, and the account that runs the server instead cannot enter one of its folders.
    #[error(
        "the account that runs the server instead of root cannot enter {0}; open it: chmod o+x {0}; \
         or name another folder with TMPDIR or STEADFAST_CLUSTER_DIR (clusters), or PG_BIN (programs)",
        .path.display()
    )]
    Closed {
        /// The first folder on the path that the account cannot enter.
        path: PathBuf,
    },

    /// An operation on a file or folder failed.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        /// The operation, as a verb: `read`, `make`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
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
        /// The free space on its disk, in MiB.
        free_mib: u64,
        /// The space that a cluster needs, in MiB.
        needed_mib: u64,
        /// The output of the program that failed.
        output: String,
    },

    /// A program of PostgreSQL failed.
    #[error("`{command}` failed ({status})\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status.
        status: ExitStatus,
        /// Its output, and the end of the server's log if there is one.
        output: String,
    },

    /// A process, a lock or a server took longer than its limit.
    #[error("waited {} s for {what}{}", .limit.as_secs_f64(), after(.output))]
    Waited {
        /// What the call waited for.
        what: String,
        /// The limit that has passed.
        limit: Duration,
        /// The output of the process; empty if there is none.
        output: String,
    },

    /// Every port that was tried is in use.
    #[error("no free port on 127.0.0.1 between {first} and {last} in {tries} tries; stop what listens there")]
    NoPort {
        /// The lowest port that is tried.
        first: u16,
        /// The highest port that is tried.
        last: u16,
        /// The number of ports that were tried.
        tries: usize,
    },

    /// The operation needs a server of its own, and other tests use this one.
    #[error("a server that others use is not {what}; take Server::durable()")]
    Shared {
        /// The operation, as a participle: `stopped`.
        what: &'static str,
    },

    /// A variable of the environment has a value that makes no sense.
    #[error("{variable} is `{value}`, and must be {expected}")]
    Variable {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The values that are accepted.
        expected: &'static str,
    },

    /// A connection or a statement failed.
    #[error("cannot {what}: {}", in_full(.source))]
    Sql {
        /// The operation, as a verb with its object.
        what: String,
        /// The error of the server or of the connection.
        source: tokio_postgres::Error,
    },
}

impl ServerError {
    /// Returns a function that converts an I/O error of an operation on a file.
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
