//! The health of a runtime, for probes and dashboards.

use std::time::Duration;

use steadfast_store::{Gauges, OldestWaiting, ProviderError, ProviderErrorKind, Store};

use crate::runtime::RuntimeShared;

/// Bounds how long a health check waits for the store: a store that hangs is not reachable.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Tells whether a runtime and its store work, and how much work waits. Made by
/// [`Runtime::health`](crate::Runtime::health).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The store answered within 5 seconds.
    pub store_reachable: bool,
    /// The runtime takes new turns and work. False once it shuts down or is [`fenced`](Self::fenced).
    pub accepting: bool,
    /// A newer process has started under the `worker_node_id` of this one, which takes no more work:
    /// [`Runtime::fenced`](crate::Runtime::fenced).
    pub fenced: bool,
    /// How many slots the runtime should have: `orchestration_concurrency` and `worker_concurrency` together.
    pub slots: usize,
    /// How many slots run. Fewer than [`slots`](Self::slots) only for a moment, while one is restarted.
    pub slots_alive: usize,
    /// How many slots were restarted after a panic, since the runtime started.
    pub slots_restarted: u64,
    /// How many slots got a new task because a turn took longer than `max_turn_time`, since the runtime
    /// started.
    pub slots_replaced: u64,
    /// How many messages wait for a turn in the whole store, those of turns that run and of timers included.
    /// `None` if the store cannot tell.
    pub waiting_messages: Option<usize>,
    /// How many activities wait for a worker or run, in the whole store. `None` if the store cannot tell.
    pub waiting_work: Option<usize>,
    /// How long the instance that waits longest for a turn has been ready for one. `None` if no instance is
    /// ready, or if the store cannot tell. It grows while too few runtimes run turns.
    pub oldest_message_waits: Option<Duration>,
    /// How long the activity that waits longest for a worker has been ready to be leased. `None` if no
    /// activity is ready, or if the store cannot tell. It grows while too few workers serve its tag or its
    /// session.
    pub oldest_work_waits: Option<Duration>,
}

/// How much work waits in the store, and for how long. `None` where the store cannot tell.
#[derive(Default)]
struct Backlog {
    gauges: Option<Gauges>,
    oldest: OldestWaiting,
}

/// Reads the backlog of the store and counts the slots that run. Takes at most [`STORE_PATIENCE`].
pub(crate) async fn check(shared: &RuntimeShared) -> Health {
    let answer = tokio::select! {
        biased;
        answer = backlog_of(&*shared.store) => answer.ok(),
        () = shared.plan.clock.sleep(STORE_PATIENCE) => None,
    };
    let store_reachable = answer.is_some();
    let Backlog { gauges, oldest } = answer.unwrap_or_default();
    let waits = |since: Option<u64>| since.map(|at| Duration::from_millis(oldest.now_ms.saturating_sub(at)));
    let slots = shared.plan.turn_slots + shared.plan.worker_slots;
    Health {
        store_reachable,
        accepting: !shared.stop.is_cancelled() && !shared.fenced.is_cancelled(),
        fenced: shared.fenced.is_cancelled(),
        slots,
        // A task that was replaced because it does not return still runs, but not as a slot.
        slots_alive: shared.slots_alive.get().min(slots),
        slots_replaced: shared.slots_replaced.get(),
        slots_restarted: shared.slots_restarted.get(),
        waiting_messages: gauges.map(|gauges| count(gauges.messages)),
        waiting_work: gauges.map(|gauges| count(gauges.work)),
        oldest_message_waits: waits(oldest.message_ms),
        oldest_work_waits: waits(oldest.work_ms),
    }
}

/// Asks a store for its backlog. A store that cannot tell it is asked for the row of an instance, to see that
/// it answers.
async fn backlog_of(store: &dyn Store) -> Result<Backlog, ProviderError> {
    let oldest = match store.oldest_waiting().await {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => {
            store.state("").await?;
            OldestWaiting::default()
        }
        oldest => oldest?,
    };
    Ok(Backlog { gauges: super::gauges::of(store).await?, oldest })
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
