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

/// Runs the code against a recorded history, ended or not, and reports the first difference.
///
/// Use it to test a change of code before it is deployed: export the histories of executions that are under
/// way and check that the new code still repeats them. Nothing is recorded and nothing is sent.
///
/// # Errors
/// The first difference: the event that the code does not repeat, or the call that history does not have.
pub fn verify<H, F>(setup: Setup, history: Vec<Event>, handler: H) -> Result<(), Mismatch>
where
    H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let end = history.iter().rev().find(|event| event.is_terminal()).cloned();
    let never_ran = was_terminated_before_its_code_ran(&history);
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
        (None, Some(details)) if !never_ran && !explains(end.as_ref(), &details) => Err(Mismatch {
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
    /// Checks that the code comes to the end that history records. If the history broke a limit (`limited`),
    /// that limit may have ended it instead of the code.
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
        let agrees = if let EventKind::OrchestrationCompleted { output } = &end.kind {
            self.continued.is_none()
                && self.output.as_ref().is_some_and(|result| result.as_ref() == Ok(output))
        } else if let EventKind::OrchestrationContinuedAsNew { input } = &end.kind {
            self.continued.as_ref().is_some_and(|continuation| continuation.input == *input)
        } else {
            self.agrees_with_failure(end, limited)
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

    /// Can this code have ended with the failure that history records? True for every failure that the engine
    /// or an operator decided, because those can end any code.
    fn agrees_with_failure(&self, end: &Event, limited: bool) -> bool {
        let Some(ErrorDetails::Application { kind, .. }) = failure_of(end) else { return true };
        match kind {
            // The code ran to this end without a panic, or it would have failed by now.
            AppErrorKind::Panicked => false,
            AppErrorKind::OrchestrationFailed => {
                self.output.is_none() || limited || self.returned_error_of(end) || self.returned_too_much()
            }
            AppErrorKind::ActivityFailed
            | AppErrorKind::Cancelled { .. }
            | AppErrorKind::SessionLost
            | AppErrorKind::Terminated { .. } => true,
        }
    }

    /// Takes out the calls of the code that no event records. Returns the first one that is not a
    /// continue-as-new; a continue-as-new is kept in `continued`.
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

    /// Did the code return the same error that the end of the history records?
    fn returned_error_of(&self, end: &Event) -> bool {
        let Some(details) = failure_of(end) else { return false };
        matches!(&self.output, Some(Err(error)) if *details == application_error(error.clone()))
    }

    fn returned_too_much(&self) -> bool {
        let (Some(Ok(text)) | Some(Err(text))) = &self.output else { return false };
        check_payload("orchestration result", text, &self.options).is_err()
    }
}

/// Did the recorded execution end with a failure, other than a cancellation, after which calls of the code
/// can be left unrecorded? A call that a limit refused is not recorded either.
fn was_stopped(end: &Event) -> bool {
    let Some(details) = failure_of(end) else { return false };
    !matches!(details, ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. })
}

/// Does the recorded end account for the failure that the code ran into here? The engine may have ended the
/// execution without running the code on the last answers. This check runs the code on them, so its failure
/// there is no difference.
fn explains(end: Option<&Event>, details: &ErrorDetails) -> bool {
    match end.and_then(failure_of) {
        Some(recorded @ ErrorDetails::Application { .. }) => recorded == details,
        Some(_) => true,
        None => false,
    }
}

/// Was the execution terminated in its first turn? The engine then records the start and the end and runs no
/// code, so a failure that the code runs into at its start is no difference. A later termination explains no
/// failure: it records no answers, and the code has run on all that history has.
fn was_terminated_before_its_code_ran(history: &[Event]) -> bool {
    let [first, end, ..] = history else { return false };
    let begins = matches!(first.kind, EventKind::OrchestrationStarted { .. });
    let terminated = |details: &ErrorDetails| {
        matches!(details, ErrorDetails::Application { kind: AppErrorKind::Terminated { .. }, .. })
    };
    begins && failure_of(end).is_some_and(terminated)
}

/// The failure in the event that ends a history; `None` if the execution did not fail.
fn failure_of(end: &Event) -> Option<&ErrorDetails> {
    let EventKind::OrchestrationFailed { details } = &end.kind else { return None };
    Some(details)
}
