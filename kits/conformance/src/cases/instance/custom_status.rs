//! Custom status: the text that an instance shows, and how often it changed.

use crate::bench::{Bench, Commit, event, ok, raise, status_set};
use crate::case::cases;

cases![
    api_an_unknown_instance_has_no_custom_status,
    api_an_instance_begins_without_a_custom_status,
    api_a_custom_status_is_shown_with_its_version,
    api_a_custom_status_that_was_seen_is_not_shown_again,
    api_the_last_custom_status_of_a_commit_counts_once,
    api_a_custom_status_can_be_cleared,
    api_a_custom_status_set_to_the_same_text_is_a_new_version,
    api_a_commit_that_leaves_the_custom_status_leaves_its_version,
    api_a_custom_status_outlives_its_execution,
    api_a_custom_status_outlives_its_instance_s_end,
    api_instances_have_custom_statuses_of_their_own,
    api_an_event_that_is_only_appended_sets_no_custom_status,
];

async fn api_an_unknown_instance_has_no_custom_status(bench: Bench) {
    assert_eq!(shown(&bench, "nobody", 0).await, None);
}

async fn api_an_instance_begins_without_a_custom_status(bench: Bench) {
    bench.begun("a").await;
    assert_eq!(shown(&bench, "a", 0).await, None);
}

async fn api_a_custom_status_is_shown_with_its_version(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    assert_eq!(shown(&bench, "a", 0).await, Some((Some("half".to_owned()), 1)));
}

async fn api_a_custom_status_that_was_seen_is_not_shown_again(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    assert_eq!(shown(&bench, "a", 1).await, None, "version 1 was seen");
    assert_eq!(shown(&bench, "a", 2).await, None, "version 2 is still to come");
    then(&bench, setting(3, Some("all"))).await;
    assert_eq!(shown(&bench, "a", 1).await, Some((Some("all".to_owned()), 2)));
}

async fn api_the_last_custom_status_of_a_commit_counts_once(bench: Bench) {
    let commit = setting(2, Some("first")).and(setting(3, None)).and(setting(4, Some("last")));
    bench.begin("a", commit).await;
    assert_eq!(shown(&bench, "a", 0).await, Some((Some("last".to_owned()), 1)), "one commit, one version");
}

async fn api_a_custom_status_can_be_cleared(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    then(&bench, setting(3, None)).await;
    assert_eq!(shown(&bench, "a", 1).await, Some((None, 2)), "to be cleared is a change");
}

async fn api_a_custom_status_set_to_the_same_text_is_a_new_version(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    then(&bench, setting(3, Some("half"))).await;
    assert_eq!(shown(&bench, "a", 1).await, Some((Some("half".to_owned()), 2)));
}

async fn api_a_commit_that_leaves_the_custom_status_leaves_its_version(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    then(&bench, Commit::default().schedule("a", 3)).await;
    assert_eq!(shown(&bench, "a", 0).await, Some((Some("half".to_owned()), 1)));
}

async fn api_a_custom_status_outlives_its_execution(bench: Bench) {
    bench.begin("a", setting(2, Some("half")).continue_as_new("a", 3)).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2)).await;
    assert_eq!(shown(&bench, "a", 0).await, Some((Some("half".to_owned()), 1)));
}

async fn api_a_custom_status_outlives_its_instance_s_end(bench: Bench) {
    bench.begin("a", setting(2, Some("half")).complete("a", 3, "output")).await;
    assert_eq!(shown(&bench, "a", 0).await, Some((Some("half".to_owned()), 1)));
}

async fn api_instances_have_custom_statuses_of_their_own(bench: Bench) {
    bench.begin("a", setting(2, Some("half"))).await;
    bench.begun("b").await;
    assert_eq!(shown(&bench, "b", 0).await, None);
}

async fn api_an_event_that_is_only_appended_sets_no_custom_status(bench: Bench) {
    bench.begun("a").await;
    let update = event("a", 2, status_set(Some("half")));
    ok(bench.provider().append_with_execution("a", 1, vec![update]).await);
    assert_eq!(shown(&bench, "a", 0).await, None, "to append is to append, and nothing else");
}

fn setting(id: u64, status: Option<&str>) -> Commit {
    Commit::default().event(event("a", id, status_set(status)))
}

/// Commits another turn of instance `a`.
async fn then(bench: &Bench, commit: Commit) {
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, commit).await;
}

async fn shown(bench: &Bench, instance: &str, seen: u64) -> Option<(Option<String>, u64)> {
    ok(bench.provider().get_custom_status(instance, seen).await)
}
