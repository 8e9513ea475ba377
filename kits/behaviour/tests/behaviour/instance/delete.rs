//! Deleting and pruning (1.17) through a client: nothing alive without force (F12), parents that vanish
//! (F13).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    ActivityContext, ClientError, DeleteInstanceResult, InstanceFilter, OrchestrationContext,
    OrchestrationStatus, PruneOptions, PruneResult,
};
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};
use steadfast_clock::Clock;

const SECOND: Duration = Duration::from_secs(1);

/// What the claims of this file start.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register(
            "Work",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Slow", "").await },
        )
        // Counts down by continuing as new, a second apart, and waits for an event at the end.
        .register("Count", |ctx: OrchestrationContext, input: String| async move {
            let left: u32 = input.parse().map_err(|_| "no number".to_owned())?;
            if left == 0 {
                return Ok(ctx.schedule_wait("go").await);
            }
            ctx.schedule_timer(SECOND).await;
            ctx.continue_as_new((left - 1).to_string()).await
        })
        // The version of its successor is not registered: it stays between two executions.
        .register("Between", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("9.0.0", "later").await
        })
        .register("Parent", |ctx: OrchestrationContext, child: String| async move {
            ctx.schedule_sub_orchestration_with_id("Wait", child, "").await
        })
        // Continues as new and ends, while its child goes on.
        .register("Leaves", |ctx: OrchestrationContext, child: String| async move {
            if child.is_empty() {
                return Ok("gone".to_owned());
            }
            let _child = ctx.schedule_sub_orchestration_with_id("Wait", child, "");
            ctx.schedule_timer(SECOND).await;
            ctx.continue_as_new("").await
        })
}

async fn starts_and_waits(stage: &Stage, instance: &str) {
    stage.start(instance, "Wait", "").await;
    stage.has(instance, "ExternalSubscribed", 1).await;
}

/// Starts a countdown and lets it pass; its last execution waits, or ends when it is told to.
async fn counted(stage: &Stage, instance: &str, from: u64, ends: bool) {
    stage.start(instance, "Count", &from.to_string()).await;
    for execution in 1..=from {
        stage.until(instance, async || stage.history_of(instance, execution).await.len() == 2).await;
        stage.pass(SECOND);
    }
    stage.until(instance, async || stage.history_of(instance, from + 1).await.len() == 2).await;
    if ends {
        stage.client.raise_event(instance, "go", "done").await.expect("raises");
        stage.output(instance).await.expect("completes");
    }
}

async fn is_gone(stage: &Stage, instance: &str) {
    let status = stage.client.get_orchestration_status(instance).await.expect("answers");
    assert_eq!(status, OrchestrationStatus::NotFound, "{instance}");
    assert_eq!(stage.history(instance).await, [], "{instance}");
    assert_eq!(stage.client.list_executions(instance).await.expect("answers"), [0_u64; 0], "{instance}");
}

fn deleted(instances: u64, executions: u64, events: u64, messages: u64) -> DeleteInstanceResult {
    DeleteInstanceResult {
        instances_deleted: instances,
        executions_deleted: executions,
        events_deleted: events,
        queue_messages_deleted: messages,
    }
}

fn pruned(instances: u64, executions: u64, events: u64) -> PruneResult {
    PruneResult { instances_processed: instances, executions_deleted: executions, events_deleted: events }
}

fn only(ids: &[&str]) -> InstanceFilter {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    InstanceFilter { instance_ids: Some(ids), ..InstanceFilter::default() }
}

fn still_running(result: &Result<DeleteInstanceResult, ClientError>, instance: &str) -> bool {
    matches!(result, Err(ClientError::InstanceStillRunning { instance_id }) if instance_id == instance)
}

fn is_child(result: &Result<DeleteInstanceResult, ClientError>, instance: &str) -> bool {
    matches!(result, Err(ClientError::CannotDeleteSubOrchestration { instance_id: id }) if id == instance)
}

on_every_full_store! {
    async fn c1_17_an_ended_instance_is_deleted_and_counted(stage) {
        stage.run(activities(), flows()).await;
        counted(&stage, "a", 1, true).await;
        starts_and_waits(&stage, "b").await;
        assert_eq!(stage.client.delete_instance("a", false).await.expect("deletes"), deleted(1, 2, 4 + 4, 0));
        is_gone(&stage, "a").await;
        assert_eq!(stage.client.list_all_instances().await.expect("lists"), ["b"]);
        let again = stage.client.delete_instance("a", false).await;
        assert!(matches!(&again, Err(ClientError::InstanceNotFound { instance_id }) if instance_id == "a"));
        stage.stop().await;
    }

    async fn c1_17_a_running_instance_is_deleted_only_by_force_with_what_waits_for_it(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a").await;
        stage.stop().await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        let refused = stage.client.delete_instance("a", false).await;
        assert!(still_running(&refused, "a"), "{refused:?}");
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        assert_eq!(stage.client.delete_instance("a", true).await.expect("by force"), deleted(1, 1, 2, 1));
        is_gone(&stage, "a").await;
        stage.nothing_waits().await;
    }

    async fn c1_17_queued_activities_and_timers_go_with_their_instance(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.start("b", "Count", "1").await;
        stage.has("b", "TimerCreated", 1).await;
        stage.stop().await;
        assert_eq!(stage.client.delete_instance("a", true).await.expect("by force"), deleted(1, 1, 2, 1));
        assert_eq!(stage.client.delete_instance("b", true).await.expect("by force"), deleted(1, 1, 2, 1));
        stage.nothing_waits().await;
    }

    async fn c1_17_a_child_cannot_be_deleted_alone_and_goes_with_its_root(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Parent", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        for force in [false, true] {
            let refused = stage.client.delete_instance("kid", force).await;
            assert!(is_child(&refused, "kid"), "{refused:?}");
        }
        let refused = stage.client.delete_instance("root", false).await;
        assert!(still_running(&refused, "root"), "{refused:?}");
        assert_eq!(stage.client.delete_instance("root", true).await.expect("by force"), deleted(2, 2, 4, 0));
        is_gone(&stage, "root").await;
        is_gone(&stage, "kid").await;
        stage.stop().await;
    }

    async fn c1_17_an_ended_child_goes_with_its_ended_root(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Parent", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.client.raise_event("kid", "go", "").await.expect("raises");
        stage.output("root").await.expect("completes");
        let refused = stage.client.delete_instance("kid", false).await;
        assert!(is_child(&refused, "kid"), "{refused:?}");
        assert_eq!(stage.client.delete_instance("root", false).await.expect("deletes"), deleted(2, 2, 8, 0));
        stage.stop().await;
    }

    async fn f12_a_root_with_a_running_child_is_alive(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Leaves", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.pass(SECOND);
        assert_eq!(stage.output("root").await, Ok("gone".to_owned()));
        let refused = stage.client.delete_instance("root", false).await;
        assert!(still_running(&refused, "root"), "{refused:?}");
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("answers");
        assert_eq!(bulk, deleted(0, 0, 0, 0));
        stage.client.raise_event("kid", "go", "done").await.expect("raises");
        assert_eq!(stage.output("kid").await, Ok("done".to_owned()));
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("deletes");
        assert_eq!((bulk.instances_deleted, bulk.executions_deleted), (2, 3));
        stage.stop().await;
    }

    async fn f12_an_instance_between_two_executions_is_alive(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Between", "").await;
        stage.has("a", "OrchestrationContinuedAsNew", 1).await;
        stage.stop().await;
        let refused = stage.client.delete_instance("a", false).await;
        assert!(still_running(&refused, "a"), "{refused:?}");
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("answers");
        assert_eq!(bulk, deleted(0, 0, 0, 0));
        // Its successor is still on its way.
        let next = flows()
            .register_versioned("Between", "9.0.0", |_: OrchestrationContext, input| async { Ok(input) });
        stage.run(activities(), next).await;
        stage.pass(Duration::from_secs(60));
        assert_eq!(stage.output("a").await, Ok("later".to_owned()));
        stage.stop().await;
    }

    async fn f12_by_force_an_instance_between_two_executions_goes_with_its_pending_start(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Between", "").await;
        stage.has("a", "OrchestrationContinuedAsNew", 1).await;
        stage.stop().await;
        let forced = stage.client.delete_instance("a", true).await.expect("by force");
        assert_eq!(forced, deleted(1, 1, 2, 1));
        stage.nothing_waits().await;
        is_gone(&stage, "a").await;
    }

    async fn c1_17_a_turn_that_was_under_way_does_not_bring_a_deleted_instance_back(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a").await;
        let commits = stage.faults.calls("commit_turn");
        stage.faults.refuse("commit_turn", 1, ProviderError::retryable("commit_turn", "busy"));
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.until("a commit fails", async || stage.faults.calls("commit_turn") > commits).await;
        stage.client.delete_instance("a", true).await.expect("by force");
        stage.pass(SECOND);
        stage.until("it is tried again", async || stage.faults.calls("commit_turn") > commits + 1).await;
        stage.ends_after("b", "Echo", "").await.expect("the runtime goes on");
        is_gone(&stage, "a").await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_17_an_activity_that_was_under_way_does_not_bring_a_deleted_instance_back(stage) {
        let (begun, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
        let (flag, wait) = (Arc::clone(&begun), Arc::clone(&may_end));
        let slow = activities().register("Slow", move |_: ActivityContext, _| {
            let (flag, wait) = (Arc::clone(&flag), Arc::clone(&wait));
            async move {
                flag.store(true, Ordering::SeqCst);
                wait.notified().await;
                Ok("late".to_owned())
            }
        });
        stage.run(slow, flows()).await;
        stage.start("a", "Work", "").await;
        stage.until("the activity runs", async || begun.load(Ordering::SeqCst)).await;
        stage.client.delete_instance("a", true).await.expect("by force");
        let outcomes = stage.faults.calls("finish_work");
        may_end.notify_one();
        stage.until("it is handed back", async || stage.faults.calls("finish_work") > outcomes).await;
        stage.ends_after("b", "Echo", "").await.expect("the runtime goes on");
        is_gone(&stage, "a").await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_17_bulk_deletion_takes_ended_roots_that_the_filter_names(stage) {
        stage.run(activities(), flows()).await;
        for instance in ["a", "b", "c"] {
            stage.ends_after(instance, "Echo", "").await.expect("completes");
        }
        starts_and_waits(&stage, "live").await;
        let delete = |filter| stage.client.delete_instance_bulk(filter);
        assert_eq!(delete(only(&[])).await.expect("answers"), deleted(0, 0, 0, 0));
        assert_eq!(delete(only(&["live", "nobody"])).await.expect("answers"), deleted(0, 0, 0, 0));
        assert_eq!(delete(only(&["a", "live"])).await.expect("deletes"), deleted(1, 1, 2, 0));
        let one = InstanceFilter { limit: Some(1), ..InstanceFilter::default() };
        assert_eq!(delete(one).await.expect("deletes"), deleted(1, 1, 2, 0));
        assert_eq!(delete(InstanceFilter::default()).await.expect("deletes"), deleted(1, 1, 2, 0));
        assert_eq!(stage.client.list_all_instances().await.expect("lists"), ["live"]);
        stage.stop().await;
    }

    async fn c1_17_bulk_deletion_takes_what_ended_strictly_before_a_time(stage) {
        let begin = stage.clock.now_ms();
        stage.run(activities(), flows()).await;
        stage.ends_after("early", "Echo", "").await.expect("completes");
        stage.pass(SECOND);
        stage.ends_after("late", "Echo", "").await.expect("completes");
        let before = |time| InstanceFilter { completed_before: Some(time), ..InstanceFilter::default() };
        let delete = |filter| stage.client.delete_instance_bulk(filter);
        assert_eq!(delete(before(begin)).await.expect("answers"), deleted(0, 0, 0, 0));
        assert_eq!(delete(before(begin + 1_000)).await.expect("deletes"), deleted(1, 1, 2, 0));
        assert_eq!(stage.client.list_all_instances().await.expect("lists"), ["late"]);
        let both = InstanceFilter { completed_before: Some(begin + 2_000), ..only(&["early"]) };
        assert_eq!(delete(both).await.expect("answers"), deleted(0, 0, 0, 0), "filters must all hold");
        stage.stop().await;
    }

    async fn c1_17_bulk_deletion_takes_children_with_their_roots_and_never_alone(stage) {
        stage.run(activities(), flows()).await;
        stage.start("root", "Parent", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.client.raise_event("kid", "go", "").await.expect("raises");
        stage.output("root").await.expect("completes");
        let delete = |filter| stage.client.delete_instance_bulk(filter);
        assert_eq!(delete(only(&["kid"])).await.expect("answers"), deleted(0, 0, 0, 0));
        assert_eq!(delete(only(&["root"])).await.expect("deletes"), deleted(2, 2, 8, 0));
        stage.stop().await;
    }

    async fn f13_a_child_whose_parent_was_deleted_before_its_first_turn_goes_on(stage) {
        // The parent's runtime does not know the child's code, so the child has not had a turn.
        let parent =
            orchestrations().register("Parent", |ctx: OrchestrationContext, child: String| async move {
                ctx.schedule_sub_orchestration_with_id("Wait", child, "").await
            });
        stage.run(activities(), parent).await;
        stage.start("root", "Parent", "kid").await;
        stage.has("root", "SubOrchestrationScheduled", 1).await;
        stage.stop().await;
        stage.client.delete_instance("root", true).await.expect("by force");
        stage.run(activities(), flows()).await;
        stage.pass(Duration::from_secs(60));
        stage.has("kid", "ExternalSubscribed", 1).await;
        let refused = stage.client.delete_instance("kid", false).await;
        assert!(still_running(&refused, "kid"), "it is a root of its own now: {refused:?}");
        stage.client.raise_event("kid", "go", "done").await.expect("raises");
        assert_eq!(stage.output("kid").await, Ok("done".to_owned()));
        let observer = stage.observer();
        stage
            .until("the news for the parent are settled", async || {
                observer.get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        is_gone(&stage, "root").await;
        assert_eq!(stage.client.delete_instance("kid", false).await.expect("deletes"), deleted(1, 1, 4, 0));
        stage.stop().await;
    }

    async fn c1_17_pruning_removes_old_executions_and_keeps_the_current_one(stage) {
        stage.run(activities(), flows()).await;
        for (instance, keep_last, left) in [
            ("a", None, vec![4]),
            ("b", Some(0), vec![4]),
            ("c", Some(1), vec![4]),
            ("d", Some(3), vec![2, 3, 4]),
        ] {
            counted(&stage, instance, 3, true).await;
            let options = PruneOptions { keep_last, ..PruneOptions::default() };
            let gone = 4 - left.len() as u64;
            let result = stage.client.prune_executions(instance, options).await.expect("prunes");
            assert_eq!(result, pruned(1, gone, 4 * gone), "{instance}");
            assert_eq!(stage.client.list_executions(instance).await.expect("lists"), left, "{instance}");
            assert_eq!(stage.output(instance).await, Ok("done".to_owned()));
        }
        stage.stop().await;
    }

    async fn c1_17_pruning_by_time_is_strict_and_both_conditions_must_hold(stage) {
        let begin = stage.clock.now_ms();
        stage.run(activities(), flows()).await;
        // Executions 1 to 3 end one, two and three seconds after the beginning; 4 waits.
        counted(&stage, "a", 3, false).await;
        let prune = |keep_last, completed_before| {
            stage.client.prune_executions("a", PruneOptions { keep_last, completed_before })
        };
        assert_eq!(prune(None, Some(begin + 1_000)).await.expect("answers"), pruned(1, 0, 0));
        assert_eq!(prune(Some(3), Some(begin + 9_000)).await.expect("prunes"), pruned(1, 1, 4));
        assert_eq!(stage.client.list_executions("a").await.expect("lists"), [2, 3, 4]);
        assert_eq!(prune(None, Some(begin + 3_000)).await.expect("prunes"), pruned(1, 1, 4));
        assert_eq!(stage.client.list_executions("a").await.expect("lists"), [3, 4]);
        stage.client.raise_event("a", "go", "done").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("done".to_owned()), "what runs is left alone");
        stage.stop().await;
    }

    async fn c1_17_bulk_pruning_looks_at_instances_of_any_status(stage) {
        stage.run(activities(), flows()).await;
        counted(&stage, "done", 1, true).await;
        counted(&stage, "live", 2, false).await;
        counted(&stage, "other", 1, false).await;
        let prune = |filter| stage.client.prune_executions_bulk(filter, PruneOptions::default());
        assert_eq!(prune(only(&[])).await.expect("answers"), pruned(0, 0, 0));
        assert_eq!(prune(only(&["done", "live"])).await.expect("prunes"), pruned(2, 3, 12));
        let executions = |instance| stage.client.list_executions(instance);
        assert_eq!(executions("live").await.expect("lists"), [3]);
        assert_eq!(executions("other").await.expect("lists"), [1, 2]);
        assert_eq!(prune(InstanceFilter::default()).await.expect("prunes"), pruned(3, 1, 4));
        let one = InstanceFilter { limit: Some(1), ..InstanceFilter::default() };
        assert_eq!(prune(one).await.expect("answers"), pruned(1, 0, 0));
        stage.stop().await;
    }
}
