//! What a client sends, reads and waits for.

mod call;
mod wait;
