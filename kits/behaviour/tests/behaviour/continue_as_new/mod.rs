//! Continue-as-new: the end of one execution, the next one, and the time between the two.

mod between;
mod carry;
mod successor;
