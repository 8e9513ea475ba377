//! Code that does not repeat its history (2.2, 2.4, F16, texts of section 3).
//!
//! Each test stops a runtime in the middle and starts another one with changed code under the same name and
//! version.

use std::future::pending;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{ConfigErrorKind, DurableFuture, ErrorDetails, EventKind, OrchestrationContext};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

type Program = fn(OrchestrationContext) -> BoxFuture<'static, Result<String, String>>;

const MINUTE: Duration = Duration::from_secs(60);

/// Registers a program as `Flow`, beside a child that waits for ever.
fn flow(program: Program) -> OrchestrationRegistryBuilder {
    let kid = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("never").await) };
    orchestrations().register("Flow", move |ctx, _| program(ctx)).register("Kid", kid)
}

/// Runs `before` until history has an event of a kind, then `after` in its place; tells how that ends.
async fn changed(
    stage: &Stage,
    instance: &str,
    before: Program,
    until: &str,
    after: Program,
) -> Result<String, ErrorDetails> {
    stop_at(stage, instance, before, until).await;
    stage.run(activities(), flow(after)).await;
    poke(stage, instance).await;
    let ended = stage.ends(instance).await;
    stage.stop().await;
    ended
}

/// Runs a program until history has an event of a kind, and stops its runtime.
async fn stop_at(stage: &Stage, instance: &str, program: Program, until: &str) {
    stage.run(activities(), flow(program)).await;
    stage.start(instance, "Flow", "").await;
    stage.has(instance, until, 1).await;
    stage.stop().await;
}

/// Gives an instance a turn.
async fn poke(stage: &Stage, instance: &str) {
    stage.observer().raise_event(instance, "poke", "poked").await.expect("is sent");
}

/// The message of a nondeterminism, without the place of the call, which differs from line to line.
fn text(ended: Result<String, ErrorDetails>) -> String {
    let Err(ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message }) = ended
    else {
        panic!("{ended:?}");
    };
    assert_eq!(resource, "");
    let message = message.expect("says what is wrong");
    match message.split_once(concat!(" at ", file!(), ":")) {
        None => message,
        Some((before, after)) => {
            let place = after.find([';', ')']).expect("the place ends");
            format!("{before}{}", &after[place..])
        }
    }
}

const NOTHING: Program = |_| pending().boxed();
const RETURNS: Program = |_| async { Ok("done".to_owned()) }.boxed();
const WAITS: Program = |ctx| ctx.schedule_wait("poke").map(Ok).boxed();
const ACTIVITY: Program = |ctx| ctx.schedule_activity("A", "x").boxed();
const TIMER: Program = |ctx| ctx.schedule_timer(MINUTE).map(|()| Ok(String::new())).boxed();
const WAIT: Program = |ctx| ctx.schedule_wait("w").map(Ok).boxed();
const DEQUEUE: Program = |ctx| ctx.dequeue_event("q").map(Ok).boxed();
const CHILD: Program = |ctx| ctx.schedule_sub_orchestration("Kid", "x").boxed();
const DETACHED: Program = |ctx| {
    ctx.schedule_orchestration("Kid", "kid", "x");
    WAITS(ctx)
};
const STATUS: Program = |ctx| {
    ctx.set_custom_status("s");
    WAITS(ctx)
};
const SET: Program = |ctx| {
    ctx.set_kv_value("k", "v");
    WAITS(ctx)
};
const CLEAR: Program = |ctx| {
    ctx.clear_kv_value("k");
    WAITS(ctx)
};
const CLEAR_ALL: Program = |ctx| {
    ctx.clear_all_kv_values();
    WAITS(ctx)
};

const SCHEDULES: [(&str, Program); 5] = [
    ("ActivityScheduled", ACTIVITY),
    ("TimerCreated", TIMER),
    ("ExternalSubscribed", WAIT),
    ("QueueSubscribed", DEQUEUE),
    ("SubOrchestrationScheduled", CHILD),
];

/// The word of an event in texts: that of its JSON.
fn word(kind: &str) -> &str {
    if kind == "QueueSubscribed" { "ExternalSubscribedPersistent" } else { kind }
}

on_every_store! {
    async fn t3_a_recorded_schedule_that_the_code_does_not_ask_for_is_named(stage) {
        for (kind, before) in SCHEDULES {
            let ended = changed(&stage, kind, before, kind, NOTHING).await;
            let expected = format!(
                "history schedule but no emitted action (at event 2: history has {}; the last event that \
                 still matched \
                 is 1, OrchestrationStarted)",
                word(kind)
            );
            assert_eq!(text(ended), expected);
        }
    }

    async fn f16_a_recorded_schedule_is_checked_also_after_the_handler_returned(stage) {
        for (kind, before) in SCHEDULES {
            let ended = text(changed(&stage, kind, before, kind, RETURNS).await);
            assert!(ended.starts_with("history schedule but no emitted action (at event 2: "), "{ended}");
        }
    }

    async fn t3_a_recorded_detached_start_that_the_code_does_not_ask_for_is_named(stage) {
        let ended = changed(&stage, "a", DETACHED, "OrchestrationChained", NOTHING).await;
        let expected = "history OrchestrationChained but no emitted action (at event 2: history has \
                        OrchestrationChained; the last event that still matched is 1, OrchestrationStarted)";
        assert_eq!(text(ended), expected);
    }

    async fn f16_a_recorded_status_or_value_needs_its_call(stage) {
        let rows = [
            (STATUS, "CustomStatusUpdated", "custom status mismatch"),
            (SET, "KeyValueSet", "kv set mismatch"),
            (CLEAR, "KeyValueCleared", "kv clear mismatch"),
            (CLEAR_ALL, "KeyValuesCleared", "kv clear_all mismatch"),
        ];
        for (before, kind, label) in rows {
            for (after, instance) in [(NOTHING, format!("{kind}-1")), (RETURNS, format!("{kind}-2"))] {
                let ended = text(changed(&stage, &instance, before, kind, after).await);
                let expected = format!("{label}: history {kind} but no emitted action (at event 2: ");
                assert!(ended.starts_with(&expected), "{ended}");
            }
            let ended = text(changed(&stage, kind, before, kind, WAITS).await);
            let expected = format!(
                "{label}: action=WaitExternal {{ scheduling_event_id: 0, name: \"poke\" }} vs event={kind}"
            );
            assert!(ended.starts_with(&expected), "{ended}");
        }
    }

    async fn t3_a_schedule_of_another_kind_is_a_mismatch_for_every_pair(stage) {
        for (kind, before) in SCHEDULES {
            for (other, after) in SCHEDULES.into_iter().filter(|(other, _)| *other != kind) {
                let instance = format!("{kind}-{other}");
                let ended = text(changed(&stage, &instance, before, kind, after).await);
                assert!(ended.starts_with("schedule mismatch: action="), "{ended}");
                assert!(ended.contains(&format!(" vs event={kind} {{ ")), "{ended}");
            }
        }
    }

    async fn r2_2_an_activity_is_compared_by_name_input_session_and_tag(stage) {
        let others: [(Program, &str); 4] = [
            (
                |ctx| ctx.schedule_activity("B", "x").boxed(),
                "\"B\", input: \"x\", session_id: None, tag: None",
            ),
            (
                |ctx| ctx.schedule_activity("A", "y").boxed(),
                "\"A\", input: \"y\", session_id: None, tag: None",
            ),
            (
                |ctx| ctx.schedule_activity_on_session("A", "x", "s").boxed(),
                "\"A\", input: \"x\", session_id: Some(\"s\"), tag: None",
            ),
            (
                |ctx| ctx.schedule_activity("A", "x").with_tag("gpu").boxed(),
                "\"A\", input: \"x\", session_id: None, tag: Some(\"gpu\")",
            ),
        ];
        for (index, (after, call)) in others.into_iter().enumerate() {
            let ended = changed(&stage, &index.to_string(), ACTIVITY, "ActivityScheduled", after).await;
            let expected = format!(
                "schedule mismatch: action=CallActivity {{ scheduling_event_id: 0, name: {call} }} vs \
                 event=ActivityScheduled {{ name: \"A\", input: \"x\", session_id: None, tag: None }} (at \
                 event 2: \
                 history has ActivityScheduled, the code calls CallActivity; the last event that still \
                 matched is 1, \
                 OrchestrationStarted)"
            );
            assert_eq!(text(ended), expected);
        }
    }

    async fn r2_2_names_inputs_and_ids_of_other_calls_are_compared(stage) {
        let rows: [(Program, &str, Program, &str); 9] = [
            (WAIT, "ExternalSubscribed", |ctx| ctx.schedule_wait("v").map(Ok).boxed(), "schedule"),
            (DEQUEUE, "QueueSubscribed", |ctx| ctx.dequeue_event("p").map(Ok).boxed(), "schedule"),
            (
                CHILD,
                "SubOrchestrationScheduled",
                |ctx| ctx.schedule_sub_orchestration("Kit", "x").boxed(),
                "schedule",
            ),
            (
                CHILD,
                "SubOrchestrationScheduled",
                |ctx| ctx.schedule_sub_orchestration("Kid", "y").boxed(),
                "schedule",
            ),
            (
                DETACHED,
                "OrchestrationChained",
                |ctx| {
                    ctx.schedule_orchestration("Kit", "kid", "x");
                    WAITS(ctx)
                },
                "schedule",
            ),
            (
                DETACHED,
                "OrchestrationChained",
                |ctx| {
                    ctx.schedule_orchestration("Kid", "kit", "x");
                    WAITS(ctx)
                },
                "schedule",
            ),
            (
                SET,
                "KeyValueSet",
                |ctx| {
                    ctx.set_kv_value("l", "v");
                    WAITS(ctx)
                },
                "kv set",
            ),
            (
                SET,
                "KeyValueSet",
                |ctx| {
                    ctx.set_kv_value("k", "w");
                    WAITS(ctx)
                },
                "kv set",
            ),
            (
                CLEAR,
                "KeyValueCleared",
                |ctx| {
                    ctx.clear_kv_value("l");
                    WAITS(ctx)
                },
                "kv clear",
            ),
        ];
        for (index, (before, kind, after, label)) in rows.into_iter().enumerate() {
            let ended = text(changed(&stage, &index.to_string(), before, kind, after).await);
            assert!(ended.starts_with(&format!("{label} mismatch: action=")), "{index}: {ended}");
        }
    }

    async fn f16_the_version_of_a_child_is_recorded_and_compared(stage) {
        let before: Program =
            |ctx| ctx.schedule_sub_orchestration_versioned("Kid", Some("1.0.0".to_owned()), "x").boxed();
        let after: Program =
            |ctx| ctx.schedule_sub_orchestration_versioned("Kid", Some("2.0.0".to_owned()), "x").boxed();
        let ended = text(changed(&stage, "a", before, "SubOrchestrationScheduled", after).await);
        assert!(ended.starts_with("schedule mismatch: action=StartSubOrchestration {"), "{ended}");
        assert!(ended.contains("version: Some(\"2.0.0\")"), "{ended}");
        let same = changed(&stage, "b", before, "SubOrchestrationScheduled", |ctx| {
            let kid = ctx.schedule_sub_orchestration_versioned("Kid", Some("1.0.0".to_owned()), "x");
            ctx.clone().select2(kid, ctx.schedule_wait("poke")).map(|_| Ok("went on".to_owned())).boxed()
        });
        assert!(text(same.await).contains("vs no event"), "only the new wait is one too many");
    }

    async fn r2_2_what_a_timer_a_status_and_a_child_id_say_is_not_compared(stage) {
        let before: Program = |ctx| {
            ctx.set_custom_status("before");
            let (timer, kid) =
                (ctx.schedule_timer(MINUTE), ctx.schedule_sub_orchestration_with_id("Kid", "k1", ""));
            async move { Ok(format!("{:?}", ctx.join3(timer, kid, ctx.schedule_wait("poke")).await)) }.boxed()
        };
        let after: Program = |ctx| {
            ctx.set_custom_status("after");
            let (timer, kid) =
                (ctx.schedule_timer(2 * MINUTE), ctx.schedule_sub_orchestration_with_id("Kid", "k2", ""));
            async move {
                let poked = ctx.schedule_wait("poke").await;
                drop((timer, kid));
                Ok(poked)
            }
            .boxed()
        };
        let ended = changed(&stage, "a", before, "ExternalSubscribed", after).await;
        assert_eq!(ended, Ok("poked".to_owned()));
        let child = stage.history("a").await.into_iter().find_map(|event| match event.kind {
            EventKind::SubOrchestrationScheduled { instance, .. } => Some(instance),
            _ => None,
        });
        assert_eq!(child.as_deref(), Some("k1"), "the recorded id stands");
    }

    async fn r2_2_clears_in_a_row_may_change_places(stage) {
        let before: Program = |ctx| {
            ctx.clear_kv_value("a");
            ctx.clear_kv_value("b");
            WAITS(ctx)
        };
        let after: Program = |ctx| {
            ctx.clear_kv_value("b");
            ctx.clear_kv_value("a");
            WAITS(ctx)
        };
        let ended = changed(&stage, "a", before, "ExternalSubscribed", after).await;
        assert_eq!(ended, Ok("poked".to_owned()));
    }

    async fn t3_a_mismatch_shows_both_results_of_a_race_that_changed(stage) {
        let race = |ctx: OrchestrationContext, swapped: bool| async move {
            let (slow, fast) = (ctx.schedule_activity("Slow", ""), ctx.schedule_activity("Fast", ""));
            let first = match swapped {
                false => ctx.select2(slow, fast).await,
                true => ctx.select2(fast, slow).await,
            };
            ctx.schedule_activity("Report", format!("{first:?}")).await
        };
        let fast = || activities().register("Fast", |_, _| async { Ok("f".to_owned()) });
        stage.run(fast(), orchestrations().register("Flow", move |ctx, _| race(ctx, false))).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ActivityScheduled", 3).await;
        stage.stop().await;
        stage.run(fast(), orchestrations().register("Flow", move |ctx, _| race(ctx, true))).await;
        poke(&stage, "a").await;
        let ended = text(stage.ends("a").await);
        assert!(ended.starts_with("schedule mismatch: action=CallActivity"), "{ended}");
        assert!(ended.contains("First(Ok(") && ended.contains("Second(Ok("), "{ended}");
        stage.stop().await;
    }

    async fn f16_a_mismatch_names_the_line_of_the_call(stage) {
        let line = line!() + 1;
        let after: Program = |ctx| ctx.schedule_timer(MINUTE).map(|()| Ok(String::new())).boxed();
        let ended = changed(&stage, "a", WAIT, "ExternalSubscribed", after).await;
        let shown = ended.expect_err("parts").display_message();
        let place = format!("the code calls CreateTimer at {}:{line}:", file!());
        assert!(
            shown.starts_with("nondeterministic: schedule mismatch: ") && shown.contains(&place),
            "{shown}"
        );
    }

    async fn f16_code_that_asks_for_more_than_history_has_is_named(stage) {
        let ended = changed(&stage, "a", WAITS, "ExternalSubscribed", |ctx| {
            let (wait, more) = (ctx.schedule_wait("poke"), ctx.schedule_activity("A", "x"));
            async move { Ok(format!("{:?}", ctx.join2(wait, more).await)) }.boxed()
        });
        let expected = "schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: \"A\", input: \
            \"x\", \
                        session_id: None, tag: None } vs no event (at event 3: history has nothing more yet, \
                        the code \
                        calls CallActivity; the last event that still matched is 2, ExternalSubscribed)";
        assert_eq!(text(ended.await), expected);
    }

    async fn f16_code_that_returns_where_history_waits_is_named(stage) {
        let ended = changed(&stage, "a", WAITS, "ExternalSubscribed", |ctx| {
            async move {
                std::mem::forget(ctx.schedule_wait("poke"));
                Ok("too early".to_owned())
            }
            .boxed()
        });
        let expected = "the orchestration returned while history says that it still waits (at event 3: \
            history has \
                        nothing more yet; the last event that still matched is 2, ExternalSubscribed)";
        assert_eq!(text(ended.await), expected);
    }
}

/// Makes a future, waits for `first`, keeps the future or drops it, and goes on to wait for a poke.
fn keeps<T: Send + 'static>(
    keeps: bool,
    make: fn(&OrchestrationContext) -> DurableFuture<T>,
) -> OrchestrationRegistryBuilder {
    let handler = move |ctx: OrchestrationContext, _| async move {
        let future = make(&ctx);
        ctx.schedule_wait("first").await;
        let kept = keeps.then_some(future);
        let poked = ctx.schedule_wait("poke").await;
        drop(kept);
        Ok(poked)
    };
    flow(NOTHING).register("Keeps", handler)
}

/// Runs code that drops a future, then code that keeps it, and asserts that the mismatch names the group.
async fn keeping_parts<T: Send + 'static>(
    stage: &Stage,
    group: &str,
    make: fn(&OrchestrationContext) -> DurableFuture<T>,
) {
    stage.run(activities(), keeps(false, make)).await;
    stage.start("a", "Keeps", "").await;
    stage.has("a", "ExternalSubscribed", 1).await;
    stage.client.raise_event("a", "first", "").await.expect("is sent");
    stage.reaches("a", |events| events.iter().any(|event| waits_for(&event.kind, "poke"))).await;
    stage.stop().await;
    stage.run(activities(), keeps(true, make)).await;
    poke(stage, "a").await;
    let shown = stage.ends("a").await.expect_err("parts").display_message();
    let expected = format!(
        "nondeterministic: cancellation mismatch ({group}): baseline_dropped_future_cancel_requests={{2}} \
         ctx_cancelled_in_replayed_segment={{}} (at event 6: "
    );
    assert!(shown.starts_with(&expected), "{shown}");
    stage.stop().await;
}

fn waits_for(kind: &EventKind, wanted: &str) -> bool {
    matches!(kind, EventKind::ExternalSubscribed { name } if name == wanted)
}

on_every_store! {
    async fn t3_an_activity_that_is_kept_where_history_drops_it_is_a_cancellation_mismatch(stage) {
        keeping_parts(&stage, "activities", |ctx| ctx.schedule_activity("A", "")).await;
    }

    async fn t3_a_child_that_is_kept_where_history_drops_it_is_a_cancellation_mismatch(stage) {
        keeping_parts(&stage, "sub-orchestrations", |ctx| ctx.schedule_sub_orchestration("Kid", "")).await;
    }

    async fn t3_a_wait_that_is_kept_where_history_drops_it_is_a_cancellation_mismatch(stage) {
        keeping_parts(&stage, "external waits", |ctx| ctx.schedule_wait("w")).await;
    }

    async fn t3_a_dequeue_that_is_kept_where_history_drops_it_is_a_cancellation_mismatch(stage) {
        keeping_parts(&stage, "persistent waits", |ctx| ctx.dequeue_event("q")).await;
    }
}
