//! What the tests of pages that cannot be read share: finding a page by a text on it, and fetching.

use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Cold, Owner, SessionRequest, SessionScope, Store, TurnRequest, WorkLease, WorkRequest,
};

use crate::chain::LEASE;
use crate::machine::{FILE, Machine};

pub(crate) const PAGE: usize = 4096;

/// A text of which three rows fill a page.
pub(crate) fn long_input(number: usize) -> String {
    format!("leaf {number:03} {}", "x".repeat(PAGE / 4))
}

/// Closes a store. All that it has stored is in the file, and none of it in the log.
pub(crate) async fn close(store: SqliteProvider) {
    store.checkpoint().await.expect("the log is written back");
    drop(store);
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

/// The leaves of tables that have one of some texts.
pub(crate) fn leaves_with(machine: &Machine, texts: &[&str]) -> Vec<usize> {
    let bytes = machine.disk.bytes(FILE).expect("the file");
    let has = |page: &[u8]| {
        texts.iter().any(|text| page.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    let pages = bytes.chunks_exact(PAGE).enumerate().filter(|(_, page)| page[0] == 0x0d && has(page));
    pages.map(|(page, _)| page * PAGE).collect()
}

pub(crate) fn turn_request(lock_timeout: Duration) -> TurnRequest<'static> {
    TurnRequest { lock_timeout, poll_timeout: Duration::ZERO, filter: None, warm: &Cold, worker: None }
}

/// A request for work of all tags and sessions.
pub(crate) fn work_request(lock_timeout: Duration) -> WorkRequest {
    let session = SessionRequest {
        owner: Owner::unnamed("worker"),
        lock_timeout,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    WorkRequest {
        worker_id: "worker".into(),
        lock_timeout,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Any,
        session: Some(session),
        worker: None,
    }
}

/// Fetches work with a lease that outlasts the test.
pub(crate) async fn work(store: &SqliteProvider) -> Option<WorkLease> {
    store.fetch_work(work_request(1_000 * LEASE)).await.expect("no fetch fails")
}
