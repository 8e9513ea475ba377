//! A folder in which clusters live, and the locks that say who uses them.
//!
//! ```text
//! steadfast-postgres-UID/
//!   shared/              the cluster of all tests of this user
//!     start              locked by who starts, joins or deletes: one at a time
//!     members            locked, shared, by each process that uses the cluster; one byte per process that joined
//!     reaper             locked by the reaper
//!     current            which cluster it is, and its port
//!     cluster-XXXXXX/    data, socket and log; a new one for each start from nothing
//!   own                  locked by who makes one of the next
//!   own-XXXXXX/          the cluster of one `Server::durable`, with the same files
//! ```
//!
//! The lock files are never deleted while somebody may use them: two processes would lock two different
//! files.

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

use crate::{ServerError, wait};

const FOLDER: &str = "STEADFAST_CLUSTER_DIR";
const GRACE: &str = "STEADFAST_CLUSTER_GRACE";

/// How the folders of servers of one's own begin.
const OWN: &str = "own-";

/// Bridges the pauses between tests, each of which may be a process of its own.
const SHARED_GRACE: Duration = Duration::from_secs(20);
/// Longer than a start may take with all its own limits, and than a reaper needs to stop a server.
const LOCK_LIMIT: Duration = Duration::from_secs(240);
/// The server's account must be able to reach its own folder inside.
const OPEN_TO_READ: u32 = 0o755;

/// Says who uses the clusters of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All tests of this user.
    Shared,
    /// One value.
    Own,
}

#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    kind: Kind,
}

impl Place {
    /// Finds or makes the place that all tests of this user share.
    pub(crate) fn shared() -> Result<Self, ServerError> {
        let folder = root()?.join("shared");
        make(&folder)?;
        Ok(Self { folder, kind: Kind::Shared })
    }

    /// Makes a new place with its first member.
    pub(crate) fn own() -> Result<(Self, File), ServerError> {
        let root = root()?;
        // Under this lock there is no place that nobody has joined yet, so one without members is left over.
        let _lock = lock(&root.join("own"), "another process that makes a server of its own")?;
        remove_left_over(&root)?;
        let made = tempfile::Builder::new().prefix(OWN).tempdir_in(&root);
        let folder = made.map_err(ServerError::file("make a folder in", &root))?.keep();
        open_to_read(&folder)?;
        let place = Self { folder, kind: Kind::Own };
        // The reaper looks for it.
        open(&place.start())?;
        let member = place.join()?;
        Ok((place, member))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn reaper(&self) -> PathBuf {
        self.folder.join("reaper")
    }

    pub(crate) fn current(&self) -> PathBuf {
        self.folder.join("current")
    }

    /// Returns how long the clusters stay when nobody uses them.
    pub(crate) fn grace(&self) -> Result<Duration, ServerError> {
        match (self.kind, env::var(GRACE)) {
            (Kind::Own, _) => Ok(Duration::ZERO),
            (Kind::Shared, Err(_)) => Ok(SHARED_GRACE),
            (Kind::Shared, Ok(value)) => parse_grace(value),
        }
    }

    /// Waits until nobody else starts, joins or deletes; the lock ends with the file.
    pub(crate) fn lock_start(&self) -> Result<File, ServerError> {
        lock(&self.start(), "another process that starts or stops the test server")
    }

    /// Makes this process a member for the rest of its life.
    pub(crate) fn join_for_life(&self) -> Result<(), ServerError> {
        static MEMBERSHIPS: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());
        let mut memberships = MEMBERSHIPS.lock().unwrap_or_else(PoisonError::into_inner);
        if !memberships.contains_key(&self.folder) {
            memberships.insert(self.folder.clone(), self.join()?);
        }
        Ok(())
    }

    /// Takes a membership; it ends with the file.
    pub(crate) fn join(&self) -> Result<File, ServerError> {
        let path = self.members();
        let mut file = open(&path)?;
        // The reaper takes this lock for moments only, to see whether it is free.
        let what = "the reaper to look who uses the test server";
        wait::for_lock(what, LOCK_LIMIT, &path, &file, File::try_lock_shared)?;
        // A reaper that sees the length change knows that somebody came and went during its grace time.
        file.write_all(b".").map_err(ServerError::file("write", &path))?;
        Ok(file)
    }

    /// Deletes the place with all that is in it; what cannot be deleted now is left to the reaper.
    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.folder).ok();
    }

    fn start(&self) -> PathBuf {
        self.folder.join("start")
    }

    fn members(&self) -> PathBuf {
        self.folder.join("members")
    }
}

/// Opens a file for locking, and makes it if need be.
pub(crate) fn open(path: &Path) -> Result<File, ServerError> {
    let opened = OpenOptions::new().create(true).append(true).read(true).open(path);
    opened.map_err(ServerError::file("open", path))
}

/// Waits for a lock that one process has at a time; it ends with the file.
fn lock(path: &Path, what: &str) -> Result<File, ServerError> {
    let file = open(path)?;
    wait::for_lock(what, LOCK_LIMIT, path, &file, File::try_lock)?;
    Ok(file)
}

/// Deletes the places of servers that died with their reaper, as when the machine is switched off.
fn remove_left_over(root: &Path) -> Result<(), ServerError> {
    let failed = || ServerError::file("look into", root);
    for entry in fs::read_dir(root).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if !entry.file_name().as_encoded_bytes().starts_with(OWN.as_bytes()) {
            continue;
        }
        let place = Place { folder: entry.path(), kind: Kind::Own };
        let is_free = |path: &Path| match File::open(path) {
            Ok(file) => file.try_lock().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if is_free(&place.members()) && is_free(&place.reaper()) {
            place.remove();
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
    // The temp folder is everybody's: somebody else may have been there first.
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

/// Sets the permissions whatever mask the user has.
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
