//! `cargo xtask migration-diff N`: what a migration of the Postgres store changes, as a document to review.
//!
//! Tables change by migrations, functions by their files. [`source`] finds both as they were before the
//! migration and as they are with it, [`scratch`] lets a server make a schema of each and describes what it
//! made, [`document`] writes what is different.

mod document;
mod lines;
mod scratch;
mod source;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::Workspace;
use scratch::Scratch;
use source::{Plan, Source};

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MigrationDiffArguments {
    /// The number of the migration, as in stores/postgres/sql/migrations/000N_….sql
    number: u32,

    /// Take the functions of before from this revision instead of the one before the migration appeared
    #[arg(long, value_name = "REV")]
    before: Option<String>,

    /// Take the functions of after from this revision instead of the one before the next migration appeared,
    /// which is what is in the working tree for the newest migration
    #[arg(long, value_name = "REV")]
    after: Option<String>,

    /// Write here; `-` writes to the terminal [default: target/migration-diff/NAME.md]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Two scratch schemas are made in a transaction that is rolled back: migrations 1 to N-1 with the functions of
before, and migrations 1 to N with the functions of after. The server is the one of the tests
(TEST_DATABASE_URL, or one that is started).

Examples:
  cargo xtask migration-diff 2                      the newest migration, before it is committed or after
  cargo xtask migration-diff 2 --output -           on the terminal
  cargo xtask migration-diff 1 --before v0.3.0      against the functions of a release";

pub(crate) fn run(workspace: &Workspace, arguments: &MigrationDiffArguments) -> Result<()> {
    let plan = Plan::of(
        workspace,
        arguments.number,
        arguments.before.clone().map(Source::Revision),
        arguments.after.clone().map(Source::Revision),
    )?;
    eprintln!("before: {}\nafter:  {}", plan.before, plan.after);
    let (before, after) = (plan.before_sql(workspace)?, plan.after_sql(workspace)?);
    let (before, after) = Scratch::compare(&before, &after)?;
    let text = document::written(plan.number, &plan.file, &before, &after);
    match &arguments.output {
        Some(path) if path.as_os_str() == "-" => print!("{text}"),
        path => {
            let default = || {
                let name = plan.file.trim_end_matches(".sql");
                workspace.root().join("target/migration-diff").join(format!("{name}.md"))
            };
            let path = path.clone().unwrap_or_else(default);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
    }
    Ok(())
}
