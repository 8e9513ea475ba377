//! Looking at instances, their executions, their trees and the queues.

use std::time::Duration;

use steadfast_store::{InstanceTree, ProviderErrorKind, QueueDepths, SystemMetrics};

use super::{child, ids, says};
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, ok, raise, timer};
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
];

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
