//! The store on a real server.

#![allow(clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod compat_functions;
