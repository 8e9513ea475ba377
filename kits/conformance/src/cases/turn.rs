//! Leasing instances: one holder, whole batches.

pub(super) mod abandon;
pub(super) mod commit;
pub(super) mod inspect;
pub(super) mod lease;
pub(super) mod life;
pub(super) mod order;
pub(super) mod poll;
pub(super) mod traceparent;
pub(super) mod version;
pub(super) mod warm;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use steadfast_core::{AppErrorKind, CarriedSession, ErrorDetails, KvEntry, WorkItem};
use steadfast_store::{
    Cold, Envelope, MAX_TURN_MESSAGES, Message, RunId, Store, TurnCommit, TurnLease, TurnRequest,
};

use crate::Verdict;
use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, TICK, Turning, completion, continue_as_new_of, event, kv_set, ok, raise,
    scheduled, start_of, started, timer,
};
use crate::case::{cases, need};

cases![
    s1_a_leased_instance_is_given_to_nobody_else,
    s1_a_lease_lasts_until_its_end_and_no_longer,
    s1_an_expired_lease_is_given_to_the_next,
    s1_a_leased_instance_does_not_hold_up_another,
    s1_of_many_fetches_at_once_one_gets_the_instance,
    s1_many_fetches_at_once_share_out_the_instances,
    s1_a_lease_may_be_longer_than_any_clock_can_tell,
    s2_a_lease_carries_the_visible_messages_in_order_of_arrival,
    s2_a_lease_carries_no_messages_of_other_instances,
    s2_every_kind_of_message_arrives_as_it_was_sent,
    s2_a_message_brings_its_trace_context,
    s2_the_first_attempt_is_number_one,
    s2_the_attempt_is_the_highest_of_the_batch,
    s2_a_batch_is_bounded_and_the_rest_comes_next,
    s2_a_start_is_in_the_batch_however_much_is_ahead_of_it,
    s2_a_continue_as_new_is_in_the_batch_however_much_is_ahead_of_it,
    s2_a_lease_tells_the_last_event,
    s2_an_instance_that_has_not_begun_has_no_run,
    s2_the_run_of_a_commit_is_the_run_of_the_next_lease,
    s2_each_execution_is_a_run_of_its_own,
    s2_an_instance_deleted_and_started_again_is_another_run,
    s2_the_history_is_in_the_order_of_event_ids,
    s2_name_and_version_are_those_of_the_instance,
    s2_without_a_row_name_and_version_come_from_history,
    s2_without_history_name_and_version_come_from_the_start,
    s2_without_history_name_and_version_come_from_the_continue_as_new,
    s2_a_start_that_asks_for_no_version_is_of_an_unknown_one,
    s2_what_nobody_told_is_unknown,
    s2_between_executions_a_lease_shows_the_one_that_ended,
    s2_after_its_first_commit_a_lease_shows_the_new_execution,
    s2_key_values_of_the_running_execution_are_not_in_the_snapshot,
    s2_key_values_of_an_ended_execution_are_in_the_snapshot,
    s2_messages_ahead_of_a_delayed_start_wait_for_it,
    s2_messages_wait_for_a_start_that_was_given_back_with_a_delay,
];

async fn s1_a_leased_instance_is_given_to_nobody_else(bench: Bench) {
    bench.start("a").await;
    bench.fetched().await;
    assert!(bench.fetch().await.is_none(), "the instance is leased");
}

async fn s1_a_lease_lasts_until_its_end_and_no_longer(bench: Bench) {
    bench.start("a").await;
    bench.fetched().await;
    bench.advance(LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "the lease has not ended");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "the lease has ended, to the millisecond");
}

async fn s1_an_expired_lease_is_given_to_the_next(bench: Bench) {
    bench.start("a").await;
    let first = bench.fetched().await;
    bench.advance(LEASE + TICK);
    let second = bench.fetched().await;
    assert_ne!(first.token, second.token, "every lease has a token of its own");
}

async fn s1_a_leased_instance_does_not_hold_up_another(bench: Bench) {
    bench.start("a").await;
    bench.start("b").await;
    let (first, second) = (bench.fetched().await, bench.fetched().await);
    assert_eq!((first.item.instance.as_str(), second.item.instance.as_str()), ("a", "b"));
    assert_ne!(first.token, second.token, "every lease has a token of its own");
}

async fn s1_of_many_fetches_at_once_one_gets_the_instance(bench: Bench) {
    bench.start("a").await;
    let leased = fetch_at_once(&bench, 16).await;
    assert_eq!(leased.len(), 1, "one of sixteen fetches should get the one instance");
}

async fn s1_many_fetches_at_once_share_out_the_instances(bench: Bench) {
    for number in 0..16 {
        bench.start(&format!("i{number}")).await;
    }
    let leased = fetch_at_once(&bench, 16).await;
    let instances: HashSet<_> = leased.iter().map(|turn| turn.item.instance.clone()).collect();
    let tokens: HashSet<_> = leased.iter().map(|turn| turn.token.clone()).collect();
    assert_eq!(instances.len(), leased.len(), "no instance should be leased twice");
    assert_eq!(tokens.len(), leased.len(), "every lease has a token of its own");
    // A fetch may lose to the others and say that there is nothing; the next one then finds the rest.
    let mut rest = 0;
    while bench.fetch().await.is_some() {
        rest += 1;
    }
    assert_eq!(leased.len() + rest, 16, "every instance should be leased to somebody");
}

async fn s1_a_lease_may_be_longer_than_any_clock_can_tell(bench: Bench) {
    bench.start("a").await;
    let turn = ok(bench.try_fetch(Duration::MAX).await).expect("an instance should be ready");
    bench.advance(Duration::from_secs(100 * 365 * 86_400));
    assert!(bench.fetch().await.is_none(), "the lease has not ended");
    bench.commit(&turn, Commit::started("a")).await;
}

async fn s2_a_lease_carries_the_visible_messages_in_order_of_arrival(bench: Bench) {
    bench.begun("a").await;
    for data in ["1", "2", "3"] {
        bench.send(raise("a", data)).await;
    }
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "1"), raise("a", "2"), raise("a", "3")]);
}

async fn s2_a_lease_carries_no_messages_of_other_instances(bench: Bench) {
    bench.begun("a").await;
    bench.begun("b").await;
    for instance in ["a", "b", "a"] {
        bench.send(raise(instance, "data")).await;
    }
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "data"), raise("a", "data")]);
}

async fn s2_every_kind_of_message_arrives_as_it_was_sent(bench: Bench) {
    bench.begun("a").await;
    let sent = one_of_each("a");
    for item in &sent {
        bench.send(item.clone()).await;
    }
    assert_eq!(bench.fetched().await.item.messages, sent);
}

async fn s2_a_message_brings_its_trace_context(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let traced = Message { traceparent: traceparent.clone(), ..start_of("a").into() };
    ok(store.send(vec![Envelope { message: traced, delay: None }, raise("a", "untraced").into()]).await);
    let lease = leased(store).await;
    let found: Vec<_> = lease.messages.iter().map(|message| message.traceparent.clone()).collect();
    assert_eq!(found, [traceparent, None], "a trace context should travel with its own message");
    Verdict::Kept
}

async fn s2_the_first_attempt_is_number_one(bench: Bench) {
    bench.start("a").await;
    assert_eq!(bench.fetched().await.attempt, 1);
}

async fn s2_the_attempt_is_the_highest_of_the_batch(bench: Bench) {
    bench.begun("a").await;
    bench.send(raise("a", "old")).await;
    for _ in 0..2 {
        let turn = bench.fetched().await;
        ok(bench.try_abandon(&turn, None).await);
    }
    bench.send(raise("a", "new")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages.len(), 2);
    assert_eq!(turn.attempt, 3, "the old message was fetched three times, the new one once");
}

async fn s2_a_batch_is_bounded_and_the_rest_comes_next(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    ok(store.send(raises("a", 0..MAX_TURN_MESSAGES + 5)).await);
    let first = bench.fetched().await;
    assert_eq!(first.item.messages.len(), MAX_TURN_MESSAGES, "a batch is bounded");
    assert_eq!(first.item.messages.first(), Some(&raise("a", "0")), "the oldest come first");
    bench.commit(&first, Commit::default()).await;
    let second = bench.fetched().await;
    assert_eq!(second.item.messages.len(), 5, "what was beyond the bound should come next");
    assert_eq!(second.attempt, 1, "what was beyond the bound was not tried before");
    Verdict::Kept
}

async fn s2_a_start_is_in_the_batch_however_much_is_ahead_of_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    ok(store.send(raises("a", 0..MAX_TURN_MESSAGES + 5)).await);
    bench.start("a").await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages.len(), MAX_TURN_MESSAGES, "a start counts, and the bound holds");
    assert_eq!(turn.item.messages.last(), Some(&start_of("a")), "the start came last and should be here");
    bench.commit(&turn, Commit::started("a")).await;
    assert_eq!(bench.fetched().await.item.messages.len(), 6, "the rest should come next");
    Verdict::Kept
}

async fn s2_a_continue_as_new_is_in_the_batch_however_much_is_ahead_of_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    ok(store.send(raises("a", 0..1)).await);
    let turn = bench.fetched().await;
    ok(store.send(raises("a", 0..MAX_TURN_MESSAGES)).await);
    bench.commit(&turn, Commit::default().continue_as_new("a", 2)).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages.len(), MAX_TURN_MESSAGES, "a continue-as-new counts, and the bound holds");
    assert_eq!(turn.item.messages.last(), Some(&continue_as_new_of("a")), "it came last and should be here");
    Verdict::Kept
}

async fn s2_a_lease_tells_the_last_event(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().schedule("a", 2)).await;
    bench.send(raise("a", "data")).await;
    assert_eq!(leased(store).await.last_event_id, 2);
    Verdict::Kept
}

async fn s2_an_instance_that_has_not_begun_has_no_run(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = leased(store).await;
    assert_eq!((lease.run, lease.last_event_id), (None, 0), "nothing has been committed yet");
    Verdict::Kept
}

async fn s2_the_run_of_a_commit_is_the_run_of_the_next_lease(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = leased(store).await;
    let committed = ok(store.commit_turn(&lease.token, first_turn("a")).await);
    assert!(committed.run.is_some(), "a commit should tell which run it belongs to");
    bench.send(raise("a", "data")).await;
    assert_eq!(leased(store).await.run, committed.run);
    Verdict::Kept
}

async fn s2_each_execution_is_a_run_of_its_own(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    let lease = leased(store).await;
    let second = ok(store.commit_turn(&lease.token, TurnCommit { execution_id: 2, ..first_turn("a") }).await);
    assert!(lease.run.is_some(), "the first execution should have a run");
    assert_ne!(second.run, lease.run, "the second execution should have another run");
    Verdict::Kept
}

async fn s2_an_instance_deleted_and_started_again_is_another_run(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    let first = run_of_new(&bench, store, "a").await;
    ok(admin.delete_instances_atomic(&["a".to_owned()], true).await);
    assert_ne!(run_of_new(&bench, store, "a").await, first, "a run id is never used again");
    Verdict::Kept
}

async fn s2_the_history_is_in_the_order_of_event_ids(bench: Bench) {
    let out_of_order = Commit::default()
        .event(event("a", 11, scheduled()))
        .event(event("a", 3, scheduled()))
        .event(event("a", 2, scheduled()));
    bench.begin("a", out_of_order).await;
    bench.send(raise("a", "data")).await;
    let ids: Vec<_> = bench.fetched().await.item.history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3, 11]);
}

async fn s2_name_and_version_are_those_of_the_instance(bench: Bench) {
    let mut renamed = Commit::default();
    renamed.metadata.orchestration_name = Some("Renamed".to_owned());
    renamed.metadata.orchestration_version = Some("2.3.4".to_owned());
    bench.begin("a", renamed).await;
    bench.start("a").await;
    let turn = bench.fetched().await;
    assert_eq!(identity(&turn), ("Renamed", "2.3.4", 1), "the row knows, neither history nor message does");
}

async fn s2_without_a_row_name_and_version_come_from_history(bench: Bench) {
    ok(bench.provider().append_with_execution("a", 1, vec![event("a", 1, started())]).await);
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    assert_eq!(identity(&turn), ("Orchestration", "1.0.0", 1));
    assert_eq!(turn.item.history, [event("a", 1, started())], "that history should be in the lease");
}

async fn s2_without_history_name_and_version_come_from_the_start(bench: Bench) {
    bench.send(raise("a", "ahead of the start")).await;
    bench.start("a").await;
    let turn = bench.fetched().await;
    assert_eq!(identity(&turn), ("Orchestration", "1.0.0", 1));
    assert!(turn.item.history.is_empty(), "an instance that has not begun has no history");
    assert!(turn.item.kv_snapshot.is_empty(), "an instance that has not begun has no keys");
}

async fn s2_without_history_name_and_version_come_from_the_continue_as_new(bench: Bench) {
    bench.send(continue_as_new_of("a")).await;
    assert_eq!(identity(&bench.fetched().await), ("Orchestration", "unknown", 1));
}

async fn s2_a_start_that_asks_for_no_version_is_of_an_unknown_one(bench: Bench) {
    bench.send(start_without_version("a")).await;
    assert_eq!(identity(&bench.fetched().await), ("Orchestration", "unknown", 1));
}

async fn s2_what_nobody_told_is_unknown(bench: Bench) {
    ok(bench.provider().append_with_execution("a", 1, vec![event("a", 2, scheduled())]).await);
    bench.send(raise("a", "data")).await;
    assert_eq!(identity(&bench.fetched().await), ("unknown", "unknown", 1));
}

async fn s2_between_executions_a_lease_shows_the_one_that_ended(bench: Bench) {
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [continue_as_new_of("a")]);
    assert_eq!((turn.item.execution_id, turn.item.history.len()), (1, 2), "the second has not begun");
}

async fn s2_after_its_first_commit_a_lease_shows_the_new_execution(bench: Bench) {
    bench.begun_at("a", 2).await;
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.execution_id, 2);
    assert_eq!(turn.item.history, [event("a", 1, started())], "only the events of the second execution");
}

async fn s2_key_values_of_the_running_execution_are_not_in_the_snapshot(bench: Bench) {
    bench.begin("a", Commit::default().event(event("a", 2, kv_set("key", "value")))).await;
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.kv_snapshot, HashMap::new(), "a replay makes what the execution has set itself");
}

async fn s2_key_values_of_an_ended_execution_are_in_the_snapshot(bench: Bench) {
    let last = Commit::default().event(event("a", 2, kv_set("key", "value"))).continue_as_new("a", 3);
    bench.begin("a", last).await;
    let left = KvEntry { value: "value".to_owned(), last_updated_at_ms: DAWN_MS };
    assert_eq!(bench.fetched().await.item.kv_snapshot, HashMap::from([("key".to_owned(), left)]));
}

async fn s2_messages_ahead_of_a_delayed_start_wait_for_it(bench: Bench) {
    bench.send(raise("a", "ahead")).await;
    bench.send_later(start_of("a"), LEASE).await;
    bench.advance(LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "the start is still to come");
    bench.advance(TICK);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "ahead"), start_of("a")]);
}

async fn s2_messages_wait_for_a_start_that_was_given_back_with_a_delay(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    bench.send(raise("a", "behind")).await;
    assert!(bench.fetch().await.is_none(), "the start is still to come");
    bench.advance(LEASE);
    assert_eq!(bench.fetched().await.item.messages, [start_of("a"), raise("a", "behind")]);
}

/// Many tasks fetch at the same time. Returns what they got.
async fn fetch_at_once(bench: &Bench, count: usize) -> Vec<Turning> {
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..count {
        let provider = bench.provider().clone();
        calls.spawn(async move { ok(provider.fetch_orchestration_item(LEASE, Duration::ZERO, None).await) });
    }
    let fetched = calls.join_all().await.into_iter().flatten();
    fetched.map(|(item, token, attempt)| Turning { item, token, attempt }).collect()
}

async fn leased(store: &dyn Store) -> TurnLease {
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    ok(store.fetch_turn(request).await).expect("an instance should be ready")
}

fn first_turn(instance: &str) -> TurnCommit {
    let Commit { execution_id, events, metadata, .. } = Commit::started(instance);
    TurnCommit { execution_id, events, metadata, ..TurnCommit::default() }
}

/// Starts an instance and commits its first turn. Returns its run.
async fn run_of_new(bench: &Bench, store: &dyn Store, instance: &str) -> RunId {
    bench.start(instance).await;
    let lease = leased(store).await;
    let committed = ok(store.commit_turn(&lease.token, first_turn(instance)).await);
    committed.run.expect("a commit should tell which run it belongs to")
}

fn identity(turn: &Turning) -> (&str, &str, u64) {
    (&turn.item.orchestration_name, &turn.item.version, turn.item.execution_id)
}

fn raises(instance: &str, numbers: std::ops::Range<usize>) -> Vec<Envelope> {
    numbers.map(|number| raise(instance, &number.to_string()).into()).collect()
}

fn start_without_version(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Orchestration".to_owned(),
        input: "input".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// Every kind of message there is, with texts that a careless store would change.
fn one_of_each(instance: &str) -> Vec<WorkItem> {
    let (instance, text) = (instance.to_owned(), "{\"a\": 'ü ☃'}\n\\ %s ; --".to_owned());
    let details = ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: text.clone(),
        retryable: true,
    };
    let mut messages = vec![
        start_without_version(&instance),
        completion(&instance, u64::from(u32::MAX) + 1),
        WorkItem::ActivityFailed {
            instance: instance.clone(),
            execution_id: 1,
            id: 2,
            details: details.clone(),
        },
        timer(&instance, 3, DAWN_MS),
        raise(&instance, &text),
        WorkItem::QueueMessage { instance: instance.clone(), name: text.clone(), data: String::new() },
        WorkItem::CancelInstance { instance: instance.clone(), reason: text.clone() },
        WorkItem::SubOrchCompleted {
            parent_instance: instance.clone(),
            parent_execution_id: 1,
            parent_id: 4,
            result: text.clone(),
        },
        WorkItem::SubOrchFailed {
            parent_instance: instance.clone(),
            parent_execution_id: 1,
            parent_id: 5,
            details,
        },
    ];
    messages.extend(continuations(&instance, &text));
    messages.extend([
        WorkItem::TerminateInstance { instance: instance.clone(), reason: "its code is gone".to_owned() },
        WorkItem::Nudge { instance: instance.clone() },
        WorkItem::SessionMigrated {
            instance,
            execution_id: 1,
            session_id: "session".to_owned(),
            epoch: 7,
            from: None,
            to: "worker".to_owned(),
        },
    ]);
    messages
}

/// Both forms of a continue-as-new.
fn continuations(instance: &str, text: &str) -> Vec<WorkItem> {
    vec![
        WorkItem::ContinueAsNew {
            instance: instance.to_owned(),
            orchestration: "Orchestration".to_owned(),
            input: text.to_owned(),
            version: Some("1.0.0".to_owned()),
            parent_instance: Some("parent".to_owned()),
            parent_id: Some(6),
            parent_execution_id: Some(1),
            carry_forward_events: vec![("queue".to_owned(), text.to_owned())],
            initial_custom_status: Some(text.to_owned()),
        },
        WorkItem::ContinueAsNewWithSessions {
            instance: instance.to_owned(),
            orchestration: "Orchestration".to_owned(),
            input: text.to_owned(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: Vec::new(),
            initial_custom_status: None,
            sessions: vec![CarriedSession {
                session_id: "session".to_owned(),
                idle_timeout_ms: Some(1),
                concurrency: None,
                pool: None,
            }],
        },
    ]
}
