//! G6: a lease that ends by itself on a torn leaf, which not even an index entry of the row leads past.

use steadfast_core::WorkItem;
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{Envelope, Queue, Store};

use super::row::{Torn, assert_torn, try_turn, try_work};
use super::{PAGE, begin, close, fetched, tear_leaf};
use crate::stage::{LONG, activity, raw, start};

/// As long as four of them fill a leaf.
fn filler(name: &str) -> String {
    format!("leaf {name} {}", "x".repeat(PAGE / 4))
}

/// Sends a message that stands on a leaf with others, which come much later.
async fn send_on_leaf(store: &SqliteProvider, instance: &str) {
    for (number, delay) in (0..40).map(|number| (number, (number > 0).then_some(100 * LONG))) {
        let to = if number == 0 { instance.to_owned() } else { format!("later-{number}") };
        let (name, data) = ("poke".to_owned(), filler(&to));
        let item = WorkItem::ExternalRaised { instance: to, name, data };
        store.send(vec![Envelope { delay, ..item.into() }]).await.expect("it is sent");
    }
}

/// Moves the ends of all leases beyond what a lease can have, as a clock does that is set back.
const FAR_AHEAD: &str = "UPDATE instances SET locked_until = locked_until + 1000000000000 WHERE turn = 2;
                         UPDATE work SET locked_until = locked_until + 1000000000000 WHERE state = 2";

#[tokio::test]
async fn g6_a_turn_lease_that_ends_by_itself_on_a_torn_leaf_is_in_the_way_of_no_other() {
    for is_impossible in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "torn", String::new()).await;
        send_on_leaf(&store, "torn").await;
        let lease = fetched(&store).await;
        assert_eq!(lease.instance, "torn");
        close(store).await;
        if is_impossible {
            raw(&file.path).execute_batch(FAR_AHEAD).expect("they are changed");
        }
        tear_leaf(&file.path, "leaf torn ");
        let store = file.open().await;
        if !is_impossible {
            store.start(start("other").into(), Vec::new()).await.expect("it is started");
            file.clock.advance(3 * LONG);
            assert!(!store.excuse(&lease.token).await.expect("it answers"), "it cannot be counted");
            assert_eq!(fetched(&store).await.instance, "other");
        }
        let aside = file.wait_for_set_aside(&store).await;
        assert!(aside.iter().any(|row| row.instance.as_deref() == Some("torn")), "{aside:?}");
    }
}

#[tokio::test]
async fn g6_a_work_lease_that_ends_by_itself_on_a_torn_leaf_is_in_the_way_of_no_other() {
    for is_impossible in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        let mut work = activity("torn", 2, None, None);
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = filler("torn");
        }
        store.enqueue_work(work).await.expect("it is queued");
        assert!(try_work(&store).await.is_some());
        close(store).await;
        if is_impossible {
            raw(&file.path).execute_batch(FAR_AHEAD).expect("they are changed");
        }
        tear_leaf(&file.path, "leaf torn ");
        let store = file.open().await;
        file.clock.advance(3 * LONG);
        assert!(try_work(&store).await.is_none());
        assert!(try_turn(&store).await.is_none());
        assert_torn(&file.wait_for_set_aside(&store).await, Queue::Worker, None);
    }
}
