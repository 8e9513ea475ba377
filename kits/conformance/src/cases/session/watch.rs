//! Watching: an execution that asked hears of every attachment after the first it sees (D37).

use std::time::Duration;

use steadfast_core::{MAX_NAME_BYTES, MAX_SESSION_ID_BYTES, SessionKey, WorkItem};
use steadfast_store::{Cold, SessionRef, TurnRequest};

use super::{Desk, desk, owning, renewal};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, ok};
use crate::case::{cases, need};
use crate::dice::Dice;

cases![
    s13_the_first_attachment_that_is_seen_is_not_told,
    s13_the_next_attachment_is_told,
    s13_the_attachment_at_the_time_of_asking_is_the_first,
    s13_every_further_attachment_is_told,
    s13_an_owner_that_returns_is_told,
    s13_what_keeps_the_attachment_is_not_told,
    s13_asking_twice_is_told_once,
    s13_everybody_who_asked_is_told,
    s13_nobody_else_is_told,
    s13_a_watch_ends_with_its_execution,
    s13_a_watch_does_not_go_on_in_the_next_execution,
    s13_a_watch_outlives_clean_up,
    s13_a_session_of_an_instance_can_be_watched,
    s13_a_session_with_the_longest_ids_can_be_watched,
    s13_a_watch_outlives_the_close_of_its_session,
    s13_a_claim_wakes_a_waiting_turn,
];

fn s() -> SessionKey {
    SessionKey::shared("S")
}

/// Lets the lease of S expire and makes another worker attach it.
async fn move_to(desk: &Desk<'_>, owner: &str) -> SessionRef {
    desk.bench.advance(LEASE);
    desk.attach(owner, "S").await
}

fn told(instance: &str, execution_id: u64, to: &SessionRef, from: &str, owner: &str) -> WorkItem {
    WorkItem::SessionMigrated {
        instance: instance.to_owned(),
        execution_id,
        session_id: to.key.session_id.clone(),
        epoch: to.epoch,
        from: Some(from.to_owned()),
        to: owner.to_owned(),
    }
}

async fn s13_the_first_attachment_that_is_seen_is_not_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.attach("A", "S").await;
    assert!(desk.is_quiet().await, "there was none before it");
    Verdict::Kept
}

async fn s13_the_next_attachment_is_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.attach("A", "S").await;
    let moved = move_to(&desk, "B").await;
    assert_eq!(desk.inbox("a").await, [told("a", 1, &moved, "A", "B")]);
    Verdict::Kept
}

async fn s13_the_attachment_at_the_time_of_asking_is_the_first(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    assert!(desk.is_quiet().await, "that is the one it sees first");
    let moved = move_to(&desk, "B").await;
    assert_eq!(desk.inbox("a").await, [told("a", 1, &moved, "A", "B")]);
    Verdict::Kept
}

async fn s13_every_further_attachment_is_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    let mut from = "A";
    for to in ["B", "C", "A"] {
        let moved = move_to(&desk, to).await;
        assert_eq!(desk.inbox("a").await, [told("a", 1, &moved, from, to)]);
        from = to;
    }
    Verdict::Kept
}

async fn s13_an_owner_that_returns_is_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.release("A", &[held]).await;
    let again = desk.attach("A", "S").await;
    assert_eq!(desk.inbox("a").await, [told("a", 1, &again, "A", "A")], "another epoch, another attachment");
    Verdict::Kept
}

async fn s13_what_keeps_the_attachment_is_not_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.attach("A", "S").await;
    desk.renew(renewal("A")).await;
    bench.advance(LEASE - TICK);
    desk.attach("A", "S").await;
    assert!(desk.is_quiet().await, "A held it all the time");
    Verdict::Kept
}

async fn s13_asking_twice_is_told_once(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.begin("a", |turn| turn.watch(s()).watch(s())).await;
    desk.attach("A", "S").await;
    desk.turn("a", |turn| turn.watch(s())).await;
    let moved = move_to(&desk, "B").await;
    assert_eq!(desk.inbox("a").await, [told("a", 1, &moved, "A", "B")]);
    Verdict::Kept
}

async fn s13_everybody_who_asked_is_told(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    for instance in ["a", "b"] {
        desk.begin(instance, |turn| turn.watch(s())).await;
    }
    let moved = move_to(&desk, "B").await;
    for instance in ["a", "b"] {
        assert_eq!(desk.inbox(instance).await, [told(instance, 1, &moved, "A", "B")]);
    }
    Verdict::Kept
}

async fn s13_nobody_else_is_told(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn).await;
    desk.begin("b", |turn| turn.watch(SessionKey::shared("T")).open("S").watch(SessionKey::owned("b", "S")))
        .await;
    move_to(&desk, "B").await;
    assert!(desk.is_quiet().await, "a asked for nothing, b for other sessions");
    Verdict::Kept
}

async fn s13_a_watch_ends_with_its_execution(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.turn("a", super::Turn::complete).await;
    move_to(&desk, "B").await;
    assert!(desk.is_quiet().await, "a has completed");
    Verdict::Kept
}

async fn s13_a_watch_does_not_go_on_in_the_next_execution(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.turn("a", |turn| turn.continue_as_new(&[])).await;
    desk.succeed("a", |turn| turn).await;
    move_to(&desk, "B").await;
    assert!(desk.is_quiet().await, "the next execution has not asked");
    desk.turn("a", |turn| turn.watch(s())).await;
    let moved = move_to(&desk, "C").await;
    assert_eq!(desk.inbox("a").await, [told("a", 2, &moved, "B", "C")], "now it has");
    Verdict::Kept
}

async fn s13_a_watch_outlives_clean_up(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.begin("a", |turn| turn.watch(s())).await;
    bench.advance(LEASE);
    ok(desk.store.cleanup_sessions().await);
    let moved = desk.attach("B", "S").await;
    let inbox = desk.inbox("a").await;
    let [WorkItem::SessionMigrated { epoch, to, .. }] = inbox.as_slice() else {
        panic!("one migration should be told: {inbox:?}");
    };
    assert_eq!((*epoch, to.as_str()), (moved.epoch, "B"));
    Verdict::Kept
}

async fn s13_a_session_of_an_instance_can_be_watched(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let key = SessionKey::owned("a", "X");
    desk.begin("a", |turn| turn.open("X").work("X").work("X").watch(key)).await;
    let first = desk.fetched("A").await;
    assert!(desk.is_quiet().await, "it had not been attached before");
    desk.release("A", &[super::attachment(&first)]).await;
    let second = desk.fetched("B").await;
    let moved = super::attachment(&second);
    assert_eq!(desk.inbox("a").await, [told("a", 1, &moved, "A", "B")]);
    Verdict::Kept
}

async fn s13_a_session_with_the_longest_ids_can_be_watched(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let mut dice = Dice::new(1);
    // Random letters, because an index may hold a text that repeats itself in fewer bytes.
    let mut long = |bytes: usize| -> String {
        (0..bytes).map(|_| char::from(b'0' + u8::try_from(dice.below(75)).unwrap_or(0))).collect()
    };
    let (instance, session) = (long(MAX_NAME_BYTES), long(MAX_SESSION_ID_BYTES));
    let (one, other) = (long(MAX_NAME_BYTES), long(MAX_NAME_BYTES));
    let key = SessionKey::owned(&instance, &session);
    let shared = SessionKey::shared(&session);
    desk.begin(&instance, |turn| {
        turn.open(&session).work(&session).work(&session).watch(key.clone()).watch(shared.clone())
    })
    .await;
    let first = desk.fetched(&one).await;
    desk.turn(&instance, |turn| turn.watch(key.clone())).await;
    desk.release(&one, &[super::attachment(&first)]).await;
    let second = desk.fetched(&other).await;
    let moved = super::attachment(&second);
    assert_eq!(desk.inbox(&instance).await, [told(&instance, 1, &moved, &one, &other)]);
    desk.turn(&instance, |turn| turn.close(&session).complete()).await;
    assert_eq!(desk.find(&key).await, None);
    Verdict::Kept
}

async fn s13_a_watch_outlives_the_close_of_its_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let key = SessionKey::owned("a", "X");
    desk.begin("a", |turn| turn.open("X").work("X").watch(key)).await;
    let first = desk.fetched("A").await;
    desk.turn("a", |turn| turn.close("X")).await;
    desk.turn("a", |turn| turn.open("X").work("X")).await;
    desk.release("A", &[super::attachment(&first)]).await;
    let second = desk.fetched("B").await;
    let moved = super::attachment(&second);
    let mut expected = told("a", 1, &moved, "A", "B");
    if let WorkItem::SessionMigrated { from, .. } = &mut expected {
        *from = None;
    }
    assert_eq!(desk.inbox("a").await, [expected], "a closed session has no last owner");
    Verdict::Kept
}

async fn s13_a_claim_wakes_a_waiting_turn(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.begin("a", |turn| turn.watch(s())).await;
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    let first = desk.fetched("A").await;
    desk.release("A", &[super::attachment(&first)]).await;
    let poll_timeout = Duration::from_secs(5);
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None };
    let claiming = async {
        bench.parked(1).await;
        desk.fetched("B").await
    };
    let (woken, _) = tokio::join!(desk.store.fetch_turn(request), claiming);
    assert_eq!(ok(woken).map(|lease| lease.instance).as_deref(), Some("a"), "no time had to pass");
    Verdict::Kept
}
