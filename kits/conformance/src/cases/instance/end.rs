//! Waiting for the end of an instance.

use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};
use steadfast_store::{ExecutionState, WaitFor, Waited};

use super::{go_on, seen, state, waiting};
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, event, ok, raise, status_set};
use crate::case::{cases, need};

cases![
    api_a_wait_for_the_end_sleeps_through_commits_that_do_not_end,
    api_a_wait_for_the_end_ends_when_the_instance_completes,
    api_a_wait_for_the_end_ends_when_the_instance_fails,
    api_a_wait_for_the_end_of_an_instance_that_has_ended_ends_at_once,
    api_a_wait_for_the_end_goes_on_in_the_next_execution,
    api_a_wait_for_the_end_ends_when_the_instance_is_deleted,
    api_a_wait_for_the_end_ends_when_the_instance_is_deleted_with_others,
    api_a_wait_for_the_end_of_an_unknown_instance_waits_for_its_beginning,
    api_a_wait_for_the_end_ends_when_its_time_is_over,
    api_the_end_of_another_instance_does_not_end_a_wait,
    api_all_who_wait_for_the_end_of_an_instance_are_woken,
];

const END: WaitFor<'static> = WaitFor::End { instance: "a" };

async fn api_a_wait_for_the_end_sleeps_through_commits_that_do_not_end(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", Commit::default().event(event("a", 2, status_set(Some("half"))))).await;
    go_on(&bench, "a", Commit::default().schedule("a", 3)).await;
    bench.settle().await;
    assert!(!call.is_finished(), "it has not ended");
    go_on(&bench, "a", Commit::default().complete("a", 4, "output")).await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await), "what is seen is the end");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_completes(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    let Some(Waited::Seen(Some(end))) = bench.soon(call).await else {
        panic!("the wait should say what it saw")
    };
    assert_eq!(end.status, ExecutionState::Completed("output".to_owned()));
    assert_eq!(*end, state(store, "a").await);
    Verdict::Kept
}

/// A commit with which an instance fails.
fn failure(instance: &str, id: u64) -> Commit {
    let details = ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason: "enough".to_owned() },
        message: "no".to_owned(),
        retryable: false,
    };
    let failed = event(instance, id, EventKind::OrchestrationFailed { details });
    Commit::default().event(failed).status("Failed", "no")
}

async fn api_a_wait_for_the_end_ends_when_the_instance_fails(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", failure("a", 2)).await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await), "a failure is an end");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_of_an_instance_that_has_ended_ends_at_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.ended("completed").await;
    bench.begin("failed", failure("failed", 2)).await;
    for instance in ["completed", "failed"] {
        for time in [Duration::ZERO, LEASE] {
            let wait = store.wait(WaitFor::End { instance }, time);
            assert_eq!(ok(wait.await), seen(store, instance).await, "it has {instance} before");
        }
    }
    Verdict::Kept
}

async fn api_a_wait_for_the_end_goes_on_in_the_next_execution(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", Commit::default().continue_as_new("a", 2)).await;
    bench.settle().await;
    let between = ok(store.wait(END, Duration::ZERO).await);
    assert_eq!(between, Waited::TimedOut, "between two executions it has not ended");
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2)).await;
    bench.settle().await;
    assert!(!call.is_finished(), "the next execution runs");
    bench.send(raise("a", "poke")).await;
    let turn = bench.fetched().await;
    let end = Commit { execution_id: 2, ..Commit::default() }.complete("a", 2, "output");
    bench.commit(&turn, end).await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await), "the last execution has ended");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_is_deleted(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    ok(admin.delete_instance("a", true).await);
    assert_eq!(bench.soon(call).await, Some(Waited::Seen(None)), "what is gone ends no more");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_is_deleted_with_others(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.ended("b").await;
    let call = waiting(&bench, END).await;
    ok(admin.delete_instances_atomic(&["b".to_owned(), "a".to_owned()], true).await);
    assert_eq!(bench.soon(call).await, Some(Waited::Seen(None)), "what is gone ends no more");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_of_an_unknown_instance_waits_for_its_beginning(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    assert_eq!(ok(store.wait(END, Duration::ZERO).await), Waited::TimedOut, "nobody has ended");
    let call = waiting(&bench, END).await;
    bench.begun("a").await;
    bench.settle().await;
    assert!(!call.is_finished(), "it has begun, not ended");
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await));
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_its_time_is_over(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", Commit::default()).await;
    bench.advance(LEASE - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "there is time left");
    bench.advance(TICK);
    assert_eq!(bench.soon(call).await, Some(Waited::TimedOut), "it has not ended in time");
    Verdict::Kept
}

async fn api_the_end_of_another_instance_does_not_end_a_wait(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    bench.ended("b").await;
    bench.settle().await;
    assert!(!call.is_finished(), "another instance ended");
    bench.advance(LEASE);
    assert_eq!(bench.soon(call).await, Some(Waited::TimedOut));
    Verdict::Kept
}

async fn api_all_who_wait_for_the_end_of_an_instance_are_woken(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(waiting(&bench, END).await);
    }
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    for call in calls {
        assert_eq!(bench.soon(call).await, Some(seen(store, "a").await), "each of them waits for it");
    }
    Verdict::Kept
}
