//! Waiting fetches: those that may take refused work are woken for it, the others wait on.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{Cold, Store, TurnLease, TurnRequest, WorkLease, WorkRequest, WorkerId};
use tokio::task::JoinHandle;

use super::{asking, capable, eager, fleet, worker};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, activity, ok};
use crate::case::{cases, need};

cases![
    s21_a_refused_turn_wakes_a_waiting_worker_that_lists_it,
    s21_refused_work_wakes_a_waiting_worker_that_lists_it,
    s21_a_report_wakes_the_waiting_worker_for_refused_turns,
    s21_a_report_wakes_the_waiting_worker_for_refused_work,
    s21_a_worker_that_lacks_the_handler_waits_on,
];

fn turn_wait(bench: &Bench, id: &str, poll_timeout: Duration) -> JoinHandle<Option<TurnLease>> {
    let (store, id) = (full(bench), WorkerId(id.to_owned()));
    tokio::spawn(async move {
        let worker = Some(&id);
        let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker };
        ok(store.fetch_turn(request).await)
    })
}

fn work_wait(bench: &Bench, id: &str, poll_timeout: Duration) -> JoinHandle<Option<WorkLease>> {
    let (store, request) = (full(bench), WorkRequest { poll_timeout, session: None, ..asking(id) });
    tokio::spawn(async move { ok(store.fetch_work(request).await) })
}

fn full(bench: &Bench) -> Arc<dyn Store> {
    Arc::clone(bench.provider()).into_store().expect("the store has its full form")
}

async fn s21_a_refused_turn_wakes_a_waiting_worker_that_lists_it(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    let waiting = bench.clock().sleepers();
    let call = turn_wait(&bench, "new", LEASE * 10);
    bench.parked(waiting + 1).await;
    fleet.refuse(&lease.token, super::counting(super::the_orchestration())).await;
    assert!(bench.soon(call).await.is_some(), "a refusal should wake it");
    Verdict::Kept
}

async fn s21_refused_work_wakes_a_waiting_worker_that_lists_it(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.enqueue(activity("a", 2)).await;
    let lease = fleet.worked("old").await;
    let waiting = bench.clock().sleepers();
    let call = work_wait(&bench, "new", LEASE * 10);
    bench.parked(waiting + 1).await;
    fleet.refuse(&lease.token, super::counting(super::the_activity())).await;
    assert!(bench.soon(call).await.is_some(), "a refusal should wake it");
    Verdict::Kept
}

async fn s21_a_report_wakes_the_waiting_worker_for_refused_turns(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("new")).await;
    bench.start("a").await;
    fleet.refuse_turn("old").await;
    let waiting = bench.clock().sleepers();
    let call = turn_wait(&bench, "new", LEASE * 10);
    bench.parked(waiting + 1).await;
    fleet.report(capable("new")).await;
    assert!(bench.soon(call).await.is_some(), "its report should wake it");
    Verdict::Kept
}

async fn s21_a_report_wakes_the_waiting_worker_for_refused_work(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("new")).await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_work("old").await;
    let waiting = bench.clock().sleepers();
    let call = work_wait(&bench, "new", LEASE * 10);
    bench.parked(waiting + 1).await;
    fleet.report(capable("new")).await;
    assert!(bench.soon(call).await.is_some(), "its report should wake it");
    Verdict::Kept
}

async fn s21_a_worker_that_lacks_the_handler_waits_on(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (turn, work) = (fleet.turned("old").await, fleet.worked("old").await);
    let waiting = bench.clock().sleepers();
    let calls = (turn_wait(&bench, "old", LEASE / 2), work_wait(&bench, "old", LEASE / 2));
    bench.parked(waiting + 2).await;
    fleet.refuse(&turn.token, super::counting(super::the_orchestration())).await;
    fleet.refuse(&work.token, super::counting(super::the_activity())).await;
    bench.settle().await;
    bench.parked(waiting + 2).await;
    bench.advance(LEASE / 2 - TICK);
    bench.settle().await;
    bench.parked(waiting + 2).await;
    assert!(!calls.0.is_finished() && !calls.1.is_finished(), "both wait on");
    bench.advance(TICK);
    assert!(bench.soon(calls.0).await.is_none(), "until their time is over");
    assert!(bench.soon(calls.1).await.is_none(), "until their time is over");
    Verdict::Kept
}
