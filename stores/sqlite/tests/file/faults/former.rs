//! G7: what an older build leaves of a deleted parent is told apart when it is leased.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_sqlite::SqliteOptions;
use steadfast_store::{Store, TurnCommit};

use crate::stage::{LONG, event, named, open, place, raw, start, start_with, started, turn_request};

fn child_start(input: &str) -> WorkItem {
    let mut start = start_with("child", input.to_owned());
    if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } = &mut start {
        (*parent_instance, *parent_id) = (Some("parent".to_owned()), Some(2));
        *parent_execution_id = Some(1);
    }
    start
}

#[tokio::test]
async fn a_start_that_outlived_its_parent_is_dropped_when_it_is_leased() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    for input in ["old", "new"] {
        store.start(start("parent").into(), Vec::new()).await.expect("it is started");
        let lease = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("it fetches");
        let lease = lease.expect("an instance is ready");
        let commit = TurnCommit {
            execution_id: 1,
            events: vec![event("parent", 1, None, started())],
            messages: vec![child_start(input).into()],
            metadata: named("Running"),
            ..TurnCommit::default()
        };
        if input == "new" {
            // The turn of the child must not come first.
            assert_eq!(lease.instance, "parent");
        }
        store.commit_turn(&lease.token, commit).await.expect("it is committed");
        if input == "old" {
            // An older build deletes the rows of the parent and leaves the start.
            let deletion = "DELETE FROM history; DELETE FROM executions;
                DELETE FROM instances WHERE instance = 'parent';
                UPDATE instances SET turn = 0, head = NULL";
            raw(&path).execute_batch(deletion).expect("the rows go");
        }
    }
    let child = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("it fetches");
    let child = child.expect("the child is ready");
    let items: Vec<_> = child.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(items, [child_start("new")]);
}

/// S17: such a start makes no instance exist, so it keeps none alive either.
#[tokio::test]
async fn g7_the_queued_start_of_a_former_life_does_not_keep_an_instance_from_being_deleted() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    store.start(start("child").into(), Vec::new()).await.expect("it is started");
    let lease = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("it fetches");
    let commit = TurnCommit { execution_id: 1, metadata: named("Completed"), ..TurnCommit::default() };
    store.commit_turn(&lease.expect("a lease").token, commit).await.expect("it ends");
    store.start(start("parent").into(), Vec::new()).await.expect("it is started");
    let lease = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("it fetches");
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![event("parent", 1, None, started())],
        messages: vec![child_start("old").into()],
        metadata: named("Running"),
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.expect("a lease").token, commit).await.expect("it is committed");
    let delete = async |id: &str, force| {
        let admin = store.admin().expect("it has an admin");
        admin.delete_instances_atomic(&[id.to_owned()], force).await
    };
    delete("child", false).await.expect_err("the start of its next life waits");
    delete("parent", true).await.expect("it is deleted");
    store.start(start("parent").into(), Vec::new()).await.expect("it is started anew");
    delete("child", false).await.expect("it has ended");
}
