//! How instances, executions and their children are numbered and named.

/// The number of the first execution of an instance.
pub const INITIAL_EXECUTION_ID: u64 = 1;

/// The id of the first event of every execution.
pub const INITIAL_EVENT_ID: u64 = 1;

/// Begins the part of a child id that the engine makes.
pub const SUB_ORCH_AUTO_PREFIX: &str = "sub::";

/// Stands between a parent and the part of a child id that the engine makes.
const AUTO_CHILD_MARKER: &str = "::sub::";

/// Tells whether an id is one that the engine made for a child, without the id of the parent in front.
pub fn is_auto_generated_sub_orch_id(instance: &str) -> bool {
    instance.starts_with(SUB_ORCH_AUTO_PREFIX)
}

/// Returns the full id of a child: with the id of its parent in front if the engine made it, unchanged
/// otherwise.
pub fn build_child_instance_id(parent_instance: &str, child_instance: &str) -> String {
    if is_auto_generated_sub_orch_id(child_instance) {
        format!("{parent_instance}::{child_instance}")
    } else {
        child_instance.to_owned()
    }
}

/// Makes the id of a child from the event that schedules it. The first execution leaves its number out;
/// later ones need it, because their event ids begin at 1 again.
pub fn auto_child_suffix(execution_id: u64, event_id: u64) -> String {
    if execution_id == INITIAL_EXECUTION_ID {
        format!("{SUB_ORCH_AUTO_PREFIX}{event_id}")
    } else {
        format!("{SUB_ORCH_AUTO_PREFIX}{execution_id}_{event_id}")
    }
}

/// Tells whether an id for a root or detached instance looks like one that the engine makes for a child. Such
/// an id is refused.
pub fn uses_reserved_marker(id: &str) -> bool {
    is_auto_generated_sub_orch_id(id) || id.contains(AUTO_CHILD_MARKER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_child_id_is_put_below_its_parent_and_a_given_one_is_kept() {
        assert_eq!(build_child_instance_id("order-1", "sub::5"), "order-1::sub::5");
        assert_eq!(build_child_instance_id("order-1", "shipment-9"), "shipment-9");
        assert_eq!(build_child_instance_id("order-1", "a::sub::5"), "a::sub::5");
    }

    #[test]
    fn later_executions_put_their_number_into_child_ids() {
        assert_eq!(auto_child_suffix(1, 5), "sub::5");
        assert_eq!(auto_child_suffix(3, 5), "sub::3_5");
    }

    #[test]
    fn made_ids_are_reserved() {
        assert!(uses_reserved_marker("sub::5"));
        assert!(uses_reserved_marker("order-1::sub::5"));
        assert!(!uses_reserved_marker("order-1::subway"));
        assert!(!uses_reserved_marker("my-sub::5"));
    }
}
