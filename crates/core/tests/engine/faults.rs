//! One test for each fault of the original that lives in the engine, named after what must hold.

use std::time::Duration;

use steadfast_core::replay::{
    CloseCause, Effects, Execution, SessionChange, Turn, Verdict, fail_without_code,
};
use steadfast_core::{
    ErrorDetails, EventKind, MAX_KV_KEYS, OrchestrationContext, PoisonMessageType, WorkItem,
};

use crate::support::*;

/// F2
#[test]
fn a_child_whose_start_is_not_sent_gets_no_cancel() {
    for how in ["complete", "fail", "cancel", "panic", "limit"] {
        let mut story = story(|ctx, how| async move {
            let child = ctx.schedule_sub_orchestration("c", "");
            match how.as_str() {
                "complete" => return Ok(String::new()),
                "fail" => return Err("broken".into()),
                "panic" => panic!("on purpose"),
                "limit" => ctx.set_kv_value("k\0", ""),
                _ => {}
            }
            child.await
        })
        .input(how);
        let turn = story.turn((how == "cancel").then(|| cancel("c")));
        assert!(turn.verdict.is_terminal());
        assert_eq!(sent(&turn), Vec::<String>::new(), "{how}");
    }
}

/// Has an activity, a child, a session and a parent when it ends.
async fn entangled(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    ctx.open_session_with_id("s").await?;
    let held = (
        ctx.schedule_activity_on_session("a", "", "s"),
        ctx.schedule_sub_orchestration("c", ""),
        ctx.schedule_wait("w"),
        ctx.dequeue_event("q"),
    );
    let fatal = ctx.schedule_activity("fatal", "");
    ctx.schedule_wait("go").await;
    std::mem::forget(held);
    match how.as_str() {
        "complete" => Ok("done".into()),
        "fail" => Err("broken".into()),
        "panic" => panic!("on purpose"),
        "limit" => {
            ctx.set_custom_status("x".repeat(300_000));
            fatal.await
        }
        _ => fatal.await,
    }
}

/// Does this end close everything, once, and tell the parent?
fn assert_closes_everything(turn: &Turn, how: &str) {
    let terminals = turn.events.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(terminals, 1, "{how}");
    let Effects { messages, cancelled_activities, sessions, parent, .. } = &turn.effects;
    assert!(cancelled_activities.iter().any(|activity| activity.activity_id == 3), "{how}: {turn:?}");
    let cancels = messages.iter().filter(
        |message| matches!(message, WorkItem::CancelInstance { instance, .. } if instance == "i::sub::4"),
    );
    assert_eq!(cancels.count(), 1, "{how}");
    let close = SessionChange::Close { session_id: "s".into(), cause: CloseCause::End };
    assert_eq!(sessions.iter().filter(|change| **change == close).count(), 1, "{how}");
    assert_eq!(parent.as_ref().map(|notice| &notice.parent), Some(&crate::support::parent()), "{how}");
    let texts = lines(&turn.events);
    for marked in [5, 6] {
        let mark = |text: &&String| text.ends_with(&format!("Cancelled(orchestration_terminal) of {marked}"));
        assert_eq!(texts.iter().filter(mark).count(), 1, "{how}: {texts:?}");
    }
}

/// F6
#[test]
fn every_path_to_an_end_closes_what_is_open_and_tells_the_parent_once() {
    for how in ["complete", "fail", "cancel", "panic", "limit", "fatal activity", "unknown answer"] {
        let mut story = story(entangled).owned_sessions().parent(parent()).input(how);
        story.waits([]);
        let arrivals = match how {
            "cancel" => vec![cancel("enough")],
            "fatal activity" => vec![failed_with(7, infrastructure("gone"))],
            "unknown answer" => vec![done(77, "")],
            _ => vec![raise("go", "")],
        };
        assert_closes_everything(&story.turn(arrivals), how);
    }
}

/// F6
#[test]
fn a_mismatch_closes_what_is_open_and_tells_the_parent_once() {
    let mut story = story(entangled).owned_sessions().parent(parent());
    story.waits([]);
    let mut changed =
        Execution::replay(story.setup().clone(), story.history, |_, _| async { Ok("!".into()) });
    assert_closes_everything(&changed.turn(2_000, vec![]), "mismatch");
}

/// F6
#[test]
fn an_end_without_code_closes_what_is_open_and_tells_the_parent_once() {
    let mut story = story(entangled).owned_sessions().parent(parent());
    story.waits([]);
    let details = ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: PoisonMessageType::Orchestration { instance: INSTANCE.into(), execution_id: 1 },
        message: "[]".into(),
    };
    let turn = fail_without_code(&identity(1), &story.history, 2_000, details.clone()).unwrap();
    assert_closes_everything(&turn, "poison");
    assert_eq!(turn.verdict, Verdict::Failed { details: details.clone() });
    story.history.extend(turn.events);
    let again = fail_without_code(&identity(1), &story.history, 3_000, details).unwrap();
    assert_eq!((again.verdict, again.events), (Verdict::Ended, vec![]));
}

/// F14
#[test]
fn code_that_already_ran_sees_that_it_replays() {
    let mut story = story(|ctx, _| async move {
        let first = ctx.is_replaying();
        ctx.schedule_activity("a", "").await?;
        let second = ctx.is_replaying();
        ctx.schedule_activity("b", "").await?;
        Ok(format!("{first} {second} {}", ctx.is_replaying()))
    })
    .warm_only();
    story.turn([]);
    story.restart();
    story.turn([done(2, "")]);
    story.restart();
    assert_eq!(story.output([done(4, "")]), "true true false");
}

/// F15
#[test]
fn a_duplicate_of_any_completion_in_any_later_turn_changes_nothing() {
    let answers = |id: u64| [done(id, "dup"), failed(id, "dup"), failed_with(id, infrastructure("dup"))];
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").await.ok();
        ctx.schedule_activity("b", "").await.ok();
        ctx.schedule_sub_orchestration("c", "").await.ok();
        ctx.schedule_timer(Duration::ZERO).await;
        Ok(ctx.schedule_wait("go").await)
    });
    story.waits([]);
    story.waits([failed(2, "first")]);
    story.waits([done(4, "first")]);
    story.waits([child_failed(6, own_error("first"))]);
    story.waits([fired(8)]);
    for _ in 0..2 {
        for duplicate in answers(2).into_iter().chain(answers(4)).chain([
            child_done(6, "dup"),
            child_failed(6, infrastructure("dup")),
            fired(8),
        ]) {
            assert_eq!(story.waits([duplicate]).events, []);
        }
        story.restart();
    }
    assert_eq!(story.output([raise("go", "on")]), "on");
}

/// F16
#[test]
fn what_history_holds_after_the_code_returned_is_checked() {
    let returned = |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("a", "").await };
    for (extra, text) in [
        (scheduled("late", ""), "history schedule but no emitted action"),
        ((None, EventKind::CustomStatusUpdated { status: None }), "custom status mismatch"),
        (
            (None, EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 0 }),
            "kv set mismatch",
        ),
        ((None, EventKind::KeyValueCleared { key: "k".into() }), "kv clear mismatch"),
        ((None, EventKind::KeyValuesCleared), "kv clear_all mismatch"),
        (completed(2, "twice"), "completion without open schedule"),
    ] {
        let events = history([started(""), scheduled("a", ""), completed(2, "r"), extra]);
        let text_seen = failure_of(&replay_once(events.clone(), returned)).display_message();
        assert_has(&text_seen, text);
        let mismatch = steadfast_core::replay::verify(setup(), events, returned).unwrap_err();
        assert_eq!(mismatch.position, 4);
    }
}

/// F16
#[test]
fn the_kind_of_every_completion_is_checked() {
    let timer = (None, EventKind::TimerCreated { fire_at_ms: 1 });
    let child = (
        None,
        EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::4".into(),
            input: String::new(),
        },
    );
    let ask = |ctx: OrchestrationContext, _: String| async move {
        let (a, t) = (ctx.schedule_activity("a", ""), ctx.schedule_timer(Duration::ZERO));
        let c = ctx.schedule_sub_orchestration("c", "");
        let (a, (), c) = ctx.join3(a, t, c).await;
        Ok(a? + &c?)
    };
    let answers = [
        (completed(3, ""), "expected activity, found timer"),
        (
            (Some(4), EventKind::ActivityFailed { details: own_error("e") }),
            "expected activity, found suborchestration",
        ),
        ((Some(2), EventKind::TimerFired { fire_at_ms: 1 }), "expected timer, found activity"),
        (
            (Some(3), EventKind::SubOrchestrationCompleted { result: String::new() }),
            "expected suborchestration, found timer",
        ),
        (
            (Some(2), EventKind::SubOrchestrationFailed { details: own_error("e") }),
            "expected suborchestration, found activity",
        ),
    ];
    for (answer, text) in answers {
        let events = history([started(""), scheduled("a", ""), timer.clone(), child.clone(), answer]);
        let seen = failure_of(&replay_once(events, ask)).display_message();
        assert_has(&seen, &format!("completion kind mismatch: {text}"));
    }
}

/// F16
#[test]
fn the_version_of_a_child_is_compared_and_histories_without_it_are_accepted() {
    let asks = |version: Option<&'static str>| {
        move |ctx: OrchestrationContext, _: String| async move {
            let version = version.map(str::to_owned);
            ctx.schedule_orchestration_versioned("d", version.clone(), "d-1", "");
            ctx.schedule_sub_orchestration_versioned("c", version, "").await
        }
    };
    let mut story = story(asks(Some("2.0.0")));
    story.waits([]);
    for changed in [None, Some("3.0.0")] {
        let (turn, mismatch) = story.changed(asks(changed));
        assert_has(&failure_of(&turn).display_message(), "schedule mismatch");
        assert_eq!(mismatch.position, 2);
    }
    let mut old = stamped(story.history.clone(), "0.1.32");
    old.iter_mut().for_each(|event| event.child_version = None);
    let turn = replay_once(old, asks(Some("2.0.0")));
    assert_eq!(turn.verdict, Verdict::Waiting { stuck: false });
}

/// F17
#[test]
fn the_recorded_time_of_a_write_wins_on_replay() {
    let code = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_kv_value("k", "v");
        ctx.schedule_wait("go").await;
        let pruned = ctx.prune_kv_values_updated_before(1_500);
        ctx.schedule_wait("again").await;
        Ok(pruned.to_string())
    };
    let write = EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 2_000 };
    let events =
        history([started(""), (None, write), (None, EventKind::ExternalSubscribed { name: "go".into() })]);
    let mut execution = Execution::replay(setup(), events, code);
    let turn = execution.turn(9_000, vec![raise("go", "")]);
    assert_eq!(lines(&turn.events)[1..], ["5 ExternalSubscribed(again)"], "2,000 is not before 1,500");
}

/// F17
#[test]
fn pruning_by_age_decides_alike_on_every_replay() {
    let mut story = story(|ctx, _| async move {
        ctx.set_kv_value("early", "");
        ctx.schedule_wait("go").await;
        ctx.set_kv_value("late", "");
        let pruned = ctx.prune_kv_values_updated_before(2_000);
        ctx.schedule_wait("go").await;
        Ok(format!("{pruned} {:?}", ctx.get_kv_all_keys()))
    });
    story.waits([]);
    story.waits([raise("go", "")]);
    story.restart();
    assert_eq!(story.output([raise("go", "")]), r#"1 ["late"]"#);
}

/// F18
#[test]
fn answers_once_given_do_not_move_when_an_older_dequeue_goes() {
    let mut story = story(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let second = newer.await;
        drop(older);
        let third = ctx.dequeue_event("q").await;
        let fourth = ctx.dequeue_event("q").await;
        Ok(format!("{second} {third} {fourth}"))
    });
    story.waits([]);
    story.waits([enqueue("q", "1"), enqueue("q", "2")]);
    assert_eq!(story.output([enqueue("q", "3")]), "2 1 3");
}

/// F19
#[test]
fn a_tag_after_the_first_poll_is_an_error_of_that_orchestration() {
    let mut story = story(|ctx, _| async move {
        let mut activity = ctx.schedule_activity("a", "");
        futures::future::poll_immediate(&mut activity).await;
        ctx.schedule_wait("go").await;
        activity.with_tag("late").await
    });
    story.waits([]);
    let turn = story.turn([raise("go", "")]);
    let text = failure_of(&turn).display_message();
    assert_eq!(
        text,
        "orchestration panicked: with_tag() must be called before the activity future is first polled"
    );
}

/// F20 (a)
#[test]
fn a_turn_that_nothing_can_answer_keeps_running_is_named_and_can_be_cancelled() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_wait("go").await;
        futures::future::pending().await
    });
    story.waits([]);
    let turn = story.turn([raise("go", "")]);
    assert_eq!(turn.verdict, Verdict::Waiting { stuck: true });
    assert_eq!(story.turn([raise("x", "")]).verdict, Verdict::Waiting { stuck: true });
    assert_eq!(story.failure([cancel("stuck")]), "canceled: stuck");
}

/// F21
#[test]
fn the_limit_of_keys_holds_for_the_instance_not_for_the_turn() {
    let mut story = story(|ctx, _| async move {
        for part in 0..2 {
            for key in 0..MAX_KV_KEYS / 2 {
                ctx.set_kv_value(format!("{part}-{key}"), "");
            }
            ctx.schedule_wait("go").await;
        }
        ctx.set_kv_value("one more", "");
        ctx.schedule_wait("go").await;
        Ok(String::new())
    });
    story.waits([]);
    story.waits([raise("go", "")]);
    story.restart();
    assert_eq!(story.failure([raise("go", "")]), "KV key count (151) exceeds limit (150)");
}

/// F21
#[test]
fn keys_of_earlier_executions_count_and_cleared_ones_do_not() {
    let with_keys = |before: usize, clear: bool| {
        let mut story = story(move |ctx, _| async move {
            if clear {
                ctx.clear_kv_value("0");
            }
            ctx.set_kv_value("new", "");
            Ok(String::new())
        });
        for key in 0..before {
            story = story.kv(&key.to_string(), "", 1);
        }
        story.turn([]).verdict
    };
    assert!(matches!(with_keys(MAX_KV_KEYS - 1, false), Verdict::Completed { .. }));
    assert!(matches!(with_keys(MAX_KV_KEYS, false), Verdict::Failed { .. }));
    assert!(matches!(with_keys(MAX_KV_KEYS, true), Verdict::Completed { .. }));
}

/// F25
#[test]
fn every_recorded_detached_start_is_sent_in_the_commit_that_records_it() {
    for how in ["wait", "complete", "fail", "continue", "cancel", "status limit", "name limit"] {
        let mut story = story(|ctx, how| async move {
            ctx.schedule_orchestration("Report", "r-1", "");
            match how.as_str() {
                "complete" => return Ok(String::new()),
                "fail" => return Err("broken".into()),
                "continue" => return ctx.continue_as_new("next").await,
                "status limit" => ctx.set_custom_status("x".repeat(300_000)),
                "name limit" => ctx.set_kv_value("k\0", ""),
                _ => {}
            }
            Ok(ctx.schedule_wait("never").await)
        })
        .input(how);
        let turn = story.turn((how == "cancel").then(|| cancel("c")));
        assert_eq!(sent(&turn)[0], "start r-1 Report()", "{how}");
        assert_eq!(lines(&turn.events).iter().filter(|line| line.contains("Chained")).count(), 1, "{how}");
    }
}
