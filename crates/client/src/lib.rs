//! What an application does with orchestrations from outside: start, signal, wait, inspect, manage.
//!
//! A [`Client`] is a thin layer over a store: it sends messages and reads rows. It knows no runtime; one may run in
//! this process, in another, or not at all for now. Waiting is by wake-up where the store has them.

mod client;
mod error;
mod explain;
mod inspect;
mod instance;
mod kv;
mod manage;
mod signal;
mod start;
mod through;
mod wait;

pub use client::Client;
pub use error::ClientError;
pub use explain::{Explanation, Place, Waiting, WaitingActivity};
pub use instance::InstanceHandle;
pub use through::Through;
