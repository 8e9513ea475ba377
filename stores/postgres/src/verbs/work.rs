//! Work: leasing activities to the workers that may run them. Each call serves many requests. [`finish`]
//! takes the outcome of an activity, [`tries`] the end of a try that is repeated.

pub(crate) mod finish;
pub(crate) mod tries;

use std::borrow::Cow;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{SessionKey, WorkItem};
use steadfast_store::rules::{
    UNKNOWN, check_work, ended_work_lease, no_such_lease, stored_scope, stored_tag, stored_tags, tag_of,
    to_json, withdrawn_work,
};
use steadfast_store::{
    Attempt, Claim, ClaimedSession, LeaseToken, NewWork, Owner, ProviderError, SessionScope, Woken,
    WorkLease, WorkRequest, WorkerId,
};
use tokio_postgres::Row;

use crate::link::db::{Db, column, millis, time, unsigned};
use crate::link::error::is_damage;
use crate::link::escape::{escape, unescape};
use crate::link::statement::calls;
use crate::merge::calls::{LeaseAbandon, LeaseRenewal};
use crate::merge::queue::Answers;
use crate::merge::undelivered::{Guarded, UndeliveredLease, UndeliveredWork};
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;
use crate::verbs::poll::{NextPoll, PollResult};
use crate::verbs::session::{fenced, keys, read_key};
use crate::verbs::turn::unread::{PassOver, SlowRead};
use crate::verbs::turn::{read_beside, read_item};
use crate::verbs::work::tries::{read_count, read_tries};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "work/enqueue_work",
    "work/queue_work",
    "work/lock_work",
    "work/withdraw_work",
    "work/fetch/sweep_work",
    "work/fetch/next_work_moment",
    "work/fetch/find_bare_work",
    "work/fetch/find_free_work",
    "work/fetch/lease_free_work",
    "work/fetch/find_session_work",
    "work/fetch/lease_session_work",
    "work/fetch/fetch_work_items",
    "work/finish_work_items",
    "work/renew_work_items",
    "work/give_work_back",
    "work/abandon_work_items",
    "work/end_tries",
    "work/unlease_work_items",
    "work/fetch/pass_over_work",
];

calls! {
    /// Leases activities for requests that ask for the same (S5, S13, S14, S18).
    FetchWork<'a> => fetch_work_items on FetchWork {
        count: i32,
        /// The stored tags to take; `None` for all.
        tags: Option<Vec<Cow<'a, str>>>,
        worker_ids: Vec<Cow<'a, str>>,
        lock_ms: i64,
        /// The process that owns sessions; `None` takes no work of sessions.
        owner: Option<Cow<'a, str>>,
        incarnation: Option<i64>,
        session_lock_ms: Option<i64>,
        /// Whether sessions without an owner are claimed.
        claim: bool,
        only_scopes: Vec<Cow<'a, str>>,
        only_sessions: Vec<Cow<'a, str>>,
        out_scopes: Vec<Cow<'a, str>>,
        out_sessions: Vec<Cow<'a, str>>,
        now_ms: Option<i64>,
        /// Whether the commit does not wait for the disk, unless work of a session is taken.
        unsynced: bool,
        /// Whether an activity that the database cannot read is leased without its text.
        careful: bool,
        /// The worker that asks; `None` takes work of any route.
        worker: Option<Cow<'a, str>>,
        /// Whether work with terms is taken, as this build does.
        terms: bool,
    }

    /// Counts and delays a leased activity that cannot be read, or sets it aside (S15).
    PassOverWork<'a> => pass_over_work {
        token: Cow<'a, str>,
        reason: Cow<'a, str>,
        retry_ms: i64,
        /// `None` for an activity that was not read in time: it is neither counted nor set aside.
        max_attempts: Option<i32>,
        claimed: bool,
        now_ms: Option<i64>,
        /// Whether the database cannot read the text of the activity.
        lost: bool,
    }

    /// Queues an activity that no turn asked for.
    EnqueueWork<'a> => enqueue_work {
        item: String,
        instance: Cow<'a, str>,
        execution: i64,
        activity: i64,
        tag: Cow<'a, str>,
        scope: Option<Cow<'a, str>>,
        session: Option<Cow<'a, str>>,
        traceparent: Option<Cow<'a, str>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        /// The terms of its call, as JSON.
        call: Option<String>,
    }

    /// Extends the leases of activities (S4).
    RenewWork<'a> => renew_work_items {
        tokens: Vec<Cow<'a, str>>,
        extend_ms: Vec<i64>,
        now_ms: Option<i64>,
    }

    /// Ends the leases of activities without an outcome (S4, S6).
    AbandonWork<'a> => abandon_work_items {
        tokens: Vec<Cow<'a, str>>,
        delay_ms: Vec<Option<i64>>,
        uncounted: Vec<bool>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }

    /// Abandons leases that were never delivered (S5).
    AbandonUndeliveredWork<'a> => unlease_work_items {
        tokens: Vec<Cow<'a, str>>,
        /// Whether the fetch claimed the session of the work.
        claimed: Vec<bool>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }
}

/// The operation of all statements of a fetch.
const FETCH: &str = "fetch_work";

/// Bounds how many calls one fetch makes while it meets activities that cannot be read; the next fetch goes
/// on from there.
const MAX_PASSES: usize = 8;

/// Asks for an activity.
#[derive(Debug, Clone)]
pub(crate) struct WorkFetch {
    group: WorkGroup,
    worker_id: String,
}

/// The conditions that requests must share to be served by one call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WorkGroup {
    /// The stored tags; `None` for all.
    tags: Option<Vec<String>>,
    lock_ms: i64,
    session: Option<SessionGroup>,
    worker: Option<WorkerId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionGroup {
    owner: Owner,
    lock_ms: i64,
    scope: SessionScope,
    leave_out: Vec<SessionKey>,
}

impl WorkFetch {
    pub(crate) fn of(request: &WorkRequest) -> Self {
        let group = WorkGroup {
            tags: stored_tags(&request.tags),
            lock_ms: millis(request.lock_timeout),
            session: request.session.as_ref().map(|session| SessionGroup {
                owner: session.owner.clone(),
                lock_ms: millis(session.lock_timeout),
                scope: session.scope.clone(),
                leave_out: session.leave_out.clone(),
            }),
            worker: request.worker.clone(),
        };
        Self { group, worker_id: request.worker_id.clone() }
    }

    /// Tells whether one call can serve this request and the other one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.group == other.group
    }
}

impl WorkGroup {
    /// Makes the call for workers that want an activity each.
    fn call<'a>(&'a self, workers: impl Iterator<Item = &'a str>, now_ms: Option<i64>) -> FetchWork<'a> {
        let session = self.session.as_ref();
        let owner = session.map(|session| &session.owner);
        let (only, claim) = match session.map(|session| &session.scope) {
            Some(SessionScope::Only(serving)) => (serving.as_slice(), false),
            Some(SessionScope::Claim) => (&[][..], true),
            None => (&[][..], false),
        };
        let (only_scopes, only_sessions) = keys(only);
        let (out_scopes, out_sessions) = keys(session.map_or(&[], |session| &session.leave_out));
        let worker_ids: Vec<_> = workers.map(escape).collect();
        FetchWork {
            count: i32::try_from(worker_ids.len()).unwrap_or(i32::MAX),
            tags: self.tags.as_ref().map(|tags| tags.iter().map(|tag| escape(tag)).collect()),
            worker_ids,
            lock_ms: self.lock_ms,
            owner: owner.map(|owner| escape(&owner.id)),
            incarnation: owner.and_then(|owner| owner.incarnation).map(time),
            session_lock_ms: session.map(|session| session.lock_ms),
            claim,
            only_scopes,
            only_sessions,
            out_scopes,
            out_sessions,
            now_ms,
            unsynced: true,
            careful: false,
            worker: self.worker.as_ref().map(|worker| escape(&worker.0)),
            terms: true,
        }
    }
}

/// What the calls of a fetch found.
#[derive(Debug, Default)]
struct FetchedWork {
    /// A lease for each request that got one.
    leases: Vec<Option<WorkLease>>,
    /// Whether ready work was found that other transactions have locked: look again soon.
    again: bool,
    /// The next moment at which work becomes ready by time alone, in the store's time.
    next: Option<i64>,
    /// The store's time at the call.
    now: i64,
    /// How many turns the fetch made runnable: instances that watch the sessions that it claimed.
    turns: usize,
}

/// An activity that one call leased. `place` is the index of its worker in that call.
#[derive(Debug)]
enum LeasedWork {
    Readable { place: usize, lease: Box<WorkLease> },
    Unreadable(UnreadableWork),
}

/// A leased activity that cannot be read.
#[derive(Debug)]
struct UnreadableWork {
    token: String,
    instance: Option<String>,
    reason: String,
    claimed: bool,
    /// Whether the database cannot read its text.
    is_lost: bool,
}

impl Backend {
    /// Leases for each request the oldest activity that it accepts (S13, S14, S18). All requests are alike.
    /// An activity that cannot be read is passed over, and the fetch goes on behind it (S15).
    pub(crate) async fn fetch_work(&self, asked: Vec<WorkFetch>) -> Answers<PollResult<Guarded<WorkLease>>> {
        self.undelivered.abandon_all().await;
        let Some(WorkFetch { group, .. }) = asked.first() else { return Ok(Vec::new()) };
        let leases = asked.iter().map(|_| None).collect();
        let mut fetched = FetchedWork { leases, ..FetchedWork::default() };
        for pass in 0..MAX_PASSES {
            let wanting: Vec<usize> =
                (0..asked.len()).filter(|place| fetched.leases[*place].is_none()).collect();
            let workers = wanting.iter().map(|place| asked[*place].worker_id.as_str());
            let (rows, slow) = self.db.work_rows(group.call(workers, self.db.now())).await;
            let leased = match rows.and_then(|rows| fetched.read(group, &rows)) {
                Ok(leased) => leased,
                // Work that earlier passes leased stays leased. The next fetch looks for the rest.
                Err(error) if pass > 0 => {
                    tracing::debug!(target: "steadfast::store", %error, "a fetch ended early");
                    fetched.again = true;
                    break;
                }
                // A fetch that failed is not repeated for each request: it would fail for each.
                Err(error) => return Ok(asked.iter().map(|_| Err(error.clone())).collect()),
            };
            if !self.db.keep_readable(leased, &wanting, &mut fetched, slow).await {
                break;
            }
            fetched.again = true;
        }
        if fetched.turns > 0 {
            let woken = Woken { turns: fetched.turns, ..Woken::default() };
            self.waiters.wake(&woken);
            self.notify_others(woken);
        }
        let next = NextPoll::after(fetched.again, fetched.next, fetched.now);
        let answer = |leased: Option<WorkLease>| {
            Ok(leased.map_or(PollResult::Nothing(next), |leased| {
                let lease = UndeliveredLease::Work(UndeliveredWork::of(&leased));
                PollResult::Found(Guarded::new(leased, lease, &self.undelivered))
            }))
        };
        Ok(fetched.leases.into_iter().map(answer).collect())
    }

    /// Queues an activity that no turn asked for.
    pub(crate) async fn enqueue_work(&self, work: &NewWork) -> Result<(), ProviderError> {
        const OPERATION: &str = "enqueue_work";
        check_work(OPERATION, &work.item)?;
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
            return Err(ProviderError::permanent(OPERATION, "only activities are work"));
        };
        let session = work.session_key();
        let stored = stored_tag(tag.as_deref());
        let woken = Woken { work: vec![(tag.clone(), session.is_some())], ..Woken::default() };
        let call = EnqueueWork {
            item: to_json(OPERATION, &work.item)?,
            instance: escape(instance),
            execution: time(*execution_id),
            activity: time(*id),
            tag: escape(&stored),
            scope: session.as_ref().map(|key| escape(stored_scope(key))),
            session: session.as_ref().map(|key| escape(&key.session_id)),
            traceparent: work.traceparent.as_deref().map(escape),
            now_ms: self.db.now(),
            notify: self.payload(&woken),
            me: &self.me,
            call: work.call.as_ref().map(|call| to_json(OPERATION, call)).transpose()?,
        };
        self.db.rows(OPERATION, call.statement()).await?;
        self.waiters.wake(&woken);
        Ok(())
    }

    /// Extends the leases of activities (S4).
    pub(crate) async fn renew_work(&self, asked: Vec<LeaseRenewal>) -> Answers<()> {
        const OPERATION: &str = "renew";
        let call = RenewWork {
            tokens: asked.iter().map(|renewal| escape(&renewal.token)).collect(),
            extend_ms: asked.iter().map(|renewal| millis(renewal.extend_for)).collect(),
            now_ms: self.db.now(),
        };
        let rows = self.db.rows(OPERATION, call.statement()).await?;
        rows.iter().zip(&asked).map(|(row, asked)| judge_lease(OPERATION, row, &asked.token)).collect()
    }

    /// Abandons the leases of activities, so that the activities can be leased again (S6). Each request gets
    /// its own answer.
    pub(crate) async fn abandon_work(&self, asked: Vec<LeaseAbandon>) -> Answers<()> {
        const OPERATION: &str = "abandon";
        let any_work = Woken { any_work: true, ..Woken::default() };
        let call = AbandonWork {
            tokens: asked.iter().map(|abandon| escape(&abandon.token)).collect(),
            delay_ms: asked.iter().map(|abandon| abandon.how.retry_after.map(millis)).collect(),
            uncounted: asked.iter().map(|abandon| abandon.how.attempt == Attempt::Uncounted).collect(),
            now_ms: self.db.now(),
            notify: self.payload(&any_work),
            me: &self.me,
        };
        let rows = self.wake_if_unsure(self.db.rows(OPERATION, call.statement()).await, &any_work)?;
        self.wake_for_ended(OPERATION, &rows, asked.iter().map(|abandon| abandon.token.as_str()))
    }

    /// Reads the answers to calls that ended the leases of these tokens, one row for each, and wakes the
    /// fetches that wait for such activities.
    pub(super) fn wake_for_ended<'a>(
        &self,
        operation: &'static str,
        rows: &[Row],
        tokens: impl Iterator<Item = &'a str>,
    ) -> Answers<()> {
        let mut answers = Vec::with_capacity(rows.len());
        let mut woken = Woken::default();
        for (row, token) in rows.iter().zip(tokens) {
            let answer = judge_lease(operation, row, token)?;
            if answer.is_ok() {
                let tag: String = column(operation, row, "tag")?;
                woken.work.push((read_tag(tag), column(operation, row, "has_session")?));
            }
            answers.push(answer);
        }
        self.waiters.wake(&woken);
        Ok(answers)
    }
}

impl Db {
    /// Makes the call of a fetch. If an activity fails the whole call, the next one leases it without its
    /// text (S15); returned is also whether that is because it was not read in time.
    async fn work_rows(
        &self,
        mut call: FetchWork<'_>,
    ) -> (Result<Vec<Row>, ProviderError>, Option<SlowRead>) {
        let began = SystemClock.monotonic();
        let error = match self.rows(FETCH, call.statement()).await {
            Ok(rows) => return (Ok(rows), None),
            Err(error) => error,
        };
        let slow = self.limit_met(FETCH, &error, began).await.map(|limit| SlowRead { limit });
        if slow.is_none() && !is_damage(&error) {
            return (Err(error), None);
        }
        tracing::debug!(target: "steadfast::store", %error, "an activity cannot be read");
        call.careful = true;
        call.now_ms = self.now();
        if let Some(slow) = slow {
            for lock_ms in std::iter::once(&mut call.lock_ms).chain(&mut call.session_lock_ms) {
                *lock_ms = millis(slow.lease(Duration::from_millis(unsigned(*lock_ms))));
            }
        }
        (self.rows(FETCH, call.statement()).await, slow)
    }

    /// Gives each readable lease to its request and passes over the others. Returns whether an activity could
    /// not be read. With `slow`, texts are missing because the time was up: the first of these activities
    /// took it, and those behind it are given back.
    async fn keep_readable(
        &self,
        leased: Vec<LeasedWork>,
        wanting: &[usize],
        fetched: &mut FetchedWork,
        slow: Option<SlowRead>,
    ) -> bool {
        let mut unreadable = false;
        let mut behind: Option<Vec<UndeliveredWork>> = None;
        for leased in leased {
            match leased {
                LeasedWork::Readable { place, lease } => {
                    let place = wanting.get(place).and_then(|place| fetched.leases.get_mut(*place));
                    if let Some(empty) = place {
                        *empty = Some(*lease);
                    }
                }
                LeasedWork::Unreadable(work) => {
                    unreadable = true;
                    let slow = slow.filter(|_| work.is_lost);
                    if let (Some(_), Some(behind)) = (slow, &mut behind) {
                        behind.push(UndeliveredWork { token: work.token, claimed: work.claimed });
                        continue;
                    }
                    behind = behind.or(slow.map(|_| Vec::new()));
                    if let Err(error) = self.pass_over_work(&work, slow).await {
                        tracing::debug!(
                            target: "steadfast::store",
                            %error,
                            "unreadable work was not passed over"
                        );
                    }
                }
            }
        }
        if let Some(behind) = behind.filter(|behind| !behind.is_empty()) {
            // A lease that is not given back expires by itself (S5).
            if let Err(error) = self.abandon_undelivered_work(&behind, None, "").await {
                tracing::debug!(target: "steadfast::store", %error, "a lease was not given back");
            }
        }
        unreadable
    }

    /// Counts an unreadable activity, delays it, and in the end sets it aside (S15). One that was not read in
    /// time is only delayed.
    async fn pass_over_work(
        &self,
        work: &UnreadableWork,
        slow: Option<SlowRead>,
    ) -> Result<(), ProviderError> {
        let UnreadableWork { token, instance, reason, claimed, is_lost } = work;
        let reason = if slow.is_some() { SlowRead::REASON } else { reason };
        let PassOver { retry, max_attempts } = PassOver::of(slow);
        let call = PassOverWork {
            token: escape(token),
            reason: escape(reason),
            retry_ms: millis(retry),
            max_attempts,
            claimed: *claimed,
            now_ms: self.now(),
            lost: *is_lost,
        };
        let Some(row) = self.one(FETCH, call.statement()).await? else { return Ok(()) };
        let attempts: i32 = column(FETCH, &row, "attempts")?;
        match column::<Option<i64>>(FETCH, &row, "aside")? {
            None if slow.is_some() => {
                tracing::warn!(target: "steadfast::store", instance, reason, "work held back");
            }
            None => {
                tracing::debug!(
                    target: "steadfast::store",
                    instance,
                    reason,
                    attempts,
                    "unreadable work passed over"
                );
            }
            Some(id) => {
                tracing::warn!(
                    target: "steadfast::store",
                    id,
                    instance,
                    reason,
                    attempts,
                    "unreadable work set aside"
                );
            }
        }
        Ok(())
    }

    /// Abandons leases that were never delivered, and undoes the claims of their fetches. No attempt is
    /// counted (S5).
    pub(crate) async fn abandon_undelivered_work(
        &self,
        leases: &[UndeliveredWork],
        notify: Option<String>,
        me: &str,
    ) -> Result<(), ProviderError> {
        let call = AbandonUndeliveredWork {
            tokens: leases.iter().map(|lease| escape(&lease.token)).collect(),
            claimed: leases.iter().map(|lease| lease.claimed).collect(),
            now_ms: self.now(),
            notify,
            me,
        };
        self.rows(FETCH, call.statement()).await.map(drop)
    }
}

impl FetchedWork {
    /// Reads the rows of one call.
    fn read(&mut self, group: &WorkGroup, rows: &[Row]) -> Result<Vec<LeasedWork>, ProviderError> {
        let mut leased = Vec::new();
        let (mut again, mut next, mut now, mut turns) = (false, None, 0, 0);
        for row in rows {
            now = column(FETCH, row, "now_ms")?;
            let told: Option<i32> = column(FETCH, row, "told")?;
            turns += told.and_then(|told| usize::try_from(told).ok()).unwrap_or(0);
            match column::<&str>(FETCH, row, "kind")? {
                "lease" => leased.push(read_lease(row)?),
                "fenced" => {
                    let owner = group.session.as_ref().map(|session| &session.owner);
                    return Err(fenced(FETCH, owner, column(FETCH, row, "incarnation")?));
                }
                _ => {
                    again = column(FETCH, row, "again")?;
                    next = column(FETCH, row, "next_ms")?;
                }
            }
        }
        (self.again, self.next, self.now) = (again, next, now);
        self.turns += turns;
        Ok(leased)
    }
}

fn read_lease(row: &Row) -> Result<LeasedWork, ProviderError> {
    let place: i32 = column(FETCH, row, "place")?;
    let token: String = column(FETCH, row, "token")?;
    let session = read_claim(row)?;
    let text: Option<&str> = column(FETCH, row, "item")?;
    let terms: Option<&str> = column(FETCH, row, "call")?;
    let (item, call) = match read_item(text).and_then(|item| Ok((item, read_beside(terms)?))) {
        Ok(read) => read,
        Err(reason) => {
            let instance: Option<String> = column(FETCH, row, "instance_id")?;
            return Ok(LeasedWork::Unreadable(UnreadableWork {
                token,
                instance: instance.map(unescape),
                reason,
                claimed: made_a_claim(session.as_ref()),
                is_lost: text.is_none(),
            }));
        }
    };
    let attempt: i32 = column(FETCH, row, "attempt")?;
    let name = |name: &str| -> Result<String, ProviderError> {
        let known: Option<String> = column(FETCH, row, name)?;
        Ok(known.map_or_else(|| UNKNOWN.to_owned(), unescape))
    };
    let traceparent: Option<String> = column(FETCH, row, "traceparent")?;
    let lease = WorkLease {
        token: LeaseToken::Work(token),
        item,
        attempt: u32::try_from(attempt).unwrap_or(0),
        delivery: read_count(FETCH, row, "delivery")?,
        call,
        tries: read_tries(FETCH, row)?,
        orchestration: name("orchestration")?,
        orchestration_version: name("version")?,
        traceparent: traceparent.map(unescape),
        session,
        waiting_since_ms: Some(unsigned(column(FETCH, row, "since")?)),
        now_ms: unsigned(column(FETCH, row, "now_ms")?),
    };
    Ok(LeasedWork::Readable { place: usize::try_from(place - 1).unwrap_or(0), lease: Box::new(lease) })
}

/// Reads the session of a leased activity, and whether the fetch claimed it.
fn read_claim(row: &Row) -> Result<Option<ClaimedSession>, ProviderError> {
    let Some(session_id) = column::<Option<String>>(FETCH, row, "session_id")? else { return Ok(None) };
    // A fetch without an owner is given no activity of a session, so there is an epoch.
    let claim = match column::<&str>(FETCH, row, "claim")? {
        "new" => Claim::New,
        "taken" => Claim::Taken { from: unescape(column(FETCH, row, "claimed_from")?) },
        _ => Claim::Held,
    };
    let key = read_key(column(FETCH, row, "session_scope")?, session_id);
    Ok(Some(ClaimedSession { key, epoch: unsigned(column(FETCH, row, "epoch")?), claim }))
}

/// Tells whether a fetch claimed the session of an activity, rather than having it before.
pub(crate) fn made_a_claim(session: Option<&ClaimedSession>) -> bool {
    session.is_some_and(|session| matches!(session.claim, Claim::New | Claim::Taken { .. }))
}

/// Returns the tag of work from a column that holds it without a route.
pub(crate) fn read_tag(stored: String) -> Option<String> {
    tag_of(&unescape(stored)).map(str::to_owned)
}

/// Reads the answer to a request that named a lease: `LeaseLost` if the lease has expired or its token is
/// unknown, `Withdrawn` if its work was withdrawn.
pub(crate) fn judge_lease(
    operation: &'static str,
    row: &Row,
    token: &str,
) -> Result<Result<(), ProviderError>, ProviderError> {
    Ok(match column::<&str>(operation, row, "code")? {
        "ok" => Ok(()),
        "ended" => Err(ended_work_lease(operation)),
        "withdrawn" => Err(withdrawn_work(operation)),
        _ => Err(no_such_lease(operation, token)),
    })
}
