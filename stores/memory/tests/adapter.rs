//! What a store lacks that is reached through its compatible methods only, line by line of `CONTRACT.md`.

#![allow(clippy::expect_used, reason = "a test panics with what it relies on")]

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_memory::MemoryStore;
use steadfast_store::{
    Abandon, Adapter, Attempt, Cold, Gauges, ListedHandler, NeededHandler, Provider, ProviderErrorKind,
    Refusal, Refused, Store, TurnCommit, TurnLease, TurnRequest, WorkerId, WorkerProcess, WorkerReport,
    WorkerSlots,
};

const LEASE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3_600);
const DAWN_MS: u64 = 1_700_000_000_000;

struct World {
    clock: VirtualClock,
    inner: Arc<MemoryStore>,
    store: Adapter,
}

fn world() -> World {
    let clock = VirtualClock::new(DAWN_MS);
    let inner = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
    let provider: Arc<dyn Provider> = Arc::clone(&inner) as Arc<dyn Provider>;
    let store = Adapter::new(provider, Arc::new(clock.clone()));
    World { clock, inner, store }
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn report() -> WorkerReport {
    WorkerReport {
        id: WorkerId("worker".to_owned()),
        process: WorkerProcess::default(),
        orchestrations: vec![ListedHandler { name: "Order".to_owned(), versions: vec!["1.0.0".to_owned()] }],
        activities: Vec::new(),
        tags: TagFilter::DefaultOnly,
        serves_sessions: true,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

impl World {
    async fn fetch(&self) -> Option<TurnLease> {
        let worker = WorkerId("other".to_owned());
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: Some(&worker),
        };
        self.store.fetch_turn(request).await.expect("the store answers")
    }

    /// Starts an instance, and ends it in its first turn.
    async fn ended(&self, instance: &str) {
        self.store.start(start(instance).into(), Vec::new()).await.expect("it is started");
        let lease = self.fetch().await.expect("the start is ready");
        let kind = EventKind::OrchestrationCompleted { output: String::new() };
        let commit = TurnCommit {
            events: vec![Event::at(DAWN_MS, 1, instance, 1, None, kind)],
            metadata: ExecutionMetadata {
                status: Some("Completed".to_owned()),
                output: Some(String::new()),
                orchestration_name: Some("Order".to_owned()),
                orchestration_version: Some("1.0.0".to_owned()),
                ..ExecutionMetadata::default()
            },
            ..TurnCommit::empty(1)
        };
        self.store.commit_turn(&lease.token, commit).await.expect("it is committed");
    }
}

#[tokio::test]
async fn the_adapter_keeps_no_rows_of_workers() {
    let world = world();
    for error in [
        world.store.report_worker(&report()).await.expect_err("no rows"),
        world.store.workers(None).await.expect_err("no rows"),
    ] {
        assert_eq!(error.kind, ProviderErrorKind::Unsupported, "{error}");
    }
}

#[tokio::test]
async fn the_adapter_refuses_by_abandoning_whatever_live_workers_list() {
    let world = world();
    world.inner.report_worker(&report()).await.expect("the store itself keeps rows");
    world.store.start(start("a").into(), Vec::new()).await.expect("it is started");
    let lease = world.fetch().await.expect("the start is ready");
    let handler = NeededHandler { name: "Order".to_owned(), version: None };
    let if_unlisted = Abandon { retry_after: Some(HOUR), attempt: Attempt::Counts };
    let refused = world.store.refuse(&lease.token, Refusal { handler, if_unlisted }).await;
    assert_eq!(refused, Ok(Refused::Unlisted));
    assert!(world.fetch().await.is_none(), "it is held back");
    world.clock.advance(HOUR);
    assert_eq!(world.fetch().await.expect("the delay is over").attempt, 2, "the refusal counts");
}

#[tokio::test]
async fn the_adapter_takes_no_delivery_off_the_count() {
    let world = world();
    world.store.start(start("a").into(), Vec::new()).await.expect("it is started");
    let lease = world.fetch().await.expect("the start is ready");
    world.clock.advance(LEASE);
    assert_eq!(world.store.excuse(&lease.token).await, Ok(false));
    assert_eq!(world.fetch().await.expect("the lease has expired").attempt, 2);
}

#[tokio::test]
async fn the_adapter_deletes_by_age_with_the_clock_of_its_process() {
    let world = world();
    world.ended("a").await;
    world.clock.advance(HOUR - Duration::from_millis(1));
    world.ended("b").await;
    for (age, expected) in [(Duration::MAX, 0), (HOUR, 0)] {
        let deleted = world.store.delete_ended(age, 10).await.expect("it can delete");
        assert_eq!(deleted.instances_deleted, expected, "nothing is {age:?} old");
    }
    world.clock.advance(Duration::from_millis(1));
    let deleted = world.store.delete_ended(HOUR, 10).await.expect("it can delete");
    assert_eq!(deleted.instances_deleted, 1, "an hour has passed since the end of the first");
    assert!(world.store.state("b").await.expect("it answers").is_some());
}

#[tokio::test]
async fn the_adapter_counts_with_the_compatible_methods() {
    let world = world();
    world.ended("a").await;
    world.store.start(start("b").into(), Vec::new()).await.expect("it is started");
    let gauges = world.store.gauges().await.expect("it can count");
    assert_eq!(gauges, Gauges { running_instances: 0, messages: 1, work: 0 });
}
