//! The answers to what an orchestration asked for, right and wrong.

use super::{
    super::api::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType, WorkItem},
    Script,
};

/// Something that is owed an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    Activity {
        execution: u64,
        id: u64,
        name: String,
    },
    /// The message that a store would hand out when the timer is due.
    Timer(WorkItem),
    Child {
        execution: u64,
        id: u64,
        instance: String,
    },
}

impl Open {
    /// Gives what an item asks for, if it asks for an answer.
    pub(super) fn asked_by(item: &WorkItem) -> Option<Self> {
        match item {
            WorkItem::ActivityExecute { execution_id, id, name, .. } => {
                Some(Self::Activity { execution: *execution_id, id: *id, name: name.clone() })
            }
            WorkItem::TimerFired { .. } => Some(Self::Timer(item.clone())),
            WorkItem::StartOrchestration {
                instance,
                parent_id: Some(id),
                parent_execution_id: Some(execution),
                ..
            } => Some(Self::Child { execution: *execution, id: *id, instance: instance.clone() }),
            _ => None,
        }
    }

    pub(super) fn is_activity(&self, wanted: u64) -> bool {
        matches!(self, Self::Activity { id, .. } if *id == wanted)
    }

    pub(super) fn is_child(&self, wanted: &str) -> bool {
        matches!(self, Self::Child { instance, .. } if instance == wanted)
    }
}

impl Script {
    pub(super) fn settle(&mut self, open: &Open) -> WorkItem {
        let failed = self.dice.chance(self.chances.failures);
        match open {
            Open::Activity { execution, id, name } => {
                let (instance, execution_id, id) = (self.instance.clone(), *execution, *id);
                if failed {
                    let details = self.failure();
                    WorkItem::ActivityFailed { instance, execution_id, id, details }
                } else {
                    let result = self.result_of(name);
                    WorkItem::ActivityCompleted { instance, execution_id, id, result }
                }
            }
            Open::Timer(fired) => fired.clone(),
            Open::Child { execution, id, .. } => {
                let (parent_instance, parent_execution_id, parent_id) =
                    (self.instance.clone(), *execution, *id);
                if failed {
                    let details = self.failure();
                    WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
                } else {
                    let result = self.text("r");
                    WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
                }
            }
        }
    }

    fn result_of(&mut self, activity: &str) -> String {
        match activity {
            // Answers with the JSON of an optional text.
            "__duroxide_syscall:get_kv_value" => match self.dice.below(3) {
                0 => "null".to_owned(),
                _ => format!("\"{}\"", self.text("v")),
            },
            _ => self.text("r"),
        }
    }

    /// Delivers a completion again, now and then with another outcome.
    pub(super) fn repeat(&mut self) -> Option<WorkItem> {
        let again = self.dice.pick(&self.delivered)?.clone();
        let contradicts = self.dice.chance(self.chances.contradictions);
        match again {
            WorkItem::ActivityCompleted { instance, execution_id, id, .. } if contradicts => {
                let details = self.failure();
                Some(WorkItem::ActivityFailed { instance, execution_id, id, details })
            }
            WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, .. }
                if contradicts =>
            {
                let details = self.failure();
                Some(WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details })
            }
            WorkItem::ActivityFailed { instance, execution_id, id, .. }
                if contradicts && self.dice.chance(500) =>
            {
                let result = self.text("r");
                Some(WorkItem::ActivityCompleted { instance, execution_id, id, result })
            }
            // To fail twice is the contradiction of F15.
            WorkItem::ActivityFailed { .. } => contradicts.then_some(again),
            other => Some(other),
        }
    }

    /// A completion that nothing asked for: of an unknown id, or of another kind than what was asked.
    pub(super) fn stray(&mut self) -> WorkItem {
        let instance = self.instance.clone();
        match self.dice.pick(&self.open).cloned() {
            Some(Open::Activity { execution, id, .. }) => {
                WorkItem::TimerFired { instance, execution_id: execution, id, fire_at_ms: 0 }
            }
            Some(Open::Timer(WorkItem::TimerFired { execution_id, id, .. })) => WorkItem::SubOrchCompleted {
                parent_instance: instance,
                parent_execution_id: execution_id,
                parent_id: id,
                result: self.text("s"),
            },
            Some(Open::Child { execution, id, .. }) => {
                WorkItem::ActivityCompleted { instance, execution_id: execution, id, result: self.text("s") }
            }
            _ => {
                let (execution_id, id) = (self.execution, 900 + self.serial);
                WorkItem::ActivityCompleted { instance, execution_id, id, result: self.text("s") }
            }
        }
    }
}

/// A failure of the application, or one of the three kinds that end the orchestration at once.
pub(super) fn failure(message: String, fatal: Option<usize>) -> ErrorDetails {
    match fatal {
        None => ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message, retryable: false },
        Some(0) => ErrorDetails::Infrastructure { operation: "fetch".to_owned(), message, retryable: false },
        Some(1) => ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: "script".to_owned(),
            message: Some(message),
        },
        Some(_) => ErrorDetails::Poison {
            attempt_count: 11,
            max_attempts: 10,
            message_type: PoisonMessageType::Orchestration { instance: "script".to_owned(), execution_id: 1 },
            message,
        },
    }
}
