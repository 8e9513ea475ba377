//! The program runs: in memory, in a file, and through a wrapper that forwards only what it must.

#![allow(
    deprecated,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test relies on, it panics without; the old spellings are part of the API"
)]

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::observability::MetricsSnapshot;
use duroxide::runtime::registry::VersionPolicy;
use duroxide::runtime::{OrchestrationDescriptor, Runtime};
use duroxide::{
    AppErrorKind, Client, ClientError, ErrorDetails, EventKind, InstanceFilter, OrchestrationStatus,
    PruneOptions,
};
use steadfast_compat::program::{Order, activities, options, orchestrations};
use steadfast_compat::{Plain, Trouble};

const SOON: Duration = Duration::from_secs(30);

struct World {
    client: Client,
    runtime: Arc<Runtime>,
}

impl World {
    async fn new(store: &Arc<dyn Provider>) -> Self {
        let runtime =
            Runtime::start_with_options(store.clone(), activities(), orchestrations(), options()).await;
        Self { client: Client::new(store.clone()), runtime }
    }

    async fn run(&self, instance: &str, orchestration: &str, input: &str) -> String {
        self.client.start_orchestration(instance, orchestration, input).await.expect("starts");
        self.output(instance).await
    }

    async fn output(&self, instance: &str) -> String {
        match self.client.wait_for_orchestration(instance, SOON).await.expect("ends") {
            OrchestrationStatus::Completed { output, .. } => output,
            other => panic!("{instance}: {other:?}"),
        }
    }

    async fn status_from(&self, instance: &str, seen: u64) -> String {
        let poll = Duration::from_millis(10);
        match self.client.wait_for_status_change(instance, seen, poll, SOON).await.expect("changes") {
            OrchestrationStatus::Running { custom_status, .. } => custom_status.unwrap_or_default(),
            other => panic!("{instance}: {other:?}"),
        }
    }

    async fn end(self) {
        self.counts().await;
    }

    /// Stops and counts: a count may come a moment after what it is about.
    async fn counts(self) -> MetricsSnapshot {
        let runtime = self.runtime.clone();
        self.runtime.shutdown(Some(5_000)).await;
        let handle = runtime.observability_handle().expect("is there");
        assert_eq!(Some(handle.metrics_snapshot()), runtime.metrics_snapshot());
        handle.metrics_snapshot()
    }
}

async fn identity(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    assert_eq!(world.run("i", "Identity", "").await, "i|1|Identity|1.0.0|true");
    let described = world.runtime.get_orchestration_descriptor("i").await;
    let expected = OrchestrationDescriptor {
        name: "Identity".to_string(),
        version: "1.0.0".to_string(),
        parent_instance: None,
        parent_id: None,
    };
    assert_eq!(described, Some(expected));
    world.end().await;
}

async fn activities_of_every_kind(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    assert_eq!(
        world.run("a", "Activities", "Ada").await,
        "Hello, Ada; 6; 12; 3; a|1|Activities|1.0.0|Who|-|gpu|true; 7; 7; Err(\"not yet\")"
    );
    assert_eq!(world.run("s", "Sessions", "").await, "s|1|Sessions|1.0.0|Who|s-session|-|true; 8; 7; 7");
    let counts = world.counts().await;
    assert_eq!((counts.orch_starts, counts.orch_completions, counts.activity_app_errors), (2, 2, 5));
    assert_eq!(counts.provider_errors, 0);
}

async fn events_queues_and_races(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    let client = &world.client;
    client.start_orchestration_typed("w", "Waits", ()).await.expect("starts");
    assert_eq!(world.status_from("w", 0).await, "waiting");
    let order = Order { pieces: 9, what: "plums".to_string() };
    client.raise_event_typed("w", "typed", &order).await.expect("is sent");
    client.raise_event("w", "plain", "data").await.expect("is sent");
    client.enqueue_event("w", "queue", "one").await.expect("is sent");
    client.enqueue_event_typed("w", "queue", &2).await.expect("is sent");
    client.raise_event_persistent("w", "queue", "three").await.expect("is sent");
    client.enqueue_event("w", "queue", "4").await.expect("is sent");
    assert_eq!(world.output("w").await, "data; 9; one; 2; three; 4");

    client.start_orchestration("r", "Races", "").await.expect("starts");
    assert_eq!(world.status_from("r", 0).await, "late");
    client.raise_event("r", "approval", "granted").await.expect("is sent");
    assert_eq!(world.output("r").await, "late; granted; Hello, Ada; N0,N1,N2; A () 2; 0");
    world.end().await;
}

async fn children_and_new_executions(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    let client = &world.client;
    assert_eq!(world.run("c", "Children", "").await, "v2:a; v2:b; c; v2:d; 4; 6; Err(\"no luck\")");
    assert_eq!(world.output("c-b").await, "v2:b");
    assert_eq!(world.run("d", "Detached", "").await, "started");
    let detached = [("d-1", "v2:one"), ("d-2", "4"), ("d-3", "three"), ("d-4", "8")];
    for (instance, output) in detached {
        assert_eq!(world.output(instance).await, output);
    }
    assert_eq!(world.run("again", "Again", "").await, "once more");
    client.start_orchestration_typed("count", "Count", 0u32).await.expect("starts");
    let counted = client.wait_for_orchestration_typed::<u32>("count", SOON).await.expect("ends");
    assert_eq!(counted, Ok(3));
    client.start_orchestration_versioned("up", "Upgrade", "1.0.0", "now").await.expect("starts");
    assert_eq!(world.output("up").await, "now on 2.0.0");
    client.start_orchestration_versioned_typed("old", "Echo", "1.0.0", "old").await.expect("starts");
    assert_eq!(world.output("old").await, "old");
    client.start_orchestration("fails", "Fails", "way").await.expect("starts");
    let failed = client.wait_for_orchestration_typed::<String>("fails", SOON).await.expect("ends");
    assert_eq!(failed, Err("no way".to_string()));
    world.end().await;
}

async fn state_and_status(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    let client = &world.client;
    let own = "status of one; value; ([\"order\", \"text\"], 2, 2); 0";
    assert_eq!(world.run("one", "State", "").await, format!("{own}; None; (Some(2), None); true"));
    let own = own.replace("one", "two");
    let theirs = "Some(\"value\"); (Some(2), Some(2)); true";
    assert_eq!(world.run("two", "State", "one").await, format!("{own}; {theirs}"));
    let order: Option<Order> = client.get_kv_value_typed("one", "order").await.expect("reads");
    assert_eq!(order.map(|order| order.what), Some("pears".to_string()));
    assert_eq!(client.get_kv_value("one", "text").await.expect("reads"), Some("value".to_string()));
    assert_eq!(client.get_kv_all_values("one").await.expect("reads").len(), 2);
    assert_eq!(client.get_kv_all_values("two").await.expect("reads").len(), 0);
    assert_eq!(client.wait_for_kv_value("one", "text", SOON).await.expect("is there"), "value");
    let waited: Order = client.wait_for_kv_value_typed("one", "order", SOON).await.expect("is there");
    assert_eq!(waited.pieces, 2);
    let none = client.wait_for_kv_value("two", "text", Duration::from_millis(20)).await;
    assert!(matches!(none, Err(ClientError::Timeout)), "{none:?}");
    let stats = client.get_orchestration_stats("one").await.expect("reads").expect("is there");
    assert_eq!((stats.kv_user_key_count, stats.history_event_count > 5), (2, true));
    assert_eq!(client.get_orchestration_stats("none").await.expect("reads"), None);
    match client.get_orchestration_status("one").await.expect("reads") {
        OrchestrationStatus::Completed { output: _, custom_status, custom_status_version } => {
            assert_eq!((custom_status.as_deref(), custom_status_version), (Some("status of one"), 1));
        }
        other => panic!("{other:?}"),
    }
    let unknown = client.get_orchestration_status("none").await.expect("reads");
    assert_eq!(unknown, OrchestrationStatus::NotFound);
    world.end().await;
}

async fn cancellation_reaches_the_activity(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    let client = &world.client;
    client.start_orchestration("s", "Stuck", "").await.expect("starts");
    assert_eq!(world.status_from("s", 0).await, "begun");
    client.cancel_instance("s", "enough").await.expect("is sent");
    client.cancel_instance("s", "more than enough").await.expect("is sent");
    match client.wait_for_orchestration("s", SOON).await.expect("ends") {
        OrchestrationStatus::Failed { details, .. } => {
            assert_eq!(details.display_message(), "canceled: enough");
            let ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } = details else {
                panic!("{details:?}");
            };
            assert_eq!(reason, "enough");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.output("s-stopped").await, "v2:stopped");
    world.end().await;
}

async fn management(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    let client = &world.client;
    world.run("m", "Children", "").await;
    client.start_orchestration_typed("n", "Count", 0u32).await.expect("starts");
    world.output("n").await;
    if !client.has_management_capability() {
        let refused = client.list_all_instances().await;
        assert!(matches!(refused, Err(ClientError::ManagementNotAvailable)), "{refused:?}");
        return world.end().await;
    }
    assert_eq!(client.list_all_instances().await.expect("lists").len(), 9);
    assert_eq!(client.list_instances_by_status("Failed").await.expect("lists").len(), 1);
    assert_eq!(client.list_instances_by_status("Strange").await.expect("lists").len(), 0);
    let info = client.get_instance_info("n").await.expect("is there");
    assert_eq!((info.orchestration_name.as_str(), info.current_execution_id), ("Count", 4));
    assert_eq!(client.list_executions("n").await.expect("lists"), [1, 2, 3, 4]);
    assert_eq!(client.list_executions("none").await.expect("lists"), Vec::<u64>::new());
    let execution = client.get_execution_info("n", 1).await.expect("is there");
    assert_eq!((execution.status.as_str(), execution.event_count), ("ContinuedAsNew", 2));
    let history = client.read_execution_history("n", 4).await.expect("reads");
    assert!(matches!(&history[0].kind, EventKind::OrchestrationStarted { name, .. } if name == "Count"));
    assert!(history.last().is_some_and(duroxide::Event::is_terminal));
    assert_eq!(client.read_execution_history("none", 1).await.expect("reads"), []);
    let metrics = client.get_system_metrics().await.expect("counts");
    assert_eq!((metrics.total_instances, metrics.completed_instances, metrics.failed_instances), (9, 8, 1));
    let depths = client.get_queue_depths().await.expect("counts");
    assert_eq!((depths.orchestrator_queue, depths.worker_queue, depths.timer_queue), (0, 0, 0));
    let tree = client.get_instance_tree("m").await.expect("lists");
    assert_eq!((tree.root_id.as_str(), tree.size(), tree.is_root_only()), ("m", 8, false));
    deletions(client).await;
    world.end().await;
}

async fn deletions(client: &Client) {
    let pruned = client.prune_executions("n", PruneOptions { keep_last: Some(2), completed_before: None });
    assert_eq!(pruned.await.expect("prunes").executions_deleted, 2);
    let filter = InstanceFilter { instance_ids: Some(vec!["n".to_string()]), ..Default::default() };
    let options = PruneOptions { keep_last: Some(1), ..Default::default() };
    let pruned = client.prune_executions_bulk(filter.clone(), options).await.expect("prunes");
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 1));
    let refused = client.delete_instance("m-b", true).await;
    assert!(matches!(refused, Err(ClientError::CannotDeleteSubOrchestration { .. })), "{refused:?}");
    let unknown = client.delete_instance("none", false).await;
    assert!(matches!(unknown, Err(ClientError::InstanceNotFound { .. })), "{unknown:?}");
    assert_eq!(client.delete_instance("m", false).await.expect("deletes").instances_deleted, 8);
    let deleted = client.delete_instance_bulk(filter).await.expect("deletes");
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (1, 1));
    assert_eq!(client.list_all_instances().await.expect("lists"), Vec::<String>::new());
}

async fn a_changed_policy_counts_for_the_next_start(store: Arc<dyn Provider>) {
    let registry = orchestrations();
    assert_eq!((registry.has("Echo"), registry.list_versions("Echo").len()), (true, 2));
    let names = registry.list_names();
    assert_eq!((names.len(), names.contains(&"Noop".to_string())), (registry.count(), true));
    let runtime = Runtime::start_with_store(store.clone(), activities(), registry.clone()).await;
    let client = Client::new(store.clone());
    let world = World { client, runtime };
    assert_eq!(world.run("before", "Echo", "x").await, "v2:x");
    let (version, _) = registry.resolve_handler("Echo").expect("is there");
    assert_eq!(registry.resolve_version("Echo"), Some(version.clone()));
    let first = registry.list_versions("Echo").remove(0);
    assert!(registry.resolve_handler_exact("Echo", &first).is_some() && first < version);
    registry.set_version_policy("Echo", VersionPolicy::Exact(first));
    assert_eq!(world.run("after", "Echo", "x").await, "x");
    world.end().await;
}

async fn after_shutdown_nothing_holds_the_store(store: Arc<dyn Provider>) {
    let world = World::new(&store).await;
    world.run("i", "Activities", "Ada").await;
    let World { client, runtime } = world;
    let again = runtime.clone();
    tokio::join!(runtime.shutdown(None), again.shutdown(Some(0)));
    drop(client);
    assert_eq!(Arc::strong_count(&store), 1);
}

async fn in_memory() -> Arc<dyn Provider> {
    Arc::new(SqliteProvider::new_in_memory().await.expect("opens"))
}

macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                super::$scenario(super::in_memory().await).await;
            })*
        }

        mod file {
            use duroxide::providers::sqlite::SqliteProvider;

            $(#[tokio::test]
            async fn $scenario() {
                let folder = tempfile::tempdir().expect("has a temporary folder");
                let url = format!("sqlite:{}", folder.path().join("compat.db").display());
                let store = SqliteProvider::new(&url, None).await.expect("opens");
                super::$scenario(std::sync::Arc::new(store)).await;
            })*
        }

        mod plain {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(std::sync::Arc::new(super::Plain::new(super::in_memory().await))).await;
            })*
        }
    };
}

on_every_store!(
    identity,
    activities_of_every_kind,
    events_queues_and_races,
    children_and_new_executions,
    state_and_status,
    cancellation_reaches_the_activity,
    management,
    a_changed_policy_counts_for_the_next_start,
    after_shutdown_nothing_holds_the_store,
);

#[tokio::test]
async fn a_wrapper_sees_every_ack() {
    let wrapper = Arc::new(Plain::new(in_memory().await));
    let world = World::new(&(wrapper.clone() as Arc<dyn Provider>)).await;
    world.run("i", "Activities", "Ada").await;
    assert!(wrapper.acks() >= 18, "nine activities and as many turns: {}", wrapper.acks());
    world.end().await;
}

#[tokio::test]
async fn a_runtime_without_a_store_keeps_it_in_memory() {
    let runtime = Runtime::start(activities(), orchestrations()).await;
    assert_eq!(runtime.metrics_snapshot().map(|counts| counts.orch_starts), Some(0));
    runtime.shutdown(None).await;
}

/// A permanent error of the store ends the execution, and whoever waits for it is told.
#[tokio::test]
async fn a_child_that_can_never_be_committed_fails_its_parent() {
    let trouble = Trouble::RefusesTurns("c-b".to_string());
    let store: Arc<dyn Provider> = Arc::new(Plain::in_trouble(in_memory().await, trouble));
    let world = World::new(&store).await;
    world.client.start_orchestration("c", "Children", "").await.expect("starts");
    let output = world.client.wait_for_orchestration_typed::<String>("c", SOON).await.expect("ends");
    let error = output.expect_err("fails");
    assert!(error.contains("ack_orchestration_item") && error.contains("the disk is on fire"), "{error}");
    let child = world.runtime.get_orchestration_descriptor("c-b").await.expect("is there");
    assert_eq!((child.name.as_str(), child.parent_instance.as_deref()), ("Echo", Some("c")));
    let counts = world.counts().await;
    assert_eq!((counts.orch_starts, counts.orch_infrastructure_errors), (3, 2));
    assert_eq!(counts.provider_errors, 1);
}

/// It waits one second of real time: that is how long a slot may take to give its item back.
#[tokio::test]
async fn a_store_that_hangs_does_not_hold_up_a_shutdown() {
    let wrapper = Arc::new(Plain::in_trouble(in_memory().await, Trouble::HangsOnOutcomes));
    let world = World::new(&(wrapper.clone() as Arc<dyn Provider>)).await;
    world.client.start_orchestration("i", "Activities", "Ada").await.expect("starts");
    while wrapper.acks() < 2 {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::time::timeout(SOON, world.runtime.shutdown(Some(0))).await;
    assert!(stopped.is_ok(), "shut down");
    drop(world.client);
    assert_eq!(Arc::strong_count(&wrapper), 1);
}

#[test]
fn a_shutdown_at_once_can_be_awaited_outside_tokio() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let tokio = tokio.expect("builds");
    let world = tokio.block_on(async {
        let world = World::new(&in_memory().await).await;
        world.run("i", "Identity", "").await;
        world
    });
    futures::executor::block_on(world.runtime.shutdown(Some(0)));
}
