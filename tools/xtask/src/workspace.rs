//! Where the repository is, and how to call cargo in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Stands for the root of the repository: every command runs there, wherever `cargo xtask` was typed.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the root from the place of this package, which cargo tells every program that it runs.
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask …`")?;
        let root = Path::new(&manifest_dir).ancestors().nth(2).context("tools/xtask has no parent folder")?;
        ensure!(root.join("Cargo.toml").is_file(), "no Cargo.toml in {}", root.display());
        Ok(Self { root: root.to_path_buf() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Prepares a call of the cargo that runs this program.
    pub(crate) fn cargo<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments);
        command
    }

    /// Prepares a call of any program, at the root.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }
}

/// Runs a command, lets its diagnostics through and returns what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{shown}`"))?;
    ensure!(output.status.success(), "`{shown}` failed ({})", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

/// Tells whether a command can be started and succeeds, without showing what it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Writes a command as one would type it at the root: added environment first, programs without their folder.
pub(crate) fn shown(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words =
        std::iter::once(program).chain(command.get_args()).map(|word| quoted(&word.to_string_lossy()));
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--package", "a b", "it's", ""]);
        assert_eq!(shown(&command), r"RUSTDOCFLAGS='-D warnings' cargo doc --package 'a b' 'it'\''s' ''");
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_succeed() {
        assert!(!succeeds(&mut Command::new("a-program-that-does-not-exist")));
    }

    #[test]
    fn reading_a_failing_command_names_it() {
        let error = read(&mut Command::new("a-program-that-does-not-exist")).unwrap_err();
        assert!(error.to_string().contains("a-program-that-does-not-exist"), "{error}");
    }

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        assert!(Workspace::find().unwrap().root().join("tools/xtask/Cargo.toml").is_file());
    }
}
