//! Telling what waits for one instance: [`work`] of its activities, [`oldest`] over everything.

pub(in crate::cases) mod oldest;
pub(in crate::cases) mod work;

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_store::{LeaseToken, MAX_PAGE, ProviderErrorKind, Store, TurnCommit, TurnState, WaitingStart};

use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, ok, raise, start_of, timer};
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
    s9_messages_that_are_held_back_are_counted_apart,
    s3_a_commit_that_drops_what_is_no_timer_is_refused,
    s9_a_timer_that_the_code_dropped_is_told_apart_and_fires,
    s9_a_timer_can_be_dropped_by_the_commit_that_sets_it,
    s9_dropped_timers_are_told_of_the_current_execution,
    s9_dropped_timers_of_earlier_executions_hide_none_of_the_current_one,
    s9_a_dropped_timer_whose_time_has_come_waits_for_a_turn,
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
