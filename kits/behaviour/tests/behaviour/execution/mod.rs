//! How an execution ends: by itself, by a limit, as poison, cancelled or terminated.

mod cancel;
mod end;
mod limits;
mod poison;
mod terminate;
