//! A SQLite file on a full disk: callers are told, nothing that was acknowledged is lost, and work goes on
//! when there is room (I1).

use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::providers::{Provider, ProviderErrorKind};
use steadfast::runtime::Runtime;
use steadfast::{Client, ClientError, OrchestrationStatus, RuntimeOptions};
use steadfast_behaviour::SOON;
use steadfast_clock::{Clock, VirtualClock};
use tokio::sync::Notify;

use super::bench::{BEGIN_MS, Runs, flows, noted};

/// A SQLite store with options, and what runs over it.
struct Small {
    client: Client,
    clock: VirtualClock,
    runtime: Arc<Runtime>,
}

impl Small {
    async fn open(file: &std::path::Path, max_pages: Option<u32>) -> Self {
        let clock = VirtualClock::new(BEGIN_MS);
        let options = SqliteOptions { clock: Arc::new(clock.clone()), max_pages, ..SqliteOptions::default() };
        let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await;
        let store: Arc<dyn Provider> = Arc::new(store.expect("opens"));
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let options = RuntimeOptions { clock: Arc::new(clock.clone()), ..RuntimeOptions::default() };
        let (acts, flow) = (noted(&ran, &go).build(), flows().build());
        let runtime = Runtime::start_with_options(Arc::clone(&store), acts, flow, options).await;
        Self { client: Client::with_clock(store, Arc::new(clock.clone())), clock, runtime }
    }

    /// Waits until an instance has ended while time passes.
    async fn ends(&self, instance: &str) -> OrchestrationStatus {
        let ended = tokio::time::timeout(SOON, async {
            loop {
                let status = self.client.get_orchestration_status(instance).await.expect("reading goes on");
                match status {
                    OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => {
                        self.clock.advance(Duration::from_millis(200));
                        steadfast_clock::SystemClock.sleep(Duration::from_millis(2)).await;
                    }
                    ended => return ended,
                }
            }
        });
        ended.await.unwrap_or_else(|_| panic!("{instance} does not end"))
    }
}

fn completed(status: &OrchestrationStatus) -> bool {
    matches!(status, OrchestrationStatus::Completed { .. })
}

#[tokio::test]
async fn i1_a_full_disk_is_told_to_callers_and_work_goes_on_when_there_is_room() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let small = Small::open(&folder.path().join("store.db"), Some(420)).await;
    small.client.start_orchestration("timer", "Timer", "kept").await.expect("there is room");
    // These have ended when the file is full, and take more room than what waits then needs.
    let mut ended: Vec<String> = (0..6).map(|number| format!("ended{number}")).collect();
    for instance in &ended {
        small.client.start_orchestration(instance, "Plain", "x".repeat(40_000)).await.expect("there is room");
        assert!(completed(&small.ends(instance).await));
    }
    let payload = "x".repeat(8_000);
    let mut started = Vec::new();
    for tries in 0.. {
        assert!(tries < 1_000, "the file never was full");
        let instance = format!("fill{}", started.len());
        match small.client.start_orchestration(instance.clone(), "Plain", payload.clone()).await {
            Ok(()) => started.push(instance),
            Err(ClientError::Provider(error)) if error.kind == ProviderErrorKind::Full => {
                assert!(error.is_retryable());
                break;
            }
            // Another request of the same commit met the end of the file.
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
    // What ended makes room for what has not, as soon as it is deleted; nothing is failed for want of it.
    for round in 0.. {
        for instance in ended.clone() {
            if small.client.delete_instance(&instance, false).await.is_ok() {
                ended.retain(|other| *other != instance);
            }
        }
        small.clock.advance(Duration::from_secs(6));
        steadfast_clock::SystemClock.sleep(Duration::from_millis(20)).await;
        for instance in started.clone() {
            let status = small.client.get_orchestration_status(&instance).await.expect("reading goes on");
            assert!(!matches!(status, OrchestrationStatus::Failed { .. }), "{status:?}");
            if completed(&status) {
                started.retain(|other| *other != instance);
                ended.push(instance);
            }
        }
        if started.is_empty() {
            break;
        }
        assert!(round < 1_000, "{} are stuck, {} could not be deleted", started.len(), ended.len());
    }
    assert!(completed(&small.ends("timer").await));
    small.client.start_orchestration("after", "Plain", "fine").await.expect("there is room again");
    assert!(completed(&small.ends("after").await));
    small.runtime.shutdown(Some(0)).await;
}

#[tokio::test]
async fn i1_a_full_disk_loses_nothing_that_was_acknowledged_when_opened_with_more_room() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("store.db");
    let small = Small::open(&file, Some(160)).await;
    let mut started = Vec::new();
    for number in 0..1_000 {
        let (instance, payload) = (format!("fill{number}"), "x".repeat(8_000));
        match small.client.start_orchestration(instance.clone(), "Plain", payload).await {
            Ok(()) => started.push(instance),
            Err(_) => break,
        }
    }
    small.runtime.shutdown(Some(0)).await;
    drop(small.client);
    let roomy = Small::open(&file, None).await;
    for instance in &started {
        assert!(completed(&roomy.ends(instance).await), "{instance}");
    }
    roomy.runtime.shutdown(Some(0)).await;
}
