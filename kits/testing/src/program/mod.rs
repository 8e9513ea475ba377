//! A small language of random orchestrations.
//!
//! A [`Program`] is plain data. [`interpret::run`] turns it into async code on an orchestration context,
//! [`generate::program`] makes random ones that shrink to short stories, [`script::Script`] chooses what
//! arrives and when, and [`mutate`] spoils a program or a history so that a replay must notice.
//!
//! `interpret`, `journal`, `script` and `mutate::history` name the library under test only through [`api`].
//! `benches/peer` compiles the same files against the published crate with an `api` of its own: that both
//! compile is a proof of source compatibility.

pub mod api;
pub mod ast;
pub mod dice;
pub mod generate;
pub mod interpret;
pub mod journal;
pub mod mutate;
mod own;
pub mod script;
pub mod shrink;
mod story;
mod walk;

pub use ast::Program;
