//! Sessions over several runtimes as applications use them: fan-outs, families, versions, unequal and dying
//! workers (D12 to D14, D18, D23, D26, D28). `docs/contract/sessions.md` says which test of the
//! designs each stands for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::bench::{flows, node, shown, takes_turn, troubled, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, Either2, EventKind, OrchestrationContext};
use steadfast_behaviour::{Faults, Stage, activities, on_every_full_store, orchestrations};
use steadfast_clock::Clock;
use tokio::sync::Barrier;

/// Tells on which node and under which attachment an activity runs.
fn place_of(ctx: &ActivityContext) -> String {
    let node = ctx.worker_id().split('-').nth(2).unwrap_or_default();
    let Some(session) = ctx.session() else { return format!("plain on {node}") };
    format!("{} on {node} under {}, attempt {}", session.id(), session.epoch(), ctx.counted_deliveries())
}

/// Returns what `Place` says on a session that a node holds now.
async fn placed(stage: &Stage, session: &str, node: &str) -> String {
    format!("{session} on {node} under {}, attempt 1", shown(stage, session).await.epoch)
}

/// Runs one `Place` for each word of a list, all at once: on the session that it names, or on none if it is
/// `plain`.
async fn fan(ctx: OrchestrationContext, sessions: String) -> Result<String, String> {
    let places = sessions.split(' ').map(|session| match session {
        "plain" => ctx.schedule_activity("Place", ""),
        session => ctx.schedule_activity_on_session("Place", "", session),
    });
    let places: Result<Vec<_>, _> = ctx.join(places.collect()).await.into_iter().collect();
    Ok(places?.join("; "))
}

/// Fans out in each of three executions.
async fn fans(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (sessions, seen) = input.split_once('/').expect("sessions/seen");
    let seen = format!("{seen}{}; ", fan(ctx.clone(), sessions.to_owned()).await?);
    match ctx.execution_id() {
        3 => Ok(seen),
        _ => ctx.continue_as_new(format!("{sessions}/{seen}")).await,
    }
}

/// Has an activity on a session before, in and after a child.
async fn parent(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    let before = ctx.schedule_activity_on_session("Place", "", &session).await?;
    let child = ctx.schedule_sub_orchestration("Fan", session.clone()).await?;
    let after = ctx.schedule_activity_on_session("Place", "", &session).await?;
    Ok(format!("{before}; {child}; {after}"))
}

async fn upgrades(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    let seen = ctx.schedule_activity_on_session("Place", "", &session).await?;
    ctx.continue_as_new_versioned("2.0.0", format!("{session}/{seen}")).await
}

async fn upgraded(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (session, seen) = input.split_once('/').expect("session/seen");
    let places = [(); 2].map(|()| ctx.schedule_activity_on_session("Place", "", session));
    let places: Result<Vec<_>, _> = ctx.join(places.into()).await.into_iter().collect();
    Ok(format!("first {seen}; then {}", places?.join("; ")))
}

fn plays() -> OrchestrationRegistryBuilder {
    flows()
        .register("Fan", fan)
        .register("Fans", fans)
        .register("Parent", parent)
        .register_versioned("Upgrade", "1.0.0", upgrades)
        .register_versioned("Upgrade", "2.0.0", upgraded)
}

/// Starts a runtime with one slot that has every play.
async fn player(stage: &Stage, id: &str, gate: &Gate) -> Arc<Runtime> {
    let works = turns(gate);
    let works = works.register("Place", |ctx: ActivityContext, _: String| async move { Ok(place_of(&ctx)) });
    let node = Some(id.to_owned());
    let options = RuntimeOptions { worker_node_id: node, worker_concurrency: 1, ..stage.options() };
    stage.run_with(works, plays(), options).await
}

/// Starts A and B, each with sessions that it holds. The only slot of A is busy until the gate is opened.
async fn players(stage: &Stage, of_a: &[&str], of_b: &[&str]) -> Gate {
    let gate = Gate::new();
    player(stage, "A", &gate).await;
    for session in of_a {
        assert_eq!(takes_turn(stage, &format!("begin {session}"), session).await, "A first 1, attempt 1");
    }
    stage.start("busy", "One", "Hold/").await;
    gate.is_entered().await;
    player(stage, "B", &Gate::new()).await;
    for session in of_b {
        assert_eq!(takes_turn(stage, &format!("begin {session}"), session).await, "B first 1, attempt 1");
    }
    gate
}

async fn is_free(stage: &Stage, gate: &Gate) {
    gate.open();
    assert_eq!(stage.output("busy").await, Ok("A without a session".to_owned()));
}

/// Counts the milliseconds until the lease of a session ends.
async fn leased_for(stage: &Stage, session: &str) -> u64 {
    shown(stage, session).await.locked_until_ms.saturating_sub(stage.clock.now_ms())
}

/// Makes a runtime wait no longer than a second for work, so that one that dies has soon asked for the last
/// time.
fn asks_often(options: &mut RuntimeOptions) {
    options.dispatcher_long_poll_timeout = SECOND;
}

/// Cuts a runtime off for ever. What it had asked before is answered, with nothing.
async fn dies(stage: &Stage, faults: &Faults) {
    faults.outage();
    pass_calmly(stage, 2 * SECOND, SECOND / 4).await;
}

const WAITS: [&str; 2] = ["OrchestrationStarted", "ActivityScheduled"];

/// The conversations that a worker has in memory, with their turns.
type Memory = Arc<Mutex<BTreeMap<String, usize>>>;

/// Has a turn of a conversation, which begins when its worker does not have it.
fn talk(ctx: &ActivityContext, memory: &Memory) -> String {
    let id = ctx.session_id().expect("runs on a session");
    let mut memory = memory.lock().expect("nobody panics");
    let turn = memory.entry(id.to_owned()).or_default();
    *turn += 1;
    format!("turn {turn} of {}; ", place_of(ctx))
}

/// Talks, waits for a message, talks, sleeps, talks, continues as new, and talks.
async fn patient(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (id, said) = input.split_once('/').expect("conversation/said");
    if ctx.execution_id() > 1 {
        return Ok(said.to_owned() + &ctx.schedule_activity_on_session("Talk", "", id).await?);
    }
    let mut said = ctx.schedule_activity_on_session("Talk", "begin", id).await?;
    ctx.schedule_wait("message").await;
    said += &ctx.schedule_activity_on_session("Talk", "", id).await?;
    ctx.schedule_timer(60 * SECOND).await;
    said += &ctx.schedule_activity_on_session("Talk", "", id).await?;
    ctx.continue_as_new(format!("{id}/{said}")).await
}

async fn simple(ctx: OrchestrationContext, id: String) -> Result<String, String> {
    let mut said = ctx.schedule_activity_on_session("Talk", "begin", &id).await?;
    for _ in 0..2 {
        said += &ctx.schedule_activity_on_session("Talk", "", &id).await?;
    }
    Ok(said)
}

/// Waits on a session for what does not come, or for a signal; then has a turn on the same session.
async fn race(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    let work = ctx.schedule_activity_on_session("Stay", "", &session);
    match ctx.select2(work, ctx.schedule_wait("enough")).await {
        Either2::First(result) => result,
        Either2::Second(_) => ctx.schedule_activity_on_session("Turn", "", &session).await,
    }
}

/// Starts a runtime whose `Stay` ends when it is cancelled, and then says so.
async fn racer(stage: &Stage, id: &str, stays: &Arc<AtomicUsize>, left: &Arc<AtomicUsize>) -> Arc<Runtime> {
    let (stays, left) = (Arc::clone(stays), Arc::clone(left));
    let works = turns(&Gate::new()).register("Stay", move |ctx: ActivityContext, _: String| {
        let (stays, left) = (Arc::clone(&stays), Arc::clone(&left));
        async move {
            stays.fetch_add(1, Ordering::Relaxed);
            ctx.cancelled().await;
            left.fetch_add(1, Ordering::Relaxed);
            Err("nobody wants it".to_owned())
        }
    });
    let options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    stage.run_with(works, flows().register("Race", race), options).await
}

on_every_full_store! {
    async fn d19_the_loser_of_a_race_is_cancelled_and_its_session_goes_on_with_its_owner(stage) {
        let (stays, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        racer(&stage, "A", &stays, &left).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        let before = shown(&stage, "chat").await.epoch;
        stage.start("2", "Race", "chat").await;
        stage.has("2", "ExternalSubscribed", 1).await;
        stage.until("it runs", async || stays.load(Ordering::Relaxed) == 1).await;
        // Turns may run in either from now on: a runtime that did not run the turn hears of it when it
        // renews.
        racer(&stage, "B", &stays, &left).await;
        stage.client.raise_event("2", "enough", "").await.expect("raises");
        assert_eq!(stage.output("2").await, Ok("A later 2, attempt 1".to_owned()));
        assert_eq!(shown(&stage, "chat").await.epoch, before, "one attachment in all");
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        stage.until("it is cancelled", async || left.load(Ordering::Relaxed) == 1).await;
        assert_eq!(takes_turn(&stage, "3", "chat").await, "A later 3, attempt 1");
        assert_eq!(shown(&stage, "chat").await.epoch, before);
        assert_eq!(stays.load(Ordering::Relaxed), 1, "it does not run again");
        let kinds = stage.kinds("2").await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCancelRequested").count(), 1, "{kinds:?}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d18_an_activity_that_dies_with_its_owner_runs_again_elsewhere_under_a_new_epoch(stage) {
        let (faults, gate, other) = (Faults::default(), Gate::new(), Gate::new());
        let dead = troubled(&stage, "A", &gate, &faults, asks_often).await;
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        let before = shown(&stage, "chat").await.epoch;
        dies(&stage, &faults).await;
        node(&stage, "B", &other, |_| {}).await;
        pass_calmly(&stage, 27 * SECOND, SECOND).await;
        assert_eq!(other.waiting(), 0, "its locks still live");
        other.open();
        let again = stage.ends_as_time_passes("1", SECOND).await;
        assert_eq!(again, Ok("B first 1, attempt 2".to_owned()));
        assert!(shown(&stage, "chat").await.epoch > before, "a new attachment");
        let once =
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("1").await, once);
        dead.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_many_sessions_over_two_runtimes_each_stay_with_their_owner(stage) {
        let (gate, other) = (Gate::new(), Gate::new());
        for (id, gate) in [("A", &gate), ("B", &other)] {
            node(&stage, id, gate, |options| options.worker_concurrency = 3).await;
        }
        for n in 0..6 {
            stage.start(&format!("{n} 1"), "One", &format!("Hold/{n}")).await;
        }
        for gate in [&gate, &other] {
            for _ in 0..3 {
                gate.is_entered().await;
            }
        }
        for _ in 0..3 {
            gate.open();
            other.open();
        }
        let mut of_a = 0;
        for n in 0..6 {
            let first = stage.output(&format!("{n} 1")).await.expect("completes");
            let (owner, rest) = first.split_once(' ').expect("names its node");
            assert_eq!(rest, "first 1, attempt 1");
            of_a += usize::from(owner == "A");
            for turn in 2..5 {
                let later = takes_turn(&stage, &format!("{n} {turn}"), &n.to_string()).await;
                assert_eq!(later, format!("{owner} later {turn}, attempt 1"));
            }
        }
        assert_eq!(of_a, 3, "each had as many as it has slots");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d18_each_runtime_applies_its_own_idle_time_to_its_own_sessions(stage) {
        let gate = Gate::new();
        node(&stage, "A", &gate, |options| {
            options.worker_concurrency = 1;
            options.session_idle_timeout = 40 * SECOND;
        })
        .await;
        takes_turn(&stage, "1", "short").await;
        // What A has at hand keeps its slot, so that B serves whatever is free.
        stage.start("busy", "One", "Hold/").await;
        gate.is_entered().await;
        node(&stage, "B", &Gate::new(), |options| options.session_idle_timeout = 600 * SECOND).await;
        assert_eq!(takes_turn(&stage, "2", "long").await, "B first 1, attempt 1");
        pass_calmly(&stage, 60 * SECOND, 5 * SECOND).await;
        stage.until("A lets it go", async || leased_for(&stage, "short").await == 0).await;
        assert!(leased_for(&stage, "long").await > 0, "B is more patient");
        assert_eq!(takes_turn(&stage, "3", "short").await, "B first 1, attempt 1");
        pass_calmly(&stage, 300 * SECOND, 5 * SECOND).await;
        assert_eq!(
            takes_turn(&stage, "4", "short").await,
            "B later 2, attempt 1",
            "it lives by B's time now"
        );
        assert_eq!(takes_turn(&stage, "5", "long").await, "B later 2, attempt 1");
        is_free(&stage, &gate).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d26_what_is_beyond_the_limit_of_one_runs_on_the_other_and_plain_work_on_both(stage) {
        let (gate, other) = (Gate::new(), Gate::new());
        let limits = |slots, limit| {
            move |options: &mut RuntimeOptions| {
                options.worker_concurrency = slots;
                options.max_sessions_per_runtime = limit;
            }
        };
        node(&stage, "A", &gate, limits(4, 2)).await;
        for n in 0..5 {
            stage.start(&format!("session {n}"), "One", &format!("Hold/{n}")).await;
            stage.has(&format!("session {n}"), "ActivityScheduled", 1).await;
        }
        gate.is_entered().await;
        gate.is_entered().await;
        node(&stage, "B", &other, limits(5, 100)).await;
        for _ in 0..3 {
            other.is_entered().await;
        }
        for n in 0..4 {
            stage.start(&format!("plain {n}"), "One", "Hold/").await;
        }
        // All slots of both are busy now: two of A and two of B with plain work.
        for gate in [&gate, &other] {
            gate.is_entered().await;
            gate.is_entered().await;
        }
        for _ in 0..5 {
            gate.open();
            other.open();
        }
        for (n, owner) in ["A", "A", "B", "B", "B"].into_iter().enumerate() {
            assert_eq!(
                stage.output(&format!("session {n}")).await,
                Ok(format!("{owner} first 1, attempt 1"))
            );
        }
        for n in 0..4 {
            stage.output(&format!("plain {n}")).await.expect("completes");
        }
        assert_eq!(stage.faults.abandoned(), 0, "nothing is fetched only to be given back");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_a_named_node_has_its_sessions_back_and_one_without_a_name_waits_for_the_lease(stage) {
        let [named, nameless] = [Faults::default(), Faults::default()];
        let first = troubled(&stage, "A", &Gate::new(), &named, asks_often).await;
        assert_eq!(takes_turn(&stage, "1", "of A").await, "A first 1, attempt 1");
        dies(&stage, &named).await;
        let second = troubled(&stage, "", &Gate::new(), &nameless, |options| {
            asks_often(options);
            options.worker_node_id = None;
        })
        .await;
        takes_turn(&stage, "2", "of nobody").await;
        dies(&stage, &nameless).await;
        stage.run(turns(&Gate::new()), flows()).await;
        for (instance, session) in [("3", "of A"), ("4", "of nobody")] {
            stage.start(instance, "One", &format!("Turn/{session}")).await;
            stage.has(instance, "ActivityScheduled", 1).await;
        }
        let plain = takes_turn(&stage, "plain", "").await;
        let (somebody, _) = plain.split_once(' ').expect("names its node");
        assert_eq!(stage.kinds("3").await, WAITS, "somebody new has no claim to it");
        let again = node(&stage, "A", &Gate::new(), |_| {}).await;
        // No time passes.
        assert_eq!(stage.output("3").await, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(stage.kinds("4").await, WAITS);
        again.shutdown(Some(0)).await;
        pass_calmly(&stage, 27 * SECOND, SECOND).await;
        assert_eq!(stage.kinds("4").await, WAITS, "the lease still lives");
        let moved = stage.ends_as_time_passes("4", SECOND / 4).await;
        assert_eq!(moved, Ok(format!("{somebody} first 1, attempt 1")));
        first.shutdown(Some(0)).await;
        second.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d13_a_child_that_names_the_session_of_its_parent_runs_on_the_same_owner(stage) {
        let gate = players(&stage, &["chat"], &[]).await;
        is_free(&stage, &gate).await;
        let place = placed(&stage, "chat", "A").await;
        assert_eq!(stage.ends_after("1", "Parent", "chat").await, Ok([place.as_str(); 3].join("; ")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_a_fan_out_on_a_session_stays_with_its_owner_although_another_is_idle(stage) {
        let gate = players(&stage, &["chat"], &[]).await;
        stage.start("1", "Fan", &["chat"; 10].join(" ")).await;
        stage.has("1", "ActivityScheduled", 10).await;
        assert_eq!(takes_turn(&stage, "plain", "").await, "B without a session");
        assert_eq!(stage.kinds("1").await.len(), 11, "none has run");
        is_free(&stage, &gate).await;
        let place = placed(&stage, "chat", "A").await;
        assert_eq!(stage.output("1").await, Ok([place.as_str(); 10].join("; ")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d28_of_a_mixed_fan_out_another_takes_the_plain_ones_and_the_owner_those_of_the_session(stage) {
        let gate = players(&stage, &["chat"], &[]).await;
        stage.start("1", "Fan", &["chat plain"; 10].join(" ")).await;
        stage.has("1", "ActivityCompleted", 10).await;
        stage.settle().await;
        let completed = stage.kinds("1").await.into_iter().filter(|kind| kind == "ActivityCompleted").count();
        assert_eq!(completed, 10, "those of the session wait for A");
        is_free(&stage, &gate).await;
        let both = format!("{}; plain on B", placed(&stage, "chat", "A").await);
        assert_eq!(stage.output("1").await, Ok([both.as_str(); 10].join("; ")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_a_fan_out_over_sessions_of_two_owners_runs_each_where_its_session_is(stage) {
        let gate = players(&stage, &["one", "two"], &["three"]).await;
        stage.start("1", "Fan", &["one two three plain"; 3].join(" ")).await;
        stage.has("1", "ActivityCompleted", 6).await;
        is_free(&stage, &gate).await;
        let mut all = Vec::new();
        for (session, owner) in [("one", "A"), ("two", "A"), ("three", "B")] {
            all.push(placed(&stage, session, owner).await);
        }
        all.push("plain on B".to_owned());
        assert_eq!(stage.output("1").await, Ok(vec![all.join("; "); 3].join("; ")));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_a_session_stays_through_continue_as_new_into_another_version(stage) {
        let gate = players(&stage, &["chat"], &[]).await;
        is_free(&stage, &gate).await;
        stage.client.start_orchestration_versioned("1", "Upgrade", "1.0.0", "chat").await.expect("starts");
        let place = placed(&stage, "chat", "A").await;
        assert_eq!(stage.output("1").await, Ok(format!("first {place}; then {place}; {place}")));
        for (execution, expected) in [(1, "1.0.0"), (2, "2.0.0")] {
            let begin = stage.history_of("1", execution).await.into_iter().next().expect("has begun");
            let EventKind::OrchestrationStarted { version, .. } = begin.kind else { panic!("{begin:?}") };
            assert_eq!(version, expected);
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_fan_outs_and_continue_as_new_over_two_runtimes_leave_each_session_one_owner(stage) {
        let gate = players(&stage, &["one"], &["two"]).await;
        is_free(&stage, &gate).await;
        stage.start("1", "Fans", "one two one two/").await;
        let (one, two) = (placed(&stage, "one", "A").await, placed(&stage, "two", "B").await);
        assert_eq!(stage.output("1").await, Ok(format!("{one}; {two}; ").repeat(6)));
        assert_eq!(placed(&stage, "one", "A").await, one, "one attachment in all");
        assert_eq!(placed(&stage, "two", "B").await, two);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d18_runtimes_of_unequal_limits_and_leases_share_sessions_and_each_lease_is_its_owners(stage) {
        let (faults, gate) = (Faults::default(), Gate::new());
        let small = troubled(&stage, "A", &gate, &faults, |options| {
            asks_often(options);
            options.max_sessions_per_runtime = 1;
            options.session_lock_timeout = 10 * SECOND;
        })
        .await;
        stage.start("1", "One", "Hold/one").await;
        gate.is_entered().await;
        node(&stage, "B", &Gate::new(), |options| options.session_lock_timeout = 60 * SECOND).await;
        assert_eq!(takes_turn(&stage, "2", "two").await, "B first 1, attempt 1", "A is full");
        assert_eq!((leased_for(&stage, "one").await, leased_for(&stage, "two").await), (10_000, 60_000));
        gate.open();
        assert_eq!(stage.output("1").await, Ok("A first 1, attempt 1".to_owned()));
        dies(&stage, &faults).await;
        stage.start("3", "One", "Turn/one").await;
        stage.has("3", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 7 * SECOND, SECOND).await;
        assert_eq!(stage.kinds("3").await, WAITS, "A's lease still lives");
        pass_calmly(&stage, SECOND, SECOND).await;
        assert_eq!(stage.output("3").await, Ok("B first 1, attempt 1".to_owned()));
        assert_eq!(leased_for(&stage, "one").await, 60_000, "a new owner brings its own lease");
        small.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_conversations_over_two_workers_are_each_in_the_memory_of_one(stage) {
        let memories = [Memory::default(), Memory::default()];
        // All begin together, so that no worker can have more of them than it has slots.
        let all = Arc::new(Barrier::new(4));
        for (id, memory) in ["A", "B"].into_iter().zip(memories.clone()) {
            let all = Arc::clone(&all);
            let works = activities().register("Talk", move |ctx: ActivityContext, input: String| {
                let (said, all) = (talk(&ctx, &memory), Arc::clone(&all));
                async move {
                    if input == "begin" {
                        all.wait().await;
                    }
                    Ok(said)
                }
            });
            let chats = orchestrations().register("Simple", simple).register("Patient", patient);
            let options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
            stage.run_with(works, chats, RuntimeOptions { worker_concurrency: 2, ..options }).await;
        }
        for id in ["1", "2"] {
            stage.start(id, "Simple", id).await;
        }
        for id in ["3", "4"] {
            stage.start(id, "Patient", &format!("{id}/")).await;
        }
        for id in ["3", "4"] {
            stage.has(id, "ExternalSubscribed", 1).await;
            stage.client.raise_event(id, "message", "").await.expect("raises");
            stage.has(id, "TimerCreated", 1).await;
        }
        pass_calmly(&stage, 60 * SECOND, 5 * SECOND).await;
        let mut held = [BTreeMap::new(), BTreeMap::new()];
        for (id, turns) in [("1", 3), ("2", 3), ("3", 4), ("4", 4)] {
            let output = stage.output(id).await.expect("completes");
            let owner = shown(&stage, id).await.owner.expect("has been held").id;
            let place = placed(&stage, id, &owner).await;
            let expected: String = (1..=turns).map(|turn| format!("turn {turn} of {place}; ")).collect();
            assert_eq!(output, expected);
            held[usize::from(owner == "B")].insert(id.to_owned(), turns);
        }
        assert_eq!(held.each_ref().map(BTreeMap::len), [2, 2]);
        assert_eq!(memories.map(|memory| memory.lock().expect("nobody panics").clone()), held);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
