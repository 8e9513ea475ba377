//! Telling what waits on sessions, and for their moves.

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::{ProviderErrorKind, WorkPhase};

use super::{Desk, owning};
use crate::Verdict;
use crate::bench::{Bench, DAWN_MS, LEASE, TICK, ok};
use crate::case::{cases, need};

cases![
    s13_an_activity_names_the_session_of_its_instance,
    s13_a_serial_session_that_runs_has_nothing_that_waits,
    s13_an_execution_names_the_sessions_that_it_watches,
];

/// The words, on a store that can tell what waits.
async fn telling(bench: &Bench) -> Option<Desk<'_>> {
    let desk = owning(bench)?;
    match desk.store.oldest_waiting().await {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => None,
        _ => Some(desk),
    }
}

async fn s13_an_activity_names_the_session_of_its_instance(bench: Bench) -> Verdict {
    let desk = need!(telling(&bench).await, "oldest_waiting");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    desk.fetched("A").await;
    let told = ok(desk.store.work_of("a", 1).await);
    let [work] = told.as_slice() else { panic!("one activity should be there: {told:?}") };
    assert_eq!(work.session, Some(SessionKey::owned("a", "X")));
    let until_ms = DAWN_MS + LEASE.as_millis() as u64;
    assert_eq!(work.phase, WorkPhase::Leased { worker_id: "A".to_owned(), until_ms });
    Verdict::Kept
}

async fn s13_a_serial_session_that_runs_has_nothing_that_waits(bench: Bench) -> Verdict {
    let desk = need!(telling(&bench).await, "oldest_waiting");
    let serial = Some(SessionConcurrency::Serial);
    desk.begin("a", |turn| turn.open_with("X", None, serial).work("X").work("X")).await;
    bench.advance(TICK);
    assert_eq!(ok(desk.store.oldest_waiting().await).work_ms, Some(DAWN_MS));
    let first = desk.fetched("A").await;
    assert_eq!(ok(desk.store.oldest_waiting().await).work_ms, None, "the second cannot be taken");
    desk.finish(&first).await;
    assert_eq!(ok(desk.store.oldest_waiting().await).work_ms, Some(DAWN_MS));
    Verdict::Kept
}

async fn s13_an_execution_names_the_sessions_that_it_watches(bench: Bench) -> Verdict {
    let desk = need!(telling(&bench).await, "oldest_waiting");
    let (shared, owned) = (SessionKey::shared("S"), SessionKey::owned("a", "X"));
    desk.begin("a", |turn| turn.open("X").watch(owned.clone()).watch(shared.clone())).await;
    desk.begin("b", |turn| turn.watch(SessionKey::shared("T"))).await;
    let watched = async |instance| ok(desk.store.turn_of(instance).await).map(|told| told.watched);
    assert_eq!(watched("a").await, Some(vec![shared, owned]));
    desk.turn("a", |turn| turn.continue_as_new(&["X"])).await;
    desk.succeed("a", |turn| turn).await;
    assert_eq!(watched("a").await, Some(Vec::new()), "the next execution watches for itself");
    Verdict::Kept
}
