//! The custom status: a text that clients can watch.

use super::bounds::check_size;
use super::{Operation, Record};
use crate::limits::MAX_CUSTOM_STATUS_BYTES;
use crate::replay::Identity;
use crate::{Action, ErrorDetails, Event, EventKind};

pub(crate) struct CustomStatusRules;

impl Operation for CustomStatusRules {
    fn label(&self) -> &'static str {
        "CustomStatus"
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::UpdateCustomStatus { status } = action else { return None };
        Some(EventKind::CustomStatusUpdated { status: status.clone() }.into())
    }

    /// Checks the size of the last status that the turn sets: only that one reaches clients.
    fn check_events(&self, events: &[Event]) -> Result<(), ErrorDetails> {
        let last = events.iter().rev().find_map(|event| {
            let EventKind::CustomStatusUpdated { status } = &event.kind else { return None };
            status.as_ref()
        });
        check_size("Custom status", last.map_or(0, String::len), MAX_CUSTOM_STATUS_BYTES)
    }

    /// Only the position of the call is compared: on replay the code may set another text.
    fn matches(&self, action: &Action, _event: &Event) -> bool {
        matches!(action, Action::UpdateCustomStatus { .. })
    }

    fn mismatch_label(&self, _event: &EventKind) -> &'static str {
        "custom status mismatch"
    }

    fn missing_call(&self, event: &EventKind) -> String {
        format!("{}: history {} but no emitted action", self.mismatch_label(event), event.name())
    }

    fn may_lack_call(&self) -> bool {
        true
    }
}
