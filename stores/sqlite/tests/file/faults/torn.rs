//! G6, G17: a history that SQLite cannot read is the trouble of its instance alone.

mod beside;
mod end;
mod expired;
mod held;
mod keep;
mod left;
mod mend;
mod open;
mod partly;
mod row;
mod timer;
mod trail;
mod tries;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{Abandon, Attempt, History, ProviderErrorKind, Store, TurnCommit, TurnLease};

use crate::stage::{LONG, event, named, open, place, raw, start, started, turn_request};

const PAGE: usize = 4096;

/// Fills pages of the file that hold nothing else.
fn big() -> String {
    "q".repeat(16 * PAGE)
}

/// Closes a store, with all that it holds in the file itself.
async fn close(store: Arc<SqliteProvider>) {
    store.checkpoint().await.expect("the log is written back");
}

/// Overwrites a page in the middle of a big value, as a torn write does. The store must be closed.
fn tear(path: &Path) {
    let bytes = std::fs::read(path).expect("the file");
    let is_inside = |page: &&[u8]| page[4..].iter().all(|byte| *byte == b'q');
    let pages: Vec<usize> = bytes
        .chunks_exact(PAGE)
        .enumerate()
        .filter(|(_, page)| is_inside(page))
        .map(|(number, _)| number)
        .collect();
    overwrite(path, *pages.get(pages.len() / 2).expect("a page of the big value"));
}

/// Overwrites the first leaf of a table that has this text in it. The store must be closed.
fn tear_leaf(path: &Path, text: &str) {
    const LEAF_OF_TABLE: u8 = 0x0d;
    let bytes = std::fs::read(path).expect("the file");
    let has_text = |page: &[u8]| page.windows(text.len()).any(|window| window == text.as_bytes());
    let mut pages = bytes.chunks_exact(PAGE);
    let page = pages.position(|page| page[0] == LEAF_OF_TABLE && has_text(page));
    overwrite(path, page.expect("a leaf with the text"));
}

fn overwrite(path: &Path, page: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    file.write_all_at(&[0xff; PAGE], (page * PAGE) as u64).expect("it is written");
}

async fn fetched(store: &SqliteProvider) -> TurnLease {
    let fetch = store.fetch_turn(turn_request(LONG, Duration::ZERO));
    fetch.await.expect("no other instance is in the way").expect("an instance is ready")
}

/// Begins an instance with an event of this text.
async fn begin(store: &SqliteProvider, instance: &str, text: String) {
    store.start(start(instance).into(), Vec::new()).await.expect("it is started");
    let lease = fetched(store).await;
    let mut kind = started();
    if let steadfast_core::EventKind::OrchestrationStarted { input, .. } = &mut kind {
        *input = text;
    }
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![event(instance, 1, None, kind)],
        metadata: named("Running"),
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
}

/// A message that the instances of these tests get.
async fn poke(store: &SqliteProvider, instance: &str) {
    let (instance, name, data) = (instance.to_owned(), "poke".to_owned(), String::new());
    let poke = steadfast_core::WorkItem::ExternalRaised { instance, name, data };
    store.send(vec![poke.into()]).await.expect("it is sent");
}

#[tokio::test]
async fn a_history_on_a_torn_page_is_reported_in_its_lease_and_delays_no_other() {
    const OTHERS: usize = 50;
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    begin(&store, "torn", big()).await;
    for number in 0..OTHERS {
        begin(&store, &format!("i{number}"), String::new()).await;
    }
    close(store).await;
    tear(&path);

    let store = open(&path, SqliteOptions::default()).await;
    poke(&store, "torn").await;
    for number in 0..OTHERS {
        poke(&store, &format!("i{number}")).await;
    }
    let lease = fetched(&store).await;
    assert_eq!((lease.instance.as_str(), lease.attempt), ("torn", 1), "it is leased and counted");
    assert!(matches!(lease.history, History::Damaged(_)), "{:?}", lease.history);
    let counted = Abandon { retry_after: Some(LONG), attempt: Attempt::Counts };
    store.abandon(&lease.token, counted).await.expect("it is held back");
    // One fetch for each of the others.
    for number in 0..OTHERS {
        let lease = fetched(&store).await;
        assert_eq!(lease.instance, format!("i{number}"));
        assert!(matches!(lease.history, History::Whole(_)));
        store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    }
    // Its end can still be recorded, and what reads all of it is told.
    let refused = store.read_history("torn", None).await.expect_err("it cannot be read");
    assert_eq!(refused.kind, ProviderErrorKind::Corrupt);
}

#[tokio::test]
async fn the_end_of_an_instance_with_a_torn_page_can_be_committed() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    begin(&store, "torn", big()).await;
    close(store).await;
    tear(&path);
    let store = open(&path, SqliteOptions::default()).await;
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    let output = steadfast_core::EventKind::OrchestrationCompleted { output: "ended".to_owned() };
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![event("torn", lease.last_event_id + 1, None, output)],
        metadata: named("Failed"),
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.expect("events can be appended");
    // Retention goes past what it cannot delete.
    begin(&store, "other", String::new()).await;
    poke(&store, "other").await;
    let lease = fetched(&store).await;
    let metadata = named("Completed");
    let commit = TurnCommit { execution_id: 1, metadata, ..TurnCommit::default() };
    store.commit_turn(&lease.token, commit).await.expect("it ends");
    let deleted = store.delete_ended(Duration::ZERO, 10).await.expect("it goes on");
    assert_eq!(deleted.instances_deleted, 1);
    assert!(store.state("other").await.expect("it reads").is_none());
    assert!(store.state("torn").await.expect("its row can be read").is_some());
}

/// G17: the history of an instance without a row is looked at when it is leased.
#[tokio::test]
async fn an_instance_without_a_row_whose_first_event_is_no_text_delays_no_other() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    store
        .append_history("rowless", 1, vec![event("rowless", 1, None, started())])
        .await
        .expect("it is there");
    raw(&path).execute("UPDATE history SET event = CAST(x'ff00fe' AS TEXT)", []).expect("it is damaged");
    poke(&store, "rowless").await;
    store.start(start("other").into(), Vec::new()).await.expect("it is started");
    let lease = fetched(&store).await;
    assert_eq!((lease.instance.as_str(), lease.name.as_str()), ("rowless", "unknown"));
    assert!(matches!(lease.history, History::Unreadable(_)), "{:?}", lease.history);
    assert_eq!(fetched(&store).await.instance, "other");
    assert!(
        store.state("rowless").await.expect("it answers").is_none(),
        "its history does not say who it is"
    );
}
