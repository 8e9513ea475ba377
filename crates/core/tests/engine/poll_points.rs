//! The sequence of polls is a function of history alone (P1 and P2).
//!
//! The first two tests are the counterexamples to polling a live turn at other points than its replay: both
//! are correct programs. The driver replays every turn from scratch, which is what they would fail.

use std::task::Poll;

use futures::channel::oneshot;
use steadfast_core::ErrorDetails;

use crate::support::*;

#[test]
fn two_dequeues_newer_first_with_both_messages_waiting_decide_alike_on_replay() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_wait("begin").await;
        let older = ctx.dequeue_event("q");
        let newer = ctx.dequeue_event("q");
        let first = ctx.select2(newer, older).await.into_tuple();
        ctx.schedule_activity("log", format!("{first:?}")).await?;
        Ok(ctx.dequeue_event("q").await)
    });
    story.waits([]);
    story.waits([enqueue("q", "1"), enqueue("q", "2")]);
    let turn = story.waits([raise("begin", "")]);
    // The older one is recorded first and is polled for before the newer one is.
    assert_eq!(
        lines(&turn.events)[1..],
        [
            "6 QueueSubscribed(q)",
            "7 QueueSubscribed(q)",
            "8 ActivityScheduled(log, (1, \"1\"))",
            "9 QueueSubscriptionCancelled(dropped_future) of 7",
        ]
    );
    assert_eq!(story.output([done(8, "")]), "2");
}

#[test]
fn a_oneshot_channel_between_two_branches_of_a_join_decides_alike_on_replay() {
    let mut story = story(|ctx, _| async move {
        let (tell, told) = oneshot::channel();
        let hears = async {
            let word: String = told.await.map_err(|error| error.to_string())?;
            ctx.schedule_activity("heard", word).await
        };
        let says = async {
            let word = ctx.schedule_activity("word", "").await?;
            tell.send(word).map_err(|_| "nobody listens".to_owned())?;
            ctx.schedule_activity("said", "").await
        };
        let (heard, said) = ctx.join2(hears, says).await;
        Ok(format!("{}{}", heard?, said?))
    });
    story.waits([]);
    let turn = story.waits([done(2, "w")]);
    assert_eq!(lines(&turn.events)[1..], ["4 ActivityScheduled(said, )", "5 ActivityScheduled(heard, w)"]);
    assert_eq!(story.output([done(4, "!"), done(5, "?")]), "?!");
}

#[test]
fn a_poll_that_wakes_the_root_is_repeated_until_it_settles() {
    let mut story = story(|_, _| async move {
        let mut left = 99;
        futures::future::poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Ok("settled".into())
    });
    assert_eq!(story.output([]), "settled");
    assert_eq!(story.effort().root_polls, 100);
}

#[test]
fn code_that_wakes_itself_for_ever_fails_after_a_hundred_polls() {
    let mut story = story(|_, _| {
        futures::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<Result<String, String>>::Pending
        })
    });
    let details = failure_of(&story.turn([]));
    let ErrorDetails::Infrastructure { operation, message, retryable: false } = details else {
        panic!("{details:?}")
    };
    assert_eq!(operation, "quiescence_loop");
    assert!(message.starts_with("quiescence loop exceeded 100 iterations"), "{message}");
    assert_eq!(story.effort().root_polls, 100);
}

#[test]
fn a_decision_that_asks_for_a_poll_is_polled_for_before_the_next_one_is_recorded() {
    // The message that waits answers the first dequeue at once, so the status comes before the second call
    // of the other branch is looked at.
    let mut story = story(|ctx, _| async move {
        ctx.schedule_wait("begin").await;
        let reads = async {
            ctx.dequeue_event("q").await;
            ctx.set_custom_status("read");
        };
        let calls = async {
            ctx.dequeue_event("empty").await;
        };
        ctx.join2(reads, calls).await;
        Ok(String::new())
    });
    story.waits([]);
    story.waits([enqueue("q", "1")]);
    let turn = story.waits([raise("begin", "")]);
    assert_eq!(
        lines(&turn.events)[1..],
        ["5 QueueSubscribed(q)", "6 QueueSubscribed(empty)", "7 CustomStatusUpdated(Some(\"read\"))"]
    );
}

#[test]
fn one_turn_may_take_more_messages_than_a_poll_point_may_poll() {
    let mut story = story(|ctx, _| async move {
        let mut all = String::new();
        for _ in 0..150 {
            all += &ctx.dequeue_event("q").await;
        }
        Ok(all)
    });
    let messages = (0..150).map(|_| enqueue("q", "m"));
    assert_eq!(story.output(messages).len(), 150);
}

#[test]
fn code_that_decides_for_ever_in_one_turn_fails() {
    let mut story = story(|ctx, _| async move {
        loop {
            let id = ctx.open_session().await?;
            ctx.close_session(&id).await?;
        }
    })
    .owned_sessions()
    .warm_only();
    assert_has(&story.failure([]), "infrastructure:quiescence_loop: quiescence loop exceeded 100");
}

#[test]
fn a_branch_that_yields_once_runs_in_the_same_turn() {
    let mut story = story(|ctx, _| async move {
        let mut yielded = false;
        futures::future::poll_fn(move |cx| match std::mem::replace(&mut yielded, true) {
            true => Poll::Ready(()),
            false => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await;
        ctx.schedule_activity("after", "").await
    });
    assert_eq!(story.events([]), ["1 Started()", "2 ActivityScheduled(after, )"]);
}
