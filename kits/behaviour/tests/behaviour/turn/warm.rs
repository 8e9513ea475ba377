//! Orchestrations that stay in memory between their turns (row 1 of "what we do differently", F20).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use steadfast::providers::Provider;
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{Client, ConfigErrorKind, ErrorDetails, OrchestrationContext};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};

/// Counts how often its code begins.
fn chain(begun: &Arc<AtomicU32>) -> steadfast::OrchestrationRegistryBuilder {
    let begun = Arc::clone(begun);
    orchestrations().register("Chain", move |ctx: OrchestrationContext, length: String| {
        begun.fetch_add(1, Ordering::Relaxed);
        async move {
            for step in 0..length.parse::<u32>().map_err(|error| error.to_string())? {
                ctx.schedule_activity("Step", step.to_string()).await?;
            }
            Ok(length)
        }
    })
}

fn step() -> steadfast::runtime::registry::ActivityRegistryBuilder {
    activities().register("Step", |_, input| async move { Ok(input) })
}

fn keeping(stage: &Stage, max_warm_orchestrations: usize) -> RuntimeOptions {
    RuntimeOptions { max_warm_orchestrations, ..stage.options() }
}

on_every_full_store! {
    async fn w_a_warm_orchestration_is_begun_once(stage) {
        let begun = Arc::default();
        stage.run_with(step(), chain(&begun), keeping(&stage, 10)).await;
        assert_eq!(stage.ends_after("a", "Chain", "20").await, Ok("20".to_owned()));
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        stage.stop().await;
    }

    async fn w_a_cold_orchestration_is_begun_for_every_turn_and_decides_alike(stage) {
        let (warm, cold) = (Arc::default(), Arc::default());
        stage.run_with(step(), chain(&warm), keeping(&stage, 10)).await;
        stage.ends_after("warm", "Chain", "5").await.expect("completes");
        stage.stop().await;
        stage.run_with(step(), chain(&cold), keeping(&stage, 0)).await;
        stage.ends_after("cold", "Chain", "5").await.expect("completes");
        assert_eq!((warm.load(Ordering::Relaxed), cold.load(Ordering::Relaxed)), (1, 6));
        assert_eq!(stage.kinds("warm").await, stage.kinds("cold").await);
        stage.stop().await;
    }

    async fn w_an_evicted_orchestration_records_no_cancellation_and_goes_on(stage) {
        let flow = orchestrations().register("Wait", |ctx: OrchestrationContext, _| async move {
            let (first, second) = ctx.join2(ctx.schedule_wait("e"), ctx.schedule_activity("Step", "s")).await;
            Ok(format!("{first}{}", second?))
        });
        let runtime = stage.run_with(step(), flow, keeping(&stage, 1)).await;
        for instance in ["a", "b", "c"] {
            stage.start(instance, "Wait", "").await;
            stage.has(instance, "ActivityCompleted", 1).await;
        }
        stage.until("one is kept", async || runtime.warm_orchestrations() == 1).await;
        for instance in ["a", "b", "c"] {
            stage.client.raise_event(instance, "e", "x").await.expect("raises");
            assert_eq!(stage.output(instance).await, Ok("xs".to_owned()));
            let events = [
                "OrchestrationStarted",
                "ExternalSubscribed",
                "ActivityScheduled",
                "ActivityCompleted",
                "ExternalEvent",
                "OrchestrationCompleted",
            ];
            assert_eq!(stage.kinds(instance).await, events, "{instance}");
        }
        stage.stop().await;
    }

    async fn w_a_deleted_and_recreated_id_never_meets_old_warm_state(stage) {
        let flow = orchestrations().register("Echo", |ctx: OrchestrationContext, input: String| async move {
            Ok(format!("{input}{}", ctx.schedule_wait("e").await))
        });
        let runtime = stage.run_with(step(), flow, keeping(&stage, 10)).await;
        stage.start("a", "Echo", "old").await;
        stage.until("it is kept", async || runtime.warm_orchestrations() == 1).await;
        stage.client.delete_instance("a", true).await.expect("deletes");
        stage.start("a", "Echo", "new").await;
        stage.reaches("a", |events| events.len() == 2).await;
        stage.client.raise_event("a", "e", "!").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("new!".to_owned()));
        stage.stop().await;
    }

    async fn w_the_bytes_of_what_is_kept_are_bounded(stage) {
        let flow = orchestrations().register("Hoard", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "x".repeat(60_000));
            Ok(ctx.schedule_wait("never").await)
        });
        let options = RuntimeOptions { max_warm_bytes: 200_000, ..keeping(&stage, 100) };
        let runtime = stage.run_with(activities(), flow, options).await;
        for n in 0..10 {
            stage.start(&n.to_string(), "Hoard", "").await;
            stage.has(&n.to_string(), "ExternalSubscribed", 1).await;
        }
        stage.until("some are kept", async || (1..=3).contains(&runtime.warm_orchestrations())).await;
        stage.stop().await;
    }

    async fn w_a_turn_of_a_long_history_visits_only_what_is_new(stage) {
        let runtime = stage.run_with(step(), chain(&Arc::default()), keeping(&stage, 10)).await;
        stage.ends_after("short", "Chain", "10").await.expect("completes");
        let short = runtime.events_visited();
        stage.ends_after("long", "Chain", "100").await.expect("completes");
        let long = runtime.events_visited() - short;
        assert!(long <= 12 * short, "{short} events for 10 steps, {long} for 100");
        stage.stop().await;
    }

    async fn f20_a_wake_from_outside_fails_a_warm_orchestration_and_says_why(stage) {
        let sender = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&sender);
        let flow = orchestrations().register("Foreign", move |_: OrchestrationContext, _: String| {
            let (send, receive) = tokio::sync::oneshot::channel::<()>();
            *kept.lock().expect("is not poisoned") = Some(send);
            async move {
                receive.await.map_err(|error| error.to_string())?;
                Ok("never".to_owned())
            }
        });
        let runtime = stage.run_with(activities(), flow, keeping(&stage, 10)).await;
        stage.start("a", "Foreign", "").await;
        stage.until("it is kept", async || runtime.warm_orchestrations() == 1).await;
        let send = sender.lock().expect("is not poisoned").take().expect("it has begun");
        send.send(()).expect("it waits");
        let details = stage.ends("a").await.expect_err("fails");
        let ErrorDetails::Configuration { kind, message: Some(message), .. } = details else {
            panic!("{details:?}")
        };
        assert_eq!(kind, ConfigErrorKind::Nondeterminism);
        assert!(message.contains("woken from outside"), "{message}");
        stage.stop().await;
    }
}

on_every_store! {
    async fn w_the_second_process_goes_on_where_the_first_had_it_warm(stage) {
        let flow = || {
            orchestrations().register("Count", |ctx: OrchestrationContext, _| async move {
                let mut all = String::new();
                for _ in 0..4 {
                    all.push_str(&ctx.dequeue_event("q").await);
                }
                Ok(all)
            })
        };
        for (n, letter) in ["a", "b", "c", "d"].into_iter().enumerate() {
            stage.run(activities(), flow()).await;
            if n == 0 {
                stage.start("i", "Count", "").await;
                stage.has("i", "QueueSubscribed", 1).await;
            }
            stage.client.enqueue_event("i", "q", letter).await.expect("sends");
            stage.has("i", "QueueEventDelivered", n + 1).await;
            stage.stop().await;
        }
        assert_eq!(stage.output("i").await, Ok("abcd".to_owned()));
    }

    async fn w_code_without_an_answer_to_come_is_warned_about_once_and_can_be_cancelled(stage) {
        let (lines, _guard) = Lines::collect();
        let flow =
            orchestrations().register("Stuck", |_: OrchestrationContext, _: String| std::future::pending());
        stage.run(activities(), flow).await;
        stage.start("a", "Stuck", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        for n in 1..=3 {
            stage.client.raise_event("a", "e", "").await.expect("raises");
            stage.has("a", "ExternalEvent", n).await;
        }
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        assert_eq!(lines.saying("WARN", "waits for nothing that could answer it").len(), 1);
        stage.pass(Duration::from_secs(1));
        stage.stop().await;
    }
}

/// W4: the steps of a long chain cost what those of a short one do, in statements, in steps of SQLite's
/// machine and in events looked at. `STEADFAST_CHAIN=3000` for the length that the bar names.
#[tokio::test]
async fn w4_the_last_steps_of_a_long_chain_cost_what_the_first_do() {
    let length: usize = std::env::var("STEADFAST_CHAIN")
        .map_or(600, |length| length.parse().expect("STEADFAST_CHAIN is a number"));
    let (statements, steps) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let options = SqliteOptions {
        count_statements: Some(Arc::clone(&statements)),
        count_steps: Some(Arc::clone(&steps)),
        // What is counted must not depend on how fast the machine is.
        other_processes: None,
        ..SqliteOptions::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("chain.db").display());
    let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, Some(options)).await.expect("opens"));
    let runtime = Arc::new(OnceLock::<Arc<Runtime>>::new());
    let costs = Arc::new(Mutex::new(Vec::new()));
    let (seen, of) = (Arc::clone(&costs), Arc::clone(&runtime));
    let acts = activities().register("Step", move |_, input: String| {
        let visited = of.get().map_or(0, |runtime| runtime.events_visited());
        let cost = [statements.load(Ordering::Relaxed), steps.load(Ordering::Relaxed), visited];
        seen.lock().expect("is not poisoned").push(cost);
        async move { Ok(input) }
    });
    let (acts, flow) = (acts.build_result().expect("activities"), chain(&Arc::default()).build());
    let one =
        RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 1, ..RuntimeOptions::default() };
    let started = Runtime::start_with_options(Arc::clone(&store), acts, flow, one).await;
    runtime.set(Arc::clone(&started)).unwrap_or_else(|_| panic!("it is set once"));
    let client = Client::new(store);
    client.start_orchestration("a", "Chain", length.to_string()).await.expect("starts");
    client.wait_for_orchestration("a", Duration::from_secs(600)).await.expect("ends");
    started.shutdown(None).await;
    let costs = costs.lock().expect("is not poisoned");
    let hundred = |from: usize, what: usize| costs[from + 100][what] - costs[from][what];
    for (what, name) in ["statements", "steps", "events"].into_iter().enumerate() {
        let (first, last) = (hundred(1, what), hundred(length - 101, what));
        assert!(last * 10 <= first * 12, "{name}: {first} for the first 100 steps, {last} for the last");
    }
}
