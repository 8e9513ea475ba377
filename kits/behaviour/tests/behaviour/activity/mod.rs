//! Activities: what a worker takes and runs, and the retry helper.

mod retry;
mod worker;
