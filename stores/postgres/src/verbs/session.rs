//! Sessions: renewals and releases (S13). A process owns a session while the session's lease lasts.

use std::borrow::Cow;
use std::time::Duration;

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::rules::{lost_claims, session_key, stored_scope, stored_tags, superseded};
use steadfast_store::{
    Appetite, MAX_PAGE, MAX_SESSION_TRAIL, MAX_TRAIL, NodeRegistration, NodeStart, Owner, ProviderError,
    ReleaseReason, RenewSessions, SessionChange, SessionInfo, SessionRef, SessionTrailEntry, SessionsRenewed,
    Woken,
};
use tokio_postgres::Row;

use crate::link::db::{Db, column, millis, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, calls, params, sql};
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "session/trail/note_claims",
    "session/trail/note_ends",
    "session/trail/cleanup_session_trails",
    "session/line/lock_lines",
    "session/head/find_bare_heads",
    "session/head/refresh_heads",
    "session/head/refresh_serial_heads",
    "session/open_session",
    "session/line/close_lines",
    "session/close_session",
    "session/close_sessions_of",
    "session/watch/watch_session",
    "session/watch/unwatch_sessions",
    "session/line/hold_lines",
    "session/head/own_heads",
    "session/watch/hold_watchers",
    "session/watch/tell_watchers",
    "session/json_text",
    "session/lease/check_incarnation",
    "session/lease/sweep_sessions",
    "session/lease/touch_sessions",
    "session/lease/let_go",
    "session/lease/replace_closed",
    "session/lease/restore_closed",
    "session/lease/unclaim",
    "session/lease/end_closed",
    "session/lease/register_node",
    "session/lease/register_start",
    "session/lease/renew_sessions",
    "session/lease/release_sessions",
    "session/lease/cleanup_sessions",
];

calls! {
    /// Numbers a start of a named node.
    RegisterStart<'a> => register_start {
        node: Cow<'a, str>,
        start: Cow<'a, str>,
        age_ms: i64,
        replaces: Option<i64>,
        now_ms: Option<i64>,
    }

    /// Renews the leases of a process's sessions, and releases sessions whose work the process does not take.
    RenewSessionLeases<'a> => renew_sessions {
        owner: Cow<'a, str>,
        incarnation: Option<i64>,
        extend_ms: i64,
        idle_ms: i64,
        untaken_ms: i64,
        tags: Option<Vec<String>>,
        /// Whether the process will take no more work, so that sessions with waiting work are released.
        full: bool,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        /// The worker that asks; `None` takes work of any route.
        worker: Option<Cow<'a, str>>,
        /// Whether the process knows the terms of calls, as this build does.
        terms: bool,
    }

    /// Releases sessions of a process.
    ReleaseSessions<'a> => release_sessions {
        owner: Cow<'a, str>,
        incarnation: Option<i64>,
        scopes: Vec<Cow<'a, str>>,
        sessions: Vec<Cow<'a, str>>,
        epochs: Vec<i64>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        /// Why they are released, for their trails.
        change: &'static str,
    }

    /// Removes old entries of trails, among the oldest ones.
    CleanupSessionTrails => cleanup_session_trails {
        retention_ms: i64,
        page: i32,
        most: i64,
        now_ms: Option<i64>,
    }

    /// Removes a page of sessions that have ended.
    CleanupSessions => cleanup_sessions {
        after_scope: String,
        after_session: String,
        now_ms: Option<i64>,
    }
}

impl Backend {
    /// Numbers a start of a named node.
    pub(crate) async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        const OPERATION: &str = "register_node";
        let call = RegisterStart {
            node: escape(&start.node_id),
            start: escape(&start.start_id),
            age_ms: millis(start.age),
            replaces: start.replaces.map(time),
            now_ms: self.db.now(),
        };
        let row = self.db.one(OPERATION, call.statement()).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "the node was given no number"))?;
        let registered: Option<i64> = column(OPERATION, &row, "registered")?;
        if let Some(number) = registered {
            return Ok(NodeRegistration::Registered(unsigned(number)));
        }
        let incarnation = unsigned(column(OPERATION, &row, "newest")?);
        let is_younger = column(OPERATION, &row, "is_younger")?;
        Ok(NodeRegistration::Taken { incarnation, is_younger })
    }

    /// Renews the leases of a process's sessions, and tells which were renewed, are idle, were released, or
    /// are lost.
    pub(crate) async fn renew_sessions(
        &self,
        request: &RenewSessions,
    ) -> Result<SessionsRenewed, ProviderError> {
        const OPERATION: &str = "renew_sessions";
        let tags: Option<Vec<_>> =
            stored_tags(&request.tags).map(|tags| tags.iter().map(|tag| escape(tag).into_owned()).collect());
        let call = RenewSessionLeases {
            owner: escape(&request.owner.id),
            incarnation: request.owner.incarnation.map(time),
            extend_ms: millis(request.extend_for),
            idle_ms: millis(request.idle_timeout),
            untaken_ms: millis(request.untaken_after),
            tags,
            full: request.appetite == Appetite::Full,
            now_ms: self.db.now(),
            notify: self.payload(&any_work()),
            me: &self.me,
            worker: request.worker.as_ref().map(|worker| escape(&worker.0)),
            terms: true,
        };
        let rows = self.db.rows(OPERATION, call.statement()).await?;
        let mut outcome = SessionsRenewed::default();
        for row in &rows {
            let epoch: i64 = column(OPERATION, row, "epoch")?;
            let list = match column::<&str>(OPERATION, row, "outcome")? {
                "fenced" => return Err(fenced(OPERATION, Some(&request.owner), epoch)),
                "untaken" => &mut outcome.untaken,
                "idle" => &mut outcome.idle,
                _ => &mut outcome.renewed,
            };
            let key = read_key(column(OPERATION, row, "scope")?, column(OPERATION, row, "session")?);
            list.push(SessionRef { key, epoch: unsigned(epoch) });
        }
        outcome.lost = lost_claims(request, &outcome);
        if !outcome.untaken.is_empty() {
            self.waiters.wake(&any_work());
        }
        Ok(outcome)
    }

    /// Releases sessions of a process, and returns those that it still owned.
    pub(crate) async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
        reason: ReleaseReason,
    ) -> Result<Vec<SessionRef>, ProviderError> {
        const OPERATION: &str = "release_sessions";
        let call = ReleaseSessions {
            owner: escape(&owner.id),
            incarnation: owner.incarnation.map(time),
            scopes: sessions.iter().map(|session| escape(stored_scope(&session.key))).collect(),
            sessions: sessions.iter().map(|session| escape(&session.key.session_id)).collect(),
            epochs: sessions.iter().map(|session| time(session.epoch)).collect(),
            now_ms: self.db.now(),
            notify: self.payload(&any_work()),
            me: &self.me,
            change: SessionChange::Released(reason).as_str(),
        };
        let mut released = Vec::new();
        for row in &self.db.rows(OPERATION, call.statement()).await? {
            if let Some(newest) = column::<Option<i64>>(OPERATION, row, "newest")? {
                return Err(fenced(OPERATION, Some(owner), newest));
            }
            let place = usize::try_from(column::<i64>(OPERATION, row, "place")? - 1).unwrap_or(usize::MAX);
            released.extend(sessions.get(place).cloned());
        }
        // The end of a closed session's lease is not told; other fetches may claim the session if it is open.
        if !released.is_empty() || sessions.iter().any(|session| session.key.instance.is_some()) {
            self.waiters.wake(&any_work());
        }
        Ok(released)
    }
}

impl Db {
    /// Removes sessions that have ended, and returns how many there were. Each page is a transaction of its
    /// own.
    pub(crate) async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        const OPERATION: &str = "cleanup_sessions";
        let (mut after_scope, mut after_session) = (String::new(), String::new());
        let mut removed = 0;
        loop {
            let call = CleanupSessions { after_scope, after_session, now_ms: self.now() };
            let Some(row) = self.one(OPERATION, call.statement()).await? else { break };
            removed += usize::try_from(column::<i64>(OPERATION, &row, "removed")?).unwrap_or(0);
            let scope: Option<String> = column(OPERATION, &row, "last_scope")?;
            let session: Option<String> = column(OPERATION, &row, "last_session")?;
            let Some(last) = scope.zip(session) else { break };
            (after_scope, after_session) = last;
        }
        self.forget_leases(OPERATION).await?;
        Ok(removed)
    }

    /// Lists a page of sessions in the order of their keys.
    pub(crate) async fn sessions(
        &self,
        after: Option<&SessionKey>,
    ) -> Result<Vec<SessionInfo>, ProviderError> {
        const OPERATION: &str = "sessions";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        // No session has an empty id, so every session comes after it.
        let (scope, id) = after.map_or(("", ""), |key| (stored_scope(key), key.session_id.as_str()));
        let (scope, id) = (escape(scope), escape(id));
        let statement = Statement::of(sql!("session/page"), params![scope, id, page]);
        let rows = self.rows(OPERATION, statement).await?;
        rows.iter().map(|row| read_info(OPERATION, row)).collect()
    }

    /// Returns a session; `None` if there is none with the key.
    pub(crate) async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        const OPERATION: &str = "session";
        let (scope, id) = (escape(stored_scope(key)), escape(&key.session_id));
        let row = self.one(OPERATION, Statement::of(sql!("session/show"), params![scope, id])).await?;
        row.map(|row| read_info(OPERATION, &row)).transpose()
    }

    /// Returns the trail of a session, oldest first.
    pub(crate) async fn session_trail(
        &self,
        key: &SessionKey,
    ) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        const OPERATION: &str = "session_trail";
        let (scope, id) = (escape(stored_scope(key)), escape(&key.session_id));
        let now = self.now();
        let statement = Statement::of(sql!("session/trail"), params![scope, id, now]);
        let rows = self.rows(OPERATION, statement).await?;
        let excess = rows.len().saturating_sub(MAX_SESSION_TRAIL);
        rows.iter().skip(excess).map(|row| read_entry(OPERATION, row)).collect()
    }

    /// Removes old entries of trails, among the oldest ones, and returns how many there were.
    pub(crate) async fn cleanup_session_trails(&self, retention: Duration) -> Result<usize, ProviderError> {
        const OPERATION: &str = "cleanup_session_trails";
        let call = CleanupSessionTrails {
            retention_ms: millis(retention),
            page: i32::try_from(MAX_PAGE).unwrap_or(i32::MAX),
            most: time(MAX_TRAIL),
            now_ms: self.now(),
        };
        let Some(row) = self.one(OPERATION, call.statement()).await? else { return Ok(0) };
        Ok(usize::try_from(column::<i64>(OPERATION, &row, "cleanup_session_trails")?).unwrap_or(0))
    }
}

/// Makes the error for a call by an earlier start of a node that has started again since.
pub(crate) fn fenced(operation: &'static str, owner: Option<&Owner>, newest: i64) -> ProviderError {
    let (id, given) = owner.map_or(("", 0), |owner| (&*owner.id, owner.incarnation.unwrap_or(0)));
    superseded(operation, id, given, unsigned(newest))
}

/// Returns keys of sessions as they are stored: scopes and ids.
pub(crate) fn keys(keys: &[SessionKey]) -> (Vec<Cow<'_, str>>, Vec<Cow<'_, str>>) {
    keys.iter().map(|key| (escape(stored_scope(key)), escape(&key.session_id))).unzip()
}

/// Returns the key of a session from the columns that hold its scope and id.
pub(crate) fn read_key(scope: String, session_id: String) -> SessionKey {
    session_key(unescape(scope), unescape(session_id))
}

/// Returns a wake-up for every waiter for work: it is not known which activities became available.
fn any_work() -> Woken {
    Woken { any_work: true, ..Woken::default() }
}

fn read_entry(operation: &'static str, row: &Row) -> Result<SessionTrailEntry, ProviderError> {
    let incarnation: Option<i64> = column(operation, row, "incarnation")?;
    Ok(SessionTrailEntry {
        epoch: unsigned(column(operation, row, "epoch")?),
        owner: Owner {
            id: unescape(column(operation, row, "worker_id")?),
            incarnation: incarnation.map(unsigned),
        },
        at_ms: unsigned(column(operation, row, "at_ms")?),
        change: SessionChange::from_stored(column(operation, row, "change")?),
    })
}

fn read_info(operation: &'static str, row: &Row) -> Result<SessionInfo, ProviderError> {
    let owner: String = column(operation, row, "worker_id")?;
    let incarnation: Option<i64> = column(operation, row, "incarnation")?;
    let number = |name: &str| column::<i64>(operation, row, name).map(unsigned);
    let serial: bool = column(operation, row, "serial")?;
    Ok(SessionInfo {
        key: read_key(column(operation, row, "instance_id")?, column(operation, row, "session_id")?),
        owner: (!owner.is_empty())
            .then(|| Owner { id: unescape(owner), incarnation: incarnation.map(unsigned) }),
        epoch: number("epoch")?,
        locked_until_ms: number("locked_until")?,
        last_activity_at_ms: number("last_activity_at")?,
        queued: number("queued")?,
        idle_timeout_ms: column::<Option<i64>>(operation, row, "idle_timeout")?.map(unsigned),
        concurrency: if serial { SessionConcurrency::Serial } else { SessionConcurrency::Unbounded },
    })
}
