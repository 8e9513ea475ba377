//! S22 on torn pages: what can be read again has its terms, its deliveries and its tries.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use steadfast_core::{
    AppErrorKind, CallTerms, ErrorDetails, Failure, FailureKind, Policy, TagFilter, WorkItem,
};
use steadfast_store::{EndedTry, Message, NewWork, Outcome, Store, Tries, UNREADABLE_RETRY};

use super::row::{Torn, try_turn, try_work};
use super::{PAGE, begin, close, tear_leaf};
use crate::stage::{LONG, activity, raw, work_request};

const MARK: &str = "the mark";

fn called(id: u64, session: Option<&str>, text: &str) -> NewWork {
    let mut work = activity("a", id, session, Some("gpu"));
    if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
        *input = text.to_owned();
    }
    let terms = CallTerms { policy: Some(Policy::tries(3)), ..CallTerms::of_key(format!("key {id}")) };
    NewWork { call: Some(Box::new(terms)), ..work }
}

fn failed(error: &str) -> EndedTry {
    EndedTry { error: error.to_owned(), retry_after: Duration::ZERO }
}

/// Tears the leaf with the mark. Returns the pages as they were.
fn tear_mark(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let whole = std::fs::read(path).expect("the file");
    tear_leaf(path, MARK);
    let torn = std::fs::read(path).expect("the file");
    let pages = whole.chunks(PAGE).zip(torn.chunks(PAGE)).enumerate();
    let changed = pages.filter(|(_, (whole, torn))| whole != torn);
    changed.map(|(page, (whole, _))| ((page * PAGE) as u64, whole.to_vec())).collect()
}

/// Gives the disk its pages back.
fn heal(path: &Path, pages: &[(u64, Vec<u8>)]) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    for (at, bytes) in pages {
        file.write_all_at(bytes, *at).expect("it is written");
    }
}

#[tokio::test]
async fn s22_an_activity_that_can_be_read_again_has_its_terms_and_tries() {
    for session in [None, Some("s")] {
        let file = Torn::new();
        let store = file.open().await;
        store.enqueue_work(called(2, session, MARK)).await.expect("it is queued");
        let first = try_work(&store).await.expect("it is ready");
        file.clock.advance(LONG / 2);
        store.end_try(&first.token, failed("first")).await.expect("the try ends");
        let second = try_work(&store).await.expect("it is tried again");
        close(store).await;
        let pages = tear_mark(&file.path);
        let store = file.open().await;
        store.enqueue_work(called(3, session, "")).await.expect("the queue gets a new table");
        store.end_try(&second.token, failed("second")).await.expect("the row in its place ends the try");
        let other = try_work(&store).await.expect("the other is ready");
        assert_eq!(other.call, called(3, session, "").call);
        assert!(try_work(&store).await.is_none(), "the torn one is held back");
        heal(&file.path, &pages);
        file.clock.advance(UNREADABLE_RETRY);
        let third = try_work(&store).await.expect("it can be read");
        assert_eq!(third.call, called(2, session, "").call);
        assert_eq!((third.attempt, third.delivery), (1, 3));
        let (last_error, first_fetched_ms) = (Some("second".to_owned()), first.tries.first_fetched_ms);
        assert_eq!(third.tries, Tries { ended: 2, last_error, first_fetched_ms });
    }
}

#[tokio::test]
async fn s22_a_completion_that_can_be_read_again_has_its_failure() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "a", String::new()).await;
    store.enqueue_work(called(2, None, "")).await.expect("it is queued");
    let lease = try_work(&store).await.expect("it is ready");
    let item = WorkItem::ActivityFailed {
        instance: "a".to_owned(),
        execution_id: 1,
        id: 2,
        details: ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: MARK.to_owned(),
            retryable: false,
        },
    };
    let failure = Failure { kind: FailureKind::Timeout, data: None, tries: 3, elapsed_ms: 900 };
    let completion = Message { failure: Some(Box::new(failure)), ..item.into() };
    let outcome = Outcome { completion: Some(completion.clone()) };
    store.finish_work(&lease.token, outcome).await.expect("it ends");
    close(store).await;
    let pages = tear_mark(&file.path);
    let store = file.open().await;
    super::poke(&store, "other").await;
    assert!(try_turn(&store).await.is_none(), "it is held back");
    heal(&file.path, &pages);
    file.clock.advance(UNREADABLE_RETRY);
    let turn = try_turn(&store).await.expect("it can be read");
    assert_eq!(turn.messages, [completion]);
}

/// S15: terms or a failure that are no JSON are like a text that is none.
#[tokio::test]
async fn s22_what_stands_beside_a_text_and_cannot_be_read_is_set_aside_with_it() {
    for damage in ["'{'", "x'ff'"] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "a", String::new()).await;
        store.enqueue_work(called(2, None, "")).await.expect("it is queued");
        super::poke(&store, "a").await;
        let terms = called(2, None, "").call;
        let raw = raw(&file.path);
        raw.execute(&format!("UPDATE work SET call = CAST({damage} AS TEXT)"), []).expect("it is damaged");
        raw.execute(&format!("UPDATE messages SET failure = CAST({damage} AS TEXT)"), []).expect("damage");
        let aside = file.wait_for_set_aside(&store).await;
        assert_eq!(aside.len(), 2, "{aside:?}");
        assert!(aside.iter().all(|row| row.payload.starts_with('{')), "{aside:?}");
        let waiting = store.work_of("a", 1).await.expect("it answers");
        assert!(waiting.is_empty(), "{waiting:?}");
        let text = serde_json::to_string(&terms).expect("terms are JSON");
        raw.execute("UPDATE set_aside SET call = ?1, failure = NULL", [text]).expect("it is repaired");
        for row in &aside {
            store.retry_set_aside(row.id).await.expect("it is tried again");
        }
        let request = work_request(Duration::ZERO, TagFilter::tags(["gpu"]));
        let lease = store.fetch_work(request).await.expect("it fetches").expect("it can be read");
        assert_eq!((lease.attempt, lease.delivery, lease.call), (1, 1, terms));
        assert_eq!(try_turn(&store).await.expect("it can be read").messages.len(), 1);
    }
}
