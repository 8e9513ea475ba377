//! Ending an execution without its code: poison, an operator's word, a commit that the store refuses.

use steadfast_core::replay::{Identity, Start, Turn, Verdict, fail_without_code};
use steadfast_core::{ErrorDetails, Event, EventKind, WorkItem};
use steadfast_store::{Message, ProviderError, TurnCommit};

use tracing::Instrument;

use super::{Committing, Known, Leased, Turns};
use crate::observability;
use crate::turn::triage::{Fail, Standing};

impl Turns {
    /// Ends an execution as triage decided.
    pub(super) async fn fail(&self, leased: Leased, fail: Fail, known: Known, standing: Standing) {
        let Fail { execution_id, name, version, .. } = &fail;
        let (instance, execution_id) = (leased.instance.clone(), *execution_id);
        let identity = Identity { instance, execution_id, name: name.clone(), version: version.clone() };
        let span = observability::of_turn(&identity, traceparent_of(fail.start.as_ref(), &standing));
        self.end_without_code(leased, identity, fail, known, standing).instrument(span).await;
    }

    async fn end_without_code(
        &self,
        leased: Leased,
        identity: Identity,
        fail: Fail,
        known: Known,
        standing: Standing,
    ) {
        let Fail { execution_id, start, details, collisions, .. } = fail;
        let instance = &identity.instance;
        if matches!(known, Known::Unreadable(_)) && self.shared.is_over(instance).await {
            self.shared.commit(&leased.token, TurnCommit::empty(execution_id)).await;
            return;
        }
        match &details {
            ErrorDetails::Poison { .. } => {
                tracing::error!(target: "steadfast::runtime", %instance, details = %details.display_message(), "poison: the execution fails");
            }
            _ => {
                tracing::warn!(target: "steadfast::runtime", %instance, details = %details.display_message(), "the execution is ended without its code");
            }
        }
        let history = match (&start, known) {
            (Some(_), _) => Ok(Vec::new()),
            (None, Known::Cold(events)) => Ok(events),
            (None, Known::Unreadable(error)) => Err(error),
            // What is kept is not a history: the code's side is all it has.
            (None, Known::Warm(_)) => {
                match self.shared.store.read_history(&identity.instance, Some(execution_id)).await {
                    Ok(events) => Ok(events),
                    Err(error) => {
                        tracing::warn!(target: "steadfast::runtime", instance = %identity.instance, %error, "its history cannot be read now; the lease will end");
                        return;
                    }
                }
            }
        };
        let turn = history.ok().and_then(|history| {
            self.failed(&identity, history, start.as_ref(), leased.now_ms, details.clone())
        });
        let verdict = Verdict::Failed { details: details.clone() };
        let mut commit = match turn {
            Some(turn) => {
                let traceparent = traceparent_of(start.as_ref(), &standing);
                self.shared.commit_of(turn, execution_id, traceparent).await
            }
            None => {
                let last = leased.last_event_id;
                let mut commit = failed_by_hand(&identity, details.clone(), last, leased.now_ms);
                self.shared.close_unreadable(&identity, last, &details, &mut commit).await;
                commit
            }
        };
        commit.messages.extend(collisions.into_iter().map(Message::from));
        let cancelled = commit.cancelled.clone();
        let events = commit.events.last().map_or(0, Event::event_id);
        if let Committing::Done(_) = self.shared.commit(&leased.token, commit).await {
            self.shared.running.cancel(&cancelled);
            self.count(&identity, &verdict, start.as_ref(), &standing, leased.now_ms, events);
        }
    }

    /// A commit that the store refuses for good ends the execution that it was about (2.10, F11).
    pub(super) async fn record_failure(
        &self,
        leased: &Leased,
        identity: &Identity,
        start: Option<Start>,
        error: &ProviderError,
        collisions: Vec<WorkItem>,
        standing: &Standing,
    ) {
        tracing::error!(target: "steadfast::runtime", instance = %identity.instance, %error, "a turn cannot be committed; the execution fails");
        let history = match &start {
            Some(_) => Vec::new(),
            None => {
                match self.shared.store.read_history(&identity.instance, Some(identity.execution_id)).await {
                    Ok(history) => history,
                    Err(error) => {
                        tracing::error!(target: "steadfast::runtime", instance = %identity.instance, %error, "its history cannot be read; the lease will end");
                        return;
                    }
                }
            }
        };
        let details = error.to_infrastructure_error();
        let Some(turn) = self.failed(identity, history, start.as_ref(), leased.now_ms, details.clone())
        else {
            return;
        };
        let verdict = turn.verdict.clone();
        let mut commit = self
            .shared
            .commit_of(turn, identity.execution_id, traceparent_of(start.as_ref(), standing))
            .await;
        commit.messages.extend(collisions.into_iter().map(Message::from));
        let cancelled = commit.cancelled.clone();
        let events = commit.events.last().map_or(0, Event::event_id);
        if let Committing::Done(_) = self.shared.commit(&leased.token, commit).await {
            self.shared.running.cancel(&cancelled);
            self.count(identity, &verdict, start.as_ref(), standing, leased.now_ms, events);
        }
    }

    /// The last turn of an execution, with its first event when it has not begun. None when its history is none.
    fn failed(
        &self,
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
}

/// The trace context of an execution: of its start, if that is now, else of the one that is recorded.
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

/// The event id that marks the end of a history which cannot be read, while it is free.
const UNREADABLE_END: u64 = 99_999;

/// The end of an execution whose history cannot be read: nothing is known of what it leaves open.
fn failed_by_hand(identity: &Identity, details: ErrorDetails, last_event_id: u64, now_ms: u64) -> TurnCommit {
    let id = if last_event_id < UNREADABLE_END { UNREADABLE_END } else { last_event_id.saturating_add(1) };
    let output = details.display_message();
    let kind = EventKind::OrchestrationFailed { details };
    let event = Event::at(now_ms, id, identity.instance.clone(), identity.execution_id, None, kind);
    let mut commit = TurnCommit { events: vec![event], ..TurnCommit::empty(identity.execution_id) };
    commit.metadata.status = Some("Failed".to_owned());
    commit.metadata.output = Some(output);
    commit
}
