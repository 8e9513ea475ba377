//! The retry helper (2.14) and its policy (1.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    ActivityContext, AppErrorKind, BackoffStrategy, ErrorDetails, EventKind, OrchestrationContext, Retry,
    RetryPolicy, RuntimeOptions, TagFilter,
};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};
use steadfast_clock::Clock;

use crate::workbench::Unwritable;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An activity that fails `failures` times, then returns its input.
fn flaky(failures: u32) -> ActivityRegistryBuilder {
    let tries = Arc::new(AtomicU32::new(0));
    activities().register("Flaky", move |_: ActivityContext, input: String| {
        let attempt = tries.fetch_add(1, Ordering::SeqCst) + 1;
        async move { if attempt > failures { Ok(input) } else { Err(format!("no {attempt}")) } }
    })
}

/// An activity that runs until it is cancelled.
fn endless() -> ActivityRegistryBuilder {
    activities().register("Flaky", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("cancelled".to_owned())
    })
}

/// An orchestration that calls the activity as a policy says.
fn retrying(policy: RetryPolicy) -> OrchestrationRegistryBuilder {
    orchestrations().register("Try", move |ctx: OrchestrationContext, input: String| {
        let policy = policy.clone();
        async move { ctx.schedule_activity_with_retry("Flaky", input, policy).await }
    })
}

/// The same with what a policy alone cannot say.
fn retrying_more(retry: Retry) -> OrchestrationRegistryBuilder {
    orchestrations().register("Try", move |ctx: OrchestrationContext, input: String| {
        let retry = retry.clone();
        async move { ctx.schedule_activity_retrying_typed::<String, String>("Flaky", &input, retry).await }
    })
}

fn fixed(attempts: u32, delay: Duration) -> RetryPolicy {
    RetryPolicy::new(attempts).with_backoff(BackoffStrategy::Fixed { delay })
}

fn at_once(attempts: u32) -> RetryPolicy {
    RetryPolicy::new(attempts).with_backoff(BackoffStrategy::None)
}

/// Says how long after `begin` the timers of an instance are due, in milliseconds.
async fn timers(stage: &Stage, instance: &str, begin: u64) -> Vec<u64> {
    let timers = stage.history(instance).await.into_iter().filter_map(|event| match event.kind {
        EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms - begin),
        _ => None,
    });
    timers.collect()
}

/// Waits for each backoff timer, sees that nothing is tried before it is due, and lets its time pass.
async fn let_pass(stage: &Stage, instance: &str, delays: &[Duration]) {
    for (done, delay) in delays.iter().enumerate() {
        stage.has(instance, "TimerCreated", done + 1).await;
        stage.pass(delay.saturating_sub(ms(1)));
        let kinds = stage.kinds(instance).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityScheduled").count(), done + 1, "{kinds:?}");
        stage.pass(ms(1));
    }
}

on_every_store! {
    async fn r2_14_what_succeeds_is_tried_once(stage) {
        stage.run(flaky(0), retrying(RetryPolicy::default())).await;
        assert_eq!(stage.ends_after("a", "Try", "in").await, Ok("in".to_owned()));
        let kinds =
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
    }

    async fn r2_14_a_durable_timer_passes_before_each_further_attempt(stage) {
        let begin = stage.clock.now_ms();
        stage.run(flaky(2), retrying(RetryPolicy::default())).await;
        stage.start("a", "Try", "in").await;
        let_pass(&stage, "a", &[ms(100), ms(200)]).await;
        assert_eq!(stage.output("a").await, Ok("in".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityFailed",
            "TimerCreated",
            "TimerFired",
            "ActivityScheduled",
            "ActivityFailed",
            "TimerCreated",
            "TimerFired",
            "ActivityScheduled",
            "ActivityCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(timers(&stage, "a", begin).await, [100, 300]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_14_the_backoff_of_the_policy_sets_the_timers(stage) {
        let begin = stage.clock.now_ms();
        let backoff = BackoffStrategy::Linear { base: ms(10), max: ms(25) };
        stage.run(flaky(3), retrying(RetryPolicy::new(4).with_backoff(backoff))).await;
        stage.start("a", "Try", "in").await;
        let_pass(&stage, "a", &[ms(10), ms(20), ms(25)]).await;
        assert_eq!(stage.output("a").await, Ok("in".to_owned()));
        assert_eq!(timers(&stage, "a", begin).await, [10, 30, 55]);
        stage.stop().await;
    }

    async fn r2_14_a_delay_of_zero_has_no_timer(stage) {
        stage.run(flaky(1), retrying(at_once(2))).await;
        assert_eq!(stage.ends_after("a", "Try", "in").await, Ok("in".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityFailed",
            "ActivityScheduled",
            "ActivityCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
    }

    async fn r2_14_when_all_attempts_fail_the_last_error_is_the_result(stage) {
        stage.run(flaky(9), retrying(at_once(3))).await;
        let expected = ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message: "no 3".to_owned(),
            retryable: false,
        };
        assert_eq!(stage.ends_after("a", "Try", "in").await, Err(expected));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityFailed",
            "ActivityScheduled",
            "ActivityFailed",
            "ActivityScheduled",
            "ActivityFailed",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds, "no timer follows the last attempt");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_14_one_attempt_is_no_retry(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(flaky(9), retrying(RetryPolicy::new(1))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Err("no 1".to_owned()));
        assert!(lines.saying("WARN", "Retrying").is_empty());
        stage.stop().await;
    }

    async fn r2_14_the_input_is_the_same_in_each_attempt(stage) {
        stage.run(flaky(2), retrying(at_once(3))).await;
        stage.ends_after("a", "Try", "in").await.expect("completes");
        let scheduled = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::ActivityScheduled { name, input, session_id, tag } => {
                Some((name, input, session_id, tag))
            }
            _ => None,
        });
        let expected = ("Flaky".to_owned(), "in".to_owned(), None, None);
        assert_eq!(scheduled.collect::<Vec<_>>(), [expected.clone(), expected.clone(), expected]);
        stage.stop().await;
    }

    async fn r2_14_each_failed_attempt_that_is_repeated_is_traced_once(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(flaky(9), retrying(fixed(3, ms(50)))).await;
        stage.start("a", "Try", "in").await;
        let_pass(&stage, "a", &[ms(50), ms(50)]).await;
        stage.ends("a").await.expect_err("fails");
        let traced = lines.of("steadfast::orchestration");
        let texts: Vec<_> = traced.iter().map(|line| (line.level.as_str(), line.field("message"))).collect();
        assert_eq!(
            texts,
            [
                ("WARN", "Activity 'Flaky' attempt 1/3 failed: no 1. Retrying..."),
                ("WARN", "Activity 'Flaky' attempt 2/3 failed: no 2. Retrying..."),
            ]
        );
        stage.stop().await;
    }

    async fn r2_14_attempts_are_counted_over_a_restart_and_not_traced_again(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(flaky(1), retrying(fixed(2, ms(50)))).await;
        stage.start("a", "Try", "in").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.stop().await;
        stage.run(flaky(9), retrying(fixed(2, ms(50)))).await;
        stage.pass(ms(50));
        assert_eq!(stage.output("a").await, Err("no 1".to_owned()), "the first error of the second worker");
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityFailed",
            "TimerCreated",
            "TimerFired",
            "ActivityScheduled",
            "ActivityFailed",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(lines.saying("WARN", "Retrying...").len(), 1);
        stage.stop().await;
    }

    async fn r2_14_a_panic_of_the_activity_is_an_error_like_any_other(stage) {
        let tries = Arc::new(AtomicU32::new(0));
        let panicking = activities().register("Flaky", move |_: ActivityContext, input: String| {
            let first = tries.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if first { panic!("boom") } else { Ok(input) } }
        });
        stage.run(panicking, retrying(at_once(2))).await;
        assert_eq!(stage.ends_after("a", "Try", "in").await, Ok("in".to_owned()));
        stage.stop().await;
    }

    async fn r2_14_the_timer_of_a_time_out_follows_its_activity_in_history(stage) {
        let begin = stage.clock.now_ms();
        stage.run(flaky(0), retrying(RetryPolicy::new(3).with_timeout(ms(500)))).await;
        assert_eq!(stage.ends_after("a", "Try", "in").await, Ok("in".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "TimerCreated",
            "ActivityCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(timers(&stage, "a", begin).await, [500]);
        stage.stop().await;
    }

    async fn r2_14_an_attempt_that_times_out_is_not_repeated_and_its_activity_is_cancelled(stage) {
        stage.run(endless(), retrying(RetryPolicy::new(3).with_timeout(ms(500)))).await;
        stage.start("a", "Try", "in").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(ms(500));
        assert_eq!(stage.output("a").await, Err("timeout: activity timed out".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "TimerCreated",
            "TimerFired",
            "ActivityCancelRequested",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        let history = stage.history("a").await;
        let reason = EventKind::ActivityCancelRequested { reason: "dropped_future".to_owned() };
        assert_eq!((&history[4].kind, history[4].source_event_id), (&reason, Some(2)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_14_each_attempt_has_a_time_out_of_its_own(stage) {
        let begin = stage.clock.now_ms();
        let policy = fixed(2, ms(100)).with_timeout(ms(1_000));
        stage.run(flaky(1), retrying(policy)).await;
        stage.start("a", "Try", "in").await;
        stage.has("a", "TimerCreated", 2).await;
        stage.pass(ms(100));
        assert_eq!(stage.output("a").await, Ok("in".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "TimerCreated",
            "ActivityFailed",
            "TimerCreated",
            "TimerFired",
            "ActivityScheduled",
            "TimerCreated",
            "ActivityCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(timers(&stage, "a", begin).await, [1_000, 100, 1_100]);
        stage.stop().await;
    }

    async fn r2_14_typed_input_and_output_go_through_the_codec(stage) {
        let flow = orchestrations().register("Typed", |ctx: OrchestrationContext, _| async move {
            let list: Vec<u8> =
                ctx.schedule_activity_with_retry_typed("Flaky", &vec![1, 2], at_once(2)).await?;
            let text: String = ctx.schedule_activity_with_retry_typed("Flaky", &"text", at_once(2)).await?;
            let wrong = ctx.schedule_activity_with_retry_typed::<_, u8>("Flaky", &"text", at_once(2)).await;
            let unsent =
                ctx.schedule_activity_with_retry_typed::<_, u8>("Flaky", &Unwritable, at_once(2)).await;
            Ok(format!("{list:?} {text} {wrong:?} {unsent:?}"))
        });
        stage.run(flaky(1), flow).await;
        let wrong = "output of activity 'Flaky' cannot be read as u8: \
                     invalid type: string \"text\", expected u8; it begins with \"text\"";
        let expected = format!(r#"[1, 2] text Err({wrong:?}) Err("cannot be written")"#);
        assert_eq!(stage.ends_after("a", "Typed", "").await, Ok(expected));
        let scheduled = stage.kinds("a").await.into_iter().filter(|kind| kind == "ActivityScheduled").count();
        assert_eq!(scheduled, 4, "an output that cannot be decoded is not tried again");
        stage.stop().await;
    }

    async fn r2_14_on_a_session_every_attempt_is_and_the_trace_names_it(stage) {
        let (lines, _guard) = Lines::collect();
        let flow = orchestrations().register("Session", |ctx: OrchestrationContext, _| async move {
            let text = ctx.schedule_activity_with_retry_on_session("Flaky", "in", at_once(3), "s-1").await?;
            let list: Vec<u8> = ctx
                .schedule_activity_with_retry_on_session_typed("Flaky", &vec![1], at_once(1), "s-1")
                .await?;
            Ok(format!("{text} {list:?}"))
        });
        stage.run(flaky(2), flow).await;
        assert_eq!(stage.ends_after("a", "Session", "").await, Ok("in [1]".to_owned()));
        let sessions = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::ActivityScheduled { session_id, .. } => session_id,
            _ => None,
        });
        assert_eq!(sessions.collect::<Vec<_>>(), ["s-1"; 4]);
        let traced = lines.of("steadfast::orchestration");
        let texts: Vec<_> = traced.iter().map(|line| line.field("message")).collect();
        assert_eq!(
            texts,
            [
                "Activity 'Flaky' (session=s-1) attempt 1/3 failed: no 1. Retrying...",
                "Activity 'Flaky' (session=s-1) attempt 2/3 failed: no 2. Retrying...",
            ]
        );
        stage.stop().await;
    }
}

on_every_store! {
    async fn r2_14_an_error_that_is_not_worth_it_is_the_result_at_once(stage) {
        let retry = Retry::from(at_once(5)).retry_if(|error| error != "no 2");
        stage.run(flaky(9), retrying_more(retry)).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Err("no 2".to_owned()));
        stage.stop().await;
    }

    async fn r2_14_all_attempts_together_can_have_a_time_out(stage) {
        let retry = Retry::from(fixed(9, ms(100))).total_timeout(ms(250));
        stage.run(flaky(9), retrying_more(retry)).await;
        stage.start("a", "Try", "in").await;
        for timers in [2, 3, 4] {
            stage.has("a", "TimerCreated", timers).await;
            stage.pass(ms(100));
        }
        let text = "timeout: activity 'Flaky' did not succeed within 250ms, retries included";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        let kinds = stage.kinds("a").await;
        let begin = ["OrchestrationStarted", "ActivityScheduled", "TimerCreated", "ActivityFailed"];
        assert_eq!(kinds[..4], begin, "the timer follows the first attempt");
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityScheduled").count(), 3);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_14_every_attempt_carries_the_tag_and_the_session(stage) {
        let retry = Retry::from(at_once(2)).with_tag("gpu").on_session("s-1");
        let options = RuntimeOptions { worker_tag_filter: TagFilter::any(), ..stage.options() };
        stage.run_with(flaky(1), retrying_more(retry), options).await;
        assert_eq!(stage.ends_after("a", "Try", "in").await, Ok("in".to_owned()));
        let asked = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::ActivityScheduled { session_id, tag, .. } => Some((session_id, tag)),
            _ => None,
        });
        let both = (Some("s-1".to_owned()), Some("gpu".to_owned()));
        assert_eq!(asked.collect::<Vec<_>>(), [both.clone(), both]);
        stage.stop().await;
    }
}

#[test]
fn c1_10_the_default_policy_is_three_attempts_with_doubling_delays_and_no_time_out() {
    let policy = RetryPolicy::default();
    assert_eq!((policy.max_attempts, policy.timeout), (3, None));
    let BackoffStrategy::Exponential { base, multiplier, max } = &policy.backoff else {
        panic!("{policy:?}");
    };
    assert_eq!((*base, *multiplier, *max), (ms(100), 2.0, Duration::from_secs(30)));
    let delays = [1, 2, 3, 9, 10].map(|attempt| policy.delay_for_attempt(attempt));
    assert_eq!(delays, [ms(100), ms(200), ms(400), ms(25_600), ms(30_000)]);
}

#[test]
fn c1_10_delays_do_not_overflow() {
    assert_eq!(RetryPolicy::default().delay_for_attempt(u32::MAX), Duration::from_secs(30));
    let linear = BackoffStrategy::Linear { base: Duration::MAX, max: Duration::MAX };
    assert_eq!(linear.delay_for_attempt(u32::MAX), Duration::MAX);
}

#[test]
#[should_panic(expected = "max_attempts must be at least 1")]
fn t3_a_policy_without_attempts_panics() {
    let _ = RetryPolicy::new(0);
}
