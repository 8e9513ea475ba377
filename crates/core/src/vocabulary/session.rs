//! Sessions: affinity keys that bring activities to the same worker process.
//!
//! A *shared* session exists because an activity names it; an *owned* one is opened by one instance and
//! closed with it. Both have an id; the [`SessionKey`] tells them apart.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Begins the id of every session that the engine names. An orchestration cannot open a new session with such
/// an id.
pub const ENGINE_SESSION_PREFIX: &str = "session::";

/// Begins the error text of an activity that does not find the in-memory state of its session.
pub const SESSION_LOST: &str = "session_lost";

/// Separates the ids made here from every other use of UUID v5. It never changes: replay makes the ids again.
const ENGINE_SESSION_NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_0c52_9a3e_4b7d_8e64_f2a0_57c1_9be3);

/// Identifies a session in a store: by its id alone if it is shared, with the id of its instance if it is
/// owned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The id of the instance that owns the session; `None` for a shared session.
    pub instance: Option<String>,
    /// The id of the session, unique among the sessions of its instance or among the shared ones.
    pub session_id: String,
}

impl SessionKey {
    /// Builds the key of the shared session of this id.
    pub fn shared(session_id: impl Into<String>) -> Self {
        Self { instance: None, session_id: session_id.into() }
    }

    /// Builds the key of the session of this id that an instance owns.
    pub fn owned(instance: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self { instance: Some(instance.into()), session_id: session_id.into() }
    }
}

/// Describes the session to open. By default the engine makes the id, the session stays attached to its
/// worker until it is closed, and its activities run at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// The id of the session within its instance, 1 to 1024 bytes; for `None`, the default, the engine makes
    /// one.
    pub id: Option<String>,
    /// How long the session stays attached without a running activity. With `None`, the default, it stays
    /// attached until it is closed. Too short a time loses the in-memory state between two activities; too
    /// long a time holds a place on the worker.
    pub idle_timeout: Option<Duration>,
    /// How many activities of the session may run at a time; by default as many as fit.
    pub concurrency: SessionConcurrency,
}

impl SessionOptions {
    /// Sets the id of the session, 1 to 1024 bytes; the default is an id that the engine makes.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets how long the session stays attached without a running activity; without this call it stays
    /// attached until it is closed.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = Some(idle_timeout);
        self
    }

    /// Sets how many activities of the session may run at a time; the default is as many as the worker has
    /// room for.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: SessionConcurrency) -> Self {
        self.concurrency = concurrency;
        self
    }
}

/// How many activities of a session may run at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionConcurrency {
    /// As many as the worker has room for, in any order.
    #[default]
    Unbounded,
    /// One, in the order in which the activities were scheduled, even when the session moves to another
    /// worker.
    Serial,
}

/// The pool of workers that an owned session runs in. The first activity of the session decides it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionPool {
    /// The workers that take untagged activities.
    Default,
    /// The workers that take activities with this tag.
    Tag(String),
}

/// Describes an open session that a continue-as-new hands to the next execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedSession {
    /// The id of the session within its instance.
    pub session_id: String,
    /// How long the session stays attached without a running activity, in milliseconds; `None` keeps it
    /// attached until it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// How many activities of the session may run at a time; `None` means as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<SessionConcurrency>,
    /// The pool of workers that the session runs in; `None` until its first activity is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<SessionPool>,
}

/// Tells an orchestration that a session was attached to a worker anew, without its former in-memory state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMigration {
    /// The id of the session, owned by the instance or shared.
    pub id: String,
    /// The number of the new attachment. It rises with each attachment of the session.
    pub epoch: u64,
    /// The name of the worker that the session was attached to before; `None` if this is its first
    /// attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The name of the worker that the session is attached to now.
    pub to: String,
}

/// Makes the id of a session of the event that opens it. Every replay makes the same id, and no other event
/// of any execution leads to it.
pub fn engine_session_id(instance: &str, execution_id: u64, event_id: u64) -> String {
    // The length goes first, so that two different instance ids with their numbers never give the same bytes.
    let mut name = Vec::with_capacity(instance.len() + 24);
    name.extend_from_slice(&(instance.len() as u64).to_be_bytes());
    name.extend_from_slice(instance.as_bytes());
    name.extend_from_slice(&execution_id.to_be_bytes());
    name.extend_from_slice(&event_id.to_be_bytes());
    format!("{ENGINE_SESSION_PREFIX}{}", Uuid::new_v5(&ENGINE_SESSION_NAMESPACE, &name))
}

/// Makes the error text by which an activity says that it does not find the in-memory state of its session.
pub fn session_lost(reason: impl std::fmt::Display) -> String {
    format!("{SESSION_LOST}: {reason}")
}

/// Tells whether an error text says that the in-memory state of a session was not found: it begins as
/// [`session_lost`] makes it. The runtime decides by this rule which failures of activities it records as
/// `AppErrorKind::SessionLost`, so a text that only mentions a lost session is none.
/// [`ErrorDetails::is_session_lost`](crate::ErrorDetails::is_session_lost) decides by the kind.
pub fn is_session_lost(error: &str) -> bool {
    error.strip_prefix(SESSION_LOST).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shared_and_owned_sessions_of_one_id_are_different() {
        let keys = [SessionKey::shared("X"), SessionKey::owned("a", "X"), SessionKey::owned("b", "X")];
        assert!(keys.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn options_are_built_step_by_step() {
        let options = SessionOptions::default()
            .with_id("chat")
            .with_idle_timeout(Duration::from_secs(5))
            .with_concurrency(SessionConcurrency::Serial);
        assert_eq!(options.id.as_deref(), Some("chat"));
        assert_eq!(options.idle_timeout, Some(Duration::from_secs(5)));
        assert_eq!(options.concurrency, SessionConcurrency::Serial);
        assert_eq!(SessionOptions::default().concurrency, SessionConcurrency::Unbounded);
    }

    #[test]
    fn enums_are_written_in_lower_case() {
        let text = |value: Result<String, serde_json::Error>| value.unwrap();
        assert_eq!(text(serde_json::to_string(&SessionConcurrency::Unbounded)), r#""unbounded""#);
        assert_eq!(text(serde_json::to_string(&SessionConcurrency::Serial)), r#""serial""#);
        assert_eq!(text(serde_json::to_string(&SessionPool::Default)), r#""default""#);
        assert_eq!(text(serde_json::to_string(&SessionPool::Tag("gpu".to_owned()))), r#"{"tag":"gpu"}"#);
    }

    #[test]
    fn a_carried_session_writes_nothing_that_is_absent() {
        let session = CarriedSession {
            session_id: "chat".to_owned(),
            idle_timeout_ms: None,
            concurrency: None,
            pool: None,
        };
        let text = serde_json::to_string(&session).unwrap();
        assert_eq!(text, r#"{"session_id":"chat"}"#);
        assert_eq!(serde_json::from_str::<CarriedSession>(&text).unwrap(), session);
    }

    #[test]
    fn g28_a_lost_session_is_recognised_by_the_beginning_of_its_error() {
        assert_eq!(session_lost("no state"), "session_lost: no state");
        assert!(is_session_lost(&session_lost("no state")));
        assert!(is_session_lost("session_lost"));
        assert!(!is_session_lost("step 3: session_lost: no state"));
        assert!(!is_session_lost("session_lostness is no word"));
        assert!(!is_session_lost("no state"));
    }

    #[test]
    fn an_engine_session_id_never_changes() {
        assert_eq!(engine_session_id("order-1", 1, 2), "session::61ff79fe-cb20-5496-9a8c-42332d92ed13");
    }

    proptest! {
        #[test]
        fn two_events_never_share_an_engine_session_id(
            a in (".{0,12}", 0u64..40, 0u64..40), b in (".{0,12}", 0u64..40, 0u64..40),
        ) {
            let id = |(instance, execution, event): &(String, u64, u64)| {
                engine_session_id(instance, *execution, *event)
            };
            prop_assert_eq!(a == b, id(&a) == id(&b));
            prop_assert!(id(&a).starts_with(ENGINE_SESSION_PREFIX));
            prop_assert_eq!(id(&a).len(), ENGINE_SESSION_PREFIX.len() + 36);
        }
    }
}
