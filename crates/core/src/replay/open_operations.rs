//! The open operations of a history: calls that have no answer yet.

use super::Identity;
use super::outline::Outline;
use crate::operation::Role;
use crate::{Event, SessionKey};

/// An operation that an execution asked for and that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOperation {
    /// The id of the event that recorded the call.
    pub event_id: u64,
    /// The time of that event, in milliseconds since the Unix epoch.
    pub asked_at_ms: u64,
    /// The kind of operation, with the details that identify it.
    pub kind: OpenKind,
}

/// The kinds of operations that an execution can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenKind {
    /// The outcome of an activity.
    Activity {
        /// The name that the activity is registered under.
        name: String,
        /// The tag of the activity: only workers that serve it take the activity; `None` for an untagged
        /// activity.
        tag: Option<String>,
        /// The key of the session that the activity runs on; `None` for an activity without a session.
        session: Option<SessionKey>,
    },
    /// The time at which a timer is due.
    Timer {
        /// The time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// An event that is raised from outside.
    Event {
        /// The name of the awaited event: the one that its sender raises it under.
        name: String,
    },
    /// The next message of a queue.
    Queue {
        /// The name of the queue, which belongs to the instance.
        name: String,
    },
    /// The outcome of a child.
    Child {
        /// The name that the orchestration of the child is registered under.
        name: String,
        /// The instance id of the child, with the id of its parent in front if the engine made it.
        instance: String,
    },
}

/// Lists the open operations of an execution, oldest first. The list is empty for an execution that has
/// ended.
///
/// An operation that was asked to stop is left out: its answer changes nothing. No event records that the
/// code dropped the future of a timer, so such a timer is listed until it fires; a turn tells it beside its
/// history ([`Effects::dropped_timers`](crate::replay::Effects::dropped_timers)). Whether the history is
/// valid is not checked.
pub fn open_operations(instance: &str, history: &[Event]) -> Vec<OpenOperation> {
    // Of the identity only the instance matters here: the ids of children follow from it.
    let identity = Identity {
        instance: instance.to_owned(),
        execution_id: 0,
        name: String::new(),
        version: String::new(),
    };
    let mut outline = Outline::default();
    for event in history {
        outline.play(event, &identity);
    }
    if outline.has_ended() {
        return Vec::new();
    }
    let open = |event: &Event| {
        let Role::Records(kind) = event.kind.role() else { return None };
        let kind = kind.rules().explain(event, instance, &outline)?;
        Some(OpenOperation { event_id: event.event_id, asked_at_ms: event.timestamp_ms, kind })
    };
    history.iter().filter_map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn history(kinds: Vec<(Option<u64>, EventKind)>) -> Vec<Event> {
        let event = |(id, (source, kind))| Event::at(id * 10, id, "order-1", 1, source, kind);
        (1..).zip(kinds).map(event).collect()
    }

    fn open(kinds: Vec<(Option<u64>, EventKind)>) -> Vec<(u64, OpenKind)> {
        let open = open_operations("order-1", &history(kinds));
        open.into_iter().map(|operation| (operation.event_id, operation.kind)).collect()
    }

    fn activity(session: Option<&str>) -> (Option<u64>, EventKind) {
        let session_id = session.map(str::to_owned);
        (None, EventKind::ActivityScheduled { name: "a".into(), input: String::new(), session_id, tag: None })
    }

    fn runs(session: Option<SessionKey>) -> OpenKind {
        OpenKind::Activity { name: "a".into(), tag: None, session }
    }

    #[test]
    fn every_kind_of_operation_is_named_with_the_time_of_its_event() {
        let child = EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::5".into(),
            input: String::new(),
        };
        let listed = open_operations(
            "order-1",
            &history(vec![
                activity(None),
                (None, EventKind::TimerCreated { fire_at_ms: 7 }),
                (None, EventKind::ExternalSubscribed { name: "go".into() }),
                (None, EventKind::QueueSubscribed { name: "mail".into() }),
                (None, child),
            ]),
        );
        let kinds = [
            runs(None),
            OpenKind::Timer { fire_at_ms: 7 },
            OpenKind::Event { name: "go".into() },
            OpenKind::Queue { name: "mail".into() },
            OpenKind::Child { name: "c".into(), instance: "order-1::sub::5".into() },
        ];
        let expected: Vec<OpenOperation> = (1..)
            .zip(kinds)
            .map(|(id, kind)| OpenOperation { event_id: id, asked_at_ms: id * 10, kind })
            .collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn answers_and_requests_to_stop_end_a_wait() {
        let done = (Some(1), EventKind::ActivityCompleted { result: String::new() });
        let stop = (Some(2), EventKind::ActivityCancelRequested { reason: "dropped_future".into() });
        let raised = (None, EventKind::ExternalEvent { name: "go".into(), data: String::new() });
        let wait = || (None, EventKind::ExternalSubscribed { name: "go".into() });
        let kinds = vec![activity(None), activity(None), wait(), wait(), done, stop, raised];
        assert_eq!(open(kinds), [(4, OpenKind::Event { name: "go".into() })]);
    }

    #[test]
    fn an_id_that_is_open_means_the_session_of_the_instance() {
        let opened =
            EventKind::SessionOpened { session_id: "s".into(), idle_timeout_ms: None, concurrency: None };
        let kinds = vec![activity(Some("s")), (None, opened), activity(Some("s"))];
        let (shared, owned) = (SessionKey::shared("s"), SessionKey::owned("order-1", "s"));
        assert_eq!(open(kinds), [(1, runs(Some(shared))), (3, runs(Some(owned)))]);
    }

    #[test]
    fn an_execution_that_has_ended_waits_for_nothing() {
        let ended = (None, EventKind::OrchestrationCompleted { output: String::new() });
        assert_eq!(open(vec![activity(None), ended]), []);
    }
}
