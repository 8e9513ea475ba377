//! A store, a clock that moves when told, a client, and the runtimes that a test starts.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast::providers::postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::providers::{Provider, Store};
use steadfast::runtime::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{Client, ErrorDetails, Event, EventKind, OrchestrationStatus};
use steadfast_clock::{Clock, SystemClock, VirtualClock};
use steadfast_cluster::{Schema, Server};
use steadfast_compat::Plain;
use steadfast_memory::MemoryStore;
use tempfile::TempDir;

use crate::{Faults, Faulty};

/// The longest real time that a test waits for one thing. It ends a test that hangs, and is far above what a
/// busy machine needs.
pub const SOON: Duration = Duration::from_secs(60);

/// The store that a stage stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The store in memory.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// A schema of a PostgreSQL server.
    Postgres,
    /// The store in memory, behind a wrapper that forwards only the required methods of a provider.
    Wrapped,
}

/// A store, a clock that moves when told, and a client: everything that a claim is shown with.
///
/// Runtimes that were started here run until [`stop`](Self::stop).
///
/// # Cancel safety
///
/// Dropping a future of a stage is safe: store, clock and runtimes stay as they are, and a request that was
/// sent may still have its effect.
pub struct Stage {
    /// The store, for the few claims that differ from store to store.
    pub kind: StoreKind,
    /// The clock of the store and of the runtimes. It moves only when a test moves it.
    pub clock: VirtualClock,
    /// The store as runtimes and clients see it: with the faults, and behind the wrapper if the stage has
    /// one.
    pub store: Arc<dyn Provider>,
    /// A client of `store`. Its waits go by the clock of the stage, except through the wrapper, whose client
    /// polls in real time.
    pub client: Client,
    /// The faults between `store` and the store itself; there are none until a test asks for one.
    pub faults: Faults,
    /// The store itself, out of reach of the faults.
    inner: Arc<dyn Provider>,
    memory: Option<Arc<MemoryStore>>,
    runtimes: Mutex<Vec<Arc<Runtime>>>,
    place: Place,
}

/// Where the data of a stage is.
enum Place {
    Memory,
    File(TempDir),
    Schema(Box<OnServer>),
}

/// A schema on a server, and the counts of the statements that were sent to it.
struct OnServer {
    schema: Schema,
    counts: Arc<Counts>,
    server: Server,
}

/// How many requests after each other the tasks may make until [`Stage::settle`] returns.
const SETTLING_ROUNDS: usize = 4;

/// How often in a row a server must have been asked nothing new until it counts as quiet.
const CALM_ROUNDS: usize = 3;

/// How many steps each task may take between two requests.
const SETTLING_YIELDS: usize = 50;

/// The wall time at which a stage begins.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Begins an empty registry of activities.
pub fn activities() -> ActivityRegistryBuilder {
    ActivityRegistry::builder()
}

/// Begins an empty registry of orchestrations.
pub fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
}

impl Stage {
    /// Runs a claim on a stage of its own, for at most twice [`SOON`].
    pub async fn run_on<F: Future<Output = ()>>(kind: StoreKind, claim: impl FnOnce(Self) -> F) {
        let stage = Self::new(kind).await;
        tokio::time::timeout(2 * SOON, claim(stage)).await.expect("the claim is decided in time");
    }

    /// Opens an empty store of a kind, with a clock that stands at the same moment for every stage.
    pub async fn new(kind: StoreKind) -> Self {
        let clock = VirtualClock::new(BEGIN_MS);
        let faults = Faults::default();
        let place = Place::of(kind);
        let (inner, memory): (Arc<dyn Store>, _) = match &place {
            Place::Memory => {
                let memory = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
                (Arc::clone(&memory) as Arc<dyn Store>, Some(memory))
            }
            Place::File(folder) => (Arc::new(open(&folder.path().join("store.db"), &clock).await), None),
            Place::Schema(place) => (Arc::new(place.open(&clock).await), None),
        };
        let faulty: Arc<dyn Provider> = Arc::new(Faulty::new(Arc::clone(&inner), faults.clone()));
        let (store, client): (Arc<dyn Provider>, _) = match kind {
            StoreKind::Wrapped => {
                let plain: Arc<dyn Provider> = Arc::new(Plain::new(faulty));
                (Arc::clone(&plain), Client::new(plain))
            }
            StoreKind::Memory | StoreKind::Sqlite | StoreKind::Postgres => {
                let client = Client::with_clock(Arc::clone(&faulty), Arc::new(clock.clone()));
                (faulty, client)
            }
        };
        // Wrapped only for its type: every sized store is a provider, and `dyn Store` is not sized.
        let inner = Arc::new(Faulty::new(inner, Faults::default()));
        Self { kind, clock, store, client, faults, inner, memory, runtimes: Mutex::default(), place }
    }

    /// Returns the path of the SQLite file; panics on other stores.
    pub fn file(&self) -> PathBuf {
        match &self.place {
            Place::File(folder) => folder.path().join("store.db"),
            Place::Memory | Place::Schema(_) => panic!("only SQLite has a file"),
        }
    }

    /// Returns the URL of the server and the name of the schema; `None` on other stores.
    pub fn schema(&self) -> Option<(&str, &str)> {
        match &self.place {
            Place::Schema(place) => Some((place.server.url(), place.schema.name())),
            Place::Memory | Place::File(_) => None,
        }
    }

    /// Returns the store in memory, to damage it; `None` on a file or a server.
    pub fn memory(&self) -> Option<&MemoryStore> {
        self.memory.as_deref()
    }

    /// Opens the same data a second time, as another process would; `None` in memory, which is one process's.
    pub async fn open_again(&self) -> Option<Arc<dyn Provider>> {
        match &self.place {
            Place::Memory => None,
            Place::File(_) => Some(Arc::new(open(&self.file(), &self.clock).await)),
            Place::Schema(place) => Some(Arc::new(place.open(&self.clock).await)),
        }
    }

    /// Returns the store itself, which the faults do not reach, with every method.
    pub fn inner(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.inner)
    }

    /// Returns a client that the faults do not reach, with every method.
    pub fn observer(&self) -> Client {
        Client::with_clock(self.inner(), Arc::new(self.clock.clone()))
    }

    /// Returns the default options, with the clock of the stage. How many orchestrations stay warm can be set
    /// from outside (`STEADFAST_WARM`, a number), so that all claims can be shown warm, cold and with
    /// constant eviction.
    pub fn options(&self) -> RuntimeOptions {
        let mut options = RuntimeOptions { clock: Arc::new(self.clock.clone()), ..RuntimeOptions::default() };
        if let Ok(warm) = std::env::var("STEADFAST_WARM") {
            options.max_warm_orchestrations = warm.parse().expect("STEADFAST_WARM is a number");
        }
        options
    }

    /// Returns the options of the stage for a claim that is about an orchestration which is held warm.
    pub fn warm_options(&self) -> RuntimeOptions {
        RuntimeOptions { max_warm_orchestrations: 1_000, ..self.options() }
    }

    /// Starts a runtime with the options of the stage.
    pub async fn run(
        &self,
        activities: ActivityRegistryBuilder,
        orchestrations: OrchestrationRegistryBuilder,
    ) -> Arc<Runtime> {
        self.run_with(activities, orchestrations, self.options()).await
    }

    /// Starts a runtime.
    pub async fn run_with(
        &self,
        activities: ActivityRegistryBuilder,
        orchestrations: OrchestrationRegistryBuilder,
        options: RuntimeOptions,
    ) -> Arc<Runtime> {
        let activities = activities.build_result().expect("activities");
        let orchestrations = orchestrations.build_result().expect("orchestrations");
        let store = Arc::clone(&self.store);
        let runtime =
            Runtime::try_start(store, activities, orchestrations, options).await.expect("sound options");
        self.runtimes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&runtime));
        runtime
    }

    /// Stops every runtime of the stage, after a moment in which work that needs no time can end.
    ///
    /// Without that moment a runtime would abandon such work at its stop, and it would wait in the store.
    pub async fn stop(&self) {
        self.settle().await;
        self.stop_at_once().await;
    }

    /// Stops every runtime of the stage at once: work that runs is abandoned.
    pub async fn stop_at_once(&self) {
        let runtimes = std::mem::take(&mut *self.runtimes.lock().unwrap_or_else(PoisonError::into_inner));
        for runtime in runtimes {
            // The clock stands still, so a shutdown that waits for work would wait for ever.
            in_time("a runtime stops", runtime.shutdown(Some(0))).await;
        }
    }

    /// Starts an instance.
    pub async fn start(&self, instance: &str, orchestration: &str, input: &str) {
        self.client.start_orchestration(instance, orchestration, input).await.expect("starts");
    }

    /// Waits until an instance has ended, and returns its output or its failure.
    pub async fn ends(&self, instance: &str) -> Result<String, ErrorDetails> {
        let status = in_time(instance, async {
            loop {
                match self.client.wait_for_orchestration(instance, SOON).await {
                    Ok(status) => return status,
                    Err(error) if error.is_retryable() => nap().await,
                    Err(error) => panic!("{instance}: {error}"),
                }
            }
        });
        match status.await {
            OrchestrationStatus::Completed { output, .. } => Ok(output),
            OrchestrationStatus::Failed { details, .. } => Err(details),
            other => panic!("{instance}: {other:?}"),
        }
    }

    /// Starts an instance and waits until it has ended.
    pub async fn ends_after(
        &self,
        instance: &str,
        orchestration: &str,
        input: &str,
    ) -> Result<String, ErrorDetails> {
        self.start(instance, orchestration, input).await;
        self.ends(instance).await
    }

    /// Waits until an instance has ended, and returns its output, or its failure as text.
    pub async fn output(&self, instance: &str) -> Result<String, String> {
        self.ends(instance).await.map_err(|details| details.display_message())
    }

    /// Waits until an instance has ended while the clock moves on, a step at a time. Steps should be well
    /// below the leases: each gives the tasks a moment, not all the time they might want.
    pub async fn ends_as_time_passes(&self, instance: &str, step: Duration) -> Result<String, ErrorDetails> {
        in_time(instance, async {
            while !self.has_ended(instance).await {
                self.clock.advance(step);
                match self.place {
                    // A call to a server may take longer than a nap, and its lease must not expire meanwhile.
                    Place::Schema(_) => self.settle().await,
                    _ => nap().await,
                }
            }
        })
        .await;
        self.ends(instance).await
    }

    /// Moves the clock, in one step.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Moves the clock a step at a time, so that tasks which wait for a time in between see it.
    pub async fn pass_slowly(&self, time: Duration, step: Duration) {
        let end = self.clock.monotonic().saturating_add(time);
        while self.clock.monotonic() < end {
            self.clock.advance(step);
            self.settle().await;
        }
    }

    /// Lets tasks do what they can while the clock stands still: they run, and the store answers their
    /// requests.
    pub async fn settle(&self) {
        for _ in 0..SETTLING_ROUNDS {
            let asked = self.requests();
            for _ in 0..SETTLING_YIELDS {
                tokio::task::yield_now().await;
            }
            // A request that changes nothing. The store answers in order, so those before it have been
            // answered too.
            let renewed = self.inner.renew_session_lock(&["nobody"], SOON, SOON).await;
            assert_eq!(renewed.expect("the store answers"), 0);
            if let Place::Schema(place) = &self.place {
                place.answers().await;
                // Nothing but the request above was sent: the tasks wait for time.
                if self.requests() <= asked + 1 {
                    return;
                }
            }
        }
    }

    /// Counts the requests that the server was sent so far; 0 on a store without a server.
    fn requests(&self) -> u64 {
        match &self.place {
            Place::Schema(place) => place.counts.sent.load(Ordering::Acquire),
            Place::Memory | Place::File(_) => 0,
        }
    }

    /// Reads the history of the latest execution.
    pub async fn history(&self, instance: &str) -> Vec<Event> {
        self.inner.read(instance).await.expect("history can be read")
    }

    /// Reads the history of an execution.
    pub async fn history_of(&self, instance: &str, execution_id: u64) -> Vec<Event> {
        self.inner.read_with_execution(instance, execution_id).await.expect("history can be read")
    }

    /// Returns the names of the kinds of the events of the latest execution, in order.
    pub async fn kinds(&self, instance: &str) -> Vec<String> {
        self.history(instance).await.iter().map(kind).collect()
    }

    /// Waits until the history of the latest execution is as a test wants it.
    pub async fn reaches(&self, instance: &str, wanted: impl Fn(&[Event]) -> bool) {
        self.until(instance, async || wanted(&self.history(instance).await)).await;
    }

    /// Waits until the latest execution has at least `count` events of a kind (`TimerCreated`, …).
    pub async fn has(&self, instance: &str, wanted: &str, count: usize) {
        self.reaches(instance, |events| events.iter().filter(|event| kind(event) == wanted).count() >= count)
            .await;
    }

    /// Waits until a condition holds, and panics with `what` after [`SOON`]. It is asked every few
    /// milliseconds of real time.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        in_time(what, async {
            while !holds().await {
                nap().await;
            }
        })
        .await;
    }

    async fn has_ended(&self, instance: &str) -> bool {
        self.history(instance).await.iter().any(|event| {
            matches!(
                event.kind,
                EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. }
            )
        })
    }

    /// Asserts that nothing waits in the store: no message, no activity.
    pub async fn nothing_waits(&self) {
        // A store abandons the lease of a dropped fetch in its own time, before the next request.
        self.settle().await;
        let depths = self.observer().get_queue_depths().await.expect("counts");
        assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0), "messages, activities");
    }
}

impl Place {
    fn of(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Memory | StoreKind::Wrapped => Self::Memory,
            StoreKind::Sqlite => Self::File(folder().expect("a folder for the file")),
            StoreKind::Postgres => {
                let server = Server::join().expect("a server");
                Self::Schema(Box::new(OnServer {
                    schema: server.schema("behaviour"),
                    counts: Arc::default(),
                    server,
                }))
            }
        }
    }
}

/// Memory that has the form of a folder, where the machine has it.
const SHARED_MEMORY: &str = "/dev/shm";

/// Makes a folder for a SQLite file, in memory if it can: a claim does not depend on the disk, and most of
/// the time of a claim would be waits for it. What a disk keeps is shown by the tests of the store and by the
/// tests with processes.
fn folder() -> std::io::Result<TempDir> {
    TempDir::new_in(SHARED_MEMORY).or_else(|_| TempDir::new())
}

impl OnServer {
    async fn open(&self, clock: &VirtualClock) -> PostgresProvider {
        let options = PostgresOptions {
            clock: Some(Arc::new(clock.clone())),
            counts: Some(Arc::clone(&self.counts)),
            ..PostgresOptions::default()
        };
        PostgresProvider::new_with_options(self.server.url(), Some(self.schema.name()), options)
            .await
            .expect("the schema opens")
    }

    /// Waits until the server has answered all requests, and no task sends another. In real time, because it
    /// is another process.
    async fn answers(&self) {
        let (mut calm, mut sent) = (0, 0);
        while calm < CALM_ROUNDS {
            SystemClock.sleep(Duration::from_millis(1)).await;
            let now = self.counts.sent.load(Ordering::Acquire);
            calm = if self.counts.is_quiet() && now == sent { calm + 1 } else { 0 };
            sent = now;
        }
    }
}

async fn open(file: &std::path::Path, clock: &VirtualClock) -> SqliteProvider {
    let options = SqliteOptions { clock: Arc::new(clock.clone()), ..SqliteOptions::default() };
    SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await.expect("the file opens")
}

/// Names the kind of an event: the word that its JSON has, which is the name of the variant in Rust but for
/// queues.
fn kind(event: &Event) -> String {
    let text = format!("{:?}", event.kind);
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(value) => value,
        Err(_) => panic!("'{what}' did not happen within {SOON:?}"),
    }
}

/// Gives other tasks and threads a moment. Real time, because the writer of the SQLite store is a thread.
async fn nap() {
    SystemClock.sleep(Duration::from_millis(2)).await;
}
