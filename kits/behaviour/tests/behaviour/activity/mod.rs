//! Activities: what a worker takes and runs, and the retry helper.

mod panic;
mod policy;
mod retry;
mod worker;
