//! G6: a message or an activity on a torn page, which SQLite can neither read, change nor remove, is held
//! back, set aside in the end, and in the way of nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{ScheduledActivityIdentifier, TagFilter, WorkItem};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Envelope, History, MAX_UNREADABLE_ATTEMPTS, NewWork, Outcome, Owner, ProviderErrorKind, Queue,
    SessionRequest, SessionScope, SetAside, Started, Store, TurnCommit, TurnLease, UNREADABLE_RETRY,
    WorkLease, WorkRequest,
};

use super::{PAGE, begin, big, close, event, fetched, poke, tear, tear_leaf};
use crate::stage::{
    LONG, activity, named, open, place, raw, start, start_with, started, turn_request, work_request,
};

const OTHERS: usize = 50;

/// A file whose store is closed and opened again, by one clock.
pub(super) struct Torn {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
    pub(super) clock: VirtualClock,
}

impl Torn {
    pub(super) fn new() -> Self {
        let (folder, path) = place();
        Self { _folder: folder, path, clock: VirtualClock::new(1_700_000_000_000) }
    }

    pub(super) async fn open(&self) -> Arc<SqliteProvider> {
        open(&self.path, SqliteOptions { clock: Arc::new(self.clock.clone()), ..SqliteOptions::default() })
            .await
    }

    /// Closes the store, tears a page of its one big value, and opens it again.
    pub(super) async fn tear(&self, store: Arc<SqliteProvider>) -> Arc<SqliteProvider> {
        close(store).await;
        tear(&self.path);
        self.open().await
    }

    /// Lets the time pass until a torn row was looked at for the last time. Fetches nothing else.
    pub(super) async fn wait_for_set_aside(&self, store: &SqliteProvider) -> Vec<SetAside> {
        for _ in 0..MAX_UNREADABLE_ATTEMPTS {
            assert_eq!(store.set_aside(None).await.expect("it lists"), [], "it is tried again");
            self.clock.advance(UNREADABLE_RETRY);
            assert!(try_turn(store).await.is_none());
            assert!(try_work(store).await.is_none());
            let aside = store.set_aside(None).await.expect("it lists");
            if !aside.is_empty() {
                return aside;
            }
        }
        panic!("it is not set aside");
    }
}

pub(super) async fn try_turn(store: &SqliteProvider) -> Option<TurnLease> {
    store.fetch_turn(turn_request(2 * LONG, Duration::ZERO)).await.expect("a fetch does not fail")
}

pub(super) async fn try_work(store: &SqliteProvider) -> Option<WorkLease> {
    let session = SessionRequest {
        owner: Owner::unnamed("worker"),
        lock_timeout: 2 * LONG,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest { session: Some(session), ..work_request(Duration::ZERO, TagFilter::Any) };
    store.fetch_work(request).await.expect("a fetch does not fail")
}

pub(super) fn big_poke(instance: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "poke".to_owned(), data: big() }
}

pub(super) fn big_activity(instance: &str, id: u64, session: Option<&str>) -> NewWork {
    let mut work = activity(instance, id, session, None);
    if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
        *input = big();
    }
    work
}

pub(super) async fn commit(store: &SqliteProvider, lease: &TurnLease) {
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
}

pub(super) fn assert_torn(aside: &[SetAside], queue: Queue, instance: Option<&str>) {
    let [row] = aside else { panic!("{aside:?}") };
    assert_eq!((row.queue, row.instance.as_deref()), (queue, instance));
    assert_eq!(row.attempts, MAX_UNREADABLE_ATTEMPTS);
    assert!(row.reason.contains("the database cannot read it"), "{}", row.reason);
}

#[tokio::test]
async fn g6_a_message_on_a_torn_page_is_held_back_and_then_set_aside_and_delays_no_other() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    for number in 0..OTHERS {
        begin(&store, &format!("i{number}"), String::new()).await;
    }
    store.send(vec![big_poke("torn").into()]).await.expect("it is sent");
    let store = file.tear(store).await;
    poke(&store, "torn").await;
    for number in 0..OTHERS {
        poke(&store, &format!("i{number}")).await;
    }
    // One fetch for each, and the other message of the instance is delivered.
    for _ in 0..=OTHERS {
        let lease = fetched(&store).await;
        assert_eq!((lease.messages.len(), lease.attempt), (1, 1), "{}", lease.instance);
        commit(&store, &lease).await;
    }
    let aside = file.wait_for_set_aside(&store).await;
    assert_torn(&aside, Queue::Orchestrator, Some("torn"));
    // The instance goes on, ends and is deleted.
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    let end = TurnCommit { execution_id: 1, metadata: named("Completed"), ..TurnCommit::default() };
    store.commit_turn(&lease.token, end).await.expect("it ends");
    assert_eq!(store.gauges().await.expect("it counts").messages, 0);
    let deleted = store.delete_ended(Duration::ZERO, 10).await.expect("it goes on");
    assert_eq!(deleted.instances_deleted, 1);
    assert_eq!(store.set_aside(None).await.expect("it lists"), []);
    assert!(try_turn(&store).await.is_none());
}

#[tokio::test]
async fn g6_a_torn_message_that_was_set_aside_is_tried_again_when_asked_for_and_can_be_dropped() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.send(vec![big_poke("torn").into()]).await.expect("it is sent");
    let store = file.tear(store).await;
    assert!(try_turn(&store).await.is_none());
    let first = file.wait_for_set_aside(&store).await;
    store.retry_set_aside(first[0].id).await.expect("it is tried again");
    assert!(try_turn(&store).await.is_none());
    let second = file.wait_for_set_aside(&store).await;
    assert_torn(&second, Queue::Orchestrator, Some("torn"));
    store.drop_set_aside(second[0].id).await.expect("it is dropped");
    file.clock.advance(LONG);
    assert!(try_turn(&store).await.is_none());
    assert_eq!(store.set_aside(None).await.expect("it lists"), []);
}

#[tokio::test]
async fn g6_an_instance_whose_start_is_torn_can_be_started_again() {
    let file = Torn::new();
    let store = file.open().await;
    store.start(start_with("torn", big()).into(), Vec::new()).await.expect("it is started");
    let store = file.tear(store).await;
    poke(&store, "torn").await;
    assert!(try_turn(&store).await.is_none(), "the message waits for the start");
    let aside = file.wait_for_set_aside(&store).await;
    assert_torn(&aside, Queue::Orchestrator, Some("torn"));
    assert!(try_turn(&store).await.is_none(), "the message is settled as a stray");
    let started = store.start(start("torn").into(), Vec::new()).await.expect("it is started");
    assert_eq!(started, Started::New);
    assert_eq!(fetched(&store).await.messages.len(), 1);
}

#[tokio::test]
async fn g6_a_delayed_message_on_a_torn_page_is_in_the_way_of_no_other_when_its_time_comes() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    begin(&store, "other", String::new()).await;
    for item in [big_poke("torn"), start("late")] {
        store.send(vec![Envelope { delay: Some(LONG), ..item.into() }]).await.expect("it is sent");
    }
    let store = file.tear(store).await;
    assert!(try_turn(&store).await.is_none());
    file.clock.advance(LONG);
    poke(&store, "other").await;
    for expected in ["late", "other"] {
        let lease = fetched(&store).await;
        assert_eq!(lease.instance, expected);
        commit(&store, &lease).await;
    }
    assert_torn(&file.wait_for_set_aside(&store).await, Queue::Orchestrator, Some("torn"));
}

#[tokio::test]
async fn g6_a_torn_message_to_an_instance_that_does_not_exist_is_in_the_way_of_no_other() {
    let file = Torn::new();
    let store = file.open().await;
    store.send(vec![big_poke("unknown").into()]).await.expect("it is sent");
    let store = file.tear(store).await;
    poke(&store, "unknown").await;
    store.start(start("other").into(), Vec::new()).await.expect("it is started");
    assert_eq!(fetched(&store).await.instance, "other");
    assert_torn(&file.wait_for_set_aside(&store).await, Queue::Orchestrator, Some("unknown"));
}

/// A leaf has the rows of several instances. All of them are set aside, and the rest goes on.
#[tokio::test]
async fn g6_messages_on_a_torn_leaf_are_set_aside_and_messages_of_other_pages_go_on() {
    const MESSAGES: usize = 40;
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..MESSAGES {
        let id = format!("i{number:02}");
        let item = start_with(&id, format!("leaf {number:02} {}", "x".repeat(PAGE / 4)));
        store.start(item.into(), Vec::new()).await.expect("it is started");
    }
    close(store).await;
    tear_leaf(&file.path, "leaf 10 ");
    let store = file.open().await;
    let mut leased = 0;
    while try_turn(&store).await.is_some() {
        leased += 1;
    }
    assert!((MESSAGES - 5..MESSAGES).contains(&leased), "{leased} of {MESSAGES}");
    let aside = file.wait_for_set_aside(&store).await;
    assert_eq!(aside.len(), MESSAGES - leased, "each of the others");
    let ids: Vec<_> = aside.iter().filter_map(|row| row.instance.as_deref()).collect();
    assert!(ids.contains(&"i10"), "{ids:?}");
}

#[tokio::test]
async fn g6_an_activity_on_a_torn_page_is_held_back_and_then_set_aside_and_delays_no_other() {
    for session in [None, Some("s")] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "torn", String::new()).await;
        store.enqueue_work(big_activity("torn", 2, session)).await.expect("it is queued");
        let store = file.tear(store).await;
        for number in 0..OTHERS {
            let work = activity(&format!("i{number}"), 2, session, None);
            store.enqueue_work(work).await.expect("it is queued");
        }
        // One fetch for each.
        for number in 0..OTHERS {
            let lease = try_work(&store).await.expect("an activity is ready");
            assert_eq!(lease.item.instance(), format!("i{number}"));
            store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
        }
        assert!(try_work(&store).await.is_none());
        let aside = file.wait_for_set_aside(&store).await;
        assert_torn(&aside, Queue::Worker, Some("torn"));
        store.retry_set_aside(aside[0].id).await.expect("it is tried again");
        assert!(try_work(&store).await.is_none());
        assert_torn(&file.wait_for_set_aside(&store).await, Queue::Worker, Some("torn"));
        assert_eq!(store.gauges().await.expect("it counts").work, 0);
    }
}

/// The lease was granted before the page was torn, and expires.
#[tokio::test]
async fn g6_a_leased_activity_whose_page_is_torn_is_held_back_when_its_lease_has_expired() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.enqueue_work(big_activity("torn", 2, None)).await.expect("it is queued");
    assert!(try_work(&store).await.is_some());
    let store = file.tear(store).await;
    store.enqueue_work(activity("other", 2, None, None)).await.expect("it is queued");
    file.clock.advance(3 * LONG);
    let lease = try_work(&store).await.expect("the other is ready");
    assert_eq!(lease.item.instance(), "other");
    store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    assert_torn(&file.wait_for_set_aside(&store).await, Queue::Worker, Some("torn"));
}

/// A turn can cancel an activity that cannot be removed.
#[tokio::test]
async fn g6_a_torn_activity_can_be_withdrawn_and_its_instance_deleted() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.enqueue_work(big_activity("torn", 2, None)).await.expect("it is queued");
    let store = file.tear(store).await;
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    assert!(matches!(lease.history, History::Whole(_)));
    let instance = "torn".to_owned();
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![event("torn", lease.last_event_id + 1, None, started())],
        cancelled: vec![ScheduledActivityIdentifier { instance, execution_id: 1, activity_id: 2 }],
        metadata: named("Completed"),
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.expect("it is withdrawn");
    file.clock.advance(LONG);
    assert!(try_work(&store).await.is_none());
    assert_eq!(store.set_aside(None).await.expect("it lists"), [], "it is not wanted");
    let deleted = store.delete_ended(Duration::ZERO, 10).await.expect("it is deleted");
    assert_eq!(deleted.instances_deleted, 1);
}

/// What a page of the instances themselves holds cannot be mended: the error says what helps.
#[tokio::test]
async fn g6_the_error_of_a_torn_page_that_every_fetch_needs_names_the_remedy() {
    let file = Torn::new();
    let store = file.open().await;
    store.start(start("the-only-instance").into(), Vec::new()).await.expect("it is started");
    close(store).await;
    tear_leaf(&file.path, "the-only-instance");
    let store = file.open().await;
    let error = store.fetch_turn(turn_request(LONG, LONG)).await.expect_err("it cannot be read");
    assert_eq!(error.kind, ProviderErrorKind::Corrupt);
    assert!(!error.is_retryable(), "a runtime waits before it asks again");
    for part in ["a part of the file is damaged", "restore a backup", ".recover"] {
        assert!(error.message.contains(part), "{error}");
    }
}

/// SQLite does not commit a transaction that has met a torn page, and requests share transactions: the others
/// are told to try again.
#[tokio::test]
async fn g6_a_fetch_that_meets_a_torn_page_fails_no_request_of_the_same_commit_for_good() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.send(vec![big_poke("torn").into()]).await.expect("it is sent");
    let store = file.tear(store).await;
    let mut requests = Vec::new();
    for number in 0..OTHERS {
        let mine = Arc::clone(&store);
        requests.push(tokio::spawn(async move {
            let ask = async || match number % 5 {
                0 => mine.fetch_turn(turn_request(LONG, Duration::ZERO)).await.map(drop),
                _ => mine.start(start(&format!("i{number}")).into(), Vec::new()).await.map(drop),
            };
            match ask().await {
                Err(error) if error.is_retryable() => ask().await,
                answered => answered,
            }
        }));
    }
    for request in requests {
        request.await.expect("it returns").expect("it is not the fault of this request");
    }
    assert!(store.state("torn").await.expect("it reads").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_calls_that_meet_a_torn_row_at_the_same_time_count_one_look() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    store.enqueue_work(big_activity("torn", 2, None)).await.expect("it is queued");
    store.send(vec![big_poke("torn").into()]).await.expect("it is sent");
    close(store).await;
    tear(&file.path);
    let store = file.open().await;
    // The text of the other one cannot be told apart, so one of the two is torn.
    let looks: Vec<_> = (0..OTHERS)
        .map(|_| {
            let mine = Arc::clone(&store);
            tokio::spawn(async move { (try_turn(&mine).await, try_work(&mine).await) })
        })
        .collect();
    for look in looks {
        look.await.expect("it returns");
    }
    assert_eq!(store.set_aside(None).await.expect("it lists"), [], "no time has passed");
    let attempts: i64 = raw(&file.path)
        .query_row(
            "SELECT max(attempts) FROM (SELECT attempts FROM torn_work UNION ALL \
             SELECT attempts FROM torn_messages)",
            [],
            |row| row.get(0),
        )
        .expect("it is listed");
    assert_eq!(attempts, 1);
}
