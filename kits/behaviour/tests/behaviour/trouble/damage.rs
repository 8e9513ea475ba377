//! Damaged rows of a SQLite file, also such that are no UTF-8: a damaged event fails its own instance, a
//! damaged message or piece of work is set aside, and other instances go on (S15).

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use steadfast::providers::ProviderErrorKind;
use steadfast::{ClientError, ErrorDetails, OrchestrationStatus, PoisonMessageType, RuntimeOptions};
use steadfast_behaviour::{SOON, Stage, StoreKind};
use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, Queue, UNREADABLE_RETRY};
use tokio::sync::Notify;

use super::bench::{Runs, flows, noted};

/// Changes the file behind everybody's back.
fn damage(stage: &Stage, sql: &str) {
    let file = Connection::open(stage.file()).expect("opens");
    file.busy_timeout(SOON).expect("waits");
    assert_eq!(file.execute(sql, []).expect("damages"), 1, "{sql}");
}

#[tokio::test]
async fn s15_a_damaged_event_fails_its_instance_after_its_attempts_and_nobody_else() {
    for text in ["'{broken'", "CAST(x'7bff' AS TEXT)"] {
        let stage = Stage::new(StoreKind::Sqlite).await;
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let few = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(noted(&ran, &go), flows(), few.clone()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        // Who holds it warm does not read it again: another process does.
        stage.stop().await;
        stage.run_with(noted(&ran, &go), flows(), few).await;
        damage(&stage, &format!("UPDATE history SET event = {text} WHERE event_id = 2"));
        let unread = stage.client.read_execution_history("a", 1).await.expect_err("it is damaged");
        assert!(
            matches!(&unread, ClientError::Provider(error) if error.kind == ProviderErrorKind::Corrupt),
            "{unread:?}"
        );
        stage.client.raise_event("a", "go", "").await.expect("sends");
        let ended = tokio::time::timeout(SOON, async {
            loop {
                stage.pass_slowly(Duration::from_millis(500), Duration::from_millis(100)).await;
                let status = stage.client.get_orchestration_status("a").await.expect("answers");
                if let OrchestrationStatus::Failed { details, .. } = status {
                    return details;
                }
            }
        });
        let details = ended.await.expect("it ends");
        let ErrorDetails::Poison { attempt_count: 3, message_type, .. } = &details else {
            panic!("{details:?}")
        };
        assert!(
            matches!(message_type, PoisonMessageType::FailedDeserialization { instance: id, .. } if id == "a")
        );
        assert_eq!(stage.ends_after("b", "Plain", "fine").await, Ok("fine".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

#[tokio::test]
async fn s15_a_damaged_message_or_activity_is_set_aside_and_blocks_nobody() {
    for (table, queue) in [("messages", Queue::Orchestrator), ("work", Queue::Worker)] {
        for text in ["'{broken'", "''", "CAST(x'7bff' AS TEXT)"] {
            let stage = Stage::new(StoreKind::Sqlite).await;
            let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
            let no_workers = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
            stage.run_with(noted(&ran, &go), flows(), no_workers).await;
            stage.start("a", "Plain", "x").await;
            stage.has("a", "ActivityScheduled", 1).await;
            stage.stop().await;
            stage.client.raise_event("a", "event", "").await.expect("sends");
            damage(&stage, &format!("UPDATE {table} SET item = {text}"));
            stage.run(noted(&ran, &go), flows()).await;
            for number in 0..MAX_UNREADABLE_ATTEMPTS {
                let beside = format!("beside-{number}");
                assert_eq!(
                    stage.ends_after(&beside, "Plain", "fine").await,
                    Ok("fine".to_owned()),
                    "{table} {text}"
                );
                stage.pass(UNREADABLE_RETRY);
            }
            let aside = async || stage.client.list_set_aside(None).await.expect("lists");
            stage.until("it is set aside", async || !aside().await.is_empty()).await;
            let [row] = &aside().await[..] else { panic!("one row") };
            assert_eq!((row.queue, row.instance.as_deref()), (queue, Some("a")), "{table} {text}");
            stage.stop().await;
        }
    }
}
