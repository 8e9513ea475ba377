//! Refusing leased work whose handler the caller lacks (S21).

use std::borrow::Cow;

use steadfast_store::rules::to_json;
use steadfast_store::{Attempt, LeaseToken, NeededHandler, ProviderError, Refusal, Refused};
use tokio_postgres::Row;

use crate::link::db::{column, millis};
use crate::link::escape::escape;
use crate::link::statement::calls;
use crate::verbs::backend::Backend;
use crate::verbs::worker::{all_fetches, handler_key};
use crate::verbs::{turn, work};

const OPERATION: &str = "refuse";

calls! {
    /// Refuses a leased instance.
    RefuseTurn<'a> => refuse_turn {
        token: Cow<'a, str>,
        handler: String,
        handler_version: Option<Cow<'a, str>>,
        /// Stands for the handler and its version.
        route: String,
        delay_ms: Option<i64>,
        uncounted: bool,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }

    /// Refuses a leased activity.
    RefuseWork<'a> => refuse_work {
        token: Cow<'a, str>,
        handler: String,
        name: Cow<'a, str>,
        delay_ms: Option<i64>,
        uncounted: bool,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }
}

impl Backend {
    /// Abandons a lease because the caller lacks the handler, and leaves the work to the workers that list
    /// it.
    pub(crate) async fn refuse(
        &self,
        lease: &LeaseToken,
        refusal: Refusal,
    ) -> Result<Refused, ProviderError> {
        match lease {
            LeaseToken::Turn(token) => self.refuse_turn(token, &refusal).await,
            LeaseToken::Work(token) => self.refuse_work(token, &refusal).await,
        }
    }

    async fn refuse_turn(&self, token: &str, refusal: &Refusal) -> Result<Refused, ProviderError> {
        let NeededHandler { name, version } = &refusal.handler;
        let call = RefuseTurn {
            token: escape(token),
            handler: handler_key(name),
            handler_version: version.as_deref().map(escape),
            route: handler_key(&to_json(OPERATION, &(name, version))?),
            delay_ms: refusal.if_unlisted.retry_after.map(millis),
            uncounted: refusal.if_unlisted.attempt == Attempt::Uncounted,
            now_ms: self.db.now(),
            notify: self.payload(&all_fetches()),
            me: &self.me,
        };
        let row = self.refused(self.db.one(OPERATION, call.statement()).await)?;
        turn::judge_lease(OPERATION, &row, token)?;
        self.waiters.wake(&all_fetches());
        outcome(&row)
    }

    async fn refuse_work(&self, token: &str, refusal: &Refusal) -> Result<Refused, ProviderError> {
        let name = &refusal.handler.name;
        let call = RefuseWork {
            token: escape(token),
            handler: handler_key(name),
            name: escape(name),
            delay_ms: refusal.if_unlisted.retry_after.map(millis),
            uncounted: refusal.if_unlisted.attempt == Attempt::Uncounted,
            now_ms: self.db.now(),
            notify: self.payload(&all_fetches()),
            me: &self.me,
        };
        let row = self.refused(self.db.one(OPERATION, call.statement()).await)?;
        work::judge_lease(OPERATION, &row, token)??;
        self.waiters.wake(&all_fetches());
        outcome(&row)
    }

    fn refused(&self, answer: Result<Option<Row>, ProviderError>) -> Result<Row, ProviderError> {
        let row = self.wake_if_unsure(answer, &all_fetches())?;
        row.ok_or_else(|| ProviderError::permanent(OPERATION, "a refusal answered nothing"))
    }
}

fn outcome(row: &Row) -> Result<Refused, ProviderError> {
    Ok(if column(OPERATION, row, "listed")? { Refused::Routed } else { Refused::Unlisted })
}
