//! Trace context: it stands beside messages and activities, and goes where they go.

use std::time::Duration;

use steadfast_core::{TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Cold, Envelope, LeaseToken, Message, NewWork, Outcome, Store, TurnCommit, TurnRequest,
    WorkLease, WorkRequest,
};

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, activity, completion, event, ok, raise, scheduled, start_of};
use crate::case::{cases, need};

cases![
    api_a_start_and_what_is_sent_with_it_keep_their_trace_contexts,
    api_what_a_commit_sends_and_queues_keeps_its_trace_context,
    api_what_is_given_back_keeps_its_trace_context,
    api_the_outcome_of_an_activity_keeps_its_trace_context,
];

async fn api_a_start_and_what_is_sent_with_it_keep_their_trace_contexts(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let also = vec![sent(traced(raise("a", "1"), 2)), raise("a", "2").into()];
    ok(store.start(sent(traced(start_of("a"), 1)), also).await);
    assert_eq!(turn(store).await.1, [trace(1), trace(2), None]);
    Verdict::Kept
}

async fn api_what_a_commit_sends_and_queues_keeps_its_trace_context(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let (token, _) = turn(store).await;
    let commit = TurnCommit {
        messages: vec![traced(start_of("b"), 1), raise("b", "untraced").into()],
        work: vec![NewWork { traceparent: trace(2), ..activity("a", 2).into() }],
        ..first_turn()
    };
    ok(store.commit_turn(&token, commit).await);
    assert_eq!(turn(store).await.1, [trace(1), None]);
    assert_eq!(work(store).await.traceparent, trace(2));
    Verdict::Kept
}

async fn api_what_is_given_back_keeps_its_trace_context(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    ok(store.send(vec![sent(traced(start_of("a"), 1))]).await);
    ok(store.enqueue_work(NewWork { traceparent: trace(2), ..activity("a", 2).into() }).await);
    let back = || Abandon { retry_after: None, attempt: Attempt::Counts };
    ok(store.abandon(&turn(store).await.0, back()).await);
    ok(store.abandon(&work(store).await.token, back()).await);
    assert_eq!(turn(store).await.1, [trace(1)]);
    assert_eq!(work(store).await.traceparent, trace(2));
    Verdict::Kept
}

async fn api_the_outcome_of_an_activity_keeps_its_trace_context(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let lease = work(store).await;
    let completion = Some(traced(completion("a", 2), 1));
    ok(store.finish_work(&lease.token, Outcome { completion }).await);
    assert_eq!(turn(store).await.1, [trace(1)]);
    Verdict::Kept
}

fn trace(number: u8) -> Option<String> {
    Some(format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{number:02}"))
}

fn traced(item: WorkItem, number: u8) -> Message {
    Message { traceparent: trace(number), ..item.into() }
}

fn sent(message: Message) -> Envelope {
    Envelope { message, delay: None }
}

/// Leases the next turn: its token, and the trace contexts of its messages.
async fn turn(store: &dyn Store) -> (LeaseToken, Vec<Option<String>>) {
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let lease = ok(store.fetch_turn(request).await).expect("an instance should be ready");
    (lease.token, lease.messages.into_iter().map(|message| message.traceparent).collect())
}

async fn work(store: &dyn Store) -> WorkLease {
    let request = WorkRequest {
        worker_id: "worker".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Any,
        session: None,
        worker: None,
    };
    ok(store.fetch_work(request).await).expect("an activity should be ready")
}

fn first_turn() -> TurnCommit {
    let Commit { execution_id, events, metadata, .. } =
        Commit::started("a").event(event("a", 2, scheduled()));
    TurnCommit { execution_id, events, metadata, ..TurnCommit::default() }
}
