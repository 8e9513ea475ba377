//! Requests that wait at the same time become one call of a function over arrays (decision 0006).

pub(crate) mod calls;
pub(crate) mod queue;
pub(crate) mod undelivered;
