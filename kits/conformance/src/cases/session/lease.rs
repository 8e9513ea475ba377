//! The lease of a session: claimed, renewed, released, moved on, cleaned up.

pub(in crate::cases) mod claim;
pub(in crate::cases) mod cleanup;
pub(in crate::cases) mod dropped;
pub(in crate::cases) mod release;
pub(in crate::cases) mod renew;
pub(in crate::cases) mod untaken;
