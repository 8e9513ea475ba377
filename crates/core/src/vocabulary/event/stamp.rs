//! The two constructors that stamp the time of the call.
//!
//! The compatible API promises it, so this file is the one place in the crate that reads the system clock.
//! Nothing in the engine calls these: a turn's time comes with its lease and goes through [`Event::at`].

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Event, EventKind};

impl Event {
    /// Builds an event with a known id, stamped with the time of the call and the version of this build.
    pub fn with_event_id(
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::at(system_time_ms(), event_id, instance_id, execution_id, source_event_id, kind)
    }

    /// Builds an event whose id (0) is still to be given, stamped like [`Event::with_event_id`].
    pub fn new(
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::with_event_id(0, instance_id, execution_id, source_event_id, kind)
    }
}

/// Reads the system clock; a clock set before 1970 reads as 0.
#[allow(clippy::disallowed_methods, reason = "the compatible constructors stamp the time of the call")]
fn system_time_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compatible_constructors_stamp_the_time_of_the_call() {
        let before = system_time_ms();
        let event = Event::with_event_id(4, "order-1", 2, Some(3), EventKind::KeyValuesCleared);
        assert!((before..=system_time_ms()).contains(&event.timestamp_ms));
        assert_eq!(
            event,
            Event::at(event.timestamp_ms, 4, "order-1", 2, Some(3), EventKind::KeyValuesCleared)
        );
    }

    #[test]
    fn a_new_event_has_no_id_yet() {
        assert_eq!(Event::new("order-1", 1, None, EventKind::KeyValuesCleared).event_id(), 0);
    }
}
