//! Activities that are tried again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_core::{BackoffStrategy, RetryPolicy};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::support::*;

fn policy(attempts: u32) -> RetryPolicy {
    RetryPolicy::new(attempts).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_secs(5) })
}

#[test]
fn an_attempt_that_fails_is_followed_by_a_pause_and_another_attempt() {
    let mut story =
        story(|ctx, _| async move { ctx.schedule_activity_with_retry("a", "x", policy(3)).await });
    assert_eq!(story.events([])[1..], ["2 ActivityScheduled(a, x)"]);
    assert_eq!(story.events([failed(2, "1")])[1..], ["4 TimerCreated(7000)"]);
    assert_eq!(story.events([fired(4)])[1..], ["6 ActivityScheduled(a, x)"]);
    assert_eq!(story.output([done(6, "r")]), "r");
}

#[test]
fn without_a_delay_there_is_no_timer_between_attempts() {
    let mut story = story(|ctx, _| async move {
        let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
        ctx.schedule_activity_with_retry("a", "", policy).await
    });
    story.waits([]);
    assert_eq!(story.events([failed(2, "1")])[1..], ["4 ActivityScheduled(a, )"]);
    assert_eq!(story.failure([failed(4, "last")]), "last");
}

#[test]
fn a_timeout_is_scheduled_behind_its_activity_and_ends_the_attempts() {
    let mut story = story(|ctx, _| async move {
        let policy = policy(3).with_timeout(Duration::from_secs(1));
        Ok(ctx.schedule_activity_with_retry("a", "", policy).await.unwrap_err())
    });
    assert_eq!(story.events([])[1..], ["2 ActivityScheduled(a, )", "3 TimerCreated(2000)"]);
    let turn = story.turn([fired(3)]);
    assert_eq!(
        lines(&turn.events)[1..],
        ["5 ActivityCancelRequested(dropped_future) of 2", "6 Completed(timeout: activity timed out)"]
    );
    assert_eq!(withdrawn(&turn), [2]);
}

#[test]
fn typed_and_session_variants_do_the_same() {
    let mut story = story(|ctx, _| async move {
        let typed: u32 = ctx.schedule_activity_with_retry_typed("a", &1, policy(1)).await?;
        let on: u32 = ctx.schedule_activity_with_retry_on_session_typed("a", &2, policy(1), "s").await?;
        let plain = ctx.schedule_activity_with_retry_on_session("a", "3", policy(1), "s").await?;
        Ok(format!("{typed}{on}{plain}"))
    });
    assert_eq!(sent(&story.waits([])), ["work 2 a(1)"]);
    assert_eq!(sent(&story.waits([done(2, "1")])), ["work 4 a(2) on s"]);
    assert_eq!(sent(&story.waits([done(4, "2")])), ["work 6 a(3) on s"]);
    assert_eq!(story.output([done(6, "3")]), "123");
}

#[test]
fn attempts_that_fail_are_logged_once_and_not_on_replay() {
    let log = Log::default();
    let lines = Arc::clone(&log.lines);
    tracing::subscriber::with_default(log, || {
        let mut story = story(|ctx, _| async move {
            let first = ctx.schedule_activity_with_retry("a", "", policy(2)).await;
            let second = ctx.schedule_activity_with_retry_on_session("b", "", policy(2), "s").await;
            Ok(format!("{first:?}{second:?}"))
        })
        .warm_only();
        story.waits([]);
        story.waits([failed(2, "e1")]);
        story.restart();
        story.waits([fired(4)]);
        story.restart();
        story.waits([failed(6, "e2")]);
        story.restart();
        story.waits([failed(8, "e3")]);
    });
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "WARN steadfast::orchestration Activity 'a' attempt 1/2 failed: e1. Retrying...",
            "WARN steadfast::orchestration Activity 'b' (session=s) attempt 1/2 failed: e3. Retrying...",
        ]
    );
}

#[test]
fn traces_carry_their_level_and_unknown_levels_are_named() {
    let log = Log::default();
    let lines = Arc::clone(&log.lines);
    tracing::subscriber::with_default(log, || {
        let mut story = story(|ctx, _| async move {
            ctx.trace_info("i");
            ctx.trace_warn("w");
            ctx.trace_error("e");
            ctx.trace_debug("d");
            ctx.trace("warn", "any case");
            ctx.trace("loud", "unknown");
            Ok(String::new())
        })
        .warm_only();
        story.turn([]);
    });
    let seen: Vec<_> =
        lines.lock().unwrap().iter().map(|line| line.replace("steadfast::orchestration ", "")).collect();
    assert_eq!(seen, ["INFO i", "WARN w", "ERROR e", "DEBUG d", "WARN any case", "TRACE unknown level=loud"]);
}

/// Keeps every event as a line.
#[derive(Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.0 += &format!(" {value:?}"),
            "level" => self.0 += &format!(" level={}", format!("{value:?}").trim_matches('"')),
            _ => {}
        }
    }
}
