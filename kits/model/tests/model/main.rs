//! The session protocol: no state of the model breaks an invariant, and a broken model is caught.

#![allow(clippy::expect_used, clippy::panic, reason = "a test panics with what it relies on")]
#![allow(clippy::print_stdout, reason = "the number of states is what a reader wants to see")]

mod agreement;
mod exhausted;
mod mutated;

use stateright::{Checker, HasDiscoveries, Model, Path};
use steadfast_model::{Coverage, Invariant, ModelAction, Mutation, Rules, SessionModel, World};

/// What a search found: how many different states, and which situations.
struct Found {
    states: usize,
    coverage: Coverage,
}

/// Searches every state within the bounds, and fails if one breaks an invariant.
fn exhaust(rules: Rules) -> Found {
    let model = SessionModel::new(rules);
    let coverage = model.coverage();
    let checker = model.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done(), "the search has ended before its end");
    let states = checker.unique_state_count();
    println!("{states} states, {} steps, {rules:?}", checker.state_count());
    Found { states, coverage }
}

/// Searches for a run that breaks the invariant.
fn counterexample(rules: Rules, invariant: Invariant) -> Option<Path<World, ModelAction>> {
    let sought = HasDiscoveries::AnyOf([invariant.name()].into());
    let checker = SessionModel::new(rules).checker().finish_when(sought).spawn_bfs().join();
    println!("{} states, {rules:?}", checker.unique_state_count());
    checker.discovery(invariant.name())
}

/// Fails unless a search of the broken model finds a run that breaks the invariant.
#[track_caller]
fn assert_caught(mutation: Mutation, invariant: Invariant) {
    let rules = Rules { mutation: Some(mutation), must_recover: true, ..Rules::ORDINARY };
    let run = counterexample(rules, invariant);
    let run = run.unwrap_or_else(|| panic!("{mutation:?} breaks {} unnoticed", invariant.name()));
    println!("{:?}", run.into_actions());
}
