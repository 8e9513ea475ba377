//! Calls with a policy: the workers make the tries, and history gets one outcome (semantics 1).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::client::{Place, Waiting, WorkPhase, WorkState};
use steadfast::providers::{Provider, ProviderError, ProviderErrorKind};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    ActivityContext, ActivityError, AppErrorKind, CancelReason, ErrorDetails, EventKind, Failure,
    FailureKind, OrchestrationContext, Policy, RuntimeOptions, SessionConcurrency, SessionOptions,
};
use steadfast_behaviour::{
    Lines, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_compat::Plain;
use tokio::sync::Semaphore;

use crate::workbench::{Gate, HandlerResult, SECOND};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What the runs of an activity note about themselves.
#[derive(Debug, Clone, Default)]
struct Runs(Arc<Mutex<Vec<Run>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    key: String,
    attempt: u32,
    delivery: u32,
}

impl Runs {
    fn note(&self, ctx: &ActivityContext) -> u32 {
        let run = Run { key: ctx.idempotency_key(), attempt: ctx.attempt(), delivery: ctx.delivery() };
        let mut runs = self.0.lock().expect("no holder panics");
        runs.push(run);
        u32::try_from(runs.len()).expect("few runs")
    }

    fn all(&self) -> Vec<Run> {
        self.0.lock().expect("no holder panics").clone()
    }

    fn attempts(&self) -> Vec<u32> {
        self.all().into_iter().map(|run| run.attempt).collect()
    }

    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.all().into_iter().map(|run| run.key).collect();
        keys.dedup();
        keys
    }
}

/// Registers `Flaky`: it fails `failures` times, then returns its input.
fn flaky(failures: u32, runs: &Runs) -> ActivityRegistryBuilder {
    let runs = runs.clone();
    activities().register("Flaky", move |ctx: ActivityContext, input: String| {
        let number = runs.note(&ctx);
        async move { if number > failures { Ok(input) } else { Err(format!("no {number}")) } }
    })
}

/// Registers `Flaky`: it waits at the gate, and has this outcome.
fn held(runs: &Runs, gate: &Gate, outcome: HandlerResult) -> ActivityRegistryBuilder {
    let (runs, gate) = (runs.clone(), gate.clone());
    activities().register("Flaky", move |ctx: ActivityContext, _| {
        runs.note(&ctx);
        let (gate, outcome) = (gate.clone(), outcome.clone());
        async move {
            gate.pass().await;
            outcome
        }
    })
}

/// Registers `Flaky`, which returns this error.
fn failing(
    runs: &Runs,
    error: impl Fn() -> ActivityError + Send + Sync + 'static,
) -> ActivityRegistryBuilder {
    let runs = runs.clone();
    activities().register_with_errors("Flaky", move |ctx: ActivityContext, _| {
        runs.note(&ctx);
        let error = error();
        async move { Err::<String, _>(error) }
    })
}

/// Registers `Try`, which calls `Flaky` with a policy.
fn trying(policy: Policy) -> OrchestrationRegistryBuilder {
    orchestrations().register("Try", move |ctx: OrchestrationContext, input: String| {
        let policy = policy.clone();
        async move { ctx.schedule_activity("Flaky", input).retry(policy).await }
    })
}

/// A policy whose waits are all of one second.
fn seconds(max: u32) -> Policy {
    Policy::tries(max).backoff(SECOND..SECOND).jitter(false)
}

async fn details(stage: &Stage, instance: &str) -> Option<(ErrorDetails, Option<Failure>)> {
    stage.history(instance).await.into_iter().find_map(|event| match event.kind {
        EventKind::ActivityFailed { details } => Some((details, event.failure.map(|failure| *failure))),
        _ => None,
    })
}

on_every_store! {
    async fn a_call_with_a_policy_is_tried_again_and_history_gets_one_outcome(stage) {
        let runs = Runs::default();
        stage.run(flaky(2, &runs), trying(seconds(5))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("in".to_owned()));
        let steps = ["ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("a").await[1..], steps);
        assert_eq!(runs.attempts(), [1, 2, 3]);
        assert_eq!(runs.all().iter().map(|run| run.delivery).collect::<Vec<_>>(), [1, 2, 3]);
        stage.stop().await;
    }

    async fn g4_every_try_of_a_call_has_the_key_that_the_orchestration_knows(stage) {
        let runs = Runs::default();
        let call = |ctx: OrchestrationContext, input: String| async move {
            let call = ctx.schedule_activity("Flaky", input).retry(seconds(5));
            let key = call.key();
            call.await.map(|_| key)
        };
        stage.run(flaky(3, &runs), orchestrations().register("Try", call)).await;
        stage.start("a", "Try", "in").await;
        let key = stage.ends_as_time_passes("a", ms(250)).await.expect("it succeeds");
        assert_eq!(runs.keys(), [key]);
        stage.stop().await;
    }

    async fn g4_an_instance_that_was_deleted_and_started_again_has_other_keys(stage) {
        let runs = Runs::default();
        stage.run(flaky(0, &runs), trying(seconds(2))).await;
        for _ in 0..2 {
            stage.start("a", "Try", "in").await;
            assert_eq!(stage.output("a").await, Ok("in".to_owned()));
            stage.observer().delete_instance("a", false).await.expect("it has ended");
        }
        assert_eq!(runs.keys().len(), 2, "{:?}", runs.keys());
        stage.stop().await;
    }

    async fn g4_an_execution_that_continues_as_new_has_other_keys(stage) {
        let runs = Runs::default();
        let twice = |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Flaky", "same").await?;
            if input == "first" {
                return ctx.continue_as_new("second").await;
            }
            Ok(input)
        };
        stage.run(flaky(0, &runs), orchestrations().register("Try", twice)).await;
        stage.start("a", "Try", "first").await;
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        assert_eq!(runs.keys().len(), 2, "{:?}", runs.keys());
        stage.stop().await;
    }

    async fn the_last_error_stands_when_all_tries_have_failed(stage) {
        let runs = Runs::default();
        stage.run(flaky(9, &runs), trying(seconds(3))).await;
        stage.start("a", "Try", "in").await;
        let failed = stage.ends_as_time_passes("a", ms(250)).await.expect_err("it fails");
        assert_eq!(failed.display_message(), "no 3");
        assert_eq!(runs.attempts(), [1, 2, 3]);
        let (details, failure) = details(&stage, "a").await.expect("the activity failed");
        let kind = AppErrorKind::ActivityFailed;
        let message = "no 3".to_owned();
        assert_eq!(details, ErrorDetails::Application { kind, message, retryable: true });
        if stage.kind != StoreKind::Wrapped {
            let failure = failure.expect("how it failed is recorded");
            assert_eq!((failure.kind, failure.tries, failure.data), (FailureKind::Error, 3, None));
            assert!(failure.elapsed_ms >= 2_000, "two waits: {} ms", failure.elapsed_ms);
        }
        stage.stop().await;
    }

    async fn a_final_error_is_not_tried_again(stage) {
        let runs = Runs::default();
        let declined = || ActivityError::terminal("declined").with_data(7);
        stage.run(failing(&runs, declined), trying(seconds(9))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Err("declined".to_owned()));
        assert_eq!(runs.attempts(), [1]);
        let (details, failure) = details(&stage, "a").await.expect("the activity failed");
        assert!(!details.is_retryable());
        if stage.kind != StoreKind::Wrapped {
            let failure = failure.expect("how it failed is recorded");
            assert_eq!((failure.kind, failure.tries), (FailureKind::Final, 1));
            assert_eq!(failure.data::<u32>(), Some(Ok(7)));
        }
        stage.stop().await;
    }

    async fn a_time_of_all_tries_below_the_first_wait_leaves_one_try(stage) {
        let runs = Runs::default();
        stage.run(flaky(99, &runs), trying(seconds(99).total(ms(900)))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Err("no 1".to_owned()), "the last error stands at once");
        stage.stop().await;
    }

    async fn a_try_that_takes_too_long_is_cancelled_and_followed_by_another(stage) {
        let (runs, reasons) = (Runs::default(), Arc::new(Mutex::new(Vec::new())));
        let (noted, told) = (runs.clone(), Arc::clone(&reasons));
        let slow = activities().register("Flaky", move |ctx: ActivityContext, input: String| {
            let (number, told) = (noted.note(&ctx), Arc::clone(&told));
            async move {
                if number == 1 {
                    ctx.cancelled().await;
                    told.lock().expect("no holder panics").push(ctx.cancel_reason());
                    return Ok("too late".to_owned());
                }
                Ok(input)
            }
        });
        stage.run(slow, trying(seconds(3).timeout(5 * SECOND))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("in".to_owned()));
        assert_eq!(*reasons.lock().expect("no holder panics"), [Some(CancelReason::TimedOut)]);
        assert_eq!(runs.attempts(), [1, 2]);
        stage.stop().await;
    }

    async fn a_call_whose_last_try_takes_too_long_fails_with_a_timeout(stage) {
        let endless = activities().register("Flaky", |_: ActivityContext, _| std::future::pending());
        stage.run(endless, trying(Policy::once().timeout(5 * SECOND))).await;
        stage.start("a", "Try", "in").await;
        let failed = stage.ends_as_time_passes("a", ms(250)).await.expect_err("it fails");
        assert_eq!(failed.display_message(), "timeout: activity 'Flaky' did not end within 5s");
        if stage.kind != StoreKind::Wrapped {
            let (_, failure) = details(&stage, "a").await.expect("the activity failed");
            assert_eq!(failure.map(|failure| failure.kind), Some(FailureKind::Timeout));
        }
        stage.stop().await;
    }

    async fn the_next_try_begins_only_after_the_code_of_the_last_one_has_ended(stage) {
        let (running, overlapped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, seen) = (Arc::clone(&running), Arc::clone(&overlapped));
        let stubborn = activities().register("Flaky", move |ctx: ActivityContext, _| {
            let (count, seen) = (Arc::clone(&count), Arc::clone(&seen));
            async move {
                seen.fetch_or(count.fetch_add(1, Ordering::SeqCst) > 0, Ordering::SeqCst);
                // It goes on for two seconds after it was told to stop.
                let _ends = Ends(Arc::clone(&count));
                ctx.cancelled().await;
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                Err("stopped".to_owned())
            }
        });
        let options = RuntimeOptions { worker_concurrency: 4, ..stage.options() };
        let policy = Policy::tries(3).backoff(ms(0)..ms(0)).timeout(SECOND);
        stage.run_with(stubborn, trying(policy), options).await;
        stage.start("a", "Try", "in").await;
        let failed = stage.ends_as_time_passes("a", ms(100)).await.expect_err("it fails");
        assert!(failed.display_message().starts_with("timeout: "), "{failed:?}");
        assert!(!overlapped.load(Ordering::SeqCst), "two tries ran at the same time");
        assert_eq!(running.load(Ordering::SeqCst), 0);
        stage.stop().await;
    }

    async fn a_panic_is_a_failed_try(stage) {
        let runs = Runs::default();
        let noted = runs.clone();
        let panics = activities().register("Flaky", move |ctx: ActivityContext, input: String| {
            let number = noted.note(&ctx);
            async move {
                assert!(number > 1, "the first run panics");
                Ok(input)
            }
        });
        stage.run(panics, trying(seconds(2))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("in".to_owned()));
        assert_eq!(runs.attempts(), [1, 2]);
        stage.stop().await;
    }

    async fn tries_are_no_poison_however_many_there_are(stage) {
        let runs = Runs::default();
        let options = RuntimeOptions { max_attempts: 2, ..stage.options() };
        let policy = Policy::tries(12).backoff(ms(0)..ms(0));
        stage.run_with(flaky(11, &runs), trying(policy), options).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(100)).await, Ok("in".to_owned()));
        assert_eq!(runs.attempts().len(), 12);
        stage.stop().await;
    }

    async fn a_delivery_whose_outcome_is_unknown_is_the_same_try(stage) {
        let (runs, gate) = (Runs::default(), Gate::new());
        let waits = || held(&runs, &gate, Ok("in".to_owned()));
        stage.run(waits(), trying(seconds(1))).await;
        stage.start("a", "Try", "in").await;
        gate.is_entered().await;
        stage.stop_at_once().await;
        stage.run(waits(), trying(seconds(1))).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("in".to_owned()), "the one try is made again");
        assert_eq!(runs.keys().len(), 1);
        if stage.kind != StoreKind::Wrapped {
            let seen: Vec<(u32, u32)> = runs.all().iter().map(|run| (run.attempt, run.delivery)).collect();
            assert_eq!(seen, [(1, 1), (1, 2)]);
        }
        stage.stop().await;
    }

    async fn a_policy_that_a_deployment_changes_holds_for_calls_that_are_made_afterwards(stage) {
        let (runs, gate) = (Runs::default(), Gate::new());
        let flaky = || held(&runs, &gate, Err("no".to_owned()));
        let twice = |max: u32| {
            orchestrations().register("Try", move |ctx: OrchestrationContext, input: String| async move {
                let policy = || Policy::tries(max).backoff(ms(0)..ms(0));
                let first = ctx.schedule_activity("Flaky", input.clone()).retry(policy()).await;
                let second = ctx.schedule_activity("Flaky", input).retry(policy()).await;
                Ok(format!("{first:?} {second:?}"))
            })
        };
        stage.run(flaky(), twice(2)).await;
        stage.start("a", "Try", "in").await;
        gate.is_entered().await;
        stage.stop_at_once().await;
        stage.run(flaky(), twice(3)).await;
        for _ in 0..5 {
            gate.is_entered().await;
            gate.open();
            stage.pass_slowly(ms(200), ms(100)).await;
        }
        assert_eq!(stage.output("a").await, Ok("Err(\"no\") Err(\"no\")".to_owned()));
        let attempts = runs.attempts();
        // The first delivery was given back at the stop of the runtime.
        assert_eq!(attempts.len(), 1 + 2 + 3, "{attempts:?}");
        stage.stop().await;
    }

    async fn the_tries_that_an_orchestration_makes_have_one_key_and_count_up(stage) {
        let runs = Runs::default();
        let helper = |ctx: OrchestrationContext, input: String| async move {
            let policy = steadfast::RetryPolicy::new(3).with_backoff(steadfast::BackoffStrategy::None);
            ctx.schedule_activity_with_retry("Flaky", input, policy).await
        };
        stage.run(flaky(2, &runs), orchestrations().register("Try", helper)).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Ok("in".to_owned()));
        assert_eq!(runs.keys().len(), 1, "{:?}", runs.keys());
        assert_eq!(runs.attempts(), [1, 2, 3]);
        stage.stop().await;
    }

    async fn a_final_error_is_not_tried_again_whatever_its_text_says(stage) {
        let runs = Runs::default();
        let lost = || ActivityError::terminal("session_lost: the account is closed").with_data(7);
        stage.run(failing(&runs, lost), trying(seconds(4))).await;
        stage.start("a", "Try", "in").await;
        assert!(stage.output("a").await.is_err());
        assert_eq!(runs.attempts(), [1]);
        if stage.kind != StoreKind::Wrapped {
            let (_, failure) = details(&stage, "a").await.expect("the activity failed");
            let failure = failure.expect("how it failed is recorded");
            assert_eq!((failure.kind, failure.data::<u32>()), (FailureKind::Final, Some(Ok(7))));
        }
        stage.stop().await;
    }

    async fn an_orchestration_that_makes_the_tries_itself_does_not_repeat_a_final_error(stage) {
        if stage.kind == StoreKind::Wrapped {
            return;
        }
        let runs = Runs::default();
        let helper = |ctx: OrchestrationContext, input: String| async move {
            let policy = steadfast::RetryPolicy::new(3).with_backoff(steadfast::BackoffStrategy::None);
            ctx.schedule_activity_with_retry("Flaky", input, policy).await
        };
        let declined = || ActivityError::terminal("declined");
        stage.run(failing(&runs, declined), orchestrations().register("Try", helper)).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.output("a").await, Err("declined".to_owned()));
        assert_eq!(runs.attempts(), [1]);
        stage.stop().await;
    }

    async fn the_data_of_an_error_is_recorded_as_it_was_sent(stage) {
        if stage.kind == StoreKind::Wrapped {
            return;
        }
        // Deeper than a reader of JSON follows, and a number that a second reading would change.
        let number = serde_json::json!(1.999_677_534_233_024_2e-9);
        let deep = (0..400).fold(number, |inner, _| serde_json::Value::Array(vec![inner]));
        let sent = deep.to_string();
        let error = move || ActivityError::terminal("no").with_data(&deep);
        let passed_on = |ctx: OrchestrationContext, input: String| async move {
            let failed = ctx.schedule_activity("Flaky", input).detailed().await.expect_err("it fails");
            let data = failed.failure.and_then(|failure| failure.data).unwrap_or_default();
            ctx.schedule_timer(SECOND).await;
            ctx.schedule_activity("Note", data).await
        };
        let runs = Runs::default();
        let works = failing(&runs, error).register("Note", |_, input: String| async move { Ok(input) });
        let cold = RuntimeOptions { max_warm_orchestrations: 0, ..stage.options() };
        stage.run_with(works, orchestrations().register("Try", passed_on), cold).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok(sent));
        stage.stop().await;
    }

    async fn an_end_of_a_try_whose_answer_is_lost_counts_once(stage) {
        let runs = Runs::default();
        let gone = ProviderError::new(ProviderErrorKind::Unavailable, "end_try", "gone");
        stage.faults.lose_answer("end_try", 1, gone);
        stage.run(flaky(9, &runs), trying(seconds(3))).await;
        stage.start("a", "Try", "in").await;
        let failed = stage.ends_as_time_passes("a", ms(100)).await.expect_err("it fails");
        assert_eq!(failed.display_message(), "no 3");
        assert_eq!(runs.attempts(), [1, 2, 3]);
        stage.stop().await;
    }

    async fn a_try_that_takes_too_long_and_is_not_needed_any_more_ends_the_call(stage) {
        let runs = Runs::default();
        let noted = runs.clone();
        let endless = activities().register("Flaky", move |ctx: ActivityContext, _| {
            noted.note(&ctx);
            std::future::pending()
        });
        let dropped = |ctx: OrchestrationContext, input: String| async move {
            let call = ctx.schedule_activity("Flaky", input).retry(seconds(9).timeout(SECOND));
            ctx.select2(call, ctx.schedule_timer(3 * SECOND)).await;
            ctx.schedule_timer(60 * SECOND).await;
            Ok("out".to_owned())
        };
        stage.run(endless, orchestrations().register("Try", dropped)).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("out".to_owned()));
        assert_eq!(runs.attempts(), [1]);
        stage.nothing_waits().await;
        stage.stop().await;
    }

    async fn a_failed_try_is_logged_with_its_number_and_its_wait(stage) {
        let (lines, _guard) = Lines::collect();
        let runs = Runs::default();
        stage.run(flaky(1, &runs), trying(seconds(3))).await;
        stage.start("a", "Try", "in").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("in".to_owned()));
        let told = lines.saying("WARN", "a try of an activity failed; another one follows");
        let [line] = &told[..] else { panic!("one line: {told:?}") };
        let fields = ["instance", "activity", "attempt", "max", "next_in_ms", "error"];
        assert_eq!(fields.map(|name| line.field(name)), ["a", "Flaky", "1", "3", "1000", "no 1"]);
        stage.stop().await;
    }

}

/// Waits until this number of tries has ended, and the next one waits for its time.
async fn is_held_back(stage: &Stage, tries: u32) {
    let waits = async || {
        let told = stage.observer().explain("a").await.expect("it exists");
        told.waiting.iter().any(|waiting| match waiting {
            Waiting::Activity(activity) => matches!(
                &activity.place,
                Place::Queued(WorkState { phase: WorkPhase::Delayed { .. }, tries: known, .. })
                    if known.ended == tries
            ),
            _ => false,
        })
    };
    stage.until("the next try waits", waits).await;
}

on_every_full_store! {
    async fn a_try_begins_when_the_wait_of_the_policy_is_over(stage) {
        let runs = Runs::default();
        let policy = Policy::tries(4).backoff(SECOND..3 * SECOND).jitter(false);
        stage.run(flaky(9, &runs), trying(policy)).await;
        stage.start("a", "Try", "in").await;
        for (tries, wait) in [(1, SECOND), (2, 2 * SECOND), (3, 3 * SECOND)] {
            is_held_back(&stage, tries).await;
            stage.pass(wait - ms(1));
            stage.settle().await;
            assert_eq!(runs.attempts().len(), tries as usize, "the wait is {wait:?}");
            stage.pass(ms(1));
        }
        assert_eq!(stage.output("a").await, Err("no 4".to_owned()));
        stage.stop().await;
    }

    async fn an_error_may_say_when_it_is_tried_again(stage) {
        let runs = Runs::default();
        let later = || ActivityError::retry_after(20 * SECOND, "too many requests");
        stage.run(failing(&runs, later), trying(seconds(2))).await;
        stage.start("a", "Try", "in").await;
        is_held_back(&stage, 1).await;
        stage.pass(20 * SECOND - ms(1));
        stage.settle().await;
        assert_eq!(runs.attempts(), [1]);
        stage.pass(ms(1));
        assert_eq!(stage.output("a").await, Err("too many requests".to_owned()));
        assert_eq!(runs.attempts(), [1, 2]);
        stage.stop().await;
    }

    async fn no_try_begins_after_the_time_of_all_tries(stage) {
        let runs = Runs::default();
        stage.run(flaky(99, &runs), trying(seconds(99).total(ms(2_500)))).await;
        stage.start("a", "Try", "in").await;
        for tries in [1, 2] {
            is_held_back(&stage, tries).await;
            stage.pass(SECOND);
        }
        assert_eq!(stage.output("a").await, Err("no 3".to_owned()), "the last error stands at once");
        let (_, failure) = details(&stage, "a").await.expect("the activity failed");
        assert_eq!(failure.map(|failure| (failure.tries, failure.elapsed_ms)), Some((3, 2_000)));
        stage.stop().await;
    }

    async fn no_try_begins_although_no_worker_was_there_before_the_time_was_up(stage) {
        let runs = Runs::default();
        let policy = || seconds(99).total(ms(2_500));
        stage.run(flaky(99, &runs), trying(policy())).await;
        stage.start("a", "Try", "in").await;
        is_held_back(&stage, 1).await;
        stage.stop_at_once().await;
        stage.pass(3_600 * SECOND);
        stage.run(flaky(99, &runs), trying(policy())).await;
        assert_eq!(stage.output("a").await, Err("no 1".to_owned()), "the last error stands");
        assert_eq!(runs.attempts(), [1]);
        let (_, failure) = details(&stage, "a").await.expect("the activity failed");
        assert_eq!(failure.map(|failure| failure.tries), Some(1));
        stage.stop().await;
    }

    async fn a_call_keeps_its_key_and_policy_when_a_wrapper_around_the_store_goes(stage) {
        let (runs, gate) = (Runs::default(), Gate::new());
        let works = || held(&runs, &gate, Err("no".to_owned())).build_result().expect("activities");
        let flows = || trying(seconds(2)).build_result().expect("orchestrations");
        let wrapped: Arc<dyn Provider> = Arc::new(Plain::new(stage.inner()));
        let with = Runtime::try_start(wrapped, works(), flows(), stage.options()).await.expect("it starts");
        stage.start("a", "Try", "in").await;
        gate.is_entered().await;
        with.shutdown(Some(0)).await;
        stage.run(held(&runs, &gate, Err("no".to_owned())), trying(seconds(2))).await;
        gate.is_entered().await;
        gate.open();
        is_held_back(&stage, 1).await;
        gate.open();
        assert!(stage.ends_as_time_passes("a", ms(250)).await.is_err());
        assert_eq!(runs.keys().len(), 1, "{:?}", runs.all());
        assert_eq!(runs.attempts().last(), Some(&2));
        stage.stop().await;
    }

    async fn a_try_under_way_is_explained(stage) {
        let runs = Runs::default();
        stage.run(flaky(9, &runs), trying(Policy::tries(5).backoff(60 * SECOND..60 * SECOND))).await;
        stage.start("a", "Try", "in").await;
        let explained = async || stage.observer().explain("a").await.expect("it exists").to_string();
        stage.until("a try has ended", async || explained().await.contains("try 2 of 5")).await;
        let text = explained().await;
        assert!(text.contains("try 2 of 5, the last one failed: no 1"), "{text}");
        assert!(text.contains("held back after 1 delivery, for another"), "{text}");
        stage.stop().await;
    }

    async fn a_waiting_try_keeps_its_place_in_a_serial_session(stage) {
        let order = Arc::new(Mutex::new(Vec::new()));
        let (noted, fails) = (Arc::clone(&order), Arc::new(AtomicU32::new(1)));
        let turn = activities().register("Turn", move |ctx: ActivityContext, input: String| {
            noted.lock().expect("no holder panics").push(format!("{input} {}", ctx.attempt()));
            let fails = fails.fetch_sub(u32::from(input == "one"), Ordering::SeqCst) > 0 && input == "one";
            async move { if fails { Err("not yet".to_owned()) } else { Ok(input) } }
        });
        let chat = |ctx: OrchestrationContext, _: String| async move {
            let serial = SessionOptions::default().with_concurrency(SessionConcurrency::Serial);
            let session = ctx.open_session_with(serial).await?;
            let one = ctx.schedule_activity("Turn", "one").on_session(&session).retry(seconds(3));
            let two = ctx.schedule_activity("Turn", "two").on_session(&session);
            one.await?;
            two.await
        };
        let options = RuntimeOptions { worker_concurrency: 4, ..stage.options() };
        stage.run_with(turn, orchestrations().register("Chat", chat), options).await;
        stage.start("a", "Chat", "").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("two".to_owned()));
        assert_eq!(*order.lock().expect("no holder panics"), ["one 1", "one 2", "two 1"]);
        stage.stop().await;
    }
}

/// A grace period of zero is legal: a try that took too long is aborted at once.
#[tokio::test]
async fn a_try_that_takes_too_long_ends_without_a_grace_period_too() {
    let store: Arc<dyn Provider> = Arc::new(steadfast_memory::MemoryStore::new());
    let endless = activities().register("Flaky", |_: ActivityContext, _| std::future::pending());
    let flows = trying(Policy::once().timeout(ms(20)));
    let options =
        RuntimeOptions { activity_cancellation_grace_period: Duration::ZERO, ..RuntimeOptions::default() };
    let (works, flows) = (endless.build_result().expect("one"), flows.build_result().expect("one"));
    let runtime = Runtime::try_start(Arc::clone(&store), works, flows, options).await.expect("it starts");
    let client = steadfast::Client::new(store);
    client.start_orchestration("a", "Try", "in").await.expect("it starts");
    let status = client.wait_for_orchestration("a", Duration::from_secs(30)).await.expect("it ends");
    assert!(matches!(status, steadfast::OrchestrationStatus::Failed { .. }), "{status:?}");
    runtime.shutdown(Some(0)).await;
}

/// Counts a run that ends, however it ends.
struct Ends(Arc<AtomicU32>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Frees the thread of a try that blocks it, also if the test fails.
struct Freed(Arc<AtomicBool>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A try that blocks its thread cannot be stopped: the next one waits for it (semantics 1.2).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_try_that_blocks_its_thread_is_not_overtaken_by_the_next_one() {
    let stage = Stage::new(StoreKind::Memory).await;
    let (entered, release) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let (told, freed, runs) = (Arc::clone(&entered), Arc::clone(&release), Runs::default());
    let noted = runs.clone();
    let blocks = activities().register("Flaky", move |ctx: ActivityContext, input: String| {
        let (told, freed, number) = (Arc::clone(&told), Arc::clone(&freed), noted.note(&ctx));
        async move {
            told.add_permits(1);
            // Of the threads of the process this one is blocked, and not those that renew the lease.
            tokio::task::block_in_place(|| {
                while number == 1 && !freed.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            });
            Ok(input)
        }
    });
    let policy = Policy::tries(2).backoff(ms(0)..ms(0)).timeout(SECOND);
    stage.run(blocks, trying(policy)).await;
    stage.start("a", "Try", "in").await;
    entered.acquire().await.expect("open").forget();
    let _freed = Freed(Arc::clone(&release));
    // Less than its lease: the threads may be slow to renew it.
    stage.pass_slowly(20 * SECOND, ms(250)).await;
    assert_eq!(runs.attempts(), [1], "its time is over for long, and the next try waits for its end");
    release.store(true, Ordering::SeqCst);
    assert_eq!(stage.ends_as_time_passes("a", ms(250)).await, Ok("in".to_owned()));
    // If its thread kept the process from seeing the time, its result was in time.
    assert!(matches!(runs.attempts()[..], [1] | [1, 2]), "{:?}", runs.attempts());
    stage.stop().await;
}
