//! The published crate beside ours: the same random programs, the same arrivals, turn by turn.
//!
//! [`published`] runs a program on the published crate's own runtime over a scripted store and records every
//! turn as plain data ([`record`]). Nothing here knows more of that crate than its public API.

pub mod difference;
pub mod ours;
pub mod program;
pub mod published;
pub mod record;
