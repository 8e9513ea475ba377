//! What can be known of an instance whose history cannot be read: its row, what its parent recorded, and its children.

use steadfast_core::replay::{Identity, ParentLink, ParentNotice};
use steadfast_core::{
    ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, WorkItem, build_child_instance_id,
};
use steadfast_store::{ExecutionState, InstanceQuery, InstanceState, MAX_PAGE, Message, TurnCommit};

use crate::runtime::Shared;

impl Shared {
    /// Tells whether the row of the instance says that it has ended: what has ended does not end again (I9).
    pub(crate) async fn is_over(&self, instance: &str) -> bool {
        self.row_of(instance).await.is_some_and(|row| has_ended(&row))
    }

    /// Closes what an unreadable execution leaves open and tells its parent, as far as it can be found (F6).
    pub(crate) async fn close_unreadable(
        &self,
        identity: &Identity,
        last_event_id: u64,
        details: &ErrorDetails,
        commit: &mut TurnCommit,
    ) {
        let news = self.news_of(&identity.instance, details).await;
        let cancels = self.cancels_of_children(identity).await;
        commit.messages.extend(news.into_iter().chain(cancels).map(Message::from));
        // Which of its events are activities cannot be read: every event could be one, and withdrawing none is no error.
        commit.cancelled = (1..=last_event_id)
            .map(|activity_id| ScheduledActivityIdentifier {
                instance: identity.instance.clone(),
                execution_id: identity.execution_id,
                activity_id,
            })
            .collect();
    }

    /// The news for the parent: the row names it, or the id that the engine made; which event of it waits is in its own
    /// history.
    async fn news_of(&self, instance: &str, details: &ErrorDetails) -> Option<WorkItem> {
        let parent = match self.row_of(instance).await {
            Some(row) => row.parent?,
            None => instance.rsplit_once("::sub::")?.0.to_owned(),
        };
        let history = self.store.read_history(&parent, None).await.ok()?;
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

    /// Cancels the children of this execution that still run. Those of earlier ones go on, as after any other end.
    async fn cancels_of_children(&self, identity: &Identity) -> Vec<WorkItem> {
        let parent = Some(identity.instance.clone());
        let mut query = InstanceQuery { parent, limit: MAX_PAGE, ..InstanceQuery::default() };
        let mut cancels = Vec::new();
        while let Ok(page) = self.store.instances(&query).await {
            for child in page.instances.into_iter().filter(|child| !has_ended(child)) {
                let history = self.store.read_history(&child.instance, None).await.unwrap_or_default();
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

    async fn row_of(&self, instance: &str) -> Option<InstanceState> {
        self.store.state(instance).await.ok().flatten()
    }
}

fn has_ended(row: &InstanceState) -> bool {
    matches!(row.status, ExecutionState::Completed(_) | ExecutionState::Failed(_))
}

fn parent_execution(history: &[Event]) -> Option<u64> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { parent_execution_id, .. } => *parent_execution_id,
        _ => None,
    })
}
