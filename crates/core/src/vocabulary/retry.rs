//! How often, and how long apart, an activity is tried again.

use std::sync::Arc;
use std::time::Duration;

/// How often an activity is tried, how long to wait between tries and how long a try may take.
///
/// The default is three tries with exponential backoff from 100 ms to 30 s and no timeout.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The largest number of tries, the first one included; 3 by default, at least 1. With 1 the activity is
    /// not tried again.
    pub max_attempts: u32,
    /// How long to wait after a try that failed; exponential from 100 ms to 30 s by default.
    pub backoff: BackoffStrategy,
    /// How long each try may take; `None`, the default, means no bound. A try that takes longer ends the
    /// whole call with an error and is not repeated.
    pub timeout: Option<Duration>,
}

impl RetryPolicy {
    /// Builds a policy of `max_attempts` tries with the default backoff and no timeout.
    ///
    /// # Errors
    ///
    /// [`InvalidRetryPolicy`] when `max_attempts` is 0.
    pub fn try_new(max_attempts: u32) -> Result<Self, InvalidRetryPolicy> {
        match max_attempts {
            0 => Err(InvalidRetryPolicy),
            _ => Ok(Self { max_attempts, backoff: BackoffStrategy::default(), timeout: None }),
        }
    }

    /// Builds a policy like [`RetryPolicy::try_new`].
    ///
    /// # Panics
    ///
    /// Panics when `max_attempts` is 0.
    #[track_caller]
    #[allow(clippy::panic, reason = "the compatible constructor panics; try_new is the one that does not")]
    pub fn new(max_attempts: u32) -> Self {
        Self::try_new(max_attempts).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sets the time that each try may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the time that each try may take: the old spelling of [`RetryPolicy::with_timeout`].
    #[doc(hidden)]
    #[must_use]
    pub fn with_total_timeout(self, timeout: Duration) -> Self {
        self.with_timeout(timeout)
    }

    /// Replaces the backoff; the default is exponential from 100 ms to 30 s.
    #[must_use]
    pub fn with_backoff(mut self, backoff: BackoffStrategy) -> Self {
        self.backoff = backoff;
        self
    }

    /// Returns how long to wait after the given try, counted from 1.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        self.backoff.delay_for_attempt(attempt)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: BackoffStrategy::default(), timeout: None }
    }
}

/// Returns true for an error after which the activity is tried again.
type Worth = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How an activity is tried again: a [`RetryPolicy`], which errors are worth another try, a bound for all
/// tries together, and the session and the tag of every try.
#[derive(Clone)]
pub struct Retry {
    pub(crate) policy: RetryPolicy,
    pub(crate) worth: Option<Worth>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) session_id: Option<String>,
    pub(crate) tag: Option<String>,
}

impl Retry {
    /// Tries again only after errors for which `worth` returns true; any other error is the result at once.
    /// By default every error is worth another try.
    ///
    /// The answer must depend on the error alone, because `worth` is called again on every replay.
    #[must_use]
    pub fn retry_if(mut self, worth: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.worth = Some(Arc::new(worth));
        self
    }

    /// Bounds the time of all tries and the waits between them together. By default there is no bound.
    #[must_use]
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(timeout);
        self
    }

    /// Runs every try on a session.
    #[must_use]
    pub fn on_session(mut self, session_id: impl Into<String>) -> Self {
        self.session_id = Some(session_id.into());
        self
    }

    /// Runs every try on a worker that serves `tag`.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    pub(crate) fn is_worth(&self, error: &str) -> bool {
        self.worth.as_ref().is_none_or(|worth| worth(error))
    }
}

impl From<RetryPolicy> for Retry {
    fn from(policy: RetryPolicy) -> Self {
        Self { policy, worth: None, total_timeout: None, session_id: None, tag: None }
    }
}

impl std::fmt::Debug for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry")
            .field("policy", &self.policy)
            .field("total_timeout", &self.total_timeout)
            .field("session_id", &self.session_id)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// Reports a retry policy that allows no try at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("max_attempts must be at least 1")]
pub struct InvalidRetryPolicy;

/// How the wait between two tries grows.
#[derive(Debug, Clone)]
pub enum BackoffStrategy {
    /// The next try begins at once.
    None,
    /// The same wait after each try.
    Fixed {
        /// The wait between any two tries.
        delay: Duration,
    },
    /// A wait that grows by `base` after each try.
    Linear {
        /// The wait after the first try, and the time that each further wait adds.
        base: Duration,
        /// The longest wait: a longer one is cut to this.
        max: Duration,
    },
    /// A wait that is multiplied after each try.
    Exponential {
        /// The wait after the first try.
        base: Duration,
        /// Multiplies the wait after each further try; below 1 the waits get shorter.
        multiplier: f64,
        /// The longest wait: a longer one is cut to this.
        max: Duration,
    },
}

impl BackoffStrategy {
    /// Returns how long to wait after the given try, counted from 1.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed { delay } => *delay,
            Self::Linear { base, max } => base.saturating_mul(attempt).min(*max),
            Self::Exponential { base, multiplier, max } => {
                let nanos = base.as_nanos() as f64 * power(*multiplier, attempt.saturating_sub(1));
                // The cast clamps: infinity becomes the longest wait, a negative number or NaN becomes zero.
                Duration::from_nanos(nanos as u64).min(*max)
            }
        }
    }
}

impl Default for BackoffStrategy {
    fn default() -> Self {
        Self::Exponential { base: Duration::from_millis(100), multiplier: 2.0, max: Duration::from_secs(30) }
    }
}

/// Raises by squaring. The standard library leaves the precision of its powers to the platform, and a
/// delay that differs between two workers would be recorded differently.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result *= square;
        }
        square *= square;
        rest /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn delays(backoff: &BackoffStrategy) -> Vec<u128> {
        (1..=5).map(|attempt| backoff.delay_for_attempt(attempt).as_millis()).collect()
    }

    #[test]
    fn the_default_is_three_attempts_doubling_from_100_ms_to_30_s() {
        let policy = RetryPolicy::default();
        assert_eq!((policy.max_attempts, policy.timeout), (3, None));
        assert_eq!(delays(&policy.backoff), [100, 200, 400, 800, 1600]);
        assert_eq!(policy.delay_for_attempt(100), Duration::from_secs(30));
    }

    #[test]
    fn each_strategy_grows_as_its_name_says() {
        assert_eq!(delays(&BackoffStrategy::None), [0, 0, 0, 0, 0]);
        assert_eq!(delays(&BackoffStrategy::Fixed { delay: ms(7) }), [7, 7, 7, 7, 7]);
        assert_eq!(delays(&BackoffStrategy::Linear { base: ms(10), max: ms(35) }), [10, 20, 30, 35, 35]);
        let tripled = BackoffStrategy::Exponential { base: ms(10), multiplier: 3.0, max: ms(500) };
        assert_eq!(delays(&tripled), [10, 30, 90, 270, 500]);
    }

    #[test]
    #[should_panic(expected = "max_attempts must be at least 1")]
    fn a_policy_without_attempts_panics() {
        RetryPolicy::new(0);
    }

    #[test]
    fn a_policy_without_attempts_can_be_refused_instead() {
        assert_eq!(RetryPolicy::try_new(0).err(), Some(InvalidRetryPolicy));
        assert_eq!(RetryPolicy::try_new(1).map(|policy| policy.max_attempts), Ok(1));
    }

    #[test]
    fn both_spellings_set_the_timeout_of_an_attempt() {
        assert_eq!(RetryPolicy::new(1).with_timeout(ms(5)).timeout, Some(ms(5)));
        assert_eq!(RetryPolicy::new(1).with_total_timeout(ms(5)).timeout, Some(ms(5)));
    }

    #[test]
    fn a_senseless_multiplier_waits_not_at_all() {
        for multiplier in [f64::NAN, f64::NEG_INFINITY, -2.0] {
            let backoff = BackoffStrategy::Exponential { base: ms(10), multiplier, max: ms(50) };
            assert_eq!(backoff.delay_for_attempt(2), Duration::ZERO);
        }
    }

    proptest! {
        #[test]
        fn a_retry_delay_never_overflows(
            base: Duration, max: Duration, multiplier: f64,
            attempt in prop_oneof![any::<u32>(), Just(u32::MAX)],
        ) {
            let exponential = BackoffStrategy::Exponential { base, multiplier, max };
            prop_assert!(exponential.delay_for_attempt(attempt) <= max);
            let linear = BackoffStrategy::Linear { base, max };
            prop_assert!(linear.delay_for_attempt(attempt) <= max);
        }
    }
}
