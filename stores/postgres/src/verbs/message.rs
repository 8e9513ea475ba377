//! Messages: how they are sent to instances, and how instances are started.

use std::time::Duration;

use serde::Serialize;
use steadfast_core::{WorkItem, kind_of};
use steadfast_store::{Envelope, Message, ProviderError, ProviderErrorKind, Started, check_message};

use crate::link::db::{Ask, Function, column, functions, millis, sql};
use crate::link::escape::escape;
use crate::link::statement::params;
pub(crate) use crate::verbs::work::stored_tag;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "clock/now_ms",
    "clock/after_ms",
    "clock/after_each_ms",
    "message/queue_messages",
    "message/send_messages",
    "message/start_instances",
];

/// A message that is ready to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    instance: String,
    item: String,
    delay: Option<i64>,
    starts: bool,
    traceparent: Option<String>,
}

impl Letter {
    pub(crate) fn new(operation: &'static str, sent: Envelope) -> Result<Self, ProviderError> {
        check_message(operation, &sent.message.item)?;
        Self::of(operation, &sent.message, sent.delay)
    }

    pub(crate) fn of(
        operation: &'static str,
        message: &Message,
        delay: Option<Duration>,
    ) -> Result<Self, ProviderError> {
        Ok(Self {
            instance: escape(message.item.instance()).into_owned(),
            item: text(operation, &message.item)?,
            delay: delay.map(millis),
            starts: is_start(&message.item),
            traceparent: message.traceparent.as_deref().map(|text| escape(text).into_owned()),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.item.len()
    }
}

/// A start, and what is sent behind it.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    start: Letter,
    also: Vec<Letter>,
}

impl Start {
    pub(crate) fn new(start: Envelope, also: Vec<Envelope>) -> Result<Self, ProviderError> {
        const OPERATION: &str = "start";
        if !matches!(start.message.item, WorkItem::StartOrchestration { .. }) {
            let text = format!("a start is a StartOrchestration, not {}", kind_of(&start.message.item));
            return Err(ProviderError::new(ProviderErrorKind::Invalid, OPERATION, text));
        }
        let start = Letter::new(OPERATION, start)?;
        let also = also.into_iter().map(|sent| Letter::new(OPERATION, sent)).collect::<Result<_, _>>()?;
        Ok(Self { start, also })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.start.bytes() + self.also.iter().map(Letter::bytes).sum::<usize>()
    }

    /// Counts the messages.
    pub(crate) fn count(&self) -> usize {
        1 + self.also.len()
    }
}

/// Letters as the columns of a call.
#[derive(Default)]
struct Letters {
    instances: Vec<String>,
    items: Vec<String>,
    delays: Vec<Option<i64>>,
    starts: Vec<bool>,
    traceparents: Vec<Option<String>>,
}

impl Letters {
    fn push(&mut self, letter: Letter) {
        self.instances.push(letter.instance);
        self.items.push(letter.item);
        self.delays.push(letter.delay);
        self.starts.push(letter.starts);
        self.traceparents.push(letter.traceparent);
    }
}

/// Sends messages: those of one request together, and all of them in the order of the requests.
pub(crate) async fn send_messages(
    asker: &impl Ask,
    requests: Vec<Vec<Letter>>,
    notify: Option<String>,
    me: Option<&str>,
) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
    let answers = requests.iter().map(|_| Ok(())).collect();
    let mut all = Letters::default();
    requests.into_iter().flatten().for_each(|letter| all.push(letter));
    if !all.items.is_empty() {
        asker
            .ask(
                "send",
                sql!("message/send"),
                params![
                    all.instances,
                    all.items,
                    all.delays,
                    all.starts,
                    all.traceparents,
                    asker.now(),
                    notify,
                    me
                ],
            )
            .await?;
    }
    Ok(answers)
}

/// Starts instances that do not exist.
pub(crate) async fn start_instances(
    asker: &impl Ask,
    requests: Vec<Start>,
    notify: Option<String>,
    me: Option<&str>,
) -> Result<Vec<Result<Started, ProviderError>>, ProviderError> {
    const OPERATION: &str = "start";
    let (mut starts, mut also, mut also_of) = (Letters::default(), Letters::default(), Vec::new());
    for (of, request) in (1_i32..).zip(requests) {
        starts.push(request.start);
        for letter in request.also {
            also_of.push(of);
            also.push(letter);
        }
    }
    let rows = asker
        .ask(
            OPERATION,
            sql!("message/start"),
            params![
                starts.instances,
                starts.items,
                starts.delays,
                starts.traceparents,
                also_of,
                also.instances,
                also.items,
                also.delays,
                also.starts,
                also.traceparents,
                asker.now(),
                notify,
                me
            ],
        )
        .await?;
    let read = |row: &tokio_postgres::Row| {
        let is_new: bool = column(OPERATION, row, "is_new")?;
        Ok(if is_new { Started::New } else { Started::Existing })
    };
    Ok(rows.iter().map(read).collect())
}

pub(crate) fn is_start(item: &WorkItem) -> bool {
    matches!(
        item,
        WorkItem::StartOrchestration { .. }
            | WorkItem::ContinueAsNew { .. }
            | WorkItem::ContinueAsNewWithSessions { .. }
    )
}

/// Refuses what is no activity.
pub(crate) fn check_work(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityExecute { .. } => Ok(()),
        other => {
            let text = format!("{} is a message to an instance, not work for a worker", kind_of(other));
            Err(ProviderError::new(ProviderErrorKind::Invalid, operation, text))
        }
    }
}

pub(crate) fn text(operation: &str, item: &impl Serialize) -> Result<String, ProviderError> {
    serde_json::to_string(item).map_err(|error| {
        let text = format!("it cannot be written as JSON: {error}");
        ProviderError::new(ProviderErrorKind::Invalid, operation, text)
    })
}
