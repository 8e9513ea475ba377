//! The trail of a session: which process owned it, from when to when, and why that changed.

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{
    Appetite, MAX_PAGE, MAX_SESSION_TRAIL, Owner, ProviderErrorKind, ReleaseReason, RenewSessions,
    SessionChange, SessionRef, SessionTrailEntry, TRAIL_KEPT_FOR,
};

use super::{Desk, PATIENCE, attachment, desk, owning, renewal, request_as};
use crate::Verdict;
use crate::bench::{Bench, DAWN_MS, LEASE, TICK, ok, start_node};
use crate::case::{cases, need};

cases![
    s13_a_trail_tells_each_claim_and_why_it_ended,
    s13_a_trail_tells_an_expired_lease_from_its_last_moment,
    s13_a_trail_tells_an_expiry_that_no_call_has_noticed,
    s13_a_trail_says_why_a_session_was_released,
    s13_a_release_without_a_reason_is_told_as_such,
    s13_a_trail_tells_work_that_its_owner_did_not_take,
    s13_a_trail_tells_a_session_that_a_newer_process_of_the_node_took,
    s13_a_trail_outlives_the_close_of_its_session,
    s13_a_trail_tells_the_end_of_its_instance_as_a_close,
    s13_a_session_that_was_never_claimed_leaves_no_trail,
    s13_an_owner_that_goes_on_adds_nothing_to_the_trail,
    s13_a_trail_outlives_the_clean_up_of_its_session,
    s13_what_was_refused_leaves_no_trail,
    s13_trails_of_sessions_of_one_id_are_apart,
    s13_deleting_an_instance_deletes_the_trails_of_its_sessions,
    s13_old_entries_of_trails_are_removed,
    s13_old_entries_of_trails_are_removed_in_bounded_steps,
    s13_the_compatible_clean_up_removes_old_entries_of_trails,
    s13_an_end_that_a_trail_has_forgotten_is_not_invented,
    s13_a_trail_keeps_its_newest_entries,
];

/// A while: shorter than a lease.
const WHILE: Duration = Duration::from_secs(10);

const WHILE_MS: u64 = 10_000;

const LEASE_MS: u64 = 30_000;

/// The words, on a store that keeps trails.
async fn trailing(bench: &Bench) -> Option<Desk<'_>> {
    let desk = desk(bench)?;
    match desk.store.session_trail(&SessionKey::shared("unknown")).await {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => None,
        _ => Some(desk),
    }
}

/// The words, on a store that keeps trails of sessions that belong to instances.
async fn trailing_owned(bench: &Bench) -> Option<Desk<'_>> {
    owning(bench)?;
    trailing(bench).await
}

async fn trail_of(desk: &Desk<'_>, key: &SessionKey) -> Vec<SessionTrailEntry> {
    ok(desk.store.session_trail(key).await)
}

/// The trail of a shared session, in short: owner, moment after the dawn, change.
async fn told(desk: &Desk<'_>, session: &str) -> Vec<(String, u64, SessionChange)> {
    short(trail_of(desk, &SessionKey::shared(session)).await)
}

fn short(trail: Vec<SessionTrailEntry>) -> Vec<(String, u64, SessionChange)> {
    trail.into_iter().map(|entry| (entry.owner.id, entry.at_ms - DAWN_MS, entry.change)).collect()
}

fn entry(owner: &str, at_ms: u64, change: SessionChange) -> (String, u64, SessionChange) {
    (owner.to_owned(), at_ms, change)
}

async fn released(desk: &Desk<'_>, owner: &str, claim: &SessionRef, reason: ReleaseReason) {
    let claims = std::slice::from_ref(claim);
    let answer = desk.store.release_sessions_because(&Owner::unnamed(owner), claims, reason).await;
    assert_eq!(ok(answer), claims, "the claim was live");
}

async fn s13_a_trail_tells_each_claim_and_why_it_ended(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let first = desk.attach("A", "S").await;
    bench.advance(WHILE);
    released(&desk, "A", &first, ReleaseReason::Drained).await;
    bench.advance(WHILE);
    let second = desk.attach("B", "S").await;
    let trail = trail_of(&desk, &SessionKey::shared("S")).await;
    let expected = [
        (first.epoch, "A", DAWN_MS, SessionChange::Claimed),
        (first.epoch, "A", DAWN_MS + WHILE_MS, SessionChange::Released(ReleaseReason::Drained)),
        (second.epoch, "B", DAWN_MS + 2 * WHILE_MS, SessionChange::Claimed),
    ];
    let expected = expected.map(|(epoch, owner, at_ms, change)| SessionTrailEntry {
        epoch,
        owner: Owner::unnamed(owner),
        at_ms,
        change,
    });
    assert_eq!(trail, expected);
    Verdict::Kept
}

async fn s13_a_trail_tells_an_expired_lease_from_its_last_moment(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "S").await;
    bench.advance(LEASE + WHILE);
    desk.attach("B", "S").await;
    let expected = [
        entry("A", 0, SessionChange::Claimed),
        entry("A", LEASE_MS, SessionChange::Expired),
        entry("B", LEASE_MS + WHILE_MS, SessionChange::Claimed),
    ];
    assert_eq!(told(&desk, "S").await, expected);
    Verdict::Kept
}

async fn s13_a_trail_tells_an_expiry_that_no_call_has_noticed(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "S").await;
    assert_eq!(told(&desk, "S").await, [entry("A", 0, SessionChange::Claimed)], "the lease lasts");
    bench.advance(LEASE + WHILE);
    let expected = [entry("A", 0, SessionChange::Claimed), entry("A", LEASE_MS, SessionChange::Expired)];
    assert_eq!(told(&desk, "S").await, expected);
    // Other calls notice it, and change nothing about it.
    assert!(desk.fetch("B").await.is_none());
    assert_eq!(told(&desk, "S").await, expected);
    Verdict::Kept
}

async fn s13_a_trail_says_why_a_session_was_released(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let reasons = [
        ReleaseReason::Idle,
        ReleaseReason::Drained,
        ReleaseReason::ShutDown,
        ReleaseReason::ByHand,
        ReleaseReason::OverTheLimit,
        ReleaseReason::UnregisteredHandler,
    ];
    for reason in reasons {
        let claim = desk.attach("A", "S").await;
        released(&desk, "A", &claim, reason).await;
        assert_eq!(
            told(&desk, "S").await.last(),
            Some(&entry("A", 0, SessionChange::Released(reason))),
            "{reason:?}"
        );
    }
    Verdict::Kept
}

async fn s13_a_release_without_a_reason_is_told_as_such(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let claim = desk.attach("A", "S").await;
    desk.release("A", std::slice::from_ref(&claim)).await;
    bench.advance(LEASE);
    desk.attach("A", "S").await;
    let expected = [
        entry("A", 0, SessionChange::Claimed),
        entry("A", 0, SessionChange::Released(ReleaseReason::Unstated)),
        entry("A", LEASE_MS, SessionChange::Claimed),
    ];
    assert_eq!(told(&desk, "S").await, expected, "a claim ends once");
    Verdict::Kept
}

async fn s13_a_trail_tells_work_that_its_owner_did_not_take(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    let mut full = renewal("A");
    full.appetite = Appetite::Full;
    full.extend_for = PATIENCE * 2;
    desk.renew(full.clone()).await;
    bench.advance(PATIENCE + WHILE);
    assert_eq!(desk.renew(full).await.untaken.len(), 1);
    let at = PATIENCE.as_millis() as u64 + WHILE_MS;
    let untaken = SessionChange::Released(ReleaseReason::Untaken);
    assert_eq!(told(&desk, "S").await.last(), Some(&entry("A", at, untaken)));
    Verdict::Kept
}

async fn s13_a_trail_tells_a_session_that_a_newer_process_of_the_node_took(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let mut owners = Vec::new();
    for _ in 0..2 {
        let incarnation = Some(ok(start_node(desk.store, "node").await));
        let owner = Owner { id: "node".to_owned(), incarnation };
        desk.queue("S", 1).await;
        let lease = desk.asked(request_as(owner.clone())).await;
        desk.finish(&lease).await;
        owners.push(owner);
        bench.advance(WHILE);
    }
    let trail = trail_of(&desk, &SessionKey::shared("S")).await;
    let changes: Vec<_> = trail.iter().map(|entry| (&entry.owner, entry.at_ms, entry.change)).collect();
    let expected = [
        (&owners[0], DAWN_MS, SessionChange::Claimed),
        (&owners[0], DAWN_MS + WHILE_MS, SessionChange::Lost),
        (&owners[1], DAWN_MS + WHILE_MS, SessionChange::Claimed),
    ];
    assert_eq!(changes, expected);
    Verdict::Kept
}

async fn s13_a_trail_outlives_the_close_of_its_session(bench: Bench) -> Verdict {
    let desk = need!(trailing_owned(&bench).await, "trails of owned sessions");
    let key = SessionKey::owned("a", "x");
    desk.begin("a", |turn| turn.open("x").work("x")).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    bench.advance(WHILE);
    desk.turn("a", |turn| turn.close("x")).await;
    let closed = [entry("A", 0, SessionChange::Claimed), entry("A", WHILE_MS, SessionChange::Closed)];
    assert_eq!(desk.find(&key).await, None, "the session is closed");
    assert_eq!(short(trail_of(&desk, &key).await), closed);

    desk.turn("a", |turn| turn.open("x").work("x")).await;
    assert_eq!(short(trail_of(&desk, &key).await), closed, "opening a session gives it no owner");
    desk.release("A", &[attachment(&lease)]).await;
    assert_eq!(short(trail_of(&desk, &key).await), closed, "a closed claim has ended already");
    let again = desk.fetched("B").await;
    let trail = trail_of(&desk, &key).await;
    assert_eq!(trail.last().map(|entry| entry.epoch), Some(attachment(&again).epoch));
    assert_eq!(short(trail), [&closed[..], &[entry("B", WHILE_MS, SessionChange::Claimed)]].concat());
    Verdict::Kept
}

async fn s13_a_trail_tells_the_end_of_its_instance_as_a_close(bench: Bench) -> Verdict {
    let desk = need!(trailing_owned(&bench).await, "trails of owned sessions");
    desk.begin("a", |turn| turn.open("held").open("ended").work("held")).await;
    let held = desk.fetched("A").await;
    desk.finish(&held).await;
    desk.turn("a", |turn| turn.work("ended")).await;
    let ended = desk.fetched("B").await;
    desk.finish(&ended).await;
    bench.advance(WHILE);
    desk.renew(renewal("A")).await;
    bench.advance(LEASE - Duration::from_secs(1));
    desk.turn("a", |turn| turn.complete()).await;
    let at = WHILE_MS + LEASE_MS - 1_000;
    let told = short(trail_of(&desk, &SessionKey::owned("a", "held")).await);
    assert_eq!(told, [entry("A", 0, SessionChange::Claimed), entry("A", at, SessionChange::Closed)]);
    let told = short(trail_of(&desk, &SessionKey::owned("a", "ended")).await);
    let expected = [entry("B", 0, SessionChange::Claimed), entry("B", LEASE_MS, SessionChange::Expired)];
    assert_eq!(told, expected, "its lease had expired before");
    Verdict::Kept
}

async fn s13_a_session_that_was_never_claimed_leaves_no_trail(bench: Bench) -> Verdict {
    let desk = need!(trailing_owned(&bench).await, "trails of owned sessions");
    desk.begin("a", |turn| turn.open("x").open("y")).await;
    desk.turn("a", |turn| turn.close("x").complete()).await;
    for session in ["x", "y"] {
        assert_eq!(trail_of(&desk, &SessionKey::owned("a", session)).await, []);
    }
    assert_eq!(trail_of(&desk, &SessionKey::shared("unknown")).await, []);
    Verdict::Kept
}

async fn s13_an_owner_that_goes_on_adds_nothing_to_the_trail(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "S").await;
    for _ in 0..3 {
        bench.advance(WHILE);
        desk.attach("A", "S").await;
        desk.renew(renewal("A")).await;
    }
    assert_eq!(told(&desk, "S").await, [entry("A", 0, SessionChange::Claimed)]);
    Verdict::Kept
}

async fn s13_a_trail_outlives_the_clean_up_of_its_session(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "expired").await;
    let claim = desk.attach("A", "released").await;
    released(&desk, "A", &claim, ReleaseReason::Idle).await;
    bench.advance(LEASE + WHILE);
    ok(desk.store.cleanup_sessions().await);
    for session in ["expired", "released"] {
        assert_eq!(desk.find(&SessionKey::shared(session)).await, None);
    }
    let claimed = entry("A", 0, SessionChange::Claimed);
    let expected = [claimed.clone(), entry("A", LEASE_MS, SessionChange::Expired)];
    assert_eq!(told(&desk, "expired").await, expected);
    let expected = [claimed, entry("A", 0, SessionChange::Released(ReleaseReason::Idle))];
    assert_eq!(told(&desk, "released").await, expected);
    Verdict::Kept
}

async fn s13_what_was_refused_leaves_no_trail(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let claim = desk.attach("A", "S").await;
    let stale = SessionRef { epoch: claim.epoch - 1, ..claim.clone() };
    for (owner, claim) in [("B", &claim), ("A", &stale)] {
        let claims = std::slice::from_ref(claim);
        let answer =
            desk.store.release_sessions_because(&Owner::unnamed(owner), claims, ReleaseReason::ByHand).await;
        assert_eq!(ok(answer), []);
    }
    desk.queue("S", 2).await;
    assert!(desk.fetch("B").await.is_none(), "A owns it");
    assert_eq!(told(&desk, "S").await, [entry("A", 0, SessionChange::Claimed)]);
    Verdict::Kept
}

async fn s13_trails_of_sessions_of_one_id_are_apart(bench: Bench) -> Verdict {
    let desk = need!(trailing_owned(&bench).await, "trails of owned sessions");
    for (instance, owner) in [("a", "A"), ("b", "B")] {
        desk.begin(instance, |turn| turn.open("x").work("x")).await;
        desk.fetched(owner).await;
    }
    desk.attach("C", "x").await;
    let keys = [SessionKey::owned("a", "x"), SessionKey::owned("b", "x"), SessionKey::shared("x")];
    for (key, owner) in keys.iter().zip(["A", "B", "C"]) {
        assert_eq!(short(trail_of(&desk, key).await), [entry(owner, 0, SessionChange::Claimed)]);
    }
    Verdict::Kept
}

async fn s13_deleting_an_instance_deletes_the_trails_of_its_sessions(bench: Bench) -> Verdict {
    let desk = need!(trailing_owned(&bench).await, "trails of owned sessions");
    let admin = need!(desk.store.admin(), "the management interface");
    for (instance, owner) in [("a", "A"), ("b", "B")] {
        desk.begin(instance, |turn| turn.open("x").open("y").work("x")).await;
        desk.fetched(owner).await;
    }
    desk.turn("a", |turn| turn.close("x").work("y")).await;
    desk.fetched("A").await;
    desk.attach("A", "x").await;
    ok(admin.delete_instance("a", true).await);
    for session in ["x", "y"] {
        let key = SessionKey::owned("a", session);
        assert_eq!(trail_of(&desk, &key).await, [], "open or closed, it went with its instance");
    }
    let left = short(trail_of(&desk, &SessionKey::owned("b", "x")).await);
    assert_eq!(left, [entry("B", 0, SessionChange::Claimed)], "another instance");
    assert_eq!(told(&desk, "x").await, [entry("A", 0, SessionChange::Claimed)], "a shared session");
    Verdict::Kept
}

async fn s13_old_entries_of_trails_are_removed(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    desk.attach("A", "S").await;
    bench.advance(LEASE + WHILE);
    desk.attach("B", "S").await;
    desk.attach("B", "T").await;
    bench.advance(WHILE);
    let clean_up = async |retention| ok(desk.store.cleanup_session_trails(retention).await);
    assert_eq!(clean_up(LEASE * 10).await, 0, "nothing is so old");
    assert_eq!(clean_up(WHILE * 2).await, 2, "the claim of A, and its end");
    assert_eq!(clean_up(WHILE * 2).await, 0, "once");
    let claimed = entry("B", LEASE_MS + WHILE_MS, SessionChange::Claimed);
    assert_eq!(told(&desk, "S").await, std::slice::from_ref(&claimed));
    assert_eq!(told(&desk, "T").await, [claimed]);
    // What a claim left behind is removed although it lasts, and its end is told.
    assert_eq!(clean_up(Duration::ZERO).await, 2);
    assert_eq!(told(&desk, "S").await, []);
    bench.advance(LEASE);
    desk.attach("C", "S").await;
    let expected = [
        entry("B", 2 * LEASE_MS + WHILE_MS, SessionChange::Expired),
        entry("C", 2 * LEASE_MS + 2 * WHILE_MS, SessionChange::Claimed),
    ];
    assert_eq!(told(&desk, "S").await, expected);
    Verdict::Kept
}

async fn s13_old_entries_of_trails_are_removed_in_bounded_steps(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    // Each session leaves two entries.
    let sessions = MAX_PAGE / 2 + 2;
    let key = |number: usize| SessionKey::shared(format!("S{number}"));
    desk.begin("a", |turn| (0..sessions).fold(turn, |turn, number| turn.work_on(key(number)))).await;
    let mut claims = Vec::new();
    for _ in 0..sessions {
        claims.push(attachment(&desk.fetched("A").await));
    }
    assert_eq!(desk.release("A", &claims).await.len(), sessions);
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        steps.push(ok(desk.store.cleanup_session_trails(Duration::ZERO).await));
    }
    assert_eq!(steps, [MAX_PAGE, 4, 0]);
    Verdict::Kept
}

async fn s13_the_compatible_clean_up_removes_old_entries_of_trails(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    for session in ["S", "T"] {
        desk.attach("A", session).await;
    }
    let clean_up = async || ok(bench.provider().cleanup_orphaned_sessions(PATIENCE).await);
    bench.advance(TRAIL_KEPT_FOR - WHILE);
    desk.attach("B", "S").await;
    assert_eq!(clean_up().await, 1, "the count is that of sessions");
    assert_eq!(told(&desk, "S").await.len(), 3, "its entries are not so old");
    assert_eq!(told(&desk, "T").await.len(), 2, "its entries are not so old");
    bench.advance(WHILE + LEASE);
    clean_up().await;
    let at = (TRAIL_KEPT_FOR - WHILE).as_millis() as u64;
    let expected =
        [entry("B", at, SessionChange::Claimed), entry("B", at + LEASE_MS, SessionChange::Expired)];
    assert_eq!(told(&desk, "S").await, expected);
    assert_eq!(told(&desk, "T").await, []);
    Verdict::Kept
}

async fn s13_an_end_that_a_trail_has_forgotten_is_not_invented(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    for session in ["S", "T"] {
        let claim = desk.attach("A", session).await;
        released(&desk, "A", &claim, ReleaseReason::Drained).await;
    }
    desk.attach("A", "U").await;
    desk.queue("U", 2).await;
    bench.advance(WHILE);
    let full = RenewSessions { appetite: Appetite::Full, untaken_after: TICK, ..renewal("A") };
    assert_eq!(desk.renew(full).await.untaken.len(), 1);
    assert_eq!(ok(desk.store.cleanup_session_trails(Duration::ZERO).await), 6, "begins and ends");
    bench.advance(LEASE);
    for session in ["S", "T", "U"] {
        assert_eq!(told(&desk, session).await, [], "its lease did not expire");
    }
    desk.fetched("B").await;
    desk.attach("B", "S").await;
    let claimed = entry("B", LEASE_MS + WHILE_MS, SessionChange::Claimed);
    for session in ["S", "U"] {
        assert_eq!(told(&desk, session).await, std::slice::from_ref(&claimed));
    }
    ok(desk.store.cleanup_sessions().await);
    assert_eq!(desk.find(&SessionKey::shared("T")).await, None);
    assert_eq!(told(&desk, "T").await, []);
    Verdict::Kept
}

async fn s13_a_trail_keeps_its_newest_entries(bench: Bench) -> Verdict {
    let desk = need!(trailing(&bench).await, "trails");
    let moves = MAX_SESSION_TRAIL / 2 + 5;
    let mut last = None;
    for number in 0..moves {
        bench.advance(WHILE);
        let owner = if number % 2 == 0 { "A" } else { "B" };
        let claim = desk.attach(owner, "S").await;
        released(&desk, owner, &claim, ReleaseReason::Idle).await;
        last = Some(claim.epoch);
    }
    desk.attach("C", "T").await;
    let trail = trail_of(&desk, &SessionKey::shared("S")).await;
    assert!(trail.len() <= MAX_SESSION_TRAIL, "{} entries", trail.len());
    assert!(trail.len() >= MAX_SESSION_TRAIL - 2, "{} entries", trail.len());
    assert_eq!(trail.last().map(|entry| entry.epoch), last, "the newest one is there");
    let epochs: Vec<u64> = trail.iter().map(|entry| entry.epoch).collect();
    assert!(epochs.is_sorted(), "oldest first");
    assert_eq!(told(&desk, "T").await.len(), 1, "another session is not touched");
    Verdict::Kept
}
