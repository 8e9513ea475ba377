//! Sessions that were served where they should not have been.

use super::*;
use crate::checks::sessions;

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
    let told = |first: bool, second: bool| {
        let (mut one, mut two) = (on_session(run(1, "p"), "s", 5), on_session(run(2, "p"), "s", 5));
        one.session.iter_mut().for_each(|session| session.is_first = first);
        two.session.iter_mut().for_each(|session| session.is_first = second);
        let entries = vec![began(1, &one), ended(2, &one, Ok("r")), began(3, &two)];
        found(sessions::the_first_activity_sees_the_move, &case(entries))
    };
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
