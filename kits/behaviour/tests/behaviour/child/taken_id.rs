//! Ids that two want: a parent that asks for a child whose id is taken learns it (2.7), whatever becomes of
//! the one that has it (I7).

use std::time::Duration;

use steadfast::providers::{ProviderError, WorkItem};
use steadfast::{
    AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistryBuilder,
    RuntimeOptions,
};
use steadfast_behaviour::{Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_memory::Damage;

use crate::workbench::{HandlerResult, SECOND};

/// Starts the child that its input names, under the id `kid`, and says how that went.
async fn has_kid(ctx: OrchestrationContext, child: String) -> HandlerResult {
    match ctx.schedule_sub_orchestration_with_id(child, "kid", "").await {
        Ok(output) => Ok(output),
        Err(error) => Ok(format!("caught: {error}")),
    }
}

async fn tells_id(ctx: OrchestrationContext, _: String) -> HandlerResult {
    Ok(ctx.instance_id())
}

/// A parent called `Parent`, and children that wait (`Waits`) or answer at once (`Answers`).
fn family() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Parent", has_kid)
        .register("Waits", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Answers", |_: OrchestrationContext, _| async { Ok("answered".to_owned()) })
}

fn taken(message: &str) -> String {
    format!("caught: sub-orchestration instance id 'kid' {message}")
}

/// The failure of a child as its parent's history has it.
async fn child_failure(stage: &Stage, instance: &str) -> Option<(Option<u64>, ErrorDetails)> {
    let failure = |event: Event| match event.kind {
        EventKind::SubOrchestrationFailed { details } => Some((event.source_event_id, details)),
        _ => None,
    };
    stage.history(instance).await.into_iter().find_map(failure)
}

/// The start of instance `kid` as the child that event 2 of `parent` asked for.
fn start_of_kid(parent: &str, parent_execution_id: Option<u64>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "kid".to_owned(),
        orchestration: "Waits".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: Some(parent.to_owned()),
        parent_id: Some(2),
        parent_execution_id,
        execution_id: 1,
    }
}

async fn send(stage: &Stage, message: WorkItem) {
    stage.inner().enqueue_for_orchestrator(message, None).await.expect("enqueues");
}

async fn raise(stage: &Stage, instance: &str, data: &str) {
    stage.client.raise_event(instance, "go", data).await.expect("raises");
}

/// Waits until a turn has been abandoned, and its one message waits to be tried again.
async fn is_abandoned(stage: &Stage, before: u64) {
    stage
        .until("the turn is given back", async || {
            // The call is counted when it begins; its messages are free when it has ended.
            let depths = stage.observer().get_queue_depths().await.expect("counts");
            stage.faults.abandoned() > before && depths.orchestrator_queue == 1
        })
        .await;
}

async fn queue_is_empty(stage: &Stage) {
    let empty = async || stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0;
    stage.until("no message waits", empty).await;
}

/// Overwrites an event of `kid`, so that its history cannot be read.
async fn damage(stage: &Stage) {
    let event = Damage::Event { instance: "kid", execution_id: 1, event_id: 1 };
    assert_eq!(stage.damage(event, "{rubbish").await, 1, "there is an event to damage");
}

/// Leaves `kid` waiting with a history that cannot be read, and a runtime that tries a turn `max_attempts`
/// times.
async fn unreadable_kid(stage: &Stage, max_attempts: u32) {
    stage.run(activities(), family()).await;
    stage.start("kid", "Waits", "").await;
    stage.has("kid", "ExternalSubscribed", 1).await;
    stage.stop().await;
    damage(stage).await;
    let options = RuntimeOptions { max_attempts, ..stage.options() };
    stage.run_with(activities(), family(), options).await;
}

/// Terminates `kid`, and lets time pass so that the termination and a start that waits are for one turn.
async fn terminated_together(stage: &Stage) {
    stage.observer().terminate_instance("kid", "nobody can read it").await.expect("is sent");
    stage.pass(2 * SECOND);
}

on_every_store! {
    async fn r2_7_an_id_that_a_live_instance_has_is_refused(stage) {
        stage.run(activities(), family()).await;
        stage.start("kid", "Waits", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        assert_eq!(stage.ends_after("a", "Parent", "Waits").await, Ok(taken("already exists")));
        let message = "sub-orchestration instance id 'kid' already exists".to_owned();
        let kind = AppErrorKind::OrchestrationFailed;
        let details = ErrorDetails::Application { kind, message, retryable: false };
        assert_eq!(child_failure(&stage, "a").await, Some((Some(2), details)));
        // The one that has the id goes on as if nothing had happened.
        assert_eq!(stage.kinds("kid").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        raise(&stage, "kid", "mine").await;
        assert_eq!(stage.output("kid").await, Ok("mine".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_an_id_that_an_ended_instance_has_is_refused(stage) {
        stage.run(activities(), family()).await;
        assert_eq!(stage.ends_after("kid", "Answers", "").await, Ok("answered".to_owned()));
        assert_eq!(
            stage.ends_after("a", "Parent", "Waits").await,
            Ok(taken("already exists and is terminal"))
        );
        assert_eq!(stage.kinds("kid").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_an_id_that_an_instance_between_two_executions_has_is_refused_as_a_live_one(stage) {
        let next = |ctx: OrchestrationContext, _: String| async move {
            ctx.continue_as_new_versioned("2.0.0", "").await
        };
        let first = || family().register_versioned("Target", "1.0.0", next);
        stage.run(activities(), first()).await;
        stage.start("kid", "Target", "").await;
        stage.has("kid", "OrchestrationContinuedAsNew", 1).await;
        // There is no code for the next execution of the target yet, so the start meets it in between.
        stage.start("a", "Parent", "Waits").await;
        stage.has("a", "SubOrchestrationScheduled", 1).await;
        stage.stop().await;
        stage.pass(Duration::from_secs(60));
        stage.run(activities(), first().register_versioned("Target", "2.0.0", tells_id)).await;
        assert_eq!(stage.ends("a").await, Ok(taken("already exists")));
        assert_eq!(stage.ends("kid").await, Ok("kid".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_of_two_parents_that_ask_for_one_id_at_once_one_is_refused(stage) {
        let parents = || orchestrations().register("Parent", has_kid);
        stage.run(activities(), parents()).await;
        for parent in ["a", "b"] {
            stage.start(parent, "Parent", "Answers").await;
            stage.has(parent, "SubOrchestrationScheduled", 1).await;
        }
        // Nobody had code for the child, so both starts wait, and come in one batch.
        stage.stop().await;
        stage.pass(Duration::from_secs(60));
        stage.run(activities(), family()).await;
        let mut ends = [stage.output("a").await, stage.output("b").await];
        ends.sort();
        assert_eq!(ends, [Ok("answered".to_owned()), Ok(taken("already exists"))]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_the_start_of_the_own_parent_may_come_twice(stage) {
        stage.run(activities(), family()).await;
        stage.start("a", "Parent", "Waits").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        send(&stage, start_of_kid("a", Some(1))).await;
        queue_is_empty(&stage).await;
        raise(&stage, "kid", "once").await;
        assert_eq!(stage.output("a").await, Ok("once".to_owned()));
        assert_eq!(child_failure(&stage, "a").await, None);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_start_that_does_not_say_which_execution_asked_is_not_the_own_parents(stage) {
        stage.run(activities(), family()).await;
        stage.start("a", "Parent", "Waits").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        send(&stage, start_of_kid("a", None)).await;
        assert_eq!(stage.output("a").await, Ok(taken("already exists")));
        stage.stop().await;
    }

    async fn r2_7_a_repeated_start_of_the_own_parent_after_the_answer_changes_nothing(stage) {
        let flow = family().register("Goes on", |ctx: OrchestrationContext, _| async move {
            let answer = has_kid(ctx.clone(), "Answers".to_owned()).await?;
            Ok(format!("{answer} {}", ctx.schedule_wait("go").await))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Goes on", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        send(&stage, start_of_kid("a", Some(1))).await;
        queue_is_empty(&stage).await;
        raise(&stage, "a", "on").await;
        assert_eq!(stage.output("a").await, Ok("answered on".to_owned()));
        assert_eq!(child_failure(&stage, "a").await, None);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_refused_parent_is_told_also_when_the_turn_of_the_target_cannot_be_committed(stage) {
        let faults = stage.faults.clone();
        let flow = move || {
            let faults = faults.clone();
            family()
                .register("Parent of another", |ctx: OrchestrationContext, _| async move {
                    ctx.schedule_sub_orchestration_with_id("Waits", "another", "").await
                })
                .register("Unlucky", move |ctx: OrchestrationContext, _| {
                    let faults = faults.clone();
                    async move {
                        let data = ctx.schedule_wait("go").await;
                        faults.refuse(
                            "commit_turn",
                            1,
                            ProviderError::permanent("commit_turn", "the disk is on fire"),
                        );
                        Ok(data)
                    }
                })
        };
        stage.run(activities(), flow()).await;
        stage.start("kid", "Unlucky", "").await;
        stage.start("a", "Parent of another", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.has("another", "ExternalSubscribed", 1).await;
        stage.stop().await;
        raise(&stage, "kid", "").await;
        send(&stage, start_of_kid("a", Some(1))).await;
        stage.run(activities(), flow()).await;
        let text = "sub-orchestration instance id 'kid' already exists";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        assert!(matches!(stage.ends("kid").await, Err(ErrorDetails::Infrastructure { .. })));
        stage.stop().await;
    }

    async fn i7_a_refused_parent_is_told_also_when_the_target_is_poison(stage) {
        stage.run(activities(), family()).await;
        stage.start("kid", "Waits", "").await;
        stage.start("a", "Parent", "Nobody has it").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        assert_eq!(stage.output("a").await, Ok(taken("already exists")));
        stage.start("b", "Parent", "Nobody has it").await;
        assert_eq!(stage.output("b").await, Ok(taken("already exists")));
        stage.stop().await;
        let parents = orchestrations().register("Parent", has_kid);
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(activities(), parents, options).await;
        let before = stage.faults.abandoned();
        stage.start("c", "Parent", "Nobody has it").await;
        is_abandoned(&stage, before).await;
        stage.pass(Duration::from_secs(1));
        assert_eq!(stage.ends("c").await, Ok(taken("already exists")));
        assert!(matches!(stage.ends("kid").await, Err(ErrorDetails::Poison { .. })));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_refused_parent_is_told_also_when_the_target_cannot_be_read(stage) {
        unreadable_kid(&stage, 1).await;
        stage.start("a", "Parent", "Waits").await;
        let told = stage.ends_as_time_passes("a", SECOND / 4).await;
        assert_eq!(told, Ok(taken("already exists")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_refused_parent_is_told_also_when_an_unreadable_target_is_terminated(stage) {
        unreadable_kid(&stage, 10).await;
        let before = stage.faults.abandoned();
        stage.start("a", "Parent", "Waits").await;
        is_abandoned(&stage, before).await;
        stage.stop().await;
        terminated_together(&stage).await;
        stage.run(activities(), family()).await;
        assert_eq!(stage.ends("a").await, Ok(taken("already exists")));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

/// Makes a child that outlives its parent: `kid` waits, and the parent `a` that asked for it was deleted.
async fn outlives_its_parent(stage: &Stage) {
    stage.run(activities(), orchestrations().register("Parent", has_kid)).await;
    stage.start("a", "Parent", "Waits").await;
    stage.has("a", "SubOrchestrationScheduled", 1).await;
    stage.stop().await;
    stage.observer().delete_instance("a", true).await.expect("deletes");
    stage.pass(Duration::from_secs(60));
    stage.run(activities(), family()).await;
    stage.has("kid", "ExternalSubscribed", 1).await;
}

on_every_full_store! {
    // Through the required methods alone nothing tells whether an instance has ended that cannot be read.
    async fn i7_a_refused_parent_is_told_also_when_the_target_has_ended_and_cannot_be_read(stage) {
        stage.run(activities(), family()).await;
        assert_eq!(stage.ends_after("kid", "Answers", "").await, Ok("answered".to_owned()));
        stage.stop().await;
        damage(&stage).await;
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(activities(), family(), options).await;
        stage.start("a", "Parent", "Waits").await;
        let told = stage.ends_as_time_passes("a", SECOND / 4).await;
        assert_eq!(told, Ok(taken("already exists and is terminal")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_each_call_of_the_own_parent_is_answered_when_the_child_cannot_be_read(stage) {
        let twice = |ctx: OrchestrationContext, _: String| async move {
            let first = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            ctx.schedule_wait("again").await;
            let second = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            let ends = ctx.join(vec![first, second]).await;
            Ok(ends.iter().filter(|end| end.is_err()).count().to_string())
        };
        let flow = || family().register("Twice", twice);
        stage.run(activities(), flow()).await;
        stage.start("a", "Twice", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        damage(&stage).await;
        stage.client.raise_event("a", "again", "").await.expect("raises");
        let before = stage.faults.abandoned();
        stage.run(activities(), flow()).await;
        is_abandoned(&stage, before).await;
        stage.stop().await;
        terminated_together(&stage).await;
        stage.run(activities(), flow()).await;
        assert_eq!(stage.ends("a").await, Ok("2".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_new_parent_is_told_that_the_child_of_a_former_one_has_the_id(stage) {
        outlives_its_parent(&stage).await;
        stage.start("a", "Parent", "Waits").await;
        assert_eq!(stage.output("a").await, Ok(taken("already exists")));
        stage.client.raise_event("kid", "go", "on").await.expect("raises");
        assert_eq!(stage.output("kid").await, Ok("on".to_owned()), "the child goes on");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g7_a_child_that_ends_as_a_new_parent_asks_for_its_id_does_not_answer_it(stage) {
        outlives_its_parent(&stage).await;
        stage.stop().await;
        // Without the code of the child: the start and the event wait for one turn.
        stage.run(activities(), orchestrations().register("Parent", has_kid)).await;
        stage.start("a", "Parent", "Waits").await;
        stage.has("a", "SubOrchestrationScheduled", 1).await;
        stage.client.raise_event("kid", "go", "on").await.expect("raises");
        stage.stop().await;
        stage.pass(Duration::from_secs(60));
        stage.run(activities(), family()).await;
        assert_eq!(stage.output("kid").await, Ok("on".to_owned()));
        assert_eq!(stage.output("a").await, Ok(taken("already exists")), "the result is not for it");
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
