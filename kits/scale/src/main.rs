//! Prints what calls of a store cost when it is small and when it is large.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use anyhow::{Result, ensure};
use clap::Parser;
use steadfast_scale::site::Backend;

/// Makes a small store and a large one, and counts the work of the same calls on both.
#[derive(Parser)]
struct Cli {
    /// The kind of store
    #[arg(long, value_enum, default_value = "sqlite")]
    store: Backend,

    /// The number of instances of the large store, with fifty events each
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    instances: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { store, instances } = Cli::parse();
    let comparison = steadfast_scale::measure(store, instances, &|progress| eprintln!("{progress}")).await?;
    println!("{comparison}");
    let faults = comparison.faults();
    ensure!(faults.is_empty(), "the work of these calls grows with the store: {}", faults.join(", "));
    Ok(())
}
