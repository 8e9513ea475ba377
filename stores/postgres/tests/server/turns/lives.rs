//! Lives of parents (S17): what belongs to a call of a parent that was deleted is a stray for a new parent of
//! the same id. Without one, the child goes on (F13).

use std::time::Duration;

use steadfast_core::{AppErrorKind, ErrorDetails, Event, EventKind, ExecutionMetadata, WorkItem};
use steadfast_postgres::PostgresProvider;
use steadfast_store::{ProviderAdmin, ProviderErrorKind, Started, Store, TurnCommit, TurnLease};

use super::{fetch, start, store};
use crate::{connect, number, quiet, server, start_of};

/// The start of child `c` by the second event of parent `p`.
fn child() -> WorkItem {
    let mut start = start_of("c");
    if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } = &mut start {
        *parent_instance = Some("p".to_owned());
        *parent_id = Some(2);
        *parent_execution_id = Some(1);
    }
    start
}

/// The answer to that start.
fn answer() -> WorkItem {
    let kind = AppErrorKind::OrchestrationFailed;
    WorkItem::SubOrchFailed {
        parent_instance: "p".to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        details: ErrorDetails::Application { kind, message: "exists".to_owned(), retryable: false },
    }
}

/// The first turn of an instance, with what it sends.
fn turn(lease: &TurnLease, parent: Option<&str>, sent: Vec<WorkItem>) -> TurnCommit {
    let custom = EventKind::CustomStatusUpdated { status: None };
    TurnCommit {
        execution_id: lease.execution_id,
        events: vec![Event::at(1, lease.last_event_id + 1, lease.instance.clone(), 1, None, custom)],
        messages: sent.into_iter().map(Into::into).collect(),
        metadata: ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            parent_instance_id: parent.map(str::to_owned),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

async fn lease(store: &PostgresProvider, instance: &str) -> TurnLease {
    let lease = fetch(store, Duration::ZERO).await.expect("an instance is ready");
    assert_eq!(lease.instance, instance);
    lease
}

/// Starts the parent, whose first turn starts the child.
async fn with_child(store: &PostgresProvider) {
    start(store, "p").await;
    let parent = lease(store, "p").await;
    store.commit_turn(&parent.token, turn(&parent, None, vec![child()])).await.unwrap();
}

#[tokio::test]
async fn g7_the_queued_start_of_a_child_is_a_stray_when_its_parent_was_started_anew() {
    let schema = server().schema("child_start");
    let store = store(schema.name(), quiet()).await;
    with_child(&store).await;
    store.delete_instance("p", true).await.unwrap();
    // It does not keep the id from being used, and does not run beside the new parent.
    start(&store, "p").await;
    let parent = lease(&store, "p").await;
    assert!(fetch(&store, Duration::ZERO).await.is_none(), "the child of the deleted parent");
    assert!(store.get_instance_info("c").await.is_err(), "the child was made");
    store.commit_turn(&parent.token, turn(&parent, None, vec![child()])).await.unwrap();
    lease(&store, "c").await;
    let left = "SELECT count(*) FROM {name}.orchestrator_queue WHERE instance_id = 'c'";
    assert_eq!(number(&connect(server().url()).await, left, schema.name()).await, 1);
}

#[tokio::test]
async fn g7_an_id_that_only_a_start_of_a_former_parent_names_can_be_started() {
    let schema = server().schema("former_id");
    let store = store(schema.name(), quiet()).await;
    with_child(&store).await;
    store.delete_instance("p", true).await.unwrap();
    start(&store, "p").await;
    assert_eq!(store.start(start_of("c").into(), Vec::new()).await.unwrap(), Started::New);
    lease(&store, "p").await;
    let child = lease(&store, "c").await;
    assert_eq!(child.messages.iter().map(|message| &message.item).collect::<Vec<_>>(), [&start_of("c")]);
}

#[tokio::test]
async fn g7_a_child_that_is_leased_while_its_parent_is_started_anew_is_not_made() {
    let schema = server().schema("leased_child");
    let store = store(schema.name(), quiet()).await;
    with_child(&store).await;
    let leased = lease(&store, "c").await;
    store.delete_instance("p", true).await.unwrap();
    start(&store, "p").await;
    let refused = store.commit_turn(&leased.token, turn(&leased, Some("p"), vec![answer()])).await;
    assert_eq!(refused.unwrap_err().kind, ProviderErrorKind::LeaseLost);
    assert!(store.get_instance_info("c").await.is_err(), "the child was made");
    let parent = lease(&store, "p").await;
    assert_eq!(parent.messages.len(), 1, "{:?}", parent.messages);
}

#[tokio::test]
async fn f13_a_child_goes_on_whose_parent_is_deleted_before_or_during_its_first_turn() {
    for is_leased in [false, true] {
        let schema = server().schema("orphan");
        let store = store(schema.name(), quiet()).await;
        with_child(&store).await;
        let early = if is_leased { Some(lease(&store, "c").await) } else { None };
        store.delete_instance("p", true).await.unwrap();
        let leased = match early {
            Some(leased) => leased,
            None => lease(&store, "c").await,
        };
        store.commit_turn(&leased.token, turn(&leased, Some("p"), vec![answer()])).await.unwrap();
        assert!(fetch(&store, Duration::ZERO).await.is_none(), "the answer is a stray");
        assert_eq!(store.get_instance_info("c").await.unwrap().instance_id, "c");
        let left = "SELECT count(*) FROM {name}.orchestrator_queue";
        assert_eq!(number(&connect(server().url()).await, left, schema.name()).await, 0);
    }
}

#[tokio::test]
async fn g7_the_answer_to_a_deleted_parent_is_a_stray_for_the_next_of_its_id() {
    let schema = server().schema("child_answer");
    let store = store(schema.name(), quiet()).await;
    start(&store, "c").await;
    let other = lease(&store, "c").await;
    store.commit_turn(&other.token, turn(&other, None, Vec::new())).await.unwrap();
    with_child(&store).await;
    // The start meets an instance that exists already: its parent is told, and is another one by then.
    let met = lease(&store, "c").await;
    store.delete_instance("p", true).await.unwrap();
    start(&store, "p").await;
    store.commit_turn(&met.token, turn(&met, None, vec![answer()])).await.unwrap();
    let parent = lease(&store, "p").await;
    assert_eq!(parent.messages.iter().map(|message| &message.item).collect::<Vec<_>>(), [&start_of("p")]);
}

#[tokio::test]
async fn g7_children_and_answers_of_a_parent_that_lives_on_are_delivered() {
    let schema = server().schema("living_parent");
    let store = store(schema.name(), quiet()).await;
    with_child(&store).await;
    let leased = lease(&store, "c").await;
    store.commit_turn(&leased.token, turn(&leased, Some("p"), Vec::new())).await.unwrap();
    let poke = |to: &str| WorkItem::CancelInstance { instance: to.to_owned(), reason: String::new() };
    store.send(vec![poke("c").into()]).await.unwrap();
    // The answer comes in a later turn than the start: the row of the child knows its parent's life.
    let leased = lease(&store, "c").await;
    store.commit_turn(&leased.token, turn(&leased, Some("p"), vec![answer()])).await.unwrap();
    let parent = lease(&store, "p").await;
    assert_eq!(parent.messages.iter().map(|message| &message.item).collect::<Vec<_>>(), [&answer()]);
    let lives = "SELECT count(*) FROM {name}.instances AS c JOIN {name}.instances AS p
                     ON p.instance_id = c.parent_instance_id AND p.ord = c.parent_life";
    assert_eq!(number(&connect(server().url()).await, lives, schema.name()).await, 1);
}
