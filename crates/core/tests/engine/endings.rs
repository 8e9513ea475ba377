//! How a turn ends and what it sends.

use std::time::Duration;

use steadfast_core::replay::{CarryForwardOverflow, Notice, ParentNotice, SessionChange, Verdict};
use steadfast_core::{AppErrorKind, OrchestrationContext, WorkItem};

use crate::support::*;

/// Asks for one of everything that can be sent.
fn ask_for_everything(ctx: &OrchestrationContext) -> impl Sized + use<> {
    ctx.schedule_orchestration("Detached", "d-1", "");
    ctx.set_custom_status("s");
    ctx.set_kv_value("k", "v");
    (
        ctx.schedule_activity("a", ""),
        ctx.schedule_timer(Duration::from_secs(1)),
        ctx.schedule_sub_orchestration("c", ""),
        ctx.schedule_wait("w"),
        ctx.dequeue_event("q"),
    )
}

#[test]
fn a_turn_that_waits_sends_everything_it_asked_for() {
    let mut story = story(|ctx, _| async move {
        let _held = ask_for_everything(&ctx);
        ctx.schedule_wait("never").await;
        Ok(String::new())
    });
    let turn = story.waits([]);
    assert_eq!(
        sent(&turn),
        ["work 5 a()", "start d-1 Detached()", "timer 6 at 2000", "start i::sub::7 c() for 7"]
    );
    let WorkItem::StartOrchestration {
        parent_instance, parent_id, parent_execution_id, execution_id, ..
    } = &turn.effects.messages[2]
    else {
        panic!("{turn:?}")
    };
    assert_eq!((parent_instance.as_deref(), *parent_id), (Some("i"), Some(7)));
    assert_eq!((*parent_execution_id, *execution_id), (Some(1), 1));
}

#[test]
fn a_turn_that_completes_sends_detached_starts_only() {
    let mut story = story(|ctx, _| async move {
        let _dropped_at_return = ask_for_everything(&ctx);
        Ok("done".into())
    });
    let turn = story.turn([]);
    assert_eq!(sent(&turn), ["start d-1 Detached()"]);
    assert_eq!(
        lines(&turn.events)[4..],
        [
            "5 ActivityScheduled(a, )",
            "6 TimerCreated(2000)",
            "7 SubOrchestrationScheduled(c, sub::7, )",
            "8 ExternalSubscribed(w)",
            "9 QueueSubscribed(q)",
            "10 ActivityCancelRequested(dropped_future) of 5",
            "11 SubOrchestrationCancelRequested(dropped_future) of 7",
            "12 ExternalSubscribedCancelled(dropped_future) of 8",
            "13 QueueSubscriptionCancelled(dropped_future) of 9",
            "14 Completed(done)",
        ]
    );
}

#[test]
fn open_waits_are_marked_before_the_end_and_running_activities_after_it() {
    let mut story = story(|ctx, _| async move {
        std::mem::forget((
            ctx.dequeue_event("q"),
            ctx.schedule_wait("w2"),
            ctx.schedule_activity("a", ""),
            ctx.dequeue_event("q"),
            ctx.schedule_wait("w1"),
            ctx.schedule_activity("b", ""),
        ));
        ctx.schedule_wait("go").await;
        Ok(String::new())
    });
    story.waits([]);
    let turn = story.turn([enqueue("q", "for the first"), done(7, ""), raise("go", "")]);
    assert_eq!(
        lines(&turn.events)[3..],
        [
            "12 ExternalSubscribedCancelled(orchestration_terminal) of 3",
            "13 ExternalSubscribedCancelled(orchestration_terminal) of 6",
            "14 QueueSubscriptionCancelled(orchestration_terminal) of 5",
            "15 Completed()",
            "16 ActivityCancelRequested(orchestration_terminal_completed) of 4",
        ]
    );
    assert_eq!(withdrawn(&turn), [4]);
}

#[test]
fn each_end_gives_its_own_reason_for_stopping_activities() {
    for (how, reason) in [
        ("complete", "orchestration_terminal_completed"),
        ("fail", "orchestration_terminal_failed"),
        ("continue", "orchestration_terminal_continued_as_new"),
    ] {
        let mut story = story(|ctx, input| async move {
            std::mem::forget(ctx.schedule_activity("a", ""));
            ctx.schedule_wait("go").await;
            match input.as_str() {
                "complete" => Ok(String::new()),
                "fail" => Err("broken".into()),
                _ => ctx.continue_as_new("next").await,
            }
        })
        .input(how);
        story.waits([]);
        let turn = story.turn([raise("go", "")]);
        assert_eq!(lines(&turn.events).last().unwrap(), &format!("6 ActivityCancelRequested({reason}) of 2"));
        assert_eq!(withdrawn(&turn), [2]);
    }
}

#[test]
fn the_parent_is_told_of_a_result_and_of_a_failure_but_not_of_a_continuation() {
    let run = |how: &str| {
        let mut story = story(|ctx, input| async move {
            match input.as_str() {
                "ok" => Ok("r".into()),
                "err" => Err("e".into()),
                _ => ctx.continue_as_new("next").await,
            }
        })
        .parent(parent())
        .input(how);
        story.turn([]).effects
    };
    let told = |outcome| Some(ParentNotice { parent: parent(), outcome });
    assert_eq!(run("ok").parent, told(Ok("r".into())));
    assert_eq!(run("err").parent, told(Err(own_error("e"))));
    let continued = run("continue");
    assert_eq!(continued.parent, None);
    let WorkItem::ContinueAsNew { parent_instance, parent_id, parent_execution_id, .. } =
        &continued.messages[0]
    else {
        panic!("{continued:?}")
    };
    assert_eq!(
        (parent_instance.as_deref(), *parent_id, *parent_execution_id),
        (Some("mother"), Some(7), Some(3))
    );
}

#[test]
fn a_notice_becomes_a_message_to_the_linked_execution_or_to_the_given_one() {
    let notice = ParentNotice { parent: parent(), outcome: Ok("r".into()) };
    let WorkItem::SubOrchCompleted { parent_execution_id: 3, parent_id: 7, .. } =
        notice.clone().into_message(9)
    else {
        panic!("{notice:?}")
    };
    let mut unlinked = ParentNotice { outcome: Err(own_error("e")), ..notice };
    unlinked.parent.execution_id = None;
    let message = unlinked.into_message(9);
    assert!(matches!(message, WorkItem::SubOrchFailed { parent_execution_id: 9, .. }), "{message:?}");
}

#[test]
fn a_cancelled_instance_fails_as_cancelled_and_stops_its_children() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_orchestration("Detached", "d-0", "");
        std::mem::forget(ctx.schedule_sub_orchestration("c", ""));
        std::mem::forget(ctx.schedule_sub_orchestration_with_id("c", "named", ""));
        ctx.schedule_wait("go").await;
        ctx.schedule_orchestration("Detached", "d-1", "");
        std::mem::forget(ctx.schedule_sub_orchestration("never started", ""));
        Ok("discarded".into())
    })
    .parent(parent());
    story.waits([]);
    let turn = story.turn([raise("go", ""), cancel("why")]);
    let details = app_error(AppErrorKind::Cancelled { reason: "why".into() }, "");
    assert_eq!(turn.verdict, Verdict::Failed { details: details.clone() });
    assert_eq!(
        sent(&turn),
        ["start d-1 Detached()", "cancel i::sub::3: parent canceled", "cancel named: parent canceled"]
    );
    assert_eq!(turn.effects.parent, Some(ParentNotice { parent: parent(), outcome: Err(details) }));
}

#[test]
fn a_cancel_together_with_the_start_lets_the_code_run_once_and_discards_its_result() {
    let mut story = story(|ctx, _| async move {
        ctx.set_custom_status("ran");
        Ok("discarded".into())
    });
    assert_eq!(
        story.events([cancel("early")]),
        [
            "1 Started()",
            "2 CancelRequested(early)",
            "3 CustomStatusUpdated(Some(\"ran\"))",
            "4 Failed(canceled: early)"
        ]
    );
}

#[test]
fn a_cancelled_turn_reports_no_dropped_futures() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.select2(a, b).await;
        ctx.schedule_wait("go").await;
        Ok(String::new())
    });
    story.waits([]);
    assert_eq!(
        story.events([done(2, ""), cancel("c")])[2..],
        [
            "6 ExternalSubscribed(go)",
            "7 ExternalSubscribedCancelled(orchestration_terminal) of 6",
            "8 Failed(canceled: c)",
            "9 ActivityCancelRequested(orchestration_terminal_failed) of 3",
        ]
    );
}

// --- continue-as-new

#[test]
fn continue_as_new_takes_input_version_status_and_unread_messages_along() {
    let mut story = story(|ctx, _| async move {
        ctx.set_custom_status("half");
        ctx.dequeue_event("b").await;
        ctx.continue_as_new_versioned("2.0.0", "next").await
    });
    let turn = story.turn([enqueue("b", "1"), enqueue("a", "2"), enqueue("b", "3")]);
    assert_eq!(turn.verdict, Verdict::ContinuedAsNew { input: "next".into(), version: Some("2.0.0".into()) });
    let WorkItem::ContinueAsNew {
        orchestration,
        input,
        version,
        carry_forward_events,
        initial_custom_status,
        ..
    } = &turn.effects.messages[0]
    else {
        panic!("{turn:?}")
    };
    assert_eq!((orchestration.as_str(), input.as_str(), version.as_deref()), ("Test", "next", Some("2.0.0")));
    assert_eq!(initial_custom_status.as_deref(), Some("half"));
    assert_eq!(carry_forward_events, &[("a".into(), "2".into()), ("b".into(), "3".into())]);
    assert_eq!(turn.metadata().status.as_deref(), Some("ContinuedAsNew"));
    assert_eq!(turn.metadata().output.as_deref(), Some("next"));
}

#[test]
fn a_message_in_reserve_for_a_dequeue_that_never_read_it_is_carried_too() {
    let mut story = story(|ctx, _| async move {
        let _held = ctx.dequeue_event("q");
        ctx.schedule_wait("go").await;
        ctx.continue_as_new("next").await
    });
    story.waits([]);
    story.waits([enqueue("q", "unread")]);
    let turn = story.turn([raise("go", "")]);
    let WorkItem::ContinueAsNew { carry_forward_events, .. } = &turn.effects.messages[0] else { panic!() };
    assert_eq!(carry_forward_events, &[("q".into(), "unread".into())]);
}

fn overflowing(overflow: CarryForwardOverflow) -> steadfast_core::replay::Turn {
    let mut story = story(|ctx, _| async move { ctx.continue_as_new("next").await })
        .options(|options| options.carry_forward_overflow = overflow);
    story.turn((0..102).map(|n| enqueue("q", &n.to_string())))
}

#[test]
fn messages_beyond_a_hundred_are_dropped_with_a_notice_each() {
    let turn = overflowing(CarryForwardOverflow::Drop);
    assert_eq!(sent(&turn), ["continue(next)"]);
    let WorkItem::ContinueAsNew { carry_forward_events, .. } = &turn.effects.messages[0] else { panic!() };
    assert_eq!(carry_forward_events.len(), 100);
    assert_eq!(carry_forward_events[99].1, "99");
    let lost = |data: &str| Notice::CarryForwardDropped { name: "q".into(), data: data.into() };
    assert_eq!(turn.notices, [lost("100"), lost("101")]);
}

#[test]
fn messages_beyond_a_hundred_are_sent_behind_the_start_where_asked_for() {
    let turn = overflowing(CarryForwardOverflow::Keep);
    assert_eq!(sent(&turn), ["continue(next)", "enqueue q: 100", "enqueue q: 101"]);
    assert_eq!(turn.notices, []);
}

#[test]
fn a_successor_gets_what_was_carried_before_anything_new() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
        Ok(format!("{a}{b}"))
    })
    .execution(2)
    .started(|start| start.carry_forward = vec![("q".into(), "old".into())]);
    let turn = story.turn([enqueue("q", "new")]);
    assert_eq!(turn.verdict, Verdict::Completed { output: "oldnew".into() });
    assert_eq!(
        lines(&turn.events)[..3],
        ["1 Started()", "2 QueueEventDelivered(q, old)", "3 QueueEventDelivered(q, new)"]
    );
}

#[test]
fn continue_as_new_alone_leaves_no_gap_and_a_call_after_it_does() {
    let mut story_of_one = story(|ctx, _| async move { ctx.continue_as_new("next").await });
    assert_eq!(story_of_one.events([]), ["1 Started()", "2 ContinuedAsNew(next)"]);
    let mut story_of_two = story(|ctx, _| async move {
        let next = ctx.continue_as_new("next");
        ctx.set_custom_status("late");
        next.await
    });
    assert_eq!(
        story_of_two.events([]),
        ["1 Started()", "3 CustomStatusUpdated(Some(\"late\"))", "4 ContinuedAsNew(next)"]
    );
}

#[test]
fn the_first_continue_as_new_counts_and_wins_over_a_result() {
    let mut story = story(|ctx, _| async move {
        std::mem::forget(ctx.continue_as_new("first"));
        std::mem::forget(ctx.continue_as_new("second"));
        Ok("result".into())
    });
    let turn = story.turn([]);
    assert_eq!(turn.verdict, Verdict::ContinuedAsNew { input: "first".into(), version: None });
}

#[test]
fn continue_as_new_leaves_children_running_and_reports_no_dropped_futures() {
    let mut story = story(|ctx, _| async move {
        let child = ctx.schedule_sub_orchestration("c", "");
        let activity = ctx.schedule_activity("a", "");
        ctx.schedule_wait("go").await;
        drop((child, activity));
        ctx.continue_as_new("next").await
    });
    story.waits([]);
    let turn = story.turn([raise("go", "")]);
    assert_eq!(sent(&turn), ["continue(next)"]);
    assert_eq!(
        lines(&turn.events)[1..],
        ["6 ContinuedAsNew(next)", "7 ActivityCancelRequested(orchestration_terminal_continued_as_new) of 3"]
    );
}

#[test]
fn which_dequeues_are_unanswered_at_the_end_follows_from_history_alone() {
    // The older dequeue is dropped in this turn, so its place passes to the newer one; but history, which has
    // no word of the drop, has one message for two takers.
    let mut story = story(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        ctx.schedule_wait("go").await;
        drop(older);
        newer.await;
        ctx.continue_as_new("next").await
    });
    story.waits([]);
    assert_eq!(
        story.events([raise("go", ""), enqueue("q", "m")])[2..],
        ["7 QueueSubscriptionCancelled(orchestration_terminal) of 3", "8 ContinuedAsNew(next)"]
    );
}

#[test]
fn a_typed_continue_as_new_encodes_its_input() {
    let mut story = story(|ctx, _| async move { ctx.continue_as_new_typed(&vec![1, 2]).await });
    assert_eq!(story.turn([]).verdict, Verdict::ContinuedAsNew { input: "[1,2]".into(), version: None });
}

#[test]
fn a_finished_execution_decides_nothing_more() {
    let mut story = story(|_, _| async move { Ok(String::new()) });
    story.output([]);
    let turn = story.turn([raise("x", ""), cancel("late")]);
    assert_eq!((turn.verdict, turn.events.len()), (Verdict::Ended, 0));
    assert_eq!(turn.effects, steadfast_core::replay::Effects::default());
}

#[test]
fn a_turn_without_arrivals_changes_nothing() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let turn = story.waits([]);
    assert_eq!((turn.events.len(), sent(&turn).len()), (0, 0));
}

#[test]
fn an_ended_execution_watches_no_session() {
    let mut story = story(|ctx, _| async move {
        std::mem::forget(ctx.wait_for_session_migration("s"));
        Ok(String::new())
    });
    assert_eq!(story.turn([]).effects.sessions, Vec::<SessionChange>::new());
}
