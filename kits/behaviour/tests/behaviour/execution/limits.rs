//! The limits of what an orchestration writes (2.11, F6, F21): exactly at the limit is fine, one more fails
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{RuntimeOptions, limits};
use steadfast::{
    AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus, TagFilter,
};
use steadfast_behaviour::{Lines, Stage, StoreKind, activities, on_every_store, orchestrations};

const STATUS: usize = 262_144;
const TAG: usize = 256;
const VALUE: usize = 65_536;
const KEYS: usize = 150;

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn broken(message: &str) -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: message.to_owned(),
        retryable: false,
    }
}

/// Sets this many keys, of which the first is `k{from}`.
fn set_keys(ctx: &OrchestrationContext, from: usize, count: usize) {
    for n in from..from + count {
        ctx.set_kv_value(format!("k{n}"), "v");
    }
}

/// Registers one orchestration, `Flow`, that does this and completes.
fn flow(
    work: impl Fn(&OrchestrationContext, &str) + Clone + Send + Sync + 'static,
) -> OrchestrationRegistryBuilder {
    orchestrations().register("Flow", move |ctx: OrchestrationContext, input: String| {
        let work = work.clone();
        async move {
            work(&ctx, &input);
            Ok("done".to_owned())
        }
    })
}

/// `Count` counts how often it ran.
fn counting() -> (ActivityRegistryBuilder, Arc<AtomicU64>) {
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let registry = activities().register("Count", move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok("counted".to_owned()) }
    });
    (registry, ran)
}

/// Asserts what `Flow` ends with.
async fn ends_with(stage: &Stage, instance: &str, input: &str, message: Option<&str>) {
    let expected = message.map_or(Ok("done".to_owned()), |message| Err(broken(message)));
    assert_eq!(stage.ends_after(instance, "Flow", input).await, expected, "{instance}");
    let terminal = stage.history(instance).await.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(terminal, 1, "{instance} ends once");
}

on_every_store! {
    async fn r2_11_a_custom_status_may_have_256_kib(stage) {
        let work = |ctx: &OrchestrationContext, input: &str| {
            ctx.set_custom_status(text(STATUS + usize::from(input == "more")));
        };
        stage.run(activities(), flow(work)).await;
        ends_with(&stage, "a", "exactly", None).await;
        let more = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
        ends_with(&stage, "b", "more", Some(more)).await;
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        let OrchestrationStatus::Completed { custom_status: Some(status), .. } = status else {
            panic!("a status")
        };
        assert_eq!(status.len(), STATUS);
        stage.stop().await;
    }

    async fn r2_11_the_last_custom_status_of_a_turn_that_is_one_counts(stage) {
        let work = |ctx: &OrchestrationContext, input: &str| {
            ctx.set_custom_status(text(STATUS + 1));
            match input {
                "reset" => ctx.reset_custom_status(),
                _ => ctx.set_custom_status("small"),
            }
        };
        stage.run(activities(), flow(work)).await;
        ends_with(&stage, "a", "replace", None).await;
        let text = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
        ends_with(&stage, "b", "reset", Some(text)).await;
        stage.stop().await;
    }

    async fn r2_11_a_tag_may_have_256_bytes(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, input: String| async move {
            let tag = text(TAG + usize::from(input == "more"));
            ctx.schedule_activity("Count", "").with_tag(tag).await?;
            Ok("done".to_owned())
        });
        let (registry, ran) = counting();
        let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..stage.options() };
        stage.run_with(registry, flow, options).await;
        ends_with(&stage, "a", "exactly", None).await;
        let more = "Activity 'Count' tag size (257 bytes) exceeds limit (256 bytes)";
        ends_with(&stage, "b", "more", Some(more)).await;
        assert_eq!(ran.load(Ordering::Relaxed), 1, "what breaks a limit is not run");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_11_a_value_may_have_64_kib(stage) {
        let work = |ctx: &OrchestrationContext, input: &str| {
            ctx.set_kv_value("small", "v");
            ctx.set_kv_value("big", text(VALUE + usize::from(input == "more")));
            ctx.set_kv_value("bigger", text(VALUE + 2 * usize::from(input == "more")));
        };
        stage.run(activities(), flow(work)).await;
        ends_with(&stage, "a", "exactly", None).await;
        let more = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        ends_with(&stage, "b", "more", Some(more)).await;
        let value = stage.client.get_kv_value("a", "big").await.expect("answers").expect("is there");
        assert_eq!(value.len(), VALUE);
        stage.stop().await;
    }

    async fn r2_11_a_value_that_is_cleared_again_was_written_all_the_same(stage) {
        let work = |ctx: &OrchestrationContext, _: &str| {
            ctx.set_kv_value("big", text(VALUE + 1));
            ctx.clear_kv_value("big");
        };
        stage.run(activities(), flow(work)).await;
        let text = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        ends_with(&stage, "a", "", Some(text)).await;
        stage.stop().await;
    }

    async fn r2_11_an_instance_may_have_150_keys(stage) {
        let work = |ctx: &OrchestrationContext, input: &str| match input {
            "more" => set_keys(ctx, 0, KEYS + 1),
            "cleared" => {
                set_keys(ctx, 0, KEYS + 1);
                ctx.clear_kv_value("k0");
            }
            _ => set_keys(ctx, 0, KEYS),
        };
        stage.run(activities(), flow(work)).await;
        ends_with(&stage, "a", "exactly", None).await;
        assert_eq!(stage.client.get_kv_all_values("a").await.expect("answers").len(), KEYS);
        ends_with(&stage, "b", "more", Some("KV key count (151) exceeds limit (150)")).await;
        // Judged after the turn.
        ends_with(&stage, "c", "cleared", None).await;
        stage.stop().await;
    }

    async fn f21_the_keys_of_all_turns_and_executions_count(stage) {
        let flow = orchestrations()
            .register("Turns", |ctx: OrchestrationContext, last: String| async move {
                set_keys(&ctx, 0, 100);
                ctx.schedule_wait("Go").await;
                set_keys(&ctx, 100, 50);
                ctx.schedule_wait("Go").await;
                ctx.set_kv_value(last, "v");
                Ok("done".to_owned())
            })
            .register("Executions", |ctx: OrchestrationContext, input: String| async move {
                match input.as_str() {
                    "first" => {
                        set_keys(&ctx, 0, KEYS);
                        ctx.continue_as_new("second").await
                    }
                    _ => {
                        ctx.set_kv_value("one more", "v");
                        Ok("done".to_owned())
                    }
                }
            });
        stage.run(activities(), flow).await;
        let text = || Err("KV key count (151) exceeds limit (150)".to_owned());
        for (instance, last, expected) in [("a", "k7", Ok("done".to_owned())), ("b", "one more", text())] {
            stage.start(instance, "Turns", last).await;
            stage.has(instance, "ExternalSubscribed", 1).await;
            stage.client.raise_event(instance, "Go", "").await.expect("raises");
            stage.has(instance, "ExternalSubscribed", 2).await;
            stage.client.raise_event(instance, "Go", "").await.expect("raises");
            assert_eq!(stage.output(instance).await, expected, "{last}");
        }
        stage.start("c", "Executions", "first").await;
        assert_eq!(stage.output("c").await, text());
        stage.stop().await;
    }

    async fn r2_11_of_several_broken_limits_the_first_is_named(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, input: String| async move {
            let breaks = |limit| input.contains(limit);
            if breaks("keys") {
                set_keys(&ctx, 0, KEYS + 1);
            }
            if breaks("value") {
                ctx.set_kv_value("big", text(VALUE + 1));
            }
            if breaks("tag") {
                drop(ctx.schedule_activity("Count", "").with_tag(text(TAG + 1)));
                drop(ctx.schedule_activity("Other", "").with_tag(text(TAG + 2)));
            }
            if breaks("status") {
                ctx.set_custom_status(text(STATUS + 1));
            }
            Ok("done".to_owned())
        });
        stage.run(activities(), flow).await;
        let status = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
        let tag = "Activity 'Count' tag size (257 bytes) exceeds limit (256 bytes)";
        let value = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        ends_with(&stage, "a", "keys value tag status", Some(status)).await;
        ends_with(&stage, "b", "keys value tag", Some(tag)).await;
        ends_with(&stage, "c", "keys value", Some(value)).await;
        ends_with(&stage, "d", "keys", Some("KV key count (151) exceeds limit (150)")).await;
        stage.stop().await;
    }

    async fn r2_11_what_a_turn_asked_for_that_broke_a_limit_is_not_sent(stage) {
        let flow = orchestrations()
            .register("Flow", |ctx: OrchestrationContext, _| async move {
                ctx.set_kv_value("big", text(VALUE + 1));
                let activity = ctx.schedule_activity("Count", "");
                let child = ctx.schedule_sub_orchestration_with_id("Echo", "kid", "");
                let timer = ctx.schedule_timer(Duration::from_secs(60));
                let (activity, child, ()) = ctx.join3(activity, child, timer).await;
                activity.and(child)
            })
            .register("Echo", |_, input| async move { Ok(input) });
        let (registry, ran) = counting();
        stage.run(registry, flow).await;
        let text = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        ends_with(&stage, "a", "", Some(text)).await;
        stage.nothing_waits().await;
        assert_eq!(ran.load(Ordering::Relaxed), 0);
        assert_eq!(stage.history("kid").await, []);
        let info = stage.observer().get_instance_info("a").await.expect("is there");
        assert_eq!((info.status.as_str(), info.output.as_deref()), ("Failed", Some(text)));
        stage.stop().await;
    }

    async fn f25_a_detached_start_of_a_turn_that_broke_a_limit_is_sent(stage) {
        let flow = orchestrations()
            .register("Flow", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_orchestration("Echo", "other", "sent");
                ctx.set_kv_value("big", text(VALUE + 1));
                Ok("done".to_owned())
            })
            .register("Echo", |_, input| async move { Ok(input) });
        stage.run(activities(), flow).await;
        let text = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        ends_with(&stage, "a", "", Some(text)).await;
        let recorded = stage.kinds("a").await.iter().any(|kind| kind == "OrchestrationChained");
        assert!(recorded);
        assert_eq!(stage.output("other").await, Ok("sent".to_owned()));
        stage.stop().await;
    }

    async fn f6_a_child_that_breaks_a_limit_tells_its_parent(stage) {
        let flow = flow(|ctx, _| ctx.set_custom_status(text(STATUS + 1))).register(
            "Parent",
            |ctx: OrchestrationContext, _| async move {
                let answer = ctx.schedule_sub_orchestration("Flow", "").await;
                answer.or_else(|error| Ok(format!("told: {error}")))
            },
        );
        stage.run(activities(), flow).await;
        let told = "told: Custom status size (262145 bytes) exceeds limit (262144 bytes)";
        assert_eq!(stage.ends_after("a", "Parent", "").await, Ok(told.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_11_a_limit_broken_later_keeps_what_was_committed_before(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "kept");
            ctx.schedule_wait("Go").await;
            ctx.set_kv_value("big", text(VALUE + 1));
            ctx.continue_as_new("again").await
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        let text = "KV value for key 'big' (65537 bytes) exceeds limit (65536 bytes)";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        assert_eq!(stage.client.get_kv_value("a", "k").await.expect("answers").as_deref(), Some("kept"));
        assert_eq!(stage.observer().list_executions("a").await.expect("lists"), [1], "it does not continue");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_names_and_payloads_may_reach_their_limits(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, input: String| async move {
            let more = usize::from(input == "more");
            let answer = ctx.schedule_activity(text(limits::MAX_NAME_BYTES + more), text(1_000)).await?;
            ctx.set_kv_value(text(limits::MAX_NAME_BYTES), "v");
            assert_eq!(answer.len(), 1_000);
            Ok("done".to_owned())
        });
        let echo =
            activities().register(text(limits::MAX_NAME_BYTES), |_, input: String| async move { Ok(input) });
        let options = RuntimeOptions { max_payload_bytes: 1_000, ..stage.options() };
        stage.run_with(echo, flow, options).await;
        ends_with(&stage, "a", "exactly", None).await;
        let more = "activity name size (1025 bytes) exceeds limit (1024 bytes)";
        ends_with(&stage, "b", "more", Some(more)).await;
        assert_eq!(stage.kinds("b").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
    }
}

#[test]
fn r2_11_the_limits_are_named() {
    assert_eq!(limits::MAX_CARRY_FORWARD_EVENTS, 100);
    assert_eq!(limits::MAX_CUSTOM_STATUS_BYTES, STATUS);
    assert_eq!(limits::MAX_WORKER_TAGS, 5);
    assert_eq!(steadfast::providers::MAX_WORKER_TAGS, 5);
    assert_eq!(limits::MAX_TAG_NAME_BYTES, TAG);
    assert_eq!(limits::MAX_KV_KEYS, KEYS);
    assert_eq!(limits::MAX_KV_VALUE_BYTES, VALUE);
    let options = RuntimeOptions::default();
    assert_eq!(options.max_payload_bytes, limits::MAX_PAYLOAD_BYTES);
    assert_eq!(options.max_sessions_per_orchestration, limits::MAX_SESSIONS_PER_ORCHESTRATION);
}

#[test]
fn c1_15_a_worker_may_serve_five_tags() {
    let five = ["1", "2", "3", "4", "5"];
    assert!(TagFilter::tags(five).matches(Some("5")) && TagFilter::default_and(five).matches(None));
}

#[test]
#[should_panic(expected = "at most 5 tags")]
fn t3_six_tags_panic() {
    let _ = TagFilter::tags(["1", "2", "3", "4", "5", "6"]);
}

#[test]
#[should_panic(expected = "requires at least one tag")]
fn t3_no_tag_panics() {
    let _ = TagFilter::default_and(Vec::<String>::new());
}

// One store is enough: the same code counts the events, whatever store they come from.
#[tokio::test]
async fn i7_a_history_that_becomes_long_is_warned_about_once() {
    let stage = Stage::new(StoreKind::Memory).await;
    let (lines, _guard) = Lines::collect();
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_wait("Go").await;
        ctx.schedule_wait("End").await;
        Ok("done".to_owned())
    });
    stage.run(activities(), flow).await;
    stage.start("a", "Flow", "").await;
    stage.has("a", "ExternalSubscribed", 1).await;
    let other = || EventKind::ExternalEvent { name: "Other".to_owned(), data: String::new() };
    let events =
        (3..=limits::WARN_HISTORY_EVENTS as u64 - 2).map(|id| Event::at(1, id, "a", 1, None, other()));
    stage.inner().append_with_execution("a", 1, events.collect()).await.expect("appends");
    assert_eq!(lines.saying("WARN", "the history is long"), []);
    stage.client.raise_event("a", "Go", "").await.expect("raises");
    stage.has("a", "ExternalSubscribed", 2).await;
    stage.client.raise_event("a", "End", "").await.expect("raises");
    assert_eq!(stage.output("a").await, Ok("done".to_owned()));
    let warnings = lines.saying("WARN", "the history is long");
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].field("instance"), warnings[0].field("events")), ("a", "50000"));
    stage.stop().await;
}
