//! Models that are broken on purpose: each must be caught by the property that it breaks.

/// One place at which the model does something else than the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The next epoch is counted from the row of the session, and so from 1 after a clean-up.
    EpochFromRow,
    /// A renewal extends leases that have expired.
    RenewalRevives,
    /// A release does not look at the epoch.
    ReleaseWithoutEpoch,
    /// A renewal reports a session as idle although an activity of it is leased, and the process does not
    /// spare it.
    IdleWhileRunning,
    /// A process counts its claim from the receipt of an answer (G10).
    ProofFromReceipt,
    /// An activity begins without a look at the process's own deadline.
    StartWithoutProof,
    /// A process takes session work before its node is registered (G1).
    UnregisteredTakesSessions,
    /// The store serves a process whose node has started again since.
    OldStartIsServed,
    /// A process goes on after the store has told it that it was replaced.
    ReplacedGoesOn,
    /// Closing a session keeps its queued work, and a fetch claims the session.
    ClosedIsClaimable,
    /// A process forgets which epochs it has released (G10).
    ReleasedIsForgotten,
    /// A fetch claims a session although another process has a live lease.
    LiveLeaseIsTaken,
    /// A process does not look at how many sessions it serves.
    NoLimit,
    /// A fetch by the owner adds a lease to what is left of the last one.
    LeasesAddUp,
    /// A fetch does not claim a session whose lease has ended.
    EndedLeaseStaysTaken,
    /// A fetch claims a session that was closed and opened again, although its former owner has a live lease
    /// (G41).
    FormerOwnerIsNotWaitedFor,
    /// Clean-up removes a session although its lease is live.
    CleanUpOfLiveLeases,
}
