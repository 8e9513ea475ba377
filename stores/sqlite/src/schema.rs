//! The tables: migrations, and checks of every statement against them.

pub(crate) mod migrate;
#[cfg(test)]
mod statements;
