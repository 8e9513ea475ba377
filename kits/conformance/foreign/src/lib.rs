//! A store as an application might write it: a few maps, and only the required methods of `Provider`.
//!
//! It has no management interface and knows nothing of the typed `Store`; everything that the runtime needs
//! beyond these methods comes from the adapter.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::Clock;
use steadfast_core::{
    DispatcherCapabilityFilter, Event, EventKind, ExecutionMetadata, KvEntry, ScheduledActivityIdentifier,
    SystemStats, TagFilter, WorkItem,
};
use steadfast_store::{OrchestrationItem, Provider, ProviderError, SessionFetchConfig};

/// Keeps everything in a few maps.
pub struct MapProvider {
    clock: Arc<dyn Clock>,
    maps: Mutex<Maps>,
}

#[derive(Default)]
struct Maps {
    next: u64,
    histories: BTreeMap<(String, u64), Vec<Event>>,
    executions: BTreeMap<String, u64>,
    kv: BTreeMap<String, BTreeMap<String, KvEntry>>,
    statuses: BTreeMap<String, (Option<String>, u64)>,
    messages: BTreeMap<u64, Queued>,
    work: BTreeMap<u64, Queued>,
    turns: BTreeMap<String, (String, u64)>,
}

struct Queued {
    item: WorkItem,
    visible_at_ms: u64,
    attempts: u32,
    token: Option<String>,
    locked_until_ms: u64,
}

impl MapProvider {
    /// Makes an empty store that follows a clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, maps: Mutex::default() }
    }

    fn maps(&self) -> (MutexGuard<'_, Maps>, u64) {
        (self.maps.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now_ms())
    }
}

impl Maps {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn push_message(&mut self, item: WorkItem, visible_at_ms: u64) {
        let place = self.number();
        self.messages.insert(place, Queued::new(item, visible_at_ms));
    }

    fn push_work(&mut self, item: WorkItem, visible_at_ms: u64) {
        let place = self.number();
        self.work.insert(place, Queued::new(item, visible_at_ms));
    }

    fn instance_of(&self, token: &str, now: u64) -> Result<String, ProviderError> {
        let held = self.turns.iter().find(|(_, (held, until))| held == token && *until > now);
        held.map(|(instance, _)| instance.clone()).ok_or_else(lost)
    }

    fn work_of(&mut self, token: &str, now: u64) -> Result<u64, ProviderError> {
        let held = self
            .work
            .iter()
            .find(|(_, row)| row.token.as_deref() == Some(token) && row.locked_until_ms > now);
        held.map(|(place, _)| *place).ok_or_else(lost)
    }
}

impl Queued {
    fn new(item: WorkItem, visible_at_ms: u64) -> Self {
        Self { item, visible_at_ms, attempts: 0, token: None, locked_until_ms: 0 }
    }

    fn abandon(&mut self, now: u64, delay: Option<Duration>, ignore_attempt: bool) {
        self.token = None;
        self.locked_until_ms = 0;
        self.attempts -= u32::from(ignore_attempt && self.attempts > 0);
        if delay.is_some() {
            self.visible_at_ms = later(now, delay);
        }
    }
}

fn lost() -> ProviderError {
    ProviderError::permanent("lease", "Invalid lock token")
}

fn later(now: u64, delay: Option<Duration>) -> u64 {
    now.saturating_add(delay.map_or(0, |delay| delay.as_millis() as u64))
}

#[async_trait]
impl Provider for MapProvider {
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let (mut maps, now) = self.maps();
        let free =
            |maps: &Maps, instance: &str| maps.turns.get(instance).is_none_or(|(_, until)| *until <= now);
        let ready = maps.messages.values().filter(|row| row.visible_at_ms <= now);
        let Some(instance) = ready.map(|row| row.item.instance().to_owned()).find(|id| free(&maps, id))
        else {
            return Ok(None);
        };
        let token = format!("turn-{}", maps.number());
        maps.turns.insert(instance.clone(), (token.clone(), later(now, Some(lock_timeout))));
        let mut messages = Vec::new();
        let mut attempts = 0;
        for row in maps.messages.values_mut() {
            if row.item.instance() == instance && row.visible_at_ms <= now {
                row.token = Some(token.clone());
                row.attempts += 1;
                attempts = attempts.max(row.attempts);
                messages.push(row.item.clone());
            }
        }
        let execution_id = maps.executions.get(&instance).copied().unwrap_or(1);
        let history = maps.histories.get(&(instance.clone(), execution_id)).cloned().unwrap_or_default();
        let (orchestration_name, version) = named(&history, &messages);
        let kv_snapshot = maps.kv.get(&instance).cloned().unwrap_or_default().into_iter().collect();
        let history_error = None;
        let item = OrchestrationItem {
            instance,
            orchestration_name,
            execution_id,
            version,
            history,
            messages,
            history_error,
            kv_snapshot,
        };
        Ok(Some((item, token, attempts)))
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        _metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let instance = maps.instance_of(lock_token, now)?;
        maps.turns.remove(&instance);
        maps.messages.retain(|_, row| row.token.as_deref() != Some(lock_token));
        let current = maps.executions.entry(instance.clone()).or_insert(execution_id);
        *current = execution_id.max(*current);
        for event in &history_delta {
            if let EventKind::CustomStatusUpdated { status } = &event.kind {
                let (kept, version) = maps.statuses.entry(instance.clone()).or_default();
                (*kept, *version) = (status.clone(), *version + 1);
            }
        }
        maps.histories.entry((instance, execution_id)).or_default().extend(history_delta);
        for item in worker_items {
            maps.push_work(item, now);
        }
        maps.work.retain(|_, row| {
            !cancelled_activities.iter().any(|cancelled| {
                matches!(&row.item, WorkItem::ActivityExecute { instance, execution_id, id, .. }
                    if *instance == cancelled.instance
                        && *execution_id == cancelled.execution_id
                        && *id == cancelled.activity_id)
            })
        });
        for item in orchestrator_items {
            let visible_at_ms =
                if let WorkItem::TimerFired { fire_at_ms, .. } = &item { *fire_at_ms } else { now };
            maps.push_message(item, visible_at_ms);
        }
        Ok(())
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let instance = maps.instance_of(lock_token, now)?;
        maps.turns.remove(&instance);
        for row in maps.messages.values_mut().filter(|row| row.token.as_deref() == Some(lock_token)) {
            row.abandon(now, delay, ignore_attempt);
        }
        Ok(())
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let instance = maps.instance_of(token, now)?;
        maps.turns.insert(instance, (token.to_owned(), later(now, Some(extend_for))));
        Ok(())
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let latest = self.maps().0.executions.get(instance).copied().unwrap_or(1);
        self.read_with_execution(instance, latest).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let (maps, _) = self.maps();
        Ok(maps.histories.get(&(instance.to_owned(), execution_id)).cloned().unwrap_or_default())
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let (mut maps, _) = self.maps();
        maps.histories.entry((instance.to_owned(), execution_id)).or_default().extend(new_events);
        Ok(())
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        maps.push_work(item, now);
        Ok(())
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let (mut maps, now) = self.maps();
        let token = format!("work-{}", maps.number());
        let takes = |item: &WorkItem| match item {
            WorkItem::ActivityExecute { tag, .. } => tag_filter.matches(tag.as_deref()),
            _ => false,
        };
        let oldest = maps
            .work
            .values_mut()
            .find(|row| row.visible_at_ms <= now && row.locked_until_ms <= now && takes(&row.item));
        Ok(oldest.map(|row| {
            row.token = Some(token.clone());
            row.locked_until_ms = later(now, Some(lock_timeout));
            row.attempts += 1;
            (row.item.clone(), token, row.attempts)
        }))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let place = maps.work_of(token, now)?;
        maps.work.remove(&place);
        if let Some(completion) = completion {
            maps.push_message(completion, now);
        }
        Ok(())
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let place = maps.work_of(token, now)?;
        if let Some(row) = maps.work.get_mut(&place) {
            row.locked_until_ms = later(now, Some(extend_for));
        }
        Ok(())
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        let place = maps.work_of(token, now)?;
        if let Some(row) = maps.work.get_mut(&place) {
            row.abandon(now, delay, ignore_attempt);
        }
        Ok(())
    }

    async fn renew_session_lock(
        &self,
        _owner_ids: &[&str],
        _extend_for: Duration,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let (mut maps, now) = self.maps();
        maps.push_message(item, later(now, delay));
        Ok(())
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let (maps, _) = self.maps();
        Ok(maps.statuses.get(instance).filter(|(_, version)| *version > last_seen_version).cloned())
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let (maps, _) = self.maps();
        Ok(maps.kv.get(instance).and_then(|kv| kv.get(key)).map(|entry| entry.value.clone()))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let (maps, _) = self.maps();
        let entries = maps.kv.get(instance).into_iter().flatten();
        Ok(entries.map(|(key, entry)| (key.clone(), entry.value.clone())).collect())
    }

    async fn get_instance_stats(&self, _instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        Ok(None)
    }
}

fn named(history: &[Event], messages: &[WorkItem]) -> (String, String) {
    let recorded = history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), version.clone())),
        _ => None,
    });
    let asked = messages.iter().find_map(|message| match message {
        WorkItem::StartOrchestration { orchestration, .. } => {
            Some((orchestration.clone(), "unknown".to_owned()))
        }
        _ => None,
    });
    recorded.or(asked).unwrap_or_else(|| ("unknown".to_owned(), "unknown".to_owned()))
}
