//! Noticing that the time of the file has jumped against the time that waiting calls wait by, and that the
//! wall clock was set.

use std::time::Duration;

use crate::link::clock::FileClock;
use crate::link::db::time;

/// The time of the file and the clocks of the process as they were read last.
#[derive(Debug)]
pub(crate) struct Pace {
    store_ms: i64,
    monotonic: Duration,
    /// How far the wall clock was ahead of the time of the file when that was told, or at the start.
    told_ahead_ms: i64,
    /// When the wall clock is read again.
    next_wall: Duration,
}

/// A jump that a waiting call must learn of. Readings in milliseconds differ by less.
const JUMP_MS: i64 = 100;

/// How often the wall clock is read, and how far it must have been set to be told of.
const WALL: Duration = Duration::from_secs(1);

impl Pace {
    pub(crate) fn of(clock: &FileClock) -> Self {
        let (store_ms, monotonic) = (clock.now_ms(), clock.clock().monotonic());
        let told_ahead_ms = time(clock.clock().now_ms()).saturating_sub(store_ms);
        Self { store_ms, monotonic, told_ahead_ms, next_wall: monotonic.saturating_add(WALL) }
    }

    /// Tells whether the time of the file has moved on by more than monotonic time since the last call. Calls
    /// that wait for a moment wait by monotonic time: they must look again.
    pub(crate) fn has_jumped(&mut self, clock: &FileClock) -> bool {
        let (store_ms, monotonic) = (clock.now_ms(), clock.clock().monotonic());
        let waited = monotonic.saturating_sub(self.monotonic).as_millis();
        let expected = self.store_ms.saturating_add(i64::try_from(waited).unwrap_or(i64::MAX));
        (self.store_ms, self.monotonic) = (store_ms, monotonic);
        if monotonic >= self.next_wall {
            self.next_wall = monotonic.saturating_add(WALL);
            self.compare_wall(time(clock.clock().now_ms()).saturating_sub(store_ms));
        }
        store_ms.saturating_sub(expected) > JUMP_MS
    }

    fn compare_wall(&mut self, ahead_ms: i64) {
        let changed = ahead_ms.saturating_sub(self.told_ahead_ms);
        if changed.unsigned_abs() > WALL.as_millis() as u64 {
            self.told_ahead_ms = ahead_ms;
            tracing::warn!(
                target: "steadfast::store",
                ahead_ms,
                "the wall clock was set; leases and timers go by the time of the file, which goes on"
            );
        }
    }
}
