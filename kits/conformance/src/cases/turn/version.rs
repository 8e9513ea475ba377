//! Engine versions: a fetch takes only executions that its caller can run.

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, SemverRange};

use crate::bench::{Bench, Commit, raise};
use crate::case::cases;

cases![
    api_a_fetch_without_a_filter_takes_every_version,
    api_an_instance_that_has_not_begun_passes_every_filter,
    api_an_execution_without_a_pin_passes_every_filter,
    api_a_filter_without_ranges_accepts_nothing,
    api_a_range_includes_both_its_ends,
    api_every_range_of_a_filter_counts,
    api_the_pin_of_the_current_execution_decides,
    api_a_later_pin_replaces_the_earlier,
    api_a_commit_without_a_pin_leaves_it,
    api_what_a_filter_skips_stays_free_and_untried,
    api_what_a_filter_skips_does_not_hold_up_the_next,
];

async fn api_a_fetch_without_a_filter_takes_every_version(bench: Bench) {
    pinned(&bench, "a", (9, 9, 9)).await;
    assert!(bench.fetch().await.is_some(), "without a filter there is nothing to skip");
}

async fn api_an_instance_that_has_not_begun_passes_every_filter(bench: Bench) {
    bench.start("a").await;
    assert!(bench.fetch_with(&only((9, 9, 9))).await.is_some(), "nothing is pinned before the first commit");
}

async fn api_an_execution_without_a_pin_passes_every_filter(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a");
    commit.metadata.pinned_duroxide_version = None;
    bench.commit(&turn, commit).await;
    bench.send(raise("a", "data")).await;
    assert!(bench.fetch_with(&only((9, 9, 9))).await.is_some(), "nothing is pinned");
}

async fn api_a_filter_without_ranges_accepts_nothing(bench: Bench) {
    bench.start("a").await;
    let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: Vec::new() };
    assert!(bench.fetch_with(&nothing).await.is_none(), "there is no version that the caller can run");
    assert_eq!(bench.fetched().await.attempt, 1, "what was not accepted stays free");
}

async fn api_a_range_includes_both_its_ends(bench: Bench) {
    for (instance, version) in [("a", (1, 2, 3)), ("b", (1, 2, 4)), ("c", (2, 0, 0)), ("d", (2, 0, 1))] {
        pinned(&bench, instance, version).await;
    }
    let filter =
        DispatcherCapabilityFilter { supported_duroxide_versions: vec![range((1, 2, 4), (2, 0, 0))] };
    let mut taken = Vec::new();
    while let Some(turn) = bench.fetch_with(&filter).await {
        taken.push(turn.item.instance);
    }
    assert_eq!(taken, ["b", "c"], "from 1.2.4 to 2.0.0, both included");
}

async fn api_every_range_of_a_filter_counts(bench: Bench) {
    pinned(&bench, "a", (3, 0, 0)).await;
    let ranges = vec![range((1, 0, 0), (1, 0, 0)), range((3, 0, 0), (3, 0, 0))];
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: ranges };
    assert!(bench.fetch_with(&filter).await.is_some(), "the second range accepts it");
}

async fn api_the_pin_of_the_current_execution_decides(bench: Bench) {
    let mut first = Commit::default().continue_as_new("a", 2);
    first.metadata.pinned_duroxide_version = Some(Version::new(1, 0, 0));
    bench.begin("a", first).await;
    let turn = bench.fetched().await;
    let mut second = Commit::continued("a", 2);
    second.metadata.pinned_duroxide_version = Some(Version::new(2, 0, 0));
    bench.commit(&turn, second).await;
    bench.send(raise("a", "data")).await;
    assert!(bench.fetch_with(&only((1, 0, 0))).await.is_none(), "the first execution has ended");
    assert!(bench.fetch_with(&only((2, 0, 0))).await.is_some(), "the second one runs");
}

async fn api_a_later_pin_replaces_the_earlier(bench: Bench) {
    pinned(&bench, "a", (1, 0, 0)).await;
    let turn = bench.fetched().await;
    let mut commit = Commit::default();
    commit.metadata.pinned_duroxide_version = Some(Version::new(2, 0, 0));
    bench.commit(&turn, commit).await;
    bench.send(raise("a", "data")).await;
    assert!(bench.fetch_with(&only((1, 0, 0))).await.is_none(), "the later pin counts");
    assert!(bench.fetch_with(&only((2, 0, 0))).await.is_some(), "the later pin counts");
}

async fn api_a_commit_without_a_pin_leaves_it(bench: Bench) {
    pinned(&bench, "a", (1, 0, 0)).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    bench.send(raise("a", "data")).await;
    assert!(bench.fetch_with(&only((2, 0, 0))).await.is_none(), "it is pinned to 1.0.0 as before");
}

async fn api_what_a_filter_skips_stays_free_and_untried(bench: Bench) {
    pinned(&bench, "a", (2, 0, 0)).await;
    assert!(bench.fetch_with(&only((1, 0, 0))).await.is_none(), "the filter does not accept it");
    let turn = bench.fetch_with(&only((2, 0, 0))).await.expect("what was skipped should not be leased");
    assert_eq!(turn.attempt, 1, "what was skipped was not tried");
}

async fn api_what_a_filter_skips_does_not_hold_up_the_next(bench: Bench) {
    pinned(&bench, "a", (2, 0, 0)).await;
    pinned(&bench, "b", (1, 0, 0)).await;
    let turn = bench.fetch_with(&only((1, 0, 0))).await.expect("the second instance should be ready");
    assert_eq!(turn.item.instance, "b");
}

/// Begins an instance that is pinned to an engine version, and has a message.
async fn pinned(bench: &Bench, instance: &str, version: (u64, u64, u64)) {
    let mut commit = Commit::default().message(raise(instance, "data"));
    commit.metadata.pinned_duroxide_version = Some(semver(version));
    bench.start(instance).await;
    let started = Commit::started(instance);
    let newest = DispatcherCapabilityFilter::default_for_current_build();
    let turn = bench.fetch_with(&newest).await.expect("the new instance should be ready");
    assert_eq!(turn.item.instance, instance, "the instance that was just started should be next");
    bench.commit(&turn, started.and(commit)).await;
}

fn only(version: (u64, u64, u64)) -> DispatcherCapabilityFilter {
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range(version, version)] }
}

fn range(min: (u64, u64, u64), max: (u64, u64, u64)) -> SemverRange {
    SemverRange::new(semver(min), semver(max))
}

fn semver((major, minor, patch): (u64, u64, u64)) -> Version {
    Version::new(major, minor, patch)
}
