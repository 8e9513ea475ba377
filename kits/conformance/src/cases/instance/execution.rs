//! What is known of an instance and of its executions, beside their histories.

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};
use steadfast_store::{ExecutionInfo, InstanceInfo, ProviderAdmin, ProviderErrorKind};

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, event, ok, raise, refused, scheduled};
use crate::case::{cases, need};

cases![
    api_a_commit_with_name_and_version_makes_the_instance,
    api_a_commit_without_name_and_version_makes_no_instance,
    api_a_name_without_a_version_makes_no_instance,
    api_a_later_commit_may_rename_the_instance,
    api_a_commit_without_name_and_version_renames_nothing,
    api_a_child_knows_its_parent,
    api_an_execution_begins_as_running,
    api_a_commit_may_complete_the_execution,
    api_a_commit_may_fail_the_execution,
    api_a_commit_may_end_the_execution_in_favour_of_the_next,
    api_a_status_without_events_counts,
    api_a_commit_without_a_status_leaves_it,
    api_the_current_execution_never_falls,
    api_an_instance_knows_when_it_was_made_and_changed,
    api_an_execution_knows_when_it_began_and_ended,
];

async fn api_a_commit_with_name_and_version_makes_the_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    let info = instance(admin, "a").await;
    assert_eq!(told(&info), ("Orchestration", "1.0.0", 1, "Running", None, None));
    Verdict::Kept
}

async fn api_a_commit_without_name_and_version_makes_no_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a").schedule("a", 2).complete("a", 3, "output");
    (commit.metadata.orchestration_name, commit.metadata.orchestration_version) = (None, None);
    bench.commit(&turn, commit).await;
    let missing = refused(admin.get_instance_info("a").await, ProviderErrorKind::NotFound);
    assert!(missing.message.contains("not found"), "people look for 'not found': {missing}");
    assert_eq!(bench.event_ids("a").await, [1, 2, 3], "everything else should be done");
    assert_eq!(ok(admin.list_executions("a").await), [1], "everything else should be done");
    let ExecutionInfo { status, output, .. } = execution(admin, "a", 1).await;
    assert_eq!((status.as_str(), output.as_deref()), ("Completed", Some("output")));
    assert!(bench.fetch_work().await.is_some(), "everything else should be done");
    Verdict::Kept
}

async fn api_a_name_without_a_version_makes_no_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a");
    commit.metadata.orchestration_version = None;
    bench.commit(&turn, commit).await;
    refused(admin.get_instance_info("a").await, ProviderErrorKind::NotFound);
    Verdict::Kept
}

async fn api_a_later_commit_may_rename_the_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = bench.leased("a").await;
    let mut commit = Commit::default();
    commit.metadata.orchestration_name = Some("Renamed".to_owned());
    commit.metadata.orchestration_version = Some("2.0.0".to_owned());
    bench.commit(&turn, commit).await;
    assert_eq!(told(&instance(admin, "a").await), ("Renamed", "2.0.0", 1, "Running", None, None));
    Verdict::Kept
}

async fn api_a_commit_without_name_and_version_renames_nothing(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = bench.leased("a").await;
    let mut commit = Commit::default();
    commit.metadata.orchestration_name = Some("Renamed".to_owned());
    bench.commit(&turn, commit).await;
    let info = instance(admin, "a").await;
    assert_eq!(told(&info), ("Orchestration", "1.0.0", 1, "Running", None, None), "a name alone counts not");
    Verdict::Kept
}

async fn api_a_child_knows_its_parent(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("child", Commit::default().parent("parent")).await;
    bench.send(raise("child", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    let parent = instance(admin, "child").await.parent_instance_id;
    assert_eq!(parent.as_deref(), Some("parent"), "a parent is told once and kept");
    Verdict::Kept
}

async fn api_an_execution_begins_as_running(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    let ExecutionInfo { status, output, completed_at, .. } = execution(admin, "a", 1).await;
    assert_eq!((status.as_str(), output, completed_at), ("Running", None, None));
    Verdict::Kept
}

async fn api_a_commit_may_complete_the_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin("a", Commit::default().complete("a", 2, "output")).await;
    let info = instance(admin, "a").await;
    assert_eq!(told(&info), ("Orchestration", "1.0.0", 1, "Completed", Some("output"), None));
    Verdict::Kept
}

async fn api_a_commit_may_fail_the_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let details = ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: "why".to_owned(),
        retryable: false,
    };
    let kind = EventKind::OrchestrationFailed { details };
    bench.begin("a", Commit::default().event(event("a", 2, kind)).status("Failed", "why")).await;
    let info = instance(admin, "a").await;
    assert_eq!(told(&info), ("Orchestration", "1.0.0", 1, "Failed", Some("why"), None));
    Verdict::Kept
}

async fn api_a_commit_may_end_the_execution_in_favour_of_the_next(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    let first = execution(admin, "a", 1).await;
    assert_eq!((first.status.as_str(), first.output.as_deref()), ("ContinuedAsNew", Some("again")));
    let info = instance(admin, "a").await;
    assert_eq!(told(&info), ("Orchestration", "1.0.0", 2, "Running", None, None));
    Verdict::Kept
}

async fn api_a_status_without_events_counts(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = bench.leased("a").await;
    bench.commit(&turn, Commit::default().status("Completed", "output")).await;
    let ExecutionInfo { status, output, completed_at, .. } = execution(admin, "a", 1).await;
    let found = (status.as_str(), output.as_deref(), completed_at);
    assert_eq!(found, ("Completed", Some("output"), Some(DAWN_MS)));
    Verdict::Kept
}

async fn api_a_commit_without_a_status_leaves_it(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    bench.advance(LEASE);
    bench.send(raise("a", "too late")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    let ExecutionInfo { status, output, completed_at, .. } = execution(admin, "a", 1).await;
    let found = (status.as_str(), output.as_deref(), completed_at);
    assert_eq!(found, ("Completed", Some("output"), Some(DAWN_MS)), "it ended when it ended");
    Verdict::Kept
}

async fn api_the_current_execution_never_falls(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().event(event("a", 9, scheduled()))).await;
    assert_eq!(instance(admin, "a").await.current_execution_id, 2, "a commit to the first changes nothing");
    Verdict::Kept
}

/// F22: times are real, in milliseconds.
async fn api_an_instance_knows_when_it_was_made_and_changed(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.advance(LEASE);
    let made = bench.now_ms();
    bench.begun("a").await;
    bench.advance(LEASE);
    let changed = bench.now_ms();
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().schedule("a", 2)).await;
    bench.advance(LEASE);
    let InstanceInfo { created_at, updated_at, .. } = instance(admin, "a").await;
    assert_eq!((created_at, updated_at), (made, changed), "of the first and of the last commit");
    Verdict::Kept
}

/// F22: times are real, in milliseconds.
async fn api_an_execution_knows_when_it_began_and_ended(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    bench.advance(LEASE);
    let first_ended = bench.now_ms();
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().continue_as_new("a", 2)).await;
    bench.advance(LEASE);
    let second_began = bench.now_ms();
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2)).await;
    let (first, second) = (execution(admin, "a", 1).await, execution(admin, "a", 2).await);
    assert_eq!((first.started_at, first.completed_at), (DAWN_MS, Some(first_ended)));
    assert_eq!((second.started_at, second.completed_at), (second_began, None));
    Verdict::Kept
}

async fn instance(admin: &dyn ProviderAdmin, id: &str) -> InstanceInfo {
    ok(admin.get_instance_info(id).await)
}

async fn execution(admin: &dyn ProviderAdmin, id: &str, execution: u64) -> ExecutionInfo {
    ok(admin.get_execution_info(id, execution).await)
}

/// What is told of an instance, apart from times: name, version, execution, status, output, parent.
fn told(info: &InstanceInfo) -> (&str, &str, u64, &str, Option<&str>, Option<&str>) {
    (
        &info.orchestration_name,
        &info.orchestration_version,
        info.current_execution_id,
        &info.status,
        info.output.as_deref(),
        info.parent_instance_id.as_deref(),
    )
}
