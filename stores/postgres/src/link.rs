//! The link to the server: connection strings, TLS, connections, statements, and what an error of the server
//! means.

pub(crate) mod backoff;
pub(crate) mod connect;
pub(crate) mod db;
pub(crate) mod encrypted;
pub(crate) mod error;
pub(crate) mod escape;
pub(crate) mod exception;
pub(crate) mod lanes;
pub(crate) mod listen;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod statement;
pub(crate) mod tls;
pub(crate) mod url;
