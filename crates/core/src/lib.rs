//! Vocabulary and replay of Steadfast.
//!
//! This crate holds plain data and pure decisions. It reads no clock, starts no thread, opens no file and
//! knows no async runtime and no store: the world is passed in, so that the same inputs give the same
//! decisions on every machine.

#![deny(clippy::iter_over_hash_type)]

mod action;
mod children;
pub mod codec;
mod context;
mod either;
mod error;
mod event;
mod execution;
mod future;
mod instance;
mod kv;
mod ledger;
pub mod limits;
mod mismatch;
mod open;
mod operation;
mod outline;
pub mod replay;
mod retry;
mod schedule;
mod session;
mod shared;
mod stats;
mod status;
mod syscall;
mod tag;
mod traceparent;
mod version;
mod work;

pub use action::Action;
pub use codec::{decode, decode_json, encode, encode_json};
pub use context::{OrchestrationContext, Select2, Select3, TypedDequeue};
pub use either::{Either2, Either3};
pub use error::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};
pub use event::{Event, EventKind};
pub use execution::ExecutionMetadata;
pub use future::{DurableFuture, WithTagError};
pub use instance::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX, auto_child_suffix, build_child_instance_id,
    is_auto_generated_sub_orch_id, uses_reserved_marker,
};
pub use kv::KvEntry;
pub use limits::{
    MAX_ACTIONS_PER_TURN, MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_DECISION_POLLS, MAX_KV_KEYS,
    MAX_KV_VALUE_BYTES, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_POLLS_PER_POINT, MAX_SESSION_ID_BYTES,
    MAX_SESSIONS_PER_ORCHESTRATION, MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS, WARN_HISTORY_EVENTS,
};
pub use mismatch::{CallSite, LastMatch, Mismatch};
pub use open::{OpenKind, OpenOperation, open_operations};
pub use retry::{BackoffStrategy, InvalidRetryPolicy, Retry, RetryPolicy};
#[doc(hidden)]
pub use schedule::CompletionResult;
pub use schedule::{ScheduleKind, ScheduledActivityIdentifier};
pub use session::{
    CarriedSession, ENGINE_SESSION_PREFIX, SESSION_LOST, SessionConcurrency, SessionKey, SessionMigration,
    SessionOptions, SessionPool, engine_session_id, is_session_lost, session_lost,
};
pub use stats::SystemStats;
pub use status::OrchestrationStatus;
pub use syscall::{SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_PREFIX, SYSCALL_UTC_NOW_MS};
pub use tag::{InvalidTagFilter, TagFilter};
pub use traceparent::{InvalidTraceparent, TraceField, check_traceparent};
pub use version::{BUILD_VERSION, DispatcherCapabilityFilter, SemverRange, current_build_version};
pub use work::{WorkItem, kind_of};
