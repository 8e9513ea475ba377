//! Instances that were deleted too soon.

use std::time::Duration;

use super::*;
use crate::{Told, checks::retention, watch::tests::a_deletion};

fn kept_for(seconds: u64, ended_before_ms: Option<u64>, is_child: bool) -> Case {
    let mut case = case(Vec::new());
    case.terms.retention = Some(Duration::from_secs(seconds));
    case.terms.watch = Some(a_deletion(ended_before_ms, is_child));
    case
}

#[test]
fn an_instance_that_is_deleted_before_its_age_is_noticed() {
    let check = retention::nothing_is_deleted_before_its_age;
    assert!(found(check, &kept_for(60, Some(60_000), false)).is_empty());
    assert_eq!(found(check, &kept_for(60, Some(59_000), false)), ["S16"]);
    assert_eq!(found(check, &kept_for(60, None, false)), ["S16"], "it had not ended");
    assert!(found(check, &kept_for(60, Some(0), true)).is_empty(), "a child goes with its parent");
}

#[test]
fn what_a_client_deletes_has_no_age() {
    let mut case = kept_for(60, Some(0), false);
    case.evidence = Evidence::of(vec![at(1, Fact::Asked(Told::Deleted("i".to_owned())))]);
    assert!(found(retention::nothing_is_deleted_before_its_age, &case).is_empty());
}
