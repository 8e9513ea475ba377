//! Sessions that an orchestration opens and closes: when and why they are detached, and in which order (D10
//! to D12, D29; G24, G25, G41).

use std::sync::{Arc, Mutex};

use super::bench::{Told, flows, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{DetachReason, Runtime, RuntimeOptions, Session, SessionHooks};
use steadfast::{ActivityContext, OrchestrationContext, SessionConcurrency, SessionKey, SessionOptions};
use steadfast_behaviour::{Emitted, Faults, Faulty, Lines, Stage, activities, on_every_full_store};
use steadfast_store::store_of;

/// Does the steps of its input, one after the other, and returns what its activities said: `open chat`,
/// `close chat`, `wait signal`, `again` (continues as new with the steps behind it), `fail`, `Turn chat`, …
async fn script(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (mut said, mut steps) = (Vec::new(), input.split(';'));
    while let Some(step) = steps.next() {
        match step.split_once(' ').unwrap_or((step, "")) {
            ("open", id) => drop(ctx.open_session_with_id(id).await?),
            ("serial", id) => {
                let options = SessionOptions::default().with_id(id);
                drop(ctx.open_session_with(options.with_concurrency(SessionConcurrency::Serial)).await?);
            }
            ("close", id) => ctx.close_session(id).await?,
            ("wait", signal) => drop(ctx.schedule_wait(signal).await),
            ("again", _) => {
                return ctx.continue_as_new(steps.collect::<Vec<_>>().join(";")).await;
            }
            ("fail", why) => return Err(why.to_owned()),
            (activity, id) => said.push(ctx.schedule_activity_on_session(activity, "", id).await?),
        }
    }
    Ok(said.join("; "))
}

/// Schedules an activity on a session, closes the session when it is told, and returns how the activity
/// ended.
async fn race(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session_with_id("chat").await?;
    let work = ctx.schedule_activity_on_session("Hold", "", &session);
    ctx.schedule_wait("enough").await;
    ctx.close_session(&session).await?;
    Ok(work.await.expect_err("it is cancelled"))
}

/// Schedules three activities on a serial session at once, and returns what they say, in the order of
/// scheduling.
async fn serial(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let options = SessionOptions::default().with_id("chat").with_concurrency(SessionConcurrency::Serial);
    let session = ctx.open_session_with(options).await?;
    let works = (1..=3).map(|n| ctx.schedule_activity_on_session("Say", n.to_string(), &session));
    let said: Result<Vec<String>, String> = ctx.join(works.collect()).await.into_iter().collect();
    Ok(said?.join("; "))
}

/// Gives up an activity of a serial session when it is told, and schedules the next one.
async fn gives_up(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let options = SessionOptions::default().with_id("chat").with_concurrency(SessionConcurrency::Serial);
    let session = ctx.open_session_with(options).await?;
    let slow = ctx.schedule_activity_on_session("Stubborn", "", &session);
    let enough = ctx.schedule_wait("enough");
    drop(ctx.select2(slow, enough).await);
    ctx.schedule_activity_on_session("Next", "", &session).await
}

/// Two activities that write down what happens to them: `Stubborn` waits until it is cancelled and then for
/// the gate, `Next` ends at once.
fn stubborn(gate: &Gate, notes: &Notes) -> ActivityRegistryBuilder {
    let (gate, slow, next) = (gate.clone(), notes.clone(), notes.clone());
    activities()
        .register("Stubborn", move |ctx: ActivityContext, _: String| {
            let (gate, notes) = (gate.clone(), slow.clone());
            async move {
                notes.add("it runs");
                ctx.cancelled().await;
                notes.add(&format!("it is told: {:?}", ctx.cancel_reason()));
                gate.pass().await;
                notes.add("it has stopped");
                Ok(String::new())
            }
        })
        .register("Next", move |_: ActivityContext, _: String| {
            next.add("the next one runs");
            async { Ok("done".to_owned()) }
        })
}

/// What activities wrote down, in order.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: &str) {
        self.0.lock().expect("no writer panics").push(note.to_owned());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no writer panics").clone()
    }
}

/// Waits at the gate, and says what it was given, where, and in which delivery.
fn says(gate: &Gate) -> ActivityRegistryBuilder {
    let gates = gate.clone();
    turns(gate).register("Say", move |ctx: ActivityContext, text: String| {
        let gate = gates.clone();
        async move {
            gate.pass().await;
            let node = ctx.worker_id().split('-').nth(2).unwrap_or_default().to_owned();
            Ok(format!("{text} on {node}, attempt {}", ctx.counted_deliveries()))
        }
    })
}

fn plays() -> OrchestrationRegistryBuilder {
    let plays = flows().register("Script", script).register("Race", race);
    plays.register("Serial", serial).register("GivesUp", gives_up)
}

/// Starts a runtime that has the plays.
pub(crate) async fn acts(
    stage: &Stage,
    id: &str,
    gate: &Gate,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    change(&mut options);
    stage.run_with(says(gate), plays(), options).await
}

/// Starts a runtime that takes activities and can be cut off from the store. The test shuts it down.
async fn cut_off(stage: &Stage, id: &str, gate: &Gate, faults: &Faults) -> Arc<Runtime> {
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    only_works(&mut options);
    options.dispatcher_long_poll_timeout = SECOND;
    let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
    let store = Arc::new(Faulty::new(store, faults.clone()));
    let activities = says(gate).build_result().expect("activities");
    let orchestrations = plays().build_result().expect("orchestrations");
    Runtime::try_start(store, activities, orchestrations, options).await.expect("sound options")
}

/// Takes activities and no turns.
pub(crate) fn only_works(options: &mut RuntimeOptions) {
    options.orchestration_concurrency = 0;
}

/// Takes turns and no activities.
pub(crate) fn only_decides(options: &mut RuntimeOptions) {
    options.worker_concurrency = 0;
}

/// The session that an instance has open, as the store shows it.
async fn is_open(stage: &Stage, instance: &str, id: &str) -> bool {
    let key = SessionKey::owned(instance, id);
    stage.observer().get_session(&key).await.expect("the store answers").is_some()
}

/// Keeps `on_detach` at a gate, and remembers when it begins and ends.
#[derive(Debug, Clone)]
pub(crate) struct SlowToDetach {
    pub(crate) gate: Gate,
    pub(crate) told: Told,
}

#[async_trait::async_trait]
impl SessionHooks for SlowToDetach {
    async fn on_attach(&self, session: &Session) {
        self.told.on_attach(session).await;
    }

    async fn on_detach(&self, session: &Session, reason: DetachReason) {
        self.gate.pass().await;
        self.told.on_detach(session, reason).await;
    }
}

on_every_full_store! {
    async fn g24_a_session_that_is_closed_is_detached_at_once_in_its_own_process(stage) {
        let told = Told::default();
        acts(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        stage.start("1", "Script", "open chat;Turn chat;close chat;wait go").await;
        stage.has("1", "SessionClosed", 1).await;
        // No time passes.
        stage.until("it is detached", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Closed after 1"]);
        assert!(!is_open(&stage, "1", "chat").await);
        stage.stop().await;
    }

    async fn g24_the_end_of_an_instance_detaches_its_sessions_at_once_in_its_own_process(stage) {
        let told = Told::default();
        acts(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        let two = "open one;open two;Turn one;Turn two";
        assert!(stage.ends_after("completes", "Script", two).await.is_ok());
        assert!(stage.ends_after("fails", "Script", &format!("{two};fail it")).await.is_err());
        stage.start("is cancelled", "Script", &format!("{two};wait go")).await;
        stage.has("is cancelled", "ExternalSubscribed", 1).await;
        stage.client.cancel_instance("is cancelled", "enough").await.expect("cancels");
        assert!(stage.ends("is cancelled").await.is_err());
        // No time passes.
        stage.until("all are detached", async || told.all().len() == 12).await;
        for session in ["one", "two"] {
            let detached = format!("detach {session} Closed after 1");
            assert_eq!(told.all().iter().filter(|told| **told == detached).count(), 3, "{:?}", told.all());
        }
        assert_eq!(stage.observer().list_sessions(None).await.expect("lists"), Vec::new());
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_an_open_session_stays_attached_through_continue_as_new_until_its_instance_ends(stage) {
        let told = Told::default();
        acts(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        stage.start("1", "Script", "open chat;Turn chat;again;Turn chat;wait go").await;
        stage.has("1", "ExternalSubscribed", 1).await;
        assert_eq!(told.all(), ["attach chat"], "one attachment for both executions");
        stage.client.raise_event("1", "go", "").await.expect("raises");
        assert_eq!(stage.output("1").await, Ok("A later 2, attempt 1".to_owned()));
        stage.until("it is detached", async || told.all().len() == 2).await;
        assert_eq!(told.all()[1], "detach chat Closed after 2");
        stage.stop().await;
    }

    async fn g25_a_session_that_is_closed_and_opened_again_was_closed_and_not_lost(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        let ((lines, _guard), told) = (Lines::collect(), Told::default());
        acts(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        let turns = "Turn chat;close chat;open chat;Turn chat;close chat;wait go;open chat;Turn chat";
        stage.start("1", "Script", &format!("open chat;{turns}")).await;
        stage.has("1", "ExternalSubscribed", 1).await;
        stage.client.raise_event("1", "go", "").await.expect("raises");
        // No time passes: an attachment that ends does not delay the next one.
        let first = "A first 1, attempt 1";
        assert_eq!(stage.output("1").await, Ok([first; 3].join("; ")));
        stage.until("all are detached", async || told.all().len() == 6).await;
        let attachment = ["attach chat", "detach chat Closed after 1"];
        assert_eq!(told.all(), [attachment; 3].concat());
        assert_eq!(emitted.counter("steadfast_sessions_lost_total"), 0);
        assert_eq!(lines.saying("WARN", "session lost"), Vec::new());
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g25_what_another_process_closed_and_opened_again_was_closed_and_not_lost(stage) {
        let (emitted, told, busy) = (Emitted::default(), Told::default(), Gate::new());
        let _listening = emitted.listen();
        acts(&stage, "T", &Gate::new(), only_decides).await;
        acts(&stage, "A", &busy, |options| {
            only_works(options);
            (options.worker_concurrency, options.session_hooks) = (1, told.hooks());
        })
        .await;
        let [once, again] = ["first", "second"].map(|go| format!("wait {go};close chat;open chat;Turn chat"));
        stage.start("1", "Script", &format!("open chat;Turn chat;{once};{again};wait third")).await;
        stage.has("1", "ExternalSubscribed", 1).await;
        // The same process claims it again, before a renewal.
        stage.client.raise_event("1", "first", "").await.expect("raises");
        stage.has("1", "ExternalSubscribed", 2).await;
        stage.until("the first is detached", async || told.all().len() == 3).await;
        let detached = "detach chat Closed after 1";
        assert_eq!(told.all(), ["attach chat", detached, "attach chat"]);
        // Another process claims it, because the only slot of the first is busy: after that has detached it.
        stage.start("busy", "One", "Hold/").await;
        busy.is_entered().await;
        acts(&stage, "B", &Gate::new(), only_works).await;
        stage.client.raise_event("1", "second", "").await.expect("raises");
        stage.has("1", "ActivityScheduled", 3).await;
        stage.settle().await;
        assert_eq!(told.all().len(), 3, "it has not been told");
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        stage.until("the second is detached", async || told.all().len() == 4).await;
        assert_eq!(told.all()[3], detached);
        stage.has("1", "ExternalSubscribed", 3).await;
        assert_eq!(emitted.counter("steadfast_sessions_lost_total"), 0);
        busy.open();
        stage.client.raise_event("1", "third", "").await.expect("raises");
        let first = "first 1, attempt 1";
        assert_eq!(stage.output("1").await, Ok(format!("A {first}; A {first}; B {first}")));
        stage.stop().await;
    }

    async fn g41_a_reopened_session_is_attached_when_its_former_attachment_is_detached(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let hooks: Arc<dyn SessionHooks> = Arc::new(SlowToDetach { gate: gate.clone(), told: told.clone() });
        acts(&stage, "A", &Gate::new(), |options| options.session_hooks = Some(hooks)).await;
        stage.start("1", "Script", "open chat;Turn chat;close chat;open chat;Turn chat;wait go").await;
        gate.is_entered().await;
        stage.settle().await;
        assert_eq!(told.all(), ["attach chat"], "the first attachment is not over");
        gate.open();
        stage.has("1", "ExternalSubscribed", 1).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Closed after 1", "attach chat"]);
        gate.open();
        stage.client.raise_event("1", "go", "").await.expect("raises");
        assert_eq!(stage.output("1").await, Ok(["A first 1, attempt 1"; 2].join("; ")));
        stage.stop().await;
    }

    async fn g41_another_process_attaches_a_reopened_session_when_its_former_owner_has_detached_it(stage) {
        let (gate, told, busy) = (Gate::new(), Told::default(), Gate::new());
        acts(&stage, "T", &Gate::new(), only_decides).await;
        let hooks: Arc<dyn SessionHooks> = Arc::new(SlowToDetach { gate: gate.clone(), told: told.clone() });
        acts(&stage, "A", &busy, |options| {
            only_works(options);
            (options.worker_concurrency, options.session_hooks) = (1, Some(hooks));
            options.session_hook_timeout = 20 * SECOND;
        })
        .await;
        stage.start("1", "Script", "open chat;Turn chat;wait go;close chat;open chat;Turn chat").await;
        stage.has("1", "ExternalSubscribed", 1).await;
        // The slot of the owner is busy, so that another process takes the next work of the session.
        stage.start("busy", "One", "Hold/").await;
        busy.is_entered().await;
        acts(&stage, "B", &Gate::new(), |options| {
            only_works(options);
            options.session_hooks = told.hooks();
        })
        .await;
        stage.client.raise_event("1", "go", "").await.expect("raises");
        stage.has("1", "ActivityScheduled", 2).await;
        stage.settle().await;
        assert_eq!(told.all(), ["attach chat"], "the owner does not know of the close");
        // It learns of it at its next renewal, and takes its time to detach.
        stage.until("it is told", async || {
            stage.pass(SECOND);
            stage.settle().await;
            gate.waiting() == 1
        })
        .await;
        gate.is_entered().await;
        stage.settle().await;
        assert_eq!(told.all(), ["attach chat"], "the former attachment is not over");
        gate.open();
        assert_eq!(stage.output("1").await, Ok("A first 1, attempt 1; B first 1, attempt 1".to_owned()));
        assert_eq!(told.all()[..3], ["attach chat", "detach chat Closed after 1", "attach chat"]);
        busy.open();
        stage.stop().await;
    }

    async fn d11_closing_cancels_what_runs_on_the_session_at_once(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        acts(&stage, "A", &gate, |options| options.session_hooks = told.hooks()).await;
        stage.start("1", "Race", "open chat").await;
        gate.is_entered().await;
        stage.client.raise_event("1", "enough", "").await.expect("raises");
        assert_eq!(stage.output("1").await, Ok("canceled: session 'chat' closed".to_owned()));
        stage.until("it is detached", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Closed after 0"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d29_an_activity_of_a_serial_session_waits_until_a_withdrawn_one_has_stopped(stage) {
        let (gate, notes) = (Gate::new(), Notes::default());
        acts(&stage, "T", &Gate::new(), only_decides).await;
        let mut options = RuntimeOptions { worker_node_id: Some("A".to_owned()), ..stage.options() };
        only_works(&mut options);
        stage.run_with(stubborn(&gate, &notes), plays(), options).await;
        stage.start("1", "GivesUp", "").await;
        stage.until("it runs", async || notes.all().len() == 1).await;
        stage.client.raise_event("1", "enough", "").await.expect("raises");
        // No time passes: the next activity makes its process ask the store about the one before.
        gate.is_entered().await;
        stage.settle().await;
        let told = ["it runs", "it is told: Some(Withdrawn)"];
        assert_eq!(notes.all(), told, "the next one waits");
        gate.open();
        assert_eq!(stage.output("1").await, Ok("done".to_owned()));
        assert_eq!(notes.all(), [&told[..], &["it has stopped", "the next one runs"]].concat());
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d29_a_serial_session_keeps_its_order_when_its_owner_dies(stage) {
        let (faults, gate, other) = (Faults::default(), Gate::new(), Gate::new());
        acts(&stage, "T", &Gate::new(), only_decides).await;
        let dead = cut_off(&stage, "A", &gate, &faults).await;
        stage.start("1", "Serial", "").await;
        gate.is_entered().await;
        stage.settle().await;
        assert_eq!(gate.waiting(), 0, "one at a time");
        faults.outage();
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        acts(&stage, "B", &other, only_works).await;
        for n in 1..=3 {
            stage.until("the next runs", async || {
                stage.pass(SECOND);
                stage.settle().await;
                other.waiting() == 1
            })
            .await;
            other.is_entered().await;
            stage.settle().await;
            assert_eq!(other.waiting(), 0, "one at a time");
            let kinds = stage.kinds("1").await;
            assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCompleted").count(), n - 1);
            other.open();
        }
        let order = "1 on B, attempt 2; 2 on B, attempt 1; 3 on B, attempt 1";
        assert_eq!(stage.output("1").await, Ok(order.to_owned()));
        dead.shutdown(Some(0)).await;
        stage.stop().await;
    }
}
