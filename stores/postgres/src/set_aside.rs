//! Rows that cannot be read, kept with the reason until somebody decides.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
