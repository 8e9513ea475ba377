//! Where callers of the functions could see a difference to the compatible crate: what was decided, one test
//! each (`docs/contract/sql.md`).

use super::{AckArguments, CompatCaller, HELLO, NO_NUMBER, NO_TEXT, STARTED, said};

const ACK_WORKER: &str = "SELECT ack_worker($1, $2, $3, $4)";

#[tokio::test]
async fn an_ack_without_a_time_accepts_work_that_was_leased_at_a_given_time() {
    let caller = CompatCaller::new("decided_ack").await;
    for completion in [None, Some("{\"ActivityCompleted\":{}}")] {
        caller.enqueue_work(1_000, None).await;
        let (_, token, _) = caller.fetch_work(1_000, None).await.expect("work");
        caller.run(ACK_WORKER, &[&token, &Some("i"), &completion, &NO_NUMBER]).await;
        assert_eq!(caller.number("SELECT count(*) FROM worker_queue", &[]).await, 0, "{completion:?}");
    }
    assert_eq!(caller.number("SELECT count(*) FROM orchestrator_queue", &[]).await, 1);

    let processed = said("SF002", "Worker queue item not found or already processed");
    caller.enqueue_work(1_000, None).await;
    let (_, first, _) = caller.fetch_work(1_000, None).await.expect("work");
    let (_, second, attempt) = caller.fetch_work(2_000, None).await.expect("its lease has expired");
    assert_eq!(attempt, 2);
    let lost = caller.raised(ACK_WORKER, &[&first, &NO_TEXT, &NO_TEXT, &NO_NUMBER]).await;
    assert_eq!(lost, processed, "the work was leased again");
    let late = caller.raised(ACK_WORKER, &[&second, &NO_TEXT, &NO_TEXT, &Some(3_000_i64)]).await;
    assert_eq!(late, processed, "a given time judges the lease");
    caller.run(ACK_WORKER, &[&second, &NO_TEXT, &NO_TEXT, &NO_NUMBER]).await;
}

#[tokio::test]
async fn an_ack_without_a_time_is_judged_by_the_database_if_the_lease_was_its_own() {
    let caller = CompatCaller::new("decided_ack_own").await;
    caller.run("SELECT enqueue_worker_work('{}', NULL, 'i', 1, 2)", &[]).await;
    let row = caller.row("SELECT * FROM fetch_work_item(NULL, 1)", &[]).await;
    let token: String = row.get("out_lock_token");
    caller.run("SELECT pg_sleep(0.01)", &[]).await;
    let late = caller.raised(ACK_WORKER, &[&token, &NO_TEXT, &NO_TEXT, &NO_NUMBER]).await;
    assert_eq!(late.0, "SF002", "its lease has expired");
}

#[tokio::test]
async fn a_clean_up_at_the_last_moment_of_a_lease_keeps_the_session() {
    let caller = CompatCaller::new("decided_cleanup").await;
    caller.enqueue_work(1_000, Some("s")).await;
    let (_, token, _) = caller.fetch_work(1_000, Some("one")).await.expect("work");
    caller.run(ACK_WORKER, &[&token, &NO_TEXT, &NO_TEXT, &Some(1_500_i64)]).await;
    assert_eq!(caller.number("SELECT locked_until FROM sessions", &[]).await, 2_000);
    let clean_up = "SELECT cleanup_orphaned_sessions($1)";
    for (now, removed) in [(1_999_i64, 0), (2_000, 0), (2_001, 1)] {
        assert_eq!(caller.number(clean_up, &[&now]).await, removed, "at {now}");
    }
}

#[tokio::test]
async fn a_clean_up_of_sessions_bounds_their_trails() {
    let caller = CompatCaller::new("decided_trails").await;
    caller.enqueue_work(1_000, Some("s")).await;
    let (_, token, _) = caller.fetch_work(1_000, Some("one")).await.expect("work");
    caller.run(ACK_WORKER, &[&token, &NO_TEXT, &NO_TEXT, &Some(1_500_i64)]).await;
    let week = 604_800_000_i64;
    // Each of these claims is as old as the first one.
    let more = "INSERT INTO session_trail (instance_id, session_id, epoch, is_end, worker_id, at_ms, change)
                SELECT '', 'other', n, false, 'one', 1000, 'claimed' FROM generate_series(1, 2500) AS n";
    caller.run(more, &[]).await;
    let clean_up = "SELECT cleanup_orphaned_sessions($1)";
    let entries = "SELECT count(*) FROM session_trail";
    assert_eq!(caller.number(clean_up, &[&(999 + week)]).await, 1, "the session");
    assert_eq!(caller.number(entries, &[]).await, 2_502, "with the end of its lease");
    assert_eq!(caller.number(clean_up, &[&(1_000 + week)]).await, 0);
    assert_eq!(caller.number(entries, &[]).await, 1, "its lease ended later");
    assert_eq!(caller.number(clean_up, &[&(2_000 + week)]).await, 0);
    assert_eq!(caller.number(entries, &[]).await, 0);
}

#[tokio::test]
async fn a_renewal_of_sessions_without_an_idle_time_renews_nothing() {
    let caller = CompatCaller::new("decided_renewal").await;
    caller.enqueue_work(1_000, Some("s")).await;
    caller.fetch_work(1_000, Some("one")).await.expect("work");
    let renew = "SELECT renew_session_lock('{one}', 1500, 5000, $1)";
    assert_eq!(caller.number(renew, &[&NO_NUMBER]).await, 0);
    assert_eq!(caller.number("SELECT locked_until FROM sessions", &[]).await, 2_000);
    assert_eq!(caller.number(renew, &[&Some(60_000_i64)]).await, 1);
    assert_eq!(caller.number("SELECT locked_until FROM sessions", &[]).await, 6_500);
}

#[tokio::test]
async fn every_token_begins_with_lock() {
    let caller = CompatCaller::new("decided_tokens").await;
    let turn = caller.begun(1_000).await;
    caller.enqueue_work(1_000, None).await;
    caller.enqueue_work(1_000, Some("s")).await;
    let (_, plain, _) = caller.fetch_work(1_000, Some("one")).await.expect("work");
    let (_, of_session, _) = caller.fetch_work(1_000, Some("one")).await.expect("work");
    caller.enqueue_work(1_000, None).await;
    let row = caller.row("SELECT * FROM fetch_work_item(NULL, 60000)", &[]).await;
    let now: String = row.get("out_lock_token");
    for token in [turn, plain, of_session, now] {
        assert!(token.starts_with("lock_"), "{token}");
    }
}

#[tokio::test]
async fn a_parent_that_a_later_commit_names_is_recorded_once() {
    let caller = CompatCaller::new("decided_parent").await;
    let commit = async |metadata: &str, delta: &str| {
        let token: String = caller.fetch(1_000).await.expect("a turn").get("out_lock_token");
        caller.ack(&token, 1_000, AckArguments { delta, metadata, ..AckArguments::default() }).await;
        caller.run("SELECT enqueue_orchestrator_work('i', '{}', NULL, NULL, NULL, NULL, 1000)", &[]).await;
        let parent = "SELECT coalesce(out_parent_instance_id, '') FROM get_parent_id('i')";
        caller.texts(parent, &[]).await
    };
    let named = |parent: &str| {
        format!(r#"{{"orchestration_name":"H","orchestration_version":"1","parent_instance_id":"{parent}"}}"#)
    };
    caller.start(1_000).await;
    assert_eq!(commit(HELLO, STARTED).await, [""]);
    assert_eq!(commit(r#"{"parent_instance_id":"unnamed"}"#, "[]").await, [""], "without a name");
    assert_eq!(commit(&named("first"), "[]").await, ["first"]);
    assert_eq!(commit(&named("second"), "[]").await, ["first"], "the first one stays");
    let orphan = caller.row("SELECT is_orphan FROM instances WHERE instance_id = 'i'", &[]).await;
    assert!(orphan.get::<_, bool>(0), "its parent does not exist");
}

#[tokio::test]
async fn a_status_of_running_clears_the_end_of_an_execution() {
    let caller = CompatCaller::new("decided_running").await;
    caller.start(1_000).await;
    let ended =
        "SELECT (extract(epoch FROM out_completed_at) * 1000)::bigint FROM get_execution_info('i', 1)";
    let (mut delta, mut at) = (STARTED, 1_000_i64);
    let ends = [("Completed", Some(1_000)), ("Running", None), ("Failed", Some(3_000))];
    for (status, expected) in ends {
        let metadata = format!(
            r#"{{"orchestration_name":"H","orchestration_version":"1","status":"{status}","output":"o"}}"#
        );
        let token: String = caller.fetch(at).await.expect("a turn").get("out_lock_token");
        caller.ack(&token, at, AckArguments { delta, metadata: &metadata, ..AckArguments::default() }).await;
        let found: Option<i64> = caller.row(ended, &[]).await.get(0);
        assert_eq!(found, expected, "{status}");
        caller.run("SELECT enqueue_orchestrator_work('i', '{}', NULL, NULL, NULL, NULL, 1000)", &[]).await;
        (delta, at) = ("[]", at + 1_000);
    }
}

#[tokio::test]
async fn g23_a_session_that_sql_opens_as_serial_is_serial() {
    let caller = CompatCaller::new("decided_serial").await;
    let token = caller.begun(1_000).await;
    let opened = |id: i64, session: &str, options: &str| {
        let data = format!(r#"{{\"type\":\"SessionOpened\",\"session_id\":\"{session}\"{options}}}"#);
        format!(r#"{{"event_id":{id},"event_type":"SessionOpened","event_data":"{data}"}}"#)
    };
    let delta = format!(
        "[{},{},{},{}]",
        STARTED.trim_start_matches('[').trim_end_matches(']'),
        opened(2, "line", r#",\"concurrency\":\"serial\",\"idle_timeout_ms\":7"#),
        opened(3, "crowd", r#",\"concurrency\":\"unbounded\""#),
        opened(4, "plain", ""),
    );
    caller
        .ack(&token, 1_000, AckArguments { delta: &delta, metadata: HELLO, ..AckArguments::default() })
        .await;
    let found = "SELECT session_id || ' ' || serial::text || ' ' || coalesce(idle_timeout, 0)::text
                 FROM sessions WHERE instance_id = 'i' ORDER BY session_id";
    assert_eq!(caller.texts(found, &[]).await, ["crowd false 0", "line true 7", "plain false 0"]);
}

#[tokio::test]
async fn rows_that_are_inserted_by_hand_are_refused_and_the_functions_are_not() {
    let caller = CompatCaller::new("decided_rows").await;
    let inserts = [
        "INSERT INTO worker_queue (work_item, visible_at, created_at) VALUES ($1, now(), now())",
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
             VALUES ('i', $1, now(), now())",
        "INSERT INTO sessions (session_id, worker_id, locked_until, last_activity_at) VALUES ($1, 'w', 1, 1)",
    ];
    for insert in inserts {
        let (code, text) = caller.raised(insert, &[&"{}"]).await;
        assert!(["42703", "23502"].contains(&code.as_str()), "{insert}: {code} {text}");
    }
    caller.enqueue_work(1_000, Some("s")).await;
    caller.start(1_000).await;
    assert!(caller.fetch(1_000).await.is_some());
    assert!(caller.fetch_work(1_000, Some("w")).await.is_some(), "the fetch makes the row of the session");
    assert_eq!(caller.number("SELECT count(*) FROM sessions", &[]).await, 1);
}

#[tokio::test]
async fn a_commit_is_refused_with_the_state_that_the_page_names() {
    let caller = CompatCaller::new("decided_states").await;
    let refused = caller.refused("nothing", 1_000, AckArguments::default()).await;
    assert_eq!(refused, said("SF001", "Invalid lock token"));
    for call in [
        "SELECT * FROM fetch_work_item(1000, NULL)",
        "SELECT * FROM fetch_orchestration_item(1000, NULL)",
        "SELECT renew_work_item_lock('t', 1000, NULL)",
        "SELECT renew_orchestration_item_lock('t', 1000, NULL)",
    ] {
        assert_eq!(caller.raised(call, &[]).await.0, "SF013", "{call}");
    }
}

#[tokio::test]
async fn work_with_terms_is_not_given_to_callers_of_the_compatible_functions() {
    let caller = CompatCaller::new("decided_terms").await;
    let queue = "SELECT enqueue_work('{}', 'i', 1, 2, '', '', $1, NULL, 1000, p_call => '{\"key\":\"k\"}')";
    for session in [None, Some("s")] {
        caller.run(queue, &[&session]).await;
        assert!(caller.fetch_work(1_000, Some("one")).await.is_none(), "{session:?}");
        caller.enqueue_work(1_000, session).await;
        assert!(caller.fetch_work(1_000, Some("one")).await.is_some(), "{session:?}");
    }
}
