//! Serial sessions: one activity at a time, in the order of their schedules (D29).

use steadfast_core::SessionConcurrency;
use steadfast_store::{Abandon, Attempt, WorkLease, WorkRequest};

use super::{Desk, Turn, id_of, leasing, owning, request};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, ok};
use crate::case::{cases, need};

cases![
    s13_a_serial_session_runs_one_activity_at_a_time,
    s13_a_serial_session_keeps_its_order,
    s13_a_serial_session_keeps_its_order_after_a_failed_try,
    s13_a_serial_session_waits_for_an_item_that_is_held_back,
    s13_a_serial_session_stays_serial_across_owners,
    s13_a_serial_session_delays_no_other_work,
    s13_an_unbounded_session_runs_its_activities_side_by_side,
    s13_the_next_of_a_serial_session_wakes_a_waiting_fetch,
];

/// Starts an instance with three activities on a serial session; their ids are 3, 4 and 5.
async fn begin(desk: &Desk<'_>) {
    let serial = Some(SessionConcurrency::Serial);
    desk.begin("a", |turn: Turn| turn.open_with("X", None, serial).work("X").work("X").work("X")).await;
}

fn ids(leases: &[&WorkLease]) -> Vec<u64> {
    leases.iter().map(|lease| id_of(&lease.item)).collect()
}

async fn s13_a_serial_session_runs_one_activity_at_a_time(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let first = desk.fetched("A").await;
    assert!(desk.fetch("A").await.is_none(), "one runs");
    desk.finish(&first).await;
    assert!(desk.fetch("A").await.is_some(), "the next may run");
    assert!(desk.fetch("A").await.is_none(), "and no other beside it");
    Verdict::Kept
}

async fn s13_a_serial_session_keeps_its_order(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let mut order = Vec::new();
    while let Some(lease) = desk.fetch("A").await {
        order.push(id_of(&lease.item));
        desk.finish(&lease).await;
    }
    assert_eq!(order, [3, 4, 5]);
    Verdict::Kept
}

async fn s13_a_serial_session_keeps_its_order_after_a_failed_try(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let first = desk.fetched("A").await;
    ok(desk.store.abandon(&first.token, Abandon { retry_after: None, attempt: Attempt::Counts }).await);
    let again = desk.asked(leasing("A", TICK, LEASE)).await;
    bench.advance(TICK);
    let once_more = desk.fetched("A").await;
    assert_eq!(ids(&[&first, &again, &once_more]), [3, 3, 3], "given back, or left: it is still first");
    assert_eq!(once_more.attempt, 3);
    Verdict::Kept
}

async fn s13_a_serial_session_waits_for_an_item_that_is_held_back(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let first = desk.fetched("A").await;
    let how = Abandon { retry_after: Some(LEASE / 2), attempt: Attempt::Counts };
    ok(desk.store.abandon(&first.token, how).await);
    assert!(desk.fetch("A").await.is_none(), "what comes later does not overtake it");
    bench.advance(LEASE / 2);
    assert_eq!(id_of(&desk.fetched("A").await.item), 3);
    Verdict::Kept
}

async fn s13_a_serial_session_stays_serial_across_owners(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let running = desk.asked(leasing("A", LEASE, TICK)).await;
    bench.advance(TICK);
    assert!(desk.fetch("B").await.is_none(), "the session is free, its first activity still runs at A");
    desk.finish(&running).await;
    assert_eq!(id_of(&desk.fetched("B").await.item), 4, "now B goes on");
    Verdict::Kept
}

async fn s13_a_serial_session_delays_no_other_work(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    desk.queue("S", 1).await;
    ok(desk.store.enqueue_work(crate::bench::activity("i", 2).into()).await);
    let (one, two, three) = (desk.fetched("A").await, desk.fetched("A").await, desk.fetched("A").await);
    assert_eq!(ids(&[&one, &two, &three]), [3, 1, 2]);
    Verdict::Kept
}

async fn s13_an_unbounded_session_runs_its_activities_side_by_side(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X").work("X").work("X")).await;
    let (one, two, three) = (desk.fetched("A").await, desk.fetched("A").await, desk.fetched("A").await);
    assert_eq!(ids(&[&one, &two, &three]), [3, 4, 5]);
    Verdict::Kept
}

async fn s13_the_next_of_a_serial_session_wakes_a_waiting_fetch(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    begin(&desk).await;
    let first = desk.fetched("A").await;
    let waiting = desk.ask(WorkRequest { poll_timeout: LEASE, ..request("A") });
    let finishing = async {
        bench.parked(1).await;
        desk.finish(&first).await;
    };
    let (next, ()) = tokio::join!(waiting, finishing);
    assert_eq!(next.map(|lease| id_of(&lease.item)), Some(4));
    Verdict::Kept
}
