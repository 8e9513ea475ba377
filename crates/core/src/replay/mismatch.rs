//! The description of a mismatch: the program does something else than its history records.

use std::fmt;
use std::panic::Location;

use super::ledger::Call;
use crate::vocabulary::error::nondeterminism;
use crate::{ErrorDetails, Event};

/// Describes the first point at which a program does something else than its recorded history, and what each
/// of the two has there.
///
/// A history is replayed by running the program again. A program that was changed, or that does something
/// which differs from run to run, sooner or later makes another call than the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The id of the first event that the program does not repeat. If the program goes on after the last
    /// recorded event, it is the id that the next event would have.
    pub position: u64,
    /// The difference in words; users match on them.
    pub reason: String,
    /// The kind of the event at that position, or a phrase if history has no event there. `None` if the
    /// history is invalid, or if the program failed on its own.
    pub expected: Option<&'static str>,
    /// The name of the call that the program made instead; `None` if it made none.
    pub found: Option<&'static str>,
    /// The source line of that call; `None` if the program made no call.
    pub call: Option<CallSite>,
    /// The last event that the program repeated; `None` if it repeated no event.
    pub last_match: Option<LastMatch>,
}

/// Identifies the line of a call in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The path of the source file, as the compiler was given it.
    pub file: String,
    /// The number of the line in the file, from 1.
    pub line: u32,
    /// The column at which the call begins, from 1.
    pub column: u32,
}

/// Identifies the last event that program and history agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMatch {
    /// The id of that event in its execution.
    pub event_id: u64,
    /// The `type` that the event has in JSON.
    pub kind: &'static str,
}

impl Mismatch {
    pub(crate) fn at(event: &Event, reason: impl Into<String>) -> Self {
        Self {
            position: event.event_id,
            reason: reason.into(),
            expected: Some(event.kind.name()),
            found: None,
            call: None,
            last_match: None,
        }
    }

    /// The mismatch of a program that made `call` where history has `event`.
    pub(crate) fn between(label: &str, call: &Call, event: &Event) -> Self {
        let reason = format!("{label}: action={} vs event={}", bounded(&call.action), bounded(&event.kind));
        Self::at(event, reason).with_call(call)
    }

    pub(crate) fn corrupted(position: u64, what: impl fmt::Display) -> Self {
        Self {
            position,
            reason: format!("corrupted history: {what}"),
            expected: None,
            found: None,
            call: None,
            last_match: None,
        }
    }

    pub(crate) fn with_call(mut self, call: &Call) -> Self {
        self.found = Some(call.action.name());
        self.call = Some(CallSite::from(call.at));
        self
    }

    pub(crate) fn after(mut self, last: Option<LastMatch>) -> Self {
        self.last_match = last;
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at event {}", self.reason, self.position)?;
        if let Some(expected) = &self.expected {
            write!(f, ": history has {expected}")?;
        }
        match (&self.found, &self.call) {
            (Some(found), Some(call)) => write!(f, ", the code calls {found} at {call}")?,
            (Some(found), None) => write!(f, ", the code calls {found}")?,
            (None, _) => {}
        }
        if let Some(last) = &self.last_match {
            write!(f, "; the last event that still matched is {}, {}", last.event_id, last.kind)?;
        }
        write!(f, ")")
    }
}

impl std::error::Error for Mismatch {}

impl From<&Mismatch> for ErrorDetails {
    fn from(mismatch: &Mismatch) -> Self {
        nondeterminism(mismatch.to_string())
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl From<&Location<'_>> for CallSite {
    fn from(at: &Location<'_>) -> Self {
        Self { file: at.file().to_owned(), line: at.line(), column: at.column() }
    }
}

/// Bounds the text of the call, and that of the event, in bytes: payloads can be large, and error texts are
/// stored.
const MAX_SIDE_BYTES: usize = 4096;

pub(crate) fn bounded(value: &impl fmt::Debug) -> String {
    let mut text = Bounded { text: String::new(), left_out: 0 };
    if fmt::write(&mut text, format_args!("{value:?}")).is_err() {
        // Writing to a string cannot fail, so the value's own Debug failed. What it wrote before still helps.
        text.text.push('…');
    }
    if text.left_out > 0 {
        text.text.push_str(&format!("… ({} bytes more)", text.left_out));
    }
    text.text
}

struct Bounded {
    text: String,
    left_out: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MAX_SIDE_BYTES.saturating_sub(self.text.len());
        let mut cut = part.len().min(room);
        while !part.is_char_boundary(cut) {
            cut -= 1;
        }
        if self.left_out > 0 {
            cut = 0;
        }
        self.text.push_str(&part[..cut]);
        self.left_out += part.len() - cut;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(bounded(&"short"), "\"short\"");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_how_much_is_missing() {
        let text = bounded(&"ä".repeat(MAX_SIDE_BYTES));
        assert!(text.len() < MAX_SIDE_BYTES + 64);
        assert!(text.ends_with(" bytes more)"), "{text}");
    }

    #[test]
    fn a_mismatch_is_printed_as_one_sentence() {
        let mut mismatch = Mismatch::corrupted(3, "broken");
        assert_eq!(mismatch.to_string(), "corrupted history: broken (at event 3)");
        mismatch.expected = Some("TimerCreated");
        mismatch.found = Some("CallActivity");
        mismatch.call = Some(CallSite { file: "src/ship.rs".to_owned(), line: 7, column: 9 });
        mismatch.last_match = Some(LastMatch { event_id: 2, kind: "ActivityScheduled" });
        assert_eq!(
            mismatch.to_string(),
            "corrupted history: broken (at event 3: history has TimerCreated, the code calls CallActivity at \
             src/ship.rs:7:9; the last event that still matched is 2, ActivityScheduled)"
        );
    }
}
