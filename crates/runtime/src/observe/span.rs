//! Tracing spans: one per turn and one per activity run, so that handlers' log lines can be found by
//! instance.
//!
//! Both are root spans: their cause is a message in the store, not the span that the thread is in. The trace
//! context that came with the message is a field, from which an exporter can take the parent.

use steadfast_core::replay::Identity;
use tracing::{Span, info_span};

use crate::activity::ActivityInfo;

pub(crate) fn of_turn(identity: &Identity, traceparent: Option<&str>) -> Span {
    info_span!(
        target: "steadfast::runtime",
        parent: None,
        "turn",
        instance_id = %identity.instance,
        execution_id = identity.execution_id,
        orchestration_name = %identity.name,
        orchestration_version = %identity.version,
        traceparent,
    )
}

pub(crate) fn of_activity(info: &ActivityInfo) -> Span {
    info_span!(
        target: "steadfast::runtime",
        parent: None,
        "activity",
        instance_id = %info.instance,
        execution_id = info.execution_id,
        orchestration_name = %info.orchestration_name,
        orchestration_version = %info.orchestration_version,
        activity_name = %info.activity_name,
        activity_id = info.activity_id,
        worker_id = %info.worker_id,
        attempt = info.attempt,
        session_id = info.session_id.as_deref(),
        tag = info.tag.as_deref(),
        traceparent = info.traceparent.as_deref(),
    )
}
