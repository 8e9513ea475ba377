//! Children: ids, versions, results and failures (2.7, 2.3), F2, F6, F13, F16. Ids that are taken:
//! `collisions.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::limits::MAX_KV_VALUE_BYTES;
use steadfast::{
    AppErrorKind, ClientError, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationDescriptor,
    OrchestrationRegistryBuilder, OrchestrationStatus, PoisonMessageType, RuntimeOptions,
};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

/// Starts the child that its input names, under the id `kid`, and says how that went.
async fn has_kid(ctx: OrchestrationContext, child: String) -> HandlerResult {
    match ctx.schedule_sub_orchestration_with_id(child, "kid", "").await {
        Ok(output) => Ok(output),
        Err(error) => Ok(format!("caught: {error}")),
    }
}

async fn waits(ctx: OrchestrationContext, _: String) -> HandlerResult {
    Ok(ctx.schedule_wait("go").await)
}

async fn tells_id(ctx: OrchestrationContext, _: String) -> HandlerResult {
    Ok(ctx.instance_id())
}

/// A parent called `Parent`, and children that wait (`Waits`) or answer at once (`Answers`).
fn family() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Parent", has_kid)
        .register("Waits", waits)
        .register("Answers", |_: OrchestrationContext, _| async { Ok("answered".to_owned()) })
}

fn app(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.to_owned(), retryable: false }
}

/// The failure of a child as its parent's history has it.
async fn child_failure(stage: &Stage, instance: &str) -> Option<(Option<u64>, ErrorDetails)> {
    let failure = |event: Event| match event.kind {
        EventKind::SubOrchestrationFailed { details } => Some((event.source_event_id, details)),
        _ => None,
    };
    stage.history(instance).await.into_iter().find_map(failure)
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

on_every_store! {
    async fn r2_7_a_child_is_named_after_its_parent_and_the_event_that_asked_for_it(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                let first = ctx.schedule_sub_orchestration("Child", "x").await?;
                Ok(format!("{first} {}", ctx.schedule_sub_orchestration("Child", "y").await?))
            })
            .register("Child", tells_id);
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok("a::sub::2 a::sub::4".to_owned()));
        let events = stage.history("a").await;
        let asked = |suffix: &str, input: &str| EventKind::SubOrchestrationScheduled {
            name: "Child".to_owned(),
            instance: suffix.to_owned(),
            input: input.to_owned(),
        };
        assert_eq!(events[1].kind, asked("sub::2", "x"));
        assert_eq!(events[2].kind, EventKind::SubOrchestrationCompleted { result: "a::sub::2".to_owned() });
        assert_eq!(events[2].source_event_id, Some(2));
        assert_eq!(events[3].kind, asked("sub::4", "y"));
        let tree = stage.observer().get_instance_tree("a").await.expect("is there");
        assert_eq!((tree.size(), tree.root_id.as_str()), (3, "a"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_child_knows_its_parent(stage) {
        let runtime = stage.run(activities(), family()).await;
        stage.start("a", "Parent", "Waits").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        let descriptor = runtime.get_orchestration_descriptor("kid").await;
        let expected = OrchestrationDescriptor {
            name: "Waits".to_owned(),
            version: "1.0.0".to_owned(),
            parent_instance: Some("a".to_owned()),
            parent_id: Some(2),
        };
        assert_eq!(descriptor, Some(expected));
        let started = stage.history("kid").await.remove(0).kind;
        assert!(
            matches!(started, EventKind::OrchestrationStarted { parent_execution_id: Some(1), .. }),
            "{started:?}"
        );
        let info = stage.observer().get_instance_info("kid").await.expect("is there");
        assert_eq!(info.parent_instance_id.as_deref(), Some("a"));
        stage.stop().await;
    }

    async fn r2_7_an_id_of_your_own_is_used_as_it_is(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, id: String| async move {
                ctx.schedule_sub_orchestration_with_id("Child", id, "").await
            })
            .register("Child", tells_id);
        stage.run(activities(), flow).await;
        // The marker of the engine's ids is refused at the beginning only.
        for (parent, id) in [("a", "kid"), ("b", "other::sub::7")] {
            assert_eq!(stage.ends_after(parent, "Parent", id).await, Ok(id.to_owned()));
        }
        stage.stop().await;
    }

    async fn r2_7_an_id_with_the_marker_in_front_is_refused_without_an_event(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                let refused = ctx.schedule_sub_orchestration_with_id("Child", "sub::mine", "").await;
                Ok(format!("{refused:?} {}", ctx.schedule_sub_orchestration("Child", "").await?))
            })
            .register("Child", tells_id);
        stage.run(activities(), flow).await;
        let text =
            "Err(\"sub-orchestration instance id 'sub::mine' uses the reserved marker 'sub::'\") a::sub::2";
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok(text.to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "SubOrchestrationCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
    }

    async fn r2_7_ids_of_roots_are_refused_with_the_marker_anywhere(stage) {
        for id in ["sub::a", "a::sub::b"] {
            let refused = stage.client.start_orchestration(id, "Any", "").await;
            let Err(ClientError::InvalidInput { message }) = &refused else { panic!("{refused:?}") };
            assert_eq!(
                *message,
                format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'")
            );
        }
        stage.nothing_waits().await;
    }

    async fn c1_8_typed_children_encode_their_input_and_decode_their_output(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                let sum: u32 = ctx.schedule_sub_orchestration_typed("Sum", &vec![1_u32, 2]).await?;
                let more: u32 =
                    ctx.schedule_sub_orchestration_with_id_typed("Sum", "kid", &vec![sum, 4]).await?;
                let wrong: Result<Vec<u32>, String> =
                    ctx.schedule_sub_orchestration_typed("Sum", &vec![more]).await;
                Ok(format!("{more} {}", wrong.is_err()))
            })
            .register_typed("Sum", |_: OrchestrationContext, all: Vec<u32>| async move {
                Ok(all.iter().sum::<u32>())
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok("7 true".to_owned()));
        stage.stop().await;
    }

    async fn c1_8_a_typed_input_that_cannot_be_encoded_is_an_error_without_an_event(stage) {
        let flow = orchestrations().register("Parent", |ctx: OrchestrationContext, _| async move {
            // JSON has no such keys.
            let input = BTreeMap::from([(vec![1], 1)]);
            let own: HandlerResult =
                ctx.schedule_sub_orchestration_with_id_typed("Child", "kid", &input).await;
            let given: HandlerResult = ctx.schedule_sub_orchestration_typed("Child", &input).await;
            Ok(format!("{own:?} {given:?}"))
        });
        stage.run(activities(), flow).await;
        let text = "Err(\"key must be a string\")";
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok(format!("{text} {text}")));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
    }

    async fn f16_the_version_of_a_child_is_the_one_asked_for_or_the_newest_and_is_recorded(stage) {
        async fn version(ctx: OrchestrationContext, _: String) -> HandlerResult {
            Ok(ctx.orchestration_version())
        }
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                let old = Some("1.0.0".to_owned());
                let a = ctx.schedule_sub_orchestration_versioned("Child", old.clone(), "").await?;
                let b = ctx.schedule_sub_orchestration_versioned("Child", None, "").await?;
                let c = ctx.schedule_sub_orchestration_versioned_with_id("Child", old, "kid", "").await?;
                Ok(format!("{a} {b} {c}"))
            })
            .register_versioned("Child", "1.0.0", version)
            .register_versioned("Child", "2.0.0", version);
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok("1.0.0 2.0.0 1.0.0".to_owned()));
        let asked = |event: Event| {
            matches!(event.kind, EventKind::SubOrchestrationScheduled { .. }).then_some(event.child_version)
        };
        let recorded: Vec<_> = stage.history("a").await.into_iter().filter_map(asked).collect();
        assert_eq!(recorded, [Some("1.0.0".to_owned()), None, Some("1.0.0".to_owned())]);
        stage.stop().await;
    }

    async fn r2_7_replay_uses_the_id_that_history_has(stage) {
        let naming = |id: &'static str| {
            family().register("Names", move |ctx: OrchestrationContext, _| async move {
                ctx.schedule_sub_orchestration_with_id("Waits", id, "").await
            })
        };
        stage.run(activities(), naming("kid")).await;
        stage.start("a", "Names", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), naming("renamed")).await;
        raise(&stage, "kid", "from the first").await;
        assert_eq!(stage.output("a").await, Ok("from the first".to_owned()));
        assert!(stage.history("renamed").await.is_empty());
        stage.stop().await;
    }

    async fn r2_7_a_failure_of_the_childs_own_reaches_the_parent_as_text(stage) {
        let flow = family()
            .register("Fails", |_: OrchestrationContext, _| async { Err("no luck".to_owned()) })
            .register("Panics", |_: OrchestrationContext, _| async { panic!("at the disco") });
        stage.run(activities(), flow).await;
        let failed = app(AppErrorKind::OrchestrationFailed, "no luck");
        assert_eq!(stage.ends_after("a", "Parent", "Fails").await, Ok("caught: no luck".to_owned()));
        assert_eq!(stage.ends("kid").await, Err(failed.clone()));
        assert_eq!(child_failure(&stage, "a").await, Some((Some(2), failed)));
        stage.observer().delete_instance("a", false).await.expect("deletes both");
        let panicked = app(AppErrorKind::Panicked, "at the disco");
        let text = "caught: orchestration panicked: at the disco";
        assert_eq!(stage.ends_after("b", "Parent", "Panics").await, Ok(text.to_owned()));
        assert_eq!(child_failure(&stage, "b").await, Some((Some(2), panicked)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_child_that_is_cancelled_says_so_to_its_parent(stage) {
        stage.run(activities(), family()).await;
        stage.start("a", "Parent", "Waits").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.client.cancel_instance("kid", "too slow").await.expect("cancels");
        assert_eq!(stage.output("a").await, Ok("caught: canceled: too slow".to_owned()));
        let cancelled = app(AppErrorKind::Cancelled { reason: "too slow".to_owned() }, "");
        assert_eq!(child_failure(&stage, "a").await, Some((Some(2), cancelled)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_child_that_the_store_fails_fails_its_parent_with_the_same(stage) {
        let faults = stage.faults.clone();
        let flow = family().register("Unlucky", move |_: OrchestrationContext, _| {
            let faults = faults.clone();
            async move {
                faults.refuse(
                    "commit_turn",
                    1,
                    ProviderError::permanent("commit_turn", "the disk is on fire"),
                );
                Ok(String::new())
            }
        });
        stage.run(activities(), flow).await;
        let parent = stage.ends_after("a", "Parent", "Unlucky").await;
        assert_eq!(parent, stage.ends("kid").await);
        assert!(matches!(&parent, Err(ErrorDetails::Infrastructure { retryable: false, .. })), "{parent:?}");
        let kinds = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "SubOrchestrationFailed",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_child_whose_code_changed_fails_its_parent_with_the_same(stage) {
        let child = |event: &'static str| {
            orchestrations()
                .register("Parent", has_kid)
                .register("Child", move |ctx: OrchestrationContext, _| async move {
                    Ok(ctx.schedule_wait(event).await)
                })
        };
        stage.run(activities(), child("go")).await;
        stage.start("a", "Parent", "Child").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), child("changed")).await;
        raise(&stage, "kid", "").await;
        let parent = stage.ends("a").await;
        assert_eq!(parent, stage.ends("kid").await);
        assert!(matches!(&parent, Err(ErrorDetails::Configuration { .. })), "{parent:?}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_a_child_that_is_poison_fails_its_parent_with_the_same(stage) {
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(activities(), family(), options).await;
        stage.start("a", "Parent", "Nobody has it").await;
        is_abandoned(&stage, 0).await;
        stage.pass(Duration::from_secs(1));
        let parent = stage.ends("a").await;
        assert_eq!(parent, stage.ends("kid").await);
        let Err(ErrorDetails::Poison { attempt_count: 2, max_attempts: 1, message_type, .. }) = parent else {
            panic!("{parent:?}")
        };
        assert_eq!(
            message_type,
            PoisonMessageType::Orchestration { instance: "kid".to_owned(), execution_id: 1 }
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f6_a_child_that_breaks_a_limit_tells_its_parent(stage) {
        let flow = family().register("Large", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "x".repeat(MAX_KV_VALUE_BYTES + 1));
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        let text = "caught: KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)";
        assert_eq!(stage.ends_after("a", "Parent", "Large").await, Ok(text.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f2_a_child_that_nobody_waits_for_when_its_parent_ends_is_not_started(stage) {
        let flow = family().register("Leaves", |ctx: OrchestrationContext, _| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "kid", ""));
            Ok("left".to_owned())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Leaves", "").await, Ok("left".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "SubOrchestrationCancelRequested",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.nothing_waits().await;
        assert_eq!(stage.ends_after("b", "Answers", "").await, Ok("answered".to_owned()));
        assert_eq!(
            stage.client.get_orchestration_status("kid").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_a_child_dropped_in_the_turn_that_asked_for_it_is_started_and_cancelled(stage) {
        let flow = family().register("Drops", |ctx: OrchestrationContext, _| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "kid", ""));
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Drops", "").await;
        let reason = "parent dropped sub-orchestration future".to_owned();
        assert_eq!(stage.ends("kid").await, Err(app(AppErrorKind::Cancelled { reason }, "")));
        // Its failure is recorded and settles no wait.
        stage.has("a", "SubOrchestrationFailed", 1).await;
        raise(&stage, "a", "on").await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f13_a_child_goes_on_when_its_parent_is_deleted_before_its_first_turn(stage) {
        stage.run(activities(), orchestrations().register("Parent", has_kid)).await;
        stage.start("a", "Parent", "Answers").await;
        stage.has("a", "SubOrchestrationScheduled", 1).await;
        stage.stop().await;
        stage.observer().delete_instance("a", true).await.expect("deletes");
        stage.pass(Duration::from_secs(60));
        stage.run(activities(), family()).await;
        assert_eq!(stage.output("kid").await, Ok("answered".to_owned()));
        queue_is_empty(&stage).await;
        assert_eq!(
            stage.client.get_orchestration_status("a").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g7_a_new_parent_of_the_same_id_gets_a_child_with_the_new_input(stage) {
        let parent = async |ctx: OrchestrationContext, input: String| {
            ctx.schedule_sub_orchestration_with_id("Echo", "kid", input).await
        };
        let flows = || orchestrations().register("Parent", parent);
        stage.run(activities(), flows()).await;
        stage.start("a", "Parent", "old").await;
        stage.has("a", "SubOrchestrationScheduled", 1).await;
        stage.stop().await;
        stage.observer().delete_instance("a", true).await.expect("deletes");
        stage.start("a", "Parent", "new").await;
        stage.pass(Duration::from_secs(60));
        let echo = |_: OrchestrationContext, input: String| async move { Ok(input) };
        stage.run(activities(), flows().register("Echo", echo)).await;
        assert_eq!(stage.output("a").await, Ok("new".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
