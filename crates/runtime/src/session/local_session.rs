//! One session as this process sees it: a state machine without locks, clocks and I/O.
//!
//! ```text
//!   Free ──Claim──▶ Claimed ──Begin──▶ Attached ──Detach──▶ Detaching ──Detached──▶ Released
//!                      │                   │                                           ▲
//!                      └───────Tick────────┴──────────▶ Unproven ──────Settle──────────┘
//! ```
//!
//! The store decides which process owns a session: ownership is a lease with an epoch, a number that rises
//! with each claim. This machine holds what the process *believes*, and it believes no longer than it can
//! prove: a session whose lease was not renewed in time becomes [`Unproven`](SessionState::Unproven) before
//! the lease expires, so that this process stops before another one may begin.
//!
//! [`LocalSession::on`] takes an event and returns the next state with the effects to carry out. The table in
//! `table.rs` calls it under its lock; `attach.rs`, `detach.rs` and `renew.rs` carry the effects out.

use std::time::Duration;

use steadfast_store::ReleaseReason;

use super::hooks::DetachReason;

/// What this process believes about one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalSession {
    pub(super) state: SessionState,
    /// The fencing token of the claim. 0 on a store that counts no epochs.
    pub(super) epoch: u64,
    /// The process may serve the session until this moment by the time of sessions, a little before the lease
    /// expires.
    pub(super) proven_until: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionState {
    /// This process holds no lease. The table has no row for such a session.
    Free,
    /// The process holds the lease, and `on_attach` has not been called yet.
    Claimed,
    /// The process holds the lease, and `on_attach` has been called.
    Attached,
    /// The detach procedure runs. Fetches exclude the session.
    Detaching,
    /// The lease was not renewed in time. It may live on in the store; the answer to the next renewal tells.
    /// Fetches exclude the session until then.
    Unproven,
    /// The session is detached, and the process does nothing more for it. The table removes its row.
    Released,
}

/// An event that may change the state of a session in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEvent {
    /// A fetch leased an activity of the session to this process, under this epoch. `is_reopened`: the
    /// session was opened anew and never claimed since, so a claim that the process still holds was closed.
    Claim { epoch: u64, proven_until: Duration, is_reopened: bool },
    /// An activity of the session is about to begin.
    Begin,
    /// The store has extended the lease.
    Renew { proven_until: Duration },
    /// The time of sessions is `now`. A held session becomes unproven if its `proven_until`
    /// has passed.
    Tick { now: Duration },
    /// The session is to be detached for this cause. `busy`: an activity of the session runs in this process.
    Detach { cause: DetachCause, busy: bool },
    /// The detach procedure has run to its end.
    Detached,
    /// The store has answered a renewal, and unproven leases that lived on in it have been released.
    Settle,
}

/// An action that an event causes. The caller of [`LocalSession::on`] carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEffect {
    /// Run the activity that the fetch brought.
    Serve,
    /// Abandon the activity that the fetch brought, uncounted: this process may not serve its session.
    Abandon,
    /// Call `on_attach` before the activity begins.
    CallOnAttach,
    /// Run the detach procedure. `was_attached` says whether `on_attach` was called, and so whether
    /// `on_detach` is due.
    Detach { cause: DetachCause, was_attached: bool },
    /// Release the lease, which lives on in the store although this process detached the session.
    Release,
}

impl LocalSession {
    pub(super) const FREE: Self = Self { state: SessionState::Free, epoch: 0, proven_until: Duration::ZERO };

    /// Takes one event and returns the next state and what to do. An event that does not concern the state
    /// changes nothing.
    pub(super) fn on(self, event: SessionEvent) -> (Self, Vec<SessionEffect>) {
        match event {
            SessionEvent::Claim { epoch, proven_until, is_reopened } => {
                self.claim(epoch, proven_until, is_reopened)
            }
            SessionEvent::Begin => self.begin(),
            SessionEvent::Renew { proven_until } => self.renew(proven_until),
            SessionEvent::Tick { now } => self.tick(now),
            SessionEvent::Detach { cause, busy } => self.detach(cause, busy),
            SessionEvent::Detached => self.release_from(SessionState::Detaching),
            SessionEvent::Settle => self.release_from(SessionState::Unproven),
        }
    }

    /// Tells whether this process holds the lease and serves the session.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.state, SessionState::Claimed | SessionState::Attached)
    }

    /// Tells whether an activity of the session may begin here now.
    pub(super) fn may_serve(&self, now: Duration) -> bool {
        self.is_held() && self.proven_until > now
    }

    fn claim(self, epoch: u64, proven_until: Duration, is_reopened: bool) -> (Self, Vec<SessionEffect>) {
        use SessionState::{Attached, Claimed, Detaching, Free, Released, Unproven};
        let claimed = Self { state: Claimed, epoch, proven_until };
        match self.state {
            Free | Released => (claimed, vec![SessionEffect::Serve]),
            // The process has seen a newer claim than the one that the fetch names.
            Claimed | Attached | Detaching | Unproven if self.epoch > epoch => {
                (self, vec![SessionEffect::Abandon])
            }
            Claimed | Attached if self.epoch == epoch => {
                let proven_until = self.proven_until.max(proven_until);
                (Self { proven_until, ..self }, vec![SessionEffect::Serve])
            }
            // A new claim while the old one is held: the session was closed and opened again (G25), or the
            // lease expired in between and the old claim is lost.
            Claimed | Attached => {
                let cause = if is_reopened { DetachCause::Closed } else { DetachCause::Lost };
                (claimed, vec![self.detach_effect(cause), SessionEffect::Serve])
            }
            Detaching | Unproven if self.epoch == epoch => (self, vec![SessionEffect::Abandon]),
            // The detach procedure of the old claim runs already.
            Detaching | Unproven => (claimed, vec![SessionEffect::Serve]),
        }
    }

    fn begin(self) -> (Self, Vec<SessionEffect>) {
        match self.state {
            SessionState::Claimed => {
                (Self { state: SessionState::Attached, ..self }, vec![SessionEffect::CallOnAttach])
            }
            SessionState::Free
            | SessionState::Attached
            | SessionState::Detaching
            | SessionState::Unproven
            | SessionState::Released => (self, Vec::new()),
        }
    }

    fn renew(self, proven_until: Duration) -> (Self, Vec<SessionEffect>) {
        match self.state {
            SessionState::Claimed | SessionState::Attached => {
                (Self { proven_until: self.proven_until.max(proven_until), ..self }, Vec::new())
            }
            SessionState::Unproven => (self, vec![SessionEffect::Release]),
            SessionState::Free | SessionState::Detaching | SessionState::Released => (self, Vec::new()),
        }
    }

    fn tick(self, now: Duration) -> (Self, Vec<SessionEffect>) {
        if !self.is_held() || self.proven_until > now {
            return (self, Vec::new());
        }
        (Self { state: SessionState::Unproven, ..self }, vec![self.detach_effect(DetachCause::Lost)])
    }

    fn detach(self, cause: DetachCause, busy: bool) -> (Self, Vec<SessionEffect>) {
        if !self.is_held() || (busy && cause.spares_busy_sessions()) {
            return (self, Vec::new());
        }
        (Self { state: SessionState::Detaching, ..self }, vec![self.detach_effect(cause)])
    }

    fn release_from(self, state: SessionState) -> (Self, Vec<SessionEffect>) {
        let next = if self.state == state { SessionState::Released } else { self.state };
        (Self { state: next, ..self }, Vec::new())
    }

    fn detach_effect(self, cause: DetachCause) -> SessionEffect {
        SessionEffect::Detach { cause, was_attached: self.state == SessionState::Attached }
    }
}

/// Why this process detaches a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetachCause {
    /// The session had no work for `session_idle_timeout`.
    Idle,
    /// More sessions are attached than `max_attached_sessions` allows.
    OverTheLimit,
    /// Work of the session waits, and this process will not take it soon.
    Untaken,
    /// An activity of the session has no handler here.
    UnregisteredHandler,
    /// The application asked the runtime to drain.
    Drain,
    /// The runtime stops.
    Shutdown,
    /// The lease expired, was released by an operator, or belongs to a newer process of this node.
    Lost,
    /// The orchestration that opened the session has closed it.
    Closed,
}

impl DetachCause {
    /// Returns the reason that `on_detach` gets.
    pub(super) fn reason(self) -> DetachReason {
        match self {
            Self::Idle => DetachReason::Idle,
            Self::OverTheLimit | Self::Untaken | Self::UnregisteredHandler => DetachReason::Released,
            Self::Drain | Self::Shutdown => DetachReason::Shutdown,
            Self::Lost => DetachReason::Lost,
            Self::Closed => DetachReason::Closed,
        }
    }

    /// Returns the reason that the trail of the session gets when the lease is released. It is unstated for a
    /// cause that releases none.
    pub(super) fn released_as(self) -> ReleaseReason {
        match self {
            Self::Idle => ReleaseReason::Idle,
            Self::OverTheLimit => ReleaseReason::OverTheLimit,
            Self::Untaken => ReleaseReason::Untaken,
            Self::UnregisteredHandler => ReleaseReason::UnregisteredHandler,
            Self::Drain => ReleaseReason::Drained,
            Self::Shutdown => ReleaseReason::ShutDown,
            Self::Lost | Self::Closed => ReleaseReason::Unstated,
        }
    }

    /// Returns the words of the log line about the detached session.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::OverTheLimit => "over the limit",
            Self::Untaken => "untaken",
            Self::UnregisteredHandler => "unregistered handler",
            Self::Drain => "drain",
            Self::Shutdown => "shutdown",
            Self::Lost => "lost",
            Self::Closed => "closed",
        }
    }

    /// Tells whether the lease is released when the session is detached. A lost session has no lease of this
    /// process to release. That of a closed one keeps other processes from the session, if it is opened again
    /// (G41).
    pub(super) fn releases(self, release_on_shutdown: bool) -> bool {
        match self {
            Self::Lost => false,
            Self::Shutdown => release_on_shutdown,
            Self::Idle
            | Self::OverTheLimit
            | Self::Untaken
            | Self::UnregisteredHandler
            | Self::Drain
            | Self::Closed => true,
        }
    }

    /// Tells whether a session stays attached while an activity of it runs here. The causes that spare it
    /// come again when the activity has ended.
    fn spares_busy_sessions(self) -> bool {
        match self {
            Self::Idle | Self::OverTheLimit | Self::Drain => true,
            Self::Untaken | Self::UnregisteredHandler | Self::Shutdown | Self::Lost | Self::Closed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 5;
    const PROVEN_UNTIL: Duration = Duration::from_secs(100);
    const LATER: Duration = Duration::from_secs(130);

    /// Every state, in the order of the columns of the table.
    const STATES: [SessionState; 6] = [
        SessionState::Free,
        SessionState::Claimed,
        SessionState::Attached,
        SessionState::Detaching,
        SessionState::Unproven,
        SessionState::Released,
    ];

    /// What an event leads to: the next state and epoch, and the effects.
    type Expected = (SessionState, u64, Vec<SessionEffect>);

    /// A row of the table: an event, and what it leads to in each of the six states.
    type TableRow = (SessionEvent, [Expected; 6]);

    fn same(state: SessionState) -> Expected {
        (state, EPOCH, Vec::new())
    }

    fn with(state: SessionState, epoch: u64, effects: &[SessionEffect]) -> Expected {
        (state, epoch, effects.to_vec())
    }

    fn detach_effect(cause: DetachCause, was_attached: bool) -> SessionEffect {
        SessionEffect::Detach { cause, was_attached }
    }

    /// The rows for a claim that a fetch brings: with an older epoch than the known one, the same epoch, a
    /// newer one.
    fn claim_rows() -> [TableRow; 3] {
        use SessionEffect::{Abandon, Serve};
        use SessionState::{Attached, Claimed, Detaching, Unproven};
        let claim = |epoch| SessionEvent::Claim { epoch, proven_until: LATER, is_reopened: false };
        let serve = |epoch| with(Claimed, epoch, &[Serve]);
        let refuse = |state| with(state, EPOCH, &[Abandon]);
        let replace =
            |was_attached| with(Claimed, EPOCH + 1, &[detach_effect(DetachCause::Lost, was_attached), Serve]);
        let (older, newer) = (EPOCH - 1, EPOCH + 1);
        let on_older = [
            serve(older),
            refuse(Claimed),
            refuse(Attached),
            refuse(Detaching),
            refuse(Unproven),
            serve(older),
        ];
        let on_same = [
            serve(EPOCH),
            serve(EPOCH),
            with(Attached, EPOCH, &[Serve]),
            refuse(Detaching),
            refuse(Unproven),
            serve(EPOCH),
        ];
        let on_newer =
            [serve(newer), replace(false), replace(true), serve(newer), serve(newer), serve(newer)];
        [(claim(older), on_older), (claim(EPOCH), on_same), (claim(newer), on_newer)]
    }

    /// Every other event but `Detach`.
    fn life_rows() -> Vec<TableRow> {
        use SessionState::{Attached, Claimed, Detaching, Free, Released, Unproven};
        let tick = |now| SessionEvent::Tick { now };
        let expire = |was_attached| with(Unproven, EPOCH, &[detach_effect(DetachCause::Lost, was_attached)]);
        let change = |from: SessionState, to: Expected| {
            STATES.map(|state| if state == from { to.clone() } else { same(state) })
        };
        vec![
            (SessionEvent::Begin, change(Claimed, with(Attached, EPOCH, &[SessionEffect::CallOnAttach]))),
            (
                SessionEvent::Renew { proven_until: LATER },
                change(Unproven, with(Unproven, EPOCH, &[SessionEffect::Release])),
            ),
            (tick(PROVEN_UNTIL - Duration::from_nanos(1)), STATES.map(same)),
            (
                tick(PROVEN_UNTIL),
                [same(Free), expire(false), expire(true), same(Detaching), same(Unproven), same(Released)],
            ),
            (SessionEvent::Detached, change(Detaching, same(Released))),
            (SessionEvent::Settle, change(Unproven, same(Released))),
        ]
    }

    /// Every cause, for a session with and without a running activity.
    fn detach_rows() -> Vec<TableRow> {
        use SessionState::{Detaching, Free, Released, Unproven};
        let mut rows = Vec::new();
        for (cause, spares_busy_sessions) in [
            (DetachCause::Idle, true),
            (DetachCause::OverTheLimit, true),
            (DetachCause::Drain, true),
            (DetachCause::Untaken, false),
            (DetachCause::UnregisteredHandler, false),
            (DetachCause::Shutdown, false),
            (DetachCause::Lost, false),
            (DetachCause::Closed, false),
        ] {
            let detach = |was_attached| with(Detaching, EPOCH, &[detach_effect(cause, was_attached)]);
            let detached =
                [same(Free), detach(false), detach(true), same(Detaching), same(Unproven), same(Released)];
            let when_busy = if spares_busy_sessions { STATES.map(same) } else { detached.clone() };
            rows.push((SessionEvent::Detach { cause, busy: false }, detached));
            rows.push((SessionEvent::Detach { cause, busy: true }, when_busy));
        }
        rows
    }

    #[test]
    fn every_state_meets_every_event() {
        for (event, outcomes) in claim_rows().into_iter().chain(life_rows()).chain(detach_rows()) {
            for (state, (to, epoch, effects)) in STATES.into_iter().zip(outcomes) {
                let local = LocalSession { state, epoch: EPOCH, proven_until: PROVEN_UNTIL };
                let (next, done) = local.on(event);
                assert_eq!((next.state, next.epoch, done), (to, epoch, effects), "{event:?} in {state:?}");
            }
        }
    }

    #[test]
    fn a_claim_and_a_renewal_prove_the_lease_for_longer_and_never_for_less() {
        for state in [SessionState::Claimed, SessionState::Attached] {
            let local = LocalSession { state, epoch: EPOCH, proven_until: PROVEN_UNTIL };
            let claim = SessionEvent::Claim { epoch: EPOCH, proven_until: LATER, is_reopened: false };
            let renew = |proven_until| SessionEvent::Renew { proven_until };
            let until = |event| local.on(event).0.proven_until;
            assert_eq!([until(claim), until(renew(LATER))], [LATER, LATER]);
            let late = SessionEvent::Claim { epoch: EPOCH, proven_until: Duration::ZERO, is_reopened: false };
            assert_eq!([until(late), until(renew(Duration::ZERO))], [PROVEN_UNTIL, PROVEN_UNTIL]);
        }
    }

    #[test]
    fn g25_a_claim_of_a_reopened_session_closes_the_claim_before_it() {
        for (state, was_attached) in [(SessionState::Claimed, false), (SessionState::Attached, true)] {
            let local = LocalSession { state, epoch: EPOCH, proven_until: PROVEN_UNTIL };
            let claim = SessionEvent::Claim { epoch: EPOCH + 1, proven_until: LATER, is_reopened: true };
            let (next, effects) = local.on(claim);
            assert_eq!((next.state, next.epoch), (SessionState::Claimed, EPOCH + 1));
            let closed = detach_effect(DetachCause::Closed, was_attached);
            assert_eq!(effects, [closed, SessionEffect::Serve]);
        }
    }

    #[test]
    fn a_session_is_served_only_while_it_is_held_and_proven() {
        for state in STATES {
            let local = LocalSession { state, epoch: EPOCH, proven_until: PROVEN_UNTIL };
            let held = matches!(state, SessionState::Claimed | SessionState::Attached);
            assert_eq!(local.may_serve(PROVEN_UNTIL - Duration::from_nanos(1)), held, "{state:?}");
            assert!(!local.may_serve(PROVEN_UNTIL), "{state:?}");
        }
    }

    #[test]
    fn a_lost_session_is_not_released() {
        for release_on_shutdown in [true, false] {
            assert!(!DetachCause::Lost.releases(release_on_shutdown));
            for cause in [DetachCause::Idle, DetachCause::Drain, DetachCause::Closed] {
                assert!(cause.releases(release_on_shutdown), "{cause:?}");
            }
            assert_eq!(DetachCause::Shutdown.releases(release_on_shutdown), release_on_shutdown);
        }
    }
}
