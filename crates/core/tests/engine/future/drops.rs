//! Futures that are dropped before they answered.

use std::time::Duration;

use steadfast_core::OrchestrationContext;

use crate::support::*;

async fn wait_for_ever(ctx: &OrchestrationContext) -> Result<String, String> {
    Ok(ctx.schedule_wait("never").await)
}

#[test]
fn dropped_futures_are_reported_by_kind_and_rising_id() {
    let mut story = story(|ctx, _| async move {
        let all = (
            ctx.dequeue_event("q"),
            ctx.schedule_wait("w"),
            ctx.schedule_sub_orchestration("c1", ""),
            ctx.schedule_activity("a1", ""),
            ctx.schedule_timer(Duration::from_secs(1)),
            ctx.schedule_activity("a2", ""),
            ctx.schedule_sub_orchestration("c2", ""),
        );
        ctx.schedule_wait("go").await;
        drop(all);
        wait_for_ever(&ctx).await
    });
    story.waits([]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(
        lines(&turn.events)[1..],
        [
            "11 ExternalSubscribed(never)",
            "12 ActivityCancelRequested(dropped_future) of 5",
            "13 ActivityCancelRequested(dropped_future) of 7",
            "14 SubOrchestrationCancelRequested(dropped_future) of 4",
            "15 SubOrchestrationCancelRequested(dropped_future) of 8",
            "16 ExternalSubscribedCancelled(dropped_future) of 3",
            "17 QueueSubscriptionCancelled(dropped_future) of 2",
        ]
    );
    assert_eq!(withdrawn(&turn), [5, 7]);
    assert_eq!(
        sent(&turn),
        [
            "cancel i::sub::4: parent dropped sub-orchestration future",
            "cancel i::sub::8: parent dropped sub-orchestration future"
        ]
    );
}

#[test]
fn a_dropped_future_is_reported_once() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.select2(a, b).await;
        wait_for_ever(&ctx).await
    });
    story.waits([]);
    assert_eq!(story.events([done(2, "")]).last().unwrap(), "6 ActivityCancelRequested(dropped_future) of 3");
    story.restart();
    for message in [raise("x", ""), raise("y", "")] {
        let turn = story.waits([message]);
        assert_eq!((turn.events.len(), withdrawn(&turn).len()), (1, 0));
    }
    let end = story.turn([raise("never", "")]);
    assert_eq!(withdrawn(&end), Vec::<u64>::new());
}

#[test]
fn a_dropped_timer_leaves_no_trace() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_timer(Duration::from_secs(1)));
        wait_for_ever(&ctx).await
    });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[1..], ["2 TimerCreated(2000)", "3 ExternalSubscribed(never)"]);
    assert_eq!(sent(&turn), ["timer 2 at 2000"]);
    assert_eq!(story.events([fired(2)]), ["4 TimerFired of 2"]);
}

#[test]
fn an_activity_dropped_in_the_turn_that_schedules_it_is_queued_and_withdrawn_at_once() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_activity("a", ""));
        wait_for_ever(&ctx).await
    });
    let turn = story.waits([]);
    assert_eq!((sent(&turn), withdrawn(&turn)), (vec!["work 2 a()".to_owned()], vec![2]));
}

#[test]
fn a_child_dropped_in_the_turn_that_schedules_it_is_started_and_then_cancelled() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_sub_orchestration("c", ""));
        wait_for_ever(&ctx).await
    });
    assert_eq!(
        sent(&story.waits([])),
        ["start i::sub::2 c() for 2", "cancel i::sub::2: parent dropped sub-orchestration future"]
    );
}

#[test]
fn a_late_answer_to_a_dropped_future_is_recorded_and_heard_by_nobody() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_activity("a", ""));
        drop(ctx.schedule_sub_orchestration("c", ""));
        wait_for_ever(&ctx).await
    });
    story.waits([]);
    let turn = story.waits([done(2, "late"), child_failed(3, own_error("late"))]);
    assert_eq!(
        lines(&turn.events),
        ["7 ActivityCompleted(late) of 2", "8 SubOrchestrationFailed(late) of 3"]
    );
}

#[test]
fn a_future_that_is_held_and_never_polled_is_not_cancelled() {
    let mut story = story(|ctx, _| async move {
        let _held = (ctx.schedule_activity("a", ""), ctx.schedule_wait("w"), ctx.dequeue_event("q"));
        wait_for_ever(&ctx).await
    });
    let turn = story.waits([]);
    assert_eq!(turn.events.len(), 5);
    assert_eq!(withdrawn(&turn), Vec::<u64>::new());
    assert_eq!(story.waits([raise("x", "")]).events.len(), 1);
}

#[test]
fn a_future_dropped_after_its_answer_arrived_unread_is_reported_without_stopping_anything() {
    let mut story = story(|ctx, _| async move {
        let child = ctx.schedule_sub_orchestration("c", "");
        ctx.schedule_wait("go").await;
        drop(child);
        wait_for_ever(&ctx).await
    });
    story.waits([]);
    story.waits([child_done(2, "unread")]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(lines(&turn.events).last().unwrap(), "7 SubOrchestrationCancelRequested(dropped_future) of 2");
    assert_eq!(sent(&turn), Vec::<String>::new());
}

#[test]
fn a_future_that_has_answered_is_not_reported_when_it_goes() {
    let mut story = story(|ctx, _| async move {
        let mut fut = ctx.schedule_activity("a", "");
        let answer = (&mut fut).await?;
        drop(fut);
        ctx.schedule_wait("go").await;
        Ok(answer)
    });
    story.waits([]);
    assert_eq!(story.waits([done(2, "r")]).events.len(), 2);
    assert_eq!(story.output([raise("go", "")]), "r");
}

#[test]
fn a_mapped_future_cancels_on_drop_like_the_one_it_was_made_of() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_activity("a", "").map(|result| result.map(|text| text.len())));
        wait_for_ever(&ctx).await
    });
    assert_eq!(withdrawn(&story.waits([])), [2]);
}

#[test]
fn a_drop_that_history_records_and_the_code_does_not_repeat_is_a_mismatch() {
    for (kind, label) in [
        ("activity", "activities"),
        ("child", "sub-orchestrations"),
        ("signal", "external waits"),
        ("queue", "persistent waits"),
    ] {
        let ask = |ctx: &OrchestrationContext, kind: &str| -> Box<dyn std::any::Any + Send> {
            match kind {
                "activity" => Box::new(ctx.schedule_activity("x", "")),
                "child" => Box::new(ctx.schedule_sub_orchestration("x", "")),
                "signal" => Box::new(ctx.schedule_wait("x")),
                _ => Box::new(ctx.dequeue_event("x")),
            }
        };
        let mut story = story(move |ctx, kind| async move {
            drop(ask(&ctx, &kind));
            wait_for_ever(&ctx).await
        })
        .input(kind);
        story.waits([]);
        let (turn, mismatch) = story.changed(move |ctx, kind| async move {
            let _held = ask(&ctx, &kind);
            wait_for_ever(&ctx).await
        });
        assert_eq!(mismatch.position, 4);
        assert_has(
            &failure_of(&turn).display_message(),
            &format!(
                "nondeterministic: cancellation mismatch ({label}): \
                 baseline_dropped_future_cancel_requests={{2}} ctx_cancelled_in_replayed_segment={{}}"
            ),
        );
    }
}

#[test]
fn a_drop_that_history_does_not_know_is_accepted_and_recorded() {
    let mut story = story(|ctx, _| async move {
        let _held = ctx.schedule_activity("a", "");
        wait_for_ever(&ctx).await
    });
    story.waits([]);
    let mut changed =
        steadfast_core::replay::Execution::replay(setup(), story.history, |ctx, _| async move {
            drop(ctx.schedule_activity("a", ""));
            wait_for_ever(&ctx).await
        });
    let turn = changed.turn(2_000, vec![]);
    assert_eq!(lines(&turn.events), ["4 ActivityCancelRequested(dropped_future) of 2"]);
}
