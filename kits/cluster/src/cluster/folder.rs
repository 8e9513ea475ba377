//! A folder in which clusters live, and the locks that say who uses them.
//!
//! ```text
//! steadfast-postgres-UID/
//!   shared/              the cluster of all tests of this user
//!     start              locked by the process that starts, joins or deletes: one at a time
//!     members            share-locked by each process that uses the cluster; has one byte per join
//!     reaper             locked by the reaper
//!     current            which cluster it is, and its port
//!     cluster-XXXXXX/    data, socket and log; a new one for each start from nothing
//!   own                  locked by a process that makes one of the next folders
//!   own-XXXXXX/          the cluster of one `Server::durable`, with the same files
//! ```
//!
//! A lock file is never deleted while a process may use it: two processes would lock two different files.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File, OpenOptions, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{ServerError, machine::wait};

const FOLDER: &str = "STEADFAST_CLUSTER_DIR";
const GRACE: &str = "STEADFAST_CLUSTER_GRACE";

/// The prefix of the folders of durable servers.
const OWN: &str = "own-";

/// Bridges the pauses between tests, each of which may be a process of its own. Too short, and the cluster is
/// deleted and made again between tests; too long, and it stays after the last test.
const SHARED_GRACE: Duration = Duration::from_secs(20);
/// Longer than a start may take with all its own limits, and than a reaper needs to stop a server.
const LOCK_LIMIT: Duration = Duration::from_secs(240);
/// The server's account must be able to reach its own folder inside.
const OPEN_TO_READ: u32 = 0o755;

/// Who uses the clusters of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All tests of this user, in all processes.
    Shared,
    /// One `Server::durable`.
    Own,
}

/// A folder in which clusters live, with the lock files of the module doc.
#[derive(Debug)]
pub(crate) struct ClusterFolder {
    path: PathBuf,
    sharing: Sharing,
}

impl ClusterFolder {
    /// Finds or makes the folder that all tests of this user share.
    pub(crate) fn shared() -> Result<Self, ServerError> {
        let folder = root()?.join("shared");
        make(&folder)?;
        Ok(Self { path: folder, sharing: Sharing::Shared })
    }

    /// Makes a new folder with its first member.
    pub(crate) fn own() -> Result<(Self, File), ServerError> {
        let root = root()?;
        // New folders get their first member under this lock, so a folder without members is left over.
        let _lock = lock(&root.join("own"), "another process that makes a server of its own")?;
        remove_left_over(&root)?;
        let made = tempfile::Builder::new().prefix(OWN).tempdir_in(&root);
        let folder = made.map_err(ServerError::file("make a folder in", &root))?.keep();
        open_to_read(&folder)?;
        let clusters = Self { path: folder, sharing: Sharing::Own };
        // The reaper opens this file and ends if it does not exist.
        open(&clusters.start())?;
        let member = clusters.join()?;
        Ok((clusters, member))
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.sharing
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn reaper(&self) -> PathBuf {
        self.path.join("reaper")
    }

    pub(crate) fn current(&self) -> PathBuf {
        self.path.join("current")
    }

    /// Returns how long the clusters stay when no process uses them.
    pub(crate) fn grace(&self) -> Result<Duration, ServerError> {
        match (self.sharing, env::var(GRACE)) {
            (Sharing::Own, _) => Ok(Duration::ZERO),
            (Sharing::Shared, Err(_)) => Ok(SHARED_GRACE),
            (Sharing::Shared, Ok(value)) => parse_grace(value),
        }
    }

    /// Waits until no other process starts, joins or deletes. The lock ends when the file is closed.
    pub(crate) fn lock_start(&self) -> Result<File, ServerError> {
        lock(&self.start(), "another process that starts or stops the test server")
    }

    /// Makes this process a member for the rest of its life.
    pub(crate) fn join_for_life(&self) -> Result<(), ServerError> {
        static MEMBERSHIPS: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());
        let mut memberships = MEMBERSHIPS.lock().unwrap_or_else(PoisonError::into_inner);
        if !memberships.contains_key(&self.path) {
            memberships.insert(self.path.clone(), self.join()?);
        }
        Ok(())
    }

    /// Makes the holder of the returned file a member, until the file is closed.
    pub(crate) fn join(&self) -> Result<File, ServerError> {
        let path = self.members();
        let mut file = open(&path)?;
        // The reaper takes this lock for moments only, to see whether it is free.
        let what = "the reaper to look who uses the test server";
        wait::for_lock(what, LOCK_LIMIT, &path, &file, File::try_lock_shared)?;
        // A reaper that sees the length change knows that a process joined and ended during its grace time.
        file.write_all(b".").map_err(ServerError::file("write", &path))?;
        Ok(file)
    }

    /// Deletes the folder with its content. The reaper deletes what cannot be deleted now.
    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.path).ok();
    }

    fn start(&self) -> PathBuf {
        self.path.join("start")
    }

    fn members(&self) -> PathBuf {
        self.path.join("members")
    }
}

/// Opens a file for locking, and creates it if it does not exist.
pub(crate) fn open(path: &Path) -> Result<File, ServerError> {
    let opened = OpenOptions::new().create(true).append(true).read(true).open(path);
    opened.map_err(ServerError::file("open", path))
}

/// Waits for an exclusive lock. The lock ends when the file is closed.
fn lock(path: &Path, what: &str) -> Result<File, ServerError> {
    let file = open(path)?;
    wait::for_lock(what, LOCK_LIMIT, path, &file, File::try_lock)?;
    Ok(file)
}

/// Deletes the folders of servers that died together with their reaper, as when the machine is switched off.
fn remove_left_over(root: &Path) -> Result<(), ServerError> {
    let failed = || ServerError::file("look into", root);
    for entry in fs::read_dir(root).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if !entry.file_name().as_encoded_bytes().starts_with(OWN.as_bytes()) {
            continue;
        }
        let clusters = ClusterFolder { path: entry.path(), sharing: Sharing::Own };
        let is_free = |path: &Path| match File::open(path) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if is_free(&clusters.members()) && is_free(&clusters.reaper()) {
            clusters.remove();
        }
    }
    Ok(())
}

/// Finds or makes the folder of all clusters of this user.
fn root() -> Result<PathBuf, ServerError> {
    let user = rustix::process::geteuid().as_raw();
    let root = match env::var_os(FOLDER) {
        Some(folder) => PathBuf::from(folder),
        None => env::temp_dir().join(format!("steadfast-postgres-{user}")),
    };
    make(&root)?;
    // Every user can write to the temp folder, so another user may have made this folder first.
    let found = fs::symlink_metadata(&root).map_err(ServerError::file("look at", &root))?;
    if !found.is_dir() || found.uid() != user {
        return Err(ServerError::ForeignFolder { path: root });
    }
    root.canonicalize().map_err(ServerError::file("look at", &root))
}

fn make(folder: &Path) -> Result<(), ServerError> {
    match fs::create_dir(folder) {
        Ok(()) => open_to_read(folder),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(ServerError::file("make the folder", folder)(error)),
    }
}

/// Sets the permissions independently of the umask.
fn open_to_read(folder: &Path) -> Result<(), ServerError> {
    fs::set_permissions(folder, Permissions::from_mode(OPEN_TO_READ))
        .map_err(ServerError::file("set the permissions of", folder))
}

fn parse_grace(value: String) -> Result<Duration, ServerError> {
    match value.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(grace)) => Ok(grace),
        _ => Err(ServerError::Variable { variable: GRACE, value, expected: "a number of seconds" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_that_is_no_time_is_refused_by_name() {
        assert_eq!(parse_grace("0.5".to_owned()).unwrap(), Duration::from_millis(500));
        let text = parse_grace("soon".to_owned()).unwrap_err().to_string();
        assert_eq!(text, "STEADFAST_CLUSTER_GRACE is `soon`, and must be a number of seconds");
        assert!(parse_grace("-1".to_owned()).is_err());
    }
}
