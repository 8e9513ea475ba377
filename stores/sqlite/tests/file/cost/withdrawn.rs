//! What a withdrawal and the end of a session cost, whatever others have leased.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_core::{EventKind, ScheduledActivityIdentifier};
use steadfast_sqlite::SqliteOptions;
use steadfast_store::{Store, TurnCommit};

use crate::stage::{LONG, activity, event, named, open, place, raw, start, started, turn_request};

const LEASED: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO work (key, execution, activity, state, tag, visible_at, since, token, locked_until, item)
     SELECT 3000000, 2, i, 2, '', 0, 0, 'noise-' || i, 9000000000000 + i, '{}' FROM n";

/// Counts the steps of the commit of a turn, beside so many leased activities of others.
async fn cost_beside(leased: u32, commit: &TurnCommit) -> u64 {
    let (_folder, path) = place();
    let steps = Arc::new(AtomicU64::new(0));
    // A look for commits of other processes would be counted too.
    let options = SqliteOptions {
        count_steps: Some(Arc::clone(&steps)),
        other_processes: None,
        ..SqliteOptions::default()
    };
    let store = open(&path, options).await;
    let fetch = async || {
        let fetched = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("a fetch");
        fetched.expect("the instance is ready")
    };
    store.start(start("a").into(), Vec::new()).await.expect("it is started");
    let first = TurnCommit {
        events: vec![event("a", 1, None, started())],
        metadata: named("Running"),
        ..TurnCommit::empty(1)
    };
    store.commit_turn(&fetch().await.token, first).await.expect("it is committed");
    store.enqueue_work(activity("a", 2, Some("s"), None)).await.expect("it is queued");
    raw(&path).execute("UPDATE sessions SET instance = 'a', is_row = 1", []).expect("it is owned");
    raw(&path).execute(LEASED, [leased]).expect("others are leased");
    let (instance, name, data) = ("a".to_owned(), "poke".to_owned(), String::new());
    let poke = steadfast_core::WorkItem::ExternalRaised { instance, name, data };
    store.send(vec![poke.into()]).await.expect("it is sent");
    let lease = fetch().await;
    let before = steps.load(Ordering::Relaxed);
    store.commit_turn(&lease.token, commit.clone()).await.expect("it is committed");
    steps.load(Ordering::Relaxed) - before
}

async fn assert_costs_the_same(commit: TurnCommit) {
    let (few, many) = (cost_beside(10, &commit).await, cost_beside(10_000, &commit).await);
    assert!(many < few + few / 4, "{few} steps beside 10 leased activities, {many} beside 10,000");
}

#[tokio::test]
async fn s20_the_end_of_a_session_costs_the_same_whatever_others_have_leased() {
    let closed = EventKind::SessionClosed { session_id: "s".to_owned() };
    assert_costs_the_same(TurnCommit { events: vec![event("a", 2, None, closed)], ..TurnCommit::empty(1) })
        .await;
}

#[tokio::test]
async fn s20_a_withdrawal_costs_the_same_whatever_others_have_leased() {
    let instance = "a".to_owned();
    let cancelled = vec![ScheduledActivityIdentifier { instance, execution_id: 1, activity_id: 2 }];
    assert_costs_the_same(TurnCommit { cancelled, ..TurnCommit::empty(1) }).await;
}
