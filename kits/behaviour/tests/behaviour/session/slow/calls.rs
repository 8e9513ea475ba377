//! Calls of the store that are answered late or not at all (A9, D20, D23, D31, D40).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::bench::{Told, node, release, takes_turn, troubled};
use super::{marks, named, starts};
use crate::workbench::{Gate, SECOND};
use steadfast::SessionKey;
use steadfast_behaviour::{Faults, on_every_full_store};

on_every_full_store! {
    async fn a9_work_of_a_closed_session_that_was_on_its_way_does_not_begin(stage) {
        let (faults, told, count) = (Faults::default(), Told::default(), Arc::new(AtomicUsize::new(0)));
        let mut options = named(&stage, "A");
        (options.session_hooks, options.worker_concurrency) = (told.hooks(), 1);
        let late = faults.hold_answer("fetch_work");
        let runtime = starts(&stage, &faults, marks(&count), options).await;
        stage.start("1", "Closes", "").await;
        let key = SessionKey::owned("1", "chat");
        stage.until("it is claimed", async || {
            let row = stage.observer().get_session(&key).await.expect("answers");
            row.is_some_and(|row| row.epoch > 0)
        })
        .await;
        stage.client.raise_event("1", "enough", "").await.expect("raises");
        stage.has("1", "SessionClosed", 1).await;
        stage.settle().await;
        late.add_permits(1);
        stage.settle().await;
        stage.settle().await;
        assert_eq!((told.all(), count.load(Ordering::SeqCst)), (Vec::new(), 0), "told, begun");
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d31_a_release_that_hangs_keeps_no_other_lease_from_being_renewed(stage) {
        let (faults, told) = (Faults::default(), Told::default());
        let runtime = troubled(&stage, "A", &Gate::new(), &faults, |options| {
            (options.session_hooks, options.max_attached_sessions) = (told.hooks(), Some(2));
        })
        .await;
        faults.hang("release_sessions", 3);
        for session in ["over", "chat", "other"] {
            takes_turn(&stage, session, session).await;
        }
        // A claim makes the process look anew at when its proofs end.
        for instance in ["again", "once more", "at last"] {
            stage.pass_slowly(33 * SECOND, SECOND).await;
            takes_turn(&stage, instance, "other").await;
        }
        let is_of_chat = |told: &&String| told.starts_with("detach chat");
        assert_eq!(told.all().iter().find(is_of_chat), None, "{:?}", told.all());
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d23_a_session_that_the_store_calls_lost_can_be_claimed_again_at_once(stage) {
        let told = Told::default();
        node(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        takes_turn(&stage, "1", "chat").await;
        assert!(release(&stage, "chat").await);
        stage.until("it is told", async || {
            stage.pass(SECOND);
            stage.settle().await;
            told.all().len() == 2
        })
        .await;
        // No time passes.
        takes_turn(&stage, "2", "chat").await;
        assert_eq!(told.all(), ["attach chat", "detach chat Lost after 1", "attach chat"]);
        stage.stop().await;
    }

    async fn d20_a_clean_up_of_trails_that_is_not_answered_is_made_again(stage) {
        let faults = Faults::default();
        let every = |options: &mut steadfast::runtime::RuntimeOptions| {
            options.session_cleanup_interval = 20 * SECOND;
        };
        let runtime = troubled(&stage, "A", &Gate::new(), &faults, every).await;
        faults.hang("cleanup_session_trails", 1);
        stage.pass_slowly(30 * SECOND, SECOND).await;
        let before = faults.calls("cleanup_sessions");
        stage.pass_slowly(200 * SECOND, 2 * SECOND).await;
        assert!(faults.calls("cleanup_sessions") > before);
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d40_a_look_for_leaks_that_is_not_answered_is_made_again(stage) {
        let faults = Faults::default();
        let looks = |options: &mut steadfast::runtime::RuntimeOptions| {
            options.session_leak_after = Some(40 * SECOND);
        };
        let runtime = troubled(&stage, "A", &Gate::new(), &faults, looks).await;
        faults.hang("sessions", 1);
        stage.pass_slowly(15 * SECOND, SECOND).await;
        assert_eq!(faults.calls("sessions"), 1);
        stage.pass_slowly(200 * SECOND, 2 * SECOND).await;
        assert!(faults.calls("sessions") > 1);
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }
}
