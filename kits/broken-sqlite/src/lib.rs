//! The SQLite store, broken in one place each: in a statement, or in the code around it.
//!
//! The build script makes one copy of the store with the mutants of `list.rs` in it, and the thread knows
//! which one it runs: a world is one thread, and the store of a process in it starts none of its own.

use std::cell::Cell;

include!("../../mutants/src/mutant.rs");
include!("list.rs");
include!(concat!(env!("OUT_DIR"), "/broken.rs"));
include!(concat!(env!("OUT_DIR"), "/changed.rs"));

pub use broken::{Durability, OpenError, SqliteOptions, SqliteProvider, Threads};

/// Returns every mutant: those of statements, then those of the code.
pub fn mutants() -> impl Iterator<Item = &'static Mutant> {
    SQL.iter().chain(CODE)
}

/// Lets this thread run a mutant of the list, or the unbroken copy for any other name.
pub fn choose(mutant: &'static str) {
    RUNNING.set(mutant);
}

/// Returns the statements that mutants change: the name of the mutant, and its text of the statement.
pub fn changed_statements() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHANGED.iter().map(|(mutant, _, text)| (*mutant, *text))
}

thread_local! {
    static RUNNING: Cell<&'static str> = const { Cell::new("none") };
}

/// Returns the name of the mutant that this thread runs.
fn running() -> &'static str {
    RUNNING.get()
}

/// Returns the text of a statement that is about to be prepared: that of the mutant which runs, or its own.
fn text_of(statement: &str) -> &str {
    let running = running();
    let changed = CHANGED.iter().find(|(mutant, text, _)| *mutant == running && *text == statement);
    changed.map_or(statement, |(_, _, changed)| changed)
}
