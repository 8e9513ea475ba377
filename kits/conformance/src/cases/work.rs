//! Work: leases of activities, what they cost an attempt, their completions and their withdrawal.

pub(super) mod tries;
pub(super) mod withdrawn;

use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, TagFilter, WorkItem};
use steadfast_store::{NewWork, ProviderErrorKind, WorkLease, WorkRequest};

use crate::bench::{
    Bench, Commit, LEASE, TICK, activity, completion, event, lost, ok, raise, refused, scheduled, start_of,
};
use crate::case::{cases, need};
use crate::{Turning, Verdict};

cases![
    s1_a_leased_activity_is_given_to_nobody_else,
    s4_an_expired_work_lease_can_neither_finish_nor_renew_nor_abandon,
    s4_a_replaced_work_token_does_not_touch_the_lease_of_its_successor,
    s4_a_finished_work_token_is_worth_nothing,
    s4_an_abandoned_work_token_is_worth_nothing,
    s4_a_work_token_that_was_never_given_is_lost,
    s4_a_turn_token_holds_no_work,
    s4_a_work_lease_ends_at_its_very_millisecond,
    s5_an_expired_work_lease_gives_the_activity_back,
    s5_every_fetch_of_an_activity_counts_one_attempt,
    s5_attempts_are_counted_for_each_activity_alone,
    s5_renewing_work_extends_its_lease_from_now,
    s5_renewing_work_counts_no_attempt,
    s5_a_dropped_waiting_work_fetch_takes_nothing,
    s5_a_waiting_work_fetch_gets_what_an_expired_lease_gives_back,
    s6_an_abandoned_activity_is_held_back_for_its_delay,
    s6_an_activity_abandoned_without_delay_can_be_taken_at_once,
    s6_an_uncounted_attempt_at_an_activity_leaves_no_trace,
    s6_a_counted_attempt_at_an_activity_stays_counted,
    s6_abandoning_an_activity_touches_no_other,
    s9_a_waiting_work_fetch_wakes_when_the_delay_is_over,
    s11_finishing_removes_the_activity_and_sends_its_completion,
    s11_finishing_without_completion_sends_nothing,
    s11_a_failure_is_an_answer_too,
    s11_only_the_end_of_an_activity_is_a_completion,
    s11_a_refused_completion_leaves_the_lease_as_it_was,
    s11_a_completion_may_go_to_any_instance,
    s11_a_completion_for_nobody_is_accepted,
    s11_a_completion_ahead_of_the_start_is_kept,
    s11_an_expired_holder_sends_no_completion,
    s11_of_two_who_finish_with_one_token_one_succeeds,
    s11_a_completion_wakes_a_waiting_turn_fetch,
    s12_queued_work_that_is_cancelled_never_runs,
    s12_the_holder_of_cancelled_work_learns_of_it_when_it_renews,
    s12_the_result_of_cancelled_work_is_not_delivered,
    s12_abandoned_work_that_was_cancelled_does_not_come_back,
    s12_work_may_be_cancelled_by_the_commit_that_queues_it,
    s12_only_the_named_activity_is_cancelled,
    s12_an_activity_of_another_execution_stays,
    s12_cancelling_what_is_not_there_is_no_error,
    api_work_needs_no_instance,
    api_work_of_a_known_instance_names_its_orchestration,
    api_work_of_an_unknown_instance_names_none,
    api_the_trace_context_of_work_rides_with_it,
    api_what_is_no_activity_is_no_work,
];

const SECOND: Duration = Duration::from_secs(1);

async fn s1_a_leased_activity_is_given_to_nobody_else(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    bench.working().await;
    assert!(bench.fetch_work().await.is_none(), "the activity is leased");
}

async fn s4_an_expired_work_lease_can_neither_finish_nor_renew_nor_abandon(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE + TICK);
    lost(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    lost(bench.provider().abandon_work_item(&token, Some(LEASE), true).await);
    assert!(bench.fetch().await.is_none(), "a lost lease sends no completion");
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 2, "a lost lease neither delays the activity nor uncounts its attempt");
}

async fn s4_a_replaced_work_token_does_not_touch_the_lease_of_its_successor(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, old, _) = bench.working().await;
    bench.advance(LEASE + TICK);
    let (_, new, _) = bench.working().await;
    assert_ne!(old, new, "every lease has a token of its own");
    lost(bench.provider().abandon_work_item(&old, None, false).await);
    assert!(bench.fetch_work().await.is_none(), "the successor still holds the activity");
    lost(bench.provider().ack_work_item(&old, None).await);
    bench.finish(&new, None).await;
}

async fn s4_a_finished_work_token_is_worth_nothing(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, Some(completion("a", 2))).await;
    lost(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    lost(bench.provider().abandon_work_item(&token, None, false).await);
    assert_eq!(bench.fetched().await.item.messages, [completion("a", 2)], "it is delivered once");
}

async fn s4_an_abandoned_work_token_is_worth_nothing(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    lost(bench.provider().ack_work_item(&token, None).await);
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    lost(bench.provider().abandon_work_item(&token, None, true).await);
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 2, "the second abandon changes nothing");
}

async fn s4_a_work_token_that_was_never_given_is_lost(bench: Bench) {
    lost(bench.provider().ack_work_item("no such token", None).await);
    lost(bench.provider().renew_work_item_lock("no such token", LEASE).await);
    lost(bench.provider().abandon_work_item("no such token", None, false).await);
}

async fn s4_a_turn_token_holds_no_work(bench: Bench) {
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let turn = bench.fetched().await;
    let (_, work, _) = bench.working().await;
    lost(bench.provider().ack_work_item(&turn.token, None).await);
    lost(bench.provider().renew_work_item_lock(&turn.token, LEASE).await);
    lost(bench.provider().renew_orchestration_item_lock(&work, LEASE).await);
    lost(bench.provider().abandon_orchestration_item(&work, None, false).await);
    bench.finish(&work, None).await;
    bench.commit(&turn, Commit::started("a")).await;
}

async fn s4_a_work_lease_ends_at_its_very_millisecond(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE - TICK);
    assert!(bench.fetch_work().await.is_none(), "the lease lasts until its end");
    bench.advance(TICK);
    assert!(bench.fetch_work().await.is_some(), "at its end the lease is over");
    lost(bench.provider().ack_work_item(&token, None).await);
}

async fn s5_an_expired_work_lease_gives_the_activity_back(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    bench.working().await;
    bench.advance(LEASE + TICK);
    let (item, _, _) = bench.working().await;
    assert_eq!(item, activity("a", 2), "the same activity comes back");
}

async fn s5_every_fetch_of_an_activity_counts_one_attempt(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    for expected in 1..=4 {
        let (_, _, attempt) = bench.working().await;
        assert_eq!(attempt, expected, "each fetch counts one attempt");
        bench.advance(LEASE + TICK);
    }
}

async fn s5_attempts_are_counted_for_each_activity_alone(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    bench.working().await;
    bench.enqueue(activity("a", 3)).await;
    bench.advance(LEASE + TICK);
    let (_, _, old) = bench.working().await;
    let (_, _, new) = bench.working().await;
    assert_eq!((old, new), (2, 1), "attempts belong to one activity");
}

async fn s5_renewing_work_extends_its_lease_from_now(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE - SECOND);
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE - TICK);
    assert!(bench.fetch_work().await.is_none(), "the renewed lease lasts from the renewal on");
    bench.advance(TICK);
    assert!(bench.fetch_work().await.is_some(), "what was left of the old lease is not added");
}

async fn s5_renewing_work_counts_no_attempt(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE + TICK);
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 2, "only fetches count");
}

async fn s5_a_dropped_waiting_work_fetch_takes_nothing(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_work(LEASE, TagFilter::DefaultOnly).await;
    call.abort();
    assert!(call.await.is_err(), "the fetch is dropped while it waits");
    bench.enqueue(activity("a", 2)).await;
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 1, "a fetch that was dropped leaves no lease and counts no attempt");
    Verdict::Kept
}

async fn s5_a_waiting_work_fetch_gets_what_an_expired_lease_gives_back(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    bench.working().await;
    let call = bench.waiting_work(LEASE * 10, TagFilter::DefaultOnly).await;
    bench.advance(LEASE);
    let (_, _, attempt) = bench.soon(call).await.expect("the end of a lease should wake a fetch");
    assert_eq!(attempt, 2, "it is the second attempt");
    Verdict::Kept
}

async fn s6_an_abandoned_activity_is_held_back_for_its_delay(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&token, Some(SECOND), false).await);
    bench.advance(SECOND - TICK);
    assert!(bench.fetch_work().await.is_none(), "the delay is not over");
    bench.advance(TICK);
    assert!(bench.fetch_work().await.is_some(), "the delay is over");
}

async fn s6_an_activity_abandoned_without_delay_can_be_taken_at_once(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    assert!(bench.fetch_work().await.is_some(), "the lease ended with the abandon");
}

async fn s6_an_uncounted_attempt_at_an_activity_leaves_no_trace(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    for _ in 0..3 {
        let (_, token, attempt) = bench.working().await;
        assert_eq!(attempt, 1, "the attempts before were not counted");
        ok(bench.provider().abandon_work_item(&token, None, true).await);
    }
}

async fn s6_a_counted_attempt_at_an_activity_stays_counted(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    let (_, token, attempt) = bench.working().await;
    assert_eq!(attempt, 2, "an abandoned attempt counts unless it is said not to");
    ok(bench.provider().abandon_work_item(&token, None, true).await);
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 2, "only one attempt is taken back");
}

async fn s6_abandoning_an_activity_touches_no_other(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    bench.enqueue(activity("a", 3)).await;
    let (_, first, _) = bench.working().await;
    let (_, second, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&first, Some(LEASE * 2), true).await);
    ok(bench.provider().renew_work_item_lock(&second, LEASE).await);
    bench.advance(LEASE + TICK);
    let (item, _, attempt) = bench.working().await;
    assert_eq!((item, attempt), (activity("a", 3), 2), "the other is neither delayed nor uncounted");
}

async fn s9_a_waiting_work_fetch_wakes_when_the_delay_is_over(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().abandon_work_item(&token, Some(SECOND), false).await);
    let call = bench.waiting_work(LEASE, TagFilter::DefaultOnly).await;
    bench.advance(SECOND);
    assert!(bench.soon(call).await.is_some(), "a delay that is over should wake a fetch");
    Verdict::Kept
}

async fn s11_finishing_removes_the_activity_and_sends_its_completion(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    assert!(bench.fetch().await.is_none(), "there is no completion before the end");
    bench.finish(&token, Some(completion("a", 2))).await;
    assert_eq!(bench.fetched().await.item.messages, [completion("a", 2)], "the completion is delivered");
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "the activity is gone");
}

async fn s11_finishing_without_completion_sends_nothing(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, None).await;
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "the activity is gone");
    assert!(bench.fetch().await.is_none(), "nobody is told");
}

async fn s11_a_failure_is_an_answer_too(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    let failed = WorkItem::ActivityFailed {
        instance: "a".to_owned(),
        execution_id: 1,
        id: 2,
        details: ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: "no paper".to_owned(),
            retryable: false,
        },
    };
    bench.finish(&token, Some(failed.clone())).await;
    assert_eq!(bench.fetched().await.item.messages, [failed], "the failure is delivered as it is");
}

async fn s11_only_the_end_of_an_activity_is_a_completion(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    for item in [raise("a", "1"), activity("a", 3)] {
        refused(bench.provider().ack_work_item(&token, Some(item)).await, ProviderErrorKind::Invalid);
    }
    assert!(bench.fetch().await.is_none(), "what was refused is not sent");
    Verdict::Kept
}

async fn s11_a_refused_completion_leaves_the_lease_as_it_was(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    refused(bench.provider().ack_work_item(&token, Some(raise("a", "1"))).await, ProviderErrorKind::Invalid);
    bench.finish(&token, Some(completion("a", 2))).await;
    assert_eq!(bench.fetched().await.item.messages, [completion("a", 2)], "the holder can still finish");
    Verdict::Kept
}

async fn s11_a_completion_may_go_to_any_instance(bench: Bench) {
    bench.begun_with_work("a").await;
    bench.begun("b").await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, Some(completion("b", 7))).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.instance.as_str(), turn.item.messages), ("b", vec![completion("b", 7)]));
}

async fn s11_a_completion_for_nobody_is_accepted(bench: Bench) {
    bench.enqueue(activity("nobody", 2)).await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, Some(completion("nobody", 2))).await;
    bench.start("a").await;
    assert_eq!(bench.fetched().await.item.instance, "a", "a completion for nobody delays nobody");
}

async fn s11_a_completion_ahead_of_the_start_is_kept(bench: Bench) {
    bench.enqueue(activity("a", 2)).await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, Some(completion("a", 2))).await;
    bench.start("a").await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [completion("a", 2), start_of("a")], "the instance need not exist");
}

async fn s11_an_expired_holder_sends_no_completion(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE + TICK);
    lost(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
    assert!(bench.fetch().await.is_none(), "the completion of a lost lease is not sent");
    assert!(bench.fetch_work().await.is_some(), "the activity is still to be done");
}

async fn s11_of_two_who_finish_with_one_token_one_succeeds(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    let finish = || bench.provider().ack_work_item(&token, Some(completion("a", 2)));
    let (one, other) = tokio::join!(finish(), finish());
    assert!(one.is_ok() != other.is_ok(), "exactly one should succeed: {one:?}, {other:?}");
    lost(one.and(other));
    assert_eq!(bench.fetched().await.item.messages.len(), 1, "one completion is sent");
}

async fn s11_a_completion_wakes_a_waiting_turn_fetch(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    let call = bench.waiting_fetch(LEASE).await;
    bench.finish(&token, Some(completion("a", 2))).await;
    assert!(bench.soon(call).await.is_some(), "a completion should wake a fetch before its time is over");
    Verdict::Kept
}

/// Gets the next turn of an instance going by a message.
async fn poked(bench: &Bench, instance: &str) -> Turning {
    bench.send(raise(instance, "poke")).await;
    bench.fetched().await
}

async fn s12_queued_work_that_is_cancelled_never_runs(bench: Bench) {
    bench.begun_with_work("a").await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    assert!(bench.fetch_work().await.is_none(), "cancelled work is gone");
}

async fn s12_the_holder_of_cancelled_work_learns_of_it_when_it_renews(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
}

async fn s12_the_result_of_cancelled_work_is_not_delivered(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    lost(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
    assert!(bench.fetch().await.is_none(), "nobody waits for it any more");
}

async fn s12_abandoned_work_that_was_cancelled_does_not_come_back(bench: Bench) {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    lost(bench.provider().abandon_work_item(&token, None, false).await);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "cancelled work is gone");
}

async fn s12_work_may_be_cancelled_by_the_commit_that_queues_it(bench: Bench) {
    bench.begin("a", Commit::default().schedule("a", 2).schedule("a", 3).cancel("a", 1, 2)).await;
    let (item, _, _) = bench.working().await;
    assert_eq!(item, activity("a", 3), "what a commit queues and cancels never runs");
    assert!(bench.fetch_work().await.is_none(), "there is no other");
}

async fn s12_only_the_named_activity_is_cancelled(bench: Bench) {
    bench.begun_with_work("a").await;
    bench.enqueue(activity("a", 3)).await;
    bench.enqueue(activity("b", 2)).await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    let (one, _, _) = bench.working().await;
    let (other, _, _) = bench.working().await;
    assert_eq!([one, other], [activity("a", 3), activity("b", 2)], "other ids and instances stay");
}

async fn s12_an_activity_of_another_execution_stays(bench: Bench) {
    bench.begun_with_work("a").await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 2, 2)).await;
    assert!(bench.fetch_work().await.is_some(), "the activity of execution 1 stays");
}

async fn s12_cancelling_what_is_not_there_is_no_error(bench: Bench) {
    bench.begin("a", Commit::default().cancel("a", 1, 9).cancel("nobody", 1, 1)).await;
    let events = ok(bench.provider().read("a").await);
    assert_eq!(events.len(), 1, "the commit stands");
}

async fn api_work_needs_no_instance(bench: Bench) {
    bench.enqueue(activity("nobody", 2)).await;
    let (item, _, attempt) = bench.working().await;
    assert_eq!((item, attempt), (activity("nobody", 2), 1));
}

fn any_work() -> WorkRequest {
    WorkRequest {
        worker_id: "worker".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Any,
        session: None,
        worker: None,
    }
}

async fn leased(bench: &Bench) -> Option<WorkLease> {
    let lease = ok(bench.store()?.fetch_work(any_work()).await);
    Some(lease.expect("an activity should be ready"))
}

async fn api_work_of_a_known_instance_names_its_orchestration(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    let lease = need!(leased(&bench).await, "Store");
    assert_eq!(
        (lease.orchestration.as_str(), lease.orchestration_version.as_str()),
        ("Orchestration", "1.0.0")
    );
    Verdict::Kept
}

async fn api_work_of_an_unknown_instance_names_none(bench: Bench) -> Verdict {
    bench.enqueue(activity("nobody", 2)).await;
    let lease = need!(leased(&bench).await, "Store");
    assert_eq!((lease.orchestration.as_str(), lease.orchestration_version.as_str()), ("unknown", "unknown"));
    Verdict::Kept
}

async fn api_the_trace_context_of_work_rides_with_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
    let work = NewWork { traceparent: Some(trace.clone()), ..activity("a", 2).into() };
    ok(store.enqueue_work(work).await);
    let lease = need!(leased(&bench).await, "Store");
    assert_eq!(lease.traceparent, Some(trace), "the trace context is given to the worker");
    Verdict::Kept
}

async fn api_what_is_no_activity_is_no_work(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    refused(store.enqueue_work(raise("a", "1").into()).await, ProviderErrorKind::Invalid);
    bench.start("a").await;
    let turn = bench.fetched().await;
    let commit = Commit::started("a").event(event("a", 2, scheduled())).work(raise("a", "1"));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Invalid);
    assert!(bench.fetch_work().await.is_none(), "no worker is given a message");
    Verdict::Kept
}
