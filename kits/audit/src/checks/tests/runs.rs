//! Activities that ran when they should not have.

use steadfast_core::EventKind;

use super::*;
use crate::{
    checks::runs,
    watch::tests::{a_lease_that_was_outlived, a_turn_that_waited},
};

#[test]
fn a_result_that_no_run_had_is_noticed() {
    let one = run(1, "p");
    let ran = case(vec![began(1, &one), ended(2, &one, Ok("r"))]);
    let recorded = |text| with(ran.clone(), "i", 1, vec![started(), scheduled(), result(2, text)]);
    assert!(found(runs::results_are_those_of_runs, &recorded("r")).is_empty());
    assert_eq!(found(runs::results_are_those_of_runs, &recorded("s")), ["I6"]);
}

/// Two runs of one activity, with a fault between them.
fn twice(kind: FaultKind, process: &str, lasts: u64) -> Vec<&'static str> {
    let (one, two) = (run(1, "p"), run(2, "q"));
    let faults = vec![began(10, &one), fault(11, kind, process, lasts), began(60, &two)];
    found(runs::nothing_runs_twice_without_a_fault, &case(faults))
}

#[test]
fn a_second_run_without_a_fault_is_noticed() {
    assert!(twice(FaultKind::Killed, "p", 0).is_empty());
    assert!(twice(FaultKind::Paused, "p", 40).is_empty());
    assert_eq!(twice(FaultKind::Killed, "q", 0), ["effects"], "another process");
    assert_eq!(twice(FaultKind::Paused, "p", 2), ["effects"], "too short");
    assert_eq!(twice(FaultKind::Failed, "p", 0), ["effects"], "a call that fails is made again");
    assert_eq!(twice(FaultKind::Stepped, "p", 0), ["effects"], "clocks do not matter");
    assert_eq!(twice(FaultKind::Slept, "p", 40), ["effects"], "leases outlast a sleep of the machine");
}

#[test]
fn one_fault_explains_one_more_run() {
    let (one, two, three) = (run(1, "p"), run(2, "p"), run(3, "p"));
    let killed = fault(11, FaultKind::Killed, "p", 0);
    let entries = vec![began(10, &one), killed, began(60, &two), began(61, &three)];
    assert_eq!(found(runs::nothing_runs_twice_without_a_fault, &case(entries)), ["effects"]);
}

#[test]
fn a_delivery_that_counts_without_a_death_is_noticed() {
    let second = Run { attempt: 2, ..run(1, "q") };
    let after = |kind, lasts| {
        let entries = vec![fault(1, kind, "p", lasts), began(60, &second)];
        found(runs::deliveries_count_deaths_only, &case(entries))
    };
    assert!(after(FaultKind::Killed, 0).is_empty());
    assert!(after(FaultKind::Paused, 90).is_empty(), "it is still paused");
    assert_eq!(after(FaultKind::Paused, 10), ["I12"]);
    assert_eq!(after(FaultKind::Slow, 10), ["I12"]);
    assert_eq!(after(FaultKind::Slept, 90), ["I12"]);
}

#[test]
fn a_pause_and_a_death_count_one_delivery_each_if_the_process_dies_before_it_can_excuse() {
    let third = Run { attempt: 3, ..run(1, "q") };
    let paused = |lasts: u64, dead_at: u64, other: Vec<Entry>| {
        let killed = fault(dead_at, FaultKind::Killed, "p", 0);
        let paused = vec![fault(1, FaultKind::Paused, "p", lasts), killed, dies(dead_at, "p")];
        let entries = paused.into_iter().chain(other).chain([began(90, &third)]);
        found(runs::deliveries_count_deaths_only, &case(entries.collect()))
    };
    assert!(paused(40, 41, Vec::new()).is_empty(), "it is killed as it wakes");
    assert!(paused(40, 20, Vec::new()).is_empty(), "it is killed in its pause");
    assert_eq!(paused(40, 60, Vec::new()), ["I12"], "it had time to excuse");
    assert_eq!(paused(5, 6, Vec::new()), ["I12"], "no lease ends in so short a pause");
    let drained = fault(41, FaultKind::Drained, "p", 1);
    let four = Run { attempt: 4, ..run(2, "q") };
    assert_eq!(paused(40, 42, vec![drained, began(80, &four)]), ["I12"], "what drains excuses");
}

#[test]
fn a_delivery_of_a_process_that_drains_counts_if_it_does_not_reach_the_store_in_time() {
    let second = Run { attempt: 2, ..run(1, "q") };
    let drained = |slow_at: u64, process: &str| {
        let slow = fault(slow_at, FaultKind::Slow, process, 10);
        let entries = vec![slow, fault(30, FaultKind::Drained, "p", 1), began(60, &second)];
        found(runs::deliveries_count_deaths_only, &case(entries))
    };
    assert!(drained(25, "p").is_empty());
    assert_eq!(drained(25, "q"), ["I12"], "another process is slow");
    assert_eq!(drained(1, "p"), ["I12"], "it was slow before");
}

#[test]
fn a_delivery_that_counts_in_a_calm_is_noticed() {
    let second = Run { attempt: 2, ..run(1, "p") };
    let calm = case(vec![begins("p"), began(100, &second)]);
    assert_eq!(found(runs::refusals_do_not_count, &calm), ["G5"]);
    let first = case(vec![begins("p"), began(100, &run(1, "p"))]);
    assert!(found(runs::refusals_do_not_count, &first).is_empty());
}

/// Activity 2 of `i` is withdrawn at 60 s, and runs from one second to another.
fn withdrawn(from: u64, to: u64) -> Case {
    let one = run(1, "p");
    let cancel = EventKind::ActivityCancelRequested { reason: String::new() };
    let case = case(vec![begins("p"), began(from, &one), ended(to, &one, Ok("r"))]);
    with(case, "i", 1, vec![started(), scheduled(), (Some(2), cancel)])
}

#[test]
fn a_withdrawn_activity_that_begins_is_noticed() {
    assert!(found(runs::withdrawn_activities_do_not_begin, &withdrawn(50, 90)).is_empty());
    assert_eq!(found(runs::withdrawn_activities_do_not_begin, &withdrawn(70, 90)), ["I9"]);
}

#[test]
fn a_withdrawn_activity_that_goes_on_is_noticed() {
    assert!(found(runs::withdrawn_activities_end_at_once, &withdrawn(50, 60)).is_empty());
    assert_eq!(found(runs::withdrawn_activities_end_at_once, &withdrawn(50, 70)), ["F24"]);
}

#[test]
fn a_delivery_to_a_process_without_the_code_excuses_that_activity_only() {
    let second = Run { attempt: 2, ..run(1, "q") };
    let lacking = |name: &str, from: u64| {
        let mut case = case(vec![at(from, Fact::Process("p".to_owned(), Life::Started)), began(60, &second)]);
        case.terms.lacks.insert("p".to_owned(), [name.to_owned()].into());
        found(runs::deliveries_count_deaths_only, &case)
    };
    assert!(lacking("a", 1).is_empty());
    assert_eq!(lacking("b", 1), ["I12"], "another activity");
    assert_eq!(lacking("a", 70), ["I12"], "a process of later");
}

#[test]
fn a_turn_that_comes_late_in_a_calm_is_noticed() {
    let waited = |for_ms, entries| {
        let mut case = case(entries);
        case.terms.watch = Some(a_turn_that_waited(for_ms));
        found(runs::turns_are_prompt, &case)
    };
    assert!(waited(4_000, vec![begins("p")]).is_empty());
    assert_eq!(waited(6_000, vec![begins("p")]), ["I7"]);
    assert!(waited(6_000, vec![begins("p"), fault(190, FaultKind::Cut, "p", 20)]).is_empty());
    let stepped = vec![begins("p"), fault(190, FaultKind::Stepped, "p", 0)];
    assert_eq!(waited(6_000, stepped), ["I7"], "the clock of a worker excuses nothing");
}

#[test]
fn a_lease_that_its_holder_outlived_and_did_not_excuse_is_noticed() {
    let outlived = |excused, kind| {
        let mut case = case(vec![begins("p"), fault(1, kind, "p", 35)]);
        case.terms.watch = Some(a_lease_that_was_outlived(excused));
        found(runs::outlived_deliveries_are_excused, &case)
    };
    assert_eq!(outlived(false, FaultKind::Paused), ["I12"]);
    assert!(outlived(true, FaultKind::Paused).is_empty());
    assert!(outlived(false, FaultKind::Killed).is_empty());
}
