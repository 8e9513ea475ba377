//! A store that stumbles while an instance ends whose history cannot be read: nobody who waits is forgotten
//! (G88), and what has ended does not end again (I9).

use steadfast::providers::WorkItem;
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{Stage, StoreKind, activities, on_every_full_store, on_every_store};
use steadfast_memory::Damage;

use super::bench::{down, flows};
use crate::workbench::{HandlerResult, SECOND, pass_calmly};

/// Asks in its second execution for a `Wait`, and returns what that returns.
async fn rounds(ctx: OrchestrationContext, round: String) -> HandlerResult {
    match round.as_str() {
        "second" => ctx.schedule_sub_orchestration("Wait", "").await,
        _ => ctx.continue_as_new("second").await,
    }
}

/// `Mother` has two children and waits for the first, `Rounds` asks for one in its second execution, `Heard`
/// returns its input.
fn family() -> OrchestrationRegistryBuilder {
    flows()
        .register("Mother", |ctx: OrchestrationContext, _| async move {
            let [one, _two] = [(); 2].map(|()| ctx.schedule_sub_orchestration("Wait", ""));
            one.await
        })
        .register("Rounds", rounds)
        .register("Heard", |_: OrchestrationContext, input: String| async move { Ok(input) })
}

/// One slot, and a turn is tried twice.
fn impatient(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, max_attempts: 1, ..stage.options() }
}

/// Overwrites the first event of an instance, and sends the instance a message.
async fn damage(stage: &Stage, instance: &str) {
    let event = Damage::Event { instance, execution_id: 1, event_id: 1 };
    assert_eq!(stage.damage(event, "{rubbish").await, 1, "there is an event to damage");
    stage.observer().raise_event(instance, "go", "late").await.expect("raises");
}

/// Leaves a `Mother` with two children that wait, and no runtime.
async fn mother_waits(stage: &Stage) {
    stage.run(activities(), family()).await;
    stage.start("a", "Mother", "").await;
    for kid in ["a::sub::2", "a::sub::3"] {
        stage.has(kid, "ExternalSubscribed", 1).await;
    }
    stage.stop().await;
}

/// The call that tells how an instance stands. A wrapper of the required methods reads the history.
fn look(stage: &Stage) -> &'static str {
    match stage.kind {
        StoreKind::Memory | StoreKind::Sqlite | StoreKind::Postgres => "state",
        StoreKind::Wrapped => "read_history",
    }
}

on_every_store! {
    async fn g88_the_parent_of_an_unreadable_child_is_told_although_the_store_stumbles(stage) {
        mother_waits(&stage).await;
        damage(&stage, "a::sub::2").await;
        stage.faults.refuse("state", 2, down());
        stage.faults.refuse("read_history", 2, down());
        stage.run_with(activities(), family(), impatient(&stage)).await;
        let told = async || stage.kinds("a").await.contains(&"SubOrchestrationFailed".to_owned());
        stage
            .until("the parent is told", async || {
                stage.pass(SECOND / 4);
                stage.settle().await;
                told().await
            })
            .await;
        let details = stage.ends("a").await.expect_err("as its child");
        // Trouble of the store does not count.
        let begin = "poison: orchestration a::sub::2 history deserialization failed after 2 attempts (max 1)";
        assert!(details.display_message().starts_with(begin), "{details:?}");
        // The end of the parent cancels the child, which has ended: a turn drops that message.
        let is_empty = async || {
            stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
        };
        stage.until("the last message is taken", is_empty).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g88_a_child_of_an_older_engine_answers_its_parent_although_the_store_stumbles(stage) {
        stage.run(activities(), family()).await;
        stage.start("a", "Rounds", "").await;
        stage.has("a::sub::2_2", "ExternalSubscribed", 1).await;
        stage.settle().await;
        let start = WorkItem::StartOrchestration {
            instance: "old".to_owned(),
            orchestration: "Heard".to_owned(),
            input: "heard".to_owned(),
            version: None,
            parent_instance: Some("a".to_owned()),
            parent_id: Some(2),
            parent_execution_id: None,
            execution_id: 1,
        };
        stage.faults.refuse(look(&stage), 1, down());
        stage.inner().enqueue_for_orchestrator(start, None).await.expect("is sent");
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("heard".to_owned()));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn g88_the_children_of_an_unreadable_parent_are_cancelled_although_the_store_stumbles(stage) {
        mother_waits(&stage).await;
        damage(&stage, "a").await;
        stage.faults.refuse("instances", 1, down());
        stage.faults.refuse("read_history", 1, down());
        stage.run_with(activities(), family(), impatient(&stage)).await;
        for kid in ["a::sub::2", "a::sub::3"] {
            let details = stage.ends_as_time_passes(kid, SECOND / 4).await.expect_err("is cancelled");
            assert_eq!(details.display_message(), "canceled: parent failed");
        }
        stage.stop().await;
    }

    async fn i9_an_instance_ends_once_although_the_store_stumbles(stage) {
        stage.run(activities(), family()).await;
        assert_eq!(stage.ends_after("a", "Heard", "fine").await, Ok("fine".to_owned()));
        stage.stop().await;
        damage(&stage, "a").await;
        stage.faults.refuse("state", 2, down());
        let before = stage.faults.calls("state");
        stage.run_with(activities(), family(), impatient(&stage)).await;
        pass_calmly(&stage, 30 * SECOND, SECOND / 4).await;
        let status = stage.observer().get_orchestration_status("a").await.expect("answers");
        let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
        assert_eq!(output, "fine");
        assert_eq!(stage.faults.calls("state"), before + 3, "the store is asked until it answers");
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
