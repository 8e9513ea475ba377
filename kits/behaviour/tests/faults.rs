//! The faults of the compatible crate that are none of ours (F1–F25): one test each, at the public API.
//!
//! F10 is about the settings of a SQLite connection and is shown in `stores/sqlite/tests/open.rs`.

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use steadfast::providers::{ProviderError, WorkItem};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    ActivityContext, AppErrorKind, CancelReason, ClientError, ConfigErrorKind, ErrorDetails, EventKind,
    InstanceFilter, OrchestrationContext, OrchestrationStatus, RuntimeOptions,
};
use steadfast_behaviour::{
    Lines, SOON, Stage, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;
use steadfast_memory::Damage;
use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, Queue, UNREADABLE_RETRY};
use tokio::sync::Notify;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The wall time at which a stage begins.
const BEGIN_MS: u64 = 1_700_000_000_000;

fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_, input: String| async move { Ok(input) })
}

/// Runs one activity.
fn plain() -> OrchestrationRegistryBuilder {
    orchestrations().register("Plain", |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_activity("Echo", input).await
    })
}

fn down() -> ProviderError {
    ProviderError::retryable("test", "the store is away")
}

/// Does an orchestration with an activity still run from start to end?
async fn goes_on(stage: &Stage) {
    assert_eq!(stage.ends_after("bystander", "Plain", "fine").await, Ok("fine".to_owned()));
    stage.nothing_waits().await;
}

on_every_store! {
    async fn f1_a_message_for_nobody_is_settled_and_delays_nobody(stage) {
        stage.client.cancel_instance("nobody", "why").await.expect("sends");
        stage.client.raise_event("nobody-2", "event", "").await.expect("sends");
        stage.client.enqueue_event("nobody-3", "queue", "").await.expect("sends");
        stage.run(echo(), plain()).await;
        goes_on(&stage).await;
        stage.client.cancel_instance("bystander", "too late").await.expect("sends");
        stage.client.raise_event("bystander", "event", "").await.expect("sends");
        stage.until("settled", async || {
            stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
        })
        .await;
        for nobody in ["nobody", "nobody-2", "nobody-3"] {
            let status = stage.observer().get_orchestration_status(nobody).await.expect("answers");
            assert_eq!(status, OrchestrationStatus::NotFound);
        }
        assert_eq!(stage.output("bystander").await, Ok("fine".to_owned()), "its end stands");
        stage.stop().await;
    }

    async fn f2_a_child_that_was_never_started_is_not_cancelled(stage) {
        let flow = plain().register("Forgetful", |ctx: OrchestrationContext, _| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Plain", "kid", ""));
            Ok("done".to_owned())
        });
        stage.run(echo(), flow).await;
        assert_eq!(stage.ends_after("a", "Forgetful", "").await, Ok("done".to_owned()));
        stage.nothing_waits().await;
        let kid = stage.observer().get_orchestration_status("kid").await.expect("answers");
        assert_eq!(kid, OrchestrationStatus::NotFound);
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn f4_a_slot_that_panics_is_restarted(stage) {
        let subscriber = tracing_subscriber::registry().with(PanicsOn("fetch failed"));
        let guard = tracing::subscriber::set_default(subscriber);
        stage.faults.refuse("fetch_turn", 1, down());
        stage.faults.refuse("fetch_work", 1, down());
        let one = RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 1, ..stage.options() };
        let runtime = stage.run_with(echo(), plain(), one).await;
        stage.until("both slots are back", async || runtime.health().await.slots_restarted == 2).await;
        goes_on(&stage).await;
        drop(guard);
        stage.stop().await;
    }

    async fn f5_an_outage_of_three_minutes_neither_stops_nor_heats_the_loops(stage) {
        let runtime = stage.run(echo(), plain()).await;
        stage.start("a", "Plain", "kept").await;
        assert_eq!(stage.output("a").await, Ok("kept".to_owned()));
        stage.faults.outage();
        let before = stage.faults.calls("fetch_turn");
        let begun = stage.clock.monotonic();
        // What is parked in the store ends by itself; from then on every call fails.
        stage.pass_slowly(Duration::from_secs(240), Duration::from_millis(500)).await;
        let calls = stage.faults.calls("fetch_turn") - before;
        assert_eq!(stage.clock.monotonic() - begun, Duration::from_secs(240));
        assert!((60..=220).contains(&calls), "two slots ask every three seconds, not {calls} times");
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.faults.heal();
        stage.pass(Duration::from_secs(3));
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn f6_a_child_tells_its_parent_however_it_ends(stage) {
        let flow = orchestrations()
            .register("Child", |ctx: OrchestrationContext, how: String| async move {
                // Something is open when it ends.
                let open = ctx.schedule_activity("Hangs", "");
                match how.as_str() {
                    "limit" => ctx.set_custom_status("x".repeat(300_000)),
                    "panic" => panic!("on purpose"),
                    "fail" => return Err("broken".to_owned()),
                    _ => {}
                }
                open.await
            })
            .register("Parent", |ctx: OrchestrationContext, how: String| async move {
                ctx.schedule_sub_orchestration_with_id("Child", format!("kid-{how}"), how).await
            });
        let hangs = activities().register("Hangs", |ctx: ActivityContext, _| async move {
            ctx.cancelled().await;
            Err("told to stop".to_owned())
        });
        stage.run(hangs, flow).await;
        for (how, told) in [
            ("limit", "Custom status size (300000 bytes) exceeds limit (262144 bytes)"),
            ("panic", "orchestration panicked: on purpose"),
            ("fail", "broken"),
            ("cancel", "canceled: enough"),
        ] {
            stage.start(how, "Parent", how).await;
            let kid = format!("kid-{how}");
            if how == "cancel" {
                stage.has(&kid, "ActivityScheduled", 1).await;
                stage.client.cancel_instance(kid.clone(), "enough").await.expect("sends");
            }
            assert_eq!(stage.output(how).await, Err(told.to_owned()), "{how}");
            let ends = stage.history(&kid).await.iter().filter(|event| event.is_terminal()).count();
            assert_eq!(ends, 1, "{how}");
        }
        stage.until("what was open is gone", async || {
            stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
        })
        .await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f7_an_activity_survives_renewals_that_fail_for_a_while(stage) {
        let (go, ran) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let (wait, count) = (Arc::clone(&go), Arc::clone(&ran));
        let slow = activities().register("Echo", move |ctx: ActivityContext, input: String| {
            let wait = Arc::clone(&wait);
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                wait.notified().await;
                Ok(format!("{input} {:?}", ctx.cancel_reason()))
            }
        });
        stage.run(slow, plain()).await;
        stage.start("a", "Plain", "kept").await;
        stage.until("it runs", async || ran.load(Ordering::Relaxed) == 1).await;
        let before = stage.faults.calls("renew");
        stage.faults.refuse("renew", 3, down());
        stage.pass(Duration::from_secs(15));
        for tries in 1..=4 {
            stage.until("a renewal", async || stage.faults.calls("renew") >= before + tries).await;
            stage.pass(Duration::from_millis(250));
        }
        go.notify_one();
        assert_eq!(stage.output("a").await, Ok("kept None".to_owned()));
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        stage.stop().await;
    }

    async fn f8_a_store_that_refuses_commits_for_a_while_fails_nobody(stage) {
        stage.run(echo(), plain()).await;
        // Just longer than the tries of one commit, when a failure could be recorded; and much longer.
        for refusals in [7, 8, 40] {
            let before = stage.faults.calls("commit_turn");
            stage.faults.refuse("commit_turn", refusals, down());
            let instance = format!("after {refusals}");
            stage.start(&instance, "Plain", "kept").await;
            let ended = stage.ends_as_time_passes(&instance, Duration::from_millis(20)).await;
            assert_eq!(ended, Ok("kept".to_owned()));
            assert!(stage.faults.calls("commit_turn") - before >= refusals + 2);
            assert_eq!(
                stage.kinds(&instance).await,
                ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
            );
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f9_a_turn_that_is_given_back_does_not_wait_for_its_lease(stage) {
        // One try and five more: then it is given back.
        stage.faults.refuse("commit_turn", 6, down());
        stage.run(echo(), plain()).await;
        stage.start("a", "Plain", "soon").await;
        for (tries, wait) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160)] {
            stage.until("a try", async || stage.faults.calls("commit_turn") >= tries).await;
            stage.pass(Duration::from_millis(wait));
        }
        assert_eq!(stage.output("a").await, Ok("soon".to_owned()));
        assert_eq!(stage.clock.monotonic(), Duration::from_millis(310), "the lease lasts five seconds");
        assert_eq!(stage.faults.calls("abandon"), 1);
        stage.stop().await;
    }

    async fn f11_what_a_successor_fails_with_is_its_own_record(stage) {
        let (faults, armed) = (stage.faults.clone(), AtomicBool::new(true));
        let flow = orchestrations().register("Next", move |ctx: OrchestrationContext, input: String| {
            if input == "second" && armed.swap(false, Ordering::Relaxed) {
                faults.refuse("commit_turn", 1, ProviderError::permanent("commit", "never"));
            }
            async move {
                match input.as_str() {
                    "first" => ctx.continue_as_new("second").await,
                    _ => Ok(input),
                }
            }
        });
        stage.run(activities(), flow).await;
        let details = stage.ends_after("a", "Next", "first").await.expect_err("it is refused for good");
        let (operation, message) = ("commit".to_owned(), "never".to_owned());
        assert_eq!(details, ErrorDetails::Infrastructure { operation, message, retryable: false });
        let first = stage.history_of("a", 1).await;
        assert!(matches!(first.as_slice(), [_, last] if last.is_terminal()), "{first:?}");
        let second = stage.history_of("a", 2).await;
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        let EventKind::OrchestrationStarted { input, .. } = &second[0].kind else { panic!("{second:?}") };
        assert_eq!(input, "second");
        stage.stop().await;
    }

    async fn f13_a_child_goes_on_when_its_parent_was_deleted_first(stage) {
        let faults = stage.faults.clone();
        let flow = plain().register("Parent", move |ctx: OrchestrationContext, _| {
            // No other turn is fetched after this one: the child has no turn yet.
            faults.refuse("fetch_turn", u64::MAX, down());
            async move { ctx.schedule_sub_orchestration_with_id("Plain", "kid", "alone").await }
        });
        let one = RuntimeOptions { orchestration_concurrency: 1, ..stage.options() };
        stage.run_with(echo(), flow, one).await;
        stage.start("a", "Parent", "").await;
        stage.has("a", "SubOrchestrationScheduled", 1).await;
        stage.observer().delete_instance("a", true).await.expect("deletes");
        stage.faults.heal();
        stage.pass(Duration::from_secs(3));
        assert_eq!(stage.output("kid").await, Ok("alone".to_owned()));
        stage.until("the news for the parent is settled", async || {
            stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
        })
        .await;
        assert!(stage.history("a").await.is_empty());
        stage.stop().await;
    }

    async fn f14_what_is_guarded_by_is_replaying_happens_once(stage) {
        let (lines, _guard) = Lines::collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let flow = |seen: &Arc<Mutex<Vec<u32>>>| {
            let seen = Arc::clone(seen);
            orchestrations().register("Steps", move |ctx: OrchestrationContext, _| {
                let seen = Arc::clone(&seen);
                async move {
                    for step in 0..3_u32 {
                        if !ctx.is_replaying() {
                            seen.lock().expect("nobody panicked").push(step);
                        }
                        ctx.trace_info(format!("step {step}"));
                        ctx.schedule_activity("Echo", "").await?;
                        ctx.schedule_wait(format!("go-{step}")).await;
                    }
                    Ok(String::new())
                }
            })
        };
        stage.start("a", "Steps", "").await;
        for step in 0..3 {
            // Another runtime for each step: everything before it is repeated.
            stage.run(echo(), flow(&seen)).await;
            stage.has("a", "ExternalSubscribed", step + 1).await;
            stage.client.raise_event("a", format!("go-{step}"), "").await.expect("raises");
            stage.has("a", "ExternalEvent", step + 1).await;
            stage.stop().await;
        }
        assert_eq!(*seen.lock().expect("nobody panicked"), [0, 1, 2]);
        let traces = lines.of("steadfast::orchestration");
        let messages: Vec<&str> = traces.iter().map(|line| line.field("message")).collect();
        assert_eq!(messages, ["step 0", "step 1", "step 2"]);
    }

    async fn f15_a_duplicate_of_any_completion_in_a_later_turn_changes_nothing(stage) {
        let flow = plain().register("Twice", |ctx: OrchestrationContext, _| async move {
            let failed = ctx.schedule_activity("Fails", "").await;
            let done = ctx.schedule_activity("Echo", "done").await;
            let data = ctx.schedule_wait("go").await;
            Ok(format!("{failed:?} {done:?} {data}"))
        });
        let acts = echo().register("Fails", |_, _| async { Err("once".to_owned()) });
        stage.run(acts, flow).await;
        stage.start("a", "Twice", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let before = stage.kinds("a").await;
        for id in [2, 4] {
            for item in [
                WorkItem::ActivityFailed {
                    instance: "a".to_owned(),
                    execution_id: 1,
                    id,
                    details: ErrorDetails::Application {
                        kind: AppErrorKind::ActivityFailed,
                        message: "again".to_owned(),
                        retryable: false,
                    },
                },
                WorkItem::ActivityCompleted {
                    instance: "a".to_owned(),
                    execution_id: 1,
                    id,
                    result: "again".to_owned(),
                },
            ] {
                stage.inner().enqueue_for_orchestrator(item, None).await.expect("sends");
                goes_on_once(&stage).await;
                assert_eq!(stage.kinds("a").await, before);
            }
        }
        stage.client.raise_event("a", "go", "on").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok(r#"Err("once") Ok("done") on"#.to_owned()));
        stage.stop().await;
    }

    async fn f16_history_beyond_the_return_of_changed_code_is_a_mismatch_with_its_place(stage) {
        let flow = orchestrations().register("Code", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Echo", "1").await?;
            ctx.set_kv_value("k", "v");
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(echo(), flow).await;
        for instance in ["returns", "differs"] {
            stage.start(instance, "Code", instance).await;
            stage.has(instance, "ExternalSubscribed", 1).await;
        }
        stage.stop().await;
        let line = line!() + 4;
        let changed = orchestrations().register("Code", |ctx: OrchestrationContext, how: String| async move {
            ctx.schedule_activity("Echo", "1").await?;
            if how == "differs" {
                ctx.set_kv_value("k", "other");
            }
            Ok(String::new())
        });
        stage.run(echo(), changed).await;
        for (instance, found) in [
            ("returns", "history has KeyValueSet".to_owned()),
            ("differs", format!("history has KeyValueSet, the code calls SetKeyValue at {}:{line}:", file!())),
        ] {
            stage.client.raise_event(instance, "go", "").await.expect("raises");
            let details = stage.ends(instance).await.expect_err("the code has changed");
            let ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, message, .. } = &details
            else {
                panic!("{details:?}")
            };
            let text = message.as_deref().unwrap_or_default();
            assert!(text.starts_with("kv set mismatch"), "{text}");
            assert!(text.contains("(at event 4: ") && text.contains(&found), "{text}");
        }
        stage.stop().await;
    }

    async fn f17_the_recorded_time_of_a_value_decides_its_age(stage) {
        let flow = || {
            orchestrations().register("Prune", |ctx: OrchestrationContext, _| async move {
                ctx.set_kv_value("old", "");
                ctx.schedule_wait("go").await;
                ctx.set_kv_value("new", "");
                let pruned = ctx.prune_kv_values_updated_before(BEGIN_MS + 60_000);
                ctx.schedule_wait("end").await;
                Ok(format!("{pruned} {:?}", ctx.get_kv_all_keys()))
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Prune", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        for (event, waits) in [("go", 2), ("end", 2)] {
            stage.stop().await;
            stage.pass(Duration::from_secs(3_600));
            stage.run(activities(), flow()).await;
            stage.client.raise_event("a", event, "").await.expect("raises");
            stage.has("a", "ExternalSubscribed", waits).await;
        }
        assert_eq!(stage.output("a").await, Ok(r#"1 ["new"]"#.to_owned()));
        stage.stop().await;
    }

    async fn f18_answers_of_a_queue_do_not_move_when_an_older_dequeue_goes(stage) {
        let flow = orchestrations().register("Queue", |ctx: OrchestrationContext, _| async move {
            let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            let second = newer.await;
            drop(older);
            let third = ctx.dequeue_event("q").await;
            let fourth = ctx.dequeue_event("q").await;
            Ok(format!("{second} {third} {fourth}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Queue", "").await;
        stage.has("a", "QueueSubscribed", 2).await;
        for message in ["1", "2", "3"] {
            stage.client.enqueue_event("a", "q", message).await.expect("sends");
        }
        assert_eq!(stage.output("a").await, Ok("2 1 3".to_owned()));
        stage.stop().await;
    }

    async fn f19_a_tag_that_comes_too_late_fails_that_orchestration_only(stage) {
        let flow = plain().register("Late", |ctx: OrchestrationContext, _| async move {
            let mut activity = ctx.schedule_activity("Echo", "");
            futures::future::poll_immediate(&mut activity).await;
            ctx.schedule_wait("go").await;
            activity.with_tag("late").await
        });
        stage.run(echo(), flow).await;
        stage.start("a", "Late", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        let text = "orchestration panicked: with_tag() must be called before the activity future is first polled";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        goes_on(&stage).await;
        stage.stop().await;
    }

    async fn f20_code_that_nothing_can_answer_keeps_running_is_warned_about_and_can_be_cancelled(stage) {
        let (lines, _guard) = Lines::collect();
        let flow = plain().register("Stuck", |_, _| std::future::pending());
        stage.run(echo(), flow).await;
        stage.start("a", "Stuck", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        goes_on(&stage).await;
        let warned = || lines.saying("WARN", "the orchestration waits for nothing that could answer it");
        stage.until("it is warned about", async || !warned().is_empty()).await;
        let status = stage.observer().get_orchestration_status("a").await.expect("answers");
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
        let warned: Vec<String> = warned().iter().map(|line| line.field("instance").to_owned()).collect();
        assert_eq!(warned, ["a"]);
        stage.client.cancel_instance("a", "stuck").await.expect("sends");
        assert_eq!(stage.output("a").await, Err("canceled: stuck".to_owned()));
        stage.stop().await;
    }

    async fn f20_channels_between_branches_and_unordered_futures_are_legal(stage) {
        let flow = plain().register("Between", |ctx: OrchestrationContext, _| async move {
            let (send, receive) = tokio::sync::oneshot::channel();
            let giver = async {
                let text = ctx.schedule_activity("Echo", "1").await;
                send.send(text).ok();
            };
            let taker = async { receive.await.expect("sent") };
            let ((), taken) = ctx.join2(giver, taker).await;
            let mut all: FuturesUnordered<_> =
                ["2", "3"].into_iter().map(|n| ctx.schedule_activity("Echo", n)).collect();
            let mut got = vec![taken?];
            while let Some(next) = all.next().await {
                got.push(next?);
            }
            got.sort_unstable();
            Ok(got.join(" "))
        });
        stage.run(echo(), flow).await;
        assert_eq!(stage.ends_after("a", "Between", "").await, Ok("1 2 3".to_owned()));
        stage.stop().await;
    }

    async fn f21_the_limit_of_keys_holds_over_all_turns(stage) {
        let flow = orchestrations().register("Keys", |ctx: OrchestrationContext, _| async move {
            for turn in 0..2 {
                for key in 0..150 {
                    ctx.set_kv_value(format!("{turn}-{key}"), "");
                }
                ctx.schedule_wait("go").await;
            }
            Ok("unlimited".to_owned())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Keys", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Err("KV key count (300) exceeds limit (150)".to_owned()));
        stage.stop().await;
    }

    async fn f23_each_execution_is_counted_once_however_many_turns_it_takes(stage) {
        let flow = plain().register("Fails", |ctx: OrchestrationContext, _| async move {
            for _ in 0..3 {
                ctx.schedule_activity("Echo", "").await?;
            }
            Err("broken".to_owned())
        });
        let runtime = stage.run(echo(), flow).await;
        assert!(stage.ends_after("a", "Plain", "").await.is_ok());
        assert!(stage.ends_after("b", "Fails", "").await.is_err());
        stage.stop().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.orch_starts, counts.orch_completions, counts.orch_failures), (2, 1, 1));
        assert_eq!((counts.orch_application_errors, counts.activity_success), (1, 4));
    }

    async fn f24_a_cancelled_activity_of_the_same_process_is_told_at_once(stage) {
        let (running, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, stopped) = (Arc::clone(&running), Arc::clone(&told));
        let acts = activities().register("Slow", move |ctx: ActivityContext, _| {
            let (tell, stopped) = (Arc::clone(&tell), Arc::clone(&stopped));
            async move {
                tell.notify_one();
                ctx.cancelled().await;
                assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
                stopped.notify_one();
                Err("stopped".to_owned())
            }
        });
        let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
            let work = ctx.schedule_activity("Slow", "");
            ctx.select2(work, ctx.schedule_wait("enough")).await;
            Ok("enough".to_owned())
        });
        stage.run(acts, flow).await;
        stage.start("a", "Race", "").await;
        running.notified().await;
        stage.client.raise_event("a", "enough", "").await.expect("raises");
        // No time passes: no renewal can have told it.
        tokio::time::timeout(SOON, told.notified()).await.expect("it is told");
        assert_eq!((stage.output("a").await, stage.clock.monotonic()), (Ok("enough".to_owned()), Duration::ZERO));
        stage.stop().await;
    }

    async fn f24_a_lock_of_a_second_is_renewed_in_time(stage) {
        let (go, ran) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let (wait, count) = (Arc::clone(&go), Arc::clone(&ran));
        let slow = activities().register("Echo", move |_, input: String| {
            let wait = Arc::clone(&wait);
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                wait.notified().await;
                Ok(input)
            }
        });
        let short = RuntimeOptions { worker_lock_timeout: Duration::from_secs(1), ..stage.options() };
        stage.run_with(slow, plain(), short).await;
        stage.start("a", "Plain", "kept").await;
        stage.until("it runs", async || ran.load(Ordering::Relaxed) == 1).await;
        let before = stage.faults.calls("renew");
        for renewals in 1..=10 {
            stage.pass(Duration::from_millis(500));
            stage.until("a renewal", async || stage.faults.calls("renew") >= before + renewals).await;
            // The renewal is answered, and its task waits for the next one.
            stage.settle().await;
        }
        go.notify_one();
        assert_eq!(stage.output("a").await, Ok("kept".to_owned()));
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        stage.stop().await;
    }

    async fn f25_a_detached_start_is_sent_however_its_turn_ends(stage) {
        let flow = plain().register("Monitor", |ctx: OrchestrationContext, how: String| async move {
            ctx.schedule_orchestration("Plain", format!("report-{how}"), how.clone());
            match how.as_str() {
                "complete" | "last" => Ok(how),
                "fail" => Err(how),
                "continue" => ctx.continue_as_new("last").await,
                _ => Ok(ctx.schedule_wait("never").await),
            }
        });
        // Start and cancel arrive in one batch: the cancelled turn is the one that asked.
        stage.start("cancel", "Monitor", "cancel").await;
        stage.client.cancel_instance("cancel", "now").await.expect("sends");
        for how in ["complete", "fail", "continue"] {
            stage.start(how, "Monitor", how).await;
        }
        stage.run(echo(), flow).await;
        for how in ["complete", "last", "fail", "continue", "cancel"] {
            stage.has(&format!("report-{how}"), "OrchestrationCompleted", 1).await;
        }
        assert_eq!(stage.output("cancel").await, Err("canceled: now".to_owned()));
        assert_eq!(stage.output("continue").await, Ok("last".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn f20_a_wake_from_outside_fails_an_orchestration_that_is_held_warm(stage) {
        // Through a wrapper nothing is held warm: there it stays Running.
        let foreign = Arc::new(Notify::new());
        let awaited = Arc::clone(&foreign);
        let flow = plain().register("Foreign", move |ctx: OrchestrationContext, _| {
            let awaited = Arc::clone(&awaited);
            async move {
                ctx.schedule_activity("Echo", "").await?;
                awaited.notified().await;
                Ok("unrecorded".to_owned())
            }
        });
        stage.run_with(echo(), flow, stage.warm_options()).await;
        stage.start("a", "Foreign", "").await;
        stage.has("a", "ActivityCompleted", 1).await;
        goes_on(&stage).await;
        foreign.notify_waiters();
        let details = stage.ends("a").await.expect_err("history does not record what it awaits");
        assert!(matches!(&details, ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. }));
        let text = details.display_message();
        assert!(text.contains("the orchestration was woken from outside"), "{text}");
        stage.stop().await;
    }

    async fn f3_an_unreadable_activity_blocks_nobody_and_is_set_aside(stage) {
        let no_workers = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(echo(), plain(), no_workers).await;
        stage.start("a", "Plain", "damaged").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.stop().await;
        let damaged = stage.damage(Damage::Work { instance: "a" }, "{broken").await;
        assert_eq!(damaged, 1);
        stage.run(echo(), plain()).await;
        for _ in 0..MAX_UNREADABLE_ATTEMPTS {
            goes_on_once(&stage).await;
            stage.pass(UNREADABLE_RETRY);
        }
        let aside = async || stage.client.list_set_aside(None).await.expect("lists");
        stage.until("it is set aside", async || !aside().await.is_empty()).await;
        let [row] = &aside().await[..] else { panic!("one row") };
        assert_eq!((row.queue, row.instance.as_deref()), (Queue::Worker, Some("a")));
        assert_eq!((row.payload.as_str(), row.attempts), ("{broken", MAX_UNREADABLE_ATTEMPTS));
        assert!(!row.reason.is_empty());
        stage.stop().await;
    }

    async fn f12_what_is_between_two_executions_is_alive_and_not_deleted(stage) {
        let faults = stage.faults.clone();
        let flow = orchestrations().register("Eternal", move |ctx: OrchestrationContext, input: String| {
            if input == "first" {
                // The start of the next execution stays in the queue.
                faults.refuse("fetch_turn", u64::MAX, down());
            }
            async move { if input == "first" { ctx.continue_as_new("second").await } else { Ok(input) } }
        });
        let one = RuntimeOptions { orchestration_concurrency: 1, ..stage.options() };
        stage.run_with(activities(), flow, one).await;
        stage.start("a", "Eternal", "first").await;
        stage.has("a", "OrchestrationContinuedAsNew", 1).await;
        let refused = stage.client.delete_instance("a", false).await;
        assert!(matches!(&refused, Err(ClientError::InstanceStillRunning { instance_id }) if instance_id == "a"));
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("deletes");
        assert_eq!(bulk.instances_deleted, 0);
        stage.faults.heal();
        stage.pass(Duration::from_secs(3));
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        stage.stop().await;
    }

    async fn f12_a_bulk_deletion_leaves_a_tree_with_a_running_child(stage) {
        let flow = orchestrations()
            .register("Child", |ctx: OrchestrationContext, _| async move {
                Ok(ctx.schedule_wait("go").await)
            })
            .register("Parent", |ctx: OrchestrationContext, input: String| async move {
                if input != "first" {
                    return Ok(input);
                }
                // A continuation leaves its children running.
                let _child = ctx.schedule_sub_orchestration_with_id("Child", "kid", "");
                ctx.schedule_wait("go").await;
                ctx.continue_as_new("second").await
            });
        stage.run(activities(), flow).await;
        stage.start("a", "Parent", "first").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("deletes");
        assert_eq!(bulk.instances_deleted, 0, "the child is alive");
        stage.client.raise_event("kid", "go", "done").await.expect("raises");
        assert_eq!(stage.output("kid").await, Ok("done".to_owned()));
        let bulk = stage.client.delete_instance_bulk(InstanceFilter::default()).await.expect("deletes");
        assert_eq!(bulk.instances_deleted, 2);
        stage.stop().await;
    }

    async fn f22_times_are_real_and_in_milliseconds(stage) {
        stage.run(echo(), plain().register("Wait", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("go").await)
        }))
        .await;
        stage.pass(Duration::from_secs(5));
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.pass(Duration::from_secs(2));
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        let info = stage.client.get_instance_info("a").await.expect("answers");
        assert_eq!((info.created_at, info.updated_at), (BEGIN_MS + 5_000, BEGIN_MS + 7_000));
        let info = stage.client.get_execution_info("a", 1).await.expect("answers");
        assert_eq!((info.started_at, info.completed_at), (BEGIN_MS + 5_000, Some(BEGIN_MS + 7_000)));
        stage.stop().await;
    }
}

/// Lets everything that waits be processed: another instance starts and ends behind it.
async fn goes_on_once(stage: &Stage) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("behind-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    assert_eq!(stage.ends_after(&name, "Plain", "x").await, Ok("x".to_owned()));
    let depths = stage.observer().get_queue_depths().await.expect("counts");
    assert_eq!(depths.orchestrator_queue, 0);
}

/// Panics when something is logged: a way into the middle of a slot.
struct PanicsOn(&'static str);

impl<S: tracing::Subscriber> Layer<S> for PanicsOn {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut seen = Seen(self.0, false);
        event.record(&mut seen);
        assert!(!seen.1, "panics on purpose");
    }
}

struct Seen(&'static str, bool);

impl tracing::field::Visit for Seen {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.1 |= format!("{value:?}") == self.0;
    }
}
