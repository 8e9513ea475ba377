//! PgBouncer in front of a server, as in many installations.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    Server, ServerError,
    machine::{account::Account, install, port, wait},
};

/// The command that installs PgBouncer on Debian and its derivatives.
pub const INSTALL_BOUNCER: &str = "apt-get install -y --no-install-recommends pgbouncer";

/// Debian installs PgBouncer into this folder, which is not in the `PATH` of an ordinary user.
const BESIDE_PATH: &str = "/usr/sbin";
const START_LIMIT: Duration = Duration::from_secs(30);
/// Short, because the package is small and the tests go on without it.
const INSTALL_LIMIT: Duration = Duration::from_secs(30);
/// The program that makes the kernel end a child when its parent ends, however the parent ends.
const WITH_PARENT: &str = "setpriv";

/// What a pooler does with startup parameters that it would have to set again for each transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// It refuses the connection, which is its default.
    Refuses,
    /// It accepts the connection and ignores the parameters.
    Drops,
}

/// A pooler in transaction mode: each transaction may use another connection to the server. The process ends
/// with the value.
#[derive(Debug)]
pub struct Bouncer {
    url: String,
    child: Child,
    _folder: TempDir,
}

impl Bouncer {
    /// Tells whether PgBouncer is installed on this machine.
    pub fn is_installed() -> bool {
        find().is_some()
    }

    /// Finds the program, or installs the Debian package. It installs only as root and where `apt-get`
    /// exists.
    ///
    /// # Errors
    ///
    /// [`ServerError::MissingProgram`] with the command to run if it may not install, and
    /// [`ServerError::Command`] or [`ServerError::Waited`] if that fails.
    pub fn provide() -> Result<PathBuf, ServerError> {
        if let Some(program) = find() {
            return Ok(program);
        }
        if let Some(apt) = install::installer(INSTALL_BOUNCER) {
            install::install(&apt, INSTALL_BOUNCER, INSTALL_LIMIT)?;
        }
        find().ok_or(MISSING)
    }

    /// Starts a pooler in front of a server, with at most `connections` connections to it.
    ///
    /// # Errors
    ///
    /// [`ServerError::MissingProgram`] if it is not installed, [`ServerError::NoAccount`],
    /// [`ServerError::NoPort`], [`ServerError::File`], and [`ServerError::Waited`] with its output if it
    /// does not answer.
    pub fn before(server: &Server, connections: usize, startup: Startup) -> Result<Self, ServerError> {
        let program = find().ok_or(MISSING)?;
        let account = Account::choose()?;
        let folder = tempfile::tempdir().map_err(ServerError::file("make a folder in", env::temp_dir()))?;
        account.own(folder.path()).map_err(ServerError::file("give away", folder.path()))?;
        account.reaches(folder.path())?;
        let port = port::free()?;
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            let written = fs::write(&path, text).and_then(|()| account.own(&path));
            written.map(|()| path.clone()).map_err(ServerError::file("write", path))
        };
        let (user, host, database) = parts(server.url());
        let users = file("users", &format!("\"{user}\" \"\"\n"))?;
        let (server_host, server_port) = host.rsplit_once(':').unwrap_or((host, "5432"));
        let dropped = match startup {
            Startup::Refuses => "extra_float_digits",
            Startup::Drops => "extra_float_digits,options",
        };
        let settings = include_str!("../settings/pgbouncer.ini")
            .replace("{server_host}", server_host)
            .replace("{server_port}", server_port)
            .replace("{port}", &port.to_string())
            .replace("{users}", &users.display().to_string())
            .replace("{connections}", &connections.to_string())
            .replace("{dropped}", dropped);
        let settings = file("pgbouncer.ini", &settings)?;
        let log = folder.path().join("log");
        let output = fs::File::create(&log).map_err(ServerError::file("write", &log))?;
        let errors = output.try_clone().map_err(ServerError::file("write", &log))?;
        let child = with_parent(account, &program)
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(ServerError::file("run", &program))?;
        let url = format!("postgres://{user}@127.0.0.1:{port}/{database}");
        // From here on a drop ends the process, whatever fails.
        let mut bouncer = Self { url, child, _folder: folder };
        let answers = wait::until("PgBouncer to answer", START_LIMIT, || {
            let ended = bouncer.child.try_wait().map_err(ServerError::file("wait for", &program))?;
            let answers = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            Ok((answers || ended.is_some()).then_some(answers))
        });
        let said = || fs::read_to_string(&log).unwrap_or_default();
        match answers {
            Ok(true) => Ok(bouncer),
            Ok(false) => Err(not_answering(said())),
            Err(ServerError::Waited { .. }) => Err(not_answering(said())),
            Err(other) => Err(other),
        }
    }

    /// Returns the address of the pooler, with the user and the database of the server.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const MISSING: ServerError = ServerError::MissingProgram { program: "pgbouncer", remedy: INSTALL_BOUNCER };

fn not_answering(output: String) -> ServerError {
    ServerError::Waited { what: "PgBouncer to answer".to_owned(), limit: START_LIMIT, output }
}

fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from(BESIDE_PATH)]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

fn with_parent(account: Account, program: &Path) -> Command {
    let mut command = account.command(Path::new(WITH_PARENT));
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Takes `postgres://user@host:port/database` apart.
fn parts(url: &str) -> (&str, &str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (user, rest) = rest.split_once('@').unwrap_or(("postgres", rest));
    let (host, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
    (user.split(':').next().unwrap_or(user), host, database.split('?').next().unwrap_or(database))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_user_a_host_and_a_database() {
        assert_eq!(parts("postgres://me@127.0.0.1:5433/db"), ("me", "127.0.0.1:5433", "db"));
        assert_eq!(parts("postgres://me:secret@host/db?sslmode=disable"), ("me", "host", "db"));
    }
}
