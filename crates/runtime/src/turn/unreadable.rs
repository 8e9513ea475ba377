//! Ending an instance whose history cannot be read, with the help of its row, its parent's history and its
//! children.

use std::collections::HashSet;

use steadfast_core::replay::{Identity, ParentLink, ParentNotice};
use steadfast_core::{
    ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, WorkItem, build_child_instance_id,
};
use steadfast_store::{
    InstanceQuery, InstanceState, MAX_PAGE, Message, ProviderError, ProviderErrorKind, TurnCommit,
};

use super::triage::{Caller, collision};
use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

impl RuntimeShared {
    /// Cancels the activities and children of an unreadable execution and tells its parent, as far as these
    /// can be found (F6).
    ///
    /// # Errors
    /// The store is in trouble: what it does not tell now would be lost for good.
    pub(super) async fn close_unreadable(
        &self,
        identity: &Identity,
        last_event_id: u64,
        details: &ErrorDetails,
        commit: &mut TurnCommit,
    ) -> Result<(), ProviderError> {
        let notices = self.notices_of(&identity.instance, details).await?;
        let cancels = self.cancels_of_children(identity).await?;
        commit.messages.extend(notices.into_iter().chain(cancels).map(Message::from));
        commit.cancelled = self.activities_of(identity, last_event_id).await;
        Ok(())
    }

    /// The activities of an unreadable execution that are queued or leased. The store lists a page of them.
    /// Where it does not tell, any event could be one; cancelling an id that is no activity is no error.
    async fn activities_of(
        &self,
        identity: &Identity,
        last_event_id: u64,
    ) -> Vec<ScheduledActivityIdentifier> {
        let Identity { instance, execution_id, .. } = identity;
        let listed = in_time(self, "work_of", self.store.work_of(instance, *execution_id)).await;
        let (listed, untold_from) = match listed {
            Ok(listed) if listed.len() < MAX_PAGE => (listed, u64::MAX),
            Ok(listed) => {
                let last = listed.last().map_or(0, |work| work.activity_id);
                (listed, last.saturating_add(1))
            }
            Err(_) => (Vec::new(), 1),
        };
        let listed = listed.into_iter().map(|work| work.activity_id);
        let untold = untold_from..=last_event_id;
        listed
            .chain(untold)
            .map(|activity_id| ScheduledActivityIdentifier {
                instance: instance.clone(),
                execution_id: *execution_id,
                activity_id,
            })
            .collect()
    }

    /// The messages for the parent. The instance's row names the parent, or the id that the engine made does;
    /// which events of the parent wait is in the parent's history. More than one does if the parent asked for
    /// the same id again.
    async fn notices_of(
        &self,
        instance: &str,
        details: &ErrorDetails,
    ) -> Result<Vec<WorkItem>, ProviderError> {
        let row = self.row_of(instance).await?;
        let Some(parent) = parent_of(instance, row.as_ref()) else { return Ok(Vec::new()) };
        let history = told(self.history_of(&parent, None).await)?.unwrap_or_default();
        let calls = open_calls(&history, &parent, instance).map(|scheduled| {
            let (id, execution_id) = (scheduled.event_id, scheduled.execution_id);
            let parent = ParentLink { instance: parent.clone(), id, execution_id: Some(execution_id) };
            ParentNotice { parent, outcome: Err(details.clone()) }.into_message(execution_id)
        });
        Ok(calls.collect())
    }

    /// The cancellations for the children of this execution that still run. Children of earlier
    /// executions go on, as after any other end.
    async fn cancels_of_children(&self, identity: &Identity) -> Result<Vec<WorkItem>, ProviderError> {
        let parent = Some(identity.instance.clone());
        let mut query = InstanceQuery { parent, limit: MAX_PAGE, ..InstanceQuery::default() };
        let mut cancels = Vec::new();
        while let Some(page) = told(in_time(self, "instances", self.store.instances(&query)).await)? {
            for child in page.instances.into_iter().filter(|child| !child.status.is_ended()) {
                let history = told(self.history_of(&child.instance, None).await)?.unwrap_or_default();
                if parent_execution(&history) == Some(identity.execution_id) {
                    let reason = "parent failed".to_owned();
                    cancels.push(WorkItem::CancelInstance { instance: child.instance, reason });
                }
            }
            if page.next.is_none() {
                break;
            }
            query.after = page.next;
        }
        Ok(cancels)
    }

    /// Reads the history of an execution, the last one by default.
    pub(super) async fn history_of(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        in_time(self, "read_history", self.store.read_history(instance, execution_id)).await
    }

    /// Reads the row of an instance; `None` if there is none, or the store can never read it.
    ///
    /// # Errors
    /// The store is in trouble, and may tell later.
    pub(super) async fn row_of(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        let row = told(in_time(self, "state", self.store.state(instance)).await)?;
        Ok(row.flatten())
    }
}

/// Separates what the store tells from trouble that passes, which is returned. That something cannot be read
/// for good is an answer too: an instance must be able to end although a row is damaged (F6), also on a
/// provider that has no rows and reads the history in their place.
fn told<T>(answer: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    let error = match answer {
        Ok(answer) => return Ok(Some(answer)),
        Err(error) => error,
    };
    match error.kind {
        _ if error.is_retryable() => Err(error),
        ProviderErrorKind::Corrupt
        | ProviderErrorKind::NotFound
        | ProviderErrorKind::Unsupported
        | ProviderErrorKind::Invalid
        | ProviderErrorKind::Other => Ok(None),
        ProviderErrorKind::Busy
        | ProviderErrorKind::Unavailable
        | ProviderErrorKind::Full
        | ProviderErrorKind::Conflict
        | ProviderErrorKind::Refused
        | ProviderErrorKind::LeaseLost
        | ProviderErrorKind::Withdrawn => Err(error),
    }
}

/// The messages to parents that ask for the id of an instance which cannot be read. While it has not ended,
/// its own parent is told of its end and not that the id is taken.
pub(super) fn refusals(callers: Vec<Caller>, row: Option<&InstanceState>, instance: &str) -> Vec<WorkItem> {
    let has_ended = row.is_some_and(|row| row.status.is_ended());
    let own = parent_of(instance, row);
    let is_refused =
        |caller: &Caller| has_ended || caller.is_rival || own.as_ref() != Some(&caller.parent.instance);
    let refused = callers.into_iter().filter(is_refused);
    refused.map(|caller| collision(caller.parent, has_ended, instance)).collect()
}

/// The parent of an instance, by its row or else by the id that the engine made.
fn parent_of(instance: &str, row: Option<&InstanceState>) -> Option<String> {
    match row {
        Some(row) => row.parent.clone(),
        None => Some(instance.rsplit_once("::sub::")?.0.to_owned()),
    }
}

/// The events with which a parent asked for this child and that have no answer yet.
fn open_calls<'a>(
    history: &'a [Event],
    parent: &'a str,
    instance: &'a str,
) -> impl Iterator<Item = &'a Event> {
    let is_call = move |event: &&Event| {
        matches!(
            &event.kind,
            EventKind::SubOrchestrationScheduled { instance: child, .. }
                if build_child_instance_id(parent, child) == instance
        )
    };
    let answers = history.iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. }
        )
    });
    let answered: HashSet<u64> = answers.filter_map(|event| event.source_event_id).collect();
    history.iter().filter(is_call).filter(move |event| !answered.contains(&event.event_id))
}

fn parent_execution(history: &[Event]) -> Option<u64> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { parent_execution_id, .. } => *parent_execution_id,
        _ => None,
    })
}
