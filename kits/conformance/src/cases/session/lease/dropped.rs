//! Fetches that are dropped before they returned: each takes its own claim back, and no claim that another
//! slot of the process uses (G9).

use std::pin::{Pin, pin};
use std::task::Poll;

use steadfast_core::SessionKey;
use steadfast_store::{ProviderError, WorkLease};

use crate::Verdict;
use crate::bench::{Bench, LEASE, ok};
use crate::case::{cases, need};
use crate::cases::session::{Desk, attachment, desk, renewal, request};

cases![
    s13_a_dropped_fetch_leaves_the_session_that_another_slot_serves,
    s13_a_dropped_fetch_leaves_the_session_that_another_slot_has_served,
    s13_a_dropped_fetch_leaves_no_claim_that_only_it_made,
];

/// Bounds the polls of a fetch before it is dropped: more than any store needs.
const MOST_POLLS: usize = 24;

/// Polls a call this often. Returns its answer if it has one.
async fn polled<F: Future>(mut call: Pin<&mut F>, polls: usize) -> Option<F::Output> {
    for _ in 0..polls {
        if let Poll::Ready(answer) =
            std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await
        {
            return Some(answer);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Finishes the work of a fetch that answered before it was dropped. True if there was some.
async fn finished(desk: &Desk<'_>, answer: Option<Result<Option<WorkLease>, ProviderError>>) -> bool {
    let Some(lease) = answer.and_then(ok) else { return false };
    desk.finish(&lease).await;
    true
}

/// Begins a fetch of a new session, lets another slot of the same process take work of that session, and
/// drops the first fetch after so many polls.
async fn beside(desk: &Desk<'_>, session: &str, polls: usize, finishes: bool) -> WorkLease {
    for id in 1..=2 {
        desk.queue(session, id).await;
    }
    let (answer, other) = {
        let mut first = pin!(desk.store.fetch_work(request("A")));
        let answer = polled(first.as_mut(), polls).await;
        let other = desk.fetched("A").await;
        if finishes {
            desk.finish(&other).await;
        }
        (answer, other)
    };
    finished(desk, answer).await;
    other
}

/// Requires that the process still holds the session as the lease says.
async fn is_held(desk: &Desk<'_>, lease: &WorkLease, polls: usize) {
    assert!(desk.fetch("B").await.is_none(), "{polls} polls: the session belongs to A");
    let renewed = desk.renew(renewal("A")).await.renewed;
    assert!(renewed.contains(&attachment(lease)), "{polls} polls: A holds it: {renewed:?}");
}

async fn s13_a_dropped_fetch_leaves_the_session_that_another_slot_serves(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for polls in 0..MOST_POLLS {
        let lease = beside(&desk, &format!("S{polls}"), polls, false).await;
        is_held(&desk, &lease, polls).await;
        desk.finish(&lease).await;
        while let Some(rest) = desk.fetch("A").await {
            desk.finish(&rest).await;
        }
    }
    Verdict::Kept
}

async fn s13_a_dropped_fetch_leaves_the_session_that_another_slot_has_served(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for polls in 0..MOST_POLLS {
        let lease = beside(&desk, &format!("S{polls}"), polls, true).await;
        is_held(&desk, &lease, polls).await;
        while let Some(rest) = desk.fetch("A").await {
            desk.finish(&rest).await;
        }
    }
    Verdict::Kept
}

async fn s13_a_dropped_fetch_leaves_no_claim_that_only_it_made(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for polls in 0..MOST_POLLS {
        let session = format!("S{polls}");
        desk.queue(&session, 1).await;
        let answer = {
            let mut fetch = pin!(desk.store.fetch_work(request("A")));
            polled(fetch.as_mut(), polls).await
        };
        if finished(&desk, answer).await {
            return Verdict::Kept;
        }
        // A waiting fetch is told when the store has taken the claim back.
        let mut waiting = request("B");
        waiting.poll_timeout = LEASE / 2;
        let lease = desk.asked(waiting).await;
        assert_eq!(attachment(&lease).key, SessionKey::shared(&session));
        assert_eq!(lease.attempt, 1, "{polls} polls: the dropped fetch counts no attempt");
        desk.finish(&lease).await;
    }
    Verdict::Kept
}
