//! Sessions: state, owners, moves and checkpoints.

mod bench;
mod checkpoint;
mod conversations;
mod fenced;
mod moves;
mod scenarios;
mod state;
mod unanswered;
mod worker;
