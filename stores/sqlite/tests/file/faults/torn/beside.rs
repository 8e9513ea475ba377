//! G6: rows on the pages beside a torn leaf, which SQLite reads and changes but does not always remove.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    LeaseToken, MAX_UNREADABLE_ATTEMPTS, Outcome, ProviderErrorKind, Queue, SetAside, Store, TurnCommit,
    UNREADABLE_RETRY,
};

use super::row::{Torn, try_turn, try_work};
use super::{PAGE, begin, close, event, fetched, tear_leaf};
use crate::stage::{activity, completion, named, start, start_with, started};

const ROWS: usize = 40;

/// The most rows of these tests that one leaf holds.
const ON_A_LEAF: usize = 4;

/// As long as a fourth of a leaf, so that few rows are beside each other.
fn text(number: usize) -> String {
    format!("leaf {number:02} {}", "x".repeat(PAGE / 4))
}

/// Closes the store, tears a leaf in the middle, and opens it again.
async fn torn_in_the_middle(file: &Torn, store: Arc<SqliteProvider>) -> Arc<SqliteProvider> {
    close(store).await;
    tear_leaf(&file.path, "leaf 10 ");
    file.open().await
}

/// Lets the time pass until the rows of the torn leaf are set aside. No other row may be among them.
async fn assert_only_the_leaf_is_set_aside(
    file: &Torn,
    store: &SqliteProvider,
    queue: Queue,
) -> Vec<SetAside> {
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        file.clock.advance(UNREADABLE_RETRY);
        assert!(try_turn(store).await.is_none(), "nothing is delivered again");
        assert!(try_work(store).await.is_none(), "nothing is delivered again");
    }
    let aside = store.set_aside(None).await.expect("it lists");
    assert!((1..=ON_A_LEAF).contains(&aside.len()), "{aside:?}");
    assert!(aside.iter().all(|row| row.queue == queue), "{aside:?}");
    aside
}

#[tokio::test]
async fn g6_turns_whose_messages_stand_beside_a_torn_leaf_are_committed_once() {
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..ROWS {
        let item = start_with(&format!("i{number:02}"), text(number));
        store.start(item.into(), Vec::new()).await.expect("it is started");
    }
    let store = torn_in_the_middle(&file, store).await;
    let mut committed = 0;
    while let Some(lease) = try_turn(&store).await {
        let commit = TurnCommit {
            events: vec![event(&lease.instance, 1, None, started())],
            metadata: named("Running"),
            ..TurnCommit::empty(1)
        };
        store.commit_turn(&lease.token, commit).await.expect("it is committed");
        committed += 1;
    }
    assert!((ROWS - ON_A_LEAF..ROWS).contains(&committed), "{committed} of {ROWS}");
    drop(store);
    let store = file.open().await;
    let aside = assert_only_the_leaf_is_set_aside(&file, &store, Queue::Orchestrator).await;
    assert_eq!(aside.len(), ROWS - committed, "each of the others");
    let gauges = store.gauges().await.expect("it counts");
    assert_eq!((gauges.messages, gauges.running_instances), (0, committed as u64), "consumed is consumed");
}

#[tokio::test]
async fn g6_strays_beside_a_torn_leaf_are_in_the_way_of_no_other() {
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..ROWS {
        let (instance, name) = (format!("unknown-{number}"), "poke".to_owned());
        let item = WorkItem::ExternalRaised { instance, name, data: text(number) };
        store.send(vec![item.into()]).await.expect("it is sent");
    }
    let store = torn_in_the_middle(&file, store).await;
    store.start(start("other").into(), Vec::new()).await.expect("it is started");
    assert_eq!(fetched(&store).await.instance, "other");
    // Its own lease is live for longer than the torn messages are looked at.
    assert_only_the_leaf_is_set_aside(&file, &store, Queue::Orchestrator).await;
}

#[tokio::test]
async fn g6_work_beside_a_torn_leaf_is_finished_once() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "parent", String::new()).await;
    for number in 0..ROWS {
        let mut work = activity("parent", number as u64 + 2, None, None);
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = text(number);
        }
        store.enqueue_work(work).await.expect("it is queued");
    }
    let store = torn_in_the_middle(&file, store).await;
    let mut finished: Vec<LeaseToken> = Vec::new();
    while let Some(lease) = try_work(&store).await {
        let WorkItem::ActivityExecute { id, .. } = &lease.item else { panic!("{:?}", lease.item) };
        let outcome = Outcome { completion: Some(completion("parent", *id).into()) };
        store.finish_work(&lease.token, outcome).await.expect("it ends");
        finished.push(lease.token);
    }
    assert!((ROWS - ON_A_LEAF..ROWS).contains(&finished.len()), "{} of {ROWS}", finished.len());
    for token in &finished {
        let again = store.finish_work(token, Outcome { completion: None }).await.expect_err("it has ended");
        assert_eq!(again.kind, ProviderErrorKind::LeaseLost);
    }
    let lease = fetched(&store).await;
    assert_eq!(lease.messages.len(), finished.len(), "one completion of each");
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    let aside = assert_only_the_leaf_is_set_aside(&file, &store, Queue::Worker).await;
    assert_eq!(aside.len(), ROWS - finished.len(), "each of the others");
    assert_eq!(store.gauges().await.expect("it counts").work, 0, "done is done");
}

#[tokio::test]
async fn g6_an_instance_with_messages_beside_a_torn_leaf_can_be_deleted() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "whole", String::new()).await;
    for number in 0..ROWS {
        let (instance, name) = ("whole".to_owned(), "poke".to_owned());
        let item = WorkItem::ExternalRaised { instance, name, data: text(number) };
        store.send(vec![item.into()]).await.expect("it is sent");
    }
    let store = torn_in_the_middle(&file, store).await;
    let admin = store.admin().expect("it manages");
    admin.delete_instance("whole", true).await.expect("it is deleted");
    assert!(store.state("whole").await.expect("it reads").is_none());
    file.clock.advance(Duration::from_secs(1));
    assert!(try_turn(&store).await.is_none());
    assert_eq!(store.gauges().await.expect("it counts").messages, 0);
}
