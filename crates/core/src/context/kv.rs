//! Key-value state that belongs to the instance.

use std::collections::HashMap;
use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{OrchestrationContext, result};
use crate::context::future::DurableFuture;
use crate::context::misuse::Misuse;
use crate::{Action, SYSCALL_GET_KV_VALUE, SystemStats};

impl OrchestrationContext {
    /// Sets a key. The state survives continue-as-new, and clients can read it. More than 150 keys, or a
    /// value of more than 65,536 bytes, fails the orchestration at the end of the turn.
    #[track_caller]
    pub fn set_kv_value(&self, key: impl Into<String>, value: impl Into<String>) {
        self.set_kv(key.into(), value.into(), Location::caller());
    }

    /// Sets a key to a value encoded as JSON. A value that cannot be encoded fails the orchestration.
    #[track_caller]
    pub fn set_kv_value_typed<T: Serialize>(&self, key: impl Into<String>, value: &T) {
        let at = Location::caller();
        match serde_json::to_string(value) {
            Ok(text) => self.set_kv(key.into(), text, at),
            Err(error) => {
                let misuse =
                    Misuse::Encode { what: "the value of set_kv_value_typed", error: error.to_string(), at };
                self.report("set_kv_value_typed", misuse, at);
            }
        }
    }

    /// Returns the value of a key, with the changes of this turn; `None` if it is not set.
    #[track_caller]
    pub fn get_kv_value(&self, key: &str) -> Option<String> {
        self.scope.enter("get_kv_value", Location::caller())?.kv.get(key).map(str::to_owned)
    }

    /// Returns the value of a key, decoded from JSON.
    ///
    /// # Errors
    /// If the value cannot be decoded as a `T`; the text names the key.
    #[track_caller]
    pub fn get_kv_value_typed<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.get_kv_value(key) else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| format!("KV deserialization error for key '{key}': {error}"))
    }

    /// Returns all keys and values, with the changes of this turn.
    #[track_caller]
    pub fn get_kv_all_values(&self) -> HashMap<String, String> {
        let Some(ledger) = self.scope.enter("get_kv_all_values", Location::caller()) else {
            return HashMap::new();
        };
        ledger.kv.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// Returns all keys that are set, with the changes of this turn, sorted.
    #[track_caller]
    pub fn get_kv_all_keys(&self) -> Vec<String> {
        let Some(ledger) = self.scope.enter("get_kv_all_keys", Location::caller()) else {
            return Vec::new();
        };
        ledger.kv.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Returns the number of keys that are set, with the changes of this turn.
    #[track_caller]
    pub fn get_kv_length(&self) -> usize {
        self.scope.enter("get_kv_length", Location::caller()).map_or(0, |ledger| ledger.kv.len())
    }

    /// Returns `None`; kept for compatibility. Clients can read the stats of an instance.
    #[doc(hidden)]
    pub fn get_system_stats(&self) -> Option<SystemStats> {
        None
    }

    /// Removes a key; a key that is not set is no error.
    #[track_caller]
    pub fn clear_kv_value(&self, key: impl Into<String>) {
        let at = Location::caller();
        if let Some(mut ledger) = self.scope.enter("clear_kv_value", at) {
            let key = key.into();
            ledger.kv.clear(&key);
            ledger.call(at, Action::ClearKeyValue { key });
        }
    }

    /// Removes all keys of the instance, also those that earlier executions set.
    #[track_caller]
    pub fn clear_all_kv_values(&self) {
        let at = Location::caller();
        if let Some(mut ledger) = self.scope.enter("clear_all_kv_values", at) {
            ledger.kv.clear_all();
            ledger.call(at, Action::ClearKeyValues);
        }
    }

    /// Removes the keys that were last set before `cutoff_ms` (milliseconds since the Unix epoch) and returns
    /// how many it removed. The removals are recorded in key order.
    #[track_caller]
    pub fn prune_kv_values_updated_before(&self, cutoff_ms: u64) -> usize {
        let at = Location::caller();
        let Some(mut ledger) = self.scope.enter("prune_kv_values_updated_before", at) else { return 0 };
        let old = ledger.kv.older_than(cutoff_ms);
        let count = old.len();
        for key in old {
            ledger.kv.clear(&key);
            ledger.call(at, Action::ClearKeyValue { key });
        }
        count
    }

    /// Reads a key of another instance, as its last commit left it.
    #[track_caller]
    pub fn get_kv_value_from_instance(
        &self,
        instance: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<String>, String>> {
        self.ask_kv(instance.into(), key.into(), Location::caller())
    }

    /// Reads a key of another instance and decodes its value from JSON.
    #[track_caller]
    pub fn get_kv_value_from_instance_typed<T>(
        &self,
        instance: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<T>, String>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let key = key.into();
        let value = self.ask_kv(instance.into(), key.clone(), Location::caller());
        value.map(move |result| match result? {
            None => Ok(None),
            Some(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| format!("KV deserialization error for key '{key}': {error}")),
        })
    }

    fn set_kv(&self, key: String, value: String, at: &'static Location<'static>) {
        if let Some(mut ledger) = self.scope.enter("set_kv_value", at) {
            let last_updated_at_ms = ledger.now_ms;
            ledger.kv.set(key.clone(), value.clone(), last_updated_at_ms);
            ledger.call(at, Action::SetKeyValue { key, value, last_updated_at_ms });
        }
    }

    fn ask_kv(
        &self,
        instance: String,
        key: String,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<Option<String>, String>> {
        let input = serde_json::json!({ "instance_id": instance, "key": key }).to_string();
        let action = |_: &_| Action::CallActivity {
            scheduling_event_id: 0,
            name: SYSCALL_GET_KV_VALUE.to_owned(),
            input,
            session_id: None,
            tag: None,
        };
        self.ask("get_kv_value_from_instance", at, action, result).map(|result| {
            let text = result?;
            serde_json::from_str(&text).map_err(|error| error.to_string())
        })
    }
}
