//! Who is given work, as the watch knows it: no work is passed over, no work is left, and clean-up changes
//! nothing that a worker may do.

use std::collections::BTreeMap;

use steadfast_core::SessionKey;
use steadfast_store::{SessionInfo, WorkLease, WorkRequest};

use super::{Shadow, work::Waiting};

/// How long work may wait beside a fetch that could take it.
const LEFT_MS: u64 = 1_000;

/// How far the time of a store may be from that of the watch, which rounds otherwise.
const ROUNDED_MS: u64 = 2;

impl Shadow {
    /// Tells whether the time of the store is that of the watch. If it is not, as when the time of a file was
    /// set, the watch ends.
    pub(super) fn agrees(&mut self, now: u64, told: u64) -> bool {
        self.is_blind |= now.abs_diff(told) > ROUNDED_MS;
        !self.is_blind
    }

    /// Lists the activities that a request could be given, with the moment since when.
    fn runnable(&self, request: &WorkRequest, now: u64) -> impl Iterator<Item = Waiting<'_>> {
        self.work.waiting(&request.tags, now).filter_map(move |mut waiting| {
            if let Some(key) = waiting.session {
                let asked = request.session.as_ref()?;
                waiting.since_ms = waiting.since_ms.max(self.sessions.serves_since(key, asked, now)?);
                if self.sessions.is_serial(key) && !self.work.is_next(&waiting, now) {
                    return None;
                }
            }
            Some(waiting)
        })
    }

    /// A16: the oldest activity that a request may be given is the one that it is given, on a session or not.
    /// A fetch that is dropped may have held an older one for a moment.
    pub(super) fn check_order(&mut self, request: &WorkRequest, lease: &WorkLease) {
        let Some(life) = self.work.life_of(&lease.item).filter(|_| !self.has_drops) else { return };
        let now = lease.now_ms;
        let older = self.runnable(request, now).filter(|waiting| waiting.life < life);
        let older = older.min_by_key(|waiting| waiting.life);
        if let Some(Waiting { key, session, since_ms, .. }) = older {
            let text = format!(
                "{:?} is given at {now}, and {key:?} on {session:?} waits since {since_ms}",
                lease.item
            );
            self.found.add_unless_deleted("A16", text);
        }
    }

    /// A6, I7: a fetch that was given nothing has met nothing that it could have been given. Work of a
    /// session can be claimed when the lease of its owner has ended.
    pub(super) fn check_idle(&mut self, request: &WorkRequest, now: u64) {
        let left = self.runnable(request, now).find(|waiting| waiting.since_ms.saturating_add(LEFT_MS) < now);
        let Some(Waiting { key, session, since_ms, .. }) = left.filter(|_| !self.has_drops) else { return };
        let was_claimed = session
            .zip(request.session.as_ref())
            .is_some_and(|(session, asked)| self.sessions.was_claimed_by_another(session, &asked.owner));
        let rule = if was_claimed { "A6" } else { "I7" };
        let text =
            format!("a fetch ends at {now} with nothing; {key:?} on {session:?} waits since {since_ms}");
        self.found.add_unless_deleted(rule, text);
    }

    /// A14: clean-up removes only what changes nothing for any worker: sessions without a live lease and
    /// without work.
    pub(super) fn cleaned_up(
        &mut self,
        before: &BTreeMap<SessionKey, SessionInfo>,
        after: &BTreeMap<SessionKey, SessionInfo>,
        now: u64,
    ) {
        for (key, info) in before {
            let is_wrong = match after.get(key) {
                Some(kept) => kept != info,
                None => info.locked_until_ms > now || info.queued > 0 || self.sessions.is_open(key),
            };
            if is_wrong {
                let text = format!("clean-up at {now} makes {:?} of {info:?}", after.get(key));
                self.found.add_unless_deleted("A14", text);
            }
        }
        self.sessions.forget(|key| before.contains_key(key) && !after.contains_key(key));
    }
}
