//! Vocabulary and replay of Steadfast.
//!
//! This crate holds plain data and pure decisions. It reads no clock, starts no thread, opens no file and
//! knows no async runtime and no store: the world is passed in, so that the same inputs give the same
//! decisions on every machine.

#![deny(clippy::iter_over_hash_type)]
#![deny(clippy::wildcard_enum_match_arm)]

mod context;
mod operation;
pub mod replay;
mod vocabulary;

pub use context::combine::either::{Either2, Either3};
pub use context::combine::{Select2, Select3};
pub use context::future::{DurableFuture, WithTagError};
pub use context::{OrchestrationContext, TypedDequeue};
pub use replay::mismatch::{CallSite, LastMatch, Mismatch};
pub use replay::open_operations::{OpenKind, OpenOperation, open_operations};
pub use vocabulary::action::Action;
pub use vocabulary::call::{CallFailure, CallTerms, Failure, FailureKind, unrecorded_key};
pub use vocabulary::codec::{decode, decode_json, decode_named, encode, encode_json, encode_named};
#[doc(hidden)]
pub use vocabulary::compat::CompletionResult;
pub use vocabulary::compat::{
    SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_PREFIX, SYSCALL_UTC_NOW_MS, ScheduleKind,
    ScheduledActivityIdentifier,
};
pub use vocabulary::error::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};
pub use vocabulary::event::{Event, EventKind};
pub use vocabulary::instance::ids::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX, auto_child_suffix, build_child_instance_id,
    is_auto_generated_sub_orch_id, uses_reserved_marker,
};
pub use vocabulary::instance::kv::KvEntry;
pub use vocabulary::instance::metadata::ExecutionMetadata;
pub use vocabulary::instance::stats::SystemStats;
pub use vocabulary::instance::status::OrchestrationStatus;
pub use vocabulary::limits::{
    MAX_ACTIONS_PER_TURN, MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_DECISION_POLLS, MAX_KV_KEYS,
    MAX_KV_VALUE_BYTES, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_POLLS_PER_POINT, MAX_SESSION_ID_BYTES,
    MAX_SESSIONS_PER_ORCHESTRATION, MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS, WARN_HISTORY_EVENTS,
};
pub use vocabulary::policy::Policy;
pub use vocabulary::retry::{BackoffStrategy, InvalidRetryPolicy, Retry, RetryPolicy};
pub use vocabulary::session::{
    CarriedSession, ENGINE_SESSION_PREFIX, SESSION_LOST, SessionConcurrency, SessionKey, SessionMigration,
    SessionOptions, SessionPool, engine_session_id, is_session_lost, session_lost,
};
pub use vocabulary::tag::{InvalidTagFilter, TagFilter};
pub use vocabulary::traceparent::{InvalidTraceparent, TraceField, check_traceparent};
pub use vocabulary::version::{
    BUILD_VERSION, DispatcherCapabilityFilter, SemverRange, current_build_version,
};
pub use vocabulary::work_item::{WorkItem, kind_of};
pub use vocabulary::{codec, limits};
