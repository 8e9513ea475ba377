//! The sizes of the data that a store holds for one instance.

use serde::{Deserialize, Serialize};

/// The numbers and sizes of the events, carried queue messages and keys that a store holds for one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemStats {
    /// The number of events of the current execution.
    pub history_event_count: u64,
    /// The size of these events as JSON, in bytes.
    pub history_size_bytes: u64,
    /// The number of queue messages that the current execution began with, because the previous execution did
    /// not read them. Messages that arrived since do not count.
    pub queue_pending_count: u64,
    /// The number of keys of the key-value store that are set.
    pub kv_user_key_count: u64,
    /// The size of the values of these keys, in bytes.
    pub kv_total_value_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_written_under_their_field_names() {
        let stats = SystemStats {
            history_event_count: 1,
            history_size_bytes: 2,
            queue_pending_count: 3,
            kv_user_key_count: 4,
            kv_total_value_bytes: 5,
        };
        let text = serde_json::to_string(&stats).unwrap();
        assert_eq!(
            text,
            "{\"history_event_count\":1,\"history_size_bytes\":2,\"queue_pending_count\":3,\
             \"kv_user_key_count\":4,\"kv_total_value_bytes\":5}"
        );
        assert_eq!(serde_json::from_str::<SystemStats>(&text).unwrap(), stats);
    }
}
