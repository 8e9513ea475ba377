//! Histories: appended in order of arrival, found by index.

use steadfast_core::Event;
use steadfast_store::{History, ProviderError, ProviderErrorKind};

use crate::link::db::{Db, Function, column, functions, sql, time};
use crate::link::escape::escape;
use crate::link::statement::params;
use crate::verbs::message::text;

pub(crate) const FUNCTIONS: &[Function] = functions!["history/append_events"];

/// Events that are ready to be stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    /// Their ids as they were given, for whoever is told about one.
    given: Vec<u64>,
    ids: Vec<i64>,
    kinds: Vec<&'static str>,
    texts: Vec<String>,
}

impl Events {
    pub(crate) fn new(operation: &'static str, events: &[Event]) -> Result<Self, ProviderError> {
        let mut new = Self::default();
        for event in events {
            new.given.push(event.event_id);
            // What no number of the database can say is refused there like 0.
            new.ids.push(i64::try_from(event.event_id).unwrap_or(0));
            new.kinds.push(event.kind.name());
            new.texts.push(text(operation, event)?);
        }
        Ok(new)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    /// The first id, if the others rise from there; the greatest number when there are none, which is behind any event.
    pub(crate) fn rising(&self) -> Option<i64> {
        let rises = self.ids.windows(2).all(|pair| pair[0] < pair[1]);
        rises.then(|| self.ids.first().copied().unwrap_or(i64::MAX))
    }

    /// Says why events are refused: `code` is that of the database, `at` counts them from 1 on.
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
            let text = format!("execution {execution} of '{instance}' has an event {id} already");
            return ProviderError::new(ProviderErrorKind::Conflict, operation, text);
        }
        let text = format!("event id {id} is none that can be stored: ids begin with 1");
        ProviderError::new(ProviderErrorKind::Invalid, operation, text)
    }
}

/// Events of many requests as the columns of a call.
#[derive(Default)]
pub(crate) struct EventColumns {
    pub(crate) of: Vec<i32>,
    pub(crate) ids: Vec<i64>,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) texts: Vec<String>,
}

impl EventColumns {
    /// Takes the events of a request; what is left of them can still tell why they are refused.
    pub(crate) fn push(&mut self, of: i32, events: &mut Events) {
        self.of.extend(events.ids.iter().map(|_| of));
        self.ids.append(&mut events.ids);
        self.kinds.append(&mut events.kinds);
        self.texts.append(&mut events.texts);
    }
}

/// Asks to append events to an execution.
#[derive(Debug, Clone)]
pub(crate) struct Append {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    pub(crate) events: Events,
}

impl Db {
    /// Appends events; a repeated id is a conflict (S8).
    pub(crate) async fn append_events(
        &self,
        mut requests: Vec<Append>,
    ) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
        const OPERATION: &str = "append_history";
        let mut columns = EventColumns::default();
        for (of, request) in (1_i32..).zip(&mut requests) {
            columns.push(of, &mut request.events);
        }
        let instances: Vec<_> = requests.iter().map(|request| escape(&request.instance)).collect();
        let executions: Vec<_> = requests.iter().map(|request| time(request.execution)).collect();
        let rows = self
            .rows(
                OPERATION,
                sql!("history/append"),
                params![
                    instances,
                    executions,
                    columns.of,
                    columns.ids,
                    columns.kinds,
                    columns.texts,
                    self.now()
                ],
            )
            .await?;
        let judge = |(row, request): (&tokio_postgres::Row, &Append)| {
            let code: &str = column(OPERATION, row, "code")?;
            let at = column(OPERATION, row, "event_at")?;
            match code {
                "ok" => Ok(()),
                code => {
                    let whose = (request.instance.as_str(), time(request.execution));
                    Err(request.events.refusal(OPERATION, whose, code, at))
                }
            }
        };
        Ok(rows.iter().zip(&requests).map(judge).collect())
    }

    /// Reads the texts of the events after one of them.
    pub(crate) async fn event_texts(
        &self,
        operation: &'static str,
        instance: &str,
        execution: i64,
        after: u64,
    ) -> Result<Vec<String>, ProviderError> {
        let rows = self
            .rows(operation, sql!("history/after"), params![escape(instance), execution, time(after)])
            .await?;
        rows.iter().map(|row| column(operation, row, "event_data")).collect()
    }

    /// Reads the events of an execution, or of the latest one.
    pub(crate) async fn read_history(
        &self,
        instance: &str,
        execution: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        const OPERATION: &str = "read_history";
        let rows = self
            .rows(OPERATION, sql!("history/of_execution"), params![escape(instance), execution.map(time)])
            .await?;
        let texts =
            rows.iter().map(|row| column(OPERATION, row, "event_data")).collect::<Result<Vec<_>, _>>()?;
        events_of(&texts).map_err(|error| {
            let text = format!("the history of '{instance}' cannot be read: {error}");
            ProviderError::new(ProviderErrorKind::Corrupt, OPERATION, text).with_source(error)
        })
    }

    /// Reads the event that an execution started with.
    pub(crate) async fn started(
        &self,
        operation: &'static str,
        instance: &str,
        execution: i64,
    ) -> Result<Option<Event>, ProviderError> {
        let row = self.one(operation, sql!("history/started"), params![escape(instance), execution]).await?;
        let text: Option<String> = row.map(|row| column(operation, &row, "event_data")).transpose()?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// Makes a history of stored texts: for a caller that holds it up to an event, only the rest (S2, S15).
pub(crate) fn history_of(texts: &[String], known: Option<u64>) -> History {
    match (events_of(texts), known) {
        (Ok(events), Some(after)) => History::Tail { after, events },
        (Ok(events), None) => History::Whole(events),
        (Err(error), _) => History::Unreadable(error.to_string()),
    }
}

pub(crate) fn events_of(texts: &[String]) -> serde_json::Result<Vec<Event>> {
    texts.iter().map(|text| serde_json::from_str(text)).collect()
}
