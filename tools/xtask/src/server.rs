//! Sees to it that tests have a PostgreSQL server: a given one, or programs to start one with.

use std::env;

use anyhow::Result;
use steadfast_cluster::{Binaries, Bouncer, TEST_DATABASE_URL};

/// Finds a server or installs one; the tests start and stop it by themselves.
///
/// # Errors
///
/// Names the command to run where none is installed and this process may not install one.
pub(crate) fn provide() -> Result<()> {
    if env::var_os(TEST_DATABASE_URL).is_some_and(|url| !url.is_empty()) {
        println!("{TEST_DATABASE_URL} names the server");
        return Ok(());
    }
    println!("the server of {}", Binaries::provide()?.folder().display());
    // One test needs it, and says that it was not tried where it is missing.
    match Bouncer::provide() {
        Ok(program) => println!("the pooler {}", program.display()),
        Err(error) => println!("no pooler, so none is tried: {error}"),
    }
    Ok(())
}
