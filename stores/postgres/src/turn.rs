//! Turns: leasing an instance, and committing what was decided for it.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
