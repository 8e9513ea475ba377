//! Floors: where the looks of fetches begin, so that what was processed before does not slow them. The database keeps them by
//! itself; a fetch tends them when that is due.

use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "floor/ids_drawn",
    "floor/is_past",
    "floor/is_healing_due",
    "floor/lower_floor",
    "floor/least_keys",
    "floor/tend_floors",
    "floor/read_floors",
];
