//! A summary of a history, for the decisions of triage: how the execution started and whether it has ended.

use semver::Version;
use steadfast_core::replay::ParentLink;
use steadfast_core::{Event, EventKind};

/// A summary of a history. An execution in memory has no events, so its summary is kept with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The fields of the event that started the execution. `None` if the history has no such event.
    pub(super) started: Option<RecordedStart>,
    /// The history has no events.
    pub(super) is_empty: bool,
    pub(super) ending: RecordedEnding,
    /// Counts the turns, for metrics: exact while the execution stays in memory, else the number of different
    /// times of the events.
    pub(super) turns: u64,
}

/// The fields of the event that started an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedStart {
    pub(super) name: String,
    /// The version of the handler. `None` leaves it to the registry: older engines did not always record it.
    pub(super) version: Option<String>,
    /// The engine version that the execution began with, if the recorded text is a version.
    pub(super) engine: Option<Version>,
    pub(super) parent: Option<ParentLink>,
    pub(super) at_ms: u64,
    /// The trace context that the execution began with.
    pub(super) traceparent: Option<String>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RecordedEnding {
    /// The execution has not ended.
    #[default]
    None,
    /// The execution completed or failed, which ended the instance too.
    Ended,
    /// The execution continued as new: the instance has a next execution.
    Continued,
}

impl Standing {
    pub(super) fn of(history: &[Event]) -> Self {
        let mut standing = Self { is_empty: history.is_empty(), ..Self::default() };
        let mut moment = None;
        for event in history {
            if moment != Some(event.timestamp_ms) {
                moment = Some(event.timestamp_ms);
                standing.turns += 1;
            }
            match &event.kind {
                EventKind::OrchestrationStarted { .. } if standing.started.is_none() => {
                    standing.started = RecordedStart::of(event);
                }
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                    standing.ending = RecordedEnding::Ended;
                }
                // A failure behind it is how older engines recorded that the next execution could not start.
                EventKind::OrchestrationContinuedAsNew { .. } if standing.ending == RecordedEnding::None => {
                    standing.ending = RecordedEnding::Continued;
                }
                _ => {}
            }
        }
        standing
    }

    /// Returns the trace context that the execution began with.
    pub(super) fn traceparent(&self) -> Option<&str> {
        self.started.as_ref()?.traceparent.as_deref()
    }
}

impl RecordedStart {
    fn of(event: &Event) -> Option<Self> {
        let EventKind::OrchestrationStarted {
            name,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } = &event.kind
        else {
            return None;
        };
        Some(Self {
            name: name.clone(),
            version: (version != "0.0.0").then(|| version.clone()),
            engine: Version::parse(&event.duroxide_version).ok(),
            parent: ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id),
            at_ms: event.timestamp_ms,
            traceparent: event.traceparent.clone(),
        })
    }
}
