//! The store of the model: the rows of sessions, the newest start of each node, and what each call does
//! (S13).
//!
//! Who counts as an owner and which claims a renewal reports as lost are decided by the functions of
//! `steadfast_store::rules` that every store uses.

use std::time::Duration;

use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::rules::{is_same_owner, lost_claims};
use steadfast_store::{Appetite, Owner, RenewSessions, SessionRef, SessionsRenewed};

use crate::world::{OWNED, SESSIONS, SHARED};
use crate::{Mutation, Rules};

/// The nodes of the processes.
const NODES: [usize; 3] = [0, 0, 1];

const NODE_IDS: [&str; 2] = ["a", "b"];

/// Everything that the store keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StoreSide {
    /// The sessions: the shared one, and that of the instance.
    pub sessions: [StoredSession; SESSIONS],
    /// The number of the newest start of each node, 0 before the first.
    pub newest: [u8; NODE_IDS.len()],
}

/// A session in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StoredSession {
    /// Whether the session of an instance is open. A shared session needs no opening.
    pub is_open: bool,
    /// The row of the session, if it has one.
    pub row: Option<SessionRow>,
    /// The activity of the session.
    pub work: Work,
    /// The highest epoch that was ever given: the store's counter.
    pub given: u8,
    /// The highest epoch that had been given when the session was last closed.
    pub closed: u8,
    /// The claim of the closed session, while its lease lasts and its owner has not detached it.
    pub former: Option<SessionRow>,
}

/// The activity of a session. One at a time is enough: order among activities is another clause (S18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Work {
    /// No activity.
    #[default]
    Nothing,
    /// An activity that a fetch may lease.
    Waiting,
    /// An activity that a process has leased.
    Leased,
}

/// The row of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SessionRow {
    /// The process that claimed the session last.
    pub holder: Option<Holder>,
    /// The epoch of that claim, 0 before the first.
    pub epoch: u8,
    /// The ticks that are left of the lease.
    pub lease: u8,
}

/// A process as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The node of the process.
    pub node: usize,
    /// The number of its start; `None` if it is not registered.
    pub incarnation: Option<u8>,
}

/// What a fetch may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// No work of the session.
    Refused,
    /// The process owns the session.
    Held,
    /// The process may claim the session.
    Claimable,
}

/// What a fetch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchScope {
    /// Whether the fetch may claim a session; if not, it asks for work of the sessions in `only`.
    pub may_claim: bool,
    /// The sessions that have an activity in the process.
    pub only: [bool; SESSIONS],
    /// The sessions that the fetch must not bring.
    pub leave_out: [bool; SESSIONS],
}

/// A renewal as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RenewalRequest {
    /// The number of the start of the process.
    pub incarnation: Option<u8>,
    /// The claims that the process believed to hold, 0 for none.
    pub held: [u8; SESSIONS],
    /// Whether the process will take no session work soon.
    pub is_full: bool,
}

/// What becomes of one session in a renewal, with the epoch of the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RenewalFate {
    /// The process has no live lease of the session.
    Absent,
    /// The lease was extended.
    Renewed(u8),
    /// The lease was not extended: the session is idle.
    Idle(u8),
    /// The lease was ended: the process does not take the session's work.
    Untaken(u8),
}

/// Tells whether a process is registered as soon as it starts: it is the only one of its node. Two processes
/// of one node are enough to search through what happens before a registration.
pub(crate) fn registers_at_once(process: usize) -> bool {
    node_of(process) == 1
}

pub(crate) fn node_of(process: usize) -> usize {
    NODES[process]
}

impl Holder {
    /// Returns how the store knows a process.
    pub fn of(process: usize, incarnation: Option<u8>) -> Self {
        Self { node: node_of(process), incarnation }
    }

    /// Returns the owner that the process names in its calls.
    pub fn owner(self) -> Owner {
        Owner { id: NODE_IDS[self.node].to_owned(), incarnation: self.incarnation.map(u64::from) }
    }
}

impl SessionRow {
    /// Tells whether the process owns the session now.
    pub fn is_held_by(&self, process: usize, incarnation: Option<u8>) -> bool {
        self.lease > 0 && self.was_claimed_by(process, incarnation)
    }

    fn was_claimed_by(&self, process: usize, incarnation: Option<u8>) -> bool {
        let caller = Holder::of(process, incarnation);
        self.holder.is_some_and(|holder| {
            holder.node == caller.node && is_same_owner(&holder.owner(), &caller.owner())
        })
    }

    /// Tells whether an earlier start of the same node claimed the session.
    pub(crate) fn is_held_by_predecessor(&self, process: usize, incarnation: Option<u8>) -> bool {
        let caller = Holder::of(process, incarnation);
        self.holder.is_some_and(|holder| holder.node == caller.node && holder.incarnation < incarnation)
    }
}

impl StoreSide {
    /// Tells whether a process has to wait for the former owner of a session that was closed (G41).
    pub fn is_kept_from(&self, process: usize, incarnation: Option<u8>, session: usize) -> bool {
        self.sessions[session].former.is_some_and(|former| {
            let is_own = former.is_held_by(process, incarnation);
            !is_own && !former.is_held_by_predecessor(process, incarnation)
        })
    }

    /// Tells whether a call by this start of a node is refused, because a newer one is registered.
    pub fn refuses(&self, process: usize, incarnation: Option<u8>) -> bool {
        incarnation.is_some_and(|incarnation| incarnation < self.newest[node_of(process)])
    }

    /// Tells what a fetch may be given of a session.
    pub fn service(
        &self,
        process: usize,
        incarnation: Option<u8>,
        scope: FetchScope,
        session: usize,
        rules: Rules,
    ) -> Service {
        if scope.leave_out[session] {
            return Service::Refused;
        }
        let row = self.sessions[session].row;
        let is_held = row.is_some_and(|row| row.is_held_by(process, incarnation));
        let is_free = row.is_none_or(|row| {
            (row.lease == 0 && !rules.has(Mutation::EndedLeaseStaysTaken))
                || row.is_held_by_predecessor(process, incarnation)
                || rules.has(Mutation::LiveLeaseIsTaken)
        });
        let is_kept = self.is_kept_from(process, incarnation, session)
            && !rules.has(Mutation::FormerOwnerIsNotWaitedFor);
        match scope.may_claim {
            false if is_held && scope.only[session] => Service::Held,
            false => Service::Refused,
            true if is_held => Service::Held,
            true if is_free && !is_kept => Service::Claimable,
            true => Service::Refused,
        }
    }

    /// Leases the work of a session and the session itself. Returns the epoch.
    pub fn claim(&mut self, process: usize, incarnation: Option<u8>, session: usize, rules: Rules) -> u8 {
        let stored = &mut self.sessions[session];
        stored.work = Work::Leased;
        let mut row = stored.row.unwrap_or_default();
        if row.is_held_by(process, incarnation) {
            let extended =
                if rules.has(Mutation::LeasesAddUp) { row.lease + rules.lease } else { rules.lease };
            row.lease = row.lease.max(extended.min(2 * rules.lease));
        } else {
            let last = if rules.has(Mutation::EpochFromRow) { row.epoch } else { stored.given };
            row = SessionRow {
                holder: Some(Holder::of(process, incarnation)),
                epoch: last + 1,
                lease: rules.lease,
            };
            stored.former = None;
        }
        stored.given = stored.given.max(row.epoch);
        stored.row = Some(row);
        row.epoch
    }

    /// Renews the leases of a process. `is_late`: the time of idle sessions is up; `is_untaken`: the owner
    /// does not take the work that waits. Returns what becomes of each session, and which claims are lost (0
    /// for none).
    pub fn renew(
        &mut self,
        process: usize,
        request: RenewalRequest,
        is_late: bool,
        is_untaken: [bool; SESSIONS],
        rules: Rules,
    ) -> ([RenewalFate; SESSIONS], [u8; SESSIONS]) {
        let mut fates = [RenewalFate::Absent; SESSIONS];
        for (session, fate) in fates.iter_mut().enumerate() {
            let stored = &mut self.sessions[session];
            let Some(row) = &mut stored.row else { continue };
            let revives =
                rules.has(Mutation::RenewalRevives) && row.was_claimed_by(process, request.incarnation);
            if !row.is_held_by(process, request.incarnation) && !revives {
                continue;
            }
            let is_running = stored.work == Work::Leased && !rules.has(Mutation::IdleWhileRunning);
            if is_untaken[session] && stored.work == Work::Waiting {
                row.lease = 0;
                *fate = RenewalFate::Untaken(row.epoch);
            } else if is_late && session == SHARED && !is_running {
                *fate = RenewalFate::Idle(row.epoch);
            } else {
                row.lease = rules.lease;
                *fate = RenewalFate::Renewed(row.epoch);
            }
        }
        let lost = lost(process, request, fates);
        (fates, lost)
    }

    /// Releases one claim. Returns whether that changed the row.
    pub fn release(
        &mut self,
        process: usize,
        incarnation: Option<u8>,
        session: usize,
        epoch: u8,
        rules: Rules,
    ) -> bool {
        let stored = &mut self.sessions[session];
        let is_claim =
            |former: &mut SessionRow| former.epoch == epoch && former.is_held_by(process, incarnation);
        if stored.former.take_if(is_claim).is_some() {
            return true;
        }
        let Some(row) = &mut stored.row else { return false };
        let is_named = row.epoch == epoch || rules.has(Mutation::ReleaseWithoutEpoch);
        let releases = is_named && row.is_held_by(process, incarnation);
        if releases {
            row.lease = 0;
        }
        releases
    }

    /// Tells whether clean-up removes the row of the shared session.
    pub fn may_clean_up(&self, rules: Rules) -> bool {
        let stored = &self.sessions[SHARED];
        let is_unused = |row: SessionRow| {
            (row.lease == 0 || rules.has(Mutation::CleanUpOfLiveLeases)) && stored.work == Work::Nothing
        };
        stored.row.is_some_and(is_unused)
    }

    /// Removes the row of the shared session.
    pub fn clean_up(&mut self) {
        self.sessions[SHARED].row = None;
    }

    /// Closes the session of the instance, with its work.
    pub fn close(&mut self, rules: Rules) {
        let stored = &mut self.sessions[OWNED];
        let claimed = stored.row.filter(|row| row.lease > 0 && row.holder.is_some());
        stored.former = claimed.or(stored.former);
        (stored.is_open, stored.row, stored.closed) = (false, None, stored.given);
        if !rules.has(Mutation::ClosedIsClaimable) {
            stored.work = Work::Nothing;
        }
    }

    /// Opens the session of the instance.
    pub fn open(&mut self) {
        let stored = &mut self.sessions[OWNED];
        (stored.is_open, stored.row) = (true, Some(SessionRow::default()));
    }
}

impl RenewalFate {
    /// Returns the epoch of the claim, 0 for none.
    pub fn epoch(self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Renewed(epoch) | Self::Idle(epoch) | Self::Untaken(epoch) => epoch,
        }
    }

    fn renewed(self) -> u8 {
        if let Self::Renewed(epoch) = self { epoch } else { 0 }
    }

    fn idle(self) -> u8 {
        if let Self::Idle(epoch) = self { epoch } else { 0 }
    }

    fn untaken(self) -> u8 {
        if let Self::Untaken(epoch) = self { epoch } else { 0 }
    }
}

/// Asks the rule of all stores which claims of a renewal are lost.
fn lost(process: usize, request: RenewalRequest, fates: [RenewalFate; SESSIONS]) -> [u8; SESSIONS] {
    let mut lost = [0; SESSIONS];
    if request.held == lost {
        return lost;
    }
    let claim = |session: usize, epoch: u8| SessionRef { key: key(session), epoch: u64::from(epoch) };
    let claims = |epochs: &[u8; SESSIONS]| -> Vec<SessionRef> {
        let named = epochs.iter().enumerate().filter(|(_, epoch)| **epoch > 0);
        named.map(|(session, epoch)| claim(session, *epoch)).collect()
    };
    let asked = RenewSessions {
        owner: Holder::of(process, request.incarnation).owner(),
        extend_for: Duration::ZERO,
        idle_timeout: Duration::ZERO,
        untaken_after: Duration::ZERO,
        tags: TagFilter::Any,
        appetite: if request.is_full { Appetite::Full } else { Appetite::Hungry },
        worker: None,
        held: claims(&request.held),
    };
    let outcome = SessionsRenewed {
        renewed: claims(&fates.map(RenewalFate::renewed)),
        idle: claims(&fates.map(RenewalFate::idle)),
        untaken: claims(&fates.map(RenewalFate::untaken)),
        lost: Vec::new(),
    };
    for claim in lost_claims(&asked, &outcome) {
        let session = if claim.key.instance.is_some() { OWNED } else { SHARED };
        lost[session] = claim.epoch as u8;
    }
    lost
}

fn key(session: usize) -> SessionKey {
    if session == OWNED { SessionKey::owned("i", "s") } else { SessionKey::shared("s") }
}
