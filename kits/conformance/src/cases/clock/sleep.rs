//! A machine that sleeps: time goes on, and what is leased stays leased for as long as was left.

use std::time::Duration;

use steadfast_store::WorkPhase;

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, lost, ok, raise, timer};
use crate::case::{cases, need};
use crate::cases::worker::worker;

use super::{HOUR, HOUR_MS};

cases![
    s16_a_timer_that_fell_due_in_a_sleep_of_the_machine_fires_when_it_wakes,
    s16_a_delay_ends_in_a_sleep_of_the_machine,
    s16_a_turn_lease_outlasts_a_sleep_of_the_machine,
    s16_a_work_lease_outlasts_a_sleep_of_the_machine,
    s16_a_session_outlasts_a_sleep_of_the_machine,
    s16_a_lease_that_had_ended_is_not_brought_back_by_a_sleep_of_the_machine,
    s16_sleeps_of_the_machine_add_up,
    s16_a_worker_is_live_after_a_sleep_of_the_machine,
];

const HALF: Duration = Duration::from_secs(15);

async fn s16_a_timer_that_fell_due_in_a_sleep_of_the_machine_fires_when_it_wakes(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.begin("a", Commit::default().message(timer("a", 2, DAWN_MS + HOUR_MS))).await;
    machine.suspend(HOUR - TICK);
    assert!(bench.fetch().await.is_none(), "a millisecond is left");
    machine.suspend(HOUR);
    assert!(bench.fetch().await.is_some(), "it is due");
    Verdict::Kept
}

async fn s16_a_delay_ends_in_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.begun("a").await;
    bench.send_later(raise("a", "1"), HOUR).await;
    machine.suspend(HOUR);
    assert!(bench.fetch().await.is_some(), "the delay is over");
    Verdict::Kept
}

async fn s16_a_turn_lease_outlasts_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(HALF);
    machine.suspend(HOUR);
    assert!(bench.fetch().await.is_none(), "half of the lease is left");
    bench.advance(LEASE - HALF - TICK);
    assert!(bench.fetch().await.is_none(), "a millisecond is left");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "it has ended");
    lost(bench.try_commit(&turn, Commit::started("a")).await);
    Verdict::Kept
}

async fn s16_a_work_lease_outlasts_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.enqueue(activity("a", 1)).await;
    let (_, token, _) = bench.working().await;
    bench.advance(HALF);
    machine.suspend(HOUR);
    assert!(bench.fetch_work().await.is_none(), "half of the lease is left");
    bench.advance(LEASE - HALF - TICK);
    assert!(bench.fetch_work().await.is_none(), "a millisecond is left");
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE);
    assert!(bench.fetch_work().await.is_some(), "it has ended");
    lost(bench.provider().ack_work_item(&token, None).await);
    Verdict::Kept
}

async fn s16_a_session_outlasts_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    let store = need!(bench.store(), "Store");
    for id in [1, 2] {
        bench.enqueue(activity_with("a", id, Some("session"), None)).await;
    }
    assert!(bench.fetch_work_for("one").await.is_some(), "an unowned session can be claimed");
    let before = ok(store.sessions(None).await).remove(0);
    bench.advance(HALF);
    machine.suspend(HOUR);
    assert!(bench.fetch_work_for("other").await.is_none(), "the session is still held");
    let after = ok(store.sessions(None).await).remove(0);
    assert_eq!(after.epoch, before.epoch);
    assert_eq!(after.locked_until_ms, before.locked_until_ms + HOUR_MS, "half of its lease is left");
    assert_eq!(after.last_activity_at_ms, before.last_activity_at_ms + HOUR_MS, "it was not idle");
    bench.advance(LEASE - HALF);
    assert!(bench.fetch_work_for("other").await.is_some(), "its lease has ended");
    Verdict::Kept
}

async fn s16_a_lease_that_had_ended_is_not_brought_back_by_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.enqueue(activity_with("a", 1, Some("session"), None)).await;
    bench.enqueue(activity_with("a", 2, Some("session"), None)).await;
    let (_, token, _) = bench.fetch_work_for("one").await.expect("an unowned session can be claimed");
    bench.advance(LEASE);
    machine.suspend(HOUR);
    lost(bench.try_commit(&turn, Commit::started("a")).await);
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    if let Some(store) = bench.store() {
        let waiting = ok(store.work_of("a", 1).await).remove(0).phase;
        assert_eq!(waiting, WorkPhase::Waiting { since_ms: DAWN_MS + 30_000 }, "since its lease ended");
    }
    assert!(bench.fetch_work_for("other").await.is_some(), "the session has no owner");
    Verdict::Kept
}

async fn s16_sleeps_of_the_machine_add_up(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    bench.start("a").await;
    let turn = bench.fetched().await;
    for _ in 0..20 {
        machine.suspend(HOUR);
        bench.advance(Duration::from_secs(1));
        assert!(bench.fetch().await.is_none(), "the lease lasts");
    }
    let awake_ms = DAWN_MS + 20_000;
    let due_ms = awake_ms + 20 * HOUR_MS + 1_000;
    bench.commit(&turn, Commit::started("a").message(timer("a", 2, due_ms))).await;
    bench.advance(Duration::from_millis(999));
    assert!(bench.fetch().await.is_none(), "a millisecond is left");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "all sleeps are counted, and each one once");
    Verdict::Kept
}

async fn s16_a_worker_is_live_after_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    let store = need!(bench.store(), "Store");
    ok(store.report_worker(&worker("one")).await);
    machine.suspend(HOUR);
    assert!(bench.fetch_work().await.is_none());
    assert!(ok(store.workers(None).await)[0].is_live, "it slept too");
    Verdict::Kept
}
