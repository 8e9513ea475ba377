//! Deleting what a filter finds.

use std::time::Duration;

use steadfast_store::{DeleteInstanceResult, InstanceFilter, ProviderAdmin};

use super::{child, ended_child, ids};
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, ok};
use crate::case::{cases, need};

cases![
    api_bulk_deletion_takes_what_has_ended,
    api_bulk_deletion_by_ids_takes_only_these,
    api_bulk_deletion_of_no_ids_takes_nothing,
    api_bulk_deletion_is_bounded,
    api_bulk_deletion_by_time_is_strict,
    api_bulk_deletion_needs_all_its_conditions,
    api_bulk_deletion_spares_an_instance_between_two_executions,
    api_bulk_deletion_takes_whole_trees,
    api_bulk_deletion_spares_a_tree_with_a_running_descendant,
    api_bulk_deletion_takes_no_child_alone,
];

async fn bulk(admin: &dyn ProviderAdmin, filter: InstanceFilter) -> u64 {
    ok(admin.delete_instance_bulk(filter).await).instances_deleted
}

async fn api_bulk_deletion_takes_what_has_ended(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("completed").await;
    bench.begin("failed", Commit::default().status("Failed", "no")).await;
    bench.begun("running").await;
    let deleted = ok(admin.delete_instance_bulk(InstanceFilter::default()).await);
    let expected = DeleteInstanceResult {
        instances_deleted: 2,
        executions_deleted: 2,
        events_deleted: 3,
        queue_messages_deleted: 0,
    };
    assert_eq!(deleted, expected);
    assert_eq!(ok(admin.list_instances().await), ["running"], "what runs is left without a word");
    Verdict::Kept
}

async fn api_bulk_deletion_by_ids_takes_only_these(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    bench.ended("b").await;
    bench.begun("running").await;
    let instance_ids = Some(ids(&["a", "running", "nobody"]));
    assert_eq!(bulk(admin, InstanceFilter { instance_ids, ..InstanceFilter::default() }).await, 1);
    assert_eq!(ok(admin.list_instances().await).len(), 2, "b and running stay");
    Verdict::Kept
}

async fn api_bulk_deletion_of_no_ids_takes_nothing(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    let filter = InstanceFilter { instance_ids: Some(Vec::new()), ..InstanceFilter::default() };
    assert_eq!(bulk(admin, filter).await, 0, "an empty list selects nothing");
    Verdict::Kept
}

async fn api_bulk_deletion_is_bounded(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for number in 0..5 {
        bench.ended(&format!("i-{number}")).await;
    }
    assert_eq!(bulk(admin, InstanceFilter { limit: Some(2), ..InstanceFilter::default() }).await, 2);
    assert_eq!(ok(admin.list_instances().await).len(), 3);
    Verdict::Kept
}

async fn api_bulk_deletion_by_time_is_strict(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    let before = |time| InstanceFilter { completed_before: Some(time), ..InstanceFilter::default() };
    assert_eq!(bulk(admin, before(DAWN_MS)).await, 0, "it did not end before its end");
    assert_eq!(bulk(admin, before(DAWN_MS + 1)).await, 1);
    Verdict::Kept
}

async fn api_bulk_deletion_needs_all_its_conditions(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("old").await;
    bench.ended("old too").await;
    bench.advance(Duration::from_secs(1));
    bench.ended("new").await;
    let filter = InstanceFilter {
        instance_ids: Some(ids(&["old", "new"])),
        completed_before: Some(DAWN_MS + 1_000),
        limit: Some(10),
    };
    assert_eq!(bulk(admin, filter).await, 1);
    assert_eq!(ok(admin.list_instances().await), ["new", "old too"]);
    Verdict::Kept
}

async fn api_bulk_deletion_spares_an_instance_between_two_executions(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    assert_eq!(bulk(admin, InstanceFilter::default()).await, 0, "its next execution is about to begin");
    let turn = bench.fetched().await;
    assert_eq!(bulk(admin, InstanceFilter::default()).await, 0, "or is just beginning");
    bench.commit(&turn, Commit::continued("a", 2)).await;
    Verdict::Kept
}

async fn api_bulk_deletion_takes_whole_trees(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    ended_child(&bench, "grandchild", "child").await;
    let filter = InstanceFilter { limit: Some(1), ..InstanceFilter::default() };
    assert_eq!(bulk(admin, filter).await, 3, "the limit counts roots, the result all that is deleted");
    assert!(ok(admin.list_instances().await).is_empty());
    Verdict::Kept
}

async fn api_bulk_deletion_spares_a_tree_with_a_running_descendant(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    child(&bench, "grandchild", "child").await;
    assert_eq!(bulk(admin, InstanceFilter::default()).await, 0, "nothing alive is deleted in bulk");
    assert_eq!(ok(admin.list_instances().await).len(), 3);
    Verdict::Kept
}

async fn api_bulk_deletion_takes_no_child_alone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("root").await;
    ended_child(&bench, "child", "root").await;
    let instance_ids = Some(ids(&["child"]));
    assert_eq!(bulk(admin, InstanceFilter { instance_ids, ..InstanceFilter::default() }).await, 0);
    assert_eq!(bulk(admin, InstanceFilter::default()).await, 0, "its parent may still ask for it");
    Verdict::Kept
}
