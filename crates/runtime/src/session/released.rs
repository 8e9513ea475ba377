//! The claims of sessions that this process has detached.
//!
//! The lease of such a claim may live on in the store, because the release did not arrive, and the answer to
//! a fetch that was under way may still bring work under it. So the process remembers the claim until the
//! store has confirmed that the lease is gone, and for a while after that.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::SessionRef;

/// The last released claim of each session, while it is remembered.
#[derive(Debug, Default)]
pub(super) struct ReleasedClaims {
    by_key: BTreeMap<SessionKey, ReleasedClaim>,
}

/// A claim that was released.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleasedClaim {
    pub(super) epoch: u64,
    pub(super) since: Duration,
    /// Until when it is remembered by the time of sessions, if its release is confirmed.
    pub(super) until: Duration,
    /// The store has confirmed that the lease is gone. Until then the claim is remembered, fetches exclude
    /// the session, and a renewal that names the claim releases it again.
    pub(super) is_confirmed: bool,
}

impl ReleasedClaims {
    /// Tells whether this claim, or a later one of the same session, was released and is remembered.
    pub(super) fn contains(&self, claim: &SessionRef) -> bool {
        self.by_key.get(&claim.key).is_some_and(|released| released.epoch >= claim.epoch)
    }

    /// Remembers a released claim. A store without epochs gives every claim the same number: there a claim
    /// that comes again may be a new one.
    pub(super) fn remember(&mut self, key: &SessionKey, released: ReleasedClaim) {
        let known = self.by_key.get(key);
        if released.epoch > 0 && known.is_none_or(|known| known.epoch <= released.epoch) {
            self.by_key.insert(key.clone(), released);
        }
    }

    /// Forgets the claim of a session that was claimed again since: the lease of the former claim is gone.
    pub(super) fn forget(&mut self, key: &SessionKey) {
        self.by_key.remove(key);
    }

    /// Forgets the confirmed claims whose time is over.
    pub(super) fn forget_old(&mut self, now: Duration) {
        self.by_key.retain(|_, released| !released.is_confirmed || released.until > now);
    }

    /// Notes that the store has released these claims. They are remembered until `until`. Returns whether one
    /// of them was not confirmed before.
    pub(super) fn confirm(&mut self, claims: &[SessionRef], until: Duration) -> bool {
        self.confirm_if(until, |key, released| {
            claims.iter().any(|claim| claim.key == *key && claim.epoch == released.epoch)
        })
    }

    /// Notes which leases the store has, by its answer to a renewal that was sent at `asked`. The lease of a
    /// claim that was released before, and is not named, is gone. Such claims are remembered until `until`.
    /// Returns whether one of them was not confirmed before.
    pub(super) fn confirm_unnamed(&mut self, named: &[SessionRef], asked: Duration, until: Duration) -> bool {
        self.confirm_if(until, |key, released| {
            let lives_on = named.iter().any(|claim| claim.key == *key && claim.epoch <= released.epoch);
            released.since <= asked && !lives_on
        })
    }

    /// Lists the sessions whose release the store has not confirmed.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = &SessionKey> {
        self.by_key.iter().filter(|(_, released)| !released.is_confirmed).map(|(key, _)| key)
    }

    fn confirm_if(&mut self, until: Duration, is_gone: impl Fn(&SessionKey, &ReleasedClaim) -> bool) -> bool {
        let mut is_changed = false;
        for (key, released) in &mut self.by_key {
            if !released.is_confirmed && is_gone(key, released) {
                released.is_confirmed = true;
                released.until = until;
                is_changed = true;
            }
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn chat() -> SessionKey {
        SessionKey::shared("chat")
    }

    fn chat_at(epoch: u64) -> SessionRef {
        SessionRef { key: chat(), epoch }
    }

    /// A process that has released epoch 5 of a session at the time 0.
    fn released(is_confirmed: bool) -> ReleasedClaims {
        let mut claims = ReleasedClaims::default();
        let claim = ReleasedClaim { epoch: 5, since: Duration::ZERO, until: LEASE, is_confirmed };
        claims.remember(&chat(), claim);
        claims
    }

    #[test]
    fn a_claim_whose_release_is_confirmed_is_forgotten_after_a_lease() {
        let mut claims = released(true);
        claims.forget_old(LEASE.saturating_sub(Duration::from_millis(1)));
        assert!(
            claims.contains(&chat_at(5)) && claims.contains(&chat_at(4)) && !claims.contains(&chat_at(6))
        );
        claims.forget_old(LEASE);
        assert!(!claims.contains(&chat_at(5)));
    }

    #[test]
    fn a_claim_whose_release_is_not_confirmed_is_remembered_for_a_lease_after_it_is() {
        let mut claims = released(false);
        claims.forget_old(10 * LEASE);
        assert!(claims.contains(&chat_at(5)), "its lease may live on");
        assert!(claims.confirm(&[chat_at(5)], 11 * LEASE), "the store says that it is gone");
        assert!(!claims.confirm(&[chat_at(5)], 12 * LEASE), "which was known");
        claims.forget_old(11 * LEASE);
        assert!(!claims.contains(&chat_at(5)));
    }

    #[test]
    fn a_renewal_that_was_asked_for_before_the_release_confirms_nothing() {
        let mut claims = ReleasedClaims::default();
        let claim = ReleasedClaim { epoch: 5, since: LEASE, until: 2 * LEASE, is_confirmed: false };
        claims.remember(&chat(), claim);
        let before = LEASE.saturating_sub(Duration::from_millis(1));
        assert!(!claims.confirm_unnamed(&[], before, 2 * LEASE));
        assert!(claims.confirm_unnamed(&[], LEASE, 2 * LEASE));
    }

    #[test]
    fn an_older_claim_does_not_replace_a_newer_one() {
        let mut claims = released(true);
        let older = ReleasedClaim { epoch: 4, since: LEASE, until: 2 * LEASE, is_confirmed: true };
        claims.remember(&chat(), older);
        assert!(claims.contains(&chat_at(5)));
    }
}
