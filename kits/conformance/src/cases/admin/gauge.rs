//! Gauges: how much is live, counted without reading what has ended.

use steadfast_store::Gauges;

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, activity, ok, raise};
use crate::case::{cases, need};
use crate::cases::cost::{MANY, TRIES, least, unchanged};

cases![
    api_gauges_of_an_empty_store_are_zero,
    api_gauges_count_the_instances_that_run,
    api_gauges_count_the_messages_that_wait_are_leased_or_held_back,
    api_gauges_count_the_activities_that_wait_are_leased_or_held_back,
    s20_what_has_ended_does_not_slow_the_gauges,
    s20_long_histories_do_not_slow_the_gauges,
];

async fn gauges(bench: &Bench) -> Option<Gauges> {
    Some(ok(bench.store()?.gauges().await))
}

async fn api_gauges_of_an_empty_store_are_zero(bench: Bench) -> Verdict {
    assert_eq!(need!(gauges(&bench).await, "Store"), Gauges::default());
    Verdict::Kept
}

async fn api_gauges_count_the_instances_that_run(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for instance in ["a", "b", "c"] {
        bench.begun(instance).await;
    }
    bench.ended("d").await;
    bench.begin("e", Commit::default().status("Failed", "no")).await;
    bench.begun_at("f", 3).await;
    assert_eq!(need!(gauges(&bench).await, "Store").running_instances, 4, "a, b, c and f");
    bench.send(raise("a", "end")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("a", 2, "output")).await;
    ok(admin.delete_instance("b", true).await);
    ok(admin.delete_instance("d", true).await);
    assert_eq!(need!(gauges(&bench).await, "Store").running_instances, 2, "c and f");
    Verdict::Kept
}

async fn api_gauges_count_the_messages_that_wait_are_leased_or_held_back(bench: Bench) -> Verdict {
    bench.begun("a").await;
    bench.begun("b").await;
    bench.send(raise("a", "1")).await;
    bench.send(raise("a", "2")).await;
    bench.send(raise("b", "3")).await;
    bench.send_later(raise("b", "4"), LEASE).await;
    let turn = bench.fetched().await;
    assert_eq!(need!(gauges(&bench).await, "Store").messages, 4, "two of them are leased");
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(need!(gauges(&bench).await, "Store").messages, 2, "two of them are taken");
    Verdict::Kept
}

async fn api_gauges_count_the_activities_that_wait_are_leased_or_held_back(bench: Bench) -> Verdict {
    for id in 1..=4 {
        bench.enqueue(activity("a", id)).await;
    }
    let (_, done, _) = bench.working().await;
    let (_, later, _) = bench.working().await;
    bench.working().await;
    ok(bench.provider().abandon_work_item(&later, Some(LEASE), false).await);
    assert_eq!(need!(gauges(&bench).await, "Store").work, 4);
    bench.finish(&done, None).await;
    assert_eq!(need!(gauges(&bench).await, "Store").work, 3);
    Verdict::Kept
}

async fn gauge_cost(bench: &Bench) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        let before = bench.cost().await?;
        gauges(bench).await?;
        cost = least(cost, number, bench.cost().await? - before);
    }
    cost
}

async fn s20_what_has_ended_does_not_slow_the_gauges(bench: Bench) -> Verdict {
    bench.begun("a").await;
    let before = need!(gauge_cost(&bench).await, "cost");
    for number in 0..MANY {
        bench.ended(&format!("ended-{number}")).await;
    }
    unchanged(before, need!(gauge_cost(&bench).await, "cost"));
    Verdict::Kept
}

async fn s20_long_histories_do_not_slow_the_gauges(bench: Bench) -> Verdict {
    bench.begun("a").await;
    let before = need!(gauge_cost(&bench).await, "cost");
    let event = |id| crate::bench::event("a", id, crate::bench::status_set(Some("busy")));
    ok(bench.provider().append_with_execution("a", 1, (10..10 + MANY).map(event).collect()).await);
    unchanged(before, need!(gauge_cost(&bench).await, "cost"));
    Verdict::Kept
}
