//! Where the texts of migrations and functions come from: the working tree, or a revision.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, read, succeeds};

const MIGRATIONS: &str = "stores/postgres/sql/migrations";
const FUNCTIONS: &str = "stores/postgres/sql/functions";

/// The planner settings that functions share; `{planner}` stands for them in the files of functions.
/// All SQL of the store. The planner settings that functions share are one of its files.
const SQL: &str = "stores/postgres/sql";
const PLANNER: &str = "planner.sql";

/// A state of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Before there was anything.
    Nothing,
    Revision(String),
    WorkingTree,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing: the migration is in the first revision"),
            Self::Revision(revision) => write!(f, "revision {revision}"),
            Self::WorkingTree => f.write_str("the working tree"),
        }
    }
}

/// What a server is told to make.
#[derive(Debug, Default)]
pub(super) struct Sql {
    pub(super) migrations: Vec<Text>,
    pub(super) functions: Vec<Text>,
}

/// A file and what it says.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) file: String,
    pub(super) text: String,
}

/// What is compared with what.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) number: u32,
    /// The name of the migration's file.
    pub(super) file: String,
    pub(super) before: Source,
    pub(super) after: Source,
}

impl Plan {
    pub(super) fn of(
        workspace: &Workspace,
        number: u32,
        before: Option<Source>,
        after: Option<Source>,
    ) -> Result<Self> {
        let files = names_in_tree(&workspace.root().join(MIGRATIONS))?;
        let file = |number| files.iter().find(|file| number_of(file) == Some(number)).cloned();
        let Some(name) = file(number) else {
            bail!("there is no migration {number}; there are {}", files.join(", "))
        };
        let before = match before {
            Some(before) => before,
            None => before_file(workspace, &name)?,
        };
        let after = match (after, file(number + 1)) {
            (Some(after), _) => after,
            (None, Some(next)) => before_file(workspace, &next)?,
            (None, None) => Source::WorkingTree,
        };
        Ok(Self { number, file: name, before, after })
    }

    pub(super) fn before_sql(&self, workspace: &Workspace) -> Result<Sql> {
        self.sql(workspace, &self.before, self.number - 1)
    }

    pub(super) fn after_sql(&self, workspace: &Workspace) -> Result<Sql> {
        self.sql(workspace, &self.after, self.number)
    }

    /// Migrations never change, so they are taken as they are now; functions are taken as they were.
    fn sql(&self, workspace: &Workspace, functions: &Source, last: u32) -> Result<Sql> {
        let mut migrations = texts(workspace, &Source::WorkingTree, MIGRATIONS)?;
        migrations.retain(|text| number_of(&text.file).is_some_and(|number| number <= last));
        Ok(Sql { migrations, functions: function_texts(workspace, functions)? })
    }
}

/// The files of functions as the server gets them, with the planner settings of the same state. An older
/// state has no file of settings, and its functions write them out.
fn function_texts(workspace: &Workspace, source: &Source) -> Result<Vec<Text>> {
    let mut functions = texts(workspace, source, FUNCTIONS)?;
    let shared = texts(workspace, source, SQL)?;
    if let Some(planner) = shared.iter().find(|text| text.file.rsplit('/').next() == Some(PLANNER)) {
        let settings: Vec<&str> = planner.text.lines().filter(|line| !line.starts_with("--")).collect();
        for function in &mut functions {
            function.text = function.text.replace("{planner}", &settings.join("\n"));
        }
    }
    Ok(functions)
}

/// The number that a migration's file name begins with.
fn number_of(file: &str) -> Option<u32> {
    let name = file.rsplit('/').next()?;
    name.split('_').next()?.parse().ok()
}

/// The state just before a migration appeared: the parent of the revision that added it, or the last revision
/// while it is in no revision yet.
fn before_file(workspace: &Workspace, file: &str) -> Result<Source> {
    let path = format!("{MIGRATIONS}/{file}");
    let added = read(workspace.program("git").args(["log", "--diff-filter=A", "--format=%H", "--", &path]))?;
    let Some(added) = added.lines().next_back() else { return Ok(Source::Revision("HEAD".to_owned())) };
    let parent = format!("{added}^");
    let has_parent = succeeds(workspace.program("git").args(["rev-parse", "--verify", "--quiet", &parent]));
    Ok(if has_parent { Source::Revision(parent) } else { Source::Nothing })
}

/// The SQL files below a folder, in the order of their names.
fn texts(workspace: &Workspace, source: &Source, folder: &str) -> Result<Vec<Text>> {
    match source {
        Source::Nothing => Ok(Vec::new()),
        Source::WorkingTree => names_in_tree(&workspace.root().join(folder))?
            .into_iter()
            .map(|file| {
                let path = workspace.root().join(folder).join(&file);
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Text { file, text })
            })
            .collect(),
        Source::Revision(revision) => {
            let list = ["ls-tree", "-r", "--name-only", "--full-tree", revision, folder];
            let names = read(workspace.program("git").args(list))?;
            names
                .lines()
                .filter(|name| name.ends_with(".sql"))
                .map(|name| {
                    let text = read(workspace.program("git").args(["show", &format!("{revision}:{name}")]))?;
                    Ok(Text { file: name.to_owned(), text })
                })
                .collect()
        }
    }
}

fn names_in_tree(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(current) = next.pop() {
        let entries = fs::read_dir(&current).with_context(|| format!("cannot list {}", current.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                next.push(path);
            } else if let (true, Ok(name)) =
                (path.extension().is_some_and(|kind| kind == "sql"), path.strip_prefix(folder))
            {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_known_by_the_number_in_front() {
        assert_eq!(number_of("0014_add_session_support.sql"), Some(14));
        assert_eq!(number_of("stores/postgres/sql/migrations/0002_b.sql"), Some(2));
        assert_eq!(number_of("notes.sql"), None);
    }

    #[test]
    fn a_migration_that_is_not_there_is_answered_with_those_that_are() {
        let error = Plan::of(&Workspace::find().unwrap(), 9_999, None, None).unwrap_err();
        assert!(error.to_string().contains("0001_tables.sql"), "{error}");
    }

    #[test]
    fn the_first_migration_is_compared_with_what_was_before_it() {
        let workspace = Workspace::find().unwrap();
        let plan = Plan::of(&workspace, 1, None, Some(Source::WorkingTree)).unwrap();
        assert!(plan.before_sql(&workspace).unwrap().migrations.is_empty());
        let after = plan.after_sql(&workspace).unwrap();
        assert_eq!(after.migrations.len(), 1);
        let fetch = after.functions.iter().find(|text| text.file == "turn/fetch/fetch_turns.sql").unwrap();
        assert!(fetch.text.contains("\nSET plan_cache_mode TO force_generic_plan\n"), "{}", fetch.text);
        assert!(!fetch.text.contains("{planner}"), "{}", fetch.text);
    }
}
