//! Waiting: nothing comes before its time, and whoever waits for it is woken then.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, ok, raise, start_of, timer};
use crate::case::{cases, need};

cases![
    s9_a_message_that_is_held_back_comes_at_its_time,
    s9_a_start_that_is_held_back_comes_at_its_time,
    s9_a_message_that_is_held_back_is_not_in_an_earlier_batch,
    s9_a_timer_of_a_commit_comes_at_its_time,
    s9_a_timer_that_is_due_already_comes_at_once,
    s9_only_the_timers_of_a_commit_are_held_back,
    s9_a_timer_that_is_sent_comes_when_it_is_sent_for,
    s9_a_timer_may_be_due_after_the_end_of_time,
    s9_a_delay_may_be_longer_than_any_clock_can_tell,
    s9_a_waiting_fetch_gets_a_timer_at_its_time,
    s9_a_waiting_fetch_gets_a_message_that_is_held_back_at_its_time,
    s9_a_waiting_fetch_gets_what_was_given_back_at_its_time,
    s5_a_waiting_fetch_gets_what_an_expired_lease_held,
    s18_a_waiting_fetch_is_woken_by_a_message,
    s18_a_waiting_fetch_is_woken_by_a_message_of_a_commit,
    s18_a_waiting_fetch_is_woken_by_the_commit_that_frees_the_instance,
    s18_a_waiting_fetch_is_woken_by_an_abandon,
    s18_each_of_many_waiting_fetches_is_woken_for_an_instance,
    s1_one_of_many_waiting_fetches_gets_the_instance,
    api_a_fetch_with_no_time_to_wait_answers_at_once,
    api_a_fetch_that_waits_in_vain_ends_at_its_time,
    s9_a_moment_is_not_forgotten_with_the_fetch_that_learned_of_it,
];

async fn s9_a_message_that_is_held_back_comes_at_its_time(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "data"), LEASE).await;
    comes_after(&bench, LEASE).await;
}

async fn s9_a_start_that_is_held_back_comes_at_its_time(bench: Bench) {
    bench.send_later(start_of("a"), LEASE).await;
    comes_after(&bench, LEASE).await;
}

async fn s9_a_message_that_is_held_back_is_not_in_an_earlier_batch(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "later"), LEASE).await;
    bench.send(raise("a", "now")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "now")]);
    bench.commit(&turn, Commit::default()).await;
    comes_after(&bench, LEASE).await;
}

async fn s9_a_timer_of_a_commit_comes_at_its_time(bench: Bench) {
    let due = bench.now_ms() + 60_000;
    bench.begin("a", Commit::default().message(timer("a", 2, due))).await;
    comes_after(&bench, Duration::from_secs(60)).await;
}

async fn s9_a_timer_that_is_due_already_comes_at_once(bench: Bench) {
    let due = bench.now_ms() - 60_000;
    bench.begin("a", Commit::default().message(timer("a", 2, due))).await;
    assert_eq!(bench.fetched().await.item.messages, [timer("a", 2, due)]);
}

async fn s9_only_the_timers_of_a_commit_are_held_back(bench: Bench) {
    let due = bench.now_ms() + 60_000;
    let commit = Commit::default().message(timer("a", 2, due)).message(raise("a", "now"));
    bench.begin("a", commit).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "now")]);
}

async fn s9_a_timer_that_is_sent_comes_when_it_is_sent_for(bench: Bench) {
    bench.begun("a").await;
    let (past, future) = (timer("a", 2, bench.now_ms() - 1), timer("a", 3, bench.now_ms() + 86_400_000));
    bench.send(future.clone()).await;
    bench.send_later(past, LEASE).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [future], "the sender says when, not the timer");
    bench.commit(&turn, Commit::default()).await;
    comes_after(&bench, LEASE).await;
}

async fn s9_a_timer_may_be_due_after_the_end_of_time(bench: Bench) {
    bench.begin("a", Commit::default().message(timer("a", 2, u64::MAX))).await;
    bench.advance(Duration::from_secs(100 * 365 * 86_400));
    assert!(bench.fetch().await.is_none(), "the timer is not due for a long time");
    bench.send(raise("a", "data")).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "data")]);
}

async fn s9_a_delay_may_be_longer_than_any_clock_can_tell(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "never"), Duration::MAX).await;
    bench.send(raise("a", "given back")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "given back")]);
    ok(bench.try_abandon(&turn, Some(Duration::MAX)).await);
    bench.advance(Duration::from_secs(100 * 365 * 86_400));
    assert!(bench.fetch().await.is_none(), "both messages are held back for a long time");
}

async fn s9_a_waiting_fetch_gets_a_timer_at_its_time(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let due = bench.now_ms() + 20_000;
    bench.begin("a", Commit::default().message(timer("a", 2, due))).await;
    is_woken_after(&bench, Duration::from_secs(20)).await;
    Verdict::Kept
}

async fn s9_a_waiting_fetch_gets_a_message_that_is_held_back_at_its_time(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = bench.waiting_fetch(2 * LEASE).await;
    bench.send_later(raise("a", "data"), LEASE).await;
    bench.settle().await;
    bench.parked(1).await;
    bench.advance(LEASE - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "it is not time yet");
    bench.parked(1).await;
    bench.advance(TICK);
    assert!(bench.soon(call).await.is_some(), "the message came while the call waited");
    Verdict::Kept
}

async fn s9_a_waiting_fetch_gets_what_was_given_back_at_its_time(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(Duration::from_secs(5))).await);
    is_woken_after(&bench, Duration::from_secs(5)).await;
    Verdict::Kept
}

async fn s5_a_waiting_fetch_gets_what_an_expired_lease_held(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    bench.fetched().await;
    is_woken_after(&bench, LEASE).await;
    Verdict::Kept
}

async fn s18_a_waiting_fetch_is_woken_by_a_message(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_fetch(LEASE).await;
    bench.start("a").await;
    assert!(bench.soon(call).await.is_some(), "a message has come");
    Verdict::Kept
}

async fn s18_a_waiting_fetch_is_woken_by_a_message_of_a_commit(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let call = bench.waiting_fetch(LEASE / 2).await;
    bench.commit(&turn, Commit::started("a").message(start_of("b"))).await;
    let next = bench.soon(call).await.expect("the commit has sent a start");
    assert_eq!(next.item.instance, "b");
    Verdict::Kept
}

async fn s18_a_waiting_fetch_is_woken_by_the_commit_that_frees_the_instance(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.send(raise("a", "late")).await;
    let call = bench.waiting_fetch(LEASE / 2).await;
    bench.commit(&turn, Commit::started("a")).await;
    let next = bench.soon(call).await.expect("a late message has waited for the commit");
    assert_eq!(next.item.messages, [raise("a", "late")]);
    Verdict::Kept
}

async fn s18_a_waiting_fetch_is_woken_by_an_abandon(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let call = bench.waiting_fetch(LEASE / 2).await;
    ok(bench.try_abandon(&turn, None).await);
    assert_eq!(bench.soon(call).await.expect("the instance is free again").attempt, 2);
    Verdict::Kept
}

async fn s18_each_of_many_waiting_fetches_is_woken_for_an_instance(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(bench.waiting_fetch(LEASE).await);
    }
    ok(store.send(["a", "b", "c"].map(|id| start_of(id).into()).into()).await);
    let mut leased = Vec::new();
    for call in calls {
        leased.push(bench.soon(call).await.expect("there is an instance for each").item.instance);
    }
    leased.sort();
    assert_eq!(leased, ["a", "b", "c"]);
    Verdict::Kept
}

async fn s1_one_of_many_waiting_fetches_gets_the_instance(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(bench.waiting_fetch(LEASE / 2).await);
    }
    bench.start("a").await;
    bench.settle().await;
    bench.parked(2).await;
    bench.advance(LEASE / 2);
    let mut leased = 0;
    for call in calls {
        leased += usize::from(bench.soon(call).await.is_some());
    }
    assert_eq!(leased, 1, "one of three fetches should get the one instance");
    Verdict::Kept
}

async fn api_a_fetch_with_no_time_to_wait_answers_at_once(bench: Bench) {
    let call = {
        let provider = bench.provider().clone();
        tokio::spawn(async move { ok(provider.fetch_orchestration_item(LEASE, Duration::ZERO, None).await) })
    };
    assert!(bench.soon(call).await.is_none(), "there is nothing");
}

async fn api_a_fetch_that_waits_in_vain_ends_at_its_time(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_fetch(LEASE).await;
    bench.advance(LEASE - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "it is not time yet");
    bench.parked(1).await;
    bench.advance(TICK);
    assert!(bench.soon(call).await.is_none(), "nothing has come");
    Verdict::Kept
}

/// Requires that the next message comes after `time`, and no earlier.
async fn comes_after(bench: &Bench, time: Duration) {
    bench.advance(time - TICK);
    assert!(bench.fetch().await.is_none(), "it is not time yet");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "it is time, to the millisecond");
}

/// Requires that a fetch which waits from now on gets something after `time`, and no earlier.
async fn is_woken_after(bench: &Bench, time: Duration) {
    let call = bench.waiting_fetch(2 * LEASE).await;
    bench.advance(time - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "it is not time yet");
    bench.parked(1).await;
    bench.advance(TICK);
    assert!(bench.soon(call).await.is_some(), "it is time, to the millisecond");
}

/// G21: the fetch that was told of a delayed message takes other work; the next one is woken for the message.
async fn s9_a_moment_is_not_forgotten_with_the_fetch_that_learned_of_it(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(bench.waiting_fetch(100 * LEASE).await);
    }
    bench.send_later(start_of("later"), LEASE).await;
    bench.settle().await;
    for instance in ["now", "too"] {
        bench.start(instance).await;
        loop {
            bench.settle().await;
            let Some(done) = calls.iter().position(JoinHandle::is_finished) else { continue };
            let turn = bench.soon(calls.remove(done)).await.expect("an instance is ready");
            assert_eq!(turn.item.instance, instance);
            bench.commit(&turn, Commit::started(instance)).await;
            break;
        }
    }
    bench.settle().await;
    bench.advance(LEASE);
    let last = calls.pop().expect("one fetch still waits");
    let turn = bench.soon(last).await.expect("its time has come");
    assert_eq!(turn.item.instance, "later", "the delayed message wakes the fetch that is left");
    Verdict::Kept
}
