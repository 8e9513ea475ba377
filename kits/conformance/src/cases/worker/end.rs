//! The end of a route: with the execution, with the instance, and when a turn needs no code.

use steadfast_core::WorkItem;
use steadfast_store::Refused;

use super::{capable, counting, eager, fleet, parking, the_orchestration, worker};
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, ok, raise, start_of};
use crate::case::{cases, need};

cases![
    s21_a_route_leads_further_messages_too,
    s21_the_route_ends_with_the_instance,
    s21_the_route_ends_when_the_execution_continues_as_new,
    s21_the_route_ends_with_the_deletion_of_the_instance,
    s21_a_start_that_outlives_a_deletion_goes_to_any_worker,
    s21_a_termination_goes_to_any_worker,
    s21_a_termination_that_is_committed_by_another_instance_goes_to_any_worker,
    s21_a_termination_that_arrives_during_the_refused_lease_goes_to_any_worker,
    s21_a_termination_ends_the_delay_of_a_refused_start,
    s21_a_refusal_delays_nothing_for_which_a_termination_waits,
    s21_a_termination_ends_no_delay_but_that_of_refusals,
    s21_a_delayed_termination_goes_to_any_worker_once_it_is_visible,
    s21_a_delayed_termination_that_arrives_during_the_refused_lease_is_waited_for,
    s21_a_cancellation_needs_the_code,
];

fn termination(instance: &str) -> WorkItem {
    WorkItem::TerminateInstance { instance: instance.to_owned(), reason: "enough".to_owned() }
}

/// Begins an instance whose next turn is refused by a worker that lacks the code, and routed to another.
async fn routed(fleet: &super::Fleet<'_>) {
    fleet.report(capable("new")).await;
    fleet.report(worker("old")).await;
    fleet.bench.begun("a").await;
    fleet.bench.send(raise("a", "first")).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed);
}

/// Commits the turn of a worker that has the code.
async fn commit(fleet: &super::Fleet<'_>, commit: Commit) {
    let lease = fleet.turned("new").await;
    let turn = crate::Turning {
        item: steadfast_store::OrchestrationItem {
            instance: lease.instance,
            orchestration_name: lease.name,
            execution_id: lease.execution_id,
            version: lease.version,
            history: Vec::new(),
            messages: Vec::new(),
            history_error: None,
            kv_snapshot: lease.kv,
        },
        token: lease.token.as_str().to_owned(),
        attempt: lease.attempt,
    };
    fleet.bench.commit(&turn, commit).await;
}

async fn s21_a_route_leads_further_messages_too(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    commit(&fleet, Commit::default()).await;
    bench.send(raise("a", "second")).await;
    assert!(fleet.turn("old").await.is_none(), "it still lacks the code");
    assert!(fleet.turn("new").await.is_some(), "it has the code");
    Verdict::Kept
}

async fn s21_the_route_ends_with_the_instance(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    commit(&fleet, Commit::default().complete("a", 2, "output")).await;
    bench.send(raise("a", "second")).await;
    assert!(fleet.turn("old").await.is_some(), "a message to an ended instance needs no code");
    Verdict::Kept
}

async fn s21_the_route_ends_when_the_execution_continues_as_new(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    commit(&fleet, Commit::default().continue_as_new("a", 2)).await;
    assert!(fleet.turn("old").await.is_some(), "the next execution may need another version");
    Verdict::Kept
}

async fn s21_the_route_ends_with_the_deletion_of_the_instance(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let admin = need!(bench.admin(), "ProviderAdmin");
    routed(&fleet).await;
    ok(admin.delete_instance("a", true).await);
    bench.start("a").await;
    assert!(fleet.turn("old").await.is_some(), "the new instance was not refused");
    Verdict::Kept
}

async fn s21_a_start_that_outlives_a_deletion_goes_to_any_worker(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let admin = need!(bench.admin(), "ProviderAdmin");
    let mut start = start_of("child");
    if let WorkItem::StartOrchestration { parent_instance, parent_id, .. } = &mut start {
        (*parent_instance, *parent_id) = (Some("parent".to_owned()), Some(2));
    }
    fleet.report(worker("old")).await;
    bench.begin("parent", Commit::default().message(start.clone())).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted);
    assert!(fleet.turn("old").await.is_none(), "the refusal delays the start");
    ok(admin.delete_instances_atomic(&["child".to_owned()], true).await);
    let lease = fleet.turned("old").await;
    let messages: Vec<_> = lease.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(messages, [start], "the new instance was not refused");
    Verdict::Kept
}

async fn s21_a_termination_goes_to_any_worker(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    assert!(fleet.turn("old").await.is_none(), "it lacks the code");
    bench.send(termination("a")).await;
    let lease = fleet.turned("old").await;
    let messages: Vec<_> = lease.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(messages, [raise("a", "first"), termination("a")], "a termination needs no code");
    Verdict::Kept
}

async fn s21_a_termination_that_is_committed_by_another_instance_goes_to_any_worker(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    bench.start("b").await;
    let lease = fleet.turned("old").await;
    assert_eq!(lease.instance, "b", "it was not refused");
    let started = Commit::started("b");
    let commit = steadfast_store::TurnCommit {
        events: started.events,
        metadata: started.metadata,
        messages: vec![termination("a").into()],
        ..steadfast_store::TurnCommit::empty(1)
    };
    ok(fleet.store.commit_turn(&lease.token, commit).await);
    assert!(fleet.turn("old").await.is_some(), "a termination needs no code");
    Verdict::Kept
}

async fn s21_a_termination_that_arrives_during_the_refused_lease_goes_to_any_worker(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    for old in [eager("eager"), worker("parking")] {
        let id = old.id.0.clone();
        fleet.report(old).await;
        bench.begun(&id).await;
        bench.send(raise(&id, "first")).await;
        let lease = fleet.turned(&id).await;
        bench.send(termination(&id)).await;
        fleet.refuse(&lease.token, parking(the_orchestration())).await;
        assert_eq!(fleet.turned(&id).await.instance, id, "a termination needs no code");
    }
    Verdict::Kept
}

async fn s21_a_termination_ends_the_delay_of_a_refused_start(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    for old in [eager("eager"), worker("parking")] {
        let id = old.id.0.clone();
        fleet.report(old).await;
        bench.start(&id).await;
        assert_eq!(fleet.refuse_turn(&id).await, Refused::Unlisted);
        assert!(fleet.turn(&id).await.is_none(), "the refusal delays the start");
        bench.send(termination(&id)).await;
        let lease = fleet.turned(&id).await;
        assert_eq!((lease.instance.as_str(), lease.messages.len()), (id.as_str(), 2), "with its start");
    }
    Verdict::Kept
}

async fn s21_a_refusal_delays_nothing_for_which_a_termination_waits(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    bench.send(termination("a")).await;
    let refusal = counting(the_orchestration());
    assert_eq!(fleet.refuse(&lease.token, refusal).await, Refused::Unlisted);
    let lease = fleet.turned("old").await;
    assert_eq!((lease.messages.len(), lease.attempt), (2, 2), "its start counts, and does not wait");
    Verdict::Kept
}

async fn s21_a_termination_ends_no_delay_but_that_of_refusals(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    let delayed = steadfast_store::Abandon {
        retry_after: Some(super::BACKOFF),
        attempt: steadfast_store::Attempt::Counts,
    };
    ok(fleet.store.abandon(&lease.token, delayed).await);
    bench.send(termination("a")).await;
    assert!(fleet.turn("old").await.is_none(), "its start was not refused");
    bench.advance(super::BACKOFF);
    assert!(fleet.turn("old").await.is_some(), "both are visible");
    Verdict::Kept
}

async fn s21_a_delayed_termination_goes_to_any_worker_once_it_is_visible(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    routed(&fleet).await;
    bench.send_later(termination("a"), LEASE).await;
    assert!(fleet.turn("old").await.is_none(), "the termination is not visible yet");
    bench.advance(LEASE - TICK);
    assert!(fleet.turn("old").await.is_none(), "the termination is not visible yet");
    bench.advance(TICK);
    let lease = fleet.turned("old").await;
    let messages: Vec<_> = lease.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(messages, [raise("a", "first"), termination("a")], "a termination needs no code");
    Verdict::Kept
}

async fn s21_a_delayed_termination_that_arrives_during_the_refused_lease_is_waited_for(
    bench: Bench,
) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let lease = fleet.turned("old").await;
    bench.send_later(termination("a"), LEASE).await;
    assert_eq!(fleet.refuse(&lease.token, parking(the_orchestration())).await, Refused::Routed);
    assert!(fleet.turn("old").await.is_none(), "the termination is not visible yet");
    bench.advance(LEASE);
    assert_eq!(fleet.turned("old").await.messages.len(), 2, "a termination needs no code");
    Verdict::Kept
}

async fn s21_a_cancellation_needs_the_code(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let lease = fleet.turned("old").await;
    fleet.refuse(&lease.token, counting(the_orchestration())).await;
    bench.send(WorkItem::CancelInstance { instance: "a".to_owned(), reason: "no more".to_owned() }).await;
    assert!(fleet.turn("old").await.is_none(), "the code may have something to undo");
    fleet.report(capable("new")).await;
    assert_eq!(fleet.turned("new").await.messages.len(), 2, "it gets both");
    Verdict::Kept
}
