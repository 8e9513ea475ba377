//! Sessions over workers that want the same, or want different things (D14, D15, D18, D20, D27, D32).

use std::sync::Arc;

use super::bench::{Told, node, shown, takes_turn, troubled, turns};
use super::owned::{acts, only_decides, only_works};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, OrchestrationContext, SessionKey};
use steadfast_behaviour::{
    Faults, Lines, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;
use steadfast_compat::Plain;

const WAITS: [&str; 2] = ["OrchestrationStarted", "ActivityScheduled"];

async fn is_listed(stage: &Stage, id: &str) -> bool {
    stage.observer().get_session(&SessionKey::shared(id)).await.expect("the store answers").is_some()
}

/// Opens and closes sessions, a hundred in each execution, until there were as many as asked for.
async fn cycles(ctx: OrchestrationContext, left: String) -> Result<String, String> {
    let left: u64 = left.parse().map_err(|_| left.clone())?;
    for _ in 0..left.min(100) {
        let session = ctx.open_session().await?;
        ctx.close_session(&session).await?;
    }
    match left.saturating_sub(100) {
        0 => Ok("done".to_owned()),
        left => ctx.continue_as_new(left.to_string()).await,
    }
}

/// Has a turn on each of some sessions that it opens and closes.
async fn turns_of_many(ctx: OrchestrationContext, count: String) -> Result<String, String> {
    let left: u64 = count.parse().map_err(|_| count.clone())?;
    for _ in 0..left.min(50) {
        let session = ctx.open_session().await?;
        ctx.schedule_activity_on_session("Turn", "", &session).await?;
        ctx.close_session(&session).await?;
    }
    match left.saturating_sub(50) {
        0 => Ok("done".to_owned()),
        left => ctx.continue_as_new(left.to_string()).await,
    }
}

/// The copilot pattern: makes an id, hydrates, has turns with checkpoints, and continues as new.
async fn copilot(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (session, mut said) = match input.split_once('/') {
        Some((session, said)) => (session.to_owned(), said.to_owned()),
        None => (ctx.new_guid().await?, String::new()),
    };
    if said.is_empty() {
        ctx.schedule_activity_on_session("Place", "hydrate", &session).await?;
    }
    for step in ["turn", "checkpoint"] {
        said += &ctx.schedule_activity_on_session("Place", step, &session).await?;
    }
    match ctx.execution_id() {
        3 => Ok(format!("{session}/{said}")),
        _ => ctx.continue_as_new(format!("{session}/{said}")).await,
    }
}

/// Continues as new while an activity of its session runs.
async fn leaves(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    if ctx.execution_id() > 1 {
        return ctx.schedule_activity_on_session("Turn", "", "chat").await;
    }
    ctx.open_session_with_id("chat").await?;
    ctx.schedule_activity_on_session("Turn", "", "chat").await?;
    let _running = ctx.schedule_activity_on_session("Hold", "", "chat");
    ctx.schedule_wait("go").await;
    ctx.continue_as_new("").await
}

/// The resident memory of this process, in pages.
fn resident_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default()
}

async fn runs(stage: &Stage, id: &str) {
    let works = turns(&Gate::new());
    let flows = orchestrations().register("Cycles", cycles).register("Turns", turns_of_many);
    let options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    stage.run_with(works, flows, options).await;
}

/// Starts a worker of activities that speaks to the store as one of the compatible crate does, which has no
/// owned sessions. The test shuts it down.
async fn old_worker(stage: &Stage) -> Arc<Runtime> {
    let store = Arc::new(Plain::new(stage.inner()));
    let mut options = RuntimeOptions { worker_node_id: Some("old".to_owned()), ..stage.options() };
    only_works(&mut options);
    let works = turns(&Gate::new()).build_result().expect("activities");
    let none = orchestrations().build_result().expect("orchestrations");
    Runtime::try_start(store, works, none, options).await.expect("sound options")
}

on_every_store! {
    async fn d27_with_a_limit_of_zero_on_two_workers_session_work_waits_for_a_third_uncounted(stage) {
        let none = |options: &mut RuntimeOptions| options.max_sessions_per_runtime = 0;
        for id in ["A", "B"] {
            node(&stage, id, &Gate::new(), none).await;
        }
        stage.start("1", "One", "Turn/chat").await;
        stage.has("1", "ActivityScheduled", 1).await;
        for n in 0..4 {
            assert!(takes_turn(&stage, &format!("plain {n}"), "").await.ends_with("without a session"));
        }
        pass_calmly(&stage, 120 * SECOND, SECOND).await;
        assert_eq!(stage.kinds("1").await, WAITS);
        node(&stage, "C", &Gate::new(), |_| {}).await;
        assert_eq!(stage.output("1").await, Ok("C first 1, attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn d38_a_session_is_not_handed_on_while_its_activity_runs_although_a_rival_asks(stage) {
        let (gate, rival, told) = (Gate::new(), Gate::new(), Told::default());
        node(&stage, "A", &gate, |options| options.worker_concurrency = 1).await;
        stage.start("runs", "One", "Hold/chat").await;
        gate.is_entered().await;
        let before = shown(&stage, "chat").await.epoch;
        node(&stage, "B", &rival, |options| options.session_hooks = told.hooks()).await;
        // The rival asks for this work, and has slots for it.
        stage.start("waits", "One", "Turn/chat").await;
        stage.has("waits", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 90 * SECOND, SECOND).await;
        assert!(takes_turn(&stage, "plain", "").await.starts_with('B'), "it asks");
        assert_eq!(stage.kinds("waits").await, WAITS);
        gate.open();
        assert_eq!(stage.output("runs").await, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(stage.output("waits").await, Ok("A later 2, attempt 1".to_owned()));
        assert_eq!((shown(&stage, "chat").await.epoch, told.all()), (before, Vec::new()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d15_of_two_runtimes_that_race_for_a_claim_one_wins_and_no_delivery_counts_twice(stage) {
        let (lines, _guard) = Lines::collect();
        node(&stage, "T", &Gate::new(), |options| options.worker_concurrency = 0).await;
        for n in 0..20 {
            stage.start(&n.to_string(), "One", &format!("Turn/{n}")).await;
            stage.has(&n.to_string(), "ActivityScheduled", 1).await;
        }
        let (first, second) = (Gate::new(), Gate::new());
        let (a, b) = futures::join!(
            node(&stage, "A", &first, |options| options.worker_concurrency = 4),
            node(&stage, "B", &second, |options| options.worker_concurrency = 4),
        );
        for n in 0..20 {
            let output = stage.output(&n.to_string()).await.expect("completes");
            assert!(output.ends_with("first 1, attempt 1"), "{output}");
            let claims = lines.saying("INFO", "session claimed");
            let claims: Vec<_> =
                claims.iter().filter(|line| line.field("session_id") == n.to_string()).collect();
            assert_eq!(claims.len(), 1, "{claims:?}");
            assert!(output.starts_with(claims[0].field("owner")), "{output}: {claims:?}");
        }
        assert_eq!(stage.faults.abandoned(), 0, "nothing is fetched to be given back");
        drop((a, b));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d18_the_lease_of_a_claimer_that_dies_is_its_own(stage) {
        let idle = |options: &mut RuntimeOptions| {
            options.session_lock_timeout = 10 * SECOND;
            options.session_idle_timeout = 26 * SECOND;
        };
        let first = node(&stage, "A", &Gate::new(), idle).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        // It is idle, and free.
        pass_calmly(&stage, 40 * SECOND, SECOND).await;
        first.shutdown(Some(0)).await;
        let faults = Faults::default();
        let dead = troubled(&stage, "B", &Gate::new(), &faults, |options| {
            options.session_lock_timeout = 60 * SECOND;
            options.dispatcher_long_poll_timeout = SECOND;
        })
        .await;
        assert_eq!(takes_turn(&stage, "2", "chat").await, "B first 1, attempt 1");
        faults.outage();
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        node(&stage, "C", &Gate::new(), |_| {}).await;
        stage.start("3", "One", "Turn/chat").await;
        stage.has("3", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 55 * SECOND, SECOND).await;
        assert_eq!(stage.kinds("3").await, WAITS, "longer than the lease of A and of C");
        pass_calmly(&stage, 6 * SECOND, SECOND).await;
        assert_eq!(stage.output("3").await, Ok("C first 1, attempt 1".to_owned()));
        dead.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d20_runtimes_that_clean_up_at_different_intervals_leave_what_is_held(stage) {
        let every = |seconds: u32| {
            move |options: &mut RuntimeOptions| options.session_cleanup_interval = seconds * SECOND
        };
        let rare = node(&stage, "B", &Gate::new(), every(600)).await;
        assert_eq!(takes_turn(&stage, "1", "held by B").await, "B first 1, attempt 1");
        rare.drain().await;
        let rare = node(&stage, "C", &Gate::new(), every(600)).await;
        assert_eq!(takes_turn(&stage, "2", "held by C").await, "C first 1, attempt 1");
        let before = shown(&stage, "held by C").await.epoch;
        node(&stage, "A", &Gate::new(), every(5)).await;
        pass_calmly(&stage, 60 * SECOND, SECOND).await;
        assert!(!is_listed(&stage, "held by B").await, "it had ended");
        let held = shown(&stage, "held by C").await;
        assert!(held.epoch == before && held.locked_until_ms > stage.clock.now_ms());
        assert_eq!(takes_turn(&stage, "3", "held by C").await, "C later 2, attempt 1");
        drop(rare);
        stage.stop().await;
    }

    async fn d20_the_compatible_clean_up_returns_exactly_how_many_sessions_it_removed(stage) {
        let runtime = node(&stage, "A", &Gate::new(), |_| {}).await;
        for session in ["one", "two", "three"] {
            takes_turn(&stage, session, session).await;
        }
        let clean_up = async || stage.inner().cleanup_orphaned_sessions(SECOND).await.expect("cleans up");
        assert_eq!(clean_up().await, 0, "they are held");
        runtime.shutdown(Some(0)).await;
        let other = node(&stage, "B", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "again", "two").await;
        assert_eq!(clean_up().await, 2, "one is held");
        assert_eq!(clean_up().await, 0, "they are gone");
        other.shutdown(Some(0)).await;
        assert_eq!(clean_up().await, 1);
        assert_eq!(stage.observer().list_sessions(None).await.expect("lists"), Vec::new());
    }

    async fn d32_an_idle_time_just_beyond_the_renewal_of_activities_keeps_a_session_while_one_runs(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let safe = |options: &mut RuntimeOptions| options.session_idle_timeout = 26 * SECOND;
        node(&stage, "A", &gate, |options| {
            safe(options);
            options.session_hooks = told.hooks();
        })
        .await;
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        let before = shown(&stage, "chat").await.epoch;
        node(&stage, "B", &Gate::new(), safe).await;
        pass_calmly(&stage, 180 * SECOND, SECOND).await;
        assert_eq!((shown(&stage, "chat").await.epoch, told.all()), (before, vec!["attach chat".to_owned()]));
        gate.open();
        assert_eq!(stage.output("1").await, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A later 2, attempt 1");
        stage.stop().await;
    }

    async fn d12_a_continue_as_new_cancels_what_runs_on_its_session_and_keeps_the_session(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let options = RuntimeOptions {
            worker_node_id: Some("A".to_owned()),
            session_hooks: told.hooks(),
            ..stage.options()
        };
        let works = turns(&gate);
        stage.run_with(works, orchestrations().register("Leaves", leaves), options).await;
        stage.start("1", "Leaves", "").await;
        gate.is_entered().await;
        stage.client.raise_event("1", "go", "").await.expect("raises");
        assert_eq!(stage.output("1").await, Ok("A later 2, attempt 1".to_owned()));
        let kinds: Vec<String> =
            stage.history_of("1", 1).await.iter().map(|event| format!("{:?}", event.kind)).collect();
        assert!(kinds.iter().any(|kind| kind.starts_with("ActivityCancelRequested")), "{kinds:?}");
        stage.until("it is detached", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Closed after 2"], "one attachment");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_the_copilot_pattern_stays_on_the_worker_that_hydrated_its_new_guid(stage) {
        for id in ["A", "B"] {
            let works = activities().register("Place", |ctx: ActivityContext, step: String| async move {
                let node = ctx.worker_id().split('-').nth(2).unwrap_or_default().to_owned();
                let session = ctx.session().expect("runs on a session");
                let hydrated = session.state_or_init(async { Ok(step.clone()) }).await?;
                Ok(format!("{step} on {node} after {hydrated}; "))
            });
            let options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
            stage.run_with(works, orchestrations().register("Copilot", copilot), options).await;
        }
        let mut ids = std::collections::BTreeSet::new();
        for instance in ["1", "2", "3", "4"] {
            let output = stage.ends_after(instance, "Copilot", "").await.expect("completes");
            let (session, said) = output.split_once('/').expect("session/said");
            assert!(ids.insert(session.to_owned()) && session.len() == 36, "{session}");
            let node = if said.starts_with("turn on A") { "A" } else { "B" };
            let turn = format!("turn on {node} after hydrate; checkpoint on {node} after hydrate; ");
            assert_eq!(said, turn.repeat(3));
        }
        stage.stop().await;
    }

    async fn d7_ten_thousand_sessions_that_are_opened_and_closed_leave_no_row_and_no_memory(stage) {
        runs(&stage, "A").await;
        // The first round fills caches.
        assert_eq!(stage.ends_after("1", "Cycles", "2000").await, Ok("done".to_owned()));
        let before = resident_pages();
        assert_eq!(stage.ends_after("2", "Cycles", "10000").await, Ok("done".to_owned()));
        let grown = resident_pages().saturating_sub(before);
        assert_eq!(stage.observer().list_sessions(None).await.expect("lists"), Vec::new());
        // The memory store keeps the histories.
        let limit = if stage.kind == StoreKind::Memory { 16_384 } else { 4_096 };
        assert!(grown < limit, "{grown} pages");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d11_sessions_that_had_a_turn_and_were_closed_are_forgotten_by_their_process(stage) {
        runs(&stage, "A").await;
        assert_eq!(stage.ends_after("1", "Turns", "300").await, Ok("done".to_owned()));
        assert_eq!(stage.observer().list_sessions(None).await.expect("lists"), Vec::new());
        pass_calmly(&stage, 31 * SECOND, SECOND).await;
        assert_eq!(stage.faults.calls("release_sessions"), 300, "each is released once");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d9_beside_a_worker_without_owned_sessions_nothing_of_them_is_lost(stage) {
        acts(&stage, "T", &Gate::new(), only_decides).await;
        // It speaks to the store as a worker of the compatible crate does.
        let old = old_worker(&stage).await;
        for n in 0..5 {
            stage.start(&format!("early {n}"), "Script", "open chat;Turn chat;wait go;Turn chat").await;
            stage.has(&format!("early {n}"), "SessionOpened", 1).await;
        }
        pass_calmly(&stage, 20 * SECOND, SECOND).await;
        acts(&stage, "A", &Gate::new(), only_works).await;
        for n in 0..5 {
            let instance = format!("early {n}");
            stage.until("its first turn ran", async || {
                stage.pass(SECOND);
                stage.settle().await;
                stage.kinds(&instance).await.contains(&"ExternalSubscribed".to_owned())
            })
            .await;
            stage.client.raise_event(instance.as_str(), "go", "").await.expect("raises");
            let ended = stage.ends_as_time_passes(&instance, SECOND).await;
            assert!(ended.is_ok(), "{ended:?}");
        }
        old.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
