//! The trails of sessions: which process owned a session, from when to when, and why that changed.

use std::collections::BTreeMap;

use steadfast_core::SessionKey;
use steadfast_store::{MAX_PAGE, MAX_SESSION_TRAIL, MAX_TRAIL, SessionChange, SessionTrailEntry};

use crate::session::SessionRow;
use crate::state::State;

/// The trails of all sessions, and the number of the last change.
#[derive(Debug, Default)]
pub(crate) struct SessionTrails {
    /// By session, the begins and ends of its claims: each claim has at most one of each.
    of: BTreeMap<SessionKey, BTreeMap<(u64, bool), TrailRow>>,
    last: u64,
}

/// An entry of a trail, and its number among the changes of all sessions.
#[derive(Debug)]
struct TrailRow {
    number: u64,
    entry: SessionTrailEntry,
}

impl SessionTrails {
    /// Adds an entry, unless the claim has one that says the same: of several ends the first one counts.
    pub(crate) fn add(&mut self, key: &SessionKey, entry: SessionTrailEntry) {
        let number = self.last + 1;
        let rows = self.of.entry(key.clone()).or_default();
        let place = (entry.epoch, entry.change != SessionChange::Claimed);
        if let std::collections::btree_map::Entry::Vacant(place) = rows.entry(place) {
            place.insert(TrailRow { number, entry });
            self.last = number;
        }
        while rows.len() > MAX_SESSION_TRAIL {
            rows.pop_first();
        }
    }

    /// Forgets the trails of the sessions that instances own.
    pub(crate) fn forget(&mut self, is_deleted: impl Fn(&str) -> bool) {
        self.of.retain(|key, _| !key.instance.as_deref().is_some_and(&is_deleted));
    }

    /// Removes entries among the oldest ones: those from up to a moment, those that are not among the last
    /// [`MAX_TRAIL`] changes, and those from behind another moment, which were written before the clock was
    /// set back.
    fn clean_up(&mut self, before_ms: u64, behind_ms: u64) -> usize {
        let floor = self.last.saturating_sub(MAX_TRAIL);
        let rows = self.of.values().flat_map(BTreeMap::values);
        let mut numbers: Vec<(u64, u64)> = rows.map(|row| (row.number, row.entry.at_ms)).collect();
        numbers.sort_unstable();
        numbers.truncate(MAX_PAGE);
        numbers.retain(|(number, at_ms)| *at_ms <= before_ms || *number <= floor || *at_ms > behind_ms);
        let is_kept = |row: &TrailRow| numbers.iter().all(|(number, _)| *number != row.number);
        self.of.retain(|_, rows| {
            rows.retain(|_, row| is_kept(row));
            !rows.is_empty()
        });
        numbers.len()
    }
}

impl SessionRow {
    /// Returns the entry for the end of the last claim: the given change if its lease lasts, else that it
    /// expired. `None` for a session that was never claimed, and for one whose last claim was released: that
    /// end was told when it came, and the trail may have forgotten it since.
    pub(super) fn end_of_claim(&self, now: u64, change: SessionChange) -> Option<SessionTrailEntry> {
        if self.is_released {
            return None;
        }
        let (at_ms, change) =
            if self.is_live(now) { (now, change) } else { (self.locked_until_ms, SessionChange::Expired) };
        let owner = self.owner.clone()?;
        Some(SessionTrailEntry { epoch: self.epoch, owner, at_ms, change })
    }
}

impl State {
    /// Returns the trail of a session. A claim whose lease has expired is told to have ended, although no
    /// call has noticed it.
    pub(crate) fn session_trail(&self, key: &SessionKey, now: u64) -> Vec<SessionTrailEntry> {
        let rows = self.trails.of.get(key).into_iter().flat_map(BTreeMap::values);
        let mut trail: Vec<SessionTrailEntry> = rows.map(|row| row.entry.clone()).collect();
        let expired = self.sessions.get(key).filter(|session| !session.is_live(now));
        let end = expired.and_then(|session| session.end_of_claim(now, SessionChange::Expired));
        if let Some(end) = end
            && !trail.iter().any(|entry| entry.epoch == end.epoch && entry.change != SessionChange::Claimed)
        {
            trail.push(end);
        }
        let excess = trail.len().saturating_sub(MAX_SESSION_TRAIL);
        trail.split_off(excess)
    }

    pub(crate) fn cleanup_session_trails(&mut self, retention_ms: u64, now: u64) -> usize {
        self.trails.clean_up(now.saturating_sub(retention_ms), now.saturating_add(retention_ms))
    }
}
