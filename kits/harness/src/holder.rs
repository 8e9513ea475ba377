//! A foreign process that holds a SQLite file, as a backup or a person with a shell does.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rusqlite::Connection;
use rustix::process::{Signal, set_parent_process_death_signal};
use steadfast_clock::{Clock, SystemClock};

/// How long it waits for the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the driver tells a holder.
#[derive(Args, Clone, Debug)]
pub struct HolderArguments {
    /// The file
    #[arg(long)]
    pub file: PathBuf,
    /// How long it is held, in milliseconds
    #[arg(long)]
    pub millis: u64,
    /// What is held
    #[arg(long)]
    pub lock: Lock,
}

/// What a process can hold of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lock {
    /// The right to write: all others wait.
    Write,
    /// A snapshot: the write-ahead log grows.
    Read,
}

/// Holds the file for a while.
///
/// # Errors
///
/// The file cannot be opened, or other processes write all the time.
pub fn run(arguments: &HolderArguments) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("it cannot die with the driver")?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let connection = Connection::open(&arguments.file)?;
    connection.busy_timeout(PATIENCE)?;
    // A change that is committed: whoever looks at the file must read it anew.
    let begin = match arguments.lock {
        Lock::Write => "BEGIN IMMEDIATE; UPDATE counter SET value = value",
        Lock::Read => "BEGIN; SELECT count(*) FROM history",
    };
    connection.execute_batch(begin)?;
    threads.block_on(SystemClock.sleep(Duration::from_millis(arguments.millis)));
    connection.execute_batch("COMMIT")?;
    Ok(())
}
