//! Plays programs on the published runtime, turn by turn.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duroxide::{
    ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    RuntimeOptions,
    providers::{OrchestrationItem, WorkItem},
    runtime::{Runtime, registry::ActivityRegistry},
};
use tokio::{sync::mpsc, time::timeout};
use tracing::subscriber::{NoSubscriber, set_global_default};

use super::{
    instance::Instance,
    stage::{Commit, Stage, Verdict},
};
use crate::{
    program::{
        Program, interpret,
        journal::Journal,
        script::{Chances, Script, Turn as Seen},
    },
    record::{self, Ending, Run, Turn},
};

/// The one orchestration that is registered; it runs the program that is on.
const ORCHESTRATION: &str = "Program";
/// The instance, the same for every program, so that records of two runs are alike.
const INSTANCE: &str = "me";
/// The input of every first execution.
const INPUT: &str = "in";
/// A turn takes microseconds; one that takes this long never ends.
const STUCK: Duration = Duration::from_secs(10);

/// A runtime of the published crate over a scripted store. It plays one program after another.
pub struct Theatre {
    runtime: Arc<Runtime>,
    billed: Billed,
    offers: mpsc::UnboundedSender<OrchestrationItem>,
    verdicts: mpsc::UnboundedReceiver<Verdict>,
}

/// The program that is on.
type Billed = Arc<Mutex<Bill>>;

#[derive(Default)]
struct Bill {
    program: Arc<Program>,
    /// The calls of the latest turn, which runs the program from its beginning.
    journal: Journal,
}

/// Why a program could not be played at all.
#[derive(Debug)]
pub enum NotPlayed {
    /// The runtime is gone.
    RuntimeGone,
    /// Something it gave back has no JSON.
    Unwritable(serde_json::Error),
}

impl std::fmt::Display for NotPlayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RuntimeGone => f.write_str("the runtime is gone"),
            Self::Unwritable(error) => write!(f, "a record cannot be written: {error}"),
        }
    }
}

impl std::error::Error for NotPlayed {}

impl From<serde_json::Error> for NotPlayed {
    fn from(error: serde_json::Error) -> Self {
        Self::Unwritable(error)
    }
}

impl Theatre {
    /// Starts a runtime with one orchestration slot and no worker.
    pub async fn open() -> Self {
        silence();
        let (offers, to_fetch) = mpsc::unbounded_channel();
        let (reports, verdicts) = mpsc::unbounded_channel();
        let billed = Billed::default();
        let runtime = Runtime::start_with_options(
            Arc::new(Stage::new(to_fetch, reports)),
            ActivityRegistry::builder().build(),
            registry(&billed),
            RuntimeOptions {
                orchestration_concurrency: 1,
                worker_concurrency: 0,
                ..RuntimeOptions::default()
            },
        )
        .await;
        Self { runtime, billed, offers, verdicts }
    }

    /// Plays one program with the arrivals that the seed chooses.
    ///
    /// # Errors
    ///
    /// Fails if the runtime is gone or a record cannot be written; what the program does is never an error.
    pub async fn play(&mut self, program: &Program, seed: u64, chances: Chances) -> Result<Run, NotPlayed> {
        self.bill().program = Arc::new(program.clone());
        let run = self.act(Script::new(seed, INSTANCE, chances), |_, _| {}).await?;
        if run.ending == Ending::Stuck {
            // A verdict that comes after all must not be taken for the next program's.
            *self = Self::open().await;
        }
        Ok(run)
    }

    /// Stops the runtime.
    pub async fn close(self) {
        self.runtime.shutdown(Some(0)).await;
    }

    fn bill(&self) -> MutexGuard<'_, Bill> {
        self.billed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays the program that is on; `watch` sees the calls and the history after each turn.
    async fn act(
        &mut self,
        mut script: Script,
        mut watch: impl FnMut(&Journal, &[Event]),
    ) -> Result<Run, NotPlayed> {
        let mut instance = Instance::new(INSTANCE, ORCHESTRATION);
        let mut turns = Vec::new();
        let mut batch = Some(script.opening(ORCHESTRATION, INPUT));
        let ending = loop {
            let Some(arrivals) = batch else { break Ending::Quiet };
            let commit = match self.turn(instance.item(arrivals.clone())).await? {
                Some(Verdict::Committed(commit)) => commit,
                Some(Verdict::Abandoned) => break Ending::Abandoned,
                None => break Ending::Stuck,
            };
            instance.apply(&commit);
            watch(&self.bill().journal, instance.history());
            let mut turn = recorded(&arrivals, &commit)?;
            if !commit.events.iter().any(Event::is_terminal) {
                turn.replays = self.replays(&instance).await?;
            }
            turns.push(turn);
            if let Some(ending) = instance.ending() {
                break Ending::Terminal(ending);
            }
            observe(&mut script, &commit);
            batch = script.next_batch();
        };
        Ok(Run { turns, ending })
    }

    /// Asks the crate to repeat its own history, with an arrival that nobody waits for and that is not kept.
    async fn replays(&mut self, instance: &Instance) -> Result<Option<bool>, NotPlayed> {
        let nothing = WorkItem::ExternalRaised {
            instance: INSTANCE.to_owned(),
            name: "nothing".to_owned(),
            data: String::new(),
        };
        Ok(match self.turn(instance.item(vec![nothing])).await? {
            Some(Verdict::Committed(commit)) => Some(!commit.events.iter().any(is_nondeterminism)),
            Some(Verdict::Abandoned) | None => None,
        })
    }

    /// Offers one turn and waits for what becomes of it; `None` if nothing does.
    async fn turn(&mut self, item: OrchestrationItem) -> Result<Option<Verdict>, NotPlayed> {
        self.offers.send(item).map_err(|_| NotPlayed::RuntimeGone)?;
        match timeout(STUCK, self.verdicts.recv()).await {
            Ok(Some(verdict)) => Ok(Some(verdict)),
            Ok(None) => Err(NotPlayed::RuntimeGone),
            Err(_) => Ok(None),
        }
    }
}

/// Takes the place of the subscriber that the published crate installs when it starts.
fn silence() {
    if set_global_default(NoSubscriber::new()).is_err() {
        // Somebody has installed one before, which serves as well.
    }
}

fn registry(billed: &Billed) -> OrchestrationRegistry {
    let billed = Arc::clone(billed);
    let handler = move |ctx: OrchestrationContext, input: String| {
        let mut bill = billed.lock().unwrap_or_else(PoisonError::into_inner);
        bill.journal = Journal::default();
        interpret::run(ctx, input, Arc::clone(&bill.program), bill.journal.clone())
    };
    OrchestrationRegistry::builder().register(ORCHESTRATION, handler).build()
}

fn observe(script: &mut Script, commit: &Commit) {
    let cancelled: Vec<u64> = commit.cancelled.iter().map(|activity| activity.activity_id).collect();
    script.observe(Seen {
        events: &commit.events,
        work: &commit.work,
        messages: &commit.messages,
        cancelled: &cancelled,
    });
}

fn is_nondeterminism(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::OrchestrationFailed {
            details: ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. }
        }
    )
}

fn recorded(arrivals: &[WorkItem], commit: &Commit) -> Result<Turn, serde_json::Error> {
    Ok(Turn {
        execution_id: commit.execution_id,
        arrivals: record::raw(arrivals)?,
        history: record::raw(&commit.events)?,
        events: record::decisions(&commit.events)?,
        work: record::decisions(&commit.work)?,
        messages: record::decisions(&commit.messages)?,
        cancelled: commit.cancelled.iter().map(|activity| activity.activity_id).collect(),
        replays: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};

    use super::*;
    use crate::program::{
        generate::{Palette, program, runner},
        journal::parting,
    };

    /// One action per call, in call order: what the comparison of mutated programs relies on.
    #[tokio::test]
    async fn the_journal_tells_every_schedule_that_history_records() {
        let mut theatre = Theatre::open().await;
        let programs = program(Palette { retries: false, ..Palette::PUBLISHED });
        let mut runner = runner(11);
        for seed in 0..500 {
            let program = programs.new_tree(&mut runner).unwrap().current();
            theatre.bill().program = Arc::new(program.clone());
            let script = Script::new(seed, INSTANCE, Chances::PUBLISHED);
            let watch = |journal: &Journal, history: &[Event]| {
                let parted = parting(&journal.calls(), history);
                // A turn that is refused before it runs makes no calls.
                let ran = !history.iter().any(Event::is_terminal);
                assert!(!ran || parted.is_none(), "{program:?}{:?}\n{history:?}", parted);
            };
            theatre.act(script, watch).await.unwrap();
        }
        theatre.close().await;
    }
}
