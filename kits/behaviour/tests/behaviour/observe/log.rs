//! What is logged, under which targets, with which fields (section 3 "Tracing", 2.18): a subscriber of the
//! test's own thread sees it all.

use std::collections::BTreeSet;

use crate::workbench::{SECOND, call};
use steadfast::providers::{ProviderError, ProviderErrorKind, WorkItem};
use steadfast::runtime::RuntimeOptions;
use steadfast::{ActivityContext, Event, EventKind, OrchestrationContext};
use steadfast_behaviour::{Line, Lines, Stage, activities, on_every_store, orchestrations};

async fn work(ctx: ActivityContext, _: String) -> Result<String, String> {
    ctx.trace_info("one");
    ctx.trace_warn("two");
    ctx.trace_error("three");
    ctx.trace_debug("four");
    Ok(String::new())
}

async fn flow(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.trace_info("before");
    ctx.schedule_activity("Work", "").await?;
    ctx.trace_warn("between");
    ctx.schedule_timer(SECOND).await;
    ctx.trace_error("after");
    ctx.trace_debug("in detail");
    for level in ["INFO", "Warn", "error", "debug", "trace", "notice"] {
        ctx.trace(level, format!("at {level}"));
    }
    Ok(String::new())
}

/// Runs [`flow`]. Where nothing is kept warm, its last turn replays the two before it.
async fn flows(stage: &Stage, max_warm_orchestrations: usize) {
    let flows = orchestrations().register_versioned("Flow", "1.2.0", flow);
    let options = RuntimeOptions { max_warm_orchestrations, ..stage.options() };
    stage.run_with(activities().register("Work", work), flows, options).await;
    stage.start("a", "Flow", "").await;
    stage.has("a", "TimerCreated", 1).await;
    stage.pass(SECOND);
    stage.ends("a").await.expect("completes");
    stage.stop().await;
}

/// What [`flow`] logs, once each.
const SAID: [(&str, &str); 10] = [
    ("INFO", "before"),
    ("WARN", "between"),
    ("ERROR", "after"),
    ("DEBUG", "in detail"),
    ("INFO", "at INFO"),
    ("WARN", "at Warn"),
    ("ERROR", "at error"),
    ("DEBUG", "at debug"),
    ("TRACE", "at trace"),
    ("TRACE", "at notice"),
];

fn said(lines: &[Line]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (line.level.as_str(), line.field("message"))).collect()
}

/// Listens for two events.
async fn listen(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    for _ in 0..2 {
        ctx.schedule_wait("news").await;
    }
    Ok(String::new())
}

/// Writes the first event of an execution as an engine with another stamp did, and sends its instance an
/// event.
async fn begun_by(stage: &Stage, instance: &str, stamp: &str) {
    let kind = EventKind::OrchestrationStarted {
        name: "Listen".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let mut started = Event::with_event_id(1, instance, 1, None, kind);
    started.duroxide_version = stamp.to_owned();
    stage.inner().append_with_execution(instance, 1, vec![started]).await.expect("appends");
    raised(stage, instance).await;
}

async fn raised(stage: &Stage, instance: &str) {
    let (instance, name, data) = (instance.to_owned(), "news".to_owned(), String::new());
    let item = WorkItem::ExternalRaised { instance, name, data };
    stage.inner().enqueue_for_orchestrator(item, None).await.expect("sends");
}

on_every_store! {
    async fn t3_an_orchestration_logs_under_its_target_with_its_fields(stage) {
        let (lines, _guard) = Lines::collect();
        flows(&stage, 10).await;
        let lines = lines.of("steadfast::orchestration");
        let first = &lines[0];
        assert_eq!(
            first.names(),
            ["execution_id", "instance_id", "message", "orchestration_name", "orchestration_version"]
        );
        assert_eq!((first.field("instance_id"), first.field("execution_id")), ("a", "1"));
        assert_eq!(
            (first.field("orchestration_name"), first.field("orchestration_version")),
            ("Flow", "1.2.0")
        );
        assert_eq!(first.field("message"), "before");
        assert!(lines.iter().all(|line| line.field("activity_name").is_empty()));
    }

    async fn r2_18_what_an_orchestration_logs_is_not_repeated_by_replay(stage) {
        let (lines, _guard) = Lines::collect();
        flows(&stage, 0).await;
        let lines = lines.of("steadfast::orchestration");
        assert_eq!(said(&lines), SAID);
        assert_eq!(lines[9].field("level"), "notice", "a level that is none is said beside");
        assert!(lines[..8].iter().all(|line| line.field("level").is_empty()));
    }

    async fn r2_18_an_orchestration_that_is_kept_warm_logs_the_same(stage) {
        let (lines, _guard) = Lines::collect();
        flows(&stage, 10).await;
        assert_eq!(said(&lines.of("steadfast::orchestration")), SAID);
    }

    async fn t3_an_activity_logs_under_its_target_with_its_fields(stage) {
        let (lines, _guard) = Lines::collect();
        flows(&stage, 10).await;
        let lines = lines.of("steadfast::activity");
        assert_eq!(said(&lines), [("INFO", "one"), ("WARN", "two"), ("ERROR", "three"), ("DEBUG", "four")]);
        for line in &lines {
            assert_eq!(
                line.names(),
                [
                    "activity_id",
                    "activity_name",
                    "execution_id",
                    "instance_id",
                    "message",
                    "orchestration_name",
                    "orchestration_version",
                    "worker_id"
                ]
            );
            assert_eq!((line.field("instance_id"), line.field("execution_id")), ("a", "1"));
            assert_eq!(line.field("orchestration_name"), "Flow");
            assert_eq!(line.field("orchestration_version"), "1.2.0");
            assert_eq!((line.field("activity_name"), line.field("activity_id")), ("Work", "2"));
            assert!(line.field("worker_id").starts_with("work-"), "{line:?}");
        }
    }

    async fn r2_18_an_activity_that_runs_again_logs_again(stage) {
        let (lines, _guard) = Lines::collect();
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "ack", "no");
        stage.faults.refuse("finish_work", 1, invalid);
        let flows = orchestrations().register("Call", call);
        stage.run(activities().register("Work", work), flows).await;
        stage.start("a", "Call", "Work").await;
        stage.ends_as_time_passes("a", SECOND).await.expect("completes");
        stage.stop().await;
        assert_eq!(lines.of("steadfast::activity").len(), 8);
    }

    async fn t3_every_execution_logs_under_its_number(stage) {
        let (lines, _guard) = Lines::collect();
        let flows = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.trace_info("here");
            match ctx.execution_id() {
                3 => Ok(String::new()),
                _ => ctx.continue_as_new("").await,
            }
        });
        stage.run(activities(), flows).await;
        stage.ends_after("a", "Flow", "").await.expect("completes");
        stage.stop().await;
        let lines = lines.of("steadfast::orchestration");
        let executions: Vec<&str> = lines.iter().map(|line| line.field("execution_id")).collect();
        assert_eq!(executions, ["1", "2", "3"]);
    }

    async fn t3_an_execution_of_another_engine_version_is_warned_about_and_abandoned(stage) {
        let (lines, _guard) = Lines::collect();
        begun_by(&stage, "foreign", "9.9.9").await;
        stage.run(activities(), orchestrations().register("Listen", listen)).await;
        stage
            .until("it is warned about", async || !lines.saying("WARN", "incompatible version").is_empty())
            .await;
        let [line] = &lines.saying("WARN", "incompatible version")[..] else { panic!("{:?}", lines.all()) };
        let text = "Execution pinned at incompatible version, abandoning (runtime-side check)";
        assert_eq!((line.target.as_str(), line.field("message")), ("steadfast::runtime", text));
        assert_eq!((line.field("instance"), line.field("version")), ("foreign", "9.9.9"));
        stage
            .until("it is given back", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 1
            })
            .await;
        // It is tried again after a second.
        stage.pass(SECOND);
        stage
            .until("it is warned about", async || lines.saying("WARN", "incompatible version").len() == 2)
            .await;
        stage.stop().await;
        assert_eq!(stage.kinds("foreign").await, ["OrchestrationStarted"]);
    }

    async fn t3_a_stamp_that_is_no_version_is_warned_about_on_every_turn(stage) {
        let (lines, _guard) = Lines::collect();
        begun_by(&stage, "odd", "yesterday").await;
        begun_by(&stage, "even", "0.1.20").await;
        stage.run(activities(), orchestrations().register("Listen", listen)).await;
        for instance in ["odd", "even"] {
            stage.has(instance, "ExternalSubscribed", 1).await;
            for count in 1..=2 {
                raised(&stage, instance).await;
                stage.has(instance, "ExternalEvent", count + 1).await;
            }
            stage.ends(instance).await.expect("completes");
        }
        stage.stop().await;
        let warned = lines.saying("WARN", "Invalid pinned version");
        // The first event came before the orchestration waited, the next two were awaited: three turns.
        assert_eq!(warned.len(), 3, "{warned:?}");
        for line in warned {
            assert!(line.field("message").starts_with("Invalid pinned version"), "{line:?}");
            assert_eq!((line.field("instance"), line.field("version")), ("odd", "yesterday"));
            assert!(!line.field("error").is_empty(), "{line:?}");
        }
    }

    async fn t3_messages_that_a_continue_as_new_cannot_carry_are_warned_about_in_order(stage) {
        let (lines, _guard) = Lines::collect();
        let flows =
            orchestrations().register("Flow", |ctx: OrchestrationContext, round: String| async move {
                if round == "second" {
                    return Ok(String::new());
                }
                ctx.schedule_wait("go").await;
                ctx.continue_as_new("second").await
            });
        stage.run(activities(), flows).await;
        stage.start("a", "Flow", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        for n in 0..103 {
            let queue = if n % 2 == 0 { "even" } else { "odd" };
            stage.client.enqueue_event("a", queue, n.to_string()).await.expect("sends");
        }
        stage.has("a", "QueueEventDelivered", 103).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        stage.stop().await;
        let warned = lines.saying("WARN", "Dropping carry-forward event beyond limit");
        let dropped: Vec<(&str, &str, &str)> = warned
            .iter()
            .map(|line| (line.field("instance"), line.field("name"), line.field("data")))
            .collect();
        assert_eq!(dropped, [("a", "even", "100"), ("a", "odd", "101"), ("a", "even", "102")]);
    }

    async fn t3_an_orchestration_that_is_not_registered_is_warned_about(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations().register("Listen", listen)).await;
        stage.start("a", "Lisden", "").await;
        stage.until("it is warned about", async || !lines.saying("WARN", "not registered").is_empty()).await;
        let [line] = &lines.saying("WARN", "not registered")[..] else { panic!("{:?}", lines.all()) };
        let text = "Orchestration not registered, abandoning with 1.0s backoff (will poison in 10 more \
            attempts); \
                    did you mean 'Listen'? registered: Listen";
        assert_eq!((line.target.as_str(), line.field("message")), ("steadfast::runtime", text));
        assert_eq!((line.field("instance"), line.field("orchestration")), ("a", "Lisden"));
        stage.stop().await;
    }

    async fn t3_targets_are_written_out(stage) {
        let (lines, _guard) = Lines::collect();
        flows(&stage, 10).await;
        let targets: BTreeSet<String> = lines.all().into_iter().map(|line| line.target).collect();
        let known = ["steadfast::activity", "steadfast::orchestration", "steadfast::runtime"];
        for target in &targets {
            assert!(known.contains(&target.as_str()) || target == "steadfast::store", "{target}");
        }
        assert!(known.iter().all(|target| targets.contains(*target)), "{targets:?}");
    }
}

const SECRET: &str = "4111-1111";

/// Does everything that carries a payload.
async fn confide(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.set_kv_value("card", input.clone());
    ctx.set_custom_status(input.clone());
    let echoed = ctx.schedule_activity("Echo", input.clone()).await?;
    let failed = ctx.schedule_activity("Fail", echoed).await.expect_err("it fails");
    let raised = ctx.schedule_wait("event").await;
    let queued = ctx.dequeue_event("queue").await;
    let child = ctx.schedule_sub_orchestration("Child", queued).await?;
    ctx.schedule_orchestration("Child", "detached", raised);
    match ctx.execution_id() {
        1 => ctx.continue_as_new(failed).await,
        _ => Err(child),
    }
}

on_every_store! {
    async fn t3_payloads_are_not_logged_at_the_levels_that_are_on_by_default(stage) {
        let (lines, _guard) = Lines::collect();
        let acts = activities()
            .register("Echo", |_, input: String| async move { Ok(input) })
            .register("Fail", |_, input: String| async move { Err(input) });
        let flows = orchestrations()
            .register("Child", |_, input: String| async move { Ok(input) })
            .register("Panic", |_, input: String| async move { panic!("{input}") })
            .register("Confide", confide)
            .register("Lost", |ctx: OrchestrationContext, input: String| async move {
                ctx.schedule_activity("Missing", input).await
            });
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(acts, flows, options).await;
        stage.start("a", "Confide", SECRET).await;
        for execution in 1..=2 {
            let subscribed = |event: &Event| matches!(event.kind, EventKind::ExternalSubscribed { .. });
            stage
                .reaches("a", |events| {
                    events.iter().any(|event| event.execution_id == execution && subscribed(event))
                })
                .await;
            stage.client.raise_event("a", "nobody waits", SECRET).await.expect("raises");
            stage.client.raise_event("a", "event", SECRET).await.expect("raises");
            stage.client.enqueue_event("a", "queue", SECRET).await.expect("sends");
        }
        assert_eq!(stage.output("a").await, Err(SECRET.to_owned()));
        for (instance, name) in [("b", "Panic"), ("c", "Lost"), ("d", "Nobody"), ("a", "Confide")] {
            stage.start(instance, name, SECRET).await;
        }
        for instance in ["b", "c", "d"] {
            stage.ends_as_time_passes(instance, SECOND / 4).await.expect_err("fails");
        }
        stage.stop().await;
        for line in lines.all().iter().filter(|line| ["INFO", "WARN", "ERROR"].contains(&line.level.as_str()))
        {
            assert!(!format!("{line:?}").contains(SECRET), "{line:?}");
        }
        assert!(!lines.saying("ERROR", "poison").is_empty(), "poison was among it");
    }
}
