//! Management: lists, trees, deletion, pruning, counts.

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
