//! Tries: a try of an activity that failed ends, and the activity is tried again (S22).

use std::borrow::Cow;
use std::time::Duration;

use steadfast_store::{EndedTry, ProviderError, Tries, Woken};
use tokio_postgres::Row;

use crate::link::db::{column, millis, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::calls;
use crate::merge::queue::Answers;
use crate::verbs::backend::Backend;

calls! {
    /// Ends tries of activities that are tried again (S4, S22).
    EndTries<'a> => end_tries {
        tokens: Vec<Cow<'a, str>>,
        delay_ms: Vec<i64>,
        errors: Vec<Cow<'a, str>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }
}

/// Asks to end a try.
#[derive(Debug, Clone)]
pub(crate) struct TryEnd {
    token: String,
    error: String,
    retry_after: Duration,
}

impl TryEnd {
    pub(crate) fn new(token: &str, ended: EndedTry) -> Self {
        Self { token: token.to_owned(), error: ended.error, retry_after: ended.retry_after }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.error.len()
    }
}

impl Backend {
    /// Ends tries: their leases end, and their activities can be leased again after their delays. Each
    /// request gets its own answer.
    pub(crate) async fn end_tries(&self, asked: Vec<TryEnd>) -> Answers<()> {
        const OPERATION: &str = "end_try";
        let any_work = Woken { any_work: true, ..Woken::default() };
        let call = EndTries {
            tokens: asked.iter().map(|ended| escape(&ended.token)).collect(),
            delay_ms: asked.iter().map(|ended| millis(ended.retry_after)).collect(),
            errors: asked.iter().map(|ended| escape(&ended.error)).collect(),
            now_ms: self.db.now(),
            notify: self.payload(&any_work),
            me: &self.me,
        };
        let rows = self.wake_if_unsure(self.db.rows(OPERATION, call.statement()).await, &any_work)?;
        self.wake_for_ended(OPERATION, &rows, asked.iter().map(|ended| ended.token.as_str()))
    }
}

/// Reads the tries of an activity that have ended.
pub(crate) fn read_tries(operation: &'static str, row: &Row) -> Result<Tries, ProviderError> {
    let first_fetched: Option<i64> = column(operation, row, "first_fetched")?;
    Ok(Tries {
        ended: read_count(operation, row, "tries")?,
        last_error: column::<Option<String>>(operation, row, "last_error")?.map(unescape),
        first_fetched_ms: first_fetched.map(unsigned),
    })
}

/// Reads a column with a count.
pub(crate) fn read_count(operation: &'static str, row: &Row, name: &str) -> Result<u32, ProviderError> {
    column::<i32>(operation, row, name).map(|count| u32::try_from(count).unwrap_or(0))
}
