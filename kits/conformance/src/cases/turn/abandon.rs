//! Abandoning a lease: its messages come again; messages that arrived meanwhile were never part of it.

use std::time::Duration;

use crate::bench::{Bench, Commit, LEASE, TICK, ok, raise};
use crate::case::cases;

cases![
    s6_without_a_delay_messages_come_back_at_once,
    s6_with_a_delay_messages_come_back_at_its_end,
    s6_a_delay_of_nothing_is_none,
    s6_a_delay_holds_back_only_what_was_leased,
    s6_a_delay_touches_nothing_that_was_held_back_already,
    s6_a_delay_touches_no_other_instance,
    s6_without_a_delay_the_place_in_the_queue_is_kept,
    s6_an_abandon_counts_its_attempt_unless_told_not_to,
    s6_an_uncounted_attempt_is_as_if_it_had_not_been,
    s6_an_uncounted_attempt_takes_back_no_other,
    s6_only_what_was_leased_is_uncounted,
    s7_an_arrival_during_a_lease_is_not_given_to_another,
    s7_an_arrival_during_a_lease_survives_its_commit,
    s7_an_arrival_during_a_lease_survives_its_abandon,
    s7_an_arrival_during_a_lease_is_untried_after_it,
    s7_a_message_that_becomes_visible_during_a_lease_survives_its_commit,
    s7_a_message_of_a_commit_to_its_own_instance_is_kept,
];

async fn s6_without_a_delay_messages_come_back_at_once(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, None).await);
    assert_eq!(bench.fetched().await.item.messages, turn.item.messages);
}

async fn s6_with_a_delay_messages_come_back_at_its_end(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, Some(2 * LEASE)).await);
    bench.advance(2 * LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "the delay is not over");
    bench.advance(TICK);
    assert_eq!(bench.fetched().await.item.messages, turn.item.messages);
}

async fn s6_a_delay_of_nothing_is_none(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, Some(Duration::ZERO)).await);
    assert_eq!(bench.fetched().await.item.messages, turn.item.messages);
}

async fn s6_a_delay_holds_back_only_what_was_leased(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.send(raise("a", "late")).await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    let late = bench.fetched().await;
    assert_eq!(late.item.messages, [raise("a", "late")], "what was not leased is not held back");
}

async fn s6_a_delay_touches_nothing_that_was_held_back_already(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "later"), LEASE).await;
    bench.send(raise("a", "now")).await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, Some(2 * LEASE)).await);
    bench.advance(LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "its time has not come");
    bench.advance(TICK);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "later")]);
}

async fn s6_a_delay_touches_no_other_instance(bench: Bench) {
    bench.start("a").await;
    bench.start("b").await;
    let (a, b) = (bench.fetched().await, bench.fetched().await);
    bench.start("c").await;
    ok(bench.try_abandon(&a, Some(LEASE)).await);
    assert_eq!(bench.fetched().await.item.instance, "c");
    assert!(bench.fetch().await.is_none(), "the other lease should last");
    bench.commit(&b, Commit::started("b")).await;
}

async fn s6_without_a_delay_the_place_in_the_queue_is_kept(bench: Bench) {
    bench.start("a").await;
    bench.advance(TICK);
    bench.start("b").await;
    let turn = bench.fetched().await;
    bench.advance(TICK);
    ok(bench.try_abandon(&turn, None).await);
    assert_eq!(bench.fetched().await.item.instance, "a", "it is still the oldest");
}

async fn s6_an_abandon_counts_its_attempt_unless_told_not_to(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, None).await);
    assert_eq!(bench.fetched().await.attempt, 2);
}

async fn s6_an_uncounted_attempt_is_as_if_it_had_not_been(bench: Bench) {
    bench.start("a").await;
    for _ in 0..3 {
        let turn = bench.fetched().await;
        assert_eq!(turn.attempt, 1, "what went before was not counted");
        bench.abandon(&turn, None).await;
    }
}

async fn s6_an_uncounted_attempt_takes_back_no_other(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, None).await);
    let second = bench.fetched().await;
    bench.abandon(&second, None).await;
    assert_eq!(bench.fetched().await.attempt, 2, "the first attempt was counted, and still is");
}

async fn s6_only_what_was_leased_is_uncounted(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    bench.send(raise("a", "other")).await;
    let other = bench.fetched().await;
    assert_eq!(other.item.messages, [raise("a", "other")]);
    bench.abandon(&other, None).await;
    bench.advance(LEASE);
    let both = bench.fetched().await;
    assert_eq!(both.item.messages.len(), 2);
    assert_eq!(both.attempt, 2, "the first message was tried before, and that still counts");
}

async fn s7_an_arrival_during_a_lease_is_not_given_to_another(bench: Bench) {
    bench.leased("a").await;
    bench.send(raise("a", "late")).await;
    assert!(bench.fetch().await.is_none(), "the instance is leased");
}

async fn s7_an_arrival_during_a_lease_survives_its_commit(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.send(raise("a", "late")).await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "late")], "only what was leased is gone");
}

async fn s7_an_arrival_during_a_lease_survives_its_abandon(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.send(raise("a", "late")).await;
    ok(bench.try_abandon(&turn, None).await);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "data"), raise("a", "late")]);
}

async fn s7_an_arrival_during_a_lease_is_untried_after_it(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.send(raise("a", "late")).await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(bench.fetched().await.attempt, 1, "it was not part of the first lease");
}

async fn s7_a_message_that_becomes_visible_during_a_lease_survives_its_commit(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "later"), LEASE / 2).await;
    bench.send(raise("a", "now")).await;
    let turn = bench.fetched().await;
    bench.advance(LEASE / 2);
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "later")]);
}

async fn s7_a_message_of_a_commit_to_its_own_instance_is_kept(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.commit(&turn, Commit::default().message(raise("a", "to myself"))).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "to myself")]);
}
