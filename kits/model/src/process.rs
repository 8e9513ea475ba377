//! A process's side: what it believes about each session, what it runs, and its messages on their way.
//!
//! What it believes is decided by the state machine of the runtime itself, in
//! `crates/runtime/src/session/local_session.rs`; this file adds what the table around that machine keeps.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::local_session::{LocalSession, SessionEffect, SessionEvent, SessionState};
use crate::store::{FetchScope, RenewalFate, RenewalRequest};
use crate::world::SESSIONS;
use crate::{Mutation, Rules};

/// A worker process, and its messages on their way to the store and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Process {
    /// The number of this start of its node; `None` until the process is registered.
    pub(crate) incarnation: Option<u8>,
    pub(crate) is_paused: bool,
    /// A newer process has the name of its node: this one takes no more work.
    pub(crate) is_fenced: bool,
    pub(crate) sessions: [Local; SESSIONS],
    pub(crate) fetch: Option<FetchMessage>,
    pub(crate) renewal: Option<RenewalMessage>,
}

/// A session in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Local {
    pub(crate) belief: Belief,
    pub(crate) activity: Option<Activity>,
    pub(crate) released: ReleasedEpoch,
    /// Fetches exclude the session for as long as the released epoch is remembered.
    pub(crate) is_excluded: bool,
    pub(crate) release: Option<ReleaseMessage>,
}

/// What a process believes about a session, with the ticks for which it can prove that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) state: SessionState,
    pub(crate) epoch: u8,
    pub(crate) proof: u8,
}

/// The last epoch that was released, and the ticks for which that is remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReleasedEpoch {
    pub(crate) epoch: u8,
    pub(crate) ticks: u8,
}

/// An activity of a session in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Activity {
    pub(crate) epoch: u8,
    /// Whether its code runs; before that, the process attaches the session.
    pub(crate) is_running: bool,
    /// Whether the lease of the work is still this one.
    pub(crate) has_lease: bool,
}

/// A fetch on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FetchMessage {
    pub(crate) incarnation: Option<u8>,
    /// The ticks since it was sent, up to the length of a proof.
    pub(crate) age: u8,
    pub(crate) stage: FetchStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FetchStage {
    Asked(FetchScope),
    Given { session: usize, epoch: u8, has_lease: bool },
    Replaced,
}

/// A renewal on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RenewalMessage {
    pub(crate) age: u8,
    /// Whether the process waits for the answer.
    pub(crate) is_awaited: bool,
    pub(crate) stage: RenewalStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RenewalStage {
    Asked(RenewalRequest),
    Answered { fates: [RenewalFate; SESSIONS], lost: [u8; SESSIONS] },
    Replaced,
}

/// A release on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReleaseMessage {
    pub(crate) incarnation: Option<u8>,
    pub(crate) epoch: u8,
    /// Whether the process waits for the answer.
    pub(crate) is_awaited: bool,
    pub(crate) is_answered: bool,
}

impl Process {
    pub(crate) fn messages(&self) -> usize {
        let releases = self.sessions.iter().filter(|local| local.release.is_some()).count();
        usize::from(self.fetch.is_some()) + usize::from(self.renewal.is_some()) + releases
    }

    /// Returns the epoch of the claim that an answer on its way brings.
    pub(crate) fn answer(&self, session: usize) -> Option<u8> {
        match self.fetch?.stage {
            FetchStage::Given { session: given, epoch, .. } if given == session => Some(epoch),
            FetchStage::Given { .. } | FetchStage::Asked(_) | FetchStage::Replaced => None,
        }
    }

    /// Tells whether an activity of the session is about to begin here.
    pub(crate) fn begins(&self, session: usize) -> bool {
        let activity = self.sessions[session].activity;
        self.answer(session).is_some() || activity.is_some_and(|activity| !activity.is_running)
    }

    /// Tells which sessions have an activity in this process.
    pub(crate) fn in_flight(&self) -> [bool; SESSIONS] {
        self.sessions.map(|local| local.activity.is_some())
    }

    pub(crate) fn serving(&self) -> usize {
        self.in_flight().into_iter().filter(|serves| *serves).count()
    }

    /// Returns what a fetch may ask for now.
    pub(crate) fn scope(&self, rules: Rules) -> FetchScope {
        let may_claim = self.serving() < rules.limit || rules.has(Mutation::NoLimit);
        FetchScope { may_claim, only: self.in_flight(), leave_out: self.excluded() }
    }

    /// Tells which sessions a fetch must not bring.
    pub(crate) fn excluded(&self) -> [bool; SESSIONS] {
        self.sessions.map(|local| local.is_excluded || local.belief.is_tracked() && !local.belief.is_held())
    }

    /// Forgets everything but the requests that are on their way to the store.
    pub(crate) fn restarted(mut self) -> Self {
        self.fetch = self.fetch.filter(|fetch| matches!(fetch.stage, FetchStage::Asked(_)));
        let asked = |renewal: &RenewalMessage| matches!(renewal.stage, RenewalStage::Asked(_));
        self.renewal =
            self.renewal.filter(asked).map(|renewal| RenewalMessage { is_awaited: false, ..renewal });
        let sessions = self.sessions.map(|local| {
            let release = local.release.filter(|release| !release.is_answered);
            let release = release.map(|release| ReleaseMessage { is_awaited: false, ..release });
            Local { release, ..Local::default() }
        });
        Self { sessions, fetch: self.fetch, renewal: self.renewal, ..Self::default() }
    }

    pub(crate) fn each_epoch(&mut self, session: usize, look: &mut impl FnMut(&mut u8)) {
        let local = &mut self.sessions[session];
        look(&mut local.belief.epoch);
        look(&mut local.released.epoch);
        if let Some(activity) = &mut local.activity {
            look(&mut activity.epoch);
        }
        if let Some(release) = &mut local.release {
            look(&mut release.epoch);
        }
        if let Some(FetchMessage { stage: FetchStage::Given { session: given, epoch, .. }, .. }) =
            &mut self.fetch
            && *given == session
        {
            look(epoch);
        }
        match self.renewal.as_mut().map(|renewal| &mut renewal.stage) {
            Some(RenewalStage::Asked(request)) => look(&mut request.held[session]),
            Some(RenewalStage::Answered { fates, lost }) => {
                look(&mut lost[session]);
                match &mut fates[session] {
                    RenewalFate::Renewed(epoch) | RenewalFate::Idle(epoch) | RenewalFate::Untaken(epoch) => {
                        look(epoch)
                    }
                    RenewalFate::Absent => {}
                }
            }
            Some(RenewalStage::Replaced) | None => {}
        }
    }

    pub(crate) fn each_start(&mut self, look: &mut impl FnMut(&mut u8)) {
        let renewal = self.renewal.as_mut().and_then(|renewal| match &mut renewal.stage {
            RenewalStage::Asked(request) => request.incarnation.as_mut(),
            RenewalStage::Answered { .. } | RenewalStage::Replaced => None,
        });
        let fetch = self.fetch.as_mut().and_then(|fetch| fetch.incarnation.as_mut());
        let releases = self.sessions.iter_mut().filter_map(|local| local.release.as_mut());
        let releases = releases.filter_map(|release| release.incarnation.as_mut());
        self.incarnation.iter_mut().chain(renewal).chain(fetch).chain(releases).for_each(look);
    }
}

impl FetchStage {
    /// Tells whether an answer brings the lease of a session's work.
    pub(crate) fn leases(self, session: usize) -> bool {
        matches!(self, Self::Given { session: given, has_lease: true, .. } if given == session)
    }
}

impl Belief {
    const FREE: Self = Self { state: SessionState::Free, epoch: 0, proof: 0 };

    /// Lets an event happen, by the rules of the runtime. Returns the effects.
    pub(crate) fn on(&mut self, event: SessionEvent) -> Vec<SessionEffect> {
        let (next, effects) = self.machine().on(event);
        let (epoch, proof) = (next.epoch as u8, next.proven_until.as_secs() as u8);
        *self = match next.state {
            SessionState::Free | SessionState::Released => Self::FREE,
            state @ (SessionState::Detaching | SessionState::Unproven) => Self { state, epoch, proof: 0 },
            state => Self { state, epoch, proof },
        };
        effects
    }

    pub(crate) fn is_held(&self) -> bool {
        self.machine().is_held()
    }

    pub(crate) fn may_serve(&self) -> bool {
        self.machine().may_serve(Duration::ZERO)
    }

    /// Tells whether the table has a row for the session.
    pub(crate) fn is_tracked(&self) -> bool {
        self.state != SessionState::Free
    }

    fn machine(&self) -> LocalSession {
        let proven_until = Duration::from_secs(u64::from(self.proof));
        LocalSession { state: self.state, epoch: u64::from(self.epoch), proven_until }
    }

    fn key(&self) -> (u8, u8, u8) {
        (self.state as u8, self.epoch, self.proof)
    }
}

impl Default for Belief {
    fn default() -> Self {
        Self::FREE
    }
}

impl Hash for Belief {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

impl PartialOrd for Belief {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Belief {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
