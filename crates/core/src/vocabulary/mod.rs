//! The words of the engine: plain data, its text forms, and no rules.
//!
//! What a kind of operation does with these words is in [`operation`](crate::operation).

pub(crate) mod action;
pub(crate) mod call;
pub mod codec;
pub(crate) mod compat;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod instance;
pub mod limits;
pub(crate) mod policy;
pub(crate) mod retry;
pub(crate) mod session;
pub(crate) mod tag;
pub(crate) mod traceparent;
pub(crate) mod version;
pub(crate) mod work_item;
