//! Waiting: what is there to tell of messages and activities that nobody has dealt with yet.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
