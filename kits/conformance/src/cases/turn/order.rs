//! The order of a batch: by the moment at which each message first became due, then by arrival (G11).

use std::time::Duration;

use steadfast_store::{Envelope, MAX_TURN_MESSAGES};

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, ok, raise, start_of, timer};
use crate::case::{cases, need};

cases![
    s2_a_delayed_message_stands_where_it_became_due,
    s2_a_timer_stands_behind_a_message_that_was_sent_before_it_fired,
    s2_a_timer_stands_before_a_message_that_was_sent_after_it_fired,
    s2_messages_that_are_due_at_one_moment_stand_in_order_of_arrival,
    s2_a_timer_that_was_due_before_its_commit_stands_at_its_time,
    s6_the_delay_of_an_abandon_does_not_change_the_order,
    s6_the_delay_of_an_abandon_does_not_change_the_order_of_delayed_messages,
    s6_an_abandoned_message_is_first_among_many_that_become_due_with_it,
    s2_a_full_batch_takes_those_that_were_due_first,
    s2_a_start_is_in_a_full_batch_of_messages_that_were_due_before_it,
    s18_the_oldest_arrival_decides_which_instance_is_first,
];

async fn s2_a_delayed_message_stands_where_it_became_due(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "sent first"), LEASE).await;
    bench.send(raise("a", "due first")).await;
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "due first"), raise("a", "sent first")]);
}

/// Begins an instance whose first turn sets a timer.
async fn with_timer(bench: &Bench, delay: Duration) -> steadfast_core::WorkItem {
    let fires_at = bench.now_ms() + u64::try_from(delay.as_millis()).expect("a short time");
    let timer = timer("a", 2, fires_at);
    bench.begin("a", Commit::default().message(timer.clone())).await;
    timer
}

async fn s2_a_timer_stands_behind_a_message_that_was_sent_before_it_fired(bench: Bench) {
    let timer = with_timer(&bench, 7 * LEASE).await;
    bench.advance(3 * LEASE);
    bench.send(raise("a", "approved")).await;
    bench.advance(7 * LEASE);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "approved"), timer]);
}

async fn s2_a_timer_stands_before_a_message_that_was_sent_after_it_fired(bench: Bench) {
    let timer = with_timer(&bench, LEASE).await;
    bench.advance(LEASE + TICK);
    bench.send(raise("a", "too late")).await;
    assert_eq!(bench.fetched().await.item.messages, [timer, raise("a", "too late")]);
}

async fn s2_messages_that_are_due_at_one_moment_stand_in_order_of_arrival(bench: Bench) {
    let timer = with_timer(&bench, LEASE).await;
    bench.send_later(raise("a", "delayed"), LEASE).await;
    bench.advance(LEASE);
    for data in ["1", "2"] {
        bench.send(raise("a", data)).await;
    }
    let expected = [timer, raise("a", "delayed"), raise("a", "1"), raise("a", "2")];
    assert_eq!(bench.fetched().await.item.messages, expected);
}

async fn s2_a_timer_that_was_due_before_its_commit_stands_at_its_time(bench: Bench) {
    let turn = bench.leased("a").await;
    let fired = timer("a", 2, bench.now_ms());
    bench.advance(TICK);
    bench.send(raise("a", "sent after its time")).await;
    bench.commit(&turn, Commit::default().message(fired.clone())).await;
    assert_eq!(bench.fetched().await.item.messages, [fired, raise("a", "sent after its time")]);
}

async fn s6_the_delay_of_an_abandon_does_not_change_the_order(bench: Bench) {
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    bench.advance(TICK);
    bench.send(raise("a", "second")).await;
    bench.advance(LEASE);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "first"), raise("a", "second")]);
}

async fn s6_the_delay_of_an_abandon_does_not_change_the_order_of_delayed_messages(bench: Bench) {
    let timer = with_timer(&bench, LEASE).await;
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(2 * LEASE)).await);
    bench.send_later(raise("a", "second"), TICK).await;
    bench.advance(2 * LEASE);
    assert_eq!(bench.fetched().await.item.messages, [timer, raise("a", "second")]);
}

async fn s6_an_abandoned_message_is_first_among_many_that_become_due_with_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    ok(store.send(reversed(600)).await);
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages.len(), 601, "all of them are visible");
    assert_eq!(turn.item.messages.first(), Some(&raise("a", "first")));
    Verdict::Kept
}

/// Makes this many events, the first of them held back for longest: they become due in reverse order.
fn reversed(count: usize) -> Vec<Envelope> {
    let event = |number: usize| Envelope {
        message: raise("a", &number.to_string()).into(),
        delay: Some(u32::try_from(count - number).expect("a small number") * TICK),
    };
    (0..count).map(event).collect()
}

async fn s2_a_full_batch_takes_those_that_were_due_first(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let count = MAX_TURN_MESSAGES + 5;
    bench.begun("a").await;
    ok(store.send(reversed(count)).await);
    bench.advance(LEASE);
    let mut taken = Vec::new();
    while taken.len() < count {
        let turn = bench.fetched().await;
        assert!(turn.item.messages.len() <= MAX_TURN_MESSAGES, "a batch is bounded");
        taken.extend(turn.item.messages.clone());
        bench.commit(&turn, Commit::default()).await;
    }
    let expected: Vec<_> = (0..count).rev().map(|number| raise("a", &number.to_string())).collect();
    assert!(taken == expected, "those that were due first should come first, in every batch");
    Verdict::Kept
}

async fn s2_a_start_is_in_a_full_batch_of_messages_that_were_due_before_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.send_later(start_of("a"), LEASE).await;
    let ahead = (0..MAX_TURN_MESSAGES).map(|number| raise("a", &number.to_string()).into());
    ok(store.send(ahead.collect()).await);
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages.len(), MAX_TURN_MESSAGES, "a start counts, and the bound holds");
    assert_eq!(turn.item.messages.first(), Some(&raise("a", "0")), "those that were due first come first");
    assert_eq!(turn.item.messages.last(), Some(&start_of("a")), "the start was due last and is there");
    Verdict::Kept
}

async fn s18_the_oldest_arrival_decides_which_instance_is_first(bench: Bench) {
    bench.begun("a").await;
    bench.begun("b").await;
    bench.send_later(raise("b", "sent first"), LEASE).await;
    bench.send(raise("a", "due first")).await;
    bench.advance(LEASE);
    assert_eq!(bench.fetched().await.item.instance, "b", "its message has waited in the queue for longest");
}
