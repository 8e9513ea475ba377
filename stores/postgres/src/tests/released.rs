//! A database of the released version 0.2.0: it is migrated with its rows, and processes of that version go
//! on calling its functions.

use std::time::Duration;

use semver::Version;
use steadfast_core::TagFilter;
use steadfast_store::{Cold, Provider, Store, TurnRequest};

use super::{bring, connect, execute, number, server};
use crate::provider::PostgresProvider;
use crate::schema::build::Build;
use crate::schema::functions::Function;

/// Functions whose parameters have grown since, with their parameters at that time.
const RELEASED: &[(&str, &str)] = &[
    (
        "fetch_turns",
        "p_now_ms BIGINT, p_lock_ms BIGINT, p_count INTEGER, p_lo BIGINT[] DEFAULT NULL,
         p_hi BIGINT[] DEFAULT NULL, p_unsynced BOOLEAN DEFAULT false",
    ),
    (
        "fetch_work_items",
        "p_count INTEGER, p_tags TEXT[], p_worker_ids TEXT[], p_lock_ms BIGINT, p_owner TEXT DEFAULT NULL,
         p_incarnation BIGINT DEFAULT NULL, p_session_lock_ms BIGINT DEFAULT NULL,
         p_claim BOOLEAN DEFAULT false, p_only_scopes TEXT[] DEFAULT NULL,
         p_only_sessions TEXT[] DEFAULT NULL, p_out_scopes TEXT[] DEFAULT NULL,
         p_out_sessions TEXT[] DEFAULT NULL, p_now_ms BIGINT DEFAULT NULL, p_unsynced BOOLEAN DEFAULT false",
    ),
    (
        "renew_sessions",
        "p_owner TEXT, p_incarnation BIGINT, p_extend_ms BIGINT, p_idle_ms BIGINT, p_untaken_ms BIGINT,
         p_tags TEXT[], p_full BOOLEAN, p_now_ms BIGINT DEFAULT NULL, p_notify TEXT DEFAULT NULL,
         p_me TEXT DEFAULT NULL",
    ),
    (
        "delete_instance",
        "p_instance TEXT, p_force BOOLEAN, p_notify TEXT DEFAULT NULL, p_me TEXT DEFAULT NULL",
    ),
    ("free_turns", "p_instances TEXT[], p_since BIGINT, p_pins BIGINT[] DEFAULT NULL"),
    (
        "find_free_work",
        "p_count INTEGER, p_tags TEXT[], p_floor BIGINT DEFAULT 0, p_hold BOOLEAN DEFAULT false",
    ),
];

/// Calls as processes of that version write them.
const CALLS: &[&str] = &[
    "SELECT * FROM {name}.fetch_turns(p_now_ms => NULL, p_lock_ms => 1000, p_count => 1, p_lo => NULL,
         p_hi => NULL, p_unsynced => true)",
    "SELECT * FROM {name}.fetch_work_items(p_count => 1, p_tags => '{\"\"}', p_worker_ids => '{w}',
         p_lock_ms => 1000, p_owner => 'o', p_incarnation => NULL, p_session_lock_ms => 1000, p_claim => true,
         p_only_scopes => '{}', p_only_sessions => '{}', p_out_scopes => '{}', p_out_sessions => '{}',
         p_now_ms => NULL, p_unsynced => true)",
    "SELECT * FROM {name}.renew_sessions(p_owner => 'o', p_incarnation => NULL, p_extend_ms => 1000,
         p_idle_ms => 1000, p_untaken_ms => 1000, p_tags => NULL, p_full => false, p_now_ms => NULL,
         p_notify => NULL, p_me => 'me')",
    "SELECT * FROM {name}.delete_instance(p_instance => 'a', p_force => true, p_notify => NULL,
         p_me => 'me')",
];

/// Rows as that version left them: an instance with a message and a pin, an activity of a tag, and one of a
/// session.
const ROWS: &str = r#"
    INSERT INTO {name}.instances
    VALUES ('a', 'Order', '1.0.0', 1, NULL, 'Running', NULL, 0, now(), now(), 1, 1);
    INSERT INTO {name}.executions (instance_id, execution_id, run_id, started_at) VALUES ('a', 1, 1, now());
    INSERT INTO {name}.pins VALUES (2097152);
    INSERT INTO {name}.orchestrator_queue (id, instance_id, work_item, state, visible_ms, starts, created_at)
    VALUES (1, 'a', '{"ExternalRaised":{"instance":"a","name":"poke","data":""}}', 1, 0, false, now());
    INSERT INTO {name}.instance_locks (instance_id, head, since, pin) VALUES ('a', 1, 1, 2097152);
    INSERT INTO {name}.worker_queue (id, work_item, state, visible_ms, created_at, instance_id, execution_id,
        activity_id, session_id, tag, since)
    SELECT n,
        '{"ActivityExecute":{"instance":"a","execution_id":1,"id":' || n || ',"name":"ship","input":""}}', 1,
        0, now(), 'a', 1, n, CASE WHEN n = 2 THEN 's' END, ':gpu', 0 FROM generate_series(1, 2) AS n;
    INSERT INTO {name}.lines VALUES ('', 's');
    INSERT INTO {name}.heads VALUES ('', 's', ':gpu', 2, '', 0);
    SELECT setval('{name}.orchestrator_queue_id_seq', 10), setval('{name}.worker_queue_id_seq', 10)"#;

fn released() -> Build {
    let made = |(name, parameters): &(&str, &str)| -> &'static Function {
        let text = format!(
            "CREATE OR REPLACE FUNCTION {{schema}}.{name}({parameters}) RETURNS TABLE (found TEXT)
             LANGUAGE plpgsql AS $function$ BEGIN END $function$"
        );
        Box::leak(Box::new(Function { name: format!("released/{name}").leak(), text: text.leak() }))
    };
    Build {
        migrations: Build::this().migrations[..1].to_vec(),
        functions: RELEASED.iter().map(made).collect(),
        version: Version::new(0, 1, 9),
    }
}

#[tokio::test]
async fn a_database_of_the_released_version_is_migrated_with_its_rows() {
    let schema = server().schema("released_rows");
    bring(server().url(), schema.name(), &released()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, ROWS, schema.name()).await;
    let store = PostgresProvider::new_with_schema(server().url(), Some(schema.name())).await.unwrap();
    let (lock_timeout, poll_timeout) = (Duration::from_secs(60), Duration::ZERO);
    let request = TurnRequest { lock_timeout, poll_timeout, filter: None, warm: &Cold, worker: None };
    let leased = store.fetch_turn(request).await.unwrap().expect("its message is ready");
    assert_eq!((leased.instance.as_str(), leased.attempt), ("a", 1));
    for any in [TagFilter::Any, TagFilter::tags(["gpu"])] {
        let session = steadfast_store::SessionFetchConfig {
            owner_id: "node".to_owned(),
            lock_timeout: Duration::from_secs(60),
        };
        let fetched = store.fetch_work_item(lock_timeout, poll_timeout, Some(&session), &any).await.unwrap();
        assert!(fetched.is_some(), "an activity is ready for {any:?}");
    }
}

#[tokio::test]
async fn processes_of_the_released_version_are_given_the_work_that_they_had_queued() {
    let schema = server().schema("released_work");
    bring(server().url(), schema.name(), &released()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, ROWS, schema.name()).await;
    PostgresProvider::new_with_schema(server().url(), Some(schema.name())).await.unwrap();
    let call = CALLS[1].replace("p_count => 1", "p_count => 2").replace("'{w}'", "'{w,w}'");
    let call = call.replace("'{\"\"}'", "'{:gpu}'").replace("{name}", schema.name());
    let rows = client.query(&call, &[]).await.unwrap();
    let kinds: Vec<&str> = rows.iter().map(|row| row.get("kind")).collect();
    assert_eq!(kinds, ["lease", "lease"], "one on a session, and one without");
}

#[tokio::test]
async fn processes_of_the_released_version_call_the_functions_of_this_one() {
    let schema = server().schema("released_calls");
    bring(server().url(), schema.name(), &released()).await.unwrap();
    PostgresProvider::new_with_schema(server().url(), Some(schema.name())).await.unwrap();
    let client = connect(server().url()).await;
    for (name, _) in RELEASED {
        let forms = "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                     WHERE n.nspname = '{name}' AND p.proname = '{function}'"
            .replace("{function}", name);
        assert_eq!(number(&client, &forms, schema.name()).await, 1, "{name} has one form");
    }
    execute(&client, ROWS, schema.name()).await;
    for call in CALLS {
        let answered = client.query(&call.replace("{name}", schema.name()), &[]).await;
        assert!(answered.is_ok_and(|rows| !rows.is_empty() || call.contains("renew_sessions")), "{call}");
    }
}
