//! What a program asked for, in the order of its calls: the witness that does not trust the engine.
//!
//! An engine emits one action per call, in call order. So the journal of one run and the schedule events of
//! its history tell the same story, and where they part is where a replay must report a mismatch.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use super::api::{Event, EventKind};

/// The calls of one invocation of a program. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<Call>>>);

impl Journal {
    /// Adds a call.
    pub fn note(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Gives the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One call with the fields that matching compares. Calls that the retry helper makes inside the library
/// are not noted: exclude it (`Palette::retries`) where the journal must be complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the events")]
pub enum Call {
    Activity { name: String, input: String, session: Option<String>, tag: Option<String> },
    Timer,
    Wait { name: String },
    Dequeue { name: String },
    Child { name: String, input: String },
    Detach { name: String, instance: String, input: String },
    SetValue { key: String, value: String },
    ClearValue { key: String },
    ClearValues,
    Status,
    ContinueAsNew { input: String },
    OpenSession { id: Option<String>, is_serial: bool, idle_millis: Option<u64> },
    CloseSession { id: String },
}

impl Call {
    /// Gives the call that an event of the shared kinds records, if it records one.
    ///
    /// Continue-as-new is no schedule: it is known by the end of the history.
    pub fn recorded_in(kind: &EventKind) -> Option<Self> {
        Some(match kind.clone() {
            EventKind::ActivityScheduled { name, input, session_id, tag } => {
                Self::Activity { name, input, session: session_id, tag }
            }
            EventKind::TimerCreated { .. } => Self::Timer,
            EventKind::ExternalSubscribed { name } => Self::Wait { name },
            EventKind::QueueSubscribed { name } => Self::Dequeue { name },
            EventKind::SubOrchestrationScheduled { name, input, .. } => Self::Child { name, input },
            EventKind::OrchestrationChained { name, instance, input } => {
                Self::Detach { name, instance, input }
            }
            EventKind::KeyValueSet { key, value, .. } => Self::SetValue { key, value },
            EventKind::KeyValueCleared { key } => Self::ClearValue { key },
            EventKind::KeyValuesCleared => Self::ClearValues,
            EventKind::CustomStatusUpdated { .. } => Self::Status,
            other => return super::own::call_recorded_in(other),
        })
    }

    /// Says whether the call is no schedule but the end of the execution.
    fn ends(&self) -> bool {
        matches!(self, Self::ContinueAsNew { .. })
    }
}

/// Gives the first schedule event that the calls do not repeat, if there is one: where a replay that made
/// these calls must report a mismatch, unless a completion parts from them earlier.
pub fn parting<'a>(calls: &[Call], history: &'a [Event]) -> Option<&'a Event> {
    let mut calls: VecDeque<&Call> = calls.iter().collect();
    history.iter().find(|event| match Call::recorded_in(&event.kind) {
        Some(recorded) => !take(&mut calls, &recorded),
        None => false,
    })
}

/// Takes the call that is recorded, if it is next. Clears that stand next to each other match in any order.
fn take(calls: &mut VecDeque<&Call>, recorded: &Call) -> bool {
    while calls.front().is_some_and(|call| call.ends()) {
        calls.pop_front();
    }
    let clears = calls.iter().take_while(|call| matches!(call, Call::ClearValue { .. })).count();
    let index = calls.iter().take(clears.max(1)).position(|call| *call == recorded);
    index.and_then(|index| calls.remove(index)).is_some()
}
