//! G6: other ways in which a page is torn: in a part, as an older version of itself, in one row, at the root.
//! Each row is delivered or set aside, and no fetch fails.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    MAX_UNREADABLE_ATTEMPTS, Outcome, ProviderErrorKind, Store, TurnCommit, UNREADABLE_RETRY,
};

use super::row::{Torn, try_turn, try_work};
use super::{PAGE, begin, close, event, fetched, poke, tear_leaf};
use crate::stage::{LONG, activity, named, raw, start, start_with, started, turn_request};

const ROWS: usize = 40;

fn text(number: usize, length: usize) -> String {
    format!("leaf {number:03} {}", "x".repeat(length))
}

/// Returns the first leaf of a table with a text.
fn leaf_of(path: &Path, text: &str) -> usize {
    let bytes = std::fs::read(path).expect("the file");
    let has = |page: &[u8]| page.windows(text.len()).any(|window| window == text.as_bytes());
    bytes.chunks_exact(PAGE).position(|page| page[0] == 0x0d && has(page)).expect("a leaf")
}

fn write_at(path: &Path, bytes: &[u8], at: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    file.write_all_at(bytes, at as u64).expect("it is written");
}

fn number(path: &Path, sql: &str) -> i64 {
    raw(path).query_row(sql, [], |row| row.get(0)).expect("it counts")
}

fn tables_left_behind(path: &Path) -> i64 {
    number(path, "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'damaged_*'")
}

/// How a leaf is torn.
#[derive(Debug, Clone, Copy)]
enum Tear {
    /// All of it is zero.
    Zero,
    /// It has this byte from here on.
    Tail(u8, usize),
    /// It has this byte up to here.
    Head(u8, usize),
    /// It is what it was before its last row was added.
    Stale,
}

async fn start_rows(store: &SqliteProvider, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let item = start_with(&format!("i{number:03}"), text(number, PAGE / 4));
        store.start(item.into(), Vec::new()).await.expect("it is started");
    }
}

/// Makes a file whose queue has [`ROWS`] starts, the leaf of one of them torn.
async fn torn_otherwise(how: Tear, which: usize) -> Torn {
    let file = Torn::new();
    let store = file.open().await;
    start_rows(&store, 0..which).await;
    close(store).await;
    let bytes = std::fs::read(&file.path).expect("the file");
    let last = leaf_of(&file.path, &text(which - 1, 0));
    let before = bytes[last * PAGE..(last + 1) * PAGE].to_vec();
    let store = file.open().await;
    start_rows(&store, which..ROWS).await;
    close(store).await;
    let at = leaf_of(&file.path, &text(which, 0)) * PAGE;
    match how {
        Tear::Zero => write_at(&file.path, &[0; PAGE], at),
        Tear::Tail(byte, from) => write_at(&file.path, &vec![byte; PAGE - from], at + from),
        Tear::Head(byte, to) => write_at(&file.path, &vec![byte; to], at),
        Tear::Stale => write_at(&file.path, &before, at),
    }
    file
}

/// Fetches and commits all that can be delivered, until what cannot is set aside. Returns the instances of
/// both.
async fn settle(file: &Torn, store: &SqliteProvider) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut begun = BTreeSet::new();
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        while let Some(lease) =
            store.fetch_turn(turn_request(1_000 * LONG, Duration::ZERO)).await.expect("no fetch fails")
        {
            let commit = TurnCommit {
                events: vec![event(&lease.instance, 1, None, started())],
                metadata: named("Running"),
                ..TurnCommit::empty(1)
            };
            store.commit_turn(&lease.token, commit).await.expect("it is committed");
            assert!(begun.insert(lease.instance.clone()), "{} is delivered once", lease.instance);
        }
        file.clock.advance(UNREADABLE_RETRY);
    }
    let aside = store.set_aside(None).await.expect("it lists");
    (begun, aside.into_iter().filter_map(|row| row.instance).collect())
}

async fn assert_each_is_delivered_or_set_aside(how: Tear, which: usize) {
    let file = torn_otherwise(how, which).await;
    let store = file.open().await;
    store.start(start("new").into(), Vec::new()).await.expect("other instances go on");
    let (begun, aside) = settle(&file, &store).await;
    let case = format!("{how:?} at {which}: {} begun, aside {aside:?}", begun.len());
    assert!(begun.contains("new") && begun.is_disjoint(&aside), "{case}");
    assert_eq!(begun.len() + aside.len(), ROWS + 1, "{case}");
    assert!(aside.len() <= 4, "{case}");
}

#[tokio::test]
async fn g6_rows_of_a_leaf_that_is_zero_are_set_aside_and_the_others_delivered() {
    for which in [10, ROWS - 1] {
        assert_each_is_delivered_or_set_aside(Tear::Zero, which).await;
    }
}

#[tokio::test]
async fn g6_rows_of_a_partly_torn_leaf_are_delivered_or_set_aside_and_no_fetch_fails() {
    for how in [
        Tear::Tail(0, 512),
        Tear::Tail(0, 2048),
        Tear::Tail(0xff, 512),
        Tear::Tail(0xff, 2048),
        Tear::Head(0, 512),
        Tear::Head(0xff, 512),
    ] {
        for which in [10, ROWS - 1] {
            assert_each_is_delivered_or_set_aside(how, which).await;
        }
    }
}

/// The row that was added last is indexed, and is not there.
#[tokio::test]
async fn g6_rows_of_an_older_version_of_a_leaf_are_delivered_or_set_aside_and_no_fetch_fails() {
    for which in [10, ROWS - 1] {
        assert_each_is_delivered_or_set_aside(Tear::Stale, which).await;
    }
}

/// Flips bits of the header of one row: its count of attempts is NULL.
fn flip(path: &Path, marker: &str) {
    let page = leaf_of(path, marker);
    let bytes = std::fs::read(path).expect("the file");
    let page_bytes = &bytes[page * PAGE..(page + 1) * PAGE];
    let text_at =
        page_bytes.windows(marker.len()).position(|window| window == marker.as_bytes()).expect("a text");
    let header = page_bytes[..text_at].windows(3).rposition(|window| window == [0x08, 0x00, 0x09]);
    write_at(path, &[0], page * PAGE + header.expect("a header"));
}

#[tokio::test]
async fn g6_a_row_with_flipped_bits_is_in_the_way_of_no_other() {
    for tears_last in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        start_rows(&store, 0..ROWS).await;
        close(store).await;
        flip(&file.path, &text(10, 0));
        if tears_last {
            tear_leaf(&file.path, &text(ROWS - 1, 0));
        }
        let store = file.open().await;
        store.start(start("new").into(), Vec::new()).await.expect("other instances go on");
        let (begun, aside) = settle(&file, &store).await;
        assert!(begun.contains("new") && !begun.contains("i010") && aside.contains("i010"), "{aside:?}");
        assert_eq!(begun.len() + aside.len(), ROWS + 1, "{aside:?}");
    }
}

/// The leaves behind a torn root may be whole, and `.recover` finds them.
#[tokio::test]
async fn g6_a_queue_whose_root_is_torn_is_left_as_it_is_and_the_error_names_the_remedy() {
    let file = Torn::new();
    let store = file.open().await;
    start_rows(&store, 0..ROWS).await;
    close(store).await;
    let root = number(&file.path, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'");
    write_at(&file.path, &[0xff; PAGE], (usize::try_from(root).expect("a page") - 1) * PAGE);
    let store = file.open().await;
    for _ in 0..3 {
        let refused = store.start(start("new").into(), Vec::new()).await.expect_err("it has no place");
        assert_eq!(refused.kind, ProviderErrorKind::Corrupt);
        assert!(refused.message.contains(".recover"), "{}", refused.message);
        file.clock.advance(2 * LONG);
    }
    assert_eq!(tables_left_behind(&file.path), 0);
}

/// Each table that is left behind keeps its pages, so there is a bound.
#[tokio::test]
async fn g6_a_queue_leaves_no_more_than_eight_damaged_tables_behind() {
    let file = Torn::new();
    let mut refused = 0;
    for round in 0..12 {
        let store = file.open().await;
        let item = start_with(&format!("i{round:03}"), text(round, PAGE / 4));
        refused += i32::from(store.start(item.into(), Vec::new()).await.is_err());
        close(store).await;
        if refused == 0 {
            tear_leaf(&file.path, &text(round, 0));
        }
    }
    assert_eq!(tables_left_behind(&file.path), 8);
    assert!(refused > 0, "the last ones are refused");
}

async fn ask(store: Arc<SqliteProvider>, id: String) -> Result<(), ProviderErrorKind> {
    loop {
        match store.start(start(&id).into(), Vec::new()).await {
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.kind),
            Ok(_) => return Ok(()),
        }
    }
}

/// The two stores are as two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_calls_of_two_processes_that_meet_a_torn_leaf_together_are_all_answered() {
    for _ in 0..3 {
        let file = Torn::new();
        let store = file.open().await;
        start_rows(&store, 0..100).await;
        close(store).await;
        tear_leaf(&file.path, &text(99, 0));
        let stores = [file.open().await, file.open().await];
        let calls: Vec<_> = (0..60)
            .map(|number| tokio::spawn(ask(Arc::clone(&stores[number % 2]), format!("new{number}"))))
            .collect();
        for call in calls {
            call.await.expect("it returns").expect("it is answered");
        }
        assert_eq!(tables_left_behind(&file.path), 1);
    }
}

/// The call that mends the queue is dropped; the others of the process wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_calls_that_wait_for_a_mend_whose_call_is_dropped_are_all_answered() {
    for round in 0..8 {
        let file = Torn::new();
        let store = file.open().await;
        start_rows(&store, 0..100).await;
        close(store).await;
        tear_leaf(&file.path, &text(99, 0));
        let store = file.open().await;
        let calls: Vec<_> =
            (0..20).map(|number| tokio::spawn(ask(Arc::clone(&store), format!("new{number}")))).collect();
        for call in calls.iter().take(4) {
            for _ in 0..(round * 40) {
                tokio::task::yield_now().await;
            }
            call.abort();
        }
        for call in calls {
            if let Ok(answer) = call.await {
                answer.expect("it is answered");
            }
        }
    }
}

/// The lease was granted before the queue was mended.
#[tokio::test]
async fn g6_a_leased_start_whose_queue_is_mended_is_renewed_and_consumed() {
    let file = Torn::new();
    let store = file.open().await;
    store.start(start_with("torn", text(0, 0)).into(), Vec::new()).await.expect("it is started");
    let lease = fetched(&store).await;
    close(store).await;
    tear_leaf(&file.path, &text(0, 0));
    let store = file.open().await;
    poke(&store, "other").await;
    assert_eq!(tables_left_behind(&file.path), 1);
    store.renew(&lease.token, LONG).await.expect("it is renewed");
    let commit = TurnCommit {
        events: vec![event("torn", 1, None, started())],
        metadata: named("Running"),
        ..TurnCommit::empty(1)
    };
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
    assert_eq!(number(&file.path, "SELECT count(*) FROM messages WHERE starts = 1"), 0);
}

/// A build that does not write down which messages a lease holds: those before another of its messages.
#[tokio::test]
async fn g6_a_turn_of_an_older_build_consumes_its_torn_messages() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "a", String::new()).await;
    for number in 0..20 {
        let (instance, name) = ("a".to_owned(), "poke".to_owned());
        let item = WorkItem::ExternalRaised { instance, name, data: text(number, PAGE / 4) };
        store.send(vec![item.into()]).await.expect("it is sent");
    }
    let lease = fetched(&store).await;
    assert_eq!(lease.messages.len(), 20);
    let (instance, name) = ("a".to_owned(), "poke".to_owned());
    let item = WorkItem::ExternalRaised { instance, name, data: text(500, 0) };
    store.send(vec![item.into()]).await.expect("it is sent");
    raw(&file.path).execute("UPDATE instances SET batch = NULL", []).expect("as an older build");
    close(store).await;
    tear_leaf(&file.path, &text(5, 0));
    tear_leaf(&file.path, &text(500, 0));
    let store = file.open().await;
    poke(&store, "a").await;
    assert_eq!(tables_left_behind(&file.path), 1);
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    let next = fetched(&store).await;
    assert_eq!(next.messages.len(), 1, "what was sent since");
    store.commit_turn(&next.token, TurnCommit::empty(1)).await.expect("it is committed");
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        assert!(try_turn(&store).await.is_none());
        file.clock.advance(UNREADABLE_RETRY);
    }
    let aside = store.set_aside(None).await.expect("it lists").len();
    assert!((1..=3).contains(&aside), "{aside}: what stood on the last leaf and may not have been leased");
}

/// S13: the end of an activity is an activity of its session, unless another has claimed the session since.
#[tokio::test]
async fn g6_finishing_an_activity_whose_queue_was_mended_is_an_activity_of_its_session() {
    let mut moved = Vec::new();
    for tears in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "a", String::new()).await;
        let mut work = activity("a", 2, Some("s"), None);
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = text(0, 0);
        }
        store.enqueue_work(work).await.expect("it is queued");
        let lease = try_work(&store).await.expect("it is ready");
        close(store).await;
        if tears {
            tear_leaf(&file.path, &text(0, 0));
        }
        let store = file.open().await;
        store.enqueue_work(activity("a", 3, None, None)).await.expect("it is queued");
        file.clock.advance(LONG / 2);
        let before = store.sessions(None).await.expect("it lists")[0].last_activity_at_ms;
        store.renew(&lease.token, LONG).await.expect("it is renewed");
        store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
        moved.push(store.sessions(None).await.expect("it lists")[0].last_activity_at_ms - before);
    }
    assert!(moved[0] > 0 && moved[0] == moved[1], "{moved:?}");
}

/// A delayed message stands in its place with its time, and behind what was due before.
#[tokio::test]
async fn g6_a_delayed_message_whose_queue_is_mended_is_looked_at_when_it_is_due() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "a", String::new()).await;
    let (instance, name) = ("a".to_owned(), "poke".to_owned());
    let item = WorkItem::ExternalRaised { instance, name, data: text(0, 0) };
    let message = steadfast_store::Message::from(item);
    let delayed = steadfast_store::Envelope { message, delay: Some(100 * LONG) };
    store.send(vec![delayed]).await.expect("it is sent");
    close(store).await;
    tear_leaf(&file.path, &text(0, 0));
    let store = file.open().await;
    poke(&store, "a").await;
    let lease = fetched(&store).await;
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    let looked_at = "SELECT count(*) FROM messages WHERE state = 0 AND attempts > 0";
    file.clock.advance(99 * LONG);
    assert!(try_turn(&store).await.is_none());
    assert_eq!(number(&file.path, looked_at), 0, "it is not due yet");
    file.clock.advance(LONG);
    assert!(try_turn(&store).await.is_none());
    assert_eq!(number(&file.path, looked_at), 1);
}
