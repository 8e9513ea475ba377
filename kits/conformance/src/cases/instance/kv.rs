//! Key-value state: what an execution changes, what it leaves to the next, and what clients see.

use std::collections::HashMap;

use steadfast_core::{EventKind, KvEntry};

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, event, kv_set, ok, raise};
use crate::case::{cases, need};

cases![
    api_a_key_that_was_set_can_be_read,
    api_a_later_value_replaces_an_earlier_one,
    api_changes_of_one_commit_apply_in_order,
    api_a_cleared_key_is_gone_for_readers,
    api_clearing_all_hides_what_earlier_executions_left,
    api_a_key_set_after_clearing_all_is_there,
    api_the_snapshot_holds_nothing_of_the_current_execution,
    api_the_end_of_an_execution_hands_its_keys_to_the_next,
    api_a_failed_execution_leaves_its_keys_too,
    api_a_cleared_key_is_gone_from_the_next_snapshot,
    api_a_cleared_key_stays_in_the_snapshot_of_its_own_execution,
    api_the_time_of_a_key_is_kept,
    api_keys_belong_to_one_instance,
    api_unknown_keys_and_instances_have_no_value,
    api_a_refused_commit_changes_no_key,
    api_many_keys_are_kept,
    api_any_text_is_a_key_and_a_value,
    api_pruning_keeps_every_key,
    api_deleting_removes_every_key,
    api_stats_measure_the_current_execution,
    api_stats_count_the_keys_that_readers_see,
    api_stats_count_what_was_carried_forward,
    api_stats_of_an_unknown_instance_are_none,
];

fn cleared(key: &str) -> EventKind {
    EventKind::KeyValueCleared { key: key.to_owned() }
}

/// Commits a turn of one execution that records these kinds, from the given event on.
async fn record(bench: &Bench, first: u64, kinds: Vec<EventKind>) {
    bench.send(raise("a", "poke")).await;
    let turn = bench.fetched().await;
    let execution_id = turn.item.execution_id;
    let commit = Commit { execution_id, ..Commit::default() };
    bench.commit(&turn, with(commit, first, kinds)).await;
}

fn with(commit: Commit, first: u64, kinds: Vec<EventKind>) -> Commit {
    let events = kinds.into_iter().zip(first..);
    events.fold(commit, |commit, (kind, id)| commit.event(event("a", id, kind)))
}

/// Starts the instance, sets keys and continues as new: the next execution is to begin.
async fn handed_on(bench: &Bench, kinds: Vec<EventKind>) {
    bench.begin("a", with(Commit::default(), 2, kinds).continue_as_new("a", 90)).await;
}

async fn snapshot(bench: &Bench) -> HashMap<String, KvEntry> {
    bench.fetched().await.item.kv_snapshot
}

async fn value(bench: &Bench, key: &str) -> Option<String> {
    ok(bench.provider().get_kv_value("a", key).await)
}

async fn values(bench: &Bench) -> HashMap<String, String> {
    ok(bench.provider().get_kv_all_values("a").await)
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> HashMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

async fn api_a_key_that_was_set_can_be_read(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1"), kv_set("l", "2")])).await;
    assert_eq!(value(&bench, "k").await.as_deref(), Some("1"), "a committed key can be read at once");
    assert_eq!(values(&bench).await, pairs([("k", "1"), ("l", "2")]));
}

async fn api_a_later_value_replaces_an_earlier_one(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1")])).await;
    record(&bench, 3, vec![kv_set("k", "2")]).await;
    assert_eq!(values(&bench).await, pairs([("k", "2")]));
}

async fn api_changes_of_one_commit_apply_in_order(bench: Bench) {
    let kinds = vec![kv_set("k", "1"), cleared("k"), kv_set("k", "2"), kv_set("l", "1"), cleared("l")];
    bench.begin("a", with(Commit::default(), 2, kinds)).await;
    assert_eq!(values(&bench).await, pairs([("k", "2")]), "the last change of each key counts");
}

async fn api_a_cleared_key_is_gone_for_readers(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1"), kv_set("l", "2")])).await;
    record(&bench, 4, vec![cleared("k"), cleared("never set")]).await;
    assert_eq!(value(&bench, "k").await, None);
    assert_eq!(values(&bench).await, pairs([("l", "2")]));
}

async fn api_clearing_all_hides_what_earlier_executions_left(bench: Bench) {
    handed_on(&bench, vec![kv_set("old", "1")]).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, with(Commit::continued("a", 2), 2, vec![kv_set("new", "2")])).await;
    record(&bench, 3, vec![EventKind::KeyValuesCleared]).await;
    assert!(values(&bench).await.is_empty(), "keys of this and of earlier executions are cleared");
}

async fn api_a_key_set_after_clearing_all_is_there(bench: Bench) {
    handed_on(&bench, vec![kv_set("k", "1"), kv_set("l", "1")]).await;
    let turn = bench.fetched().await;
    let kinds = vec![EventKind::KeyValuesCleared, kv_set("k", "2")];
    bench.commit(&turn, with(Commit::continued("a", 2), 2, kinds)).await;
    assert_eq!(values(&bench).await, pairs([("k", "2")]), "clearing is over when it is over");
}

async fn api_the_snapshot_holds_nothing_of_the_current_execution(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1")])).await;
    bench.send(raise("a", "1")).await;
    assert!(snapshot(&bench).await.is_empty(), "replay sets what this execution has set");
}

async fn api_the_end_of_an_execution_hands_its_keys_to_the_next(bench: Bench) {
    handed_on(&bench, vec![kv_set("k", "1")]).await;
    assert_eq!(value(&bench, "k").await.as_deref(), Some("1"), "readers see it all the time");
    let snapshot = snapshot(&bench).await;
    assert_eq!(snapshot.get("k").map(|entry| entry.value.as_str()), Some("1"), "so does the next execution");
}

async fn api_a_failed_execution_leaves_its_keys_too(bench: Bench) {
    let commit = with(Commit::default(), 2, vec![kv_set("k", "1")]).status("Failed", "no");
    bench.begin("a", commit).await;
    bench.send(raise("a", "1")).await;
    assert!(snapshot(&bench).await.contains_key("k"), "an execution that failed has ended too");
}

async fn api_a_cleared_key_is_gone_from_the_next_snapshot(bench: Bench) {
    handed_on(&bench, vec![kv_set("k", "1"), kv_set("l", "1")]).await;
    let turn = bench.fetched().await;
    let commit = with(Commit::continued("a", 2), 2, vec![cleared("k")]).continue_as_new("a", 90);
    bench.commit(&turn, commit).await;
    let keys: Vec<String> = snapshot(&bench).await.into_keys().collect();
    assert_eq!(keys, ["l"], "a cleared key does not come back");
}

async fn api_a_cleared_key_stays_in_the_snapshot_of_its_own_execution(bench: Bench) {
    handed_on(&bench, vec![kv_set("k", "1")]).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, with(Commit::continued("a", 2), 2, vec![cleared("k")])).await;
    assert_eq!(value(&bench, "k").await, None, "readers see that it is cleared");
    bench.send(raise("a", "1")).await;
    let snapshot = snapshot(&bench).await;
    assert!(snapshot.contains_key("k"), "replay begins where the execution began, and clears it itself");
}

async fn api_the_time_of_a_key_is_kept(bench: Bench) {
    let kind = EventKind::KeyValueSet {
        key: "k".to_owned(),
        value: "1".to_owned(),
        last_updated_at_ms: DAWN_MS - 12_345,
    };
    handed_on(&bench, vec![kind]).await;
    let expected = KvEntry { value: "1".to_owned(), last_updated_at_ms: DAWN_MS - 12_345 };
    assert_eq!(snapshot(&bench).await.get("k"), Some(&expected), "the recorded time counts");
}

async fn api_keys_belong_to_one_instance(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1")])).await;
    bench.begin("b", Commit::default().event(event("b", 2, kv_set("k", "2")))).await;
    assert_eq!(values(&bench).await, pairs([("k", "1")]));
    assert_eq!(ok(bench.provider().get_kv_value("b", "k").await).as_deref(), Some("2"));
}

async fn api_unknown_keys_and_instances_have_no_value(bench: Bench) {
    bench.begun("a").await;
    assert_eq!(value(&bench, "k").await, None);
    assert_eq!(ok(bench.provider().get_kv_value("nobody", "k").await), None);
    assert!(ok(bench.provider().get_kv_all_values("nobody").await).is_empty());
}

async fn api_a_refused_commit_changes_no_key(bench: Bench) {
    bench.begin("a", with(Commit::default(), 2, vec![kv_set("k", "1")])).await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    let repeated = with(Commit::default(), 2, vec![kv_set("k", "2")]);
    assert!(bench.try_commit(&turn, repeated).await.is_err(), "the event id is taken");
    assert_eq!(value(&bench, "k").await.as_deref(), Some("1"));
}

async fn api_many_keys_are_kept(bench: Bench) {
    let kinds = (0..300).map(|number| kv_set(&format!("key-{number}"), &number.to_string())).collect();
    bench.begin("a", with(Commit::default(), 2, kinds).continue_as_new("a", 900)).await;
    assert_eq!(values(&bench).await.len(), 300, "a store keeps what was committed: limits are not its");
    assert_eq!(snapshot(&bench).await.len(), 300, "the snapshot is whole, so that limits can be checked");
}

async fn api_any_text_is_a_key_and_a_value(bench: Bench) {
    let keys = ["", " ", "a/b", "'; --", "ключ", "\u{1F511}", "K", "k"];
    let kinds = keys.iter().map(|key| kv_set(key, &format!("value of {key}\n"))).collect();
    bench.begin("a", with(Commit::default(), 2, kinds)).await;
    for key in keys {
        assert_eq!(value(&bench, key).await, Some(format!("value of {key}\n")), "key {key:?}");
    }
}

async fn api_pruning_keeps_every_key(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    handed_on(&bench, vec![kv_set("k", "1")]).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, with(Commit::continued("a", 2), 2, vec![kv_set("l", "2")])).await;
    let pruned = ok(admin.prune_executions("a", steadfast_store::PruneOptions::default()).await);
    assert_eq!(pruned.executions_deleted, 1, "the execution that set the key is pruned");
    assert_eq!(values(&bench).await, pairs([("k", "1"), ("l", "2")]));
    Verdict::Kept
}

async fn api_deleting_removes_every_key(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    handed_on(&bench, vec![kv_set("k", "1")]).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, with(Commit::continued("a", 2), 2, vec![kv_set("l", "2")])).await;
    ok(admin.delete_instance("a", true).await);
    assert!(values(&bench).await.is_empty(), "a deleted instance has no keys");
    bench.start("a").await;
    assert!(snapshot(&bench).await.is_empty(), "nor has the next one of that id");
    Verdict::Kept
}

async fn api_stats_measure_the_current_execution(bench: Bench) {
    bench.begun_at("a", 2).await;
    record(&bench, 2, vec![kv_set("k", "1"), kv_set("l", "2")]).await;
    let events = ok(bench.provider().read("a").await);
    let bytes: usize =
        events.iter().map(|event| serde_json::to_string(event).expect("an event is JSON").len()).sum();
    let stats = ok(bench.provider().get_instance_stats("a").await).expect("the instance is there");
    assert_eq!(stats.history_event_count, 3, "the first execution does not count");
    assert_eq!(stats.history_size_bytes, bytes as u64, "the size is that of the events as JSON");
}

async fn api_stats_count_the_keys_that_readers_see(bench: Bench) {
    handed_on(&bench, vec![kv_set("k", "12345"), kv_set("l", "123")]).await;
    let turn = bench.fetched().await;
    let kinds = vec![cleared("k"), kv_set("l", "1"), kv_set("m", "äö")];
    bench.commit(&turn, with(Commit::continued("a", 2), 2, kinds)).await;
    let stats = ok(bench.provider().get_instance_stats("a").await).expect("the instance is there");
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (2, 5), "values are measured in bytes");
}

async fn api_stats_count_what_was_carried_forward(bench: Bench) {
    let mut commit = Commit::started("a");
    let carried = vec![("inbox".to_owned(), "1".to_owned()), ("inbox".to_owned(), "2".to_owned())];
    for event in &mut commit.events {
        if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut event.kind {
            *carry_forward_events = Some(carried.clone());
        }
    }
    bench.begun("none").await;
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.commit(&turn, commit).await;
    let pending = async |instance: &str| {
        let stats = ok(bench.provider().get_instance_stats(instance).await);
        stats.expect("the instance is there").queue_pending_count
    };
    assert_eq!(pending("a").await, 2, "two messages were carried forward");
    assert_eq!(pending("none").await, 0, "none were");
}

async fn api_stats_of_an_unknown_instance_are_none(bench: Bench) {
    assert_eq!(ok(bench.provider().get_instance_stats("nobody").await), None);
}
