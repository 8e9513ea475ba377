//! Tails: a caller that holds a run warm gets only what it does not know.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_core::Event;
use steadfast_store::{
    Cold, Held, History, Provider, RunId, Store, TurnCommit, TurnLease, TurnRequest, Warm,
};

use crate::bench::{Bench, Commit, LEASE, event, ok, raise, scheduled};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s2_a_caller_that_holds_nothing_gets_the_whole_history,
    s2_a_holder_of_the_run_gets_only_what_came_later,
    s2_a_holder_of_everything_gets_an_empty_tail,
    s2_a_tail_has_what_was_appended_from_outside,
    s2_a_holder_of_another_run_gets_the_whole_history,
    s2_a_holder_of_more_than_there_is_gets_the_whole_history,
    s2_a_holder_of_the_ended_execution_gets_the_whole_new_one,
    s2_a_holder_of_a_deleted_instance_gets_the_whole_new_one,
    s2_what_is_held_is_asked_when_the_lease_is_taken,
    s2_a_tail_can_be_read_when_older_events_cannot,
];

async fn s2_a_caller_that_holds_nothing_gets_the_whole_history(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (_, events) = three_events(&bench, store).await;
    assert_eq!(leased(store, &Cold).await.history, History::Whole(events));
    Verdict::Kept
}

async fn s2_a_holder_of_the_run_gets_only_what_came_later(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, events) = three_events(&bench, store).await;
    let lease = leased(store, &holding(run, 1)).await;
    assert_eq!(lease.history, History::Tail { after: 1, events: events[1..].to_vec() });
    assert_eq!(lease.last_event_id, 3, "the last event is the same for everybody");
    Verdict::Kept
}

async fn s2_a_holder_of_everything_gets_an_empty_tail(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, _) = three_events(&bench, store).await;
    let lease = leased(store, &holding(run, 3)).await;
    assert_eq!(lease.history, History::Tail { after: 3, events: Vec::new() });
    Verdict::Kept
}

async fn s2_a_tail_has_what_was_appended_from_outside(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, _) = three_events(&bench, store).await;
    ok(store.append_history("a", 1, vec![event("a", 4, scheduled())]).await);
    let lease = leased(store, &holding(run, 3)).await;
    assert_eq!(lease.history, History::Tail { after: 3, events: vec![event("a", 4, scheduled())] });
    Verdict::Kept
}

async fn s2_a_holder_of_another_run_gets_the_whole_history(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (RunId(run), events) = three_events(&bench, store).await;
    let lease = leased(store, &holding(RunId(run + 1), 1)).await;
    assert_eq!(lease.history, History::Whole(events), "what is held is not of this run");
    Verdict::Kept
}

async fn s2_a_holder_of_more_than_there_is_gets_the_whole_history(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, events) = three_events(&bench, store).await;
    let lease = leased(store, &holding(run, 4)).await;
    assert_eq!(lease.history, History::Whole(events), "what is held was never committed");
    Verdict::Kept
}

async fn s2_a_holder_of_the_ended_execution_gets_the_whole_new_one(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, _) = three_events(&bench, store).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().continue_as_new("a", 4)).await;
    let turn = bench.fetched().await;
    let second = Commit::continued("a", 2);
    let events = second.events.clone();
    bench.commit(&turn, second.message(raise("a", "data"))).await;
    let lease = leased(store, &holding(run, 1)).await;
    assert_eq!(lease.history, History::Whole(events), "what is held is of the first execution");
    Verdict::Kept
}

async fn s2_a_holder_of_a_deleted_instance_gets_the_whole_new_one(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    let (old, _) = three_events(&bench, store).await;
    ok(admin.delete_instances_atomic(&["a".to_owned()], true).await);
    let (_, events) = three_events(&bench, store).await;
    let lease = leased(store, &holding(old, 1)).await;
    assert_eq!(lease.history, History::Whole(events), "the new instance is not mistaken for the old one");
    Verdict::Kept
}

async fn s2_what_is_held_is_asked_when_the_lease_is_taken(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, _) = three_events(&bench, store).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;

    let warm = Arc::new(Shelf::default());
    let call = {
        let (provider, warm) = (Arc::clone(bench.provider()), Arc::clone(&warm));
        tokio::spawn(async move { waiting(&provider, &*warm).await })
    };
    bench.parked(1).await;
    *warm.0.lock().unwrap() = Some(Held { run, last_event_id: 3 });
    bench.send(raise("a", "data")).await;
    let history = bench.soon(call).await.history;
    assert_eq!(history, History::Tail { after: 3, events: Vec::new() }, "what is held by now should count");
    Verdict::Kept
}

async fn s2_a_tail_can_be_read_when_older_events_cannot(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let (run, events) = three_events(&bench, store).await;
    need!(bench.damage(Damage::Event { instance: "a", execution_id: 1, event_id: 1 }).await, "damage");
    let lease = leased(store, &holding(run, 2)).await;
    assert_eq!(lease.history, History::Tail { after: 2, events: events[2..].to_vec() });
    Verdict::Kept
}

/// Holds what a case puts there.
#[derive(Default)]
struct Shelf(Mutex<Option<Held>>);

impl Warm for Shelf {
    fn held(&self, instance: &str) -> Option<Held> {
        (*self.0.lock().unwrap()).filter(|_| instance == "a")
    }
}

fn holding(run: RunId, last_event_id: u64) -> Shelf {
    Shelf(Mutex::new(Some(Held { run, last_event_id })))
}

/// Begins instance `a` with three events and a message. Returns its run and the events.
async fn three_events(bench: &Bench, store: &dyn Store) -> (RunId, Vec<Event>) {
    bench.start("a").await;
    let lease = leased(store, &Cold).await;
    let commit = Commit::started("a").event(event("a", 2, scheduled())).event(event("a", 3, scheduled()));
    let Commit { events, metadata, .. } = commit;
    let messages = vec![raise("a", "data").into()];
    let commit =
        TurnCommit { execution_id: 1, events: events.clone(), metadata, messages, ..TurnCommit::default() };
    let committed = ok(store.commit_turn(&lease.token, commit).await);
    (committed.run.expect("a commit should tell which run it belongs to"), events)
}

async fn leased(store: &dyn Store, warm: &dyn Warm) -> TurnLease {
    let request =
        TurnRequest { lock_timeout: LEASE, poll_timeout: Duration::ZERO, filter: None, warm, worker: None };
    ok(store.fetch_turn(request).await).expect("an instance should be ready")
}

async fn waiting(provider: &Arc<dyn Provider>, warm: &dyn Warm) -> TurnLease {
    let store = Arc::clone(provider).into_store().expect("the case has asked for it");
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout: LEASE, filter: None, warm, worker: None };
    ok(store.fetch_turn(request).await).expect("an instance should be ready in time")
}
