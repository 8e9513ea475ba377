//! Leases of turns and of work: renewed, abandoned, expired.

mod held_up;
mod turn;
mod work;
