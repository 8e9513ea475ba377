//! Deletion beside all other calls: two processes send, commit and work while one of them deletes.

mod age;
mod deadlock;

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_postgres::PostgresProvider;
use steadfast_store::{Provider, ProviderAdmin, ProviderError, ProviderErrorKind, SessionFetchConfig};

use crate::{connect, open, server, start_of};

const INSTANCES: u64 = 6;
const ROUNDS: u64 = 60;
const LEASE: Duration = Duration::from_secs(30);

fn name(number: u64) -> String {
    format!("i-{}", number % INSTANCES)
}

/// Accepts a lost lease, because the instance may have been deleted meanwhile, and no other error.
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

/// Counts derived rows that do not match the rows that they are derived from.
const OUT_OF_STEP: &str = "
    SELECT 'heads of instances', count(*) FROM {name}.instance_locks l
    WHERE l.lock_token IS NULL
      AND l.head IS DISTINCT FROM (
          SELECT min(q.id) FROM {name}.orchestrator_queue q WHERE q.instance_id = l.instance_id
              AND q.state = 1
      )
    UNION ALL
    SELECT 'messages without a lock row', count(*) FROM {name}.orchestrator_queue q
    WHERE NOT EXISTS (SELECT 1 FROM {name}.instance_locks l WHERE l.instance_id = q.instance_id)
    UNION ALL
    SELECT 'heads of sessions', count(*) FROM {name}.heads h
    WHERE h.head IS DISTINCT FROM (
        SELECT min(w.id) FROM {name}.worker_queue w
        WHERE w.session_id = h.session_id AND w.session_scope = h.instance_id AND w.tag = h.tag
            AND w.state = 1
    )
    UNION ALL
    SELECT 'ready work without a head', count(*) FROM {name}.worker_queue w
    WHERE w.session_id IS NOT NULL AND w.state = 1
      AND NOT EXISTS (
          SELECT 1 FROM {name}.heads h
          WHERE h.session_id = w.session_id AND h.instance_id = w.session_scope AND h.tag = w.tag
      )
    UNION ALL
    SELECT 'work without a line', count(*) FROM {name}.worker_queue w
    WHERE w.session_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM {name}.lines l WHERE l.session_id = w.session_id AND l.instance_id
          = w.session_scope)
    UNION ALL
    SELECT 'statuses of instances', count(*) FROM {name}.instances i
    WHERE NOT EXISTS (
        SELECT 1 FROM {name}.executions e
        WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id AND e.status =
            i.status
    )";

/// Counts the rows of instances. Shared sessions belong to no instance, so they are not counted.
const LEFT_BEHIND: &str = "
    SELECT 'instances', count(*) FROM {name}.instances
    UNION ALL SELECT 'executions', count(*) FROM {name}.executions
    UNION ALL SELECT 'history', count(*) FROM {name}.history
    UNION ALL SELECT 'kv', count(*) FROM {name}.kv
    UNION ALL SELECT 'orchestrator_queue', count(*) FROM {name}.orchestrator_queue
    UNION ALL SELECT 'instance_locks', count(*) FROM {name}.instance_locks
    UNION ALL SELECT 'worker_queue', count(*) FROM {name}.worker_queue
    UNION ALL SELECT 'heads', count(*) FROM {name}.heads
    UNION ALL SELECT 'watchers', count(*) FROM {name}.watchers
    UNION ALL SELECT 'sessions', count(*) FROM {name}.sessions WHERE instance_id <> ''
    UNION ALL SELECT 'lines', count(*) FROM {name}.lines WHERE instance_id <> ''";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_beside_all_other_calls_leaves_nothing_behind() {
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
    assert_eq!(count(OUT_OF_STEP).await, [], "derived rows match their sources");
    let all: Vec<String> = (0..INSTANCES).map(name).collect();
    one.delete_instances_atomic(&all, true).await.unwrap();
    assert_eq!(count(LEFT_BEHIND).await, []);
}
