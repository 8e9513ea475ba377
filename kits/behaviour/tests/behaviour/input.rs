//! Bad input: whatever a caller or a handler hands in has a defined outcome, and hurts no other instance.

use std::time::Duration;

use steadfast::providers::{ProviderErrorKind, TagFilter};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    AppErrorKind, ClientError, ErrorDetails, OrchestrationContext, OrchestrationStatus, PoisonMessageType,
    RuntimeOptions,
};
use steadfast_behaviour::{
    Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_store::Started;

/// Strings that code written for one script trips over: each is a name, an id and a payload like any other.
const SCRIPTS: [&str; 9] = [
    "Straße",
    "日本語のテスト",
    "שלום עולם",
    "नमस्ते",
    "👩\u{200d}👩\u{200d}👧 x",
    "e\u{301} is not é",
    "'; DROP TABLE history; --",
    "../../etc/passwd%00\\",
    "\u{feff}\u{202e}\n\t\r {\"json\": [1]}",
];

fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_, input: String| async move { Ok(input) })
}

fn plain() -> OrchestrationRegistryBuilder {
    orchestrations().register("Plain", |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_activity("Echo", input).await
    })
}

/// Does an orchestration with an activity still run from start to end, and is nothing left?
async fn goes_on(stage: &Stage) {
    assert_eq!(stage.ends_after("bystander", "Plain", "fine").await, Ok("fine".to_owned()));
    stage.nothing_waits().await;
}

fn application(message: impl Into<String>) -> ErrorDetails {
    let (kind, message) = (AppErrorKind::OrchestrationFailed, message.into());
    ErrorDetails::Application { kind, message, retryable: false }
}

fn invalid(result: Result<(), ClientError>) -> String {
    match result {
        Err(ClientError::InvalidInput { message }) => message,
        other => panic!("{other:?}"),
    }
}

on_every_store! {
    async fn i7_asking_about_an_unknown_instance_answers(stage) {
        let client = &stage.client;
        let status = client.get_orchestration_status("nobody").await.expect("answers");
        assert_eq!(status, OrchestrationStatus::NotFound);
        let waited = client.wait_for_orchestration("nobody", Duration::ZERO).await;
        assert!(matches!(waited, Err(ClientError::Timeout)), "{waited:?}");
        assert_eq!(client.get_kv_value("nobody", "k").await.expect("answers"), None);
        assert!(client.get_kv_all_values("nobody").await.expect("answers").is_empty());
        assert_eq!(client.get_orchestration_stats("nobody").await.expect("answers"), None);
    }

    async fn i7_an_unknown_orchestration_is_tried_again_and_ends_as_poison(stage) {
        let few = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(echo(), plain(), few).await;
        stage.start("a", "Nowhere", "x").await;
        let details = stage.ends_as_time_passes("a", Duration::from_millis(250)).await.expect_err("poison");
        let ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } = details else {
            panic!("{details:?}")
        };
        assert_eq!((attempt_count, max_attempts), (3, 2));
        let instance = "a".to_owned();
        assert_eq!(message_type, PoisonMessageType::Orchestration { instance, execution_id: 1 });
        assert!(message.contains("Nowhere"), "{message}");
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i7_an_unknown_activity_is_tried_again_and_ends_as_poison(stage) {
        let flow = plain().register("Ask", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "").await
        });
        let few = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(echo(), flow, few).await;
        for (instance, name) in [("a", "Nowhere"), ("b", "")] {
            stage.start(instance, "Ask", name).await;
            let ended = stage.ends_as_time_passes(instance, Duration::from_millis(250)).await;
            let text = format!("poison: activity {name}#2 exceeded 3 attempts (max 2)");
            assert_eq!(ended.map_err(|details| details.display_message()), Err(text));
        }
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i7_of_two_starts_of_one_id_the_first_counts(stage) {
        let flow = plain().register("Wait", |ctx: OrchestrationContext, input: String| async move {
            Ok(input + &ctx.schedule_wait("go").await)
        });
        // Both in one batch, and a third while it runs, and a fourth after its end.
        stage.start("a", "Wait", "first").await;
        stage.start("a", "Plain", "second").await;
        stage.run(echo(), flow).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.start("a", "Wait", "third").await;
        let known = stage.client.start_if_new("a", "Wait", "other").await.expect("answers");
        assert_eq!(known, Started::Existing);
        stage.client.raise_event("a", "go", "!").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("first!".to_owned()));
        stage.start("a", "Wait", "fourth").await;
        goes_on(&stage).await;
        assert_eq!(stage.output("a").await, Ok("first!".to_owned()));
        assert_eq!(
            stage.kinds("a").await,
            ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"]
        );
        stage.stop().await;
    }

    async fn c1_11_ids_that_cannot_be_are_refused_before_anything_is_sent(stage) {
        let client = &stage.client;
        let long = "x".repeat(1_025);
        let reserved =
            |id: &str| format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
        for (id, text) in [
            ("sub::1", reserved("sub::1")),
            ("a::sub::1", reserved("a::sub::1")),
            ("", "instance id is empty".to_owned()),
            (&long, "instance id size (1025 bytes) exceeds limit (1024 bytes)".to_owned()),
            ("a\0b", r#"instance id "a\0b" contains a NUL character, which no id may"#.to_owned()),
        ] {
            assert_eq!(invalid(client.start_orchestration(id, "Plain", "").await), text);
            if !text.contains("reserved") {
                assert_eq!(invalid(client.raise_event(id, "event", "").await), text);
                assert_eq!(invalid(client.enqueue_event(id, "queue", "").await), text);
                assert_eq!(invalid(client.cancel_instance(id, "").await), text);
            }
        }
        assert_eq!(invalid(client.start_orchestration("a", "", "").await), "orchestration name is empty");
        assert_eq!(invalid(client.raise_event("a", "", "").await), "event name is empty");
        assert_eq!(invalid(client.enqueue_event("a", "", "").await), "queue name is empty");
        stage.nothing_waits().await;
        // At the limit is fine.
        let longest = "x".repeat(1_024);
        stage.run(echo(), plain()).await;
        assert_eq!(stage.ends_after(&longest, "Plain", "fits").await, Ok("fits".to_owned()));
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i7_names_that_cannot_be_fail_the_orchestration_that_asked(stage) {
        let flow = plain().register("Ask", |ctx: OrchestrationContext, what: String| async move {
            let long = "x".repeat(1_025);
            match what.as_str() {
                "activity" => ctx.schedule_activity(long, "").await.map(drop)?,
                "event" => drop(ctx.schedule_wait(long).await),
                "queue" => drop(ctx.dequeue_event(long).await),
                "child" => drop(ctx.schedule_sub_orchestration_with_id("Plain", long, "").await),
                "key" => ctx.set_kv_value("k\0", ""),
                "tag" => drop(ctx.schedule_activity("Echo", "").with_tag("t\0").await),
                "session" => drop(ctx.schedule_activity_on_session("Echo", "", long).await),
                "detached" => ctx.schedule_orchestration("Plain", "a::sub::1", ""),
                _ => drop(ctx.schedule_sub_orchestration_with_id("Plain", "sub::x", "").await?),
            }
            Ok("was taken".to_owned())
        });
        stage.run(echo(), flow).await;
        let limit = |what: &str| format!("{what} size (1025 bytes) exceeds limit (1024 bytes)");
        for (what, text) in [
            ("activity", limit("activity name")),
            ("event", limit("event name")),
            ("queue", limit("queue name")),
            ("child", limit("instance id")),
            ("key", r#"KV key "k\0" contains a NUL character, which no name or id may"#.to_owned()),
            ("tag", "the tag of activity 'Echo' contains a NUL character".to_owned()),
            ("session", limit("session id")),
        ] {
            assert_eq!(stage.ends_after(what, "Ask", what).await, Err(application(text)), "{what}");
        }
        stage.start("detached", "Ask", "detached").await;
        let text = stage.output("detached").await.expect_err("it is reserved");
        assert!(text.starts_with("orchestration panicked: "), "{text}");
        assert!(text.contains("reserved sub-orchestration marker"), "{text}");
        stage.start("reserved", "Ask", "reserved child").await;
        let text = stage.output("reserved").await.expect_err("it is reserved");
        assert!(text.contains("reserved marker") && text.contains("sub::x"), "{text}");
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i5_a_payload_of_a_megabyte_goes_every_way_unchanged(stage) {
        let flow = plain().register("Ways", |ctx: OrchestrationContext, input: String| async move {
            let echoed = ctx.schedule_activity("Echo", input.clone()).await?;
            let child = ctx.schedule_sub_orchestration("Plain", echoed).await?;
            ctx.set_custom_status(format!("waits {}", ctx.execution_id()));
            let (event, message) = ctx.join2(ctx.schedule_wait("event"), ctx.dequeue_event("queue")).await;
            assert!(child == input && event == input && message == input, "a payload was changed");
            if ctx.execution_id() == 1 {
                return ctx.continue_as_new(input).await;
            }
            Ok(child)
        });
        stage.run(echo(), flow).await;
        let input = format!("\0é😀\u{1}\"\\{}", "x".repeat(1_048_576));
        stage.start("a", "Ways", &input).await;
        for execution in [1, 2] {
            let waits = Some(format!("waits {execution}"));
            stage.until("it waits", async || {
                let status = stage.observer().get_orchestration_status("a").await.expect("answers");
                matches!(status, OrchestrationStatus::Running { custom_status, .. } if custom_status == waits)
            })
            .await;
            stage.client.raise_event("a", "event", input.as_str()).await.expect("raises");
            stage.client.enqueue_event("a", "queue", input.as_str()).await.expect("sends");
        }
        assert!(stage.output("a").await == Ok(input), "the output is the input");
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i7_a_payload_over_the_limit_fails_the_orchestration_that_wrote_it(stage) {
        let flow = plain().register("Write", |ctx: OrchestrationContext, input: String| async move {
            let (what, size) = input.split_once(' ').expect("two words");
            let payload = "x".repeat(size.parse().expect("a number"));
            match what {
                "activity" => ctx.schedule_activity("Echo", payload).await.map(|_| "fits".to_owned()),
                "child" => ctx.schedule_sub_orchestration("Plain", payload).await.map(|_| "fits".to_owned()),
                "error" => Err(payload),
                "output" => Ok(payload),
                "continue" => {
                    ctx.continue_as_new(format!("output {}{}", "0".repeat(payload.len() - 8), 4)).await
                }
                _ => {
                    ctx.schedule_orchestration("Plain", format!("detached-{size}"), payload);
                    Ok("fits".to_owned())
                }
            }
        });
        let small = RuntimeOptions { max_payload_bytes: 1_000, ..stage.options() };
        stage.run_with(echo(), flow, small).await;
        for (what, named) in [
            ("activity", "activity input"),
            ("child", "orchestration input"),
            ("detached", "orchestration input"),
            ("continue", "continue-as-new input"),
            ("output", "orchestration output"),
            ("error", "orchestration error"),
        ] {
            let fits = stage.ends_after(&format!("{what}-fits"), "Write", &format!("{what} 1000")).await;
            match what {
                "error" => assert_eq!(fits, Err(application("x".repeat(1_000)))),
                "output" => assert_eq!(fits, Ok("x".repeat(1_000))),
                "continue" => assert_eq!(fits, Ok("x".repeat(4))),
                _ => assert_eq!(fits, Ok("fits".to_owned()), "{what}"),
            }
            let text = format!("{named} size (1001 bytes) exceeds limit (1000 bytes)");
            let over = stage.ends_after(&format!("{what}-over"), "Write", &format!("{what} 1001")).await;
            assert_eq!(over, Err(application(text)), "{what}");
        }
        stage.has("detached-1000", "OrchestrationCompleted", 1).await;
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i5_names_ids_and_payloads_of_every_script_come_back_as_they_went(stage) {
        let mut flow = plain();
        let mut acts = echo();
        for script in SCRIPTS {
            acts = acts.register(script, |_, input: String| async move { Ok(input) });
            flow = flow.register(script, move |ctx: OrchestrationContext, input: String| async move {
                ctx.set_custom_status(script);
                ctx.set_kv_value(script, script);
                let echoed = ctx.schedule_activity(script, input).with_tag(script).await?;
                let child =
                    ctx.schedule_sub_orchestration_with_id("Plain", format!("kid {script}"), echoed).await?;
                Ok(child + &ctx.dequeue_event(script).await + &ctx.schedule_wait(script).await)
            });
        }
        let any = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..stage.options() };
        stage.run_with(acts, flow, any).await;
        for script in SCRIPTS {
            stage.start(script, script, script).await;
            stage.has(script, "QueueSubscribed", 1).await;
            stage.client.enqueue_event(script, script, script).await.expect("sends");
            stage.has(script, "ExternalSubscribed", 1).await;
            stage.client.raise_event(script, script, script).await.expect("raises");
            assert_eq!(stage.output(script).await, Ok(script.repeat(3)));
            let value = stage.observer().get_kv_value(script, script).await.expect("answers");
            assert_eq!(value.as_deref(), Some(script));
            let status = stage.observer().get_orchestration_status(script).await.expect("answers");
            let OrchestrationStatus::Completed { custom_status, .. } = status else { panic!("{status:?}") };
            assert_eq!(custom_status.as_deref(), Some(script));
        }
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i5_ids_that_look_alike_are_different_ids(stage) {
        stage.run(echo(), plain()).await;
        for id in ["é", "e\u{301}", "A", "a", "a ", " a", "1", "01"] {
            assert_eq!(stage.ends_after(id, "Plain", id).await, Ok(id.to_owned()));
        }
        stage.stop().await;
    }

    async fn s14_ten_thousand_tags_delay_nobody_who_serves_none_of_them(stage) {
        let flow = plain().register("Tags", |ctx: OrchestrationContext, _| async move {
            let tagged: Vec<_> = (0..10_000)
                .map(|number| ctx.schedule_activity("Echo", "").with_tag(format!("tag-{number}")))
                .collect();
            let untagged = ctx.schedule_activity("Echo", "served").await;
            drop(tagged);
            untagged
        });
        stage.run(echo(), flow).await;
        assert_eq!(stage.ends_after("a", "Tags", "").await, Ok("served".to_owned()));
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn c1_12_options_without_bounds_are_legal(stage) {
        let for_ever = RuntimeOptions {
            dispatcher_min_poll_interval: Duration::ZERO,
            dispatcher_long_poll_timeout: Duration::MAX,
            orchestrator_lock_timeout: Duration::MAX,
            worker_lock_timeout: Duration::MAX,
            session_lock_timeout: Duration::MAX,
            session_idle_timeout: Duration::MAX,
            session_cleanup_interval: Duration::MAX,
            activity_cancellation_grace_period: Duration::ZERO,
            max_attempts: u32::MAX,
            ..stage.options()
        };
        let flow = plain().register("Session", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity_on_session("Echo", input, "s").await
        });
        stage.run_with(echo(), flow, for_ever).await;
        assert_eq!(stage.ends_after("a", "Session", "x").await, Ok("x".to_owned()));
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn i12_a_panic_of_any_kind_in_an_orchestration_fails_it_alone(stage) {
        let flow = plain().register("Panics", |ctx: OrchestrationContext, how: String| {
            assert!(how != "early", "before the future is made");
            async move {
                match how.as_str() {
                    "text" => panic!("plain"),
                    "formatted" => panic!("number {}", 7),
                    "number" => std::panic::panic_any(7),
                    "payload" => std::panic::panic_any(PanicsOnDrop),
                    "drop" => {
                        let value = PanicsOnDrop;
                        ctx.schedule_activity("Echo", "").await?;
                        drop(value);
                        Ok(String::new())
                    }
                    // Not during a poll: the engine drops the code when the execution is over.
                    _ => {
                        let _value = PanicsOnDrop;
                        Ok(ctx.schedule_wait("never").await)
                    }
                }
            }
        });
        let runtime = stage.run(echo(), flow).await;
        for (how, text) in [
            ("early", "before the future is made"),
            ("text", "plain"),
            ("formatted", "number 7"),
            ("number", "orchestration panicked"),
            ("payload", "orchestration panicked"),
            ("drop", "in a destructor"),
        ] {
            let details = stage.ends_after(how, "Panics", how).await;
            let (kind, message) = (AppErrorKind::Panicked, text.to_owned());
            assert_eq!(details, Err(ErrorDetails::Application { kind, message, retryable: false }), "{how}");
        }
        stage.start("late", "Panics", "late").await;
        stage.has("late", "ExternalSubscribed", 1).await;
        stage.client.cancel_instance("late", "over").await.expect("sends");
        assert_eq!(stage.output("late").await, Err("canceled: over".to_owned()));
        goes_on(&stage).await;
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.stop().await;
    }

    async fn i12_a_panic_of_any_kind_in_an_activity_fails_it_alone(stage) {
        let acts = echo().register("Panics", |_, how: String| {
            assert!(how != "early", "before the future is made");
            async move {
                let _late = (how == "drop").then(|| PanicsOnDrop);
                match how.as_str() {
                    "text" => panic!("plain"),
                    "formatted" => panic!("number {}", 7),
                    "number" => std::panic::panic_any(7),
                    "payload" => std::panic::panic_any(PanicsOnDrop),
                    _ => {}
                }
                tokio::task::yield_now().await;
                Ok("was fine until then".to_owned())
            }
        });
        let flow = plain().register("Ask", |ctx: OrchestrationContext, how: String| async move {
            ctx.schedule_activity("Panics", how).await
        });
        let runtime = stage.run(acts, flow).await;
        for (how, text) in [
            ("early", "before the future is made"),
            ("text", "plain"),
            ("formatted", "number 7"),
            ("number", "panicked"),
            ("payload", "panicked"),
            ("drop", "in a destructor"),
        ] {
            let details = stage.ends_after(how, "Ask", how).await.expect_err("it panicked");
            let ErrorDetails::Application { kind: AppErrorKind::OrchestrationFailed, message, .. } = &details
            else {
                panic!("{details:?}")
            };
            assert!(message.contains("panicked") && message.contains(text), "{how}: {message}");
            assert_eq!(stage.kinds(how).await[2], "ActivityFailed");
        }
        goes_on(&stage).await;
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn c1_11_managing_an_unknown_instance_answers(stage) {
        let client = &stage.client;
        assert!(client.read_execution_history("nobody", 1).await.expect("answers").is_empty());
        assert!(client.list_executions("nobody").await.expect("answers").is_empty());
        assert!(client.list_instances_by_status("Nonsense").await.expect("answers").is_empty());
        for error in [
            client.get_instance_info("nobody").await.map(drop).expect_err("there is none"),
            client.get_execution_info("nobody", 1).await.map(drop).expect_err("there is none"),
            client.prune_executions("nobody", Default::default()).await.map(drop).expect_err("there is none"),
        ] {
            assert!(
                matches!(&error, ClientError::Provider(error) if error.kind == ProviderErrorKind::NotFound)
            );
            assert!(error.to_string().contains("not found"), "{error}");
        }
        for force in [false, true] {
            let refused = client.delete_instance("nobody", force).await;
            assert!(
                matches!(&refused, Err(ClientError::InstanceNotFound { instance_id: id }) if id == "nobody"),
                "{refused:?}"
            );
        }
        assert_eq!(client.get_instance_tree("nobody").await.expect("answers").all_ids, ["nobody"]);
        let missing = client.retry_set_aside(7).await.expect_err("there is none");
        assert!(
            matches!(&missing, ClientError::Provider(error) if error.kind == ProviderErrorKind::NotFound),
            "{missing:?}"
        );
    }
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

#[tokio::test]
async fn c1_12_options_that_make_no_sense_are_refused_by_name() {
    let stage = Stage::new(StoreKind::Memory).await;
    let zero = Duration::ZERO;
    for (options, name) in [
        (RuntimeOptions { orchestrator_lock_timeout: zero, ..stage.options() }, "orchestrator_lock_timeout"),
        (RuntimeOptions { worker_lock_timeout: zero, ..stage.options() }, "worker_lock_timeout"),
        (RuntimeOptions { session_lock_timeout: zero, ..stage.options() }, "session_lock_timeout"),
        (RuntimeOptions { session_hook_timeout: zero, ..stage.options() }, "session_hook_timeout"),
        (RuntimeOptions { session_idle_timeout: zero, ..stage.options() }, "session_idle_timeout"),
        (RuntimeOptions { worker_node_id: Some(String::new()), ..stage.options() }, "worker_node_id"),
    ] {
        let started = Runtime::try_start(stage.store.clone(), echo().build(), plain().build(), options).await;
        let error = started.map(drop).expect_err("it is refused").to_string();
        assert!(error.contains(name), "{error}");
    }
    for tags in [0, 6, 10_000] {
        let error = TagFilter::try_tags((0..tags).map(|tag| tag.to_string())).expect_err("it is refused");
        let text = if tags == 0 { "requires at least one tag" } else { "at most 5 tags" };
        assert!(error.to_string().contains(text), "{error}");
    }
}
