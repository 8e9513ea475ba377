//! Ending an instance whose history cannot be read, with the help of its row, its parent's history and its
//! children.

use steadfast_core::replay::{Identity, ParentLink, ParentNotice};
use steadfast_core::{
    ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, WorkItem, build_child_instance_id,
};
use steadfast_store::{InstanceQuery, InstanceState, MAX_PAGE, Message, ProviderError, TurnCommit};

use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

impl RuntimeShared {
    /// Tells whether the row of the instance says that it has ended: an instance ends only once (I9).
    pub(super) async fn has_ended(&self, instance: &str) -> bool {
        self.row_of(instance).await.is_some_and(|row| row.status.is_ended())
    }

    /// Cancels the activities and children of an unreadable execution and tells its parent, as far as these
    /// can be found (F6).
    pub(super) async fn close_unreadable(
        &self,
        identity: &Identity,
        last_event_id: u64,
        details: &ErrorDetails,
        commit: &mut TurnCommit,
    ) {
        let notice = self.notice_of(&identity.instance, details).await;
        let cancels = self.cancels_of_children(identity).await;
        commit.messages.extend(notice.into_iter().chain(cancels).map(Message::from));
        commit.cancelled = self.activities_of(identity, last_event_id).await;
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

    /// The message for the parent. The instance's row names the parent, or the id that the engine made does;
    /// which event of the parent waits is in the parent's history.
    async fn notice_of(&self, instance: &str, details: &ErrorDetails) -> Option<WorkItem> {
        let parent = match self.row_of(instance).await {
            Some(row) => row.parent?,
            None => instance.rsplit_once("::sub::")?.0.to_owned(),
        };
        let history = self.history_of(&parent, None).await.ok()?;
        let scheduled = history.iter().rev().find(|event| match &event.kind {
            EventKind::SubOrchestrationScheduled { instance: child, .. } => {
                build_child_instance_id(&parent, child) == instance
            }
            _ => false,
        })?;
        let (id, execution_id) = (scheduled.event_id, scheduled.execution_id);
        let parent = ParentLink { instance: parent, id, execution_id: Some(execution_id) };
        Some(ParentNotice { parent, outcome: Err(details.clone()) }.into_message(execution_id))
    }

    /// The cancellations for the children of this execution that still run. Children of earlier
    /// executions go on, as after any other end.
    async fn cancels_of_children(&self, identity: &Identity) -> Vec<WorkItem> {
        let parent = Some(identity.instance.clone());
        let mut query = InstanceQuery { parent, limit: MAX_PAGE, ..InstanceQuery::default() };
        let mut cancels = Vec::new();
        while let Ok(page) = in_time(self, "instances", self.store.instances(&query)).await {
            for child in page.instances.into_iter().filter(|child| !child.status.is_ended()) {
                let history = self.history_of(&child.instance, None).await.unwrap_or_default();
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
        cancels
    }

    /// Reads the history of an execution, the last one by default.
    pub(super) async fn history_of(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        in_time(self, "read_history", self.store.read_history(instance, execution_id)).await
    }

    async fn row_of(&self, instance: &str) -> Option<InstanceState> {
        in_time(self, "state", self.store.state(instance)).await.ok().flatten()
    }
}

fn parent_execution(history: &[Event]) -> Option<u64> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { parent_execution_id, .. } => *parent_execution_id,
        _ => None,
    })
}
