//! G6: the last leaf of a queue, to which SQLite adds every new row, and rows that grow beside a torn leaf.
//! The queue gets a new table, and goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use steadfast_core::{ScheduledActivityIdentifier, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    MAX_UNREADABLE_ATTEMPTS, Outcome, ProviderErrorKind, Queue, SetAside, Store, TurnCommit, TurnLease,
    UNREADABLE_RETRY,
};

use super::row::{Torn, try_turn, try_work};
use super::{PAGE, begin, close, event, fetched, poke, tear_leaf};
use crate::stage::{LONG, activity, completion, named, raw, start, start_with, started};

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

async fn commit_first(store: &SqliteProvider, lease: &TurnLease) {
    let commit = TurnCommit {
        events: vec![event(&lease.instance, 1, None, started())],
        metadata: named("Running"),
        ..TurnCommit::empty(1)
    };
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
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

/// With two messages the last leaf is the only one.
#[tokio::test]
async fn g6_messages_are_sent_and_delivered_once_although_the_last_leaf_of_their_queue_is_torn() {
    for rows in [2, 40] {
        let file = Torn::new();
        let store = file.open().await;
        for number in 0..rows {
            let item = start_with(&format!("i{number:03}"), text(number, PAGE / 4));
            store.start(item.into(), Vec::new()).await.expect("it is started");
        }
        let store = torn_at(&file, store, &text(rows - 1, 0)).await;
        store.start(start("new").into(), Vec::new()).await.expect("it is started");
        let mut begun = BTreeSet::new();
        while let Some(lease) = try_turn(&store).await {
            commit_first(&store, &lease).await;
            assert!(begun.insert(lease.instance.clone()), "{} is delivered once", lease.instance);
        }
        assert!(begun.contains("new"));
        let aside = set_aside_in_the_end(&file, &store).await;
        let mut all: BTreeSet<String> = aside.into_iter().filter_map(|row| row.instance).collect();
        assert!((1..=4).contains(&all.len()) && all.is_disjoint(&begun), "{all:?}");
        all.extend(begun);
        assert_eq!(all.len(), rows + 1, "each is delivered or set aside");
        assert_eq!(store.gauges().await.expect("it counts").messages, 0);
    }
}

#[tokio::test]
async fn g6_work_is_queued_and_finished_once_although_the_last_leaf_of_its_queue_is_torn() {
    for (rows, session) in [(2, None), (40, None), (2, Some("s")), (40, Some("s"))] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "parent", String::new()).await;
        for number in 0..rows {
            enqueue(&store, "parent", number, text(number, PAGE / 4), session).await;
        }
        let store = torn_at(&file, store, &text(rows - 1, 0)).await;
        enqueue(&store, "parent", rows, String::new(), session).await;
        let mut finished = BTreeSet::new();
        while let Some(lease) = try_work(&store).await {
            let WorkItem::ActivityExecute { id, .. } = &lease.item else { panic!("{:?}", lease.item) };
            let outcome = Outcome { completion: Some(completion("parent", *id).into()) };
            store.finish_work(&lease.token, outcome).await.expect("it ends");
            assert!(finished.insert(*id), "{id} is delivered once");
        }
        assert!(finished.contains(&(rows as u64)));
        let lease = fetched(&store).await;
        assert_eq!(lease.messages.len(), finished.len(), "one completion of each");
        store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
        let aside = set_aside_in_the_end(&file, &store).await;
        assert!(aside.iter().all(|row| row.instance.as_deref() == Some("parent")), "{aside:?}");
        assert_eq!(finished.len() + aside.len(), rows + 1, "each is finished or set aside");
        assert_eq!(store.gauges().await.expect("it counts").work, 0);
    }
}

/// A token makes a row longer, and a full leaf gives rows to the leaves beside it.
#[tokio::test]
async fn g6_leases_are_granted_although_rows_grow_beside_a_torn_leaf() {
    const ROWS: usize = 120;
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..ROWS {
        let id = format!("i{number:03}");
        store.start(start_with(&id, text(number, 0)).into(), Vec::new()).await.expect("it is started");
        enqueue(&store, &id, number, text(number, 0), None).await;
    }
    close(store).await;
    // The first leaf with the text is one of the messages, the second one of the activities.
    tear_leaf(&file.path, &text(60, 0));
    tear_leaf(&file.path, &text(60, 0));
    let store = file.open().await;
    let (mut turns, mut work) = (BTreeSet::new(), BTreeSet::new());
    while let Some(lease) = try_turn(&store).await {
        assert!(turns.insert(lease.instance.clone()), "{} is leased once", lease.instance);
        commit_first(&store, &lease).await;
    }
    while let Some(lease) = try_work(&store).await {
        assert!(work.insert(lease.item.instance().to_owned()), "{:?} is leased once", lease.item);
    }
    // Their own leases end, and they are finished then.
    assert!(turns.len() > ROWS / 2 && turns.len() < ROWS, "{}", turns.len());
    assert!(work.len() > ROWS / 2 && work.len() < ROWS, "{}", work.len());
    let aside = set_aside_in_the_end_of_leases(&file, &store).await;
    let of = |queue: Queue| aside.iter().filter(|row| row.queue == queue).count();
    assert_eq!((of(Queue::Orchestrator), of(Queue::Worker)), (ROWS - turns.len(), ROWS - work.len()));
}

/// Lets the time pass, finishes the activities whose leases end, and returns what is set aside.
async fn set_aside_in_the_end_of_leases(file: &Torn, store: &SqliteProvider) -> Vec<SetAside> {
    file.clock.advance(3 * LONG);
    while let Some(lease) = try_work(store).await {
        assert_eq!(lease.attempt, 2);
        store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    }
    set_aside_in_the_end(file, store).await
}

/// The lease was granted before the leaf was torn. Its turn consumes what it was given.
#[tokio::test]
async fn g6_a_turn_consumes_its_torn_messages_whether_or_not_their_queue_is_mended() {
    for is_mended in [false, true] {
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
        if is_mended {
            poke(&store, "other").await;
        }
        let commit = TurnCommit::empty(1);
        store.commit_turn(&lease.token, commit.clone()).await.expect("it is committed");
        let again = store.commit_turn(&lease.token, commit).await.expect_err("the lease has ended");
        assert_eq!(again.kind, ProviderErrorKind::LeaseLost);
        assert_eq!(set_aside_in_the_end(&file, &store).await, [], "they are consumed");
        assert_eq!(store.gauges().await.expect("it counts").messages, 0);
        poke(&store, "torn").await;
        assert_eq!(fetched(&store).await.messages.len(), 1, "the instance goes on");
    }
}

/// The queue is mended while an activity of the torn leaf runs.
#[tokio::test]
async fn g6_an_activity_that_runs_while_its_queue_is_mended_is_renewed_and_finished_once() {
    for session in [None, Some("s")] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "torn", String::new()).await;
        enqueue(&store, "torn", 2, text(0, 0), session).await;
        let lease = try_work(&store).await.expect("it is ready");
        let store = torn_at(&file, store, &text(0, 0)).await;
        enqueue(&store, "torn", 3, String::new(), session).await;
        store.renew(&lease.token, LONG).await.expect("it is renewed");
        let outcome = || Outcome { completion: Some(completion("torn", 2).into()) };
        store.finish_work(&lease.token, outcome()).await.expect("it ends");
        let again = store.finish_work(&lease.token, outcome()).await.expect_err("it has ended");
        assert_eq!(again.kind, ProviderErrorKind::LeaseLost);
        assert_eq!(fetched(&store).await.messages.len(), 1, "its completion is sent once");
        let other = try_work(&store).await.expect("the other is ready");
        assert!(matches!(other.item, WorkItem::ActivityExecute { id: 3, .. }), "{:?}", other.item);
        assert_eq!(store.set_aside(None).await.expect("it lists"), []);
    }
}

/// S12: the holder of an activity that was withdrawn is told so, although its row cannot be read.
#[tokio::test]
async fn g6_the_holder_of_a_torn_activity_is_told_that_it_was_withdrawn_after_its_queue_was_mended() {
    for is_mended in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "torn", String::new()).await;
        enqueue(&store, "torn", 2, text(0, 0), None).await;
        let lease = try_work(&store).await.expect("it is ready");
        let store = torn_at(&file, store, &text(0, 0)).await;
        if is_mended {
            enqueue(&store, "other", 3, String::new(), None).await;
        }
        poke(&store, "torn").await;
        let turn = fetched(&store).await;
        let instance = "torn".to_owned();
        let cancelled = vec![ScheduledActivityIdentifier { instance, execution_id: 1, activity_id: 2 }];
        let commit = TurnCommit { cancelled, ..TurnCommit::empty(1) };
        store.commit_turn(&turn.token, commit).await.expect("it is withdrawn");
        let renewed = store.renew(&lease.token, LONG).await.expect_err("it is gone");
        assert_eq!(renewed.kind, ProviderErrorKind::Withdrawn);
    }
}

/// A row that was given up where it is must not come back with the others.
#[tokio::test]
async fn g6_what_was_consumed_beside_a_torn_leaf_is_not_delivered_again_when_the_queue_is_mended() {
    const ROWS: usize = 40;
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..ROWS {
        let item = start_with(&format!("i{number:03}"), text(number, PAGE / 4));
        store.start(item.into(), Vec::new()).await.expect("it is started");
    }
    let store = torn_at(&file, store, &text(10, 0)).await;
    let mut begun = 0;
    while let Some(lease) = try_turn(&store).await {
        commit_first(&store, &lease).await;
        begun += 1;
    }
    let given_up = "SELECT count(*) FROM torn_messages WHERE until IS NULL";
    let count = |sql: &str| raw(&file.path).query_row(sql, [], |row| row.get::<_, i64>(0));
    assert!(count(given_up).expect("it counts") > 0, "some could not be removed");
    for number in 0..ROWS {
        poke_text(&store, &format!("i{number:03}"), text(500 + number, PAGE / 4)).await;
    }
    // The last leaf is torn too.
    let store = torn_at(&file, store, &text(500 + ROWS - 1, 0)).await;
    poke(&store, "i000").await;
    let mut poked = 0;
    while let Some(lease) = try_turn(&store).await {
        assert!(lease.messages.iter().all(|message| matches!(message.item, WorkItem::ExternalRaised { .. })));
        store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
        poked += lease.messages.len();
    }
    assert!(poked > begun / 2, "{poked}");
    assert_eq!(count("SELECT count(*) FROM torn_messages").expect("it counts"), 0, "the queue is whole");
}

async fn poke_text(store: &SqliteProvider, instance: &str, data: String) {
    let (instance, name) = (instance.to_owned(), "poke".to_owned());
    store.send(vec![WorkItem::ExternalRaised { instance, name, data }.into()]).await.expect("it is sent");
}

/// What was set aside on a torn leaf can be tried again after the queue was mended, and is set aside again.
#[tokio::test]
async fn g6_what_was_set_aside_before_its_queue_is_mended_can_be_tried_again() {
    const ROWS: usize = 40;
    for queue in [Queue::Orchestrator, Queue::Worker] {
        let file = Torn::new();
        let store = file.open().await;
        for number in 0..ROWS {
            let id = format!("i{number:03}");
            match queue {
                Queue::Orchestrator => {
                    let item = start_with(&id, text(number, PAGE / 4));
                    store.start(item.into(), Vec::new()).await.expect("it is started");
                }
                Queue::Worker => enqueue(&store, &id, number, text(number, PAGE / 4), None).await,
            }
        }
        let store = torn_at(&file, store, &text(10, 0)).await;
        while let Some(lease) = try_turn(&store).await {
            commit_first(&store, &lease).await;
        }
        while let Some(lease) = try_work(&store).await {
            store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
        }
        let first = set_aside_in_the_end(&file, &store).await;
        assert!(!first.is_empty());
        poke_text(&store, "i000", text(500, 0)).await;
        enqueue(&store, "i000", 500, text(500, 0), None).await;
        close(store).await;
        tear_leaf(&file.path, &text(500, 0));
        tear_leaf(&file.path, &text(500, 0));
        let store = file.open().await;
        poke_text(&store, "i000", String::new()).await;
        enqueue(&store, "i000", 501, String::new(), None).await;
        let generations = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'damaged_*_1'";
        let count = raw(&file.path).query_row(generations, [], |row| row.get::<_, i64>(0));
        assert_eq!(count.expect("it counts"), 2, "both queues are mended");
        while let Some(lease) = try_turn(&store).await {
            commit_first_or_next(&store, &lease).await;
        }
        while let Some(lease) = try_work(&store).await {
            store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
        }
        let ids = |rows: &[SetAside]| -> BTreeSet<u64> { rows.iter().map(|row| row.id).collect() };
        let before = set_aside_in_the_end(&file, &store).await;
        assert!(ids(&first).is_subset(&ids(&before)), "they are still set aside");
        for row in &first {
            store.retry_set_aside(row.id).await.expect("it is tried again");
        }
        let after = set_aside_in_the_end(&file, &store).await;
        assert_eq!(after.len(), before.len(), "each is set aside again");
        assert!(
            after.iter().all(|row| row.instance.as_ref().is_some_and(|id| id.starts_with('i'))),
            "{after:?}"
        );
    }
}

async fn commit_first_or_next(store: &SqliteProvider, lease: &TurnLease) {
    match lease.last_event_id {
        0 => commit_first(store, lease).await,
        _ => _ = store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed"),
    }
}

/// The two stores are as two processes: one mends the queue, and the other goes on with it.
#[tokio::test]
async fn g6_a_queue_that_another_process_mends_is_mended_once() {
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..40 {
        let item = start_with(&format!("i{number:03}"), text(number, PAGE / 4));
        store.start(item.into(), Vec::new()).await.expect("it is started");
    }
    let one = torn_at(&file, store, &text(39, 0)).await;
    let other = file.open().await;
    for (number, store) in [&one, &other, &one, &other].into_iter().enumerate() {
        let id = format!("new{number}");
        store.start(start(&id).into(), Vec::new()).await.expect("it is started");
    }
    let mut begun = BTreeSet::new();
    while let Some(lease) = try_turn(&other).await {
        commit_first(&one, &lease).await;
        assert!(begun.insert(lease.instance.clone()), "{} is delivered once", lease.instance);
    }
    assert!(begun.len() >= 40, "{}", begun.len());
    let generations = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'damaged_*'";
    let count = raw(&file.path).query_row(generations, [], |row| row.get::<_, i64>(0));
    assert_eq!(count.expect("it counts"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_calls_that_meet_a_torn_last_leaf_at_the_same_time_are_all_answered() {
    const CALLS: usize = 50;
    let file = Torn::new();
    let store = file.open().await;
    store.start(start_with("torn", text(0, 0)).into(), Vec::new()).await.expect("it is started");
    let store = torn_at(&file, store, &text(0, 0)).await;
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let mine = Arc::clone(&store);
            tokio::spawn(async move {
                let ask = || mine.start(start(&format!("i{number}")).into(), Vec::new());
                loop {
                    match ask().await {
                        // It shared a transaction with a call that met the leaf.
                        Err(error) if error.is_retryable() => {}
                        answered => return answered,
                    }
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("it returns").expect("it is answered");
    }
    let generations = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'damaged_*'";
    let count = raw(&file.path).query_row(generations, [], |row| row.get::<_, i64>(0));
    assert_eq!(count.expect("it counts"), 1);
}
