//! The writer: requests that wait at the same time become one transaction.

pub(crate) mod alarm;
pub(crate) mod log;
pub(crate) mod others;
pub(crate) mod pace;
pub(crate) mod request;
mod thread;
pub(crate) mod writer;
