//! Tools that prove Steadfast without waiting: the language of random programs, which property tests run on
//! the engine and, by hand, on the published crate beside it (`benches/peer`), and drivers that run them turn
//! by turn, kept in memory or replayed from history.

pub mod driver;
pub mod instance;
pub mod program;
pub mod skeleton;
pub mod witness;
