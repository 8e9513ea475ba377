//! How statements reach SQLite: opening a file, the connections and their settings, one transaction, its
//! errors.

pub(crate) mod clock;
pub(crate) mod connection;
pub(crate) mod db;
pub(crate) mod error;
pub(crate) mod lease;
pub(crate) mod look;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod presence;
pub(crate) mod reader;
