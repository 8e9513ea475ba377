//! Tags: a fetch returns only work its filter accepts.

use std::sync::Arc;

use steadfast_core::{TagFilter, WorkItem};

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, activity, activity_with, event, ok, scheduled};
use crate::case::{cases, need};

cases![
    s14_the_default_filter_takes_work_without_a_tag,
    s14_a_filter_of_tags_takes_these_and_no_other,
    s14_a_filter_of_several_tags_takes_each,
    s14_the_default_and_tags_takes_both,
    s14_any_takes_everything,
    s14_none_takes_nothing,
    s14_none_does_not_wait,
    s14_a_tag_is_matched_as_a_whole,
    s14_a_tag_survives_the_commit_that_queues_it,
    s14_a_tag_survives_an_abandon_and_an_expired_lease,
    s14_work_of_another_tag_does_not_hold_up_what_is_behind_it,
    s14_a_refused_activity_counts_no_attempt,
    s14_a_waiting_fetch_gets_only_what_it_may_take,
    s14_work_that_one_may_not_take_wakes_the_one_who_may,
];

fn tagged(id: u64, tag: &str) -> WorkItem {
    activity_with("a", id, None, Some(tag))
}

/// Takes everything that a filter accepts.
async fn taken(bench: &Bench, tags: &TagFilter) -> Vec<WorkItem> {
    let mut items = Vec::new();
    while let Some((item, _, _)) = bench.fetch_work_as(None, tags).await {
        items.push(item);
    }
    items
}

/// Queues one activity without a tag and one of each of three tags.
async fn one_of_each(bench: &Bench) -> [WorkItem; 4] {
    let items = [activity("a", 1), tagged(2, "gpu"), tagged(3, "disk"), tagged(4, "net")];
    for item in items.clone() {
        bench.enqueue(item).await;
    }
    items
}

async fn s14_the_default_filter_takes_work_without_a_tag(bench: Bench) {
    let [untagged, ..] = one_of_each(&bench).await;
    assert_eq!(taken(&bench, &TagFilter::DefaultOnly).await, [untagged]);
}

async fn s14_a_filter_of_tags_takes_these_and_no_other(bench: Bench) {
    let [_, gpu, ..] = one_of_each(&bench).await;
    assert_eq!(taken(&bench, &TagFilter::tags(["gpu"])).await, [gpu]);
}

async fn s14_a_filter_of_several_tags_takes_each(bench: Bench) {
    let [_, gpu, _, net] = one_of_each(&bench).await;
    assert_eq!(taken(&bench, &TagFilter::tags(["net", "gpu"])).await, [gpu, net], "in order of arrival");
}

async fn s14_the_default_and_tags_takes_both(bench: Bench) {
    let [untagged, _, disk, _] = one_of_each(&bench).await;
    assert_eq!(taken(&bench, &TagFilter::default_and(["disk"])).await, [untagged, disk]);
}

async fn s14_any_takes_everything(bench: Bench) {
    let all = one_of_each(&bench).await;
    assert_eq!(taken(&bench, &TagFilter::Any).await, all);
}

async fn s14_none_takes_nothing(bench: Bench) {
    one_of_each(&bench).await;
    assert!(taken(&bench, &TagFilter::None).await.is_empty(), "a worker of no tag takes no work");
}

async fn s14_none_does_not_wait(bench: Bench) {
    one_of_each(&bench).await;
    let provider = Arc::clone(bench.provider());
    let call =
        tokio::spawn(async move { provider.fetch_work_item(LEASE, LEASE, None, &TagFilter::None).await });
    assert!(ok(bench.soon(call).await).is_none(), "there is nothing to wait for");
}

async fn s14_a_tag_is_matched_as_a_whole(bench: Bench) {
    for (id, tag) in [(1, "gpu"), (2, "GPU"), (3, "gpu2"), (4, "gp%"), (5, "")] {
        bench.enqueue(tagged(id, tag)).await;
    }
    assert_eq!(taken(&bench, &TagFilter::tags(["gp%"])).await, [tagged(4, "gp%")], "no patterns");
    assert_eq!(taken(&bench, &TagFilter::tags(["gpu"])).await, [tagged(1, "gpu")], "no prefixes, no cases");
    assert!(taken(&bench, &TagFilter::DefaultOnly).await.is_empty(), "an empty tag is a tag");
}

async fn s14_a_tag_survives_the_commit_that_queues_it(bench: Bench) {
    bench.begin("a", Commit::default().event(event("a", 2, scheduled())).work(tagged(2, "gpu"))).await;
    assert!(bench.fetch_work().await.is_none(), "it is not for the default worker");
    assert_eq!(taken(&bench, &TagFilter::tags(["gpu"])).await, [tagged(2, "gpu")]);
}

async fn s14_a_tag_survives_an_abandon_and_an_expired_lease(bench: Bench) {
    let gpu = TagFilter::tags(["gpu"]);
    bench.enqueue(tagged(2, "gpu")).await;
    let (_, token, _) = bench.fetch_work_as(None, &gpu).await.expect("the tagged activity is ready");
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    assert!(bench.fetch_work().await.is_none(), "an abandoned activity keeps its tag");
    assert_eq!(taken(&bench, &gpu).await, [tagged(2, "gpu")]);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "so does one whose lease has ended");
    assert_eq!(taken(&bench, &gpu).await, [tagged(2, "gpu")]);
}

async fn s14_work_of_another_tag_does_not_hold_up_what_is_behind_it(bench: Bench) {
    for id in 1..=50 {
        bench.enqueue(tagged(id, "gpu")).await;
    }
    bench.enqueue(activity("a", 51)).await;
    let (item, _, _) = bench.working().await;
    assert_eq!(item, activity("a", 51), "work of other tags is passed over");
}

async fn s14_a_refused_activity_counts_no_attempt(bench: Bench) {
    bench.enqueue(tagged(2, "gpu")).await;
    assert!(bench.fetch_work().await.is_none(), "it is not for the default worker");
    let (_, _, attempt) = bench.fetch_work_as(None, &TagFilter::Any).await.expect("it is still there");
    assert_eq!(attempt, 1, "a fetch that may not take it is no attempt");
}

async fn s14_a_waiting_fetch_gets_only_what_it_may_take(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_work(LEASE, TagFilter::DefaultOnly).await;
    bench.enqueue(tagged(2, "gpu")).await;
    bench.settle().await;
    assert!(!call.is_finished(), "work of another tag does not end the wait");
    bench.enqueue(activity("a", 3)).await;
    let (item, _, _) = bench.soon(call).await.expect("work without a tag should wake the fetch");
    assert_eq!(item, activity("a", 3));
    Verdict::Kept
}

async fn s14_work_that_one_may_not_take_wakes_the_one_who_may(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let other = bench.waiting_work(LEASE, TagFilter::DefaultOnly).await;
    let one = bench.waiting_work(LEASE, TagFilter::tags(["gpu"])).await;
    bench.enqueue(tagged(2, "gpu")).await;
    let (item, _, _) = bench.soon(one).await.expect("the worker of the tag should be woken");
    assert_eq!(item, tagged(2, "gpu"));
    bench.advance(LEASE - TICK);
    assert!(!other.is_finished(), "the worker of another tag waits on");
    bench.advance(TICK);
    assert!(bench.soon(other).await.is_none(), "until its time is over");
    Verdict::Kept
}
