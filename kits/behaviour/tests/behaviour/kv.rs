//! The key-value state of an instance: its calls (1.8), how it is kept (2.12), its limit (F21), its times
//! (F17).

use std::collections::HashMap;
use std::time::Duration;

use steadfast::providers::ExecutionMetadata;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, PruneOptions};
use steadfast_behaviour::{Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_clock::Clock;

const HOUR: Duration = Duration::from_secs(3600);

/// Replaces the runtime, so that the next turn replays from the first event.
async fn restart(stage: &Stage, flow: OrchestrationRegistryBuilder) {
    stage.stop().await;
    stage.run(activities(), flow).await;
}

fn values(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Lists key and time of the values that were set.
async fn set_times(stage: &Stage, instance: &str) -> Vec<(String, u64)> {
    let sets = stage.history(instance).await.into_iter().filter_map(|event| match event.kind {
        EventKind::KeyValueSet { key, last_updated_at_ms, .. } => Some((key, last_updated_at_ms)),
        _ => None,
    });
    sets.collect()
}

/// Writes a first turn by hand, as an engine that stamps values and events at different times would: it set
/// the key `a` and waits for the event `go`.
async fn recorded(stage: &Stage, instance: &str, orchestration: &str, set_at_ms: u64) {
    let store = stage.inner();
    let leased = store.fetch_orchestration_item(HOUR, Duration::ZERO, None).await.expect("fetches");
    let (_, token, _) = leased.expect("the start waits");
    let kinds = [
        EventKind::OrchestrationStarted {
            name: orchestration.to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        EventKind::KeyValueSet { key: "a".to_owned(), value: String::new(), last_updated_at_ms: set_at_ms },
        EventKind::ExternalSubscribed { name: "go".to_owned() },
    ];
    let stamped = |(id, kind)| {
        let event = Event::with_event_id(id, instance, 1, None, kind);
        Event { timestamp_ms: stage.clock.now_ms(), ..event }
    };
    let events = (1..).zip(kinds).map(stamped).collect();
    let metadata = ExecutionMetadata {
        orchestration_name: Some(orchestration.to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    let ack = store.ack_orchestration_item(&token, 1, events, Vec::new(), Vec::new(), metadata, Vec::new());
    ack.await.expect("is acknowledged");
}

fn limit_broken(keys: usize) -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: format!("KV key count ({keys}) exceeds limit (150)"),
        retryable: false,
    }
}

/// Sets `per_step` keys more after each message of the queue `more`, and ends with the message `end`.
fn growing(per_step: usize) -> OrchestrationRegistryBuilder {
    orchestrations().register("Grow", move |ctx: OrchestrationContext, _| async move {
        loop {
            let begin = ctx.get_kv_length();
            for n in begin..begin + per_step {
                ctx.set_kv_value(format!("key-{n:03}"), "x");
            }
            if ctx.dequeue_event("more").await == "end" {
                return Ok(ctx.get_kv_length().to_string());
            }
        }
    })
}

/// Writes a value, waits for an event, and reports what it saw before and after.
fn before_and_after() -> OrchestrationRegistryBuilder {
    orchestrations().register("Look", |ctx: OrchestrationContext, _| async move {
        let before = ctx.get_kv_value("k");
        ctx.set_kv_value("k", "mine");
        ctx.schedule_wait("go").await;
        Ok(format!("{before:?} {:?}", ctx.get_kv_value("k")))
    })
}

on_every_store! {
    async fn c1_8_what_is_set_can_be_read_at_once_in_every_form(stage) {
        let flow = orchestrations().register("Read", |ctx: OrchestrationContext, _| async move {
            let owned = "b".to_owned();
            ctx.set_kv_value(&owned, &owned);
            ctx.set_kv_value_typed("c", &vec![1, 2]);
            ctx.set_kv_value("a", "1");
            ctx.set_kv_value("a", "2");
            assert_eq!(ctx.get_kv_value("a").as_deref(), Some("2"));
            assert_eq!(ctx.get_kv_value("nothing"), None);
            assert_eq!(ctx.get_kv_value_typed::<Vec<u8>>("c"), Ok(Some(vec![1, 2])));
            assert_eq!(ctx.get_kv_value_typed::<Vec<u8>>("nothing"), Ok(None));
            assert_eq!(ctx.get_kv_all_values(), values(&[("a", "2"), ("b", "b"), ("c", "[1,2]")]));
            assert_eq!(ctx.get_system_stats(), None);
            Ok(format!("{:?} {}", ctx.get_kv_all_keys(), ctx.get_kv_length()))
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Read", "").await, Ok(r#"["a", "b", "c"] 3"#.to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "KeyValueSet",
            "KeyValueSet",
            "KeyValueSet",
            "KeyValueSet",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
    }

    async fn c1_2_typed_values_are_plain_json_and_not_of_the_typed_codec(stage) {
        let flow = orchestrations().register("Text", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value_typed("typed", &"text");
            ctx.set_kv_value("bare", "text");
            assert_eq!(ctx.get_kv_value("typed").as_deref(), Some("\"text\""));
            assert_eq!(ctx.get_kv_value_typed::<String>("typed"), Ok(Some("text".to_owned())));
            ctx.get_kv_value_typed::<String>("bare").map(|_| String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Text", "").await;
        let text = "KV deserialization error for key 'bare': expected ident at line 1 column 2";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        stage.stop().await;
    }

    async fn c1_8_keys_are_cleared_one_by_one_or_all_at_once(stage) {
        let flow = orchestrations().register("Clear", |ctx: OrchestrationContext, _| async move {
            for key in ["a", "b", "c"] {
                ctx.set_kv_value(key, key);
            }
            ctx.clear_kv_value("b");
            ctx.clear_kv_value("nothing");
            let left = ctx.get_kv_all_keys();
            ctx.clear_all_kv_values();
            ctx.set_kv_value("d", "d");
            Ok(format!("{left:?} {:?}", ctx.get_kv_all_keys()))
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Clear", "").await, Ok(r#"["a", "c"] ["d"]"#.to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "KeyValueSet",
            "KeyValueSet",
            "KeyValueSet",
            "KeyValueCleared",
            "KeyValueCleared",
            "KeyValuesCleared",
            "KeyValueSet",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(stage.client.get_kv_all_values("a").await.expect("reads"), values(&[("d", "d")]));
        stage.stop().await;
    }

    async fn c1_8_pruning_clears_in_key_order_what_is_older_than_the_cutoff(stage) {
        let begin = stage.clock.now_ms();
        let flow = orchestrations().register("Prune", move |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("old-b", "");
            ctx.set_kv_value("old-a", "");
            ctx.set_kv_value("kept", "");
            ctx.schedule_timer(HOUR).await;
            ctx.set_kv_value("kept", "again");
            let cutoff = begin + 3_600_000;
            let counts =
                [ctx.prune_kv_values_updated_before(begin), ctx.prune_kv_values_updated_before(cutoff)];
            let left = ctx.get_kv_all_keys();
            // A key of this very turn is no exception.
            let late = ctx.prune_kv_values_updated_before(cutoff + 1);
            Ok(format!("{counts:?} {left:?} {late}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Prune", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(HOUR);
        assert_eq!(stage.output("a").await, Ok(r#"[0, 2] ["kept"] 1"#.to_owned()));
        let cleared = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::KeyValueCleared { key } => Some(key),
            _ => None,
        });
        assert_eq!(cleared.collect::<Vec<_>>(), ["old-a", "old-b", "kept"]);
        stage.stop().await;
    }

    async fn c1_8_a_value_is_never_older_than_what_its_turn_consumes(stage) {
        let begin = stage.clock.now_ms();
        let flow = orchestrations().register("Stamp", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("first", "");
            ctx.schedule_timer(HOUR).await;
            ctx.set_kv_value("second", "");
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Stamp", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(HOUR);
        stage.output("a").await.expect("completes");
        let times = [("first".to_owned(), begin), ("second".to_owned(), begin + 3_600_000)];
        assert_eq!(set_times(&stage, "a").await, times);
        stage.stop().await;
    }

    async fn c1_8_a_key_of_another_instance_is_read_by_an_activity_of_the_engine(stage) {
        let flow = orchestrations()
            .register("Keep", |ctx: OrchestrationContext, _| async move {
                ctx.set_kv_value_typed("k", &7);
                Ok(String::new())
            })
            .register("Ask", |ctx: OrchestrationContext, _| async move {
                let (instance, key) = ("other".to_owned(), "k".to_owned());
                let known = ctx.get_kv_value_from_instance(&instance, &key).await;
                let no_key = ctx.get_kv_value_from_instance("other", "nothing").await;
                let nobody = ctx.get_kv_value_from_instance("nobody", "k").await;
                let typed = ctx.get_kv_value_from_instance_typed::<u8>("other", "k").await;
                let none = ctx.get_kv_value_from_instance_typed::<u8>("nobody", "k").await;
                let wrong = ctx.get_kv_value_from_instance_typed::<String>("other", "k").await;
                Ok(format!("{known:?} {no_key:?} {nobody:?} {typed:?} {none:?} {wrong:?}"))
            });
        stage.run(activities(), flow).await;
        stage.ends_after("other", "Keep", "").await.expect("completes");
        let error = "KV deserialization error for key 'k': \
            invalid type: integer `7`, expected a string at line 1 column 1";
        let seen = format!(r#"Ok(Some("7")) Ok(None) Ok(None) Ok(Some(7)) Ok(None) Err("{error}")"#);
        assert_eq!(stage.ends_after("a", "Ask", "").await, Ok(seen));
        let history = stage.history("a").await;
        let expected = EventKind::ActivityScheduled {
            name: "__duroxide_syscall:get_kv_value".to_owned(),
            input: r#"{"instance_id":"other","key":"k"}"#.to_owned(),
            session_id: None,
            tag: None,
        };
        assert_eq!(history.get(1).map(|event| &event.kind), Some(&expected));
        assert_eq!(
            history.get(2).map(|event| &event.kind),
            Some(&EventKind::ActivityCompleted { result: r#""7""#.to_owned() })
        );
        stage.stop().await;
    }

    async fn r2_12_values_survive_continue_as_new_and_what_was_cleared_stays_cleared(stage) {
        let flow = orchestrations().register("Keep", |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "1" => {
                    ctx.set_kv_value("kept", "1");
                    ctx.set_kv_value("gone", "1");
                    ctx.continue_as_new("2").await
                }
                "2" => {
                    ctx.clear_kv_value("gone");
                    ctx.set_kv_value("new", "2");
                    ctx.continue_as_new("3").await
                }
                _ => Ok(format!("{:?}", ctx.get_kv_all_keys())),
            }
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Keep", "1").await, Ok(r#"["kept", "new"]"#.to_owned()));
        assert_eq!(
            stage.client.get_kv_all_values("a").await.expect("reads"),
            values(&[("kept", "1"), ("new", "2")])
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_12_clearing_all_also_clears_what_earlier_executions_left(stage) {
        let flow =
            orchestrations().register("Sweep", |ctx: OrchestrationContext, input: String| async move {
                if input == "1" {
                    ctx.set_kv_value("old", "1");
                    return ctx.continue_as_new("2").await;
                }
                ctx.set_kv_value("young", "2");
                ctx.clear_all_kv_values();
                ctx.set_kv_value("last", "2");
                ctx.schedule_wait("go").await;
                Ok(ctx.get_kv_length().to_string())
            });
        stage.run(activities(), flow).await;
        stage.start("a", "Sweep", "1").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let while_it_runs = stage.client.get_kv_all_values("a").await.expect("reads");
        assert_eq!(while_it_runs, values(&[("last", "2")]));
        stage.client.raise_event("a", "go", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("1".to_owned()));
        assert_eq!(stage.client.get_kv_all_values("a").await.expect("reads"), while_it_runs);
        stage.stop().await;
    }

    async fn r2_12_a_replay_sees_the_state_of_the_previous_execution_and_its_own_calls(stage) {
        stage.run(activities(), before_and_after()).await;
        stage.start("a", "Look", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        assert_eq!(stage.client.get_kv_value("a", "k").await.expect("reads").as_deref(), Some("mine"));
        restart(&stage, before_and_after()).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok(r#"None Some("mine")"#.to_owned()));
        stage.stop().await;
    }

    async fn r2_12_values_of_a_failed_instance_stay_readable(stage) {
        let flow = orchestrations().register("Fail", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "v");
            Err("no".to_owned())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Fail", "").await;
        assert_eq!(stage.output("a").await, Err("no".to_owned()));
        assert_eq!(stage.client.get_kv_value("a", "k").await.expect("reads").as_deref(), Some("v"));
        stage.stop().await;
    }

    async fn r2_12_values_belong_to_one_instance(stage) {
        let flow = orchestrations().register("Own", |ctx: OrchestrationContext, input: String| async move {
            let before = ctx.get_kv_length();
            ctx.set_kv_value("k", input);
            Ok(before.to_string())
        });
        stage.run(activities(), flow).await;
        for instance in ["a", "b"] {
            assert_eq!(stage.ends_after(instance, "Own", instance).await, Ok("0".to_owned()));
        }
        for instance in ["a", "b"] {
            assert_eq!(
                stage.client.get_kv_value(instance, "k").await.expect("reads").as_deref(),
                Some(instance)
            );
        }
        stage.stop().await;
    }

    async fn f17_pruning_by_age_decides_the_same_when_it_is_replayed_later(stage) {
        let cutoff = stage.clock.now_ms() + 1_000;
        let flow = move || {
            orchestrations().register("Age", move |ctx: OrchestrationContext, _| async move {
                ctx.set_kv_value("a", "");
                let at_once = ctx.prune_kv_values_updated_before(cutoff);
                ctx.set_kv_value("b", "");
                ctx.schedule_wait("go").await;
                let later = ctx.prune_kv_values_updated_before(cutoff);
                ctx.schedule_wait("end").await;
                Ok(format!("{at_once} {later} {}", ctx.get_kv_length()))
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("i", "Age", "").await;
        stage.has("i", "ExternalSubscribed", 1).await;
        let times = set_times(&stage, "i").await;
        for (event, waits) in [("go", 2), ("end", 2)] {
            stage.pass(HOUR);
            restart(&stage, flow()).await;
            stage.client.raise_event("i", event, "").await.expect("raises");
            stage.has("i", "ExternalSubscribed", waits).await;
        }
        assert_eq!(stage.output("i").await, Ok("1 1 0".to_owned()));
        assert_eq!(set_times(&stage, "i").await, times, "what is recorded does not change");
        stage.stop().await;
    }

    async fn f17_a_value_keeps_its_time_in_the_next_execution(stage) {
        let cutoff = stage.clock.now_ms() + 1_000;
        let flow = move || {
            orchestrations().register("Age", move |ctx: OrchestrationContext, input: String| async move {
                if input == "2" {
                    return Ok(ctx.prune_kv_values_updated_before(cutoff).to_string());
                }
                ctx.set_kv_value("a", "");
                ctx.schedule_wait("go").await;
                ctx.continue_as_new("2").await
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("i", "Age", "1").await;
        stage.has("i", "ExternalSubscribed", 1).await;
        stage.pass(HOUR);
        restart(&stage, flow()).await;
        stage.client.raise_event("i", "go", "").await.expect("raises");
        assert_eq!(stage.output("i").await, Ok("1".to_owned()));
        stage.stop().await;
    }

    async fn f17_the_recorded_time_of_a_value_wins_over_the_stamp_of_its_event(stage) {
        let begin = stage.clock.now_ms();
        stage.start("i", "Age", "").await;
        recorded(&stage, "i", "Age", begin - 5_000).await;
        let flow = orchestrations().register("Age", move |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("a", "");
            ctx.schedule_wait("go").await;
            Ok(ctx.prune_kv_values_updated_before(begin - 4_999).to_string())
        });
        stage.run(activities(), flow).await;
        stage.client.raise_event("i", "go", "").await.expect("raises");
        assert_eq!(stage.output("i").await, Ok("1".to_owned()));
        stage.stop().await;
    }

    async fn f21_a_hundred_and_fifty_keys_are_allowed_over_many_turns(stage) {
        stage.run(activities(), growing(50)).await;
        stage.start("a", "Grow", "").await;
        for (keys, message) in [(50, "on"), (100, "on"), (150, "end")] {
            stage.has("a", "KeyValueSet", keys).await;
            stage.client.enqueue_event("a", "more", message).await.expect("sends");
        }
        assert_eq!(stage.output("a").await, Ok("150".to_owned()));
        assert_eq!(stage.client.get_kv_all_values("a").await.expect("reads").len(), 150);
        stage.stop().await;
    }

    async fn f21_the_key_that_is_too_many_fails_the_instance_also_in_a_later_turn(stage) {
        stage.run(activities(), growing(76)).await;
        stage.start("a", "Grow", "").await;
        stage.has("a", "KeyValueSet", 76).await;
        restart(&stage, growing(76)).await;
        stage.client.enqueue_event("a", "more", "on").await.expect("sends");
        assert_eq!(stage.ends("a").await, Err(limit_broken(152)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f21_keys_of_earlier_executions_count(stage) {
        let flow =
            orchestrations().register("Eternal", |ctx: OrchestrationContext, input: String| async move {
                let round: usize = input.parse().map_err(|_| "no number".to_owned())?;
                for n in 0..100 {
                    ctx.set_kv_value(format!("{round}-{n}"), "");
                }
                ctx.continue_as_new((round + 1).to_string()).await
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Eternal", "0").await, Err(limit_broken(200)));
        assert_eq!(stage.history("a").await.first().map(|event| event.execution_id), Some(2));
        stage.stop().await;
    }

    async fn f21_a_cleared_key_makes_room_for_another(stage) {
        let flow = orchestrations().register("Swap", |ctx: OrchestrationContext, _| async move {
            for n in 0..150 {
                ctx.set_kv_value(format!("{n}"), "");
            }
            ctx.clear_kv_value("0");
            ctx.set_kv_value("new", "");
            ctx.set_kv_value("new", "twice");
            Ok(ctx.get_kv_length().to_string())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Swap", "").await, Ok("150".to_owned()));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn r2_12_pruning_executions_leaves_values_and_deleting_the_instance_removes_them(stage) {
        let flow = orchestrations().register("Keep", |ctx: OrchestrationContext, input: String| async move {
            if input == "1" {
                ctx.set_kv_value("k", "v");
                return ctx.continue_as_new("2").await;
            }
            Ok(ctx.get_kv_value("k").unwrap_or_default())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Keep", "1").await, Ok("v".to_owned()));
        let pruned = stage.client.prune_executions("a", PruneOptions::default()).await.expect("prunes");
        assert_eq!(pruned.executions_deleted, 1);
        assert_eq!(stage.client.get_kv_value("a", "k").await.expect("reads").as_deref(), Some("v"));
        stage.client.delete_instance("a", false).await.expect("deletes");
        assert_eq!(stage.client.get_kv_all_values("a").await.expect("reads"), HashMap::new());
        // A new instance of that id begins with nothing.
        assert_eq!(stage.ends_after("a", "Keep", "2").await, Ok(String::new()));
        stage.stop().await;
    }
}
