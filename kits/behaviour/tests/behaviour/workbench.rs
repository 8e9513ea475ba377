//! What the tests of workers, shutdown and metrics share: activities that wait for the test, and time that
//! passes no faster than the runtimes can follow.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::{Error as _, Serialize, Serializer};
use steadfast::runtime::registry::ActivityRegistryBuilder;
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{Stage, StoreKind, activities};
use steadfast_clock::Clock;
use tokio::sync::{Semaphore, mpsc};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// How often in a row the same number of tasks must sleep before a test takes them all for asleep.
const CALM: usize = 20;

/// What the handler of an orchestration or an activity returns.
pub(crate) type HandlerResult = Result<String, String>;

/// A value that cannot be encoded.
pub(crate) struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("cannot be written"))
    }
}

/// Tells a test when an activity begins, and keeps it until the test opens.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    entered: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { entered: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// Waits inside an activity until the test opens.
    pub(crate) async fn pass(&self) {
        self.entered.add_permits(1);
        self.open.acquire().await.expect("a gate is never closed").forget();
    }

    /// Waits until one more activity stands at the gate.
    pub(crate) async fn is_entered(&self) {
        self.entered.acquire().await.expect("a gate is never closed").forget();
    }

    /// Counts the activities at the gate that `is_entered` has not returned for.
    pub(crate) fn waiting(&self) -> usize {
        self.entered.available_permits()
    }

    /// Lets one activity go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

/// Registers `Wait`: it waits at the gate, then returns its delivery as `attempt n`.
pub(crate) fn waiting(gate: &Gate) -> ActivityRegistryBuilder {
    let gate = gate.clone();
    activities().register("Wait", move |ctx: ActivityContext, _| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(format!("attempt {}", ctx.counted_deliveries()))
        }
    })
}

/// Registers `Hand`: it hands its context to the test, and never ends by itself.
pub(crate) fn handing() -> (ActivityRegistryBuilder, mpsc::UnboundedReceiver<ActivityContext>) {
    let (hand, handed) = mpsc::unbounded_channel();
    let registry = activities().register("Hand", move |ctx: ActivityContext, _| {
        hand.send(ctx).expect("the test listens");
        std::future::pending()
    });
    (registry, handed)
}

/// Calls the activity that its input names, and returns what it returns.
pub(crate) async fn call(ctx: OrchestrationContext, activity: String) -> Result<String, String> {
    ctx.schedule_activity(activity, "in").await
}

/// Waits until an activity has been abandoned for the `n`th time, and its work waits for a worker.
pub(crate) async fn is_abandoned(stage: &Stage, n: u64) {
    stage.until("it is given back", async || stage.faults.abandoned() == n).await;
    stage
        .until("it waits", async || {
            stage.observer().get_queue_depths().await.expect("counts").worker_queue == 1
        })
        .await;
}

/// Lets time pass a step at a time, each only when all tasks that were woken sleep again: however slow the
/// machine, a lease is renewed in its time. Requests that change nothing queue up behind those of the woken
/// tasks.
pub(crate) async fn pass_calmly(stage: &Stage, time: Duration, step: Duration) {
    let end = stage.clock.monotonic().saturating_add(time);
    while stage.clock.monotonic() < end {
        let sleepers = stage.clock.sleepers();
        stage.pass(step);
        if stage.kind == StoreKind::Postgres {
            // Waiting tasks poll the server from time to time, so the number of sleepers says little.
            stage.settle().await;
            continue;
        }
        for _ in 0..3 {
            let nothing = stage.inner().renew_session_lock(&["nobody"], SECOND, SECOND).await;
            assert_eq!(nothing.expect("the store answers"), 0);
            tokio::task::yield_now().await;
        }
        // Fewer may sleep than before, if a task has ended: then their number does not change any more.
        let mut calm = 0;
        while stage.clock.sleepers() < sleepers && calm < CALM {
            let before = stage.clock.sleepers();
            stage.settle().await;
            calm = if stage.clock.sleepers() == before { calm + 1 } else { 0 };
        }
    }
}
