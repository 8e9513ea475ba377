//! Tries: the terms of a call travel with its work, and a try that failed is followed by another.

use std::time::Duration;

use steadfast_core::{
    AppErrorKind, CallTerms, ErrorDetails, EventKind, Failure, FailureKind, Policy, SessionConcurrency,
    SessionKey, TagFilter, WorkItem,
};
use steadfast_store::{
    Abandon, Attempt, Cold, EndedTry, LeaseToken, MAX_UNREADABLE_ATTEMPTS, Message, NeededHandler, NewWork,
    Outcome, Owner, Refusal, SessionRequest, SessionScope, Store, Tries, TurnRequest, UNREADABLE_RETRY,
    WorkLease, WorkPhase, WorkRequest,
};

use super::{any_work, poked};
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity_with, event, lost, ok};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s22_the_terms_of_a_call_come_with_every_lease,
    s22_work_without_terms_has_none,
    s22_terms_keep_every_character,
    s22_the_first_lease_of_work_has_no_tries_behind_it,
    s22_a_try_that_ended_is_told_by_the_next_lease,
    s22_work_is_held_back_until_the_delay_of_its_try_is_over,
    s22_a_try_without_a_delay_is_followed_by_the_next_at_once,
    s22_the_end_of_a_try_begins_the_count_of_poison_anew,
    s22_deliveries_only_rise,
    s22_the_first_fetch_is_remembered,
    s22_a_lease_of_a_former_try_cannot_be_excused,
    s22_a_lease_of_this_try_can_be_excused,
    s22_a_stale_token_ends_no_try,
    s22_a_turn_token_ends_no_try,
    s22_withdrawn_work_ends_no_try,
    s22_work_that_waits_for_its_next_try_can_be_withdrawn,
    s22_a_dropped_fetch_is_no_delivery,
    s22_a_waiting_try_wakes_a_fetch_when_its_time_has_come,
    s22_a_try_keeps_its_tag,
    s22_a_try_keeps_its_place_in_the_queue,
    s22_a_waiting_try_keeps_its_place_in_a_serial_session,
    s22_a_waiting_try_does_not_keep_its_session_attached,
    s22_a_try_of_a_session_counts_as_its_last_work,
    s22_tries_survive_a_restart_of_the_store,
    s22_refused_work_keeps_its_terms_and_tries,
    s22_work_that_is_set_aside_keeps_its_terms_and_tries,
    s22_what_waits_tells_of_the_tries,
    s22_the_failure_beside_a_completion_comes_with_its_message,
];

const DELAY: Duration = Duration::from_secs(7);

fn terms() -> Box<CallTerms> {
    let policy = Policy::tries(5).timeout(Duration::from_secs(3)).total(Duration::from_secs(90));
    Box::new(CallTerms { key: "a/1f/activity/1/0badcafe".to_owned(), policy: Some(policy), tried_before: 2 })
}

fn with_terms(item: WorkItem) -> NewWork {
    NewWork { call: Some(terms()), ..item.into() }
}

fn failed(delay: Duration) -> EndedTry {
    EndedTry { error: "the bank is closed".to_owned(), retry_after: delay }
}

fn any_turn() -> TurnRequest<'static> {
    TurnRequest { lock_timeout: LEASE, poll_timeout: Duration::ZERO, filter: None, warm: &Cold, worker: None }
}

async fn fetched(store: &dyn Store) -> Option<WorkLease> {
    ok(store.fetch_work(any_work()).await)
}

async fn leased(store: &dyn Store) -> WorkLease {
    fetched(store).await.expect("the activity should be ready")
}

/// The store with one activity that has terms; `None` if the store keeps no tries.
async fn queued(bench: &Bench) -> Option<&dyn Store> {
    let store = bench.store().filter(|store| store.keeps_tries())?;
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, None))).await);
    Some(store)
}

async fn s22_the_terms_of_a_call_come_with_every_lease(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::started("a")).await;
    bench.send(crate::bench::raise("a", "data")).await;
    let turn = ok(store.fetch_turn(any_turn()).await).expect("the instance has a message");
    let commit = steadfast_store::TurnCommit {
        work: vec![with_terms(activity_with("a", 2, None, None))],
        ..steadfast_store::TurnCommit::empty(1)
    };
    ok(store.commit_turn(&turn.token, commit).await);
    assert_eq!(leased(store).await.call, Some(terms()), "terms of work that a turn queued");
    bench.advance(LEASE);
    assert_eq!(leased(store).await.call, Some(terms()), "a second delivery has them too");
    Verdict::Kept
}

async fn s22_work_without_terms_has_none(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    ok(store.enqueue_work(activity_with("a", 2, None, None).into()).await);
    let lease = leased(store).await;
    assert_eq!((lease.call, lease.delivery, lease.tries.ended), (None, 1, 0));
    Verdict::Kept
}

async fn s22_terms_keep_every_character(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    let key = "order '1'/\\ \"€\" \u{1}\u{0}\n{}".to_owned();
    let call = Some(Box::new(CallTerms::of_key(key)));
    let work = NewWork { call: call.clone(), ..activity_with("a", 2, None, None).into() };
    ok(store.enqueue_work(work).await);
    let lease = leased(store).await;
    assert_eq!(lease.call, call);
    let error = "'; \\ \u{0} \"€\" \n".to_owned();
    ok(store.end_try(&lease.token, EndedTry { error: error.clone(), retry_after: Duration::ZERO }).await);
    assert_eq!(leased(store).await.tries.last_error, Some(error));
    Verdict::Kept
}

async fn s22_the_first_lease_of_work_has_no_tries_behind_it(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    bench.advance(TICK);
    let lease = leased(store).await;
    let tries = Tries { ended: 0, last_error: None, first_fetched_ms: Some(lease.now_ms) };
    assert_eq!((lease.attempt, lease.delivery, lease.tries), (1, 1, tries));
    Verdict::Kept
}

async fn s22_a_try_that_ended_is_told_by_the_next_lease(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    for ended in 1..=3 {
        let lease = leased(store).await;
        ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
        let next = leased(store).await;
        assert_eq!(next.tries.ended, ended);
        assert_eq!(next.tries.last_error.as_deref(), Some("the bank is closed"));
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        ok(store.abandon(&next.token, how).await);
    }
    Verdict::Kept
}

async fn s22_work_is_held_back_until_the_delay_of_its_try_is_over(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.end_try(&leased(store).await.token, failed(DELAY)).await);
    bench.advance(DELAY - TICK);
    assert!(fetched(store).await.is_none(), "the delay lasts");
    bench.advance(TICK);
    assert_eq!(leased(store).await.tries.ended, 1);
    Verdict::Kept
}

async fn s22_a_try_without_a_delay_is_followed_by_the_next_at_once(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.end_try(&leased(store).await.token, failed(Duration::ZERO)).await);
    assert!(fetched(store).await.is_some());
    Verdict::Kept
}

async fn s22_the_end_of_a_try_begins_the_count_of_poison_anew(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    for _ in 0..3 {
        leased(store).await;
        bench.advance(LEASE);
    }
    let lease = leased(store).await;
    assert_eq!(lease.attempt, 4);
    ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
    assert_eq!(leased(store).await.attempt, 1, "a try that ended is not poison");
    Verdict::Kept
}

async fn s22_deliveries_only_rise(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    let uncounted = Abandon { retry_after: None, attempt: Attempt::Uncounted };
    ok(store.abandon(&leased(store).await.token, uncounted).await);
    let second = leased(store).await;
    assert_eq!((second.attempt, second.delivery), (1, 2), "an uncounted delivery is one");
    bench.advance(LEASE);
    assert!(ok(store.excuse(&second.token).await));
    let third = leased(store).await;
    assert_eq!((third.attempt, third.delivery), (1, 3), "an excused delivery is one");
    ok(store.end_try(&third.token, failed(Duration::ZERO)).await);
    let fourth = leased(store).await;
    assert_eq!((fourth.attempt, fourth.delivery), (1, 4));
    Verdict::Kept
}

async fn s22_the_first_fetch_is_remembered(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    bench.advance(DELAY);
    let first = leased(store).await;
    assert_eq!(first.tries.first_fetched_ms, Some(DAWN_MS + DELAY.as_millis() as u64));
    ok(store.end_try(&first.token, failed(DELAY)).await);
    bench.advance(DELAY);
    let second = leased(store).await;
    assert_eq!(second.tries.first_fetched_ms, first.tries.first_fetched_ms);
    bench.advance(LEASE);
    assert_eq!(leased(store).await.tries.first_fetched_ms, first.tries.first_fetched_ms);
    Verdict::Kept
}

async fn s22_a_lease_of_a_former_try_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    let paused = leased(store).await;
    bench.advance(LEASE);
    let lease = leased(store).await;
    ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
    leased(store).await;
    bench.advance(LEASE);
    assert!(!ok(store.excuse(&paused.token).await), "its try has ended");
    assert!(!ok(store.excuse(&lease.token).await), "its lease did not expire");
    assert_eq!(leased(store).await.attempt, 2, "the count of this try is not touched");
    Verdict::Kept
}

async fn s22_a_lease_of_this_try_can_be_excused(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.end_try(&leased(store).await.token, failed(Duration::ZERO)).await);
    let paused = leased(store).await;
    bench.advance(LEASE);
    assert!(ok(store.excuse(&paused.token).await));
    let next = leased(store).await;
    assert_eq!((next.attempt, next.tries.ended), (1, 1));
    Verdict::Kept
}

async fn s22_a_stale_token_ends_no_try(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    let old = leased(store).await;
    bench.advance(LEASE);
    lost(store.end_try(&old.token, failed(DELAY)).await);
    let lease = leased(store).await;
    assert_eq!((lease.attempt, lease.tries.ended, lease.tries.last_error), (2, 0, None));
    lost(store.end_try(&old.token, failed(DELAY)).await);
    ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
    lost(store.end_try(&lease.token, failed(DELAY)).await);
    lost(store.end_try(&LeaseToken::Work("no such token".to_owned()), failed(DELAY)).await);
    assert_eq!(leased(store).await.tries.ended, 1, "one try has ended, at once");
    Verdict::Kept
}

async fn s22_a_turn_token_ends_no_try(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let work = leased(store).await;
    lost(store.end_try(&LeaseToken::Turn(turn.token.clone()), failed(DELAY)).await);
    lost(store.end_try(&LeaseToken::Turn(work.token.as_str().to_owned()), failed(DELAY)).await);
    bench.commit(&turn, Commit::started("a")).await;
    ok(store.finish_work(&work.token, Outcome::default()).await);
    Verdict::Kept
}

async fn s22_withdrawn_work_ends_no_try(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    bench.begun_with_work("a").await;
    let lease = leased(store).await;
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    let error = store.end_try(&lease.token, failed(Duration::ZERO)).await.expect_err("it was withdrawn");
    assert_eq!(error.kind, steadfast_store::ProviderErrorKind::Withdrawn, "{error}");
    assert!(fetched(store).await.is_none());
    Verdict::Kept
}

async fn s22_work_that_waits_for_its_next_try_can_be_withdrawn(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    bench.begun("a").await;
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, None))).await);
    ok(store.end_try(&leased(store).await.token, failed(DELAY)).await);
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    bench.advance(DELAY);
    assert!(fetched(store).await.is_none(), "there is no further try");
    Verdict::Kept
}

async fn s22_a_dropped_fetch_is_no_delivery(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    let call = bench.waiting_work(LEASE, TagFilter::Any).await;
    call.abort();
    assert!(call.await.is_err(), "the fetch is dropped while it waits");
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, None))).await);
    bench.settle().await;
    bench.advance(TICK);
    let lease = leased(store).await;
    assert_eq!((lease.attempt, lease.delivery), (1, 1));
    assert_eq!(lease.tries.first_fetched_ms, Some(lease.now_ms));
    Verdict::Kept
}

async fn s22_a_waiting_try_wakes_a_fetch_when_its_time_has_come(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.end_try(&leased(store).await.token, failed(DELAY)).await);
    let call = bench.waiting_work(LEASE, TagFilter::Any).await;
    bench.advance(DELAY);
    assert!(bench.soon(call).await.is_some(), "the fetch that waited gets the next try");
    Verdict::Kept
}

async fn s22_a_try_keeps_its_tag(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, Some("gpu")))).await);
    let of = |tags| WorkRequest { tags, ..any_work() };
    assert!(ok(store.fetch_work(of(TagFilter::DefaultOnly)).await).is_none());
    let gpu = TagFilter::tags(["gpu"]);
    let lease = ok(store.fetch_work(of(gpu.clone())).await).expect("the tag is served");
    ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
    assert!(ok(store.fetch_work(of(TagFilter::DefaultOnly)).await).is_none());
    assert!(ok(store.fetch_work(of(gpu)).await).is_some());
    Verdict::Kept
}

async fn s22_a_try_keeps_its_place_in_the_queue(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.enqueue_work(with_terms(activity_with("b", 3, None, None))).await);
    let first = leased(store).await;
    assert_eq!(first.item.instance(), "a");
    ok(store.end_try(&first.token, failed(Duration::ZERO)).await);
    assert_eq!(leased(store).await.item.instance(), "a", "it was scheduled first");
    Verdict::Kept
}

/// Begins an instance with an open session, and queues two activities with terms on it.
async fn on_session(bench: &Bench, concurrency: Option<SessionConcurrency>) -> Option<&dyn Store> {
    let store = bench.store().filter(|store| store.keeps_tries() && store.supports_owned_sessions())?;
    let opened =
        EventKind::SessionOpened { session_id: "s".to_owned(), idle_timeout_ms: Some(60_000), concurrency };
    bench.begin("a", Commit::default().event(event("a", 2, opened))).await;
    for id in [3, 4] {
        let session = Some(SessionKey::owned("a", "s"));
        let work = NewWork { session, ..with_terms(activity_with("a", id, Some("s"), None)) };
        ok(store.enqueue_work(work).await);
    }
    Some(store)
}

fn of_session() -> WorkRequest {
    let session = SessionRequest {
        owner: Owner::unnamed("owner"),
        lock_timeout: LEASE * 100,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    WorkRequest { session: Some(session), ..any_work() }
}

fn id_of(lease: &WorkLease) -> u64 {
    let WorkItem::ActivityExecute { id, .. } = &lease.item else { return 0 };
    *id
}

async fn s22_a_waiting_try_keeps_its_place_in_a_serial_session(bench: Bench) -> Verdict {
    let store = need!(on_session(&bench, Some(SessionConcurrency::Serial)).await, "owned sessions and tries");
    let first = ok(store.fetch_work(of_session()).await).expect("the session has work");
    assert_eq!(id_of(&first), 3);
    ok(store.end_try(&first.token, failed(DELAY)).await);
    assert!(ok(store.fetch_work(of_session()).await).is_none(), "the next activity waits behind it");
    bench.advance(DELAY);
    let again = ok(store.fetch_work(of_session()).await).expect("its time has come");
    assert_eq!((id_of(&again), again.tries.ended), (3, 1));
    ok(store.finish_work(&again.token, Outcome::default()).await);
    let next = ok(store.fetch_work(of_session()).await).expect("now it is its turn");
    assert_eq!((id_of(&next), next.call), (4, Some(terms())));
    Verdict::Kept
}

async fn renewed(store: &dyn Store, appetite: steadfast_store::Appetite) -> steadfast_store::SessionsRenewed {
    let request = steadfast_store::RenewSessions {
        owner: Owner::unnamed("owner"),
        held: Vec::new(),
        extend_for: LEASE * 100,
        idle_timeout: Duration::from_secs(3_600),
        untaken_after: Duration::ZERO,
        appetite,
        tags: TagFilter::Any,
        worker: None,
    };
    ok(store.renew_sessions(request).await)
}

async fn s22_a_waiting_try_does_not_keep_its_session_attached(bench: Bench) -> Verdict {
    let store = need!(on_session(&bench, Some(SessionConcurrency::Serial)).await, "owned sessions and tries");
    let first = ok(store.fetch_work(of_session()).await).expect("the session has work");
    ok(store.end_try(&first.token, failed(Duration::from_secs(120))).await);
    bench.advance(TICK);
    let outcome = renewed(store, steadfast_store::Appetite::Full).await;
    assert_eq!((outcome.untaken.len(), outcome.renewed.len()), (0, 1), "what waits for a try is not untaken");
    bench.advance(Duration::from_secs(60));
    let outcome = renewed(store, steadfast_store::Appetite::Full).await;
    assert_eq!((outcome.idle.len(), outcome.untaken.len()), (1, 0), "the session is idle");
    Verdict::Kept
}

async fn s22_a_try_of_a_session_counts_as_its_last_work(bench: Bench) -> Verdict {
    let store = need!(on_session(&bench, Some(SessionConcurrency::Serial)).await, "owned sessions and tries");
    let first = ok(store.fetch_work(of_session()).await).expect("the session has work");
    bench.advance(LEASE - TICK);
    ok(store.end_try(&first.token, failed(Duration::from_secs(120))).await);
    bench.advance(Duration::from_secs(60) - TICK);
    let outcome = renewed(store, steadfast_store::Appetite::Full).await;
    assert_eq!(
        (outcome.idle.len(), outcome.renewed.len()),
        (0, 1),
        "its time begins with the end of the try"
    );
    Verdict::Kept
}

async fn s22_tries_survive_a_restart_of_the_store(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    let lease = leased(store).await;
    ok(store.end_try(&lease.token, failed(DELAY)).await);
    let bench = need!(bench.reopen().await, "a store that can be opened again");
    let store = need!(bench.store(), "Store");
    bench.advance(DELAY);
    let next = leased(store).await;
    assert_eq!((next.attempt, next.delivery, next.call), (1, 2, Some(terms())));
    let last_error = Some("the bank is closed".to_owned());
    let first_fetched_ms = lease.tries.first_fetched_ms;
    assert_eq!(next.tries, Tries { ended: 1, last_error, first_fetched_ms });
    Verdict::Kept
}

async fn s22_refused_work_keeps_its_terms_and_tries(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    ok(store.end_try(&leased(store).await.token, failed(Duration::ZERO)).await);
    let refusal = Refusal {
        handler: NeededHandler { name: "activity".to_owned(), version: None },
        if_unlisted: Abandon { retry_after: None, attempt: Attempt::Counts },
    };
    ok(store.refuse(&leased(store).await.token, refusal).await);
    let next = leased(store).await;
    assert_eq!((next.delivery, next.tries.ended, next.call), (3, 1, Some(terms())));
    ok(store.end_try(&next.token, failed(Duration::ZERO)).await);
    assert_eq!(leased(store).await.tries.ended, 2, "routed work is tried again too");
    Verdict::Kept
}

async fn s22_work_that_is_set_aside_keeps_its_terms_and_tries(bench: Bench) -> Verdict {
    let store = need!(queued(&bench).await, "tries");
    let lease = leased(store).await;
    ok(store.end_try(&lease.token, failed(Duration::ZERO)).await);
    need!(bench.damage(Damage::Work { instance: "a" }).await, "damage");
    for _ in 0..MAX_UNREADABLE_ATTEMPTS {
        assert!(fetched(store).await.is_none(), "it cannot be read");
        bench.advance(UNREADABLE_RETRY);
    }
    let rows = ok(store.set_aside(None).await);
    let [row] = &rows[..] else { panic!("one row should be set aside: {rows:?}") };
    ok(store.retry_set_aside(row.id).await);
    let item = activity_with("a", 2, None, None);
    need!(bench.repair(Damage::Work { instance: "a" }, &item).await, "damage");
    let next = leased(store).await;
    assert_eq!((next.attempt, next.tries.ended, next.call), (1, 1, Some(terms())));
    assert_eq!(next.tries.first_fetched_ms, lease.tries.first_fetched_ms);
    assert!(next.delivery >= 2, "deliveries only rise: {}", next.delivery);
    Verdict::Kept
}

async fn s22_what_waits_tells_of_the_tries(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    bench.begun("a").await;
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, None))).await);
    let lease = leased(store).await;
    ok(store.end_try(&lease.token, failed(DELAY)).await);
    let rows = ok(store.work_of("a", 1).await);
    let [row] = &rows[..] else { panic!("one activity waits: {rows:?}") };
    assert_eq!((row.attempts, row.deliveries), (0, 1));
    assert_eq!(row.call, Some(terms()));
    assert_eq!((row.tries.ended, row.tries.last_error.as_deref()), (1, Some("the bank is closed")));
    assert_eq!(row.tries.first_fetched_ms, lease.tries.first_fetched_ms);
    let until_ms = lease.now_ms + DELAY.as_millis() as u64;
    assert_eq!(row.phase, WorkPhase::Delayed { until_ms });
    Verdict::Kept
}

async fn s22_the_failure_beside_a_completion_comes_with_its_message(bench: Bench) -> Verdict {
    let store = need!(bench.store().filter(|store| store.keeps_tries()), "tries");
    bench.begun("a").await;
    ok(store.enqueue_work(with_terms(activity_with("a", 2, None, None))).await);
    let lease = leased(store).await;
    let item = WorkItem::ActivityFailed {
        instance: "a".to_owned(),
        execution_id: 1,
        id: 2,
        details: ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: "declined".to_owned(),
            retryable: false,
        },
    };
    let data = Some("{\"code\":7,\"text\":\"'\u{0}€\"}".to_owned());
    let failure = Failure { kind: FailureKind::Final, data, tries: 3, elapsed_ms: 900 };
    let completion = Message { failure: Some(Box::new(failure)), ..item.into() };
    let outcome = Outcome { completion: Some(completion.clone()) };
    ok(store.finish_work(&lease.token, outcome).await);
    let turn = ok(store.fetch_turn(any_turn()).await).expect("the completion has arrived");
    assert_eq!(turn.messages, [completion]);
    Verdict::Kept
}
