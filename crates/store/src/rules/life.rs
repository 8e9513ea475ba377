//! Lives of instances: whose life a message carries, so that a start or an answer of a former parent of the
//! same id is told apart (S17).
//!
//! An instance gets its life with its first commit and keeps it over continue-as-new; a deleted instance that
//! is started again gets another one. A store keeps the life beside the message.

use steadfast_core::WorkItem;

/// The life that a store keeps beside a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarriedLife {
    /// No life: a sender outside any turn, or a message that needs none.
    None,
    /// The life of the instance that sends it: the start of a child.
    OfSender,
    /// The life of the parent that is answered. If the turn consumes a start that this message answers
    /// ([`answers_start`]), it is the life beside that start; else the life of the parent that the row of the
    /// sender keeps.
    OfParent,
}

/// Tells which life a message carries that a turn of `sender` sends.
pub fn carried_life(sender: &str, item: &WorkItem) -> CarriedLife {
    match item {
        WorkItem::StartOrchestration { parent_instance: Some(parent), .. } if parent == sender => {
            CarriedLife::OfSender
        }
        WorkItem::SubOrchCompleted { .. } | WorkItem::SubOrchFailed { .. } => CarriedLife::OfParent,
        _ => CarriedLife::None,
    }
}

/// Tells whether a message of a child is the answer to this start.
pub fn answers_start(answer: &WorkItem, start: &WorkItem) -> bool {
    let asked = match start {
        WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } => {
            (parent_instance.as_deref(), *parent_id, parent_execution_id.unwrap_or(1))
        }
        _ => return false,
    };
    match answer {
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, .. }
        | WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, .. } => {
            asked == (Some(parent_instance), Some(*parent_id), *parent_execution_id)
        }
        _ => false,
    }
}

/// Tells whether a start that meets an existing instance asks for another one: the instance was started by
/// another life of the parent (`own`) than the one that sends the start.
pub fn is_rival<Life: PartialEq>(own: Option<Life>, of_start: Option<Life>) -> bool {
    own.zip(of_start).is_some_and(|(own, of_start)| own != of_start)
}

/// Returns the instance that must have the life beside a message when the message is leased: the parent for
/// the start of a child, the receiver for an answer. `None` if no life matters. The start of a child is also
/// handed out if no instance of the parent's id exists.
pub fn bearer_of_life(item: &WorkItem) -> Option<&str> {
    match item {
        WorkItem::StartOrchestration { parent_instance, .. } => parent_instance.as_deref(),
        WorkItem::SubOrchCompleted { parent_instance, .. }
        | WorkItem::SubOrchFailed { parent_instance, .. } => Some(parent_instance),
        _ => None,
    }
}
