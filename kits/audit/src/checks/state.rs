//! The rows beside the histories: they are what the histories say (I2).

use std::collections::BTreeMap;

use steadfast_core::EventKind;

use super::{broken, history::fold_value, seen};
use crate::{Case, InstanceRecords, Violation};

/// Returns the instances whose histories tell all that was set.
fn whole(case: &Case) -> impl Iterator<Item = (&String, &InstanceRecords)> {
    case.records.instances.iter().filter(|(id, instance)| !seen::was_pruned(case, id, instance))
}

/// I2: the values of an instance are those that its histories set.
pub(super) fn values_are_those_of_the_history(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, instance) in whole(case) {
        let mut kv = BTreeMap::new();
        let events = instance.executions.values().flatten();
        events.for_each(|event| fold_value(&mut kv, &event.kind));
        let folded: BTreeMap<&str, &str> =
            kv.iter().map(|(key, entry)| (key.as_str(), entry.value.as_str())).collect();
        let kept: BTreeMap<&str, &str> =
            instance.values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        if folded != kept {
            violations.push(broken("I2", format!("{id} has the values {kept:?}, its histories {folded:?}")));
        }
    }
    violations
}

/// I2: the custom status of an instance is the one that its histories set last.
pub(super) fn the_custom_status_is_that_of_the_history(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, instance) in whole(case) {
        let set = instance.executions.values().flatten().filter_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.clone()),
            _ => None,
        });
        let last = set.fold(None, |_, status| status);
        if last != instance.state.custom_status {
            let told = &instance.state.custom_status;
            violations
                .push(broken("I2", format!("{id} has the custom status {told:?}, its histories {last:?}")));
        }
    }
    violations
}
