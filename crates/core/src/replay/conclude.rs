//! Concludes a turn: records the futures that were dropped, judges how the execution stands, and hands over
//! to `close`.

use super::close::{Cause, Closing, Ending};
use super::decide::Draft;
use super::play::DROPPED_FUTURE;
use super::{Execution, Notice, SessionChange, Turn};
use crate::operation::bounds::check_payload;
use crate::operation::{Kind, kv};
use crate::vocabulary::error::application_error;
use crate::{ErrorDetails, Event};

impl Execution {
    pub(super) fn conclude(&mut self, mut draft: Draft) -> Turn {
        draft.go_on_after(self.outline.last_event_id);
        let mut ending = self.ending(&mut draft);
        if matches!(
            ending,
            Ending::Waiting { .. } | Ending::Completed(_) | Ending::Failed(Cause::Returned, _)
        ) {
            self.record_dropped(&mut draft);
        }
        if !matches!(ending, Ending::Cancelled(_) | Ending::Failed(Cause::Engine, _))
            && let Err(broken) = self.check_turn(&draft.events)
        {
            ending = Ending::Failed(Cause::Engine, broken);
        }
        self.note_unrecorded(&ending, &mut draft);
        let watched = self.scope.lock().migrations.take_watched();
        // The store ends the watches of an execution with the execution, so an execution that has ended adds
        // no watch.
        if let Ending::Waiting { stuck } = ending {
            let key = |id: String| self.outline.sessions.key(&self.identity.instance, &id);
            draft.sessions.extend(watched.into_iter().map(|id| SessionChange::Watch { key: key(id) }));
            if stuck && !draft.was_stuck {
                draft.notices.push(Notice::Stuck);
            }
        }
        let successor = if let Ending::ContinuedAsNew(continuation) = &ending {
            continuation.messages(&self.site(), &mut self.scope.lock(), &mut draft.notices)
        } else {
            Vec::new()
        };
        draft.notices.extend(self.invalid_stamp.clone());
        Closing { identity: &self.identity, outline: &mut self.outline, draft }.close(ending, successor)
    }

    /// How the execution stands after this turn. If several outcomes apply, the first of these counts: a
    /// failure, a cancellation, a continue-as-new, the result of the handler, waiting.
    fn ending(&mut self, draft: &mut Draft) -> Ending {
        if let Some(details) = self.failure.clone() {
            return Ending::Failed(Cause::Engine, details);
        }
        if let Some(reason) = &self.outline.cancel_reason {
            return Ending::Cancelled(reason.clone());
        }
        if let Some(continuation) = draft.continuation.take() {
            return Ending::ContinuedAsNew(continuation);
        }
        match self.output.take() {
            None => Ending::Waiting { stuck: !self.scope.lock().can_be_answered() },
            Some(Ok(output)) => match check_payload("orchestration output", &output, &self.options) {
                Ok(()) => Ending::Completed(output),
                Err(details) => Ending::Failed(Cause::Returned, details),
            },
            Some(Err(error)) => match check_payload("orchestration error", &error, &self.options) {
                Ok(()) => Ending::Failed(Cause::Returned, application_error(error)),
                Err(details) => Ending::Failed(Cause::Returned, details),
            },
        }
    }

    /// Records a cancellation for each operation whose future the code dropped, kind by kind.
    fn record_dropped(&mut self, draft: &mut Draft) {
        for kind in Kind::ALL {
            let unreported = std::mem::take(&mut self.scope.lock().dropped(*kind).unreported);
            for id in unreported {
                self.record_cancellation(*kind, id, DROPPED_FUTURE, draft);
            }
        }
    }

    /// Tells which operations the code does not await any more, of kinds whose drop no event records. An
    /// instance that ends awaits none, so nothing is told of it.
    fn note_unrecorded(&mut self, ending: &Ending, draft: &mut Draft) {
        let unrecorded = self.scope.lock().take_unrecorded();
        match ending {
            Ending::Waiting { .. } => {
                for (kind, id) in unrecorded.into_iter().filter(|(_, id)| self.outline.is_open(*id)) {
                    kind.rules().note_drop(id, &self.site(), draft);
                }
            }
            Ending::ContinuedAsNew(_) => {
                Kind::ALL.iter().for_each(|kind| kind.rules().leave_behind(&self.site(), draft));
            }
            Ending::Completed(_) | Ending::Failed(..) | Ending::Cancelled(_) => {}
        }
    }

    /// Checks the new events of a turn against the limits of every kind, and the number of keys. The order of
    /// the checks is that of the compatible API, so a turn that breaks two limits fails with the same text.
    fn check_turn(&self, events: &[Event]) -> Result<(), ErrorDetails> {
        check_events(events)?;
        if kv::sets_key(events) { self.scope.lock().kv.check_keys() } else { Ok(()) }
    }
}

/// Checks events against the limits that need no state of the execution, such as the size of a custom status
/// or a key's value. Returns the first limit that is broken.
pub(super) fn check_events(events: &[Event]) -> Result<(), ErrorDetails> {
    Kind::ALL.iter().try_for_each(|kind| kind.rules().check_events(events))
}
