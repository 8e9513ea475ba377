//! One cluster: the data of a server, and the server that runs on it.

pub(crate) mod folder;
pub(crate) mod reaper;

use std::{
    fs::{self, Permissions},
    io::ErrorKind,
    net::Ipv4Addr,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use folder::ClusterFolder;

use crate::{
    ServerError,
    machine::{account::Account, binaries::Binaries, port, run::run, wait},
};

const USER: &str = "postgres";
const DATABASE: &str = "postgres";

/// `initdb` takes a second; a machine under load needs more.
const INITDB_LIMIT: Duration = Duration::from_secs(60);
/// Includes the recovery after a crash. `pg_ctl` gets this limit and we wait longer by [`MARGIN`], so that
/// `pg_ctl` can report why a start failed.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const MARGIN: Duration = Duration::from_secs(5);
/// How long a server that already answers may take until it accepts sessions.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often a start is tried: another process may take a free port between the look and the start.
const STARTS: usize = 3;
/// The free disk space that a start needs: a new cluster has 40 MiB, its first journal files as much again.
const NEEDED: u64 = 128 << 20;
/// The number of lines from the end of the server's log that an error contains.
const LOG_LINES: usize = 20;

/// Which settings a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settings {
    /// Nothing waits for the disk, so a crash loses data.
    Throwaway,
    /// Commits survive a crash, as in production.
    Durable,
}

impl Settings {
    fn text(self) -> &'static str {
        match self {
            Settings::Throwaway => include_str!("../settings/shared.conf"),
            Settings::Durable => include_str!("../settings/durable.conf"),
        }
    }
}

/// A cluster and the port of its server.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
}

impl Cluster {
    /// Makes a cluster in a folder and starts its server. Call it under the start lock of the folder, or in a
    /// folder that only one value uses.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotInstalled`], [`ServerError::NoAccount`], [`ServerError::NoSpace`],
    /// [`ServerError::NoPort`], [`ServerError::File`], [`ServerError::Command`], [`ServerError::Waited`].
    pub(crate) fn start_new(clusters: &ClusterFolder, settings: Settings) -> Result<Self, ServerError> {
        // A new name each time: a server that a killed process left running keeps writing to its own folder.
        let made = tempfile::Builder::new().prefix("cluster-").tempdir_in(clusters.path());
        let folder = made.map_err(ServerError::file("make a folder in", clusters.path()))?;
        let started = Self::initialize_and_start(clusters, folder.path(), settings);
        let cluster = started.map_err(|error| with_space(error, clusters.path()))?;
        // The folder is kept only now: the folder of a cluster that did not start is deleted here.
        drop(folder.keep());
        Ok(cluster)
    }

    /// Returns the cluster of a folder if its server runs.
    pub(crate) fn running(clusters: &ClusterFolder) -> Result<Option<Self>, ServerError> {
        let Some(cluster) = Self::read(clusters)? else { return Ok(None) };
        // A server that answers may still be recovering, after a crash or because its starter was killed.
        let answers = wait::until("the server to be ready", READY_LIMIT, || {
            let answers = cluster.answers()?;
            Ok((!answers || cluster.is_ready()).then_some(answers))
        })?;
        Ok(answers.then_some(cluster))
    }

    /// Deletes what earlier servers have left in a folder, after a crash or when the machine was switched
    /// off.
    pub(crate) fn remove_all(clusters: &ClusterFolder) -> Result<(), ServerError> {
        let failed = || ServerError::file("look into", clusters.path());
        for entry in fs::read_dir(clusters.path()).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let is_cluster =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"cluster-"));
            if is_cluster {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Returns the address of the server.
    pub(crate) fn url(&self) -> String {
        format!("postgres://{USER}@{}:{}/{DATABASE}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Tells whether the server answers. The socket is in the folder of the cluster, so no other server can
    /// answer.
    pub(crate) fn answers(&self) -> Result<bool, ServerError> {
        let path = self.socket().join(format!(".s.PGSQL.{}", self.port));
        match UnixStream::connect(&path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(false)
            }
            // An error of this process, such as too many open files, says nothing about the server.
            Err(error) => Err(ServerError::file("connect to", path)(error)),
        }
    }

    /// Starts the server on the existing data.
    pub(crate) fn start(&self) -> Result<(), ServerError> {
        let arguments = ["start", "--wait", "--log", &self.log().to_string_lossy()].map(str::to_owned);
        self.pg_ctl(&arguments, START_LIMIT).map_err(|error| with_log(error, &self.log()))
    }

    /// Stops the server as a crash would.
    pub(crate) fn stop(&self) -> Result<(), ServerError> {
        self.pg_ctl(&["stop", "--wait", "--mode=immediate"].map(str::to_owned), STOP_LIMIT)
    }

    /// Adds settings, where the last one of a name counts, and writes files into the data folder.
    pub(crate) fn change(
        &self,
        settings: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Result<(), ServerError> {
        let path = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&path).map_err(ServerError::file("read", &path))?;
        for (name, value) in settings {
            text += &format!("{name} = '{}'\n", value.replace('\'', "''"));
        }
        fs::write(&path, text).map_err(ServerError::file("write", &path))?;
        let account = Account::choose()?;
        for (name, text) in files {
            let path = self.data().join(name);
            fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o600)))
                .and_then(|()| account.own(&path))
                .map_err(ServerError::file("write", &path))?;
        }
        Ok(())
    }

    fn initialize_and_start(
        clusters: &ClusterFolder,
        folder: &Path,
        settings: Settings,
    ) -> Result<Self, ServerError> {
        let binaries = Binaries::find()?;
        let account = Account::choose()?;
        account.reaches(binaries.folder())?;
        account.reaches(clusters.path())?;
        account.own(folder).map_err(ServerError::file("change the owner of", folder))?;
        let mut cluster = Self { folder: folder.to_path_buf(), port: 0 };
        let socket = cluster.socket();
        fs::create_dir(&socket)
            .and_then(|()| account.own(&socket))
            .map_err(ServerError::file("make", &socket))?;
        let mut initdb = account.command(&binaries.initdb());
        initdb.arg("--pgdata").arg(cluster.data()).args([
            "--username",
            USER,
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        run(initdb.current_dir(folder), INITDB_LIMIT)?;
        for attempt in 1.. {
            cluster.port = port::free()?;
            cluster.configure(settings)?;
            // Before the start: if this process is killed, the next one that joins finds the server.
            cluster.write(clusters)?;
            match cluster.start() {
                Ok(()) => break,
                Err(_) if attempt < STARTS && !port::is_free(cluster.port) => continue,
                Err(error) => return Err(error),
            }
        }
        Ok(cluster)
    }

    /// Writes the settings into the server's own file; its account owns the file already.
    fn configure(&self, settings: Settings) -> Result<(), ServerError> {
        let path = self.data().join("postgresql.conf");
        let text = format!(
            "{}port = {}\nunix_socket_directories = '{}'\n",
            settings.text(),
            self.port,
            self.socket().display()
        );
        fs::write(&path, text).map_err(ServerError::file("write", &path))
    }

    fn pg_ctl(&self, arguments: &[String], limit: Duration) -> Result<(), ServerError> {
        let mut command = Account::choose()?.command(&Binaries::find()?.pg_ctl());
        command.arg("--pgdata").arg(self.data()).args(arguments);
        command.args(["--timeout", &limit.as_secs().to_string()]).current_dir(&self.folder);
        run(&mut command, limit + MARGIN).map(drop)
    }

    fn is_ready(&self) -> bool {
        // The eighth line of the pid file is the state; `pg_ctl` reads it too.
        let pid_file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        pid_file.lines().nth(7).is_some_and(|state| state.trim() == "ready")
    }

    fn write(&self, clusters: &ClusterFolder) -> Result<(), ServerError> {
        let (path, name) = (clusters.current(), self.folder.file_name().unwrap_or_default());
        fs::write(&path, format!("{}\n{}\n", name.to_string_lossy(), self.port))
            .map_err(ServerError::file("write", &path))
    }

    fn read(clusters: &ClusterFolder) -> Result<Option<Self>, ServerError> {
        let path = clusters.current();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ServerError::file("read", path)(error)),
        };
        // An incomplete file is from a process that was killed while it wrote, before it started a server.
        Ok(text.strip_suffix('\n').and_then(|text| text.split_once('\n')).and_then(|(folder, port)| {
            Some(Self { folder: clusters.path().join(folder), port: port.parse().ok()? })
        }))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

fn remove(folder: &Path) -> Result<(), ServerError> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ServerError::file("delete", folder)(error)),
    }
}

/// Adds the end of the server's log to the output of `pg_ctl`, which never contains the reason.
fn with_log(error: ServerError, log: &Path) -> ServerError {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let more = |output: String| format!("{output}\nthe end of its log:\n{tail}");
    match error {
        ServerError::Command { command, status, output } => {
            ServerError::Command { command, status, output: more(output) }
        }
        ServerError::Waited { what, limit, output } => {
            ServerError::Waited { what, limit, output: more(output) }
        }
        other => other,
    }
}

/// Replaces an error by [`ServerError::NoSpace`] if the disk is full: the programs do not report that
/// clearly.
fn with_space(error: ServerError, folder: &Path) -> ServerError {
    let Ok(disk) = rustix::fs::statvfs(folder) else { return error };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= NEEDED {
        return error;
    }
    ServerError::NoSpace {
        path: folder.to_path_buf(),
        free_mib: free >> 20,
        needed_mib: NEEDED >> 20,
        output: error.to_string(),
    }
}
