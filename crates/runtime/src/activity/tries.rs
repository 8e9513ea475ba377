//! The tries of a call: which one this is, and what follows when it fails.

use std::time::Duration;

use steadfast_core::{Failure, FailureKind, Policy};
use steadfast_store::WorkLease;

use super::Moment;
use super::error::ActivityError;
use crate::plan::Plan;

/// The longest text of an error that is kept with a try, in bytes. People read it; the outcome of the call
/// has the whole text.
const MAX_KEPT_ERROR: usize = 4_096;

/// The tries of the call whose work is leased.
#[derive(Debug)]
pub(super) struct CallTries {
    policy: Option<Policy>,
    /// The number of tries that have ended on this work.
    ended: u32,
    /// The error of the last one.
    last_error: Option<String>,
    /// How often the work was delivered, this time included.
    delivery: u32,
    /// The number of tries that the orchestration made before as activities of their own.
    tried_before: u32,
    /// How long ago the work was first fetched, when its lease was taken.
    waited: Duration,
    /// When the lease arrived here.
    received: Moment,
}

/// What follows after a try has failed.
pub(super) enum OnFailedTry {
    /// The activity is tried again after this wait.
    TryAgain(Duration),
    /// The error is the outcome of the call.
    Fail(Option<Box<Failure>>),
}

impl CallTries {
    /// Reads the tries of work whose lease has just arrived.
    pub(super) fn of(lease: &WorkLease, plan: &Plan) -> Self {
        let first = lease.tries.first_fetched_ms.unwrap_or(lease.now_ms);
        Self {
            policy: lease.call.as_ref().and_then(|call| call.policy.clone()),
            ended: lease.tries.ended,
            last_error: lease.tries.last_error.clone(),
            delivery: lease.delivery,
            tried_before: lease.call.as_ref().map_or(0, |call| call.tried_before),
            waited: Duration::from_millis(lease.now_ms.saturating_sub(first)),
            received: Moment::now(plan),
        }
    }

    /// Returns the number of this try, from 1.
    pub(super) fn attempt(&self) -> u32 {
        self.tried_before.saturating_add(self.ended).saturating_add(1)
    }

    /// Returns how long this try may take.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.policy.as_ref()?.try_timeout()
    }

    /// Returns the largest number of tries; `None` without a bound.
    pub(super) fn max(&self) -> Option<u32> {
        self.policy.as_ref().map_or(Some(1), Policy::max)
    }

    pub(super) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// Returns the last error if this try would begin after the time of all tries, so that it is not made.
    ///
    /// A delivery whose predecessor left no word is made, whatever the time. That this is the first delivery
    /// of its try is certain if each try before had one.
    pub(super) fn overdue(&self) -> Option<&str> {
        let is_first = self.ended > 0 && self.delivery == self.ended.saturating_add(1);
        let total = self.policy.as_ref().filter(|_| is_first)?.total_time()?;
        self.last_error.as_deref().filter(|_| self.waited >= total)
    }

    /// Describes the failure of a call of the activity whose time is up before another try. The store keeps
    /// the text of the last error only; that of a timeout is known.
    pub(super) fn failed_before_this_try(&self, activity: &str) -> Failure {
        let elapsed_ms = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
        let is_timeout = self.timeout_text(activity).is_some_and(|text| self.last_error == Some(text));
        let kind = if is_timeout { FailureKind::Timeout } else { FailureKind::Error };
        Failure { kind, data: None, tries: self.attempt().saturating_sub(1), elapsed_ms }
    }

    /// Returns the error of a try of the activity that takes too long; `None` if it may take any time.
    pub(super) fn timeout_text(&self, activity: &str) -> Option<String> {
        let timeout = self.timeout()?;
        Some(kept_error(&format!("timeout: activity '{activity}' did not end within {timeout:?}")))
    }

    /// Decides what follows after this try has failed.
    pub(super) fn after(&self, error: &ActivityError, plan: &Plan) -> OnFailedTry {
        let tried = self.ended.saturating_add(1);
        let elapsed = self.waited.saturating_add(self.received.elapsed(plan));
        let worth = self.policy.as_ref().filter(|_| !error.is_terminal());
        if let Some(policy) = worth {
            let wait = error.wait().unwrap_or_else(|| policy.delay(tried, plan.random.draw() as u32));
            if policy.allows_another(tried, elapsed, wait) {
                return OnFailedTry::TryAgain(wait);
            }
        }
        let is_told = self.has_policy() || error.is_terminal() || error.data().is_some();
        OnFailedTry::Fail(is_told.then(|| {
            Box::new(Failure {
                kind: error.kind(),
                data: error.data().map(str::to_owned),
                tries: self.attempt(),
                elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            })
        }))
    }
}

/// Cuts the text of an error to what is kept with a try.
pub(super) fn kept_error(error: &str) -> String {
    match error.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_KEPT_ERROR) {
        Some(_) => {
            let fits = |at: &usize| *at <= MAX_KEPT_ERROR;
            let end = error.char_indices().map(|(at, _)| at).take_while(fits).last().unwrap_or(0);
            format!("{}…", error.get(..end).unwrap_or_default())
        }
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_between_two_characters() {
        let long = "é".repeat(MAX_KEPT_ERROR);
        assert_eq!(kept_error(&long), format!("{}…", "é".repeat(MAX_KEPT_ERROR / 2)));
        let odd = format!("x{long}");
        assert_eq!(kept_error(&odd), format!("x{}…", "é".repeat(MAX_KEPT_ERROR / 2 - 1)));
        assert_eq!(kept_error("short"), "short");
    }
}
