//! Tasks that run beside the loops: reading gauges, deleting instances that ended long ago.

pub(crate) mod gauges;
pub(crate) mod retention;
