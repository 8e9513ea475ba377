//! The stored form of a tag.

use std::collections::HashSet;

use steadfast_core::TagFilter;

/// Returns the stored form of a tag: `''` for none, `':' + tag` otherwise, so an activity without a tag never
/// collides with a tag.
pub fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!(":{tag}"))
}

/// Returns the tag of a stored form; `None` for `''`, the form of an activity without a tag.
pub fn tag_of(stored: &str) -> Option<&str> {
    stored.strip_prefix(':')
}

/// Returns the stored forms of the tags that a filter accepts, sorted; `None` if it accepts all.
pub fn stored_tags(filter: &TagFilter) -> Option<Vec<String>> {
    let named = |tags: &HashSet<String>| -> Vec<String> {
        let mut tags: Vec<String> = tags.iter().map(|tag| stored_tag(Some(tag))).collect();
        tags.sort_unstable();
        tags
    };
    match filter {
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
        TagFilter::DefaultOnly => Some(vec![stored_tag(None)]),
        TagFilter::Tags(tags) => Some(named(tags)),
        TagFilter::DefaultAnd(tags) => Some(std::iter::once(stored_tag(None)).chain(named(tags)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_tag_is_read_back_and_no_tag_is_none_of_them() {
        for tag in [None, Some(""), Some(":"), Some("gpu")] {
            assert_eq!(tag_of(&stored_tag(tag)), tag);
        }
    }
}
