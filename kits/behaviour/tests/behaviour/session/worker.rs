//! Sessions as a worker serves them: affinity, capacity, renewal (R2.13, D14 to D28).

use std::sync::Arc;

use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::client::SessionInfo;
use steadfast::providers::ProviderError;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, OrchestrationContext, SessionKey};
use steadfast_behaviour::{
    Lines, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;

/// Registers `Turn`, which returns its node and its delivery, and `Hold`, which waits at the gate first.
fn chat(gate: &Gate) -> ActivityRegistryBuilder {
    let gate = gate.clone();
    activities().register("Turn", place).register("Hold", move |ctx: ActivityContext, input: String| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            place(ctx, input).await
        }
    })
}

async fn place(ctx: ActivityContext, _: String) -> Result<String, String> {
    let node = ctx.worker_id().split('-').nth(2).unwrap_or_default();
    Ok(format!("{} on {node}, attempt {}", ctx.session_id().unwrap_or("none"), ctx.counted_deliveries()))
}

/// Schedules one activity: its input is `activity/session`, the session may be empty.
async fn one(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.split_once('/').expect("activity/session") {
        (activity, "") => ctx.schedule_activity(activity, "").await,
        (activity, session) => ctx.schedule_activity_on_session(activity, "", session).await,
    }
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("One", one)
}

async fn node(
    stage: &Stage,
    id: &str,
    gate: &Gate,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    change(&mut options);
    stage.run_with(chat(gate), flows(), options).await
}

async fn session(stage: &Stage, id: &str) -> Option<SessionInfo> {
    stage.observer().get_session(&SessionKey::shared(id)).await.expect("the store answers")
}

on_every_store! {
    async fn r2_13_activities_of_a_session_stay_with_the_runtime_that_holds_it(stage) {
        let (gate, other) = (Gate::new(), Gate::new());
        node(&stage, "A", &gate, |options| options.worker_concurrency = 1).await;
        let first = stage.ends_after("first", "One", "Turn/chat").await;
        assert_eq!(first, Ok("chat on A, attempt 1".to_owned()));
        // The only slot of A is busy; B is idle, and must leave the session alone.
        stage.start("busy", "One", "Hold/").await;
        gate.is_entered().await;
        node(&stage, "B", &other, |options| options.worker_concurrency = 1).await;
        stage.start("second", "One", "Turn/chat").await;
        stage.has("second", "ActivityScheduled", 1).await;
        let plain = stage.ends_after("plain", "One", "Turn/").await;
        assert_eq!(plain, Ok("none on B, attempt 1".to_owned()), "B took what was scheduled later");
        assert_eq!(stage.kinds("second").await, ["OrchestrationStarted", "ActivityScheduled"]);
        gate.open();
        assert_eq!(stage.output("second").await, Ok("chat on A, attempt 1".to_owned()));
        assert_eq!(stage.output("busy").await, Ok("none on A, attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_all_slots_of_a_runtime_serve_its_sessions(stage) {
        let gate = Gate::new();
        node(&stage, "A", &gate, |options| options.worker_concurrency = 2).await;
        for instance in ["one", "two"] {
            stage.start(instance, "One", "Hold/chat").await;
        }
        gate.is_entered().await;
        gate.is_entered().await;
        gate.open();
        gate.open();
        for instance in ["one", "two"] {
            assert_eq!(stage.output(instance).await, Ok("chat on A, attempt 1".to_owned()));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_slots_of_a_runtime_without_a_node_id_share_one_owner_too(stage) {
        let gate = Gate::new();
        stage.run(chat(&gate), flows()).await;
        for instance in ["one", "two"] {
            stage.start(instance, "One", "Hold/chat").await;
            // Both run at the same time, so the second slot was let in by the first one's claim.
            gate.is_entered().await;
        }
        gate.open();
        gate.open();
        for instance in ["one", "two"] {
            stage.ends(instance).await.expect("completes");
        }
        if stage.kind != StoreKind::Wrapped {
            let owner = session(&stage, "chat").await.and_then(|chat| chat.owner).expect("is held").id;
            assert!(
                owner.len() == 32 && u128::from_str_radix(&owner, 16).is_ok(),
                "128 random bits: {owner}"
            );
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_session_stays_through_continue_as_new(stage) {
        let (gate, other) = (Gate::new(), Gate::new());
        let flow = || {
            orchestrations().register("Long", |ctx: OrchestrationContext, seen: String| async move {
                let place = ctx.schedule_activity_on_session("Turn", "", "chat").await?;
                let seen = format!("{seen}{place}; ");
                match ctx.execution_id() {
                    5 => Ok(seen),
                    _ => ctx.continue_as_new(seen).await,
                }
            })
        };
        for (id, gate) in [("A", &gate), ("B", &other)] {
            let options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
            stage.run_with(chat(gate), flow(), options).await;
        }
        let seen = stage.ends_after("a", "Long", "").await.expect("completes");
        assert!(
            seen == "chat on A, attempt 1; ".repeat(5) || seen == "chat on B, attempt 1; ".repeat(5),
            "{seen}"
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_runtime_at_its_session_limit_leaves_other_sessions_and_does_other_work(stage) {
        let gate = Gate::new();
        let full = |options: &mut RuntimeOptions| {
            options.worker_concurrency = 3;
            options.max_sessions_per_runtime = 1;
        };
        node(&stage, "A", &gate, full).await;
        stage.start("held", "One", "Hold/one").await;
        gate.is_entered().await;
        stage.start("waits", "One", "Turn/two").await;
        stage.has("waits", "ActivityScheduled", 1).await;
        for n in 0..3 {
            let plain = stage.ends_after(&format!("plain{n}"), "One", "Turn/").await;
            assert_eq!(plain, Ok("none on A, attempt 1".to_owned()));
        }
        assert_eq!(stage.kinds("waits").await, ["OrchestrationStarted", "ActivityScheduled"]);
        gate.open();
        assert_eq!(stage.output("held").await, Ok("one on A, attempt 1".to_owned()));
        // The wrapper cannot be told of the limit: there a slot that asked before may have to ask again.
        let output = stage.ends_as_time_passes("waits", SECOND).await;
        assert_eq!(output, Ok("two on A, attempt 1".to_owned()), "no attempt was wasted");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_two_sessions_fill_a_limit_of_two_and_a_third_waits(stage) {
        let gate = Gate::new();
        let full = |options: &mut RuntimeOptions| {
            options.worker_concurrency = 4;
            options.max_sessions_per_runtime = 2;
        };
        node(&stage, "A", &gate, full).await;
        for session in ["one", "two"] {
            stage.start(session, "One", &format!("Hold/{session}")).await;
            gate.is_entered().await;
        }
        stage.start("three", "One", "Turn/three").await;
        stage.has("three", "ActivityScheduled", 1).await;
        assert_eq!(stage.ends_after("plain", "One", "Turn/").await, Ok("none on A, attempt 1".to_owned()));
        assert_eq!(stage.kinds("three").await, ["OrchestrationStarted", "ActivityScheduled"]);
        gate.open();
        let output = stage.ends_as_time_passes("three", SECOND).await;
        assert_eq!(output, Ok("three on A, attempt 1".to_owned()));
        gate.open();
        stage.ends("one").await.expect("completes");
        stage.ends("two").await.expect("completes");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_with_a_limit_of_zero_session_work_is_left_to_others(stage) {
        let (gate, other) = (Gate::new(), Gate::new());
        node(&stage, "A", &gate, |options| options.max_sessions_per_runtime = 0).await;
        stage.start("a", "One", "Turn/chat").await;
        stage.has("a", "ActivityScheduled", 1).await;
        assert_eq!(stage.ends_after("plain", "One", "Turn/").await, Ok("none on A, attempt 1".to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ActivityScheduled"]);
        node(&stage, "B", &other, |_| {}).await;
        assert_eq!(stage.output("a").await, Ok("chat on B, attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_sessions_are_renewed_and_cleaned_up_at_their_intervals_until_the_runtime_stops(stage) {
        let runtime = node(&stage, "A", &Gate::new(), |_| {}).await;
        let calls = || (stage.faults.calls("renew_sessions"), stage.faults.calls("cleanup_sessions"));
        stage.until("it waits", async || stage.faults.calls("fetch_work") == 2).await;
        pass_calmly(&stage, 14 * SECOND, 2 * SECOND).await;
        assert_eq!(calls(), (0, 0), "not before its time");
        pass_calmly(&stage, SECOND, SECOND).await;
        assert_eq!(calls(), (1, 0));
        pass_calmly(&stage, 285 * SECOND, 5 * SECOND).await;
        assert_eq!(calls(), (20, 1));
        runtime.shutdown(Some(0)).await;
        stage.pass(3600 * SECOND);
        stage.observer().get_queue_depths().await.expect("the store answers");
        assert_eq!(calls(), (20, 1));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn r2_13_a_runtime_at_its_session_limit_serves_the_sessions_that_it_serves_already(stage) {
        let gate = Gate::new();
        let full = |options: &mut RuntimeOptions| {
            options.worker_concurrency = 3;
            options.max_sessions_per_runtime = 1;
        };
        node(&stage, "A", &gate, full).await;
        stage.start("held", "One", "Hold/one").await;
        gate.is_entered().await;
        stage.start("waits", "One", "Turn/two").await;
        stage.has("waits", "ActivityScheduled", 1).await;
        let same = stage.ends_after("same", "One", "Turn/one").await;
        assert_eq!(same, Ok("one on A, attempt 1".to_owned()), "one session counts once");
        assert_eq!(stage.kinds("waits").await, ["OrchestrationStarted", "ActivityScheduled"]);
        gate.open();
        // No time passes: the slots ask again as soon as there is room.
        assert_eq!(stage.output("waits").await, Ok("two on A, attempt 1".to_owned()));
        assert_eq!(stage.faults.abandoned(), 0, "nothing is fetched only to be given back");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_held_session_keeps_its_owner_until_it_is_idle(stage) {
        node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.ends_after("first", "One", "Turn/chat").await.expect("completes");
        let begin = session(&stage, "chat").await.expect("is there");
        assert_eq!(begin.owner.as_ref().map(|owner| owner.id.as_str()), Some("A"));
        pass_calmly(&stage, 290 * SECOND, 5 * SECOND).await;
        let held = session(&stage, "chat").await.expect("is there");
        assert_eq!((held.owner, held.epoch), (begin.owner, begin.epoch));
        assert!(held.locked_until_ms > stage.clock.now_ms(), "its lease lives");
        // Idle for longer than 300 s, it is not renewed, and its lease ends.
        pass_calmly(&stage, 60 * SECOND, 5 * SECOND).await;
        let ended = session(&stage, "chat").await;
        assert!(
            ended.is_none_or(|ended| ended.locked_until_ms <= stage.clock.now_ms()),
            "its lease has ended"
        );
        stage.stop().await;
    }

    async fn r2_13_a_long_activity_keeps_its_session(stage) {
        let gate = Gate::new();
        node(&stage, "A", &gate, |_| {}).await;
        stage.start("a", "One", "Hold/chat").await;
        gate.is_entered().await;
        let begin = session(&stage, "chat").await.expect("is there");
        pass_calmly(&stage, 900 * SECOND, 5 * SECOND).await;
        let held = session(&stage, "chat").await.expect("is there");
        assert_eq!((held.owner, held.epoch), (begin.owner, begin.epoch));
        assert!(held.locked_until_ms > stage.clock.now_ms(), "its lease lives");
        gate.open();
        assert_eq!(stage.output("a").await, Ok("chat on A, attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f7_a_renewal_of_sessions_that_fails_for_a_while_loses_none(stage) {
        let (lines, _guard) = Lines::collect();
        node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.ends_after("first", "One", "Turn/chat").await.expect("completes");
        let begin = session(&stage, "chat").await.expect("is there");
        stage.faults.refuse("renew_sessions", 3, ProviderError::retryable("renew_session_lock", "down"));
        pass_calmly(&stage, 60 * SECOND, SECOND).await;
        assert_eq!(lines.saying("WARN", "sessions could not be renewed").len(), 3);
        let held = session(&stage, "chat").await.expect("is there");
        assert_eq!((held.owner, held.epoch), (begin.owner, begin.epoch));
        assert!(held.locked_until_ms > stage.clock.now_ms(), "its lease lives");
        stage.stop().await;
    }
}
