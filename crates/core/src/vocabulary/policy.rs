//! The policy of a call: how often its activity is tried, how long apart, and for how long.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Says how often an activity is tried, how long to wait between tries, and how long one try and all tries
/// together may take. It is recorded with the call and travels with its work, so the tries are made by the
/// workers and history gets one outcome.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_core::Policy;
/// let secs = Duration::from_secs;
/// let policy = Policy::tries(8).backoff(secs(1)..secs(60)).timeout(secs(30)).total(secs(600));
/// assert_eq!(policy.max(), Some(8));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The largest number of tries; without a bound if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
    /// The wait after the first try, in milliseconds.
    #[serde(default)]
    first_ms: u64,
    /// The longest wait, in milliseconds.
    #[serde(default)]
    longest_ms: u64,
    /// Multiplies the wait after each try, in thousandths.
    #[serde(default = "doubled", skip_serializing_if = "is_doubled")]
    factor: u32,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    jitter: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total_ms: Option<u64>,
}

const THOUSANDTHS: u32 = 1_000;
const FIRST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 60_000;

fn doubled() -> u32 {
    2 * THOUSANDTHS
}

fn is_doubled(factor: &u32) -> bool {
    *factor == doubled()
}

fn yes() -> bool {
    true
}

fn is_yes(jitter: &bool) -> bool {
    *jitter
}

impl Policy {
    /// Tries an activity at most `max` times, the first try included. The wait after a try that failed begins
    /// with one second and doubles up to one minute, with jitter. A policy of no tries is as one of a single
    /// try.
    pub fn tries(max: u32) -> Self {
        Self { max: Some(max.max(1)), ..Self::unlimited() }
    }

    /// Tries an activity once: for a timeout without retries.
    pub fn once() -> Self {
        Self::tries(1)
    }

    /// Tries an activity until it succeeds, its error is final, or the [`total`](Self::total) time is over.
    /// The wait is that of [`tries`](Self::tries).
    pub fn unlimited() -> Self {
        Self {
            max: None,
            first_ms: FIRST_MS,
            longest_ms: LONGEST_MS,
            factor: doubled(),
            jitter: true,
            timeout_ms: None,
            total_ms: None,
        }
    }

    /// Sets the wait after the first try and the longest wait. The first wait is no longer than the longest.
    #[must_use]
    pub fn backoff(mut self, waits: Range<Duration>) -> Self {
        self.longest_ms = millis(waits.end);
        self.first_ms = millis(waits.start).min(self.longest_ms);
        self
    }

    /// Sets the factor by which the wait grows after each try; 2 by default. A factor of 1 keeps the wait as
    /// it is, and so does one that is less, or no number. It is kept in thousandths.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        // The cast clamps: a number that is too large becomes the largest, NaN becomes zero.
        self.factor = ((factor * f64::from(THOUSANDTHS)) as u32).max(THOUSANDTHS);
        self
    }

    /// Sets whether a wait is shortened at random, to between a half and the whole of it, so that calls which
    /// failed together do not come back together. On by default.
    #[must_use]
    pub fn jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets how long one try may take. A try that takes longer is cancelled, and it counts as a failed try;
    /// the next one begins when its code has ended. By default there is no bound.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(millis(timeout));
        self
    }

    /// Sets how long all tries together may take, from the first delivery of the activity to a worker on. A
    /// try that would begin later is not made, and the last error stands at once. By default there is no
    /// bound.
    #[must_use]
    pub fn total(mut self, total: Duration) -> Self {
        self.total_ms = Some(millis(total));
        self
    }

    /// Returns the largest number of tries; `None` if there is no bound.
    pub fn max(&self) -> Option<u32> {
        self.max.map(|max| max.max(1))
    }

    /// Returns how long one try may take; `None` if there is no bound.
    pub fn try_timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    /// Returns how long all tries together may take; `None` if there is no bound.
    pub fn total_time(&self) -> Option<Duration> {
        self.total_ms.map(Duration::from_millis)
    }

    /// Returns how long to wait after try number `tried`, counted from 1. With jitter, `draw` decides between
    /// a half and the whole of the wait.
    pub fn delay(&self, tried: u32, draw: u32) -> Duration {
        let factor = f64::from(self.factor) / f64::from(THOUSANDTHS);
        let exponent = i32::try_from(tried.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first_ms as f64 * factor.powi(exponent);
        // The cast clamps: infinity becomes the longest wait.
        let whole = (grown as u64).min(self.longest_ms);
        if !self.jitter {
            return Duration::from_millis(whole);
        }
        let half = whole / 2;
        let more = u128::from(whole - half) * u128::from(draw) / u128::from(u32::MAX);
        Duration::from_millis(half.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)))
    }

    /// Decides what follows after try number `tried`, counted from 1, has failed with an error that is not
    /// final. `elapsed` is the time since the first delivery, and `wait` the time until another try. Returns
    /// false if the error stands.
    pub fn allows_another(&self, tried: u32, elapsed: Duration, wait: Duration) -> bool {
        self.max().is_none_or(|max| tried < max)
            && self.total_time().is_none_or(|total| elapsed.saturating_add(wait) < total)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_wait_doubles_from_the_first_to_the_longest() {
        let policy = Policy::tries(9).backoff(ms(100)..ms(500)).jitter(false);
        let waits: Vec<Duration> = (1..=5).map(|tried| policy.delay(tried, 0)).collect();
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(500), ms(500)]);
        assert_eq!(policy.delay(u32::MAX, 0), ms(500));
    }

    #[test]
    fn jitter_takes_at_most_half_of_a_wait() {
        let policy = Policy::unlimited().backoff(ms(1_000)..ms(1_000));
        assert_eq!(policy.delay(1, 0), ms(500));
        assert_eq!(policy.delay(1, u32::MAX), ms(1_000));
        assert_eq!(policy.delay(1, u32::MAX / 2), ms(749));
    }

    #[test]
    fn a_factor_below_one_keeps_the_wait() {
        let waits = |factor| {
            let policy = Policy::tries(9).backoff(ms(100)..ms(900)).jitter(false).factor(factor);
            [policy.delay(1, 0), policy.delay(2, 0), policy.delay(3, 0)]
        };
        assert_eq!(waits(1.5), [ms(100), ms(150), ms(225)]);
        assert_eq!(waits(0.1), [ms(100); 3]);
        assert_eq!(waits(f64::NAN), [ms(100); 3]);
        assert_eq!(waits(f64::INFINITY), [ms(100), ms(900), ms(900)]);
    }

    #[test]
    fn another_try_is_within_the_number_and_the_time_of_the_policy() {
        let policy = Policy::tries(3).total(ms(1_000));
        assert!(policy.allows_another(2, ms(400), ms(500)));
        assert!(!policy.allows_another(3, ms(400), ms(500)));
        assert!(!policy.allows_another(1, ms(400), ms(600)));
        assert!(Policy::unlimited().allows_another(u32::MAX, Duration::MAX, Duration::MAX));
        assert!(!Policy::tries(0).allows_another(1, ms(0), ms(0)));
    }

    #[test]
    fn a_policy_is_written_without_what_it_does_not_say() {
        let json = |policy: &Policy| serde_json::to_string(policy).unwrap();
        let plain = Policy::tries(3);
        assert_eq!(json(&plain), r#"{"max":3,"first_ms":1000,"longest_ms":60000}"#);
        let full = Policy::unlimited().factor(1.5).jitter(false).timeout(ms(5)).total(ms(9));
        assert_eq!(
            json(&full),
            r#"{"first_ms":1000,"longest_ms":60000,"factor":1500,"jitter":false,"timeout_ms":5,"total_ms":9}"#
        );
        for policy in [plain, full] {
            assert_eq!(serde_json::from_str::<Policy>(&json(&policy)).unwrap(), policy);
        }
    }
}
