//! Sessions: who counts as their owner, and what a renewal reports as lost (S13).

use std::collections::BTreeSet;

use crate::{Owner, ProviderError, ProviderErrorKind, RenewSessions, SessionRef, SessionsRenewed};

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

/// Returns the claims in `request.held` that `outcome` reports neither as renewed nor as idle nor as untaken:
/// the process has lost them. In the order of keys, each once.
pub fn lost_claims(request: &RenewSessions, outcome: &SessionsRenewed) -> Vec<SessionRef> {
    let met: BTreeSet<&SessionRef> =
        outcome.renewed.iter().chain(&outcome.idle).chain(&outcome.untaken).collect();
    let lost: BTreeSet<&SessionRef> = request.held.iter().filter(|held| !met.contains(held)).collect();
    lost.into_iter().cloned().collect()
}
