//! Retention: what workers delete because it ended long ago.

use super::{broken, seen};
use crate::{Case, Violation};

/// How far the time of a store may be from that of the watch, which rounds otherwise.
const ROUNDED_MS: u64 = 2;

/// S16: an instance is deleted when it has ended for so long by the store's clock, whatever the clock of a
/// worker says. A child goes with its parent, so only its end counts.
pub(super) fn nothing_is_deleted_before_its_age(case: &Case) -> Vec<Violation> {
    let (Some(watch), Some(retention)) = (&case.terms.watch, case.terms.retention) else {
        return Vec::new();
    };
    if seen::is_deletion_asked(&case.evidence) {
        return Vec::new();
    }
    let age = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
    let young = watch.deleted().into_iter().filter(|deleted| match deleted.ended_ms {
        Some(_) if deleted.is_child => false,
        Some(ended_ms) => deleted.at_ms.saturating_add(ROUNDED_MS) < ended_ms.saturating_add(age),
        None => true,
    });
    young
        .map(|deleted| broken("S16", format!("deleted before {retention:?} had passed: {deleted:?}")))
        .collect()
}
