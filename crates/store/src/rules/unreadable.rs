//! Stored texts that cannot be read: why, without any part of the text (S15).

use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Why a stored text cannot be read. It holds no part of the text: payloads do not belong in logs and
/// reasons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableText(String);

impl From<serde_json::Error> for UnreadableText {
    fn from(error: serde_json::Error) -> Self {
        // The text of the error quotes values, so only its kind and its place are told.
        let what = match error.classify() {
            Category::Eof => "the JSON ends too early",
            Category::Syntax => "it is no JSON",
            Category::Data => "it is JSON of another type",
            Category::Io => "it could not be read",
        };
        Self(format!("{what} (line {}, column {})", error.line(), error.column()))
    }
}

/// Reads a stored text.
///
/// # Errors
/// The reason, without any part of the text.
pub fn read_text<T: DeserializeOwned>(text: &str) -> Result<T, UnreadableText> {
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
mod tests {
    use steadfast_core::WorkItem;

    use super::*;

    #[test]
    fn the_reason_quotes_nothing_of_the_text() {
        for text in [
            "hunter2",
            "{\"ExternalRaised\":{\"instance\":\"hunter2\"}}",
            "{\"hunter2\":1}",
            "{\"TimerFired\":{\"instance\":\"a\",\"execution_id\":\"hunter2\"}}",
            "{\"TimerFired\":{\"instance\":\"hunter2",
        ] {
            let reason = read_text::<WorkItem>(text).expect_err("it cannot be read").to_string();
            assert!(!reason.contains("hunter2"), "{reason}");
            assert!(reason.contains("line 1, column"), "{reason}");
        }
    }
}
