//! Which situations a search has met: a search that meets few of them shows little.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A situation that the protocol has a rule for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// Clean-up removed a session.
    CleanedUp,
    /// A session was claimed after clean-up had removed it.
    ClaimedAfterCleanUp,
    /// A session was claimed that had been closed and opened again.
    ClaimedAfterReopening,
    /// A new start of a node claimed a session that an older start had a live lease of.
    TakenFromPredecessor,
    /// A process that serves as many sessions as it may was given work of one of these.
    FullProcessServed,
    /// A call by an older start of a node was refused.
    OldStartRefused,
    /// The answer to a fetch came too late, and its work was abandoned.
    LateAnswerRefused,
    /// The answer to a fetch brought an epoch that the process had released.
    ReleasedEpochRefused,
    /// The answer to a fetch brought a newer epoch than the one that the process held.
    OlderClaimReplaced,
    /// An activity did not begin, because the process could not prove its lease.
    UnprovenActivityAbandoned,
    /// The result of an activity was refused, because the lease of its work had ended.
    LateResultRefused,
    /// A renewal ended the lease of a session whose work its owner would not take.
    UntakenReleased,
    /// A renewal extended a lease that its process had given up as unproven, and the process released it.
    UnprovenReleased,
    /// A process kept a session that the store called idle, because an activity of it ran.
    BusySessionSpared,
    /// A release came after a newer claim, and changed nothing.
    LateReleaseIgnored,
    /// The owner of a session that was closed has detached it, and its lease was ended.
    FormerOwnerDetached,
}

impl Occurrence {
    /// Every situation.
    pub const ALL: [Self; 16] = [
        Self::CleanedUp,
        Self::ClaimedAfterCleanUp,
        Self::ClaimedAfterReopening,
        Self::TakenFromPredecessor,
        Self::FullProcessServed,
        Self::OldStartRefused,
        Self::LateAnswerRefused,
        Self::ReleasedEpochRefused,
        Self::OlderClaimReplaced,
        Self::UnprovenActivityAbandoned,
        Self::LateResultRefused,
        Self::UntakenReleased,
        Self::UnprovenReleased,
        Self::BusySessionSpared,
        Self::LateReleaseIgnored,
        Self::FormerOwnerDetached,
    ];
}

/// Counts how often a search met each situation. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Coverage(Arc<[AtomicUsize; Occurrence::ALL.len()]>);

impl Coverage {
    /// Returns how often the situation was met.
    pub fn count(&self, occurrence: Occurrence) -> usize {
        self.0[occurrence as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, occurrence: Occurrence) {
        self.0[occurrence as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_if(&self, holds: bool, occurrence: Occurrence) {
        if holds {
            self.note(occurrence);
        }
    }
}
