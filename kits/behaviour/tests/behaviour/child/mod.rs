//! Children: orchestrations that another one starts and waits for.

mod start;
mod taken_id;
