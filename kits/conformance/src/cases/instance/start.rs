//! Starting instances once.

use std::sync::Arc;

use steadfast_store::{Envelope, ProviderErrorKind, Started};

use super::start;
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, activity, ok, raise, refused, start_of};
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
];

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
        let store = provider.into_store()?;
        Some(start(&*store, "a").await)
    };
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(call(Arc::clone(bench.provider())))).collect();
    let mut new = 0;
    for call in calls {
        new += usize::from(bench.soon(call).await == Some(Started::New));
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
    let start: Envelope = raise("a", "1").into();
    refused(store.start(start, Vec::new()).await, ProviderErrorKind::Invalid);
    Verdict::Kept
}
