//! Asking how an instance stands.

use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};
use steadfast_store::ExecutionState;

use super::state;
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, event, ok, raise, status_set};
use crate::case::{cases, need};

cases![
    api_an_unknown_instance_has_no_state,
    api_an_instance_has_no_state_before_its_first_turn,
    api_a_running_instance_says_what_it_is,
    api_a_completed_instance_shows_its_output,
    api_a_failed_instance_keeps_the_details,
    api_an_instance_between_two_executions_says_so,
    api_the_state_is_that_of_the_current_execution,
    api_the_custom_status_is_part_of_the_state,
    api_every_commit_is_a_change,
    api_a_refused_commit_is_no_change,
    api_an_instance_started_again_is_not_mistaken_for_the_old_one,
];

async fn api_an_unknown_instance_has_no_state(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    assert_eq!(ok(store.state("nobody").await), None);
    assert_eq!(ok(store.state("A").await), None, "ids are told apart to the letter");
    Verdict::Kept
}

async fn api_an_instance_has_no_state_before_its_first_turn(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    assert_eq!(ok(store.state("a").await), None, "nothing has been committed yet");
    Verdict::Kept
}

async fn api_a_running_instance_says_what_it_is(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.advance(Duration::from_secs(1));
    bench.begin("a", Commit::default().parent("parent")).await;
    bench.advance(Duration::from_secs(1));
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    let state = state(store, "a").await;
    assert_eq!(state.instance, "a");
    assert_eq!((state.orchestration.as_str(), state.version.as_str()), ("Orchestration", "1.0.0"));
    assert_eq!((state.execution_id, state.status), (1, ExecutionState::Running));
    assert_eq!(state.parent.as_deref(), Some("parent"));
    assert_eq!((state.created_at_ms, state.updated_at_ms), (DAWN_MS + 1_000, DAWN_MS + 2_000));
    Verdict::Kept
}

async fn api_a_completed_instance_shows_its_output(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().complete("a", 2, "the output")).await;
    assert_eq!(state(store, "a").await.status, ExecutionState::Completed("the output".to_owned()));
    Verdict::Kept
}

async fn api_a_failed_instance_keeps_the_details(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let details = ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason: "enough".to_owned() },
        message: "stopped".to_owned(),
        retryable: true,
    };
    let failed = event("a", 2, EventKind::OrchestrationFailed { details: details.clone() });
    bench.begin("a", Commit::default().event(failed).status("Failed", "stopped")).await;
    assert_eq!(state(store, "a").await.status, ExecutionState::Failed(details.clone()));
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(state(store, "a").await.status, ExecutionState::Failed(details), "also after a later commit");
    Verdict::Kept
}

async fn api_an_instance_between_two_executions_says_so(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    let state = state(store, "a").await;
    assert_eq!((state.execution_id, state.status), (1, ExecutionState::ContinuedAsNew));
    Verdict::Kept
}

async fn api_the_state_is_that_of_the_current_execution(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun_at("a", 3).await;
    let state = state(store, "a").await;
    assert_eq!((state.execution_id, state.status), (3, ExecutionState::Running));
    Verdict::Kept
}

async fn api_the_custom_status_is_part_of_the_state(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    assert_eq!(state(store, "a").await.custom_status_version, 0, "none was set");
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    let commit = Commit::default().event(event("a", 2, status_set(Some("first")))).event(event(
        "a",
        3,
        status_set(Some("second")),
    ));
    bench.commit(&turn, commit).await;
    let shown = state(store, "a").await;
    assert_eq!(shown.custom_status.as_deref(), Some("second"), "the last one of a commit counts");
    assert_eq!(shown.custom_status_version, 1, "a commit is one change");
    Verdict::Kept
}

async fn api_every_commit_is_a_change(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let mut seen = state(store, "a").await.change;
    assert!(seen > 0, "0 means that nothing was seen");
    let commits = [
        Commit::default().event(event("a", 2, status_set(Some("shown")))),
        Commit::default(),
        Commit::default().complete("a", 3, "output"),
    ];
    for commit in commits {
        bench.send(raise("a", "poke")).await;
        let turn = bench.fetched().await;
        bench.commit(&turn, commit).await;
        let change = state(store, "a").await.change;
        assert!(change > seen, "a commit should be a change: {change} after {seen}");
        seen = change;
    }
    Verdict::Kept
}

async fn api_a_refused_commit_is_no_change(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let before = state(store, "a").await;
    bench.send(raise("a", "poke")).await;
    let turn = bench.fetched().await;
    let repeated = Commit::started("a").status("Completed", "output");
    assert!(bench.try_commit(&turn, repeated).await.is_err(), "the event id is taken");
    assert_eq!(state(store, "a").await, before);
    Verdict::Kept
}

async fn api_an_instance_started_again_is_not_mistaken_for_the_old_one(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.ended("a").await;
    let old = state(store, "a").await;
    ok(admin.delete_instance("a", false).await);
    assert_eq!(ok(store.state("a").await), None, "a deleted instance has no state");
    bench.begun("a").await;
    let new = state(store, "a").await;
    assert_ne!(new.change, old.change, "whoever has seen the old one sees a change");
    assert_eq!(new.status, ExecutionState::Running);
    Verdict::Kept
}
