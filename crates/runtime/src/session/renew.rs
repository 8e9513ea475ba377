//! Renewing the leases of sessions, and detaching those that were not renewed in time.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Sleep;
use steadfast_store::{
    Owner, ProviderError, ProviderErrorKind, ReleaseReason, RenewSessions, SessionRef, SessionsRenewed,
};

use super::local_session::DetachCause;
use super::register::is_replaced;
use super::{close, detach};
use crate::dispatch::lease::RETRY;
use crate::dispatch::{in_time, until_abandon_deadline};
use crate::runtime::RuntimeShared;

/// A shorter sleep of the machine is not heeded: two clocks are never read at exactly one moment.
const SHORTEST_SLEEP: Duration = Duration::from_millis(100);

/// Renews the leases of this process's sessions and, every `session_cleanup_interval`, removes ended sessions
/// from the store. When the runtime stops, waits until no activity of a session runs, or until the abandon
/// deadline; then detaches every session and returns.
pub(crate) async fn keep_leases(shared: Arc<RuntimeShared>) {
    // At the same time: a call that is not answered keeps neither the other nor the process.
    tokio::select! {
        biased;
        () = until_stopped(&shared) => {}
        () = renew_when_due(&shared) => {}
        () = clean_up_when_due(&shared) => {}
    }
    // A session that is claimed from here on is detached when its activity ends.
    shared.sessions.start_draining();
    detach::detach_all(&shared, DetachCause::Shutdown).await;
}

/// Renews the leases whenever that is due, and detaches the sessions whose leases were not renewed in time.
/// Never returns.
async fn renew_when_due(shared: &Arc<RuntimeShared>) {
    let (plan, clock) = (&shared.plan, &shared.plan.clock);
    let mut due = plan.session_now().saturating_add(plan.session_lease.renew_every);
    let mut slept = plan.clock.machine().slept;
    loop {
        let expiry = shared.sessions.first_expiry();
        let wake = expiry.map_or(due, |expiry| expiry.min(due));
        tokio::select! {
            biased;
            () = plan.sleep_until_session(wake) => {}
            () = shared.sessions.proof_is_short.notified() => due = plan.session_now(),
        }
        // The store may have extended the leases by a sleep of the machine, so it is asked before a session
        // is given up. No activity begins meanwhile on one that cannot be proven.
        let has_slept = plan.clock.machine().slept > slept.saturating_add(SHORTEST_SLEEP);
        if has_slept {
            slept = plan.clock.machine().slept;
            due = plan.session_now();
        } else {
            detach::start_all(shared, shared.sessions.expire(plan.session_now()));
        }
        if plan.session_now() < due {
            continue;
        }
        let given_up = async {
            match has_slept {
                true => clock.sleep(RETRY).await,
                false => until_first_expiry(shared).await,
            }
        };
        let wait = tokio::select! {
            biased;
            wait = renew(shared) => wait,
            () = given_up => continue,
            // A process without a session learns from the answer too, that its node was replaced.
            () = clock.sleep(shared.plan.session_lease.lasts) => unanswered(shared),
        };
        due = plan.session_now().saturating_add(wait);
    }
}

/// Removes ended sessions from the store, every `session_cleanup_interval` and not more often than leases are
/// renewed. Never returns.
async fn clean_up_when_due(shared: &RuntimeShared) {
    let clock = &shared.plan.clock;
    let every = shared.plan.session_cleanup.max(shared.plan.session_lease.renew_every);
    loop {
        clock.sleep(every).await;
        clean_up(shared).await;
    }
}

/// Waits until the runtime stops, and then until no activity of a session runs, or until the abandon
/// deadline.
async fn until_stopped(shared: &RuntimeShared) {
    shared.stop.cancelled().await;
    tokio::select! {
        biased;
        () = shared.sessions.until_no_activity_runs() => {}
        () = until_abandon_deadline(shared) => {}
    }
}

/// Waits until the first of the held sessions becomes unproven. It may be one that is claimed meanwhile.
async fn until_first_expiry(shared: &RuntimeShared) {
    let (plan, sessions) = (&shared.plan, &shared.sessions);
    let mut claims = sessions.claims.look();
    loop {
        let expires = sessions
            .first_expiry()
            .map_or_else(|| -> Sleep { Box::pin(std::future::pending()) }, |at| plan.sleep_until_session(at));
        tokio::select! {
            biased;
            () = expires => return,
            () = claims.risen() => {}
        }
    }
}

/// Notes that the store did not answer a renewal for as long as a lease lasts, and returns when to renew
/// again.
fn unanswered(shared: &RuntimeShared) -> Duration {
    let lease = shared.plan.session_lease;
    shared.metrics().record_session_renewal_failure();
    tracing::warn!(
        target: "steadfast::runtime",
        owner = shared.sessions.owner_id(),
        lasts = ?lease.lasts,
        "the store did not answer a renewal of sessions; trying again"
    );
    lease.renew_every.min(RETRY)
}

/// Renews once, and returns when to renew again.
async fn renew(shared: &Arc<RuntimeShared>) -> Duration {
    let (plan, sessions) = (&shared.plan, &shared.sessions);
    let Some(owner) = sessions.owner().filter(|_| !shared.fenced.is_cancelled()) else {
        return plan.session_lease.renew_every;
    };
    if sessions.has_drained() {
        // A store that cannot release renews by owner: it would extend the leases of sessions that were
        // detached here.
        ask_for_node(shared, owner).await;
        return plan.session_lease.renew_every;
    }
    let longest_fetch = plan.session_poll().saturating_add(plan.session_lease.lasts);
    sessions.forget_released(plan.session_now(), longest_fetch);
    let asked = plan.session_now();
    let held = sessions.held();
    let request = RenewSessions {
        owner: owner.clone(),
        extend_for: plan.session_lease.lasts,
        idle_timeout: plan.session_idle,
        untaken_after: plan.session_untaken,
        tags: plan.tags.clone(),
        appetite: sessions.appetite(),
        held: held.clone(),
        worker: Some(shared.worker_row.id.clone()),
    };
    match shared.store.renew_sessions(request).await {
        Ok(renewed) => {
            follow(shared, renewed, &held, asked);
            plan.session_lease.renew_every
        }
        Err(error) => {
            shared.metrics().record_session_renewal_failure();
            if error.kind == ProviderErrorKind::LeaseLost && is_replaced(shared).await {
                detach::node_replaced(shared, &error);
                return plan.session_lease.renew_every;
            }
            tracing::warn!(
                target: "steadfast::runtime",
                session_id = detach::named(&held),
                owner = %owner.id,
                %error,
                "sessions could not be renewed; trying again"
            );
            // Soon, because every lease expires at its own time (F7).
            plan.session_lease.renew_every.min(RETRY)
        }
    }
}

/// Asks the store whether this start of the node is still the newest: a release of no session changes
/// nothing, and is refused to an older one.
async fn ask_for_node(shared: &Arc<RuntimeShared>, owner: &Owner) {
    if owner.incarnation.is_none() {
        return;
    }
    if let Err(error) = in_time(shared, "release_sessions", shared.store.release_sessions(owner, &[])).await
        && error.kind == ProviderErrorKind::LeaseLost
        && is_replaced(shared).await
    {
        detach::node_replaced(shared, &error);
    }
}

impl RuntimeShared {
    /// Renews the leases of sessions now if a claim cannot be proven until they are renewed anyway.
    pub(super) fn renew_early(&self, proven_until: Duration, now: Duration) {
        let lease = self.plan.session_lease;
        let renewed_by = now.saturating_add(lease.renew_every).saturating_add(lease.lasts / 10);
        if proven_until < renewed_by {
            self.sessions.proof_is_short.notify_one();
        }
    }
}

/// Follows the store's answer: which leases it extended, and which sessions to detach.
fn follow(shared: &Arc<RuntimeShared>, answer: SessionsRenewed, held: &[SessionRef], asked: Duration) {
    let (plan, sessions) = (&shared.plan, &shared.sessions);
    let SessionsRenewed { renewed, idle, untaken, lost } = answer;
    tracing::debug!(
        target: "steadfast::runtime",
        owner = sessions.owner_id(),
        renewed = renewed.len(),
        idle = idle.len(),
        untaken = untaken.len(),
        lost = lost.len(),
        "sessions renewed"
    );
    shared.metrics().record_session_renewals(renewed.len() as u64);
    // A store without epochs does not list the renewed sessions: its answer means that it extended every live
    // lease.
    let unnamed = held.iter().filter(|held| held.epoch == 0);
    let proven_until = asked.saturating_add(plan.session_proof());
    let mut revived = Vec::new();
    for claim in renewed.iter().chain(unnamed) {
        if sessions.renewed(claim, proven_until) {
            revived.push(claim.clone());
        }
    }
    let named: Vec<SessionRef> = renewed.iter().chain(&idle).chain(&untaken).cloned().collect();
    // A claim that is not among them has no lease any more, however the release of it went.
    let known = asked.saturating_add(plan.session_lease.lasts);
    sessions.confirm_unnamed(&named, asked, known);
    revived.extend(idle.iter().chain(&untaken).filter(|claim| sessions.has_detached(claim)).cloned());
    detach::start(shared, &idle, DetachCause::Idle);
    detach::start(shared, &sessions.idle_without_epoch(plan.session_idle, asked), DetachCause::Idle);
    detach::start(shared, &untaken, DetachCause::Untaken);
    sessions.settle_unproven(|claim| !revived.contains(claim));
    detach::detach_excess(shared);
    // A call that the store does not answer must not keep the next renewal.
    for claim in lost {
        sessions.lease_is_gone(&claim);
        let again = Arc::clone(shared);
        shared.tasks.spawn(async move {
            let is_closed = close::is_closed(&again, &claim).await;
            let cause = if is_closed { DetachCause::Closed } else { DetachCause::Lost };
            detach::start(&again, &[claim], cause);
        });
    }
    if !revived.is_empty() {
        let again = Arc::clone(shared);
        shared.tasks.spawn(async move { release_revived(&again, &revived).await });
    }
}

/// Releases leases that the store has extended although this process has detached their sessions: they would
/// block other processes. Fetches exclude the sessions until then.
async fn release_revived(shared: &RuntimeShared, revived: &[SessionRef]) {
    let sessions = &shared.sessions;
    if detach::release(shared, revived, ReleaseReason::Unstated).await {
        let until = shared.plan.session_now().saturating_add(shared.plan.session_lease.lasts);
        sessions.confirm_released(revived, until);
    }
    sessions.settle_unproven(|claim| revived.contains(claim));
}

/// Removes ended sessions from the store, and then old entries from the trails of sessions.
async fn clean_up(shared: &RuntimeShared) {
    match in_time(shared, "cleanup_sessions", shared.store.cleanup_sessions()).await {
        Ok(0) => {}
        Ok(count) => {
            tracing::debug!(
                target: "steadfast::runtime",
                owner = shared.sessions.owner_id(),
                count,
                "ended sessions cleaned up"
            );
        }
        Err(error) => {
            tracing::warn!(
                target: "steadfast::runtime",
                %error,
                "ended sessions could not be cleaned up; trying again later"
            );
        }
    }
    match clean_up_trails(shared).await {
        Ok(0) => {}
        Ok(count) => {
            tracing::debug!(target: "steadfast::runtime", count, "old entries of session trails removed");
        }
        // The store keeps no trails.
        Err(error) if error.kind == ProviderErrorKind::Unsupported => {}
        Err(error) => {
            tracing::warn!(
                target: "steadfast::runtime",
                %error,
                "old entries of session trails could not be removed; trying again later"
            );
        }
    }
}

/// Removes old entries of trails step by step, and returns how many there were.
async fn clean_up_trails(shared: &RuntimeShared) -> Result<usize, ProviderError> {
    let mut count = 0;
    loop {
        let clean_up = shared.store.cleanup_session_trails(shared.plan.session_trail);
        match in_time(shared, "cleanup_session_trails", clean_up).await? {
            0 => return Ok(count),
            removed => count += removed,
        }
    }
}
