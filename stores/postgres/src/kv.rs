//! Key-value state: what earlier executions left, and what the current one has changed since.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
