//! Misuse: the uses of the context that fail an orchestration.

use std::panic::Location;

use crate::vocabulary::error::{application_error, nondeterminism, panicked};
use crate::{CallSite, ErrorDetails};

/// A use of the context that no replay could repeat, or that breaks a limit while the code runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misuse {
    OutsidePoll { call: &'static str, at: &'static Location<'static> },
    TooManyCalls { limit: usize, at: &'static Location<'static> },
    Change { call: &'static str, why: &'static str, at: &'static Location<'static> },
    Encode { what: &'static str, error: String, at: &'static Location<'static> },
    SessionId { details: ErrorDetails },
    WakerPanicked { text: String },
}

impl Misuse {
    pub(crate) fn details(&self) -> ErrorDetails {
        match self {
            Self::OutsidePoll { call, at } => nondeterminism(format!(
                "{call} at {} was called from outside the orchestration's own code (a spawned task, or a \
                 context that was kept): such a call cannot be replayed; call it from the handler, or do the \
                 work in an activity",
                CallSite::from(*at)
            )),
            Self::TooManyCalls { limit, at } => application_error(format!(
                "the number of calls in one turn exceeds limit ({limit}); the first beyond it is at {}",
                CallSite::from(*at)
            )),
            Self::Change { call, why, at } => {
                application_error(format!("{call}() at {} {why}", CallSite::from(*at)))
            }
            Self::Encode { what, error, at } => {
                application_error(format!("{what} at {} cannot be encoded: {error}", CallSite::from(*at)))
            }
            Self::SessionId { details } => details.clone(),
            Self::WakerPanicked { text } => panicked(text.clone()),
        }
    }
}
