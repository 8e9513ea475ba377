//! Workers: what an activity knows (1.9), which activities a worker takes, and what becomes of their outcomes
//! (2.13, 2.10, 2.8).

use std::time::Duration;

use crate::workbench::{Gate, SECOND, call, handing, is_abandoned, pass_calmly, waiting};
use steadfast::providers::{ProviderError, ProviderErrorKind, WorkItem};
use steadfast::runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{
    ActivityContext, AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, PoisonMessageType,
    TagFilter,
};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};

/// Counts the fetches that failed: those that the log warns of, and those that it leaves out.
fn failed_fetches(lines: &Lines) -> u64 {
    let (told, left_out) = (lines.saying("WARN", "fetch failed"), lines.saying("DEBUG", "fetch failed"));
    (told.len() + left_out.len()) as u64
}

/// Runs turns and no activities.
async fn run_turns(stage: &Stage) {
    let options = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
    stage.run_with(activities(), orchestrations().register("Call", call), options).await;
}

/// Schedules an activity without a tag, one for the GPU and one for the CPU.
async fn three_tags(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let calls = [None, Some("gpu"), Some("cpu")].map(|tag| match tag {
        None => ctx.schedule_activity("Where", ""),
        Some(tag) => ctx.schedule_activity("Where", "").with_tag(tag),
    });
    let answers = ctx.join(calls.into()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answers.join(" "))
}

async fn which(ctx: ActivityContext, _: String) -> Result<String, String> {
    let node = ctx.worker_id().split('-').nth(2).unwrap_or_default();
    Ok(format!("{}@{node}", ctx.tag().unwrap_or("none")))
}

/// Runs [`three_tags`] where worker A has a filter and worker B, which comes later, takes what A left.
async fn served(stage: &Stage, filter: TagFilter, by_a: usize) -> String {
    let node = |id: &str, worker_tag_filter| RuntimeOptions {
        worker_node_id: Some(id.to_owned()),
        worker_tag_filter,
        ..stage.options()
    };
    let (acts, flow) = (activities().register("Where", which), orchestrations().register("Tags", three_tags));
    stage.run_with(acts, flow, node("A", filter)).await;
    stage.start("a", "Tags", "").await;
    stage.has("a", "ActivityScheduled", 3).await;
    stage.has("a", "ActivityCompleted", by_a).await;
    stage.until("A asks again", async || stage.faults.calls("fetch_work") >= 1).await;
    let (acts, flow) = (activities().register("Where", which), orchestrations().register("Tags", three_tags));
    stage.run_with(acts, flow, node("B", TagFilter::Any)).await;
    let output = stage.output("a").await.expect("all are served");
    stage.stop().await;
    stage.nothing_waits().await;
    output
}

fn details_of_activity(events: &[Event]) -> Option<ErrorDetails> {
    events.iter().find_map(|event| match &event.kind {
        EventKind::ActivityFailed { details } => Some(details.clone()),
        _ => None,
    })
}

fn refused(message: &str) -> ErrorDetails {
    let (kind, message) = (AppErrorKind::ActivityFailed, message.to_owned());
    ErrorDetails::Application { kind, message, retryable: false }
}

/// Takes an activity as a worker would that dies right after.
async fn lease_and_die(stage: &Stage, lease: Duration) -> u32 {
    let taken = stage.inner().fetch_work_item(lease, Duration::ZERO, None, &TagFilter::Any).await;
    taken.expect("the store answers").expect("an activity waits").2
}

on_every_store! {
    async fn c1_9_an_activity_knows_who_asked_for_what_and_where_it_runs(stage) {
        let (acts, mut handed) = handing();
        let flow = orchestrations().register_versioned("Flow", "2.1.0", |ctx, input: String| async move {
            if input == "first" {
                return ctx.continue_as_new("second").await;
            }
            ctx.schedule_timer(SECOND).await;
            ctx.schedule_activity_on_session("Hand", "in", "chat").with_tag("gpu").await
        });
        let options = RuntimeOptions {
            worker_concurrency: 1,
            worker_node_id: Some("node".to_owned()),
            worker_tag_filter: TagFilter::tags(["gpu"]),
            ..stage.options()
        };
        stage.run_with(acts, flow, options).await;
        stage.start("a", "Flow", "first").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(SECOND);
        let ctx = handed.recv().await.expect("it runs");
        assert_eq!((ctx.instance_id(), ctx.execution_id()), ("a", 2));
        assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("Flow", "2.1.0"));
        assert_eq!((ctx.activity_name(), ctx.activity_id()), ("Hand", 4));
        assert_eq!((ctx.attempt(), ctx.delivery(), ctx.counted_deliveries()), (1, 1, 1));
        assert_eq!((ctx.session_id(), ctx.tag()), (Some("chat"), Some("gpu")));
        let recorded = stage.history("a").await.into_iter().find_map(|event| event.call);
        let key = recorded.expect("the call is recorded with its key").key;
        assert_eq!((ctx.worker_id(), ctx.idempotency_key()), ("work-0-node", key));
        assert_eq!((ctx.is_cancelled(), ctx.cancel_reason()), (false, None));
        assert!(!ctx.cancellation_token().is_cancelled());
        let text = format!("{:?}", ctx.clone());
        assert!(text.contains("ActivityContext") && text.contains("Hand"), "{text}");
        stage.stop().await;
    }

    async fn c1_9_without_session_and_tag_it_knows_none_and_the_worker_is_named_by_four_digits(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let ctx = handed.recv().await.expect("it runs");
        assert_eq!((ctx.session_id(), ctx.tag(), ctx.execution_id()), (None, None, 1));
        let parts: Vec<&str> = ctx.worker_id().split('-').collect();
        let [word, slot, runtime] = parts[..] else { panic!("{parts:?}") };
        assert!(word == "work" && (slot == "0" || slot == "1"), "{parts:?}");
        assert!(runtime.len() == 4 && u16::from_str_radix(runtime, 16).is_ok(), "{parts:?}");
        stage.stop().await;
    }

    async fn c1_9_slots_of_one_runtime_have_numbers_and_share_the_rest_of_their_name(stage) {
        let (acts, mut handed) = handing();
        let flow = orchestrations().register("Two", |ctx: OrchestrationContext, _| async move {
            ctx.join(vec![ctx.schedule_activity("Hand", ""), ctx.schedule_activity("Hand", "")]).await;
            Ok(String::new())
        });
        stage.run(acts, flow).await;
        stage.start("a", "Two", "").await;
        let (one, two) = (handed.recv().await.expect("one runs"), handed.recv().await.expect("two run"));
        let mut names = [one.worker_id(), two.worker_id()];
        names.sort_unstable();
        let runtime = names[0].strip_prefix("work-0-").expect("the first slot is 0");
        assert_eq!(names[1], format!("work-1-{runtime}"));
        stage.stop().await;
    }

    async fn c1_9_an_activity_whose_instance_is_gone_knows_its_orchestration_as_unknown(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations()).await;
        let item = WorkItem::ActivityExecute {
            instance: "gone".to_owned(),
            execution_id: 1,
            id: 2,
            name: "Hand".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        stage.inner().enqueue_for_worker(item).await.expect("needs no instance");
        let ctx = handed.recv().await.expect("it runs");
        assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("unknown", "unknown"));
        stage.stop().await;
    }

    async fn c1_9_an_activity_reaches_others_through_its_client(stage) {
        let acts = activities().register("Tell", |ctx: ActivityContext, _| async move {
            let client = ctx.get_client();
            client.raise_event("listener", "news", "good").await.map_err(|error| error.to_string())?;
            Ok(String::new())
        });
        let flow =
            orchestrations()
                .register("Call", call)
                .register("Listen", |ctx: OrchestrationContext, _| async move {
                    Ok(ctx.schedule_wait("news").await)
                });
        stage.run(acts, flow).await;
        stage.start("listener", "Listen", "").await;
        stage.has("listener", "ExternalSubscribed", 1).await;
        assert_eq!(stage.ends_after("a", "Call", "Tell").await, Ok(String::new()));
        assert_eq!(stage.output("listener").await, Ok("good".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_default_only_takes_what_has_no_tag(stage) {
        assert_eq!(served(&stage, TagFilter::default_only(), 1).await, "none@A gpu@B cpu@B");
    }

    async fn r2_13_tags_takes_these_tags_only(stage) {
        assert_eq!(served(&stage, TagFilter::tags(["gpu"]), 1).await, "none@B gpu@A cpu@B");
    }

    async fn r2_13_default_and_takes_these_tags_and_what_has_none(stage) {
        assert_eq!(served(&stage, TagFilter::default_and(["cpu"]), 2).await, "none@A gpu@B cpu@A");
    }

    async fn r2_13_any_takes_everything(stage) {
        assert_eq!(served(&stage, TagFilter::any(), 3).await, "none@A gpu@A cpu@A");
    }

    async fn r2_13_none_takes_nothing(stage) {
        assert_eq!(served(&stage, TagFilter::none(), 0).await, "none@B gpu@B cpu@B");
    }

    async fn r2_13_without_worker_slots_activities_are_left_to_others(stage) {
        run_turns(&stage).await;
        stage.start("a", "Call", "Wait").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.pass(3600 * SECOND);
        assert_eq!((stage.faults.calls("fetch_work"), stage.faults.calls("renew_sessions")), (0, 0));
        let depths = stage.observer().get_queue_depths().await.expect("counts");
        assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 1));
        let gate = Gate::new();
        gate.open();
        let options = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(waiting(&gate), orchestrations(), options).await;
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_result_is_recorded_and_returned(stage) {
        let acts =
            activities().register("Echo", |_, input: String| async move { Ok(format!("{input}-out")) });
        stage.run(acts, orchestrations().register("Call", call)).await;
        assert_eq!(stage.ends_after("a", "Call", "Echo").await, Ok("in-out".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(
            kinds,
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
        );
        let completed = &stage.history("a").await[2];
        assert_eq!(completed.kind, EventKind::ActivityCompleted { result: "in-out".to_owned() });
        assert_eq!(completed.source_event_id, Some(2));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_an_error_is_recorded_as_a_failure_of_the_application(stage) {
        let acts = activities().register("Fail", |_, _| async { Err("no luck".to_owned()) });
        stage.run(acts, orchestrations().register("Call", call)).await;
        let expected = ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message: "no luck".to_owned(),
            retryable: false,
        };
        assert_eq!(stage.ends_after("a", "Call", "Fail").await, Err(expected));
        let failed = &stage.history("a").await[2];
        assert_eq!(failed.kind, EventKind::ActivityFailed { details: refused("no luck") });
        assert_eq!(failed.source_event_id, Some(2));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_panic_is_a_failure_with_its_text_and_the_slot_goes_on(stage) {
        let acts = activities()
            .register("Panic", |_, _| async { panic!("out of cheese") })
            .register("Fine", |_, _| async { Ok("fine".to_owned()) });
        let options = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
        let runtime = stage.run_with(acts, orchestrations().register("Call", call), options).await;
        let text = stage.ends_after("a", "Call", "Panic").await.expect_err("it panicked").display_message();
        assert!(text.contains("panicked") && text.contains("out of cheese"), "{text}");
        assert_eq!(details_of_activity(&stage.history("a").await), Some(refused(&text)));
        assert_eq!(stage.ends_after("b", "Call", "Fine").await, Ok("fine".to_owned()));
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_an_activity_that_is_not_registered_waits_for_a_worker_that_has_it(stage) {
        let (lines, _guard) = Lines::collect();
        let acts = activities().register("Wail", |_, _| async { Ok(String::new()) });
        let old = stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        is_abandoned(&stage, 1).await;
        let told = || lines.saying("WARN", "Activity not registered");
        stage.until("it is told", async || !told().is_empty()).await;
        let [line] = &told()[..] else { panic!("{:?}", lines.all()) };
        assert_eq!((line.target.as_str(), line.field("instance")), ("steadfast::runtime", "a"));
        assert_eq!(line.field("activity"), "Wait");
        let text = "Activity not registered, abandoning with 1.0s backoff (will poison in 10 more attempts); \
                    did you mean 'Wail'? registered: Wail";
        assert_eq!(line.field("message"), text);
        old.shutdown(Some(0)).await;
        let gate = Gate::new();
        gate.open();
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.pass(SECOND);
        assert_eq!(stage.output("a").await, Ok("attempt 2".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_an_activity_that_nobody_registers_is_tried_later_each_time_and_then_poison(stage) {
        let options = RuntimeOptions {
            max_attempts: 4,
            worker_concurrency: 1,
            unregistered_backoff: UnregisteredBackoffConfig {
                base_delay: 10 * SECOND,
                max_delay: 60 * SECOND,
            },
            ..stage.options()
        };
        let (lines, _guard) = Lines::collect();
        stage.run_with(activities(), orchestrations().register("Call", call), options).await;
        stage.start("a", "Call", "Missing").await;
        for (n, delay) in [(1, 10), (2, 20), (3, 40), (4, 60)] {
            is_abandoned(&stage, n).await;
            let text =
                format!("with {delay}.0s backoff (will poison in {} more attempts); nothing is", 5 - n);
            stage.until(&text, async || lines.saying("WARN", &text).len() == 1).await;
            pass_calmly(&stage, (delay - 1) * SECOND, (delay - 1) * SECOND).await;
            assert_eq!(stage.faults.abandoned(), n, "not before its time");
            stage.pass(SECOND);
        }
        let item = WorkItem::ActivityExecute {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            name: "Missing".to_owned(),
            input: "in".to_owned(),
            session_id: None,
            tag: None,
        };
        let details = ErrorDetails::Poison {
            attempt_count: 5,
            max_attempts: 4,
            message_type: PoisonMessageType::Activity {
                instance: "a".to_owned(),
                execution_id: 1,
                activity_name: "Missing".to_owned(),
                activity_id: 2,
            },
            message: serde_json::to_string(&item).expect("is written"),
        };
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        assert_eq!(details.display_message(), "poison: activity Missing#2 exceeded 5 attempts (max 4)");
        assert_eq!(details_of_activity(&stage.history("a").await), Some(details));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_with_max_attempts_zero_the_first_fetch_of_an_activity_is_poison(stage) {
        run_turns(&stage).await;
        let options = RuntimeOptions { max_attempts: 0, orchestration_concurrency: 0, ..stage.options() };
        let gate = Gate::new();
        stage.run_with(waiting(&gate), orchestrations(), options).await;
        let details = stage.ends_after("a", "Call", "Wait").await.expect_err("is poison");
        assert_eq!(details.display_message(), "poison: activity Wait#2 exceeded 1 attempts (max 0)");
        assert_eq!(gate.waiting(), 0, "its code did not run");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_attempts_are_counted_over_workers_that_died(stage) {
        run_turns(&stage).await;
        stage.start("a", "Call", "Wait").await;
        stage.has("a", "ActivityScheduled", 1).await;
        for attempt in 1..=3 {
            assert_eq!(lease_and_die(&stage, 30 * SECOND).await, attempt);
            stage.pass(30 * SECOND);
        }
        let gate = Gate::new();
        gate.open();
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        assert_eq!(stage.output("a").await, Ok("attempt 4".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_an_activity_is_poison_when_its_workers_died_too_often(stage) {
        run_turns(&stage).await;
        stage.start("a", "Call", "Wait").await;
        stage.has("a", "ActivityScheduled", 1).await;
        for _ in 0..2 {
            lease_and_die(&stage, 30 * SECOND).await;
            stage.pass(30 * SECOND);
        }
        let gate = Gate::new();
        let options = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(waiting(&gate), orchestrations().register("Call", call), options).await;
        let text = stage.output("a").await.expect_err("is poison");
        assert_eq!(text, "poison: activity Wait#2 exceeded 3 attempts (max 2)");
        assert_eq!(gate.waiting(), 0, "its code did not run again");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_what_is_no_activity_is_not_queued_for_workers(stage) {
        let (instance, reason) = ("a".to_owned(), "enough".to_owned());
        let message = WorkItem::CancelInstance { instance, reason };
        let error = stage.inner().enqueue_for_worker(message).await.expect_err("is refused");
        assert!(!error.is_retryable(), "{error}");
        stage.nothing_waits().await;
    }

    async fn r2_10_an_outcome_that_the_store_refuses_runs_again_after_a_moment(stage) {
        let gate = Gate::new();
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "ack_work_item", "no");
        stage.faults.refuse("finish_work", 1, invalid);
        let runtime = stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        gate.open();
        is_abandoned(&stage, 1).await;
        stage.pass(Duration::from_millis(100));
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 2".to_owned()));
        stage.stop().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.activity_infra_errors, counts.activity_success), (1, 1));
        stage.nothing_waits().await;
    }

    async fn i6_an_outcome_whose_answer_is_lost_is_recorded_once(stage) {
        let gate = Gate::new();
        stage.faults.lose_answer("finish_work", 1, ProviderError::retryable("ack_work_item", "cut off"));
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 10).await, Ok("attempt 1".to_owned()));
        stage.pass_slowly(60 * SECOND, 5 * SECOND).await;
        assert_eq!(gate.waiting(), 0, "it did not run again");
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCompleted").count(), 1, "{kinds:?}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i1_a_fetch_whose_answer_is_lost_loses_a_lease_and_no_activity(stage) {
        run_turns(&stage).await;
        stage.start("a", "Call", "Wait").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.faults.lose_answer("fetch_work", 1, ProviderError::retryable("fetch_work_item", "cut off"));
        let gate = Gate::new();
        gate.open();
        let options =
            RuntimeOptions { worker_concurrency: 1, orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(waiting(&gate), orchestrations(), options).await;
        stage
            .until("its lease is nobody's", async || {
                stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
            })
            .await;
        assert_eq!(gate.waiting(), 0, "nobody runs it");
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("attempt 2".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f8_an_outcome_that_the_store_cannot_take_now_is_not_lost(stage) {
        let gate = Gate::new();
        stage.faults.refuse("finish_work", 3, ProviderError::retryable("ack_work_item", "busy"));
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        gate.open();
        let output = stage.ends_as_time_passes("a", Duration::from_millis(100)).await;
        assert_eq!(output, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn r2_13_a_fetch_that_fails_is_tried_again_later_each_time(stage) {
        let options =
            RuntimeOptions { worker_concurrency: 1, orchestration_concurrency: 0, ..stage.options() };
        stage.faults.refuse("fetch_work", 6, ProviderError::retryable("fetch_work_item", "down"));
        let (lines, _guard) = Lines::collect();
        stage.run_with(activities(), orchestrations(), options).await;
        for (n, wait_ms) in [(1, 200), (2, 400), (3, 800), (4, 1_600), (5, 3_000), (6, 3_000)] {
            stage.until("it asks", async || stage.faults.calls("fetch_work") == n).await;
            stage.until("it waits", async || failed_fetches(&lines) == n).await;
            // Loops do not all wait alike: up to a tenth less.
            let shortest = Duration::from_millis(wait_ms * 9 / 10 - 1);
            pass_calmly(&stage, shortest, shortest).await;
            assert_eq!(stage.faults.calls("fetch_work"), n, "not before its time");
            stage.pass(Duration::from_millis(wait_ms / 10 + 1));
        }
        stage.until("it asks", async || stage.faults.calls("fetch_work") == 7).await;
        stage.stop().await;
    }

    async fn r2_13_a_fetch_that_is_refused_is_tried_again_after_100_ms(stage) {
        let options =
            RuntimeOptions { worker_concurrency: 1, orchestration_concurrency: 0, ..stage.options() };
        stage.faults.refuse("fetch_work", 3, ProviderError::permanent("fetch_work_item", "no"));
        let (lines, _guard) = Lines::collect();
        stage.run_with(activities(), orchestrations(), options).await;
        for n in 1..=3 {
            stage.until("it waits", async || failed_fetches(&lines) == n).await;
            pass_calmly(&stage, Duration::from_millis(99), Duration::from_millis(99)).await;
            assert_eq!(stage.faults.calls("fetch_work"), n, "not before its time");
            stage.pass(Duration::from_millis(1));
        }
        stage.until("it asks", async || stage.faults.calls("fetch_work") == 4).await;
        stage.stop().await;
    }
}
