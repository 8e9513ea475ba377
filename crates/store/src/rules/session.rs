//! Sessions: the stored form of their keys, who counts as their owner, and what a renewal reports as lost
//! (S13).

use std::collections::BTreeSet;

use steadfast_core::SessionKey;

use crate::{
    NodeRegistration, NodeStart, Owner, ProviderError, ProviderErrorKind, RenewSessions, SessionRef,
    SessionsRenewed,
};

/// Returns the stored scope of a session: the id of its instance, `''` for a shared session.
pub fn stored_scope(key: &SessionKey) -> &str {
    key.instance.as_deref().unwrap_or_default()
}

/// Returns the key of a session from its stored scope and its id.
pub fn session_key(scope: String, session_id: String) -> SessionKey {
    SessionKey { instance: (!scope.is_empty()).then_some(scope), session_id }
}

/// Tells whether the caller is the process that claimed a session. A caller that does not know its
/// incarnation is judged by its id alone.
pub fn is_same_owner(claimed_by: &Owner, caller: &Owner) -> bool {
    claimed_by.id == caller.id
        && (caller.incarnation.is_none() || claimed_by.incarnation == caller.incarnation)
}

/// Makes the error for a call by a process whose node has started again since: `LeaseLost`, with the number
/// of both starts.
pub fn superseded(operation: &str, node_id: &str, given: u64, newest: u64) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::LeaseLost,
        operation,
        format!(
            "incarnation {given} of node '{node_id}' was replaced by incarnation {newest}: \
             another process has started with the same worker_node_id"
        ),
    )
}

/// The newest start of a node, as a store keeps it.
#[derive(Debug, Clone, Copy)]
pub struct NewestStart<'a> {
    /// The number of the start.
    pub incarnation: u64,
    /// The id of the start; empty if it had none.
    pub start_id: &'a str,
    /// When its process started, by the store's clock; 0 if that is not known.
    pub started_at_ms: u64,
}

/// Returns when the process of a start started, by the store's clock.
pub fn started_at_ms(start: &NodeStart, now_ms: u64) -> u64 {
    now_ms.saturating_sub(u64::try_from(start.age.as_millis()).unwrap_or(u64::MAX))
}

/// Answers the registration of a start that gets no new number: the start is the newest already, or another
/// one is that its process has not seen. `None` if the store is to number it.
pub fn answer_to_start(
    start: &NodeStart,
    newest: Option<NewestStart<'_>>,
    now_ms: u64,
) -> Option<NodeRegistration> {
    let seen = newest.map(|newest| newest.incarnation);
    match newest {
        Some(newest) if newest.start_id == start.start_id && !start.start_id.is_empty() => {
            Some(NodeRegistration::Registered(newest.incarnation))
        }
        Some(newest) if start.replaces != seen => Some(NodeRegistration::Taken {
            incarnation: newest.incarnation,
            // A start that is later than now was noted by a clock that was ahead: when it was is not known.
            is_younger: (started_at_ms(start, now_ms) + 1..=now_ms).contains(&newest.started_at_ms),
        }),
        _ => None,
    }
}

/// Returns the claims in `request.held` that `outcome` reports neither as renewed nor as idle nor as untaken:
/// the process has lost them. In the order of keys, each once.
pub fn lost_claims(request: &RenewSessions, outcome: &SessionsRenewed) -> Vec<SessionRef> {
    let met: BTreeSet<&SessionRef> =
        outcome.renewed.iter().chain(&outcome.idle).chain(&outcome.untaken).collect();
    let lost: BTreeSet<&SessionRef> = request.held.iter().filter(|held| !met.contains(held)).collect();
    lost.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_stored_scope() {
        for key in [SessionKey::shared("s"), SessionKey::owned("i", "s")] {
            assert_eq!(session_key(stored_scope(&key).to_owned(), key.session_id.clone()), key);
        }
    }
}
