//! Checks a recorded history against the code, without deciding anything.

use super::conclude::check_events;
use super::execution::Verifying;
use super::ledger::Call;
use super::mismatch::Mismatch;
use super::{Execution, Setup};
use crate::operation::Kind;
use crate::operation::bounds::check_payload;
use crate::operation::continue_as_new::Continuation;
use crate::vocabulary::error::application_error;
use crate::{AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext};

/// Runs the code against a recorded history, finished or not, and says where they part.
///
/// This is how a change of code is tested before it meets the executions that are under way: export their
/// histories and check that the new code still repeats them.
///
/// # Errors
/// The first event that the code does not repeat.
pub fn verify<H, F>(setup: Setup, history: Vec<Event>, handler: H) -> Result<(), Mismatch>
where
    H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let end = history.iter().rev().find(|event| event.is_terminal()).cloned();
    let mut execution = Execution::recorded(setup, &history, handler);
    execution.verifying = if end.is_some() { Verifying::Yes } else { Verifying::No };
    let sizes = check_events(&history);
    execution.play_all(history);
    if let Some(end) = &end {
        let limited = sizes.is_err() || execution.scope.lock().kv.check_keys().is_err();
        execution.check_end(end, limited);
    }
    match (execution.mismatch.take(), execution.failure.take()) {
        (Some(mismatch), _) => Err(mismatch),
        (None, Some(details)) if !explains(end.as_ref(), &details) => Err(Mismatch {
            position: execution.last_match.as_ref().map_or(1, |last| last.event_id.saturating_add(1)),
            reason: details.display_message(),
            expected: None,
            found: None,
            call: None,
            last_match: execution.last_match.take(),
        }),
        _ => Ok(()),
    }
}

impl Execution {
    /// The end that history records must be the end that the code comes to. Where history is `limited`, a limit
    /// may have ended it instead of the code.
    fn check_end(&mut self, end: &Event, limited: bool) {
        if self.failure.is_some() {
            return;
        }
        let left = self.take_calls_left();
        let stopped = was_stopped(end) && !self.returned_error_of(end);
        if let (Some(call), false) = (&left, stopped) {
            self.part(Mismatch::between("schedule mismatch", call, end));
            return;
        }
        // A call that is left may be the one that a limit refused.
        let limited = limited || left.is_some();
        let agrees = match &end.kind {
            EventKind::OrchestrationCompleted { output } => {
                self.continued.is_none()
                    && self.output.as_ref().is_some_and(|result| result.as_ref() == Ok(output))
            }
            EventKind::OrchestrationContinuedAsNew { input: recorded } => {
                self.continued.as_ref().is_some_and(|continuation| continuation.input == *recorded)
            }
            EventKind::OrchestrationFailed { details: ErrorDetails::Application { kind, .. } } => {
                match kind {
                    // The code ran to this end without a panic, or it would have failed by now.
                    AppErrorKind::Panicked => false,
                    AppErrorKind::OrchestrationFailed => {
                        self.output.is_none()
                            || limited
                            || self.returned_error_of(end)
                            || self.returned_too_much()
                    }
                    AppErrorKind::ActivityFailed
                    | AppErrorKind::Cancelled { .. }
                    | AppErrorKind::SessionLost
                    | AppErrorKind::Terminated { .. } => true,
                }
            }
            _ => true,
        };
        if !agrees {
            let found = match (&self.output, &self.continued) {
                (_, Some(_)) => "continues as new",
                (Some(Ok(_)), None) => "returns another output",
                (Some(Err(_)), None) => "returns another error",
                (None, None) => "still waits",
            };
            let reason = format!("the orchestration {found} where history has {}", end.kind.name());
            self.part(Mismatch::at(end, reason));
        }
    }

    /// Takes out the calls that no event records. Returns the first one that is not a continue-as-new.
    fn take_calls_left(&mut self) -> Option<Call> {
        let mut ledger = self.scope.lock();
        let mut left = None;
        while let Some(call) = ledger.next_call() {
            if call.action.kind() == Kind::ContinueAsNew {
                self.continued = self.continued.take().or_else(|| Continuation::of(call.action));
            } else {
                left = left.or(Some(call));
            }
        }
        left
    }

    /// Did the code return the error that ends the history?
    fn returned_error_of(&self, end: &Event) -> bool {
        let EventKind::OrchestrationFailed { details } = &end.kind else { return false };
        matches!(&self.output, Some(Err(error)) if *details == application_error(error.clone()))
    }

    fn returned_too_much(&self) -> bool {
        let (Some(Ok(text)) | Some(Err(text))) = &self.output else { return false };
        check_payload("orchestration result", text, &self.options).is_err()
    }
}

/// Was the recorded execution ended by the engine, with calls of the code left unrecorded?
fn was_stopped(end: &Event) -> bool {
    match &end.kind {
        EventKind::OrchestrationFailed { details: ErrorDetails::Application { kind, .. } } => {
            // A call that a limit refuses is not recorded either.
            !matches!(kind, AppErrorKind::Cancelled { .. })
        }
        EventKind::OrchestrationFailed { .. } => true,
        _ => false,
    }
}

/// Does the recorded end explain the failure that the code ran into? A turn that the engine aborts does not run the
/// code on its last arrivals; here they are shown to it, and what it makes of them is not recorded.
fn explains(end: Option<&Event>, details: &ErrorDetails) -> bool {
    match end.map(|event| &event.kind) {
        Some(EventKind::OrchestrationFailed { details: recorded @ ErrorDetails::Application { .. } }) => {
            recorded == details
        }
        Some(EventKind::OrchestrationFailed { .. }) => true,
        _ => false,
    }
}
