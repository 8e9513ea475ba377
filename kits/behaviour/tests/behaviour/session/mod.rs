//! Sessions: state, owners, moves and checkpoints.

mod bench;
mod checkpoint;
mod conversations;
mod fenced;
mod moves;
mod opened;
mod scenarios;
mod state;
mod trail;
mod worker;
