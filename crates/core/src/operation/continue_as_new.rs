//! Continue-as-new: this execution ends and the next one starts with a fresh history.
//!
//! No event of its own records the call: the event that ends the execution stands for it. The message that
//! starts the successor carries what outlives an execution: the parent, unread queue messages, the custom
//! status and open sessions.

use super::bounds::check_payload;
use super::{Operation, Site};
use crate::limits::MAX_CARRY_FORWARD_EVENTS;
use crate::replay::ledger::Ledger;
use crate::replay::{CarryForwardOverflow, Notice, ParentLink, Start};
use crate::{Action, ErrorDetails, WorkItem};

pub(crate) struct ContinueAsNewRules;

impl Operation for ContinueAsNewRules {
    fn label(&self) -> &'static str {
        "ContinueAsNew"
    }

    fn refuse(&self, action: &Action, _event_id: u64, site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::ContinueAsNew { input, .. } = action else { return Ok(()) };
        check_payload("continue-as-new input", input, site.options)
    }
}

/// The arguments of a continue-as-new: the input of the next execution, and the version of its handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Continuation {
    pub(crate) input: String,
    pub(crate) version: Option<String>,
}

impl Continuation {
    pub(crate) fn of(action: Action) -> Option<Self> {
        let Action::ContinueAsNew { input, version } = action else { return None };
        Some(Self { input, version })
    }

    /// The messages that start the next execution. The first carries up to 100 unread queue messages. The
    /// rest follow as messages of their own, or are dropped with a notice for each, as
    /// [`CarryForwardOverflow`] says.
    pub(crate) fn messages(
        &self,
        site: &Site<'_>,
        ledger: &mut Ledger,
        notices: &mut Vec<Notice>,
    ) -> Vec<WorkItem> {
        let instance = &site.identity.instance;
        let mut carry_forward = ledger.queues.take_unread();
        let beyond = carry_forward.split_off(carry_forward.len().min(MAX_CARRY_FORWARD_EVENTS));
        let start = Start {
            input: self.input.clone(),
            parent: site.outline.parent.clone(),
            carry_forward,
            custom_status: ledger.custom_status.clone(),
            sessions: site.outline.sessions.carry_out(),
            traceparent: None,
            random: None,
        };
        let orchestration = site.identity.name.clone();
        let opening = StartMessage { orchestration, version: self.version.clone(), start, continues: true };
        let mut messages = vec![opening.continue_as_new(instance.clone())];
        for (name, data) in beyond {
            match site.options.carry_forward_overflow {
                CarryForwardOverflow::Drop => notices.push(Notice::CarryForwardDropped { name, data }),
                CarryForwardOverflow::Keep => {
                    messages.push(WorkItem::QueueMessage { instance: instance.clone(), name, data });
                }
            }
        }
        messages
    }
}

/// The start of an execution, as a message brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartMessage {
    /// The name that the orchestration is registered under.
    pub orchestration: String,
    /// The version that the message asks for; `None` leaves the choice to the registry.
    pub version: Option<String>,
    /// The input, the parent and everything that the previous execution hands on. Its `traceparent` is
    /// `None`, because a message carries no trace context.
    pub start: Start,
    /// Whether the message continues an instance as new; `false` for a message that starts an instance.
    pub continues: bool,
}

impl StartMessage {
    /// Takes the start out of a message: [`WorkItem::StartOrchestration`], [`WorkItem::ContinueAsNew`] or
    /// [`WorkItem::ContinueAsNewWithSessions`].
    ///
    /// # Errors
    /// Any other message, unchanged.
    pub fn read(mut message: WorkItem) -> Result<Self, Box<WorkItem>> {
        if let WorkItem::StartOrchestration {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } = message
        {
            let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
            let start = Start { input, parent, ..Start::default() };
            return Ok(Self { orchestration, version, start, continues: false });
        }
        let sessions = if let WorkItem::ContinueAsNewWithSessions { sessions, .. } = &mut message {
            std::mem::take(sessions)
        } else {
            Vec::new()
        };
        let (WorkItem::ContinueAsNew {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: carry_forward,
            initial_custom_status: custom_status,
            ..
        }
        | WorkItem::ContinueAsNewWithSessions {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: carry_forward,
            initial_custom_status: custom_status,
            ..
        }) = message
        else {
            return Err(Box::new(message));
        };
        let parent = ParentLink::of(parent_instance.as_deref(), parent_id, parent_execution_id);
        let start =
            Start { input, parent, carry_forward, custom_status, sessions, traceparent: None, random: None };
        Ok(Self { orchestration, version, start, continues: true })
    }

    /// Makes the message that continues `instance` as new. A start without sessions has the form that every
    /// version of the engine reads.
    pub fn continue_as_new(self, instance: String) -> WorkItem {
        let Self { orchestration, version, start, .. } = self;
        let Start { input, parent, carry_forward, custom_status, sessions, .. } = start;
        let (parent_instance, parent_id, parent_execution_id) = ParentLink::fields(parent);
        let (carry_forward_events, initial_custom_status) = (carry_forward, custom_status);
        if sessions.is_empty() {
            return WorkItem::ContinueAsNew {
                instance,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
            };
        }
        WorkItem::ContinueAsNewWithSessions {
            instance,
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status,
            sessions,
        }
    }
}
