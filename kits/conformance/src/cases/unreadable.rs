//! Rows that cannot be read: reported or set aside, never lost, never in the way.

use semver::Version;
use steadfast_core::{
    DispatcherCapabilityFilter, EventKind, SemverRange, SessionConcurrency, SessionKey, TagFilter, WorkItem,
};
use steadfast_store::{
    Cold, Envelope, ExecutionState, MAX_UNREADABLE_ATTEMPTS, Message, NewWork, Owner, ProviderErrorKind,
    Queue, SessionRequest, SessionScope, SetAside, Started, Store, TurnRequest, UNREADABLE_RETRY,
    WorkRequest,
};

use crate::bench::{
    Bench, Commit, LEASE, TICK, activity, activity_with, completion, event, ok, raise, refused, scheduled,
    start_of,
};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s15_unreadable_history_is_reported_in_the_item,
    s15_unreadable_history_takes_the_lock_and_counts_the_attempt,
    s15_unreadable_history_can_be_committed_to,
    s15_unreadable_history_still_refuses_a_repeated_id,
    s15_unreadable_history_holds_up_no_other_instance,
    s15_unreadable_history_cannot_be_read,
    s15_one_unreadable_execution_leaves_the_others_readable,
    s15_unreadable_history_of_a_version_that_is_not_asked_for_stays_unseen,
    s15_the_state_of_an_instance_needs_no_readable_history,
    s15_an_instance_with_unreadable_rows_can_be_deleted,
    s15_unreadable_work_does_not_block_readable_work,
    s15_unreadable_work_is_looked_at_again_after_a_while,
    s15_unreadable_work_is_set_aside_after_its_last_attempt,
    s15_unreadable_work_is_not_counted_by_those_who_may_not_take_it,
    s15_unreadable_work_does_not_block_its_serial_session,
    s15_unreadable_work_can_be_cancelled,
    s15_work_that_becomes_unreadable_while_it_runs_can_be_finished,
    s15_an_unreadable_message_does_not_block_another_instance,
    s15_an_unreadable_message_does_not_block_its_own_instance,
    s2_a_message_is_not_leased_without_a_start_that_cannot_be_read,
    s15_an_unreadable_message_is_looked_at_again_after_a_while,
    s15_an_unreadable_message_is_set_aside_after_its_last_attempt,
    s15_an_unreadable_message_survives_the_commits_of_its_instance,
    s15_an_unreadable_message_is_not_counted_while_its_instance_is_leased,
    s15_an_unreadable_message_is_not_counted_by_those_who_may_not_take_it,
    s15_a_waiting_fetch_counts_no_more_than_the_retries,
    s15_what_is_set_aside_is_listed_page_by_page,
    s15_what_is_set_aside_can_be_tried_again,
    s15_work_that_is_set_aside_can_be_tried_again,
    s15_a_start_that_was_set_aside_comes_back_as_a_start,
    s15_work_of_an_owned_session_comes_back_on_that_session,
    s15_the_reason_quotes_nothing_of_the_row,
    s15_what_is_set_aside_can_be_dropped,
    s15_a_row_that_was_never_set_aside_is_not_found,
    s15_what_was_set_aside_goes_with_its_instance,
];

/// Starts an instance whose only event cannot be read, with a message waiting.
async fn damaged(bench: &Bench, instance: &str) -> Option<()> {
    bench.begun(instance).await;
    bench.send(raise(instance, "1")).await;
    let rows = bench.damage(Damage::Event { instance, execution_id: 1, event_id: 1 }).await?;
    assert_eq!(rows, 1, "the event is there to be damaged");
    Some(())
}

async fn s15_unreadable_history_is_reported_in_the_item(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    let turn = bench.fetched().await;
    assert!(turn.item.history_error.is_some(), "the item says that its history cannot be read");
    assert!(turn.item.history.is_empty(), "nothing of it is handed out");
    assert_eq!(turn.item.messages, [raise("a", "1")], "the messages are");
    Verdict::Kept
}

async fn s15_unreadable_history_takes_the_lock_and_counts_the_attempt(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    assert_eq!(bench.fetched().await.attempt, 1, "the fetch counts");
    assert!(bench.fetch().await.is_none(), "the instance is leased");
    bench.advance(LEASE + TICK);
    assert_eq!(bench.fetched().await.attempt, 2, "so does the next one");
    Verdict::Kept
}

async fn s15_unreadable_history_can_be_committed_to(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    let turn = bench.fetched().await;
    let details = steadfast_core::ErrorDetails::Infrastructure {
        operation: "read".to_owned(),
        message: "unreadable".to_owned(),
        retryable: false,
    };
    let failed = event("a", 2, EventKind::OrchestrationFailed { details: details.clone() });
    bench.commit(&turn, Commit::default().event(failed).status("Failed", "unreadable")).await;
    assert!(bench.fetch().await.is_none(), "the leased message is removed");
    if let Some(store) = bench.store() {
        let state = ok(store.state("a").await).expect("the instance is there");
        assert_eq!(state.status, ExecutionState::Failed(details), "the end is recorded");
    }
    Verdict::Kept
}

async fn s15_unreadable_history_still_refuses_a_repeated_id(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    let turn = bench.fetched().await;
    let commit = Commit::default().event(event("a", 1, scheduled()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    Verdict::Kept
}

async fn s15_unreadable_history_holds_up_no_other_instance(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    bench.start("b").await;
    bench.fetched().await;
    assert_eq!(bench.fetched().await.item.instance, "b", "the next instance is ready");
    Verdict::Kept
}

async fn s15_unreadable_history_cannot_be_read(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    refused(bench.provider().read("a").await, ProviderErrorKind::Corrupt);
    refused(bench.provider().read_with_execution("a", 1).await, ProviderErrorKind::Corrupt);
    Verdict::Kept
}

async fn s15_one_unreadable_execution_leaves_the_others_readable(bench: Bench) -> Verdict {
    bench.begun_at("a", 2).await;
    need!(bench.damage(Damage::Event { instance: "a", execution_id: 1, event_id: 1 }).await, "damage");
    assert_eq!(ok(bench.provider().read("a").await).len(), 1, "the latest execution can be read");
    bench.send(raise("a", "1")).await;
    assert_eq!(bench.fetched().await.item.history_error, None, "and so it can be run");
    Verdict::Kept
}

/// Accepts engine versions that do not exist.
fn other_versions() -> DispatcherCapabilityFilter {
    let range = SemverRange::new(Version::new(900, 0, 0), Version::new(901, 0, 0));
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

async fn s15_unreadable_history_of_a_version_that_is_not_asked_for_stays_unseen(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    let filter = other_versions();
    let fetch = bench.provider().fetch_orchestration_item(LEASE, std::time::Duration::ZERO, Some(&filter));
    assert!(ok(fetch.await).is_none(), "the filter decides before history is read");
    assert_eq!(bench.fetched().await.attempt, 1, "no attempt was counted and no lock taken");
    Verdict::Kept
}

async fn s15_the_state_of_an_instance_needs_no_readable_history(bench: Bench) -> Verdict {
    need!(damaged(&bench, "a").await, "damage");
    let store = need!(bench.store(), "Store");
    let state = ok(store.state("a").await).expect("the instance is there");
    assert_eq!((state.orchestration.as_str(), state.status), ("Orchestration", ExecutionState::Running));
    Verdict::Kept
}

async fn s15_an_instance_with_unreadable_rows_can_be_deleted(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_with_work("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Event { instance: "a", execution_id: 1, event_id: 1 }).await, "damage");
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    let deleted = ok(admin.delete_instance("a", true).await);
    assert_eq!((deleted.events_deleted, deleted.queue_messages_deleted), (2, 2), "all of it goes");
    assert_eq!(ok(admin.get_queue_depths().await), steadfast_store::QueueDepths::default());
    Verdict::Kept
}

async fn s15_unreadable_work_does_not_block_readable_work(bench: Bench) -> Verdict {
    for id in 1..=3 {
        bench.enqueue(activity("a", id)).await;
    }
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    bench.enqueue(activity("b", 1)).await;
    let (item, _, attempt) = bench.working().await;
    assert_eq!((item, attempt), (activity("b", 1), 1), "readable work behind unreadable work is served");
    Verdict::Kept
}

/// Meets an unreadable row this many times, by fetches of both kinds.
async fn met(bench: &Bench, times: u32) {
    for _ in 0..times {
        assert!(bench.fetch_work().await.is_none(), "an unreadable activity is given to nobody");
        assert!(bench.fetch().await.is_none(), "an unreadable message wakes nobody");
        bench.advance(UNREADABLE_RETRY);
    }
}

async fn aside(store: &dyn Store) -> Vec<SetAside> {
    ok(store.set_aside(None).await)
}

async fn s15_unreadable_work_is_looked_at_again_after_a_while(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 1)).await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    for _ in 0..MAX_UNREADABLE_ATTEMPTS * 2 {
        assert!(bench.fetch_work().await.is_none(), "an unreadable activity is given to nobody");
    }
    assert!(aside(store).await.is_empty(), "fetches that follow each other at once meet it only once");
    bench.advance(UNREADABLE_RETRY - TICK);
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "nor does one that comes too early");
    Verdict::Kept
}

async fn s15_unreadable_work_is_set_aside_after_its_last_attempt(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 1)).await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "a newer build may be able to read it");
    let at_ms = bench.now_ms();
    met(&bench, 1).await;
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    assert_eq!((row.queue, row.instance.as_deref()), (Queue::Worker, Some("a")), "its place is known");
    assert_eq!((row.attempts, row.at_ms), (MAX_UNREADABLE_ATTEMPTS, at_ms), "so is its story");
    assert!(row.payload.contains("this is no row"), "it is kept as it is: {}", row.payload);
    assert!(!row.reason.is_empty(), "the reason is kept");
    if let Some(admin) = bench.admin() {
        assert_eq!(ok(admin.get_queue_depths().await).worker_queue, 0, "it is in the queue no more");
    }
    Verdict::Kept
}

async fn s15_unreadable_work_is_not_counted_by_those_who_may_not_take_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity_with("a", 1, None, Some("gpu"))).await;
    bench.enqueue(activity_with("a", 2, Some("session"), None)).await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS + 1).await;
    assert!(aside(store).await.is_empty(), "only those who serve it can say that it cannot be read");
    Verdict::Kept
}

async fn s15_unreadable_work_does_not_block_its_serial_session(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    if !store.supports_owned_sessions() {
        return Verdict::Skipped { needs: "owned sessions" };
    }
    let opened = EventKind::SessionOpened {
        session_id: "s".to_owned(),
        idle_timeout_ms: None,
        concurrency: Some(SessionConcurrency::Serial),
    };
    bench.begin("a", Commit::default().event(event("a", 2, opened))).await;
    let on_session = |item: WorkItem| NewWork { session: Some(SessionKey::owned("a", "s")), ..item.into() };
    ok(store.enqueue_work(on_session(activity("a", 3))).await);
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    ok(store.enqueue_work(on_session(activity("a", 4))).await);
    let session = SessionRequest {
        owner: Owner::unnamed("node"),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest {
        worker_id: "worker".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: std::time::Duration::ZERO,
        tags: TagFilter::Any,
        session: Some(session),
        worker: None,
    };
    let lease = ok(store.fetch_work(request).await).expect("the session goes on");
    assert_eq!(lease.item, activity("a", 4));
    Verdict::Kept
}

async fn s15_unreadable_work_can_be_cancelled(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_with_work("a").await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    assert_eq!(ok(admin.get_queue_depths().await).worker_queue, 0, "a row is cancelled by its identity");
    Verdict::Kept
}

async fn s15_work_that_becomes_unreadable_while_it_runs_can_be_finished(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.finish(&token, Some(completion("a", 2))).await;
    assert_eq!(bench.fetched().await.item.messages, [completion("a", 2)], "its holder has read it before");
    Verdict::Kept
}

async fn s15_an_unreadable_message_does_not_block_another_instance(bench: Bench) -> Verdict {
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    bench.start("b").await;
    assert_eq!(bench.fetched().await.item.instance, "b", "readable messages behind it are served");
    Verdict::Kept
}

async fn s15_an_unreadable_message_does_not_block_its_own_instance(bench: Bench) -> Verdict {
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    bench.send(raise("a", "2")).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "2")], "what can be read is handed out");
    Verdict::Kept
}

async fn s2_a_message_is_not_leased_without_a_start_that_cannot_be_read(bench: Bench) -> Verdict {
    bench.start("a").await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    bench.send(raise("a", "1")).await;
    assert!(bench.fetch().await.is_none(), "without its start there is nothing to run");
    bench.start("b").await;
    assert_eq!(bench.fetched().await.item.instance, "b", "others go on");
    assert!(bench.fetch().await.is_none(), "and the message waits");
    Verdict::Kept
}

async fn s15_an_unreadable_message_is_looked_at_again_after_a_while(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    for _ in 0..MAX_UNREADABLE_ATTEMPTS * 2 {
        assert!(bench.fetch().await.is_none(), "an unreadable message wakes nobody");
    }
    assert!(aside(store).await.is_empty(), "fetches that follow each other at once meet it only once");
    bench.advance(UNREADABLE_RETRY - TICK);
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "nor does one that comes too early");
    Verdict::Kept
}

async fn s15_an_unreadable_message_is_set_aside_after_its_last_attempt(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "a newer build may be able to read it");
    met(&bench, 1).await;
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    assert_eq!((row.queue, row.instance.as_deref()), (Queue::Orchestrator, Some("a")));
    assert_eq!(row.attempts, MAX_UNREADABLE_ATTEMPTS);
    assert!(row.payload.contains("this is no row"), "it is kept as it is: {}", row.payload);
    assert!(!row.reason.is_empty(), "the reason is kept");
    Verdict::Kept
}

async fn s15_an_unreadable_message_survives_the_commits_of_its_instance(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    bench.send(raise("a", "2")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("a", 2, "output")).await;
    bench.advance(UNREADABLE_RETRY);
    met(&bench, MAX_UNREADABLE_ATTEMPTS).await;
    assert_eq!(aside(store).await.len(), 1, "what was not handed out is not removed");
    Verdict::Kept
}

async fn s15_an_unreadable_message_is_not_counted_while_its_instance_is_leased(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let turn = ok(bench.try_fetch(LEASE * 100).await).expect("the instance is ready");
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS + 1).await;
    assert!(aside(store).await.is_empty(), "its holder has read it before");
    bench.commit(&turn, Commit::started("a")).await;
    met(&bench, MAX_UNREADABLE_ATTEMPTS + 1).await;
    assert!(aside(store).await.is_empty(), "and has removed it with its commit");
    Verdict::Kept
}

async fn s15_an_unreadable_message_is_not_counted_by_those_who_may_not_take_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    let filter = other_versions();
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        let fetch =
            bench.provider().fetch_orchestration_item(LEASE, std::time::Duration::ZERO, Some(&filter));
        assert!(ok(fetch.await).is_none(), "the instance is of another version");
        bench.advance(UNREADABLE_RETRY);
    }
    assert!(aside(store).await.is_empty(), "only those who serve the instance can say that");
    Verdict::Kept
}

async fn s15_a_waiting_fetch_counts_no_more_than_the_retries(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 1)).await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    let call = bench.waiting_work(LEASE, TagFilter::DefaultOnly).await;
    for id in 0..MAX_UNREADABLE_ATTEMPTS * 2 {
        bench.enqueue(activity_with("b", u64::from(id), None, Some("gpu"))).await;
        bench.settle().await;
    }
    bench.enqueue(activity("c", 1)).await;
    let (item, _, _) = bench.soon(call).await.expect("readable work should wake the fetch");
    assert_eq!(item, activity("c", 1));
    assert!(aside(store).await.is_empty(), "looking often within a moment is one attempt");
    Verdict::Kept
}

/// Sets one message aside for each instance.
async fn put_aside(bench: &Bench, instances: &[&str]) -> Option<()> {
    for instance in instances {
        bench.begun(instance).await;
        bench.send(raise(instance, "1")).await;
        bench.damage(Damage::Messages { instance }).await?;
    }
    met(bench, MAX_UNREADABLE_ATTEMPTS).await;
    Some(())
}

async fn s15_what_is_set_aside_is_listed_page_by_page(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(put_aside(&bench, &["a", "b", "c"]).await, "damage");
    let all = aside(store).await;
    assert_eq!(all.len(), 3, "each row is listed once");
    assert!(all.is_sorted_by(|one, next| one.id < next.id), "by rising id");
    let rest = ok(store.set_aside(all.first().map(|row| row.id)).await);
    assert_eq!(rest, all[1..], "a page goes on behind the given row");
    let end = ok(store.set_aside(all.last().map(|row| row.id)).await);
    assert!(end.is_empty(), "behind the last there is nothing");
    Verdict::Kept
}

async fn s15_what_is_set_aside_can_be_tried_again(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(put_aside(&bench, &["a"]).await, "damage");
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    ok(store.retry_set_aside(row.id).await);
    assert!(aside(store).await.is_empty(), "it is back in its queue");
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "with no attempts counted");
    met(&bench, 1).await;
    let [again] = &aside(store).await[..] else { panic!("the row should be set aside again") };
    assert_eq!((again.instance.as_deref(), &again.payload), (Some("a"), &row.payload), "it is the same row");
    Verdict::Kept
}

async fn s15_work_that_is_set_aside_can_be_tried_again(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 1)).await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS).await;
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    ok(store.retry_set_aside(row.id).await);
    met(&bench, MAX_UNREADABLE_ATTEMPTS - 1).await;
    assert!(aside(store).await.is_empty(), "it is back in its queue, with no attempts counted");
    met(&bench, 1).await;
    let [again] = &aside(store).await[..] else { panic!("the row should be set aside again") };
    assert_eq!((again.queue, &again.payload), (Queue::Worker, &row.payload), "it is the same row");
    Verdict::Kept
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// G20: also while it cannot be read, an instance that is about to start exists.
async fn s15_a_start_that_was_set_aside_comes_back_as_a_start(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let message = Message { traceparent: Some(TRACE.to_owned()), ..start_of("a").into() };
    ok(store.send(vec![Envelope { message, delay: None }]).await);
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS).await;
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    ok(store.retry_set_aside(row.id).await);
    assert_eq!(ok(store.start(start_of("a").into(), Vec::new()).await), Started::Existing, "it is a start");
    need!(bench.repair(Damage::Messages { instance: "a" }, &start_of("a")).await, "damage");
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: std::time::Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let lease = ok(store.fetch_turn(request).await).expect("the instance starts after all");
    assert_eq!((lease.messages[0].item.clone(), lease.attempt), (start_of("a"), 1));
    assert_eq!(lease.messages[0].traceparent.as_deref(), Some(TRACE), "its trace context is kept");
    Verdict::Kept
}

/// G20: with its tag and its trace context too.
async fn s15_work_of_an_owned_session_comes_back_on_that_session(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.supports_owned_sessions()), "owned sessions");
    let (key, item) = (SessionKey::owned("a", "S"), activity_with("a", 2, Some("S"), Some("gpu")));
    let work =
        NewWork { session: Some(key.clone()), traceparent: Some(TRACE.to_owned()), ..item.clone().into() };
    ok(store.enqueue_work(work).await);
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    let request = |tags: TagFilter| WorkRequest {
        worker_id: "A".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: std::time::Duration::ZERO,
        tags,
        session: Some(SessionRequest {
            owner: Owner::unnamed("A"),
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: None,
    };
    for _ in 0..MAX_UNREADABLE_ATTEMPTS {
        assert!(ok(store.fetch_work(request(TagFilter::Any)).await).is_none(), "it cannot be read");
        bench.advance(UNREADABLE_RETRY);
    }
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    ok(store.retry_set_aside(row.id).await);
    need!(bench.repair(Damage::Work { instance: "a" }, &item).await, "damage");
    assert!(ok(store.fetch_work(request(TagFilter::DefaultOnly)).await).is_none(), "its tag is kept");
    let lease = ok(store.fetch_work(request(TagFilter::Any)).await).expect("it can be read again");
    assert_eq!((lease.item, lease.attempt), (item, 1));
    assert_eq!(lease.session.map(|session| session.key), Some(key), "its session is kept");
    assert_eq!(lease.traceparent.as_deref(), Some(TRACE), "its trace context is kept");
    Verdict::Kept
}

/// G17: reasons are logged, and payloads do not belong there.
async fn s15_the_reason_quotes_nothing_of_the_row(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 1)).await;
    need!(bench.overwrite(Damage::Work { instance: "a" }, "\"hunter2\"").await, "damage");
    met(&bench, MAX_UNREADABLE_ATTEMPTS).await;
    let [row] = &aside(store).await[..] else { panic!("one row should be set aside") };
    assert!(row.payload.contains("hunter2"), "the payload is kept: {}", row.payload);
    assert!(!row.reason.contains("hunter2"), "the reason tells nothing of it: {}", row.reason);
    Verdict::Kept
}

async fn s15_what_is_set_aside_can_be_dropped(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(put_aside(&bench, &["a", "b"]).await, "damage");
    let [first, second] = &aside(store).await[..] else { panic!("two rows should be set aside") };
    ok(store.drop_set_aside(first.id).await);
    assert_eq!(aside(store).await, std::slice::from_ref(second), "the other one stays");
    refused(store.drop_set_aside(first.id).await, ProviderErrorKind::NotFound);
    refused(store.retry_set_aside(first.id).await, ProviderErrorKind::NotFound);
    Verdict::Kept
}

async fn s15_a_row_that_was_never_set_aside_is_not_found(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    refused(store.retry_set_aside(4_711).await, ProviderErrorKind::NotFound);
    refused(store.drop_set_aside(4_711).await, ProviderErrorKind::NotFound);
    Verdict::Kept
}

async fn s15_what_was_set_aside_goes_with_its_instance(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    need!(put_aside(&bench, &["a", "b"]).await, "damage");
    ok(admin.delete_instance("a", true).await);
    let rest: Vec<_> = aside(store).await.into_iter().map(|row| row.instance).collect();
    assert_eq!(rest, [Some("b".to_owned())], "a deleted instance leaves nothing behind");
    Verdict::Kept
}
