//! Commits of turns: all of it or nothing.

use semver::Version;
use steadfast_core::{ErrorDetails, EventKind, SessionKey, WorkItem};
use steadfast_store::{ExecutionInfo, InstanceInfo, ProviderErrorKind};

use crate::Verdict;
use crate::bench::{
    Bench, Commit, LEASE, Turning, activity, event, kv_set, ok, raise, refused, scheduled, start_of, started,
    status_set,
};
use crate::case::{cases, need};

cases![
    s3_a_commit_does_all_of_it,
    s3_a_commit_removes_exactly_what_was_leased,
    s3_a_refused_commit_appends_no_history,
    s3_a_refused_commit_queues_no_work,
    s3_a_refused_commit_sends_no_messages,
    s3_a_refused_commit_withdraws_no_work,
    s3_a_refused_commit_leaves_the_instance_as_it_was,
    s3_a_refused_commit_leaves_the_execution_as_it_was,
    s3_a_refused_commit_leaves_the_custom_status,
    s3_a_refused_commit_leaves_the_key_values,
    s3_a_refused_commit_opens_no_session,
    s3_a_refused_commit_makes_no_instance,
    s3_a_refused_commit_keeps_its_lease,
    s3_a_refused_commit_keeps_its_messages,
    s3_a_commit_with_an_event_without_an_id_does_nothing,
    s3_a_commit_with_an_event_twice_does_nothing,
    s3_a_commit_with_work_among_the_messages_does_nothing,
    s3_a_commit_with_a_message_among_the_work_does_nothing,
    s3_a_large_commit_is_one_commit,
    api_a_message_to_a_parent_is_the_parent_s,
    api_the_execution_that_is_named_gets_the_events,
    api_an_activity_cannot_be_sent_as_a_message,
];

async fn s3_a_commit_does_all_of_it(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = bench.leased("a").await;
    bench.commit(&turn, everything()).await;
    let provider = bench.provider();
    assert_eq!(bench.event_ids("a").await, [1, 2, 3, 4, 5, 6, 7], "its history should be there");
    assert_eq!(bench.fetch_work().await.map(|(item, ..)| item), Some(activity("a", 6)), "its work");
    assert!(bench.fetch_work().await.is_none(), "what it withdrew should be gone");
    assert_eq!(ok(provider.get_custom_status("a", 0).await), Some((Some("new".to_owned()), 1)));
    assert_eq!(ok(provider.get_kv_value("a", "key").await), Some("value".to_owned()));
    assert_eq!(ok(admin.get_instance_info("a").await).status, "Completed");
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "new")], "its messages");
    assert_eq!(bench.fetched().await.item.instance, "b", "all its messages");
    Verdict::Kept
}

async fn s3_a_commit_removes_exactly_what_was_leased(bench: Bench) {
    bench.begun("a").await;
    bench.begun("b").await;
    for instance in ["a", "b", "a"] {
        bench.send(raise(instance, "data")).await;
    }
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(bench.fetched().await.item.instance, "b", "messages of others should stay");
    assert!(bench.fetch().await.is_none(), "what was leased should be gone");
}

async fn s3_a_refused_commit_appends_no_history(bench: Bench) {
    refused_turn(&bench).await;
    assert_eq!(bench.event_ids("a").await, [1, 2]);
}

async fn s3_a_refused_commit_queues_no_work(bench: Bench) {
    refused_turn(&bench).await;
    assert_eq!(bench.fetch_work().await.map(|(item, ..)| item), Some(activity("a", 2)), "what was there");
    assert!(bench.fetch_work().await.is_none(), "and nothing else");
}

async fn s3_a_refused_commit_sends_no_messages(bench: Bench) {
    let turn = refused_turn(&bench).await;
    ok(bench.try_abandon(&turn, Some(LEASE)).await);
    assert!(bench.fetch().await.is_none(), "neither to its own instance nor to another");
}

async fn s3_a_refused_commit_withdraws_no_work(bench: Bench) {
    refused_turn(&bench).await;
    assert!(bench.fetch_work().await.is_some(), "the activity of event 2 was there and should be");
}

async fn s3_a_refused_commit_leaves_the_instance_as_it_was(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = bench.leased("a").await;
    let before: InstanceInfo = ok(admin.get_instance_info("a").await);
    bench.advance(LEASE / 2);
    let mut commit = everything().event(event("a", 1, started()));
    commit.metadata.orchestration_name = Some("Renamed".to_owned());
    commit.metadata.orchestration_version = Some("9.9.9".to_owned());
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    let after = ok(admin.get_instance_info("a").await);
    assert_eq!(format!("{after:?}"), format!("{before:?}"), "its name, its times and all else");
    Verdict::Kept
}

async fn s3_a_refused_commit_leaves_the_execution_as_it_was(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    refused_turn(&bench).await;
    let ExecutionInfo { status, output, completed_at, event_count, .. } =
        ok(admin.get_execution_info("a", 1).await);
    assert_eq!((status.as_str(), output, completed_at, event_count), ("Running", None, None, 2));
    Verdict::Kept
}

async fn s3_a_refused_commit_leaves_the_custom_status(bench: Bench) {
    refused_turn(&bench).await;
    assert_eq!(ok(bench.provider().get_custom_status("a", 0).await), None);
}

async fn s3_a_refused_commit_leaves_the_key_values(bench: Bench) {
    refused_turn(&bench).await;
    assert_eq!(ok(bench.provider().get_kv_value("a", "key").await), None);
}

async fn s3_a_refused_commit_opens_no_session(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    refused_turn(&bench).await;
    let found = ok(store.session(&SessionKey::owned("a", "session")).await);
    assert!(found.is_none(), "the session was opened by a commit that was refused");
    Verdict::Kept
}

async fn s3_a_refused_commit_makes_no_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let commit = Commit::started("a").event(event("a", 1, started()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    assert_eq!(ok(admin.list_instances().await), Vec::<String>::new());
    assert_eq!(ok(admin.list_executions("a").await), Vec::<u64>::new());
    Verdict::Kept
}

async fn s3_a_refused_commit_keeps_its_lease(bench: Bench) {
    let turn = refused_turn(&bench).await;
    assert!(bench.fetch().await.is_none(), "the instance should still be leased");
    bench.commit(&turn, everything()).await;
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "new")], "what was leased is gone now");
}

async fn s3_a_refused_commit_keeps_its_messages(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let turn = bench.leased("a").await;
    let again = everything().event(event("a", 1, started()));
    refused(bench.try_commit(&turn, again).await, ProviderErrorKind::Conflict);
    for mixed_up in [everything().message(activity("a", 8)), everything().work(start_of("c"))] {
        refused(bench.try_commit(&turn, mixed_up).await, ProviderErrorKind::Invalid);
    }
    bench.advance(LEASE);
    let next = bench.fetched().await;
    assert_eq!(next.item.messages, [raise("a", "data")], "they come back when the lease ends");
    Verdict::Kept
}

async fn s3_a_commit_with_an_event_without_an_id_does_nothing(bench: Bench) {
    let turn = bench.leased("a").await;
    let commit = everything().event(event("a", 0, scheduled()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Invalid);
    nothing_happened(&bench).await;
}

async fn s3_a_commit_with_an_event_twice_does_nothing(bench: Bench) {
    let turn = bench.leased("a").await;
    let commit = everything().event(event("a", 3, scheduled()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    nothing_happened(&bench).await;
}

async fn s3_a_commit_with_work_among_the_messages_does_nothing(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let turn = bench.leased("a").await;
    let commit = everything().message(activity("a", 8));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Invalid);
    nothing_happened(&bench).await;
    Verdict::Kept
}

async fn s3_a_commit_with_a_message_among_the_work_does_nothing(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let turn = bench.leased("a").await;
    refused(bench.try_commit(&turn, everything().work(start_of("c"))).await, ProviderErrorKind::Invalid);
    nothing_happened(&bench).await;
    Verdict::Kept
}

async fn s3_a_large_commit_is_one_commit(bench: Bench) {
    const MANY: u64 = 700;
    let mut commit = Commit::default();
    for number in 0..MANY {
        commit = commit.schedule("a", 2 + number).message(raise("a", &number.to_string()));
    }
    bench.begin("a", commit).await;
    assert_eq!(bench.event_ids("a").await, (1..2 + MANY).collect::<Vec<_>>());
    let sent: Vec<_> = (0..MANY).map(|number| raise("a", &number.to_string())).collect();
    assert_eq!(bench.fetched().await.item.messages, sent, "the messages of a commit keep their order");
    let (first, ..) = bench.working().await;
    assert_eq!(first, activity("a", 2), "the work of a commit keeps its order");
}

async fn api_a_message_to_a_parent_is_the_parent_s(bench: Bench) {
    bench.begun("parent").await;
    let completed = WorkItem::SubOrchCompleted {
        parent_instance: "parent".to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "result".to_owned(),
    };
    let failed = WorkItem::SubOrchFailed {
        parent_instance: "parent".to_owned(),
        parent_execution_id: 1,
        parent_id: 3,
        details: ErrorDetails::Infrastructure {
            operation: "operation".to_owned(),
            message: "message".to_owned(),
            retryable: true,
        },
    };
    let commit = Commit::default().message(completed.clone()).message(failed.clone());
    bench.begin("child", commit).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.instance.as_str(), turn.item.messages), ("parent", vec![completed, failed]));
}

async fn api_the_execution_that_is_named_gets_the_events(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut foreign = event("somebody else", 1, started());
    foreign.execution_id = 77;
    let commit = Commit { events: vec![foreign.clone()], ..Commit::started("a") };
    bench.commit(&turn, commit).await;
    let found = ok(bench.provider().read_with_execution("a", 1).await);
    assert_eq!(found, [foreign], "what an event says of itself is data");
    assert_eq!(bench.event_ids("somebody else").await, Vec::<u64>::new());
}

async fn api_an_activity_cannot_be_sent_as_a_message(bench: Bench) {
    let sent = bench.provider().enqueue_for_orchestrator(activity("a", 2), None).await;
    let error = refused(sent, ProviderErrorKind::Invalid);
    assert!(!error.is_retryable(), "another try would not help: {error}");
}

/// A commit of everything there is, which ends with event 7.
fn everything() -> Commit {
    let opened = EventKind::SessionOpened {
        session_id: "session".to_owned(),
        idle_timeout_ms: None,
        concurrency: None,
    };
    let mut commit = Commit::default()
        .event(event("a", 3, status_set(Some("new"))))
        .event(event("a", 4, kv_set("key", "value")))
        .event(event("a", 5, opened))
        .schedule("a", 6)
        .message(raise("a", "new"))
        .message(start_of("b"))
        .cancel("a", 1, 2)
        .complete("a", 7, "output");
    commit.metadata.pinned_duroxide_version = Some(Version::new(9, 9, 9));
    commit
}

/// Leases instance `a` and commits everything, with an event at the end that is there already.
async fn refused_turn(bench: &Bench) -> Turning {
    let turn = bench.leased("a").await;
    let commit = everything().event(event("a", 1, started()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    turn
}

/// Requires that a commit of everything was refused as a whole, and that what was leased still is.
async fn nothing_happened(bench: &Bench) {
    assert_eq!(bench.event_ids("a").await, [1, 2], "no history");
    assert_eq!(ok(bench.provider().get_custom_status("a", 0).await), None, "no custom status");
    assert_eq!(ok(bench.provider().get_kv_value("a", "key").await), None, "no key-value state");
    assert_eq!(bench.fetch_work().await.map(|(item, ..)| item), Some(activity("a", 2)), "no withdrawal");
    assert!(bench.fetch_work().await.is_none(), "no work");
    assert!(bench.fetch().await.is_none(), "no message, and the lease is kept");
}
