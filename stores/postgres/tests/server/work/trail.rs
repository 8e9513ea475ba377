//! The trails of sessions on a real server: what they cost, and who writes them.

use steadfast_core::SessionKey;
use steadfast_store::{MAX_PAGE, MAX_TRAIL, ReleaseReason, SessionChange, Store};

use crate::{LEASE_ONE, QUEUE_THREE, connect, execute, number, open, server};

/// Leases the two activities of the session that are queued, finishes them, and renews the session.
const GO_ON: &str = r#"
    DO $do$
    DECLARE
        v_token TEXT;
    BEGIN
        FOR v_turn IN 1..2 LOOP
            SELECT token INTO v_token
            FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000, true);
            PERFORM {name}.finish_work_items(ARRAY[v_token], '{a}', '{done}', '{NULL}');
        END LOOP;
        PERFORM {name}.renew_sessions('node', NULL, 30000, 30000, 30000, '{""}', false);
    END
    $do$"#;

#[tokio::test]
async fn s20_an_owner_that_goes_on_does_not_touch_the_trails() {
    let schema = server().schema("trail_untouched");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    for _ in 0..2 {
        execute(&client, LEASE_ONE, schema.name()).await;
    }
    let entries = "SELECT count(*) FROM {name}.session_trail";
    assert_eq!(number(&client, entries, schema.name()).await, 1, "the session is claimed");
    execute(&client, "ALTER TABLE {name}.session_trail RENAME TO elsewhere", schema.name()).await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    execute(&client, GO_ON, schema.name()).await;
    execute(&client, "UPDATE {name}.sessions SET locked_until = 0", schema.name()).await;
    let claim = client.batch_execute(&LEASE_ONE.replace("{name}", schema.name())).await;
    let error = claim.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert!(error.message().contains("session_trail"), "a claim writes into the trail: {error}");
}

/// What a process of the previous build sends: its calls name no reason.
const RELEASE_OF_BEFORE: &str = "
    SELECT * FROM {name}.release_sessions(p_owner => 'node', p_incarnation => NULL, p_scopes => '{\"\"}',
        p_sessions => '{S}', p_epochs => ARRAY[(SELECT epoch FROM {name}.sessions)], p_now_ms => NULL,
        p_notify => NULL, p_me => NULL)";

#[tokio::test]
async fn a_process_of_an_older_build_leaves_a_trail_without_its_reasons() {
    let schema = server().schema("trail_older");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    for _ in 0..2 {
        execute(&client, LEASE_ONE, schema.name()).await;
    }
    execute(&client, RELEASE_OF_BEFORE, schema.name()).await;
    let trail = store.session_trail(&SessionKey::shared("S")).await.unwrap();
    let changes: Vec<_> = trail.iter().map(|entry| (entry.owner.id.as_str(), entry.change)).collect();
    let unstated = SessionChange::Released(ReleaseReason::Unstated);
    assert_eq!(changes, [("node", SessionChange::Claimed), ("node", unstated)]);
}

#[tokio::test]
async fn trails_of_all_sessions_together_are_bounded() {
    let schema = server().schema("trail_bounded");
    let store = open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let others = format!(
        "INSERT INTO {{name}}.session_trail
             (instance_id, session_id, epoch, is_end, worker_id, at_ms, change)
         SELECT '', 'other' || n % 100, n, false, 'another', {{name}}.now_ms(NULL), 'claimed'
         FROM generate_series(1, {}) AS n",
        MAX_TRAIL + MAX_PAGE as u64 + 7
    );
    execute(&client, &others, schema.name()).await;
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        steps.push(store.cleanup_session_trails(day).await.unwrap());
    }
    assert_eq!(steps, [MAX_PAGE, 7, 0]);
    let left = number(&client, "SELECT count(*) FROM {name}.session_trail", schema.name()).await;
    assert_eq!(left, i64::try_from(MAX_TRAIL).unwrap());
}
