//! Fairness: the oldest first, and nothing waits for ever.

use std::time::Duration;

use steadfast_core::TagFilter;

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, activity, activity_with, ok, raise};
use crate::case::{cases, need};

cases![
    s18_the_instance_with_the_oldest_message_is_first,
    s18_instances_take_turns_in_order_of_arrival,
    s18_a_busy_instance_does_not_starve_another,
    s18_an_abandoned_instance_lets_the_others_go_ahead,
    s18_an_old_message_is_served_under_a_stream_of_new_instances,
    s18_the_oldest_activity_is_first,
    s18_an_abandoned_activity_lets_the_others_go_ahead,
    s18_an_old_activity_is_served_under_a_stream_of_new_ones,
    s18_activities_of_one_commit_run_in_its_order,
    s18_every_waiting_fetch_is_served,
];

async fn s18_the_instance_with_the_oldest_message_is_first(bench: Bench) {
    for instance in ["z", "a"] {
        bench.begun(instance).await;
    }
    bench.send(raise("z", "1")).await;
    bench.advance(TICK);
    bench.send(raise("a", "1")).await;
    bench.send(raise("z", "2")).await;
    assert_eq!(bench.fetched().await.item.instance, "z", "the oldest message decides, not the id");
    assert_eq!(bench.fetched().await.item.instance, "a");
}

async fn s18_instances_take_turns_in_order_of_arrival(bench: Bench) {
    let instances = ["c", "a", "d", "b"];
    for instance in instances {
        bench.start(instance).await;
        bench.advance(TICK);
    }
    for instance in instances {
        assert_eq!(bench.fetched().await.item.instance, instance, "in order of arrival");
    }
}

async fn s18_a_busy_instance_does_not_starve_another(bench: Bench) {
    bench.begun("busy").await;
    bench.begun("patient").await;
    bench.send(raise("busy", "0")).await;
    bench.advance(TICK);
    bench.send(raise("patient", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, "busy", "its message is older");
    bench.send(raise("busy", "1")).await;
    bench.commit(&turn, Commit::default().message(raise("busy", "2"))).await;
    assert_eq!(bench.fetched().await.item.instance, "patient", "it has waited longer than the new messages");
}

async fn s18_an_abandoned_instance_lets_the_others_go_ahead(bench: Bench) {
    bench.start("sick").await;
    bench.advance(TICK);
    bench.start("well").await;
    for _ in 0..3 {
        let turn = bench.fetched().await;
        assert_eq!(turn.item.instance, "sick", "it is the oldest again when its delay is over");
        ok(bench.try_abandon(&turn, Some(LEASE)).await);
        let turn = bench.fetched().await;
        assert_eq!(turn.item.instance, "well", "the other goes ahead during the delay");
        bench.abandon(&turn, None).await;
        bench.advance(LEASE);
    }
}

async fn s18_an_old_message_is_served_under_a_stream_of_new_instances(bench: Bench) {
    bench.begun("patient").await;
    for number in 0..5 {
        bench.start(&format!("a-{number}")).await;
    }
    bench.advance(TICK);
    bench.send(raise("patient", "1")).await;
    for number in 5..10 {
        bench.advance(TICK);
        bench.start(&format!("a-{number}")).await;
        let turn = bench.fetched().await;
        assert_ne!(turn.item.instance, "patient", "five are older");
    }
    bench.start("a-10").await;
    assert_eq!(bench.fetched().await.item.instance, "patient", "whoever came later waits behind it");
}

async fn s18_the_oldest_activity_is_first(bench: Bench) {
    for (instance, id) in [("z", 9), ("a", 1), ("m", 5)] {
        bench.enqueue(activity(instance, id)).await;
    }
    for (instance, id) in [("z", 9), ("a", 1), ("m", 5)] {
        let (item, _, _) = bench.working().await;
        assert_eq!(item, activity(instance, id), "in order of arrival");
    }
}

async fn s18_an_abandoned_activity_lets_the_others_go_ahead(bench: Bench) {
    bench.enqueue(activity("sick", 1)).await;
    bench.enqueue(activity("well", 1)).await;
    for _ in 0..3 {
        let (item, token, _) = bench.working().await;
        assert_eq!(item, activity("sick", 1), "it is the oldest again when its delay is over");
        ok(bench.provider().abandon_work_item(&token, Some(LEASE), false).await);
        let (item, token, _) = bench.working().await;
        assert_eq!(item, activity("well", 1), "the other goes ahead during the delay");
        ok(bench.provider().abandon_work_item(&token, None, false).await);
        bench.advance(LEASE);
    }
}

async fn s18_an_old_activity_is_served_under_a_stream_of_new_ones(bench: Bench) {
    for id in 0..5 {
        bench.enqueue(activity("new", id)).await;
    }
    bench.enqueue(activity("patient", 1)).await;
    let any = TagFilter::default_and(["gpu"]);
    let mut served = 0;
    for id in 5..20 {
        bench.enqueue(activity_with("new", id, None, Some("gpu"))).await;
        let (item, _, _) = bench.fetch_work_as(None, &any).await.expect("there is work");
        served += 1;
        if item == activity("patient", 1) {
            break;
        }
    }
    assert_eq!(served, 6, "only what was older goes ahead");
}

async fn s18_activities_of_one_commit_run_in_its_order(bench: Bench) {
    let ids: Vec<u64> = (2..12).collect();
    let commit = ids.iter().fold(Commit::default(), |commit, id| commit.schedule("a", *id));
    bench.begin("a", commit).await;
    for id in ids {
        let (item, _, _) = bench.working().await;
        assert_eq!(item, activity("a", id), "in the order in which they were scheduled");
    }
}

async fn s18_every_waiting_fetch_is_served(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(bench.waiting_work(Duration::from_secs(3_600), TagFilter::DefaultOnly).await);
    }
    for id in 1..=3 {
        bench.enqueue(activity("a", id)).await;
    }
    for call in calls {
        assert!(bench.soon(call).await.is_some(), "as many fetches should be woken as there are activities");
    }
    Verdict::Kept
}
