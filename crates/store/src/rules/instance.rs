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

/// Returns the least text that sorts behind all texts with this prefix, in the order of bytes; `None` if no
/// text does.
pub fn behind_prefix(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_alike_lies_before_what_is_behind_it() {
        assert_eq!(behind_prefix("a"), Some("b".to_owned()));
        assert_eq!(behind_prefix("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(behind_prefix("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(behind_prefix("\u{10ffff}"), None);
    }
}
