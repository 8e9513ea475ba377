//! What comes from outside the orchestration: wakes, calls, drops.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::lock::Mutex as AsyncMutex;
use futures::stream::FuturesUnordered;
use steadfast_core::OrchestrationContext;
use steadfast_core::replay::{Execution, Verdict};

use crate::support::*;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn bell(execution: &Execution) -> Arc<Bell> {
    let bell = Arc::new(Bell::default());
    execution.set_alarm(Waker::from(Arc::clone(&bell)));
    bell
}

#[allow(clippy::disallowed_methods, reason = "a foreign thread is what the test is about")]
fn elsewhere<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(work).join().unwrap()
}

/// Awaits a channel whose other end is outside.
fn listening() -> (Story, oneshot::Sender<()>) {
    let (send, receive) = oneshot::channel::<()>();
    let receive = Arc::new(Mutex::new(Some(receive)));
    let listens = story(move |ctx, _| {
        let receive = receive.lock().unwrap().take();
        async move {
            let activity = ctx.schedule_activity("a", "");
            match receive {
                Some(receive) => drop(ctx.select2(activity, receive).await),
                None => drop(activity.await),
            }
            Ok("heard".into())
        }
    })
    .warm_only();
    (listens, send)
}

#[test]
fn a_wake_from_another_thread_rings_the_alarm_and_fails_the_next_turn() {
    let (mut story, send) = listening();
    story.waits([]);
    let bell = bell(story.kept());
    elsewhere(move || send.send(()).unwrap());
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    let text = story.failure([]);
    assert_has(&text, "nondeterministic: the orchestration was woken from outside");
}

#[test]
fn a_wake_from_the_same_thread_between_turns_is_foreign_too() {
    let (mut story, send) = listening();
    story.waits([]);
    send.send(()).unwrap();
    assert_has(&story.failure([done(2, "")]), "woken from outside");
}

#[test]
fn an_alarm_that_is_set_after_the_wake_rings_at_once() {
    let (mut story, send) = listening();
    story.waits([]);
    send.send(()).unwrap();
    assert_eq!(bell(story.kept()).0.load(Ordering::Relaxed), 1);
}

#[test]
fn an_execution_that_is_not_woken_rings_nothing() {
    let (mut story, _send) = listening();
    story.waits([]);
    let bell = bell(story.kept());
    assert_eq!(story.output([done(2, "")]), "heard");
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_wake_after_the_end_is_nobodys_business() {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let mut story = story(move |_, _| {
        let keep = Arc::clone(&keep);
        futures::future::poll_fn(move |cx| {
            *keep.lock().unwrap() = Some(cx.waker().clone());
            std::task::Poll::<Outcome>::Pending
        })
    })
    .warm_only();
    story.turn([]);
    let bell = bell(story.kept());
    story.turn([cancel("over")]);
    kept.lock().unwrap().take().unwrap().wake();
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
}

#[test]
fn channels_locks_and_unordered_sets_between_branches_raise_no_alarm() {
    let mut story = story(|ctx, _| async move {
        let (send, mut receive) = mpsc::unbounded();
        let log = AsyncMutex::new(Vec::new());
        let workers: FuturesUnordered<_> = ["a", "b", "c"]
            .into_iter()
            .map(|name| {
                let (send, ctx, log) = (send.clone(), &ctx, &log);
                async move {
                    let answer = ctx.schedule_activity(name, "").await.unwrap();
                    let mut log = log.lock().await;
                    ctx.schedule_activity(format!("{name}-locked"), "").await.unwrap();
                    log.push(answer.clone());
                    send.unbounded_send(answer).unwrap();
                }
            })
            .collect();
        drop(send);
        let gathers = async {
            let mut all = String::new();
            while let Some(word) = receive.next().await {
                all += &word;
            }
            all
        };
        let (all, ()) = ctx.join2(gathers, workers.collect()).await;
        Ok(format!("{all} {}", log.into_inner().len()))
    });
    story.waits([]);
    let bell = bell(story.kept());
    story.waits([done(3, "B"), done(4, "C"), done(2, "A")]);
    let mut output = None;
    for id in [8, 10, 12] {
        if let Verdict::Completed { output: done } = story.turn([done(id, "")]).verdict {
            output = Some(done);
        }
    }
    assert_eq!(output.as_deref(), Some("BCA 3"));
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_call_from_a_spawned_thread_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        let clone = ctx.clone();
        elsewhere(move || clone.set_custom_status("from elsewhere"));
        ctx.schedule_activity("a", "").await
    });
    let text = story.failure([]);
    assert_has(&text, "set_custom_status at ");
    assert_has(&text, "foreign.rs:");
    assert_has(&text, "outside the orchestration's own code");
    assert!(!lines(&story.history).iter().any(|line| line.contains("CustomStatus")));
}

/// Keeps the context of the first run where a test can reach it.
fn kept_context() -> (Story, Arc<Mutex<Option<OrchestrationContext>>>) {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let keeps = story(move |ctx, _| {
        keep.lock().unwrap().get_or_insert(ctx.clone());
        async move { ctx.schedule_activity("a", "").await }
    })
    .warm_only();
    (keeps, kept)
}

#[test]
fn a_call_on_a_context_that_was_kept_rings_the_alarm_and_fails_the_next_turn() {
    let calls: [fn(&OrchestrationContext); 8] = [
        |ctx| drop(ctx.schedule_activity("b", "")),
        |ctx| drop(ctx.schedule_sub_orchestration("b", "")),
        |ctx| ctx.set_kv_value("k", "v"),
        |ctx| drop(ctx.get_kv_value("k")),
        |ctx| drop(ctx.get_custom_status()),
        |ctx| ctx.schedule_orchestration("d", "d", ""),
        |ctx| drop(ctx.continue_as_new("")),
        |ctx| drop(ctx.wait_for_session_migration("s")),
    ];
    for call in calls {
        let (mut story, kept) = kept_context();
        story.waits([]);
        let bell = bell(story.kept());
        call(kept.lock().unwrap().as_ref().unwrap());
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        let turn = story.turn([]);
        assert_has(&failure_of(&turn).display_message(), "outside the orchestration's own code");
    }
}

#[test]
fn reading_who_one_is_is_allowed_from_anywhere() {
    let (mut story, kept) = kept_context();
    story.waits([]);
    {
        let kept = kept.lock().unwrap();
        let ctx = kept.as_ref().unwrap();
        assert_eq!(ctx.instance_id(), INSTANCE);
        ctx.trace_info("between turns");
    }
    assert_eq!(story.output([done(2, "r")]), "r");
}

#[test]
fn a_call_after_the_end_does_nothing() {
    let (mut story, kept) = kept_context();
    story.waits([]);
    story.output([done(2, "r")]);
    let kept = kept.lock().unwrap();
    let ctx = kept.as_ref().unwrap();
    ctx.set_kv_value("k", "v");
    assert_eq!(ctx.get_kv_value("k"), None);
    drop(ctx.schedule_activity("late", "").with_tag("t").on_session("s"));
}

#[test]
fn a_context_of_one_orchestration_used_in_another_fails_its_owner() {
    let (mut owner, kept) = kept_context();
    owner.waits([]);
    let mut thief = story(move |_, _| {
        let kept = Arc::clone(&kept);
        async move {
            kept.lock().unwrap().as_ref().unwrap().set_custom_status("stolen");
            Ok("fine".into())
        }
    })
    .warm_only();
    assert_eq!(thief.output([]), "fine");
    assert_has(&owner.failure([]), "outside the orchestration's own code");
}

#[test]
fn a_future_dropped_outside_a_poll_fails_the_orchestration() {
    let stolen = Arc::new(Mutex::new(None));
    let steal = Arc::clone(&stolen);
    let mut story = story(move |ctx, _| {
        let steal = Arc::clone(&steal);
        async move {
            *steal.lock().unwrap() = Some(ctx.schedule_activity("stolen", ""));
            ctx.schedule_activity("a", "").await
        }
    })
    .warm_only();
    story.waits([]);
    let bell = bell(story.kept());
    drop(stolen.lock().unwrap().take());
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_has(&story.failure([]), "the drop of a durable future");
}

#[test]
fn a_future_polled_by_another_executor_fails_the_orchestration() {
    let stolen = Arc::new(Mutex::new(None));
    let steal = Arc::clone(&stolen);
    let mut story = story(move |ctx, _| {
        let steal = Arc::clone(&steal);
        async move {
            *steal.lock().unwrap() = Some(ctx.schedule_activity("stolen", ""));
            ctx.schedule_activity("a", "").await
        }
    })
    .warm_only();
    story.waits([]);
    let mut future = stolen.lock().unwrap().take().unwrap();
    assert!(futures::executor::block_on(futures::future::poll_immediate(&mut future)).is_none());
    std::mem::forget(future);
    assert_has(&story.failure([]), "a durable future's poll");
}

#[test]
fn an_execution_that_is_dropped_while_it_waits_rings_nothing_and_runs_its_destructors() {
    struct Calls(OrchestrationContext, Arc<AtomicUsize>);
    impl Drop for Calls {
        fn drop(&mut self) {
            self.0.set_custom_status("from a destructor");
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let mut execution = Execution::start(setup(), Default::default(), move |ctx, _| async move {
        let _calls = Calls(ctx.clone(), count);
        ctx.schedule_activity("a", "").await
    });
    execution.turn(1, vec![]);
    let bell = bell(&execution);
    drop(execution);
    assert_eq!((dropped.load(Ordering::Relaxed), bell.0.load(Ordering::Relaxed)), (1, 0));
}

#[test]
fn an_execution_moves_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<OrchestrationContext>();
    let mut execution = Execution::start(setup(), Default::default(), |ctx, _| async move {
        ctx.schedule_activity("a", "").await
    });
    is_send(&execution);
    execution.turn(1, vec![]);
    let turn = elsewhere(move || execution.turn(2, vec![done(2, "r")]));
    assert_eq!(turn.verdict, Verdict::Completed { output: "r".into() });
}

#[test]
fn a_context_without_an_engine_can_be_named_and_never_answers() {
    let ctx = OrchestrationContext::new(vec![], 2, "x".into(), "O".into(), "1.0.0".into(), None);
    assert_eq!((ctx.instance_id().as_str(), ctx.execution_id()), ("x", 2));
    ctx.set_kv_value("k", "v");
    assert_eq!(ctx.get_kv_value("k").as_deref(), Some("v"));
    let activity = ctx.schedule_activity("a", "");
    assert!(futures::executor::block_on(futures::future::poll_immediate(activity)).is_none());
}
