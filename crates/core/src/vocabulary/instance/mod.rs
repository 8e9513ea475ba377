//! Facts about an instance beside its history: ids, key-value state, metadata, sizes, status.

pub(crate) mod ids;
pub(crate) mod kv;
pub(crate) mod metadata;
pub(crate) mod stats;
pub(crate) mod status;
