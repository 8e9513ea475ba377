//! G6: what stands in the place of a torn row decides as the torn row did, and the other rows of a mended
//! queue are what they were.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::Value;
use steadfast_core::{TagFilter, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Abandon, Attempt, Envelope, LeaseToken, MAX_UNREADABLE_ATTEMPTS, Message, Owner, ProviderErrorKind,
    SessionRequest, SessionScope, Store, TurnCommit, UNREADABLE_RETRY, WorkLease, WorkRequest,
};

use super::row::{Torn, try_turn};
use super::{PAGE, begin, close, fetched, poke, tear_leaf};
use crate::stage::{LONG, activity, raw, refusal, start, start_with, work_request, worker};

/// The rows of a table by their ids.
type Rows = BTreeMap<i64, Vec<Value>>;

fn rows(path: &Path, columns: &str, table: &str) -> Rows {
    let file = raw(path);
    let mut statement = file.prepare(&format!("SELECT seq, {columns} FROM {table}")).expect("a statement");
    let count = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| {
        let values = (1..count).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
        Ok((row.get(0)?, values))
    };
    statement.query_map([], read).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
}

/// The definition of a table with its indexes and triggers.
fn objects(path: &Path, table: &str) -> BTreeMap<String, String> {
    let file = raw(path);
    let mut statement = file
        .prepare("SELECT name, sql FROM sqlite_schema WHERE tbl_name = ?1 AND sql IS NOT NULL")
        .expect("a statement");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    statement.query_map([table], read).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
}

const OF_MESSAGE: &str = "key, state, starts, coalesce(due, visible_at), needs_code, token,
    iif(state = 0, visible_at, NULL)";
const OF_WORK: &str =
    "key, execution, activity, state, tag, session, token, locked_until, epoch, route, refused,
    iif(state = 0, visible_at, NULL)";

/// Fills queues with long rows that are in no one's way, and closes the first leaves.
async fn fill(store: &SqliteProvider) {
    for number in 0..20 {
        let item = start_with(&format!("i{number:03}"), "x".repeat(PAGE / 4));
        let delay = Some(10_000 * LONG);
        let message = Message::from(item);
        store.send(vec![Envelope { message, delay }]).await.expect("it is sent");
        let mut work = activity("filler", number, None, Some("filler"));
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = "x".repeat(PAGE / 4);
        }
        store.enqueue_work(work).await.expect("it is queued");
    }
}

fn raised(instance: &str, data: &str) -> WorkItem {
    let (instance, name, data) = (instance.to_owned(), "poke".to_owned(), data.to_owned());
    WorkItem::ExternalRaised { instance, name, data }
}

/// Messages in all states, with a mark on the leaf of the last.
async fn messages_of_all_kinds(store: &SqliteProvider) {
    store.send(vec![raised("a", "leased").into()]).await.expect("it is sent");
    assert_eq!(fetched(store).await.instance, "a");
    poke(store, "a").await;
    store.start(start("b").into(), Vec::new()).await.expect("it is started");
    let message = Message::from(raised("a", "delayed"));
    let delayed = Envelope { message, delay: Some(50 * LONG) };
    store.send(vec![delayed]).await.expect("it is sent");
    let (instance, reason) = ("c".to_owned(), "enough".to_owned());
    let termination = WorkItem::TerminateInstance { instance, reason };
    store.send(vec![termination.into()]).await.expect("it is sent");
    store.send(vec![raised("c", "the mark").into()]).await.expect("it is sent");
}

async fn lease_of(store: &SqliteProvider, tag: &str) -> LeaseToken {
    let request = work_request(Duration::ZERO, TagFilter::Tags([tag.to_owned()].into()));
    store.fetch_work(request).await.expect("it fetches").expect("it is ready").token
}

/// Leases an activity without a tag, on a session or not.
async fn default_work(store: &SqliteProvider) -> Option<WorkLease> {
    let session = SessionRequest {
        owner: Owner::unnamed("worker"),
        lock_timeout: 2 * LONG,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = work_request(Duration::ZERO, TagFilter::DefaultOnly);
    store.fetch_work(WorkRequest { session: Some(session), ..request }).await.expect("no fetch fails")
}

/// Activities in all states, with a mark on the leaf of the last.
async fn work_of_all_kinds(store: &SqliteProvider) {
    for (id, session, tag) in [
        (2, None, Some("leased")),
        (3, None, Some("delayed")),
        (4, None, Some("refused")),
        (5, Some("s"), None),
    ] {
        store.enqueue_work(activity("a", id, session, tag)).await.expect("it is queued");
    }
    lease_of(store, "leased").await;
    let how = Abandon { retry_after: Some(50 * LONG), attempt: Attempt::Counts };
    let delayed = lease_of(store, "delayed").await;
    store.abandon(&delayed, how).await.expect("it is delayed");
    store.report_worker(&worker("old", false)).await.expect("it reports");
    let refused = lease_of(store, "refused").await;
    store.refuse(&refused, refusal("Step", Some(LONG))).await.expect("it is refused");
    assert!(default_work(store).await.expect("it is ready").session.is_some(), "one is leased on a session");
    let mut work = activity("a", 6, Some("s"), Some("t"));
    if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
        *input = "the mark".to_owned();
    }
    store.enqueue_work(work).await.expect("it is queued");
}

#[tokio::test]
async fn g6_what_stands_in_the_place_of_a_torn_row_has_all_that_decides() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "a", String::new()).await;
    fill(&store).await;
    messages_of_all_kinds(&store).await;
    work_of_all_kinds(&store).await;
    close(store).await;
    let before = [rows(&file.path, OF_MESSAGE, "messages"), rows(&file.path, OF_WORK, "work")];
    let whole_before = [rows(&file.path, "*", "messages"), rows(&file.path, "*", "work")];
    let schema = [objects(&file.path, "messages"), objects(&file.path, "work")];
    tear_leaf(&file.path, "the mark");
    tear_leaf(&file.path, "the mark");
    let store = file.open().await;
    store.start(start("new").into(), Vec::new()).await.expect("it is started");
    store.enqueue_work(activity("new", 900, None, None)).await.expect("it is queued");
    close(store).await;
    for (number, (table, columns)) in [("messages", OF_MESSAGE), ("work", OF_WORK)].into_iter().enumerate() {
        let stand_ins =
            rows(&file.path, "seq", &format!("{table} WHERE item LIKE 'the database cannot read it%'"));
        assert!((5..15).contains(&stand_ins.len()), "{table}: {}", stand_ins.len());
        let (after, whole) = (rows(&file.path, columns, table), rows(&file.path, "*", table));
        for (seq, row) in &before[number] {
            let mut expected = row.clone();
            // The tag of a delayed or leased activity without a session is in its history, or not known.
            if table == "work"
                && stand_ins.contains_key(seq)
                && row[5] == Value::Null
                && row[3] != Value::Integer(1)
            {
                expected[4] = after[seq][4].clone();
            }
            assert_eq!(after.get(seq), Some(&expected), "{table} {seq}");
            if !stand_ins.contains_key(seq) {
                assert_eq!(whole.get(seq), whole_before[number].get(seq), "{table} {seq}");
            }
        }
        assert_eq!(after.len(), before[number].len() + 1, "{table}: and the new one");
        assert_eq!(objects(&file.path, table), schema[number], "{table}");
        let check = format!("PRAGMA integrity_check({table})");
        let found: String = raw(&file.path).query_row(&check, [], |row| row.get(0)).expect("it is checked");
        assert_eq!(found, "ok", "{table}");
    }
}

/// A process of an older build has the file open: its prepared statements go on with the new table, and the
/// triggers see what it writes.
#[tokio::test]
async fn g6_statements_that_an_older_build_has_prepared_go_on_with_a_mended_queue() {
    let file = Torn::new();
    let store = file.open().await;
    store.start(start_with("torn", "the mark".to_owned()).into(), Vec::new()).await.expect("it is started");
    begin_other(&store).await;
    close(store).await;
    tear_leaf(&file.path, "the mark");
    let store = file.open().await;
    let older = raw(&file.path);
    let mut insert = older
        .prepare(
            "INSERT INTO messages (key, state, visible_at, starts, item)
             VALUES ((SELECT key FROM instances WHERE instance = ?1), 1, 0, 0, ?2)",
        )
        .expect("a statement");
    let mut ready = older
        .prepare("UPDATE instances SET turn = 1, head = ?2 WHERE instance = ?1 AND turn = 0")
        .expect("a statement");
    let mut set_aside =
        older.prepare("SELECT count(*) FROM messages WHERE item NOT LIKE '{%'").expect("a statement");
    poke(&store, "other").await;
    let lease = fetched(&store).await;
    store.commit_turn(&lease.token, TurnCommit::empty(1)).await.expect("it is committed");
    let instance = "other".to_owned();
    let item = WorkItem::TerminateInstance { instance, reason: "enough".to_owned() };
    let text = serde_json::to_string(&item).expect("it is JSON");
    insert.execute(("other", &text)).expect("it goes into the new table");
    ready.execute(("other", older.last_insert_rowid())).expect("it is ready");
    let needs_code = "SELECT count(*) FROM messages WHERE needs_code = 0";
    let count = older.query_row(needs_code, [], |row| row.get::<_, i64>(0));
    assert_eq!(count.expect("it counts"), 1, "the trigger has seen it");
    assert_eq!(
        set_aside.query_row([], |row| row.get::<_, i64>(0)).expect("it counts"),
        1,
        "a text that is no JSON"
    );
    let lease = fetched(&store).await;
    assert!(matches!(lease.messages[0].item, WorkItem::TerminateInstance { .. }), "{:?}", lease.messages);
}

async fn begin_other(store: &SqliteProvider) {
    store.start(start("other").into(), Vec::new()).await.expect("it is started");
    let held = fetched(store).await;
    assert_eq!(held.instance, "torn", "it is leased and torn");
    let lease = fetched(store).await;
    let commit = TurnCommit {
        events: vec![super::event("other", 1, None, crate::stage::started())],
        metadata: crate::stage::named("Running"),
        ..TurnCommit::empty(1)
    };
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
}

/// The rows of the lease are torn and not listed when its holder asks.
#[tokio::test]
async fn g6_leases_of_torn_rows_can_be_excused_and_refused() {
    for is_refused in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        store.report_worker(&worker("old", false)).await.expect("it reports");
        begin(&store, "a", String::new()).await;
        fill(&store).await;
        store.send(vec![raised("a", "the mark").into()]).await.expect("it is sent");
        let turn = fetched(&store).await;
        let mut work = activity("a", 2, None, None);
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = "the mark".to_owned();
        }
        store.enqueue_work(work).await.expect("it is queued");
        let work = default_work(&store).await.expect("it is ready");
        if !is_refused {
            file.clock.advance(3 * LONG);
            // The sweep remembers both leases, and grants others.
            assert!(try_turn(&store).await.is_some() && default_work(&store).await.is_some());
        }
        close(store).await;
        tear_leaf(&file.path, "the mark");
        tear_leaf(&file.path, "the mark");
        let store = file.open().await;
        for token in [&turn.token, &work.token] {
            if is_refused {
                // A torn activity is held back anyway, and its lease is not one that can be refused.
                let refused = store.refuse(token, refusal("Step", None)).await;
                assert!(refused.map_or_else(|error| error.kind, |_| LOST) == LOST, "{token:?}");
            } else {
                store.excuse(token).await.expect("it answers");
            }
        }
        for _ in 0..=MAX_UNREADABLE_ATTEMPTS + 40 {
            assert!(try_turn(&store).await.is_none() && default_work(&store).await.is_none());
            file.clock.advance(UNREADABLE_RETRY);
        }
        assert_eq!(store.set_aside(None).await.expect("it lists").len(), 2);
    }
}

const LOST: ProviderErrorKind = ProviderErrorKind::LeaseLost;
