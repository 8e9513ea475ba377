//! Work with terms on a real server (S22): builds that do not know terms are given none of it, whatever it
//! costs them elsewhere, and go on with the work that they can run.

use std::time::Duration;

use steadfast_core::{CallTerms, Failure, FailureKind, SessionKey, TagFilter, WorkItem};
use steadfast_postgres::PostgresProvider;
use steadfast_store::{
    Cold, EndedTry, MAX_UNREADABLE_ATTEMPTS, Message, NewWork, Owner, SessionRequest, SessionScope, Store,
    TurnRequest, WorkLease, WorkRequest,
};
use tokio_postgres::Client;

use super::{blocks, check};
use crate::{connect, execute, number, open, server, start_of};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// The fetch of a process of version 0.2: it names all parameters that its function had.
const OLD_FETCH: &str = "
    SELECT * FROM {name}.fetch_work_items(p_count => {count}, p_tags => {tags},
        p_worker_ids => array_fill('old'::text, ARRAY[{count}]), p_lock_ms => 600000, p_owner => 'old',
        p_incarnation => NULL, p_session_lock_ms => 600000, p_claim => true, p_only_scopes => '{}',
        p_only_sessions => '{}', p_out_scopes => '{}', p_out_sessions => '{}', p_now_ms => NULL,
        p_unsynced => true, p_careful => false, p_worker => NULL)";

/// The tags that the older processes of the tests ask for: all of them, and each by its name.
const TAGS: [&str; 2] = ["NULL", "ARRAY['', ':gpu']"];

/// Makes everything due that is delayed.
const DUE: &str = "
    UPDATE {name}.worker_queue SET visible_ms = 1 WHERE state = 0;
    UPDATE {name}.orchestrator_queue SET visible_ms = 1 WHERE state = 0;
    UPDATE {name}.floors SET due_work = 0, due_messages = 0";

fn old_fetch(schema: &str, count: usize, tags: &str) -> String {
    let text = OLD_FETCH.replace("{count}", &count.to_string()).replace("{tags}", tags);
    text.replace("{name}", schema)
}

/// Fetches as an older process does. Returns the ids of the activities, and whether it is told to look again
/// at once.
async fn old_work(client: &Client, schema: &str, count: usize, tags: &str) -> (Vec<u64>, bool) {
    let rows = client.query(&old_fetch(schema, count, tags), &[]).await.unwrap();
    let (mut ids, mut again) = (Vec::new(), false);
    for row in rows {
        match row.get::<_, &str>("kind") {
            "lease" => ids.push(id_of(&serde_json::from_str(row.get("item")).unwrap())),
            _ => again = row.get("again"),
        }
    }
    (ids, again)
}

fn id_of(item: &WorkItem) -> u64 {
    match item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("{other:?} is no activity"),
    }
}

/// An activity: its tag, and the shared session that it runs on.
fn activity(id: u64, tag: Option<&str>, session: Option<&str>) -> NewWork {
    WorkItem::ActivityExecute {
        instance: "a".to_owned(),
        execution_id: 1,
        id,
        name: "Charge".to_owned(),
        input: String::new(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
    .into()
}

fn with_terms(work: NewWork) -> NewWork {
    NewWork { call: Some(Box::new(CallTerms::of_key("key"))), ..work }
}

/// Fetches with this build, whatever the tag and the session.
async fn new_work(store: &PostgresProvider) -> Option<WorkLease> {
    new_work_of(store, TagFilter::Any).await
}

async fn new_work_of(store: &PostgresProvider, tags: TagFilter) -> Option<WorkLease> {
    let session = SessionRequest {
        owner: Owner::unnamed("new"),
        lock_timeout: LONG,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest {
        worker_id: "new".to_owned(),
        lock_timeout: LONG,
        poll_timeout: Duration::ZERO,
        tags,
        session: Some(session),
        worker: None,
    };
    store.fetch_work(request).await.unwrap()
}

/// Fetches with this build until nothing is left, and returns the ids of the activities.
async fn all_new_work(store: &PostgresProvider) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some(lease) = new_work(store).await {
        ids.push(id_of(&lease.item));
    }
    ids
}

#[tokio::test]
async fn s22_an_older_build_is_given_no_work_with_terms() {
    let schema = server().schema("terms");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    for (id, tag, session) in
        [(1, None, None), (2, Some("gpu"), None), (3, None, Some("s")), (4, Some("gpu"), Some("s"))]
    {
        store.enqueue_work(with_terms(activity(id, tag, session))).await.unwrap();
    }
    // One waits for its next try.
    let lease = new_work(&store).await.unwrap();
    let ended = EndedTry { error: "closed".to_owned(), retry_after: LONG };
    store.end_try(&lease.token, ended).await.unwrap();
    for (due, count, tags) in [false, true]
        .into_iter()
        .flat_map(|due| [1, 5].map(|count| (due, count)))
        .flat_map(|(due, count)| TAGS.map(|tags| (due, count, tags)))
    {
        if due {
            execute(&client, DUE, schema.name()).await;
        }
        let found = old_work(&client, schema.name(), count, tags).await;
        assert_eq!(found, (Vec::new(), false), "due: {due}, {count} of the tags {tags}");
    }
    assert_eq!(all_new_work(&store).await, [1, 2, 3, 4], "this build takes all of them, oldest first");
}

#[tokio::test]
async fn s22_an_older_build_is_given_the_work_without_terms_between_the_other() {
    for tags in TAGS {
        let schema = server().schema("between");
        let store = open(server().url(), schema.name()).await.unwrap();
        let client = connect(server().url()).await;
        for id in 1..=12 {
            let session = (id % 4 < 2).then_some("s");
            let work = activity(id, (id % 3 == 0).then_some("gpu"), session);
            let work = if id % 2 == 0 { with_terms(work) } else { work };
            store.enqueue_work(work).await.unwrap();
        }
        let mut ids = old_work(&client, schema.name(), 2, tags).await.0;
        ids.extend(old_work(&client, schema.name(), 1, tags).await.0);
        assert_eq!(ids, [1, 3, 5], "oldest first: {tags}");
        let (rest, again) = old_work(&client, schema.name(), 12, tags).await;
        assert_eq!((rest, again), (vec![7, 9, 11], false), "{tags}");
    }
}

#[tokio::test]
async fn s22_this_build_serves_both_kinds_of_work_in_one_order() {
    let filters = [TagFilter::Any, TagFilter::DefaultOnly, TagFilter::default_and(["gpu"])];
    for filter in filters {
        let schema = server().schema("one_order");
        let store = open(server().url(), schema.name()).await.unwrap();
        let client = connect(server().url()).await;
        for id in 1..=8 {
            let session = (id % 4 < 2).then_some("s");
            if id % 2 == 0 {
                store.enqueue_work(with_terms(activity(id, None, session))).await.unwrap();
                continue;
            }
            // As an older process queues it.
            let item = serde_json::to_string(&activity(id, None, session).item).unwrap();
            let (id, session) = (i64::try_from(id).unwrap(), session.map(str::to_owned));
            let text = "SELECT {name}.enqueue_work(p_item => $1, p_instance => 'a', p_execution => 1,
                            p_activity => $2, p_tag => '', p_scope => '', p_session => $3,
                            p_traceparent => NULL, p_now_ms => NULL, p_notify => NULL, p_me => 'old')"
                .replace("{name}", schema.name());
            client.query(&text, &[&item, &id, &session]).await.unwrap();
        }
        let mut ids = Vec::new();
        while let Some(lease) = new_work_of(&store, filter.clone()).await {
            ids.push(id_of(&lease.item));
        }
        assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8], "{filter:?}");
    }
}

#[tokio::test]
async fn s22_work_with_terms_keeps_its_place_in_a_serial_session_of_an_older_owner() {
    let schema = server().schema("serial_terms");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let serial = "INSERT INTO {name}.lines VALUES ('a', 's');
        INSERT INTO {name}.sessions (instance_id, session_id, worker_id, held, locked_until, last_activity_at,
            epoch, serial)
        VALUES ('a', 's', '', false, 0, 0, 0, true)";
    execute(&client, serial, schema.name()).await;
    let on_session = |id| NewWork { session: Some(SessionKey::owned("a", "s")), ..activity(id, None, None) };
    store.enqueue_work(on_session(1)).await.unwrap();
    store.enqueue_work(with_terms(on_session(2))).await.unwrap();
    store.enqueue_work(on_session(3)).await.unwrap();
    assert_eq!(old_work(&client, schema.name(), 3, "NULL").await.0, [1]);
    let finish = "SELECT {name}.finish_work_items(ARRAY[lock_token], '{NULL}', '{NULL}', '{NULL}')
        FROM {name}.worker_queue WHERE state = 2";
    execute(&client, finish, schema.name()).await;
    assert_eq!(old_work(&client, schema.name(), 3, "NULL").await, (Vec::new(), false), "2 is first in line");

    // The older owner does not keep the session to itself.
    let renew = "SELECT outcome FROM {name}.renew_sessions(p_owner => 'old', p_incarnation => NULL,
        p_extend_ms => 600000, p_idle_ms => 600000, p_untaken_ms => -1, p_tags => NULL, p_full => false,
        p_now_ms => NULL, p_notify => NULL, p_me => 'old', p_worker => NULL";
    let knows = format!("{renew}, p_terms => true)").replace("{name}", schema.name());
    assert_eq!(client.query_one(&knows, &[]).await.unwrap().get::<_, &str>(0), "renewed");
    let renew = format!("{renew})").replace("{name}", schema.name());
    assert_eq!(client.query_one(&renew, &[]).await.unwrap().get::<_, &str>(0), "untaken");
    assert_eq!(id_of(&new_work(&store).await.unwrap().item), 2);
}

/// Many activities with terms, and heads of as many sessions, all older than what is queued later.
const MANY_WITH_TERMS: &str = "
    INSERT INTO {name}.worker_queue (id, work_item, state, visible_ms, created_at, instance_id, execution_id,
        activity_id, since, call)
    SELECT -n, 'x', 1, 0, now(), 'm' || n, 1, 1, 0, '{\"key\":\"k\"}' FROM generate_series(1, 30000) AS n;
    INSERT INTO {name}.worker_queue (id, work_item, state, visible_ms, created_at, instance_id, execution_id,
        activity_id, since, call, session_id)
    SELECT -30000 - n, 'x', 1, 0, now(), 'm' || n, 1, 2, 0, '{\"key\":\"k\"}', 'm' || n
    FROM generate_series(1, 30000) AS n;
    INSERT INTO {name}.lines SELECT '', 'm' || n FROM generate_series(1, 30000) AS n;
    INSERT INTO {name}.heads SELECT '', 'm' || n, '', -30000 - n, '', 0
    FROM generate_series(1, 30000) AS n;
    UPDATE {name}.floors SET work = -100000, heads = -100000";

/// The blocks that fetches of an older build read: of any tag, and of one.
async fn old_costs(client: &Client, schema: &str) -> [u64; 2] {
    let queue = "
        SELECT {name}.lock_lines('{\"\"}', '{s}');
        SELECT {name}.queue_work('{x,x,x,x}', '{a,a,a,a}', '{1,1,1,1}', '{1,2,3,4}', '{\"\",\"\",\"\",\"\"}',
            '{\"\",\"\",\"\",\"\"}', '{NULL,s,NULL,s}', '{NULL,NULL,NULL,NULL}', 0)";
    let clear = "
        SELECT {name}.withdraw_work('{a,a,a,a}', '{1,1,1,1}', '{1,2,3,4}', 0);
        DELETE FROM {name}.sessions;
        VACUUM {name}.worker_queue, {name}.heads, {name}.sessions, {name}.ended_leases, {name}.floors,
            {name}.beneath";
    let mut least = [u64::MAX; 2];
    for _ in 0..6 {
        execute(client, queue, schema).await;
        for (least, tags) in least.iter_mut().zip(["NULL", "ARRAY['']"]) {
            let explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)";
            let statement = format!("{explain} {}", old_fetch(schema, 2, tags));
            *least = (*least).min(blocks(client, &statement, schema).await);
        }
        assert_eq!(
            number(client, "SELECT count(*) FROM {name}.worker_queue WHERE state = 2", schema).await,
            4,
            "what has no terms is leased"
        );
        for statement in clear.split(';') {
            execute(client, statement, schema).await;
        }
    }
    least
}

#[tokio::test]
async fn s22_work_with_terms_costs_an_older_build_nothing_whatever_its_plan() {
    let database = server().database("old_costs").unwrap();
    open(database.url(), "terms").await.unwrap();
    let old = connect(database.url()).await;
    let alone = old_costs(&old, "terms").await;
    execute(&old, MANY_WITH_TERMS, "terms").await;
    let new = connect(database.url()).await;
    check(old_costs(&old, "terms").await, alone, "with empty tables");
    check(old_costs(&new, "terms").await, alone, "without statistics");
    execute(&new, "ANALYZE {name}.worker_queue, {name}.heads", "terms").await;
    check(old_costs(&connect(database.url()).await, "terms").await, alone, "with statistics");
}

/// A completion with a failure beside it.
fn failed() -> Message {
    let failure = Failure { kind: FailureKind::Error, data: None, tries: 3, elapsed_ms: 9 };
    let item = WorkItem::ExternalRaised {
        instance: "a".to_owned(),
        name: "failed".to_owned(),
        data: "bank".to_owned(),
    };
    Message { failure: Some(Box::new(failure)), ..item.into() }
}

async fn messages(store: &PostgresProvider) -> Option<Vec<Message>> {
    let poll_timeout = Duration::ZERO;
    let request = TurnRequest { lock_timeout: LONG, poll_timeout, filter: None, warm: &Cold, worker: None };
    store.fetch_turn(request).await.unwrap().map(|lease| lease.messages)
}

#[tokio::test]
async fn s22_an_older_build_loses_no_failure_of_a_message_that_it_gives_back() {
    let schema = server().schema("kept_failure");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    store.start(start_of("a").into(), Vec::new()).await.unwrap();
    store.send(vec![steadfast_store::Envelope { message: failed(), delay: None }]).await.unwrap();
    let there_and_back = "
        SELECT {name}.abandon_turns(ARRAY[t.token], '{NULL}', '{false}', NULL)
            FROM {name}.fetch_turns(NULL, 30000, 1) AS t WHERE t.kind = 'turn';
        SELECT {name}.pass_over_messages(t.token, t.ids[2:2], '{why}', 1000, 1, NULL)
            FROM {name}.fetch_turns(NULL, 30000, 1) AS t WHERE t.kind = 'turn';
        SELECT {name}.retry_message_set_aside(s.id, s.instance_id, false) FROM {name}.set_aside AS s;
        SELECT {name}.abandon_turns(ARRAY[l.lock_token], '{NULL}', '{true}', NULL)
            FROM {name}.instance_locks AS l WHERE l.lock_token IS NOT NULL";
    execute(&client, there_and_back, schema.name()).await;
    assert_eq!(messages(&store).await.unwrap()[1..], [failed()]);
}

#[tokio::test]
async fn s22_terms_and_failures_that_cannot_be_read_are_set_aside_with_their_rows() {
    let schema = server().schema("broken_terms");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    store.enqueue_work(with_terms(activity(1, None, None))).await.unwrap();
    store.start(start_of("a").into(), Vec::new()).await.unwrap();
    store.send(vec![steadfast_store::Envelope { message: failed(), delay: None }]).await.unwrap();
    let broken = "UPDATE {name}.worker_queue SET call = '{\"secret\"';
        UPDATE {name}.orchestrator_queue SET failure = 'secret' WHERE failure IS NOT NULL";
    execute(&client, broken, schema.name()).await;
    store.enqueue_work(with_terms(activity(2, None, None))).await.unwrap();
    assert_eq!(all_new_work(&store).await, [2], "it blocks no other");
    let give_back = "SELECT {name}.abandon_turns(ARRAY[l.lock_token], '{NULL}', '{true}', NULL)
        FROM {name}.instance_locks AS l WHERE l.lock_token IS NOT NULL";
    for _ in 0..MAX_UNREADABLE_ATTEMPTS {
        assert_eq!(messages(&store).await.map(|messages| messages.len()), Some(1), "the start can be read");
        execute(&client, give_back, schema.name()).await;
        execute(&client, DUE, schema.name()).await;
        assert!(new_work(&store).await.is_none());
    }
    let rows = store.set_aside(None).await.unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert!(!row.reason.contains("secret"), "{}", row.reason);
        store.retry_set_aside(row.id).await.unwrap();
    }
    let mended = "UPDATE {name}.worker_queue SET call = '{\"key\":\"key\"}' WHERE activity_id = 1;
        UPDATE {name}.orchestrator_queue SET failure =
            '{\"kind\":\"error\",\"tries\":3,\"elapsed_ms\":9}' WHERE failure IS NOT NULL";
    execute(&client, mended, schema.name()).await;
    let lease = new_work(&store).await.unwrap();
    assert_eq!((id_of(&lease.item), lease.call), (1, Some(Box::new(CallTerms::of_key("key")))));
    assert_eq!(messages(&store).await.unwrap()[1..], [failed()]);
}
