//! Messages of a queue: each is read once, in order, and none is lost.

use crate::support::*;

#[test]
fn messages_wait_for_a_dequeue() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").await?;
        let (one, two) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
        Ok(format!("{one}{two}"))
    });
    story.waits([]);
    story.waits([enqueue("q", "1"), enqueue("other", "x"), enqueue("q", "2")]);
    assert_eq!(story.output([done(2, "")]), "12");
}

#[test]
fn a_held_dequeue_keeps_its_place_in_line() {
    let mut story = story(|ctx, _| async move {
        let first = ctx.dequeue_event("q");
        let second = ctx.dequeue_event("q").await;
        Ok(format!("{second}{}", first.await))
    });
    story.waits([]);
    story.waits([enqueue("q", "1")]);
    assert_eq!(story.output([enqueue("q", "2")]), "21");
}

#[test]
fn a_dropped_dequeue_gives_its_place_back_at_the_drop() {
    let mut story = story(|ctx, _| async move {
        let (old, new) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        ctx.schedule_activity("a", "").await?;
        drop(old);
        Ok(new.await)
    });
    story.waits([]);
    story.waits([enqueue("q", "1")]);
    assert_eq!(story.output([done(4, "")]), "1");
}

#[test]
fn a_dequeue_dropped_before_its_event_never_takes_a_place() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.dequeue_event("q"));
        Ok(ctx.dequeue_event("q").await)
    });
    story.waits([]);
    assert_eq!(story.output([enqueue("q", "1")]), "1");
}

#[test]
fn the_message_of_a_dropped_dequeue_is_not_lost() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.dequeue_event("q"), ctx.schedule_activity("a", ""));
        // The activity answers first; the message comes in the same batch and stays for the next dequeue.
        ctx.select2(a, b).await;
        Ok(ctx.dequeue_event("q").await)
    });
    story.waits([]);
    assert_eq!(story.output([done(3, ""), enqueue("q", "kept")]), "kept");
}

#[test]
fn a_message_that_waits_answers_a_new_dequeue_in_the_same_turn() {
    let mut story = story(|ctx, _| async move { Ok(ctx.dequeue_event("q").await) });
    assert_eq!(
        story.events([enqueue("q", "m")]),
        ["1 Started()", "2 QueueEventDelivered(q, m)", "3 QueueSubscribed(q)", "4 Completed(m)"]
    );
}

#[test]
fn the_heir_of_a_dropped_place_is_woken_in_the_same_poll() {
    let mut story = story(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let gives = async {
            ctx.schedule_activity("a", "").await.unwrap();
            drop(older);
        };
        // The reader is polled before the giver, so only a wake brings it back.
        let all = vec![
            futures::future::Either::Left(newer),
            futures::future::Either::Right(async {
                gives.await;
                String::new()
            }),
        ];
        Ok(ctx.join(all).await.concat())
    });
    story.waits([]);
    story.waits([enqueue("q", "m")]);
    assert_eq!(story.output([done(4, "")]), "m");
}

#[test]
fn typed_messages_are_decoded() {
    let mut story = story(|ctx, _| async move {
        let number: u32 = ctx.dequeue_event_typed("q").await;
        let refused = ctx.try_dequeue_event_typed::<u32>("q").await;
        Ok(format!("{number} {}", refused.is_err()))
    });
    story.waits([]);
    assert_eq!(story.output([enqueue("q", "7"), enqueue("q", "seven")]), "7 true");
}

#[test]
#[allow(deprecated, reason = "the old spelling is under test")]
fn the_old_spelling_means_the_same() {
    let mut story = story(|ctx, _| async move {
        let number: u32 = ctx.schedule_wait_persistent_typed("q").await;
        Ok(format!("{number}{}", ctx.schedule_wait_persistent("q").await))
    });
    assert_eq!(story.output([enqueue("q", "1"), enqueue("q", "2")]), "12");
}
