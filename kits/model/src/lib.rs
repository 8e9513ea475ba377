//! The session protocol as a model: every state that a store, three worker processes, two sessions and the
//! messages between them can come to is visited, and each must keep the invariants of sessions.
//!
//! ```text
//!   orchestrations ── schedule, open, close ──▶ store ◀── fetch, renew, release, register ── processes
//! ```
//!
//! **What is real.** A process believes what the state machine of the runtime says: the crate is compiled
//! with that file (`crates/runtime/src/session/local_session.rs`). Who counts as an owner and which claims a
//! renewal reports as lost are functions of `steadfast_store::rules`. The rest is written here after S13 and
//! after the files around that state machine: `store.rs` is the store, `process.rs` a process with its
//! messages, `action.rs` what may happen next, `step/` what happens then. `world.rs` makes the states few: no
//! time and no number in a state is absolute, so that a run may be of any length.
//!
//! **What may happen.** Work is scheduled, claimed, begun and finished; leases are renewed, expire, are
//! released as unused, idle or untaken; processes pause at any moment, end, start again under their node id,
//! register with and without an answer, or start beside an older process of the same node id; requests,
//! answers and releases are late or lost; a shared session is cleaned up, and that of an instance closed and
//! opened again.
//!
//! **What bounds a search.** Steps are not bounded, and neither is time. A run has at most
//! [`faults`](Rules::faults) faults. One fault is: a pause, an end of a process, a lost message or
//! registration, a release that is given up, a second process of a node id, a message that is a tick late, a
//! renewal that is not made in time. At most [`messages`](Rules::messages) are on their way before another is
//! sent, and at most [`under_way`](Rules::under_way) things are under way at the same time. A session has at
//! most one activity at a time, a lease has three ticks, a proof two, and a process serves one session at a
//! time. Hooks take no time of their own, and an activity that is about to begin does so before its work
//! counts as untaken, which takes two leases.
//!
//! **What is not in it.** A release by an operator; the order of work; what orchestrations are told.
//!
//! Two things end an attachment before its process knows: a newer process of its node, and a close. There an
//! activity may still begin until the process learns of it, at its next renewal at the latest; A1 and A4 are
//! about all other causes. After a close no other process claims the session until then (A9).

mod action;
mod coverage;
mod hooks;
#[allow(dead_code, reason = "the model does not look at log texts and reasons")]
#[path = "../../../crates/runtime/src/session/local_session.rs"]
mod local_session;
mod mutation;
mod process;
mod property;
mod recovery;
mod rules;
mod step;
pub mod store;
mod world;

use stateright::{Model, Property};

pub use action::ModelAction;
pub use coverage::{Coverage, Occurrence};
pub use mutation::Mutation;
pub use property::Invariant;
pub use rules::Rules;
use step::Transition;
pub use world::World;

/// The session protocol, as a model that `stateright` searches.
#[derive(Debug, Clone)]
pub struct SessionModel {
    rules: Rules,
    coverage: Coverage,
    /// What is met where the model looks ahead.
    calm: Coverage,
}

impl SessionModel {
    /// Makes a model with these bounds.
    pub fn new(rules: Rules) -> Self {
        Self { rules, coverage: Coverage::default(), calm: Coverage::default() }
    }

    /// Returns the counts of the situations that a search meets.
    pub fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }
}

impl Model for SessionModel {
    type State = World;
    type Action = ModelAction;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.rules)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<ModelAction>) {
        state.actions(self.rules, actions);
    }

    fn next_state(&self, state: &World, action: ModelAction) -> Option<World> {
        let faults = state.faults.saturating_add(state.faults_of(action));
        if faults > self.rules.faults {
            return None;
        }
        let mut transition = Transition { world: state.clone(), rules: self.rules, coverage: &self.coverage };
        transition.world.faults = faults;
        transition.take(action);
        let next = transition.world.normalised(self.rules);
        let is_within = next.under_way() <= self.rules.under_way || !next.broken.is_empty();
        is_within.then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::properties()
    }
}
