//! Messages and activities: how they come into their queues.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
