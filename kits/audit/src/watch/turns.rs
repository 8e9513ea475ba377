//! Turns, their messages and histories, as the watch knows them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, Event, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Committed, Envelope, History, LeaseToken, MAX_TURN_MESSAGES, Message, RunId,
    TurnCommit, TurnLease,
    rules::{fires_at_ms, is_start, runs_engine},
};

use super::{
    DeletedInstance, Found, TurnWait,
    lease::{Leases, after},
    sessions::Migration,
};
use crate::Records;

/// The leases of instances, the messages under way, and what was committed.
#[derive(Default)]
pub(super) struct TurnShadow {
    leases: Leases<Batch>,
    /// The messages under way, in the order of their arrival.
    messages: BTreeMap<u64, Pending>,
    arrived: u64,
    histories: BTreeMap<(String, u64, Option<RunId>), Vec<Event>>,
    /// The run of the latest commit, by instance and execution.
    latest: BTreeMap<(String, u64), Option<RunId>>,
    /// When the last lease of an instance ended.
    freed: BTreeMap<String, u64>,
    /// The engine versions that executions are pinned to.
    pins: BTreeMap<(String, u64, Option<RunId>), Version>,
    /// The moves that executions are to be told of, with the lease that brought the message last.
    migrations: Vec<(Migration, Option<String>)>,
    /// Whether fetches may have been dropped after they claimed a session, unseen: it moved, unseen.
    pub(super) has_drops: bool,
    pub(super) waits: Vec<TurnWait>,
    /// The instances that a turn has made.
    made: BTreeMap<String, MadeInstance>,
    pub(super) deleted: Vec<DeletedInstance>,
}

/// An instance as its commits tell of it.
#[derive(Default)]
struct MadeInstance {
    is_child: bool,
    ended_ms: Option<u64>,
}

/// What a lease holds.
#[derive(Debug)]
struct Batch {
    instance: String,
    messages: Vec<u64>,
}

/// A message that no turn has consumed.
struct Pending {
    item: WorkItem,
    due_ms: u64,
    visible_ms: u64,
    deliveries: u32,
    /// A refusal may end its delay at any time.
    is_refused: bool,
    /// Whether the instance existed when it was sent, so that it is no stray.
    is_expected: bool,
}

impl Pending {
    fn is_no_stray(&self) -> bool {
        self.is_expected || is_start(&self.item)
    }

    /// Tells whether it may be delivered by now.
    fn is_due(&self, now: u64) -> bool {
        self.visible_ms <= now || self.is_refused
    }
}

impl TurnShadow {
    pub(super) fn post(&mut self, envelope: &Envelope, now: u64) {
        let due = after(now, envelope.delay.unwrap_or_default());
        self.send(&envelope.message, due);
    }

    pub(super) fn send(&mut self, message: &Message, due_ms: u64) {
        self.arrived += 1;
        let instance = message.item.instance();
        let is_expected = self.latest.keys().any(|(known, _)| known == instance);
        let pending = Pending {
            item: message.item.clone(),
            due_ms,
            visible_ms: due_ms,
            deliveries: 0,
            is_refused: false,
            is_expected,
        };
        self.messages.insert(self.arrived, pending);
    }

    /// Notes that a watcher of a session is to be told of a move.
    pub(super) fn expect_migration(&mut self, migration: Migration) {
        self.migrations.push((migration, None));
    }

    pub(super) fn granted(&mut self, lease: &TurnLease, lasts: Duration, found: &mut Found) {
        let (now, instance) = (lease.now_ms, lease.instance.as_str());
        let is_other = |batch: &Batch| batch.instance == instance;
        if self.leases.all().any(|granted| granted.is_live(now) && is_other(&granted.row)) {
            found.add_unless_deleted("I3", format!("{instance} is leased at {now} while it is leased"));
        }
        self.check_history(lease, found);
        self.note_wait(instance, now);
        let taken = self.take(lease, found);
        self.check_left(lease, &taken, found);
        self.check_migrations(lease, found);
        let mut highest = 0;
        for place in &taken {
            if let Some(pending) = self.messages.get_mut(place) {
                pending.deliveries += 1;
                pending.is_refused = false;
                pending.visible_ms = pending.visible_ms.min(now);
                highest = highest.max(pending.deliveries);
            }
        }
        // The store itself sends some messages, which the watch cannot count.
        if taken.len() == lease.messages.len() && highest != lease.attempt {
            found.add_unless_deleted(
                "I12",
                format!("a turn of {instance} at {now} is told delivery {}, it is {highest}", lease.attempt),
            );
        }
        let batch = Batch { instance: instance.to_owned(), messages: taken };
        self.leases.grant(&lease.token, batch, after(now, lasts));
    }

    /// Checks that a worker is given only executions whose engine version it runs.
    pub(super) fn check_pin(
        &self,
        lease: &TurnLease,
        engines: Option<&DispatcherCapabilityFilter>,
        found: &mut Found,
    ) {
        let pin = self.pins.get(&(lease.instance.clone(), lease.execution_id, lease.run));
        if !runs_engine(engines, pin) {
            let TurnLease { instance, execution_id, now_ms, .. } = lease;
            let text = format!("{instance}/{execution_id} of {pin:?} is given to {engines:?} at {now_ms}");
            found.add("I11", text);
        }
    }

    fn check_history(&self, lease: &TurnLease, found: &mut Found) {
        let TurnLease { instance, execution_id, run, .. } = lease;
        let known: &[Event] = match self.histories.get(&(instance.clone(), *execution_id, *run)) {
            Some(known) => known,
            None if run.is_none() => &[],
            None => {
                let text = format!("{instance}/{execution_id} is leased with a run that no commit made");
                return found.add("I2", text);
            }
        };
        let is_same = match &lease.history {
            History::Whole(events) => events == known,
            History::Tail { after, events } => {
                let tail: Vec<&Event> = known.iter().filter(|event| event.event_id > *after).collect();
                tail == events.iter().collect::<Vec<_>>()
            }
            History::Unreadable(_) | History::Damaged(_) => true,
        };
        let last = known.last().map_or(0, |event| event.event_id);
        if !is_same || lease.last_event_id != last {
            let text = format!("{instance}/{execution_id} is leased with another history than was committed");
            found.add("I2", text);
        }
    }

    fn note_wait(&mut self, instance: &str, now: u64) {
        let mine = self.messages.values().filter(|pending| pending.item.instance() == instance);
        // A message that came before its instance may be a stray, which was settled.
        let ready = mine.filter(|pending| pending.is_no_stray() && pending.visible_ms <= now);
        let ready = ready.filter(|pending| !pending.is_refused);
        if let Some(oldest) = ready.map(|pending| pending.visible_ms).min() {
            let freed = self.freed.get(instance).copied().unwrap_or(0);
            let expired = self.leases.all().filter(|granted| granted.row.instance == instance);
            let ends = expired.filter(|granted| !granted.is_settled).map(|granted| granted.until_ms);
            let since_ms = ends.fold(oldest.max(freed), u64::max);
            self.waits.push(TurnWait { instance: instance.to_owned(), since_ms, until_ms: now });
        }
    }

    /// Finds the messages of a lease among those under way, and checks that they may be delivered.
    fn take(&mut self, lease: &TurnLease, found: &mut Found) -> Vec<u64> {
        let (now, mut taken) = (lease.now_ms, Vec::new());
        let mut last = (0, 0);
        for message in &lease.messages {
            if self.is_expected_migration(&message.item) {
                continue;
            }
            let twins = lease.messages.iter().filter(|other| other.item == message.item).count();
            let Some((place, pending)) = self.find(&message.item, twins, &taken, last, now) else {
                found
                    .add("I5", format!("at {now} a turn is given what is not under way: {:?}", message.item));
                continue;
            };
            if !pending.is_due(now) {
                let rule = if fires_at_ms(&message.item).is_some() { "I8" } else { "S9" };
                let text = format!(
                    "at {now} a turn is given what is due at {}: {:?}",
                    pending.visible_ms, message.item
                );
                found.add(rule, text);
            }
            if (pending.due_ms, place) < last {
                found
                    .add("I5", format!("at {now} a turn is given {:?} behind a later message", message.item));
            }
            last = (pending.due_ms, place);
            taken.push(place);
        }
        taken
    }

    /// Finds a message of this text under way that the lease has not taken: the first that may come now,
    /// behind `last`. If there is none, the first of all, which shows what is wrong. `twins` is how many of
    /// this text the lease has: if more are under way, those that a refusal delays may have stayed behind.
    ///
    /// The first of all need not be the one that came. A deletion takes messages along, unseen, and a new
    /// instance of the id is sent others of the same text. If nothing was deleted, the one that is passed
    /// over here is missing from its turn, and `check_left` says so.
    fn find(
        &self,
        item: &WorkItem,
        twins: usize,
        taken: &[u64],
        last: (u64, u64),
        now: u64,
    ) -> Option<(u64, &Pending)> {
        let all = self.messages.iter().map(|(place, pending)| (*place, pending));
        let of_text: Vec<(u64, &Pending)> = all.filter(|(_, pending)| pending.item == *item).collect();
        let are_all_here = of_text.len() <= twins;
        let same: Vec<(u64, &Pending)> =
            of_text.into_iter().filter(|(place, _)| !taken.contains(place)).collect();
        // A stray of the same text may have been settled.
        let kept = || same.iter().filter(|(_, pending)| pending.is_no_stray());
        let in_order = |is_due: fn(&Pending, u64) -> bool| {
            kept().find(|(place, pending)| is_due(pending, now) && (pending.due_ms, *place) > last)
        };
        let is_visible = |pending: &Pending, now: u64| pending.visible_ms <= now;
        let surely = if are_all_here { None } else { in_order(is_visible) };
        let in_order = surely.or_else(|| in_order(Pending::is_due));
        in_order.or_else(|| kept().next()).or_else(|| same.first()).copied()
    }

    fn is_expected_migration(&self, item: &WorkItem) -> bool {
        let is_move = matches!(item, WorkItem::SessionMigrated { .. });
        is_move && self.has_drops || self.migrations.iter().any(|(migration, _)| migration.is(item))
    }

    /// Checks that a lease leaves no visible message behind.
    fn check_left(&self, lease: &TurnLease, taken: &[u64], found: &mut Found) {
        let is_left = |(place, pending): &(&u64, &Pending)| {
            pending.item.instance() == lease.instance
                && pending.visible_ms <= lease.now_ms
                && pending.is_no_stray()
                && !taken.contains(*place)
        };
        if lease.messages.len() < MAX_TURN_MESSAGES
            && let Some((_, pending)) = self.messages.iter().find(is_left)
        {
            let text = format!("at {} a turn is not given {:?}", lease.now_ms, pending.item);
            found.add_unless_deleted("I5", text);
        }
    }

    /// Checks that a lease brings the moves of sessions that its execution is to be told of.
    fn check_migrations(&mut self, lease: &TurnLease, found: &mut Found) {
        let TurnLease { instance, execution_id, messages, token, .. } = lease;
        if self.has_drops {
            return;
        }
        for (migration, brought_by) in &mut self.migrations {
            if messages.iter().any(|message| migration.is(&message.item)) {
                *brought_by = Some(token.as_str().to_owned());
            } else if migration.instance == *instance && migration.execution_id == *execution_id {
                let text = format!("{instance}/{execution_id} is not told of {migration:?}");
                found.add_unless_deleted("A15", text);
            }
        }
    }

    /// Applies a commit that succeeded. Returns the instance.
    pub(super) fn committed(
        &mut self,
        token: &LeaseToken,
        commit: &TurnCommit,
        run: Option<Committed>,
        now: u64,
        found: &mut Found,
    ) -> Option<String> {
        let granted = self.leases.used(token, "a commit", "I3", now, found)?;
        granted.is_settled = true;
        let instance = granted.row.instance.clone();
        for place in std::mem::take(&mut granted.row.messages) {
            self.messages.remove(&place);
        }
        self.migrations.retain(|(_, brought_by)| brought_by.as_deref() != Some(token.as_str()));
        self.freed.insert(instance.clone(), now);
        self.note_life(&instance, commit, now);
        let run = run.and_then(|committed| committed.run);
        self.latest.insert((instance.clone(), commit.execution_id), run);
        let place = (instance.clone(), commit.execution_id, run);
        if let Some(pin) = &commit.metadata.pinned_duroxide_version {
            self.pins.entry(place.clone()).or_insert_with(|| pin.clone());
        }
        let history = self.histories.entry(place).or_default();
        let has_ended = history.iter().any(Event::is_terminal);
        if has_ended && !commit.events.is_empty() {
            found.add("I9", format!("{instance}/{} goes on after its end", commit.execution_id));
        }
        history.extend(commit.events.iter().cloned());
        for message in &commit.messages {
            let due_ms = fires_at_ms(&message.item).unwrap_or(now);
            self.send(message, due_ms);
        }
        Some(instance)
    }

    fn note_life(&mut self, instance: &str, commit: &TurnCommit, now: u64) {
        if commit.metadata.orchestration_name.is_some() {
            self.made.entry(instance.to_owned()).or_default();
        }
        let Some(made) = self.made.get_mut(instance) else { return };
        made.is_child |= commit.metadata.parent_instance_id.is_some();
        if commit.ends_instance() {
            made.ended_ms.get_or_insert(now);
        }
    }

    /// Notes which instances are gone, of those that turns have made.
    pub(super) fn deleted_but(&mut self, kept: &BTreeSet<String>, at_ms: u64) {
        let gone = self.made.extract_if(.., |instance, _| !kept.contains(instance));
        self.deleted.extend(gone.map(|(instance, MadeInstance { is_child, ended_ms })| DeletedInstance {
            instance,
            at_ms,
            ended_ms,
            is_child,
        }));
    }

    pub(super) fn renewed(&mut self, token: &LeaseToken, by: Duration, now: u64, found: &mut Found) {
        if let Some(granted) = self.leases.used(token, "a renewal", "S4", now, found) {
            granted.until_ms = after(now, by);
        }
    }

    pub(super) fn lost(&mut self, token: &LeaseToken, now: u64, found: &mut Found) {
        self.leases.lost(token, now, found);
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
        self.freed.insert(granted.row.instance.clone(), now);
        for place in &granted.row.messages {
            let Some(pending) = self.messages.get_mut(place) else { continue };
            pending.is_refused = refused;
            if how.attempt == Attempt::Uncounted {
                pending.deliveries = pending.deliveries.saturating_sub(1);
            }
            if let Some(delay) = how.retry_after {
                pending.visible_ms = after(now, delay);
            }
        }
    }

    /// Returns what was leased by a holder that let the lease expire and said nothing about it.
    pub(super) fn outlived(&self, now: u64) -> Vec<String> {
        self.leases.outlived(now).map(|row| format!("{row:?}")).collect()
    }

    pub(super) fn excused(&mut self, token: &LeaseToken, excused: bool, now: u64, found: &mut Found) {
        let Some(granted) = self.leases.get_mut(token) else { return };
        let instance = granted.row.instance.as_str();
        granted.is_asked = true;
        let may = !granted.is_live(now) && !granted.is_settled && !granted.is_excused;
        if excused && !may {
            found.add("I12", format!("a delivery of {instance} is taken off at {now}, which counts"));
        }
        if !excused {
            if may && granted.row.messages.iter().any(|place| self.messages.contains_key(place)) {
                let text = format!("a delivery of {instance} counts at {now}, which its holder outlived");
                found.add_unless_deleted("I12", text);
            }
            return;
        }
        granted.is_excused = true;
        for place in &granted.row.messages {
            if let Some(pending) = self.messages.get_mut(place) {
                pending.deliveries = pending.deliveries.saturating_sub(1);
            }
        }
    }

    /// Compares the histories at the end with those that were committed. Old executions of the instances that
    /// are named may be gone.
    pub(super) fn compare(&self, records: &Records, pruned: &BTreeSet<&str>, found: &mut Found) {
        for ((instance, execution), run) in &self.latest {
            let Some(kept) = records.instances.get(instance) else { continue };
            if pruned.contains(instance.as_str()) && !kept.executions.contains_key(execution) {
                continue;
            }
            let known = self.histories.get(&(instance.clone(), *execution, *run));
            let known = known.map_or(&[][..], Vec::as_slice);
            let kept = kept.executions.get(execution).map_or(&[][..], Vec::as_slice);
            if known != kept {
                let text = format!("the history of {instance}/{execution} is not the one that was committed");
                found.add_unless_deleted("I1", text);
            }
        }
    }
}
