//! Deleting instances and trees of them.

use steadfast_core::WorkItem;
use steadfast_store::{
    DeleteInstanceResult, InstanceFilter, ProviderAdmin, ProviderErrorKind, QueueDepths, SystemMetrics,
};

use super::{child, ended_child, ids, says};
use crate::Verdict;
use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, activity, completion, event, kv_set, lost, ok, raise, scheduled, start_of,
    timer,
};
use crate::case::{cases, need};

cases![
    api_deleting_removes_all_of_an_instance,
    api_deleting_counts_what_it_removed,
    api_deleting_leaves_others_alone,
    api_deleting_nothing_is_fine,
    api_a_running_instance_is_deleted_only_by_force,
    api_an_instance_between_two_executions_is_deleted_only_by_force,
    api_an_instance_about_to_start_is_deleted_only_by_force,
    api_an_instance_without_a_row_that_runs_is_deleted_only_by_force,
    api_one_that_runs_saves_the_whole_list,
    api_a_child_that_is_not_listed_saves_its_parent,
    api_a_tree_can_be_deleted_at_once,
    api_a_turn_in_flight_does_not_bring_a_deleted_instance_back,
    api_work_in_flight_of_a_deleted_instance_is_lost,
    api_a_deleted_instance_can_be_started_again,
    api_deleting_by_force_takes_the_pending_start_along,
    api_deleting_a_root_takes_its_tree_along,
    api_a_child_is_not_deleted_alone,
    api_a_root_with_a_running_descendant_is_deleted_only_by_force,
    api_deleting_what_is_unknown_says_so,
    api_a_child_goes_on_when_its_parent_is_gone,
    api_a_child_whose_parent_is_gone_can_be_deleted,
];

/// Starts an instance with some of everything: two events, an activity, a message, a future timer, a key.
async fn furnished(bench: &Bench, instance: &str) {
    let commit = Commit::default()
        .event(event(instance, 2, scheduled()))
        .work(activity(instance, 2))
        .event(event(instance, 3, kv_set("k", "1")))
        .message(timer(instance, 4, DAWN_MS + 60_000));
    bench.begin(instance, commit).await;
    bench.send(raise(instance, "1")).await;
}

async fn api_deleting_removes_all_of_an_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    furnished(&bench, "a").await;
    ok(admin.delete_instances_atomic(&ids(&["a"]), true).await);
    assert!(ok(admin.list_instances().await).is_empty());
    assert!(ok(admin.list_executions("a").await).is_empty());
    assert!(ok(bench.provider().read("a").await).is_empty());
    assert!(ok(bench.provider().get_kv_all_values("a").await).is_empty());
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default());
    assert_eq!(ok(admin.get_system_metrics().await), SystemMetrics::default());
    says(admin.get_instance_info("a").await, ProviderErrorKind::NotFound, "not found");
    Verdict::Kept
}

async fn api_deleting_counts_what_it_removed(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("b", 2).await;
    furnished(&bench, "a").await;
    bench.working().await;
    let deleted = ok(admin.delete_instances_atomic(&ids(&["a", "b"]), true).await);
    let expected = DeleteInstanceResult {
        instances_deleted: 2,
        executions_deleted: 3,
        events_deleted: 6,
        queue_messages_deleted: 3,
    };
    assert_eq!(deleted, expected, "messages and activities both count, leased or not");
    Verdict::Kept
}

async fn api_deleting_leaves_others_alone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    furnished(&bench, "a").await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    furnished(&bench, "ab").await;
    ok(admin.delete_instances_atomic(&ids(&["ab"]), true).await);
    assert_eq!(ok(bench.provider().read("a").await).len(), 3);
    assert_eq!(ok(bench.provider().get_kv_value("a", "k").await).as_deref(), Some("1"));
    let expected = QueueDepths { orchestrator_queue: 1, worker_queue: 1, timer_queue: 0 };
    assert_eq!(ok(admin.get_queue_depths().await), expected);
    Verdict::Kept
}

async fn api_deleting_nothing_is_fine(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    let deleted = ok(admin.delete_instances_atomic(&[], false).await);
    assert_eq!(deleted, DeleteInstanceResult::default());
    assert_eq!(ok(admin.list_instances().await), ["a"]);
    Verdict::Kept
}

/// Requires that instances are alive: deleting them is refused and changes nothing, unless by force.
async fn deleted_only_by_force(admin: &dyn ProviderAdmin, instance: &str) {
    let refusal = admin.delete_instances_atomic(&ids(&[instance]), false).await;
    says(refusal, ProviderErrorKind::Refused, "still running");
    let deleted = ok(admin.delete_instances_atomic(&ids(&[instance]), true).await);
    assert_eq!(deleted.instances_deleted, 1, "force deletes it, because it was still there");
}

async fn api_a_running_instance_is_deleted_only_by_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    says(admin.delete_instance("a", false).await, ProviderErrorKind::Refused, "still running");
    deleted_only_by_force(admin, "a").await;
    Verdict::Kept
}

async fn api_an_instance_between_two_executions_is_deleted_only_by_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    says(admin.delete_instance("a", false).await, ProviderErrorKind::Refused, "still running");
    bench.fetched().await;
    deleted_only_by_force(admin, "a").await;
    Verdict::Kept
}

async fn api_an_instance_about_to_start_is_deleted_only_by_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    deleted_only_by_force(admin, "a").await;
    assert!(bench.fetch().await.is_none(), "its start is gone");
    Verdict::Kept
}

async fn api_an_instance_without_a_row_that_runs_is_deleted_only_by_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a");
    commit.metadata.orchestration_name = None;
    bench.commit(&turn, commit).await;
    deleted_only_by_force(admin, "a").await;
    assert!(ok(bench.provider().read("a").await).is_empty(), "its history is gone");
    Verdict::Kept
}

async fn api_one_that_runs_saves_the_whole_list(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    bench.begun("b").await;
    let refusal = admin.delete_instances_atomic(&ids(&["a", "b"]), false).await;
    says(refusal, ProviderErrorKind::Refused, "still running");
    assert_eq!(ok(admin.list_instances().await).len(), 2, "all or none");
    Verdict::Kept
}

async fn api_a_child_that_is_not_listed_saves_its_parent(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    for force in [false, true] {
        let refusal = admin.delete_instances_atomic(&ids(&["root"]), force).await;
        says(refusal, ProviderErrorKind::Refused, "child");
    }
    assert_eq!(ok(admin.list_instances().await).len(), 2, "nothing is deleted");
    Verdict::Kept
}

async fn api_a_tree_can_be_deleted_at_once(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    let deleted = ok(admin.delete_instances_atomic(&ids(&["child", "root"]), false).await);
    assert_eq!(deleted.instances_deleted, 2, "in any order");
    assert!(ok(admin.list_instances().await).is_empty());
    Verdict::Kept
}

async fn api_a_turn_in_flight_does_not_bring_a_deleted_instance_back(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    ok(admin.delete_instance("a", true).await);
    let commit = Commit::started("a").schedule("a", 2).message(raise("a", "2"));
    lost(bench.try_commit(&turn, commit).await);
    lost(bench.try_renew(&turn, LEASE).await);
    lost(bench.try_abandon(&turn, None).await);
    assert!(ok(admin.list_instances().await).is_empty(), "it stays deleted");
    assert!(ok(bench.provider().read("a").await).is_empty(), "without history");
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default(), "and without work");
    Verdict::Kept
}

async fn api_work_in_flight_of_a_deleted_instance_is_lost(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    ok(admin.delete_instance("a", true).await);
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    lost(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default(), "nothing is sent");
    Verdict::Kept
}

async fn api_a_deleted_instance_can_be_started_again(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    let old = bench.fetched().await;
    ok(admin.delete_instance("a", true).await);
    bench.start("a").await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [start_of("a")], "the old lease does not lock the new instance");
    assert!(turn.item.history.is_empty() && turn.item.execution_id == 1, "nothing of the old one is left");
    lost(bench.try_commit(&old, Commit::default()).await);
    bench.commit(&turn, Commit::started("a")).await;
    assert_eq!(ok(admin.get_instance_info("a").await).status, "Running");
    Verdict::Kept
}

async fn api_deleting_by_force_takes_the_pending_start_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    ok(admin.delete_instance("a", true).await);
    assert!(bench.fetch().await.is_none(), "no next execution begins");
    Verdict::Kept
}

async fn api_deleting_a_root_takes_its_tree_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    ended_child(&bench, "grandchild", "child").await;
    bench.ended("other").await;
    let deleted = ok(admin.delete_instance("root", false).await);
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (3, 6));
    assert_eq!(ok(admin.list_instances().await), ["other"]);
    Verdict::Kept
}

async fn api_a_child_is_not_deleted_alone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    for force in [false, true] {
        let refusal = admin.delete_instance("child", force).await;
        says(refusal, ProviderErrorKind::Refused, "sub-orchestration");
    }
    assert_eq!(ok(admin.list_instances().await).len(), 2, "nothing is deleted");
    Verdict::Kept
}

async fn api_a_root_with_a_running_descendant_is_deleted_only_by_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    child(&bench, "grandchild", "child").await;
    says(admin.delete_instance("root", false).await, ProviderErrorKind::Refused, "still running");
    assert_eq!(ok(admin.list_instances().await).len(), 3, "nothing is deleted");
    assert_eq!(ok(admin.delete_instance("root", true).await).instances_deleted, 3);
    Verdict::Kept
}

async fn api_deleting_what_is_unknown_says_so(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    says(admin.delete_instance("nobody", false).await, ProviderErrorKind::NotFound, "not found");
    says(admin.delete_instance("nobody", true).await, ProviderErrorKind::NotFound, "not found");
    Verdict::Kept
}

fn child_start() -> WorkItem {
    let mut start = start_of("child");
    if let WorkItem::StartOrchestration { parent_instance, parent_id, .. } = &mut start {
        (*parent_instance, *parent_id) = (Some("parent".to_owned()), Some(2));
    }
    start
}

/// Lets a child begin after its parent was deleted.
async fn orphaned(bench: &Bench, admin: &dyn ProviderAdmin) {
    bench.begin("parent", Commit::default().message(child_start()).complete("parent", 2, "output")).await;
    ok(admin.delete_instance("parent", false).await);
    let turn = bench.fetch().await.expect("the start of a child should survive its parent");
    assert_eq!(turn.item.messages, [child_start()]);
    bench.commit(&turn, Commit::started("child").parent("parent")).await;
}

async fn api_a_child_goes_on_when_its_parent_is_gone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    orphaned(&bench, admin).await;
    assert_eq!(ok(admin.get_instance_info("child").await).status, "Running");
    bench.send(raise("child", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("child", 2, "output")).await;
    assert_eq!(ok(admin.get_instance_info("child").await).status, "Completed");
    Verdict::Kept
}

async fn api_a_child_whose_parent_is_gone_can_be_deleted(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    orphaned(&bench, admin).await;
    says(admin.delete_instance("child", false).await, ProviderErrorKind::Refused, "still running");
    bench.send(raise("child", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("child", 2, "output")).await;
    let deleted = ok(admin.delete_instance_bulk(InstanceFilter::default()).await);
    assert_eq!(deleted.instances_deleted, 1, "there is no root to delete instead");
    Verdict::Kept
}
