//! Calls of activities: their keys, their policies, and the failures that come back.

use std::time::Duration;

use steadfast_core::replay::{Arrival, QueuedWork};
use steadfast_core::{
    CallTerms, Event, EventKind, Failure, FailureKind, Policy, RetryPolicy, current_build_version,
};

use crate::support::*;

/// The terms of the activities that these events schedule.
fn terms(events: &[Event]) -> Vec<CallTerms> {
    events.iter().filter_map(|event| event.call.as_deref().cloned()).collect()
}

fn keys(events: &[Event]) -> Vec<String> {
    terms(events).into_iter().map(|terms| terms.key).collect()
}

/// An execution with a random number that calls `a` twice, and returns the keys that it saw.
fn two_calls() -> Story {
    let story = story(|ctx, _| async move {
        let (one, other) = (ctx.schedule_activity("a", "x"), ctx.schedule_activity("a", "x"));
        let keys = format!("{} {}", one.key(), other.key());
        one.await?;
        other.await?;
        Ok(keys)
    });
    story.started(|start| start.random = Some(0xAB))
}

#[test]
fn g4_a_call_has_a_key_before_it_is_recorded_and_its_event_and_work_have_the_same() {
    let mut story = two_calls();
    let first = story.waits([]);
    let recorded = keys(&first.events);
    let [one, other] = &recorded[..] else { panic!("two calls: {recorded:?}") };
    assert!(one.starts_with("i/00000000000000ab/a/1/") && other.starts_with("i/00000000000000ab/a/2/"));
    let sent = |work: &QueuedWork| work.call.as_ref().map(|call| call.key.clone());
    assert_eq!(first.effects.work.iter().filter_map(sent).collect::<Vec<_>>(), recorded);
    assert_eq!(story.output([done(2, ""), done(3, "")]), format!("{one} {other}"));
}

#[test]
fn g4_a_life_of_an_instance_has_keys_of_its_own() {
    let of = |random| {
        let mut story = two_calls().started(|start| start.random = Some(random));
        keys(&story.waits([]).events)
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn an_execution_without_a_number_makes_one_of_its_start_and_keeps_it() {
    let mut story = two_calls().started(|start| start.random = None);
    let first = keys(&story.waits([]).events);
    story.restart();
    assert_eq!(story.output([done(2, ""), done(3, "")]), first.join(" "));
}

#[test]
fn a_call_that_an_older_engine_recorded_keeps_its_key() {
    let mut story = story(|ctx, _| async move {
        ctx.new_guid().await?;
        let old = ctx.schedule_activity("a", "x");
        let old_key = old.key();
        old.await?;
        let new = ctx.schedule_activity("a", "x");
        let new_key = new.key();
        new.await?;
        Ok(format!("{old_key} {new_key}"))
    });
    story.waits([]);
    story.waits([done(2, "guid")]);
    for event in &mut story.history {
        (event.random, event.call, event.duroxide_version) = (None, None, "0.2.0".into());
    }
    story.restart();
    let turn = story.waits([done(4, "")]);
    let new = keys(&turn.events);
    assert!(new[0].contains("/a/2/"), "the second call of an activity: {new:?}");
    assert_eq!(story.output([done(6, "")]), format!("i/1/4 {}", new[0]));
}

#[test]
fn what_an_older_engine_does_not_know_raises_the_pin_of_the_execution() {
    let mut story = two_calls();
    let first = story.waits([]);
    assert_eq!(first.metadata().pinned_duroxide_version, Some(current_build_version()));
    let mut later = crate::support::story(|ctx, _| async move {
        ctx.schedule_wait("go").await;
        ctx.schedule_activity("a", "").await
    });
    later.waits([]);
    let turn = later.waits([raise("go", "")]);
    assert_eq!(turn.metadata().pinned_duroxide_version, Some(current_build_version()), "a recorded key");
    let end = later.turn([done(4, "")]);
    assert_eq!(end.metadata().pinned_duroxide_version, None, "nothing new is recorded");
}

#[test]
fn a_policy_is_recorded_with_its_call_and_goes_out_with_its_work() {
    let policy = || Policy::tries(4).timeout(Duration::from_secs(9));
    let mut story = story(move |ctx, _| async move { ctx.schedule_activity("a", "").retry(policy()).await });
    let turn = story.waits([]);
    assert_eq!(terms(&turn.events)[0].policy, Some(policy()));
    let work = &turn.effects.work[0];
    assert_eq!(work.call.as_ref().and_then(|call| call.policy.clone()), Some(policy()));
    assert_eq!(story.output([done(2, "r")]), "r", "history gets one outcome");
}

#[test]
fn a_policy_that_changed_since_is_no_mismatch_and_holds_for_later_calls() {
    let code = |max| {
        move |ctx: steadfast_core::OrchestrationContext, _: String| async move {
            ctx.schedule_activity("a", "").retry(Policy::tries(max)).await?;
            ctx.schedule_activity("b", "").retry(Policy::tries(max)).await
        }
    };
    let mut old = story(code(2));
    old.waits([]);
    let mut new = story(code(7));
    new.history = old.history.clone();
    new.now_ms = old.now_ms;
    new.restart();
    let turn = new.waits([done(2, "")]);
    assert_eq!(terms(&turn.events)[0].policy, Some(Policy::tries(7)));
    assert_eq!(
        new.verify_changed(|ctx, _| async move {
            ctx.schedule_activity("a", "").await?;
            ctx.schedule_activity("b", "").await
        }),
        Ok(()),
        "a call without a policy is the same call"
    );
}

#[test]
fn a_failure_tells_how_the_call_failed() {
    let mut story = story(|ctx, _| async move {
        let call = ctx.schedule_activity("a", "").retry(Policy::tries(3)).detailed();
        let failed = call.await.expect_err("it fails");
        let failure = failed.failure.clone().expect("its failure is told");
        Ok(format!(
            "{failed}: {:?} after {} tries and {} ms",
            failure.kind, failure.tries, failure.elapsed_ms
        ))
    })
    .warm_only();
    story.waits([]);
    let failure = Failure { kind: FailureKind::Timeout, data: None, tries: 3, elapsed_ms: 950 };
    let arrival = Arrival { failure: Some(Box::new(failure)), ..failed(2, "too slow").into() };
    let now_ms = story.now_ms + 1;
    let turn = story.kept().turn_of(now_ms, vec![arrival.clone()]);
    assert_eq!(turn.events[0].failure, arrival.failure);
    assert!(matches!(turn.events[0].kind, EventKind::ActivityFailed { .. }));
    let output = "too slow: Timeout after 3 tries and 950 ms".to_owned();
    assert_eq!(turn.verdict, steadfast_core::replay::Verdict::Completed { output });
    let replayed = story.replayed().turn_of(now_ms, vec![arrival]);
    assert_eq!(replayed, turn, "a replayed execution sees it too");
}

#[test]
fn a_failure_without_details_is_its_text() {
    let mut story = story(|ctx, _| async move {
        let failed = ctx.schedule_activity("a", "").detailed().await.expect_err("it fails");
        Ok(format!("{failed}, {:?}", failed.failure))
    });
    story.waits([]);
    assert_eq!(story.output([failed(2, "boom")]), "boom, None");
}

#[test]
fn the_tries_that_an_orchestration_makes_share_the_key_of_the_first() {
    let mut story = story(|ctx, _| async move {
        let policy = RetryPolicy::new(3).with_backoff(steadfast_core::BackoffStrategy::None);
        ctx.schedule_activity_with_retry("a", "x", policy).await?;
        ctx.schedule_activity("a", "x").await
    });
    let first = terms(&story.waits([]).events);
    let second = terms(&story.waits([failed(2, "1")]).events);
    let third = terms(&story.waits([failed(4, "2")]).events);
    assert_eq!([&second[0].key, &third[0].key], [&first[0].key; 2], "their key");
    let before = [&first, &second, &third].map(|terms| terms[0].tried_before);
    assert_eq!(before, [0, 1, 2]);
    let other = terms(&story.waits([done(6, "")]).events);
    assert_ne!(other[0].key, first[0].key, "another call has another key");
    assert_eq!(other[0].tried_before, 0);
}

#[test]
fn f19_a_policy_is_set_before_the_call_is_first_awaited() {
    let mut late = story(|ctx, _| async move {
        let mut call = ctx.schedule_activity("a", "");
        let either = ctx.select2(&mut call, ctx.schedule_timer(Duration::from_secs(1))).await;
        drop(either);
        call.retry(Policy::once()).await
    });
    late.waits([]);
    let text = late.failure([fired(3)]);
    assert_has(&text, "retry() at ");
    assert_has(&text, "must be called before the activity future is first polled");
}

#[test]
fn only_a_call_of_an_activity_has_a_policy_and_a_key() {
    let mut timer = story(|ctx, _| async move {
        ctx.schedule_timer(Duration::from_secs(1)).retry(Policy::once()).await;
        Ok(String::new())
    });
    assert_has(&timer.failure([]), "retry() at ");
    let mut wait = story(|ctx, _| async move { Ok(ctx.schedule_wait("go").key()) });
    assert_has(&wait.failure([]), "can only be called on activity futures");
}
