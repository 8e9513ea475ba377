//! Waiting: what is there to tell of messages and activities that nobody has dealt with yet.

use std::collections::BTreeMap;

use steadfast_core::{SessionKey, WorkItem};
use steadfast_store::{MAX_PAGE, OldestWaiting, TurnState, WorkPhase, WorkState};

use crate::state::{MessageRow, State, Stored, WorkRow};

impl State {
    pub(crate) fn turn_of(&self, instance: &str, now: u64) -> Option<TurnState> {
        if !self.exists(instance) {
            return None;
        }
        let lock = self.turns.get(instance).filter(|lock| lock.is_live(now));
        let mut told = TurnState {
            leased_until_ms: lock.map(|lock| lock.until_ms),
            watched: self.watched_by(instance),
            now_ms: now,
            ..TurnState::default()
        };
        for message in self.messages.values().filter(|message| message.instance == instance) {
            if self.is_message_leased(message, now) {
                told.leased += 1;
            } else if message.visible_at_ms > now {
                told.delayed += 1;
            } else {
                told.waiting += 1;
                told.oldest_ms = told.oldest_ms.into_iter().chain([message.visible_at_ms]).min();
            }
        }
        Some(told)
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
        let mut told: Vec<WorkState> = rows
            .filter(|row| row.identity.instance == instance && row.identity.execution_id == execution)
            .map(|row| row.told(now))
            .collect();
        told.sort_by_key(|work| work.activity_id);
        told.truncate(MAX_PAGE);
        told
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

    /// Since when nobody holds the instance; 0 when nobody did since its messages came.
    fn free_since(&self, instance: &str) -> u64 {
        let ended = self.turns.get(instance).map_or(0, |lock| lock.until_ms);
        ended.max(self.freed.get(instance).copied().unwrap_or(0))
    }
}

impl WorkRow {
    fn told(&self, now: u64) -> WorkState {
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
            phase,
        }
    }
}
