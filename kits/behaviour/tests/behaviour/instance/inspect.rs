//! Looking at instances (1.17) through a client: lists, descriptions, trees, counts, and real times (F22).

use std::time::Duration;

use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    ActivityContext, ClientError, DeleteInstanceResult, ExecutionInfo, InstanceInfo, OrchestrationContext,
    OrchestrationStatus, QueueDepths, RuntimeOptions, SessionKey, SystemMetrics,
};
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};
use steadfast_clock::Clock;

const SECOND: Duration = Duration::from_secs(1);

/// An activity that runs until it is cancelled.
fn endless() -> ActivityRegistryBuilder {
    activities().register("Endless", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("cancelled".to_owned())
    })
}

/// What the claims of this file start.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Fail", |_: OrchestrationContext, input: String| async move { Err(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register(
            "Work",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Endless", "").await },
        )
        .register("Sleep", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(3600)).await;
            Ok(String::new())
        })
        // Counts down by continuing as new, a second apart, and waits at the end.
        .register("Count", |ctx: OrchestrationContext, input: String| async move {
            let left: u32 = input.parse().map_err(|_| "no number".to_owned())?;
            ctx.schedule_timer(SECOND).await;
            match left {
                0 => Ok("counted".to_owned()),
                left => ctx.continue_as_new((left - 1).to_string()).await,
            }
        })
        // The version of its successor is not registered: it stays between two executions.
        .register("Between", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("9.0.0", "later").await
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            match input.split_once('/') {
                Some((child, rest)) => ctx.schedule_sub_orchestration_with_id("Parent", child, rest).await,
                None => ctx.schedule_sub_orchestration_with_id("Wait", input, "").await,
            }
        })
}

async fn starts_and_waits(stage: &Stage, instance: &str) {
    stage.start(instance, "Wait", "").await;
    stage.has(instance, "ExternalSubscribed", 1).await;
}

async fn info(stage: &Stage, instance: &str) -> InstanceInfo {
    stage.client.get_instance_info(instance).await.expect("is described")
}

async fn execution(stage: &Stage, instance: &str, execution_id: u64) -> ExecutionInfo {
    stage.client.get_execution_info(instance, execution_id).await.expect("is described")
}

fn depths(orchestrator_queue: usize, worker_queue: usize) -> QueueDepths {
    QueueDepths { orchestrator_queue, worker_queue, timer_queue: 0 }
}

on_every_full_store! {
    async fn c1_17_instances_are_listed_newest_first_and_by_the_status_of_their_current_execution(stage) {
        stage.run(activities(), flows()).await;
        assert!(stage.client.has_management_capability());
        stage.ends_after("old", "Echo", "").await.expect("completes");
        stage.ends_after("bad", "Fail", "").await.expect_err("fails");
        starts_and_waits(&stage, "live").await;
        stage.start("between", "Between", "").await;
        stage.has("between", "OrchestrationContinuedAsNew", 1).await;
        stage.ends_after("young", "Echo", "").await.expect("completes");
        let all = stage.client.list_all_instances().await.expect("lists");
        assert_eq!(all, ["young", "between", "live", "bad", "old"]);
        for (status, expected) in [
            ("Running", vec!["live"]),
            ("Completed", vec!["young", "old"]),
            ("Failed", vec!["bad"]),
            ("ContinuedAsNew", vec!["between"]),
            ("running", vec![]),
            ("Nonsense", vec![]),
        ] {
            let listed = stage.client.list_instances_by_status(status).await.expect("lists");
            assert_eq!(listed, expected, "{status}");
        }
        stage.stop().await;
    }

    async fn c1_17_a_start_that_has_not_run_yet_is_not_listed(stage) {
        stage.start("a", "Echo", "").await;
        assert_eq!(stage.client.list_all_instances().await.expect("lists"), [""; 0]);
        assert_eq!(stage.client.get_system_metrics().await.expect("counts"), SystemMetrics::default());
        assert_eq!(stage.client.get_queue_depths().await.expect("counts"), depths(1, 0));
    }

    async fn f22_an_instance_is_described_with_real_times(stage) {
        let begin = stage.clock.now_ms();
        stage.run(activities(), flows()).await;
        stage.pass(SECOND);
        starts_and_waits(&stage, "a").await;
        let running = InstanceInfo {
            instance_id: "a".to_owned(),
            orchestration_name: "Wait".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: "Running".to_owned(),
            output: None,
            created_at: begin + 1_000,
            updated_at: begin + 1_000,
            parent_instance_id: None,
        };
        assert_eq!(info(&stage, "a").await, running);
        stage.pass(SECOND);
        stage.client.raise_event("a", "go", "done").await.expect("raises");
        stage.output("a").await.expect("completes");
        let (status, output) = ("Completed".to_owned(), Some("done".to_owned()));
        assert_eq!(
            info(&stage, "a").await,
            InstanceInfo { status, output, updated_at: begin + 2_000, ..running }
        );
        let described = ExecutionInfo {
            execution_id: 1,
            status: "Completed".to_owned(),
            output: Some("done".to_owned()),
            started_at: begin + 1_000,
            completed_at: Some(begin + 2_000),
            event_count: 4,
        };
        assert_eq!(execution(&stage, "a", 1).await, described);
        stage.stop().await;
    }

    async fn c1_17_the_output_of_a_failure_is_its_text(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a").await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.ends("a").await.expect_err("is cancelled");
        let described = info(&stage, "a").await;
        assert_eq!(
            (described.status.as_str(), described.output.as_deref()),
            ("Failed", Some("canceled: enough"))
        );
        assert_eq!(execution(&stage, "a", 1).await.output.as_deref(), Some("canceled: enough"));
        stage.stop().await;
    }

    async fn f22_every_execution_is_described_with_its_own_times(stage) {
        let begin = stage.clock.now_ms();
        stage.run(activities(), flows()).await;
        stage.start("a", "Count", "2").await;
        for done in 0..3 {
            stage
                .until("an execution sleeps", async || {
                    stage.history_of("a", done + 1).await.iter().any(|event| event.event_id == 2)
                })
                .await;
            stage.pass(SECOND);
        }
        assert_eq!(stage.output("a").await, Ok("counted".to_owned()));
        assert_eq!(stage.client.list_executions("a").await.expect("lists"), [1, 2, 3]);
        for (id, status, output) in
            [(1, "ContinuedAsNew", "1"), (2, "ContinuedAsNew", "0"), (3, "Completed", "counted")]
        {
            let expected = ExecutionInfo {
                execution_id: id,
                status: status.to_owned(),
                output: Some(output.to_owned()),
                started_at: begin + (id - 1) * 1_000,
                completed_at: Some(begin + id * 1_000),
                event_count: 4,
            };
            assert_eq!(execution(&stage, "a", id).await, expected);
            let history = stage.client.read_execution_history("a", id).await.expect("reads");
            assert_eq!(history, stage.history_of("a", id).await);
            assert_eq!(history.len(), 4);
        }
        let described = info(&stage, "a").await;
        assert_eq!((described.current_execution_id, described.created_at), (3, begin));
        assert_eq!(stage.client.read_execution_history("a", 4).await.expect("reads"), []);
        let error = stage.client.get_execution_info("a", 4).await.expect_err("there is none");
        assert!(error.to_string().contains("not found"), "{error}");
        stage.stop().await;
    }

    async fn c1_17_an_instance_between_two_executions_is_running_for_its_client(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Between", "").await;
        stage.has("a", "OrchestrationContinuedAsNew", 1).await;
        let described = info(&stage, "a").await;
        assert_eq!((described.status.as_str(), described.current_execution_id), ("ContinuedAsNew", 1));
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        assert_eq!(status, OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 });
        stage.stop().await;
    }

    async fn c1_17_a_tree_lists_an_instance_and_all_below_it(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Parent", "middle/leaf").await;
        stage.has("leaf", "ExternalSubscribed", 1).await;
        starts_and_waits(&stage, "alone").await;
        let tree = stage.client.get_instance_tree("root").await.expect("lists");
        assert_eq!((tree.root_id.as_str(), tree.size(), tree.is_root_only()), ("root", 3, false));
        assert_eq!(tree.all_ids, ["root", "middle", "leaf"]);
        let branch = stage.client.get_instance_tree("middle").await.expect("lists");
        assert_eq!(branch.all_ids, ["middle", "leaf"]);
        let alone = stage.client.get_instance_tree("alone").await.expect("lists");
        assert_eq!((alone.size(), alone.is_root_only()), (1, true));
        assert_eq!(info(&stage, "leaf").await.parent_instance_id.as_deref(), Some("middle"));
        assert_eq!(info(&stage, "root").await.parent_instance_id, None);
        stage.stop().await;
    }

    async fn c1_17_metrics_count_instances_by_status_and_all_executions_and_events(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("done", "Echo", "").await.expect("completes");
        stage.ends_after("bad", "Fail", "").await.expect_err("fails");
        starts_and_waits(&stage, "live").await;
        stage.start("twice", "Count", "1").await;
        stage.has("twice", "TimerCreated", 1).await;
        stage.pass(SECOND);
        stage.until("it counts", async || stage.history_of("twice", 2).await.len() == 2).await;
        let expected = SystemMetrics {
            total_instances: 4,
            total_executions: 5,
            running_instances: 2,
            completed_instances: 1,
            failed_instances: 1,
            total_events: 2 + 2 + 2 + (4 + 2),
        };
        assert_eq!(stage.client.get_system_metrics().await.expect("counts"), expected);
        stage.stop().await;
    }

    async fn c1_17_depths_count_what_waits_future_timers_included_and_not_what_is_leased(stage) {
        let options = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(endless(), flows(), options).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.start("b", "Sleep", "").await;
        stage.has("b", "TimerCreated", 1).await;
        assert_eq!(stage.client.get_queue_depths().await.expect("counts"), depths(1, 1));
        stage.stop().await;
        stage.client.raise_event("a", "x", "").await.expect("raises");
        assert_eq!(stage.client.get_queue_depths().await.expect("counts"), depths(2, 1));
        stage.run(endless(), flows()).await;
        let client = stage.observer();
        stage
            .until("it is taken", async || client.get_queue_depths().await.expect("counts") == depths(1, 0))
            .await;
        stage.stop().await;
    }

    async fn c1_17_what_a_client_does_not_offer_can_be_asked_of_the_store(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Parent", "middle/leaf").await;
        stage.has("leaf", "ExternalSubscribed", 1).await;
        let store = stage.inner();
        let admin = store.as_management_capability().expect("a store of ours can be managed");
        assert_eq!(admin.list_children("root").await.expect("lists"), ["middle"], "direct ones only");
        assert_eq!(admin.list_children("nobody").await.expect("lists"), [""; 0]);
        assert_eq!(admin.get_parent_id("leaf").await.expect("answers").as_deref(), Some("middle"));
        assert_eq!(admin.get_parent_id("root").await.expect("answers"), None);
        let error = admin.get_parent_id("nobody").await.expect_err("there is none");
        assert!(error.message.contains("not found") && !error.is_retryable(), "{error}");
        assert_eq!(admin.latest_execution_id("nobody").await.expect("answers"), 1);
        assert_eq!(admin.read_history("root").await.expect("reads"), stage.history("root").await);
        stage.start("count", "Count", "1").await;
        stage.has("count", "TimerCreated", 1).await;
        stage.pass(SECOND);
        stage.until("it counts", async || stage.history_of("count", 2).await.len() == 2).await;
        assert_eq!(admin.latest_execution_id("count").await.expect("answers"), 2);
        stage.stop().await;
    }

    async fn c1_17_a_list_is_deleted_as_a_whole_or_not_at_all(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("done", "Echo", "").await.expect("completes");
        stage.start("root", "Parent", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        let store = stage.inner();
        let admin = store.as_management_capability().expect("a store of ours can be managed");
        let delete = async |ids: &[&str], force| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            admin.delete_instances_atomic(&ids, force).await
        };
        assert_eq!(delete(&[], false).await.expect("is nothing"), DeleteInstanceResult::default());
        let running = delete(&["done", "root", "kid"], false).await.expect_err("two of them are alive");
        assert!(running.message.contains("still running") && !running.is_retryable(), "{running}");
        let orphans = delete(&["done", "root"], true).await.expect_err("a child is left out");
        assert!(orphans.message.contains("child") && !orphans.is_retryable(), "{orphans}");
        assert_eq!(stage.client.list_all_instances().await.expect("lists").len(), 3, "nothing was deleted");
        let all = delete(&["done", "root", "kid"], true).await.expect("by force");
        assert_eq!((all.instances_deleted, all.executions_deleted, all.events_deleted), (3, 3, 6));
    }

    async fn c1_11_sessions_are_listed_and_shown(stage) {
        let flow = orchestrations().register("Open", |ctx: OrchestrationContext, _| async move {
            ctx.open_session_with_id("s-1").await?;
            ctx.open_session_with_id("s-2").await?;
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.client.list_sessions(None).await.expect("lists"), []);
        stage.start("a", "Open", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let (first, second) = (SessionKey::owned("a", "s-1"), SessionKey::owned("a", "s-2"));
        let all = stage.client.list_sessions(None).await.expect("lists");
        assert_eq!(all.iter().map(|session| &session.key).collect::<Vec<_>>(), [&first, &second]);
        assert_eq!(stage.client.list_sessions(Some(&first)).await.expect("lists"), all[1..]);
        let shown = stage.client.get_session(&first).await.expect("answers");
        assert_eq!(shown.as_ref(), all.first());
        let unknown = SessionKey::owned("a", "s-3");
        assert_eq!(stage.client.get_session(&unknown).await.expect("answers"), None);
        stage.stop().await;
    }

    async fn c1_11_an_error_of_a_management_call_is_the_store_s(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a").await;
        let error = stage.client.get_execution_info("a", 7).await.expect_err("there is none");
        let ClientError::Provider(error) = error else { panic!("{error:?}") };
        assert!(!error.is_retryable() && error.message.contains("not found"), "{error:?}");
        stage.stop().await;
    }
}
