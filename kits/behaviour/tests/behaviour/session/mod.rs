//! Sessions: state, owners, moves and checkpoints.

mod bench;
mod checkpoint;
mod conversations;
mod fenced;
mod log;
mod migration;
mod moves;
mod opened;
mod owned;
mod recover;
mod rivals;
mod scenarios;
mod slow;
mod state;
mod trail;
mod unanswered;
mod worker;
