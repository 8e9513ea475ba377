//! The language of random programs, compiled against the published crate.
//!
//! The files are those of `kits/testing`: that they compile here and there is a proof of source
//! compatibility. Only `api` (which crate is meant) and `own` (what the published crate lacks) differ.

pub mod api;
#[path = "../../../../kits/testing/src/program/ast.rs"]
pub mod ast;
#[path = "../../../../kits/testing/src/program/dice.rs"]
pub mod dice;
#[path = "../../../../kits/testing/src/program/generate.rs"]
pub mod generate;
#[path = "../../../../kits/testing/src/program/interpret.rs"]
pub mod interpret;
#[path = "../../../../kits/testing/src/program/journal.rs"]
pub mod journal;
#[path = "../../../../kits/testing/src/program/mutate/mod.rs"]
pub mod mutate;
mod own;
#[path = "../../../../kits/testing/src/program/script/mod.rs"]
pub mod script;
#[path = "../../../../kits/testing/src/program/shrink.rs"]
pub mod shrink;
#[path = "../../../../kits/testing/src/program/story.rs"]
mod story;
#[path = "../../../../kits/testing/src/program/walk.rs"]
mod walk;

pub use ast::Program;
