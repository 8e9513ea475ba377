//! G6: the last leaf of a table, to which SQLite adds every new row, and leased rows on a torn leaf.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{EventKind, ScheduledActivityIdentifier, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Abandon, Attempt, History, MAX_UNREADABLE_ATTEMPTS, ProviderErrorKind, Queue, SetAside, Store,
    TurnCommit, UNREADABLE_RETRY,
};

use super::row::{Torn, big_poke, try_turn, try_work};
use super::{PAGE, begin, close, event, fetched, poke, tear_leaf};
use crate::stage::{LONG, activity, raw, started};

/// Closes the store, tears the leaf that has a text, and opens it again.
async fn torn_at(file: &Torn, store: Arc<SqliteProvider>, text: &str) -> Arc<SqliteProvider> {
    close(store).await;
    tear_leaf(&file.path, text);
    file.open().await
}

fn text(number: usize, length: usize) -> String {
    format!("leaf {number:03} {}", "x".repeat(length))
}

async fn enqueue(store: &SqliteProvider, instance: &str, id: usize, text: String, session: Option<&str>) {
    let mut work = activity(instance, id as u64, session, None);
    if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
        *input = text;
    }
    store.enqueue_work(work).await.expect("it is queued");
}

/// Lets the time pass until what cannot be read is set aside. Nothing else may be delivered.
async fn set_aside_in_the_end(file: &Torn, store: &SqliteProvider) -> Vec<SetAside> {
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        assert!(try_turn(store).await.is_none(), "nothing is delivered again");
        assert!(try_work(store).await.is_none(), "nothing is delivered again");
        file.clock.advance(UNREADABLE_RETRY);
    }
    let aside = store.set_aside(None).await.expect("it lists");
    for row in &aside {
        assert_eq!(row.attempts, MAX_UNREADABLE_ATTEMPTS);
        assert!(row.reason.contains("the database cannot read it"), "{}", row.reason);
    }
    aside
}

/// The lease was granted before the page was torn. Its turn consumes what it was given.
#[tokio::test]
async fn g6_a_turn_whose_leased_messages_are_torn_consumes_them_and_they_are_not_set_aside() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.send(vec![big_poke("torn").into()]).await.expect("it is sent");
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    assert_eq!(lease.messages.len(), 2);
    let store = file.tear(store).await;
    let commit = TurnCommit::empty(1);
    store.commit_turn(&lease.token, commit.clone()).await.expect("it is committed");
    let again = store.commit_turn(&lease.token, commit).await.expect_err("the lease has ended");
    assert_eq!(again.kind, ProviderErrorKind::LeaseLost);
    assert_eq!(set_aside_in_the_end(&file, &store).await, [], "they are consumed");
    assert_eq!(store.gauges().await.expect("it counts").messages, 0);
    poke(&store, "torn").await;
    assert_eq!(fetched(&store).await.messages.len(), 1, "the instance goes on");
}

/// As above, with a leaf: all that stood on it.
#[tokio::test]
async fn g6_a_turn_whose_leased_messages_are_on_a_torn_leaf_consumes_them() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    for number in 0..2 {
        let (instance, name) = ("torn".to_owned(), "poke".to_owned());
        let item = WorkItem::ExternalRaised { instance, name, data: text(number, 0) };
        store.send(vec![item.into()]).await.expect("it is sent");
    }
    let lease = fetched(&store).await;
    assert_eq!(lease.messages.len(), 2);
    let store = torn_at(&file, store, &text(0, 0)).await;
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    assert_eq!(set_aside_in_the_end(&file, &store).await, [], "they are consumed");
    assert_eq!(store.gauges().await.expect("it counts").messages, 0);
}

#[tokio::test]
async fn g6_a_turn_whose_leased_messages_are_torn_can_be_abandoned() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    let (instance, name) = ("torn".to_owned(), "poke".to_owned());
    let item = WorkItem::ExternalRaised { instance, name, data: text(0, 0) };
    store.send(vec![item.into()]).await.expect("it is sent");
    let lease = fetched(&store).await;
    let store = torn_at(&file, store, &text(0, 0)).await;
    let how = Abandon { retry_after: None, attempt: Attempt::Counts };
    store.abandon(&lease.token, how).await.expect("it is abandoned");
    let aside = set_aside_in_the_end(&file, &store).await;
    let [row] = aside.as_slice() else { panic!("{aside:?}") };
    assert_eq!((row.queue, row.instance.as_deref()), (Queue::Orchestrator, Some("torn")));
}

/// S12: the holder of an activity that was withdrawn is told so, although its row cannot be read.
#[tokio::test]
async fn g6_the_holder_of_a_torn_activity_is_told_that_it_was_withdrawn() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    enqueue(&store, "torn", 2, text(0, 0), None).await;
    let lease = try_work(&store).await.expect("it is ready");
    let store = torn_at(&file, store, &text(0, 0)).await;
    poke(&store, "torn").await;
    let turn = fetched(&store).await;
    let instance = "torn".to_owned();
    let cancelled = vec![ScheduledActivityIdentifier { instance, execution_id: 1, activity_id: 2 }];
    let commit = TurnCommit { cancelled, ..TurnCommit::empty(1) };
    store.commit_turn(&turn.token, commit).await.expect("it is withdrawn");
    let renewed = store.renew(&lease.token, LONG).await.expect_err("it is gone");
    assert_eq!(renewed.kind, ProviderErrorKind::Withdrawn);
}

/// S12: and so is the holder of one whose session is closed.
#[tokio::test]
async fn g6_the_holder_of_a_torn_activity_is_told_that_its_session_was_closed() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    enqueue(&store, "torn", 2, text(0, 0), Some("s")).await;
    raw(&file.path).execute("UPDATE sessions SET instance = 'torn', is_row = 1", []).expect("it is owned");
    let lease = try_work(&store).await.expect("it is ready");
    let store = torn_at(&file, store, &text(0, 0)).await;
    poke(&store, "torn").await;
    let turn = fetched(&store).await;
    let closed = EventKind::SessionClosed { session_id: "s".to_owned() };
    let commit = TurnCommit { events: vec![event("torn", 2, None, closed)], ..TurnCommit::empty(1) };
    store.commit_turn(&turn.token, commit).await.expect("it is closed");
    let renewed = store.renew(&lease.token, LONG).await.expect_err("it is gone");
    assert_eq!(renewed.kind, ProviderErrorKind::Withdrawn);
}

/// The events of all instances are added to the last leaf of one table.
#[tokio::test]
async fn g6_turns_are_committed_although_the_last_leaf_of_the_histories_is_torn() {
    const INSTANCES: usize = 40;
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..INSTANCES {
        begin(&store, &format!("i{number:03}"), text(number, PAGE / 4)).await;
    }
    let store = torn_at(&file, store, &text(INSTANCES - 1, 0)).await;
    let mut unreadable = 0;
    for round in 0..30 {
        // The last leaf is tried again after a while.
        file.clock.advance(Duration::from_secs(20));
        for number in [0, INSTANCES - 1] {
            poke(&store, &format!("i{number:03}")).await;
            let lease = fetched(&store).await;
            let id = lease.last_event_id + 1;
            let events = vec![event(&lease.instance, id, None, started_with(text(round, PAGE / 4)))];
            let commit = TurnCommit { events, ..TurnCommit::empty(1) };
            store.commit_turn(&lease.token, commit).await.expect("it is committed");
            unreadable += usize::from(matches!(lease.history, History::Damaged(_)));
        }
    }
    assert_eq!(unreadable, 30, "the one whose history is torn");
    let history = store.read_history("i000", None).await.expect("it reads");
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, (1..=31).collect::<Vec<_>>(), "in the order of its events");
    let in_front = "SELECT count(*) FROM history WHERE seq < 1";
    let count = raw(&file.path).query_row(in_front, [], |row| row.get::<_, i64>(0));
    assert_eq!(count.expect("it counts"), 60, "they stand in front of the others");
    begin(&store, "new", String::new()).await;
    assert_eq!(store.read_history("new", None).await.expect("it reads").len(), 1);
}

fn started_with(text: String) -> EventKind {
    let mut kind = started();
    if let EventKind::OrchestrationStarted { input, .. } = &mut kind {
        *input = text;
    }
    kind
}
