//! The whole kit on a SQLite file, random walks against the memory store included.

mod subject;

use std::sync::Arc;

use steadfast_sqlite::Threads;
use subject::{File, Oracle};

fn main() {
    steadfast_conformance::main_with_oracle(Arc::new(File::on(Threads::Own)), Arc::new(Oracle));
}
