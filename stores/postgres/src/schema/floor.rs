//! Floors: the keys at which fetches begin to look, so that they do not step over index entries of processed
//! rows (decision 0007). The database maintains them: a fetch raises them when that is due.

use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "floor/ids_drawn",
    "floor/is_past",
    "floor/is_healing_due",
    "floor/lower_floor",
    "floor/least_keys",
    "floor/tend_floors",
    "floor/lengthen_leases",
    "floor/end_impossible_leases",
    "floor/read_floors",
];
