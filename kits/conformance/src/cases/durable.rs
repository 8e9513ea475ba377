//! Durability: what a call acknowledged is there after a restart.

use std::time::Duration;

use steadfast_store::{
    Cold, MAX_UNREADABLE_ATTEMPTS, QueueDepths, RunId, Started, Store, TurnCommit, TurnRequest,
    UNREADABLE_RETRY,
};

use crate::bench::{
    Bench, Commit, LEASE, TICK, activity, activity_with, completion, event, kv_set, lost, ok, raise,
    start_node, start_of, status_set,
};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s19_messages_survive_a_restart_in_order,
    s19_a_delay_survives_a_restart,
    s19_work_survives_a_restart_in_order,
    s19_a_committed_turn_survives_a_restart,
    s19_keys_and_custom_status_survive_a_restart,
    s19_a_finished_activity_survives_a_restart,
    s19_leases_survive_a_restart,
    s19_attempts_survive_a_restart,
    s19_a_cancelled_activity_stays_cancelled_after_a_restart,
    s19_a_deleted_instance_stays_deleted_after_a_restart,
    s19_a_started_instance_is_known_after_a_restart,
    s19_sessions_survive_a_restart,
    s19_numbers_go_on_rising_after_a_restart,
    s19_what_is_set_aside_survives_a_restart,
];

async fn s19_messages_survive_a_restart_in_order(bench: Bench) -> Verdict {
    bench.start("a").await;
    bench.send(raise("a", "1")).await;
    bench.send(raise("a", "2")).await;
    let bench = need!(bench.reopen().await, "reopen");
    bench.send(raise("a", "3")).await;
    let expected = [start_of("a"), raise("a", "1"), raise("a", "2"), raise("a", "3")];
    assert_eq!(bench.fetched().await.item.messages, expected);
    Verdict::Kept
}

async fn s19_a_delay_survives_a_restart(bench: Bench) -> Verdict {
    bench.send_later(start_of("a"), LEASE).await;
    let bench = need!(bench.reopen().await, "reopen");
    bench.advance(LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "the delay is not over");
    bench.advance(TICK);
    assert!(bench.fetch().await.is_some(), "now it is");
    Verdict::Kept
}

async fn s19_work_survives_a_restart_in_order(bench: Bench) -> Verdict {
    bench.enqueue(activity("a", 1)).await;
    bench.enqueue(activity_with("a", 2, None, Some("gpu"))).await;
    let bench = need!(bench.reopen().await, "reopen");
    bench.enqueue(activity("a", 3)).await;
    let (first, _, _) = bench.working().await;
    let (second, _, _) = bench.working().await;
    assert_eq!([first, second], [activity("a", 1), activity("a", 3)], "with their order and their tags");
    Verdict::Kept
}

async fn s19_a_committed_turn_survives_a_restart(bench: Bench) -> Verdict {
    bench.begin("a", Commit::default().schedule("a", 2).message(raise("a", "to self"))).await;
    let before = ok(bench.provider().read("a").await);
    let bench = need!(bench.reopen().await, "reopen");
    assert_eq!(ok(bench.provider().read("a").await), before, "its history");
    let (item, _, _) = bench.working().await;
    assert_eq!(item, activity("a", 2), "its work");
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "to self")], "its messages, and not those it removed");
    assert_eq!((turn.item.orchestration_name.as_str(), turn.item.execution_id), ("Orchestration", 1));
    Verdict::Kept
}

async fn s19_keys_and_custom_status_survive_a_restart(bench: Bench) -> Verdict {
    let commit = Commit::default()
        .event(event("a", 2, kv_set("k", "1")))
        .event(event("a", 3, status_set(Some("shown"))))
        .continue_as_new("a", 4);
    bench.begin("a", commit).await;
    let bench = need!(bench.reopen().await, "reopen");
    assert_eq!(ok(bench.provider().get_kv_value("a", "k").await).as_deref(), Some("1"));
    let status = ok(bench.provider().get_custom_status("a", 0).await);
    assert_eq!(status, Some((Some("shown".to_owned()), 1)));
    assert!(bench.fetched().await.item.kv_snapshot.contains_key("k"), "the next execution sees it");
    Verdict::Kept
}

async fn s19_a_finished_activity_survives_a_restart(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, Some(completion("a", 2))).await;
    let bench = need!(bench.reopen().await, "reopen");
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "it does not run again");
    assert_eq!(bench.fetched().await.item.messages, [completion("a", 2)]);
    Verdict::Kept
}

async fn s19_leases_survive_a_restart(bench: Bench) -> Verdict {
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let turn = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    let bench = need!(bench.reopen().await, "reopen");
    assert!(bench.fetch().await.is_none() && bench.fetch_work().await.is_none(), "both are still held");
    bench.commit(&turn, Commit::started("a")).await;
    bench.finish(&token, None).await;
    Verdict::Kept
}

async fn s19_attempts_survive_a_restart(bench: Bench) -> Verdict {
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    bench.fetched().await;
    bench.working().await;
    let bench = need!(bench.reopen().await, "reopen");
    bench.advance(LEASE + TICK);
    let (_, _, attempt) = bench.working().await;
    assert_eq!((bench.fetched().await.attempt, attempt), (2, 2), "what kills a process is counted");
    Verdict::Kept
}

async fn s19_a_cancelled_activity_stays_cancelled_after_a_restart(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    let bench = need!(bench.reopen().await, "reopen");
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch_work().await.is_none(), "it does not come back");
    Verdict::Kept
}

async fn s19_a_deleted_instance_stays_deleted_after_a_restart(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    ok(need!(bench.admin(), "ProviderAdmin").delete_instance("a", true).await);
    let bench = need!(bench.reopen().await, "reopen");
    let admin = need!(bench.admin(), "ProviderAdmin");
    assert!(ok(admin.list_instances().await).is_empty());
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default());
    assert!(ok(bench.provider().read("a").await).is_empty());
    Verdict::Kept
}

async fn s19_a_started_instance_is_known_after_a_restart(bench: Bench) -> Verdict {
    let start = need!(bench.store(), "Store").start(start_of("a").into(), Vec::new()).await;
    assert_eq!(ok(start), Started::New);
    let bench = need!(bench.reopen().await, "reopen");
    let again = need!(bench.store(), "Store").start(start_of("a").into(), Vec::new()).await;
    assert_eq!(ok(again), Started::Existing);
    Verdict::Kept
}

async fn s19_sessions_survive_a_restart(bench: Bench) -> Verdict {
    bench.enqueue(activity_with("a", 1, Some("session"), None)).await;
    bench.enqueue(activity_with("a", 2, Some("session"), None)).await;
    assert!(bench.fetch_work_for("one").await.is_some(), "an unowned session can be claimed");
    let bench = need!(bench.reopen().await, "reopen");
    assert!(bench.fetch_work_for("other").await.is_none(), "the session is still held");
    assert!(bench.fetch_work_for("one").await.is_some(), "by its owner");
    Verdict::Kept
}

/// Takes an empty turn of an instance and names its run.
async fn run_of(store: &dyn Store, instance: &str) -> Option<RunId> {
    ok(store.send(vec![raise(instance, "poke").into()]).await);
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let lease = ok(store.fetch_turn(request).await).expect("the instance is ready");
    ok(store.commit_turn(&lease.token, TurnCommit::empty(1)).await);
    lease.run
}

async fn s19_numbers_go_on_rising_after_a_restart(bench: Bench) -> Verdict {
    bench.begun("a").await;
    let store = need!(bench.store(), "Store");
    let run = run_of(store, "a").await;
    let change = ok(store.state("a").await).map(|state| state.change);
    let incarnation = ok(start_node(store, "node").await);
    let bench = need!(bench.reopen().await, "reopen");
    let store = need!(bench.store(), "Store");
    assert_eq!(run_of(store, "a").await, run, "a run keeps its name");
    assert!(ok(store.state("a").await).map(|state| state.change) > change, "changes rise");
    assert!(ok(start_node(store, "node").await) > incarnation, "incarnations rise");
    bench.begun("b").await;
    assert_ne!(run_of(store, "b").await, run, "no run is named twice");
    Verdict::Kept
}

async fn s19_what_is_set_aside_survives_a_restart(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    for _ in 0..MAX_UNREADABLE_ATTEMPTS {
        assert!(bench.fetch().await.is_none(), "an unreadable message wakes nobody");
        bench.advance(UNREADABLE_RETRY);
    }
    let before = ok(need!(bench.store(), "Store").set_aside(None).await);
    assert_eq!(before.len(), 1, "it is set aside");
    let bench = need!(bench.reopen().await, "reopen");
    assert_eq!(ok(need!(bench.store(), "Store").set_aside(None).await), before);
    Verdict::Kept
}
