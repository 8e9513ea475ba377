//! Work: leasing activities to workers, and accepting their outcomes.

pub(crate) mod call;
pub(crate) mod tries;

use rusqlite::params;
use steadfast_core::{CallTerms, ScheduledActivityIdentifier, SessionKey, WorkItem};
use steadfast_store::rules::{
    UnreadableText, ended_work_lease, no_such_lease, read_text, stored_tags, tag_of, withdrawn_work,
};
use steadfast_store::{
    Abandon, Attempt, ClaimedSession, MAX_UNREADABLE_ATTEMPTS, ProviderError, Queue, SessionRequest,
    SessionScope, Tries, UNREADABLE_RETRY, WorkRequest,
};

use crate::link::db::{Db, sql, text_of, text_or_none, time};
use crate::link::error::DbResult;
use crate::merge::request::Undo;
use crate::verbs::message::NewMessage;
use crate::verbs::torn::Removal;
use crate::verbs::torn::lost::Visits;
use crate::verbs::turn::{Fetched, SWEEP};
use crate::verbs::worker::route::{ROUTED, is_routed, is_routed_tag, session_of};

use self::call::{CALLED_HEADS, WITHOUT_SESSION, called_tag, uncalled_tag};
use self::tries::StoredCall;

/// An activity that a fetch has leased, before it is handed to the caller.
#[derive(Debug)]
pub(crate) struct LeasedWork {
    pub(crate) token: String,
    pub(crate) item: WorkItem,
    pub(crate) attempt: u32,
    pub(crate) delivery: u32,
    pub(crate) call: Option<Box<CallTerms>>,
    pub(crate) tries: Tries,
    /// Whether the activity was never leased before.
    is_first: bool,
    pub(crate) orchestration: Option<(String, String)>,
    pub(crate) traceparent: Option<String>,
    pub(crate) session: Option<ClaimedSession>,
    pub(crate) since: i64,
    pub(crate) now: i64,
}

/// Abandons the activity, and releases the session if no other fetch has used its claim: a dropped fetch
/// leaves no lease (S5).
impl Undo for LeasedWork {
    fn undo(&self, db: &Db<'_>) -> DbResult<()> {
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        if let Some(place) = db.maybe(sql!("work/lease/holder"), [&self.token])? {
            db.make_work_available(place, how)?;
            db.undo_delivery(place, self.is_first)?;
        }
        self.session.as_ref().map_or(Ok(()), |session| db.undo_use(&session.key, session.epoch))
    }
}

/// An activity as it is stored.
struct WorkRow {
    seq: i64,
    key: i64,
    tag: String,
    session: Option<i64>,
    attempts: u32,
    item: String,
    traceparent: Option<String>,
    /// The time since which the activity can be leased.
    since: i64,
    is_ready: bool,
    call: StoredCall,
}

const REMOVED: Removal = Removal { remove: sql!("work/delete"), give_up: sql!("torn/work/instead/of_one") };

/// The heads of sessions that a fetch looks at.
pub(crate) enum Heads<'a> {
    /// Those of work that is not routed, of these plain stored tags or of all.
    Unrouted(Option<&'a [String]>),
    /// Those of work on one route, by its stored tag.
    Routed(String),
}

impl Heads<'_> {
    /// Returns the marks in front of the stored owners of the heads, each with the stored tags; `None` for
    /// all.
    fn looks(&self) -> Vec<(&'static str, Option<Vec<String>>)> {
        match self {
            Self::Routed(tag) => vec![(ROUTED, Some(vec![tag.clone()]))],
            Self::Unrouted(tags) => {
                let called = tags.map(|tags| tags.iter().map(|tag| called_tag(tag)).collect());
                vec![("", tags.map(<[String]>::to_vec)), (CALLED_HEADS, called)]
            }
        }
    }

    /// Tells whether a head of this stored tag is among them.
    fn accepts(&self, stored: &str) -> bool {
        match self {
            Self::Routed(tag) => tag == stored,
            Self::Unrouted(tags) => {
                let plain = uncalled_tag(stored);
                !is_routed_tag(stored) && tags.is_none_or(|tags| tags.iter().any(|tag| tag == plain))
            }
        }
    }
}

/// The activity that a token holds.
enum HeldWork {
    Row {
        seq: i64,
        until: Option<i64>,
    },
    /// One that is listed as torn. Its token holds it until it is given up, because no other call can lease
    /// it; the end of its lease may not be readable.
    Torn {
        seq: i64,
    },
}

/// An activity that becomes ready: its place in the queue, session and stored tag.
type BecameReady = (i64, Option<i64>, String);

fn became_ready(row: &rusqlite::Row<'_>) -> rusqlite::Result<BecameReady> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

impl Db<'_> {
    pub(crate) fn fetch_work(&self, request: &WorkRequest) -> DbResult<Fetched<LeasedWork>> {
        if let Some(session) = &request.session {
            self.check_incarnation("fetch_work", &session.owner)?;
        }
        self.sweep_work()?;
        self.sweep_sessions()?;
        let mut lease = self.lease_oldest_work(request)?;
        if lease.is_none() && (self.end_impossible_work()? | self.end_impossible_sessions()?) {
            lease = self.lease_oldest_work(request)?;
        }
        if lease.is_none() {
            self.note_next_work(self.end_silence()?)?;
        }
        Ok(Fetched { lease })
    }

    fn lease_oldest_work(&self, request: &WorkRequest) -> DbResult<Option<LeasedWork>> {
        let mut visits = Visits::of("fetch_work");
        while let Some(seq) = self.oldest_work(request)? {
            visits.count(seq)?;
            if let Some(lease) = self.try_lease_work(seq, request)? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    /// Ends the leases of activities that end later than any lease can that was granted up to now: the wall
    /// clock was set back since (S16). True if there was one. They are rare, so a fetch looks for them only
    /// if it finds nothing else.
    fn end_impossible_work(&self) -> DbResult<bool> {
        let bounds = params![self.latest_grant(), SWEEP];
        let found = self.all(sql!("work/lease/impossible"), bounds, became_ready);
        let ended = found.and_then(|found| {
            let any = !found.is_empty();
            self.end_work_leases(found).map(|()| any)
        });
        ended.map_err(|fault| self.torn_fault_of_work(sql!("torn/work/rows/impossible"), bounds, fault))
    }

    /// Moves the rows that became runnable by time: activities whose time has come, or whose lease has ended.
    pub(crate) fn sweep_work(&self) -> DbResult<()> {
        self.retry_torn(Queue::Worker)?;
        let bounds = params![self.now, SWEEP];
        self.move_due_work()
            .map_err(|fault| self.torn_fault_of_work(sql!("torn/work/rows/due"), bounds, fault))
    }

    fn move_due_work(&self) -> DbResult<()> {
        let due = self.all(sql!("work/ready/due"), params![self.now, SWEEP], became_ready)?;
        self.make_work_ready(due)?;
        let ended = self.all(sql!("work/lease/ended"), params![self.now, SWEEP], became_ready)?;
        self.end_work_leases(ended)
    }

    /// Ends the lease of a token if its time has come, as a sweep does.
    pub(crate) fn sweep_work_of(&self, token: &str) -> DbResult<()> {
        let Some(HeldWork::Row { seq, until: Some(until) }) = self.held_work(token)? else { return Ok(()) };
        if until > self.now {
            return Ok(());
        }
        let place = self.one(sql!("work/place"), [seq], |row| Ok((seq, row.get(0)?, row.get(1)?)));
        let ended = place.and_then(|place| self.end_work_leases(place.into_iter().collect()));
        ended.map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))
    }

    /// Ends leases that have expired. They are remembered: their holders may excuse the deliveries.
    fn end_work_leases(&self, found: Vec<BecameReady>) -> DbResult<()> {
        for (seq, ..) in &found {
            self.remember_expired_work(*seq)?;
        }
        self.make_work_ready(found)
    }

    fn make_work_ready(&self, found: Vec<BecameReady>) -> DbResult<()> {
        for (seq, session, tag) in found {
            self.run(sql!("work/ready/make"), [seq])?;
            self.work_is_ready(session, &tag)?;
        }
        Ok(())
    }

    pub(crate) fn work_is_ready(&self, session: Option<i64>, tag: &str) -> DbResult<()> {
        self.wake_work(session, tag);
        session_of(session).map_or(Ok(()), |session| self.refresh_head(session, tag))
    }

    /// Wakes waiting fetches for an activity. One that is routed is not given to every worker, so all fetches
    /// look.
    pub(crate) fn wake_work(&self, session: Option<i64>, tag: &str) {
        let mut woken = self.woken.borrow_mut();
        if is_routed(session, tag) {
            woken.any_work = true;
        } else {
            let tag = tag_of(uncalled_tag(tag)).map(str::to_owned);
            woken.work.push((tag, session_of(session).is_some()));
        }
    }

    /// Returns the oldest activity that the request accepts. The cost is a few index lookups for each tag,
    /// however much is queued (S18, S20).
    fn oldest_work(&self, request: &WorkRequest) -> DbResult<Option<i64>> {
        let tags = stored_tags(&request.tags);
        let mut oldest = self.oldest_free(tags.as_deref())?;
        if let Some(session) = &request.session {
            let found = self.oldest_of_sessions(session, &Heads::Unrouted(tags.as_deref()))?;
            oldest = earlier(oldest, found);
        }
        self.oldest_routed_work(request, oldest)
    }

    /// Returns the oldest activity without a session of some tags, or of all, with terms or without.
    fn oldest_free(&self, tags: Option<&[String]>) -> DbResult<Option<i64>> {
        let Some(tags) = tags else {
            let free = self.maybe(sql!("work/ready/oldest_free_of_any"), [])?;
            return Ok(earlier(free, self.maybe(sql!("work/ready/oldest_called_of_any"), [])?));
        };
        let free = tags.iter().map(|tag| {
            let free = self.maybe(sql!("work/ready/oldest_free"), [tag])?;
            let called = self.maybe(sql!("session/head/first_of_tag"), params![WITHOUT_SESSION, tag])?;
            Ok(earlier(free, called))
        });
        min_of(free)
    }

    /// Returns the oldest activity of the sessions that a request may serve.
    pub(crate) fn oldest_of_sessions(
        &self,
        request: &SessionRequest,
        heads: &Heads<'_>,
    ) -> DbResult<Option<i64>> {
        let left_out = self.known_sessions(&request.leave_out)?;
        match &request.scope {
            SessionScope::Only(serving) => {
                let mut oldest = None;
                for session in self.known_sessions(serving)? {
                    if !left_out.contains(&session) && self.is_held_by(session, &request.owner)? {
                        oldest = earlier(oldest, self.head_of(session, heads)?);
                    }
                }
                Ok(oldest)
            }
            SessionScope::Claim => {
                let mut oldest = None;
                for (mark, tags) in heads.looks() {
                    for owner in [mark.to_owned(), format!("{mark}:{}", request.owner.id)] {
                        oldest = earlier(oldest, self.oldest_head(&owner, tags.as_deref(), &left_out)?);
                    }
                }
                Ok(oldest)
            }
        }
    }

    /// Returns the oldest ready activity of the sessions of an owner, without the sessions in `left_out`. The
    /// owner `''` stands for sessions that are not owned.
    fn oldest_head(&self, owner: &str, tags: Option<&[String]>, left_out: &[i64]) -> DbResult<Option<i64>> {
        // A session has one head for a tag, so one row more than there are sessions left out is enough.
        let bound = time(left_out.len() as u64) + 1;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let first = |rows: &[(i64, i64)]| {
            rows.iter().find(|(_, session)| !left_out.contains(session)).map(|(head, _)| *head)
        };
        if let Some(tags) = tags {
            let heads = tags.iter().map(|tag| {
                Ok(first(&self.all(sql!("work/ready/heads"), params![owner, tag, bound], read)?))
            });
            return min_of(heads);
        }
        // A session may have many heads of different tags: all heads of a session that is left out are
        // skipped.
        let mut after = 0;
        loop {
            let rows = self.all(sql!("work/ready/heads_of_any"), params![owner, bound, after], read)?;
            match (first(&rows), rows.last()) {
                (None, Some((last, _))) if rows.len() as i64 == bound => after = *last,
                (found, _) => return Ok(found),
            }
        }
    }

    fn head_of(&self, session: i64, looked_for: &Heads<'_>) -> DbResult<Option<i64>> {
        let heads = self.all(sql!("work/ready/heads_of_session"), [session], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let accepted = heads.into_iter().filter(|(tag, _)| looked_for.accepts(tag));
        Ok(accepted.map(|(_, head)| head).min())
    }

    /// Leases an activity. One that cannot be read is counted and delayed, and in the end set aside (S15).
    fn try_lease_work(&self, seq: i64, request: &WorkRequest) -> DbResult<Option<LeasedWork>> {
        let row = match self.one(sql!("work/show"), [seq], read) {
            Err(fault) => return Err(self.torn_fault(Queue::Worker, &[seq], None, fault)),
            Ok(row) => row,
        };
        let Some(mut row) = row.filter(|row| row.is_ready) else {
            self.pass_over_lost_work(seq)?;
            return Ok(None);
        };
        let item = match read_text::<WorkItem>(&row.item) {
            Ok(item) => item,
            Err(error) => {
                let Some(restored) = self.restored_work(seq, row.key, &row.item)? else {
                    self.pass_over_unreadable_work(&row, &error)?;
                    return Ok(None);
                };
                if (restored.session, &restored.tag) != (row.session, &row.tag) {
                    // Another request may accept it.
                    self.work_is_ready(row.session, &row.tag)?;
                    self.work_is_ready(restored.session, &restored.tag)?;
                    return Ok(None);
                }
                (row.attempts, row.traceparent, row.call) =
                    (restored.attempts, restored.traceparent, restored.call);
                restored.item
            }
        };
        match row.call.terms() {
            Ok(call) => self.lease_work(row, item, call, request).map(Some),
            Err(error) => {
                self.pass_over_unreadable_work(&row, &error)?;
                Ok(None)
            }
        }
    }

    fn lease_work(
        &self,
        row: WorkRow,
        item: WorkItem,
        call: Option<Box<CallTerms>>,
        request: &WorkRequest,
    ) -> DbResult<LeasedWork> {
        let session = session_of(row.session);
        let claimed = match (session, &request.session) {
            (Some(session), Some(request)) => Some(self.claim(session, request)?),
            _ => None,
        };
        let token = format!("work-{}", self.next()?);
        let epoch = claimed.as_ref().map(|claimed| time(claimed.epoch));
        let until = self.lease_until(request.lock_timeout)?;
        let columns = params![row.seq, token, until, epoch, request.worker_id, self.now];
        self.run(sql!("work/lease/grant"), columns)?;
        self.moments.borrow_mut().work.add(until);
        if is_routed(row.session, &row.tag) {
            self.run(sql!("route/work/taken"), [row.seq])?;
        }
        if let Some(session) = session {
            self.refresh_head(session, &row.tag)?;
        }
        let orchestration =
            self.one(sql!("work/scheduler"), [row.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_first = row.call.first_fetched.is_none();
        let first_fetched = row.call.first_fetched.or(Some(self.now));
        Ok(LeasedWork {
            token,
            item,
            attempt: row.attempts + 1,
            delivery: row.call.deliveries.saturating_add(1),
            call,
            tries: StoredCall { first_fetched, ..row.call }.tries(),
            is_first,
            orchestration,
            traceparent: row.traceparent,
            session: claimed,
            since: row.since,
            now: self.now,
        })
    }

    fn pass_over_unreadable_work(&self, row: &WorkRow, error: &UnreadableText) -> DbResult<()> {
        let attempts = row.attempts + 1;
        if attempts < MAX_UNREADABLE_ATTEMPTS {
            let until = self.after(UNREADABLE_RETRY);
            self.run(sql!("work/delay_unreadable"), params![row.seq, until])?;
            self.moments.borrow_mut().work.add(until);
        } else {
            let instance = self.one(sql!("instance/name"), [row.key], |row| row.get::<_, String>(0))?;
            let text = (row.item.as_str(), row.traceparent.as_deref());
            self.put_work_aside(row.seq, instance.as_deref(), text, error, attempts)?;
            self.remove_rows(&REMOVED, [row.seq])?;
        }
        session_of(row.session).map_or(Ok(()), |session| self.refresh_head(session, &row.tag))
    }

    /// Removes an activity and sends its completion (S11). A lease that is gone is told before a completion
    /// that cannot be sent.
    pub(crate) fn finish_work(
        &self,
        token: &str,
        completion: &Result<Option<NewMessage>, ProviderError>,
    ) -> DbResult<()> {
        let seq = self.work_holder("finish_work", token)?;
        let completion = completion.as_ref().map_err(Clone::clone)?;
        self.touch_session(seq)?;
        self.remove_work(seq)?;
        match completion {
            Some(new) => self.insert_message(&new.message, &new.text, self.now),
            None => Ok(()),
        }
    }

    pub(crate) fn renew_work(&self, token: &str, extend_for: std::time::Duration) -> DbResult<()> {
        let seq = self.work_holder("renew", token)?;
        let until = self.lease_until(extend_for)?;
        self.run(sql!("work/lease/renew"), params![seq, until])
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        self.keep_torn_work(seq, until)?;
        self.touch_session(seq)
    }

    pub(crate) fn abandon_work(&self, token: &str, how: Abandon) -> DbResult<()> {
        let seq = self.work_holder("abandon", token)?;
        self.make_work_available(seq, how)
    }

    pub(crate) fn make_work_available(&self, seq: i64, how: Abandon) -> DbResult<()> {
        let uncounted = i64::from(how.attempt == Attempt::Uncounted);
        let visible_at = how.retry_after.map(|delay| self.after(delay));
        self.run(sql!("work/lease/abandon"), params![seq, uncounted, visible_at, self.now])
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        if let Some(at) = visible_at {
            self.moments.borrow_mut().work.add(at);
        }
        self.work_is_available(seq)
    }

    /// Wakes waiting fetches for an activity whose lease has ended, and updates its head.
    fn work_is_available(&self, seq: i64) -> DbResult<()> {
        let place = self.one(sql!("work/place"), [seq], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        place.map_or(Ok(()), |(session, tag)| self.work_is_ready(session, &tag))
    }

    /// Removes an activity, queued or running. The holder of a running one learns of it at its next call
    /// (S12).
    pub(crate) fn withdraw(&self, activity: &ScheduledActivityIdentifier) -> DbResult<()> {
        let Some(key) = self.maybe(sql!("instance/key"), [&activity.instance])? else { return Ok(()) };
        let identity = params![key, time(activity.execution_id), time(activity.activity_id)];
        for seq in self.all(sql!("work/of_activity"), identity, |row| row.get::<_, i64>(0))? {
            self.withdraw_work(seq)?;
        }
        Ok(())
    }

    /// Removes an activity. If it is leased, its holder is told that it was withdrawn.
    pub(crate) fn withdraw_work(&self, seq: i64) -> DbResult<()> {
        let remembered = self
            .remember_withdrawn(seq)
            .map_err(|fault| self.torn_fault(Queue::Worker, &[seq], None, fault))?;
        if !remembered {
            self.remember_withdrawn_torn(seq)?;
        }
        self.remove_work(seq)
    }

    pub(crate) fn remove_work(&self, seq: i64) -> DbResult<()> {
        let place = self
            .one(sql!("work/place"), [seq], |row| Ok((session_of(row.get(0)?), row.get::<_, String>(1)?)));
        let place = match place {
            Err(fault) => return Err(self.torn_fault(Queue::Worker, &[seq], None, fault)),
            Ok(place) => place,
        };
        if place.is_none() {
            return self.give_up_torn_work(seq);
        }
        self.remove_rows(&REMOVED, [seq])?;
        match place {
            Some((Some(session), tag)) => self.refresh_head(session, &tag),
            _ => Ok(()),
        }
    }

    /// Returns the activity that the token holds, if its lease has not ended (S4).
    pub(crate) fn work_holder(&self, operation: &'static str, token: &str) -> DbResult<i64> {
        match self.held_work(token)? {
            Some(HeldWork::Row { seq, until: Some(until) }) if until > self.now => Ok(seq),
            Some(HeldWork::Torn { seq }) => Ok(seq),
            Some(_) => Err(ended_work_lease(operation).into()),
            None if self.is_withdrawn(token)? => Err(withdrawn_work(operation).into()),
            None => Err(no_such_lease(operation, token).into()),
        }
    }

    /// Returns the activity of a token and the end of its lease.
    fn held_work(&self, token: &str) -> DbResult<Option<HeldWork>> {
        let read = |row: &rusqlite::Row<'_>| Ok(HeldWork::Row { seq: row.get(0)?, until: row.get(1)? });
        let held = self
            .one(sql!("work/lease/holder"), [token], read)
            .map_err(|fault| self.torn_fault_of_work(sql!("torn/work/rows/of_token"), [token], fault))?;
        if held.is_some() {
            return Ok(held);
        }
        Ok(self.maybe(sql!("torn/work/held"), [token])?.map(|seq| HeldWork::Torn { seq }))
    }

    fn known_sessions(&self, keys: &[SessionKey]) -> DbResult<Vec<i64>> {
        let mut known = Vec::with_capacity(keys.len());
        for key in keys {
            known.extend(self.known_session(key)?);
        }
        Ok(known)
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<WorkRow> {
    Ok(WorkRow {
        seq: row.get(0)?,
        key: row.get(1)?,
        tag: row.get(2)?,
        session: row.get(3)?,
        attempts: row.get(4)?,
        item: text_of(row, 5)?,
        traceparent: text_or_none(row, 6)?,
        since: row.get(7)?,
        is_ready: row.get::<_, i64>(8)? == 1,
        call: StoredCall::read(row, 9)?,
    })
}

/// Returns the earlier of two times or places; `None` is none.
pub(crate) fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn min_of(found: impl Iterator<Item = DbResult<Option<i64>>>) -> DbResult<Option<i64>> {
    let mut oldest = None;
    for each in found {
        oldest = earlier(oldest, each?);
    }
    Ok(oldest)
}
