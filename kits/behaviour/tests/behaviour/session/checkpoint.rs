//! Checkpoints of conversations outside of all workers, and which owner may write them: the epoch fences a
//! checkpoint store as the guide shows it, and a planned move saves before another reads (D23,
//! D24, D25).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bench::shown;
use crate::workbench::{Gate, SECOND, pass_calmly};
use async_trait::async_trait;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{DetachReason, Runtime, RuntimeOptions, Session, SessionHooks};
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{Faults, Faulty, Stage, activities, on_every_full_store, orchestrations};
use steadfast_store::store_of;

/// The session of the one conversation.
const CHAT: &str = "chat";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a worker keeps of the conversation.
#[derive(Debug)]
struct Hydrated(Mutex<String>);

/// The checkpoint of the conversation, the epoch that read it last, and what was done to it, in order.
#[derive(Debug, Default)]
struct Checkpoint {
    epoch: u64,
    said: String,
    told: Vec<String>,
}

impl Checkpoint {
    /// Reads for an attachment; from then on an earlier one can neither read nor save.
    fn hydrate(&mut self, node: &str, epoch: u64) -> Result<String, String> {
        if self.epoch > epoch {
            return Err(format!("session_lost: epoch {epoch} was replaced by {}", self.epoch));
        }
        self.epoch = epoch;
        self.told.push(format!("{node} reads '{}'", self.said));
        Ok(self.said.clone())
    }

    fn save(&mut self, node: &str, epoch: u64, said: &str) -> Result<(), String> {
        if self.epoch != epoch {
            self.told.push(format!("{node} may not save '{said}'"));
            return Err(format!("session_lost: epoch {epoch} is not the one that hydrated last"));
        }
        said.clone_into(&mut self.said);
        self.told.push(format!("{node} saves '{said}'"));
        Ok(())
    }
}

/// A worker of the conversation: where it saves, and where its turns and hooks wait.
#[derive(Debug, Clone)]
struct SavingWorker {
    node: &'static str,
    checkpoint: Arc<Mutex<Checkpoint>>,
    gate: Gate,
}

impl SavingWorker {
    fn new(node: &'static str, checkpoint: &Arc<Mutex<Checkpoint>>) -> Self {
        Self { node, checkpoint: Arc::clone(checkpoint), gate: Gate::new() }
    }

    /// Takes a turn, and returns all that was said.
    async fn say(&self, ctx: &ActivityContext, text: &str) -> Result<String, String> {
        let session = ctx.session().ok_or("it has no session")?;
        let hydrate = async {
            let said = lock(&self.checkpoint).hydrate(self.node, session.epoch())?;
            Ok(Hydrated(Mutex::new(said)))
        };
        let kept = session.state_or_init(hydrate).await?;
        if self.node == "A" && text == "two" {
            self.gate.pass().await;
        }
        let mut said = lock(&kept.0);
        *said = format!("{said} {text}").trim_start().to_owned();
        Ok(said.clone())
    }

    /// Registers `Say`, which saves every turn, and `Mention`, which leaves that to the hook.
    fn works(&self) -> ActivityRegistryBuilder {
        let (says, mentions) = (self.clone(), self.clone());
        activities()
            .register("Say", move |ctx: ActivityContext, text: String| {
                let worker = says.clone();
                async move {
                    let said = worker.say(&ctx, &text).await?;
                    let epoch = ctx.session().map_or(0, Session::epoch);
                    lock(&worker.checkpoint).save(worker.node, epoch, &said)?;
                    Ok(format!("{} {text}, attempt {}", worker.node, ctx.counted_deliveries()))
                }
            })
            .register("Mention", move |ctx: ActivityContext, text: String| {
                let worker = mentions.clone();
                async move {
                    worker.say(&ctx, &text).await?;
                    Ok(format!("{} {text}, attempt {}", worker.node, ctx.counted_deliveries()))
                }
            })
    }

    fn options(&self, stage: &Stage) -> RuntimeOptions {
        RuntimeOptions {
            worker_node_id: Some(self.node.to_owned()),
            dispatcher_long_poll_timeout: SECOND,
            ..stage.options()
        }
    }
}

/// Saves at detach, when the gate lets it.
#[async_trait]
impl SessionHooks for SavingWorker {
    async fn on_detach(&self, session: &Session, _: DetachReason) {
        self.gate.pass().await;
        let said = session.state::<Hydrated>().map(|said| lock(&said.0).clone()).unwrap_or_default();
        lock(&self.checkpoint).save(self.node, session.epoch(), &said).expect("the session is still its own");
    }
}

/// Takes a turn for each word: `activity/words`.
async fn talk(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (activity, words) = input.split_once('/').ok_or("activity/words")?;
    let mut turns = Vec::new();
    for word in words.split(' ') {
        turns.push(ctx.schedule_activity_on_session(activity, word, CHAT).await?);
    }
    Ok(turns.join("; "))
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("Talk", talk)
}

/// How a worker leaves in good order.
#[derive(Debug, Clone, Copy)]
enum Leaves {
    Drained,
    ShutDown,
}

/// A saves when it is told that the session goes, and that takes a while. B, which is idle, reads only then.
async fn saves_before_another_reads(stage: &Stage, how: Leaves) {
    let checkpoint = Arc::default();
    let (first, second) = (SavingWorker::new("A", &checkpoint), SavingWorker::new("B", &checkpoint));
    let hooks: Arc<dyn SessionHooks> = Arc::new(first.clone());
    let options = RuntimeOptions { session_hooks: Some(hooks), ..first.options(stage) };
    let leaving = stage.run_with(first.works(), flows(), options).await;
    assert_eq!(stage.ends_after("1", "Talk", "Mention/one").await, Ok("A one, attempt 1".to_owned()));
    let before = shown(stage, CHAT).await.epoch;
    stage.run_with(second.works(), flows(), second.options(stage)).await;
    let gone = tokio::spawn(async move {
        match how {
            Leaves::Drained => leaving.drain().await,
            Leaves::ShutDown => leaving.shutdown(None).await,
        }
    });
    first.gate.is_entered().await;
    stage.start("2", "Talk", "Mention/three").await;
    stage.has("2", "ActivityScheduled", 1).await;
    stage.settle().await;
    assert_eq!(lock(&checkpoint).told, ["A reads ''"], "what A has is not saved, and nobody has read");
    first.gate.open();
    // No time passes.
    assert_eq!(stage.output("2").await, Ok("B three, attempt 1".to_owned()));
    gone.await.expect("it leaves");
    assert_eq!(lock(&checkpoint).told, ["A reads ''", "A saves 'one'", "B reads 'one'"]);
    assert!(shown(stage, CHAT).await.epoch > before, "a new attachment");
    stage.stop().await;
    stage.nothing_waits().await;
}

on_every_full_store! {
    async fn d25_a_drained_worker_has_saved_before_another_reads(stage) {
        saves_before_another_reads(&stage, Leaves::Drained).await;
    }

    async fn d24_a_worker_that_stops_has_saved_before_another_reads(stage) {
        saves_before_another_reads(&stage, Leaves::ShutDown).await;
    }

    async fn d18_what_an_earlier_owner_saves_too_late_is_refused_and_its_turn_is_taken_again(stage) {
        let (faults, checkpoint) = (Faults::default(), Arc::default());
        let (first, second) = (SavingWorker::new("A", &checkpoint), SavingWorker::new("B", &checkpoint));
        let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
        let store = Arc::new(Faulty::new(store, faults.clone()));
        // It goes on although it is told to stop, as code does that does not look.
        let options =
            RuntimeOptions { activity_cancellation_grace_period: 600 * SECOND, ..first.options(&stage) };
        let cut_off = Runtime::try_start(store, first.works().build(), flows().build(), options).await;
        let cut_off = cut_off.expect("sound options");
        stage.start("1", "Talk", "Say/one two three").await;
        first.gate.is_entered().await;
        let before = shown(&stage, CHAT).await.epoch;
        faults.outage();
        // What it had asked before is answered, with nothing.
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        stage.run_with(second.works(), flows(), second.options(&stage)).await;
        let turns = stage.ends_as_time_passes("1", SECOND / 4).await;
        assert_eq!(turns, Ok("A one, attempt 1; B two, attempt 2; B three, attempt 1".to_owned()));
        let after = shown(&stage, CHAT).await.epoch;
        assert!(after > before, "a new attachment");
        first.gate.open();
        stage.until("A tries to save", async || lock(&checkpoint).told.len() == 6).await;
        let told = [
            "A reads ''",
            "A saves 'one'",
            "B reads 'one'",
            "B saves 'one two'",
            "B saves 'one two three'",
            "A may not save 'one two'",
        ];
        {
            let saved = lock(&checkpoint);
            assert_eq!(saved.told, told);
            assert_eq!((saved.epoch, saved.said.as_str()), (after, "one two three"));
        }
        let kinds = stage.kinds("1").await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCompleted").count(), 3, "{kinds:?}");
        cut_off.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
