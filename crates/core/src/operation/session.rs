//! Sessions: which are open, where an activity that names one goes, and what is told about their moves.
//!
//! An id that is open in this execution means the owned session of this instance; any other id means the
//! shared session of that name. Limits and rules are judged when a call is first recorded, never on replay.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::MAX_SESSION_ID_BYTES;
use crate::replay::ledger::Token;
use crate::replay::{Options, application_error};
use crate::{
    Action, CarriedSession, ENGINE_SESSION_PREFIX, ErrorDetails, Event, EventKind, SessionConcurrency,
    SessionKey, SessionMigration, SessionPool, engine_session_id,
};

/// The sessions that history has opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: BTreeMap<String, OpenSession>,
    closed: BTreeSet<String>,
    /// How many were opened so far.
    opened: u64,
}

#[derive(Debug, Default)]
struct OpenSession {
    /// Its place among all that were opened.
    place: u64,
    idle_timeout_ms: Option<u64>,
    concurrency: Option<SessionConcurrency>,
    pool: Option<SessionPool>,
    activities: BTreeSet<u64>,
}

impl Sessions {
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

    /// Opens a session; the options of one that is open already stay as they are.
    pub(crate) fn open(
        &mut self,
        id: &str,
        idle_timeout_ms: Option<u64>,
        concurrency: Option<SessionConcurrency>,
    ) {
        self.closed.remove(id);
        self.opened += 1;
        let fresh =
            OpenSession { place: self.opened, idle_timeout_ms, concurrency, ..OpenSession::default() };
        self.open.entry(id.to_owned()).or_insert(fresh);
    }

    /// Closes a session and returns the activities that were still open on it.
    pub(crate) fn close(&mut self, id: &str) -> BTreeSet<u64> {
        match self.open.remove(id) {
            Some(session) => {
                self.closed.insert(id.to_owned());
                session.activities
            }
            None => BTreeSet::new(),
        }
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// The activities that are open on a session.
    pub(crate) fn activities(&self, id: &str) -> BTreeSet<u64> {
        self.open.get(id).map(|session| session.activities.clone()).unwrap_or_default()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.open.keys()
    }

    pub(crate) fn begin_activity(&mut self, id: &str, tag: Option<&str>, activity: u64) {
        if let Some(session) = self.open.get_mut(id) {
            session.pool.get_or_insert_with(|| pool_of(tag));
            session.activities.insert(activity);
        }
    }

    pub(crate) fn end_activity(&mut self, id: &str, activity: u64) {
        if let Some(session) = self.open.get_mut(id) {
            session.activities.remove(&activity);
        }
    }

    /// The key of the session that `id` means here and now.
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
            let lost = self.closed.contains(id) || id.starts_with(ENGINE_SESSION_PREFIX);
            if lost || options.require_open_sessions {
                let text =
                    format!("schedule_activity_on_session called for session '{id}' which is not open");
                return Err(application_error(text));
            }
            return Ok(());
        };
        match &session.pool {
            Some(pool) if *pool != pool_of(tag) => Err(application_error(format!(
                "session '{id}' runs activities of {}, and this one is of {}: all activities of an owned session \
                 carry the same tag",
                describe(pool),
                describe(&pool_of(tag)),
            ))),
            _ => Ok(()),
        }
    }

    /// May session `id` (None: an id of the engine's making) be opened?
    pub(crate) fn check_open(&self, id: Option<&str>, options: &Options) -> Result<(), ErrorDetails> {
        if !options.owned_sessions {
            return Err(application_error("Provider does not support sessions"));
        }
        if let Some(id) = id {
            check_id(id)?;
            if id.starts_with(ENGINE_SESSION_PREFIX) && !self.is_open(id) {
                return Err(application_error(format!(
                    "session id '{id}' begins with '{ENGINE_SESSION_PREFIX}', which is reserved for ids made by the engine"
                )));
            }
        }
        let is_new = id.is_none_or(|id| !self.is_open(id));
        let (max, current) = (options.max_sessions, self.open.len());
        if is_new && current >= max {
            let text = format!("max sessions per orchestration exceeded (limit: {max}, open: {current})");
            return Err(application_error(text));
        }
        Ok(())
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

pub(crate) fn opened_event(
    action: &Action,
    instance: &str,
    execution_id: u64,
    event_id: u64,
) -> Option<EventKind> {
    let Action::OpenSession { session_id, idle_timeout_ms, concurrency, .. } = action else { return None };
    let session_id =
        session_id.clone().unwrap_or_else(|| engine_session_id(instance, execution_id, event_id));
    Some(EventKind::SessionOpened {
        session_id,
        idle_timeout_ms: *idle_timeout_ms,
        concurrency: *concurrency,
    })
}

pub(crate) fn opened_matches(
    action: &Action,
    event: &Event,
    recorded_id: &str,
    recorded_idle: Option<u64>,
    recorded_concurrency: Option<SessionConcurrency>,
) -> bool {
    let Action::OpenSession { session_id, idle_timeout_ms, concurrency, .. } = action else { return false };
    let same_id = match session_id {
        Some(id) => id == recorded_id,
        None => recorded_id == engine_session_id(&event.instance_id, event.execution_id, event.event_id),
    };
    same_id && *idle_timeout_ms == recorded_idle && *concurrency == recorded_concurrency
}

pub(crate) fn closed_matches(action: &Action, recorded_id: &str) -> bool {
    matches!(action, Action::CloseSession { session_id, .. } if session_id == recorded_id)
}

/// What the code waits to hear about sessions that move.
///
/// A wait sees every attachment that is newer than the last one any wait of that id returned, so a loop of
/// waits misses none that matters, and two waits at once both resolve.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    latest: BTreeMap<String, SessionMigration>,
    returned: BTreeMap<String, u64>,
    awaited: BTreeMap<String, BTreeSet<Token>>,
    asked: Vec<String>,
}

impl Migrations {
    /// Registers a wait and returns the epoch that it has already seen. The store is asked to tell unless
    /// an earlier turn asked it.
    pub(crate) fn wait(&mut self, id: &str, token: Token, replaying: bool) -> u64 {
        if !replaying && !self.asked.iter().any(|asked| asked == id) {
            self.asked.push(id.to_owned());
        }
        self.awaited.entry(id.to_owned()).or_default().insert(token);
        self.returned.get(id).copied().unwrap_or(0)
    }

    pub(crate) fn arrive(&mut self, migration: SessionMigration) -> Vec<Token> {
        let awaited = self.awaited.get(&migration.id).map(|tokens| tokens.iter().copied().collect());
        // Messages may overtake each other; the newest attachment is the one with the highest epoch.
        if self.latest.get(&migration.id).is_none_or(|latest| latest.epoch < migration.epoch) {
            self.latest.insert(migration.id.clone(), migration);
        }
        awaited.unwrap_or_default()
    }

    pub(crate) fn read(&mut self, id: &str, seen: u64, token: Token) -> Option<SessionMigration> {
        let latest = self.latest.get(id).filter(|migration| migration.epoch > seen)?.clone();
        self.returned.insert(id.to_owned(), latest.epoch);
        self.forget(id, token);
        Some(latest)
    }

    pub(crate) fn forget(&mut self, id: &str, token: Token) {
        if let Some(tokens) = self.awaited.get_mut(id) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.awaited.remove(id);
            }
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    pub(crate) fn take_asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }
}
