//! The runtime: starting and stopping it, and the state that its tasks share.

use std::sync::Arc;
use std::time::Duration;

use steadfast_client::Client;
use steadfast_core::{BUILD_VERSION, EventKind};
use steadfast_store::{LineThrottle, Provider, Store, store_of};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::Activities;
use crate::activity::builtin::{simple_guid, with_builtins};
use crate::activity::panic::watch_panics;
use crate::activity::running::RunningActivities;
use crate::dispatch::held::HeldLeases;
use crate::dispatch::owed::{self, OwedToStore};
use crate::dispatch::pulse::Pulse;
use crate::dispatch::{self, SlotsAlive};
use crate::instrumented::InstrumentedProvider;
use crate::invocations::Invocations;
use crate::observability::{Counter, MetricsProvider, MetricsSnapshot, ObservabilityHandle};
use crate::options::RuntimeOptions;
use crate::plan::{OptionsError, Plan};
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::session::{self, LocalSessions, ThisStart};
use crate::shutdown;
use crate::turn::Turns;
use crate::turn::overdue::RunningTurns;
use crate::turn::warm::WarmCache;
use crate::upkeep::health::{self, Health};
use crate::upkeep::worker::{self, WorkerRow};
use crate::upkeep::{gauges, leaks, retention};

/// Runs orchestrations and activities over a store until it is shut down.
///
/// Its tasks run on the tokio runtime that it was started on. Dropping the `Arc` does not stop them: call
/// [`shutdown`](Self::shutdown).
///
/// ```
/// # mod steadfast {
/// #     pub use steadfast_core::OrchestrationContext;
/// #     pub use steadfast_runtime::{self as runtime, OrchestrationRegistry};
/// #     pub mod providers { pub use steadfast_memory as memory; }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::{sync::Arc, time::Duration};
/// use steadfast::providers::memory::MemoryStore;
/// use steadfast::runtime::{Runtime, registry::ActivityRegistry};
/// use steadfast::{OrchestrationContext, OrchestrationRegistry};
///
/// let activities = ActivityRegistry::builder()
///     .register("Greet", |_, name| async move { Ok(format!("Hello, {name}!")) });
/// let orchestrations = OrchestrationRegistry::builder()
///     .register("Hello", |ctx: OrchestrationContext, name| async move {
///         ctx.schedule_activity("Greet", name).await
///     });
/// let store = Arc::new(MemoryStore::new());
/// let runtime = Runtime::start_with_store(store, activities.build(), orchestrations.build()).await;
///
/// let client = runtime.client();
/// client.start_orchestration("hello-1", "Hello", "Ada").await?;
/// let greeting = client.instance("hello-1").wait_for::<String>(Duration::from_secs(10)).await?;
/// assert_eq!(greeting, Ok("Hello, Ada!".to_owned()));
/// runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    shared: Arc<RuntimeShared>,
}

/// The state that all tasks of a runtime share.
pub(crate) struct RuntimeShared {
    /// The application's store inside a decorator (`Watched`) that measures and counts every call.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) orchestrations: OrchestrationRegistry,
    pub(crate) activities: ActivityRegistry,
    pub(crate) plan: Plan,
    /// The start to register under the node id of this process; `None` if it has none.
    pub(crate) node_start: Option<ThisStart>,
    pub(crate) observability: ObservabilityHandle,
    /// Counts the slots that were restarted after a panic.
    pub(crate) slots_restarted: Counter,
    /// Counts the slots that got a new task because a turn took longer than `max_turn_time`.
    pub(crate) slots_replaced: Counter,
    /// Counts the events that turns read.
    pub(crate) events_visited: Counter,
    /// Leaves out log lines of fetches that fail for the same reason.
    pub(crate) fetch_errors: LineThrottle,
    pub(crate) running_turns: Arc<RunningTurns>,
    pub(crate) warm: WarmCache,
    pub(crate) slots_alive: SlotsAlive,
    pub(crate) running_activities: Arc<RunningActivities>,
    pub(crate) sessions: Arc<LocalSessions>,
    /// The leases that this process holds.
    pub(crate) held: Arc<HeldLeases>,
    /// What this process owes the store for leases that ended without an outcome.
    pub(crate) owed: OwedToStore,
    pub(crate) worker_row: WorkerRow,
    pub(crate) tasks: TaskTracker,
    /// The slots, which are among the tasks.
    pub(crate) slots: TaskTracker,
    /// The tasks that run code of the application.
    pub(crate) invocations: Invocations,
    /// The tokio runtime that the tasks run on.
    tokio: tokio::runtime::Handle,
    /// Cancelled when the runtime stops: slots fetch no more.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the time of a shutdown is up: turns and activities that run are stopped, and their
    /// leases are abandoned.
    pub(crate) abort: CancellationToken,
    /// Cancelled when the store says that a newer process has started under this node's name: slots fetch no
    /// more.
    pub(crate) fenced: CancellationToken,
    /// Four hexadecimal digits that name this runtime in worker ids, unless it has a node id.
    id: String,
    /// A random number, so that the waits after errors differ from those of other processes.
    pub(crate) seed: u64,
}

impl RuntimeShared {
    pub(crate) fn metrics(&self) -> &MetricsProvider {
        self.observability.metrics_provider()
    }

    /// Updates the gauge of the orchestrations that are in memory.
    pub(crate) fn measure_warm(&self) {
        self.metrics().set_warm_orchestrations(self.warm.len());
    }

    pub(crate) fn worker_id(&self, slot: usize) -> String {
        format!("work-{slot}-{}", self.plan.node_id.as_deref().unwrap_or(&self.id))
    }
}

/// Describes the orchestration of an instance, from the first event of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationDescriptor {
    /// The name that the orchestration is registered under.
    pub name: String,
    /// The version of the handler that the current execution runs with.
    pub version: String,
    /// The instance that started this one as a child. `None` for an instance that a client started.
    pub parent_instance: Option<String>,
    /// The id of the event in the parent's history that scheduled the child.
    pub parent_id: Option<u64>,
}

impl Runtime {
    /// Starts a runtime over a new store in memory, with default options. Its state does not survive the
    /// process. [`client`](Self::client) reaches it.
    ///
    /// # Cancel safety
    /// As [`try_start`](Self::try_start).
    #[cfg(feature = "in-memory")]
    pub async fn start(activities: ActivityRegistry, orchestrations: OrchestrationRegistry) -> Arc<Self> {
        Self::start_with_store(Arc::new(steadfast_memory::MemoryStore::new()), activities, orchestrations)
            .await
    }

    /// Starts a runtime with default options.
    ///
    /// # Cancel safety
    /// As [`try_start`](Self::try_start).
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
    /// If the options are not valid. [`try_start`](Self::try_start) returns an error instead.
    ///
    /// # Cancel safety
    /// As [`try_start`](Self::try_start).
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

    /// Starts a runtime. Registers the node in the store if `worker_node_id` is set.
    ///
    /// # Errors
    /// [`OptionsError`] tells which option is not valid, and why. A store that cannot be reached is no error:
    /// the runtime waits for it.
    ///
    /// # Cancel safety
    /// A dropped call starts no task. It may have registered the node, which detaches the sessions of an
    /// older process of that name.
    pub async fn try_start(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Result<Arc<Self>, OptionsError> {
        let plan = Plan::try_from(options)?;
        plan.check_registry(&activities)?;
        watch_panics();
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
        let observability = ObservabilityHandle::with_metrics(MetricsProvider::described());
        let metrics = Arc::clone(observability.metrics_provider());
        let watched = InstrumentedProvider::new(store, Some(metrics)).with_clock(Arc::clone(&clock));
        let watched: Arc<dyn Provider> = Arc::new(watched);
        let client = Client::with_clock(Arc::clone(&watched), Arc::clone(&clock));
        let typed = store_of(watched, Arc::clone(&clock));
        let random = plan.random.draw();
        let name = session::name_process(&*typed, &*clock, plan.node_id.as_deref(), random).await;
        let sessions = Arc::new(LocalSessions::new(name.owner, plan.max_sessions));
        let shortest_lease = plan.turn_lease.lasts.min(plan.work_lease.lasts);
        let pulse = Pulse::start(Arc::clone(&clock), shortest_lease);
        let activities = with_builtins(&activities, clock, Arc::clone(&plan.random));
        let row_id = simple_guid(random);
        let worker_row = WorkerRow::new(row_id, &plan, &orchestrations, &activities);
        let shared = Arc::new(RuntimeShared {
            client,
            orchestrations,
            activities,
            node_start: name.start,
            observability,
            slots_restarted: Counter::default(),
            fetch_errors: LineThrottle::new(),
            slots_replaced: Counter::default(),
            events_visited: Counter::default(),
            running_turns: Arc::default(),
            warm: WarmCache::new(plan.warm),
            slots_alive: SlotsAlive::default(),
            running_activities: Arc::default(),
            sessions,
            held: Arc::new(HeldLeases::new(pulse)),
            owed: OwedToStore::default(),
            worker_row,
            tasks: TaskTracker::new(),
            slots: TaskTracker::new(),
            invocations: Invocations::default(),
            tokio: tokio::runtime::Handle::current(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            fenced: CancellationToken::new(),
            id: format!("{:04x}", random as u16),
            seed: random as u64,
            store: typed,
            plan,
        });
        start_tasks(&shared);
        Ok(Arc::new(Self { shared }))
    }

    /// Stops the runtime. It fetches no more; turns and activities that run may complete within `timeout_ms`
    /// milliseconds (default 1,000; 0 stops them at once). Then those that still run are stopped, and their
    /// leases are abandoned uncounted, so that another runtime runs them again at once. Sessions are
    /// released. Returns when all tasks have ended. Code of the application that blocks its thread cannot be
    /// stopped: the call returns all the same, little later than `timeout_ms`, and a warning names what is
    /// left.
    ///
    /// Too short a time repeats activities; too long a time delays the end of the process.
    ///
    /// # Cancel safety
    /// A dropped call has still asked the runtime to stop in that time; call it again to wait.
    pub async fn shutdown(self: Arc<Self>, timeout_ms: Option<u64>) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        shared.slots.close();
        let timeout = Duration::from_millis(timeout_ms.unwrap_or(1_000));
        shutdown::wait(shared, &shared.tokio, timeout).await;
        // Executions in memory hold values of the application, and may hold the store through contexts of
        // activities.
        shared.warm.clear();
        shared.measure_warm();
        shared.held.pulse().stop();
    }

    /// Releases all sessions, for a deployment: another process claims them at once. The runtime takes no
    /// more work of sessions, lets their running activities complete, and releases each session when its last
    /// activity has ended. Returns when no session is attached. Turns and other activities go on until
    /// [`shutdown`](Self::shutdown).
    ///
    /// There is no time limit: an activity that never returns keeps this call waiting, so put a time-out
    /// around it.
    ///
    /// # Cancel safety
    /// A dropped call has still started the drain; call it again to wait.
    pub async fn drain(&self) {
        session::drain(&self.shared).await;
    }

    /// Returns a client on the runtime's own store. It is cheap to clone and to make.
    ///
    /// Its calls go through the same instrumented store as the runtime's: they are timed and counted in the
    /// metrics of this runtime. It measures its waits by [`RuntimeOptions::clock`], and its messages carry no
    /// trace context unless [`Client::with_traceparent`] gives it one. It holds the store open after a
    /// shutdown, for as long as it lives; then it still works, as a client of the store.
    ///
    /// ```
    /// # use steadfast_client::ClientError;
    /// # use steadfast_runtime::Runtime;
    /// # async fn example(runtime: std::sync::Arc<Runtime>) -> Result<(), ClientError> {
    /// let client = runtime.client();
    /// client.start_orchestration("order-1", "Order", "{}").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// Returns the counters of the runtime since its start. Always `Some`; the `Option` is for compatibility.
    pub fn metrics_snapshot(&self) -> Option<MetricsSnapshot> {
        Some(self.shared.observability.metrics_snapshot())
    }

    /// Returns the handle of the runtime's metrics. Always `Some`; the `Option` is for compatibility.
    pub fn observability_handle(&self) -> Option<&ObservabilityHandle> {
        Some(&self.shared.observability)
    }

    /// Checks the health of the runtime and its store. Takes at most 5 seconds.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn health(&self) -> Health {
        health::check(&self.shared).await
    }

    /// Waits until a newer process has started under the `worker_node_id` of this one. From then on this
    /// runtime takes no more work: turns and activities that run may complete, and `health()` says `fenced`.
    /// It never runs work again, so a service should end itself. Resolves within one renewal of session
    /// leases (by default 15 s) after the newer process has started, and at once if that is known. Never
    /// resolves without a `worker_node_id`, or on a store that does not number the starts of nodes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use steadfast_runtime::Runtime;
    /// # async fn terminated() {}
    /// # async fn example(runtime: Arc<Runtime>) {
    /// tokio::select! {
    ///     biased;
    ///     () = terminated() => {}
    ///     () = runtime.fenced() => {}
    /// }
    /// runtime.shutdown(None).await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn fenced(&self) {
        self.shared.fenced.cancelled().await;
    }

    /// Counts the orchestrations that are in memory now, between their turns.
    pub fn warm_orchestrations(&self) -> usize {
        self.shared.warm.len()
    }

    /// Counts the events that turns have read so far, for tests of what a turn costs.
    #[doc(hidden)]
    pub fn events_visited(&self) -> u64 {
        self.shared.events_visited.get()
    }

    /// Describes the orchestration of an instance, from its history. `None` if the instance does not exist or
    /// its history cannot be read.
    ///
    /// # Cancel safety
    /// Reads only.
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

/// Starts the tasks of a runtime: its report as a worker, its upkeep, and its slots.
fn start_tasks(shared: &Arc<RuntimeShared>) {
    worker::start(shared);
    shared.tasks.spawn(gauges::poll(Arc::clone(shared)));
    if let Some(leak) = shared.plan.session_leak {
        shared.tasks.spawn(leaks::watch(Arc::clone(shared), leak));
    }
    if let Some(retention) = shared.plan.retention {
        shared.tasks.spawn(retention::delete_ended(Arc::clone(shared), retention));
    }
    dispatch::start(shared, &Arc::new(Turns { shared: Arc::clone(shared) }), shared.plan.turn_slots);
    dispatch::start(shared, &Arc::new(Activities { shared: Arc::clone(shared) }), shared.plan.worker_slots);
    shared.tasks.spawn(owed::send_owed(Arc::clone(shared)));
    shared.tasks.spawn(session::keep_node(Arc::clone(shared)));
}
