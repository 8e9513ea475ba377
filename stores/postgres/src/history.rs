//! Histories: reading and appending events.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
