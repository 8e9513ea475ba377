//! The tasks: they serve instances and activities, well most of the time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{EventKind, TagFilter, WorkItem};
use steadfast_store::{OrchestrationItem, Owner, Provider, ProviderError, SessionFetchConfig};

use super::ledger::Ledger;
use super::{Stress, failed, instance_id, start_of};
use crate::Commit;
use crate::bench::{activity_with, answered, completion, event, raise, scheduled};
use crate::dice::Dice;

/// How long a fetch waits for work before it looks whether all is done.
const POLL: Duration = Duration::from_millis(20);

/// A store counts milliseconds, so a lease may end that much earlier.
const ROUNDING: Duration = Duration::from_millis(2);

pub(super) struct Crew {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) plan: Stress,
    pub(super) ledger: Ledger,
    deadline: Duration,
}

type Outcome = Result<(), String>;

impl Crew {
    pub(super) fn new(provider: Arc<dyn Provider>, plan: Stress) -> Self {
        let deadline = SystemClock.monotonic().saturating_add(plan.patience);
        Self { provider, plan, ledger: Ledger::default(), deadline }
    }

    pub(super) async fn start_all(self: Arc<Self>) -> Outcome {
        for number in 0..self.plan.instances {
            let instance = instance_id(number);
            self.send(start_of(&instance)).await?;
            self.send(raise(&instance, "noise")).await?;
        }
        Ok(())
    }

    async fn send(&self, item: WorkItem) -> Outcome {
        self.provider.enqueue_for_orchestrator(item, None).await.map_err(failed)
    }

    fn is_done(&self) -> bool {
        self.ledger.completed.load(Ordering::Relaxed) >= self.plan.instances as u64
    }

    fn check_patience(&self) -> Outcome {
        if SystemClock.monotonic() < self.deadline {
            return Ok(());
        }
        let completed = self.ledger.completed.load(Ordering::Relaxed);
        let Stress { instances, patience, .. } = self.plan;
        Err(format!(
            "there was still work after {patience:?}; {completed} of {instances} instances completed"
        ))
    }

    /// Waits where the store does not.
    async fn pause(&self) {
        SystemClock.sleep(Duration::from_millis(1)).await;
    }

    /// The end of a lease for certain, if it is asked for now.
    fn until(&self) -> Duration {
        SystemClock.monotonic().saturating_add(self.plan.lease).saturating_sub(ROUNDING)
    }

    pub(super) async fn take_turns(self: Arc<Self>, number: usize) -> Outcome {
        let mut dice = Dice::new(number as u64);
        loop {
            self.check_patience()?;
            let until = self.until();
            let fetched = self.provider.fetch_orchestration_item(self.plan.lease, POLL, None).await;
            match fetched.map_err(failed)? {
                Some((item, token, _)) => self.turn(&mut dice, item, &token, until).await?,
                None if self.is_done() => return Ok(()),
                None => self.pause().await,
            }
        }
    }

    async fn turn(&self, dice: &mut Dice, item: OrchestrationItem, token: &str, until: Duration) -> Outcome {
        let held = format!("instance '{}'", item.instance);
        self.ledger.take(&held, until);
        match dice.below(100) {
            0..2 => {
                // Goes away without a word.
                Ledger::count(&self.ledger.mishaps);
                return Ok(());
            }
            2..5 => {
                self.ledger.give(&held);
                Ledger::count(&self.ledger.mishaps);
                return self.stale(self.provider.abandon_orchestration_item(token, None, true).await);
            }
            _ => {}
        }
        tokio::task::yield_now().await;
        let (commit, completes) = self.decide(&item);
        self.ledger.give(&held);
        match self.commit(token, commit.clone()).await {
            Ok(()) => {
                Ledger::count(&self.ledger.turns);
                if completes {
                    Ledger::count(&self.ledger.completed);
                }
            }
            Err(error) => return self.stale(Err(error)),
        }
        if dice.percent(5) && self.commit(token, commit).await.is_ok() {
            self.ledger.violate(format!("a turn of '{}' was committed twice", item.instance));
        }
        Ok(())
    }

    async fn commit(&self, token: &str, commit: Commit) -> Result<(), ProviderError> {
        let Commit { execution_id, events, work, messages, metadata, cancelled } = commit;
        self.provider
            .ack_orchestration_item(token, execution_id, events, work, messages, metadata, cancelled)
            .await
    }

    /// A lease that was lost is a mishap; any other error is the end.
    fn stale(&self, result: Result<(), ProviderError>) -> Outcome {
        match result {
            Err(error) if error.is_lease_lost() => {
                Ledger::count(&self.ledger.mishaps);
                Ok(())
            }
            result => result.map_err(failed),
        }
    }

    /// The first turn schedules, later ones record what answered, the last one completes.
    fn decide(&self, item: &OrchestrationItem) -> (Commit, bool) {
        let instance = item.instance.as_str();
        let is_over =
            item.history.iter().any(|event| matches!(event.kind, EventKind::OrchestrationCompleted { .. }));
        let mut commit = Commit::default();
        if is_over {
            return (commit, false);
        }
        let mut last = item.history.len() as u64;
        if last == 0 {
            commit = Commit::started(instance);
            last = 1;
            for number in 0..self.plan.activities {
                last += 1;
                let session = (number % 2 == 0 && self.plan.sessions > 0)
                    .then(|| format!("session {}", last as usize % self.plan.sessions));
                commit = commit.event(event(instance, last, scheduled())).work(activity_with(
                    instance,
                    last,
                    session.as_deref(),
                    None,
                ));
            }
        }
        let answered_before = item
            .history
            .iter()
            .filter(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }))
            .count() as u64;
        let mut answers = answered_before;
        for message in &item.messages {
            if let WorkItem::ActivityCompleted { id, result, .. } = message {
                last += 1;
                answers += 1;
                let kind = EventKind::ActivityCompleted { result: result.clone() };
                commit = commit.event(answered(instance, last, *id, kind));
            }
        }
        let completes = answers >= self.plan.activities;
        (if completes { commit.complete(instance, last + 1, "done") } else { commit }, completes)
    }

    pub(super) async fn run_activities(self: Arc<Self>, number: usize) -> Outcome {
        let mut dice = Dice::new(1_000 + number as u64);
        let session =
            SessionFetchConfig { owner_id: format!("owner {number}"), lock_timeout: self.plan.lease };
        let mut served = HashMap::new();
        loop {
            self.check_patience()?;
            let until = self.until();
            let fetched =
                self.provider.fetch_work_item(self.plan.lease, POLL, Some(&session), &TagFilter::Any).await;
            match fetched.map_err(failed)? {
                Some((item, token, _)) => self.activity(&mut dice, item, &token, until).await?,
                None if self.is_done() => return Ok(()),
                None => self.pause().await,
            }
            if dice.percent(10) {
                self.release_sessions(number, &session.owner_id, &mut served).await?;
            }
        }
    }

    async fn activity(&self, dice: &mut Dice, item: WorkItem, token: &str, until: Duration) -> Outcome {
        let WorkItem::ActivityExecute { instance, id, .. } = &item else {
            return Err(format!("{item:?} is no activity"));
        };
        let held = format!("activity {id} of '{instance}'");
        self.ledger.take(&held, until);
        match dice.below(100) {
            0..2 => {
                Ledger::count(&self.ledger.mishaps);
                return Ok(());
            }
            2..5 => {
                self.ledger.give(&held);
                Ledger::count(&self.ledger.mishaps);
                return self.stale(self.provider.abandon_work_item(token, None, true).await);
            }
            5..10 => self.stale(self.provider.renew_work_item_lock(token, self.plan.lease).await)?,
            _ => {}
        }
        tokio::task::yield_now().await;
        self.ledger.give(&held);
        match self.provider.ack_work_item(token, Some(completion(instance, *id))).await {
            Ok(()) => self.ledger.finish(instance, *id),
            Err(error) => return self.stale(Err(error)),
        }
        if dice.percent(5)
            && self.provider.ack_work_item(token, Some(completion(instance, *id))).await.is_ok()
        {
            self.ledger.violate(format!("{held} was finished twice with one token"));
        }
        Ok(())
    }

    /// Notes which sessions this process has, and releases them, as far as the store can tell.
    async fn release_sessions(
        &self,
        number: usize,
        owner: &str,
        served: &mut HashMap<String, u64>,
    ) -> Outcome {
        let Some(store) = Arc::clone(&self.provider).into_store() else { return Ok(()) };
        let mut mine = Vec::new();
        for session in store.sessions(None).await.map_err(failed)? {
            if session.owner.as_ref().is_some_and(|other| other.id == owner) {
                let id = session.key.session_id.clone();
                self.ledger.attach(&id, session.epoch, number);
                if served.insert(id.clone(), session.epoch).is_some_and(|last| last > session.epoch) {
                    self.ledger.violate(format!("the epoch of session '{id}' fell"));
                }
                mine.push(steadfast_store::SessionRef { key: session.key, epoch: session.epoch });
            }
        }
        store.release_sessions(&Owner::unnamed(owner), &mine).await.map_err(failed)?;
        Ok(())
    }
}
