//! Calls of activities: the terms that are recorded with a call and travel with its work, and the failure
//! that comes back.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::vocabulary::codec::decode_json;
use crate::vocabulary::event::{Event, EventKind};
use crate::vocabulary::policy::Policy;

/// The terms of a call of an activity. The event that records the call holds them, and so does its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTerms {
    /// The idempotency key: the same for every delivery and every try of the call, and for no other call.
    pub key: String,
    /// How the activity is tried again; `None` for a call that is tried once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// How many tries of the call were made before as activities of their own: the retries that the
    /// orchestration makes itself record an activity for each try.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried_before: u32,
}

impl CallTerms {
    /// Makes the terms of a call that is tried once.
    pub fn of_key(key: impl Into<String>) -> Self {
        Self { key: key.into(), policy: None, tried_before: 0 }
    }
}

fn is_zero(tries: &u32) -> bool {
    *tries == 0
}

/// The call of an activity, as far as its key depends on it.
pub(crate) struct KeyedCall<'a> {
    pub(crate) instance: &'a str,
    /// The random number of the execution.
    pub(crate) random: u64,
    pub(crate) name: &'a str,
    /// The place of the call among all calls of activities of the execution, from 1.
    pub(crate) count: u64,
    pub(crate) input: &'a str,
}

impl KeyedCall<'_> {
    /// Returns the idempotency key of the call.
    ///
    /// The random number tells apart two lives of an instance id, and two executions; the count tells apart
    /// two calls; and the name and the input make sure that a key never names another step, whatever was
    /// restored from a backup.
    pub(crate) fn key(&self) -> String {
        let Self { instance, random, name, count, input } = self;
        let input = hash([input.as_bytes()]);
        // The upper half of the hash depends on all bytes of the input.
        format!("{instance}/{random:016x}/{name}/{count}/{:08x}", input >> 32)
    }
}

/// Returns the key that engines before 0.3.0 gave to an activity. They did not record it.
pub fn unrecorded_key(instance: &str, execution_id: u64, activity_id: u64) -> String {
    format!("{instance}/{execution_id}/{activity_id}")
}

/// Returns the random number of an execution. An execution that was begun by an engine before 0.3.0 records
/// none: its number is made of its start.
pub(crate) fn random_of(start: &Event) -> u64 {
    let EventKind::OrchestrationStarted { name, input, .. } = &start.kind else { return 0 };
    let made = || {
        let time = start.timestamp_ms.to_le_bytes();
        let execution = start.execution_id.to_le_bytes();
        let parts = [start.instance_id.as_bytes(), &execution, &time, name.as_bytes(), input.as_bytes()];
        hash(parts)
    };
    start.random.unwrap_or_else(made)
}

/// Hashes byte strings with FNV-1a, of 64 bits. The result is recorded, so it must be the same in every
/// build and on every machine.
fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    const START: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let part = |hash: u64, bytes: &[u8]| {
        let length = (bytes.len() as u64).to_le_bytes();
        length.iter().chain(bytes).copied().fold(hash, step)
    };
    parts.into_iter().fold(START, part)
}

/// Describes the failure of an activity beside its message: how it failed, and after how many tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// How the last try failed.
    pub kind: FailureKind,
    /// The data of the error, as JSON text; `None` if the error is a text only. [`data`](Self::data) decodes
    /// it. It is kept as text, so that what is recorded is what every replay reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The number of tries, the last one included.
    pub tries: u32,
    /// The time from the first delivery of the activity to the end of the last try, in milliseconds by the
    /// store's clock.
    pub elapsed_ms: u64,
}

impl Failure {
    /// Decodes the data of the error; `None` if there is none.
    ///
    /// # Errors
    /// Why the data is no `T`.
    pub fn data<T: DeserializeOwned>(&self) -> Option<Result<T, String>> {
        self.data.as_deref().map(decode_json)
    }
}

/// The ways in which a try of an activity can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The activity returned an error, and the policy allowed no further try.
    Error,
    /// The activity returned an error and said that it is final.
    Final,
    /// The try took longer than its timeout.
    Timeout,
    /// The activity panicked.
    Panic,
    /// The activity did not find the state of its session.
    SessionLost,
}

/// The failure of a call, as an orchestration sees it: the message of the last error, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// The text of the last error.
    pub message: String,
    /// How the call failed; `None` for a call without a policy, and for a store of another author, which
    /// keeps the message only.
    pub failure: Option<Failure>,
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: KeyedCall<'static> =
        KeyedCall { instance: "order-1", random: 0xAB, name: "Charge", count: 2, input: "5 EUR" };

    #[test]
    fn a_key_names_the_instance_its_life_the_activity_the_call_and_the_input() {
        assert_eq!(CALL.key(), "order-1/00000000000000ab/Charge/2/cd78945c");
    }

    #[test]
    fn every_part_of_a_call_changes_its_key() {
        let others = [
            KeyedCall { instance: "order-2", ..CALL },
            KeyedCall { random: 0xAC, ..CALL },
            KeyedCall { name: "Refund", ..CALL },
            KeyedCall { count: 3, ..CALL },
            KeyedCall { input: "6 EUR", ..CALL },
        ];
        assert!(others.iter().all(|other| other.key() != CALL.key()));
    }

    #[test]
    fn an_execution_without_a_recorded_number_has_one_that_is_made_of_its_start() {
        let started = |timestamp_ms, random| {
            let kind = EventKind::OrchestrationStarted {
                name: "Order".to_owned(),
                version: "1.0.0".to_owned(),
                input: "5 EUR".to_owned(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: None,
                initial_custom_status: None,
            };
            let mut event = Event::at(timestamp_ms, 1, "order-1", 1, None, kind);
            event.random = random;
            event
        };
        assert_eq!(random_of(&started(7, Some(5))), 5);
        assert_eq!(random_of(&started(7, None)), random_of(&started(7, None)));
        assert_ne!(random_of(&started(7, None)), random_of(&started(8, None)));
    }
}
