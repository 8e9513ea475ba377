//! Sending: messages to instances, now or later, alone or together.

use std::time::Duration;

use steadfast_store::{Cold, Envelope, Message, ProviderErrorKind, TurnRequest, WaitFor, Waited};

use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, activity, ok, raise, refused, start_of};
use crate::case::{cases, need};

cases![
    s3_messages_sent_together_arrive_together,
    s3_a_bad_message_among_good_ones_sends_none,
    s9_messages_sent_together_have_delays_of_their_own,
    api_an_activity_is_no_message,
    api_a_completion_of_a_child_goes_to_its_parent,
    api_the_trace_context_of_a_message_rides_with_it,
    api_sending_nothing_is_fine,
    api_a_wait_for_a_turn_ends_when_there_is_one,
    api_a_wait_for_work_ends_when_there_is_some,
    api_a_wait_for_a_turn_ends_when_its_time_is_over,
    api_a_wait_for_what_is_there_ends_at_once,
];

const SECOND: Duration = Duration::from_secs(1);

async fn s3_messages_sent_together_arrive_together(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.begun("b").await;
    let messages = [raise("a", "1"), raise("b", "1"), raise("a", "2")];
    ok(store.send(messages.map(Envelope::from).to_vec()).await);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "1"), raise("a", "2")], "in their order");
    assert_eq!(bench.fetched().await.item.messages, [raise("b", "1")], "also to several instances");
    Verdict::Kept
}

async fn s3_a_bad_message_among_good_ones_sends_none(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let messages = [raise("a", "1"), activity("a", 2), raise("a", "2")];
    refused(store.send(messages.map(Envelope::from).to_vec()).await, ProviderErrorKind::Invalid);
    assert!(bench.fetch().await.is_none(), "all or none");
    assert!(bench.fetch_work().await.is_none(), "nor is there work");
    Verdict::Kept
}

async fn s9_messages_sent_together_have_delays_of_their_own(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let later = Envelope { delay: Some(SECOND), ..raise("a", "later").into() };
    ok(store.send(vec![later, raise("a", "now").into()]).await);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "now")], "one is there");
    bench.commit(&turn, Commit::default()).await;
    bench.advance(SECOND);
    assert_eq!(bench.fetched().await.item.messages, [raise("a", "later")], "the other comes later");
    Verdict::Kept
}

async fn api_an_activity_is_no_message(bench: Bench) {
    bench.begun("a").await;
    let error = refused(
        bench.provider().enqueue_for_orchestrator(activity("a", 2), None).await,
        ProviderErrorKind::Invalid,
    );
    assert!(!error.is_retryable(), "another try cannot help: {error}");
    assert!(bench.fetch().await.is_none(), "it is not sent");
    assert!(bench.fetch_work().await.is_none(), "nor is it queued as work");
}

async fn api_a_completion_of_a_child_goes_to_its_parent(bench: Bench) {
    bench.begun("parent").await;
    let done = steadfast_core::WorkItem::SubOrchCompleted {
        parent_instance: "parent".to_owned(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "done".to_owned(),
    };
    bench.send(done.clone()).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.instance.as_str(), turn.item.messages), ("parent", vec![done]));
}

async fn api_the_trace_context_of_a_message_rides_with_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
    let message = Message { traceparent: Some(trace.clone()), ..start_of("a").into() };
    ok(store.send(vec![Envelope { message, delay: None }]).await);
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let lease = ok(store.fetch_turn(request).await).expect("the instance is ready");
    let traces: Vec<_> = lease.messages.into_iter().map(|message| message.traceparent).collect();
    assert_eq!(traces, [Some(trace)], "the trace context is handed out with the message");
    Verdict::Kept
}

async fn api_sending_nothing_is_fine(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    ok(store.send(Vec::new()).await);
    assert!(bench.fetch().await.is_none(), "there is nothing to do");
    Verdict::Kept
}

/// Waits in a task of its own, so that the case can go on.
async fn waiting(
    bench: &Bench,
    what: WaitFor<'static>,
    timeout: Duration,
) -> tokio::task::JoinHandle<Option<Waited>> {
    let (provider, waiting) = (std::sync::Arc::clone(bench.provider()), bench.clock().sleepers());
    let call = tokio::spawn(async move {
        let store = provider.into_store()?;
        Some(ok(store.wait(what, timeout).await))
    });
    bench.parked(waiting + 1).await;
    call
}

async fn api_a_wait_for_a_turn_ends_when_there_is_one(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = waiting(&bench, WaitFor::Turn, LEASE).await;
    bench.start("a").await;
    assert_eq!(bench.soon(call).await, Some(Waited::Woken), "a message should end the wait");
    assert!(bench.fetch().await.is_some(), "the wait takes nothing");
    Verdict::Kept
}

async fn api_a_wait_for_work_ends_when_there_is_some(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = waiting(&bench, WaitFor::Work, LEASE).await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(bench.soon(call).await, Some(Waited::Woken), "work should end the wait");
    let (_, _, attempt) = bench.working().await;
    assert_eq!(attempt, 1, "the wait takes nothing");
    Verdict::Kept
}

async fn api_a_wait_for_a_turn_ends_when_its_time_is_over(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = waiting(&bench, WaitFor::Turn, LEASE).await;
    bench.advance(LEASE);
    assert_eq!(bench.soon(call).await, Some(Waited::TimedOut), "nothing happened");
    Verdict::Kept
}

async fn api_a_wait_for_what_is_there_ends_at_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(ok(store.wait(WaitFor::Turn, Duration::ZERO).await), Waited::Woken);
    assert_eq!(ok(store.wait(WaitFor::Work, Duration::ZERO).await), Waited::Woken);
    Verdict::Kept
}
