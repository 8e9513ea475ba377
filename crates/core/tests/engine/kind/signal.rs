//! Events that are raised: each is for a wait that is open when it comes.

use crate::support::*;

#[test]
fn waits_of_one_name_are_answered_in_the_order_they_were_recorded() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_wait("go"), ctx.schedule_wait("go"));
        let (b, a) = ctx.join2(b, a).await;
        Ok(format!("{a}{b}"))
    });
    story.waits([]);
    assert_eq!(story.output([raise("go", "1"), raise("go", "2")]), "12");
}

#[test]
fn a_raise_that_nobody_waits_for_is_recorded_and_never_delivered() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").await?;
        Ok(ctx.schedule_wait("go").await)
    });
    story.waits([]);
    let turn = story.waits([raise("go", "early")]);
    assert_eq!(
        (lines(&turn.events), early_events(&turn)),
        (vec!["3 ExternalEvent(go, early)".into()], vec!["go"])
    );
    story.waits([done(2, "")]);
    assert_eq!(story.output([raise("go", "late")]), "late");
}

#[test]
fn a_raise_in_the_batch_that_leads_to_the_wait_is_early() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").await?;
        Ok(ctx.schedule_wait("go").await)
    });
    story.waits([]);
    let turn = story.waits([done(2, ""), raise("go", "early")]);
    assert_eq!(early_events(&turn), ["go"]);
    assert_eq!(story.output([raise("go", "late")]), "late");
}

#[test]
fn raises_beyond_the_open_waits_are_early() {
    let mut story = story(|ctx, _| async move {
        let first = ctx.schedule_wait("go").await;
        let second = ctx.schedule_wait("go").await;
        Ok(format!("{first}{second}"))
    });
    story.waits([]);
    story.waits([raise("go", "1"), raise("go", "lost")]);
    assert_eq!(story.output([raise("go", "2")]), "12");
}

#[test]
fn names_do_not_mix() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = ctx.join2(ctx.schedule_wait("a"), ctx.schedule_wait("b")).await;
        Ok(format!("{a}{b}"))
    });
    story.waits([]);
    assert_eq!(story.output([raise("b", "B"), raise("a", "A")]), "AB");
}

#[test]
fn a_dropped_wait_is_out_at_once_and_the_next_one_takes_the_raise() {
    let mut story = story(|ctx, _| async move {
        let (old, new) = (ctx.schedule_wait("go"), ctx.schedule_wait("go"));
        ctx.schedule_activity("a", "").await?;
        drop(old);
        Ok(new.await)
    });
    story.waits([]);
    assert_eq!(story.output([done(4, ""), raise("go", "1")]), "1");
}

#[test]
fn a_raise_that_was_accepted_and_not_read_goes_with_the_wait_that_is_dropped() {
    let mut story = story(|ctx, _| async move {
        let (old, new) = (ctx.schedule_wait("go"), ctx.schedule_wait("go"));
        ctx.schedule_activity("a", "").await?;
        drop(old);
        Ok(new.await)
    });
    story.waits([]);
    story.waits([raise("go", "for the old one")]);
    story.waits([done(4, "")]);
    assert_eq!(story.output([raise("go", "for the new one")]), "for the new one");
}

#[test]
fn a_wait_dropped_before_its_event_takes_no_raise_later() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_wait("go"));
        Ok(ctx.schedule_wait("go").await)
    });
    assert_eq!(
        story.events([])[1..],
        [
            "2 ExternalSubscribed(go)",
            "3 ExternalSubscribed(go)",
            "4 ExternalSubscribedCancelled(dropped_future) of 2"
        ]
    );
    assert_eq!(story.output([raise("go", "1")]), "1");
}

#[test]
fn an_accepted_raise_waits_until_it_is_read() {
    let mut story = story(|ctx, _| async move {
        let held = ctx.schedule_wait("go");
        ctx.schedule_activity("a", "").await?;
        Ok(held.await)
    });
    story.waits([]);
    story.waits([raise("go", "kept")]);
    assert_eq!(story.output([done(3, "")]), "kept");
}

#[test]
fn a_raise_that_nobody_asked_for_is_no_mismatch_after_the_code_returned() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    assert_eq!(
        story.events([done(2, "r"), raise("x", ""), enqueue("q", "")]),
        [
            "3 ActivityCompleted(r) of 2",
            "4 ExternalEvent(x, )",
            "5 QueueEventDelivered(q, )",
            "6 Completed(r)"
        ]
    );
}

#[test]
fn typed_data_is_decoded_and_what_cannot_be_is_a_failure_with_its_text() {
    let typed = |data: &'static str| {
        let mut story = story(|ctx, _| async move {
            let number: u32 = ctx.schedule_wait_typed("go").await;
            Ok((number + 1).to_string())
        });
        story.waits([]);
        story.turn([raise("go", data)])
    };
    assert_eq!(lines(&typed("41").events).last().unwrap(), "4 Completed(42)");
    let text = failure_of(&typed("many")).display_message();
    assert!(text.starts_with("orchestration panicked: event data cannot be decoded"), "{text}");
}

#[test]
fn data_that_cannot_be_decoded_is_an_error_where_asked_for() {
    let mut story =
        story(
            |ctx, _| async move { Ok(ctx.try_schedule_wait_typed::<u32>("go").await.is_err().to_string()) },
        );
    story.waits([]);
    assert_eq!(story.output([raise("go", "many")]), "true");
}
