//! A server whose clock is set back, and a session whose settings a pooler has dropped (G18).

use std::time::Duration;

use steadfast_core::{TagFilter, WorkItem};
use steadfast_store::{
    Appetite, NewWork, Owner, RenewSessions, SessionRequest, SessionScope, Store, WorkRequest,
};
use tokio_postgres::Client;

use crate::{LEASE_ONE, QUEUE_THREE, connect, execute, number, open, server, until_ok};

/// Leases an instance, an activity of a session and the session an hour ahead of the server's time.
const LEASE_AHEAD: &str = r#"
    SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL);
    SELECT token FROM {name}.fetch_turns({name}.now_ms(NULL) + 3600000, 30000, 1);
    SELECT token FROM {name}.fetch_work_items(2, '{""}', '{w,w}', 30000, 'node', NULL, 30000, true,
        p_now_ms => {name}.now_ms(NULL) + 3600000)"#;

/// Counts what a fetch leases, looking again as a process does while the answer says so.
async fn leased(client: &Client, call: &str, schema: &str) -> i64 {
    let count = format!("SELECT count(*) FROM ({call}) AS f WHERE kind IN ('turn', 'lease')");
    let mut leased = 0;
    for _ in 0..4 {
        leased += number(client, &count, schema).await;
    }
    leased
}

#[tokio::test]
async fn g18_leases_that_no_clock_can_have_granted_are_freed() {
    let schema = server().schema("ahead");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    execute(&client, "UPDATE {name}.floors SET longest_ms = 30000", schema.name()).await;
    execute(&client, LEASE_AHEAD, schema.name()).await;
    let turns = "SELECT * FROM {name}.fetch_turns(NULL, 30000, 1)";
    assert_eq!(leased(&client, turns, schema.name()).await, 1);
    // The session is free too: another node claims it.
    let work = LEASE_ONE.replace("SELECT token FROM", "SELECT * FROM").replace("'node'", "'other'");
    assert_eq!(leased(&client, &work, schema.name()).await, 3);
}

#[tokio::test]
async fn g18_a_long_lease_is_not_taken_for_an_impossible_one() {
    let schema = server().schema("long_lease");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, "UPDATE {name}.floors SET longest_ms = 1000", schema.name()).await;
    execute(
        &client,
        "SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}',
             NULL);
         SELECT token FROM {name}.fetch_turns(NULL, 1000, 1);
         SELECT {name}.renew_turns(ARRAY(SELECT lock_token FROM {name}.instance_locks), '{86400000}', NULL)",
        schema.name(),
    )
    .await;
    let turns = "SELECT * FROM {name}.fetch_turns(NULL, 30000, 1)";
    assert_eq!(leased(&client, turns, schema.name()).await, 0);
}

/// Makes the sum of a time and a lease wait for an advisory lock in sessions that say so.
const WAIT_IN_SUM: &str = "
    CREATE OR REPLACE FUNCTION {name}.after_ms(p_now BIGINT, p_delay BIGINT) RETURNS BIGINT
    LANGUAGE plpgsql STABLE AS $do$
    BEGIN
        IF current_setting('test.waits', true) = '{name}' THEN
            PERFORM pg_advisory_xact_lock_shared(hashtext('{name}'));
        END IF;
        RETURN p_now + p_delay;
    END
    $do$";

/// Counts the calls that wait there.
const WAITING_IN_SUM: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE '%{name}.end_impossible_leases%'";

/// Counts the leases that last for most of an hour.
const HOURLY: &str = "
    SELECT count(*) FROM (
        SELECT locked_until FROM {name}.worker_queue UNION ALL SELECT locked_until FROM {name}.sessions
        UNION ALL SELECT locked_until FROM {name}.instance_locks
    ) AS leases WHERE locked_until > {name}.now_ms(NULL) + 3000000";

#[tokio::test]
async fn g18_the_first_lease_that_is_longer_than_all_before_it_is_not_taken_for_an_impossible_one() {
    let schema = server().schema("first_long");
    open(server().url(), schema.name()).await.unwrap();
    let (client, idle, gate) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    execute(&client, WAIT_IN_SUM, schema.name()).await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    execute(&gate, "SELECT pg_advisory_lock(hashtext('{name}'))", schema.name()).await;
    // It knows the longest lease so far, and looks for longer ones only when the gate opens.
    let look = "SET test.waits TO '{name}'; SELECT {name}.end_impossible_leases({name}.now_ms(NULL))";
    let looking = execute(&idle, look, schema.name());
    let leasing = async {
        until_ok(|| async {
            if number(&gate, WAITING_IN_SUM, schema.name()).await > 0 { Ok(()) } else { Err("no wait") }
        })
        .await;
        let lease = "
            SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
                '{}', NULL);
            SELECT token FROM {name}.fetch_turns(NULL, 3600000, 1);
            SELECT token FROM {name}.fetch_work_items(2, '{\"\"}', '{w,w}', 3600000, 'node', NULL, 3600000,
                true)";
        execute(&client, lease, schema.name()).await;
        execute(&gate, "SELECT pg_advisory_unlock(hashtext('{name}'))", schema.name()).await;
    };
    tokio::join!(looking, leasing);
    assert_eq!(number(&client, HOURLY, schema.name()).await, 4, "a turn, two activities and a session");
}

fn session_work(worker: &str) -> WorkRequest {
    let lock_timeout = Duration::from_secs(30);
    let owner = Owner::unnamed(worker);
    WorkRequest {
        worker_id: worker.to_owned(),
        lock_timeout,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: Some(SessionRequest {
            owner,
            lock_timeout,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: None,
    }
}

fn step(id: u64) -> NewWork {
    NewWork::from(WorkItem::ActivityExecute {
        instance: "a".to_owned(),
        execution_id: 1,
        id,
        name: "Step".to_owned(),
        input: String::new(),
        session_id: Some("s".to_owned()),
        tag: None,
    })
}

#[tokio::test]
async fn g18_a_session_that_is_renewed_for_longer_than_any_lease_stays_its_owners() {
    let schema = server().schema("long_renewal");
    let store = open(server().url(), schema.name()).await.unwrap();
    store.enqueue_work(step(1)).await.unwrap();
    assert!(store.fetch_work(session_work("one")).await.unwrap().is_some());
    let day = Duration::from_secs(86_400);
    let renewal = RenewSessions {
        owner: Owner::unnamed("one"),
        held: Vec::new(),
        extend_for: day,
        idle_timeout: day,
        untaken_after: day,
        tags: TagFilter::DefaultOnly,
        appetite: Appetite::Hungry,
        worker: None,
    };
    store.renew_sessions(renewal).await.unwrap();
    // A fetch that finds nothing looks for leases that no clock can have granted.
    assert!(store.fetch_work(session_work("two")).await.unwrap().is_none());
    store.enqueue_work(step(2)).await.unwrap();
    assert!(store.fetch_work(session_work("two")).await.unwrap().is_none(), "it has an owner");
    assert!(store.fetch_work(session_work("one")).await.unwrap().is_some());
}

/// Counts the functions that programs call and that look for names in the schemas of the session, or wait for
/// locks for as long as the session says. Those with planner settings are called by processes of the store.
const WITHOUT_SETTINGS: &str = "
    SELECT count(*) FROM pg_proc AS p
    WHERE p.pronamespace = '{name}'::regnamespace AND (
        (p.proname IN ('fetch_orchestration_item', 'ack_worker', 'notify', 'get_queue_depths',
            'list_instances', 'send_messages', 'start_instances')
            AND NOT (p.proconfig::text LIKE '%search_path=pg_catalog, {name}, pg_temp%') IS TRUE)
        OR (p.proconfig::text LIKE '%plan_cache_mode%' AND (
            NOT p.proconfig::text LIKE '%search_path=pg_catalog%'
            OR (NOT p.proconfig::text LIKE '%lock_timeout%'
                AND p.proname NOT IN ('send_messages', 'start_instances')))))";

/// Something of another role in the way of a name that functions use.
const SHADOW: &str = "
    CREATE SCHEMA {name}_other;
    CREATE FUNCTION {name}_other.cardinality(TEXT[]) RETURNS INTEGER LANGUAGE plpgsql AS
        $do$ BEGIN RAISE EXCEPTION 'called a function of another role'; END $do$;
    SET search_path TO {name}_other, pg_catalog";

#[tokio::test]
async fn g18_functions_do_not_look_for_names_where_other_roles_make_them() {
    let schema = server().schema("names");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let plain = WITHOUT_SETTINGS.replace("pg_catalog, {name}, pg_temp", "pg_catalog,%{name}%");
    assert_eq!(number(&client, &plain, schema.name()).await, 0);
    execute(&client, SHADOW, schema.name()).await;
    execute(
        &client,
        "SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}',
             NULL);
         SELECT token FROM {name}.fetch_turns(NULL, 1000, 1);
         SELECT * FROM {name}.fetch_work_item(NULL, 1000);
         DROP SCHEMA {name}_other CASCADE",
        schema.name(),
    )
    .await;
}

#[tokio::test]
async fn g18_a_call_gives_up_on_a_lock_although_its_session_has_no_limit() {
    let schema = server().schema("no_limit");
    open(server().url(), schema.name()).await.unwrap();
    let (holder, client) = (connect(server().url()).await, connect(server().url()).await);
    let start =
        "SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
                     '{}', NULL";
    execute(&holder, &format!("BEGIN; {start})"), schema.name()).await;
    let call = format!("SET lock_timeout TO 0; {start}, p_me => 'me')").replace("{name}", schema.name());
    let called = tokio::time::timeout(Duration::from_secs(60), client.batch_execute(&call)).await;
    let error = called.expect("it waits for the lock without a limit").unwrap_err();
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("55P03"));
    holder.batch_execute("COMMIT").await.unwrap();
}
