//! Turns: fetched, run, committed, kept warm.

mod commit;
mod fetch;
mod life;
mod warm;
