//! The spans that what handlers log stands in: one for each turn, one for each run of an activity.
//!
//! Both are roots. What causes them is a message in the store, not whatever the thread is about; the trace context that
//! travels with the message is a field, for an exporter that makes it the parent.

use steadfast_core::replay::Identity;
use tracing::{Span, info_span};

use crate::activity::Particulars;

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

pub(crate) fn of_activity(particulars: &Particulars) -> Span {
    info_span!(
        target: "steadfast::runtime",
        parent: None,
        "activity",
        instance_id = %particulars.instance,
        execution_id = particulars.execution_id,
        orchestration_name = %particulars.orchestration_name,
        orchestration_version = %particulars.orchestration_version,
        activity_name = %particulars.activity_name,
        activity_id = particulars.activity_id,
        worker_id = %particulars.worker_id,
        attempt = particulars.attempt,
        session_id = particulars.session_id.as_deref(),
        tag = particulars.tag.as_deref(),
        traceparent = particulars.traceparent.as_deref(),
    )
}
