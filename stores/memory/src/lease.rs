//! Leases that end without their holder: deliveries that the holder excuses afterwards (S5), and activities
//! that are withdrawn while they run (S12). In `sleep.rs`: leases while the machine sleeps.

mod sleep;

use steadfast_store::{LeaseToken, WITHDRAWN_KNOWN_FOR};

use crate::message::after;
use crate::state::{MessageRow, State, WorkRow};

impl State {
    /// Takes the delivery of an expired lease off the count, once for each lease. A lease that no fetch has
    /// replaced yet is expired too.
    pub(crate) fn excuse(&mut self, lease: &LeaseToken, now: u64) -> bool {
        match lease {
            LeaseToken::Turn(token) => self.excuse_turn(token, now),
            LeaseToken::Work(token) => self.work.values_mut().any(|row| row.excuse(token, now)),
        }
    }

    fn excuse_turn(&mut self, token: &str, now: u64) -> bool {
        let mut leases = self.turns.iter().filter(|(_, lock)| lock.token == token && !lock.is_live(now));
        if let Some((instance, ended)) = leases.next().map(|(id, lock)| (id.clone(), lock.until_ms)) {
            self.note_expired_turn(&instance);
            self.end_turn(&instance, ended);
        }
        let excused = self.messages.values_mut().filter_map(|message| message.excuse(token));
        excused.count() > 0
    }

    /// Notes at the messages of an instance that its last lease has expired. The caller has seen that it has.
    pub(crate) fn note_expired_turn(&mut self, instance: &str) {
        let Some(lock) = self.turns.get(instance) else { return };
        for message in self.messages.values_mut().filter(|message| message.instance == instance) {
            if message.token.as_ref() == Some(&lock.token) {
                message.expired.extend(message.token.take());
            }
        }
    }

    /// Removes activities, queued or running, and returns their number. The holder of a running one learns of
    /// it at its next call.
    pub(crate) fn withdraw(&mut self, is_withdrawn: impl Fn(&WorkRow) -> bool, now: u64) -> u64 {
        self.withdrawn.retain(|_, known_until| *known_until > now);
        let mut removed = 0;
        self.work.retain(|_, row| {
            if !is_withdrawn(row) {
                return true;
            }
            removed += 1;
            if let Some(held) = row.lock.as_ref().filter(|held| held.lock.is_live(now)) {
                let known_until = after(held.lock.until_ms, Some(WITHDRAWN_KNOWN_FOR));
                self.withdrawn.insert(held.lock.token.clone(), known_until);
            }
            false
        });
        removed
    }
}

impl MessageRow {
    fn excuse(&mut self, token: &str) -> Option<()> {
        let place = self.expired.iter().position(|expired| expired == token)?;
        self.expired.remove(place);
        self.attempts = self.attempts.saturating_sub(1);
        Some(())
    }
}

impl WorkRow {
    /// Notes that the last lease of the activity has expired, unless it was abandoned or excused. The caller
    /// has seen that it has ended.
    pub(crate) fn note_expired(&mut self) {
        if let Some(held) = self.lock.as_mut().filter(|held| !held.is_settled) {
            held.is_settled = true;
            self.expired.push(held.lock.token.clone());
        }
    }

    fn excuse(&mut self, token: &str, now: u64) -> bool {
        if self.lock.as_ref().is_some_and(|held| held.lock.token == token && !held.lock.is_live(now)) {
            self.note_expired();
        }
        let Some(place) = self.expired.iter().position(|expired| expired == token) else { return false };
        self.expired.remove(place);
        self.attempts = self.attempts.saturating_sub(1);
        true
    }
}
