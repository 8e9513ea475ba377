//! Detached starts: `schedule_orchestration` (1.8, 2.3) and F25.

use std::collections::BTreeMap;

use steadfast::runtime::limits::MAX_KV_VALUE_BYTES;
use steadfast::{
    AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistryBuilder,
    OrchestrationStatus,
};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

async fn tells(ctx: OrchestrationContext, input: String) -> HandlerResult {
    Ok(format!("{} {input}", ctx.orchestration_version()))
}

/// Versions 1.0.0 and 2.0.0 of `Other`, which tell their version and input.
fn others() -> OrchestrationRegistryBuilder {
    orchestrations().register_versioned("Other", "1.0.0", tells).register_versioned("Other", "2.0.0", tells)
}

async fn kinds_of(stage: &Stage, instance: &str, execution_id: u64) -> Vec<String> {
    let events = stage.history_of(instance, execution_id).await;
    events.iter().map(|event| event.kind.name().to_owned()).collect()
}

/// What every recorded detached start says, with the version that was asked for.
async fn chained(stage: &Stage, instance: &str) -> Vec<(String, String, String, Option<String>)> {
    let start = |event: Event| match event.kind {
        EventKind::OrchestrationChained { name, instance, input } => {
            Some((name, instance, input, event.child_version))
        }
        _ => None,
    };
    stage.history(instance).await.into_iter().filter_map(start).collect()
}

on_every_store! {
    async fn r2_3_a_detached_start_is_recorded_and_has_no_parent(stage) {
        let flow = others().register("Starts", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Other", "b", "in");
            Ok(ctx.schedule_wait("go").await)
        });
        let runtime = stage.run(activities(), flow).await;
        stage.start("a", "Starts", "").await;
        assert_eq!(stage.output("b").await, Ok("2.0.0 in".to_owned()));
        assert_eq!(
            stage.kinds("a").await,
            ["OrchestrationStarted", "OrchestrationChained", "ExternalSubscribed"]
        );
        let start = ("Other".to_owned(), "b".to_owned(), "in".to_owned(), None);
        assert_eq!(chained(&stage, "a").await, [start]);
        let descriptor = runtime.get_orchestration_descriptor("b").await.expect("is there");
        assert_eq!((descriptor.parent_instance, descriptor.parent_id), (None, None));
        // The orchestration that started it does not learn of its end.
        stage.client.raise_event("a", "go", "on").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_8_the_forms_with_types_and_versions_start_what_they_say(stage) {
        let flow = others().register("Starts", |ctx: OrchestrationContext, _| async move {
            let old = Some("1.0.0".to_owned());
            ctx.schedule_orchestration_typed("Other", "typed", &vec![1, 2]);
            ctx.schedule_orchestration_versioned("Other", old.clone(), "versioned", "in");
            ctx.schedule_orchestration_versioned("Other", None, "newest", "in");
            ctx.schedule_orchestration_versioned_typed("Other", old, "both", &"bare");
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Starts", "").await, Ok(String::new()));
        let ends = [
            ("typed", "2.0.0 [1,2]"),
            ("versioned", "1.0.0 in"),
            ("newest", "2.0.0 in"),
            ("both", "1.0.0 bare"),
        ];
        for (instance, output) in ends {
            assert_eq!(stage.output(instance).await, Ok(output.to_owned()), "{instance}");
        }
        let versions: Vec<_> = chained(&stage, "a").await.into_iter().map(|(.., version)| version).collect();
        assert_eq!(versions, [None, Some("1.0.0".to_owned()), None, Some("1.0.0".to_owned())]);
        stage.stop().await;
    }

    async fn t3_an_id_with_the_reserved_marker_panics(stage) {
        let flow = orchestrations().register("Starts", |ctx: OrchestrationContext, id: String| async move {
            ctx.schedule_orchestration("Other", id, "");
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        for (instance, id) in [("a", "sub::mine"), ("b", "x::sub::mine")] {
            let message = format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
            let details =
                ErrorDetails::Application { kind: AppErrorKind::Panicked, message, retryable: false };
            assert_eq!(stage.ends_after(instance, "Starts", id).await, Err(details));
            assert_eq!(stage.kinds(instance).await, ["OrchestrationStarted", "OrchestrationFailed"]);
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_8_the_try_form_returns_the_refusal_and_the_orchestration_goes_on(stage) {
        let flow = others().register("Tries", |ctx: OrchestrationContext, _| async move {
            let refused = ctx.try_schedule_orchestration("Other", None, "sub::mine", "");
            ctx.try_schedule_orchestration("Other", Some("1.0.0".to_owned()), "b", "in")?;
            Ok(format!("{refused:?}"))
        });
        stage.run(activities(), flow).await;
        let text = "Err(\"instance id 'sub::mine' uses the reserved sub-orchestration marker 'sub::'\")";
        assert_eq!(stage.ends_after("a", "Tries", "").await, Ok(text.to_owned()));
        assert_eq!(stage.output("b").await, Ok("1.0.0 in".to_owned()));
        stage.stop().await;
    }

    async fn c1_8_a_typed_input_that_cannot_be_encoded_fails_the_orchestration(stage) {
        let flow = orchestrations().register("Starts", |ctx: OrchestrationContext, _| async move {
            // JSON has no such keys.
            ctx.schedule_orchestration_typed("Other", "b", &BTreeMap::from([(vec![1], 1)]));
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Starts", "").await;
        let error = stage.output("a").await.expect_err("it cannot be encoded");
        assert!(
            error.contains("the input of schedule_orchestration") && error.contains("key must be a string"),
            "{error}"
        );
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_it_is_sent_also_by_the_turn_that_completes_or_fails(stage) {
        let flow = others().register("Starts", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_orchestration("Other", format!("by {input}"), "in");
            if input == "ok" { Ok(input) } else { Err(input) }
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Starts", "ok").await, Ok("ok".to_owned()));
        stage.start("b", "Starts", "error").await;
        assert_eq!(stage.output("b").await, Err("error".to_owned()));
        for instance in ["by ok", "by error"] {
            assert_eq!(stage.output(instance).await, Ok("2.0.0 in".to_owned()));
        }
        assert_eq!(
            stage.kinds("b").await,
            ["OrchestrationStarted", "OrchestrationChained", "OrchestrationFailed"]
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f25_it_is_sent_by_the_turn_that_continues_as_new(stage) {
        let flow = others().register("Monitor", |ctx: OrchestrationContext, round: String| async move {
            ctx.schedule_orchestration("Other", format!("report {round}"), &round);
            match round.as_str() {
                "1" => ctx.continue_as_new("2").await,
                "2" => ctx.continue_as_new("3").await,
                _ => Ok(round),
            }
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Monitor", "1").await, Ok("3".to_owned()));
        for round in ["1", "2", "3"] {
            assert_eq!(stage.output(&format!("report {round}")).await, Ok(format!("2.0.0 {round}")));
        }
        let first = ["OrchestrationStarted", "OrchestrationChained", "OrchestrationContinuedAsNew"];
        assert_eq!(kinds_of(&stage, "a", 1).await, first);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f25_it_is_sent_by_the_turn_that_is_cancelled(stage) {
        let flow = others().register("Starts", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Other", "b", "in");
            Ok(ctx.schedule_wait("go").await)
        });
        stage.start("a", "Starts", "").await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.run(activities(), flow).await;
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        assert_eq!(chained(&stage, "a").await.len(), 1);
        assert_eq!(stage.output("b").await, Ok("2.0.0 in".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f25_what_is_recorded_is_sent_and_what_is_not_is_not_also_when_a_limit_ends_the_turn(stage) {
        let flow = others().register("Large", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Other", "before", "in");
            ctx.set_kv_value("k", "x".repeat(MAX_KV_VALUE_BYTES + 1));
            ctx.schedule_orchestration("Other", "after", "in");
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Large", "").await;
        let text = "KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        let recorded: Vec<_> =
            chained(&stage, "a").await.into_iter().map(|(_, instance, ..)| instance).collect();
        for instance in ["before", "after"] {
            if recorded.contains(&instance.to_owned()) {
                assert_eq!(stage.output(instance).await, Ok("2.0.0 in".to_owned()));
            } else {
                let status = stage.client.get_orchestration_status(instance).await.expect("answers");
                assert_eq!(status, OrchestrationStatus::NotFound);
            }
        }
        assert!(recorded.contains(&"before".to_owned()), "{recorded:?}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_2_replay_does_not_start_it_again(stage) {
        let flow = || {
            others().register("Starts", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_orchestration("Other", "b", "in");
                ctx.schedule_wait("go").await;
                ctx.schedule_wait("go").await;
                Ok(String::new())
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Starts", "").await;
        assert_eq!(stage.output("b").await, Ok("2.0.0 in".to_owned()));
        stage.stop().await;
        // Were it sent again, the id would be free for it.
        stage.observer().delete_instance("b", false).await.expect("deletes");
        stage.run(activities(), flow()).await;
        for waits in 1..=2 {
            stage.has("a", "ExternalSubscribed", waits).await;
            stage.client.raise_event("a", "go", "").await.expect("raises");
        }
        assert_eq!(stage.output("a").await, Ok(String::new()));
        assert_eq!(
            stage.client.get_orchestration_status("b").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_an_id_that_exists_is_left_as_it_is_and_nobody_is_told(stage) {
        let flow = others().register("Starts", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Other", "live", "in");
            ctx.schedule_orchestration("Other", "ended", "in");
            ctx.schedule_wait("go").await;
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("live", "Starts", "").await;
        assert_eq!(stage.ends_after("ended", "Other", "first").await, Ok("2.0.0 first".to_owned()));
        stage.has("live", "ExternalSubscribed", 1).await;
        stage
            .until("the starts are settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        stage.client.raise_event("live", "go", "").await.expect("raises");
        assert_eq!(stage.output("live").await, Ok(String::new()));
        let kinds = [
            "OrchestrationStarted",
            "OrchestrationChained",
            "OrchestrationChained",
            "ExternalSubscribed",
            "ExternalEvent",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("live").await, kinds);
        assert_eq!(stage.output("ended").await, Ok("2.0.0 first".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
