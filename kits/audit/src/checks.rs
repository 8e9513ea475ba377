//! The checks, one small function for each promise.

use crate::{Case, Violation};

/// Looks for violations of one promise.
type Check = fn(&Case) -> Vec<Violation>;

/// All checks.
pub(crate) const ALL: &[Check] = &[everything_has_ended];

/// I7: with a capable worker and no further faults, every instance ends.
fn everything_has_ended(case: &Case) -> Vec<Violation> {
    let running = case.records.instances.values().filter(|instance| !instance.state.status.is_ended());
    let violations = running.map(|instance| Violation {
        rule: "I7",
        text: format!("{} has not ended: {:?}, {:?}", instance.state.instance, instance.turn, instance.work),
    });
    if case.terms.all_ended { violations.collect() } else { Vec::new() }
}
