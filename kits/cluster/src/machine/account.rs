//! The account that runs the server. PostgreSQL refuses to run as root.

use std::{
    env, fs, io,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use crate::ServerError;

/// The accounts that run the server when the tests run as root, in order of preference.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The permission bit that lets other accounts pass through a folder.
const OTHERS_ENTER: u32 = 0o001;

/// The account that the programs of PostgreSQL run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The account of this process.
    Ours,
    /// Another account, because the tests run as root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// Chooses the account for this process.
    pub(crate) fn choose() -> Result<Self, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Account::Ours);
        }
        let accounts = fs::read_to_string("/etc/passwd").map_err(ServerError::file("read", "/etc/passwd"))?;
        UNPRIVILEGED.iter().find_map(|name| find(&accounts, name)).ok_or(ServerError::NoAccount)
    }

    /// Prepares a program that runs as this account, without the `PG…` environment variables of the user.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (variable, _) in env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(variable);
            }
        }
        if let Account::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Checks that this account can enter a folder and all its parents.
    ///
    /// # Errors
    ///
    /// [`ServerError::Closed`] with the folder on the way that it cannot enter.
    pub(crate) fn reaches(self, folder: &Path) -> Result<(), ServerError> {
        let Account::Other { uid, .. } = self else { return Ok(()) };
        for path in folder.ancestors() {
            let found = fs::metadata(path).map_err(ServerError::file("look at", path))?;
            if found.uid() != uid && found.mode() & OTHERS_ENTER == 0 {
                return Err(ServerError::Closed { path: path.to_path_buf() });
            }
        }
        Ok(())
    }

    /// Gives a file or folder to this account.
    pub(crate) fn own(self, path: &Path) -> io::Result<()> {
        match self {
            Account::Ours => Ok(()),
            Account::Other { uid, gid } => chown(path, Some(uid), Some(gid)),
        }
    }
}

/// Finds an account in the text of `/etc/passwd`.
fn find(accounts: &str, name: &str) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (uid != 0).then_some(Account::Other { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn an_account_is_found_with_its_group() {
        assert_eq!(find(PASSWD, "postgres"), Some(Account::Other { uid: 101, gid: 104 }));
    }

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let inside = closed.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let owner = fs::metadata(&inside).unwrap().uid();
        let stranger = Account::Other { uid: owner + 1, gid: 0 };
        let text = stranger.reaches(&inside).unwrap_err().to_string();
        assert!(text.contains(&format!("chmod o+x {};", closed.path().display())), "{text}");
        Account::Ours.reaches(&inside).unwrap();
    }

    #[test]
    fn root_and_strangers_are_no_accounts_for_a_server() {
        assert_eq!((find(PASSWD, "root"), find(PASSWD, "post")), (None, None));
    }
}
