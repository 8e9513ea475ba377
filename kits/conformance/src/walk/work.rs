//! Work and sessions of a walk.

use std::time::Duration;

use steadfast_core::{SessionKey, TagFilter, WorkItem};
use steadfast_store::{
    Appetite, InstanceFilter, Outcome, ProviderErrorKind, PruneOptions, RenewSessions, SessionRef,
    SessionRequest, SessionScope, Store, WorkRequest,
};

use super::answer::{done, plain, said};
use super::generate::INSTANCES;
use super::side::Side;
use super::step::{Ask, Finish, Held, Place, Step};
use super::turn::broken;
use crate::bench::raise;

impl Side {
    pub(super) async fn fetch_work(
        &mut self,
        store: &dyn Store,
        holder: usize,
        lock_timeout: Duration,
        tags: &TagFilter,
        ask: Option<&Ask>,
    ) -> String {
        let session = ask.map(|ask| SessionRequest {
            owner: self.owner(ask.owner),
            lock_timeout: ask.lease,
            scope: ask.only.map_or(SessionScope::Claim, |place| SessionScope::Only(self.keys_of(place))),
            leave_out: ask.leave_out.map(|place| self.keys_of(place)).unwrap_or_default(),
        });
        let owner = session.as_ref().map(|session| session.owner.id.clone());
        let request = WorkRequest {
            worker_id: format!("holder {holder}"),
            lock_timeout,
            poll_timeout: Duration::ZERO,
            tags: tags.clone(),
            session,
            worker: None,
        };
        let answer = store.fetch_work(request).await;
        said(answer, |lease| {
            let Some(lease) = lease else { return "nothing".to_owned() };
            let told = self.labels.work(&lease);
            if let (Some(owner), Some(session)) = (owner, &lease.session) {
                let attachment = SessionRef { key: session.key.clone(), epoch: session.epoch };
                let attached = self.attached.entry(owner).or_default();
                if !attached.contains(&attachment) {
                    attached.push(attachment);
                }
            }
            if let Some(slot) = self.works.get_mut(holder) {
                slot.put(lease);
            }
            told
        })
    }

    /// The sessions of that name: the shared one, or those of all instances.
    fn keys_of(&self, place: Place) -> Vec<SessionKey> {
        match place {
            Place::Shared(id) => vec![SessionKey::shared(id)],
            Place::Owned(_) => INSTANCES.iter().map(|instance| self.key_of(instance, place)).collect(),
        }
    }

    pub(super) async fn finish_work(&mut self, store: &dyn Store, held: Held, finish: Finish) -> String {
        let lease = self.works.get(held.holder).and_then(|slot| slot.get(held));
        let Some(lease) = lease else { return "has none".to_owned() };
        let WorkItem::ActivityExecute { instance, execution_id, id, .. } = lease.item.clone() else {
            return "was given no activity".to_owned();
        };
        let completion = match finish {
            Finish::Completed => {
                Some(WorkItem::ActivityCompleted { instance, execution_id, id, result: "done".to_owned() })
            }
            Finish::Failed => {
                Some(WorkItem::ActivityFailed { instance, execution_id, id, details: broken() })
            }
            Finish::Nothing => None,
            Finish::Nonsense => Some(raise(&instance, "nonsense")),
        };
        let outcome = Outcome { completion: completion.map(Into::into) };
        match store.finish_work(&lease.token, outcome).await {
            // Which of two mistakes is named is the store's choice.
            Err(error) if matches!(finish, Finish::Nonsense) => {
                let known =
                    [ProviderErrorKind::Invalid, ProviderErrorKind::LeaseLost, ProviderErrorKind::Withdrawn];
                if known.contains(&error.kind) { "refused".to_owned() } else { format!("{:?}", error.kind) }
            }
            answer => done(answer),
        }
    }

    pub(super) async fn keep_sessions(&mut self, store: &dyn Store, step: &Step) -> String {
        match step {
            Step::RenewSessions { owner, time, idle, patience, full, tags } => {
                let request = RenewSessions {
                    owner: self.owner(*owner),
                    extend_for: *time,
                    idle_timeout: *idle,
                    untaken_after: *patience,
                    tags: tags.clone(),
                    appetite: if *full { Appetite::Full } else { Appetite::Hungry },
                    held: self.attached.get(owner.id()).cloned().unwrap_or_default(),
                    worker: None,
                };
                said(store.renew_sessions(request).await, |outcome| {
                    format!(
                        "renewed {}, idle {}, untaken {}, lost {}",
                        self.labels.attachments(&outcome.renewed),
                        self.labels.attachments(&outcome.idle),
                        self.labels.attachments(&outcome.untaken),
                        self.labels.attachments(&outcome.lost),
                    )
                })
            }
            Step::RenewCompatible { owners, time, idle } => {
                plain(self.provider().renew_session_lock(owners, *time, *idle).await)
            }
            Step::Release { owner, stale } => {
                let had = self.attached.get(owner.id()).cloned().unwrap_or_default();
                let named = if *stale { had } else { had.last().cloned().into_iter().collect() };
                said(store.release_sessions(&self.owner(*owner), &named).await, |mut released| {
                    released.sort();
                    self.labels.attachments(&released)
                })
            }
            _ => String::new(),
        }
    }

    pub(super) async fn remove(&mut self, store: &dyn Store, step: &Step) -> String {
        let Some(admin) = store.admin() else { return String::new() };
        match step {
            Step::Delete { instance, force } => {
                let answer = admin.delete_instance(instance, *force).await;
                if answer.is_ok() {
                    self.forget(instance);
                }
                plain(answer)
            }
            Step::DeleteBulk { limit } => {
                let filter = InstanceFilter { limit: Some(*limit), ..InstanceFilter::default() };
                plain(admin.delete_instance_bulk(filter).await)
            }
            Step::Prune { instance, keep } => {
                let options = PruneOptions { keep_last: Some(*keep), completed_before: None };
                plain(admin.prune_executions(instance, options).await)
            }
            Step::PruneBulk { keep } => {
                let options = PruneOptions { keep_last: Some(*keep), completed_before: None };
                plain(admin.prune_executions_bulk(InstanceFilter::default(), options).await)
            }
            _ => String::new(),
        }
    }

    /// What is held warm stays: a store must know it for another run.
    fn forget(&mut self, instance: &str) {
        self.model.open.retain(|(of, _)| of != instance);
        self.model.ended.retain(|(of, _)| of != instance);
        self.model.scheduled.retain(|(of, ..)| of != instance);
    }
}
