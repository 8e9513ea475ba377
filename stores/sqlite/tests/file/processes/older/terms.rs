//! Work with terms (S22): the statements of 0.2 take none of it, and what 0.2 queues is served in its order.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use steadfast_clock::VirtualClock;
use steadfast_core::{CallTerms, TagFilter, WorkItem};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{EndedTry, NewWork, Store, WorkLease};

use super::{NOON_MS, SWEEPS, add_waiting, all_work, found_by_older, older_file, release_all};
use crate::stage::{LONG, activity, open, place, raw, refusal, work_request, worker};

/// The migrations of the last build that knew no terms.
const WITHOUT_TERMS: [&str; 12] = [
    include_str!("../../../../sql/migrations/0001_tables.sql"),
    include_str!("../../../../sql/migrations/0002_waiting.sql"),
    include_str!("../../../../sql/migrations/0003_clock.sql"),
    include_str!("../../../../sql/migrations/0004_order.sql"),
    include_str!("../../../../sql/migrations/0005_workers.sql"),
    include_str!("../../../../sql/migrations/0006_orphans_batches.sql"),
    include_str!("../../../../sql/migrations/0007_lists.sql"),
    include_str!("../../../../sql/migrations/0008_session_trail.sql"),
    include_str!("../../../../sql/migrations/0009_closed_sessions.sql"),
    include_str!("../../../../sql/migrations/0010_released_claims.sql"),
    include_str!("../../../../sql/migrations/0011_starts.sql"),
    include_str!("../../../../sql/migrations/0012_replaced_claims.sql"),
];

/// The statements by which builds of 0.2 look for work that those in `LOOKS` do not: what is routed, and the
/// heads of the sessions that the process `older` holds, by owner and by session.
const FURTHER_LOOKS: [&str; 6] = [
    "SELECT min(work.seq) FROM routes JOIN work ON work.session = -routes.id WHERE routes.kind = 1",
    "SELECT min(head) FROM heads JOIN routes ON heads.tag = '>' || routes.id WHERE routes.kind = 1",
    "SELECT min(head) FROM heads WHERE owner = ':older'",
    "SELECT min(head) FROM heads WHERE owner = '' AND tag = ''",
    "SELECT min(head) FROM heads WHERE owner = ':older' AND tag IN ('', ':gpu')",
    "SELECT min(head) FROM heads WHERE substr(tag, 1, 1) <> '>'",
];

/// The statement by which each build of 0.2 leases an activity.
const GRANT: &str =
    "UPDATE work SET state = 2, token = ?2, locked_until = ?3, epoch = NULL, worker = 'older',
    attempts = attempts + 1 WHERE seq = ?1";

/// Returns what the statements of 0.2 find, of the released schema and of all schemas up to now.
fn found(file: &Connection) -> Vec<(&'static str, i64)> {
    let look = |statement: &'static str| {
        let found = file.query_row(statement, [], |row| row.get::<_, Option<i64>>(0));
        found.expect("the statement runs").map(|found| (statement, found))
    };
    found_by_older(file).into_iter().chain(FURTHER_LOOKS.into_iter().filter_map(look)).collect()
}

fn called(id: u64, session: Option<&str>, tag: Option<&str>) -> NewWork {
    let call = Some(Box::new(CallTerms::of_key(format!("key {id}"))));
    NewWork { call, ..activity("a", id, session, tag) }
}

fn failed(retry_after: Duration) -> EndedTry {
    EndedTry { error: "it failed".into(), retry_after }
}

/// The ids of activities that were leased, in the order in which they were.
fn ids(leases: &[WorkLease]) -> Vec<u64> {
    let id = |lease: &WorkLease| match &lease.item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("{other:?} is no activity"),
    };
    leases.iter().map(id).collect()
}

async fn opened_at_noon(path: &std::path::Path) -> (Arc<SqliteProvider>, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::new(NOON_MS));
    let store = open(path, SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() }).await;
    (store, clock)
}

/// Lets a process of 0.2 be the first to notice that leases and delays have ended.
fn sweep(file: &Connection, clock: &VirtualClock) {
    clock.advance(10 * LONG);
    let now = i64::try_from(NOON_MS + 10 * 60_000).expect("a time");
    for sweep in SWEEPS {
        file.execute(sweep, [now]).unwrap_or_else(|error| panic!("{sweep}: {error}"));
    }
}

/// Queues activities with terms, free and on a session, with a tag and without: one of each is then leased,
/// one waits for its next try, one is routed, and one is left alone.
async fn rows_with_terms(store: &SqliteProvider) {
    store.report_worker(&worker("old", false)).await.expect("it reports");
    store.report_worker(&worker("new", true)).await.expect("it reports");
    for id in 1..=4 {
        for (work, session, tag) in
            [(10, None, None), (20, None, Some("gpu")), (30, Some("s"), None), (40, Some("s"), Some("gpu"))]
        {
            store.enqueue_work(called(work + id, session, tag)).await.expect("it is queued");
        }
        if id == 4 {
            break;
        }
        let owner = if id == 3 { "old" } else { "new" };
        let leases = all_work(store, owner).await;
        assert_eq!(leases.len(), 4, "the others are leased, delayed or routed");
        for lease in leases.iter().filter(|_| id == 2) {
            store.end_try(&lease.token, failed(LONG)).await.expect("the try ends");
        }
        for lease in leases.iter().filter(|_| id == 3) {
            store.refuse(&lease.token, refusal("Step", None)).await.expect("it is refused");
        }
        release_all(store, owner).await;
    }
}

#[tokio::test]
async fn s22_the_statements_of_an_older_build_take_no_work_with_terms() {
    let (_folder, path) = place();
    let (store, clock) = opened_at_noon(&path).await;
    rows_with_terms(&store).await;
    let file = raw(&path);
    assert_eq!(found(&file), [], "work with terms");
    sweep(&file, &clock);
    assert_eq!(found(&file), [], "work with terms that was swept");
    let ready: i64 =
        file.query_row("SELECT count(*) FROM work WHERE state = 1", [], |row| row.get(0)).expect("a number");
    assert_eq!(ready, 16, "all of it is ready");
    store.report_worker(&worker("new", true)).await.expect("it reports");
    let leases = all_work(&store, "new").await;
    let in_order: Vec<u64> = (1..=4).flat_map(|id| [10, 20, 30, 40].map(|work| work + id)).collect();
    assert_eq!(ids(&leases), in_order, "the oldest first");
    assert!(leases.iter().all(|lease| lease.call.is_some()));
}

#[tokio::test]
async fn s22_an_older_process_takes_no_work_with_terms_of_a_session_that_it_holds() {
    let (_folder, path) = place();
    let (store, clock) = opened_at_noon(&path).await;
    store.enqueue_work(activity("a", 1, Some("s"), None)).await.expect("it is queued");
    let file = raw(&path);
    assert_ne!(found(&file), [], "work without terms is for all");
    for claim in [
        "UPDATE sessions
         SET is_row = 1, held = 1, owner = 'older', locked_until = 1700000005000, epoch = 1",
        "UPDATE heads SET owner = ':older'",
        "DELETE FROM work",
        "DELETE FROM heads",
    ] {
        file.execute(claim, []).expect("it is claimed, and its work is finished");
    }
    store.enqueue_work(called(2, Some("s"), None)).await.expect("it is queued");
    store.enqueue_work(called(3, Some("s"), Some("gpu"))).await.expect("it is queued");
    assert_eq!(found(&file), [], "work with terms");
    file.execute("UPDATE heads SET owner = ':older'", []).expect("the older build writes the owner");
    let put = "INSERT INTO heads (session, tag, head, owner, since)
        SELECT session, tag, seq, ':older', 1 FROM work WHERE true
        ON CONFLICT (session, tag) DO UPDATE SET head = excluded.head, owner = excluded.owner";
    file.execute(put, []).expect("the older build writes the heads");
    assert_eq!(found(&file), [], "work with terms");
    assert!(all_work(&store, "new").await.is_empty(), "the session is held");
    file.execute("UPDATE sessions SET held = 0", []).expect("it is released");
    file.execute("UPDATE heads SET owner = ''", []).expect("it is released");
    clock.advance(LONG);
    assert_eq!(ids(&all_work(&store, "new").await), [2, 3]);
}

#[tokio::test]
async fn s22_an_older_process_overtakes_no_work_with_terms_in_a_serial_session() {
    let (_folder, path) = place();
    let (store, clock) = opened_at_noon(&path).await;
    store.enqueue_work(called(1, Some("s"), None)).await.expect("it is queued");
    let file = raw(&path);
    file.execute("UPDATE sessions SET is_row = 1, serial = 1", []).expect("a serial session");
    store.enqueue_work(activity("a", 2, Some("s"), None)).await.expect("it is queued");
    // How an older build writes the head of a serial session.
    for statement in [
        "DELETE FROM heads",
        "INSERT INTO heads (session, tag, head, owner, since)
         SELECT session, tag, seq, '', since FROM (
             SELECT * FROM work WHERE session = 1 AND unreadable = 0 ORDER BY seq LIMIT 1
         ) WHERE state = 1",
    ] {
        file.execute(statement, []).expect("the statement runs");
        assert_eq!(found(&file), [], "the first in line has terms");
    }
    let [first] = &all_work(&store, "new").await[..] else { panic!("one runs at a time") };
    assert_eq!(ids(std::slice::from_ref(first)), [1]);
    store.end_try(&first.token, failed(LONG)).await.expect("the try ends");
    release_all(&store, "new").await;
    assert_eq!(found(&file), [], "the first in line waits for its next try");
    clock.advance(LONG);
    assert_eq!(ids(&all_work(&store, "new").await), [1]);
}

#[tokio::test]
async fn s22_the_lease_of_an_older_build_on_work_with_terms_is_refused() {
    let (_folder, path) = place();
    let (store, _clock) = opened_at_noon(&path).await;
    store.enqueue_work(called(1, None, None)).await.expect("it is queued");
    store.enqueue_work(activity("a", 2, None, None)).await.expect("it is queued");
    let file = raw(&path);
    let until = i64::try_from(NOON_MS + 5_000).expect("a time");
    let grant = |seq: i64| file.execute(GRANT, params![seq, format!("work-older-{seq}"), until]);
    let refused = grant(1).expect_err("it counts no delivery");
    assert!(refused.to_string().contains("work with terms"), "{refused}");
    assert_eq!(grant(2).expect("work without terms is for all"), 1);
    assert_eq!(ids(&all_work(&store, "new").await), [1]);
}

#[tokio::test]
async fn s22_work_that_an_older_build_queues_is_served_in_its_order() {
    let (_folder, path) = place();
    let (store, _clock) = opened_at_noon(&path).await;
    let noon = i64::try_from(NOON_MS).expect("a time");
    let file = raw(&path);
    for (id, session) in [(1_u32, None), (3, Some("s")), (5, None), (7, Some("s"))] {
        store.enqueue_work(called(id.into(), session, None)).await.expect("it is queued");
        let item = serde_json::to_string(&activity("a", u64::from(id) + 1, session, None).item)
            .expect("work is JSON");
        let work = "INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item)
            SELECT key, 1, ?1, 1, '', (SELECT id FROM sessions WHERE session_id = ?2), ?3, ?3, ?4
            FROM instances";
        file.execute(work, params![id + 1, session, noon, item]).expect("it is queued");
        let head = "INSERT INTO heads (session, tag, head, owner, since)
            SELECT id, '', (SELECT min(seq) FROM work WHERE session = id AND tag = ''), '', ?2
            FROM sessions WHERE session_id = ?1 ON CONFLICT DO NOTHING";
        file.execute(head, params![session, noon]).expect("its head");
    }
    let none = all_work_of(&store, TagFilter::DefaultOnly).await;
    assert_eq!(ids(&none), [1, 2, 5, 6], "without sessions");
    assert_eq!(ids(&all_work(&store, "new").await), [3, 4, 7, 8]);
}

/// Leases all work without a session.
async fn all_work_of(store: &SqliteProvider, tags: TagFilter) -> Vec<WorkLease> {
    let mut leases = Vec::new();
    while let Some(lease) =
        store.fetch_work(work_request(Duration::ZERO, tags.clone())).await.expect("it fetches")
    {
        leases.push(lease);
    }
    leases
}

/// One activity stands in the place of a torn one, whose table was left behind by a build without terms.
#[tokio::test]
async fn s22_what_waits_in_a_file_without_terms_is_served() {
    let (_folder, path) = place();
    let file = older_file(&path, &WITHOUT_TERMS);
    add_waiting(&file);
    file.execute("CREATE TABLE damaged_work_1 AS SELECT * FROM work", []).expect("a table");
    let torn = "the database cannot read it: a page of the file is torn (row 1 of damaged_work_1)";
    file.execute("UPDATE work SET item = ?1 WHERE seq = 1", [torn]).expect("a row");
    drop(file);
    let (store, _clock) = opened_at_noon(&path).await;
    let leases = all_work(&store, "new").await;
    assert_eq!(ids(&leases), [2, 3]);
    for lease in &leases {
        assert_eq!((lease.attempt, lease.delivery, &lease.call), (1, 1, &None));
        store.end_try(&lease.token, failed(Duration::ZERO)).await.expect("the try ends");
    }
    let again = all_work(&store, "new").await;
    assert!(again.iter().all(|lease| lease.tries.ended == 1 && lease.delivery == 2), "{again:?}");
}
