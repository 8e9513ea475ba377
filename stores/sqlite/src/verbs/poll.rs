//! Polling: a call that finds nothing looks again after a commit that concerns it, and when a row becomes
//! runnable by time, until its time-out has passed.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use steadfast_store::{InstanceWait, Interest, ProviderError, Store, Waited, Waiter, WorkerId};

use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::merge::alarm::{Alarm, DueMoment};
use crate::merge::request::Undo;
use crate::merge::writer::Taken;
use crate::store::SqliteProvider;
use crate::verbs::torn::PastTorn;
use crate::verbs::turn::Fetched;
use crate::verbs::work::earlier;

/// A look: whether there is something to fetch. One that finds nothing notes the next time at which there
/// will be by itself.
type FetchLook = fn(&Db<'_>) -> DbResult<bool>;

impl SqliteProvider {
    /// Fetches until there is a lease, or the time-out has passed (`None`). `fetch` is told whether it gives
    /// up rows where they are instead of removing them.
    pub(crate) async fn until<L, F, Fut>(
        &self,
        timeout: Duration,
        (interest, worker): (Interest, Option<WorkerId>),
        mut fetch: F,
    ) -> Result<Option<Taken<Fetched<L>>>, ProviderError>
    where
        L: Undo,
        F: FnMut(bool) -> Fut,
        Fut: Future<Output = Result<Taken<Fetched<L>>, ProviderError>>,
    {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let alarm = self.alarm_of(&interest);
        let waiter = self.waiters.sit_as(interest, worker);
        let (mut due, mut past) = (None, PastTorn::default());
        loop {
            let looking = waiter.look();
            let fetched = match fetch(past.leaves_rows).await {
                Err(error) if self.goes_past_torn(&error, &mut past).await? => continue,
                fetched => fetched?,
            };
            past = PastTorn::default();
            looking.answered();
            if fetched.get().is_some_and(|fetched| fetched.lease.is_some()) {
                return Ok(Some(fetched));
            }
            drop(fetched);
            if let Some(due) = due.take() {
                DueMoment::found_nothing(due);
            }
            match self.rest(&waiter, alarm, deadline).await {
                Rested::Look(moment) => due = moment,
                Rested::TimedOut => return Ok(None),
            }
        }
    }

    /// Looks until there is something to fetch, or the time-out has passed.
    pub(crate) async fn look_until(
        &self,
        interest: Interest,
        look: FetchLook,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let alarm = self.alarm_of(&interest);
        let waiter = self.waiters.sit(interest);
        let mut due = None;
        loop {
            let looking = waiter.look();
            let found = self.write_past_torn("wait", look).await?;
            looking.answered();
            if found {
                return Ok(Waited::Woken);
            }
            if let Some(due) = due.take() {
                DueMoment::found_nothing(due);
            }
            match self.rest(&waiter, alarm, deadline).await {
                Rested::Look(moment) => due = moment,
                Rested::TimedOut => return Ok(Waited::TimedOut),
            }
        }
    }

    /// Looks at an instance until the wait for it is over, or the time-out has passed.
    pub(crate) async fn watch(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(wait.interest());
        loop {
            let looking = waiter.look();
            let seen = self.state(wait.instance()).await?;
            looking.answered();
            if let Some(waited) = wait.saw(seen) {
                return Ok(waited);
            }
            if let Rested::TimedOut = self.rest(&waiter, None, deadline).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Returns the alarm of the rows that a call waits for; none for a change of an instance.
    fn alarm_of(&self, interest: &Interest) -> Option<&Alarm> {
        match interest {
            Interest::Turn => Some(&self.alarms.turns),
            Interest::Work { .. } | Interest::AnyWork => Some(&self.alarms.work),
            Interest::Instance(_) | Interest::End(_) => None,
        }
    }

    /// Waits until a look may find something: the call is woken, or the next moment has come and no other
    /// call looks for it.
    async fn rest<'a>(&self, waiter: &Waiter, alarm: Option<&'a Alarm>, deadline: Duration) -> Rested<'a> {
        let clock = self.clock.clock();
        if clock.monotonic() >= deadline {
            return Rested::TimedOut;
        }
        loop {
            let mut is_earlier = pin!(async {
                match alarm {
                    Some(alarm) => alarm.is_earlier.notified().await,
                    None => std::future::pending().await,
                }
            });
            // Registers for the notice before the moment is read, so that no notice is missed.
            let noticed = poll_fn(|context| Poll::Ready(is_earlier.as_mut().poll(context))).await;
            if noticed.is_ready() {
                continue;
            }
            let monotonic = clock.monotonic();
            let next = alarm.and_then(Alarm::next);
            let wait = next.map(|at| u64::try_from(at.saturating_sub(self.clock.now_ms())).unwrap_or(0));
            let due = wait.map(|wait| monotonic.saturating_add(Duration::from_millis(wait)));
            tokio::select! {
                biased;
                () = waiter.called() => return Rested::Look(None),
                () = is_earlier => {}
                () = clock.sleep_until(due.map_or(deadline, |due| due.min(deadline))) => {
                    if clock.monotonic() >= deadline {
                        return Rested::Look(None);
                    }
                    if let Some(moment) = alarm.and_then(|alarm| alarm.take(self.clock.now_ms())) {
                        return Rested::Look(Some(moment));
                    }
                }
            }
        }
    }
}

/// How a rest ended.
enum Rested<'a> {
    /// A look may find something; with the moment that the look is for, if it is for one.
    Look(Option<DueMoment<'a>>),
    TimedOut,
}

impl Db<'_> {
    /// Notes the next time at which a turn becomes runnable by itself, or at which a worker counts as gone.
    /// Only reads.
    pub(crate) fn note_next_turn(&self, silence: Option<i64>) -> DbResult<()> {
        let next = self.maybe(sql!("turn/ready/next_moment"), [self.now])?;
        self.moments.borrow_mut().turn.know(earlier(next, silence));
        Ok(())
    }

    /// Notes the next time at which an activity becomes runnable by itself, or at which a worker counts as
    /// gone. Only reads.
    pub(crate) fn note_next_work(&self, silence: Option<i64>) -> DbResult<()> {
        let next = self.maybe(sql!("work/ready/next_moment"), [self.now])?;
        self.moments.borrow_mut().work.know(earlier(next, silence));
        Ok(())
    }
}
