//! What code sees while it repeats what it did: `is_replaying`, traces, times, system calls (2.18, F14, F17,
//! 1.8).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use steadfast::providers::{ProviderError, WorkItem};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, EventKind, OrchestrationContext, RuntimeOptions};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};
use steadfast_clock::Clock;

const MINUTE: Duration = Duration::from_secs(60);

/// What code noted at its steps: the step, and whether it was a replay.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<(String, bool)>>>);

impl Notes {
    fn note(&self, ctx: &OrchestrationContext, step: impl Into<String>) {
        self.lock().push((step.into(), ctx.is_replaying()));
    }

    /// The steps that were no replay.
    fn live(&self) -> Vec<String> {
        self.lock().iter().filter(|(_, replaying)| !replaying).map(|(step, _)| step.clone()).collect()
    }

    /// How often a step was taken, replays included.
    fn count(&self, wanted: &str) -> usize {
        self.lock().iter().filter(|(step, _)| step == wanted).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, bool)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_, input: String| async move { Ok(input) })
}

/// Registers one orchestration as `Flow` that notes its steps, beside a child that ends at once.
fn flow<F>(
    notes: &Notes,
    handler: impl Fn(OrchestrationContext, Notes) -> F + Send + Sync + 'static,
) -> OrchestrationRegistryBuilder
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let notes = notes.clone();
    orchestrations()
        .register("Flow", move |ctx, _| handler(ctx, notes.clone()))
        .register("Kid", |_, input| async move { Ok(input) })
}

/// Takes a step before and after each kind of wait, and traces each.
async fn steps(ctx: OrchestrationContext, notes: Notes) -> Result<String, String> {
    let step = |name: &str| {
        notes.note(&ctx, name);
        ctx.trace_info(name);
    };
    step("begin");
    ctx.schedule_activity("Echo", "").await?;
    step("activity");
    ctx.schedule_timer(MINUTE).await;
    step("timer");
    ctx.schedule_wait("go").await;
    step("wait");
    ctx.dequeue_event("q").await;
    step("dequeue");
    ctx.schedule_sub_orchestration("Kid", "").await?;
    step("child");
    Ok(ctx.schedule_wait("end").await)
}

const STEPS: [&str; 6] = ["begin", "activity", "timer", "wait", "dequeue", "child"];

/// Runs `steps` to its end, with a new runtime before each answer.
async fn with_restarts(stage: &Stage, notes: &Notes) {
    let restart = async || {
        stage.stop().await;
        stage.run(echo(), flow(notes, steps)).await;
    };
    stage.run(echo(), flow(notes, steps)).await;
    stage.start("a", "Flow", "").await;
    stage.has("a", "TimerCreated", 1).await;
    restart().await;
    stage.pass(MINUTE);
    stage.has("a", "ExternalSubscribed", 1).await;
    restart().await;
    raise(stage, "go").await;
    stage.has("a", "QueueSubscribed", 1).await;
    restart().await;
    stage.client.enqueue_event("a", "q", "").await.expect("is sent");
    stage.has("a", "ExternalSubscribed", 2).await;
    restart().await;
    raise(stage, "end").await;
    assert_eq!(stage.output("a").await, Ok("end".to_owned()));
    stage.stop().await;
}

async fn raise(stage: &Stage, name: &str) {
    stage.client.raise_event("a", name, name).await.expect("is sent");
}

on_every_store! {
    async fn f14_each_step_is_live_once_however_often_the_runtime_is_restarted(stage) {
        let notes = Notes::default();
        with_restarts(&stage, &notes).await;
        assert_eq!(notes.live(), STEPS);
        assert!(notes.count("begin") >= 5, "every new runtime repeated it");
    }

    async fn r2_18_each_trace_is_written_once_however_often_the_runtime_is_restarted(stage) {
        let (lines, _guard) = Lines::collect();
        with_restarts(&stage, &Notes::default()).await;
        let traces = lines.of("steadfast::orchestration");
        let messages: Vec<&str> = traces.iter().map(|line| line.field("message")).collect();
        assert_eq!(messages, STEPS);
        let names = ["execution_id", "instance_id", "message", "orchestration_name", "orchestration_version"];
        for line in &traces {
            assert_eq!(line.names(), names);
            assert_eq!(
                (line.level.as_str(), line.field("instance_id"), line.field("execution_id")),
                ("INFO", "a", "1")
            );
        }
    }

    async fn f14_a_step_that_recorded_nothing_is_a_replay_the_next_time(stage) {
        // In the turn that consumes the activity's result the code asks for nothing new: history ends there.
        let notes = Notes::default();
        let branch = || {
            flow(&notes, |ctx: OrchestrationContext, notes: Notes| async move {
                let activity = async {
                    ctx.schedule_activity("Echo", "").await?;
                    notes.note(&ctx, "after the activity");
                    Ok::<_, String>(())
                };
                let go = ctx.schedule_wait("go");
                ctx.join2(activity, go).await.0?;
                Ok(ctx.schedule_wait("end").await)
            })
        };
        stage.run(echo(), branch()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ActivityCompleted", 1).await;
        stage.stop().await;
        assert_eq!(notes.live(), ["after the activity"]);
        stage.run(echo(), branch()).await;
        raise(&stage, "go").await;
        stage.has("a", "ExternalSubscribed", 2).await;
        raise(&stage, "end").await;
        assert_eq!(stage.output("a").await, Ok("end".to_owned()));
        assert_eq!(notes.live(), ["after the activity"]);
        assert!(notes.count("after the activity") >= 2, "it was repeated");
        stage.stop().await;
    }

    async fn r2_18_every_step_that_new_messages_cause_is_live(stage) {
        let notes = Notes::default();
        let both = || {
            flow(&notes, |ctx: OrchestrationContext, notes: Notes| async move {
                notes.note(&ctx, "begin");
                let (one, two) = (ctx.schedule_wait("one"), ctx.schedule_wait("two"));
                one.await;
                notes.note(&ctx, "one");
                two.await;
                notes.note(&ctx, "two");
                Ok(String::new())
            })
        };
        stage.run(activities(), both()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 2).await;
        stage.stop().await;
        raise(&stage, "two").await;
        raise(&stage, "one").await;
        stage.run(activities(), both()).await;
        assert_eq!(stage.output("a").await, Ok(String::new()));
        let all: Vec<_> = notes.lock().clone();
        let seen: Vec<(&str, bool)> =
            all.iter().map(|(step, replaying)| (step.as_str(), *replaying)).collect();
        assert_eq!(seen, [("begin", false), ("begin", true), ("one", false), ("two", false)]);
        stage.stop().await;
    }

    async fn r2_18_a_next_execution_begins_live(stage) {
        let notes = Notes::default();
        stage
            .run(
                activities(),
                flow(&notes, |ctx: OrchestrationContext, notes: Notes| async move {
                    notes.note(&ctx, format!("begin {}", ctx.execution_id()));
                    assert!(!ctx.is_logging_enabled());
                    if ctx.execution_id() < 3 {
                        return ctx.continue_as_new("").await;
                    }
                    Ok(String::new())
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
        assert_eq!(notes.live(), ["begin 1", "begin 2", "begin 3"]);
        stage.stop().await;
    }

    async fn i4_a_commit_whose_answer_is_lost_is_repeated_by_nobody(stage) {
        let notes = Notes::default();
        stage.run(echo(), flow(&notes, steps)).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.faults.lose_answer("commit_turn", 1, ProviderError::retryable("commit", "no answer"));
        stage.pass(MINUTE);
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "go").await;
        stage.client.enqueue_event("a", "q", "").await.expect("is sent");
        raise(&stage, "early").await;
        stage.pass_slowly(Duration::from_secs(1), Duration::from_millis(10)).await;
        stage.has("a", "SubOrchestrationCompleted", 1).await;
        raise(&stage, "end").await;
        assert_eq!(stage.output("a").await, Ok("end".to_owned()));
        assert_eq!(notes.live(), STEPS);
        assert_eq!(stage.kinds("a").await.iter().filter(|kind| *kind == "TimerFired").count(), 1);
        stage.stop().await;
    }

    async fn r2_18_the_traces_of_an_activity_are_never_suppressed(stage) {
        let (lines, _guard) = Lines::collect();
        let traces = || {
            activities().register("Slow", |ctx: ActivityContext, _| async move {
                ctx.trace_info("at work");
                std::future::pending().await
            })
        };
        let notes = Notes::default();
        let slow = || {
            flow(
                &notes,
                |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Slow", "").await },
            )
        };
        stage.run(traces(), slow()).await;
        stage.start("a", "Flow", "").await;
        let said = async || lines.of("steadfast::activity").len();
        stage.until("it traces", async || said().await == 1).await;
        stage.stop().await;
        stage.run(traces(), slow()).await;
        stage.until("its second run traces again", async || said().await == 2).await;
        stage.stop().await;
    }

    async fn c1_8_traces_have_the_level_that_was_asked_for(stage) {
        let (lines, _guard) = Lines::collect();
        stage
            .run(
                activities(),
                flow(&Notes::default(), |ctx: OrchestrationContext, _| async move {
                    ctx.trace_debug("a");
                    ctx.trace_warn("b");
                    ctx.trace_error("c");
                    ctx.trace("WaRn", "d");
                    ctx.trace("loud", "e");
                    Ok(String::new())
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
        let said: Vec<_> = lines.of("steadfast::orchestration");
        let said: Vec<_> = said
            .iter()
            .map(|line| (line.level.as_str(), line.field("message"), line.field("level")))
            .collect();
        let expected = [
            ("DEBUG", "a", ""),
            ("WARN", "b", ""),
            ("ERROR", "c", ""),
            ("WARN", "d", ""),
            ("TRACE", "e", "loud"),
        ];
        assert_eq!(said, expected);
        stage.stop().await;
    }

    async fn c1_8_guids_and_times_are_recorded_and_stay_the_same(stage) {
        let notes = Notes::default();
        let calls = || {
            flow(&notes, |ctx: OrchestrationContext, notes: Notes| async move {
                let (one, two) = (ctx.new_guid().await?, ctx.new_guid().await?);
                let now =
                    ctx.utc_now().await?.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
                notes.note(&ctx, format!("{one} {two} {}", now.as_millis()));
                ctx.schedule_wait("go").await;
                Ok(format!("{one} {two} {}", now.as_millis()))
            })
        };
        stage.pass(Duration::from_secs(5));
        let now = stage.clock.now_ms();
        stage.run(activities(), calls()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.pass(Duration::from_secs(86_400));
        stage.run(activities(), calls()).await;
        raise(&stage, "go").await;
        let output = stage.output("a").await.expect("ends");
        assert_eq!(notes.live(), [output.as_str()]);
        assert!(notes.count(&output) >= 2, "a replay saw the same");
        let parts: Vec<&str> = output.split(' ').collect();
        assert_eq!(parts[2], now.to_string());
        assert_ne!(parts[0], parts[1]);
        for guid in &parts[..2] {
            let bytes = guid.as_bytes();
            assert!(
                guid.len() == 36 && bytes[14] == b'4' && b"89ab".contains(&bytes[19]),
                "version 4: {guid}"
            );
        }
        stage.stop().await;
    }

    async fn t3_system_calls_are_activities_of_reserved_names(stage) {
        stage
            .run(
                activities(),
                flow(&Notes::default(), |ctx: OrchestrationContext, _| async move {
                    ctx.new_guid().await?;
                    ctx.utc_now().await?;
                    ctx.get_kv_value_from_instance("other", "key").await?;
                    Ok(String::new())
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
        let scheduled: Vec<_> = stage
            .history("a")
            .await
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::ActivityScheduled { name, input, session_id: None, tag: None } => {
                    Some((name, input))
                }
                _ => None,
            })
            .collect();
        let expected = [
            ("__duroxide_syscall:new_guid", ""),
            ("__duroxide_syscall:utc_now_ms", ""),
            ("__duroxide_syscall:get_kv_value", r#"{"instance_id":"other","key":"key"}"#),
        ];
        assert_eq!(scheduled, expected.map(|(name, input)| (name.to_owned(), input.to_owned())));
        stage.stop().await;
    }

    async fn c1_8_a_time_that_cannot_be_read_is_an_error_of_the_call(stage) {
        let no_workers = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        let asks = flow(&Notes::default(), |ctx: OrchestrationContext, _| async move {
            Ok(ctx.utc_now().await.is_err().to_string())
        });
        stage.run_with(activities(), asks, no_workers).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        let (instance, result) = ("a".to_owned(), "soon".to_owned());
        let answer = WorkItem::ActivityCompleted { instance, execution_id: 1, id: 2, result };
        stage.inner().enqueue_for_orchestrator(answer, None).await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("true".to_owned()));
        stage.stop().await;
    }
}
