//! Durable futures: inside combinators, and dropped.

mod combinators;
mod drops;
