//! G6: what is left of rows that cannot be read or removed, and the clean-up that goes past them.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_store::{Abandon, Attempt, MAX_UNREADABLE_ATTEMPTS, Store, UNREADABLE_RETRY};

use super::row::{Torn, big_activity, try_turn, try_work};
use super::{PAGE, begin, big, close, tear_leaf};
use crate::stage::{LONG, raw, start_with};

/// Longer than an ended lease waits for the clean-up.
const LATER: Duration = Duration::from_secs(20 * 60);

fn count(file: &Torn, sql: &str) -> i64 {
    raw(&file.path).query_row(sql, [], |row| row.get(0)).expect("it counts")
}

/// A lease that ended without its holder is remembered as long as its row is there.
#[tokio::test]
async fn g6_the_clean_up_of_ended_leases_goes_past_a_torn_row() {
    for is_work in [false, true] {
        let file = Torn::new();
        let store = file.open().await;
        begin(&store, "torn", String::new()).await;
        let mut work = big_activity("torn", 2, None);
        if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
            *input = "leaf torn".to_owned();
        }
        let (instance, name, data) = ("torn".to_owned(), "poke".to_owned(), "leaf torn".to_owned());
        if is_work {
            store.enqueue_work(work).await.expect("it is queued");
        } else {
            store
                .send(vec![WorkItem::ExternalRaised { instance, name, data }.into()])
                .await
                .expect("it is sent");
        }
        let how = Abandon { retry_after: Some(100 * LATER), attempt: Attempt::Counts };
        let lease = async || {
            let (turn, work) = (try_turn(&store).await, try_work(&store).await);
            turn.map(|lease| lease.token).or(work.map(|lease| lease.token)).expect("one of them is ready")
        };
        lease().await;
        file.clock.advance(3 * LONG);
        store.abandon(&lease().await, how).await.expect("the next lease is given back");
        assert_eq!(count(&file, "SELECT count(*) FROM ended_leases"), 1);
        close(store).await;
        tear_leaf(&file.path, "leaf torn");
        let store = file.open().await;
        file.clock.advance(LATER);
        for _ in 0..2 {
            store.cleanup_sessions().await.expect("it cleans up");
            file.clock.advance(LATER);
        }
        assert_eq!(count(&file, "SELECT count(*) FROM ended_leases"), 0, "it is forgotten");
    }
}

#[tokio::test]
async fn g6_a_session_whose_instance_has_only_a_start_that_was_given_up_is_cleaned_up() {
    let file = Torn::new();
    let store = file.open().await;
    store.start(start_with("torn", big()).into(), Vec::new()).await.expect("it is started");
    let store = file.tear(store).await;
    raw(&file.path)
        .execute("INSERT INTO sessions (instance, session_id, is_row) VALUES ('torn', 's', 1)", [])
        .expect("a session");
    assert!(try_turn(&store).await.is_none());
    assert_eq!(store.cleanup_sessions().await.expect("it cleans up"), 0, "its start may be read yet");
    file.wait_for_set_aside(&store).await;
    assert_eq!(store.cleanup_sessions().await.expect("it cleans up"), 1);
}

#[tokio::test]
async fn g6_ids_of_strays_that_could_not_be_removed_are_forgotten() {
    let file = Torn::new();
    let store = file.open().await;
    for number in 0..40 {
        let (instance, name) = (format!("unknown-{number}"), "poke".to_owned());
        let data = format!("leaf {number:02} {}", "x".repeat(PAGE / 4));
        let item = WorkItem::ExternalRaised { instance, name, data };
        store.send(vec![item.into()]).await.expect("it is sent");
    }
    close(store).await;
    tear_leaf(&file.path, "leaf 10 ");
    let store = file.open().await;
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        assert!(try_turn(&store).await.is_none());
        file.clock.advance(UNREADABLE_RETRY);
    }
    assert!(count(&file, "SELECT count(*) FROM torn_messages WHERE attempts = 0") > 0, "some were given up");
    let aside = store.set_aside(None).await.expect("it lists");
    let left = count(&file, "SELECT count(*) FROM instances WHERE instance LIKE 'unknown-%'");
    assert_eq!(usize::try_from(left), Ok(aside.len()), "those that were set aside can be tried again");
}
