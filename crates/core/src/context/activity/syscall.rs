//! Random ids and the time: values that differ from run to run, recorded so that every replay sees the same.

use std::panic::Location;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::{OrchestrationContext, result};
use crate::context::future::DurableFuture;
use crate::{Action, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};

impl OrchestrationContext {
    /// Makes a random UUID. It is recorded, so every replay sees the same one.
    #[track_caller]
    pub fn new_guid(&self) -> DurableFuture<Result<String, String>> {
        self.ask_system(SYSCALL_NEW_GUID, Location::caller())
    }

    /// Reads the time of the worker. It is recorded, so every replay sees the same one.
    #[track_caller]
    pub fn utc_now(&self) -> DurableFuture<Result<SystemTime, String>> {
        self.ask_system(SYSCALL_UTC_NOW_MS, Location::caller()).map(|result| {
            let text = result?;
            let ms: u64 =
                text.parse().map_err(|error| format!("'{text}' is no time in milliseconds: {error}"))?;
            UNIX_EPOCH
                .checked_add(Duration::from_millis(ms))
                .ok_or_else(|| format!("{ms} ms since 1970 is beyond what this system can represent"))
        })
    }

    fn ask_system(
        &self,
        name: &str,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        let (name, input) = (name.to_owned(), String::new());
        let action =
            |_: &_| Action::CallActivity { scheduling_event_id: 0, name, input, session_id: None, tag: None };
        self.ask("schedule_activity", at, action, result)
    }
}
