//! The rules of one kind of operation each.

mod call;
mod child;
mod kv;
mod queue;
mod retry;
mod session;
mod signal;
mod timer;
