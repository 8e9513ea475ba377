//! Tasks that run beside the loops: the health check, the gauges, the row of this worker, the sessions that
//! were not closed, and the deletion of instances that ended long ago.

pub(crate) mod gauges;
pub(crate) mod health;
pub(crate) mod leaks;
pub(crate) mod retention;
pub(crate) mod worker;
