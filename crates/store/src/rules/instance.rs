//! Pages of instances.

use crate::{Cursor, InstancePage, InstanceQuery, InstanceState};

/// Makes a page of the instances that a query found, each with its place in the order of the list. The store
/// looks for one instance more than a page holds: if it is there, the page names the place from which the
/// next page continues.
pub fn instance_page(query: &InstanceQuery, mut found: Vec<(InstanceState, i64)>) -> InstancePage {
    let has_more = found.len() > query.page_size();
    found.truncate(query.page_size());
    let next = found.last().filter(|_| has_more).map(|(_, place)| Cursor(place.to_string()));
    InstancePage { instances: found.into_iter().map(|(state, _)| state).collect(), next }
}
