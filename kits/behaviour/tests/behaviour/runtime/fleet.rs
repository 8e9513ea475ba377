//! Workers with and without the code (G5, G40): what one lacks another runs, at once and uncounted.
//!
//! The clock stands still unless a test moves it: work that was delayed would wait for ever.

use std::time::Duration;

use semver::Version;
use steadfast::providers::SemverRange;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{OnMissingHandler, RuntimeOptions, VersionPolicy};
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{Lines, Stage, StoreKind, activities, on_every_full_store, orchestrations};

const HOUR: Duration = Duration::from_secs(3_600);

/// `Flow` calls `Work`, which tells its attempt.
fn flow() -> OrchestrationRegistryBuilder {
    orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Work", "").await
    })
}

fn work() -> ActivityRegistryBuilder {
    activities()
        .register("Work", |ctx: ActivityContext, _| async move { Ok(ctx.counted_deliveries().to_string()) })
}

/// A registry of another deployment.
fn other() -> OrchestrationRegistryBuilder {
    orchestrations().register("Other", |_: OrchestrationContext, input| async move { Ok(input) })
}

fn parking(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { on_missing_handler: OnMissingHandler::Park, ..stage.options() }
}

/// Runs `lacking` workers without the code and one with it; each of `instances` completes at its first
/// delivery, while the clock stands still.
async fn all_complete_at_once(stage: &Stage, lacking: usize, instances: usize) {
    let (lines, _guard) = Lines::collect();
    for _ in 0..lacking {
        stage.run(activities(), other()).await;
    }
    stage.run(work(), flow()).await;
    for number in 0..instances {
        stage.start(&format!("i{number}"), "Flow", "").await;
    }
    for number in 0..instances {
        let ended = stage.ends(&format!("i{number}")).await;
        assert_eq!(ended, Ok("1".to_owned()), "i{number} at its first attempt");
    }
    assert_eq!(lines.saying("WARN", "not registered"), [], "a live worker has it");
    stage.stop().await;
    stage.nothing_waits().await;
}

on_every_full_store! {
    async fn g5_of_nine_workers_without_the_code_and_one_with_it_no_instance_fails_or_waits(stage) {
        all_complete_at_once(&stage, 9, 200).await;
    }

    async fn g40_of_five_workers_without_the_code_and_one_with_it_no_instance_fails_or_waits(stage) {
        all_complete_at_once(&stage, 5, 60).await;
    }

    async fn g40_with_an_old_and_a_new_worker_each_start_is_taken_at_once(stage) {
        stage.run(activities(), other()).await;
        stage.run(work(), flow()).await;
        for instance in ["a", "b", "c", "d", "e"] {
            assert_eq!(stage.ends_after(instance, "Flow", "").await, Ok("1".to_owned()));
        }
        stage.stop().await;
    }

    async fn g40_a_worker_with_the_code_that_starts_later_gets_refused_work_at_once(stage) {
        stage.run(activities(), other()).await;
        stage.start("a", "Flow", "").await;
        stage.until("the turn is refused", async || stage.faults.abandoned() == 1).await;
        let turns = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flow(), turns).await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.until("the activity is refused", async || stage.faults.abandoned() == 2).await;
        stage.settle().await;
        stage.run(work(), orchestrations()).await;
        assert_eq!(stage.ends("a").await, Ok("2".to_owned()), "the refusal counted: no live worker had it");
        stage.stop().await;
    }

    async fn g5_a_version_is_run_by_the_worker_that_has_it(stage) {
        let versions = |texts: &[&'static str]| {
            texts.iter().fold(orchestrations(), |builder, version| {
                builder.register_versioned("Flow", version, {
                    let version = *version;
                    move |_: OrchestrationContext, _: String| async move { Ok(version.to_owned()) }
                })
            })
        };
        stage.run(activities(), versions(&["1.0.0"])).await;
        stage.run(activities(), versions(&["1.0.0", "2.0.0"])).await;
        for number in 0..20 {
            let id = format!("i{number}");
            stage.client.start_orchestration_versioned(&id, "Flow", "2.0.0", "").await.expect("starts");
            assert_eq!(stage.ends(&id).await, Ok("2.0.0".to_owned()));
        }
        stage.stop().await;
    }

    async fn g5_workers_of_another_engine_version_cost_no_attempts_and_delay_no_capable_one(stage) {
        let (lines, _guard) = Lines::collect();
        let flow = || {
            orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
                for _ in 0..3 {
                    ctx.schedule_activity("Work", "").await?;
                }
                ctx.schedule_activity("Work", "").await
            })
        };
        let nine = SemverRange::new(Version::new(9, 0, 0), Version::new(9, 9, 9));
        for _ in 0..9 {
            let supported_replay_versions = Some(nine.clone());
            let options = RuntimeOptions { supported_replay_versions, ..stage.options() };
            stage.run_with(work(), flow(), options).await;
        }
        stage.run(work(), flow()).await;
        for number in 0..50 {
            stage.start(&format!("i{number}"), "Flow", "").await;
        }
        for number in 0..50 {
            assert_eq!(stage.ends(&format!("i{number}")).await, Ok("1".to_owned()), "i{number}");
        }
        // Each of them may begin an execution, which is of the version of this build from then on.
        assert_eq!(lines.saying("WARN", "incompatible version"), [], "none of them is given a turn of it");
        assert_eq!(stage.faults.abandoned(), 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g5_a_policy_for_a_version_that_is_not_here_does_not_make_a_worker_refuse_in_a_loop(stage) {
        let exact = VersionPolicy::Exact(Version::new(2, 0, 0));
        stage.run(work(), flow().set_policy("Flow", exact)).await;
        stage.start("a", "Flow", "").await;
        stage.until("it is refused", async || stage.faults.abandoned() == 1).await;
        stage.settle().await;
        assert_eq!(stage.faults.abandoned(), 1, "it lists another version than it needs");
        stage.stop().await;
    }

    async fn a_parked_turn_and_a_parked_activity_wait_uncounted_and_are_not_handed_out_again(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run_with(activities(), other(), parking(&stage)).await;
        stage.start("a", "Flow", "").await;
        stage.until("the turn is refused", async || stage.faults.abandoned() == 1).await;
        stage.pass_slowly(2 * HOUR, HOUR / 60).await;
        assert_eq!(stage.faults.abandoned(), 1, "the worker is not given it again");
        let [line] = &lines.saying("WARN", "not registered")[..] else { panic!("{:?}", lines.all()) };
        let text = "Orchestration not registered, parked until a worker has it; registered: Other";
        assert_eq!(line.field("message"), text);
        stage.run_with(activities(), flow(), parking(&stage)).await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.until("the activity is refused", async || stage.faults.abandoned() >= 2).await;
        stage.pass_slowly(2 * HOUR, HOUR / 60).await;
        assert!(stage.faults.abandoned() <= 3, "each worker is given it at most once");
        stage.run_with(work(), orchestrations(), parking(&stage)).await;
        assert_eq!(stage.ends("a").await, Ok("1".to_owned()), "nothing was counted");
        stage.stop().await;
    }

    async fn a_parked_instance_can_be_terminated_by_a_worker_without_its_code(stage) {
        stage.run_with(activities(), other(), parking(&stage)).await;
        stage.start("a", "Flow", "").await;
        stage.until("the turn is refused", async || stage.faults.abandoned() == 1).await;
        stage.client.terminate_instance("a", "a typing error").await.expect("asks");
        let error = stage.ends("a").await.expect_err("is terminated");
        assert_eq!(error.display_message(), "terminated: a typing error");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn a_session_moves_to_the_worker_that_has_the_code(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.open_session_with_id("s").await?;
            ctx.schedule_activity_on_session("Work", "", "s").await
        });
        for _ in 0..3 {
            stage.run(activities(), orchestrations()).await;
        }
        stage.run(work(), flow).await;
        for instance in ["a", "b", "c"] {
            stage.start(instance, "Flow", "").await;
        }
        for instance in ["a", "b", "c"] {
            assert_eq!(stage.ends(instance).await, Ok("1".to_owned()));
        }
        stage.stop().await;
    }
}

/// Through a provider that has only the compatible methods, a parking worker tries again after a second,
/// uncounted.
#[tokio::test]
async fn parking_through_a_wrapper_delays_and_counts_nothing() {
    let stage = Stage::new(StoreKind::Wrapped).await;
    let options = RuntimeOptions { max_attempts: 1, ..parking(&stage) };
    stage.run_with(activities(), other(), options).await;
    stage.start("a", "Flow", "").await;
    for nth in 1..=5 {
        stage.until("it is given back", async || stage.faults.abandoned() == nth).await;
        stage.settle().await;
        assert_eq!(stage.faults.abandoned(), nth, "it waits for a second");
        stage.pass(Duration::from_secs(1));
    }
    stage.stop_at_once().await;
    stage.run(work(), flow()).await;
    assert_eq!(stage.ends_as_time_passes("a", Duration::from_millis(200)).await, Ok("1".to_owned()));
    stage.stop().await;
}
