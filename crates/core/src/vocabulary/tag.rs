//! Which activities a worker takes, by their tag.

use std::collections::HashSet;

use crate::limits::MAX_WORKER_TAGS;

/// Selects the activities that a worker takes, by their tag. The default takes untagged activities only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TagFilter {
    /// Takes activities without a tag.
    #[default]
    DefaultOnly,
    /// Takes activities with one of these tags.
    Tags(HashSet<String>),
    /// Takes activities without a tag, and those with one of these tags.
    DefaultAnd(HashSet<String>),
    /// Takes every activity.
    Any,
    /// Takes no activity.
    None,
}

impl TagFilter {
    /// Builds a filter for activities with one of these tags.
    ///
    /// # Errors
    ///
    /// [`InvalidTagFilter`] if there is no tag, or if there are more than [`MAX_WORKER_TAGS`] different ones.
    pub fn try_tags<I, S>(tags: I) -> Result<Self, InvalidTagFilter>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Ok(Self::Tags(collect("TagFilter::tags", tags)?))
    }

    /// Builds a filter for activities without a tag and those with one of these tags.
    ///
    /// # Errors
    ///
    /// [`InvalidTagFilter`] if there is no tag, or if there are more than [`MAX_WORKER_TAGS`] different ones.
    pub fn try_default_and<I, S>(tags: I) -> Result<Self, InvalidTagFilter>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Ok(Self::DefaultAnd(collect("TagFilter::default_and", tags)?))
    }

    /// Builds a filter for activities with one of these tags, like [`TagFilter::try_tags`].
    ///
    /// # Panics
    ///
    /// Panics if there is no tag, or if there are more than [`MAX_WORKER_TAGS`] different ones.
    #[track_caller]
    #[allow(clippy::panic, reason = "the compatible constructor panics; try_tags is the one that does not")]
    pub fn tags<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::try_tags(tags).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Builds a filter for activities without a tag and those with one of these tags, like
    /// [`TagFilter::try_default_and`].
    ///
    /// # Panics
    ///
    /// Panics if there is no tag, or if there are more than [`MAX_WORKER_TAGS`] different ones.
    #[track_caller]
    #[allow(clippy::panic, reason = "the compatible constructor panics; try_default_and does not")]
    pub fn default_and<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::try_default_and(tags).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Builds a filter for activities without a tag.
    pub fn default_only() -> Self {
        Self::DefaultOnly
    }

    /// Builds a filter that takes no activity.
    pub fn none() -> Self {
        Self::None
    }

    /// Builds a filter that takes every activity.
    pub fn any() -> Self {
        Self::Any
    }

    /// Tells whether an activity with this tag is taken; `None` stands for an untagged activity.
    pub fn matches(&self, tag: Option<&str>) -> bool {
        match self {
            Self::DefaultOnly => tag.is_none(),
            Self::Tags(tags) => tag.is_some_and(|tag| tags.contains(tag)),
            Self::DefaultAnd(tags) => tag.is_none_or(|tag| tags.contains(tag)),
            Self::Any => true,
            Self::None => false,
        }
    }
}

/// The reasons why a tag filter cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTagFilter {
    /// No tag was given.
    #[error("{constructor} requires at least one tag")]
    Empty {
        /// The name of the constructor that was called.
        constructor: &'static str,
    },
    /// More tags were given than a worker may have.
    #[error("{constructor} takes at most {max} tags, got {count}")]
    TooMany {
        /// The name of the constructor that was called.
        constructor: &'static str,
        /// The largest number of tags that a worker may have: [`MAX_WORKER_TAGS`].
        max: usize,
        /// The number of different tags that were given.
        count: usize,
    },
}

fn collect<I, S>(constructor: &'static str, tags: I) -> Result<HashSet<String>, InvalidTagFilter>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let tags: HashSet<String> = tags.into_iter().map(Into::into).collect();
    match tags.len() {
        0 => Err(InvalidTagFilter::Empty { constructor }),
        1..=MAX_WORKER_TAGS => Ok(tags),
        count => Err(InvalidTagFilter::TooMany { constructor, max: MAX_WORKER_TAGS, count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    #[test]
    fn each_filter_takes_what_its_name_says() {
        let untagged_gpu_cpu = |filter: &TagFilter| {
            (filter.matches(None), filter.matches(Some("gpu")), filter.matches(Some("cpu")))
        };
        assert_eq!(untagged_gpu_cpu(&TagFilter::default()), (true, false, false));
        assert_eq!(untagged_gpu_cpu(&TagFilter::default_only()), (true, false, false));
        assert_eq!(untagged_gpu_cpu(&TagFilter::tags(["gpu"])), (false, true, false));
        assert_eq!(untagged_gpu_cpu(&TagFilter::default_and(["gpu"])), (true, true, false));
        assert_eq!(untagged_gpu_cpu(&TagFilter::any()), (true, true, true));
        assert_eq!(untagged_gpu_cpu(&TagFilter::none()), (false, false, false));
    }

    #[test]
    #[should_panic(expected = "requires at least one tag")]
    fn a_filter_without_tags_panics() {
        TagFilter::tags(Vec::<String>::new());
    }

    #[test]
    #[should_panic(expected = "at most 5 tags")]
    fn a_filter_with_six_tags_panics() {
        TagFilter::default_and(SIX);
    }

    #[test]
    fn a_filter_can_be_refused_instead() {
        let text = |result: Result<TagFilter, InvalidTagFilter>| result.map_err(|error| error.to_string());
        assert!(text(TagFilter::try_tags(SIX)).is_err_and(|text| text.contains("at most 5 tags")));
        assert!(
            text(TagFilter::try_default_and([""; 0]))
                .is_err_and(|text| text.contains("requires at least one tag"))
        );
    }

    #[test]
    fn five_tags_are_allowed_and_repeats_count_once() {
        assert!(TagFilter::try_tags(SIX[..5].iter().copied()).is_ok());
        assert!(TagFilter::try_tags(["gpu"; 9]).is_ok());
    }
}
