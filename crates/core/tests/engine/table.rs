//! What each kind of event does to the code, row by row, and how arrivals become events.

use std::time::Duration;

use steadfast_core::replay::{Notice, Verdict};
use steadfast_core::{AppErrorKind, WorkItem};

use crate::support::*;

#[test]
fn the_first_turn_records_the_start_and_runs_the_code() {
    let mut story = story(|ctx, input| async move { ctx.schedule_activity("a", input).await }).input("x");
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events), ["1 Started(x)", "2 ActivityScheduled(a, x)"]);
    assert_eq!(sent(&turn), ["work 2 a(x)"]);
}

#[test]
fn a_completed_activity_answers_its_future() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    story.waits([]);
    let turn = story.turn([done(2, "r")]);
    assert_eq!(lines(&turn.events), ["3 ActivityCompleted(r) of 2", "4 Completed(r)"]);
    assert_eq!(turn.verdict, Verdict::Completed { output: "r".into() });
}

#[test]
fn a_failed_activity_answers_with_the_text_that_users_see() {
    let mut story = story(|ctx, _| async move { Ok(ctx.schedule_activity("a", "").await.unwrap_err()) });
    story.waits([]);
    assert_eq!(story.output([failed(2, "broken")]), "broken");
}

#[test]
fn a_timer_is_sent_as_a_message_for_later_and_answers_when_it_fires() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_timer(Duration::from_millis(250)).await;
        Ok("woke".into())
    });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events), ["1 Started()", "2 TimerCreated(1250)"]);
    assert_eq!(sent(&turn), ["timer 2 at 1250"]);
    assert_eq!(story.events([fired_at(2, 1_250)]), ["3 TimerFired of 2", "4 Completed(woke)"]);
}

#[test]
fn a_timer_beyond_the_end_of_time_is_due_at_the_end_of_time() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_timer(Duration::MAX).await;
        Ok(String::new())
    });
    assert_eq!(story.events([]), ["1 Started()".to_owned(), format!("2 TimerCreated({})", u64::MAX)]);
}

#[test]
fn a_raised_event_answers_a_wait_of_its_name() {
    let mut story = story(|ctx, _| async move { Ok(ctx.schedule_wait("go").await) });
    assert_eq!(story.events([]), ["1 Started()", "2 ExternalSubscribed(go)"]);
    assert_eq!(story.events([raise("go", "d")]), ["3 ExternalEvent(go, d)", "4 Completed(d)"]);
}

#[test]
fn a_queue_message_answers_a_dequeue_of_its_name() {
    let mut story = story(|ctx, _| async move { Ok(ctx.dequeue_event("q").await) });
    assert_eq!(story.events([]), ["1 Started()", "2 QueueSubscribed(q)"]);
    assert_eq!(story.events([enqueue("q", "m")]), ["3 QueueEventDelivered(q, m)", "4 Completed(m)"]);
}

#[test]
fn a_child_is_started_and_its_result_answers() {
    let mut story = story(|ctx, _| async move { ctx.schedule_sub_orchestration("c", "x").await });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events), ["1 Started()", "2 SubOrchestrationScheduled(c, sub::2, x)"]);
    assert_eq!(sent(&turn), ["start i::sub::2 c(x) for 2"]);
    assert_eq!(story.events([child_done(2, "r")]), ["3 SubOrchestrationCompleted(r) of 2", "4 Completed(r)"]);
}

#[test]
fn a_failed_child_answers_with_the_text_that_users_see() {
    let mut story =
        story(|ctx, _| async move { Ok(ctx.schedule_sub_orchestration("c", "").await.unwrap_err()) });
    story.waits([]);
    let details = app_error(AppErrorKind::Cancelled { reason: "no".into() }, "");
    assert_eq!(story.output([child_failed(2, details)]), "canceled: no");
}

#[test]
fn a_detached_start_is_recorded_and_sent_without_a_parent() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_orchestration("Report", "r-1", "x");
        ctx.schedule_wait("never").await;
        Ok(String::new())
    });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[1], "2 OrchestrationChained(Report, r-1, x)");
    assert_eq!(sent(&turn), ["start r-1 Report(x)"]);
}

#[test]
fn status_and_keys_are_recorded_one_event_for_each_call() {
    let mut story = story(|ctx, _| async move {
        ctx.set_custom_status("busy");
        ctx.reset_custom_status();
        ctx.set_kv_value("k", "v");
        ctx.clear_kv_value("k");
        ctx.clear_all_kv_values();
        Ok(String::new())
    });
    assert_eq!(
        story.events([]),
        [
            "1 Started()",
            "2 CustomStatusUpdated(Some(\"busy\"))",
            "3 CustomStatusUpdated(None)",
            "4 KeyValueSet(k, v)",
            "5 KeyValueCleared(k)",
            "6 KeyValuesCleared",
            "7 Completed()",
        ]
    );
}

#[test]
fn a_call_is_recorded_although_nobody_polls_its_future() {
    let mut story = story(|ctx, _| async move {
        let held = ctx.schedule_activity("held", "");
        ctx.schedule_wait("go").await;
        held.await
    });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[1..], ["2 ActivityScheduled(held, )", "3 ExternalSubscribed(go)"]);
    assert_eq!(sent(&turn), ["work 2 held()"]);
    story.waits([done(2, "r")]);
    assert_eq!(story.output([raise("go", "")]), "r");
}

#[test]
fn answers_of_one_batch_are_polled_one_at_a_time() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        let first = ctx.select2(a, b).await.index();
        Ok(first.to_string())
    });
    story.waits([]);
    // Both answers are there, but the second argument's came first.
    assert_eq!(story.output([done(3, ""), done(2, "")]), "1");
}

#[test]
fn select_winners_follow_history_whatever_the_order_of_arguments() {
    for (batch, winner) in [([done(2, ""), done(3, "")], "0"), ([done(3, ""), done(2, "")], "1")] {
        let mut story = story(|ctx, _| async move {
            let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
            Ok(ctx.select2(a, b).await.index().to_string())
        });
        story.waits([]);
        assert_eq!(story.output(batch), winner);
    }
}

#[test]
fn code_after_an_await_asks_at_its_place_in_history() {
    let mut story = story(|ctx, _| async move {
        let branch = |name: &'static str| {
            let ctx = ctx.clone();
            async move {
                ctx.schedule_activity(name, "1").await.unwrap();
                ctx.schedule_activity(name, "2").await.unwrap()
            }
        };
        Ok(ctx.join(vec![branch("a"), branch("b")]).await.concat())
    });
    story.waits([]);
    let turn = story.waits([done(3, ""), done(2, "")]);
    assert_eq!(
        lines(&turn.events),
        [
            "4 ActivityCompleted() of 3",
            "5 ActivityCompleted() of 2",
            "6 ActivityScheduled(b, 2)",
            "7 ActivityScheduled(a, 2)"
        ]
    );
}

#[test]
fn messages_for_another_execution_change_nothing() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await }).execution(2);
    story.waits([]);
    let turn = story.waits([done(2, "old"), fired(2), child_done(2, "old"), migrated("s", 4)]);
    assert_eq!(turn.events, []);
    assert_eq!(turn.notices.len(), 4);
    assert!(turn.notices.iter().all(
        |notice| matches!(notice, Notice::Ignored { why, .. } if *why == "it belongs to another execution")
    ));
}

#[test]
fn starts_and_work_that_reach_a_running_execution_change_nothing() {
    let mut story = story(|ctx, _| async move { ctx.schedule_activity("a", "").await });
    let first = story.waits([]);
    let start = WorkItem::StartOrchestration {
        instance: INSTANCE.into(),
        orchestration: "Test".into(),
        input: "again".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let turn = story.waits([start, first.effects.work[0].item.clone()]);
    assert_eq!(turn.events, []);
    assert_eq!(turn.notices.len(), 2);
}

#[test]
fn a_repeated_answer_in_one_batch_is_dropped() {
    let mut story = story(|ctx, _| async move {
        let timer = ctx.schedule_timer(Duration::ZERO);
        let child = ctx.schedule_sub_orchestration("c", "");
        ctx.schedule_activity("a", "").await?;
        child.await?;
        timer.await;
        Ok("all".into())
    });
    story.waits([]);
    let batch = [
        done(4, "1"),
        failed(4, "2"),
        fired(2),
        fired(2),
        child_failed(3, own_error("late")),
        child_done(3, "x"),
    ];
    let turn = story.turn(batch);
    assert_eq!(
        lines(&turn.events),
        [
            "5 ActivityCompleted(1) of 4",
            "6 TimerFired of 2",
            "7 SubOrchestrationFailed(late) of 3",
            "8 Failed(late)"
        ]
    );
}

#[test]
fn raises_messages_and_cancels_are_not_taken_for_duplicates() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_wait("never").await;
        Ok(String::new())
    });
    story.waits([]);
    let turn = story.turn([
        raise("x", "1"),
        raise("x", "1"),
        enqueue("q", "1"),
        enqueue("q", "1"),
        cancel("first"),
        cancel("second"),
    ]);
    assert_eq!(
        lines(&turn.events),
        [
            "3 ExternalEvent(x, 1)",
            "4 ExternalEvent(x, 1)",
            "5 QueueEventDelivered(q, 1)",
            "6 QueueEventDelivered(q, 1)",
            "7 CancelRequested(first)",
            "8 ExternalSubscribedCancelled(orchestration_terminal) of 2",
            "9 Failed(canceled: first)",
        ]
    );
}

#[test]
fn an_answer_to_nothing_fails_the_execution_before_its_code_runs() {
    for (message, text) in [
        (done(77, ""), "no matching schedule for completion id=77"),
        (failed(77, ""), "no matching schedule for completion id=77"),
        (fired(77), "no matching schedule for timer id=77"),
        (child_done(77, ""), "no matching schedule for sub-orchestration id=77"),
        (fired(2), "completion kind mismatch for id=2, expected 'activity', got 'timer'"),
        (done(3, ""), "completion kind mismatch for id=3, expected 'timer', got 'activity'"),
        (done(4, ""), "completion kind mismatch for id=4, expected 'suborchestration', got 'activity'"),
        (child_done(2, ""), "completion kind mismatch for id=2, expected 'activity', got 'suborchestration'"),
    ] {
        let mut story = story(|ctx, _| async move {
            let (a, t) = (ctx.schedule_activity("a", ""), ctx.schedule_timer(Duration::ZERO));
            let c = ctx.schedule_sub_orchestration("c", "");
            drop(ctx.join3(a, t, c).await);
            Ok(String::new())
        });
        story.waits([]);
        let turn = story.turn([message, raise("also", "")]);
        assert_eq!(failure_of(&turn).display_message(), format!("nondeterministic: {text}"));
        assert_eq!(lines(&turn.events)[0], "5 ExternalEvent(also, )");
    }
}

#[test]
fn a_failure_that_is_not_the_applications_own_ends_the_orchestration() {
    let details = infrastructure("disk full");
    for message in [failed_with(2, details.clone()), child_failed(3, details.clone())] {
        let mut story = story(|ctx, _| async move {
            let (a, c) = (ctx.schedule_activity("a", ""), ctx.schedule_sub_orchestration("c", ""));
            drop(ctx.join2(a, c).await);
            Ok("handled".into())
        });
        story.waits([]);
        assert_eq!(failure_of(&story.turn([message])), details);
    }
}

#[test]
fn two_raises_of_one_batch_are_both_recorded_though_the_first_completes() {
    let mut story = story(|ctx, _| async move { Ok(ctx.schedule_wait("go").await) });
    story.waits([]);
    assert_eq!(
        story.events([raise("go", "1"), raise("go", "2")]),
        ["3 ExternalEvent(go, 1)", "4 ExternalEvent(go, 2)", "5 Completed(1)"]
    );
}

#[test]
fn an_immediate_failure_is_exactly_a_start_and_an_end() {
    let mut story = story(|_, _| async move { Err("at once".into()) });
    assert_eq!(story.events([]), ["1 Started()", "2 Failed(at once)"]);
}

#[test]
fn the_start_keeps_what_it_was_given() {
    let mut story = story(|ctx, _| async move { Ok(ctx.get_custom_status().unwrap_or_default()) })
        .parent(parent())
        .started(|start| start.custom_status = Some("before".into()));
    let turn = story.turn([]);
    assert_eq!(turn.verdict, Verdict::Completed { output: "before".into() });
    let metadata = turn.metadata();
    assert_eq!(metadata.orchestration_name.as_deref(), Some("Test"));
    assert_eq!(metadata.parent_instance_id.as_deref(), Some("mother"));
    assert_eq!(metadata.status.as_deref(), Some("Completed"));
    assert_eq!(metadata.output.as_deref(), Some("before"));
}

#[test]
fn a_stamp_that_cannot_be_read_is_told_on_every_turn_and_changes_nothing() {
    let events = stamped(history([started(""), scheduled("a", "")]), "abc");
    let mut execution = steadfast_core::replay::Execution::replay(setup(), events, |ctx, _| async move {
        ctx.schedule_activity("a", "").await
    });
    for _ in 0..2 {
        let turn = execution.turn(1, vec![]);
        assert_eq!(turn.verdict, Verdict::Waiting { stuck: false });
        assert!(
            matches!(&turn.notices[..], [Notice::InvalidPinnedVersion { version, .. }] if version == "abc")
        );
    }
}

#[test]
fn a_turn_is_never_earlier_than_a_timer_that_it_consumes() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_timer(Duration::from_secs(60)).await;
        ctx.set_kv_value("k", "v");
        ctx.schedule_timer(Duration::from_secs(1)).await;
        Ok(String::new())
    });
    story.waits([]);
    let turn = story.waits([fired_at(2, 61_000)]);
    assert_eq!(lines(&turn.events).last().unwrap(), "5 TimerCreated(62000)");
    assert!(turn.events.iter().all(|event| event.timestamp_ms == 61_000));
}

#[test]
fn system_calls_are_activities_with_reserved_names() {
    let mut story = story(|ctx, _| async move {
        let id = ctx.new_guid().await?;
        let now = ctx.utc_now().await?;
        let value = ctx.get_kv_value_from_instance("other", "k").await?;
        let ms = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        Ok(format!("{id} {ms} {value:?}"))
    });
    assert_eq!(sent(&story.waits([])), ["work 2 __duroxide_syscall:new_guid()"]);
    assert_eq!(sent(&story.waits([done(2, "g")])), ["work 4 __duroxide_syscall:utc_now_ms()"]);
    assert_eq!(
        sent(&story.waits([done(4, "1500")])),
        ["work 6 __duroxide_syscall:get_kv_value({\"instance_id\":\"other\",\"key\":\"k\"})"]
    );
    assert_eq!(story.output([done(6, "\"v\"")]), "g 1500 Some(\"v\")");
}
