//! The client, by which an application starts, signals, awaits, inspects and manages orchestrations.
//!
//! A [`Client`] is a thin layer over a store: it sends messages and reads rows. It does not know a runtime:
//! one may run in this process or in another, now or later. A wait ends by a wake-up of the store, or by
//! polling where the store has no wake-ups.

mod client;
mod error;
mod explain;
mod inspect;
mod instance;
mod kv;
mod manage;
mod send;
mod signal;
mod start;
mod through;
mod wait;

pub use client::Client;
pub use error::ClientError;
pub use explain::{Explanation, OpenSession, Place, SessionObstacle, Waiting, WaitingActivity};
pub use inspect::LeakedSessions;
pub use instance::InstanceHandle;
pub use through::Through;
