//! Reading the key-value state of an instance.

use std::collections::HashMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use steadfast_store::{WaitFor, Waited};

use crate::wait::change_of;
use crate::{Client, ClientError};

impl Client {
    /// Reads the value of a key of an instance. `None` if the key is not set or the instance is unknown.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ClientError> {
        Ok(self.store.kv_value(instance, key).await?)
    }

    /// Reads the value of a key of an instance and decodes it from JSON. `None` if the key is not set.
    ///
    /// # Errors
    /// `InvalidInput` if the value cannot be decoded as `T`, `Provider` if the store fails.
    pub async fn get_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<T>, ClientError> {
        self.get_kv_value(instance, key).await?.map(|text| decoded(&text)).transpose()
    }

    /// Reads all keys and values of an instance.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ClientError> {
        Ok(self.store.kv_values(instance).await?)
    }

    /// Waits until a key of an instance is set, and returns its value. A key that is set already is returned
    /// at once.
    ///
    /// # Errors
    /// `Timeout` if it is not set within `timeout`, also for an unknown instance: it may come.
    /// `InstanceNotFound` at once if the instance is deleted during the wait, `Provider` if the store fails.
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        // The change number is read before the key, so a key that is set in between ends the wait at once.
        let mut seen = change_of(self.store.state(instance).await?.as_ref());
        loop {
            if let Some(value) = self.store.kv_value(instance, key).await? {
                return Ok(value);
            }
            let left = deadline.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                return Err(ClientError::Timeout);
            }
            if let Waited::Seen(state) = self.store.wait(WaitFor::Instance { instance, seen }, left).await? {
                if state.is_none() && seen != 0 {
                    return Err(ClientError::not_found(instance));
                }
                seen = change_of(state.as_deref());
            }
        }
    }

    /// Waits until a key of an instance is set and decodes it from JSON.
    ///
    /// # Errors
    /// As [`wait_for_kv_value`](Self::wait_for_kv_value), and `InvalidInput` if the value cannot be decoded
    /// as `T`.
    pub async fn wait_for_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<T, ClientError> {
        decoded(&self.wait_for_kv_value(instance, key, timeout).await?)
    }
}

fn decoded<T: DeserializeOwned>(text: &str) -> Result<T, ClientError> {
    serde_json::from_str(text)
        .map_err(|error| ClientError::invalid(format!("KV deserialization error: {error}")))
}
