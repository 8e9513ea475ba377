//! A turn whose code does not return (G16): its instance can be terminated, and becomes poison.
//!
//! The code holds its thread, so these run on real threads; their time is virtual.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast::{AppErrorKind, ErrorDetails, OrchestrationContext, PoisonMessageType};
use steadfast_behaviour::{Stage, StoreKind, activities, orchestrations};

const STORES: [StoreKind; 4] =
    [StoreKind::Memory, StoreKind::Sqlite, StoreKind::Postgres, StoreKind::Wrapped];

/// Lets a handler go that holds its thread, also when the test fails.
#[derive(Default)]
struct Released(Arc<AtomicBool>);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A stage whose only instance, `spins`, holds the thread of its first turn.
struct Spinning {
    stage: Stage,
    released: Released,
    /// How often the code began.
    entered: Arc<AtomicU32>,
}

impl Spinning {
    async fn on(kind: StoreKind) -> Self {
        Self::with_attempts(kind, 3).await
    }

    async fn with_attempts(kind: StoreKind, max_attempts: u32) -> Self {
        let stage = Stage::new(kind).await;
        let (released, entered) = (Released::default(), Arc::new(AtomicU32::new(0)));
        let (free, count) = (Arc::clone(&released.0), Arc::clone(&entered));
        let flow = orchestrations().register("Spin", move |_: OrchestrationContext, _: String| {
            let free = Arc::clone(&free);
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                while !free.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                Ok("at last".to_owned())
            }
        });
        let flow = flow.register("Echo", |_, input| async move { Ok(input) });
        let options = RuntimeOptions {
            orchestration_concurrency: 1,
            max_turn_time: Duration::from_secs(2),
            max_attempts,
            ..stage.options()
        };
        stage.run_with(activities(), flow, options).await;
        stage.start("spins", "Spin", "").await;
        stage.until("it spins", async || entered.load(Ordering::Relaxed) == 1).await;
        Self { stage, released, entered }
    }

    /// Asserts that the code ran once, and that its late end changes nothing.
    async fn ran_once(self) {
        let Self { stage, released, entered } = self;
        assert_eq!(entered.load(Ordering::Relaxed), 1);
        let kinds = stage.kinds("spins").await;
        drop(released);
        stage.pass_slowly(Duration::from_secs(30), Duration::from_secs(1)).await;
        assert_eq!(stage.kinds("spins").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn g16_a_turn_that_hangs_in_a_single_process_becomes_poison_and_its_code_runs_once() {
    for kind in STORES {
        let spinning = Spinning::on(kind).await;
        // In small steps, so that the end is committed before its own lease is over on a busy machine.
        let ended = spinning.stage.ends_as_time_passes("spins", Duration::from_millis(100)).await;
        let Err(ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. }) = ended else {
            panic!("{kind:?}: {ended:?}")
        };
        assert_eq!((attempt_count, max_attempts), (4, 3), "{kind:?}");
        let instance = "spins".to_owned();
        assert_eq!(message_type, PoisonMessageType::Orchestration { instance, execution_id: 1 });
        spinning.ran_once().await;
    }
}

/// The lease has not expired when the code returns, and the store takes no commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn g16_a_turn_that_took_too_long_counts_also_if_its_commit_fails() {
    for kind in STORES {
        let spinning = Spinning::with_attempts(kind, 1).await;
        let stage = &spinning.stage;
        stage.pass_slowly(Duration::from_secs(3), Duration::from_millis(500)).await;
        // The only slot serves again: the turn was found to take too long.
        assert_eq!(stage.ends_after("other", "Echo", "x").await, Ok("x".to_owned()));
        stage.faults.refuse("commit_turn", 6, ProviderError::retryable("test", "the store is away"));
        spinning.released.0.store(true, Ordering::Relaxed);
        let ended = stage.ends_as_time_passes("spins", Duration::from_millis(100)).await;
        let Err(ErrorDetails::Poison { attempt_count, .. }) = ended else { panic!("{kind:?}: {ended:?}") };
        assert_eq!(attempt_count, 2, "{kind:?}");
        spinning.ran_once().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn g16_an_instance_whose_turn_hangs_can_be_terminated() {
    for kind in STORES {
        let spinning = Spinning::on(kind).await;
        spinning.stage.pass_slowly(Duration::from_secs(3), Duration::from_millis(100)).await;
        spinning.stage.client.terminate_instance("spins", "enough").await.expect("asks");
        let ended = spinning.stage.ends_as_time_passes("spins", Duration::from_millis(500)).await;
        let kind_of_end = AppErrorKind::Terminated { reason: "enough".to_owned() };
        let terminated =
            ErrorDetails::Application { kind: kind_of_end, message: String::new(), retryable: false };
        assert_eq!(ended, Err(terminated), "{kind:?}");
        spinning.ran_once().await;
    }
}
