//! Lives: a start or an answer of a child belongs to the parent that it was made for, not to a later instance
//! of the same id (G7). A child goes on without its parent (F13).

use steadfast_core::{AppErrorKind, ErrorDetails, WorkItem};
use steadfast_store::{
    Cold, InstanceFilter, ProviderAdmin, QueueDepths, Started, Store, TurnLease, TurnRequest,
};

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, Turning, lost, ok, raise, start_of};
use crate::case::{cases, need};

cases![
    s17_the_start_of_a_child_goes_on_without_its_parent,
    s17_a_child_begins_without_its_parent_and_other_messages_reach_it,
    s17_the_start_of_a_child_is_not_handed_to_a_later_parent_of_the_same_id,
    s17_the_start_of_a_child_is_a_stray_when_a_parent_of_the_same_id_is_about_to_start,
    s17_the_start_of_a_deleted_parent_makes_its_child_exist,
    s17_the_start_of_a_former_parent_makes_no_instance_exist,
    s17_the_first_turn_of_a_child_outlives_its_parent,
    s17_the_first_turn_of_a_child_is_lost_when_its_parent_was_started_anew,
    s17_other_messages_of_a_child_that_never_began_are_strays,
    s17_an_answer_to_a_former_parent_is_a_stray,
    s17_an_answer_to_a_former_parent_does_not_reach_one_that_is_about_to_start,
    s17_an_answer_of_a_child_that_began_without_its_parent_is_a_stray,
    s17_an_answer_of_a_child_reaches_its_parent,
    s17_an_answer_reaches_a_parent_that_continued_as_new,
    s17_an_answer_of_a_child_that_continued_as_new_reaches_its_parent,
    s17_a_start_reaches_the_child_of_a_parent_that_continued_as_new,
    s17_a_refusal_of_a_start_reaches_the_parent_that_sent_it,
    s17_a_detached_start_outlives_its_sender,
    s17_a_start_that_meets_the_child_of_a_former_parent_is_told_apart,
    s17_a_start_that_meets_another_instance_is_no_rival,
    api_a_parent_whose_child_is_about_to_start_is_deleted_without_force,
    api_bulk_deletion_takes_a_parent_whose_child_is_about_to_start,
];

const PARENT: &str = "parent";
const CHILD: &str = "child";

/// The start of the child, as a turn of the parent sends it.
fn child_start(text: &str) -> WorkItem {
    let mut start = start_of(CHILD);
    if let WorkItem::StartOrchestration { input, parent_instance, parent_id, parent_execution_id, .. } =
        &mut start
    {
        text.clone_into(input);
        (*parent_instance, *parent_id) = (Some(PARENT.to_owned()), Some(2));
        *parent_execution_id = Some(1);
    }
    start
}

fn completed() -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: PARENT.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "done".to_owned(),
    }
}

fn failed() -> WorkItem {
    let (kind, message) = (AppErrorKind::OrchestrationFailed, "already exists".to_owned());
    WorkItem::SubOrchFailed {
        parent_instance: PARENT.to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        details: ErrorDetails::Application { kind, message, retryable: false },
    }
}

/// Begins a parent whose first turn starts the child.
async fn parent_with_child(bench: &Bench, input: &str) {
    bench.begin(PARENT, Commit::default().message(child_start(input))).await;
}

/// Leases the turn of an instance, which must be the next.
async fn leased(bench: &Bench, instance: &str) -> Turning {
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, instance, "that instance should be next");
    turn
}

/// Leases the start of the child and commits its first turn.
async fn child_begins(bench: &Bench) {
    let turn = leased(bench, CHILD).await;
    bench.commit(&turn, Commit::started(CHILD).parent(PARENT)).await;
}

/// Commits a turn of the child that sends an answer.
async fn child_answers(bench: &Bench, answer: WorkItem) {
    bench.send(raise(CHILD, "go on")).await;
    let turn = leased(bench, CHILD).await;
    bench.commit(&turn, Commit::default().message(answer)).await;
}

async fn delete(admin: &dyn ProviderAdmin, instance: &str) {
    ok(admin.delete_instances_atomic(&[instance.to_owned()], true).await);
}

async fn s17_the_start_of_a_child_goes_on_without_its_parent(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    let turn = leased(&bench, CHILD).await;
    assert_eq!(turn.item.messages, [child_start("old")]);
    bench.commit(&turn, Commit::started(CHILD).parent(PARENT)).await;
    assert_eq!(ok(admin.list_instances().await), [CHILD]);
    Verdict::Kept
}

async fn s17_a_child_begins_without_its_parent_and_other_messages_reach_it(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    bench.send(raise(CHILD, "1")).await;
    delete(admin, PARENT).await;
    assert_eq!(leased(&bench, CHILD).await.item.messages, [child_start("old"), raise(CHILD, "1")]);
    Verdict::Kept
}

async fn s17_the_start_of_a_child_is_not_handed_to_a_later_parent_of_the_same_id(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    parent_with_child(&bench, "new").await;
    assert_eq!(leased(&bench, CHILD).await.item.messages, [child_start("new")]);
    Verdict::Kept
}

async fn s17_the_start_of_a_child_is_a_stray_when_a_parent_of_the_same_id_is_about_to_start(
    bench: Bench,
) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    bench.start(PARENT).await;
    let turn = leased(&bench, PARENT).await;
    assert!(bench.fetch().await.is_none(), "the start is of the former parent");
    bench.commit(&turn, Commit::started(PARENT)).await;
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default());
    Verdict::Kept
}

async fn s17_the_start_of_a_deleted_parent_makes_its_child_exist(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    assert_eq!(ok(store.start(start_of(CHILD).into(), Vec::new()).await), Started::Existing);
    assert_eq!(leased(&bench, CHILD).await.item.messages, [child_start("old")]);
    Verdict::Kept
}

async fn s17_the_start_of_a_former_parent_makes_no_instance_exist(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    bench.start(PARENT).await;
    assert_eq!(ok(store.start(start_of(CHILD).into(), Vec::new()).await), Started::New);
    let mut handed_out = [bench.fetched().await.item.messages, bench.fetched().await.item.messages].concat();
    handed_out.sort_by_key(|item| item.instance().to_owned());
    assert_eq!(handed_out, [start_of(CHILD), start_of(PARENT)]);
    Verdict::Kept
}

async fn s17_the_first_turn_of_a_child_outlives_its_parent(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    let turn = leased(&bench, CHILD).await;
    delete(admin, PARENT).await;
    bench.commit(&turn, Commit::started(CHILD).parent(PARENT)).await;
    assert_eq!(ok(admin.list_instances().await), [CHILD]);
    Verdict::Kept
}

async fn s17_the_first_turn_of_a_child_is_lost_when_its_parent_was_started_anew(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    let turn = leased(&bench, CHILD).await;
    delete(admin, PARENT).await;
    bench.begun(PARENT).await;
    lost(bench.try_commit(&turn, Commit::started(CHILD).parent(PARENT)).await);
    bench.advance(LEASE + TICK);
    assert!(bench.fetch().await.is_none(), "the start is of the former parent");
    assert_eq!(ok(admin.list_instances().await), [PARENT], "the child never began");
    Verdict::Kept
}

async fn s17_other_messages_of_a_child_that_never_began_are_strays(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    bench.send(raise(CHILD, "1")).await;
    delete(admin, PARENT).await;
    bench.begun(PARENT).await;
    assert!(bench.fetch().await.is_none(), "there is no such instance");
    assert_eq!(ok(admin.get_queue_depths().await), QueueDepths::default());
    Verdict::Kept
}

/// Leases a turn of another instance of the child's id, with the start of a parent that is then deleted.
async fn taken_id(bench: &Bench, admin: &dyn ProviderAdmin) -> Turning {
    bench.begun(CHILD).await;
    parent_with_child(bench, "old").await;
    let turn = leased(bench, CHILD).await;
    assert_eq!(turn.item.messages, [child_start("old")]);
    delete(admin, PARENT).await;
    turn
}

async fn s17_an_answer_to_a_former_parent_is_a_stray(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = taken_id(&bench, admin).await;
    bench.begun(PARENT).await;
    bench.commit(&turn, Commit::default().message(failed())).await;
    assert!(bench.fetch().await.is_none(), "the answer is for the parent that was deleted");
    bench.send(raise(PARENT, "1")).await;
    assert_eq!(leased(&bench, PARENT).await.item.messages, [raise(PARENT, "1")], "it is gone for good");
    Verdict::Kept
}

async fn s17_an_answer_to_a_former_parent_does_not_reach_one_that_is_about_to_start(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let turn = taken_id(&bench, admin).await;
    bench.start(PARENT).await;
    bench.commit(&turn, Commit::default().message(failed())).await;
    assert_eq!(leased(&bench, PARENT).await.item.messages, [start_of(PARENT)]);
    Verdict::Kept
}

async fn s17_an_answer_of_a_child_that_began_without_its_parent_is_a_stray(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    child_begins(&bench).await;
    bench.begun(PARENT).await;
    child_answers(&bench, completed()).await;
    assert!(bench.fetch().await.is_none(), "the answer is for the parent that was deleted");
    Verdict::Kept
}

async fn s17_an_answer_of_a_child_reaches_its_parent(bench: Bench) {
    parent_with_child(&bench, "input").await;
    child_begins(&bench).await;
    child_answers(&bench, completed()).await;
    assert_eq!(leased(&bench, PARENT).await.item.messages, [completed()]);
}

/// Lets an instance continue as new and begin its next execution.
async fn continues(bench: &Bench, instance: &str, parent: Option<&str>) {
    bench.send(raise(instance, "go on")).await;
    let turn = leased(bench, instance).await;
    bench.commit(&turn, Commit::default().continue_as_new(instance, 5)).await;
    let turn = leased(bench, instance).await;
    let mut commit = Commit::continued(instance, 2);
    commit.metadata.parent_instance_id = parent.map(str::to_owned);
    bench.commit(&turn, commit).await;
}

async fn s17_an_answer_reaches_a_parent_that_continued_as_new(bench: Bench) {
    parent_with_child(&bench, "input").await;
    child_begins(&bench).await;
    continues(&bench, PARENT, None).await;
    child_answers(&bench, completed()).await;
    let turn = leased(&bench, PARENT).await;
    assert_eq!(turn.item.messages, [completed()], "the runtime decides what a later execution does with it");
}

async fn s17_an_answer_of_a_child_that_continued_as_new_reaches_its_parent(bench: Bench) {
    parent_with_child(&bench, "input").await;
    child_begins(&bench).await;
    continues(&bench, CHILD, Some(PARENT)).await;
    bench.send(raise(CHILD, "go on")).await;
    let turn = leased(&bench, CHILD).await;
    let answer = Commit { execution_id: 2, ..Commit::default() };
    bench.commit(&turn, answer.message(completed())).await;
    assert_eq!(leased(&bench, PARENT).await.item.messages, [completed()]);
}

async fn s17_a_start_reaches_the_child_of_a_parent_that_continued_as_new(bench: Bench) {
    let turn = bench.leased(PARENT).await;
    let last = Commit::default().message(child_start("input")).continue_as_new(PARENT, 5);
    bench.commit(&turn, last).await;
    let turn = leased(&bench, CHILD).await;
    assert_eq!(turn.item.messages, [child_start("input")], "the parent is the same");
    bench.abandon(&turn, None).await;
    // The next execution of the parent begins before the child's first turn.
    let child = leased(&bench, CHILD).await;
    let parent = leased(&bench, PARENT).await;
    bench.commit(&parent, Commit::continued(PARENT, 2)).await;
    bench.abandon(&child, None).await;
    assert_eq!(leased(&bench, CHILD).await.item.messages, [child_start("input")]);
}

async fn s17_a_refusal_of_a_start_reaches_the_parent_that_sent_it(bench: Bench) {
    bench.begun(CHILD).await;
    parent_with_child(&bench, "input").await;
    let turn = leased(&bench, CHILD).await;
    bench.commit(&turn, Commit::default().message(failed())).await;
    assert_eq!(leased(&bench, PARENT).await.item.messages, [failed()]);
}

async fn s17_a_detached_start_outlives_its_sender(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begin(PARENT, Commit::default().message(start_of("detached"))).await;
    delete(admin, PARENT).await;
    assert_eq!(leased(&bench, "detached").await.item.messages, [start_of("detached")]);
    Verdict::Kept
}

/// Leases the next turn with all that a lease tells.
async fn leased_whole(store: &dyn Store) -> TurnLease {
    let (poll_timeout, filter, worker) = (std::time::Duration::ZERO, None, None);
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter, warm: &Cold, worker };
    ok(store.fetch_turn(request).await).expect("an instance should be ready")
}

async fn s17_a_start_that_meets_the_child_of_a_former_parent_is_told_apart(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let store = need!(bench.store(), "Store");
    parent_with_child(&bench, "old").await;
    delete(admin, PARENT).await;
    child_begins(&bench).await;
    parent_with_child(&bench, "new").await;
    bench.send(raise(CHILD, "1")).await;
    let lease = leased_whole(store).await;
    let items: Vec<WorkItem> = lease.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(items, [child_start("new"), raise(CHILD, "1")]);
    assert_eq!(lease.rival_starts, [0], "the child belongs to the former parent");
    Verdict::Kept
}

async fn s17_a_start_that_meets_another_instance_is_no_rival(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    // No parent started the instance, so there is no life to compare.
    bench.begun(CHILD).await;
    parent_with_child(&bench, "new").await;
    assert_eq!(leased_whole(store).await.rival_starts, [] as [usize; 0]);
    Verdict::Kept
}

async fn api_a_parent_whose_child_is_about_to_start_is_deleted_without_force(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let last = Commit::default().message(child_start("input")).complete(PARENT, 3, "output");
    bench.begin(PARENT, last).await;
    let deleted = ok(admin.delete_instances_atomic(&[PARENT.to_owned()], false).await);
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 0));
    child_begins(&bench).await;
    assert_eq!(ok(admin.list_instances().await), [CHILD], "the child goes on");
    Verdict::Kept
}

async fn api_bulk_deletion_takes_a_parent_whose_child_is_about_to_start(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let last = Commit::default().message(child_start("input")).complete(PARENT, 3, "output");
    bench.begin(PARENT, last).await;
    let deleted = ok(admin.delete_instance_bulk(InstanceFilter::default()).await);
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 0));
    child_begins(&bench).await;
    assert_eq!(ok(admin.list_instances().await), [CHILD], "the child goes on");
    Verdict::Kept
}
