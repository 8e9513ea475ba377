//! What the machine provides: the programs of PostgreSQL and their installation, the account that runs them,
//! a free port, and processes and locks that are waited for within a limit.

pub(crate) mod account;
pub(crate) mod binaries;
pub(crate) mod install;
pub(crate) mod port;
pub(crate) mod run;
pub(crate) mod wait;
