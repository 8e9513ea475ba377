//! Telling how the activities of an instance are.

use std::time::Duration;

use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::{
    Abandon, Attempt, LeaseToken, MAX_PAGE, Owner, SessionRequest, SessionScope, Store, Tries, WorkPhase,
    WorkRequest, WorkState,
};

use super::oldest::oldest;
use super::{LEASE_MS, WHILE, WHILE_MS, telling};
use crate::bench::{Bench, DAWN_MS, LEASE, TICK, activity, activity_with, completion, ok};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s5_an_activity_that_nobody_has_waits_since_it_was_queued,
    s5_a_leased_activity_names_its_worker,
    s5_an_activity_of_an_ended_lease_waits_since_then,
    s5_an_activity_that_was_given_back_waits_since_then,
    s5_a_leased_activity_tells_since_when_it_waited,
    s5_an_activity_of_a_session_tells_since_when_it_waited,
    s5_activities_are_told_by_execution_and_in_order,
    s5_activities_are_told_up_to_a_page,
    s9_an_activity_that_is_held_back_says_until_when,
    s14_an_activity_tells_its_tag_and_session,
    s15_an_activity_that_cannot_be_read_has_no_name,
];

/// The one activity of an instance.
async fn work_of(store: &dyn Store, instance: &str) -> WorkState {
    let mut work = ok(store.work_of(instance, 1).await);
    assert_eq!(work.len(), 1, "one activity should be there: {work:?}");
    work.remove(0)
}

fn request(worker_id: &str) -> WorkRequest {
    WorkRequest {
        worker_id: worker_id.to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: None,
        worker: None,
    }
}

async fn s5_an_activity_that_nobody_has_waits_since_it_was_queued(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.advance(TICK);
    bench.begun_with_work("a").await;
    bench.advance(WHILE);
    let expected = WorkState {
        activity_id: 2,
        name: Some("Activity".to_owned()),
        tag: None,
        session: None,
        attempts: 0,
        deliveries: 0,
        call: None,
        tries: Tries::default(),
        phase: WorkPhase::Waiting { since_ms: DAWN_MS + 1 },
    };
    assert_eq!(work_of(store, "a").await, expected);
    Verdict::Kept
}

async fn s5_a_leased_activity_names_its_worker(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun_with_work("a").await;
    let lease = ok(store.fetch_work(request("worker-7")).await).expect("an activity should be ready");
    let told = work_of(store, "a").await;
    let phase = WorkPhase::Leased { worker_id: "worker-7".to_owned(), until_ms: DAWN_MS + LEASE_MS };
    assert_eq!((told.attempts, told.phase), (1, phase));
    ok(store.finish_work(&lease.token, completion("a", 2).into()).await);
    assert_eq!(ok(store.work_of("a", 1).await), [], "what is finished is gone");
    Verdict::Kept
}

async fn s5_an_activity_of_an_ended_lease_waits_since_then(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun_with_work("a").await;
    bench.working().await;
    bench.advance(LEASE + WHILE);
    let expected = (1, WorkPhase::Waiting { since_ms: DAWN_MS + LEASE_MS });
    let told = work_of(store, "a").await;
    assert_eq!((told.attempts, told.phase), expected);
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + LEASE_MS)));
    let told = work_of(store, "a").await;
    assert_eq!((told.attempts, told.phase), expected, "also after a look over everything");
    Verdict::Kept
}

async fn s5_an_activity_that_was_given_back_waits_since_then(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun_with_work("a").await;
    let lease = ok(store.fetch_work(request("w")).await).expect("an activity should be ready");
    bench.advance(WHILE);
    ok(store.abandon(&lease.token, Abandon { retry_after: None, attempt: Attempt::Counts }).await);
    let told = work_of(store, "a").await;
    assert_eq!((told.attempts, told.phase), (1, WorkPhase::Waiting { since_ms: DAWN_MS + WHILE_MS }));
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + WHILE_MS)));
    Verdict::Kept
}

/// Leases the one activity, and returns the lease with since when the activity waited, counted from the
/// beginning.
async fn leased_since(store: &dyn Store, request: WorkRequest) -> (LeaseToken, Option<u64>) {
    let lease = ok(store.fetch_work(request).await).expect("an activity should be ready");
    (lease.token, lease.waiting_since_ms.map(|since| since.saturating_sub(DAWN_MS)))
}

async fn s5_a_leased_activity_tells_since_when_it_waited(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.advance(TICK);
    bench.begun_with_work("a").await;
    bench.advance(WHILE);
    let (_, since) = leased_since(store, request("w")).await;
    assert_eq!(since, Some(1), "since it was queued");
    bench.advance(LEASE + WHILE);
    let ended = 1 + WHILE_MS + LEASE_MS;
    let (token, since) = leased_since(store, request("w")).await;
    assert_eq!(since, Some(ended), "since its lease ended");
    bench.advance(TICK);
    ok(store.abandon(&token, Abandon { retry_after: None, attempt: Attempt::Uncounted }).await);
    bench.advance(TICK);
    let given_back = ended + WHILE_MS + 1;
    let (token, since) = leased_since(store, request("w")).await;
    assert_eq!(since, Some(given_back), "since it was given back");
    ok(store.abandon(&token, Abandon { retry_after: Some(WHILE), attempt: Attempt::Counts }).await);
    bench.advance(WHILE + TICK);
    let (_, since) = leased_since(store, request("w")).await;
    assert_eq!(since, Some(given_back + 1 + WHILE_MS), "since its delay was over");
    Verdict::Kept
}

async fn s5_an_activity_of_a_session_tells_since_when_it_waited(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let session = |owner: &str| SessionRequest {
        owner: Owner::unnamed(owner),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let asks = |owner: &str| WorkRequest { session: Some(session(owner)), ..request("w") };
    bench.enqueue(activity_with("a", 2, Some("S"), None)).await;
    let (token, since) = leased_since(store, asks("one")).await;
    assert_eq!(since, Some(0));
    ok(store.finish_work(&token, completion("a", 2).into()).await);
    bench.advance(TICK);
    bench.enqueue(activity_with("a", 3, Some("S"), None)).await;
    bench.advance(LEASE);
    let (_, since) = leased_since(store, asks("other")).await;
    assert_eq!(since, Some(1), "the time for which its session was another's counts");
    Verdict::Kept
}

async fn s5_activities_are_told_by_execution_and_in_order(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for id in [7, 3, 5] {
        bench.enqueue(activity("a", id)).await;
    }
    bench.enqueue(activity("b", 4)).await;
    let ids: Vec<_> = ok(store.work_of("a", 1).await).iter().map(|work| work.activity_id).collect();
    assert_eq!(ids, [3, 5, 7]);
    assert_eq!(ok(store.work_of("a", 2).await), [], "another execution has others");
    Verdict::Kept
}

async fn s5_activities_are_told_up_to_a_page(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for id in 1..=MAX_PAGE as u64 + 3 {
        bench.enqueue(activity("a", id)).await;
    }
    let told = ok(store.work_of("a", 1).await);
    assert_eq!(told.len(), MAX_PAGE);
    assert_eq!(told.last().map(|work| work.activity_id), Some(MAX_PAGE as u64), "the oldest are told");
    Verdict::Kept
}

async fn s9_an_activity_that_is_held_back_says_until_when(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun_with_work("a").await;
    let lease = ok(store.fetch_work(request("w")).await).expect("an activity should be ready");
    ok(store.abandon(&lease.token, Abandon { retry_after: Some(WHILE), attempt: Attempt::Uncounted }).await);
    let told = work_of(store, "a").await;
    assert_eq!((told.attempts, told.phase), (0, WorkPhase::Delayed { until_ms: DAWN_MS + WHILE_MS }));
    bench.advance(WHILE + TICK);
    let phase = work_of(store, "a").await.phase;
    assert_eq!(phase, WorkPhase::Waiting { since_ms: DAWN_MS + WHILE_MS }, "its time has come");
    Verdict::Kept
}

async fn s14_an_activity_tells_its_tag_and_session(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.enqueue(activity_with("a", 2, Some("S"), Some("gpu"))).await;
    let told = work_of(store, "a").await;
    assert_eq!((told.tag.as_deref(), told.session), (Some("gpu"), Some(SessionKey::shared("S"))));
    Verdict::Kept
}

async fn s15_an_activity_that_cannot_be_read_has_no_name(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun_with_work("a").await;
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    let told = work_of(store, "a").await;
    assert_eq!((told.activity_id, told.name), (2, None));
    Verdict::Kept
}
