//! Sessions that were served where they should not have been.

use super::*;
use crate::{
    checks::{serial, sessions},
    watch::tests::{a_claim, a_claim_that_expired},
};

#[test]
fn an_epoch_of_two_processes_or_two_sessions_is_noticed() {
    let served = |one: Run, two: Run| {
        found(sessions::an_epoch_has_one_process, &case(vec![began(1, &one), began(2, &two)]))
    };
    let first = || on_session(run(1, "p"), "s", 5);
    assert!(served(first(), on_session(run(2, "p"), "s", 5)).is_empty());
    assert!(served(first(), on_session(run(2, "q"), "s", 6)).is_empty());
    assert_eq!(served(first(), on_session(run(2, "q"), "s", 5)), ["A1"]);
    assert_eq!(served(first(), on_session(run(2, "p"), "t", 5)), ["A2"]);
}

#[test]
fn an_older_epoch_that_begins_after_a_newer_one_is_noticed() {
    let served = |epochs: [u64; 2]| {
        let runs = epochs.map(|epoch| on_session(run(epoch, "p"), "s", epoch));
        let entries = runs.iter().zip(1..).map(|(run, seconds)| began(seconds, run)).collect();
        found(sessions::older_epochs_do_not_begin_after_newer_ones, &case(entries))
    };
    assert!(served([5, 6]).is_empty());
    assert_eq!(served([6, 5]), ["A4"]);
}

#[test]
fn state_of_another_attachment_is_noticed() {
    let mut one = on_session(run(1, "p"), "s", 5);
    assert!(found(sessions::state_is_of_this_attachment, &case(vec![began(1, &one)])).is_empty());
    one.session.iter_mut().for_each(|session| session.state_epoch = Some(4));
    assert_eq!(found(sessions::state_is_of_this_attachment, &case(vec![began(1, &one)])), ["A7"]);
}

#[test]
fn an_activity_that_does_not_see_the_move_is_noticed() {
    let told_after = |first: bool, second: bool, cancelled: bool| {
        let (mut one, mut two) = (on_session(run(1, "p"), "s", 5), on_session(run(2, "p"), "s", 5));
        one.session.iter_mut().for_each(|session| session.is_first = first);
        two.session.iter_mut().for_each(|session| session.is_first = second);
        let (instance, execution, id) = one.key();
        let reason = || EventKind::ActivityCancelRequested { reason: String::new() };
        let history = if cancelled { vec![(Some(id), reason())] } else { Vec::new() };
        let entries = vec![began(1, &one), ended(2, &one, Ok("r")), began(3, &two)];
        let case = with(case(entries), instance, execution, history);
        found(sessions::the_first_activity_sees_the_move, &case)
    };
    let told = |first, second| told_after(first, second, false);
    assert!(told_after(true, true, true).is_empty(), "the first one was cancelled");
    assert!(told(true, false).is_empty());
    assert_eq!(told(false, false), ["A15"], "the move is not seen");
    assert_eq!(told(true, true), ["A15"], "there was none");
}

#[test]
fn more_sessions_than_a_process_may_serve_are_noticed() {
    let (one, two) = (on_session(run(1, "p"), "s", 5), on_session(run(2, "p"), "t", 6));
    let served = |entries: Vec<Entry>| {
        let mut case = case(entries);
        case.terms.capacity.insert("p".to_owned(), 1);
        found(sessions::capacity_holds, &case)
    };
    assert_eq!(served(vec![began(1, &one), began(2, &two)]), ["A8"]);
    assert!(served(vec![began(1, &one), ended(2, &one, Ok("r")), began(3, &two)]).is_empty());
    assert!(served(vec![began(1, &one), dies(2, "p"), began(3, &two)]).is_empty());
}

#[test]
fn an_activity_that_begins_after_the_lease_of_its_session_is_noticed() {
    let begins_at = |seconds, epoch| {
        let mut case = case(vec![began(seconds, &on_session(run(1, "p"), "s", epoch))]);
        case.terms.watch = Some(a_claim(None));
        found(sessions::nothing_begins_after_the_lease, &case)
    };
    assert!(begins_at(20, 5).is_empty());
    assert_eq!(begins_at(40, 5), ["A4"]);
    assert_eq!(begins_at(20, 6), ["A1"], "no fetch made this claim");
}

#[test]
fn a_watch_that_ended_tells_nothing_about_claims() {
    let mut case = case(vec![began(40, &on_session(run(1, "p"), "s", 5))]);
    let watch = a_claim(None);
    watch.lose_sight();
    case.terms.watch = Some(watch);
    assert!(found(sessions::nothing_begins_after_the_lease, &case).is_empty());
}

#[test]
fn a_session_in_use_whose_lease_ends_in_a_calm_is_noticed() {
    let expired = |entries| {
        let mut case = case(entries);
        case.terms.watch = Some(a_claim_that_expired());
        found(sessions::sessions_in_use_are_renewed, &case)
    };
    assert_eq!(expired(vec![begins("p")]), ["D17"]);
    assert!(expired(vec![begins("p"), fault(210, FaultKind::Killed, "p", 0)]).is_empty());
}

#[test]
fn a_process_that_drains_and_keeps_its_session_is_noticed() {
    let drained = |released_after_ms| {
        let one = on_session(run(1, "p"), "s", 5);
        let drain = fault(2, FaultKind::Drained, "p", 1);
        let mut case = case(vec![begins("p"), began(1, &one), drain, dies(3, "p")]);
        case.terms.watch = Some(a_claim(released_after_ms));
        found(sessions::a_drained_process_releases_its_sessions, &case)
    };
    assert!(drained(Some(2_500)).is_empty());
    assert_eq!(drained(None), ["D25"]);
}

/// Runs of the activities 3 and 4 of `i`, both scheduled on a serial session, in this order of beginnings.
fn chat(entries: Vec<Entry>) -> Case {
    let opened = EventKind::SessionOpened {
        session_id: "s".to_owned(),
        idle_timeout_ms: None,
        concurrency: Some(steadfast_core::SessionConcurrency::Serial),
    };
    let on_it = || {
        let (name, input) = ("a".to_owned(), String::new());
        (None, EventKind::ActivityScheduled { name, input, session_id: Some("s".to_owned()), tag: None })
    };
    with(case(entries), "i", 1, vec![started(), (None, opened), on_it(), on_it()])
}

#[test]
fn two_activities_of_a_serial_session_at_a_time_are_noticed() {
    let (one, two) = (Run { id: 3, ..run(1, "p") }, Run { id: 4, ..run(2, "q") });
    let check = serial::one_activity_runs_at_a_time;
    assert_eq!(found(check, &chat(vec![began(1, &one), began(2, &two)])), ["D29"]);
    let apart = vec![began(1, &one), ended(2, &one, Ok("r")), began(2, &two)];
    assert!(found(check, &chat(apart)).is_empty());
    let paused = vec![began(1, &one), fault(1, FaultKind::Paused, "p", 60), began(40, &two)];
    assert!(found(check, &chat(paused)).is_empty(), "a process that is stopped runs on when it wakes");
    let elsewhere = vec![began(1, &one), fault(1, FaultKind::Paused, "q", 60), began(40, &two)];
    assert_eq!(found(check, &chat(elsewhere)), ["D29"]);
}

#[test]
fn activities_of_a_serial_session_in_another_order_are_noticed() {
    let (one, two) = (Run { id: 3, ..run(1, "p") }, Run { id: 4, ..run(2, "p") });
    let check = serial::activities_keep_their_order;
    assert!(found(check, &chat(vec![began(1, &one), began(2, &two)])).is_empty());
    assert_eq!(found(check, &chat(vec![began(1, &two), began(2, &one)])), ["D29"]);
    assert!(found(check, &chat(vec![began(1, &two)])).is_empty(), "the first one was withdrawn");
}
