//! Histories: appended in order of arrival, found by index.

use std::borrow::Cow;

use steadfast_core::Event;
use steadfast_store::ProviderError;
use steadfast_store::rules::{events_of, repeated_event, to_json, unreadable_history, unstorable_event};

use crate::link::db::{Db, column, time, unsigned};
use crate::link::escape::escape;
use crate::link::statement::{Statement, calls, params, sql};
use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions!["history/append_events"];

calls! {
    /// Appends events to executions. `event_of` says to which request an event belongs, counted from 1.
    AppendEvents<'a> => append_events {
        instances: Vec<Cow<'a, str>>,
        executions: Vec<i64>,
        event_of: Vec<i32>,
        event_ids: Vec<i64>,
        event_kinds: Vec<&'static str>,
        event_texts: Vec<String>,
        now_ms: Option<i64>,
    }
}

/// Events as they are stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredEvents {
    /// Their ids as the caller gave them, for error texts.
    given: Vec<u64>,
    ids: Vec<i64>,
    kinds: Vec<&'static str>,
    texts: Vec<String>,
}

impl StoredEvents {
    pub(crate) fn new(operation: &'static str, events: &[Event]) -> Result<Self, ProviderError> {
        let mut new = Self::default();
        for event in events {
            new.given.push(event.event_id);
            // An id beyond the numbers of the database is refused there, like 0.
            new.ids.push(i64::try_from(event.event_id).unwrap_or(0));
            new.kinds.push(event.kind.name());
            new.texts.push(to_json(operation, event)?);
        }
        Ok(new)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    /// Returns the first id if the ids rise, `None` if they do not. Without events it is the greatest number,
    /// which is above every event id.
    pub(crate) fn rising(&self) -> Option<i64> {
        let rises = self.ids.windows(2).all(|pair| pair[0] < pair[1]);
        rises.then(|| self.ids.first().copied().unwrap_or(i64::MAX))
    }

    /// Moves the ids, kinds and texts out. The given ids stay, for the text of a refusal.
    pub(crate) fn take(&mut self) -> (Vec<i64>, Vec<&'static str>, Vec<String>) {
        let Self { ids, kinds, texts, .. } = self;
        (std::mem::take(ids), std::mem::take(kinds), std::mem::take(texts))
    }

    /// Says why events are refused: `code` is the answer of the database, `at` the refused event, counted
    /// from 1.
    pub(crate) fn refusal(
        &self,
        operation: &'static str,
        (instance, execution): (&str, i64),
        code: &str,
        at: Option<i32>,
    ) -> ProviderError {
        let at = at.and_then(|at| usize::try_from(at).ok()?.checked_sub(1));
        let id = at.and_then(|at| self.given.get(at)).copied().unwrap_or(0);
        if code == "conflict" {
            return repeated_event(operation, instance, unsigned(execution), id);
        }
        unstorable_event(operation, id)
    }
}

impl Db {
    /// Appends events to an execution; a repeated id is a conflict (S8).
    pub(crate) async fn append_history(
        &self,
        instance: &str,
        execution: u64,
        mut events: StoredEvents,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "append_history";
        let (event_ids, event_kinds, event_texts) = events.take();
        let call = AppendEvents {
            instances: vec![escape(instance)],
            executions: vec![time(execution)],
            event_of: vec![1; event_ids.len()],
            event_ids,
            event_kinds,
            event_texts,
            now_ms: self.now(),
        };
        let Some(row) = self.one(OPERATION, call.statement()).await? else { return Ok(()) };
        let at = column(OPERATION, &row, "event_at")?;
        match column(OPERATION, &row, "code")? {
            "ok" => Ok(()),
            code => Err(events.refusal(OPERATION, (instance, time(execution)), code, at)),
        }
    }

    /// Reads the texts of the events of an execution that come after the event `after`.
    pub(crate) async fn event_texts(
        &self,
        operation: &'static str,
        instance: &str,
        execution: i64,
        after: u64,
    ) -> Result<Vec<String>, ProviderError> {
        let (instance, after) = (escape(instance), time(after));
        let statement = Statement::of(sql!("history/after"), params![instance, execution, after]);
        let rows = self.rows(operation, statement).await?;
        rows.iter().map(|row| column(operation, row, "event_data")).collect()
    }

    /// Reads the events of an execution; `None` stands for the latest one.
    pub(crate) async fn read_history(
        &self,
        instance: &str,
        execution: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        const OPERATION: &str = "read_history";
        let (stored, execution) = (escape(instance), execution.map(time));
        let statement = Statement::of(sql!("history/of_execution"), params![stored, execution]);
        let rows = self.rows(OPERATION, statement).await?;
        let texts =
            rows.iter().map(|row| column(OPERATION, row, "event_data")).collect::<Result<Vec<_>, _>>()?;
        events_of(&texts).map_err(|error| unreadable_history(instance, error))
    }

    /// Reads the event that an execution started with; `None` if it is missing or cannot be read.
    pub(crate) async fn started(
        &self,
        operation: &'static str,
        instance: &str,
        execution: i64,
    ) -> Result<Option<Event>, ProviderError> {
        let instance = escape(instance);
        let statement = Statement::of(sql!("history/started"), params![instance, execution]);
        let row = self.one(operation, statement).await?;
        let text: Option<String> = row.map(|row| column(operation, &row, "event_data")).transpose()?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
