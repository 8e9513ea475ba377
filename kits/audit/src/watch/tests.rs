//! Stores that answer what they must not: the watch must notice.

use std::{sync::Arc, time::Duration};

use steadfast_clock::VirtualClock;
use steadfast_core::{EventKind, ScheduledActivityIdentifier, TagFilter, WorkItem};
use steadfast_store::{Claim, ClaimedSession, History, Message, RunId, SessionRequest, SessionScope, Tries};

use super::*;

/// The time of a store when its watch begins, as far as the checks look at watches.
const NOW: u64 = 1_000_000;
const LEASE: Duration = Duration::from_secs(30);

fn rules(shadow: &Shadow) -> Vec<&'static str> {
    let Found { violations, unless_deleted } = &shadow.found;
    violations.iter().chain(unless_deleted).map(|violation| violation.rule).collect()
}

fn raised(data: &str) -> Message {
    let (instance, name) = ("i".to_owned(), "e".to_owned());
    Message::from(WorkItem::ExternalRaised { instance, name, data: data.to_owned() })
}

fn turn(token: &str, now_ms: u64, run: Option<RunId>, events: Vec<Event>, messages: &[Message]) -> TurnLease {
    TurnLease {
        token: LeaseToken::Turn(token.to_owned()),
        instance: "i".to_owned(),
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        execution_id: 1,
        run,
        last_event_id: events.last().map_or(0, |event| event.event_id),
        history: History::Whole(events),
        messages: messages.to_vec(),
        rival_starts: Vec::new(),
        attempt: 1,
        kv: <_>::default(),
        now_ms,
    }
}

fn work(token: &str, now_ms: u64) -> WorkLease {
    WorkLease {
        token: LeaseToken::Work(token.to_owned()),
        item: activity(),
        attempt: 1,
        delivery: 1,
        call: None,
        tries: Tries::default(),
        orchestration: "Main".to_owned(),
        orchestration_version: "1.0.0".to_owned(),
        traceparent: None,
        session: None,
        waiting_since_ms: None,
        now_ms,
    }
}

fn activity() -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".to_owned(),
        execution_id: 1,
        id: 2,
        name: "a".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

fn request() -> WorkRequest {
    WorkRequest {
        worker_id: "w".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: LEASE,
        tags: TagFilter::Any,
        session: None,
        worker: None,
    }
}

/// A shadow of a store that was sent `a`, with a lease of it.
fn leased() -> Shadow {
    let mut shadow = Shadow::default();
    shadow.turns.send(&raised("a"), NOW);
    shadow.turns.granted(&turn("t", NOW, None, Vec::new(), &[raised("a")]), LEASE, &mut shadow.found);
    assert_eq!(rules(&shadow), <[&str; 0]>::default());
    shadow
}

fn commit(shadow: &mut Shadow, token: &str, now: u64) {
    let event = Event::at(now, 1, "i", 1, None, EventKind::KeyValuesCleared);
    let commit = TurnCommit { execution_id: 1, events: vec![event], ..TurnCommit::default() };
    let run = Some(Committed { run: Some(RunId(7)) });
    shadow.committed(&LeaseToken::Turn(token.to_owned()), &commit, run, now);
}

#[test]
fn an_instance_that_is_leased_twice_is_noticed() {
    let mut shadow = leased();
    shadow.turns.send(&raised("b"), NOW);
    let again = turn("u", NOW + 1, None, Vec::new(), &[raised("a"), raised("b")]);
    shadow.turns.granted(&TurnLease { attempt: 2, ..again }, LEASE, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I3"]);
}

#[test]
fn a_commit_of_a_lease_that_has_ended_is_noticed() {
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW + 29_999);
    assert!(rules(&shadow).is_empty());
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW + 30_000);
    assert_eq!(rules(&shadow), ["I3"]);
}

#[test]
fn a_message_that_is_delivered_again_after_its_commit_is_noticed() {
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW);
    let event = Event::at(NOW, 1, "i", 1, None, EventKind::KeyValuesCleared);
    let again = turn("u", NOW, Some(RunId(7)), vec![event], &[raised("a")]);
    shadow.turns.granted(&again, LEASE, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I5"]);
}

#[test]
fn another_history_than_was_committed_is_noticed() {
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW);
    shadow.turns.send(&raised("b"), NOW);
    let lease = turn("u", NOW, Some(RunId(7)), Vec::new(), &[raised("b")]);
    shadow.turns.granted(&lease, LEASE, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I2"]);
}

#[test]
fn messages_that_are_early_swapped_or_left_out_are_noticed() {
    let deliver = |messages: &[Message], now| {
        let mut shadow = leased();
        commit(&mut shadow, "t", NOW);
        shadow.turns.send(&raised("b"), NOW + 10);
        shadow.turns.send(&raised("c"), NOW + 20);
        let event = Event::at(NOW, 1, "i", 1, None, EventKind::KeyValuesCleared);
        let lease = turn("u", now, Some(RunId(7)), vec![event], messages);
        shadow.turns.granted(&lease, LEASE, &mut shadow.found);
        rules(&shadow)
    };
    assert!(deliver(&[raised("b"), raised("c")], NOW + 20).is_empty());
    assert_eq!(deliver(&[raised("b"), raised("c")], NOW + 19), ["S9"]);
    assert_eq!(deliver(&[raised("c"), raised("b")], NOW + 20), ["I5"]);
    assert_eq!(deliver(&[raised("c")], NOW + 20), ["I5"]);
}

#[test]
fn messages_of_one_text_are_told_apart_by_their_order() {
    let deliver = |messages: &[Message]| {
        let mut shadow = leased();
        commit(&mut shadow, "t", NOW);
        // The first `c` may be gone: a deletion takes it along, unseen.
        for (data, at) in [("c", NOW + 10), ("b", NOW + 20), ("c", NOW + 30)] {
            shadow.turns.send(&raised(data), at);
        }
        let event = Event::at(NOW, 1, "i", 1, None, EventKind::KeyValuesCleared);
        let lease = turn("u", NOW + 30, Some(RunId(7)), vec![event], messages);
        shadow.turns.granted(&lease, LEASE, &mut shadow.found);
        let Found { violations, unless_deleted } = shadow.found;
        (violations.len(), unless_deleted.len())
    };
    let [b, c] = ["b", "c"].map(raised);
    assert_eq!(deliver(&[c.clone(), b.clone(), c.clone()]), (0, 0));
    assert_eq!(deliver(&[b.clone(), c.clone()]), (0, 1), "the first is missing unless it was deleted");
    assert_eq!(deliver(&[c.clone(), c.clone(), b.clone()]), (1, 0));
    assert_eq!(deliver(&[b, c.clone(), c]), (1, 0));
}

#[test]
fn a_message_that_waits_is_not_taken_for_one_of_its_text_that_is_due() {
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW);
    let given = |token: &str, now| {
        let event = Event::at(NOW, 1, "i", 1, None, EventKind::KeyValuesCleared);
        turn(token, now, Some(RunId(7)), vec![event], &[raised("b")])
    };
    shadow.turns.send(&raised("b"), NOW);
    shadow.turns.granted(&given("u", NOW), LEASE, &mut shadow.found);
    let later = Abandon { retry_after: Some(LEASE), attempt: Attempt::Uncounted };
    shadow.abandoned(&LeaseToken::Turn("u".to_owned()), later, false, NOW);
    shadow.turns.send(&raised("b"), NOW + 10);
    shadow.turns.granted(&given("v", NOW + 10), LEASE, &mut shadow.found);
    assert!(rules(&shadow).is_empty());
}

#[test]
fn a_wrong_count_of_deliveries_is_noticed() {
    let mut shadow = leased();
    let again = turn("u", NOW + 30_000, None, Vec::new(), &[raised("a")]);
    shadow.turns.granted(&again, LEASE, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I12"]);
}

/// A shadow of a store with one activity, which is leased.
fn working() -> Shadow {
    let mut shadow = Shadow::default();
    shadow.work.queue(&NewWork::from(activity()), NOW);
    shadow.granted_work(&request(), &work("w", NOW));
    assert_eq!(rules(&shadow), <[&str; 0]>::default());
    shadow
}

#[test]
fn an_activity_that_is_leased_twice_or_after_its_end_is_noticed() {
    let mut shadow = working();
    shadow.granted_work(&request(), &WorkLease { attempt: 2, delivery: 2, ..work("v", NOW + 1) });
    assert_eq!(rules(&shadow), ["S5"]);
    let mut shadow = working();
    shadow.work.finished(&LeaseToken::Work("w".to_owned()), NOW, &mut shadow.found);
    shadow.granted_work(&request(), &WorkLease { attempt: 2, delivery: 2, ..work("v", NOW + 1) });
    assert_eq!(rules(&shadow), ["I6"]);
}

#[test]
fn a_late_result_that_is_taken_is_noticed() {
    let mut shadow = working();
    shadow.work.finished(&LeaseToken::Work("w".to_owned()), NOW + 30_000, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I6"]);
}

#[test]
fn a_live_delivery_that_is_excused_is_noticed() {
    let mut shadow = working();
    shadow.work.excused(&LeaseToken::Work("w".to_owned()), true, NOW + 1, &mut shadow.found);
    assert_eq!(rules(&shadow), ["I12"]);
}

fn claimed(epoch: u64, claim: Claim) -> ClaimedSession {
    ClaimedSession { key: SessionKey::shared("s"), epoch, claim }
}

fn asked(owner: &str) -> SessionRequest {
    SessionRequest {
        owner: Owner::unnamed(owner),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    }
}

/// Claims of one session: who, which epoch, how, and how many milliseconds after the first.
fn claims(all: &[(&str, u64, Claim, u64)]) -> Vec<&'static str> {
    let mut shadow = Shadow::default();
    for (owner, epoch, claim, after) in all {
        let claimed = claimed(*epoch, claim.clone());
        shadow.sessions.granted(&asked(owner), &claimed, &[], NOW + after, &mut shadow.found);
    }
    rules(&shadow)
}

#[test]
fn a_claim_of_a_fetch_that_was_dropped_is_known_by_the_fetch_that_uses_it() {
    let held = |drops: bool, later: Claim, epoch: u64| {
        let mut shadow = Shadow::default();
        if drops {
            shadow.expect_drops();
        }
        for (epoch, claim) in [(5, Claim::Held), (epoch, later)] {
            shadow.sessions.granted(&asked("p"), &claimed(epoch, claim), &[], NOW, &mut shadow.found);
        }
        rules(&shadow)
    };
    assert_eq!(held(false, Claim::Held, 5), ["A1"], "no fetch can have made the claim");
    assert!(held(true, Claim::Held, 5).is_empty());
    assert_eq!(held(true, Claim::New, 6), ["A5"], "it was released while it was used");
}

#[test]
fn a_session_with_two_owners_is_noticed() {
    let taken = || Claim::Taken { from: "p".to_owned() };
    assert!(claims(&[("p", 5, Claim::New, 0), ("p", 5, Claim::Held, 1)]).is_empty());
    assert!(claims(&[("p", 5, Claim::New, 0), ("q", 6, taken(), 30_000)]).is_empty());
    assert_eq!(claims(&[("p", 5, Claim::New, 0), ("q", 6, taken(), 29_999)]), ["A5"]);
    assert_eq!(claims(&[("p", 5, Claim::New, 0), ("q", 5, Claim::Held, 1)]), ["A1"]);
    assert_eq!(claims(&[("p", 5, Claim::New, 0), ("p", 5, Claim::Held, 30_000)]), ["A1"]);
}

#[test]
fn an_epoch_that_comes_back_is_noticed() {
    let taken = Claim::Taken { from: "p".to_owned() };
    assert_eq!(claims(&[("p", 5, Claim::New, 0), ("q", 5, taken, 30_000)]), ["A2"]);
}

#[test]
fn a_renewal_that_revives_a_claim_is_noticed() {
    let mut shadow = Shadow::default();
    let claimed = claimed(5, Claim::New);
    shadow.sessions.granted(&asked("p"), &claimed, &[], NOW, &mut shadow.found);
    let claim = SessionRef { key: claimed.key, epoch: 5 };
    let request = RenewSessions {
        owner: Owner::unnamed("p"),
        extend_for: LEASE,
        idle_timeout: LEASE,
        untaken_after: LEASE,
        tags: TagFilter::Any,
        appetite: steadfast_store::Appetite::Hungry,
        worker: None,
        held: vec![claim.clone()],
    };
    let answer = SessionsRenewed { renewed: vec![claim], ..SessionsRenewed::default() };
    shadow.sessions.renewed(&request, &answer, &[], NOW + 1, &mut shadow.found);
    assert!(rules(&shadow).is_empty());
    shadow.sessions.renewed(&request, &answer, &[], NOW + 31_000, &mut shadow.found);
    assert_eq!(rules(&shadow), ["A1"]);
}

#[test]
fn a_node_that_was_replaced_and_is_served_is_noticed() {
    let mut shadow = Shadow::default();
    shadow.sessions.registered(&NodeStart::new("n", "first"), 1, &mut shadow.found);
    shadow.sessions.registered(&NodeStart::new("n", "second"), 2, &mut shadow.found);
    assert!(rules(&shadow).is_empty());
    let owner = Owner { id: "n".to_owned(), incarnation: Some(1) };
    let asked = SessionRequest { owner, ..asked("n") };
    shadow.sessions.granted(&asked, &claimed(5, Claim::New), &[], NOW, &mut shadow.found);
    assert_eq!(rules(&shadow), ["A13"]);
}

#[test]
fn a_start_that_gets_a_second_number_is_noticed() {
    let mut shadow = Shadow::default();
    let start = NodeStart::new("n", "start");
    for number in [1, 1] {
        shadow.sessions.registered(&start, number, &mut shadow.found);
    }
    assert!(rules(&shadow).is_empty(), "the answer was lost, and it is registered again");
    shadow.sessions.registered(&start, 2, &mut shadow.found);
    assert_eq!(rules(&shadow), ["A13"]);
}

/// Makes a watch that has seen this, and whose time is so many milliseconds later.
fn watched(shadow: Shadow, later_ms: u64) -> Watch {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new(NOW + later_ms));
    Watch { shadow: Arc::new(Mutex::new(shadow)), ..Watch::new(clock) }
}

/// Makes a watch that found an instance gone, so many milliseconds after its end.
pub(crate) fn a_deletion(ended_before_ms: Option<u64>, is_child: bool) -> Watch {
    let mut shadow = leased();
    let metadata = steadfast_core::ExecutionMetadata {
        status: ended_before_ms.map(|_| "Completed".to_owned()),
        orchestration_name: Some("Main".to_owned()),
        parent_instance_id: is_child.then(|| "parent".to_owned()),
        ..Default::default()
    };
    let commit = TurnCommit { metadata, ..TurnCommit::empty(1) };
    shadow.committed(&LeaseToken::Turn("t".to_owned()), &commit, None, NOW);
    shadow.turns.deleted_but(&["i".to_owned()].into(), NOW);
    assert!(shadow.turns.deleted.is_empty(), "it is there");
    shadow.turns.deleted_but(&BTreeSet::new(), NOW + ended_before_ms.unwrap_or(0));
    watched(shadow, 300_000)
}

/// Makes a watch that saw a message wait for its turn, from 200 seconds on, for so many milliseconds.
pub(crate) fn a_turn_that_waited(for_ms: u64) -> Watch {
    let mut shadow = leased();
    commit(&mut shadow, "t", NOW);
    shadow.turns.send(&raised("b"), NOW + 200_000);
    let event = Event::at(NOW, 1, "i", 1, None, EventKind::KeyValuesCleared);
    let late = turn("u", NOW + 200_000 + for_ms, Some(RunId(7)), vec![event], &[raised("b")]);
    shadow.turns.granted(&late, LEASE, &mut shadow.found);
    watched(shadow, 300_000)
}

/// Makes a watch that saw the lease of an activity end, and its holder excuse it or not.
pub(crate) fn a_lease_that_was_outlived(excused: bool) -> Watch {
    let mut shadow = working();
    if excused {
        shadow.work.excused(&LeaseToken::Work("w".to_owned()), true, NOW + 31_000, &mut shadow.found);
    }
    watched(shadow, 40_000)
}

/// Makes a watch that saw `p` claim the session `s` with epoch 5 for half a minute, and release it after so
/// many milliseconds if it did.
pub(crate) fn a_claim(released_after_ms: Option<u64>) -> Watch {
    let mut shadow = Shadow::default();
    shadow.sessions.granted(&asked("p"), &claimed(5, Claim::New), &[], NOW, &mut shadow.found);
    if let Some(after) = released_after_ms {
        let claim = SessionRef { key: SessionKey::shared("s"), epoch: 5 };
        let owner = Owner::unnamed("p");
        shadow.sessions.released(&owner, &[claim], NOW + after, &mut shadow.found);
    }
    watched(shadow, 300_000)
}

/// Makes a watch that saw the lease of a session that was in use end at 230 seconds.
pub(crate) fn a_claim_that_expired() -> Watch {
    let mut shadow = Shadow::default();
    let taken = Claim::Taken { from: "p".to_owned() };
    for (owner, epoch, claim, at) in [("p", 5, Claim::New, 200_000), ("q", 6, taken, 231_000)] {
        shadow.sessions.granted(&asked(owner), &claimed(epoch, claim), &[], NOW + at, &mut shadow.found);
    }
    watched(shadow, 300_000)
}

/// The activity `id` of `i`, on the session `s` or on none.
fn activity_on(id: u64, session: bool) -> WorkItem {
    let session_id = session.then(|| "s".to_owned());
    let (instance, name) = ("i".to_owned(), "a".to_owned());
    WorkItem::ActivityExecute {
        instance,
        execution_id: 1,
        id,
        name,
        input: String::new(),
        session_id,
        tag: None,
    }
}

fn asks(owner: &str) -> WorkRequest {
    WorkRequest { session: Some(asked(owner)), ..request() }
}

/// A shadow of a store with activity 2 on the session and activity 3 on none. `p` holds the session.
fn two_kinds() -> Shadow {
    let mut shadow = Shadow::default();
    shadow.sessions.granted(&asked("p"), &claimed(5, Claim::New), &[], NOW, &mut shadow.found);
    shadow.work.queue(&NewWork::from(activity_on(2, true)), NOW);
    shadow.work.queue(&NewWork::from(activity_on(3, false)), NOW);
    shadow
}

#[test]
fn work_that_is_passed_over_is_noticed() {
    let given = |owner: &str, now| {
        let mut shadow = two_kinds();
        shadow.check_order(&asks(owner), &WorkLease { item: activity_on(3, false), ..work("w", now) });
        rules(&shadow)
    };
    assert_eq!(given("p", NOW), ["A16"], "its own session has older work");
    assert!(given("q", NOW).is_empty(), "the older work is that of another owner");
    assert_eq!(given("q", NOW + 30_000), ["A16"], "the lease of the owner has ended");
    let mut shadow = two_kinds();
    shadow.check_order(&request(), &WorkLease { item: activity_on(3, false), ..work("w", NOW) });
    assert!(rules(&shadow).is_empty(), "a request without sessions");
}

#[test]
fn work_that_is_left_beside_a_fetch_that_could_take_it_is_noticed() {
    let left = |owner: &str, now| {
        let mut shadow = two_kinds();
        let only = ScheduledActivityIdentifier { instance: "i".to_owned(), execution_id: 1, activity_id: 3 };
        shadow.work.withdraw(&only);
        shadow.check_idle(&asks(owner), now);
        rules(&shadow)
    };
    assert_eq!(left("p", NOW + 2_000), ["I7"]);
    assert!(left("p", NOW + 500).is_empty(), "it may come the next moment");
    assert!(left("q", NOW + 29_000).is_empty(), "it is that of another owner");
    assert!(left("q", NOW + 30_500).is_empty(), "the lease has just ended");
    assert_eq!(left("q", NOW + 32_000), ["A6"], "the work of a dead owner is stranded");
}

#[test]
fn a_serial_session_is_passed_over_while_an_activity_of_it_runs() {
    let mut shadow = two_kinds();
    let key = SessionKey::owned("i", "s");
    let event = EventKind::SessionOpened {
        session_id: "s".to_owned(),
        idle_timeout_ms: None,
        concurrency: Some(steadfast_core::SessionConcurrency::Serial),
    };
    let opened = Event::at(NOW, 1, "i", 1, None, event);
    shadow.sessions.committed("i", &TurnCommit { events: vec![opened], ..TurnCommit::empty(1) });
    for id in [4, 5] {
        let item = activity_on(id, true);
        shadow.work.queue(&NewWork { session: Some(key.clone()), ..item.into() }, NOW);
    }
    let runnable = |shadow: &Shadow| {
        let mine = shadow.work.waiting(&TagFilter::Any, NOW).filter(|waiting| waiting.session == Some(&key));
        let next = mine.filter(|waiting| shadow.work.is_next(waiting, NOW));
        next.map(|waiting| waiting.key.2).collect::<Vec<_>>()
    };
    assert!(shadow.sessions.is_serial(&key));
    assert_eq!(runnable(&shadow), [4]);
    let first = WorkLease { item: activity_on(4, true), ..work("v", NOW) };
    shadow.work.granted(&request(), &first, &mut shadow.found);
    assert_eq!(runnable(&shadow), <[u64; 0]>::default());
}

#[test]
fn clean_up_that_takes_what_is_in_use_is_noticed() {
    let cleaned = |locked_until_ms, queued| {
        let key = SessionKey::shared("s");
        let info = SessionInfo {
            key: key.clone(),
            owner: Some(Owner::unnamed("p")),
            epoch: 5,
            locked_until_ms,
            last_activity_at_ms: NOW,
            queued,
            idle_timeout_ms: None,
            concurrency: steadfast_core::SessionConcurrency::Unbounded,
        };
        let mut shadow = Shadow::default();
        shadow.cleaned_up(&[(key, info)].into(), &BTreeMap::new(), NOW);
        rules(&shadow)
    };
    assert!(cleaned(NOW, 0).is_empty());
    assert_eq!(cleaned(NOW + 1, 0), ["A14"], "a live lease");
    assert_eq!(cleaned(NOW, 1), ["A14"], "there is work");
}

#[test]
fn an_execution_that_is_given_to_another_engine_is_noticed() {
    let mut shadow = leased();
    let metadata = steadfast_core::ExecutionMetadata {
        pinned_duroxide_version: Some(semver::Version::new(3, 0, 0)),
        ..Default::default()
    };
    let commit = TurnCommit { metadata, ..TurnCommit::empty(1) };
    let run = Some(Committed { run: Some(RunId(7)) });
    shadow.committed(&LeaseToken::Turn("t".to_owned()), &commit, run, NOW);
    let lease = turn("u", NOW, Some(RunId(7)), Vec::new(), &[]);
    let engines = |min, max| steadfast_core::DispatcherCapabilityFilter {
        supported_duroxide_versions: vec![steadfast_core::SemverRange::new(
            semver::Version::new(min, 0, 0),
            semver::Version::new(max, 0, 0),
        )],
    };
    shadow.turns.check_pin(&lease, None, &mut shadow.found);
    shadow.turns.check_pin(&lease, Some(&engines(1, 3)), &mut shadow.found);
    assert!(rules(&shadow).is_empty());
    shadow.turns.check_pin(&lease, Some(&engines(1, 2)), &mut shadow.found);
    assert_eq!(rules(&shadow), ["I11"]);
}

#[test]
fn a_watch_ends_when_the_time_of_the_store_was_set() {
    let mut shadow = leased();
    assert!(shadow.agrees(NOW, NOW + 1));
    assert!(!shadow.agrees(NOW, NOW + 60_000));
    assert!(!watched(shadow, 0).has_sight());
}

#[test]
fn the_time_of_a_watch_is_that_of_the_clock_since_it_began() {
    let clock = VirtualClock::new(NOW);
    let watch = Watch::new(Arc::new(clock.clone()));
    clock.advance(Duration::from_millis(5));
    assert_eq!(watch.now_ms(), NOW + 5);
}
