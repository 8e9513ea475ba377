//! Telling what waits: for one instance, for its activities, and over everything.

use std::time::Duration;

use steadfast_core::{SessionKey, TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, LeaseToken, MAX_PAGE, OldestWaiting, Owner, ProviderErrorKind, SessionRequest,
    SessionScope, Store, TurnCommit, TurnState, WaitingStart, WorkPhase, WorkRequest, WorkState,
};

use crate::bench::{
    Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, completion, ok, raise, start_of, timer,
};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s2_an_instance_that_is_unknown_has_nothing_to_tell,
    s2_a_start_that_waits_is_told,
    s2_the_start_of_an_instance_is_described_until_it_is_consumed,
    s2_the_start_of_the_next_execution_is_described,
    s2_of_several_starts_the_first_to_arrive_is_described,
    s15_a_start_that_cannot_be_read_is_not_described,
    s2_messages_that_wait_are_counted_with_the_oldest,
    s2_a_leased_turn_is_told_with_its_end,
    s5_messages_of_an_ended_lease_wait_again,
    s5_an_activity_that_nobody_has_waits_since_it_was_queued,
    s5_a_leased_activity_names_its_worker,
    s5_an_activity_of_an_ended_lease_waits_since_then,
    s5_an_activity_that_was_given_back_waits_since_then,
    s5_a_leased_activity_tells_since_when_it_waited,
    s5_an_activity_of_a_session_tells_since_when_it_waited,
    s5_activities_are_told_by_execution_and_in_order,
    s5_activities_are_told_up_to_a_page,
    s9_messages_that_are_held_back_are_counted_apart,
    s3_a_commit_that_drops_what_is_no_timer_is_refused,
    s9_a_timer_that_the_code_dropped_is_told_apart_and_fires,
    s9_a_timer_can_be_dropped_by_the_commit_that_sets_it,
    s9_dropped_timers_are_told_of_the_current_execution,
    s9_dropped_timers_of_earlier_executions_hide_none_of_the_current_one,
    s9_a_dropped_timer_whose_time_has_come_waits_for_a_turn,
    s9_an_activity_that_is_held_back_says_until_when,
    s14_an_activity_tells_its_tag_and_session,
    s15_an_activity_that_cannot_be_read_has_no_name,
    s18_nothing_waits_in_an_empty_store,
    s18_the_longest_wait_is_that_of_the_oldest_message,
    s18_a_message_waits_since_it_became_visible,
    s18_a_leased_instance_does_not_wait,
    s18_an_instance_waits_since_its_lease_ended,
    s18_late_messages_wait_since_the_commit,
    s18_the_longest_wait_is_that_of_the_oldest_activity,
    s18_an_activity_that_is_held_back_does_not_wait,
    s20_the_backlog_does_not_slow_the_look_for_the_longest_wait,
];

/// A while: longer than a tick, shorter than a lease.
const WHILE: Duration = Duration::from_secs(10);

const WHILE_MS: u64 = 10_000;

const LEASE_MS: u64 = 30_000;

/// The store, if it can tell what waits.
async fn telling(bench: &Bench) -> Option<&dyn Store> {
    let store = bench.store()?;
    match store.oldest_waiting().await {
        Err(error) if error.kind == ProviderErrorKind::Unsupported => None,
        _ => Some(store),
    }
}

async fn turn_of(store: &dyn Store, instance: &str) -> TurnState {
    ok(store.turn_of(instance).await).unwrap_or_else(|| panic!("'{instance}' should be there"))
}

/// The one activity of an instance.
async fn work_of(store: &dyn Store, instance: &str) -> WorkState {
    let mut work = ok(store.work_of(instance, 1).await);
    assert_eq!(work.len(), 1, "one activity should be there: {work:?}");
    work.remove(0)
}

async fn oldest(store: &dyn Store) -> (Option<u64>, Option<u64>) {
    let OldestWaiting { message_ms, work_ms, .. } = ok(store.oldest_waiting().await);
    (message_ms, work_ms)
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

async fn s2_an_instance_that_is_unknown_has_nothing_to_tell(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.send(raise("stray", "data")).await;
    assert_eq!(ok(store.turn_of("unknown").await), None);
    assert_eq!(ok(store.turn_of("stray").await), None, "a message makes no instance (S17)");
    assert_eq!(ok(store.work_of("unknown", 1).await), []);
    Verdict::Kept
}

async fn s2_a_start_that_waits_is_told(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    bench.advance(WHILE);
    let expected = TurnState {
        waiting: 1,
        oldest_ms: Some(DAWN_MS),
        now_ms: DAWN_MS + WHILE_MS,
        ..TurnState::default()
    };
    assert_eq!(turn_of(store, "a").await, expected);
    Verdict::Kept
}

fn versioned(instance: &str, version: Option<&str>) -> WorkItem {
    let mut start = start_of(instance);
    if let WorkItem::StartOrchestration { version: asked, .. } = &mut start {
        *asked = version.map(str::to_owned);
    }
    start
}

fn described(version: Option<&str>) -> Option<WaitingStart> {
    let version = version.map(str::to_owned);
    Some(WaitingStart { orchestration: "Orchestration".to_owned(), version })
}

async fn s2_the_start_of_an_instance_is_described_until_it_is_consumed(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    assert_eq!(ok(store.start_of("a").await), None, "there is none");
    bench.send(raise("a", "data")).await;
    assert_eq!(ok(store.start_of("a").await), None, "a message is no start");
    bench.send_later(versioned("a", Some("3.0.0")), WHILE).await;
    assert_eq!(ok(store.start_of("a").await), described(Some("3.0.0")), "it is delayed");
    bench.advance(WHILE);
    assert_eq!(ok(store.start_of("a").await), described(Some("3.0.0")), "it waits");
    let turn = bench.fetched().await;
    assert_eq!(ok(store.start_of("a").await), described(Some("3.0.0")), "it is leased");
    bench.commit(&turn, Commit::started("a")).await;
    assert_eq!(ok(store.start_of("a").await), None, "it is consumed");
    assert_eq!(ok(store.start_of("b").await), None, "it is of another instance");
    Verdict::Kept
}

async fn s2_the_start_of_the_next_execution_is_described(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    assert_eq!(ok(store.start_of("a").await), described(None), "it continues as new");
    Verdict::Kept
}

async fn s2_of_several_starts_the_first_to_arrive_is_described(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.send_later(versioned("a", Some("1.0.0")), WHILE).await;
    bench.send(versioned("a", Some("2.0.0"))).await;
    assert_eq!(ok(store.start_of("a").await), described(Some("1.0.0")));
    Verdict::Kept
}

async fn s15_a_start_that_cannot_be_read_is_not_described(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    assert_eq!(ok(store.start_of("a").await), None);
    Verdict::Kept
}

async fn s2_messages_that_wait_are_counted_with_the_oldest(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun("a").await;
    bench.begun("b").await;
    for data in ["1", "2", "3"] {
        bench.advance(TICK);
        bench.send(raise("a", data)).await;
        bench.send(raise("b", data)).await;
    }
    let told = turn_of(store, "a").await;
    assert_eq!((told.waiting, told.oldest_ms), (3, Some(DAWN_MS + 1)));
    assert_eq!((told.delayed, told.leased, told.leased_until_ms), (0, 0, None));
    Verdict::Kept
}

async fn s2_a_leased_turn_is_told_with_its_end(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.leased("a").await;
    bench.advance(TICK);
    bench.send(raise("a", "late")).await;
    let told = turn_of(store, "a").await;
    assert_eq!((told.leased, told.leased_until_ms), (1, Some(DAWN_MS + LEASE_MS)));
    assert_eq!((told.waiting, told.oldest_ms), (1, Some(DAWN_MS + 1)), "the late one waits (S7)");
    Verdict::Kept
}

async fn s5_messages_of_an_ended_lease_wait_again(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.leased("a").await;
    bench.advance(LEASE);
    let told = turn_of(store, "a").await;
    assert_eq!((told.leased, told.leased_until_ms), (0, None));
    assert_eq!((told.waiting, told.oldest_ms), (1, Some(DAWN_MS)));
    Verdict::Kept
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

async fn s9_messages_that_are_held_back_are_counted_apart(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let fire_at_ms = DAWN_MS + WHILE_MS;
    bench.begin("a", Commit::default().message(timer("a", 2, fire_at_ms))).await;
    let told = turn_of(store, "a").await;
    assert_eq!((told.waiting, told.oldest_ms, told.delayed), (0, None, 1));
    bench.advance(WHILE + TICK);
    let told = turn_of(store, "a").await;
    assert_eq!((told.waiting, told.oldest_ms, told.delayed), (1, Some(fire_at_ms), 0));
    Verdict::Kept
}

/// Takes the turn of an instance and drops timers in it.
async fn dropping(bench: &Bench, store: &dyn Store, commit: TurnCommit) {
    let turn = bench.fetched().await;
    ok(store.commit_turn(&LeaseToken::Turn(turn.token), commit).await);
}

/// How many messages are not visible, and which timers were dropped.
async fn delayed(store: &dyn Store, instance: &str) -> (u64, Vec<u64>) {
    let told = turn_of(store, instance).await;
    (told.delayed, told.dropped_timers)
}

async fn s3_a_commit_that_drops_what_is_no_timer_is_refused(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let commit = TurnCommit { dropped_timers: vec![raise("a", "data")], ..TurnCommit::empty(1) };
    let answer = store.commit_turn(&LeaseToken::Turn(turn.token), commit).await;
    crate::bench::refused(answer, ProviderErrorKind::Invalid);
    Verdict::Kept
}

async fn s9_a_timer_that_the_code_dropped_is_told_apart_and_fires(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let at = DAWN_MS + WHILE_MS;
    let timers = [timer("a", 2, at), timer("a", 3, at), timer("a", 4, at + 1)];
    bench.begin("a", timers.iter().cloned().fold(Commit::default(), Commit::message)).await;
    bench.begin("b", Commit::default().message(timer("b", 2, at))).await;
    assert_eq!(delayed(store, "a").await, (3, vec![]));
    bench.send(raise("a", "data")).await;
    let of_another = timer("b", 2, at);
    let dropped_timers = vec![timers[2].clone(), timers[0].clone(), timer("a", 9, at), of_another];
    dropping(&bench, store, TurnCommit { dropped_timers, ..TurnCommit::empty(1) }).await;
    assert_eq!(delayed(store, "a").await, (1, vec![2, 4]));
    assert_eq!(delayed(store, "b").await, (1, vec![]), "a commit drops timers of its own instance");
    bench.send(raise("a", "more")).await;
    dropping(&bench, store, TurnCommit::empty(1)).await;
    assert_eq!(delayed(store, "a").await, (1, vec![2, 4]), "they stay dropped");
    bench.advance(WHILE + TICK);
    assert_eq!(bench.fetched().await.item.messages, timers, "they fire, in their order");
    Verdict::Kept
}

async fn s9_a_timer_can_be_dropped_by_the_commit_that_sets_it(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun("a").await;
    bench.send(raise("a", "data")).await;
    let (dropped, kept) = (timer("a", 2, DAWN_MS + WHILE_MS), timer("a", 3, DAWN_MS + WHILE_MS));
    let messages = vec![dropped.clone().into(), kept.clone().into()];
    let dropped_timers = vec![dropped.clone()];
    dropping(&bench, store, TurnCommit { messages, dropped_timers, ..TurnCommit::empty(1) }).await;
    assert_eq!(delayed(store, "a").await, (1, vec![2]));
    bench.advance(WHILE);
    assert_eq!(bench.fetched().await.item.messages, [dropped, kept], "it fires");
    Verdict::Kept
}

async fn s9_dropped_timers_are_told_of_the_current_execution(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let of_first = timer("a", 2, DAWN_MS + WHILE_MS);
    bench.begin("a", Commit::default().message(of_first.clone())).await;
    bench.send(raise("a", "data")).await;
    let ended = Commit::default().continue_as_new("a", 3);
    let commit = TurnCommit {
        events: ended.events,
        metadata: ended.metadata,
        messages: ended.messages.into_iter().map(Into::into).collect(),
        dropped_timers: vec![of_first],
        ..TurnCommit::empty(1)
    };
    dropping(&bench, store, commit).await;
    assert_eq!(delayed(store, "a").await, (0, vec![2]));
    let turn = bench.fetched().await;
    let mut of_second = timer("a", 2, DAWN_MS + WHILE_MS);
    if let WorkItem::TimerFired { execution_id, .. } = &mut of_second {
        *execution_id = 2;
    }
    bench.commit(&turn, Commit::continued("a", 2).message(of_second)).await;
    assert_eq!(delayed(store, "a").await, (1, vec![]), "the second execution awaits its own timer 2");
    Verdict::Kept
}

/// As an instance leaves them behind that races a long timer and continues as new, many times over.
async fn s9_dropped_timers_of_earlier_executions_hide_none_of_the_current_one(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let old: Vec<WorkItem> =
        (0..MAX_PAGE as u64).map(|id| timer("a", id + 2, DAWN_MS + LEASE_MS + id)).collect();
    bench.begin("a", Commit::default()).await;
    bench.send(raise("a", "data")).await;
    let ended = Commit::default().continue_as_new("a", 3);
    let commit = TurnCommit {
        events: ended.events,
        metadata: ended.metadata,
        messages: ended.messages.into_iter().chain(old.clone()).map(Into::into).collect(),
        dropped_timers: old,
        ..TurnCommit::empty(1)
    };
    dropping(&bench, store, commit).await;
    let turn = bench.fetched().await;
    let mut own = timer("a", 2, DAWN_MS + 10 * LEASE_MS);
    if let WorkItem::TimerFired { execution_id, .. } = &mut own {
        *execution_id = 2;
    }
    bench.commit(&turn, Commit::continued("a", 2).message(own.clone())).await;
    bench.send(raise("a", "data")).await;
    let dropped_timers = vec![own];
    dropping(&bench, store, TurnCommit { dropped_timers, ..TurnCommit::empty(2) }).await;
    assert_eq!(delayed(store, "a").await, (0, vec![2]));
    Verdict::Kept
}

async fn s9_a_dropped_timer_whose_time_has_come_waits_for_a_turn(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let dropped = timer("a", 2, DAWN_MS + WHILE_MS);
    bench.begin("a", Commit::default().message(dropped.clone())).await;
    bench.send(raise("a", "data")).await;
    let dropped_timers = vec![dropped];
    dropping(&bench, store, TurnCommit { dropped_timers, ..TurnCommit::empty(1) }).await;
    bench.advance(WHILE);
    let told = turn_of(store, "a").await;
    assert_eq!((told.waiting, told.delayed, told.dropped_timers), (1, 0, vec![2]));
    dropping(&bench, store, TurnCommit::empty(1)).await;
    assert_eq!(delayed(store, "a").await, (0, vec![]), "its message is consumed");
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

async fn s18_nothing_waits_in_an_empty_store(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let expected = OldestWaiting { message_ms: None, work_ms: None, now_ms: DAWN_MS };
    assert_eq!(ok(store.oldest_waiting().await), expected);
    bench.begun("a").await;
    assert_eq!(
        ok(store.oldest_waiting().await),
        expected,
        "an instance that waits for something does not count"
    );
    Verdict::Kept
}

async fn s18_the_longest_wait_is_that_of_the_oldest_message(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for instance in ["a", "b", "a"] {
        bench.advance(TICK);
        bench.start(instance).await;
    }
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 1), None));
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, "a");
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 2), None), "the next one is b");
    Verdict::Kept
}

async fn s18_a_message_waits_since_it_became_visible(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun("a").await;
    bench.begun("b").await;
    bench.send_later(raise("a", "data"), WHILE).await;
    bench.advance(TICK);
    assert_eq!(oldest(store).await, (None, None), "not yet");
    bench.send(raise("b", "data")).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 1), None), "the one that came later waits for longer");
    bench.fetched().await;
    bench.fetched().await;
    assert_eq!(oldest(store).await, (None, None));
    bench.begun("c").await;
    bench.send_later(raise("c", "data"), WHILE).await;
    let visible_at = bench.now_ms() + WHILE_MS;
    bench.advance(WHILE + TICK);
    assert_eq!(oldest(store).await, (Some(visible_at), None));
    Verdict::Kept
}

async fn s18_a_leased_instance_does_not_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.send(raise("a", "late")).await;
    bench.send_later(raise("a", "later"), TICK).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (None, None), "its messages wait for the holder, not for anybody");
    bench.commit(&turn, Commit::started("a")).await;
    assert!(oldest(store).await.0.is_some());
    Verdict::Kept
}

async fn s18_an_instance_waits_since_its_lease_ended(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    bench.fetched().await;
    bench.advance(LEASE + WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + LEASE_MS), None));
    let again = bench.fetched().await;
    bench.advance(TICK);
    bench.abandon(&again, None).await;
    bench.advance(WHILE);
    assert_eq!(
        oldest(store).await,
        (Some(DAWN_MS + LEASE_MS + WHILE_MS + 1), None),
        "since it was given back"
    );
    Verdict::Kept
}

async fn s18_late_messages_wait_since_the_commit(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(TICK);
    bench.send(raise("a", "late")).await;
    bench.advance(WHILE);
    bench.commit(&turn, Commit::started("a")).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + WHILE_MS + 1), None));
    Verdict::Kept
}

async fn s18_the_longest_wait_is_that_of_the_oldest_activity(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for (id, (session, tag)) in (1..).zip([(None, Some("gpu")), (Some("S"), None), (None, None)]) {
        bench.advance(TICK);
        bench.enqueue(activity_with("a", id, session, tag)).await;
    }
    bench.advance(WHILE);
    let gpu = TagFilter::tags(["gpu"]);
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 1)), "of a tag");
    assert!(bench.fetch_work_as(None, &gpu).await.is_some());
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 2)), "of a session");
    assert!(bench.fetch_work_for("A").await.is_some());
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 3)));
    bench.working().await;
    assert_eq!(oldest(store).await, (None, None), "all are leased");
    Verdict::Kept
}

async fn s18_an_activity_that_is_held_back_does_not_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.enqueue(activity("a", 1)).await;
    let (_, token, _) = bench.working().await;
    let how = Abandon { retry_after: Some(WHILE), attempt: Attempt::Counts };
    ok(store.abandon(&LeaseToken::Work(token), how).await);
    assert_eq!(oldest(store).await, (None, None));
    bench.advance(WHILE + TICK);
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + WHILE_MS)));
    Verdict::Kept
}

async fn s20_the_backlog_does_not_slow_the_look_for_the_longest_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let mut costs = Vec::new();
    for _ in 0..2 {
        let id = costs.len() as u64;
        bench.start(&format!("first-{id}")).await;
        bench.enqueue(activity("first", id)).await;
        oldest(store).await;
        let mut least = u64::MAX;
        for _ in 0..4 {
            let before = need!(bench.cost().await, "cost");
            oldest(store).await;
            least = least.min(need!(bench.cost().await, "cost") - before);
        }
        costs.push(least);
        // The second round has it around.
        let many = if costs.len() == 1 { 2_000 } else { 0 };
        for number in 0..many {
            bench.start(&format!("many-{number}")).await;
            bench.enqueue(activity_with("many", number, Some(&format!("s-{number}")), None)).await;
            bench.enqueue(activity("many", 10_000 + number)).await;
        }
    }
    assert!(costs[1] * 2 <= costs[0] * 3, "the cost should stay what it was: {costs:?}");
    Verdict::Kept
}
