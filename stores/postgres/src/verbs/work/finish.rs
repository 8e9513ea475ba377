//! Finishing work: its row is removed, and its completion is sent.

use std::borrow::Cow;

use steadfast_store::rules::{check_completion, to_json};
use steadfast_store::{LeaseToken, Message, Outcome, ProviderError, Woken};

use crate::link::db::column;
use crate::link::escape::escape;
use crate::link::statement::calls;
use crate::merge::queue::Answers;
use crate::verbs::backend::Backend;
use crate::verbs::message::stored_failure;
use crate::verbs::work::{judge_lease, read_tag};

const OPERATION: &str = "finish_work";

calls! {
    /// Removes activities and sends their completions (S4, S11).
    FinishWork<'a> => finish_work_items on FinishWork {
        tokens: Vec<Cow<'a, str>>,
        /// The instance that a completion goes to; `None` if the activity ends without one.
        instances: Vec<Option<Cow<'a, str>>>,
        items: Vec<Option<&'a str>>,
        traceparents: Vec<Option<Cow<'a, str>>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        /// The failures beside the completions, as JSON.
        failures: Vec<Option<&'a str>>,
    }
}

/// The end of an activity.
#[derive(Debug, Clone)]
pub(crate) struct WorkEnd {
    token: String,
    completion: Option<Completion>,
}

/// The message that an activity ends with.
#[derive(Debug, Clone)]
struct Completion {
    instance: String,
    text: String,
    traceparent: Option<String>,
    failure: Option<String>,
}

impl WorkEnd {
    pub(crate) fn new(lease: &LeaseToken, outcome: Outcome) -> Result<Self, ProviderError> {
        check_completion(&outcome)?;
        let completion = outcome.completion.map(Completion::new).transpose()?;
        Ok(Self { token: lease.as_str().to_owned(), completion })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.completion.as_ref().map_or(0, |completion| {
            completion.text.len() + completion.failure.as_ref().map_or(0, String::len)
        })
    }
}

impl Completion {
    fn new(message: Message) -> Result<Self, ProviderError> {
        Ok(Self {
            instance: message.item.instance().to_owned(),
            text: to_json(OPERATION, &message.item)?,
            failure: stored_failure(OPERATION, &message)?,
            traceparent: message.traceparent,
        })
    }
}

impl Backend {
    /// Removes activities and sends their completions, each pair together (S11).
    pub(crate) async fn finish_work(&self, asked: Vec<WorkEnd>) -> Answers<()> {
        let sent: Vec<Option<&Completion>> = asked.iter().map(|end| end.completion.as_ref()).collect();
        let notified = Woken { turns: sent.iter().flatten().count(), ..Woken::default() };
        let call = FinishWork {
            tokens: asked.iter().map(|end| escape(&end.token)).collect(),
            instances: sent.iter().map(|sent| sent.map(|sent| escape(&sent.instance))).collect(),
            items: sent.iter().map(|sent| sent.map(|sent| sent.text.as_str())).collect(),
            traceparents: sent
                .iter()
                .map(|sent| sent.and_then(|sent| sent.traceparent.as_deref()).map(escape))
                .collect(),
            now_ms: self.db.now(),
            notify: self.payload(&notified),
            me: &self.me,
            failures: sent.iter().map(|sent| sent.and_then(|sent| sent.failure.as_deref())).collect(),
        };
        let unsure = Woken { turns: asked.len(), any_work: true, ..Woken::default() };
        let rows = self.wake_if_unsure(self.db.rows(OPERATION, call.statement()).await, &unsure)?;
        let mut answers = Vec::with_capacity(asked.len());
        let mut woken = Woken::default();
        for ((row, end), sent) in rows.iter().zip(&asked).zip(&sent) {
            let answer = judge_lease(OPERATION, row, &end.token)?;
            woken.turns += usize::from(answer.is_ok() && sent.is_some());
            if let Some(tag) = column::<Option<String>>(OPERATION, row, "next_tag")? {
                woken.work.push((read_tag(tag), true));
            }
            answers.push(answer);
        }
        self.waiters.wake(&woken);
        Ok(answers)
    }
}
