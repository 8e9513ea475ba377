//! Copies the memory store with every mutant in it (`copy.rs`).

use std::error::Error;
use std::path::Path;
use std::{env, fs};

include!("src/mutant.rs");
include!("src/list.rs");
include!("src/copy.rs");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src");
    let store = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../stores/memory/src");
    copy(&store, MUTANTS)
}
