//! Ending an execution without its code: poison, a termination by an operator, a commit that the
//! store refuses.

use std::time::Duration;

use steadfast_core::replay::{Identity, SessionChange, Start, Turn, Verdict, fail_without_code};
use steadfast_core::{ErrorDetails, Event, EventKind, WorkItem};
use steadfast_store::{ProviderError, TurnCommit};
use tracing::Instrument;

use super::commit::{CommitEnd, tell_of_collisions};
use super::process::{KnownExecution, TurnProcess};
use super::standing::Standing;
use super::triage::Fail;
use super::unreadable::refusals;
use crate::observe::span;

/// How long a turn is delayed if the store cannot be read a moment after it has leased the turn.
const UNREAD_DELAY: Duration = Duration::from_secs(1);

impl TurnProcess {
    /// Ends an execution as triage decided, in the span of the turn.
    pub(super) async fn fail(self, fail: Fail, known: KnownExecution) {
        let Fail { execution_id, name, version, .. } = &fail;
        let (instance, execution_id) = (self.instance.clone(), *execution_id);
        let identity = Identity { instance, execution_id, name: name.clone(), version: version.clone() };
        let span = span::of_turn(&identity, traceparent_of(fail.start.as_ref(), &self.standing));
        self.end_without_code(identity, fail, known).instrument(span).await;
    }

    async fn end_without_code(&self, identity: Identity, fail: Fail, known: KnownExecution) {
        if let Err(error) = self.try_to_end(identity, fail, known).await {
            self.abandon_unread(&error).await;
        }
    }

    /// Returns the trouble of a store that cannot tell now what the end needs. A guess in its place could end
    /// an instance twice (I9), or leave one waiting that should be told (I7).
    async fn try_to_end(
        &self,
        identity: Identity,
        fail: Fail,
        known: KnownExecution,
    ) -> Result<(), ProviderError> {
        let Fail { execution_id, start, details, mut collisions, callers, .. } = fail;
        let instance = &identity.instance;
        if matches!(known, KnownExecution::Unreadable(_)) {
            let row = self.shared.row_of(instance).await?;
            collisions.extend(refusals(callers, row.as_ref(), instance));
            if row.is_some_and(|row| row.status.is_ended()) {
                let mut commit = TurnCommit::empty(execution_id);
                tell_of_collisions(&mut commit, collisions);
                self.hand_in(commit, &[]).await;
                return Ok(());
            }
        }
        log_end(instance, &details);
        let history = match (&start, known) {
            (Some(_), _) => Some(Vec::new()),
            (None, KnownExecution::Cold(events)) => Some(events),
            (None, KnownExecution::Unreadable(_)) => None,
            // An execution in memory keeps the state of the code and no events, so the events are read from
            // the store.
            (None, KnownExecution::Warm(_)) => {
                Some(self.shared.history_of(instance, Some(execution_id)).await?)
            }
        };
        let turn = history
            .and_then(|history| last_turn(&identity, history, start.as_ref(), self.now_ms, details.clone()));
        let verdict = Verdict::Failed { details: details.clone() };
        let sessions = turn.as_ref().map(|turn| turn.effects.sessions.clone()).unwrap_or_default();
        let commit = match turn {
            Some(turn) => {
                let traceparent = traceparent_of(start.as_ref(), &self.standing);
                self.shared.commit_of(turn, execution_id, traceparent).await?
            }
            None => {
                let last = self.last_event_id;
                let mut commit = end_of_unreadable(&identity, details.clone(), last, self.now_ms);
                self.shared.close_unreadable(&identity, last, &details, &mut commit).await?;
                commit
            }
        };
        let last = LastTurn { commit, sessions, verdict };
        self.commit_end(&identity, last, start.as_ref(), collisions).await;
        Ok(())
    }

    /// Abandons a turn whose end needs what the store cannot tell now. It does not count: the instance has
    /// no part in that.
    pub(super) async fn abandon_unread(&self, error: &ProviderError) {
        tracing::warn!(
            target: "steadfast::runtime",
            instance = %self.instance,
            %error,
            "the store cannot be read now; the turn is given back"
        );
        self.shared.abandon_uncounted(&self.token, Some(UNREAD_DELAY)).await;
    }

    /// Ends an execution whose commit the store refuses for good (2.10, F11).
    pub(super) async fn fail_refused(
        &self,
        identity: &Identity,
        start: Option<Start>,
        error: &ProviderError,
        collisions: Vec<WorkItem>,
    ) {
        tracing::error!(
            target: "steadfast::runtime",
            instance = %identity.instance,
            %error,
            "a turn cannot be committed; the execution fails"
        );
        let history = match &start {
            Some(_) => Vec::new(),
            None => match self.shared.history_of(&identity.instance, Some(identity.execution_id)).await {
                Ok(history) => history,
                Err(error) => return self.abandon_unread(&error).await,
            },
        };
        let details = error.to_infrastructure_error();
        let Some(turn) = last_turn(identity, history, start.as_ref(), self.now_ms, details) else { return };
        let verdict = turn.verdict.clone();
        let traceparent = traceparent_of(start.as_ref(), &self.standing);
        let sessions = turn.effects.sessions.clone();
        let commit = match self.shared.commit_of(turn, identity.execution_id, traceparent).await {
            Ok(commit) => commit,
            Err(error) => return self.abandon_unread(&error).await,
        };
        let last = LastTurn { commit, sessions, verdict };
        self.commit_end(identity, last, start.as_ref(), collisions).await;
    }

    /// Commits the last turn of an execution, and counts it.
    async fn commit_end(
        &self,
        identity: &Identity,
        last: LastTurn,
        start: Option<&Start>,
        collisions: Vec<WorkItem>,
    ) {
        let LastTurn { mut commit, sessions, verdict } = last;
        tell_of_collisions(&mut commit, collisions);
        let cancelled = self.shared.running_activities.before_commit(&commit.cancelled);
        let events = commit.events.last().map_or(0, Event::event_id);
        if let CommitEnd::Committed(_) = self.hand_in(commit, &sessions).await {
            self.shared.running_activities.cancel(&cancelled);
            self.count(identity, &verdict, start, events);
        }
    }
}

/// The last turn of an execution, to be committed.
struct LastTurn {
    commit: TurnCommit,
    /// What it changes about sessions, as far as that is known.
    sessions: Vec<SessionChange>,
    verdict: Verdict,
}

fn log_end(instance: &str, details: &ErrorDetails) {
    let text = details.display_message();
    match details {
        ErrorDetails::Poison { .. } => {
            tracing::error!(
                target: "steadfast::runtime",
                %instance,
                details = %text,
                "poison: the execution fails"
            );
        }
        _ => {
            tracing::warn!(
                target: "steadfast::runtime",
                %instance,
                details = %text,
                "the execution is ended without its code"
            );
        }
    }
}

/// The last turn of an execution, with its first event if it has not begun. `None` if the history is not
/// valid.
fn last_turn(
    identity: &Identity,
    mut history: Vec<Event>,
    start: Option<&Start>,
    now_ms: u64,
    details: ErrorDetails,
) -> Option<Turn> {
    if let Some(start) = start {
        history = vec![first_event(identity, start, now_ms)];
    }
    let mut turn = fail_without_code(identity, &history, now_ms, details).ok()?;
    if start.is_some() {
        turn.events.splice(0..0, history);
    }
    Some(turn)
}

/// The trace context of an execution: that of its start message if it begins now, else the recorded one.
fn traceparent_of<'a>(start: Option<&'a Start>, standing: &'a Standing) -> Option<&'a str> {
    match start {
        Some(start) => start.traceparent.as_deref(),
        None => standing.traceparent(),
    }
}

/// The first event of an execution that fails before its code ran.
fn first_event(identity: &Identity, start: &Start, now_ms: u64) -> Event {
    let parent = start.parent.as_ref();
    let kind = EventKind::OrchestrationStarted {
        name: identity.name.clone(),
        version: identity.version.clone(),
        input: start.input.clone(),
        parent_instance: parent.map(|parent| parent.instance.clone()),
        parent_id: parent.map(|parent| parent.id),
        parent_execution_id: parent.and_then(|parent| parent.execution_id),
        carry_forward_events: (!start.carry_forward.is_empty()).then(|| start.carry_forward.clone()),
        initial_custom_status: None,
    };
    let mut event = Event::at(now_ms, 1, identity.instance.clone(), identity.execution_id, None, kind);
    event.traceparent.clone_from(&start.traceparent);
    event
}

/// The id of the event that ends an unreadable history. A history that reaches this id ends with the id after
/// its last event.
const UNREADABLE_END: u64 = 99_999;

/// Makes the last commit of an execution whose history cannot be read: its failure, without the cancellation
/// of open activities and children, which `close_unreadable` adds.
fn end_of_unreadable(
    identity: &Identity,
    details: ErrorDetails,
    last_event_id: u64,
    now_ms: u64,
) -> TurnCommit {
    let id = if last_event_id < UNREADABLE_END { UNREADABLE_END } else { last_event_id.saturating_add(1) };
    let output = details.display_message();
    let kind = EventKind::OrchestrationFailed { details };
    let event = Event::at(now_ms, id, identity.instance.clone(), identity.execution_id, None, kind);
    let mut commit = TurnCommit { events: vec![event], ..TurnCommit::empty(identity.execution_id) };
    commit.metadata.status = Some("Failed".to_owned());
    commit.metadata.output = Some(output);
    commit
}
