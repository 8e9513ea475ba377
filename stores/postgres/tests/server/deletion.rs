//! Deletion beside everything else: two processes send, commit and work while a third deletes (F12, F13).

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_postgres::PostgresProvider;
use steadfast_store::{Provider, ProviderAdmin, ProviderError, ProviderErrorKind, SessionFetchConfig};

use crate::{connect, open, server, sql, start_of};

const INSTANCES: u64 = 6;
const ROUNDS: u64 = 60;
const LEASE: Duration = Duration::from_secs(30);

fn name(number: u64) -> String {
    format!("i-{}", number % INSTANCES)
}

/// What was deleted meanwhile is lost, and that is all that may go wrong.
fn kept_or_lost<T>(outcome: Result<T, ProviderError>) {
    match outcome {
        Ok(_) => {}
        Err(error) if error.is_lease_lost() => {}
        Err(error) => panic!("{error}"),
    }
}

async fn send_and_commit(store: Arc<PostgresProvider>, seed: u64) {
    for round in 0..ROUNDS {
        store.enqueue_for_orchestrator(start_of(&name(seed + round)), None).await.unwrap();
        let fetched = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
        let Some((item, token, _)) = fetched else { continue };
        let id = item.history.len() as u64 + 1;
        let opened = EventKind::SessionOpened {
            session_id: "own".to_owned(),
            idle_timeout_ms: None,
            concurrency: None,
        };
        let event = Event::at(round, id, &item.instance, 1, None, opened);
        let activity = WorkItem::ActivityExecute {
            instance: item.instance.clone(),
            execution_id: 1,
            id,
            name: "Pay".to_owned(),
            input: String::new(),
            session_id: (round % 2 == 0).then(|| format!("shared-{}", round % 3)),
            tag: None,
        };
        let told = WorkItem::ExternalRaised {
            instance: name(seed + round * 5 + 1),
            name: "paid".to_owned(),
            data: String::new(),
        };
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            parent_instance_id: (round % 4 == 0).then(|| name(seed + round + 1)),
            ..ExecutionMetadata::default()
        };
        let committed = store.ack_orchestration_item(
            &token,
            1,
            vec![event],
            vec![activity],
            vec![told],
            metadata,
            vec![],
        );
        kept_or_lost(committed.await);
    }
}

async fn work(store: Arc<PostgresProvider>, owner: &str) {
    let session = SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE };
    for round in 0..ROUNDS {
        let fetched = store.fetch_work_item(LEASE, Duration::ZERO, Some(&session), &TagFilter::Any);
        let Some((item, token, _)) = fetched.await.unwrap() else { continue };
        let WorkItem::ActivityExecute { instance, execution_id, id, .. } = item else {
            panic!("{item:?} is no work")
        };
        let done = WorkItem::ActivityCompleted { instance, execution_id, id, result: String::new() };
        match round % 3 {
            0 => kept_or_lost(store.abandon_work_item(&token, None, false).await),
            _ => kept_or_lost(store.ack_work_item(&token, Some(done)).await),
        }
    }
}

async fn delete(store: Arc<PostgresProvider>) {
    for round in 0..ROUNDS {
        match store.delete_instance(&name(round), true).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind, ProviderErrorKind::NotFound | ProviderErrorKind::Refused) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_beside_everything_else_leaves_nothing_behind() {
    let schema = server().schema("deletion");
    let one = Arc::new(open(server().url(), schema.name()).await.unwrap());
    let other = Arc::new(open(server().url(), schema.name()).await.unwrap());
    let tasks = [
        tokio::spawn(send_and_commit(Arc::clone(&one), 0)),
        tokio::spawn(send_and_commit(Arc::clone(&other), 3)),
        tokio::spawn(work(Arc::clone(&one), "one")),
        tokio::spawn(work(Arc::clone(&other), "other")),
        tokio::spawn(delete(Arc::clone(&other))),
    ];
    for task in tasks {
        task.await.unwrap();
    }
    let client = connect(server().url()).await;
    let count = async |statement: &str| {
        let text = statement.replace("{name}", schema.name());
        let rows = client.query(&text, &[]).await.unwrap();
        rows.iter()
            .map(|row| (row.get::<_, String>(0), row.get::<_, i64>(1)))
            .filter(|(_, count)| *count > 0)
            .collect::<Vec<_>>()
    };
    assert_eq!(count(sql!("out_of_step")).await, [], "what is derived fits what it is derived from");
    let all: Vec<String> = (0..INSTANCES).map(name).collect();
    one.delete_instances_atomic(&all, true).await.unwrap();
    assert_eq!(count(sql!("left_behind")).await, []);
}
