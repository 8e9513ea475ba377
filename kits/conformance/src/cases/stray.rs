//! Strays: messages for instances that do not exist or have ended.

use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, WorkItem};
use steadfast_store::QueueDepths;

use crate::Verdict;
use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, TICK, completion, continue_as_new_of, ok, raise, start_of, timer,
};
use crate::case::{cases, need};

cases![
    s17_an_event_for_nobody_delays_nobody,
    s17_a_cancel_for_nobody_delays_nobody,
    s17_a_queue_message_for_nobody_delays_nobody,
    s17_a_timer_for_nobody_delays_nobody,
    s17_a_result_for_nobody_delays_nobody,
    s17_a_child_that_ends_without_a_parent_delays_nobody,
    s17_news_of_a_session_for_nobody_delays_nobody,
    s17_a_crowd_of_strays_delays_nobody,
    s17_strays_are_removed_from_the_queue,
    s17_a_stray_behind_a_real_message_is_settled_too,
    s17_a_stray_does_not_end_a_waiting_fetch,
    s17_strays_take_no_lock,
    s17_a_stray_that_was_settled_does_not_meet_a_later_start,
    s17_a_stray_that_is_held_back_meets_a_later_start,
    s17_a_message_ahead_of_the_start_is_no_stray,
    s17_a_message_ahead_of_a_delayed_start_waits_for_it,
    s17_a_continue_as_new_makes_an_instance,
    s17_history_alone_makes_an_instance,
    s17_a_message_to_a_finished_instance_is_handed_out,
    s17_every_kind_of_message_to_a_finished_instance_is_handed_out,
    s17_a_message_to_a_deleted_instance_is_a_stray,
];

fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_owned(), reason: "enough".to_owned() }
}

fn queued(instance: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_owned(), name: "inbox".to_owned(), data: "1".to_owned() }
}

fn failure() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "failed".to_owned(),
        retryable: false,
    }
}

fn child_completed(parent: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "done".to_owned(),
    }
}

fn child_failed(parent: &str) -> WorkItem {
    WorkItem::SubOrchFailed {
        parent_instance: parent.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        details: failure(),
    }
}

fn activity_failed(instance: &str) -> WorkItem {
    WorkItem::ActivityFailed { instance: instance.to_owned(), execution_id: 1, id: 2, details: failure() }
}

fn session_migrated(instance: &str) -> WorkItem {
    WorkItem::SessionMigrated {
        instance: instance.to_owned(),
        execution_id: 1,
        session_id: "session".to_owned(),
        epoch: 2,
        from: None,
        to: "node".to_owned(),
    }
}

/// Sends strays ahead of a start: the start must be fetched first of all, and the queue be empty behind it.
async fn delays_nobody(bench: &Bench, strays: Vec<WorkItem>) {
    for stray in strays {
        bench.send(stray).await;
    }
    bench.start("real").await;
    let turn = bench.fetch().await.expect("strays should not be in the way of a real instance");
    assert_eq!(turn.item.instance, "real", "no stray should be handed out");
    bench.commit(&turn, Commit::started("real")).await;
    assert!(bench.fetch().await.is_none(), "there is nothing else to do");
    if let Some(admin) = bench.admin() {
        let depths = ok(admin.get_queue_depths().await);
        assert_eq!(depths, QueueDepths::default(), "strays should not stay in the queue");
    }
}

async fn s17_an_event_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![raise("nobody", "1")]).await;
}

async fn s17_a_cancel_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![cancel("nobody")]).await;
}

async fn s17_a_queue_message_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![queued("nobody"), queued("nobody")]).await;
}

async fn s17_a_timer_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![timer("nobody", 2, DAWN_MS)]).await;
}

async fn s17_a_result_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![completion("nobody", 2), activity_failed("no one")]).await;
}

async fn s17_a_child_that_ends_without_a_parent_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![child_completed("nobody"), child_failed("no one")]).await;
}

async fn s17_news_of_a_session_for_nobody_delays_nobody(bench: Bench) {
    delays_nobody(&bench, vec![session_migrated("nobody")]).await;
}

async fn s17_a_crowd_of_strays_delays_nobody(bench: Bench) {
    let strays = (0..200).map(|number| raise(&format!("nobody-{number}"), "1")).collect();
    delays_nobody(&bench, strays).await;
}

async fn s17_strays_are_removed_from_the_queue(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.send(raise("nobody", "1")).await;
    bench.send(queued("nobody")).await;
    assert!(bench.fetch().await.is_none(), "a stray is handed to nobody");
    assert_eq!(ok(admin.get_queue_depths().await).orchestrator_queue, 0, "it is settled");
    Verdict::Kept
}

async fn s17_a_stray_behind_a_real_message_is_settled_too(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("real").await;
    bench.send(raise("nobody", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [start_of("real")], "a stray does not get into the batch of another");
    bench.commit(&turn, Commit::started("real")).await;
    assert!(bench.fetch().await.is_none(), "a stray is handed to nobody");
    assert_eq!(ok(admin.get_queue_depths().await).orchestrator_queue, 0, "it is settled");
    Verdict::Kept
}

async fn s17_a_stray_does_not_end_a_waiting_fetch(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_fetch(LEASE).await;
    bench.send(raise("nobody", "1")).await;
    bench.settle().await;
    assert!(!call.is_finished(), "a stray is nothing to do");
    bench.start("real").await;
    let turn = bench.soon(call).await.expect("a real message should end the wait");
    assert_eq!(turn.item.instance, "real");
    Verdict::Kept
}

async fn s17_strays_take_no_lock(bench: Bench) {
    bench.send(raise("late", "1")).await;
    assert!(bench.fetch().await.is_none(), "a stray is handed to nobody");
    bench.start("late").await;
    assert_eq!(bench.fetched().await.attempt, 1, "the instance that comes to be is free and untried");
}

async fn s17_a_stray_that_was_settled_does_not_meet_a_later_start(bench: Bench) {
    bench.send(raise("late", "1")).await;
    assert!(bench.fetch().await.is_none(), "a stray is handed to nobody");
    bench.start("late").await;
    assert_eq!(bench.fetched().await.item.messages, [start_of("late")], "what was settled is gone");
}

async fn s17_a_stray_that_is_held_back_meets_a_later_start(bench: Bench) {
    bench.send(raise("late", "1")).await;
    bench.send_later(raise("late", "2"), LEASE).await;
    assert!(bench.fetch().await.is_none(), "a stray is handed to nobody");
    bench.begun("late").await;
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("late", "2")], "a message is judged when it becomes visible");
}

async fn s17_a_message_ahead_of_the_start_is_no_stray(bench: Bench) {
    bench.send(raise("a", "1")).await;
    bench.start("a").await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "1"), start_of("a")]);
}

async fn s17_a_message_ahead_of_a_delayed_start_waits_for_it(bench: Bench) {
    bench.send_later(start_of("a"), LEASE).await;
    bench.send(raise("a", "1")).await;
    assert!(bench.fetch().await.is_none(), "the instance has not begun");
    bench.advance(LEASE);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "1"), start_of("a")], "nothing is lost");
}

async fn s17_a_continue_as_new_makes_an_instance(bench: Bench) {
    bench.send(continue_as_new_of("a")).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.instance.as_str(), turn.item.orchestration_name.as_str()), ("a", "Orchestration"));
}

async fn s17_history_alone_makes_an_instance(bench: Bench) {
    let events = Commit::started("a").events;
    ok(bench.provider().append_with_execution("a", 1, events.clone()).await);
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.history, events, "an instance with history exists");
    assert_eq!(turn.item.orchestration_name, "Orchestration", "its history names it");
}

async fn s17_a_message_to_a_finished_instance_is_handed_out(bench: Bench) {
    bench.ended("a").await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "1")], "the runtime decides what becomes of it");
    bench.commit(&turn, Commit::default()).await;
    bench.advance(LEASE + TICK);
    assert!(bench.fetch().await.is_none(), "a commit settles it");
}

async fn s17_every_kind_of_message_to_a_finished_instance_is_handed_out(bench: Bench) {
    bench.ended("a").await;
    let messages = vec![
        cancel("a"),
        queued("a"),
        timer("a", 2, DAWN_MS),
        completion("a", 2),
        activity_failed("a"),
        child_completed("a"),
        child_failed("a"),
        session_migrated("a"),
        start_of("a"),
    ];
    for message in messages.clone() {
        bench.send(message).await;
    }
    assert_eq!(bench.fetched().await.item.messages, messages);
}

async fn s17_a_message_to_a_deleted_instance_is_a_stray(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    ok(admin.delete_instance("a", false).await);
    bench.send(raise("a", "1")).await;
    bench.send_later(raise("a", "2"), Duration::from_secs(1)).await;
    assert!(bench.fetch().await.is_none(), "there is no such instance any more");
    bench.advance(Duration::from_secs(1));
    delays_nobody(&bench, Vec::new()).await;
    Verdict::Kept
}
