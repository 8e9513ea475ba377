//! Looking at a store from all sides.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::{Cold, InstanceQuery, Outcome, Owner, TurnCommit, TurnRequest};
use steadfast_store::{SessionRequest, SessionScope, WorkRequest};

use super::answer::{done, plain, said};
use super::generate::{INSTANCES, KEYS};
use super::side::Side;

/// Longer than anything in a walk.
pub(super) const LONG: Duration = Duration::from_secs(3_600);

/// Bounds how much is taken out of a store at the end of a walk; beyond it the store repeats itself.
const MOST_LEFT: usize = 2_000;

/// How many executions of an instance are asked for their work.
const MOST_EXECUTIONS: u64 = 3;

/// A look: one line for each thing seen.
pub(super) type Look = for<'a> fn(&'a mut Side) -> Pin<Box<dyn Future<Output = Vec<String>> + 'a>>;

/// The looks at the end of a walk.
pub(super) const AT_THE_END: [(&str, Look); 4] = [
    ("the instances", |side| Box::pin(side.look_at_all())),
    ("the lists", |side| Box::pin(side.look_at_lists())),
    ("the sessions", |side| Box::pin(side.look_at_sessions())),
    ("the workers", |side| Box::pin(side.look_at_workers())),
];

/// The look at what waits, for stores that can tell it.
pub(super) const WAITING: [(&str, Look); 1] = [("what waits", |side| Box::pin(side.look_at_what_waits()))];

/// The looks when all leases are over: the store is emptied, and nothing may be left.
pub(super) const AFTERWARDS: [(&str, Look); 6] = [
    ("the turns that are left", |side| Box::pin(side.take_all_turns())),
    ("the work that is left", |side| Box::pin(side.take_all_work())),
    ("the turns that this made", |side| Box::pin(side.take_all_turns())),
    ("what is queued when all is taken", |side| Box::pin(side.look_at_queues())),
    ("the instances when all is taken", |side| Box::pin(side.look_at_all())),
    ("the sessions when all is taken", |side| Box::pin(side.look_at_sessions())),
];

impl Side {
    async fn look_at_all(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        for instance in INSTANCES {
            seen.extend(self.look_at(instance).await);
        }
        seen
    }

    pub(super) async fn look_at(&mut self, instance: &str) -> Vec<String> {
        let (provider, store) = (self.provider(), self.store());
        let state = store.state(instance).await.map(|state| {
            state.map(|mut state| {
                state.change = 0;
                state
            })
        });
        let mut seen = vec![
            format!("'{instance}' is {}", plain(state)),
            format!("'{instance}' has {}", plain(store.stats(instance).await)),
            format!("'{instance}' status {}", plain(provider.get_custom_status(instance, 0).await)),
            format!("'{instance}' reads {}", plain(store.read_history(instance, None).await)),
        ];
        for key in KEYS {
            seen.push(format!("'{instance}' {key} {}", plain(store.kv_value(instance, key).await)));
        }
        let kv = store.kv_values(instance).await.map(|kv| kv.into_iter().collect::<BTreeMap<_, _>>());
        seen.push(format!("'{instance}' kv {}", plain(kv)));
        let Some(admin) = store.admin() else { return seen };
        seen.push(format!("'{instance}' info {}", plain(admin.get_instance_info(instance).await)));
        seen.push(format!("'{instance}' parent {}", plain(admin.get_parent_id(instance).await)));
        let children = admin.list_children(instance).await.map(|mut children| {
            children.sort();
            children
        });
        seen.push(format!("'{instance}' children {}", plain(children)));
        let executions = admin.list_executions(instance).await;
        for execution in executions.iter().flatten() {
            let info = plain(admin.get_execution_info(instance, *execution).await);
            let events = plain(admin.read_history_with_execution_id(instance, *execution).await);
            seen.push(format!("'{instance}' execution {execution} {info} {events}"));
        }
        seen.push(format!("'{instance}' executions {}", plain(executions)));
        seen
    }

    async fn look_at_lists(&mut self) -> Vec<String> {
        let store = self.store();
        let mut seen = Vec::new();
        let mut query = InstanceQuery { limit: 3, ..InstanceQuery::default() };
        loop {
            let page = match store.instances(&query).await {
                Ok(page) => page,
                Err(error) => return vec![format!("a page: {:?}", error.kind)],
            };
            seen.push(format!(
                "{:?}",
                page.instances.iter().map(|state| &state.instance).collect::<Vec<_>>()
            ));
            match page.next {
                Some(next) if seen.len() < MOST_LEFT => query.after = Some(next),
                _ => break,
            }
        }
        let Some(admin) = store.admin() else { return seen };
        seen.push(format!("all {}", plain(admin.list_instances().await)));
        for status in ["Running", "Completed", "Failed", "ContinuedAsNew"] {
            seen.push(format!("{status} {}", plain(admin.list_instances_by_status(status).await)));
        }
        seen.push(plain(admin.get_system_metrics().await));
        seen
    }

    pub(super) async fn tells_what_waits(&self) -> bool {
        self.store().oldest_waiting().await.is_ok()
    }

    async fn look_at_what_waits(&mut self) -> Vec<String> {
        let store = self.store();
        let mut seen = Vec::new();
        for instance in INSTANCES {
            seen.push(format!("for '{instance}' {}", plain(store.turn_of(instance).await)));
            seen.push(format!("to start '{instance}' {}", plain(store.start_of(instance).await)));
            for execution in 1..=MOST_EXECUTIONS {
                let work = plain(store.work_of(instance, execution).await);
                seen.push(format!("of '{instance}' in execution {execution} {work}"));
            }
        }
        seen.push(plain(store.oldest_waiting().await));
        seen
    }

    pub(super) async fn look_at_sessions(&mut self) -> Vec<String> {
        let store = self.store();
        let now = self.now_ms();
        match store.sessions(None).await {
            Ok(all) => all.iter().filter_map(|session| self.labels.session(session, now)).collect(),
            Err(error) => vec![format!("sessions: {:?}", error.kind)],
        }
    }

    /// Work has no strays, and messages have none after all turns were taken.
    async fn look_at_queues(&mut self) -> Vec<String> {
        let provider = self.provider();
        let Some(admin) = provider.as_management_capability() else { return Vec::new() };
        vec![plain(admin.get_queue_depths().await), plain(self.store().gauges().await)]
    }

    /// Takes turns until there are none, deciding nothing.
    async fn take_all_turns(&mut self) -> Vec<String> {
        let store = self.store();
        let mut seen = Vec::new();
        while seen.len() < MOST_LEFT {
            let request = TurnRequest {
                lock_timeout: LONG,
                poll_timeout: Duration::ZERO,
                filter: None,
                warm: &Cold,
                worker: None,
            };
            match store.fetch_turn(request).await {
                Ok(None) => break,
                Ok(Some(lease)) => {
                    let commit = TurnCommit::empty(lease.execution_id);
                    let told = self.labels.turn(&lease);
                    let committed = store.commit_turn(&lease.token, commit).await.map(drop);
                    seen.push(format!("{told}: {}", done(committed)));
                }
                Err(error) => return vec![format!("a turn: {:?}", error.kind)],
            }
        }
        seen
    }

    /// Takes work until there is none.
    async fn take_all_work(&mut self) -> Vec<String> {
        let store = self.store();
        let mut seen = Vec::new();
        while seen.len() < MOST_LEFT {
            let request = WorkRequest {
                worker_id: "last".to_owned(),
                lock_timeout: LONG,
                poll_timeout: Duration::ZERO,
                tags: TagFilter::Any,
                session: Some(SessionRequest {
                    owner: Owner::unnamed("last"),
                    lock_timeout: LONG,
                    scope: SessionScope::Claim,
                    leave_out: Vec::new(),
                }),
                worker: None,
            };
            let answer = store.fetch_work(request).await;
            let Ok(Some(lease)) = answer else {
                seen.push(said(answer, |_| "that is all".to_owned()));
                break;
            };
            let told = self.labels.work(&lease);
            seen.push(format!("{told}: {}", done(store.finish_work(&lease.token, Outcome::default()).await)));
        }
        seen
    }
}
