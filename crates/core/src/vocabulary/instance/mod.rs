//! What is known of an instance beside its history.

pub(crate) mod ids;
pub(crate) mod kv;
pub(crate) mod metadata;
pub(crate) mod stats;
pub(crate) mod status;
