//! Sessions: claims, renewals, releases (S13). A session is owned while its lease lasts; nothing else decides.

use std::borrow::Cow;

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::{
    Appetite, MAX_PAGE, Owner, ProviderError, ProviderErrorKind, RenewSessions, SessionInfo, SessionRef,
    SessionsRenewed, Woken,
};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, millis, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;
use crate::verbs::notify::payload;
use crate::verbs::work::tags_of;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "session/lock_lines",
    "session/refresh_heads",
    "session/refresh_serial_heads",
    "session/open_session",
    "session/close_lines",
    "session/close_session",
    "session/close_sessions_of",
    "session/watch_session",
    "session/unwatch_sessions",
    "session/hold_lines",
    "session/own_heads",
    "session/hold_watchers",
    "session/tell_watchers",
    "session/json_text",
    "session/check_incarnation",
    "session/sweep_sessions",
    "session/touch_sessions",
    "session/let_go",
    "session/unclaim",
    "session/register_node",
    "session/renew_sessions",
    "session/release_sessions",
    "session/cleanup_sessions",
];

impl Db {
    /// Gives a named node the number of its newest start.
    pub(crate) async fn register_node(&self, node_id: &str) -> Result<u64, ProviderError> {
        const OPERATION: &str = "register_node";
        let row = self.one(OPERATION, sql!("session/register_node"), params![escape(node_id)]).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "the node was given no number"))?;
        Ok(unsigned(column(OPERATION, &row, "incarnation")?))
    }

    /// Extends the leases of a process's sessions and tells what became of the others, and what that made runnable.
    pub(crate) async fn renew_sessions(
        &self,
        me: &str,
        request: &RenewSessions,
    ) -> Result<(SessionsRenewed, Woken), ProviderError> {
        const OPERATION: &str = "renew_sessions";
        let tags: Option<Vec<_>> =
            tags_of(&request.tags).map(|tags| tags.iter().map(|tag| escape(tag).into_owned()).collect());
        let rows = self
            .rows(
                OPERATION,
                sql!("session/renew"),
                params![
                    escape(&request.owner.id),
                    request.owner.incarnation.map(time),
                    millis(request.extend_for),
                    millis(request.idle_timeout),
                    millis(request.untaken_after),
                    tags,
                    request.appetite == Appetite::Full,
                    self.now(),
                    payload(me, &let_go()),
                    escape(me),
                ],
            )
            .await?;
        let mut outcome = SessionsRenewed::default();
        for row in &rows {
            let epoch: i64 = column(OPERATION, row, "epoch")?;
            let list = match column::<&str>(OPERATION, row, "outcome")? {
                "fenced" => return Err(fenced(OPERATION, Some(&request.owner), epoch)),
                "untaken" => &mut outcome.untaken,
                "idle" => &mut outcome.idle,
                _ => &mut outcome.renewed,
            };
            let key = scope_of(column(OPERATION, row, "scope")?, column(OPERATION, row, "session")?);
            list.push(SessionRef { key, epoch: unsigned(epoch) });
        }
        let known = |held: &&SessionRef| {
            ![&outcome.renewed, &outcome.idle, &outcome.untaken].iter().any(|list| list.contains(held))
        };
        let mut lost: Vec<SessionRef> = request.held.iter().filter(known).cloned().collect();
        lost.sort();
        lost.dedup();
        outcome.lost = lost;
        let woken = if outcome.untaken.is_empty() { Woken::default() } else { let_go() };
        Ok((outcome, woken))
    }

    /// Ends the named attachments. Returns those that were live, and what that made runnable.
    pub(crate) async fn release_sessions(
        &self,
        me: &str,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<(Vec<SessionRef>, Woken), ProviderError> {
        const OPERATION: &str = "release_sessions";
        let scopes: Vec<_> = sessions.iter().map(|session| escape(stored_scope(&session.key))).collect();
        let ids: Vec<_> = sessions.iter().map(|session| escape(&session.key.session_id)).collect();
        let epochs: Vec<i64> = sessions.iter().map(|session| time(session.epoch)).collect();
        let mut released = Vec::new();
        for row in &self
            .rows(
                OPERATION,
                sql!("session/release"),
                params![
                    escape(&owner.id),
                    owner.incarnation.map(time),
                    scopes,
                    ids,
                    epochs,
                    self.now(),
                    payload(me, &let_go()),
                    escape(me),
                ],
            )
            .await?
        {
            if let Some(newest) = column::<Option<i64>>(OPERATION, row, "newest")? {
                return Err(fenced(OPERATION, Some(owner), newest));
            }
            let place = usize::try_from(column::<i64>(OPERATION, row, "place")? - 1).unwrap_or(usize::MAX);
            released.extend(sessions.get(place).cloned());
        }
        let woken = if released.is_empty() { Woken::default() } else { let_go() };
        Ok((released, woken))
    }

    /// Removes what nobody needs of ended sessions and returns how many there were: page by page, each a transaction of its own.
    pub(crate) async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        const OPERATION: &str = "cleanup_sessions";
        let mut after = (String::new(), String::new());
        let mut removed = 0;
        loop {
            let Some(row) =
                self.one(OPERATION, sql!("session/cleanup"), params![after.0, after.1, self.now()]).await?
            else {
                break;
            };
            removed += usize::try_from(column::<i64>(OPERATION, &row, "removed")?).unwrap_or(0);
            let scope: Option<String> = column(OPERATION, &row, "last_scope")?;
            let session: Option<String> = column(OPERATION, &row, "last_session")?;
            let Some(last) = scope.zip(session) else { break };
            after = last;
        }
        Ok(removed)
    }

    /// Lists sessions in the order of keys.
    pub(crate) async fn sessions(
        &self,
        after: Option<&SessionKey>,
    ) -> Result<Vec<SessionInfo>, ProviderError> {
        const OPERATION: &str = "sessions";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        // No session has an empty id, so nothing stands before the first.
        let (scope, id) = after.map_or(("", ""), |key| (stored_scope(key), key.session_id.as_str()));
        let rows =
            self.rows(OPERATION, sql!("session/page"), params![escape(scope), escape(id), page]).await?;
        rows.iter().map(|row| read_info(OPERATION, row)).collect()
    }

    /// Shows a session.
    pub(crate) async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        const OPERATION: &str = "session";
        let row = self
            .one(OPERATION, sql!("session/show"), params![escape(stored_scope(key)), escape(&key.session_id)])
            .await?;
        row.map(|row| read_info(OPERATION, &row)).transpose()
    }
}

/// Refuses a call by an earlier start of a node that has started again since.
pub(crate) fn fenced(operation: &'static str, owner: Option<&Owner>, newest: i64) -> ProviderError {
    let (id, given) = owner.map_or(("", 0), |owner| (&*owner.id, owner.incarnation.unwrap_or(0)));
    ProviderError::new(
        ProviderErrorKind::LeaseLost,
        operation,
        format!(
            "incarnation {given} of node '{id}' was replaced by incarnation {newest}: another process has started with \
             the same worker_node_id"
        ),
    )
}

/// Keys of sessions as they are stored: scopes and ids.
pub(crate) fn keys(keys: &[SessionKey]) -> (Vec<Cow<'_, str>>, Vec<Cow<'_, str>>) {
    keys.iter().map(|key| (escape(stored_scope(key)), escape(&key.session_id))).unzip()
}

/// The scope of a session as it is stored, before it is escaped: '' for a shared one.
pub(crate) fn stored_scope(key: &SessionKey) -> &str {
    key.instance.as_deref().unwrap_or_default()
}

/// The key of a session that is stored so.
pub(crate) fn scope_of(scope: String, session_id: String) -> SessionKey {
    SessionKey { instance: (!scope.is_empty()).then(|| unescape(scope)), session_id: unescape(session_id) }
}

/// The work of sessions may be anybody's now.
fn let_go() -> Woken {
    Woken { any_work: true, ..Woken::default() }
}

fn read_info(operation: &'static str, row: &Row) -> Result<SessionInfo, ProviderError> {
    let owner: String = column(operation, row, "worker_id")?;
    let incarnation: Option<i64> = column(operation, row, "incarnation")?;
    let number = |name: &str| column::<i64>(operation, row, name).map(unsigned);
    let serial: bool = column(operation, row, "serial")?;
    Ok(SessionInfo {
        key: scope_of(column(operation, row, "instance_id")?, column(operation, row, "session_id")?),
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
