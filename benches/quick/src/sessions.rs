//! How long a planned move of a session takes: one runtime lets go while work of the session waits, another
//! begins it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::runtime::{DetachReason, Runtime, Session, SessionHooks};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};
use tokio::sync::Semaphore;

use crate::place::{Backing, Place};
use crate::{PATIENCE, ratio};

const MOVES: usize = 100;

const BAR: Duration = Duration::from_millis(250);

const SESSION: &str = "chat";

/// Moves one session between two runtimes, each with a store of its own in one place, as two processes would.
///
/// Each move begins when all that comes before the release has been done, so the release's own commit is in
/// the time.
pub(crate) async fn run(backing: &Backing, commit: Duration) -> Result<()> {
    let bench = Bench::open(backing).await?;
    let turns = bench.runtime("turns", Work::Turns).await?;
    let mut owner = bench.runtime("w0", Work::Activities).await?;
    bench.gate.add_permits(2);
    bench.start("warm-up").await?;
    bench.wait("warm-up").await?;
    let mut times = Vec::new();
    for n in 1..=MOVES {
        let next = bench.runtime(&format!("w{n}"), Work::Activities).await?;
        times.push(bench.move_on(&format!("move-{n}"), owner).await?);
        owner = next;
    }
    owner.shutdown(None).await;
    turns.shutdown(None).await;
    times.sort_unstable();
    let (p50, p99) = (times[MOVES / 2], times[MOVES * 99 / 100]);
    println!(
        "sessions  {MOVES} moves, release to the next activity: p50 {p50:?} ({:.1} commits), \
         p99 {p99:?} (bar {BAR:?})",
        ratio(p50, commit)
    );
    anyhow::ensure!(p99 < BAR, "p99 {p99:?} is not below {BAR:?}");
    Ok(())
}

/// What a runtime is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Turns,
    Activities,
}

/// What happened to the session, and where.
#[derive(Debug)]
enum Moment {
    Began { node: String },
    LetGo,
}

struct Bench {
    place: Place,
    client: Client,
    /// Lets activities end.
    gate: Arc<Semaphore>,
    moments: Moments,
}

impl Bench {
    async fn open(backing: &Backing) -> Result<Self> {
        let place = backing.place()?;
        let client = Client::new(place.store().await?);
        let gate = Arc::new(Semaphore::new(0));
        Ok(Self { place, client, gate, moments: Moments::default() })
    }

    async fn runtime(&self, node: &str, work: Work) -> Result<Arc<Runtime>> {
        let store = self.place.store().await?;
        let (gate, moments, name) = (Arc::clone(&self.gate), self.moments.clone(), node.to_owned());
        let activities = ActivityRegistry::builder().register("Turn", move |_: ActivityContext, _| {
            moments.add(Moment::Began { node: name.clone() });
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.map_err(|error| error.to_string())?.forget();
                Ok(String::new())
            }
        });
        let orchestrations = OrchestrationRegistry::builder().register("Two", two);
        let options = RuntimeOptions {
            orchestration_concurrency: usize::from(work == Work::Turns),
            // One slot, so that the second activity waits while the first one runs.
            worker_concurrency: usize::from(work == Work::Activities),
            session_hooks: Some(Arc::new(self.moments.clone())),
            worker_node_id: Some(node.to_owned()),
            ..RuntimeOptions::default()
        };
        Ok(Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await)
    }

    /// Lets the owner go after the first of two activities, and says how long the second one waits.
    async fn move_on(&self, instance: &str, owner: Arc<Runtime>) -> Result<Duration> {
        self.moments.take();
        self.start(instance).await?;
        self.moments.reach(1).await?;
        let stopping = tokio::spawn(owner.shutdown(Some(PATIENCE.as_millis() as u64)));
        // It asks for no more as soon as it knows.
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.gate.add_permits(1);
        self.moments.reach(3).await?;
        self.gate.add_permits(1);
        stopping.await?;
        self.wait(instance).await?;
        let moments = self.moments.take();
        match &moments[..] {
            [
                (_, Moment::Began { node: from }),
                (let_go, Moment::LetGo),
                (began, Moment::Began { node: to }),
            ] if from != to => Ok(began.duration_since(*let_go)),
            other => anyhow::bail!("{instance} did not move: {other:?}"),
        }
    }

    async fn start(&self, instance: &str) -> Result<()> {
        Ok(self.client.start_orchestration(instance, "Two", "").await?)
    }

    async fn wait(&self, instance: &str) -> Result<()> {
        match self.client.wait_for_orchestration(instance, PATIENCE).await? {
            OrchestrationStatus::Completed { .. } => Ok(()),
            other => anyhow::bail!("{instance} ended with {other:?}"),
        }
    }
}

async fn two(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let both = (0..2).map(|_| ctx.schedule_activity_on_session("Turn", "", SESSION)).collect();
    ctx.join(both).await.into_iter().collect()
}

/// What has happened, in order.
#[derive(Debug, Clone, Default)]
struct Moments(Arc<Mutex<Vec<(Instant, Moment)>>>);

impl Moments {
    fn add(&self, moment: Moment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), moment));
    }

    fn take(&self) -> Vec<(Instant, Moment)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    async fn reach(&self, count: usize) -> Result<()> {
        let reached = async {
            while self.count() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.with_context(|| format!("{count} moments did not come"))
    }
}

#[async_trait]
impl SessionHooks for Moments {
    async fn on_attach(&self, _: &Session) {}

    async fn on_detach(&self, _: &Session, _: DetachReason) {
        self.add(Moment::LetGo);
    }
}
