//! Which process a node's name stands for: one that could not register (G1), one that was replaced (G44), and
//! one that learns of its claim too late (G10).

use std::sync::Arc;

use crate::workbench::{Gate, SECOND};
use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Faults, Lines, on_every_full_store};

use super::bench::{node, shown, takes_turn, troubled};

fn down() -> ProviderError {
    ProviderError::retryable("register_node", "a failover")
}

on_every_full_store! {
    async fn g1_a_process_whose_registration_failed_takes_no_session_work_until_it_is_registered(stage) {
        let (gate, faults) = (Gate::new(), Faults::default());
        let older = node(&stage, "n", &gate, |options| options.worker_concurrency = 1).await;
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        let before = shown(&stage, "chat").await.epoch;
        faults.refuse("register_node", 1, down());
        let newer = troubled(&stage, "n", &Gate::new(), &faults, |_| {}).await;
        stage.start("2", "One", "Turn/chat").await;
        stage.has("2", "ActivityScheduled", 1).await;
        assert_eq!(takes_turn(&stage, "plain", "").await, "n without a session", "other work goes on");
        stage.settle().await;
        assert_eq!(stage.kinds("2").await.len(), 2, "it has no number yet, and takes no session work");
        assert_eq!(faults.calls("register_node"), 1);
        let turn = stage.ends_as_time_passes("2", SECOND / 4).await;
        assert_eq!(turn, Ok("n first 1, attempt 1".to_owned()));
        assert_eq!(faults.calls("register_node"), 3, "it learns of the older one, and replaces it");
        assert!(shown(&stage, "chat").await.epoch > before, "an epoch of its own");
        stage.until("the older one is told", async || {
            stage.pass(SECOND);
            older.health().await.fenced
        })
        .await;
        gate.open();
        newer.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn g1_a_registration_that_fails_for_long_is_tried_until_it_succeeds(stage) {
        let faults = Faults::default();
        faults.refuse("register_node", 20, down());
        let runtime = troubled(&stage, "n", &Gate::new(), &faults, |_| {}).await;
        stage.start("1", "One", "Turn/chat").await;
        let turn = stage.ends_as_time_passes("1", SECOND / 4).await;
        assert_eq!(turn, Ok("n first 1, attempt 1".to_owned()));
        assert_eq!(faults.calls("register_node"), 21);
        runtime.shutdown(Some(0)).await;
    }

    async fn g44_a_process_that_registers_late_takes_no_node_from_one_that_started_after_it(stage) {
        let faults = Faults::default();
        faults.refuse("register_node", u64::MAX, down());
        let older = troubled(&stage, "n", &Gate::new(), &faults, |_| {}).await;
        stage.pass_slowly(SECOND, SECOND / 4).await;
        let newer = node(&stage, "n", &Gate::new(), |_| {}).await;
        faults.heal();
        stage
            .until("the older one learns that it was replaced", async || {
                stage.pass(SECOND);
                older.health().await.fenced
            })
            .await;
        stage.pass_slowly(40 * SECOND, SECOND).await;
        assert!(!newer.health().await.fenced, "the newest start is the node");
        assert_eq!(takes_turn(&stage, "1", "chat").await, "n first 1, attempt 1");
        older.shutdown(Some(0)).await;
        newer.shutdown(Some(0)).await;
    }

    async fn g44_a_registration_that_is_answered_late_takes_no_node_from_a_newer_process(stage) {
        let (faults, gate) = (Faults::default(), Gate::new());
        // Their first calls are told that the node is taken, and their second ones replace it.
        node(&stage, "n", &gate, |_| {}).await.shutdown(Some(0)).await;
        let late = faults.hold_answer("register_node");
        let starts_later = async {
            stage.until("the older one asks", async || faults.calls("register_node") == 1).await;
            stage.settle().await;
            stage.pass(SECOND);
            let newer = node(&stage, "n", &gate, |_| {}).await;
            late.add_permits(1);
            newer
        };
        let (older, newer) = tokio::join!(troubled(&stage, "n", &gate, &faults, |_| {}), starts_later);
        stage
            .until("the older one learns that it was replaced", async || {
                stage.pass(SECOND);
                older.health().await.fenced
            })
            .await;
        stage.pass_slowly(40 * SECOND, SECOND).await;
        assert!(!newer.health().await.fenced, "the newest start is the node");
        assert_eq!(takes_turn(&stage, "1", "chat").await, "n first 1, attempt 1");
        older.shutdown(Some(0)).await;
        newer.shutdown(Some(0)).await;
    }

    async fn g44_a_registration_whose_answer_is_lost_fences_nobody(stage) {
        let faults = Faults::default();
        faults.lose_answer("register_node", 2, down());
        let runtime = troubled(&stage, "n", &Gate::new(), &faults, |_| {}).await;
        stage.start("1", "One", "Turn/chat").await;
        let turn = stage.ends_as_time_passes("1", SECOND / 4).await;
        assert_eq!(turn, Ok("n first 1, attempt 1".to_owned()));
        stage.pass_slowly(40 * SECOND, SECOND).await;
        assert!(!runtime.health().await.fenced);
        let owner = shown(&stage, "chat").await.owner.and_then(|owner| owner.incarnation);
        let store = stage.inner().into_store().expect("a full store");
        let rival = steadfast_store::NodeStart::new("n", "rival");
        let newest = store.register_node(&rival).await.expect("answers");
        let is_taken = matches!(
            newest,
            steadfast_store::NodeRegistration::Taken { incarnation, .. } if Some(incarnation) == owner
        );
        assert!(is_taken, "all its calls gave it one number: {newest:?}, {owner:?}");
        runtime.shutdown(Some(0)).await;
    }

    async fn g44_a_node_that_was_replaced_takes_no_work_at_all_and_says_so(stage) {
        let (lines, _guard) = Lines::collect();
        let older = node(&stage, "A", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "1", "chat").await;
        assert!(!older.health().await.fenced);
        let waiting = Arc::clone(&older);
        let fenced = tokio::spawn(async move { waiting.fenced().await });
        let newer = node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.pass_slowly(16 * SECOND, SECOND).await;
        fenced.await.expect("it resolves");
        older.fenced().await;
        let health = older.health().await;
        assert_eq!((health.fenced, health.accepting), (true, false));
        let health = newer.health().await;
        assert_eq!((health.fenced, health.accepting), (false, true));
        newer.shutdown(Some(0)).await;
        // Neither turns nor activities.
        stage.start("2", "One", "Turn/").await;
        stage.pass_slowly(60 * SECOND, SECOND).await;
        assert!(stage.history("2").await.is_empty(), "{:?}", stage.kinds("2").await);
        let said = lines.saying("ERROR", "another process has started with the worker_node_id of this one");
        assert_eq!(said.len(), 1, "once: {said:?}");
        stage.stop().await;
    }

    async fn g44_a_replaced_node_without_work_of_sessions_is_told_too(stage) {
        let older = node(&stage, "A", &Gate::new(), |options| {
            options.worker_concurrency = 0;
            options.max_sessions_per_runtime = 0;
        })
        .await;
        node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.pass_slowly(16 * SECOND, SECOND).await;
        older.fenced().await;
        stage.stop().await;
    }

    async fn g10_an_answer_that_comes_after_its_lease_begins_no_activity(stage) {
        let (gate, faults) = (Gate::new(), Faults::default());
        let late = faults.hold_answer("fetch_work");
        let paused = troubled(&stage, "A", &gate, &faults, |options| {
            options.worker_concurrency = 1;
            options.orchestration_concurrency = 0;
        })
        .await;
        let turns = node(&stage, "T", &Gate::new(), |options| options.worker_concurrency = 0).await;
        stage.start("1", "One", "Hold/chat").await;
        stage.until("it is leased", async || {
            stage.observer().get_session(&steadfast::SessionKey::shared("chat")).await.expect("reads").is_some()
        })
        .await;
        let granted = shown(&stage, "chat").await;
        // The answer is under way for longer than the lease, and another process claims the session.
        stage.pass(31 * SECOND);
        let other = Gate::new();
        node(&stage, "B", &other, |options| options.orchestration_concurrency = 0).await;
        other.is_entered().await;
        late.add_permits(1);
        stage.until("the next is asked for", async || faults.calls("fetch_work") >= 2).await;
        stage.settle().await;
        assert_eq!(gate.waiting(), 0, "it does not begin");
        assert!(shown(&stage, "chat").await.epoch > granted.epoch);
        other.open();
        let output = stage.output("1").await.expect("completes");
        assert!(output.starts_with("B first 1"), "{output}");
        paused.shutdown(Some(0)).await;
        drop(turns);
        stage.stop().await;
    }

    async fn g10_an_answer_that_comes_after_a_sleep_of_the_machine_is_not_served(stage) {
        let faults = Faults::default();
        let late = faults.hold_answer("fetch_work");
        let runtime = troubled(&stage, "A", &Gate::new(), &faults, |options| {
            options.worker_concurrency = 1;
        })
        .await;
        stage.start("1", "One", "Turn/chat").await;
        stage
            .until("it is leased", async || {
                let chat = steadfast::SessionKey::shared("chat");
                stage.observer().get_session(&chat).await.expect("reads").is_some()
            })
            .await;
        // The monotonic clock of the process does not count this.
        stage.clock.suspend(60 * SECOND);
        late.add_permits(1);
        stage.until("it is given back", async || faults.calls("abandon") >= 1).await;
        let turn = stage.ends_as_time_passes("1", SECOND / 4).await.expect("completes");
        assert!(turn.ends_with("1, attempt 1"), "the delivery does not count: {turn}");
        runtime.shutdown(Some(0)).await;
    }

    async fn g10_a_claim_that_comes_after_a_long_wait_is_served_and_stays(stage) {
        for (instance, waits) in [("1", 12), ("2", 29)] {
            let faults = Faults::default();
            let runtime = troubled(&stage, "A", &Gate::new(), &faults, |_| {}).await;
            stage.settle().await;
            // The fetch waits for nearly as long as a lease lasts when the work comes.
            stage.pass_slowly(waits * SECOND, SECOND).await;
            let session = format!("chat {instance}");
            assert_eq!(takes_turn(&stage, instance, &session).await, "A first 1, attempt 1");
            // It stays attached: its lease is renewed before the proof of the fetch ends.
            stage.pass_slowly(60 * SECOND, SECOND).await;
            let again = format!("{instance} again");
            assert_eq!(takes_turn(&stage, &again, &session).await, "A later 2, attempt 1");
            runtime.shutdown(Some(0)).await;
        }
    }

    async fn g10_a_claim_is_logged_however_long_its_fetch_has_waited(stage) {
        let (lines, _guard) = Lines::collect();
        for waits in [5, 12, 14, 26, 28, 29] {
            let faults = Faults::default();
            let runtime = troubled(&stage, "A", &Gate::new(), &faults, |_| {}).await;
            stage.settle().await;
            stage.pass_slowly(waits * SECOND, SECOND).await;
            let session = format!("chat {waits}");
            assert_eq!(takes_turn(&stage, &session, &session).await, "A first 1, attempt 1");
            let claims = lines.saying("INFO", "session claimed");
            let claims = claims.iter().filter(|line| line.field("session_id") == session).count();
            assert_eq!(claims, 1, "after {waits} s");
            assert_eq!(faults.calls("abandon"), 0, "after {waits} s: the work is not given back as late");
            runtime.shutdown(Some(0)).await;
        }
    }

    async fn g10_a_session_whose_release_failed_is_released_again_and_gets_a_new_epoch(stage) {
        let (lines, _guard) = Lines::collect();
        let faults = Faults::default();
        let options = |options: &mut RuntimeOptions| options.max_attached_sessions = Some(0);
        let runtime = troubled(&stage, "A", &Gate::new(), &faults, options).await;
        faults.refuse("release_sessions", 1, ProviderError::retryable("release_sessions", "a failover"));
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        stage.until("it is to be released", async || faults.calls("release_sessions") >= 1).await;
        let before = shown(&stage, "chat").await.epoch;
        // The lease lives on in the store, and each renewal by its owner would extend it.
        stage.start("2", "One", "Turn/chat").await;
        stage.has("2", "ActivityScheduled", 1).await;
        stage.pass_slowly(45 * SECOND, SECOND).await;
        assert_eq!(stage.ends("2").await, Ok("A first 1, attempt 1".to_owned()));
        let claims = lines.saying("INFO", "session claimed");
        let epochs: Vec<String> = claims.iter().map(|line| line.field("epoch").to_owned()).collect();
        assert_eq!(epochs.len(), 2, "each attachment is a claim of its own: {epochs:?}");
        assert!(epochs[0] == before.to_string() && epochs[1] != epochs[0], "{epochs:?}");
        runtime.shutdown(Some(0)).await;
    }

    async fn g10_a_claim_whose_answer_comes_late_is_logged_once(stage) {
        let (lines, _guard) = Lines::collect();
        let faults = Faults::default();
        let late = faults.hold_answer("fetch_work");
        let gate = Gate::new();
        let runtime = troubled(&stage, "A", &gate, &faults, |options| options.worker_concurrency = 1).await;
        stage.start("1", "One", "Turn/chat").await;
        stage.until("it is leased", async || {
            stage.observer().get_session(&steadfast::SessionKey::shared("chat")).await.expect("reads").is_some()
        })
        .await;
        // Longer than the process serves a session without a renewal, and shorter than the lease.
        stage.pass(28 * SECOND);
        late.add_permits(1);
        assert_eq!(stage.ends("1").await, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(lines.saying("INFO", "session claimed").len(), 1);
        runtime.shutdown(Some(0)).await;
    }
}
