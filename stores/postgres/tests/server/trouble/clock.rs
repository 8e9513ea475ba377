//! A server whose clock is set back, and a session whose settings a pooler has dropped (G18).

use tokio_postgres::Client;

use crate::{LEASE_ONE, QUEUE_THREE, connect, execute, number, open, server};

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
    let error = client.batch_execute(&call).await.unwrap_err();
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("55P03"));
    holder.batch_execute("COMMIT").await.unwrap();
}
