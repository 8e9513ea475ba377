//! Every state within the bounds keeps every invariant.

use std::env;

use steadfast_model::{Invariant, Occurrence, Rules};

use crate::{counterexample, exhaust};

/// Sets other bounds by hand: faults, messages, things under way. `2,2,3` visits 4.8 million states.
const BOUNDS: &str = "STEADFAST_MODEL";

fn bounds() -> Rules {
    let ordinary = Rules::ORDINARY;
    let Ok(bounds) = env::var(BOUNDS) else { return ordinary };
    let numbers: Vec<usize> = bounds.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    let [faults, messages, under_way] = numbers[..] else {
        panic!("{BOUNDS} has three numbers, as in 2,2,3")
    };
    let faults = u8::try_from(faults).expect("a run has at most 255 faults");
    Rules { faults, messages, under_way, ..ordinary }
}

#[test]
fn three_workers_and_two_sessions_keep_every_invariant_in_every_state() {
    let found = exhaust(bounds());
    assert!(found.states > 400_000, "only {} states: the bounds exclude too much", found.states);
    for occurrence in Occurrence::ALL {
        assert!(found.coverage.count(occurrence) > 0, "{occurrence:?} does not happen within the bounds");
    }
}

#[test]
fn a6_without_further_faults_all_work_of_two_sessions_ends() {
    let rules =
        Rules { faults: 0, messages: 2, under_way: usize::MAX, must_recover: true, ..Rules::ORDINARY };
    assert!(exhaust(rules).states > 50_000);
}

#[test]
fn a6_after_two_faults_all_work_of_a_session_ends() {
    let rules = one_session(2);
    assert!(exhaust(Rules { must_recover: true, ..rules }).states > 200_000);
}

#[test]
fn requests_that_reach_the_store_late_break_no_invariant() {
    let rules = Rules { late_requests: true, ..one_session(1) };
    assert!(exhaust(rules).states > 100_000);
}

/// Fetches and renewals go by owner, so they keep a lease whose release failed or that was not proven in
/// time.
#[test]
fn d23_without_another_release_a_lease_that_outlives_its_attachment_is_attached_again() {
    let rules = Rules { releases_again: false, ..one_session(1) };
    let run = counterexample(rules, Invariant::D23).expect("the same epoch is attached twice");
    println!("{:?}", run.into_actions());
}

#[test]
fn d23_a_process_that_remembers_and_releases_again_attaches_no_epoch_twice() {
    let rules = Rules { must_recover: true, ..one_session(1) };
    assert!(exhaust(rules).states > 10_000);
}

/// Three workers, one session, two messages on their way, and any number of things under way.
fn one_session(faults: u8) -> Rules {
    Rules { sessions: 1, messages: 2, faults, under_way: usize::MAX, ..Rules::ORDINARY }
}
