//! Functions under the names and with the parameters of the compatible crate.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
