//! Work: leasing activities to those who may run them, and taking their outcome back.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
