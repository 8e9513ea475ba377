//! Messages: how they are sent to instances, and how instances are started.

use std::time::Duration;

use steadfast_store::rules::{check_message, check_start, is_start, to_json};
use steadfast_store::{Envelope, Message, ProviderError, Started, Woken};

use crate::link::db::{Asker, column, millis};
use crate::link::escape::escape;
use crate::link::statement::calls;
use crate::merge::queue::Answers;
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "clock/now_ms",
    "clock/is_statement_over",
    "clock/after_ms",
    "clock/after_each_ms",
    "message/is_of_former_life",
    "message/queue_messages",
    "message/send_messages",
    "message/start_instances",
];

calls! {
    /// Sends messages to instances.
    #[derive(Default)]
    SendMessages<'a> => send_messages {
        instances: Vec<String>,
        items: Vec<String>,
        delay_ms: Vec<Option<i64>>,
        starts: Vec<bool>,
        traceparents: Vec<Option<String>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: Option<&'a str>,
        /// The failures beside the messages, as JSON.
        failures: Vec<Option<String>>,
    }

    /// Starts instances that do not exist. The arrays that begin with `also` hold the messages that are sent
    /// after the starts, and `also_of` says after which start, counted from 1.
    #[derive(Default)]
    StartInstances<'a> => start_instances {
        instances: Vec<String>,
        items: Vec<String>,
        delay_ms: Vec<Option<i64>>,
        traceparents: Vec<Option<String>>,
        also_of: Vec<i32>,
        also_instances: Vec<String>,
        also_items: Vec<String>,
        also_delay_ms: Vec<Option<i64>>,
        also_starts: Vec<bool>,
        also_traceparents: Vec<Option<String>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: Option<&'a str>,
        /// The failures beside the starts, as JSON.
        failures: Vec<Option<String>>,
        also_failures: Vec<Option<String>>,
    }
}

/// A message as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    instance: String,
    item: String,
    delay: Option<i64>,
    starts: bool,
    traceparent: Option<String>,
    failure: Option<String>,
}

impl StoredMessage {
    pub(crate) fn new(operation: &'static str, sent: Envelope) -> Result<Self, ProviderError> {
        let Envelope { message, delay } = sent;
        check_message(operation, &message.item)?;
        Self::of(operation, &message, delay)
    }

    fn of(
        operation: &'static str,
        message: &Message,
        delay: Option<Duration>,
    ) -> Result<Self, ProviderError> {
        Ok(Self {
            instance: escape(message.item.instance()).into_owned(),
            item: to_json(operation, &message.item)?,
            delay: delay.map(millis),
            starts: is_start(&message.item),
            traceparent: message.traceparent.as_deref().map(|text| escape(text).into_owned()),
            failure: stored_failure(operation, message)?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.item.len() + self.failure.as_ref().map_or(0, String::len)
    }
}

/// Returns the stored form of the failure beside a message.
pub(crate) fn stored_failure(
    operation: &'static str,
    message: &Message,
) -> Result<Option<String>, ProviderError> {
    message.failure.as_ref().map(|failure| to_json(operation, failure)).transpose()
}

/// A start, and the messages that are sent after it in the same transaction.
#[derive(Debug, Clone)]
pub(crate) struct StoredStart {
    start: StoredMessage,
    also: Vec<StoredMessage>,
}

impl StoredStart {
    pub(crate) fn new(start: Envelope, also: Vec<Envelope>) -> Result<Self, ProviderError> {
        const OPERATION: &str = "start";
        check_start(&start.message.item)?;
        let start = StoredMessage::new(OPERATION, start)?;
        let also =
            also.into_iter().map(|sent| StoredMessage::new(OPERATION, sent)).collect::<Result<_, _>>()?;
        Ok(Self { start, also })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.start.bytes() + self.also.iter().map(StoredMessage::bytes).sum::<usize>()
    }

    /// Counts the messages, the start included.
    pub(crate) fn count(&self) -> usize {
        1 + self.also.len()
    }
}

impl Backend {
    /// Sends messages. The messages of one request are sent together.
    pub(crate) async fn send(&self, asked: Vec<Vec<StoredMessage>>) -> Answers<()> {
        let woken = Woken { turns: asked.iter().map(Vec::len).sum(), ..Woken::default() };
        let sent = send_messages(&self.db, asked, self.payload(&woken), Some(&self.me)).await;
        let answers = self.wake_if_unsure(sent, &woken)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }

    /// Starts instances that do not exist.
    pub(crate) async fn start(&self, asked: Vec<StoredStart>) -> Answers<Started> {
        let woken = Woken { turns: asked.iter().map(StoredStart::count).sum(), ..Woken::default() };
        let started = start_instances(&self.db, asked, self.payload(&woken), Some(&self.me)).await;
        let answers = self.wake_if_unsure(started, &woken)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }
}

/// Sends messages: those of one request together, and all of them in the order of the requests.
pub(crate) async fn send_messages(
    asker: &impl Asker,
    requests: Vec<Vec<StoredMessage>>,
    notify: Option<String>,
    me: Option<&str>,
) -> Answers<()> {
    let answers = requests.iter().map(|_| Ok(())).collect();
    let mut call = SendMessages { now_ms: asker.now(), notify, me, ..SendMessages::default() };
    for message in requests.into_iter().flatten() {
        call.instances.push(message.instance);
        call.items.push(message.item);
        call.delay_ms.push(message.delay);
        call.starts.push(message.starts);
        call.traceparents.push(message.traceparent);
        call.failures.push(message.failure);
    }
    if !call.items.is_empty() {
        asker.ask("send", call.statement()).await?;
    }
    Ok(answers)
}

/// Starts instances that do not exist.
pub(crate) async fn start_instances(
    asker: &impl Asker,
    requests: Vec<StoredStart>,
    notify: Option<String>,
    me: Option<&str>,
) -> Answers<Started> {
    const OPERATION: &str = "start";
    let mut call = StartInstances { now_ms: asker.now(), notify, me, ..StartInstances::default() };
    for (of, StoredStart { start, also }) in (1_i32..).zip(requests) {
        call.instances.push(start.instance);
        call.items.push(start.item);
        call.delay_ms.push(start.delay);
        call.traceparents.push(start.traceparent);
        call.failures.push(start.failure);
        for message in also {
            call.also_of.push(of);
            call.also_instances.push(message.instance);
            call.also_items.push(message.item);
            call.also_delay_ms.push(message.delay);
            call.also_starts.push(message.starts);
            call.also_traceparents.push(message.traceparent);
            call.also_failures.push(message.failure);
        }
    }
    let rows = asker.ask(OPERATION, call.statement()).await?;
    let read = |row: &tokio_postgres::Row| {
        let is_new: bool = column(OPERATION, row, "is_new")?;
        Ok(if is_new { Started::New } else { Started::Existing })
    };
    Ok(rows.iter().map(read).collect())
}
