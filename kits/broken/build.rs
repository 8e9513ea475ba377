//! Copies the runtime with every mutant in it (`copy.rs` of `kits/mutants`).

use std::error::Error;
use std::path::Path;
use std::{env, fs};

include!("../mutants/src/mutant.rs");
include!("src/list.rs");
include!("../mutants/src/copy.rs");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../mutants/src");
    let runtime = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../crates/runtime/src");
    copy(&runtime, MUTANTS)
}
