//! Activities in the queue, as the watch knows them.

use std::{collections::BTreeMap, time::Duration};

use steadfast_core::{CallTerms, ScheduledActivityIdentifier, SessionKey, TagFilter, WorkItem};
use steadfast_store::{Abandon, Attempt, LeaseToken, NewWork, WorkLease, WorkRequest};

use super::{
    Found,
    lease::{Leases, after},
};

/// Instance, execution and id of an activity.
pub(super) type WorkKey = (String, u64, u64);

/// The activities that were ever queued, and their leases.
#[derive(Default)]
pub(super) struct WorkShadow {
    rows: BTreeMap<WorkKey, Queued>,
    leases: Leases<Leased>,
    lives: u64,
}

/// One activity.
struct Queued {
    /// Tells an activity from that of a former instance with the same id.
    life: u64,
    tag: Option<String>,
    session: Option<SessionKey>,
    call: Option<Box<CallTerms>>,
    /// The deliveries that count since the last try ended.
    deliveries: u32,
    /// The number of its last delivery, of all tries.
    last_delivery: u32,
    /// The number of tries that have ended.
    tries: u32,
    visible_ms: u64,
    /// The end of its last lease.
    free_ms: u64,
    is_refused: bool,
    /// Whether it was ever refused: the store decides then who may take it.
    is_routed: bool,
    end: Option<WorkEnd>,
}

impl Queued {
    /// Returns since when a fetch could have leased the activity; `None` if it cannot be told, or not yet.
    fn waits_since(&self, now: u64) -> Option<u64> {
        let since = self.visible_ms.max(self.free_ms);
        (self.end.is_none() && !self.is_routed && since <= now).then_some(since)
    }
}

/// An activity that a fetch could lease.
pub(super) struct Waiting<'a> {
    pub(super) key: &'a WorkKey,
    pub(super) session: Option<&'a SessionKey>,
    /// The order in which activities were queued.
    pub(super) life: u64,
    pub(super) since_ms: u64,
}

/// Why an activity is not in the queue any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkEnd {
    Finished,
    Withdrawn,
}

/// What a lease of an activity holds.
#[derive(Clone, Debug)]
struct Leased {
    key: WorkKey,
    life: u64,
    session: Option<SessionKey>,
}

impl WorkShadow {
    pub(super) fn queue(&mut self, work: &NewWork, now: u64) {
        let Some(key) = key_of(&work.item) else { return };
        let WorkItem::ActivityExecute { tag, .. } = &work.item else { return };
        self.lives += 1;
        let row = Queued {
            life: self.lives,
            tag: tag.clone(),
            session: work.session_key(),
            call: work.call.clone(),
            deliveries: 0,
            last_delivery: 0,
            tries: 0,
            visible_ms: now,
            free_ms: now,
            is_refused: false,
            is_routed: false,
            end: None,
        };
        self.rows.insert(key, row);
    }

    pub(super) fn withdraw(&mut self, identity: &ScheduledActivityIdentifier) {
        let key = (identity.instance.clone(), identity.execution_id, identity.activity_id);
        self.end(&key, WorkEnd::Withdrawn);
    }

    /// Withdraws what waits for or runs on a session that was closed.
    pub(super) fn withdraw_session(&mut self, session: &SessionKey) {
        for row in self.rows.values_mut().filter(|row| row.session.as_ref() == Some(session)) {
            row.end.get_or_insert(WorkEnd::Withdrawn);
        }
    }

    /// Lists the activities with such tags that a fetch could lease.
    pub(super) fn waiting(&self, tags: &TagFilter, now: u64) -> impl Iterator<Item = Waiting<'_>> {
        self.rows.iter().filter(|(_, row)| tags.matches(row.tag.as_deref())).filter_map(move |(key, row)| {
            let since_ms = row.waits_since(now)?;
            Some(Waiting { key, session: row.session.as_ref(), life: row.life, since_ms })
        })
    }

    /// Tells whether an activity of a serial session is the next one: none is before it, and none runs.
    pub(super) fn is_next(&self, waiting: &Waiting<'_>, now: u64) -> bool {
        let mut others = self.rows.values().filter(|row| row.end.is_none() && row.life != waiting.life);
        !others.any(|row| {
            row.session.as_ref() == waiting.session && (row.life < waiting.life || row.free_ms > now)
        })
    }

    /// Returns the order in which an activity was queued.
    pub(super) fn life_of(&self, item: &WorkItem) -> Option<u64> {
        key_of(item).and_then(|key| self.rows.get(&key)).map(|row| row.life)
    }

    fn end(&mut self, key: &WorkKey, end: WorkEnd) {
        if let Some(row) = self.rows.get_mut(key) {
            row.end.get_or_insert(end);
        }
    }

    /// Returns the sessions that have a leased activity.
    pub(super) fn sessions_running(&self, now: u64) -> Vec<SessionKey> {
        let live = self.leases.all().filter(|granted| granted.is_live(now));
        let queued = live.filter(|granted| {
            let row = self.rows.get(&granted.row.key);
            row.is_some_and(|row| row.life == granted.row.life && row.end.is_none())
        });
        queued.filter_map(|granted| granted.row.session.clone()).collect()
    }

    pub(super) fn granted(&mut self, request: &WorkRequest, lease: &WorkLease, found: &mut Found) {
        let now = lease.now_ms;
        let Some(key) = key_of(&lease.item) else {
            return found.add("S11", format!("a worker is given {:?}", lease.item));
        };
        let is_leased = self.leases.all().any(|granted| granted.is_live(now) && granted.row.key == key);
        let Some(row) = self.rows.get_mut(&key) else {
            return found.add("I6", format!("a worker is given {key:?}, which was not queued"));
        };
        let is_same_life = |leased: &Leased| leased.key == key && leased.life == row.life;
        if is_leased && self.leases.all().any(|granted| granted.is_live(now) && is_same_life(&granted.row)) {
            found.add("S5", format!("{key:?} is leased at {now} while it is leased"));
        }
        if let Some(end) = row.end {
            found.add("I6", format!("{key:?} is leased at {now} after its end: {end:?}"));
        }
        if row.visible_ms > now && !row.is_refused {
            found.add("S9", format!("{key:?} is leased at {now}, before {}", row.visible_ms));
        }
        if !request.tags.matches(row.tag.as_deref()) {
            found.add("S14", format!("{key:?} with the tag {:?} is given to {:?}", row.tag, request.tags));
        }
        row.deliveries += 1;
        row.is_refused = false;
        row.visible_ms = row.visible_ms.min(now);
        if row.deliveries != lease.attempt {
            let (told, known) = (lease.attempt, row.deliveries);
            found.add("I12", format!("{key:?} is told delivery {told} at {now}, it is {known}"));
        }
        if (row.tries, &row.call) != (lease.tries.ended, &lease.call) || lease.delivery <= row.last_delivery {
            let Queued { tries, call, last_delivery, .. } = row;
            found.add(
                "S22",
                format!(
                    "{key:?} is told {:?}, {:?} and delivery {} at {now}, after {tries} tries of {call:?} \
                     and delivery {last_delivery}",
                    lease.tries, lease.call, lease.delivery
                ),
            );
        }
        row.last_delivery = lease.delivery;
        row.free_ms = after(now, request.lock_timeout);
        let session = lease.session.as_ref().map(|claimed| claimed.key.clone());
        let leased = Leased { key, life: row.life, session };
        self.leases.grant(&lease.token, leased, after(now, request.lock_timeout));
    }

    pub(super) fn finished(&mut self, token: &LeaseToken, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.used(token, "a result", "I6", now, found) else { return };
        granted.is_settled = true;
        let leased = granted.row.clone();
        if let Some(row) = self.rows.get(&leased.key).filter(|row| row.life == leased.life)
            && let Some(end) = row.end
        {
            found.add("I6", format!("a result of {:?} is taken at {now} after its end: {end:?}", leased.key));
        }
        self.end(&leased.key, WorkEnd::Finished);
    }

    pub(super) fn renewed(&mut self, token: &LeaseToken, by: Duration, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.used(token, "a renewal", "S4", now, found) else { return };
        granted.until_ms = after(now, by);
        let leased = granted.row.clone();
        let Some(row) = self.rows.get_mut(&leased.key).filter(|row| row.life == leased.life) else { return };
        row.free_ms = after(now, by);
        if let Some(end) = row.end {
            found.add("S12", format!("{:?} is renewed at {now} after its end: {end:?}", leased.key));
        }
    }

    pub(super) fn lost(&mut self, token: &LeaseToken, is_withdrawn: bool, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.get_mut(token) else { return };
        let row = self.rows.get(&granted.row.key).filter(|row| row.life == granted.row.life);
        if granted.is_live(now) && !is_withdrawn && row.is_some_and(|row| row.end == Some(WorkEnd::Withdrawn))
        {
            let text = format!("the holder of {:?} is told at {now} that its lease is lost", granted.row.key);
            found.add_unless_deleted("G42", text);
        }
        let has_ended = self.rows.get(&granted.row.key).is_none_or(|row| row.end.is_some());
        if !has_ended {
            self.leases.lost(token, now, found);
        }
    }

    pub(super) fn abandoned(
        &mut self,
        token: &LeaseToken,
        how: Abandon,
        refused: bool,
        now: u64,
        found: &mut Found,
    ) {
        let Some(granted) = self.leases.used(token, "an abandonment", "S4", now, found) else { return };
        granted.is_settled = true;
        let Some(row) = self.rows.get_mut(&granted.row.key) else { return };
        row.is_refused = refused;
        row.is_routed |= refused;
        row.free_ms = now;
        if how.attempt == Attempt::Uncounted {
            row.deliveries = row.deliveries.saturating_sub(1);
        }
        if let Some(delay) = how.retry_after {
            row.visible_ms = after(now, delay);
        }
    }

    pub(super) fn ended_try(&mut self, token: &LeaseToken, by: Duration, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.used(token, "the end of a try", "S4", now, found) else { return };
        granted.is_settled = true;
        let leased = granted.row.clone();
        // What expired in this try is settled with it: nothing of it can be excused.
        self.leases.settle(|row| row.key == leased.key && row.life == leased.life);
        let Some(row) = self.rows.get_mut(&leased.key).filter(|row| row.life == leased.life) else { return };
        if let Some(end) = row.end {
            found.add("I6", format!("a try of {:?} ends at {now} after its end: {end:?}", leased.key));
        }
        row.deliveries = 0;
        row.tries += 1;
        row.free_ms = now;
        row.visible_ms = after(now, by);
    }

    /// Returns what was leased by a holder that let the lease expire and said nothing about it.
    pub(super) fn outlived(&self, now: u64) -> Vec<String> {
        // A holder that learns that its work was withdrawn, or done by another one, need not excuse it.
        let is_queued = |leased: &&Leased| {
            let row = self.rows.get(&leased.key);
            row.is_some_and(|row| row.life == leased.life && row.end != Some(WorkEnd::Withdrawn))
        };
        self.leases.outlived(now).filter(is_queued).map(|row| format!("{row:?}")).collect()
    }

    pub(super) fn excused(&mut self, token: &LeaseToken, excused: bool, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.get_mut(token) else { return };
        granted.is_asked = true;
        let may = !granted.is_live(now) && !granted.is_settled && !granted.is_excused;
        let key = granted.row.key.clone();
        let row = self.rows.get_mut(&key).filter(|row| row.life == granted.row.life && row.end.is_none());
        match row {
            Some(row) if excused => {
                granted.is_excused = true;
                row.deliveries = row.deliveries.saturating_sub(1);
                if !may {
                    found.add("I12", format!("a delivery of {key:?} is taken off at {now}, which counts"));
                }
            }
            Some(_) if may => {
                let text = format!("a delivery of {key:?} counts at {now}, which its holder outlived");
                found.add_unless_deleted("I12", text);
            }
            _ => {}
        }
    }
}

fn key_of(item: &WorkItem) -> Option<WorkKey> {
    match item {
        WorkItem::ActivityExecute { instance, execution_id, id, .. } => {
            Some((instance.clone(), *execution_id, *id))
        }
        _ => None,
    }
}
