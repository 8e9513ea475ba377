//! Work: leasing activities to those who may run them, and taking their outcome back.

use rusqlite::params;
use steadfast_core::{ScheduledActivityIdentifier, SessionKey, TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Claim, ClaimedSession, MAX_UNREADABLE_ATTEMPTS, ProviderError, Queue, SessionRequest,
    SessionScope, UNREADABLE_RETRY, WorkRequest,
};

use crate::db::{Db, sql, text_of, time};
use crate::error::Done;
use crate::message::stored_tag;
use crate::turn::{Fetched, SWEEP};
use crate::writer::Undo;

/// A leased activity.
#[derive(Debug)]
pub(crate) struct LeasedWork {
    pub(crate) token: String,
    pub(crate) item: WorkItem,
    pub(crate) attempt: u32,
    pub(crate) orchestration: Option<(String, String)>,
    pub(crate) traceparent: Option<String>,
    pub(crate) session: Option<ClaimedSession>,
    pub(crate) since: i64,
    pub(crate) now: i64,
}

/// Gives the activity back, and the session if this fetch claimed it: a dropped fetch leaves nothing.
impl Undo for LeasedWork {
    fn undo(self, db: &Db<'_>) -> Done<()> {
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        if let Some(place) = db.maybe(sql!("work/holder"), [&self.token])? {
            db.give_work_back(place, how)?;
        }
        match self.session {
            Some(ClaimedSession { key, epoch, claim: Claim::New | Claim::Taken { .. } }) => {
                db.unclaim(&key, epoch)
            }
            _ => Ok(()),
        }
    }
}

/// An activity as it is stored.
struct Row {
    seq: i64,
    key: i64,
    tag: String,
    session: Option<i64>,
    attempts: u32,
    item: String,
    traceparent: Option<String>,
    /// Since when it could have been taken.
    since: i64,
}

/// An activity that becomes ready: its number, session and tag.
type Moved = (i64, Option<i64>, String);

fn moved(row: &rusqlite::Row<'_>) -> rusqlite::Result<Moved> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

impl Db<'_> {
    pub(crate) fn fetch_work(&self, request: &WorkRequest) -> Done<Fetched<LeasedWork>> {
        if let Some(session) = &request.session {
            self.check_incarnation("fetch_work", &session.owner)?;
        }
        self.sweep_work()?;
        self.sweep_sessions()?;
        let mut lease = self.lease_oldest_work(request)?;
        if lease.is_none() && (self.end_impossible_work()? | self.end_impossible_sessions()?) {
            lease = self.lease_oldest_work(request)?;
        }
        let next = if lease.is_some() { None } else { self.next_work_moment()? };
        Ok(Fetched { lease, next })
    }

    fn lease_oldest_work(&self, request: &WorkRequest) -> Done<Option<LeasedWork>> {
        while let Some(seq) = self.oldest_work(request)? {
            if let Some(lease) = self.try_lease_work(seq, request)? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    /// Ends leases that no clock of now can have granted. Looked for when there is nothing else to do, because it is rare.
    fn end_impossible_work(&self) -> Done<bool> {
        let found = self.all(sql!("work/impossible_leases"), params![self.latest_grant(), SWEEP], moved)?;
        let any = !found.is_empty();
        self.make_work_ready(found)?;
        Ok(any)
    }

    /// Moves what became runnable by time alone: activities whose time has come, leases that have ended.
    pub(crate) fn sweep_work(&self) -> Done<()> {
        let mut found = self.all(sql!("work/due"), params![self.now, SWEEP], moved)?;
        found.extend(self.all(sql!("work/ended_leases"), params![self.now, SWEEP], moved)?);
        self.make_work_ready(found)
    }

    fn make_work_ready(&self, found: Vec<Moved>) -> Done<()> {
        for (seq, session, tag) in found {
            self.run(sql!("work/make_ready"), [seq])?;
            self.work_is_ready(session, &tag)?;
        }
        Ok(())
    }

    fn work_is_ready(&self, session: Option<i64>, tag: &str) -> Done<()> {
        self.woken.borrow_mut().work.push((tag.strip_prefix(':').map(str::to_owned), session.is_some()));
        session.map_or(Ok(()), |session| self.refresh_head(session, tag))
    }

    /// The oldest activity that the request accepts: one look at an index for each tag and kind (S18, S20).
    fn oldest_work(&self, request: &WorkRequest) -> Done<Option<i64>> {
        let tags = tags_of(&request.tags);
        let mut oldest = match &tags {
            None => self.maybe(sql!("work/oldest_free_of_any"), [])?,
            Some(tags) => {
                let free = tags.iter().map(|tag| self.maybe(sql!("work/oldest_free"), [tag]));
                min_of(free)?
            }
        };
        if let Some(session) = &request.session {
            oldest = earlier(oldest, self.oldest_of_sessions(session, tags.as_deref())?);
        }
        Ok(oldest)
    }

    fn oldest_of_sessions(&self, request: &SessionRequest, tags: Option<&[String]>) -> Done<Option<i64>> {
        let left_out = self.known_sessions(&request.leave_out)?;
        match &request.scope {
            SessionScope::Only(serving) => {
                let mut oldest = None;
                for session in self.known_sessions(serving)? {
                    if !left_out.contains(&session) && self.is_held_by(session, &request.owner)? {
                        oldest = earlier(oldest, self.head_of(session, tags)?);
                    }
                }
                Ok(oldest)
            }
            SessionScope::Claim => {
                let owners = [String::new(), format!(":{}", request.owner.id)];
                let heads = owners.iter().map(|owner| self.oldest_head(owner, tags, &left_out));
                min_of(heads)
            }
        }
    }

    /// The oldest ready activity over all sessions of an owner; sessions that are left out are stepped over.
    fn oldest_head(&self, owner: &str, tags: Option<&[String]>, left_out: &[i64]) -> Done<Option<i64>> {
        // A session has one head of a tag, so one more than are left out is enough.
        let bound = time(left_out.len() as u64) + 1;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let first = |rows: &[(i64, i64)]| {
            rows.iter().find(|(_, session)| !left_out.contains(session)).map(|(head, _)| *head)
        };
        if let Some(tags) = tags {
            let heads = tags
                .iter()
                .map(|tag| Ok(first(&self.all(sql!("work/heads"), params![owner, tag, bound], read)?)));
            return min_of(heads);
        }
        // Of any tag it may have many: all of a session that is left out are stepped over.
        let mut after = 0;
        loop {
            let rows = self.all(sql!("work/heads_of_any"), params![owner, bound, after], read)?;
            match (first(&rows), rows.last()) {
                (None, Some((last, _))) if rows.len() as i64 == bound => after = *last,
                (found, _) => return Ok(found),
            }
        }
    }

    fn head_of(&self, session: i64, tags: Option<&[String]>) -> Done<Option<i64>> {
        let heads = self.all(sql!("work/heads_of_session"), [session], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let accepted = heads.into_iter().filter(|(tag, _)| tags.is_none_or(|tags| tags.contains(tag)));
        Ok(accepted.map(|(_, head)| head).min())
    }

    /// Leases an activity, if it can be read; one that cannot is counted, delayed, and in the end set aside (S15).
    fn try_lease_work(&self, seq: i64, request: &WorkRequest) -> Done<Option<LeasedWork>> {
        let Some(row) = self.one(sql!("work/show"), [seq], read)? else { return Ok(None) };
        let item = match serde_json::from_str::<WorkItem>(&row.item) {
            Ok(item) => item,
            Err(error) => {
                self.pass_over_unreadable_work(&row, &error)?;
                return Ok(None);
            }
        };
        let attachment = match (row.session, &request.session) {
            (Some(session), Some(request)) => Some(self.attach(session, request)?),
            _ => None,
        };
        let token = format!("work-{}", self.next()?);
        let epoch = attachment.as_ref().map(|attachment| time(attachment.epoch));
        let until = self.lease_until(request.lock_timeout)?;
        self.run(sql!("work/lease"), params![seq, token, until, epoch, request.worker_id])?;
        if let Some(session) = row.session {
            self.refresh_head(session, &row.tag)?;
        }
        let orchestration =
            self.one(sql!("work/scheduler"), [row.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Some(LeasedWork {
            token,
            item,
            attempt: row.attempts + 1,
            orchestration,
            traceparent: row.traceparent,
            session: attachment,
            since: row.since,
            now: self.now,
        }))
    }

    fn pass_over_unreadable_work(&self, row: &Row, error: &serde_json::Error) -> Done<()> {
        let attempts = row.attempts + 1;
        if attempts < MAX_UNREADABLE_ATTEMPTS {
            self.run(sql!("work/delay_unreadable"), params![row.seq, self.after(UNREADABLE_RETRY)])?;
        } else {
            let instance = self.one(sql!("instance/name"), [row.key], |row| row.get::<_, String>(0))?;
            self.put_aside(Queue::Worker, instance.as_deref(), &row.item, error, attempts)?;
            self.run(sql!("work/delete"), [row.seq])?;
        }
        row.session.map_or(Ok(()), |session| self.refresh_head(session, &row.tag))
    }

    /// Removes an activity and sends its completion, together (S11).
    pub(crate) fn finish_work(&self, token: &str, completion: Option<&crate::message::Letter>) -> Done<()> {
        let seq = self.work_holder("finish_work", token)?;
        self.touch_session(seq)?;
        self.remove_work(seq)?;
        match completion {
            Some(letter) => self.insert_message(&letter.message, &letter.text, self.now),
            None => Ok(()),
        }
    }

    pub(crate) fn renew_work(&self, token: &str, extend_for: std::time::Duration) -> Done<()> {
        let seq = self.work_holder("renew", token)?;
        self.run(sql!("work/renew"), params![seq, self.lease_until(extend_for)?])?;
        self.touch_session(seq)
    }

    pub(crate) fn abandon_work(&self, token: &str, how: Abandon) -> Done<()> {
        let seq = self.work_holder("abandon", token)?;
        self.give_work_back(seq, how)
    }

    fn give_work_back(&self, seq: i64, how: Abandon) -> Done<()> {
        let uncounted = i64::from(how.attempt == Attempt::Uncounted);
        let visible_at = how.retry_after.map(|delay| self.after(delay));
        self.run(sql!("work/give_back"), params![seq, uncounted, visible_at, self.now])?;
        let place = self.one(sql!("work/place"), [seq], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        place.map_or(Ok(()), |(session, tag)| self.work_is_ready(session, &tag))
    }

    /// Removes an activity, queued or running: the holder of one learns of it when it renews (S12).
    pub(crate) fn withdraw(&self, gone: &ScheduledActivityIdentifier) -> Done<()> {
        let Some(key) = self.maybe(sql!("instance/key"), [&gone.instance])? else { return Ok(()) };
        let identity = params![key, time(gone.execution_id), time(gone.activity_id)];
        for seq in self.all(sql!("work/of_activity"), identity, |row| row.get::<_, i64>(0))? {
            self.remove_work(seq)?;
        }
        Ok(())
    }

    pub(crate) fn remove_work(&self, seq: i64) -> Done<()> {
        let place = self.one(sql!("work/place"), [seq], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        self.run(sql!("work/delete"), [seq])?;
        match place {
            Some((Some(session), tag)) => self.refresh_head(session, &tag),
            _ => Ok(()),
        }
    }

    /// The activity that a live token holds.
    fn work_holder(&self, operation: &'static str, token: &str) -> Done<i64> {
        let held =
            self.one(sql!("work/holder"), [token], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?)))?;
        match held {
            Some((seq, Some(until))) if until > self.now => Ok(seq),
            Some(_) => {
                Err(ProviderError::lease_lost(operation, "the lease of the activity has ended").into())
            }
            None => Err(ProviderError::lease_lost(operation, format!("'{token}' holds nothing")).into()),
        }
    }

    fn known_sessions(&self, keys: &[SessionKey]) -> Done<Vec<i64>> {
        let mut known = Vec::with_capacity(keys.len());
        for key in keys {
            known.extend(self.known_session(key)?);
        }
        Ok(known)
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: row.get(0)?,
        key: row.get(1)?,
        tag: row.get(2)?,
        session: row.get(3)?,
        attempts: row.get(4)?,
        item: text_of(row, 5)?,
        traceparent: row.get(6)?,
        since: row.get(7)?,
    })
}

/// The tags that a filter accepts, as they are stored; None for all.
pub(crate) fn tags_of(filter: &TagFilter) -> Option<Vec<String>> {
    let named = |tags: &std::collections::HashSet<String>| -> Vec<String> {
        let mut tags: Vec<String> = tags.iter().map(|tag| stored_tag(Some(tag))).collect();
        tags.sort_unstable();
        tags
    };
    match filter {
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
        TagFilter::DefaultOnly => Some(vec![stored_tag(None)]),
        TagFilter::Tags(tags) => Some(named(tags)),
        TagFilter::DefaultAnd(tags) => Some(std::iter::once(stored_tag(None)).chain(named(tags)).collect()),
    }
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn min_of(found: impl Iterator<Item = Done<Option<i64>>>) -> Done<Option<i64>> {
    let mut oldest = None;
    for each in found {
        oldest = earlier(oldest, each?);
    }
    Ok(oldest)
}
