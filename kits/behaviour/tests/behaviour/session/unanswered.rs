//! Calls for sessions that the store does not answer: each is given up and made again, and keeps no other
//! (A4, G1, G80).

use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Faults, on_every_full_store};
use steadfast_clock::Clock;

use super::bench::{Told, node, shown, troubled};
use crate::workbench::{Gate, SECOND};

on_every_full_store! {
    async fn a4_a_clean_up_that_is_not_answered_keeps_no_lease_from_being_renewed(stage) {
        let (faults, gate, told) = (Faults::default(), Gate::new(), Told::default());
        let first = troubled(&stage, "A", &gate, &faults, |options: &mut RuntimeOptions| {
            options.session_hooks = told.hooks();
            options.session_cleanup_interval = 20 * SECOND;
            options.worker_concurrency = 1;
        })
        .await;
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        let epoch = shown(&stage, "chat").await.epoch;
        faults.hang("cleanup_sessions", 1);
        stage.pass_slowly(31 * SECOND, SECOND).await;
        assert_eq!(faults.calls("cleanup_sessions"), 1, "it hangs");
        let renewals = faults.calls("renew_sessions");
        node(&stage, "B", &Gate::new(), |options| options.orchestration_concurrency = 0).await;
        stage.start("2", "One", "Turn/chat").await;
        stage.pass_slowly(45 * SECOND, SECOND).await;
        assert!(faults.calls("renew_sessions") >= renewals + 2, "the leases are renewed meanwhile");
        let held = shown(&stage, "chat").await;
        assert_eq!((held.owner.map(|owner| owner.id), held.epoch), (Some("A".to_owned()), epoch));
        stage.pass_slowly(60 * SECOND, SECOND).await;
        assert!(faults.calls("cleanup_sessions") > 1, "it is made again");
        assert_eq!(told.all(), ["attach chat"], "the session is kept");
        gate.open();
        for instance in ["1", "2"] {
            let end = stage.ends_as_time_passes(instance, SECOND).await.expect("completes");
            assert!(end.starts_with("A "), "{end}");
        }
        first.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn a4_what_is_claimed_while_a_renewal_hangs_is_given_up_before_its_lease_ends(stage) {
        let (faults, gate, told) = (Faults::default(), Gate::new(), Told::default());
        let first = troubled(&stage, "A", &gate, &faults, |options: &mut RuntimeOptions| {
            options.session_hooks = told.hooks();
            options.worker_concurrency = 1;
        })
        .await;
        faults.hang("renew_sessions", u64::MAX);
        stage.pass_slowly(16 * SECOND, SECOND).await;
        assert_eq!(faults.calls("renew_sessions"), 1, "it hangs, and no session is held");
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        let lease_ends = shown(&stage, "chat").await.locked_until_ms;
        stage
            .until("it is given up", async || {
                stage.pass(SECOND / 2);
                stage.settle().await;
                told.all().len() == 2
            })
            .await;
        assert_eq!(told.all(), ["attach chat", "detach chat Lost after 0"]);
        assert!(stage.clock.now_ms() < lease_ends, "no other process can have it yet");
        gate.open();
        first.shutdown(Some(0)).await;
    }

    async fn a4_a_renewal_that_hangs_from_before_the_first_claim_is_made_again(stage) {
        let (faults, gate, told) = (Faults::default(), Gate::new(), Told::default());
        let first = troubled(&stage, "A", &gate, &faults, |options: &mut RuntimeOptions| {
            options.session_hooks = told.hooks();
            options.worker_concurrency = 1;
        })
        .await;
        faults.hang("renew_sessions", 1);
        stage.pass_slowly(16 * SECOND, SECOND).await;
        assert_eq!(faults.calls("renew_sessions"), 1, "it hangs, and no session is held");
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        stage.pass_slowly(60 * SECOND, SECOND).await;
        assert!(faults.calls("renew_sessions") > 2, "it is made again");
        node(&stage, "B", &Gate::new(), |options| options.orchestration_concurrency = 0).await;
        stage.start("2", "One", "Turn/chat").await;
        stage.pass_slowly(40 * SECOND, SECOND).await;
        let is_detached = told.all().iter().any(|text| text.starts_with("detach chat"));
        let is_served = stage.kinds("2").await.iter().any(|kind| kind == "ActivityCompleted");
        assert!(is_detached || !is_served, "one process at a time serves the session");
        gate.open();
        stage.ends_as_time_passes("2", SECOND).await.expect("completes");
        first.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn g80_a_renewal_of_a_node_without_a_session_that_hangs_is_made_again(stage) {
        let faults = Faults::default();
        let node = troubled(&stage, "A", &Gate::new(), &faults, |_| {}).await;
        faults.hang("renew_sessions", 1);
        stage.pass_slowly(16 * SECOND, SECOND).await;
        assert_eq!(faults.calls("renew_sessions"), 1, "it hangs");
        stage.pass_slowly(60 * SECOND, SECOND).await;
        assert!(faults.calls("renew_sessions") > 1, "the answer tells whether the node was replaced");
        node.shutdown(Some(0)).await;
    }

    async fn g1_a_later_registration_that_is_not_answered_is_tried_again(stage) {
        let faults = Faults::default();
        faults.refuse("register_node", 1, ProviderError::retryable("register_node", "down"));
        faults.hang("register_node", 2);
        let first = troubled(&stage, "A", &Gate::new(), &faults, |_| {}).await;
        stage.start("1", "One", "Turn/chat").await;
        let end = stage.ends_as_time_passes("1", SECOND).await;
        assert_eq!(end, Ok("A first 1, attempt 1".to_owned()));
        assert_eq!(faults.calls("register_node"), 4);
        first.shutdown(Some(0)).await;
    }
}
