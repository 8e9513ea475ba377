//! Code that holds the threads of its process for longer than its leases is poison in the end (G16, G38); a
//! store that is away for as long is not its fault.
//!
//! Real threads and real time, because that is what such code holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::Provider;
use steadfast::providers::postgres::PostgresProvider;
use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{Faults, Faulty, SOON, StoreKind, activities, orchestrations};
use steadfast_clock::{Clock, SystemClock};
use steadfast_cluster::Server;
use steadfast_memory::MemoryStore;
use tempfile::TempDir;

const LEASE: Duration = Duration::from_millis(200);

const MAX_ATTEMPTS: u32 = 3;

/// Holds the thread that it runs on.
#[expect(clippy::disallowed_methods, reason = "code of an application that does not know better")]
fn hold_the_thread(time: Duration) {
    std::thread::sleep(time);
}

fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        worker_lock_renewal_buffer: LEASE / 2,
        activity_cancellation_grace_period: LEASE / 4,
        max_attempts: MAX_ATTEMPTS,
        ..RuntimeOptions::default()
    }
}

/// Runs an instance of `Flow` on each store, by the clock of the machine, until it fails as poison. Its code
/// counts how often it begins.
async fn becomes_poison(
    code: impl Fn(&Arc<AtomicU32>) -> (ActivityRegistryBuilder, OrchestrationRegistryBuilder),
    options: impl Fn() -> RuntimeOptions,
) {
    let (folder, server) = (TempDir::new().expect("a folder"), Server::join().expect("a server"));
    let schema = server.schema("held_up");
    for kind in [StoreKind::Memory, StoreKind::Sqlite, StoreKind::Postgres] {
        let store: Arc<dyn Provider> = match kind {
            StoreKind::Memory | StoreKind::Wrapped => Arc::new(MemoryStore::new()),
            StoreKind::Sqlite => {
                let url = format!("sqlite:{}", folder.path().join("store.db").display());
                Arc::new(SqliteProvider::new(&url, None).await.expect("the file opens"))
            }
            StoreKind::Postgres => {
                let opened = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await;
                Arc::new(opened.expect("the schema opens"))
            }
        };
        let runs = Arc::new(AtomicU32::new(0));
        let (acts, flows) = code(&runs);
        let runtime =
            Runtime::start_with_options(Arc::clone(&store), acts.build(), flows.build(), options()).await;
        let client = Client::new(store);
        client.start_orchestration("a", "Flow", "").await.expect("starts");
        let status = client.wait_for_orchestration("a", SOON).await.expect("ends");
        let OrchestrationStatus::Failed { details, .. } = status else { panic!("{kind:?}: {status:?}") };
        let ErrorDetails::Poison { attempt_count, .. } = details else { panic!("{kind:?}: {details:?}") };
        // The delivery that fails it may lose its lease too, to a run that still holds the thread.
        assert!(attempt_count > MAX_ATTEMPTS, "{kind:?}");
        // A machine that is too busy to run this process may excuse a run.
        assert!(runs.load(Ordering::Relaxed) >= MAX_ATTEMPTS, "{kind:?}");
        runtime.shutdown(None).await;
    }
}

/// `Flow` calls `Block`, which holds its thread for twice its lease, `times` times.
fn blocking(runs: &Arc<AtomicU32>, times: u32) -> (ActivityRegistryBuilder, OrchestrationRegistryBuilder) {
    let runs = Arc::clone(runs);
    let acts = activities().register("Block", move |_: ActivityContext, _: String| {
        runs.fetch_add(1, Ordering::Relaxed);
        async move {
            for _ in 0..times {
                hold_the_thread(2 * LEASE);
                tokio::task::yield_now().await;
            }
            Ok(String::new())
        }
    });
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Block", "").await
    });
    (acts, flow)
}

#[tokio::test]
async fn g38_an_activity_that_holds_every_thread_beyond_its_lease_is_poison_in_the_end() {
    becomes_poison(|runs| blocking(runs, 1), options).await;
}

/// Between two slices the keeper of the lease asks the store, and learns the answer after the next slice.
#[tokio::test]
async fn g38_an_activity_that_holds_every_thread_again_and_again_is_poison_in_the_end() {
    becomes_poison(|runs| blocking(runs, 10), options).await;
}

#[tokio::test]
async fn g16_a_turn_that_holds_every_thread_beyond_its_time_is_poison_in_the_end() {
    let code = |runs: &Arc<AtomicU32>| {
        let runs = Arc::clone(runs);
        let flow = orchestrations().register("Flow", move |_: OrchestrationContext, _: String| {
            runs.fetch_add(1, Ordering::Relaxed);
            async move {
                hold_the_thread(3 * LEASE);
                Ok(String::new())
            }
        });
        (activities(), flow)
    };
    for max_turn_time in [LEASE, 3 * LEASE / 2, Duration::from_secs(60)] {
        becomes_poison(code, || RuntimeOptions { max_turn_time, ..options() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_a_store_that_is_away_for_longer_than_the_lease_is_no_fault_of_the_code() {
    let attempts = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&attempts);
    let acts = activities().register("Wait", move |ctx: ActivityContext, _: String| {
        seen.lock().expect("no holder panics").push(ctx.counted_deliveries());
        std::future::pending()
    });
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Wait", "").await
    });
    let faults = Faults::default();
    let store: Arc<dyn Provider> = Arc::new(Faulty::new(Arc::new(MemoryStore::new()), faults.clone()));
    // One slot: what is leased again is leased by the slot that had it.
    let options = RuntimeOptions { worker_concurrency: 1, max_attempts: 1, ..options() };
    let runtime = Runtime::start_with_options(Arc::clone(&store), acts.build(), flow.build(), options).await;
    Client::new(store).start_orchestration("a", "Flow", "").await.expect("starts");
    let runs = || attempts.lock().expect("no holder panics").len();
    for outage in 0..5 {
        let deadline = SystemClock.monotonic() + SOON;
        while runs() <= outage {
            assert!(SystemClock.monotonic() < deadline, "it runs after {outage} outages");
            SystemClock.sleep(Duration::from_millis(5)).await;
        }
        if outage % 2 == 0 {
            faults.outage();
        } else {
            // Calls that never answer, and the others fail.
            faults.hang("renew", 1);
            faults.outage();
        }
        SystemClock.sleep(3 * LEASE).await;
        faults.heal();
    }
    assert!(attempts.lock().expect("no holder panics").iter().all(|attempt| *attempt == 1), "{attempts:?}");
    runtime.shutdown(Some(0)).await;
}

/// A renewal takes several steps on a server, and each of them waits for a slice. The lease may be kept or
/// lost, but it is not excused for ever.
#[tokio::test]
async fn g38_an_activity_that_holds_its_thread_in_slices_ends() {
    let server = Server::join().expect("a server");
    let schema = server.schema("slices");
    let opened = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await;
    let store: Arc<dyn Provider> = Arc::new(opened.expect("the schema opens"));
    let acts = activities().register("Block", |_: ActivityContext, _: String| async move {
        for _ in 0..40 {
            hold_the_thread(LEASE * 3 / 20);
            tokio::task::yield_now().await;
        }
        Ok(String::new())
    });
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Block", "").await
    });
    let runtime =
        Runtime::start_with_options(Arc::clone(&store), acts.build(), flow.build(), options()).await;
    let client = Client::new(store);
    client.start_orchestration("a", "Flow", "").await.expect("starts");
    match client.wait_for_orchestration("a", SOON).await.expect("ends") {
        OrchestrationStatus::Completed { .. } => {}
        OrchestrationStatus::Failed { details: ErrorDetails::Poison { .. }, .. } => {}
        other => panic!("{other:?}"),
    }
    runtime.shutdown(Some(0)).await;
}

/// Runs many instances whose code holds a thread for a tenth of the lease, with more slots than the threads
/// can serve within a lease. Returns how many did not complete.
async fn crowded(in_activities: bool) -> usize {
    const INSTANCES: usize = 120;
    let acts = activities().register("Short", |_: ActivityContext, _: String| async move {
        hold_the_thread(LEASE / 10);
        Ok(String::new())
    });
    let flow = orchestrations().register("Flow", move |ctx: OrchestrationContext, _: String| async move {
        if in_activities {
            return ctx.schedule_activity("Short", "").await;
        }
        hold_the_thread(LEASE / 10);
        Ok(String::new())
    });
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::new());
    let client = Client::new(Arc::clone(&store));
    for number in 0..INSTANCES {
        client.start_orchestration(format!("i{number}"), "Flow", "").await.expect("starts");
    }
    let many = RuntimeOptions { orchestration_concurrency: 64, worker_concurrency: 64, ..options() };
    let runtime = Runtime::start_with_options(store, acts.build(), flow.build(), many).await;
    let mut failed = 0;
    for number in 0..INSTANCES {
        let ended = client.wait_for_orchestration(&format!("i{number}"), SOON).await.expect("ends");
        failed += usize::from(!matches!(ended, OrchestrationStatus::Completed { .. }));
    }
    runtime.shutdown(Some(0)).await;
    failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_many_short_turns_that_lose_their_leases_to_each_other_are_not_poison() {
    assert_eq!(crowded(false).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_many_short_activities_that_lose_their_leases_to_each_other_are_not_poison() {
    assert_eq!(crowded(true).await, 0);
}
