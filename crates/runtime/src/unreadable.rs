//! What can be known of an instance whose history cannot be read: its row, and what its parent recorded.

use steadfast_core::replay::{ParentLink, ParentNotice};
use steadfast_core::{ErrorDetails, EventKind, WorkItem, build_child_instance_id};
use steadfast_store::{ExecutionState, InstanceState};

use crate::runtime::Shared;

impl Shared {
    /// Tells whether the row of the instance says that it has ended: what has ended does not end again (I9).
    pub(crate) async fn is_over(&self, instance: &str) -> bool {
        let status = self.row_of(instance).await.map(|state| state.status);
        matches!(status, Some(ExecutionState::Completed(_) | ExecutionState::Failed(_)))
    }

    /// The news of a failure for the parent that waits for the instance (F6), as far as it can be found: the row names
    /// it, or the id that the engine made; which event of it waits is in its own history.
    pub(crate) async fn news_of_unreadable(
        &self,
        instance: &str,
        details: &ErrorDetails,
    ) -> Option<WorkItem> {
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

    async fn row_of(&self, instance: &str) -> Option<InstanceState> {
        self.store.state(instance).await.ok().flatten()
    }
}
