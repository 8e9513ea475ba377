//! G6: timers that the code does not await any more, on a torn leaf.

use steadfast_core::WorkItem;
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{Envelope, MAX_UNREADABLE_ATTEMPTS, Message, Store, TurnCommit, UNREADABLE_RETRY};

use super::row::{Torn, commit, try_turn};
use super::{PAGE, begin, close, fetched, poke, tear_leaf};
use crate::stage::LONG;

/// Fills the pages behind the messages that were sent before, with messages that come much later.
async fn fill(store: &SqliteProvider) {
    for number in 0..40 {
        let (instance, name) = (format!("later-{number}"), "poke".to_owned());
        let item = WorkItem::ExternalRaised { instance, name, data: "x".repeat(PAGE / 4) };
        let late = Envelope { delay: Some(100 * LONG), ..item.into() };
        store.send(vec![late]).await.expect("it is sent");
    }
}

#[tokio::test]
async fn g6_a_turn_can_drop_a_timer_that_stands_on_a_torn_leaf() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    let fire_at_ms = 1_700_000_000_000 + 10 * 60_000;
    let timer = WorkItem::TimerFired { instance: "torn".to_owned(), execution_id: 1, id: 2, fire_at_ms };
    let messages = vec![Message::from(timer.clone())];
    store
        .commit_turn(&lease.token, TurnCommit { messages, ..TurnCommit::empty(1) })
        .await
        .expect("it is committed");
    fill(&store).await;
    close(store).await;
    tear_leaf(&file.path, "TimerFired");
    let store = file.open().await;
    for _ in 0..2 {
        poke(&store, "torn").await;
        let lease = fetched(&store).await;
        let dropped_timers = vec![timer.clone()];
        let commit = TurnCommit { dropped_timers, ..TurnCommit::empty(1) };
        store.commit_turn(&lease.token, commit).await.expect("it is committed");
    }
}

#[tokio::test]
async fn g6_an_instance_with_a_message_on_a_torn_leaf_can_be_inspected_when_the_message_is_listed() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    let (instance, name) = ("torn".to_owned(), "poke".to_owned());
    let item = WorkItem::ExternalRaised { instance, name, data: format!("torn {}", "x".repeat(PAGE / 4)) };
    store.send(vec![item.into()]).await.expect("it is sent");
    fill(&store).await;
    close(store).await;
    tear_leaf(&file.path, "torn xxx");
    let store = file.open().await;
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        assert!(try_turn(&store).await.is_none());
        let turns = store.turn_of("torn").await.expect("it reads").expect("it exists");
        assert_eq!((turns.waiting, turns.delayed, turns.dropped_timers.len()), (0, 0, 0));
        file.clock.advance(UNREADABLE_RETRY);
    }
    assert!(!store.set_aside(None).await.expect("it lists").is_empty());
    poke(&store, "torn").await;
    commit(&store, &fetched(&store).await).await;
}
