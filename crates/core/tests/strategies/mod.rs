//! Strategies for arbitrary vocabulary, one per type.
//!
//! They draw from every variant and leave every optional field out now and then.

#![allow(dead_code, reason = "each test binary uses its own part")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use steadfast_core::*;

/// Draws short texts, among them ones that JSON must escape or that are JSON themselves.
pub(crate) fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[a-z:-]{0,8}",
        2 => any::<String>(),
        1 => prop::sample::select(vec![
            "", "null", "\"quoted\"", "{\"type\":\"TimerFired\"}", "\u{0}\u{1f}", "😀",
        ])
            .prop_map(str::to_owned),
    ]
    .boxed()
}

/// Draws a text or none.
pub(crate) fn optional_text() -> BoxedStrategy<Option<String>> {
    option::of(text()).boxed()
}

fn number() -> BoxedStrategy<u64> {
    prop_oneof![0..100u64, any::<u64>(), Just(u64::MAX)].boxed()
}

fn optional_number() -> BoxedStrategy<Option<u64>> {
    option::of(number()).boxed()
}

fn pairs() -> BoxedStrategy<Vec<(String, String)>> {
    vec((text(), text()), 0..4).boxed()
}

/// Draws an event at any place.
pub(crate) fn event() -> BoxedStrategy<Event> {
    (
        (number(), optional_number(), text(), number(), number(), text()),
        event_kind(),
        (optional_text(), optional_text()),
        (optional_number(), call_terms(), failure()),
    )
        .prop_map(|(place, kind, (child_version, traceparent), (random, call, failure))| {
            let (event_id, source_event_id, instance_id, execution_id, timestamp_ms, duroxide_version) =
                place;
            Event {
                event_id,
                source_event_id,
                instance_id,
                execution_id,
                timestamp_ms,
                duroxide_version,
                kind,
                child_version,
                traceparent,
                random,
                call,
                failure,
            }
        })
        .boxed()
}

fn call_terms() -> BoxedStrategy<Option<Box<CallTerms>>> {
    let terms = (text(), proptest::option::of(policy()), any::<u32>());
    let terms = terms.prop_map(|(key, policy, tried_before)| CallTerms { key, policy, tried_before });
    proptest::option::of(terms.prop_map(Box::new)).boxed()
}

fn policy() -> BoxedStrategy<Policy> {
    let time = || any::<u64>().prop_map(std::time::Duration::from_millis);
    let parts = (1_u32.., time(), time(), 1_u32..9, any::<bool>(), proptest::option::of(time()));
    parts
        .prop_map(|(max, first, longest, factor, jitter, timeout)| {
            let policy = Policy::tries(max).backoff(first..longest).factor(factor.into()).jitter(jitter);
            match timeout {
                Some(timeout) => policy.timeout(timeout),
                None => Policy::unlimited().total(first),
            }
        })
        .boxed()
}

fn failure() -> BoxedStrategy<Option<Box<Failure>>> {
    let kind = prop_oneof![
        Just(FailureKind::Error),
        Just(FailureKind::Final),
        Just(FailureKind::Timeout),
        Just(FailureKind::Panic),
        Just(FailureKind::SessionLost),
    ];
    let data = proptest::option::of(text());
    let failure = (kind, data, any::<u32>(), any::<u64>());
    let failure =
        failure.prop_map(|(kind, data, tries, elapsed_ms)| Failure { kind, data, tries, elapsed_ms });
    proptest::option::of(failure.prop_map(Box::new)).boxed()
}

/// Draws any kind of event.
pub(crate) fn event_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        orchestration_kind(),
        activity_kind(),
        wait_kind(),
        child_kind(),
        state_kind(),
        session_kind(),
    ]
    .boxed()
}

fn orchestration_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        (
            (text(), text(), text()),
            (optional_text(), optional_number(), optional_number()),
            (option::of(pairs()), optional_text())
        )
            .prop_map(
                |((name, version, input), parent, (carry_forward_events, initial_custom_status))| {
                    let (parent_instance, parent_id, parent_execution_id) = parent;
                    EventKind::OrchestrationStarted {
                        name,
                        version,
                        input,
                        parent_instance,
                        parent_id,
                        parent_execution_id,
                        carry_forward_events,
                        initial_custom_status,
                    }
                }
            ),
        text().prop_map(|output| EventKind::OrchestrationCompleted { output }),
        error_details().prop_map(|details| EventKind::OrchestrationFailed { details }),
        text().prop_map(|input| EventKind::OrchestrationContinuedAsNew { input }),
        text().prop_map(|reason| EventKind::OrchestrationCancelRequested { reason }),
    ]
    .boxed()
}

fn activity_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        (text(), text(), optional_text(), optional_text()).prop_map(|(name, input, session_id, tag)| {
            EventKind::ActivityScheduled { name, input, session_id, tag }
        }),
        text().prop_map(|result| EventKind::ActivityCompleted { result }),
        error_details().prop_map(|details| EventKind::ActivityFailed { details }),
        text().prop_map(|reason| EventKind::ActivityCancelRequested { reason }),
    ]
    .boxed()
}

fn wait_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        number().prop_map(|fire_at_ms| EventKind::TimerCreated { fire_at_ms }),
        number().prop_map(|fire_at_ms| EventKind::TimerFired { fire_at_ms }),
        text().prop_map(|name| EventKind::ExternalSubscribed { name }),
        (text(), text()).prop_map(|(name, data)| EventKind::ExternalEvent { name, data }),
        text().prop_map(|reason| EventKind::ExternalSubscribedCancelled { reason }),
        text().prop_map(|name| EventKind::QueueSubscribed { name }),
        (text(), text()).prop_map(|(name, data)| EventKind::QueueEventDelivered { name, data }),
        text().prop_map(|reason| EventKind::QueueSubscriptionCancelled { reason }),
    ]
    .boxed()
}

fn child_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        (text(), text(), text()).prop_map(|(name, instance, input)| EventKind::OrchestrationChained {
            name,
            instance,
            input
        }),
        (text(), text(), text()).prop_map(|(name, instance, input)| {
            EventKind::SubOrchestrationScheduled { name, instance, input }
        }),
        text().prop_map(|result| EventKind::SubOrchestrationCompleted { result }),
        error_details().prop_map(|details| EventKind::SubOrchestrationFailed { details }),
        text().prop_map(|reason| EventKind::SubOrchestrationCancelRequested { reason }),
    ]
    .boxed()
}

fn state_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        optional_text().prop_map(|status| EventKind::CustomStatusUpdated { status }),
        (text(), text(), number()).prop_map(|(key, value, last_updated_at_ms)| EventKind::KeyValueSet {
            key,
            value,
            last_updated_at_ms
        }),
        text().prop_map(|key| EventKind::KeyValueCleared { key }),
        Just(EventKind::KeyValuesCleared),
    ]
    .boxed()
}

fn session_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        (text(), optional_number(), option::of(session_concurrency())).prop_map(
            |(session_id, idle_timeout_ms, concurrency)| EventKind::SessionOpened {
                session_id,
                idle_timeout_ms,
                concurrency
            }
        ),
        text().prop_map(|session_id| EventKind::SessionClosed { session_id }),
        (text(), number(), optional_text(), text()).prop_map(|(session_id, epoch, from, to)| {
            EventKind::SessionMigrated { session_id, epoch, from, to }
        }),
        vec(carried_session(), 0..4).prop_map(|sessions| EventKind::SessionsCarried { sessions }),
    ]
    .boxed()
}

/// Draws any work item.
pub(crate) fn work_item() -> BoxedStrategy<WorkItem> {
    prop_oneof![
        start_item(),
        activity_item(),
        (text(), number(), number(), number()).prop_map(|(instance, execution_id, id, fire_at_ms)| {
            WorkItem::TimerFired { instance, execution_id, id, fire_at_ms }
        }),
        (text(), text(), text()).prop_map(|(instance, name, data)| WorkItem::ExternalRaised {
            instance,
            name,
            data
        }),
        (text(), text(), text()).prop_map(|(instance, name, data)| WorkItem::QueueMessage {
            instance,
            name,
            data
        }),
        (text(), text()).prop_map(|(instance, reason)| WorkItem::CancelInstance { instance, reason }),
        child_item(),
        continue_as_new_item(),
        (text(), number(), text(), number(), optional_text(), text()).prop_map(
            |(instance, execution_id, session_id, epoch, from, to)| WorkItem::SessionMigrated {
                instance,
                execution_id,
                session_id,
                epoch,
                from,
                to
            }
        ),
        (text(), text()).prop_map(|(instance, reason)| WorkItem::TerminateInstance { instance, reason }),
        text().prop_map(|instance| WorkItem::Nudge { instance }),
    ]
    .boxed()
}

fn start_item() -> BoxedStrategy<WorkItem> {
    (
        (text(), text(), text(), optional_text()),
        (optional_text(), optional_number(), optional_number()),
        number(),
    )
        .prop_map(|((instance, orchestration, input, version), parent, execution_id)| {
            let (parent_instance, parent_id, parent_execution_id) = parent;
            WorkItem::StartOrchestration {
                instance,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                execution_id,
            }
        })
        .boxed()
}

fn activity_item() -> BoxedStrategy<WorkItem> {
    prop_oneof![
        (text(), number(), number(), text(), text(), optional_text(), optional_text()).prop_map(
            |(instance, execution_id, id, name, input, session_id, tag)| WorkItem::ActivityExecute {
                instance,
                execution_id,
                id,
                name,
                input,
                session_id,
                tag
            }
        ),
        (text(), number(), number(), text()).prop_map(|(instance, execution_id, id, result)| {
            WorkItem::ActivityCompleted { instance, execution_id, id, result }
        }),
        (text(), number(), number(), error_details()).prop_map(|(instance, execution_id, id, details)| {
            WorkItem::ActivityFailed { instance, execution_id, id, details }
        }),
    ]
    .boxed()
}

fn child_item() -> BoxedStrategy<WorkItem> {
    prop_oneof![
        (text(), number(), number(), text()).prop_map(
            |(parent_instance, parent_execution_id, parent_id, result)| WorkItem::SubOrchCompleted {
                parent_instance,
                parent_execution_id,
                parent_id,
                result
            }
        ),
        (text(), number(), number(), error_details()).prop_map(
            |(parent_instance, parent_execution_id, parent_id, details)| WorkItem::SubOrchFailed {
                parent_instance,
                parent_execution_id,
                parent_id,
                details
            }
        ),
    ]
    .boxed()
}

fn continue_as_new_item() -> BoxedStrategy<WorkItem> {
    (
        (text(), text(), text(), optional_text()),
        (optional_text(), optional_number(), optional_number()),
        (pairs(), optional_text()),
        option::of(vec(carried_session(), 0..4)),
    )
        .prop_map(|(start, parent, (carry_forward_events, initial_custom_status), sessions)| {
            let (instance, orchestration, input, version) = start;
            let (parent_instance, parent_id, parent_execution_id) = parent;
            match sessions {
                None => WorkItem::ContinueAsNew {
                    instance,
                    orchestration,
                    input,
                    version,
                    parent_instance,
                    parent_id,
                    parent_execution_id,
                    carry_forward_events,
                    initial_custom_status,
                },
                Some(sessions) => WorkItem::ContinueAsNewWithSessions {
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
                },
            }
        })
        .boxed()
}

/// Draws any recorded error.
pub(crate) fn error_details() -> BoxedStrategy<ErrorDetails> {
    prop_oneof![
        (text(), text(), any::<bool>()).prop_map(|(operation, message, retryable)| {
            ErrorDetails::Infrastructure { operation, message, retryable }
        }),
        (text(), optional_text()).prop_map(|(resource, message)| ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource,
            message
        }),
        (app_error_kind(), text(), any::<bool>()).prop_map(|(kind, message, retryable)| {
            ErrorDetails::Application { kind, message, retryable }
        }),
        (any::<u32>(), any::<u32>(), poison_message_type(), text()).prop_map(
            |(attempt_count, max_attempts, message_type, message)| ErrorDetails::Poison {
                attempt_count,
                max_attempts,
                message_type,
                message
            }
        ),
    ]
    .boxed()
}

fn app_error_kind() -> BoxedStrategy<AppErrorKind> {
    prop_oneof![
        Just(AppErrorKind::ActivityFailed),
        Just(AppErrorKind::OrchestrationFailed),
        Just(AppErrorKind::Panicked),
        text().prop_map(|reason| AppErrorKind::Cancelled { reason }),
        Just(AppErrorKind::SessionLost),
    ]
    .boxed()
}

fn poison_message_type() -> BoxedStrategy<PoisonMessageType> {
    prop_oneof![
        (text(), number())
            .prop_map(|(instance, execution_id)| PoisonMessageType::Orchestration { instance, execution_id }),
        (text(), number(), text(), number()).prop_map(
            |(instance, execution_id, activity_name, activity_id)| PoisonMessageType::Activity {
                instance,
                execution_id,
                activity_name,
                activity_id
            }
        ),
        (text(), number(), text()).prop_map(|(instance, execution_id, error)| {
            PoisonMessageType::FailedDeserialization { instance, execution_id, error }
        }),
    ]
    .boxed()
}

/// Draws a carried session.
pub(crate) fn carried_session() -> BoxedStrategy<CarriedSession> {
    (text(), optional_number(), option::of(session_concurrency()), option::of(session_pool()))
        .prop_map(|(session_id, idle_timeout_ms, concurrency, pool)| CarriedSession {
            session_id,
            idle_timeout_ms,
            concurrency,
            pool,
        })
        .boxed()
}

fn session_concurrency() -> BoxedStrategy<SessionConcurrency> {
    prop_oneof![Just(SessionConcurrency::Unbounded), Just(SessionConcurrency::Serial)].boxed()
}

fn session_pool() -> BoxedStrategy<SessionPool> {
    prop_oneof![Just(SessionPool::Default), text().prop_map(SessionPool::Tag)].boxed()
}
