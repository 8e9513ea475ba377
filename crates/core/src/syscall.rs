//! Activities of the engine itself: values that must be recorded to be the same on replay.
//!
//! Their names are a wire format: a history of the compatible API holds them.

/// Begins the name of every activity of the engine; applications cannot register such a name.
pub const SYSCALL_PREFIX: &str = "__duroxide_syscall:";

/// Names the activity that makes a random UUID.
pub const SYSCALL_NEW_GUID: &str = "__duroxide_syscall:new_guid";

/// Names the activity that reads the time, in milliseconds since the Unix epoch.
pub const SYSCALL_UTC_NOW_MS: &str = "__duroxide_syscall:utc_now_ms";

/// Names the activity that reads a key of another instance.
pub const SYSCALL_GET_KV_VALUE: &str = "__duroxide_syscall:get_kv_value";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_of_the_engine_has_the_reserved_prefix() {
        for name in [SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS, SYSCALL_GET_KV_VALUE] {
            assert!(name.starts_with(SYSCALL_PREFIX));
        }
    }
}
