//! Ending an instance without running its code: `terminate_instance`, beside the compatible `cancel_instance`
//! (1.11). Every way to an end closes what is open and tells the parent (F6, I9).

use std::time::Duration;

use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    ActivityContext, AppErrorKind, ErrorDetails, EventKind, OrchestrationContext, OrchestrationStatus,
};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

/// `Wait` waits for an event, `Busy` for an activity, a child and a message, `Parent` for the child `kid`.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Busy", |ctx: OrchestrationContext, _| async move {
            let activity = ctx.schedule_activity("Endless", "");
            let child = ctx.schedule_sub_orchestration_with_id("Wait", "kid", "");
            let ends = ctx.join3(activity, child, ctx.dequeue_event("mail")).await;
            Ok(format!("{ends:?}"))
        })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            let result = ctx.schedule_sub_orchestration_with_id("Wait", "kid", "").await;
            Ok(format!("{result:?}"))
        })
        .register("Between", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("9.0.0", "later").await
        })
}

fn terminated(reason: &str) -> ErrorDetails {
    let kind = AppErrorKind::Terminated { reason: reason.to_owned() };
    ErrorDetails::Application { kind, message: String::new(), retryable: false }
}

async fn terminate(stage: &Stage, instance: &str) {
    stage.client.terminate_instance(instance, "its code is gone").await.expect("asks for its end");
}

/// Waits until every message was taken.
async fn settled(stage: &Stage) {
    let observer = stage.observer();
    let empty = async || observer.get_queue_depths().await.expect("counts").orchestrator_queue == 0;
    stage.until("all messages are taken", empty).await;
}

on_every_store! {
    async fn c1_11_an_instance_whose_code_is_gone_can_be_terminated(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), orchestrations()).await;
        terminate(&stage, "a").await;
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(stage.output("a").await, Err("terminated: its code is gone".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_11_an_instance_that_is_warm_can_be_terminated(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        terminate(&stage, "a").await;
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        stage.client.raise_event("a", "go", "too late").await.expect("raises");
        settled(&stage).await;
        let last = stage.kinds("a").await.pop();
        assert_eq!(last.as_deref(), Some("OrchestrationFailed"), "nothing follows the end");
        stage.stop().await;
    }

    async fn f6_what_is_terminated_leaves_nothing_open(stage) {
        let endless = activities().register("Endless", |ctx: ActivityContext, _| async move {
            ctx.cancelled().await;
            Err("cancelled".to_owned())
        });
        stage.run(endless, flows()).await;
        stage.start("a", "Busy", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        terminate(&stage, "a").await;
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        assert_eq!(stage.output("kid").await, Err("canceled: parent failed".to_owned()));
        let history = stage.history("a").await;
        let reason = "orchestration_terminal_failed".to_owned();
        assert_eq!(
            history.last().map(|event| (&event.kind, event.source_event_id)),
            Some((&EventKind::ActivityCancelRequested { reason }, Some(2)))
        );
        settled(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f6_the_parent_of_a_terminated_child_is_told(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Parent", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        terminate(&stage, "kid").await;
        assert_eq!(stage.output("a").await, Ok(r#"Err("terminated: its code is gone")"#.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_11_an_instance_that_never_ran_can_be_terminated(stage) {
        stage.start("a", "Unknown", "input").await;
        terminate(&stage, "a").await;
        stage.run(activities(), orchestrations()).await;
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        let EventKind::OrchestrationStarted { name, input, .. } = &stage.history("a").await[0].kind else {
            panic!("it started")
        };
        assert_eq!((name.as_str(), input.as_str()), ("Unknown", "input"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_11_an_instance_between_two_executions_can_be_terminated(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Between", "").await;
        stage.has("a", "OrchestrationContinuedAsNew", 1).await;
        terminate(&stage, "a").await;
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        let history = stage.history("a").await;
        assert_eq!(history.first().map(|event| event.execution_id), Some(2));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        // The start that was held back finds that all is over.
        stage.pass(Duration::from_secs(60));
        settled(&stage).await;
        assert_eq!(stage.history("a").await, history);
        stage.stop().await;
    }

    async fn c1_11_an_instance_whose_start_is_held_back_is_terminated_when_it_is_due(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Unknown", "").await;
        let observer = stage.observer();
        let held_back = async || {
            stage.faults.abandoned() > 0
                && observer.get_queue_depths().await.expect("counts").orchestrator_queue == 1
        };
        stage.until("its start is held back", held_back).await;
        stage.pass(Duration::from_millis(350));
        terminate(&stage, "a").await;
        stage.pass(Duration::from_millis(650));
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_11_terminating_unknown_and_ended_instances_is_no_error_and_changes_nothing(stage) {
        stage.run(activities(), flows()).await;
        stage.start("done", "Echo", "output").await;
        assert_eq!(stage.output("done").await, Ok("output".to_owned()));
        for instance in ["nobody", "done"] {
            terminate(&stage, instance).await;
        }
        settled(&stage).await;
        assert_eq!(stage.output("done").await, Ok("output".to_owned()));
        let nobody = stage.client.get_orchestration_status("nobody").await.expect("answers");
        assert_eq!(nobody, OrchestrationStatus::NotFound);
        let error = stage.client.terminate_instance("", "why").await.expect_err("is no id");
        assert_eq!(error.to_string(), "Invalid input: instance id is empty");
        stage.stop().await;
    }
}
