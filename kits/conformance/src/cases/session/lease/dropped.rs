//! Fetches that are dropped before they returned: each takes its own claim back, and no claim that another
//! slot of the process uses (G9).

use std::pin::{Pin, pin};
use std::task::Poll;

use steadfast_core::SessionKey;
use steadfast_store::{ProviderError, SessionRef, WorkLease, WorkRequest};

use crate::Verdict;
use crate::bench::{Bench, LEASE, ok};
use crate::case::{cases, need};
use crate::cases::session::{Desk, attachment, desk, owning, renewal, request};

cases![
    s13_a_dropped_fetch_leaves_the_session_that_another_slot_serves,
    s13_a_dropped_fetch_leaves_the_session_that_another_slot_has_served,
    s13_a_dropped_fetch_leaves_no_claim_that_only_it_made,
    s13_a_dropped_fetch_of_its_former_owner_frees_no_reopened_session,
    s13_a_reopened_session_is_free_if_its_former_owner_detaches_beside_a_dropped_fetch,
];

/// Bounds the polls of a fetch before it is dropped: more than any store needs.
const MOST_POLLS: usize = 24;

/// How often another process asks while the store takes back what a dropped fetch has done.
const LOOKS: usize = 8;

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

fn waiting(owner: &str) -> WorkRequest {
    WorkRequest { poll_timeout: LEASE / 2, ..request(owner) }
}

/// Lets A claim session X of a new instance, closes it, and opens it again with an activity that waits.
/// Returns the claim that was closed.
async fn reopened(desk: &Desk<'_>, instance: &str) -> SessionRef {
    desk.begin(instance, |turn| turn.open("X").work("X")).await;
    let closed = attachment(&desk.fetched("A").await);
    desk.turn(instance, |turn| turn.close("X")).await;
    desk.turn(instance, |turn| turn.open("X").work("X")).await;
    assert!(desk.fetch("B").await.is_none(), "A may not know of the close");
    closed
}

/// Requires that another process is given the reopened session although no time has passed.
async fn is_free(desk: &Desk<'_>, closed: &SessionRef, polls: usize) {
    let lease = desk.asked(waiting("B")).await;
    let claimed = attachment(&lease);
    assert_eq!(claimed.key, closed.key, "{polls} polls: A has detached it");
    assert!(claimed.epoch > closed.epoch, "{polls} polls: the claim is a new one");
    assert_eq!(lease.attempt, 1, "{polls} polls: the dropped fetch counts no attempt");
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
        let lease = desk.asked(waiting("B")).await;
        assert_eq!(attachment(&lease).key, SessionKey::shared(&session));
        assert_eq!(lease.attempt, 1, "{polls} polls: the dropped fetch counts no attempt");
        desk.finish(&lease).await;
    }
    Verdict::Kept
}

async fn s13_a_dropped_fetch_of_its_former_owner_frees_no_reopened_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    for polls in 0..MOST_POLLS {
        let closed = reopened(&desk, &format!("a{polls}")).await;
        let answer = {
            let mut fetch = pin!(desk.store.fetch_work(request("A")));
            let answer = polled(fetch.as_mut(), polls).await;
            // Meanwhile the store answers the fetch, and nobody hears it.
            assert!(desk.fetch("B").await.is_none(), "{polls} polls: A has it, or is waited for");
            answer
        };
        if finished(&desk, answer).await {
            return Verdict::Kept;
        }
        for _ in 0..LOOKS {
            let taken = desk.fetch("B").await.and_then(|lease| lease.session);
            assert_eq!(taken, None, "{polls} polls: A has not detached {closed:?}");
            tokio::task::yield_now().await;
        }
        desk.release("A", std::slice::from_ref(&closed)).await;
        is_free(&desk, &closed, polls).await;
    }
    Verdict::Kept
}

async fn s13_a_reopened_session_is_free_if_its_former_owner_detaches_beside_a_dropped_fetch(
    bench: Bench,
) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    for polls in 0..MOST_POLLS {
        let closed = reopened(&desk, &format!("a{polls}")).await;
        let answer = {
            let mut fetch = pin!(desk.store.fetch_work(request("A")));
            let answer = polled(fetch.as_mut(), polls).await;
            desk.release("A", std::slice::from_ref(&closed)).await;
            answer
        };
        if finished(&desk, answer).await {
            return Verdict::Kept;
        }
        is_free(&desk, &closed, polls).await;
    }
    Verdict::Kept
}
