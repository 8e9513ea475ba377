//! A store in trouble: away, slow, silent, full, damaged, or with a clock that jumps. Nothing is lost, nobody is failed
//! for it, and work goes on when the trouble ends (I1, I5–I8, F8, S15, S16).

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::providers::{Provider, ProviderError, ProviderErrorKind};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationStatus, PoisonMessageType,
    RuntimeOptions,
};
use steadfast_behaviour::{
    SOON, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::{Clock, VirtualClock};
use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, Queue, UNREADABLE_RETRY};
use tokio::sync::Notify;

const BEGIN_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTE: Duration = Duration::from_secs(60);

fn down() -> ProviderError {
    ProviderError::retryable("test", "the store is away")
}

/// The runs of activities, by input.
type Ran = Arc<Mutex<Vec<String>>>;

/// `Echo` notes that it ran; `Slow` runs until it is let go.
fn noted(ran: &Ran, go: &Arc<Notify>) -> ActivityRegistryBuilder {
    let (echoed, slow, go) = (Arc::clone(ran), Arc::clone(ran), Arc::clone(go));
    let note = |ran: &Ran, input: &String| ran.lock().expect("nobody panicked").push(input.clone());
    activities()
        .register("Echo", move |_, input: String| {
            note(&echoed, &input);
            async move { Ok(input) }
        })
        .register("Slow", move |_, input: String| {
            note(&slow, &input);
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok(input)
            }
        })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Plain", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .register("Slow", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Slow", input).await
        })
        .register("Timer", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_timer(MINUTE).await;
            ctx.schedule_activity("Echo", input).await
        })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            let children = (0..3).map(|n| ctx.schedule_sub_orchestration("Timer", format!("{input}{n}")));
            let ended = ctx.join(children.collect()).await;
            ended.into_iter().collect::<Result<Vec<_>, _>>().map(|ended| ended.join(" "))
        })
}

fn retryable(error: &ClientError) -> bool {
    matches!(error, ClientError::Provider(error) if error.is_retryable())
}

on_every_store! {
    async fn i7_an_outage_of_three_minutes_loses_nothing_and_fails_nobody(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        let runtime = stage.run(noted(&ran, &go), flows()).await;
        for (instance, flow) in [("slow", "Slow"), ("timer", "Timer"), ("wait", "Wait"), ("parent", "Parent")] {
            stage.start(instance, flow, instance).await;
        }
        stage.has("timer", "TimerCreated", 1).await;
        stage.has("wait", "ExternalSubscribed", 1).await;
        stage.has("parent::sub::4", "TimerCreated", 1).await;
        stage.until("the activity runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.faults.outage();
        let refused = stage.client.start_orchestration("late", "Plain", "").await.expect_err("it is away");
        assert!(retryable(&refused), "{refused:?}");
        // The activity ends while nobody can be told.
        go.notify_one();
        stage.pass_slowly(Duration::from_secs(180), Duration::from_millis(500)).await;
        stage.faults.heal();
        // Its lease ended meanwhile, so it may run again: then it must be let go again.
        go.notify_one();
        stage.client.raise_event("wait", "go", "on").await.expect("the store is back");
        for (instance, output) in
            [("slow", "slow"), ("timer", "timer"), ("wait", "on"), ("parent", "parent0 parent1 parent2")]
        {
            let ended = stage.ends_as_time_passes(instance, Duration::from_millis(250)).await;
            assert_eq!(ended, Ok(output.to_owned()));
        }
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_failures, 0);
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i2_an_answer_that_is_lost_changes_nothing_and_repeats_nothing(stage) {
        for (number, operation) in
            ["fetch_turn", "commit_turn", "fetch_work", "finish_work", "renew"].into_iter().enumerate()
        {
            let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
            stage.faults.lose_answer(operation, 3, down());
            stage.run(noted(&ran, &go), flows()).await;
            let instance = format!("a{number}");
            stage.start(&instance, "Timer", operation).await;
            let ended = stage.ends_as_time_passes(&instance, Duration::from_millis(250)).await;
            assert_eq!(ended, Ok(operation.to_owned()));
            assert_eq!(*ran.lock().expect("nobody panicked"), [operation], "it ran once");
            assert_eq!(
                stage.kinds(&instance).await,
                [
                    "OrchestrationStarted", "TimerCreated", "TimerFired", "ActivityScheduled",
                    "ActivityCompleted", "OrchestrationCompleted",
                ]
            );
            stage.stop().await;
            stage.faults.heal();
        }
        stage.nothing_waits().await;
    }

    async fn i5_a_caller_whose_answer_is_lost_may_ask_again(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.faults.lose_answer("send", 1, down());
        let lost = stage.client.start_orchestration("a", "Plain", "x").await.expect_err("the answer is lost");
        assert!(retryable(&lost), "{lost:?}");
        stage.client.start_orchestration("a", "Plain", "x").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.until("both starts are settled", async || {
            stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
        })
        .await;
        assert_eq!(*ran.lock().expect("nobody panicked"), ["x"]);
        stage.stop().await;
    }

    async fn i7_a_fetch_that_never_answers_holds_up_nobody_else(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.faults.hang("fetch_turn", 1);
        stage.faults.hang("fetch_work", 1);
        stage.run(noted(&ran, &go), flows()).await;
        for number in 0..5 {
            let instance = format!("a{number}");
            assert_eq!(stage.ends_after(&instance, "Plain", "x").await, Ok("x".to_owned()));
        }
        // A shutdown does not wait for the store.
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_commit_that_never_answers_holds_its_slot_and_neither_others_nor_the_shutdown(stage) {
        for (operation, lease) in [("commit_turn", 5), ("finish_work", 30)] {
            let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
            stage.run(noted(&ran, &go), flows()).await;
            stage.faults.hang(operation, 1);
            let before = stage.faults.calls(operation);
            stage.start(operation, "Plain", "x").await;
            stage.until("the call", async || stage.faults.calls(operation) > before).await;
            let beside = format!("beside {operation}");
            assert_eq!(stage.ends_after(&beside, "Plain", "y").await, Ok("y".to_owned()));
            // The slot is given up a second after it was told to stop.
            tokio::join!(stage.stop_at_once(), stage.pass_slowly(Duration::from_secs(2), Duration::from_millis(100)));
            assert!(stage.observer().wait_for_orchestration(operation, Duration::ZERO).await.is_err());
            // Another process, once the lease has ended.
            stage.pass(Duration::from_secs(lease));
            stage.run(noted(&ran, &go), flows()).await;
            assert_eq!(stage.output(operation).await, Ok("x".to_owned()));
            stage.stop().await;
        }
        stage.nothing_waits().await;
    }

    async fn i7_a_renewal_that_never_answers_costs_the_lease_and_not_the_work(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Slow", "x").await;
        stage.until("it runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.faults.hang("renew", 1);
        let before = stage.faults.calls("renew");
        stage.pass(Duration::from_secs(15));
        stage.until("the renewal", async || stage.faults.calls("renew") > before).await;
        stage.pass(Duration::from_secs(15));
        stage.until("it runs again", async || ran.lock().expect("nobody panicked").len() == 2).await;
        // Both end; the first one's result comes too late.
        go.notify_waiters();
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCompleted").count(), 1);
        stage.stop().await;
    }

    async fn s16_a_clock_that_jumps_ends_no_wait_and_holds_none_up(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("back", "Timer", "back").await;
        stage.has("back", "TimerCreated", 1).await;
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        stage.pass(MINUTE - Duration::from_millis(1));
        assert_eq!(stage.ends_after("behind", "Plain", "x").await, Ok("x".to_owned()));
        assert_eq!(stage.kinds("back").await, ["OrchestrationStarted", "TimerCreated"], "not before");
        stage.pass(Duration::from_millis(1));
        assert_eq!(stage.output("back").await, Ok("back".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn s16_a_lease_ends_in_time_although_the_clock_went_back(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Slow", "x").await;
        stage.until("it runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        // Its holder cannot renew, as if it were dead.
        stage.faults.hang("renew", u64::MAX);
        stage.pass(Duration::from_secs(31));
        stage.until("another slot took it", async || ran.lock().expect("nobody panicked").len() == 2).await;
        go.notify_waiters();
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn s16_a_timer_set_after_a_jump_lasts_as_long_as_it_should(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        for (instance, wall) in [("back", BEGIN_MS - HOUR_MS), ("ahead", BEGIN_MS + 2 * HOUR_MS)] {
            stage.clock.set_wall_ms(wall);
            stage.start(instance, "Timer", instance).await;
            stage.has(instance, "TimerCreated", 1).await;
            stage.pass(MINUTE - Duration::from_millis(1));
            let behind = format!("behind {instance}");
            assert_eq!(stage.ends_after(&behind, "Plain", "x").await, Ok("x".to_owned()));
            assert_eq!(stage.kinds(instance).await, ["OrchestrationStarted", "TimerCreated"], "not before");
            stage.pass(Duration::from_millis(1));
            assert_eq!(stage.output(instance).await, Ok(instance.to_owned()));
        }
        stage.stop().await;
    }

    async fn s16_the_time_out_of_a_caller_is_not_moved_by_a_jump(stage) {
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let client = stage.client.clone();
        let waiting = tokio::spawn(async move { client.wait_for_orchestration("a", MINUTE).await });
        tokio::task::yield_now().await;
        stage.clock.set_wall_ms(BEGIN_MS + 2 * HOUR_MS);
        stage.pass(MINUTE - Duration::from_millis(1));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        stage.pass(Duration::from_millis(1));
        let waited = tokio::time::timeout(SOON, waiting).await.expect("in time").expect("returns");
        assert!(matches!(waited, Err(ClientError::Timeout)), "{waited:?}");
        stage.stop().await;
    }
}

/// A SQLite store with options, and what runs over it.
struct Small {
    client: Client,
    clock: VirtualClock,
    runtime: Arc<Runtime>,
}

impl Small {
    async fn open(file: &std::path::Path, max_pages: Option<u32>) -> Self {
        let clock = VirtualClock::new(BEGIN_MS);
        let options = SqliteOptions { clock: Arc::new(clock.clone()), max_pages, ..SqliteOptions::default() };
        let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await;
        let store: Arc<dyn Provider> = Arc::new(store.expect("opens"));
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        let options = RuntimeOptions { clock: Arc::new(clock.clone()), ..RuntimeOptions::default() };
        let (acts, flow) = (noted(&ran, &go).build(), flows().build());
        let runtime = Runtime::start_with_options(Arc::clone(&store), acts, flow, options).await;
        Self { client: Client::with_clock(store, Arc::new(clock.clone())), clock, runtime }
    }

    /// Waits until an instance has ended while time passes.
    async fn ends(&self, instance: &str) -> OrchestrationStatus {
        let ended = tokio::time::timeout(SOON, async {
            loop {
                let status = self.client.get_orchestration_status(instance).await.expect("reading goes on");
                match status {
                    OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => {
                        self.clock.advance(Duration::from_millis(200));
                        steadfast_clock::SystemClock.sleep(Duration::from_millis(2)).await;
                    }
                    ended => return ended,
                }
            }
        });
        ended.await.unwrap_or_else(|_| panic!("{instance} does not end"))
    }
}

fn completed(status: &OrchestrationStatus) -> bool {
    matches!(status, OrchestrationStatus::Completed { .. })
}

#[tokio::test]
async fn i1_a_full_disk_is_told_to_callers_and_work_goes_on_when_there_is_room() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let small = Small::open(&folder.path().join("store.db"), Some(160)).await;
    small.client.start_orchestration("timer", "Timer", "kept").await.expect("there is room");
    let payload = "x".repeat(8_000);
    let mut started = Vec::new();
    let refused = loop {
        let instance = format!("fill{}", started.len());
        match small.client.start_orchestration(instance.clone(), "Plain", payload.clone()).await {
            Ok(()) => started.push(instance),
            Err(error) => break error,
        }
        assert!(started.len() < 1_000, "the file never was full");
    };
    let ClientError::Provider(error) = &refused else { panic!("{refused:?}") };
    assert_eq!((error.kind, error.is_retryable()), (ProviderErrorKind::Full, true));
    // What ended makes room for what has not, as soon as it is deleted; nothing is failed for want of it.
    let mut ended = Vec::new();
    for round in 0.. {
        small.clock.advance(Duration::from_secs(6));
        steadfast_clock::SystemClock.sleep(Duration::from_millis(20)).await;
        for instance in started.clone() {
            let status = small.client.get_orchestration_status(&instance).await.expect("reading goes on");
            assert!(!matches!(status, OrchestrationStatus::Failed { .. }), "{status:?}");
            if completed(&status) && small.client.delete_instance(&instance, false).await.is_ok() {
                started.retain(|other| *other != instance);
                ended.push(instance);
            }
        }
        if started.is_empty() {
            break;
        }
        assert!(round < 1_000, "{} are stuck, {} ended", started.len(), ended.len());
    }
    assert!(completed(&small.ends("timer").await));
    small.client.start_orchestration("after", "Plain", "fine").await.expect("there is room again");
    assert!(completed(&small.ends("after").await));
    small.runtime.shutdown(Some(0)).await;
}

#[tokio::test]
async fn i1_a_full_disk_loses_nothing_that_was_acknowledged_when_opened_with_more_room() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("store.db");
    let small = Small::open(&file, Some(160)).await;
    let mut started = Vec::new();
    for number in 0..1_000 {
        let (instance, payload) = (format!("fill{number}"), "x".repeat(8_000));
        match small.client.start_orchestration(instance.clone(), "Plain", payload).await {
            Ok(()) => started.push(instance),
            Err(_) => break,
        }
    }
    small.runtime.shutdown(Some(0)).await;
    drop(small.client);
    let roomy = Small::open(&file, None).await;
    for instance in &started {
        assert!(completed(&roomy.ends(instance).await), "{instance}");
    }
    roomy.runtime.shutdown(Some(0)).await;
}

/// Changes the file behind everybody's back.
fn damage(stage: &Stage, sql: &str) {
    let file = Connection::open(stage.file()).expect("opens");
    file.busy_timeout(SOON).expect("waits");
    assert_eq!(file.execute(sql, []).expect("damages"), 1, "{sql}");
}

#[tokio::test]
async fn s15_a_damaged_event_fails_its_instance_after_its_attempts_and_nobody_else() {
    for text in ["'{broken'", "CAST(x'7bff' AS TEXT)"] {
        let stage = Stage::new(StoreKind::Sqlite).await;
        let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
        let few = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(noted(&ran, &go), flows(), few.clone()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        // Who holds it warm does not read it again: another process does.
        stage.stop().await;
        stage.run_with(noted(&ran, &go), flows(), few).await;
        damage(&stage, &format!("UPDATE history SET event = {text} WHERE event_id = 2"));
        let unread = stage.client.read_execution_history("a", 1).await.expect_err("it is damaged");
        assert!(
            matches!(&unread, ClientError::Provider(error) if error.kind == ProviderErrorKind::Corrupt),
            "{unread:?}"
        );
        stage.client.raise_event("a", "go", "").await.expect("sends");
        let ended = tokio::time::timeout(SOON, async {
            loop {
                stage.pass_slowly(Duration::from_millis(500), Duration::from_millis(100)).await;
                let status = stage.client.get_orchestration_status("a").await.expect("answers");
                if let OrchestrationStatus::Failed { details, .. } = status {
                    return details;
                }
            }
        });
        let details = ended.await.expect("it ends");
        let ErrorDetails::Poison { attempt_count: 3, message_type, .. } = &details else {
            panic!("{details:?}")
        };
        assert!(
            matches!(message_type, PoisonMessageType::FailedDeserialization { instance, .. } if instance == "a")
        );
        assert_eq!(stage.ends_after("b", "Plain", "fine").await, Ok("fine".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

#[tokio::test]
async fn s15_a_damaged_message_or_activity_is_set_aside_and_blocks_nobody() {
    for (table, queue) in [("messages", Queue::Orchestrator), ("work", Queue::Worker)] {
        for text in ["'{broken'", "''", "CAST(x'7bff' AS TEXT)"] {
            let stage = Stage::new(StoreKind::Sqlite).await;
            let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
            let no_workers = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
            stage.run_with(noted(&ran, &go), flows(), no_workers).await;
            stage.start("a", "Plain", "x").await;
            stage.has("a", "ActivityScheduled", 1).await;
            stage.stop().await;
            stage.client.raise_event("a", "event", "").await.expect("sends");
            damage(&stage, &format!("UPDATE {table} SET item = {text}"));
            stage.run(noted(&ran, &go), flows()).await;
            for number in 0..MAX_UNREADABLE_ATTEMPTS {
                let beside = format!("beside-{number}");
                assert_eq!(
                    stage.ends_after(&beside, "Plain", "fine").await,
                    Ok("fine".to_owned()),
                    "{table} {text}"
                );
                stage.pass(UNREADABLE_RETRY);
            }
            let aside = async || stage.client.list_set_aside(None).await.expect("lists");
            stage.until("it is set aside", async || !aside().await.is_empty()).await;
            let [row] = &aside().await[..] else { panic!("one row") };
            assert_eq!((row.queue, row.instance.as_deref()), (queue, Some("a")), "{table} {text}");
            stage.stop().await;
        }
    }
}

#[tokio::test]
async fn i7_a_store_that_stumbles_again_and_again_is_borne_with() {
    const INSTANCES: usize = 12;
    let stage = Stage::new(StoreKind::Sqlite).await;
    let (ran, go) = (Ran::default(), Arc::new(Notify::new()));
    stage.run(noted(&ran, &go), flows()).await;
    for number in 0..INSTANCES {
        stage.start(&format!("a{number}"), "Plain", "x").await;
        for operation in ["fetch_turn", "commit_turn", "fetch_work", "finish_work", "abandon"] {
            stage.faults.refuse(operation, 1, down());
        }
    }
    for number in 0..INSTANCES {
        let ended = stage.ends_as_time_passes(&format!("a{number}"), Duration::from_millis(100)).await;
        assert_eq!(ended, Ok("x".to_owned()));
        // An activity whose outcome nobody took in time may run again; it is answered once.
        assert_eq!(
            stage.kinds(&format!("a{number}")).await,
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
        );
    }
    stage.faults.heal();
    stage.stop().await;
    stage.nothing_waits().await;
}
