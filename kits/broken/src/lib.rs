//! The runtime, broken in one place each.
//!
//! The auditor of simulated worlds is only worth something if it notices when the engine is broken. Each
//! mutant is the runtime with one place changed, as the list in `list.rs` says. The build script makes one
//! copy of the runtime with all mutants in it, and the thread knows which one it runs: a world is one thread.

use std::cell::Cell;

include!("../../mutants/src/mutant.rs");
include!("list.rs");
include!(concat!(env!("OUT_DIR"), "/broken.rs"));

pub use broken::{ActivityContext, OnMissingHandler, Runtime, RuntimeOptions, registry};

/// Lets this thread run a mutant of the list, or the unbroken copy for any other name.
pub fn choose(mutant: &'static str) {
    RUNNING.set(mutant);
}

thread_local! {
    static RUNNING: Cell<&'static str> = const { Cell::new("none") };
}

/// Returns the name of the mutant that this thread runs.
fn running() -> &'static str {
    RUNNING.get()
}
