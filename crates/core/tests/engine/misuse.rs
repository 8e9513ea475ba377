//! Panics and misuse: errors of the orchestration, never of the process.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use steadfast_core::WithTagError;
use steadfast_core::replay::Verdict;

use crate::support::*;

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

#[test]
fn a_panic_fails_the_orchestration_with_its_text() {
    let mut borrowed = story(|_, _| async move { panic!("plain") });
    assert_eq!(borrowed.failure([]), "orchestration panicked: plain");
    let mut owned = story(|_, n| async move { panic!("number {n}") }).input("7");
    assert_eq!(owned.failure([]), "orchestration panicked: number 7");
    let mut other = story(|_, _| async move { std::panic::panic_any(7) });
    assert_eq!(other.failure([]), "orchestration panicked: orchestration panicked");
}

#[test]
fn a_panic_before_the_future_is_made_fails_the_orchestration_too() {
    let mut story = story(|_, _| -> std::future::Ready<Outcome> { panic!("in the handler") });
    assert_eq!(story.failure([]), "orchestration panicked: in the handler");
}

#[test]
fn nothing_of_a_poll_that_panics_is_recorded() {
    let mut story = story(|ctx, _| async move {
        let activity = ctx.schedule_activity("a", "");
        ctx.schedule_wait("go").await;
        ctx.set_custom_status("not recorded");
        drop(activity);
        panic!("late");
    });
    story.waits([]);
    assert_eq!(
        story.events([raise("go", "")]),
        [
            "4 ExternalEvent(go, )",
            "5 Failed(orchestration panicked: late)",
            "6 ActivityCancelRequested(orchestration_terminal_failed) of 2",
        ]
    );
}

#[test]
fn a_panic_in_a_destructor_during_a_poll_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        let value = PanicsOnDrop;
        ctx.schedule_activity("a", "").await?;
        drop(value);
        Ok(String::new())
    })
    .warm_only();
    story.waits([]);
    assert_eq!(story.failure([done(2, "")]), "orchestration panicked: in a destructor");
}

#[test]
fn a_panic_in_a_destructor_after_the_end_concerns_nobody() {
    let mut story = story(|ctx, _| async move {
        let _value = PanicsOnDrop;
        ctx.schedule_activity("a", "").await
    })
    .warm_only();
    story.waits([]);
    assert_eq!(story.failure([cancel("over")]), "canceled: over");
    let mut dropped =
        steadfast_core::replay::Execution::start(setup(), Default::default(), |ctx, _| async move {
            let _value = PanicsOnDrop;
            ctx.schedule_activity("a", "").await
        });
    dropped.turn(1, vec![]);
    drop(dropped);
}

#[test]
fn a_panic_whose_payload_panics_is_survived() {
    let mut story = story(|_, _| async move { std::panic::panic_any(PanicsOnDrop) });
    assert_eq!(story.failure([]), "orchestration panicked: orchestration panicked");
}

struct Faulty;

impl Wake for Faulty {
    fn wake(self: Arc<Self>) {
        panic!("in a waker");
    }
}

#[test]
fn a_waker_that_panics_while_a_panic_unwinds_does_not_take_the_process_down() {
    let mut story = story(|ctx, _| async move {
        let older = ctx.dequeue_event("q");
        let mut newer = ctx.dequeue_event("q");
        ctx.schedule_wait("go").await;
        let waker = Waker::from(Arc::new(Faulty));
        assert!(Pin::new(&mut newer).poll(&mut Context::from_waker(&waker)).is_pending());
        // The drop of the older one hands its message on to the newer one and wakes it.
        let _older = older;
        panic!("first");
    });
    story.waits([]);
    story.waits([enqueue("q", "m")]);
    assert_eq!(story.failure([raise("go", "")]), "orchestration panicked: first");
}

#[test]
fn a_waker_of_the_users_own_that_panics_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        let mut activity = ctx.schedule_activity("a", "");
        let waker = Waker::from(Arc::new(Faulty));
        futures::future::poll_fn(|_| Pin::new(&mut activity).poll(&mut Context::from_waker(&waker))).await
    });
    story.waits([]);
    assert_eq!(story.failure([done(2, "")]), "orchestration panicked: in a waker");
}

#[test]
fn a_tag_on_something_else_than_an_activity_names_what_it_is() {
    type Act = fn(&steadfast_core::OrchestrationContext);
    let cases: [(&str, Act); 4] = [
        ("Timer", |ctx| drop(ctx.schedule_timer(Duration::ZERO).with_tag("t"))),
        ("ExternalWait", |ctx| drop(ctx.schedule_wait("w").with_tag("t"))),
        ("QueueDequeue", |ctx| drop(ctx.dequeue_event("q").with_tag("t"))),
        ("SubOrchestration", |ctx| drop(ctx.schedule_sub_orchestration("c", "").with_tag("t"))),
    ];
    for (kind, act) in cases {
        let mut story = story(move |ctx, _| async move {
            act(&ctx);
            Ok(String::new())
        });
        assert_eq!(
            story.failure([]),
            format!("orchestration panicked: with_tag() can only be called on activity futures, got {kind}")
        );
    }
}

#[test]
fn a_tag_is_recorded_with_its_activity_and_the_last_one_counts() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        let a = a.with_tag("cpu").map(|result| result).with_tag("gpu");
        let (a, b) = ctx.join2(a, b).await;
        Ok(a? + &b?)
    });
    let turn = story.waits([]);
    let tags: Vec<_> = turn
        .effects
        .work
        .iter()
        .map(|work| match &work.item {
            steadfast_core::WorkItem::ActivityExecute { tag, .. } => tag.as_deref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tags, [Some("gpu"), None]);
}

#[test]
fn a_tag_in_a_later_poll_of_the_same_turn_is_too_late() {
    let mut story = story(|ctx, _| async move {
        let activity = ctx.schedule_activity("a", "");
        let mut yielded = false;
        futures::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        activity.with_tag("late").await
    });
    assert_has(&story.failure([]), "with_tag() must be called before the activity future is first polled");
}

#[test]
fn a_tag_that_cannot_be_set_is_an_error_where_asked_for() {
    let mut story = story(|ctx, _| async move {
        let wrong = ctx.schedule_timer(Duration::ZERO).try_with_tag("t").err();
        let mut late = ctx.schedule_activity("a", "");
        futures::future::poll_immediate(&mut late).await;
        ctx.schedule_wait("go").await;
        let late = late.try_with_tag("t").err();
        assert_eq!(wrong, Some(WithTagError::NotAnActivity { kind: "Timer" }));
        assert_eq!(late, Some(WithTagError::TooLate));
        Ok(String::new())
    });
    story.waits([]);
    story.output([raise("go", "")]);
}

#[test]
fn a_session_on_something_else_than_an_activity_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_timer(Duration::ZERO).on_session("s").await;
        Ok(String::new())
    });
    let text = story.failure([]);
    assert_has(&text, "on_session() at ");
    assert_has(&text, "can only be called on activity futures");
    assert_has(&text, "misuse.rs:");
}

#[test]
fn a_session_after_the_first_poll_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        let mut activity = ctx.schedule_activity("a", "");
        futures::future::poll_immediate(&mut activity).await;
        ctx.schedule_wait("go").await;
        activity.on_session("s").await
    });
    story.waits([]);
    assert_has(
        &story.failure([raise("go", "")]),
        "must be called before the activity future is first polled",
    );
}

#[test]
fn a_session_set_twice_is_the_last_one_and_goes_with_a_tag() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").on_session("x").with_tag("gpu").on_session("y").await
    });
    assert_eq!(sent(&story.waits([])), ["work 2 a() on y"]);
}

#[test]
fn a_future_that_has_answered_stays_pending_when_it_is_polled_again() {
    let mut story = story(|ctx, _| async move {
        let mut activity = ctx.schedule_activity("a", "");
        (&mut activity).await?;
        assert!(futures::future::poll_immediate(&mut activity).await.is_none());
        Ok("fine".into())
    });
    story.waits([]);
    assert_eq!(story.output([done(2, "")]), "fine");
}

#[test]
fn a_panic_in_the_function_of_map_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_activity("a", "").map(|_| -> Outcome { panic!("in map") }).await
    });
    story.waits([]);
    assert_eq!(story.failure([done(2, "")]), "orchestration panicked: in map");
}

#[test]
fn what_cannot_be_encoded_is_an_error_of_the_call() {
    let bad = || std::collections::BTreeMap::from([((1, 2), 3)]);
    let mut story = story(move |ctx, _| async move {
        let activity: Result<String, String> = ctx.schedule_activity_typed("a", &bad()).await;
        let child: Result<String, String> = ctx.schedule_sub_orchestration_typed("c", &bad()).await;
        let next = ctx.continue_as_new_typed(&bad()).await;
        Ok(format!("{} {} {}", activity.is_err(), child.is_err(), next.is_err()))
    });
    assert_eq!(story.output([]), "true true true");
    let mut detached = crate::support::story(move |ctx, _| async move {
        ctx.schedule_orchestration_typed("d", "d-1", &bad());
        Ok(String::new())
    });
    assert_has(&detached.failure([]), "the input of schedule_orchestration at ");
}

#[test]
fn a_poll_after_a_panic_never_happens() {
    let mut story = story(|_, _| {
        let mut polled = false;
        futures::future::poll_fn(move |_| -> Poll<Outcome> {
            assert!(!std::mem::replace(&mut polled, true), "polled again");
            panic!("once");
        })
    });
    assert_eq!(story.failure([raise("x", ""), raise("y", "")]), "orchestration panicked: once");
    assert_eq!(story.turn([]).verdict, Verdict::Ended);
}
