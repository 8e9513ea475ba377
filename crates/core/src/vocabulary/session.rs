//! Sessions: affinity keys that bring activities to the same worker process.
//!
//! A *shared* session exists because an activity names it; an *owned* one is opened by one instance and
//! closed with it. Both have an id; the [`SessionKey`] tells them apart.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Begins the id of every session the engine names; users cannot open such an id.
pub const ENGINE_SESSION_PREFIX: &str = "session::";

/// Begins the error text of an activity that misses its session's state.
pub const SESSION_LOST: &str = "session_lost";

/// Separates the ids made here from every other use of UUID v5. Never changes: replay makes them again.
const ENGINE_SESSION_NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_0c52_9a3e_4b7d_8e64_f2a0_57c1_9be3);

/// Identifies a session in a store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Names the instance that owns it; `None` for a shared session.
    pub instance: Option<String>,
    /// Names the session within its scope.
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

/// Describes the session to open. The default has an id made by the engine and is held while open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Names the session; `None` leaves it to the engine.
    pub id: Option<String>,
    /// Bounds how long an idle session stays attached; `None` holds it while open.
    pub idle_timeout: Option<Duration>,
    /// Says how many of its activities may run at a time.
    pub concurrency: SessionConcurrency,
}

impl SessionOptions {
    /// Names the session.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Bounds how long the idle session stays attached.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = Some(idle_timeout);
        self
    }

    /// Says how many activities of the session may run at a time.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: SessionConcurrency) -> Self {
        self.concurrency = concurrency;
        self
    }
}

/// Says how many activities of a session may run at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionConcurrency {
    /// Allows as many as the owner has room for, in no order.
    #[default]
    Unbounded,
    /// Allows one, in the order they were scheduled, also across a change of owner.
    Serial,
}

/// Names the pool of workers an owned session runs in: that of its first activity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionPool {
    /// Names the workers that take untagged activities.
    Default,
    /// Names the workers that take this tag.
    Tag(String),
}

/// Describes an open session that a continue-as-new brings along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedSession {
    /// Names the session.
    pub session_id: String,
    /// Bounds how long an idle session stays attached; absent means it is held while open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Says how many of its activities may run at a time; absent means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<SessionConcurrency>,
    /// Names the pool it runs in; absent until its first activity is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<SessionPool>,
}

/// Tells an orchestration that a session was attached anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMigration {
    /// Names the session.
    pub id: String,
    /// Holds the epoch of the new attachment.
    pub epoch: u64,
    /// Names the previous owner, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Names the new owner.
    pub to: String,
}

/// Makes the id of a session from the event that opens it: the same on every replay, and no other event
/// of any execution has it.
pub fn engine_session_id(instance: &str, execution_id: u64, event_id: u64) -> String {
    // The length goes first, so that no instance id can be mistaken for another one and its numbers.
    let mut name = Vec::with_capacity(instance.len() + 24);
    name.extend_from_slice(&(instance.len() as u64).to_be_bytes());
    name.extend_from_slice(instance.as_bytes());
    name.extend_from_slice(&execution_id.to_be_bytes());
    name.extend_from_slice(&event_id.to_be_bytes());
    format!("{ENGINE_SESSION_PREFIX}{}", Uuid::new_v5(&ENGINE_SESSION_NAMESPACE, &name))
}

/// Returns the error text by which an activity says that it misses its session's state.
pub fn session_lost(reason: impl std::fmt::Display) -> String {
    format!("{SESSION_LOST}: {reason}")
}

/// Tells whether an error text, also one wrapped in another, says that session state was missed.
pub fn is_session_lost(error: &str) -> bool {
    error.contains(SESSION_LOST)
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
    fn a_lost_session_is_recognised_in_its_error_and_in_a_wrapped_one() {
        assert_eq!(session_lost("no state"), "session_lost: no state");
        assert!(is_session_lost(&session_lost("no state")));
        assert!(is_session_lost("step 3: session_lost: no state"));
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
            let id = |(instance, execution, event): &(String, u64, u64)| engine_session_id(instance, *execution, *event);
            prop_assert_eq!(a == b, id(&a) == id(&b));
            prop_assert!(id(&a).starts_with(ENGINE_SESSION_PREFIX));
            prop_assert_eq!(id(&a).len(), ENGINE_SESSION_PREFIX.len() + 36);
        }
    }
}
