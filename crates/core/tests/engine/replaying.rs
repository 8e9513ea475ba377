//! `is_replaying` says, for each poll, whether it only repeats what an earlier turn decided (F14).

use std::sync::{Arc, Mutex};

use crate::support::*;

type Seen = Arc<Mutex<Vec<(&'static str, bool)>>>;

/// Notes what `is_replaying` says after each step.
fn noting(seen: &Seen) -> Story {
    let seen = Arc::clone(seen);
    story(move |ctx, _| {
        let seen = Arc::clone(&seen);
        async move {
            let note = |step| seen.lock().unwrap().push((step, ctx.is_replaying()));
            note("start");
            ctx.schedule_activity("a", "").await?;
            note("a");
            ctx.dequeue_event("q").await;
            note("q");
            ctx.schedule_activity("b", "").await?;
            note("b");
            Ok(String::new())
        }
    })
    .warm_only()
}

fn take(seen: &Seen) -> Vec<(&'static str, bool)> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn a_kept_execution_never_replays() {
    let seen = Seen::default();
    let mut story = noting(&seen);
    story.turn([]);
    story.turn([enqueue("q", ""), done(2, "")]);
    story.turn([done(6, "")]);
    assert_eq!(take(&seen), [("start", false), ("a", false), ("q", false), ("b", false)]);
}

#[test]
fn a_replayed_execution_replays_exactly_the_polls_of_earlier_turns() {
    let seen = Seen::default();
    let mut story = noting(&seen);
    story.turn([]);
    take(&seen);
    story.restart();
    assert_eq!(take(&seen), [("start", true)]);
    // The message waits in the same turn, so the poll after the dequeue is new as well.
    story.turn([enqueue("q", ""), done(2, "")]);
    assert_eq!(take(&seen), [("a", false), ("q", false)]);
    story.restart();
    assert_eq!(take(&seen), [("start", true), ("a", true), ("q", true)]);
    story.turn([done(6, "")]);
    assert_eq!(take(&seen), [("b", false)]);
}

#[test]
fn a_turn_that_brings_nothing_new_runs_nothing_again() {
    let seen = Seen::default();
    let mut story = noting(&seen);
    story.turn([]);
    story.turn([done(2, "")]);
    take(&seen);
    story.turn([raise("unheard", ""), done(2, "again")]);
    assert_eq!(take(&seen), []);
    story.restart();
    assert_eq!(take(&seen), [("start", true), ("a", true)]);
    story.turn([]);
    assert_eq!(take(&seen), []);
}

#[test]
fn identity_is_what_the_execution_was_given() {
    let mut story = story(|ctx, _| async move {
        assert!(!ctx.is_logging_enabled());
        assert!(ctx.get_system_stats().is_none());
        Ok(format!(
            "{} {} {} {}",
            ctx.instance_id(),
            ctx.execution_id(),
            ctx.orchestration_name(),
            ctx.orchestration_version()
        ))
    })
    .execution(3);
    assert_eq!(story.output([]), "i 3 Test 1.0.0");
}
