//! Cancellation: by a client, by a parent, by a dropped future (2.3, 2.4, 2.13, 2.15), F1, F6, F20, F24, I10.
//!
//! To put several messages into one batch, a claim sends them while no runtime runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::registry::ActivityRegistryBuilder;
use steadfast::{
    ActivityContext, AppErrorKind, CancelReason, Either2, ErrorDetails, Event, EventKind,
    OrchestrationContext, OrchestrationRegistryBuilder, OrchestrationStatus, RuntimeOptions,
};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

/// What activities and handlers say while they run.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn says(&self, stage: &Stage, text: &str) {
        stage.until(text, async || self.all().iter().any(|note| note == text)).await;
    }

    /// Activities that stop when told (`Polite`), that never stop (`Stubborn`), and that only say that they
    /// ran.
    fn activities(&self) -> ActivityRegistryBuilder {
        let (polite, stubborn, quick) = (self.clone(), self.clone(), self.clone());
        activities()
            .register("Polite", move |ctx: ActivityContext, _| polite.clone().wait_politely(ctx))
            .register("Stubborn", move |ctx: ActivityContext, _| stubborn.clone().wait_for_ever(ctx))
            .register("Quick", move |_, input: String| {
                quick.note(&input);
                async move { Ok(input) }
            })
    }

    async fn wait_politely(self, ctx: ActivityContext) -> HandlerResult {
        self.note("runs");
        assert!(!ctx.is_cancelled() && ctx.cancel_reason().is_none());
        ctx.cancelled().await;
        assert!(ctx.is_cancelled() && ctx.cancellation_token().is_cancelled());
        self.note(match ctx.cancel_reason() {
            Some(CancelReason::Withdrawn) => "withdrawn",
            Some(CancelReason::LeaseLost) => "lease lost",
            _ => "stopped for another reason",
        });
        Ok("too late".to_owned())
    }

    async fn wait_for_ever(self, ctx: ActivityContext) -> HandlerResult {
        struct Guard(Diary);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.note("aborted");
            }
        }
        let _guard = Guard(self.clone());
        self.note("runs");
        ctx.cancelled().await;
        self.note("told");
        std::future::pending().await
    }
}

async fn waits(ctx: OrchestrationContext, _: String) -> HandlerResult {
    Ok(ctx.schedule_wait("go").await)
}

/// Orchestrations that wait for an event (`Waits`), and that wait for the activity their input names
/// (`Calls`).
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Waits", waits)
        .register("Calls", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "in").await
        })
}

async fn cancel(stage: &Stage, instance: &str, reason: &str) {
    stage.client.cancel_instance(instance, reason).await.expect("cancels");
}

async fn raise(stage: &Stage, instance: &str, name: &str) {
    stage.client.raise_event(instance, name, "").await.expect("raises");
}

fn cancelled(reason: &str) -> Result<String, ErrorDetails> {
    let kind = AppErrorKind::Cancelled { reason: reason.to_owned() };
    Err(ErrorDetails::Application { kind, message: String::new(), retryable: false })
}

/// The reason of every request to cancel that the history of an instance has.
async fn requests(stage: &Stage, instance: &str) -> Vec<String> {
    let reason = |event: Event| match event.kind {
        EventKind::OrchestrationCancelRequested { reason } => Some(reason),
        _ => None,
    };
    stage.history(instance).await.into_iter().filter_map(reason).collect()
}

/// The schedule and reason of every activity that history asks to stop.
async fn stopped(stage: &Stage, instance: &str) -> Vec<(Option<u64>, String)> {
    let mark = |event: Event| match event.kind {
        EventKind::ActivityCancelRequested { reason } => Some((event.source_event_id, reason)),
        _ => None,
    };
    stage.history(instance).await.into_iter().filter_map(mark).collect()
}

on_every_store! {
    async fn r2_15_a_cancelled_instance_fails_with_the_reason(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Waits", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "OrchestrationCancelRequested",
            "ExternalSubscribedCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn t3_the_first_reason_wins_and_only_it_is_recorded(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Waits", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        cancel(&stage, "a", "first").await;
        cancel(&stage, "a", "second").await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends("a").await, cancelled("first"));
        assert_eq!(requests(&stage, "a").await, ["first"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_a_cancellation_reaches_every_generation(stage) {
        let flow = flows().register("Parent", |ctx: OrchestrationContext, input: String| async move {
            let (child, input) = if input == "3" { ("Waits", "") } else { ("Parent", "3") };
            ctx.schedule_sub_orchestration(child, input).await
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Parent", "1").await;
        let generations = ["a::sub::2", "a::sub::2::sub::2"];
        stage.has(generations[1], "ExternalSubscribed", 1).await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        for generation in generations {
            assert_eq!(stage.ends(generation).await, cancelled("parent canceled"));
            assert_eq!(requests(&stage, generation).await, ["parent canceled"]);
        }
        let kinds = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "OrchestrationCancelRequested",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage
            .until("news of the children are settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        stage.stop().await;
    }

    async fn r2_15_cancelled_together_with_the_start_the_code_runs_once_for_nothing(stage) {
        let diary = Diary::default();
        let ran = diary.clone();
        let flow = flows()
            .register("Once", move |ctx: OrchestrationContext, _| {
                ran.note("code");
                async move {
                    ctx.schedule_sub_orchestration_with_id("Waits", "kid", "").await?;
                    ctx.schedule_activity("Quick", "activity").await
                }
            })
            .register("Returns", |_: OrchestrationContext, _| async { Ok("a result".to_owned()) });
        for (instance, orchestration) in [("a", "Once"), ("b", "Returns")] {
            stage.start(instance, orchestration, "").await;
            cancel(&stage, instance, "changed my mind").await;
        }
        stage.run(diary.activities(), flow).await;
        for instance in ["a", "b"] {
            assert_eq!(stage.ends(instance).await, cancelled("changed my mind"));
        }
        let kinds = [
            "OrchestrationStarted",
            "OrchestrationCancelRequested",
            "SubOrchestrationScheduled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(
            stage.kinds("b").await,
            ["OrchestrationStarted", "OrchestrationCancelRequested", "OrchestrationFailed"]
        );
        assert_eq!(diary.all(), ["code"]);
        // A child that was not started gets no cancellation either (F2).
        assert_eq!(
            stage.client.get_orchestration_status("kid").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_an_activity_asked_for_in_the_cancelled_turn_is_recorded_and_never_runs(stage) {
        let diary = Diary::default();
        stage.start("a", "Calls", "Quick").await;
        cancel(&stage, "a", "enough").await;
        stage.run(diary.activities(), flows()).await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        let kinds = [
            "OrchestrationStarted",
            "OrchestrationCancelRequested",
            "ActivityScheduled",
            "OrchestrationFailed",
            "ActivityCancelRequested",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(stopped(&stage, "a").await, [(Some(3), "orchestration_terminal_failed".to_owned())]);
        stage.stop().await;
        stage.nothing_waits().await;
        assert_eq!(diary.all(), [""; 0]);
    }

    async fn i10_cancelled_in_the_batch_that_would_complete_it_it_is_cancelled_and_not_both(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Waits", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        raise(&stage, "a", "go").await;
        cancel(&stage, "a", "enough").await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalEvent",
            "OrchestrationCancelRequested",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_after_the_end_a_cancellation_changes_nothing(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Waits", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        assert_eq!(stage.output("a").await, Ok(String::new()));
        let before = stage.history("a").await;
        cancel(&stage, "a", "too late").await;
        stage.start("b", "Waits", "").await;
        stage.has("b", "ExternalSubscribed", 1).await;
        stage
            .until("it is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        assert_eq!(stage.output("a").await, Ok(String::new()));
        assert_eq!(stage.history("a").await, before);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f1_a_cancellation_of_nobody_is_settled_and_delays_no_one(stage) {
        cancel(&stage, "ghost", "boo").await;
        stage.run(activities(), flows()).await;
        stage.start("a", "Waits", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        assert_eq!(stage.output("a").await, Ok(String::new()));
        stage
            .until("it is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        // It does not wait for an instance to be there.
        stage.start("ghost", "Waits", "").await;
        stage.has("ghost", "ExternalSubscribed", 1).await;
        assert_eq!(requests(&stage, "ghost").await, [""; 0]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f20_one_that_waits_for_nothing_stays_running_and_can_be_cancelled(stage) {
        let flow = orchestrations().register("Stuck", |_: OrchestrationContext, _| std::future::pending());
        stage.run(activities(), flow).await;
        stage.start("a", "Stuck", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        let running = OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 };
        assert_eq!(stage.client.get_orchestration_status("a").await.expect("answers"), running);
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_an_activity_that_runs_is_told_at_once_and_its_result_is_not_used(stage) {
        let diary = Diary::default();
        stage.run(diary.activities(), flows()).await;
        stage.start("a", "Calls", "Polite").await;
        diary.says(&stage, "runs").await;
        cancel(&stage, "a", "enough").await;
        // The clock stands still, so no renewal can have told it.
        diary.says(&stage, "withdrawn").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "OrchestrationCancelRequested",
            "OrchestrationFailed",
            "ActivityCancelRequested",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(stopped(&stage, "a").await, [(Some(2), "orchestration_terminal_failed".to_owned())]);
        stage.stop().await;
        stage.nothing_waits().await;
        assert_eq!(stage.kinds("a").await, kinds);
    }

    async fn f24_an_activity_is_told_at_once_also_when_it_is_the_store_that_ends_the_execution(stage) {
        let diary = Diary::default();
        let faults = stage.faults.clone();
        let flow = orchestrations().register("Unlucky", move |ctx: OrchestrationContext, _| {
            let faults = faults.clone();
            async move {
                let activity = ctx.schedule_activity("Polite", "");
                ctx.schedule_wait("go").await;
                let error = ProviderError::permanent("commit_turn", "the disk is on fire");
                faults.refuse("commit_turn", 1, error);
                ctx.schedule_wait("go").await;
                activity.await
            }
        });
        stage.run(diary.activities(), flow).await;
        stage.start("a", "Unlucky", "").await;
        diary.says(&stage, "runs").await;
        raise(&stage, "a", "go").await;
        let ended = stage.ends("a").await;
        assert!(matches!(ended, Err(ErrorDetails::Infrastructure { .. })), "{ended:?}");
        diary.says(&stage, "withdrawn").await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_an_activity_that_runs_elsewhere_is_told_within_one_renewal(stage) {
        let diary = Diary::default();
        let turns = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        let works = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flows(), turns).await;
        stage.run_with(diary.activities(), orchestrations(), works).await;
        stage.start("a", "Calls", "Polite").await;
        diary.says(&stage, "runs").await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        assert_eq!(diary.all(), ["runs"]);
        // Leases last 30 s and are renewed 5 s before their end.
        stage.pass_slowly(Duration::from_secs(25), Duration::from_secs(1)).await;
        diary.says(&stage, "withdrawn").await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_cancelled_activity_that_does_not_stop_is_aborted_after_the_grace_period(stage) {
        let (lines, _guard) = Lines::collect();
        let diary = Diary::default();
        let grace = Duration::from_secs(7);
        let options = RuntimeOptions {
            activity_cancellation_grace_period: grace,
            worker_concurrency: 1,
            ..stage.options()
        };
        stage.run_with(diary.activities(), flows(), options).await;
        stage.start("a", "Calls", "Stubborn").await;
        diary.says(&stage, "runs").await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        stage.start("b", "Calls", "Quick").await;
        stage.has("b", "ActivityScheduled", 1).await;
        diary.says(&stage, "told").await;
        stage.pass_slowly(grace - Duration::from_secs(1), Duration::from_secs(1)).await;
        assert_eq!(diary.all(), ["runs", "told"]);
        stage.pass_slowly(Duration::from_secs(2), Duration::from_secs(1)).await;
        // Only now is the one slot free for another instance.
        assert_eq!(stage.output("b").await, Ok("in".to_owned()));
        assert_eq!(diary.all(), ["runs", "told", "aborted", "in"]);
        assert_eq!(lines.saying("WARN", "did not stop in time").len(), 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_cancelled_activity_that_nobody_fetched_disappears(stage) {
        let options = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flows(), options).await;
        stage.start("a", "Calls", "Quick").await;
        stage.has("a", "ActivityScheduled", 1).await;
        assert_eq!(stage.observer().get_queue_depths().await.expect("counts").worker_queue, 1);
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_4_an_activity_that_lost_a_race_is_told_at_once_and_its_result_is_not_used(stage) {
        let diary = Diary::default();
        let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
            let race = ctx.select2(ctx.schedule_activity("Polite", ""), ctx.schedule_wait("go")).await;
            assert!(matches!(race, Either2::Second(_)), "the event is first");
            Ok(ctx.schedule_wait("end").await)
        });
        stage.run(diary.activities(), flow).await;
        stage.start("a", "Race", "").await;
        diary.says(&stage, "runs").await;
        raise(&stage, "a", "go").await;
        diary.says(&stage, "withdrawn").await;
        assert_eq!(stopped(&stage, "a").await, [(Some(2), "dropped_future".to_owned())]);
        raise(&stage, "a", "end").await;
        assert_eq!(stage.output("a").await, Ok(String::new()));
        // The mark is not repeated, not by a later turn nor by the end.
        let kinds = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ExternalSubscribed",
            "ExternalEvent",
            "ExternalSubscribed",
            "ActivityCancelRequested",
            "ExternalEvent",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_what_was_started_detached_is_not_cancelled(stage) {
        let flow = flows().register("Starts", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Waits", "b", "");
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Starts", "").await;
        stage.has("b", "ExternalSubscribed", 1).await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        stage.nothing_waits().await;
        raise(&stage, "b", "go").await;
        assert_eq!(stage.output("b").await, Ok(String::new()));
        assert_eq!(requests(&stage, "b").await, [""; 0]);
        stage.stop().await;
    }

    async fn i9_a_timer_that_is_left_over_by_a_cancellation_changes_nothing(stage) {
        let flow = flows().register("Sleeps", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(5)).await;
            Ok("slept".to_owned())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Sleeps", "").await;
        stage.has("a", "TimerCreated", 1).await;
        cancel(&stage, "a", "enough").await;
        assert_eq!(stage.ends("a").await, cancelled("enough"));
        stage.pass(Duration::from_secs(5));
        stage
            .until("the timer is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        let kinds =
            ["OrchestrationStarted", "TimerCreated", "OrchestrationCancelRequested", "OrchestrationFailed"];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
