//! G6: leases that are live while the page of their activity is torn.

use std::sync::Arc;

use steadfast_core::{ScheduledActivityIdentifier, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Abandon, Attempt, MAX_UNREADABLE_ATTEMPTS, Outcome, ProviderErrorKind, Queue, Store, TurnCommit,
    UNREADABLE_RETRY, WorkLease,
};

use super::row::{Torn, assert_torn, big_activity, try_work};
use super::{PAGE, begin, close, fetched, poke, tear, tear_leaf};
use crate::stage::{LONG, completion, refusal};

/// A file with a leased activity, whose text is torn, or all of its row.
async fn leased(file: &Torn, is_leaf: bool, session: Option<&str>) -> (Arc<SqliteProvider>, WorkLease) {
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    let mut work = big_activity("torn", 2, session);
    if let (true, WorkItem::ActivityExecute { input, .. }) = (is_leaf, &mut work.item) {
        *input = format!("leaf torn {}", "x".repeat(PAGE / 4));
    }
    store.enqueue_work(work).await.expect("it is queued");
    let lease = try_work(&store).await.expect("it is ready");
    close(store).await;
    if is_leaf {
        tear_leaf(&file.path, "leaf torn ")
    } else {
        tear(&file.path)
    }
    (file.open().await, lease)
}

#[tokio::test]
async fn g6_a_leased_activity_whose_page_is_torn_is_finished_once() {
    for (is_leaf, session) in [(false, None), (true, None), (false, Some("s")), (true, Some("s"))] {
        let file = Torn::new();
        let (store, lease) = leased(&file, is_leaf, session).await;
        let outcome = || Outcome { completion: Some(completion("torn", 2).into()) };
        store.finish_work(&lease.token, outcome()).await.expect("it ends");
        let again = store.finish_work(&lease.token, outcome()).await.expect_err("it has ended");
        assert_eq!(again.kind, ProviderErrorKind::LeaseLost);
        assert_eq!(fetched(&store).await.messages.len(), 1, "its completion is sent once");
        file.clock.advance(3 * LONG);
        assert!(try_work(&store).await.is_none());
        assert_eq!(store.set_aside(None).await.expect("it lists"), [], "it is done");
    }
}

#[tokio::test]
async fn g6_a_leased_activity_whose_page_is_torn_is_not_set_aside_while_its_lease_is_renewed() {
    for is_leaf in [false, true] {
        let file = Torn::new();
        let (store, lease) = leased(&file, is_leaf, None).await;
        for _ in 0..2 * MAX_UNREADABLE_ATTEMPTS {
            store.renew(&lease.token, 2 * UNREADABLE_RETRY).await.expect("it is renewed");
            file.clock.advance(UNREADABLE_RETRY);
            assert!(try_work(&store).await.is_none());
        }
        assert_eq!(store.set_aside(None).await.expect("it lists"), []);
        store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    }
}

#[tokio::test]
async fn g6_a_leased_activity_whose_page_is_torn_can_be_abandoned_and_refused() {
    for (is_leaf, is_refused) in [(false, false), (true, false), (false, true), (true, true)] {
        let file = Torn::new();
        let (store, lease) = leased(&file, is_leaf, None).await;
        if is_refused {
            let refused = store.refuse(&lease.token, refusal("Step", None)).await.expect_err("it is torn");
            assert_eq!(refused.kind, ProviderErrorKind::LeaseLost);
        } else {
            let how = Abandon { retry_after: None, attempt: Attempt::Counts };
            store.abandon(&lease.token, how).await.expect("it is abandoned");
        }
        let instance = (!is_leaf).then_some("torn");
        assert_torn(&file.wait_for_set_aside(&store).await, Queue::Worker, instance);
    }
}

#[tokio::test]
async fn g6_a_leased_activity_on_a_torn_leaf_can_be_withdrawn() {
    let file = Torn::new();
    let (store, lease) = leased(&file, true, None).await;
    poke(&store, "torn").await;
    let turn = fetched(&store).await;
    let instance = "torn".to_owned();
    let cancelled = vec![ScheduledActivityIdentifier { instance, execution_id: 1, activity_id: 2 }];
    let commit = TurnCommit { cancelled, ..TurnCommit::empty(1) };
    store.commit_turn(&turn.token, commit).await.expect("it is withdrawn");
    let renewed = store.renew(&lease.token, LONG).await.expect_err("it is gone");
    assert_eq!(renewed.kind, ProviderErrorKind::LeaseLost);
    file.clock.advance(3 * LONG);
    assert!(try_work(&store).await.is_none());
    assert_eq!(store.set_aside(None).await.expect("it lists"), [], "it is not wanted");
}
