//! Claims of sessions that were closed while their leases lasted. The owner of such a claim may not know of
//! the close yet: if the session is opened again, other processes wait until it has detached (S13, G41).

use steadfast_core::SessionKey;
use steadfast_store::rules::is_same_owner;
use steadfast_store::{Owner, SessionRef};

use crate::state::State;

/// The last claim of a closed session.
#[derive(Debug)]
pub(crate) struct ClosedClaim {
    owner: Owner,
    epoch: u64,
    pub(crate) locked_until_ms: u64,
}

impl ClosedClaim {
    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.locked_until_ms > now
    }
}

impl State {
    /// Keeps the claim of a session that is about to be closed, if its lease lasts.
    pub(super) fn keep_closed(&mut self, key: &SessionKey, now: u64) {
        let Some(session) = self.sessions.get(key).filter(|session| session.is_live(now)) else { return };
        let Some(owner) = session.owner.clone() else { return };
        let claim = ClosedClaim { owner, epoch: session.epoch, locked_until_ms: session.locked_until_ms };
        self.closed.insert(key.clone(), claim);
    }

    /// Tells whether a process must wait before it claims a session, because the session was closed and the
    /// lease of another owner lasts. A later start of that owner's node need not wait.
    pub(super) fn is_kept_from(&self, key: &SessionKey, owner: &Owner, now: u64) -> bool {
        self.closed.get(key).is_some_and(|claim| {
            let former = &claim.owner;
            let is_successor = former.id == owner.id && former.incarnation < owner.incarnation;
            claim.is_live(now) && !is_same_owner(former, owner) && !is_successor
        })
    }

    /// Ends the lease of a closed session, because its owner has detached it.
    pub(super) fn end_closed(&mut self, owner: &Owner, claim: &SessionRef) {
        let is_claim =
            |closed: &ClosedClaim| closed.epoch == claim.epoch && is_same_owner(&closed.owner, owner);
        if self.closed.get(&claim.key).is_some_and(is_claim) {
            self.closed.remove(&claim.key);
        }
    }
}
