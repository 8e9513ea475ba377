//! Deleting an instance whose id another parent has asked for: the start that this parent has sent stays, and
//! the parent gets its child (I7).

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_store::{InstanceFilter, LeaseToken, OldestWaiting, ProviderAdmin, QueueDepths, Started};

use super::ids;
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, Turning, lost, ok, raise, start_of};
use crate::case::{cases, need};

cases![
    s17_a_start_outlives_the_tree_of_another_parent,
    s17_a_start_outlives_the_tree_of_another_parent_that_is_leased,
    s17_a_start_outlives_the_deletion_of_the_child_alone,
    s17_a_start_outlives_the_deletion_of_a_child_that_never_began,
    s17_the_starts_of_all_other_parents_outlive_a_deletion,
    s17_the_start_of_a_parent_that_continues_as_new_outlives_a_deletion,
    s17_a_start_that_outlives_a_deletion_wakes_a_waiting_fetch,
    s17_a_start_that_outlives_a_deletion_makes_its_instance_exist,
    s17_a_start_that_outlives_a_deletion_is_delayed_as_before,
    s17_a_start_that_outlives_a_deletion_waits_since_then,
    s17_the_start_of_a_client_goes_with_its_instance,
    s17_the_start_of_a_client_goes_although_that_of_a_parent_stays,
    s17_the_start_of_a_parent_that_is_deleted_too_goes_along,
    s17_the_start_of_a_parent_that_is_gone_goes_along,
    s17_the_start_of_a_parent_that_has_ended_goes_along,
    s17_the_start_of_a_former_life_of_its_parent_goes_along,
    s5_a_lease_that_a_deletion_ended_counts_until_it_is_excused,
    s5_an_expired_delivery_can_be_excused_after_a_deletion,
    api_a_child_that_another_parent_asks_for_is_not_deleted_in_bulk,
];

const FIRST: &str = "first";
const PARENT: &str = "parent";
const CHILD: &str = "child";

/// The start of the child, as a turn of that parent sends it.
fn asked_by(parent: &str) -> WorkItem {
    let mut start = start_of(CHILD);
    if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } = &mut start {
        (*parent_instance, *parent_id) = (Some(parent.to_owned()), Some(2));
        *parent_execution_id = Some(1);
    }
    start
}

/// Begins a parent whose first turn asks for the child.
async fn asks(bench: &Bench, parent: &str) {
    bench.begin(parent, Commit::default().message(asked_by(parent))).await;
}

/// Leases the turn of the child, which must be the next.
async fn leased(bench: &Bench) -> Turning {
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, CHILD, "the child should be next");
    turn
}

/// Lets the first parent have its child, and another one ask for a child of the same id.
async fn taken(bench: &Bench) {
    asks(bench, FIRST).await;
    let turn = leased(bench).await;
    bench.commit(&turn, Commit::started(CHILD).parent(FIRST)).await;
    asks(bench, PARENT).await;
}

async fn delete(admin: &dyn ProviderAdmin, instances: &[&str]) -> u64 {
    ok(admin.delete_instances_atomic(&ids(instances), true).await).queue_messages_deleted
}

/// Requires that the other parent gets its child, with its start as the only message, and is answered.
async fn gets_its_child(bench: &Bench, admin: &dyn ProviderAdmin, attempt: u32) {
    let turn = leased(bench).await;
    assert_eq!(turn.item.messages, [asked_by(PARENT)], "only the start of the other parent stays");
    assert_eq!(turn.item.history, [], "the child begins");
    assert_eq!(turn.attempt, attempt, "the count of its deliveries goes on");
    let answer = WorkItem::SubOrchCompleted {
        parent_instance: PARENT.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "done".to_owned(),
    };
    bench.commit(&turn, Commit::started(CHILD).parent(PARENT).message(answer.clone())).await;
    assert_eq!(ok(admin.get_parent_id(CHILD).await).as_deref(), Some(PARENT));
    assert_eq!(bench.fetched().await.item.messages, [answer], "the parent is answered");
}

/// Requires that nothing is left of the child.
async fn is_gone(bench: &Bench, admin: &dyn ProviderAdmin) {
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default());
    assert!(bench.fetch().await.is_none(), "there is no start");
    bench.advance(LEASE + TICK);
    assert!(bench.fetch().await.is_none(), "there is none later either");
}

async fn s17_a_start_outlives_the_tree_of_another_parent(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    bench.send(raise(CHILD, "1")).await;
    let deleted = ok(admin.delete_instance(FIRST, true).await);
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (2, 1));
    assert_eq!(ok(admin.list_instances().await), [PARENT]);
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s17_a_start_outlives_the_tree_of_another_parent_that_is_leased(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    bench.send(raise(CHILD, "1")).await;
    let turn = leased(&bench).await;
    bench.send(raise(CHILD, "2")).await;
    let deleted = ok(admin.delete_instance(FIRST, true).await);
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (2, 2));
    lost(bench.try_renew(&turn, LEASE).await);
    lost(bench.try_commit(&turn, Commit::default()).await);
    gets_its_child(&bench, admin, 2).await;
    Verdict::Kept
}

async fn s17_a_start_outlives_the_deletion_of_the_child_alone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    let turn = leased(&bench).await;
    assert_eq!(delete(admin, &[CHILD]).await, 0);
    lost(bench.try_commit(&turn, Commit::default()).await);
    gets_its_child(&bench, admin, 2).await;
    Verdict::Kept
}

async fn s17_a_start_outlives_the_deletion_of_a_child_that_never_began(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    asks(&bench, PARENT).await;
    bench.send(raise(CHILD, "1")).await;
    assert_eq!(delete(admin, &[CHILD]).await, 1);
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s17_the_starts_of_all_other_parents_outlive_a_deletion(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    // While the child is leased, its instance does not come before the next parent.
    leased(&bench).await;
    asks(&bench, "third").await;
    assert_eq!(delete(admin, &[FIRST, CHILD]).await, 0);
    assert_eq!(leased(&bench).await.item.messages, [asked_by(PARENT), asked_by("third")]);
    Verdict::Kept
}

async fn s17_the_start_of_a_parent_that_continues_as_new_outlives_a_deletion(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let last = Commit::default().message(asked_by(PARENT)).continue_as_new(PARENT, 3);
    bench.begin(PARENT, last).await;
    assert_eq!(delete(admin, &[CHILD]).await, 0);
    assert_eq!(leased(&bench).await.item.messages, [asked_by(PARENT)], "the parent lives on");
    Verdict::Kept
}

async fn s17_a_start_that_outlives_a_deletion_wakes_a_waiting_fetch(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    leased(&bench).await;
    let call = bench.waiting_fetch(LEASE / 2).await;
    delete(admin, &[FIRST, CHILD]).await;
    let turn = bench.soon(call).await.expect("the start can be leased");
    assert_eq!(turn.item.messages, [asked_by(PARENT)]);
    Verdict::Kept
}

async fn s17_a_start_that_outlives_a_deletion_makes_its_instance_exist(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    taken(&bench).await;
    delete(admin, &[FIRST, CHILD]).await;
    assert_eq!(ok(store.start(start_of(CHILD).into(), Vec::new()).await), Started::Existing);
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s17_a_start_that_outlives_a_deletion_is_delayed_as_before(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let delay = Duration::from_secs(5);
    taken(&bench).await;
    let turn = leased(&bench).await;
    bench.abandon(&turn, Some(delay)).await;
    delete(admin, &[FIRST, CHILD]).await;
    bench.advance(delay - TICK);
    assert!(bench.fetch().await.is_none(), "the delay of the abandon lasts");
    bench.advance(TICK);
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s17_a_start_that_outlives_a_deletion_waits_since_then(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    need!(store.oldest_waiting().await.ok(), "oldest_waiting");
    taken(&bench).await;
    bench.advance(TICK * 5);
    delete(admin, &[FIRST, CHILD]).await;
    bench.advance(TICK * 5);
    let since = DAWN_MS + (TICK * 5).as_millis() as u64;
    let now_ms = DAWN_MS + (TICK * 10).as_millis() as u64;
    let waiting = OldestWaiting { message_ms: Some(since), work_ms: None, now_ms };
    assert_eq!(ok(store.oldest_waiting().await), waiting, "the new instance can be leased since then");
    Verdict::Kept
}

async fn s17_the_start_of_a_client_goes_with_its_instance(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun(CHILD).await;
    bench.begun(PARENT).await;
    bench.send(start_of(CHILD)).await;
    bench.send(asked_by(PARENT)).await;
    assert_eq!(delete(admin, &[CHILD]).await, 2, "no turn has sent them");
    is_gone(&bench, admin).await;
    Verdict::Kept
}

async fn s17_the_start_of_a_client_goes_although_that_of_a_parent_stays(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    bench.send(start_of(CHILD)).await;
    assert_eq!(delete(admin, &[FIRST, CHILD]).await, 1);
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s17_the_start_of_a_parent_that_is_deleted_too_goes_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    assert_eq!(delete(admin, &[CHILD, FIRST, PARENT]).await, 1);
    is_gone(&bench, admin).await;
    Verdict::Kept
}

async fn s17_the_start_of_a_parent_that_is_gone_goes_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    delete(admin, &[PARENT]).await;
    assert_eq!(delete(admin, &[CHILD]).await, 1, "no parent waits for it");
    is_gone(&bench, admin).await;
    Verdict::Kept
}

async fn s17_the_start_of_a_parent_that_has_ended_goes_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun(CHILD).await;
    bench.begin(PARENT, Commit::default().message(asked_by(PARENT)).complete(PARENT, 3, "output")).await;
    assert_eq!(delete(admin, &[CHILD]).await, 1, "no parent waits for it");
    is_gone(&bench, admin).await;
    Verdict::Kept
}

async fn s17_the_start_of_a_former_life_of_its_parent_goes_along(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    taken(&bench).await;
    let turn = leased(&bench).await;
    delete(admin, &[PARENT]).await;
    bench.begun(PARENT).await;
    assert_eq!(delete(admin, &[CHILD]).await, 1, "the parent of today did not send it");
    lost(bench.try_commit(&turn, Commit::default()).await);
    is_gone(&bench, admin).await;
    Verdict::Kept
}

async fn s5_a_lease_that_a_deletion_ended_counts_until_it_is_excused(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    taken(&bench).await;
    let turn = leased(&bench).await;
    delete(admin, &[FIRST, CHILD]).await;
    let ended = LeaseToken::Turn(turn.token);
    assert!(ok(store.excuse(&ended).await), "the deletion has ended the lease");
    assert!(!ok(store.excuse(&ended).await), "it was excused before");
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn s5_an_expired_delivery_can_be_excused_after_a_deletion(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    taken(&bench).await;
    let first = LeaseToken::Turn(leased(&bench).await.token);
    bench.advance(LEASE);
    let second = LeaseToken::Turn(leased(&bench).await.token);
    bench.advance(LEASE);
    delete(admin, &[FIRST, CHILD]).await;
    assert!(ok(store.excuse(&first).await), "it expired, and another fetch replaced it");
    assert!(ok(store.excuse(&second).await), "it expired, and the deletion ended it");
    gets_its_child(&bench, admin, 1).await;
    Verdict::Kept
}

async fn api_a_child_that_another_parent_asks_for_is_not_deleted_in_bulk(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.begin(FIRST, Commit::default().message(asked_by(FIRST)).complete(FIRST, 3, "output")).await;
    let turn = leased(&bench).await;
    bench.commit(&turn, Commit::started(CHILD).parent(FIRST).complete(CHILD, 2, "output")).await;
    asks(&bench, PARENT).await;
    bench.advance(TICK);
    assert!(admin.delete_instance(FIRST, false).await.is_err(), "its tree is asked for");
    assert_eq!(ok(admin.delete_instance_bulk(InstanceFilter::default()).await).instances_deleted, 0);
    assert_eq!(ok(store.delete_ended(Duration::ZERO, 10).await).instances_deleted, 0);
    assert_eq!(leased(&bench).await.item.messages, [asked_by(PARENT)], "the start is still there");
    Verdict::Kept
}
