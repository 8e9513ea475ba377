//! Finds the programs of a PostgreSQL server.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::run::run;
use crate::ServerError;

/// The command that installs a server on Debian and its derivatives.
pub const INSTALL: &str = "apt-get install -y --no-install-recommends postgresql";

/// The programs that a folder must contain.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];
const VERSIONS: &str = "/usr/lib/postgresql";
const PG_CONFIG_LIMIT: Duration = Duration::from_secs(10);

/// The folder that contains the programs of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds the programs, in this order: `$PG_BIN`, `pg_config --bindir`, the highest version in
    /// `/usr/lib/postgresql`, `PATH`.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotInstalled`] with the places that were looked at and the command that installs a
    /// server.
    pub fn find() -> Result<Self, ServerError> {
        Search {
            given: env::var_os("PG_BIN").map(PathBuf::from),
            configured,
            versions: Path::new(VERSIONS),
            path: env::var_os("PATH").unwrap_or_default(),
        }
        .find()
    }

    /// Returns the folder with `initdb`, `pg_ctl` and `postgres`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    pub(crate) fn pg_ctl(&self) -> PathBuf {
        self.folder.join("pg_ctl")
    }
}

/// Asks `pg_config`, which comes with the development files of PostgreSQL.
fn configured() -> Option<PathBuf> {
    let printed = run(Command::new("pg_config").arg("--bindir"), PG_CONFIG_LIMIT).ok()?;
    Some(PathBuf::from(printed))
}

/// The inputs of a search.
struct Search<'a, C> {
    given: Option<PathBuf>,
    configured: C,
    versions: &'a Path,
    path: OsString,
}

impl<C: Fn() -> Option<PathBuf>> Search<'_, C> {
    fn find(&self) -> Result<Binaries, ServerError> {
        // A folder that is given by name is the only one that is searched.
        if let Some(folder) = &self.given {
            let looked = || format!("PG_BIN={}", folder.display());
            return complete(folder).ok_or_else(|| ServerError::NotInstalled { looked: looked() });
        }
        let configured = || (self.configured)().and_then(|folder| complete(&folder));
        let highest = || by_version(self.versions).iter().find_map(|folder| complete(folder));
        let on_path = || env::split_paths(&self.path).find_map(|folder| linked(&folder));
        configured().or_else(highest).or_else(on_path).ok_or_else(|| ServerError::NotInstalled {
            looked: format!("`pg_config --bindir`, {}/*/bin, PATH", self.versions.display()),
        })
    }
}

/// Accepts a folder that holds every program.
fn complete(folder: &Path) -> Option<Binaries> {
    let all = PROGRAMS.iter().all(|program| folder.join(program).is_file());
    all.then(|| Binaries { folder: folder.to_path_buf() })
}

/// Follows the symbolic link of a program to the folder that contains all programs.
fn linked(folder: &Path) -> Option<Binaries> {
    let program = folder.join(PROGRAMS[0]).canonicalize().ok()?;
    complete(program.parent()?)
}

/// Lists the programs of the installed versions, the highest first.
fn by_version(versions: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(versions)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn install(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        for program in PROGRAMS {
            fs::write(folder.join(program), "").unwrap();
        }
        folder.to_path_buf()
    }

    fn search<'a>(versions: &'a Path) -> Search<'a, impl Fn() -> Option<PathBuf>> {
        Search { given: None, configured: || None, versions, path: OsString::new() }
    }

    #[test]
    fn the_highest_complete_version_is_taken() {
        let machine = tempfile::tempdir().unwrap();
        install(&machine.path().join("9/bin"));
        let best = install(&machine.path().join("15/bin"));
        fs::create_dir_all(machine.path().join("17/bin")).unwrap();
        assert_eq!(search(machine.path()).find().unwrap().folder(), best);
    }

    #[test]
    fn a_named_folder_is_the_only_one_that_counts() {
        let machine = tempfile::tempdir().unwrap();
        install(&machine.path().join("15/bin"));
        let named = Search { given: Some("/nowhere".into()), ..search(machine.path()) };
        let text = named.find().unwrap_err().to_string();
        assert!(text.contains("PG_BIN=/nowhere") && text.contains(INSTALL), "{text}");
    }

    #[test]
    fn what_pg_config_names_goes_before_the_versions() {
        let machine = tempfile::tempdir().unwrap();
        install(&machine.path().join("15/bin"));
        let configured = install(&machine.path().join("elsewhere"));
        let found = Search {
            given: None,
            configured: || Some(configured.clone()),
            versions: machine.path(),
            path: OsString::new(),
        };
        assert_eq!(found.find().unwrap().folder(), configured);
    }

    #[test]
    fn a_link_on_the_path_leads_to_its_folder() {
        let machine = tempfile::tempdir().unwrap();
        let folder = install(&machine.path().canonicalize().unwrap().join("pgsql/bin"));
        let path = machine.path().join("usr");
        fs::create_dir(&path).unwrap();
        symlink(folder.join("initdb"), path.join("initdb")).unwrap();
        let found = Search { path: path.into_os_string(), ..search(Path::new("/nowhere")) };
        assert_eq!(found.find().unwrap().folder(), folder);
    }

    #[test]
    fn a_missing_server_is_an_error_with_the_command_that_installs_it() {
        let text = search(Path::new("/nowhere")).find().unwrap_err().to_string();
        assert!(text.contains(INSTALL) && text.contains("TEST_DATABASE_URL"), "{text}");
    }
}
