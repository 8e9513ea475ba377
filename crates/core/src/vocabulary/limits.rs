//! Every limit of the engine, with its reason. Sizes are in bytes.

/// Bounds the unread queue messages a continue-as-new takes along, because one event holds them.
pub const MAX_CARRY_FORWARD_EVENTS: usize = 100;

/// Bounds a custom status, because clients poll it.
pub const MAX_CUSTOM_STATUS_BYTES: usize = 262_144;

/// Bounds the tags of a worker, because a store looks for each of them on every fetch.
pub const MAX_WORKER_TAGS: usize = 5;

/// Bounds a tag, because it is an index key in every store.
pub const MAX_TAG_NAME_BYTES: usize = 256;

/// Bounds the keys of an instance, because a fetch may read all keys.
pub const MAX_KV_KEYS: usize = 150;

/// Bounds the value of a key, because a fetch may read the values of all keys.
pub const MAX_KV_VALUE_BYTES: usize = 65_536;

/// Bounds one input, output or message by default, because a turn holds all of them in memory.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024 * 1024;

/// Bounds a name or an instance id, because they are index keys in every store.
pub const MAX_NAME_BYTES: usize = 1024;

/// Bounds a session id, because it is an index key in every store.
pub const MAX_SESSION_ID_BYTES: usize = 1024;

/// Bounds the open sessions of an orchestration by default, because each holds a place on a worker.
pub const MAX_SESSIONS_PER_ORCHESTRATION: usize = 10;

/// The number of events from which a history is reported as long, because each cold turn reads all of it.
pub const WARN_HISTORY_EVENTS: usize = 50_000;

/// Bounds the polls at one point of history, because a handler that wakes itself for ever never settles.
pub const MAX_POLLS_PER_POINT: usize = 100;

/// Bounds the polls that the decisions of one turn ask for, because code that opens and closes sessions for
/// ever never settles. It is far above what draining a queue needs: each message that waits costs one poll.
pub const MAX_DECISION_POLLS: usize = 100_000;

/// Bounds the actions of one turn, because they are committed in one transaction.
pub const MAX_ACTIONS_PER_TURN: usize = 1_000_000;
