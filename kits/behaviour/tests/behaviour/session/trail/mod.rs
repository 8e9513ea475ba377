//! The trail of a session: which runtime owned it, from when to when, and why that changed (D39, D40).

use super::bench::{node, release, shown, takes_turn, troubled, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::client::{ClientError, ReleaseReason, SessionChange, SessionTrailEntry};
use steadfast::providers::ProviderErrorKind;
use steadfast::runtime::RuntimeOptions;
use steadfast::{OrchestrationContext, SessionKey};
use steadfast_behaviour::{
    Faults, Lines, Stage, StoreKind, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;

async fn trail(stage: &Stage, key: &SessionKey) -> Vec<SessionTrailEntry> {
    stage.client.session_trail(key).await.expect("the store answers")
}

/// The changes of a shared session, in short.
async fn changes(stage: &Stage, id: &str) -> Vec<(String, SessionChange)> {
    short(trail(stage, &SessionKey::shared(id)).await)
}

fn short(trail: Vec<SessionTrailEntry>) -> Vec<(String, SessionChange)> {
    trail.into_iter().map(|entry| (entry.owner.id, entry.change)).collect()
}

fn entry(owner: &str, change: SessionChange) -> (String, SessionChange) {
    (owner.to_owned(), change)
}

/// Opens a session, takes a turn on it, closes it, and goes on until a message comes.
async fn open_and_close(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session_with_id("own").await?;
    let turn = ctx.schedule_activity_on_session("Turn", "", &session).await?;
    ctx.close_session(&session).await?;
    ctx.schedule_wait("end").await;
    Ok(turn)
}

on_every_full_store! {
    async fn d39_the_trail_tells_a_death_and_the_next_owner(stage) {
        let faults = Faults::default();
        let polls = |options: &mut RuntimeOptions| options.dispatcher_long_poll_timeout = SECOND;
        let dead = troubled(&stage, "A", &Gate::new(), &faults, polls).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        let claimed = shown(&stage, "chat").await;
        faults.outage();
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "Turn/chat").await;
        let moved = stage.ends_as_time_passes("2", SECOND).await;
        assert_eq!(moved, Ok("B first 1, attempt 1".to_owned()));
        let trail = trail(&stage, &SessionKey::shared("chat")).await;
        let next = shown(&stage, "chat").await;
        let told: Vec<_> = trail.iter().map(|entry| (entry.epoch, entry.change)).collect();
        let expected = [
            (claimed.epoch, SessionChange::Claimed),
            (claimed.epoch, SessionChange::Expired),
            (next.epoch, SessionChange::Claimed),
        ];
        assert_eq!(told, expected);
        assert_eq!(Some(&trail[0].owner), claimed.owner.as_ref());
        assert_eq!(Some(&trail[2].owner), next.owner.as_ref());
        assert_eq!(trail[1].at_ms, claimed.locked_until_ms, "the last moment of the lease");
        assert!(trail[2].at_ms >= trail[1].at_ms, "B came after A");
        dead.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d39_the_trail_tells_drains_shutdowns_and_releases_by_hand(stage) {
        let first = node(&stage, "A", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "1", "chat").await;
        first.drain().await;
        let second = node(&stage, "B", &Gate::new(), |_| {}).await;
        assert_eq!(takes_turn(&stage, "2", "chat").await, "B first 1, attempt 1");
        second.shutdown(Some(0)).await;
        let third = node(&stage, "C", &Gate::new(), |_| {}).await;
        assert_eq!(takes_turn(&stage, "3", "chat").await, "C first 1, attempt 1");
        assert!(release(&stage, "chat").await);
        third.shutdown(Some(0)).await;
        node(&stage, "D", &Gate::new(), |_| {}).await;
        assert_eq!(takes_turn(&stage, "4", "chat").await, "D first 1, attempt 1");
        let expected = [
            entry("A", SessionChange::Claimed),
            entry("A", SessionChange::Released(ReleaseReason::Drained)),
            entry("B", SessionChange::Claimed),
            entry("B", SessionChange::Released(ReleaseReason::ShutDown)),
            entry("C", SessionChange::Claimed),
            entry("C", SessionChange::Released(ReleaseReason::ByHand)),
            entry("D", SessionChange::Claimed),
        ];
        assert_eq!(changes(&stage, "chat").await, expected);
        stage.stop().await;
    }

    async fn d39_the_trail_tells_that_a_session_was_idle(stage) {
        node(&stage, "A", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "1", "chat").await;
        pass_calmly(&stage, 320 * SECOND, 5 * SECOND).await;
        stage.until("it is released", async || changes(&stage, "chat").await.len() == 2).await;
        let idle = SessionChange::Released(ReleaseReason::Idle);
        assert_eq!(changes(&stage, "chat").await, [entry("A", SessionChange::Claimed), entry("A", idle)]);
        stage.stop().await;
    }

    async fn d39_the_trail_of_a_closed_session_is_deleted_with_its_instance(stage) {
        let flows = orchestrations().register("OpenAndClose", open_and_close);
        let options = RuntimeOptions { worker_node_id: Some("A".to_owned()), ..stage.options() };
        stage.run_with(turns(&Gate::new()), flows, options).await;
        stage.start("1", "OpenAndClose", "").await;
        stage.has("1", "SessionClosed", 1).await;
        let key = SessionKey::owned("1", "own");
        let closed = [entry("A", SessionChange::Claimed), entry("A", SessionChange::Closed)];
        assert_eq!(short(trail(&stage, &key).await), closed);
        stage.client.raise_event("1", "end", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(short(trail(&stage, &key).await), closed, "the end of the instance deletes nothing");
        stage.client.delete_instance("1", false).await.expect("it is deleted");
        assert_eq!(trail(&stage, &key).await, []);
        stage.stop().await;
    }

    async fn d39_a_trail_is_kept_for_its_retention(stage) {
        node(&stage, "A", &Gate::new(), |options| {
            options.session_trail_retention = 60 * SECOND;
            options.session_cleanup_interval = 20 * SECOND;
            options.session_idle_timeout = 26 * SECOND;
        })
        .await;
        takes_turn(&stage, "1", "chat").await;
        let claimed = stage.clock.now_ms();
        pass_calmly(&stage, 40 * SECOND, SECOND).await;
        stage.until("it is released", async || changes(&stage, "chat").await.len() == 2).await;
        let left = async || trail(&stage, &SessionKey::shared("chat")).await.len();
        while left().await > 0 {
            pass_calmly(&stage, SECOND, SECOND).await;
            assert!(stage.clock.now_ms() < claimed + 150_000, "it is never removed");
        }
        assert!(stage.clock.now_ms() >= claimed + 60_000, "not before its time");
        stage.stop().await;
    }
}

on_every_store! {
    async fn d39_a_store_without_trails_says_so_and_nothing_else_changes(stage) {
        let (lines, _guard) = Lines::collect();
        node(&stage, "A", &Gate::new(), |options| options.session_cleanup_interval = 20 * SECOND).await;
        takes_turn(&stage, "1", "chat").await;
        pass_calmly(&stage, 60 * SECOND, SECOND).await;
        match stage.client.session_trail(&SessionKey::shared("chat")).await {
            Ok(trail) => assert_eq!((stage.kind != StoreKind::Wrapped, trail.len()), (true, 1)),
            Err(ClientError::Provider(error)) => {
                assert_eq!(stage.kind, StoreKind::Wrapped, "{error}");
                assert_eq!(error.kind, ProviderErrorKind::Unsupported);
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(lines.saying("WARN", "could not be removed").len(), 0);
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A later 2, attempt 1");
        stage.stop().await;
    }
}
