//! From a decided turn to a committed one, and what to do when the store is in trouble.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_core::replay::{ParentNotice, SessionChange, Turn};
use steadfast_store::{Abandon, Attempt, LeaseToken, Message, NewWork, ProviderErrorKind, TurnCommit};

use crate::dispatch::until_stopped;
use crate::runtime::Shared;
use crate::turn::Committing;

/// The waits between the tries of a commit; then the turn is given back and runs again.
const RETRIES_MS: [u64; 5] = [10, 20, 40, 80, 160];

impl Shared {
    /// Makes a commit of a turn. What it sends and queues belongs to the trace that the execution was started in.
    pub(crate) async fn commit_of(
        &self,
        turn: Turn,
        execution_id: u64,
        traceparent: Option<&str>,
    ) -> TurnCommit {
        let traceparent = || traceparent.map(str::to_owned);
        let traced = |item| Message { item, traceparent: traceparent() };
        let metadata = turn.metadata();
        let effects = turn.effects;
        let watched = effects.sessions.iter().filter_map(|change| match change {
            SessionChange::Watch { key } => Some(key.clone()),
            SessionChange::Open { .. } | SessionChange::Close { .. } => None,
        });
        let watched = watched.collect();
        let work = effects.work.into_iter();
        let mut messages: Vec<Message> = effects.messages.into_iter().map(traced).collect();
        if let Some(notice) = effects.parent {
            messages.push(traced(self.addressed(notice).await));
        }
        TurnCommit {
            execution_id,
            events: turn.events,
            work: work
                .map(|work| NewWork { item: work.item, session: work.session, traceparent: traceparent() })
                .collect(),
            messages,
            metadata,
            cancelled: effects.cancelled_activities,
            watched,
        }
    }

    /// Addresses the news for a parent. Links of older engines do not say the parent's execution: it is its current one.
    async fn addressed(&self, notice: ParentNotice) -> WorkItem {
        let mut execution_id = 1;
        if notice.parent.execution_id.is_none()
            && let Ok(Some(parent)) = self.store.state(&notice.parent.instance).await
        {
            execution_id = parent.execution_id;
        }
        notice.into_message(execution_id)
    }

    /// Commits a turn. Trouble of the store never becomes a failure of the user's (F8): the turn is given back, and
    /// runs again.
    pub(crate) async fn commit(&self, token: &LeaseToken, commit: TurnCommit) -> Committing {
        let mut retries = RETRIES_MS.iter();
        loop {
            let error = match self.store.commit_turn(token, commit.clone()).await {
                Ok(committed) => return Committing::Done(committed.run),
                Err(error) => error,
            };
            if error.is_lease_lost() || error.kind == ProviderErrorKind::Conflict {
                tracing::warn!(target: "steadfast::runtime", %error, "the turn was decided by somebody else");
                return Committing::Left;
            }
            if !error.is_retryable() {
                return Committing::Refused(error);
            }
            match retries.next() {
                // A runtime that stops what runs does not wait for better times.
                Some(wait) if !self.abort.is_cancelled() => {
                    until_stopped(&self.abort, self.plan.clock.sleep(Duration::from_millis(*wait))).await;
                }
                _ => {
                    tracing::warn!(target: "steadfast::runtime", %error, "a turn could not be committed; it is given back and runs again");
                    self.abandon(token, None, Attempt::Uncounted).await;
                    return Committing::Left;
                }
            }
        }
    }

    pub(crate) async fn abandon(&self, token: &LeaseToken, retry_after: Option<Duration>, attempt: Attempt) {
        if let Err(error) = self.store.abandon(token, Abandon { retry_after, attempt }).await {
            tracing::debug!(target: "steadfast::runtime", %error, "abandon failed; the lease will end (S5)");
        }
    }
}
