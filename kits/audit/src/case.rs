//! A case: everything that the checks look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use steadfast_core::{ErrorDetails, Event, replay::Setup};
use steadfast_store::InstanceState;

use crate::{Violation, checks, evidence::Evidence, records::Records, watch::Watch};

/// What the auditor knows.
#[derive(Clone)]
pub struct Case {
    /// What the store holds.
    pub records: Records,
    /// What happened beside the store.
    pub evidence: Evidence,
    /// What was to be expected.
    pub terms: Terms,
}

/// Under which terms the engine ran.
#[derive(Clone)]
pub struct Terms {
    /// The lease of an activity.
    pub work_lease: Duration,
    /// The lease of an instance for a turn.
    pub turn_lease: Duration,
    /// The lease of a session.
    pub session_lease: Duration,
    /// How many deliveries are allowed.
    pub max_attempts: u32,
    /// How long a message or a timer that is due may wait for a turn if no fault was under way.
    pub prompt: Duration,
    /// Whether everything had time to end: what has not ended is a violation then.
    pub all_ended: bool,
    /// How many sessions a process may serve at a time, by process; no bound for those that are not named.
    pub capacity: BTreeMap<String, usize>,
    /// The store's time at the beginning that the moments of the evidence count from; `None` if the store's
    /// time and that of the evidence cannot be compared.
    pub store_began_ms: Option<u64>,
    /// How much later than its moment a fact may have its effect, and how long a process may stand between
    /// two of its steps: nothing where one thread runs everything; real processes wait for the disk and the
    /// scheduler.
    pub blur: Duration,
    /// The watch over the store; `None` if it was not watched.
    pub watch: Option<Watch>,
    /// Replays recorded executions; `None` if the code is not at hand.
    pub code: Option<Arc<dyn Replayer>>,
    /// The activities that a process has no code for, by process. If no live worker has the code either, each
    /// delivery to such a process counts.
    pub lacks: BTreeMap<String, BTreeSet<String>>,
    /// Tells which instances may fail for which reasons although no code of theirs returned an error; `None`
    /// is none.
    pub may_fail: Option<Arc<MayFail>>,
    /// The shortest time for which workers keep what has ended; `None` is for ever.
    pub retention: Option<Duration>,
    /// The instances whose histories the disk does not return for a while: they may be late.
    pub damaged: BTreeSet<String>,
}

/// Tells whether an instance may fail for a reason.
pub type MayFail = dyn Fn(&InstanceState, &ErrorDetails) -> bool + Send + Sync;

/// The code of the application, for a replay without an engine around it.
pub trait Replayer: Send + Sync {
    /// Replays one recorded execution.
    ///
    /// # Errors
    ///
    /// The first difference between the history and what the code asks for, in words.
    fn replay(&self, setup: Setup, history: Vec<Event>) -> Result<(), String>;
}

impl Default for Terms {
    /// The terms of `RuntimeOptions::default`.
    fn default() -> Self {
        Self {
            work_lease: Duration::from_secs(30),
            turn_lease: Duration::from_secs(5),
            session_lease: Duration::from_secs(30),
            max_attempts: 10,
            prompt: Duration::from_secs(5),
            all_ended: true,
            capacity: BTreeMap::new(),
            store_began_ms: None,
            blur: Duration::ZERO,
            watch: None,
            code: None,
            lacks: BTreeMap::new(),
            may_fail: None,
            retention: None,
            damaged: BTreeSet::new(),
        }
    }
}

impl Case {
    /// Returns the watch if it has lasted until the end.
    pub(crate) fn whole_watch(&self) -> Option<&Watch> {
        self.terms.watch.as_ref().filter(|watch| watch.has_sight())
    }

    /// Returns the promises that were broken.
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations: Vec<Violation> = checks::ALL.iter().flat_map(|check| check(self)).collect();
        if let Some(watch) = &self.terms.watch {
            violations.extend(watch.violations(&self.records, &self.evidence, self.terms.retention));
        }
        violations
    }
}
