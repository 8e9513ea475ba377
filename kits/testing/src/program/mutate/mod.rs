//! Small damage that a replay must notice: in the program, or in its history.

pub mod history;
pub mod program;
