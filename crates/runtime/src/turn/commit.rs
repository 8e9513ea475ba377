//! Committing a turn whose code has run: retries while the store is away, and the end of an execution whose
//! commit the store refuses.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_core::replay::{ParentNotice, QueuedWork, SessionChange, Turn, Verdict};
use steadfast_store::{LeaseToken, Message, NewWork, ProviderError, ProviderErrorKind, RunId, TurnCommit};

use super::alarm;
use super::process::TurnProcess;
use super::report::TurnChildren;
use super::step::SteppedTurn;
use super::warm::WarmExecution;
use crate::dispatch::{in_time, until_stopped};
use crate::runtime::RuntimeShared;
use crate::session::SessionsOfTurn;

/// The waits between the tries of a commit, in milliseconds. After the last one the turn is abandoned and
/// runs again.
const RETRIES_MS: [u64; 5] = [10, 20, 40, 80, 160];

/// How long a turn is delayed whose commit meets an error that says neither that it is final nor that it
/// passes.
const UNCLEAR_DELAY: Duration = Duration::from_secs(1);

/// Returns how long a turn is delayed that the database cannot read or write, because a page is torn or the
/// disk fails. Each delivery counts (G8), so the delays grow: an instance fails after about 17 minutes of
/// damage with the default of `max_attempts`, and not because of a disk that fails for a minute.
pub(super) fn damage_delay(deliveries: u32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(600);
    let doublings = deliveries.saturating_sub(1).min(10);
    Duration::from_secs(1 << doublings).min(LONGEST)
}

/// How a commit ended.
pub(super) enum CommitEnd {
    /// The store took the commit. Holds the id of the run that the events belong to, if the store has run
    /// ids.
    Committed(Option<RunId>),
    /// Another process decides the turn, or the lease was abandoned: nothing more to do.
    NotOurs,
    /// The store refuses the commit, and would refuse it again.
    Refused(ProviderError),
}

impl TurnProcess {
    /// Commits a turn, counts it, and keeps the execution in memory if it waits.
    pub(super) async fn commit(mut self, stepped: SteppedTurn) {
        let SteppedTurn { identity, start, mut execution, was_warm, turn, collisions } = stepped;
        let cancelled = self.shared.running_activities.before_commit(&turn.effects.cancelled_activities);
        let verdict = turn.verdict.clone();
        let children = TurnChildren::of(&turn);
        let events = execution.last_event_id();
        let traceparent = self.standing.traceparent();
        let sessions = turn.effects.sessions.clone();
        let mut commit = match self.shared.commit_of(turn, identity.execution_id, traceparent).await {
            Ok(commit) => commit,
            Err(error) => return self.abandon_unread(&error).await,
        };
        tell_of_collisions(&mut commit, collisions.clone());
        self.standing.turns += 1;
        match self.hand_in(commit, &sessions).await {
            CommitEnd::Committed(run) => {
                self.shared.running_activities.cancel(&cancelled);
                self.count(&identity, &verdict, start.as_ref(), events);
                self.count_children(&identity, &children);
                if let (Verdict::Waiting { .. }, Some(run)) = (&verdict, run) {
                    if !was_warm {
                        alarm::set(&self.shared, &self.instance, &mut execution);
                    }
                    let warm = WarmExecution { execution, run, standing: self.standing };
                    self.shared.warm.put(self.instance, Box::new(warm));
                    self.shared.measure_warm();
                }
            }
            CommitEnd::NotOurs => {}
            CommitEnd::Refused(error) => self.fail_refused(&identity, start, &error, collisions).await,
        }
    }

    /// Hands a commit in. `changes` lists what the turn changes about sessions.
    pub(super) async fn hand_in(&self, commit: TurnCommit, changes: &[SessionChange]) -> CommitEnd {
        let sessions = SessionsOfTurn::of(&self.shared, &commit);
        let end = self.shared.try_commit(&self.token, self.deliveries, commit).await;
        if let (CommitEnd::Committed(_), Some(sessions)) = (&end, sessions) {
            sessions.committed(&self.shared, changes);
        }
        end
    }
}

/// Adds the messages to parents whose child could not be started. If the instance answers the same call of a
/// parent in this turn, that answer is for a former life of the parent and is left out: the new parent must
/// not get the result of another child (G7).
pub(super) fn tell_of_collisions(commit: &mut TurnCommit, collisions: Vec<WorkItem>) {
    let is_told = |item: &WorkItem| {
        let call = answered_call(item);
        call.is_some() && collisions.iter().any(|collision| answered_call(collision) == call)
    };
    commit.messages.retain(|message| !is_told(&message.item));
    commit.messages.extend(collisions.into_iter().map(Message::from));
}

/// The call of a parent that a message answers: the parent, its execution and the event of the call.
fn answered_call(item: &WorkItem) -> Option<(&str, u64, u64)> {
    match item {
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, .. }
        | WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, .. } => {
            Some((parent_instance, *parent_execution_id, *parent_id))
        }
        _ => None,
    }
}

impl RuntimeShared {
    /// Makes a commit of a turn. The messages and the work carry the trace context that the execution started
    /// with.
    ///
    /// # Errors
    /// The store is in trouble, and cannot tell now whom to answer.
    pub(super) async fn commit_of(
        &self,
        turn: Turn,
        execution_id: u64,
        traceparent: Option<&str>,
    ) -> Result<TurnCommit, ProviderError> {
        let traceparent = || traceparent.map(str::to_owned);
        let traced = |item: WorkItem| Message { traceparent: traceparent(), ..item.into() };
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
            messages.push(traced(self.addressed(notice).await?));
        }
        Ok(TurnCommit {
            execution_id,
            events: turn.events,
            work: work
                .map(|work| {
                    let QueuedWork { item, session, call } = work;
                    NewWork { item, session, traceparent: traceparent(), call }
                })
                .collect(),
            messages,
            metadata,
            cancelled: effects.cancelled_activities,
            watched,
            dropped_timers: effects.dropped_timers,
        })
    }

    /// Addresses the notice for a parent. A link that an older engine recorded does not name the parent's
    /// execution: then it is the parent's current one. A guess could be wrong, and the parent would wait for
    /// ever, so trouble of the store is returned.
    async fn addressed(&self, notice: ParentNotice) -> Result<WorkItem, ProviderError> {
        let execution_id = match notice.parent.execution_id {
            Some(execution_id) => execution_id,
            None => self.row_of(&notice.parent.instance).await?.map_or(1, |parent| parent.execution_id),
        };
        Ok(notice.into_message(execution_id))
    }

    /// Commits a turn, which is the given delivery. An error of the store that is not final never becomes a
    /// failure of the application's (F8, G8): the turn is given back and runs again, which repeats no effect.
    async fn try_commit(&self, token: &LeaseToken, deliveries: u32, commit: TurnCommit) -> CommitEnd {
        let mut retries = RETRIES_MS.iter();
        loop {
            let error =
                match in_time(self, "commit_turn", self.store.commit_turn(token, commit.clone())).await {
                    Ok(committed) => return CommitEnd::Committed(committed.run),
                    Err(error) => error,
                };
            match error.kind {
                _ if error.is_lease_lost() => {
                    self.lose_turn(token, &error);
                    return CommitEnd::NotOurs;
                }
                ProviderErrorKind::Conflict => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        "the turn was decided by another process"
                    );
                    return CommitEnd::NotOurs;
                }
                // `Other` is how a foreign provider says that another try will not help (2.10).
                ProviderErrorKind::Invalid | ProviderErrorKind::Other => return CommitEnd::Refused(error),
                ProviderErrorKind::Corrupt => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        "a turn meets a row that cannot be read; it is abandoned and runs again"
                    );
                    self.abandon(token, Some(damage_delay(deliveries))).await;
                    return CommitEnd::NotOurs;
                }
                ProviderErrorKind::Busy
                | ProviderErrorKind::Unavailable
                | ProviderErrorKind::Full
                | ProviderErrorKind::NotFound
                | ProviderErrorKind::Refused
                | ProviderErrorKind::Unsupported
                | ProviderErrorKind::LeaseLost
                | ProviderErrorKind::Withdrawn => {}
            }
            match retries.next() {
                // When the time of a shutdown is up, the turn does not wait for the store to recover.
                Some(wait) if !self.abort.is_cancelled() => {
                    until_stopped(&self.abort, self.plan.clock.sleep(Duration::from_millis(*wait))).await;
                }
                _ => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        "a turn could not be committed; it is given back and runs again"
                    );
                    // An error that the store does not call passing may come again at once.
                    let delay = (!error.is_retryable()).then_some(UNCLEAR_DELAY);
                    self.abandon_uncounted(token, delay).await;
                    return CommitEnd::NotOurs;
                }
            }
        }
    }

    /// Takes the delivery of a lost turn off the count if this process was paused, or the store was away
    /// (G38). A lease that was lost to `max_turn_time` counts (G16).
    fn lose_turn(&self, token: &LeaseToken, error: &ProviderError) {
        tracing::warn!(
            target: "steadfast::runtime",
            %error,
            "the lease of the turn was lost; what it decided is not used"
        );
        self.lose(token);
    }
}
