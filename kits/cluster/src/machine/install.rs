//! Installs a server where none is installed, for the command that runs the tests.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::run::run;
use crate::{Binaries, INSTALL, ServerError};

/// Enough for a slow mirror: the package and its dependencies are 60 MB.
const LIMIT: Duration = Duration::from_secs(600);

impl Binaries {
    /// Finds the programs of a server, or installs the Debian package.
    ///
    /// It installs only as root, where `apt-get` exists, and if `PG_BIN` is not set.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotInstalled`] with the command to run if it may not install, and
    /// [`ServerError::Command`] or [`ServerError::Waited`] if that fails.
    pub fn provide() -> Result<Self, ServerError> {
        match (Self::find(), installer(INSTALL).filter(|_| env::var_os("PG_BIN").is_none())) {
            (Err(ServerError::NotInstalled { .. }), Some(apt)) => {
                install(&apt, INSTALL, LIMIT)?;
                Self::find()
            }
            (found, _) => found,
        }
    }
}

/// Finds the program of a command that installs something, if this process may run it.
pub(crate) fn installer(command: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").filter(|_| rustix::process::geteuid().is_root())?;
    let program = command.split_whitespace().next()?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Runs the command, and once more after an update: a fresh container has no lists of packages.
pub(crate) fn install(apt: &Path, command: &str, limit: Duration) -> Result<(), ServerError> {
    let apt_get = |arguments: &[&str]| {
        run(Command::new(apt).env("DEBIAN_FRONTEND", "noninteractive").args(arguments), limit)
    };
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    if apt_get(&arguments).is_ok() {
        return Ok(());
    }
    apt_get(&["update"])?;
    apt_get(&arguments).map(drop)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    /// Makes an `apt-get` that writes down its calls, and can install after an update only.
    fn apt(folder: &Path, update: &str) -> PathBuf {
        let apt = folder.join("apt-get");
        let here = folder.display();
        let script = format!(
            "#!/bin/sh\n\
             echo \"$DEBIAN_FRONTEND $*\" >> {here}/calls\n\
             case $1 in update) {update} ;; install) test -e {here}/lists ;; esac\n"
        );
        fs::write(&apt, script.replace("{lists}", &format!("{here}/lists"))).unwrap();
        fs::set_permissions(&apt, Permissions::from_mode(0o755)).unwrap();
        apt
    }

    #[test]
    fn a_machine_without_lists_of_packages_gets_them_first() {
        let machine = tempfile::tempdir().unwrap();
        install(&apt(machine.path(), "touch {lists}"), INSTALL, LIMIT).unwrap();
        let calls = fs::read_to_string(machine.path().join("calls")).unwrap();
        let install = "noninteractive install -y --no-install-recommends postgresql\n";
        assert_eq!(calls, format!("{install}noninteractive update\n{install}"));
    }

    #[test]
    fn a_machine_with_lists_of_packages_needs_one_command() {
        let machine = tempfile::tempdir().unwrap();
        fs::write(machine.path().join("lists"), "").unwrap();
        install(&apt(machine.path(), "exit 1"), INSTALL, LIMIT).unwrap();
        assert_eq!(fs::read_to_string(machine.path().join("calls")).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_failure_says_which_command_failed_and_why() {
        let machine = tempfile::tempdir().unwrap();
        let text = install(&apt(machine.path(), "echo no network; exit 100"), INSTALL, LIMIT)
            .unwrap_err()
            .to_string();
        assert!(text.contains("apt-get update") && text.contains("no network"), "{text}");
    }
}
