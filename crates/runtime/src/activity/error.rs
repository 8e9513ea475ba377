//! The error of an activity, whose maker says whether another try is worth it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use steadfast_core::{FailureKind, is_session_lost};

/// The largest data of an error, as JSON text: it is part of the history.
pub const MAX_ERROR_DATA_BYTES: usize = 64 * 1024;

/// The error of an activity: its text, and whether the activity is worth another try.
///
/// Any text is an error that is worth another try, as often as the policy of the call allows
/// ([`Policy`](steadfast_core::Policy)); without a policy an activity is tried once. Activities return this
/// type if they are registered with
/// [`register_with_errors`](crate::registry::ActivityRegistryBuilder::register_with_errors).
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_runtime::ActivityError;
/// fn answer(status: u16) -> Result<String, ActivityError> {
///     match status {
///         200 => Ok("paid".to_owned()),
///         402 => Err(ActivityError::terminal("the card is declined")),
///         429 => Err(ActivityError::retry_after(Duration::from_secs(30), "too many requests")),
///         status => Err(format!("the bank answered {status}").into()),
///     }
/// }
/// # assert!(answer(402).is_err_and(|error| error.is_terminal()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityError {
    message: String,
    worth: Worth,
    /// The data for the orchestration, as JSON text.
    data: Option<String>,
}

/// Whether an error is worth another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// After the wait that the policy gives.
    Yes,
    /// After this wait.
    After(Duration),
    /// Never: the error is final.
    No,
    /// After the wait of the policy; the try took too long.
    TimedOut,
    /// After the wait of the policy; the code panicked.
    Panicked,
}

impl ActivityError {
    /// Makes an error that is worth another try, after the wait that the policy of the call gives.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), worth: Worth::Yes, data: None }
    }

    /// Makes an error that is final: the activity is not tried again, whatever the policy of the call says.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self { worth: Worth::No, ..Self::new(message) }
    }

    /// Makes an error that is worth another try after `wait`, in place of the wait that the policy gives. The
    /// number of tries and the time of all tries are bounded by the policy as ever.
    pub fn retry_after(wait: Duration, message: impl Into<String>) -> Self {
        Self { worth: Worth::After(wait), ..Self::new(message) }
    }

    /// Adds data for the orchestration, beside the text ([`Failure::data`](steadfast_core::Failure::data)).
    /// Data that cannot be encoded as JSON, or takes more than [`MAX_ERROR_DATA_BYTES`], is replaced by a
    /// text that says so.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        let encoded = match serde_json::to_string(&data) {
            Ok(encoded) if encoded.len() <= MAX_ERROR_DATA_BYTES => Ok(encoded),
            Ok(encoded) => {
                Err(format!("the data takes {} bytes, at most {MAX_ERROR_DATA_BYTES}", encoded.len()))
            }
            Err(error) => Err(error.to_string()),
        };
        let told = |text: String| serde_json::Value::String(text).to_string();
        self.data = Some(encoded.unwrap_or_else(told));
        self
    }

    /// Adds a reason to the text of the error, in brackets.
    pub(super) fn because(mut self, why: &str) -> Self {
        self.message = format!("{} ({why})", self.message);
        self
    }

    /// Returns the text of the error.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Tells whether the error is final.
    pub fn is_terminal(&self) -> bool {
        self.worth == Worth::No
    }

    pub(super) fn timed_out(message: String) -> Self {
        Self { worth: Worth::TimedOut, ..Self::new(message) }
    }

    pub(super) fn panicked(message: String) -> Self {
        Self { worth: Worth::Panicked, ..Self::new(message) }
    }

    /// Returns the wait until another try that the maker of the error asks for.
    pub(super) fn wait(&self) -> Option<Duration> {
        match self.worth {
            Worth::After(wait) => Some(wait),
            Worth::Yes | Worth::No | Worth::TimedOut | Worth::Panicked => None,
        }
    }

    pub(super) fn kind(&self) -> FailureKind {
        match self.worth {
            Worth::No => FailureKind::Final,
            Worth::TimedOut => FailureKind::Timeout,
            Worth::Panicked => FailureKind::Panic,
            Worth::Yes | Worth::After(_) if is_session_lost(&self.message) => FailureKind::SessionLost,
            Worth::Yes | Worth::After(_) => FailureKind::Error,
        }
    }

    pub(super) fn data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    pub(super) fn into_message(self) -> String {
        self.message
    }
}

impl From<String> for ActivityError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for ActivityError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl fmt::Display for ActivityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ActivityError {}
