//! Sessions: which ones are open, and which session an activity that names an id runs on.
//!
//! An id that is open in this execution means the owned session of this instance; any other id means the
//! shared session of that name. Limits and rules are judged when a call is first recorded, never on replay.
//! `migration` has the waits for a session that moves to another worker.

pub(crate) mod migration;

use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, InstanceEnd, Operation, Record, Recorded, Site};
use crate::limits::MAX_SESSION_ID_BYTES;
use crate::replay::ledger::{Answer, Ledger};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::replay::{CloseCause, Effects, Identity, Options, SessionChange};
use crate::vocabulary::error::application_error;
use crate::{
    Action, CarriedSession, ENGINE_SESSION_PREFIX, ErrorDetails, Event, EventKind, SessionConcurrency,
    SessionKey, SessionPool, engine_session_id,
};

pub(crate) struct SessionRules;

/// The reason that is recorded for an activity whose session was closed.
pub(crate) const CLOSED: &str = "session_closed";

impl Operation for SessionRules {
    fn label(&self) -> &'static str {
        "Session"
    }

    fn refuse(&self, action: &Action, _event_id: u64, site: &Site<'_>) -> Result<(), ErrorDetails> {
        if let Action::OpenSession { session_id, .. } = action {
            site.outline.sessions.check_open(session_id.as_deref(), site.options)
        } else if let Action::CloseSession { session_id, .. } = action {
            check_id(session_id)
        } else {
            Ok(())
        }
    }

    fn record(&self, action: &Action, event_id: u64, identity: &Identity) -> Option<Record> {
        let kind = if let Action::OpenSession { session_id, idle_timeout_ms, concurrency, .. } = action {
            let made = || engine_session_id(&identity.instance, identity.execution_id, event_id);
            EventKind::SessionOpened {
                session_id: session_id.clone().unwrap_or_else(made),
                idle_timeout_ms: *idle_timeout_ms,
                concurrency: *concurrency,
            }
        } else if let Action::CloseSession { session_id, .. } = action {
            EventKind::SessionClosed { session_id: session_id.clone() }
        } else {
            return None;
        };
        Some(kind.into())
    }

    fn send(&self, _action: Action, event: &Event, site: &Site<'_>) -> Option<Effect> {
        if site.outline.sessions.last_call == LastCall::ChangedNothing {
            return None;
        }
        let change =
            if let EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } = &event.kind {
                SessionChange::Open {
                    session_id: session_id.clone(),
                    idle_timeout_ms: *idle_timeout_ms,
                    concurrency: *concurrency,
                }
            } else if let EventKind::SessionClosed { session_id } = &event.kind {
                SessionChange::Close { session_id: session_id.clone(), cause: CloseCause::Call }
            } else {
                return None;
            };
        Some(Effect::Session(change))
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        if let EventKind::SessionClosed { session_id } = &event.kind {
            return matches!(action, Action::CloseSession { session_id: closed, .. } if closed == session_id);
        }
        let EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } = &event.kind else {
            return false;
        };
        let Action::OpenSession { session_id: id, idle_timeout_ms: idle, concurrency: at_a_time, .. } =
            action
        else {
            return false;
        };
        let same_id = match id {
            Some(id) => id == session_id,
            None => *session_id == engine_session_id(&event.instance_id, event.execution_id, event.event_id),
        };
        same_id && idle == idle_timeout_ms && at_a_time == concurrency
    }

    /// The activities that are open on a session end when it is closed.
    fn orphans(&self, event: &Event, outline: &Outline) -> BTreeSet<u64> {
        let EventKind::SessionClosed { session_id } = &event.kind else { return BTreeSet::new() };
        outline.sessions.activities(session_id)
    }

    /// Opening and closing are answered by their own events.
    fn recorded(&self, recorded: &Recorded<'_>, ledger: &mut Ledger) -> Next {
        let id = recorded.event.event_id;
        if let EventKind::SessionOpened { session_id, .. } = &recorded.event.kind {
            return Next::poll(ledger.settle(id, Answer::Result(Ok(session_id.clone()))));
        }
        let EventKind::SessionClosed { session_id } = &recorded.event.kind else { return Next::Go };
        let mut wakers = vec![ledger.settle(id, Answer::Result(Ok(String::new())))];
        for orphan in recorded.orphans {
            let error = format!("canceled: session '{session_id}' closed");
            wakers.push(ledger.settle(*orphan, Answer::Closed(error)));
        }
        Next::Poll(wakers.into_iter().flatten().collect())
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        if let EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } = &event.kind {
            outline.sessions.open(session_id, *idle_timeout_ms, *concurrency);
        } else if let EventKind::SessionClosed { session_id } = &event.kind {
            for activity in outline.sessions.close(session_id) {
                outline.close(Some(activity));
            }
        }
    }

    fn end_instance(&self, _end: &InstanceEnd<'_>, outline: &Outline, effects: &mut Effects) {
        let open = outline.sessions.open.keys().cloned();
        let close = |session_id| SessionChange::Close { session_id, cause: CloseCause::End };
        effects.sessions.extend(open.map(close));
    }
}

/// The sessions that history has opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: BTreeMap<String, OpenSession>,
    closed: BTreeSet<String>,
    /// How many sessions were opened so far, closed ones included.
    opened: u64,
    /// The owned session that each open activity runs on.
    activities: BTreeMap<u64, String>,
    last_call: LastCall,
}

/// Whether the last open or close had an effect.
#[derive(Debug, Default, PartialEq, Eq)]
enum LastCall {
    #[default]
    ChangedNothing,
    Changed,
}

#[derive(Debug, Default)]
struct OpenSession {
    /// The number of the session in the order of opening, from 1; continue-as-new keeps this order.
    place: u64,
    idle_timeout_ms: Option<u64>,
    concurrency: Option<SessionConcurrency>,
    pool: Option<SessionPool>,
    activities: BTreeSet<u64>,
}

impl Sessions {
    /// Takes over the sessions that the previous execution left open.
    pub(crate) fn carry_in(&mut self, carried: &[CarriedSession]) {
        for session in carried {
            self.opened += 1;
            let open = OpenSession {
                place: self.opened,
                idle_timeout_ms: session.idle_timeout_ms,
                concurrency: session.concurrency,
                pool: session.pool.clone(),
                activities: BTreeSet::new(),
            };
            self.open.insert(session.session_id.clone(), open);
        }
    }

    /// The open sessions, in the order in which they were opened.
    pub(crate) fn carry_out(&self) -> Vec<CarriedSession> {
        let carried = |(id, session): (&String, &OpenSession)| CarriedSession {
            session_id: id.clone(),
            idle_timeout_ms: session.idle_timeout_ms,
            concurrency: session.concurrency,
            pool: session.pool.clone(),
        };
        let mut open: Vec<_> = self.open.iter().collect();
        open.sort_unstable_by_key(|(_, session)| session.place);
        open.into_iter().map(carried).collect()
    }

    /// Opens a session. The options of a session that is open already stay as they are.
    fn open(&mut self, id: &str, idle_timeout_ms: Option<u64>, concurrency: Option<SessionConcurrency>) {
        self.closed.remove(id);
        self.opened += 1;
        self.last_call = if self.is_open(id) { LastCall::ChangedNothing } else { LastCall::Changed };
        let fresh =
            OpenSession { place: self.opened, idle_timeout_ms, concurrency, ..OpenSession::default() };
        self.open.entry(id.to_owned()).or_insert(fresh);
    }

    /// Closes a session and returns the activities that were still open on it.
    fn close(&mut self, id: &str) -> BTreeSet<u64> {
        let Some(session) = self.open.remove(id) else {
            self.last_call = LastCall::ChangedNothing;
            return BTreeSet::new();
        };
        self.last_call = LastCall::Changed;
        self.closed.insert(id.to_owned());
        session.activities
    }

    fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// The activities that are open on a session.
    fn activities(&self, id: &str) -> BTreeSet<u64> {
        self.open.get(id).map(|session| session.activities.clone()).unwrap_or_default()
    }

    /// The owned session that an open activity runs on.
    pub(crate) fn session_of(&self, activity: u64) -> Option<&String> {
        self.activities.get(&activity)
    }

    /// Adds an activity to the owned session `id`. An activity on a shared session (`id` is not open) is not
    /// kept here.
    pub(crate) fn begin_activity(&mut self, id: &str, tag: Option<&str>, activity: u64) {
        if let Some(session) = self.open.get_mut(id) {
            session.pool.get_or_insert_with(|| pool_of(tag));
            session.activities.insert(activity);
            self.activities.insert(activity, id.to_owned());
        }
    }

    pub(crate) fn end_activity(&mut self, activity: u64) {
        let Some(id) = self.activities.remove(&activity) else { return };
        if let Some(session) = self.open.get_mut(&id) {
            session.activities.remove(&activity);
        }
    }

    /// The key of the session that `id` means at this point of history.
    pub(crate) fn key(&self, instance: &str, id: &str) -> SessionKey {
        if self.is_open(id) { SessionKey::owned(instance, id) } else { SessionKey::shared(id) }
    }

    /// May an activity with this tag be scheduled on session `id`?
    pub(crate) fn check_schedule(
        &self,
        id: &str,
        tag: Option<&str>,
        options: &Options,
    ) -> Result<(), ErrorDetails> {
        check_id(id)?;
        let Some(session) = self.open.get(id) else {
            let remedy = if self.closed.contains(id) {
                "it was closed: open it again with open_session_with_id"
            } else if id.starts_with(ENGINE_SESSION_PREFIX) {
                "only the instance that got this id from open_session may use it, while it is open: open a \
                 session here, or share one by an id of your own"
            } else if options.require_open_sessions {
                "require_open_sessions is on: open it with open_session_with_id"
            } else {
                return Ok(());
            };
            return Err(application_error(format!(
                "schedule_activity_on_session called for session '{id}' which is not open ({}); {remedy}",
                self.open_ids(),
            )));
        };
        match &session.pool {
            Some(pool) if *pool != pool_of(tag) => Err(application_error(format!(
                "session '{id}' runs activities of {}, and this one is of {}: all activities of an owned \
                 session carry the same tag",
                describe(pool),
                describe(&pool_of(tag)),
            ))),
            _ => Ok(()),
        }
    }

    /// May session `id` be opened? `None` stands for an id that the engine makes.
    fn check_open(&self, id: Option<&str>, options: &Options) -> Result<(), ErrorDetails> {
        if !options.owned_sessions {
            return Err(application_error("Provider does not support sessions"));
        }
        if let Some(id) = id {
            check_id(id)?;
            if id.starts_with(ENGINE_SESSION_PREFIX) && !self.is_open(id) {
                return Err(application_error(format!(
                    "session id '{id}' begins with '{ENGINE_SESSION_PREFIX}', which is reserved for ids \
                     made by the engine"
                )));
            }
        }
        let is_new = id.is_none_or(|id| !self.is_open(id));
        let (max, current) = (options.max_sessions, self.open.len());
        if is_new && current >= max {
            return Err(application_error(format!(
                "max sessions per orchestration exceeded (limit: {max}, open: {current}); {}: close one with \
                 close_session, or raise max_sessions_per_orchestration",
                self.open_ids(),
            )));
        }
        Ok(())
    }

    /// Names open sessions for people: some of them, and of a long id its beginning.
    fn open_ids(&self) -> String {
        const MOST: usize = 5;
        const MOST_CHARACTERS: usize = 60;
        let short = |id: &String| match id.char_indices().nth(MOST_CHARACTERS) {
            Some((end, _)) => format!("'{}…'", &id[..end]),
            None => format!("'{id}'"),
        };
        let named: Vec<String> = self.open.keys().take(MOST).map(short).collect();
        match self.open.len().saturating_sub(MOST) {
            _ if named.is_empty() => "no session is open".to_owned(),
            0 => format!("open: {}", named.join(", ")),
            more => format!("open: {} and {more} more", named.join(", ")),
        }
    }
}

/// May a session have this id?
pub(crate) fn check_id(id: &str) -> Result<(), ErrorDetails> {
    if id.is_empty() {
        return Err(application_error("session id is empty: a session id has 1 to 1024 bytes"));
    }
    if id.len() > MAX_SESSION_ID_BYTES {
        let text =
            format!("session id size ({} bytes) exceeds limit ({MAX_SESSION_ID_BYTES} bytes)", id.len());
        return Err(application_error(text));
    }
    if id.contains('\0') {
        let text = format!("session id {id:?} contains a NUL character, which no name or id may");
        return Err(application_error(text));
    }
    Ok(())
}

fn pool_of(tag: Option<&str>) -> SessionPool {
    tag.map_or(SessionPool::Default, |tag| SessionPool::Tag(tag.to_owned()))
}

fn describe(pool: &SessionPool) -> String {
    match pool {
        SessionPool::Default => "no tag".to_owned(),
        SessionPool::Tag(tag) => format!("tag '{tag}'"),
    }
}
