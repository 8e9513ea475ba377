//! Stories that are kept as JSON: a fault that was found once is played again with every change.

use crate::story::Story;

/// Reads a story. Its names live as long as the process, so the text does too.
///
/// # Errors
///
/// The place at which the text is no story.
pub fn read(text: String) -> serde_json::Result<Story> {
    serde_json::from_str(Box::leak(text.into_boxed_str()))
}

/// Writes a story.
///
/// # Errors
///
/// Never, as far as stories go: no part of one fails to be written.
pub fn write(story: &Story) -> serde_json::Result<String> {
    serde_json::to_string_pretty(story).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_that_is_kept_is_read_back_as_it_was() -> serde_json::Result<()> {
        for seed in 0..200 {
            let story = Story::of(seed);
            assert_eq!(read(write(&story)?)?, story, "seed {seed}");
        }
        Ok(())
    }

    #[test]
    fn a_text_that_is_no_story_is_an_error() {
        assert!(read("{}".to_owned()).is_err());
    }
}
