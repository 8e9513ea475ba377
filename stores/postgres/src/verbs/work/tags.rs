//! Tags as they are stored.

use std::collections::HashSet;

use steadfast_core::TagFilter;

use crate::link::escape::unescape;

/// Returns the stored tags that a filter accepts; `None` for all tags.
pub(crate) fn tags_of(filter: &TagFilter) -> Option<Vec<String>> {
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

/// Returns the stored form of a tag: `''` for none, `':' + tag` otherwise, so that untagged work never
/// collides with a tag.
pub(crate) fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!(":{tag}"))
}

/// Returns the tag of a stored form.
pub(crate) fn tag_of(stored: String) -> Option<String> {
    unescape(stored).strip_prefix(':').map(str::to_owned)
}
