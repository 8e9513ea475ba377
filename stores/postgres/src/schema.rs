//! The schema: its migrations, its functions, and how both are brought to the form of this build.

pub(crate) mod build;
pub(crate) mod compat;
pub(crate) mod floor;
pub(crate) mod functions;
pub(crate) mod look;
pub(crate) mod migrate;
pub(crate) mod migrations_pending;
