//! Inspection: which messages and activities wait, are held back or are leased, and since when.

use std::collections::BTreeMap;

use steadfast_core::{SessionKey, WorkItem};
use steadfast_store::rules::timers_of;
use steadfast_store::{MAX_PAGE, OldestWaiting, TurnState, WaitingStart, WorkPhase, WorkState};

use crate::state::{MessageRow, State, Stored, WorkRow};

impl State {
    pub(crate) fn turn_of(&self, instance: &str, now: u64) -> Option<TurnState> {
        if !self.exists(instance) {
            return None;
        }
        let lock = self.turns.get(instance).filter(|lock| lock.is_live(now));
        let mut turns = TurnState {
            leased_until_ms: lock.map(|lock| lock.until_ms),
            watched: self.watched_by(instance),
            dropped_timers: self.dropped_timers(instance),
            now_ms: now,
            ..TurnState::default()
        };
        for message in self.messages.values().filter(|message| message.instance == instance) {
            if self.is_message_leased(message, now) {
                turns.leased += 1;
            } else if message.visible_at_ms > now {
                turns.delayed += u64::from(!message.is_dropped);
            } else {
                turns.waiting += 1;
                turns.oldest_ms = turns.oldest_ms.into_iter().chain([message.visible_at_ms]).min();
            }
        }
        Some(turns)
    }

    fn dropped_timers(&self, instance: &str) -> Vec<u64> {
        let own = self.messages.values().filter(|row| row.instance == instance && row.is_dropped);
        let items = own.filter_map(|row| match &row.item {
            Stored::Readable(item) => Some(item.clone()),
            Stored::Unreadable { .. } => None,
        });
        let mut timers = timers_of(self.latest_execution(instance), items);
        timers.truncate(MAX_PAGE);
        timers
    }

    pub(crate) fn start_of(&self, instance: &str) -> Option<WaitingStart> {
        let mut own = self.messages.values().filter(|message| message.instance == instance);
        own.find_map(|message| match &message.item {
            Stored::Readable(item) => WaitingStart::of(item),
            Stored::Unreadable { .. } => None,
        })
    }

    fn watched_by(&self, instance: &str) -> Vec<SessionKey> {
        let execution = self.latest_execution(instance);
        let watched = self.watchers.iter().filter(|(_, watchers)| {
            watchers.iter().any(|watcher| watcher.instance == instance && watcher.execution == execution)
        });
        watched.map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn work_of(&self, instance: &str, execution: u64, now: u64) -> Vec<WorkState> {
        let rows = self.work.values();
        let mut states: Vec<WorkState> = rows
            .filter(|row| row.identity.instance == instance && row.identity.execution_id == execution)
            .map(|row| row.inspect(now))
            .collect();
        states.sort_by_key(|work| work.activity_id);
        states.truncate(MAX_PAGE);
        states
    }

    pub(crate) fn oldest_waiting(&self, now: u64) -> OldestWaiting {
        let mut visible: BTreeMap<&str, u64> = BTreeMap::new();
        for message in self.messages.values().filter(|message| self.is_runnable(message, now)) {
            let oldest = visible.entry(&message.instance).or_insert(message.visible_at_ms);
            *oldest = message.visible_at_ms.min(*oldest);
        }
        let instances = visible.into_iter().map(|(instance, oldest)| oldest.max(self.free_since(instance)));
        let work = self.work.iter().filter(|(place, row)| {
            row.is_readable() && row.is_waiting(now) && self.is_its_turn(**place, row, now)
        });
        OldestWaiting {
            message_ms: instances.min(),
            work_ms: work.map(|(_, row)| row.waiting_since()).min(),
            now_ms: now,
        }
    }

    fn is_runnable(&self, message: &MessageRow, now: u64) -> bool {
        message.visible_at_ms <= now
            && matches!(message.item, Stored::Readable(_))
            && !self.is_leased(&message.instance, now)
            && !self.waits_for_its_start(&message.instance, now)
    }

    /// Returns since when the instance is not leased; 0 if it was not leased since its messages arrived.
    fn free_since(&self, instance: &str) -> u64 {
        let ended = self.turns.get(instance).map_or(0, |lock| lock.until_ms);
        ended.max(self.freed.get(instance).copied().unwrap_or(0))
    }
}

impl WorkRow {
    fn inspect(&self, now: u64) -> WorkState {
        let name = match &self.item {
            Stored::Readable(WorkItem::ActivityExecute { name, .. }) => Some(name.clone()),
            _ => None,
        };
        let phase = match &self.lock {
            Some(held) if held.lock.is_live(now) => {
                WorkPhase::Leased { worker_id: held.worker.clone(), until_ms: held.lock.until_ms }
            }
            _ if self.visible_at_ms > now => WorkPhase::Delayed { until_ms: self.visible_at_ms },
            _ => WorkPhase::Waiting { since_ms: self.waiting_since() },
        };
        WorkState {
            activity_id: self.identity.activity_id,
            name,
            tag: self.tag.clone(),
            session: self.session.clone(),
            attempts: self.attempts,
            deliveries: self.deliveries,
            call: self.call.clone(),
            tries: self.tries.clone(),
            phase,
        }
    }
}
