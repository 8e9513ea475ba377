//! Sessions that an instance owns: opening, closing, and the ends of executions (D10–D12, A9, A10).

use std::time::Duration;

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::{Claim, ProviderErrorKind, RenewSessions};

use super::{attachment, leasing, owning, renewal};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, lost, ok, raise, refused};
use crate::case::{cases, need};

cases![
    s13_an_opened_session_is_attached_to_nobody,
    s13_two_instances_and_the_shared_one_have_three_sessions,
    s13_opening_again_changes_nothing,
    s13_a_closed_session_is_gone,
    s13_closing_withdraws_the_work_of_the_session,
    s13_closing_leaves_other_sessions_alone,
    s13_closing_what_was_never_opened_changes_nothing,
    s13_close_then_open_is_a_new_attachment,
    s13_close_then_open_in_one_turn_leaves_it_open_and_unattached,
    s13_a_completed_instance_has_no_sessions,
    s13_a_failed_instance_has_no_sessions,
    s13_the_end_of_an_instance_leaves_shared_sessions_alone,
    s13_continue_as_new_keeps_the_attachment,
    s13_deleting_an_instance_deletes_its_sessions,
    s13_a_refused_commit_opens_nothing,
    s13_a_session_without_an_idle_timeout_is_held_while_open,
    s13_a_session_of_an_instance_has_its_own_idle_timeout,
    s13_many_open_and_close_cycles_leave_nothing,
];

/// Longer than any idle timeout.
const DAY: Duration = Duration::from_secs(86_400);

fn x_of(instance: &str) -> SessionKey {
    SessionKey::owned(instance, "X")
}

async fn s13_an_opened_session_is_attached_to_nobody(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X")).await;
    let session = desk.show(&x_of("a")).await;
    assert_eq!((session.owner, session.epoch, session.queued), (None, 0, 0));
    desk.turn("a", |turn| turn.work("X")).await;
    let lease = desk.fetched("A").await;
    assert_eq!(attachment(&lease).key, x_of("a"), "the lease tells the whole key");
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::New));
    Verdict::Kept
}

async fn s13_two_instances_and_the_shared_one_have_three_sessions(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    desk.begin("b", |turn| turn.open("X").work("X")).await;
    desk.queue("X", 1).await;
    let mut epochs = Vec::new();
    for (owner, key) in [("A", x_of("a")), ("B", x_of("b")), ("C", SessionKey::shared("X"))] {
        let attached = attachment(&desk.fetched(owner).await);
        assert_eq!(attached.key, key, "each owner finds another session free");
        epochs.push(attached.epoch);
    }
    assert!(epochs.is_sorted_by(|one, next| one < next));
    assert_eq!(ok(desk.store.sessions(None).await).len(), 3);
    Verdict::Kept
}

async fn s13_opening_again_changes_nothing(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open_with("X", Some(LEASE), None).work("X")).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    let before = desk.show(&x_of("a")).await;
    bench.advance(TICK);
    let serial = Some(SessionConcurrency::Serial);
    let lease = desk.lease_turn("a").await;
    desk.commit(&lease, super::Turn::next(&lease).open_with("X", Some(DAY), serial)).await;
    assert_eq!(desk.show(&x_of("a")).await, before, "options and attachment stay as they are");
    Verdict::Kept
}

async fn s13_a_closed_session_is_gone(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let lease = desk.fetched("A").await;
    let held = attachment(&lease);
    desk.turn("a", |turn| turn.close("X")).await;
    assert_eq!(desk.find(&x_of("a")).await, None);
    let outcome = desk.renew(RenewSessions { held: vec![held.clone()], ..renewal("A") }).await;
    assert_eq!(outcome.lost, std::slice::from_ref(&held), "its owner learns of it at the next renewal");
    assert_eq!(desk.release("A", &[held]).await, []);
    Verdict::Kept
}

async fn s13_closing_withdraws_the_work_of_the_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X").work("X")).await;
    let running = desk.fetched("A").await;
    desk.turn("a", |turn| turn.close("X")).await;
    lost(desk.store.renew(&running.token, LEASE).await);
    lost(desk.store.finish_work(&running.token, super::completion("a", 3).into()).await);
    assert!(desk.fetch("A").await.is_none(), "what waited is withdrawn too");
    assert!(desk.fetch("B").await.is_none());
    assert_eq!(desk.find(&x_of("a")).await, None, "nothing attached it again");
    Verdict::Kept
}

async fn s13_closing_leaves_other_sessions_alone(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").open("Y").work("Y")).await;
    desk.begin("b", |turn| turn.open("X").work("X")).await;
    desk.queue("X", 1).await;
    desk.turn("a", |turn| turn.close("X")).await;
    for key in [SessionKey::owned("a", "Y"), x_of("b"), SessionKey::shared("X")] {
        assert_eq!(attachment(&desk.fetched("A").await).key, key);
    }
    Verdict::Kept
}

async fn s13_closing_what_was_never_opened_changes_nothing(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let shared = desk.attach("A", "X").await;
    desk.begin("a", |turn| turn.close("X")).await;
    assert_eq!(desk.renew(renewal("A")).await.renewed, [shared], "the shared one is another session");
    Verdict::Kept
}

async fn s13_close_then_open_is_a_new_attachment(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let first = desk.fetched("A").await;
    desk.turn("a", |turn| turn.close("X")).await;
    desk.turn("a", |turn| turn.open("X").work("X")).await;
    desk.release("A", &[attachment(&first)]).await;
    let second = desk.fetched("B").await;
    assert!(attachment(&second).epoch > attachment(&first).epoch, "it is free, and attached anew");
    Verdict::Kept
}

async fn s13_close_then_open_in_one_turn_leaves_it_open_and_unattached(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let old = desk.fetched("A").await;
    desk.turn("a", |turn| turn.close("X").open_with("X", Some(LEASE), None).work("X")).await;
    let session = desk.show(&x_of("a")).await;
    assert_eq!((session.owner, session.queued), (None, 1), "the old work is gone, the new one waits");
    assert_eq!(session.idle_timeout_ms, Some(LEASE.as_millis() as u64), "it is opened with what is said now");
    lost(desk.store.renew(&old.token, LEASE).await);
    desk.release("A", &[attachment(&old)]).await;
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > attachment(&old).epoch);
    Verdict::Kept
}

async fn s13_a_completed_instance_has_no_sessions(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").open("Y").work("Y")).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    let turn = desk.lease_turn("a").await;
    desk.commit(&turn, super::Turn::next(&turn).complete()).await;
    assert_eq!(ok(desk.store.sessions(None).await), []);
    let held = vec![attachment(&lease)];
    assert_eq!(desk.renew(RenewSessions { held: held.clone(), ..renewal("A") }).await.lost, held);
    Verdict::Kept
}

async fn s13_a_failed_instance_has_no_sessions(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X")).await;
    desk.turn("a", |turn| turn.open("Y").fail()).await;
    assert_eq!(ok(desk.store.sessions(None).await), []);
    Verdict::Kept
}

async fn s13_the_end_of_an_instance_leaves_shared_sessions_alone(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("b", |turn| turn.open("X")).await;
    desk.begin("a", |turn| turn.open("X").work_on(SessionKey::shared("S"))).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    let turn = desk.lease_turn("a").await;
    desk.commit(&turn, super::Turn::next(&turn).complete()).await;
    assert_eq!(desk.renew(renewal("A")).await.renewed, [attachment(&lease)]);
    assert!(desk.find(&x_of("b")).await.is_some(), "another instance's session is its own");
    Verdict::Kept
}

async fn s13_continue_as_new_keeps_the_attachment(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    let turn = desk.lease_turn("a").await;
    desk.commit(&turn, super::Turn::next(&turn).continue_as_new(&["X"])).await;
    let between = desk.show(&x_of("a")).await;
    assert_eq!(between.epoch, attachment(&lease).epoch, "open while the successor is still to come");
    desk.succeed("a", |turn| turn.work("X")).await;
    assert!(desk.fetch("B").await.is_none(), "the session is still A's");
    let next = desk.fetched("A").await;
    assert_eq!(attachment(&next), attachment(&lease));
    assert_eq!(next.session.map(|session| session.claim), Some(Claim::Held));
    Verdict::Kept
}

async fn s13_deleting_an_instance_deletes_its_sessions(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let admin = need!(bench.admin(), "ProviderAdmin");
    desk.attach("A", "X").await;
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    desk.begin("b", |turn| turn.open("X")).await;
    let running = desk.fetched("A").await;
    ok(admin.delete_instance("a", true).await);
    assert_eq!(desk.find(&x_of("a")).await, None);
    lost(desk.store.renew(&running.token, LEASE).await);
    assert!(desk.find(&x_of("b")).await.is_some());
    assert!(desk.find(&SessionKey::shared("X")).await.is_some());
    Verdict::Kept
}

async fn s13_a_refused_commit_opens_nothing(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X")).await;
    bench.send(raise("a", "go on")).await;
    let lease = desk.lease_turn("a").await;
    let mut turn = super::Turn::next(&lease).open("Y").close("X");
    if let Some(event) = turn.commit.events.first_mut() {
        event.event_id = 1;
    }
    refused(desk.store.commit_turn(&lease.token, turn.commit).await, ProviderErrorKind::Conflict);
    assert!(desk.find(&x_of("a")).await.is_some(), "X is still open");
    assert_eq!(desk.find(&SessionKey::owned("a", "Y")).await, None);
    Verdict::Kept
}

async fn s13_a_session_without_an_idle_timeout_is_held_while_open(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let lease = desk.asked(leasing("A", LEASE, 2 * DAY)).await;
    desk.finish(&lease).await;
    bench.advance(DAY);
    let hasty = RenewSessions { idle_timeout: TICK, ..renewal("A") };
    assert_eq!(desk.renew(hasty).await.renewed, [attachment(&lease)], "the owner's idle time is not its own");
    Verdict::Kept
}

async fn s13_a_session_of_an_instance_has_its_own_idle_timeout(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let own = Duration::from_secs(10);
    desk.begin("a", |turn| turn.open_with("X", Some(own), None).work("X")).await;
    let lease = desk.asked(leasing("A", LEASE, DAY)).await;
    desk.finish(&lease).await;
    bench.advance(own - TICK);
    let patient = || RenewSessions { idle_timeout: DAY, extend_for: DAY, ..renewal("A") };
    assert_eq!(desk.renew(patient()).await.renewed.len(), 1);
    bench.advance(TICK);
    assert_eq!(desk.renew(patient()).await.idle, [attachment(&lease)]);
    Verdict::Kept
}

async fn s13_many_open_and_close_cycles_leave_nothing(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn).await;
    for round in 0..25 {
        let id = format!("X{round}");
        desk.turn("a", |turn| turn.open(&id).work(&id)).await;
        desk.fetched("A").await;
        desk.turn("a", |turn| turn.close(&id)).await;
    }
    assert_eq!(ok(desk.store.sessions(None).await), []);
    if let Some(admin) = bench.admin() {
        assert_eq!(ok(admin.get_queue_depths().await).worker_queue, 0);
    }
    Verdict::Kept
}
