//! G6: leases that are live while the page of their activity is torn.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{ScheduledActivityIdentifier, TagFilter, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Abandon, Attempt, MAX_UNREADABLE_ATTEMPTS, Outcome, ProviderErrorKind, Queue, Store, TurnCommit,
    UNREADABLE_RETRY, WorkLease,
};

use super::row::{Torn, assert_torn, big_activity, try_work};
use super::{PAGE, begin, big, close, fetched, poke, tear, tear_leaf};
use crate::stage::{LONG, activity, completion, raw, refusal, start, until, work_request};

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

/// The time jumps, and the live leases with it.
#[tokio::test]
async fn g6_a_file_with_a_live_lease_of_a_torn_activity_opens_by_a_clock_that_is_ahead() {
    for is_leaf in [false, true] {
        let file = Torn::new();
        let (store, lease) = leased(&file, is_leaf, None).await;
        drop(store);
        file.clock.set_wall_ms(1_700_000_000_000 + 5_000);
        let store = file.open().await;
        assert!(try_work(&store).await.is_none(), "its lease goes on");
        store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    }
}

#[tokio::test]
async fn g6_a_sleep_of_the_machine_while_a_torn_activity_is_leased_fails_no_call() {
    let file = Torn::new();
    let (store, lease) = leased(&file, true, None).await;
    file.clock.suspend(LONG);
    poke(&store, "torn").await;
    fetched(&store).await;
    store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
}

/// S5: requests share transactions, and one that meets a torn page takes the transaction of the others with
/// it.
#[tokio::test]
async fn g6_the_undo_of_a_dropped_fetch_survives_a_torn_page_that_its_transaction_meets() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "torn", big()).await;
    let store = file.tear(store).await;
    store.enqueue_work(activity("fine", 2, None, None)).await.expect("it is queued");
    let other = raw(&file.path);
    let count = |sql: &str| other.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("it counts");
    let mut fetch = Box::pin(store.fetch_work(work_request(Duration::ZERO, TagFilter::Any)));
    assert!(is_pending(&mut fetch));
    until("the work is leased", || count("SELECT count(*) FROM work WHERE state = 2") == 1).await;
    // The writer waits for this transaction, so that all that follows is in its next one, the undo before the
    // deletion, which meets the torn history.
    other.execute_batch("BEGIN IMMEDIATE").expect("it begins");
    let mut beside = Box::pin(store.start(start("other").into(), Vec::new()));
    assert!(is_pending(&mut beside));
    drop(fetch);
    let admin = store.admin().expect("it manages");
    let torn = ["torn".to_owned()];
    let mut deletion = admin.delete_instances_atomic(&torn, true);
    assert!(is_pending(&mut deletion));
    other.execute_batch("COMMIT").expect("it ends");
    let error = deletion.await.expect_err("the history is torn");
    assert_eq!(error.kind, ProviderErrorKind::Corrupt);
    assert!(beside.await.is_err_and(|error| error.is_retryable()), "they shared a transaction");
    let lease = try_work(&store).await.expect("the lease of the dropped fetch is undone");
    assert_eq!(lease.attempt, 1);
}

/// Polls once.
fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(future).poll(&mut context).is_pending()
}
