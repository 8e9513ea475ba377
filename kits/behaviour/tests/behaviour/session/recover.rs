//! State of a session that is rebuilt before its loss reaches the orchestration (D36).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::bench::{flows, release};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::registry::ActivityRegistryBuilder;
use steadfast::runtime::{OptionsError, Runtime, RuntimeOptions, SessionRecoveryPolicy};
use steadfast::{ActivityContext, AppErrorKind, ErrorDetails, EventKind, is_session_lost};
use steadfast_behaviour::{
    Emitted, Lines, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};

const REBUILDS: &str = "steadfast_session_rebuilds_total";

const GIVEN_UP: &str = "steadfast_session_recoveries_given_up_total";

/// What an activity keeps for its session.
struct Kept;

/// A worker whose `Say` needs what only its `Rebuild` keeps.
#[derive(Debug, Clone)]
struct Worker {
    gate: Gate,
    /// How many rebuilds fail, or do not help, before one does.
    in_vain: usize,
    fails: bool,
    rebuilds: Arc<AtomicUsize>,
    runs: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    fn new(in_vain: usize, fails: bool) -> Self {
        let gate = Gate::new();
        let (rebuilds, runs, told) = Default::default();
        Self { gate, in_vain, fails, rebuilds, runs, told }
    }

    async fn rebuild(&self, ctx: &ActivityContext, input: &str) -> Result<String, String> {
        let told = format!("{} {input}, attempt {}", ctx.activity_name(), ctx.counted_deliveries());
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        self.gate.pass().await;
        if self.rebuilds.fetch_add(1, Ordering::SeqCst) >= self.in_vain {
            ctx.session().expect("runs on a session").state_or_init(async { Ok(Kept) }).await?;
        } else if self.fails {
            return Err("no checkpoint".to_owned());
        }
        Ok("not recorded".to_owned())
    }

    fn works(&self) -> ActivityRegistryBuilder {
        let (says, rebuilds) = (self.clone(), self.clone());
        activities()
            .register("Say", move |ctx: ActivityContext, text: String| {
                says.runs.fetch_add(1, Ordering::SeqCst);
                async move {
                    let session = ctx.session().expect("runs on a session");
                    session.state::<Kept>().ok_or_else(|| ctx.session_lost("nothing is kept here"))?;
                    Ok(format!("said {text} in attempt {}", ctx.counted_deliveries()))
                }
            })
            .register("Rebuild", move |ctx: ActivityContext, input: String| {
                let worker = rebuilds.clone();
                async move { worker.rebuild(&ctx, &input).await }
            })
    }

    async fn starts(&self, stage: &Stage, id: &str, max_rebuilds: u32) -> Arc<Runtime> {
        let rebuild_activity = "Rebuild".to_owned();
        let options = RuntimeOptions {
            worker_node_id: Some(id.to_owned()),
            worker_concurrency: 3,
            session_recovery: Some(SessionRecoveryPolicy { rebuild_activity, max_rebuilds }),
            ..stage.options()
        };
        stage.run_with(self.works(), flows(), options).await
    }

    fn counts(&self) -> (usize, usize) {
        (self.rebuilds.load(Ordering::SeqCst), self.runs.load(Ordering::SeqCst))
    }
}

async fn failure(stage: &Stage, instance: &str) -> ErrorDetails {
    let failed = stage.history(instance).await.into_iter().find_map(|event| match event.kind {
        EventKind::ActivityFailed { details } => Some(details),
        _ => None,
    });
    failed.expect("it failed")
}

on_every_store! {
    async fn d36_lost_state_is_rebuilt_and_the_activity_runs_again_and_nothing_of_it_is_recorded(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        let (lines, _guard) = Lines::collect();
        let worker = Worker::new(0, false);
        worker.gate.open();
        worker.starts(&stage, "A", 2).await;
        assert_eq!(stage.ends_after("1", "One", "Say/chat").await, Ok("said  in attempt 1".to_owned()));
        assert_eq!(worker.counts(), (1, 2));
        assert_eq!(*worker.told.lock().expect("nobody panics"), ["Rebuild , attempt 1"]);
        let recorded =
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("1").await, recorded);
        assert_eq!(stage.ends_after("2", "One", "Say/chat").await, Ok("said  in attempt 1".to_owned()));
        assert_eq!(worker.counts(), (1, 3), "the state is there");
        assert_eq!(emitted.counter(&format!("{REBUILDS}{{outcome=success}}")), 1);
        assert_eq!(emitted.counter(GIVEN_UP), 0);
        let line = lines.saying("INFO", "the state of a session is rebuilt");
        let named = [line[0].field("session_id"), line[0].field("rebuild_activity")];
        assert_eq!((line.len(), named), (1, ["chat", "Rebuild"]));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d36_of_activities_that_miss_their_state_together_one_rebuilds(stage) {
        let worker = Worker::new(0, false);
        worker.starts(&stage, "A", 1).await;
        for instance in ["1", "2", "3"] {
            stage.start(instance, "One", "Say/chat").await;
        }
        worker.gate.is_entered().await;
        stage.until("all have run", async || worker.runs.load(Ordering::SeqCst) == 3).await;
        stage.settle().await;
        assert_eq!(worker.gate.waiting(), 0, "the others wait for the one");
        worker.gate.open();
        for instance in ["1", "2", "3"] {
            assert_eq!(stage.output(instance).await, Ok("said  in attempt 1".to_owned()));
        }
        assert_eq!(worker.counts(), (1, 6));
        stage.stop().await;
    }

    async fn d36_what_cannot_be_rebuilt_is_a_lost_session_after_so_many_tries(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        for (instance, fails) in [("fails", true), ("does not help", false)] {
            let worker = Worker::new(usize::MAX, fails);
            for _ in 0..3 {
                worker.gate.open();
            }
            let runtime = worker.starts(&stage, instance, 3).await;
            stage.start(instance, "One", &format!("Say/{instance}")).await;
            let error = stage.ends_as_time_passes(instance, SECOND / 10).await;
            let error = error.expect_err("it fails").display_message();
            assert!(is_session_lost(&error), "{error}");
            let says = if fails { "'Rebuild' failed: no checkpoint" } else { "'Rebuild' 3 times in vain" };
            assert!(error.contains("nothing is kept here") && error.contains(says), "{error}");
            let details = failure(&stage, instance).await;
            let kind = matches!(&details, ErrorDetails::Application { kind: AppErrorKind::SessionLost, .. });
            assert!(kind && details.is_session_lost(), "{details:?}");
            assert_eq!(worker.counts(), (3, if fails { 1 } else { 4 }));
            runtime.shutdown(Some(0)).await;
        }
        assert_eq!(emitted.counter(&format!("{REBUILDS}{{outcome=failed}}")), 3);
        assert_eq!(emitted.counter(GIVEN_UP), 2);
    }

    async fn d36_a_rebuild_that_fails_is_tried_again(stage) {
        let worker = Worker::new(2, true);
        for _ in 0..3 {
            worker.gate.open();
        }
        worker.starts(&stage, "A", 3).await;
        stage.start("1", "One", "Say/chat").await;
        let ended = stage.ends_as_time_passes("1", SECOND / 10).await;
        assert_eq!(ended, Ok("said  in attempt 1".to_owned()));
        assert_eq!(worker.counts(), (3, 2), "the activity does not run before the state is there");
        stage.stop().await;
    }

    async fn d36_an_activity_without_a_session_and_another_error_are_not_recovered(stage) {
        let worker = Worker::new(0, false);
        let works = worker.works().register("Plain", |_: ActivityContext, _: String| async move {
            Err::<String, String>("session_lost: it never had one".to_owned())
        });
        let works = works.register("Other", |_: ActivityContext, _: String| async move {
            Err::<String, String>("no disk".to_owned())
        });
        let rebuild_activity = "Rebuild".to_owned();
        let session_recovery = Some(SessionRecoveryPolicy { rebuild_activity, max_rebuilds: 1 });
        stage.run_with(works, flows(), RuntimeOptions { session_recovery, ..stage.options() }).await;
        for (instance, input) in [("1", "Plain/"), ("2", "Other/chat")] {
            assert!(stage.ends_after(instance, "One", input).await.is_err());
        }
        assert_eq!(worker.counts(), (0, 0));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn d36_a_rebuild_that_a_shutdown_stops_runs_again_elsewhere_uncounted(stage) {
        let (first, second) = (Worker::new(0, false), Worker::new(0, false));
        let stopped = first.starts(&stage, "A", 1).await;
        stage.start("1", "One", "Say/chat").await;
        first.gate.is_entered().await;
        stopped.shutdown(Some(0)).await;
        second.gate.open();
        second.starts(&stage, "B", 1).await;
        assert_eq!(stage.output("1").await, Ok("said  in attempt 1".to_owned()));
        assert_eq!((first.counts(), second.counts()), ((0, 1), (1, 2)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d36_a_rebuild_keeps_the_lease_of_its_activity(stage) {
        let (worker, rival) = (Worker::new(0, false), Worker::new(0, false));
        worker.starts(&stage, "A", 1).await;
        stage.start("1", "One", "Say/chat").await;
        worker.gate.is_entered().await;
        rival.starts(&stage, "B", 1).await;
        // Three times as long as the leases of activity and session last.
        pass_calmly(&stage, 90 * SECOND, SECOND).await;
        worker.gate.open();
        assert_eq!(stage.output("1").await, Ok("said  in attempt 1".to_owned()));
        assert_eq!((worker.counts(), rival.counts()), ((1, 2), (0, 0)));
        stage.stop().await;
    }

    async fn d36_a_session_that_was_detached_meanwhile_is_not_rebuilt_here(stage) {
        let (worker, other) = (Worker::new(0, false), Worker::new(0, false));
        let first = worker.starts(&stage, "A", 5).await;
        stage.start("1", "One", "Say/chat").await;
        stage.start("2", "One", "Say/chat").await;
        worker.gate.is_entered().await;
        stage.until("both have run", async || worker.runs.load(Ordering::SeqCst) == 2).await;
        stage.settle().await;
        assert!(release(&stage, "chat").await);
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        worker.gate.open();
        let ends = [stage.output("1").await, stage.output("2").await];
        let lost = ends.iter().filter(|end| end.as_ref().is_err_and(|error| is_session_lost(error))).count();
        assert_eq!(lost, 2, "{ends:?}");
        assert_eq!(worker.counts().0, 1, "no second rebuild for what is gone");
        first.shutdown(Some(0)).await;
        drop(other);
    }
}

#[tokio::test]
async fn d36_a_rebuild_activity_that_is_not_registered_is_refused_at_start_up_with_its_name() {
    Stage::run_on(StoreKind::Memory, |stage| async move {
        let refused = async |name: &str, max_rebuilds| {
            let rebuild_activity = name.to_owned();
            let session_recovery = Some(SessionRecoveryPolicy { rebuild_activity, max_rebuilds });
            let options = RuntimeOptions { session_recovery, ..stage.options() };
            let works = Worker::new(0, false).works().build_result().expect("activities");
            let none = orchestrations().build_result().expect("orchestrations");
            Runtime::try_start(stage.inner(), works, none, options).await.err()
        };
        let error = refused("Rebuild it", 1).await.expect("is refused");
        assert_eq!(error, OptionsError::RebuildActivity { name: "Rebuild it".to_owned() });
        let text = error.to_string();
        assert!(text.contains("'Rebuild it', which is not registered: register it"), "{text}");
        assert_eq!(refused("Rebuild", 0).await, Some(OptionsError::MaxRebuilds));
        stage.stop().await;
    })
    .await;
}
