//! The whole kit on a SQLite file whose statements run on the runtime of the caller, as simulations open it:
//! the mode itself is held to the contract.

mod subject;

use std::sync::Arc;

use steadfast_sqlite::Threads;
use subject::{File, Oracle};

fn main() {
    steadfast_conformance::main_with_oracle(Arc::new(File::on(Threads::Caller)), Arc::new(Oracle));
}
