//! Executions: how each execution of an instance stands, and its events.

use std::collections::BTreeSet;
use std::ops::Bound;

use semver::Version;
use steadfast_core::{ErrorDetails, Event};
use steadfast_store::rules::{execution_state, history_after, repeated_event};
use steadfast_store::{ExecutionState, History, ProviderError, ProviderErrorKind, RunId, TurnCommit};

use crate::state::{State, Stored};

#[derive(Debug)]
pub(crate) struct ExecutionRow {
    pub(crate) run: RunId,
    pub(crate) status: String,
    pub(crate) output: Option<String>,
    pub(crate) failure: Option<ErrorDetails>,
    pub(crate) pinned: Option<Version>,
    pub(crate) started_at_ms: u64,
    pub(crate) completed_at_ms: Option<u64>,
}

impl ExecutionRow {
    pub(crate) fn new(run: RunId, now: u64) -> Self {
        Self {
            run,
            status: "Running".to_owned(),
            output: None,
            failure: None,
            pinned: None,
            started_at_ms: now,
            completed_at_ms: None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status == "Running"
    }

    /// Writes the status, the output, the failure and the pinned engine version of a commit into the row.
    pub(crate) fn update(&mut self, commit: &TurnCommit, now: u64) {
        let metadata = &commit.metadata;
        if metadata.pinned_duroxide_version.is_some() {
            self.pinned.clone_from(&metadata.pinned_duroxide_version);
        }
        let Some(status) = &metadata.status else { return };
        self.status.clone_from(status);
        self.output.clone_from(&metadata.output);
        if commit.ends_execution() {
            self.completed_at_ms = Some(now);
        }
        self.failure = commit.failure().cloned();
    }

    pub(crate) fn state(&self) -> ExecutionState {
        execution_state(Some(&self.status), self.output.clone(), self.failure.clone())
    }
}

impl State {
    /// Checks that events can be appended (S8), before any row is changed.
    pub(crate) fn check_append(
        &self,
        operation: &str,
        instance: &str,
        execution: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        let history = self.histories.get(&(instance.to_owned(), execution));
        let mut seen = BTreeSet::new();
        for event in events {
            let id = event.event_id;
            if id == 0 {
                let text = "event id 0 means that none was given: ids begin with 1";
                return Err(ProviderError::new(ProviderErrorKind::Invalid, operation, text));
            }
            if history.is_some_and(|events| events.contains_key(&id)) || !seen.insert(id) {
                return Err(repeated_event(operation, instance, execution, id));
            }
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, instance: &str, execution: u64, events: Vec<Event>) {
        let history = self.histories.entry((instance.to_owned(), execution)).or_default();
        history.extend(events.into_iter().map(|event| (event.event_id, Stored::Readable(event))));
    }

    /// Reads all events of an execution.
    pub(crate) fn history(&self, instance: &str, execution: u64) -> Result<Vec<Event>, ProviderError> {
        readable(self.events(instance, execution)).map_err(|reason| {
            let text = format!("history of execution {execution} of '{instance}' cannot be read: {reason}");
            ProviderError::new(ProviderErrorKind::Corrupt, "read_history", text)
        })
    }

    /// Returns the events of an execution after the last one that the caller holds, or all of them (S2).
    pub(crate) fn history_after(&self, instance: &str, execution: u64, known: Option<u64>) -> History {
        let rows = self.histories.get(&(instance.to_owned(), execution));
        let later = (Bound::Excluded(known.unwrap_or(0)), Bound::Unbounded);
        let rows = rows.into_iter().flat_map(|events| events.range(later)).map(|(_, event)| event);
        history_after(readable(rows), known)
    }

    pub(crate) fn last_event_id(&self, instance: &str, execution: u64) -> u64 {
        let history = self.histories.get(&(instance.to_owned(), execution));
        history.and_then(|events| events.last_key_value()).map_or(0, |(id, _)| *id)
    }
}

/// Returns the events, or the reason why the first unreadable one cannot be read.
fn readable<'a>(rows: impl Iterator<Item = &'a Stored<Event>>) -> Result<Vec<Event>, String> {
    rows.map(|row| match row {
        Stored::Readable(event) => Ok(event.clone()),
        Stored::Unreadable { reason, .. } => Err(reason.clone()),
    })
    .collect()
}
