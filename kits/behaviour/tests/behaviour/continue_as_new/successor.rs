//! Continue-as-new: what the next execution has of the last one, and what it has not (2.2, 2.3, 2.7, 2.12).

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::VersionPolicy;
use steadfast::{EventKind, OrchestrationContext, OrchestrationStatus, RuntimeOptions};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

/// Waits for `go`, continues once, and waits for `end`.
async fn continues_once(ctx: OrchestrationContext, input: String) -> HandlerResult {
    if input == "first" {
        ctx.schedule_wait("go").await;
        return ctx.continue_as_new("second").await;
    }
    ctx.schedule_wait("end").await;
    Ok(format!("{input} {}", ctx.execution_id()))
}

async fn reports_version(ctx: OrchestrationContext, input: String) -> HandlerResult {
    Ok(format!("{} {input}", ctx.orchestration_version()))
}

async fn continues(ctx: OrchestrationContext, _: String) -> HandlerResult {
    ctx.continue_as_new("next").await
}

async fn raise(stage: &Stage, instance: &str, name: &str) {
    stage.client.raise_event(instance, name, "").await.expect("raises");
}

async fn is_at(stage: &Stage, instance: &str, execution_id: u64) {
    stage.reaches(instance, |events| events.iter().any(|event| event.execution_id == execution_id)).await;
}

async fn kinds_of(stage: &Stage, instance: &str, execution_id: u64) -> Vec<String> {
    let events = stage.history_of(instance, execution_id).await;
    events.iter().map(|event| event.kind.name().to_owned()).collect()
}

async fn executions(stage: &Stage, instance: &str) -> Vec<u64> {
    stage.observer().list_executions(instance).await.expect("lists")
}

on_every_store! {
    async fn r2_3_each_execution_has_its_own_number_and_history(stage) {
        stage.run(activities(), orchestrations().register("Once", continues_once)).await;
        stage.start("a", "Once", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        is_at(&stage, "a", 2).await;
        raise(&stage, "a", "end").await;
        assert_eq!(stage.output("a").await, Ok("second 2".to_owned()));
        assert_eq!(executions(&stage, "a").await, [1, 2]);
        let first =
            ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationContinuedAsNew"];
        let second =
            ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
        assert_eq!(kinds_of(&stage, "a", 1).await, first);
        assert_eq!(kinds_of(&stage, "a", 2).await, second);
        for execution_id in [1, 2] {
            let events = stage.history_of("a", execution_id).await;
            assert_eq!(events.iter().map(|event| event.event_id).collect::<Vec<_>>(), [1, 2, 3, 4]);
            assert!(events.iter().all(|event| event.execution_id == execution_id));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_an_execution_that_continued_has_the_next_input_as_its_output(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, input: String| async move {
            if input == "first" { ctx.continue_as_new("second").await } else { Ok("done".to_owned()) }
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Flow", "first").await, Ok("done".to_owned()));
        let first = stage.observer().get_execution_info("a", 1).await.expect("is there");
        assert_eq!((first.status.as_str(), first.output.as_deref()), ("ContinuedAsNew", Some("second")));
        let info = stage.observer().get_instance_info("a").await.expect("is there");
        assert_eq!(
            (info.current_execution_id, info.status.as_str(), info.output.as_deref()),
            (2, "Completed", Some("done"))
        );
        stage.stop().await;
    }

    async fn r2_2_a_call_counts_unawaited_the_first_counts_and_it_wins_over_a_result(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, input: String| async move {
            if input == "first" {
                drop(ctx.continue_as_new("second"));
                drop(ctx.continue_as_new("third"));
            }
            Ok(format!("returned in {input}"))
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Flow", "first").await, Ok("returned in second".to_owned()));
        assert_eq!(kinds_of(&stage, "a", 1).await, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
        stage.stop().await;
    }

    async fn i7_one_that_continues_for_ever_leaves_the_others_their_turn(stage) {
        let flow = orchestrations()
            .register("Forever", continues)
            .register("Done", |_: OrchestrationContext, _| async { Ok("done".to_owned()) });
        stage.run(activities(), flow).await;
        stage.start("a", "Forever", "").await;
        assert_eq!(stage.ends_after("b", "Done", "").await, Ok("done".to_owned()));
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_2_a_cancellation_wins_over_continuing(stage) {
        let flow = || orchestrations().register("Once", continues_once);
        stage.run(activities(), flow()).await;
        stage.start("a", "Once", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        raise(&stage, "a", "go").await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.run(activities(), flow()).await;
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        assert_eq!(executions(&stage, "a").await, [1]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_8_a_typed_input_is_encoded_and_one_that_cannot_be_is_an_error(stage) {
        let flow = orchestrations()
            .register("Typed", |ctx: OrchestrationContext, input: String| async move {
                match input.as_str() {
                    "first" => ctx.continue_as_new_typed(&vec![1, 2]).await,
                    "[1,2]" => ctx.continue_as_new_typed(&"bare text").await,
                    other => Ok(other.to_owned()),
                }
            })
            .register("Broken", |ctx: OrchestrationContext, _| async move {
                // JSON has no such keys.
                ctx.continue_as_new_typed(&BTreeMap::from([(vec![1], 1)])).await
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Typed", "first").await, Ok("bare text".to_owned()));
        assert_eq!(
            stage.ends_after("b", "Broken", "").await.map_err(|details| details.display_message()),
            Err("key must be a string".to_owned())
        );
        stage.stop().await;
    }

    async fn r2_3_without_a_version_the_next_execution_has_the_newest(stage) {
        let flow = orchestrations()
            .register_versioned("Flow", "1.0.0", continues)
            .register_versioned("Flow", "2.0.0", reports_version)
            .register_versioned("Flow", "3.0.0", reports_version);
        stage.run(activities(), flow).await;
        stage.client.start_orchestration_versioned("a", "Flow", "1.0.0", "").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok("3.0.0 next".to_owned()));
        stage.stop().await;
    }

    async fn r2_3_without_a_version_the_policy_of_the_name_counts(stage) {
        let policy = VersionPolicy::Exact(semver::Version::new(1, 0, 0));
        let flow = orchestrations()
            .register_versioned("Flow", "1.0.0", reports_version)
            .register_versioned("Flow", "2.0.0", continues)
            .set_policy("Flow", policy);
        stage.run(activities(), flow).await;
        stage.client.start_orchestration_versioned("a", "Flow", "2.0.0", "").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok("1.0.0 next".to_owned()));
        stage.stop().await;
    }

    async fn r2_3_with_a_version_the_next_execution_has_that_one(stage) {
        let flow = orchestrations()
            .register_versioned("Flow", "1.0.0", |ctx: OrchestrationContext, _| async move {
                ctx.continue_as_new_versioned("2.0.0", "next").await
            })
            .register_versioned("Flow", "2.0.0", reports_version)
            .register_versioned("Flow", "3.0.0", reports_version);
        stage.run(activities(), flow).await;
        stage.client.start_orchestration_versioned("a", "Flow", "1.0.0", "").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok("2.0.0 next".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_events_do_not_follow_not_even_those_that_a_wait_took(stage) {
        let flow = orchestrations().register("Once", |ctx: OrchestrationContext, input: String| async move {
            let taken = ctx.schedule_wait("x");
            if input == "first" {
                ctx.schedule_wait("go").await;
                return ctx.continue_as_new("second").await;
            }
            Ok(taken.await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Once", "first").await;
        stage.has("a", "ExternalSubscribed", 2).await;
        stage.client.raise_event("a", "x", "in the first").await.expect("raises");
        raise(&stage, "a", "go").await;
        is_at(&stage, "a", 2).await;
        stage.client.raise_event("a", "x", "in the second").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("in the second".to_owned()));
        stage.stop().await;
    }

    async fn r2_12_values_follow_and_so_do_their_removals(stage) {
        let flow = orchestrations().register("Keep", |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "first" => {
                    ctx.set_kv_value("kept", "1");
                    ctx.set_kv_value("cleared", "2");
                    ctx.continue_as_new("second").await
                }
                "second" => {
                    ctx.clear_kv_value("cleared");
                    ctx.continue_as_new("third").await
                }
                _ => Ok(format!("{:?} {:?}", ctx.get_kv_value("kept"), ctx.get_kv_value("cleared"))),
            }
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Keep", "first").await, Ok("Some(\"1\") None".to_owned()));
        stage.stop().await;
    }

    async fn r2_12_the_custom_status_follows(stage) {
        let flow =
            orchestrations().register("Status", |ctx: OrchestrationContext, input: String| async move {
                match input.as_str() {
                    "first" => {
                        ctx.set_custom_status("halfway");
                        ctx.continue_as_new("second").await
                    }
                    // Says nothing of it, and so passes it on.
                    "second" => ctx.continue_as_new("third").await,
                    _ => Ok(format!("{:?}", ctx.get_custom_status())),
                }
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Status", "first").await, Ok("Some(\"halfway\")".to_owned()));
        for execution_id in [2, 3] {
            let started = stage.history_of("a", execution_id).await.remove(0).kind;
            let EventKind::OrchestrationStarted { initial_custom_status, .. } = started else {
                panic!("{started:?}")
            };
            assert_eq!(initial_custom_status.as_deref(), Some("halfway"));
        }
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        let expected = OrchestrationStatus::Completed {
            output: "Some(\"halfway\")".to_owned(),
            custom_status: Some("halfway".to_owned()),
            custom_status_version: 1,
        };
        assert_eq!(status, expected);
        stage.stop().await;
    }

    async fn r2_12_a_custom_status_that_was_reset_does_not_follow(stage) {
        let flow =
            orchestrations().register("Reset", |ctx: OrchestrationContext, input: String| async move {
                if input == "first" {
                    ctx.set_custom_status("halfway");
                    ctx.reset_custom_status();
                    return ctx.continue_as_new("second").await;
                }
                Ok(format!("{:?}", ctx.get_custom_status()))
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Reset", "first").await, Ok("None".to_owned()));
        stage.stop().await;
    }

    async fn r2_7_a_child_that_continues_still_answers_its_parent(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_sub_orchestration_with_id("Child", "kid", "3").await
            })
            .register("Child", |ctx: OrchestrationContext, input: String| async move {
                match input.parse::<u32>() {
                    Ok(0) | Err(_) => Ok(format!("after {} executions", ctx.execution_id())),
                    Ok(left) => ctx.continue_as_new((left - 1).to_string()).await,
                }
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok("after 4 executions".to_owned()));
        for execution_id in 1..=4 {
            let started = stage.history_of("kid", execution_id).await.remove(0).kind;
            let EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } =
                started
            else {
                panic!("{started:?}")
            };
            assert_eq!(
                (parent_instance.as_deref(), parent_id, parent_execution_id),
                (Some("a"), Some(2), Some(1))
            );
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_children_are_left_running_and_their_late_results_are_dropped(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, input: String| async move {
                if input == "first" {
                    let _child = ctx.schedule_sub_orchestration_with_id("Child", "kid", "");
                    return continues_once(ctx, input).await;
                }
                continues_once(ctx, input).await
            })
            .register(
                "Child",
                |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) },
            );
        stage.run(activities(), flow).await;
        stage.start("a", "Parent", "first").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        is_at(&stage, "a", 2).await;
        raise(&stage, "kid", "go").await;
        assert_eq!(stage.output("kid").await, Ok(String::new()));
        stage
            .until("the result is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        raise(&stage, "a", "end").await;
        assert_eq!(stage.output("a").await, Ok("second 2".to_owned()));
        let second =
            ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
        assert_eq!(kinds_of(&stage, "a", 2).await, second);
        assert!(!kinds_of(&stage, "a", 1).await.contains(&"SubOrchestrationCancelRequested".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_7_children_of_later_executions_have_the_execution_in_their_ids(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, input: String| async move {
                let child = ctx.schedule_sub_orchestration("Child", "").await?;
                if input == "first" {
                    ctx.continue_as_new(child).await
                } else {
                    Ok(format!("{input} {child}"))
                }
            })
            .register("Child", |ctx: OrchestrationContext, _| async move { Ok(ctx.instance_id()) });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "first").await, Ok("a::sub::2 a::sub::2_2".to_owned()));
        let scheduled = stage.history_of("a", 2).await.remove(1).kind;
        let EventKind::SubOrchestrationScheduled { instance, .. } = &scheduled else {
            panic!("{scheduled:?}");
        };
        assert_eq!(instance, "sub::2_2");
        stage.stop().await;
    }

    async fn r2_2_timers_of_the_last_execution_do_not_fire_in_the_next(stage) {
        let flow =
            orchestrations().register("Timer", |ctx: OrchestrationContext, input: String| async move {
                let mine = ctx.schedule_timer(Duration::from_secs(if input == "first" { 10 } else { 60 }));
                if input == "first" {
                    ctx.schedule_wait("go").await;
                    return ctx.continue_as_new("second").await;
                }
                mine.await;
                Ok(input)
            });
        stage.run(activities(), flow).await;
        stage.start("a", "Timer", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        is_at(&stage, "a", 2).await;
        // Both executions have their timer as event 2, so a mistaken one would be taken for the other.
        stage.pass(Duration::from_secs(10));
        stage
            .until("the old timer is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 1
            })
            .await;
        assert_eq!(kinds_of(&stage, "a", 2).await, ["OrchestrationStarted", "TimerCreated"]);
        stage.pass(Duration::from_secs(50));
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_activities_that_run_are_cancelled_after_the_end(stage) {
        let flow = orchestrations().register("Busy", |ctx: OrchestrationContext, input: String| async move {
            if input == "first" {
                let _busy = ctx.schedule_activity("Nobody has it", "");
                ctx.schedule_wait("go").await;
                return ctx.continue_as_new("second").await;
            }
            Ok(input)
        });
        let options = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flow, options).await;
        stage.start("a", "Busy", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        let last = stage.history_of("a", 1).await.split_off(4);
        let kinds: Vec<_> = last.iter().map(|event| (event.source_event_id, event.kind.clone())).collect();
        let reason = "orchestration_terminal_continued_as_new".to_owned();
        let expected = [
            (None, EventKind::OrchestrationContinuedAsNew { input: "second".to_owned() }),
            (Some(2), EventKind::ActivityCancelRequested { reason }),
        ];
        assert_eq!(kinds, expected);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_2_a_late_result_of_an_activity_of_the_last_execution_is_dropped(stage) {
        stage.run(activities(), orchestrations().register("Once", continues_once)).await;
        stage.start("a", "Once", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go").await;
        is_at(&stage, "a", 2).await;
        let late = WorkItem::ActivityCompleted {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            result: "late".to_owned(),
        };
        stage.inner().enqueue_for_orchestrator(late, None).await.expect("enqueues");
        raise(&stage, "a", "end").await;
        assert_eq!(stage.output("a").await, Ok("second 2".to_owned()));
        assert!(!stage.kinds("a").await.contains(&"ActivityCompleted".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
