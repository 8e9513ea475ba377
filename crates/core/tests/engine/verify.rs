//! Checking changed code against recorded histories.

use steadfast_core::replay::{fail_without_code, verify};
use steadfast_core::{AppErrorKind, OrchestrationContext};

use crate::support::*;

/// Ends as its input says.
async fn ends(ctx: OrchestrationContext, how: String) -> Outcome {
    ctx.set_custom_status("begun");
    let held = ctx.schedule_activity("held", "");
    ctx.schedule_wait("go").await;
    std::mem::forget(held);
    match how.as_str() {
        "complete" => Ok("output".into()),
        "fail" => Err("error".into()),
        "continue" => ctx.continue_as_new("next").await,
        "panic" => panic!("on purpose"),
        "limit" => {
            ctx.set_kv_value("k\0", "");
            Ok(ctx.schedule_wait("never").await)
        }
        "status limit" => {
            ctx.set_custom_status("x".repeat(300_000));
            Ok("too long".into())
        }
        _ => Ok(ctx.schedule_wait("never").await),
    }
}

fn ended(how: &str) -> Story {
    let mut story = story(ends).input(how);
    story.waits([]);
    let arrivals = match how {
        "cancel" => vec![raise("go", ""), cancel("stop")],
        "fatal" => vec![raise("go", ""), failed_with(3, infrastructure("gone"))],
        _ => vec![raise("go", "")],
    };
    assert!(story.turn(arrivals).verdict.is_terminal());
    story
}

#[test]
fn every_end_is_repeated_by_the_code_that_made_it() {
    for how in ["complete", "fail", "continue", "panic", "limit", "status limit", "cancel", "fatal"] {
        assert_eq!(ended(how).verify_changed(ends), Ok(()), "{how}");
    }
}

#[test]
fn an_end_without_code_agrees_with_any_code_that_repeats_the_rest() {
    let mut story = story(ends);
    story.waits([]);
    let details = app_error(AppErrorKind::Cancelled { reason: "by hand".into() }, "");
    let turn = fail_without_code(&identity(1), &story.history, 9_000, details).unwrap();
    story.history.extend(turn.events);
    assert_eq!(story.verify_changed(ends), Ok(()));
}

#[test]
fn a_termination_agrees_with_code_that_panics_only_if_no_code_ran_before_it() {
    let panics = |_: OrchestrationContext, _: String| -> std::future::Ready<Outcome> { panic!("on purpose") };
    let terminated = |story: &mut Story| {
        let details = app_error(AppErrorKind::Terminated { reason: "by hand".into() }, "");
        let turn = fail_without_code(&identity(1), &story.history, 9_000, details).unwrap();
        story.history.extend(turn.events);
        story.verify_changed(panics).map_err(|mismatch| (mismatch.position, mismatch.reason))
    };
    let mut begun = story(ends);
    begun.waits([]);
    let mut fresh = story(ends);
    fresh.waits([]);
    fresh.history.truncate(1);
    assert_eq!(terminated(&mut fresh), Ok(()), "it has begun and ended in one turn");
    assert_eq!(terminated(&mut begun), Err((2, "orchestration panicked: on purpose".to_owned())));
}

#[test]
fn an_unfinished_history_is_verified_too() {
    let mut story = story(ends);
    story.waits([]);
    assert_eq!(story.verify_changed(ends), Ok(()));
    let more = |ctx: OrchestrationContext, how: String| async move {
        let end = ends(ctx.clone(), how);
        ctx.join2(end, ctx.schedule_activity("more", "")).await.0
    };
    assert_eq!(story.verify_changed(more).unwrap_err().position, 2);
}

#[test]
fn a_changed_output_is_found() {
    let story = ended("complete");
    let changed = |ctx: OrchestrationContext, how: String| async move {
        ends(ctx, how).await.map(|output| output + "!")
    };
    let mismatch = story.verify_changed(changed).unwrap_err();
    assert_eq!(mismatch.position, 6);
    assert_has(&mismatch.reason, "returns another output where history has OrchestrationCompleted");
    assert_eq!(mismatch.last_match.map(|last| last.event_id), Some(5));
}

#[test]
fn a_changed_error_is_found() {
    let story = ended("fail");
    let changed = |ctx: OrchestrationContext, how: String| async move {
        ends(ctx, how).await.map_err(|error| error + "!")
    };
    assert_has(&story.verify_changed(changed).unwrap_err().reason, "returns another error");
    let healed =
        |ctx: OrchestrationContext, how: String| async move { ends(ctx, how).await.or(Ok("fine".into())) };
    assert_has(&story.verify_changed(healed).unwrap_err().reason, "returns another output");
}

#[test]
fn an_output_instead_of_a_panic_is_found() {
    let story = ended("panic");
    let healed = |ctx: OrchestrationContext, _: String| ends(ctx, "complete".into());
    assert_has(&story.verify_changed(healed).unwrap_err().reason, "where history has OrchestrationFailed");
}

#[test]
fn a_panic_instead_of_an_output_is_found() {
    let story = ended("complete");
    let broken = |ctx: OrchestrationContext, _: String| ends(ctx, "panic".into());
    assert_has(&story.verify_changed(broken).unwrap_err().reason, "orchestration panicked: on purpose");
}

#[test]
fn a_changed_input_of_the_successor_is_found() {
    let story = ended("continue");
    let changed = |ctx: OrchestrationContext, how: String| async move {
        if how == "continue" {
            ctx.set_custom_status("begun");
            let held = ctx.schedule_activity("held", "");
            ctx.schedule_wait("go").await;
            std::mem::forget(held);
        }
        ctx.continue_as_new("another").await
    };
    let mismatch = story.verify_changed(changed).unwrap_err();
    assert_has(&mismatch.reason, "continues as new where history has OrchestrationContinuedAsNew");
}

#[test]
fn a_call_that_is_left_at_the_end_is_found() {
    for how in ["complete", "fail", "continue", "cancel"] {
        let story = ended(how);
        let changed = |ctx: OrchestrationContext, how: String| async move {
            ctx.set_custom_status("begun");
            let held = ctx.schedule_activity("held", "");
            ctx.schedule_wait("go").await;
            std::mem::forget(held);
            std::mem::forget(ctx.schedule_activity("one more", ""));
            match how.as_str() {
                "complete" => Ok("output".into()),
                "fail" => Err("error".into()),
                "continue" => ctx.continue_as_new("next").await,
                _ => Ok(ctx.schedule_wait("never").await),
            }
        };
        let mismatch = story.verify_changed(changed).unwrap_err();
        assert_has(&mismatch.reason, "schedule mismatch");
        assert_eq!(mismatch.found, Some("CallActivity"), "{how}");
    }
}

#[test]
fn a_call_that_is_gone_at_the_end_is_found() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_wait("go").await;
        ctx.set_custom_status("last");
        Ok("output".into())
    });
    story.waits([]);
    story.output([raise("go", "")]);
    let changed = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_wait("go").await;
        Ok("output".into())
    };
    assert_has(&story.verify_changed(changed).unwrap_err().reason, "custom status mismatch");
}

#[test]
fn code_that_still_waits_where_history_completed_is_found() {
    let story = ended("complete");
    let waits = |ctx: OrchestrationContext, how: String| async move {
        ends(ctx, how).await?;
        futures::future::pending().await
    };
    assert_has(&story.verify_changed(waits).unwrap_err().reason, "still waits");
}

#[test]
fn calls_after_continue_as_new_are_repeated() {
    let code = |ctx: OrchestrationContext, _: String| async move {
        let next = ctx.continue_as_new("next");
        ctx.set_custom_status("late");
        next.await
    };
    let mut story = story(code);
    story.turn([]);
    assert_eq!(verify(setup(), story.history.clone(), code), Ok(()));
}

#[test]
fn answers_of_the_batch_in_which_the_code_returned_are_no_mismatch() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.select2(a, b).await.into_tuple().1
    });
    story.waits([]);
    // The driver verifies the finished history.
    assert_eq!(story.output([done(2, "r"), done(3, "unread"), raise("x", ""), enqueue("q", "")]), "r");
}
