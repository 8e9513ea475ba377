//! Sessions: claims, renewals, releases (S13).

use crate::db::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![];
