//! Instances: one row each, and how they stand.

pub(crate) mod kv;

use steadfast_core::{EventKind, SystemStats};
use steadfast_store::rules::{ROWLESS, no_such_cursor};
use steadfast_store::{Cursor, ExecutionState, InstancePage, InstanceQuery, InstanceState, ProviderError};

use crate::state::{State, Stored};

/// An instance whose orchestration a commit has named.
#[derive(Debug)]
pub(crate) struct InstanceRow {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) current_execution: u64,
    pub(crate) parent: Option<String>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    /// The order of creation, newest highest.
    pub(crate) order: u64,
    pub(crate) change: u64,
}

impl State {
    pub(crate) fn instance_state(&self, instance: &str) -> Option<InstanceState> {
        let Some(row) = self.instances.get(instance) else { return self.rowless_state(instance) };
        let execution = self.executions.get(&(instance.to_owned(), row.current_execution));
        Some(InstanceState {
            instance: instance.to_owned(),
            orchestration: row.name.clone(),
            version: row.version.clone(),
            execution_id: row.current_execution,
            status: execution.map_or(ExecutionState::Running, |execution| execution.state()),
            custom_status: row.custom_status.clone(),
            custom_status_version: row.custom_status_version,
            parent: row.parent.clone(),
            created_at_ms: row.created_at_ms,
            updated_at_ms: row.updated_at_ms,
            change: row.change,
        })
    }

    /// Returns the state of an instance that has a history and no row: the history was appended without a
    /// lease, or committed without the name of the orchestration.
    fn rowless_state(&self, instance: &str) -> Option<InstanceState> {
        let execution = self.latest_execution(instance);
        let (name, version, parent) = self.started(instance, execution)?;
        let row = self.executions.get(&(instance.to_owned(), execution));
        let times = self.events(instance, execution).filter_map(|event| match event {
            Stored::Readable(event) => Some(event.timestamp_ms),
            Stored::Unreadable { .. } => None,
        });
        let (first, last) = times.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
        Some(InstanceState {
            instance: instance.to_owned(),
            orchestration: name,
            version,
            execution_id: execution,
            status: row.map_or(ExecutionState::Running, |row| row.state()),
            custom_status: None,
            custom_status_version: 0,
            parent,
            created_at_ms: first.min(last),
            updated_at_ms: last,
            change: self.last_event_id(instance, execution) | ROWLESS,
        })
    }

    /// Returns the name, the version and the parent in the `OrchestrationStarted` event of the execution;
    /// `None` if there is no readable one.
    pub(crate) fn started(&self, instance: &str, execution: u64) -> Option<(String, String, Option<String>)> {
        self.events(instance, execution).find_map(|event| match event {
            Stored::Readable(event) => match &event.kind {
                EventKind::OrchestrationStarted { name, version, parent_instance, .. } => {
                    Some((name.clone(), version.clone(), parent_instance.clone()))
                }
                _ => None,
            },
            Stored::Unreadable { .. } => None,
        })
    }

    pub(crate) fn newest_first(&self) -> Vec<&String> {
        let mut rows: Vec<_> = self.instances.iter().collect();
        rows.sort_unstable_by_key(|(_, row)| std::cmp::Reverse(row.order));
        rows.into_iter().map(|(id, _)| id).collect()
    }

    pub(crate) fn instance_page(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let before = match &query.after {
            None => u64::MAX,
            Some(Cursor(text)) => text.parse().map_err(|_| no_such_cursor(text))?,
        };
        let mut page = InstancePage::default();
        let mut last = before;
        for id in self.newest_first() {
            let (Some(row), Some(state)) = (self.instances.get(id), self.instance_state(id)) else {
                continue;
            };
            if row.order >= before || !selects(query, &state) {
                continue;
            }
            if page.instances.len() == query.page_size() {
                page.next = Some(Cursor(last.to_string()));
                break;
            }
            last = row.order;
            page.instances.push(state);
        }
        Ok(page)
    }

    pub(crate) fn instance_stats(&self, instance: &str) -> Option<SystemStats> {
        if !self.instances.contains_key(instance) && !self.has_history(instance) {
            return None;
        }
        let execution = self.latest_execution(instance);
        let mut stats = SystemStats {
            history_event_count: 0,
            history_size_bytes: 0,
            queue_pending_count: 0,
            kv_user_key_count: 0,
            kv_total_value_bytes: 0,
        };
        for event in self.events(instance, execution) {
            stats.history_event_count += 1;
            stats.history_size_bytes += match event {
                Stored::Readable(event) => serde_json::to_string(event).map_or(0, |text| text.len()),
                Stored::Unreadable { text, .. } => text.len(),
            } as u64;
            if let Stored::Readable(event) = event
                && let EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } =
                    &event.kind
            {
                stats.queue_pending_count = carried.len() as u64;
            }
        }
        for value in self.kv.get(instance).map(|kv| kv.values()).unwrap_or_default().into_values() {
            stats.kv_user_key_count += 1;
            stats.kv_total_value_bytes += value.len() as u64;
        }
        Some(stats)
    }
}

fn selects(query: &InstanceQuery, state: &InstanceState) -> bool {
    query.status.as_ref().is_none_or(|status| status == state.status.label())
        && query.orchestration.as_ref().is_none_or(|name| *name == state.orchestration)
        && query.id_prefix.as_ref().is_none_or(|prefix| state.instance.starts_with(prefix.as_str()))
        && query.parent.as_ref().is_none_or(|parent| Some(parent) == state.parent.as_ref())
        && !(query.roots_only && state.parent.is_some())
}
