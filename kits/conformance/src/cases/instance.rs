//! Instances: starting them once, asking how they stand, waiting for them, listing them.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};
use steadfast_store::{
    Cursor, DEFAULT_PAGE, ExecutionState, InstanceQuery, InstanceState, MAX_PAGE, ProviderErrorKind, Sent,
    Started, Store, WaitFor, Waited,
};
use tokio::task::JoinHandle;

use crate::Verdict;
use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, TICK, activity, event, ok, raise, refused, soon, start_of, status_set,
};
use crate::case::{cases, need};

cases![
    s3_a_start_with_a_bad_message_starts_nothing,
    api_a_start_makes_a_new_instance,
    api_a_second_start_finds_the_first_pending,
    api_a_start_of_a_running_instance_changes_nothing,
    api_a_start_of_a_finished_instance_changes_nothing,
    api_a_start_finds_history_without_a_row,
    api_a_start_finds_a_start_that_is_still_held_back,
    api_a_start_finds_an_instance_between_two_executions,
    api_a_start_after_a_deletion_is_new,
    api_of_many_starts_at_once_one_is_new,
    api_what_is_sent_with_a_start_arrives_behind_it,
    api_what_is_sent_with_a_start_reaches_an_existing_instance,
    api_a_start_must_be_a_start,
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
    api_a_wait_for_an_instance_ends_with_its_next_change,
    api_a_wait_for_an_instance_that_changed_already_ends_at_once,
    api_a_wait_for_an_instance_ends_when_its_time_is_over,
    api_a_wait_for_an_unknown_instance_ends_when_it_comes_to_be,
    api_a_wait_for_an_instance_ends_when_it_is_deleted,
    api_a_change_of_another_instance_does_not_end_a_wait,
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
    api_instances_are_listed_newest_first,
    api_pages_hold_every_instance_once,
    api_a_page_is_not_disturbed_by_new_instances,
    api_the_last_page_has_no_next,
    api_a_page_has_a_size_of_its_own,
    api_no_page_is_larger_than_the_largest,
    api_instances_can_be_asked_for_by_status,
    api_instances_can_be_asked_for_by_orchestration,
    api_instances_can_be_asked_for_by_the_beginning_of_their_id,
    api_instances_can_be_asked_for_by_parent,
    api_children_can_be_left_out,
    api_what_is_asked_for_must_all_hold,
    api_a_filter_works_across_pages,
    api_a_cursor_that_the_store_did_not_make_is_refused,
];

async fn start(store: &dyn Store, instance: &str) -> Started {
    ok(store.start(start_of(instance).into(), Vec::new()).await)
}

async fn state(store: &dyn Store, instance: &str) -> InstanceState {
    ok(store.state(instance).await).expect("the instance should have a state")
}

async fn s3_a_start_with_a_bad_message_starts_nothing(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let also = vec![raise("a", "1").into(), activity("a", 2).into()];
    refused(store.start(start_of("a").into(), also).await, ProviderErrorKind::Invalid);
    assert!(bench.fetch().await.is_none(), "all or none");
    assert_eq!(start(store, "a").await, Started::New, "there is no instance yet");
    Verdict::Kept
}

async fn api_a_start_makes_a_new_instance(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    assert_eq!(start(store, "a").await, Started::New);
    assert_eq!(bench.fetched().await.item.messages, [start_of("a")]);
    Verdict::Kept
}

async fn api_a_second_start_finds_the_first_pending(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    assert_eq!(start(store, "a").await, Started::New);
    assert_eq!(start(store, "a").await, Started::Existing, "a start that waits is an instance");
    assert_eq!(bench.fetched().await.item.messages, [start_of("a")], "there is one start");
    assert_eq!(start(store, "a").await, Started::Existing, "also while it is leased");
    Verdict::Kept
}

async fn api_a_start_of_a_running_instance_changes_nothing(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    assert_eq!(start(store, "a").await, Started::Existing);
    assert!(bench.fetch().await.is_none(), "nothing is sent");
    Verdict::Kept
}

async fn api_a_start_of_a_finished_instance_changes_nothing(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.ended("a").await;
    assert_eq!(start(store, "a").await, Started::Existing);
    assert!(bench.fetch().await.is_none(), "nothing is sent");
    Verdict::Kept
}

async fn api_a_start_finds_history_without_a_row(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    ok(store.append_history("a", 1, Commit::started("a").events).await);
    assert_eq!(start(store, "a").await, Started::Existing, "history alone is an instance");
    Verdict::Kept
}

async fn api_a_start_finds_a_start_that_is_still_held_back(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.send_later(start_of("a"), LEASE).await;
    assert_eq!(start(store, "a").await, Started::Existing);
    Verdict::Kept
}

async fn api_a_start_finds_an_instance_between_two_executions(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    assert_eq!(start(store, "a").await, Started::Existing);
    Verdict::Kept
}

async fn api_a_start_after_a_deletion_is_new(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.ended("a").await;
    ok(admin.delete_instance("a", false).await);
    assert_eq!(start(store, "a").await, Started::New);
    assert!(bench.fetched().await.item.history.is_empty(), "nothing of the old one is left");
    Verdict::Kept
}

async fn api_of_many_starts_at_once_one_is_new(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = |provider: Arc<dyn steadfast_store::Provider>| async move {
        let store = provider.as_store()?;
        Some(start(store, "a").await)
    };
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(call(Arc::clone(bench.provider())))).collect();
    let mut new = 0;
    for call in calls {
        new += usize::from(soon(call).await == Some(Started::New));
    }
    assert_eq!(new, 1, "exactly one caller made the instance");
    assert_eq!(bench.fetched().await.item.messages, [start_of("a")], "there is one start");
    Verdict::Kept
}

async fn api_what_is_sent_with_a_start_arrives_behind_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let also = vec![raise("a", "1").into(), raise("a", "2").into()];
    assert_eq!(ok(store.start(start_of("a").into(), also).await), Started::New);
    let expected = [start_of("a"), raise("a", "1"), raise("a", "2")];
    assert_eq!(bench.fetched().await.item.messages, expected);
    Verdict::Kept
}

async fn api_what_is_sent_with_a_start_reaches_an_existing_instance(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let also = vec![raise("a", "1").into()];
    assert_eq!(ok(store.start(start_of("a").into(), also).await), Started::Existing);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "1")], "without another start");
    Verdict::Kept
}

async fn api_a_start_must_be_a_start(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let start: Sent = raise("a", "1").into();
    refused(store.start(start, Vec::new()).await, ProviderErrorKind::Invalid);
    Verdict::Kept
}

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

/// Waits for an instance in a task of its own, so that the case can go on.
async fn waiting(bench: &Bench, what: WaitFor<'static>) -> JoinHandle<Option<Waited>> {
    let (provider, waiting) = (Arc::clone(bench.provider()), bench.clock().sleepers());
    let call = tokio::spawn(async move {
        let store = provider.as_store()?;
        Some(ok(store.wait(what, LEASE).await))
    });
    bench.parked(waiting + 1).await;
    call
}

/// Waits for the next change of an instance that exists.
async fn watching(bench: &Bench, store: &dyn Store, instance: &'static str) -> JoinHandle<Option<Waited>> {
    let seen = state(store, instance).await.change;
    waiting(bench, WaitFor::Instance { instance, seen }).await
}

/// What a wait for an instance says that ends now.
async fn seen(store: &dyn Store, instance: &str) -> Waited {
    Waited::Seen(ok(store.state(instance).await).map(Box::new))
}

/// Commits a turn of an instance that waits.
async fn go_on(bench: &Bench, instance: &str, commit: Commit) {
    bench.send(raise(instance, "poke")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, instance, "nothing else is ready");
    // Whoever a fetch wakes has looked before the commit, so that only the commit can show it something.
    bench.settle().await;
    bench.commit(&turn, commit).await;
}

async fn api_a_wait_for_an_instance_ends_with_its_next_change(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    assert_eq!(soon(call).await, Some(seen(store, "a").await), "a commit should end the wait");
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_that_changed_already_ends_at_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let known = state(store, "a").await.change;
    go_on(&bench, "a", Commit::default()).await;
    for known in [0, known] {
        let wait = store.wait(WaitFor::Instance { instance: "a", seen: known }, Duration::ZERO);
        assert_eq!(ok(wait.await), seen(store, "a").await, "there is more to see than {known}");
    }
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_ends_when_its_time_is_over(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    bench.send(raise("a", "1")).await;
    bench.advance(LEASE - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "a message alone is no change");
    bench.advance(TICK);
    assert_eq!(soon(call).await, Some(Waited::TimedOut), "nothing changed");
    Verdict::Kept
}

async fn api_a_wait_for_an_unknown_instance_ends_when_it_comes_to_be(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let call = waiting(&bench, WaitFor::Instance { instance: "a", seen: 0 }).await;
    bench.begun("b").await;
    bench.settle().await;
    assert!(!call.is_finished(), "it is still to come");
    bench.begun("a").await;
    assert_eq!(soon(call).await, Some(seen(store, "a").await));
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_ends_when_it_is_deleted(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    ok(admin.delete_instance("a", true).await);
    assert_eq!(soon(call).await, Some(Waited::Seen(None)), "an instance that is gone has changed");
    Verdict::Kept
}

async fn api_a_change_of_another_instance_does_not_end_a_wait(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    bench.begun("b").await;
    bench.settle().await;
    assert!(!call.is_finished(), "another instance changed");
    bench.advance(LEASE);
    assert_eq!(soon(call).await, Some(Waited::TimedOut));
    Verdict::Kept
}

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
    assert_eq!(soon(call).await, Some(seen(store, "a").await), "what is seen is the end");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_completes(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    let Some(Waited::Seen(Some(end))) = soon(call).await else { panic!("the wait should say what it saw") };
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
    assert_eq!(soon(call).await, Some(seen(store, "a").await), "a failure is an end");
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
    assert_eq!(soon(call).await, Some(seen(store, "a").await), "the last execution has ended");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_is_deleted(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = waiting(&bench, END).await;
    ok(admin.delete_instance("a", true).await);
    assert_eq!(soon(call).await, Some(Waited::Seen(None)), "what is gone ends no more");
    Verdict::Kept
}

async fn api_a_wait_for_the_end_ends_when_the_instance_is_deleted_with_others(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.ended("b").await;
    let call = waiting(&bench, END).await;
    ok(admin.delete_instances_atomic(&["b".to_owned(), "a".to_owned()], true).await);
    assert_eq!(soon(call).await, Some(Waited::Seen(None)), "what is gone ends no more");
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
    assert_eq!(soon(call).await, Some(seen(store, "a").await));
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
    assert_eq!(soon(call).await, Some(Waited::TimedOut), "it has not ended in time");
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
    assert_eq!(soon(call).await, Some(Waited::TimedOut));
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
        assert_eq!(soon(call).await, Some(seen(store, "a").await), "each of them waits for it");
    }
    Verdict::Kept
}

/// Asks for every page and returns the ids of each.
async fn pages(store: &dyn Store, query: InstanceQuery) -> Vec<Vec<String>> {
    let (mut pages, mut query) = (Vec::new(), query);
    loop {
        let page = ok(store.instances(&query).await);
        pages.push(page.instances.into_iter().map(|state| state.instance).collect());
        assert!(pages.len() < 100, "the pages should come to an end");
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}

async fn listed(store: &dyn Store, query: InstanceQuery) -> Vec<String> {
    pages(store, query).await.concat()
}

async fn api_instances_are_listed_newest_first(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for instance in ["b", "c", "a"] {
        bench.begun(instance).await;
        bench.advance(TICK);
    }
    bench.send(raise("b", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(listed(store, InstanceQuery::default()).await, ["a", "c", "b"], "by creation, not by change");
    let page = ok(store.instances(&InstanceQuery::default()).await);
    assert_eq!(page.instances.first(), Some(&state(store, "a").await), "each is shown as it stands");
    Verdict::Kept
}

/// Starts instances `i-0`, `i-1`, … all in the same millisecond.
async fn crowd(bench: &Bench, count: usize) {
    for number in 0..count {
        bench.begun(&format!("i-{number}")).await;
    }
}

async fn api_pages_hold_every_instance_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, 7).await;
    let pages = pages(store, InstanceQuery { limit: 3, ..InstanceQuery::default() }).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    let expected: Vec<String> = (0..7).rev().map(|number| format!("i-{number}")).collect();
    assert_eq!(pages.concat(), expected, "each once, also those of one millisecond");
    Verdict::Kept
}

async fn api_a_page_is_not_disturbed_by_new_instances(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, 4).await;
    let query = InstanceQuery { limit: 2, ..InstanceQuery::default() };
    let first = ok(store.instances(&query).await);
    bench.begun("new").await;
    let second = listed(store, InstanceQuery { after: first.next, ..query }).await;
    assert_eq!(second, ["i-1", "i-0"], "a page goes on where the last one ended");
    Verdict::Kept
}

async fn api_the_last_page_has_no_next(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let empty = ok(store.instances(&InstanceQuery::default()).await);
    assert!(empty.instances.is_empty() && empty.next.is_none(), "an empty store has one empty page");
    crowd(&bench, 3).await;
    let page = ok(store.instances(&InstanceQuery { limit: 3, ..InstanceQuery::default() }).await);
    assert_eq!((page.instances.len(), page.next), (3, None), "a page that holds the rest is the last");
    Verdict::Kept
}

async fn api_a_page_has_a_size_of_its_own(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, DEFAULT_PAGE + 1).await;
    let page = ok(store.instances(&InstanceQuery::default()).await);
    assert_eq!(page.instances.len(), DEFAULT_PAGE);
    assert!(page.next.is_some(), "there is one more");
    Verdict::Kept
}

async fn api_no_page_is_larger_than_the_largest(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, MAX_PAGE + 1).await;
    let page = ok(store.instances(&InstanceQuery { limit: usize::MAX, ..InstanceQuery::default() }).await);
    assert_eq!(page.instances.len(), MAX_PAGE, "a page is one answer");
    assert!(page.next.is_some(), "there is one more");
    Verdict::Kept
}

async fn api_instances_can_be_asked_for_by_status(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("running").await;
    bench.ended("completed").await;
    bench.begin("failed", Commit::default().status("Failed", "no")).await;
    bench.begin("continued", Commit::default().continue_as_new("continued", 2)).await;
    for (status, expected) in [
        ("Running", vec!["running"]),
        ("Completed", vec!["completed"]),
        ("Failed", vec!["failed"]),
        ("ContinuedAsNew", vec!["continued"]),
        ("completed", vec![]),
    ] {
        let query = InstanceQuery { status: Some(status.to_owned()), ..InstanceQuery::default() };
        assert_eq!(listed(store, query).await, expected, "status {status}");
    }
    Verdict::Kept
}

fn named(name: &str) -> Commit {
    let mut commit = Commit::default();
    commit.metadata.orchestration_name = Some(name.to_owned());
    commit.metadata.orchestration_version = Some("2.0.0".to_owned());
    commit
}

async fn api_instances_can_be_asked_for_by_orchestration(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", named("Ship")).await;
    bench.begin("b", named("Bill")).await;
    let query = InstanceQuery { orchestration: Some("Ship".to_owned()), ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["a"]);
    Verdict::Kept
}

async fn api_instances_can_be_asked_for_by_the_beginning_of_their_id(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for instance in ["order-1", "order_2", "Order-3", "my-order-4", "%order"] {
        bench.begun(instance).await;
    }
    for (prefix, expected) in
        [("order", vec!["order_2", "order-1"]), ("order_", vec!["order_2"]), ("%", vec!["%order"])]
    {
        let query = InstanceQuery { id_prefix: Some(prefix.to_owned()), ..InstanceQuery::default() };
        assert_eq!(listed(store, query).await, expected, "prefix {prefix}, to the letter");
    }
    Verdict::Kept
}

/// Starts a root with two children and another root.
async fn family(bench: &Bench) {
    bench.begun("root").await;
    bench.begin("root::1", Commit::default().parent("root")).await;
    bench.begin("root::2", Commit::default().parent("root").complete("root::2", 2, "output")).await;
    bench.begun("other").await;
}

async fn api_instances_can_be_asked_for_by_parent(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery { parent: Some("root".to_owned()), ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["root::2", "root::1"]);
    Verdict::Kept
}

async fn api_children_can_be_left_out(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery { roots_only: true, ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["other", "root"]);
    Verdict::Kept
}

async fn api_what_is_asked_for_must_all_hold(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery {
        status: Some("Completed".to_owned()),
        id_prefix: Some("root".to_owned()),
        orchestration: Some("Orchestration".to_owned()),
        parent: Some("root".to_owned()),
        ..InstanceQuery::default()
    };
    assert_eq!(listed(store, query.clone()).await, ["root::2"]);
    assert!(
        listed(store, InstanceQuery { roots_only: true, ..query }).await.is_empty(),
        "a child is no root"
    );
    Verdict::Kept
}

async fn api_a_filter_works_across_pages(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for number in 0..6 {
        bench.begun(&format!("running-{number}")).await;
        bench.ended(&format!("ended-{number}")).await;
    }
    let query = InstanceQuery { status: Some("Completed".to_owned()), limit: 4, ..InstanceQuery::default() };
    let pages = pages(store, query).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2], "pages are filled");
    assert!(pages.concat().iter().all(|id| id.starts_with("ended")));
    Verdict::Kept
}

async fn api_a_cursor_that_the_store_did_not_make_is_refused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let query = InstanceQuery { after: Some(Cursor("no cursor".to_owned())), ..InstanceQuery::default() };
    refused(store.instances(&query).await, ProviderErrorKind::Invalid);
    Verdict::Kept
}
