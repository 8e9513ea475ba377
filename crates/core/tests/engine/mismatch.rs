//! Where program and history part, and how it is told.

use std::mem::forget;
use std::time::Duration;

use steadfast_core::replay::{Execution, Verdict};
use steadfast_core::{ConfigErrorKind, ErrorDetails, EventKind, LastMatch, OrchestrationContext};

use crate::support::*;

/// The text of the failure when `code` meets this history.
fn text<F>(
    kinds: impl IntoIterator<Item = (Option<u64>, EventKind)>,
    code: fn(OrchestrationContext) -> F,
) -> String
where
    F: Future<Output = Outcome> + Send + 'static,
{
    failure_of(&replay_once(history(kinds), move |ctx, _| code(ctx))).display_message()
}

#[test]
fn a_mismatch_names_position_expectation_call_and_the_last_event_that_matched() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "1").await?;
        ctx.schedule_activity("b", "2").await
    });
    story.waits([]);
    story.waits([done(2, "")]);
    let (turn, mismatch) = story.changed(|ctx, _| async move {
        ctx.schedule_activity("a", "1").await?;
        let line = line!() + 1;
        ctx.schedule_timer(Duration::from_millis(line.into())).await;
        Ok(String::new())
    });
    assert_eq!(mismatch.position, 4);
    assert_eq!(mismatch.expected, Some("ActivityScheduled"));
    assert_eq!(mismatch.found, Some("CreateTimer"));
    assert_eq!(mismatch.last_match, Some(LastMatch { event_id: 3, kind: "ActivityCompleted" }));
    let call = mismatch.call.clone().unwrap();
    assert!(call.file.ends_with("mismatch.rs"), "{call}");
    // The code tells its own line through the delay of the timer.
    let fire_at: u32 =
        mismatch.reason.split("fire_at_ms: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_eq!(call.line, fire_at - 2_000);
    let ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message } =
        failure_of(&turn)
    else {
        panic!("{turn:?}")
    };
    assert_eq!(resource, "");
    assert_eq!(message, Some(mismatch.to_string()));
}

#[test]
fn a_call_in_a_retry_is_placed_where_the_retry_was_called() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let (_, mismatch) = story.changed(|ctx, _| async move {
        ctx.schedule_activity_with_retry("b", "", steadfast_core::RetryPolicy::new(1)).await
    });
    assert!(mismatch.call.unwrap().file.ends_with("mismatch.rs"));
}

#[test]
fn a_schedule_that_no_call_stands_for_is_named() {
    let kinds: [EventKind; 7] = [
        scheduled("a", "").1,
        EventKind::TimerCreated { fire_at_ms: 0 },
        EventKind::ExternalSubscribed { name: "w".into() },
        EventKind::QueueSubscribed { name: "q".into() },
        EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::2".into(),
            input: String::new(),
        },
        EventKind::SessionOpened { session_id: "s".into(), idle_timeout_ms: None, concurrency: None },
        EventKind::SessionClosed { session_id: "s".into() },
    ];
    for kind in kinds {
        let seen = text([started(""), (None, kind)], |_| futures::future::pending());
        assert_has(&seen, "nondeterministic: history schedule but no emitted action");
    }
    let chained =
        EventKind::OrchestrationChained { name: "d".into(), instance: "d".into(), input: String::new() };
    assert_has(
        &text([started(""), (None, chained)], |_| futures::future::pending()),
        "history OrchestrationChained but no emitted action",
    );
}

#[test]
fn a_status_or_key_event_that_no_call_stands_for_is_a_mismatch_unless_an_older_engine_wrote_it() {
    let set = EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 0 };
    for (kind, label) in [
        (EventKind::CustomStatusUpdated { status: None }, "custom status mismatch"),
        (set, "kv set mismatch"),
        (EventKind::KeyValueCleared { key: "k".into() }, "kv clear mismatch"),
        (EventKind::KeyValuesCleared, "kv clear_all mismatch"),
    ] {
        let events = history([started(""), (None, kind)]);
        let waits = |_: OrchestrationContext, _: String| futures::future::pending();
        assert_has(&failure_of(&replay_once(events.clone(), waits)).display_message(), label);
        let old = replay_once(stamped(events, "0.1.32"), waits);
        assert_eq!(old.verdict, Verdict::Waiting { stuck: true });
    }
}

/// Makes one call; what it returns is neither awaited nor dropped.
type Code = fn(&OrchestrationContext);

#[test]
fn each_field_that_is_compared_is_told_apart() {
    let cases: [(&str, Code, Code); 17] = [
        ("activity name", |c| forget(c.schedule_activity("a", "")), |c| forget(c.schedule_activity("b", ""))),
        (
            "activity input",
            |c| forget(c.schedule_activity("a", "1")),
            |c| forget(c.schedule_activity("a", "2")),
        ),
        (
            "tag",
            |c| forget(c.schedule_activity("a", "").with_tag("x")),
            |c| forget(c.schedule_activity("a", "")),
        ),
        (
            "session",
            |c| forget(c.schedule_activity("a", "").on_session("x")),
            |c| forget(c.schedule_activity("a", "")),
        ),
        ("wait", |c| forget(c.schedule_wait("a")), |c| forget(c.schedule_wait("b"))),
        ("dequeue", |c| forget(c.dequeue_event("a")), |c| forget(c.dequeue_event("b"))),
        (
            "child name",
            |c| forget(c.schedule_sub_orchestration("a", "")),
            |c| forget(c.schedule_sub_orchestration("b", "")),
        ),
        (
            "child input",
            |c| forget(c.schedule_sub_orchestration("a", "1")),
            |c| forget(c.schedule_sub_orchestration("a", "2")),
        ),
        (
            "detached name",
            |c| c.schedule_orchestration("a", "i", ""),
            |c| c.schedule_orchestration("b", "i", ""),
        ),
        (
            "detached id",
            |c| c.schedule_orchestration("a", "i", ""),
            |c| c.schedule_orchestration("a", "j", ""),
        ),
        (
            "detached input",
            |c| c.schedule_orchestration("a", "i", "1"),
            |c| c.schedule_orchestration("a", "i", "2"),
        ),
        ("kv key", |c| c.set_kv_value("a", ""), |c| c.set_kv_value("b", "")),
        ("kv value", |c| c.set_kv_value("a", "1"), |c| c.set_kv_value("a", "2")),
        ("kv clear", |c| c.clear_kv_value("a"), |c| c.clear_kv_value("b")),
        ("kinds", |c| forget(c.schedule_timer(Duration::ZERO)), |c| forget(c.schedule_wait("a"))),
        ("clear all", |c| c.clear_all_kv_values(), |c| c.reset_custom_status()),
        ("status", |c| c.reset_custom_status(), |c| c.clear_all_kv_values()),
    ];
    for (what, before, after) in cases {
        let run = |code: Code| {
            move |ctx: OrchestrationContext, _: String| async move {
                code(&ctx);
                Ok(ctx.schedule_wait("never").await)
            }
        };
        let mut story = story(run(before));
        story.waits([]);
        let (turn, mismatch) = story.changed(run(after));
        assert_eq!(mismatch.position, 2, "{what}");
        let seen = failure_of(&turn).display_message();
        assert!(seen.contains(": action=") && seen.contains(" vs event="), "{what}: {seen}");
    }
}

#[test]
fn what_is_not_compared_may_change() {
    let cases: [(Code, Code); 3] = [
        (
            |c| forget(c.schedule_timer(Duration::from_secs(1))),
            |c| forget(c.schedule_timer(Duration::from_secs(9))),
        ),
        (|c| c.set_custom_status("a"), |c| c.set_custom_status("b")),
        (
            |c| forget(c.schedule_sub_orchestration_with_id("c", "one", "")),
            |c| forget(c.schedule_sub_orchestration_with_id("c", "two", "")),
        ),
    ];
    for (before, after) in cases {
        let run = |code: Code| {
            move |ctx: OrchestrationContext, _: String| async move {
                code(&ctx);
                Ok(ctx.schedule_wait("never").await)
            }
        };
        let mut story = story(run(before));
        story.waits([]);
        assert_eq!(replay_once(story.history, run(after)).verdict, Verdict::Waiting { stuck: false });
    }
}

#[test]
fn cleared_keys_of_one_prune_may_come_in_another_order() {
    let events = history([
        started(""),
        (None, EventKind::KeyValueCleared { key: "b".into() }),
        (None, EventKind::KeyValueCleared { key: "a".into() }),
    ]);
    let mut execution = Execution::replay(setup(), events, |ctx, _| async move {
        ctx.clear_kv_value("a");
        ctx.clear_kv_value("b");
        Ok(ctx.schedule_wait("w").await)
    });
    assert!(execution.mismatch().is_some(), "the wait is one call too many");
    assert_eq!(execution.mismatch().unwrap().position, 4);
    assert!(matches!(execution.turn(5, vec![]).verdict, Verdict::Failed { .. }));
}

#[test]
fn both_inputs_stand_in_the_text() {
    let mut story = story(|ctx, _| async move {
        let answer = Either::First(Ok::<_, ()>("a"));
        ctx.schedule_activity("log", format!("{answer:?}")).await
    });
    story.waits([]);
    let (turn, _) = story.changed(|ctx, _| async move {
        let answer: Either<()> = Either::Second(Ok::<_, ()>("b"));
        ctx.schedule_activity("log", format!("{answer:?}")).await
    });
    let seen = failure_of(&turn).display_message();
    assert_has(&seen, "schedule mismatch");
    assert_has(&seen, "Second(Ok");
    assert_has(&seen, "First(Ok");
}

#[derive(Debug)]
#[allow(dead_code, reason = "shown by Debug")]
enum Either<E = ()> {
    First(Result<&'static str, E>),
    Second(Result<&'static str, E>),
}

#[test]
fn the_text_of_a_mismatch_is_bounded() {
    let run = |payload: &'static str| {
        move |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("a", payload.repeat(1_000_000)).await
        }
    };
    let mut scheduling = story(run("ä"));
    scheduling.waits([]);
    let (turn, mismatch) = scheduling.changed(run("ö"));
    assert!(mismatch.to_string().len() < 10_000);
    assert_has(&failure_of(&turn).display_message(), "bytes more");
    // One call too many, at the end of what is recorded.
    let mut waiting = story(|ctx, _| async move { Ok(ctx.schedule_wait("w").await) });
    waiting.waits([]);
    let (_, mismatch) = waiting.changed(|ctx, _| async move {
        let wait = ctx.schedule_wait("w");
        std::mem::forget(ctx.schedule_activity("a", "x".repeat(1_000_000)));
        Ok(wait.await)
    });
    assert!(mismatch.to_string().len() < 10_000);
    assert_eq!(mismatch.position, 3);
}

#[test]
fn code_that_returns_where_history_still_waits_is_a_mismatch() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let (turn, mismatch) = story.changed(|ctx, _| async move {
        drop(ctx.schedule_activity("a", ""));
        Ok("early".into())
    });
    assert_eq!(mismatch.position, 3);
    assert_has(&failure_of(&turn).display_message(), "returned while history says that it still waits");
}

#[test]
fn code_that_asks_for_more_than_history_has_is_a_mismatch_unless_an_older_engine_wrote_it() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let more = |ctx: OrchestrationContext, _: String| async move {
        let both = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.join2(both.0, both.1).await.1
    };
    let (_, mismatch) = story.changed(more);
    assert_eq!((mismatch.position, mismatch.found), (3, Some("CallActivity")));
    let old = stamped(story.history.clone(), "0.1.32");
    let turn = replay_once(old, more);
    assert_eq!(lines(&turn.events), ["3 ActivityScheduled(b, )"]);
}

#[test]
fn the_event_at_which_they_part_keeps_its_place_and_is_closed() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let (turn, _) = story.changed(|ctx, _| async move { ctx.schedule_activity("b", "").await });
    assert_eq!(turn.events[0].event_id, 3);
    assert_eq!(lines(&turn.events)[1], "4 ActivityCancelRequested(orchestration_terminal_failed) of 2");
    assert_eq!(withdrawn(&turn), [2]);
}

#[test]
fn only_the_first_parting_is_told() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").await?;
        ctx.schedule_activity("b", "").await
    });
    story.waits([]);
    story.waits([done(2, "")]);
    let (_, mismatch) = story.changed(|ctx, _| async move { Ok(ctx.schedule_wait("w").await) });
    assert_eq!(mismatch.position, 2);
}

#[test]
fn arrivals_of_the_turn_that_finds_a_mismatch_are_recorded_before_the_end() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let mut changed =
        Execution::replay(
            setup(),
            story.history,
            |ctx, _| async move { ctx.schedule_activity("b", "").await },
        );
    let turn = changed.turn(2_000, vec![done(2, "r"), raise("x", "")]);
    let seen = lines(&turn.events);
    assert_eq!(seen[..2], ["3 ActivityCompleted(r) of 2", "4 ExternalEvent(x, )"]);
    assert_has(&seen[2], "5 Failed(nondeterministic: schedule mismatch");
}

#[test]
fn histories_of_the_compatible_engine_replay_unchanged() {
    // Written by 0.1.32: two dequeues raced, the status came from the poll after the winner.
    let events = stamped(
        history([
            started(""),
            (None, EventKind::QueueSubscribed { name: "q".into() }),
            scheduled("a", ""),
            (None, EventKind::QueueEventDelivered { name: "q".into(), data: "m".into() }),
            (None, EventKind::CustomStatusUpdated { status: Some("m".into()) }),
            (None, EventKind::ExternalSubscribed { name: "w".into() }),
            (Some(3), EventKind::ActivityCancelRequested { reason: "dropped_future".into() }),
        ]),
        "0.1.32",
    );
    let mut execution = Execution::replay(setup(), events, |ctx, _| async move {
        let (q, a) = (ctx.dequeue_event("q"), ctx.schedule_activity("a", ""));
        if let steadfast_core::Either2::First(message) = ctx.select2(q, a).await {
            ctx.set_custom_status(message);
        }
        Ok(ctx.schedule_wait("w").await)
    });
    let turn = execution.turn(9_000, vec![raise("w", "end")]);
    assert_eq!(lines(&turn.events), ["8 ExternalEvent(w, end)", "9 Completed(end)"]);
}
