//! The reaper: a process that stops and deletes a cluster when no process uses it.

use std::{
    env,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use super::folder::{self, ClusterFolder, Sharing};
use crate::{ServerError, machine::wait};

/// The program of the reaper. The reaper must outlive the test that starts it, so it is a process of its own.
const SCRIPT: &str = include_str!("reaper.sh");
const SHELL: &str = "/bin/sh";
const FLOCK: &str = "flock";

/// Starts a reaper for a folder of clusters unless one is running.
///
/// Call it before the server starts, as a member: a process that is killed in between leaves nothing behind.
///
/// # Errors
///
/// [`ServerError::MissingProgram`], [`ServerError::File`], [`ServerError::Variable`].
pub(crate) fn ensure(clusters: &ClusterFolder) -> Result<(), ServerError> {
    let path = clusters.reaper();
    let lock = folder::open(&path)?;
    if !wait::held(lock.try_lock_shared()).map_err(ServerError::file("lock", &path))? {
        return Ok(());
    }
    if !on_path(FLOCK) {
        return Err(ServerError::MissingProgram { program: FLOCK, remedy: "apt-get install -y util-linux" });
    }
    let grace = clusters.grace()?;
    let delete = match clusters.sharing() {
        Sharing::Shared => "clusters",
        Sharing::Own => "everything",
    };
    // A group of its own: neither Ctrl-C nor a test runner that ends the group of a test reaches it. No
    // output of its own: a runner that waits for the outputs of a test to close would wait for it.
    let spawned = Command::new(SHELL)
        .args(["-c", SCRIPT, "steadfast-cluster-reaper"])
        .arg(clusters.path())
        .args([grace.as_secs_f64().to_string().as_str(), delete])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    spawned.map(drop).map_err(ServerError::file("run", SHELL))
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
