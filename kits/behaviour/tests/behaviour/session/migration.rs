//! How an orchestration deals with a session that moves: it keeps the session where it is (D38, G27), or it
//! is told (D37).

use std::sync::Arc;

use super::bench::{flows, node, release, shown, takes_turn, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, Either2, OrchestrationContext};
use steadfast_behaviour::{Stage, on_every_full_store};
use steadfast_clock::Clock;

/// Has a turn, waits for a message while a keep-alive runs on the session, and has another turn.
async fn parked(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    let mut said = ctx.schedule_activity_on_session("Turn", "", &session).await?;
    for _ in 0..2 {
        let message = ctx.schedule_wait("message");
        let kept = ctx.schedule_activity_on_session("KeepAlive", "", &session);
        match ctx.select2(message, kept).await {
            Either2::First(_) => {
                said += &format!("; {}", ctx.schedule_activity_on_session("Turn", "", &session).await?);
            }
            Either2::Second(ended) => return Err(format!("the keep-alive ended: {ended:?}")),
        }
    }
    Ok(said)
}

/// Waits for a message, and meanwhile for a move of its session, after which it hydrates. Returns what
/// happened.
async fn told(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    let mut said = vec![ctx.schedule_activity_on_session("Turn", "", &session).await?];
    loop {
        let message = ctx.schedule_wait("message");
        let moved = ctx.wait_for_session_migration(&session);
        match ctx.select2(message, moved).await {
            Either2::First(_) => {
                said.push(ctx.schedule_activity_on_session("Turn", "", &session).await?);
                return Ok(said.join("; "));
            }
            Either2::Second(moved) => {
                let from = moved.from.unwrap_or_default();
                let hydrated = ctx.schedule_activity_on_session("Turn", "", &session).await?;
                said.push(format!("{} from {from} to {}, {hydrated}", moved.id, moved.to));
            }
        }
    }
}

fn plays() -> OrchestrationRegistryBuilder {
    flows().register("Parked", parked).register("Told", told)
}

/// Starts a runtime with the plays and a keep-alive, whose sessions are idle after 40 seconds.
async fn keeper(stage: &Stage, id: &str, change: impl FnOnce(&mut RuntimeOptions)) -> Arc<Runtime> {
    let works = turns(&Gate::new()).register("KeepAlive", |ctx: ActivityContext, _: String| async move {
        ctx.cancelled().await;
        Ok(String::new())
    });
    let mut options = RuntimeOptions {
        worker_node_id: Some(id.to_owned()),
        session_idle_timeout: 40 * SECOND,
        ..stage.options()
    };
    change(&mut options);
    stage.run_with(works, plays(), options).await
}

on_every_full_store! {
    async fn g27_a_keep_alive_keeps_a_waiting_session_beyond_its_idle_time(stage) {
        keeper(&stage, "A", |_| {}).await;
        stage.start("kept", "Parked", "kept").await;
        stage.has("kept", "ExternalSubscribed", 1).await;
        assert_eq!(takes_turn(&stage, "1", "left").await, "A first 1, attempt 1");
        keeper(&stage, "B", |_| {}).await;
        let before = shown(&stage, "kept").await;
        // Five times as long as it takes to be idle.
        pass_calmly(&stage, 200 * SECOND, SECOND).await;
        let now = stage.clock.now_ms();
        let after = shown(&stage, "kept").await;
        assert_eq!((after.owner, after.epoch), (before.owner, before.epoch));
        assert!(after.locked_until_ms > now, "its lease lives");
        assert!(shown(&stage, "left").await.locked_until_ms <= now, "the one without a keep-alive was idle");
        for n in 2..=3 {
            stage.client.raise_event("kept", "message", "").await.expect("raises");
            if n == 2 {
                stage.has("kept", "ExternalSubscribed", 2).await;
                pass_calmly(&stage, 100 * SECOND, SECOND).await;
            }
        }
        let turns = "A first 1, attempt 1; A later 2, attempt 1; A later 3, attempt 1";
        assert_eq!(stage.output("kept").await, Ok(turns.to_owned()));
        assert_eq!(shown(&stage, "kept").await.epoch, before.epoch, "one attachment in all");
        let kinds = stage.kinds("kept").await;
        let cancelled = kinds.iter().filter(|kind| *kind == "ActivityCancelRequested").count();
        assert_eq!(cancelled, 2, "each keep-alive was the loser: {kinds:?}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d38_a_keep_alive_goes_on_at_the_next_owner_when_its_worker_stops(stage) {
        let first = keeper(&stage, "A", |_| {}).await;
        stage.start("kept", "Parked", "kept").await;
        stage.has("kept", "ExternalSubscribed", 1).await;
        let before = shown(&stage, "kept").await.epoch;
        first.shutdown(Some(0)).await;
        keeper(&stage, "B", |_| {}).await;
        stage.until("the keep-alive moved", async || shown(&stage, "kept").await.epoch > before).await;
        pass_calmly(&stage, 100 * SECOND, SECOND).await;
        for n in 2..=3 {
            stage.client.raise_event("kept", "message", "").await.expect("raises");
            if n == 2 {
                stage.has("kept", "ExternalSubscribed", 2).await;
            }
        }
        let turns = "A first 1, attempt 1; B first 1, attempt 1; B later 2, attempt 1";
        assert_eq!(stage.output("kept").await, Ok(turns.to_owned()));
        stage.stop().await;
    }

    async fn d37_an_orchestration_that_waits_is_told_of_every_move_of_its_session(stage) {
        let first = keeper(&stage, "A", |_| {}).await;
        stage.start("told", "Told", "chat").await;
        stage.has("told", "ExternalSubscribed", 1).await;
        // Another instance of the same process moves nothing.
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A later 2, attempt 1");
        stage.settle().await;
        assert_eq!(stage.kinds("told").await.iter().filter(|kind| *kind == "SessionMigrated").count(), 0);
        first.shutdown(Some(0)).await;
        let second = keeper(&stage, "B", |_| {}).await;
        assert_eq!(takes_turn(&stage, "2", "chat").await, "B first 1, attempt 1");
        stage.has("told", "SessionMigrated", 1).await;
        stage.has("told", "ExternalSubscribed", 2).await;
        second.shutdown(Some(0)).await;
        // Cold: what is recorded is not raised again.
        keeper(&stage, "C", |options| options.max_warm_orchestrations = 0).await;
        assert_eq!(takes_turn(&stage, "3", "chat").await, "C first 1, attempt 1");
        stage.has("told", "SessionMigrated", 2).await;
        stage.has("told", "ExternalSubscribed", 3).await;
        stage.client.raise_event("told", "message", "").await.expect("raises");
        let moves = "A first 1, attempt 1; chat from A to B, B later 2, attempt 1; \
            chat from B to C, C later 2, attempt 1; C later 3, attempt 1";
        assert_eq!(stage.output("told").await, Ok(moves.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d37_the_loss_of_a_worker_is_told_when_another_has_claimed_its_session(stage) {
        let decides = node(&stage, "unused", &Gate::new(), |options| {
            (options.worker_concurrency, options.orchestration_concurrency) = (0, 0);
        })
        .await;
        keeper(&stage, "T", |options| options.worker_concurrency = 0).await;
        let first = keeper(&stage, "A", |options| options.orchestration_concurrency = 0).await;
        stage.start("told", "Told", "chat").await;
        stage.has("told", "ExternalSubscribed", 1).await;
        assert!(release(&stage, "chat").await, "by hand");
        first.drain().await;
        keeper(&stage, "B", |options| options.orchestration_concurrency = 0).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "B first 1, attempt 1");
        stage.has("told", "SessionMigrated", 1).await;
        stage.has("told", "ExternalSubscribed", 2).await;
        stage.client.raise_event("told", "message", "").await.expect("raises");
        let output = stage.output("told").await.expect("completes");
        assert!(output.starts_with("A first 1, attempt 1; chat from A to B"), "{output}");
        drop(decides);
        stage.stop().await;
    }
}
