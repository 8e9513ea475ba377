//! Management: looking at instances, deleting them, pruning them.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_store::{
    DeleteInstanceResult, InstanceFilter, InstanceTree, ProviderAdmin, ProviderErrorKind, PruneOptions,
    PruneResult, QueueDepths, SystemMetrics,
};

use crate::Verdict;
use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, TICK, activity, completion, event, kv_set, lost, ok, raise, refused,
    scheduled, start_of, timer,
};
use crate::case::{cases, need};

cases![
    api_ids_are_listed_newest_first,
    api_ids_are_listed_by_the_status_of_the_current_execution,
    api_a_pending_start_is_not_listed,
    api_executions_are_listed_in_order,
    api_histories_are_read_by_execution,
    api_the_latest_execution_is_the_highest,
    api_an_instance_is_described,
    api_times_of_instances_are_real,
    api_an_execution_is_described,
    api_what_is_unknown_is_not_found,
    api_metrics_count_everything,
    api_metrics_follow_the_current_execution,
    api_queue_depths_count_what_waits,
    api_queue_depths_leave_out_what_is_leased,
    api_queue_depths_count_what_an_expired_lease_gave_back,
    api_children_are_listed,
    api_the_parent_of_a_child_is_named,
    api_a_tree_holds_all_below_its_root,
    api_a_tree_of_parents_in_a_circle_ends,
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
    api_pruning_keeps_the_current_execution,
    api_pruning_keeps_as_many_as_it_is_told,
    api_pruning_never_keeps_less_than_the_last,
    api_pruning_by_time_is_strict,
    api_pruning_needs_all_its_conditions,
    api_pruning_keeps_an_execution_that_runs,
    api_pruning_an_unknown_instance_says_so,
    api_pruned_events_are_gone,
    api_bulk_pruning_takes_running_instances_too,
    api_bulk_pruning_by_ids_takes_only_these,
    api_bulk_pruning_is_bounded,
];

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Requires an error of a kind whose text holds what users match on.
fn says<T: std::fmt::Debug>(
    result: Result<T, steadfast_store::ProviderError>,
    kind: ProviderErrorKind,
    text: &str,
) {
    let error = refused(result, kind);
    assert!(error.message.to_lowercase().contains(text), "the error should say '{text}': {error}");
    assert!(!error.is_retryable(), "another try cannot help: {error}");
}

async fn api_ids_are_listed_newest_first(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    assert!(ok(admin.list_instances().await).is_empty(), "an empty store lists nothing");
    for instance in ["b", "c", "a"] {
        bench.begun(instance).await;
        bench.advance(TICK);
    }
    assert_eq!(ok(admin.list_instances().await), ["a", "c", "b"]);
    Verdict::Kept
}

async fn api_ids_are_listed_by_the_status_of_the_current_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("running", 2).await;
    bench.ended("completed").await;
    bench.begin("failed", Commit::default().status("Failed", "no")).await;
    bench.begin("continued", Commit::default().continue_as_new("continued", 2)).await;
    for (status, expected) in [
        ("Running", vec!["running"]),
        ("Completed", vec!["completed"]),
        ("Failed", vec!["failed"]),
        ("ContinuedAsNew", vec!["continued"]),
        ("no such status", vec![]),
    ] {
        assert_eq!(ok(admin.list_instances_by_status(status).await), expected, "status {status}");
    }
    Verdict::Kept
}

async fn api_a_pending_start_is_not_listed(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    assert!(ok(admin.list_instances().await).is_empty(), "an instance is listed from its first commit on");
    Verdict::Kept
}

async fn api_executions_are_listed_in_order(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 12).await;
    assert_eq!(ok(admin.list_executions("a").await), (1..=12).collect::<Vec<_>>(), "by number, ascending");
    assert!(ok(admin.list_executions("nobody").await).is_empty());
    Verdict::Kept
}

async fn api_histories_are_read_by_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    assert_eq!(ok(admin.read_history_with_execution_id("a", 1).await).len(), 2);
    assert_eq!(ok(admin.read_history_with_execution_id("a", 2).await).len(), 1);
    assert_eq!(ok(admin.read_history("a").await).len(), 1, "without a number it is the latest");
    assert!(ok(admin.read_history_with_execution_id("a", 9).await).is_empty());
    assert!(ok(admin.read_history("nobody").await).is_empty());
    Verdict::Kept
}

async fn api_the_latest_execution_is_the_highest(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 11).await;
    assert_eq!(ok(admin.latest_execution_id("a").await), 11);
    assert_eq!(ok(admin.latest_execution_id("nobody").await), 1);
    Verdict::Kept
}

async fn api_an_instance_is_described(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("a", Commit::default().parent("parent").complete("a", 2, "output")).await;
    let info = ok(admin.get_instance_info("a").await);
    assert_eq!(info.instance_id, "a");
    assert_eq!(
        (info.orchestration_name, info.orchestration_version),
        ("Orchestration".into(), "1.0.0".into())
    );
    assert_eq!((info.current_execution_id, info.status.as_str()), (1, "Completed"));
    assert_eq!(info.output.as_deref(), Some("output"));
    assert_eq!(info.parent_instance_id.as_deref(), Some("parent"));
    bench.begun_at("b", 2).await;
    let info = ok(admin.get_instance_info("b").await);
    assert_eq!((info.current_execution_id, info.status.as_str(), info.output), (2, "Running", None));
    Verdict::Kept
}

async fn api_times_of_instances_are_real(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.advance(Duration::from_secs(1));
    bench.begun("a").await;
    bench.advance(Duration::from_secs(1));
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.advance(Duration::from_secs(1));
    bench.commit(&turn, Commit::default().complete("a", 2, "output")).await;
    bench.advance(Duration::from_secs(1));
    let info = ok(admin.get_instance_info("a").await);
    let (first, last) = (DAWN_MS + 1_000, DAWN_MS + 3_000);
    assert_eq!((info.created_at, info.updated_at), (first, last), "the first and the last commit, in ms");
    let execution = ok(admin.get_execution_info("a", 1).await);
    assert_eq!((execution.started_at, execution.completed_at), (first, Some(last)));
    Verdict::Kept
}

async fn api_an_execution_is_described(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    let old = ok(admin.get_execution_info("a", 1).await);
    assert_eq!((old.execution_id, old.status.as_str()), (1, "ContinuedAsNew"));
    assert_eq!((old.output.as_deref(), old.event_count), (Some("again"), 2));
    assert_eq!(old.completed_at, Some(DAWN_MS));
    let new = ok(admin.get_execution_info("a", 2).await);
    assert_eq!((new.execution_id, new.status.as_str(), new.output), (2, "Running", None));
    assert_eq!((new.completed_at, new.event_count), (None, 1), "it has not ended");
    Verdict::Kept
}

async fn api_what_is_unknown_is_not_found(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    let kind = ProviderErrorKind::NotFound;
    says(admin.get_instance_info("nobody").await, kind, "not found");
    says(admin.get_execution_info("nobody", 1).await, kind, "not found");
    says(admin.get_execution_info("a", 2).await, kind, "not found");
    says(admin.get_parent_id("nobody").await, kind, "not found");
    Verdict::Kept
}

async fn api_metrics_count_everything(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    assert_eq!(ok(admin.get_system_metrics().await), SystemMetrics::default(), "an empty store has none");
    bench.begun("a").await;
    bench.begun("b").await;
    bench.ended("c").await;
    bench.begin("d", Commit::default().status("Failed", "no")).await;
    bench.start("pending").await;
    let expected = SystemMetrics {
        total_instances: 4,
        total_executions: 4,
        running_instances: 2,
        completed_instances: 1,
        failed_instances: 1,
        total_events: 5,
    };
    assert_eq!(ok(admin.get_system_metrics().await), expected);
    Verdict::Kept
}

async fn api_metrics_follow_the_current_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 3).await;
    let metrics = ok(admin.get_system_metrics().await);
    assert_eq!((metrics.total_instances, metrics.running_instances), (1, 1), "it is one instance");
    assert_eq!((metrics.total_executions, metrics.total_events), (3, 5), "of three executions");
    Verdict::Kept
}

async fn api_queue_depths_count_what_waits(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let commit = Commit::default().schedule("a", 2).message(timer("a", 3, DAWN_MS + 60_000));
    bench.begin("a", commit).await;
    bench.send(raise("a", "1")).await;
    bench.send_later(raise("a", "2"), LEASE).await;
    let expected = QueueDepths { orchestrator_queue: 3, worker_queue: 1, timer_queue: 0 };
    assert_eq!(ok(admin.get_queue_depths().await), expected, "also what is held back; timers are messages");
    Verdict::Kept
}

async fn api_queue_depths_leave_out_what_is_leased(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_with_work("a").await;
    bench.enqueue(activity("a", 3)).await;
    bench.send(raise("a", "1")).await;
    bench.working().await;
    bench.fetched().await;
    bench.send(raise("a", "late")).await;
    let expected = QueueDepths { orchestrator_queue: 1, worker_queue: 1, timer_queue: 0 };
    assert_eq!(ok(admin.get_queue_depths().await), expected, "the late message is not leased");
    Verdict::Kept
}

async fn api_queue_depths_count_what_an_expired_lease_gave_back(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    bench.fetched().await;
    bench.working().await;
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default(), "both are leased");
    bench.advance(LEASE + TICK);
    let expected = QueueDepths { orchestrator_queue: 1, worker_queue: 1, timer_queue: 0 };
    assert_eq!(ok(admin.get_queue_depths().await), expected, "both wait again");
    Verdict::Kept
}

async fn child(bench: &Bench, instance: &str, parent: &str) {
    bench.begin(instance, Commit::default().parent(parent)).await;
}

async fn ended_child(bench: &Bench, instance: &str, parent: &str) {
    bench.begin(instance, Commit::default().parent(parent).complete(instance, 2, "output")).await;
}

async fn api_children_are_listed(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("root").await;
    child(&bench, "child-1", "root").await;
    child(&bench, "child-2", "root").await;
    child(&bench, "grandchild", "child-1").await;
    let mut children = ok(admin.list_children("root").await);
    children.sort();
    assert_eq!(children, ["child-1", "child-2"], "the direct ones only");
    assert!(ok(admin.list_children("grandchild").await).is_empty());
    assert!(ok(admin.list_children("nobody").await).is_empty());
    Verdict::Kept
}

async fn api_the_parent_of_a_child_is_named(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("root").await;
    child(&bench, "child", "root").await;
    assert_eq!(ok(admin.get_parent_id("child").await).as_deref(), Some("root"));
    assert_eq!(ok(admin.get_parent_id("root").await), None, "a root has none");
    Verdict::Kept
}

fn sorted(mut tree: InstanceTree) -> Vec<String> {
    assert_eq!(tree.all_ids.first(), Some(&tree.root_id), "the root is first");
    tree.all_ids.sort();
    tree.all_ids
}

async fn api_a_tree_holds_all_below_its_root(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a-root").await;
    child(&bench, "b-child", "a-root").await;
    child(&bench, "c-grandchild", "b-child").await;
    bench.begun("other").await;
    let tree = ok(admin.get_instance_tree("a-root").await);
    assert_eq!(sorted(tree), ["a-root", "b-child", "c-grandchild"]);
    assert_eq!(sorted(ok(admin.get_instance_tree("b-child").await)), ["b-child", "c-grandchild"]);
    assert_eq!(sorted(ok(admin.get_instance_tree("nobody").await)), ["nobody"], "an unknown id is alone");
    Verdict::Kept
}

async fn api_a_tree_of_parents_in_a_circle_ends(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    child(&bench, "a", "b").await;
    child(&bench, "b", "a").await;
    child(&bench, "self", "self").await;
    assert_eq!(sorted(ok(admin.get_instance_tree("a").await)), ["a", "b"], "each once");
    assert_eq!(sorted(ok(admin.get_instance_tree("self").await)), ["self"]);
    let deleted = ok(admin.delete_instances_atomic(&ids(&["a", "b"]), true).await);
    assert_eq!(deleted.instances_deleted, 2, "and it can be deleted");
    Verdict::Kept
}

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

/// Starts an instance whose executions 1 to 4 end a second apart and whose execution 5 runs.
async fn five_executions(bench: &Bench, instance: &str) {
    bench.start(instance).await;
    for execution in 1..=4 {
        let turn = bench.fetched().await;
        bench.advance(Duration::from_secs(1));
        bench.commit(&turn, Commit::continued(instance, execution).continue_as_new(instance, 2)).await;
    }
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued(instance, 5)).await;
}

fn keep(keep_last: Option<u32>) -> PruneOptions {
    PruneOptions { keep_last, completed_before: None }
}

async fn api_pruning_keeps_the_current_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let pruned = ok(admin.prune_executions("a", PruneOptions::default()).await);
    let expected = PruneResult { instances_processed: 1, executions_deleted: 4, events_deleted: 8 };
    assert_eq!(pruned, expected);
    assert_eq!(ok(admin.list_executions("a").await), [5]);
    let again = ok(admin.prune_executions("a", PruneOptions::default()).await);
    assert_eq!((again.instances_processed, again.executions_deleted), (1, 0), "there is nothing left to do");
    Verdict::Kept
}

async fn api_pruning_keeps_as_many_as_it_is_told(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    assert_eq!(ok(admin.prune_executions("a", keep(Some(9))).await).executions_deleted, 0);
    assert_eq!(ok(admin.prune_executions("a", keep(Some(3))).await).executions_deleted, 2);
    assert_eq!(ok(admin.list_executions("a").await), [3, 4, 5], "the highest are kept");
    Verdict::Kept
}

async fn api_pruning_never_keeps_less_than_the_last(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for (instance, keep_last) in [("a", None), ("b", Some(0)), ("c", Some(1))] {
        five_executions(&bench, instance).await;
        ok(admin.prune_executions(instance, keep(keep_last)).await);
        assert_eq!(ok(admin.list_executions(instance).await), [5], "keep_last {keep_last:?}");
    }
    bench.ended("over").await;
    ok(admin.prune_executions("over", keep(Some(0))).await);
    assert_eq!(ok(admin.list_executions("over").await), [1], "also when it has ended");
    Verdict::Kept
}

async fn api_pruning_by_time_is_strict(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let options = PruneOptions { keep_last: None, completed_before: Some(DAWN_MS + 2_000) };
    assert_eq!(ok(admin.prune_executions("a", options).await).executions_deleted, 1);
    assert_eq!(ok(admin.list_executions("a").await), [2, 3, 4, 5], "the second ended at that very time");
    Verdict::Kept
}

async fn api_pruning_needs_all_its_conditions(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let options = PruneOptions { keep_last: Some(4), completed_before: Some(DAWN_MS + 3_500) };
    assert_eq!(ok(admin.prune_executions("a", options).await).executions_deleted, 1, "three are old enough");
    assert_eq!(ok(admin.list_executions("a").await), [2, 3, 4, 5]);
    Verdict::Kept
}

async fn api_pruning_keeps_an_execution_that_runs(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2)).await;
    assert_eq!(ok(admin.prune_executions("a", PruneOptions::default()).await).executions_deleted, 0);
    assert_eq!(ok(admin.list_executions("a").await), [1, 2], "nobody has said that the first has ended");
    Verdict::Kept
}

async fn api_pruning_an_unknown_instance_says_so(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let pruned = admin.prune_executions("nobody", PruneOptions::default()).await;
    says(pruned, ProviderErrorKind::NotFound, "not found");
    Verdict::Kept
}

async fn api_pruned_events_are_gone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    ok(admin.prune_executions("a", PruneOptions::default()).await);
    assert!(ok(bench.provider().read_with_execution("a", 1).await).is_empty());
    assert_eq!(ok(admin.get_system_metrics().await).total_events, 1);
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.execution_id, turn.item.history.len()), (5, 1), "the instance goes on");
    Verdict::Kept
}

async fn api_bulk_pruning_takes_running_instances_too(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("running", 3).await;
    bench.begun_at("ended", 2).await;
    bench.send(raise("ended", "1")).await;
    let turn = bench.fetched().await;
    let commit = Commit { execution_id: 2, ..Commit::default() };
    bench.commit(&turn, commit.complete("ended", 2, "output")).await;
    let pruned = ok(admin.prune_executions_bulk(InstanceFilter::default(), keep(None)).await);
    let expected = PruneResult { instances_processed: 2, executions_deleted: 3, events_deleted: 6 };
    assert_eq!(pruned, expected);
    Verdict::Kept
}

async fn api_bulk_pruning_by_ids_takes_only_these(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    bench.begun_at("b", 2).await;
    let only = |instances| InstanceFilter { instance_ids: Some(ids(instances)), ..InstanceFilter::default() };
    let none = ok(admin.prune_executions_bulk(only(&[]), keep(None)).await);
    assert_eq!(none, PruneResult::default(), "an empty list selects nothing");
    let one = ok(admin.prune_executions_bulk(only(&["b"]), keep(None)).await);
    assert_eq!((one.instances_processed, one.executions_deleted), (1, 1));
    assert_eq!(ok(admin.list_executions("a").await), [1, 2]);
    Verdict::Kept
}

async fn api_bulk_pruning_is_bounded(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for number in 0..4 {
        bench.begun_at(&format!("i-{number}"), 2).await;
    }
    let filter = InstanceFilter { limit: Some(3), ..InstanceFilter::default() };
    let pruned = ok(admin.prune_executions_bulk(filter, keep(None)).await);
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (3, 3));
    Verdict::Kept
}
