//! The runtime: starting, stopping, and asking how it is.

use std::sync::Arc;
use std::time::Duration;

use steadfast_client::Client;
use steadfast_core::{BUILD_VERSION, EventKind};
use steadfast_store::{
    OldestWaiting, Owner, Provider, ProviderError, ProviderErrorKind, QueueDepths, Store, store_of,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::Activities;
use crate::activity::builtin::with_builtins;
use crate::activity::running::RunningActivities;
use crate::dispatch::{self, SlotsAlive};
use crate::instrumented::InstrumentedProvider;
use crate::observability::{Counter, MetricsProvider, MetricsSnapshot, ObservabilityHandle};
use crate::options::RuntimeOptions;
use crate::plan::{OptionsError, Plan};
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::session::{self, Sessions};
use crate::turn::Turns;
use crate::turn::overdue::RunningTurns;
use crate::turn::warm::WarmCache;
use crate::upkeep::gauges;
use crate::upkeep::retention;

/// Runs orchestrations and activities over a store until it is shut down.
///
/// Dropping the `Arc` does not stop it.
pub struct Runtime {
    shared: Arc<Shared>,
}

/// What all tasks of a runtime share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) orchestrations: OrchestrationRegistry,
    pub(crate) activities: ActivityRegistry,
    pub(crate) plan: Plan,
    pub(crate) observability: ObservabilityHandle,
    /// Counts the slots that were restarted after a panic.
    pub(crate) slots_restarted: Counter,
    /// Counts the slots whose task was replaced because it did not come back.
    pub(crate) slots_replaced: Counter,
    /// Counts the events that turns looked at.
    pub(crate) events_visited: Counter,
    pub(crate) running_turns: Arc<RunningTurns>,
    pub(crate) warm: WarmCache,
    pub(crate) slots_alive: SlotsAlive,
    pub(crate) running_activities: Arc<RunningActivities>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) tasks: TaskTracker,
    /// Runs the tasks.
    tokio: tokio::runtime::Handle,
    /// Fetch no more.
    pub(crate) stop: CancellationToken,
    /// Stop what runs, and give it back.
    pub(crate) abort: CancellationToken,
    /// Names this runtime in logs and worker ids.
    id: String,
    pub(crate) seed: u64,
}

impl Shared {
    pub(crate) fn metrics(&self) -> &MetricsProvider {
        self.observability.metrics_provider()
    }

    /// Tells how many orchestrations are kept.
    pub(crate) fn measure_warm(&self) {
        self.metrics().set_warm_orchestrations(self.warm.len());
    }

    pub(crate) fn worker_id(&self, slot: usize) -> String {
        format!("work-{slot}-{}", self.plan.node_id.as_deref().unwrap_or(&self.id))
    }
}

/// Names an orchestration and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationDescriptor {
    /// Names the orchestration.
    pub name: String,
    /// Names the version of its handler.
    pub version: String,
    /// Names the parent of a child.
    pub parent_instance: Option<String>,
    /// Names the event of the parent that scheduled it.
    pub parent_id: Option<u64>,
}

/// Tells how a runtime is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Tells whether the store answers, within 5 seconds.
    pub store_reachable: bool,
    /// Tells whether the runtime takes new work.
    pub accepting: bool,
    /// Counts the slots that the runtime should have, for turns and activities together.
    pub slots: usize,
    /// Counts the slots that run.
    pub slots_alive: usize,
    /// Counts the slots that were restarted after a panic.
    pub slots_restarted: u64,
    /// Counts the slots whose task was replaced because a turn did not come back.
    pub slots_replaced: u64,
    /// Counts what waits for a turn, when the store can tell.
    pub waiting_messages: Option<usize>,
    /// Counts what waits for a worker, when the store can tell.
    pub waiting_work: Option<usize>,
    /// Holds how long some instance could have been leased and was not; `None` when none can be now, or when
    /// the store cannot tell. It grows while nobody runs turns, or too few do.
    pub oldest_message_waits: Option<Duration>,
    /// Holds how long some activity could have been leased and was not; `None` when none can be now, or when
    /// the store cannot tell. It grows while nobody serves its tag or its session, or too few do.
    pub oldest_work_waits: Option<Duration>,
}

/// Bounds how long a look at the health of a runtime waits for the store: one that hangs is not reachable.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// What a store says of itself.
#[derive(Default)]
struct Vitals {
    depths: Option<QueueDepths>,
    oldest: OldestWaiting,
}

impl Runtime {
    /// Starts a runtime over a store in memory, with default options. Nothing survives the process.
    #[cfg(feature = "in-memory")]
    pub async fn start(activities: ActivityRegistry, orchestrations: OrchestrationRegistry) -> Arc<Self> {
        Self::start_with_store(Arc::new(steadfast_memory::MemoryStore::new()), activities, orchestrations)
            .await
    }

    /// Starts a runtime with default options.
    pub async fn start_with_store(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
    ) -> Arc<Self> {
        Self::start_with_options(store, activities, orchestrations, RuntimeOptions::default()).await
    }

    /// Starts a runtime.
    ///
    /// # Panics
    /// When the options make no sense. [`try_start`](Self::try_start) returns an error instead.
    #[allow(clippy::panic, reason = "the compatible API panics here")]
    pub async fn start_with_options(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        match Self::try_start(store, activities, orchestrations, options).await {
            Ok(runtime) => runtime,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a runtime.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub async fn try_start(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Result<Arc<Self>, OptionsError> {
        let plan = Plan::try_from(options)?;
        let clock = Arc::clone(&plan.clock);
        tracing::info!(
            target: "steadfast::runtime",
            "steadfast runtime ({BUILD_VERSION}) starting with provider {} ({})",
            store.name(),
            store.version()
        );
        tracing::info!(
            target: "steadfast::runtime",
            supported_range = %format_args!("{}..={}", plan.versions.min, plan.versions.max),
            "Orchestration dispatcher capability filter configured"
        );
        let observability = ObservabilityHandle::over(MetricsProvider::described());
        let metrics = Arc::clone(observability.metrics_provider());
        let watched = InstrumentedProvider::new(store, Some(metrics)).with_clock(Arc::clone(&clock));
        let watched: Arc<dyn Provider> = Arc::new(watched);
        let client = Client::with_clock(Arc::clone(&watched), Arc::clone(&clock));
        let typed = store_of(watched, Arc::clone(&clock));
        let random = uuid::Uuid::new_v4();
        let owner = owner_of(&*typed, plan.node_id.as_deref(), random).await;
        let sessions = Arc::new(Sessions::new(owner, plan.max_sessions));
        let shared = Arc::new(Shared {
            client,
            orchestrations,
            activities: with_builtins(&activities, clock),
            observability,
            slots_restarted: Counter::default(),
            slots_replaced: Counter::default(),
            events_visited: Counter::default(),
            running_turns: Arc::default(),
            warm: WarmCache::new(plan.warm),
            slots_alive: SlotsAlive::default(),
            running_activities: Arc::default(),
            sessions,
            tasks: TaskTracker::new(),
            tokio: tokio::runtime::Handle::current(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            id: format!("{:04x}", random.as_u128() as u16),
            seed: random.as_u128() as u64,
            store: typed,
            plan,
        });
        gauges::read(&shared).await;
        shared.tasks.spawn(gauges::poll(Arc::clone(&shared)));
        if let Some(retention) = shared.plan.retention {
            shared.tasks.spawn(retention::keep(Arc::clone(&shared), retention));
        }
        dispatch::start(&shared, &Arc::new(Turns { shared: Arc::clone(&shared) }), shared.plan.turn_slots);
        dispatch::start(
            &shared,
            &Arc::new(Activities { shared: Arc::clone(&shared) }),
            shared.plan.worker_slots,
        );
        if shared.plan.worker_slots > 0 && shared.plan.max_sessions > 0 {
            shared.tasks.spawn(session::keep_leases(Arc::clone(&shared)));
        }
        Ok(Arc::new(Self { shared }))
    }

    /// Stops the runtime: no more is fetched, and what runs may finish within `timeout_ms` (1,000 by default;
    /// 0 gives it back at once). Then what still runs is stopped and given back, uncounted. Returns when all
    /// tasks have ended.
    ///
    /// # Cancel safety
    /// A dropped call has still asked the runtime to stop in that time; call it again to wait.
    pub async fn shutdown(self: Arc<Self>, timeout_ms: Option<u64>) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        let timeout = Duration::from_millis(timeout_ms.unwrap_or(1_000));
        if timeout.is_zero() {
            shared.abort.cancel();
        } else {
            // The call may be awaited outside tokio, where no timer runs, or be dropped: the time passes on a
            // task of its own, which holds no store and ends with the others.
            let (tasks, abort) = (shared.tasks.clone(), shared.abort.clone());
            let is_up = shared.plan.clock.sleep(timeout);
            shared.tokio.spawn(async move {
                tokio::select! {
                    () = tasks.wait() => {}
                    () = is_up => {
                        tracing::warn!(
                            target: "steadfast::runtime",
                            ?timeout,
                            "shutdown took too long; what still runs is given back"
                        );
                        abort.cancel();
                    }
                }
            });
        }
        shared.tasks.wait().await;
        // What is kept holds the user's values, and through contexts of activities perhaps the store.
        shared.warm.clear();
        shared.measure_warm();
    }

    /// Hands all sessions on: no more work of sessions is taken, what runs may finish, and each session is
    /// released as its last activity ends. Returns when none is attached. Turns and other activities go on
    /// until [`shutdown`](Self::shutdown). For deployments: another process claims the sessions at once.
    ///
    /// # Cancel safety
    /// A dropped call has still asked for it; call it again to wait.
    pub async fn drain(&self) {
        session::drain(&self.shared).await;
    }

    /// Returns what the runtime has done so far.
    pub fn metrics_snapshot(&self) -> Option<MetricsSnapshot> {
        Some(self.shared.observability.metrics_snapshot())
    }

    /// Returns what the runtime tells about itself.
    pub fn observability_handle(&self) -> Option<&ObservabilityHandle> {
        Some(&self.shared.observability)
    }

    /// Tells how the runtime is.
    ///
    /// # Cancel safety
    /// Nothing changes by looking.
    pub async fn health(&self) -> Health {
        let shared = &self.shared;
        let answer = tokio::select! {
            biased;
            answer = vitals_of(&*shared.store) => answer.ok(),
            () = shared.plan.clock.sleep(STORE_PATIENCE) => None,
        };
        let store_reachable = answer.is_some();
        let Vitals { depths, oldest } = answer.unwrap_or_default();
        let waits =
            |since: Option<u64>| since.map(|at| Duration::from_millis(oldest.now_ms.saturating_sub(at)));
        let slots = shared.plan.turn_slots + shared.plan.worker_slots;
        Health {
            store_reachable,
            accepting: !shared.stop.is_cancelled(),
            slots,
            // One that was replaced because it does not come back still runs, but not as a slot.
            slots_alive: shared.slots_alive.get().min(slots),
            slots_replaced: shared.slots_replaced.get(),
            slots_restarted: shared.slots_restarted.get(),
            waiting_messages: depths.as_ref().map(|depths| depths.orchestrator_queue),
            waiting_work: depths.as_ref().map(|depths| depths.worker_queue),
            oldest_message_waits: waits(oldest.message_ms),
            oldest_work_waits: waits(oldest.work_ms),
        }
    }

    /// Counts the orchestrations that stay in memory now, between their turns.
    pub fn warm_orchestrations(&self) -> usize {
        self.shared.warm.len()
    }

    /// Counts the events that turns have looked at so far, for tests of what a turn costs.
    #[doc(hidden)]
    pub fn events_visited(&self) -> u64 {
        self.shared.events_visited.get()
    }

    /// Names the orchestration of an instance, from its history.
    pub async fn get_orchestration_descriptor(&self, instance: &str) -> Option<OrchestrationDescriptor> {
        let events = self.shared.store.read_history(instance, None).await.ok()?;
        events.into_iter().find_map(|event| match event.kind {
            EventKind::OrchestrationStarted { name, version, parent_instance, parent_id, .. } => {
                Some(OrchestrationDescriptor { name, version, parent_instance, parent_id })
            }
            _ => None,
        })
    }
}

/// Asks a store for all it can say; one that can say nothing is asked for something.
async fn vitals_of(store: &dyn Store) -> Result<Vitals, ProviderError> {
    let oldest = match store.oldest_waiting().await {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => {
            store.state("").await?;
            OldestWaiting::default()
        }
        oldest => oldest?,
    };
    let depths = match store.admin() {
        Some(admin) => Some(admin.get_queue_depths().await?),
        None => None,
    };
    Ok(Vitals { depths, oldest })
}

/// Who this process is to the store: its node, with the number of this start, or a name of its own.
async fn owner_of(store: &dyn Store, node_id: Option<&str>, random: uuid::Uuid) -> Owner {
    let Some(node_id) = node_id else { return Owner::unnamed(random.simple().to_string()) };
    match store.register_node(node_id).await {
        Ok(incarnation) => Owner { id: node_id.to_owned(), incarnation: Some(incarnation) },
        Err(error) => {
            if error.kind != ProviderErrorKind::Unsupported {
                tracing::warn!(
                    target: "steadfast::runtime",
                    node_id,
                    %error,
                    "the node could not be registered; an older process of the same name is not fenced"
                );
            }
            Owner::unnamed(node_id)
        }
    }
}
