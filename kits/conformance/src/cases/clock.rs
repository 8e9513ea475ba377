//! One clock: the wall clock of the machine may jump, and nothing changes.

pub(super) mod sleep;

use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::{Cold, TurnCommit, TurnRequest, WorkRequest};

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, lost, ok, raise, timer};
use crate::case::{cases, need};

cases![
    s16_a_jump_ahead_ends_no_turn_lease,
    s16_a_jump_back_keeps_no_turn_lease,
    s16_a_jump_ahead_ends_no_work_lease,
    s16_a_jump_back_keeps_no_work_lease,
    s16_a_jump_ahead_ends_no_session,
    s16_a_jump_back_keeps_no_session,
    s16_a_jump_ahead_fires_no_timer,
    s16_a_jump_back_holds_no_timer_up,
    s16_a_jump_shortens_no_delay,
    s16_a_waiting_fetch_wakes_in_time_after_a_jump,
    s16_times_of_instances_come_from_the_clock_of_the_store,
    s16_leases_tell_the_time_of_the_store,
    s16_a_timer_set_by_the_time_of_a_lease_fires_when_it_should,
];

const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_MS: u64 = 3_600_000;

/// Sets the wall clock of the machine an hour ahead.
fn jump_ahead(bench: &Bench) {
    bench.clock().set_wall_ms(bench.now_ms() + HOUR_MS);
}

/// Sets the wall clock of the machine an hour back.
fn jump_back(bench: &Bench) {
    bench.clock().set_wall_ms(bench.now_ms() - HOUR_MS);
}

async fn s16_a_jump_ahead_ends_no_turn_lease(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    jump_ahead(&bench);
    assert!(bench.fetch().await.is_none(), "no time has passed: the lease lasts");
    bench.commit(&turn, Commit::started("a")).await;
}

async fn s16_a_jump_back_keeps_no_turn_lease(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    jump_back(&bench);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch().await.is_some(), "the time of the lease has passed");
    lost(bench.try_commit(&turn, Commit::started("a")).await);
}

async fn s16_a_jump_ahead_ends_no_work_lease(bench: Bench) {
    bench.enqueue(activity("a", 1)).await;
    let (_, token, _) = bench.working().await;
    jump_ahead(&bench);
    assert!(bench.fetch_work().await.is_none(), "no time has passed: the lease lasts");
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.finish(&token, None).await;
}

async fn s16_a_jump_back_keeps_no_work_lease(bench: Bench) {
    bench.enqueue(activity("a", 1)).await;
    let (_, token, _) = bench.working().await;
    jump_back(&bench);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_some(), "the time of the lease has passed");
    lost(bench.provider().ack_work_item(&token, None).await);
}

/// Attaches a session to one owner, with another activity of it waiting.
async fn attached(bench: &Bench) {
    bench.enqueue(activity_with("a", 1, Some("session"), None)).await;
    bench.enqueue(activity_with("a", 2, Some("session"), None)).await;
    assert!(bench.fetch_work_for("one").await.is_some(), "an unowned session can be claimed");
}

async fn s16_a_jump_ahead_ends_no_session(bench: Bench) {
    attached(&bench).await;
    jump_ahead(&bench);
    assert!(bench.fetch_work_for("other").await.is_none(), "the session is still held");
    assert!(bench.fetch_work_for("one").await.is_some(), "by its owner");
}

async fn s16_a_jump_back_keeps_no_session(bench: Bench) {
    attached(&bench).await;
    jump_back(&bench);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work_for("other").await.is_some(), "the time of the session has passed");
}

async fn s16_a_jump_ahead_fires_no_timer(bench: Bench) {
    bench.begin("a", Commit::default().message(timer("a", 2, DAWN_MS + 60_000))).await;
    jump_ahead(&bench);
    assert!(bench.fetch().await.is_none(), "no time has passed: the timer is not due");
    bench.advance(Duration::from_secs(60));
    assert!(bench.fetch().await.is_some(), "now it is");
}

async fn s16_a_jump_back_holds_no_timer_up(bench: Bench) {
    bench.begin("a", Commit::default().message(timer("a", 2, DAWN_MS + 60_000))).await;
    jump_back(&bench);
    bench.advance(Duration::from_secs(60));
    assert!(bench.fetch().await.is_some(), "the time of the timer has passed");
}

async fn s16_a_jump_shortens_no_delay(bench: Bench) {
    bench.begun("a").await;
    bench.send_later(raise("a", "1"), HOUR).await;
    jump_ahead(&bench);
    bench.advance(HOUR - TICK);
    assert!(bench.fetch().await.is_none(), "the delay is not over");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "now it is");
}

async fn s16_a_waiting_fetch_wakes_in_time_after_a_jump(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send_later(raise("a", "1"), LEASE).await;
    let call = bench.waiting_fetch(HOUR).await;
    jump_back(&bench);
    bench.advance(LEASE);
    assert!(bench.soon(call).await.is_some(), "the wait ends when the message is due");
    Verdict::Kept
}

async fn s16_times_of_instances_come_from_the_clock_of_the_store(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    jump_ahead(&bench);
    bench.advance(Duration::from_secs(1));
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("a", 2, "output")).await;
    let info = ok(admin.get_instance_info("a").await);
    assert_eq!((info.created_at, info.updated_at), (DAWN_MS, DAWN_MS + 1_000), "one second has passed");
    let execution = ok(admin.get_execution_info("a", 1).await);
    assert_eq!((execution.started_at, execution.completed_at), (DAWN_MS, Some(DAWN_MS + 1_000)));
    Verdict::Kept
}

async fn s16_leases_tell_the_time_of_the_store(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 1)).await;
    jump_ahead(&bench);
    bench.advance(Duration::from_secs(1));
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let turn = ok(store.fetch_turn(request).await).expect("an instance is ready");
    let request = WorkRequest {
        worker_id: "worker".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Any,
        session: None,
        worker: None,
    };
    let work = ok(store.fetch_work(request).await).expect("an activity is ready");
    assert_eq!((turn.now_ms, work.now_ms), (DAWN_MS + 1_000, DAWN_MS + 1_000), "one second has passed");
    Verdict::Kept
}

async fn s16_a_timer_set_by_the_time_of_a_lease_fires_when_it_should(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    jump_back(&bench);
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let turn = ok(store.fetch_turn(request).await).expect("an instance is ready");
    let started = Commit::started("a");
    let messages = vec![timer("a", 2, turn.now_ms + 1_000).into()];
    let commit =
        TurnCommit { events: started.events, metadata: started.metadata, messages, ..TurnCommit::empty(1) };
    ok(store.commit_turn(&turn.token, commit).await);
    bench.advance(Duration::from_millis(999));
    assert!(bench.fetch().await.is_none(), "the timer is not due");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "a second after the lease it is");
    Verdict::Kept
}
