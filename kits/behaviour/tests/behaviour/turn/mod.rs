//! Turns: fetched, run, committed, kept warm.

mod commit;
mod fetch;
mod hung;
mod life;
mod warm;
