//! A case: everything that the checks look at.

use std::{sync::Arc, time::Duration};

use steadfast_core::{Event, replay::Setup};

use crate::{Violation, checks, evidence::Evidence, records::Records};

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
    /// How much later than its time a timer may fire if no fault is under way.
    pub timer_bound: Duration,
    /// Whether everything had time to end: what has not ended is a violation then.
    pub all_ended: bool,
    /// Replays recorded executions; `None` if the code is not at hand.
    pub code: Option<Arc<dyn Replayer>>,
}

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
            timer_bound: Duration::from_secs(30),
            all_ended: true,
            code: None,
        }
    }
}

impl Case {
    /// Returns the promises that were broken.
    pub fn violations(&self) -> Vec<Violation> {
        checks::ALL.iter().flat_map(|check| check(self)).collect()
    }
}
