//! `cargo xtask scale`: what calls of a store cost when it is very full.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{server, step::Steps, workspace::Workspace};

#[derive(Args)]
pub(crate) struct ScaleArguments {
    /// Measure this kind of store
    #[arg(long, value_enum, default_value = "sqlite")]
    store: ScaledStore,

    /// Fill the large store with so many instances, of fifty events each; a million of them needs about 24 GB
    /// of disk in SQLite and 36 GB in PostgreSQL
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    instances: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScaledStore {
    /// A SQLite file
    Sqlite,
    /// A PostgreSQL server of its own
    Postgres,
}

/// Prints the work of each call on a small store and on a large one.
///
/// # Errors
///
/// Work that grows with the store although it should not is an error, and so is a disk that is too small.
pub(crate) fn run(workspace: &Workspace, arguments: &ScaleArguments) -> Result<()> {
    let store = match arguments.store {
        ScaledStore::Sqlite => "sqlite",
        ScaledStore::Postgres => {
            server::provide()?;
            "postgres"
        }
    };
    // Work is counted, and rows are copied by the database: the profile of the tests is fast enough.
    let program = ["run", "--package", "steadfast-scale", "--"];
    let instances = arguments.instances.to_string();
    let mut steps = Steps::default();
    steps.command(
        "scale",
        workspace.cargo(program).args(["--store", store, "--instances", instances.as_str()]),
    );
    steps.finish("scale")
}
