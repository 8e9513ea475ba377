//! Leases of turns and of work: renewed, abandoned, expired.

mod turn;
mod work;
