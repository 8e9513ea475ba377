//! What an activity has of its session: the attachment, its first turn, state that the process keeps; and
//! what hooks are told (`sessions.md`, "What people write", 11–12, 23, 35, 38; A7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::bench::{Told, flows, node, release, shown, takes_turn, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::runtime::registry::ActivityRegistryBuilder;
use steadfast::runtime::{DetachReason, RuntimeOptions, Session, SessionHooks};
use steadfast::{
    ActivityContext, AppErrorKind, ErrorDetails, EventKind, OrchestrationContext, is_session_lost,
};
use steadfast_behaviour::{
    Lines, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;

/// Says when it is dropped, and panics if it is told to.
struct DropFlag {
    dropped: Arc<AtomicBool>,
    panics: bool,
}

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
        assert!(!self.panics, "told to panic");
    }
}

/// Registers `Keep`, which keeps something for the session that says when it is dropped.
fn keeping(dropped: &Arc<AtomicBool>, panics: bool) -> ActivityRegistryBuilder {
    let dropped = Arc::clone(dropped);
    turns(&Gate::new()).register("Keep", move |ctx: ActivityContext, _: String| {
        let dropped = Arc::clone(&dropped);
        async move {
            let session = ctx.session().expect("runs on a session");
            session.state_or_init(async { Ok(DropFlag { dropped, panics }) }).await.map(|_| "kept".to_owned())
        }
    })
}

fn named(stage: &Stage, id: &str) -> RuntimeOptions {
    RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() }
}

/// Panics when a session comes, and never returns when it goes.
#[derive(Debug)]
struct Bad;

#[async_trait::async_trait]
impl SessionHooks for Bad {
    async fn on_attach(&self, _: &Session) {
        panic!("told to panic");
    }

    async fn on_detach(&self, _: &Session, _: DetachReason) {
        std::future::pending().await
    }
}

on_every_store! {
    async fn d23_an_activity_without_a_session_has_none_and_one_with_a_session_has_its_id(stage) {
        let works = activities().register("Ask", |ctx: ActivityContext, _: String| async move {
            Ok(ctx
                .session()
                .map_or("none".to_owned(), |session| format!("{} {}", session.id(), session.epoch() > 0)))
        });
        stage.run(works, flows()).await;
        assert_eq!(stage.ends_after("1", "One", "Ask/").await, Ok("none".to_owned()));
        // Through the wrapper no attachment has a number.
        let counted = stage.kind != StoreKind::Wrapped;
        assert_eq!(stage.ends_after("2", "One", "Ask/chat").await, Ok(format!("chat {counted}")));
        stage.stop().await;
    }

    async fn d23_of_activities_at_the_same_time_one_makes_the_state_and_all_share_it(stage) {
        let (gate, made) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
        let (at, count) = (gate.clone(), Arc::clone(&made));
        let works = activities().register("Load", move |ctx: ActivityContext, _: String| {
            let (at, count) = (at.clone(), Arc::clone(&count));
            async move {
                let init = async {
                    at.pass().await;
                    Ok(count.fetch_add(1, Ordering::SeqCst) + 1)
                };
                let state: Arc<usize> = ctx.session().expect("runs on a session").state_or_init(init).await?;
                Ok(state.to_string())
            }
        });
        stage.run_with(works, flows(), RuntimeOptions { worker_concurrency: 3, ..stage.options() }).await;
        for instance in ["1", "2", "3"] {
            stage.start(instance, "One", "Load/chat").await;
            stage.has(instance, "ActivityScheduled", 1).await;
        }
        gate.is_entered().await;
        stage.settle().await;
        assert_eq!(gate.waiting(), 0, "the others wait for the one");
        gate.open();
        for instance in ["1", "2", "3"] {
            assert_eq!(stage.output(instance).await, Ok("1".to_owned()));
        }
        assert_eq!(made.load(Ordering::SeqCst), 1);
        stage.stop().await;
    }

    async fn d23_state_that_could_not_be_made_is_made_by_the_next_and_the_first_turn_goes_on(stage) {
        let tries = Arc::new(AtomicUsize::new(0));
        let works = activities().register("Load", move |ctx: ActivityContext, _: String| {
            let tries = Arc::clone(&tries);
            async move {
                let session = ctx.session().expect("runs on a session");
                let first = session.is_first_turn();
                let init = async {
                    match tries.fetch_add(1, Ordering::SeqCst) {
                        0 => Err("no model".to_owned()),
                        n => Ok(n),
                    }
                };
                let state = session.state_or_init::<usize>(init).await?;
                Ok(format!("{first} {state}"))
            }
        });
        stage.run(works, flows()).await;
        stage.start("1", "One", "Load/chat").await;
        assert_eq!(stage.output("1").await, Err("no model".to_owned()));
        assert_eq!(stage.ends_after("2", "One", "Load/chat").await, Ok("true 1".to_owned()));
        assert_eq!(stage.ends_after("3", "One", "Load/chat").await, Ok("false 1".to_owned()));
        stage.stop().await;
    }

    async fn d23_an_idle_session_is_detached_and_what_was_kept_is_dropped(stage) {
        let (lines, _guard) = Lines::collect();
        let (dropped, told) = (Arc::new(AtomicBool::new(false)), Told::default());
        let options = RuntimeOptions { session_hooks: told.hooks(), ..named(&stage, "A") };
        stage.run_with(keeping(&dropped, true), flows(), options).await;
        assert_eq!(stage.ends_after("1", "One", "Keep/chat").await, Ok("kept".to_owned()));
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A later 1, attempt 1");
        pass_calmly(&stage, 290 * SECOND, 5 * SECOND).await;
        assert!(!dropped.load(Ordering::SeqCst), "not before its time");
        assert_eq!(told.all(), ["attach chat"]);
        pass_calmly(&stage, 30 * SECOND, 5 * SECOND).await;
        stage.until("it is dropped", async || dropped.load(Ordering::SeqCst)).await;
        stage.until("it is told", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Idle after 1"]);
        let released = lines.saying("INFO", "idle session released");
        assert_eq!(released.len(), 1, "although what was kept panicked");
        assert!(["300s", "315s"].contains(&released[0].field("idle_duration")), "{released:?}");
        assert_eq!(takes_turn(&stage, "3", "chat").await, "A first 1, attempt 1");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_a_continue_as_new_keeps_the_session(stage) {
        let flows =
            orchestrations().register("Long", |ctx: OrchestrationContext, input: String| async move {
                let seen = ctx.schedule_activity_on_session("Turn", "", "chat").await?;
                if ctx.execution_id() < 3 {
                    return ctx.continue_as_new(format!("{input}{seen}; ")).await;
                }
                Ok(input + &seen)
            });
        stage.run_with(turns(&Gate::new()), flows, named(&stage, "A")).await;
        let seen = stage.ends_after("1", "Long", "").await;
        let all = "A first 1, attempt 1; A later 2, attempt 1; A later 3, attempt 1";
        assert_eq!(seen, Ok(all.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d38_a_turn_now_and_then_keeps_a_session(stage) {
        node(&stage, "A", &Gate::new(), |_| {}).await;
        for n in 1..=3 {
            let seen = takes_turn(&stage, &n.to_string(), "chat").await;
            assert_eq!(seen, format!("A {} {n}, attempt 1", if n == 1 { "first" } else { "later" }));
            pass_calmly(&stage, 250 * SECOND, 5 * SECOND).await;
        }
        stage.stop().await;
    }

    async fn d35_an_activity_that_misses_its_session_says_so_by_kind(stage) {
        let works = activities().register("Miss", |ctx: ActivityContext, _: String| async move {
            Err::<String, String>(ctx.session_lost("no conversation here"))
        });
        stage.run(works, flows()).await;
        let error = stage.ends_after("1", "One", "Miss/chat").await.expect_err("it fails");
        assert!(is_session_lost(&error.display_message()), "{error:?}");
        let failed = stage.history("1").await.into_iter().find_map(|event| match event.kind {
            EventKind::ActivityFailed { details } => Some(details),
            _ => None,
        });
        let message = "session_lost: no conversation here".to_owned();
        let expected =
            ErrorDetails::Application { kind: AppErrorKind::SessionLost, message, retryable: false };
        assert!(expected.is_session_lost() && error.is_session_lost());
        assert_eq!(failed, Some(expected));
        stage.stop().await;
    }

    async fn g28_what_only_mentions_a_lost_session_is_an_ordinary_failure_for_both(stage) {
        let works = activities().register("Miss", |_: ActivityContext, _: String| async move {
            Err::<String, String>("step 3: session_lost: no conversation here".to_owned())
        });
        stage.run(works, flows()).await;
        let error = stage.ends_after("1", "One", "Miss/chat").await.expect_err("it fails");
        assert!(!is_session_lost(&error.display_message()) && !error.is_session_lost(), "{error:?}");
        let recorded = stage.history("1").await.into_iter().find_map(|event| match event.kind {
            EventKind::ActivityFailed { details } => Some(details),
            _ => None,
        });
        let recorded = recorded.expect("it failed");
        let kind = matches!(recorded, ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, .. });
        assert!(kind && !recorded.is_session_lost(), "{recorded:?}");
        stage.stop().await;
    }

    async fn d23_hooks_that_panic_or_do_not_return_harm_nobody(stage) {
        let (lines, _guard) = Lines::collect();
        let dropped = Arc::new(AtomicBool::new(false));
        let options = RuntimeOptions { session_hooks: Some(Arc::new(Bad)), ..named(&stage, "A") };
        let runtime = stage.run_with(keeping(&dropped, false), flows(), options).await;
        assert_eq!(stage.ends_after("1", "One", "Keep/chat").await, Ok("kept".to_owned()));
        assert_eq!(lines.saying("ERROR", "a session hook panicked").len(), 1);
        let stops = tokio::spawn(runtime.shutdown(Some(60_000)));
        stage.settle().await;
        stage.pass_slowly(4 * SECOND, SECOND).await;
        assert!(!stops.is_finished(), "a hook has five seconds");
        assert!(!dropped.load(Ordering::SeqCst), "what is kept is there for the hook");
        stage.pass(SECOND);
        stops.await.expect("stops");
        assert!(dropped.load(Ordering::SeqCst));
        assert_eq!(lines.saying("WARN", "a session hook took too long").len(), 1);
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn a7_an_activity_of_an_earlier_attachment_gets_an_error_and_never_the_later_state(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        node(&stage, "A", &gate, |options| options.session_hooks = told.hooks()).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        stage.start("old", "One", "Hold/chat").await;
        gate.is_entered().await;
        assert!(release(&stage, "chat").await);
        // The same process claims it anew, while an activity of the earlier attachment still runs.
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A first 1, attempt 1");
        stage.until("the earlier one is detached", async || told.all().len() == 3).await;
        assert_eq!(told.all()[1..], ["detach chat Lost after 1", "attach chat"], "in this order (G41)");
        gate.open();
        let error = stage.output("old").await.expect_err("it fails");
        assert!(
            is_session_lost(&error) && error.contains("is no longer attached to this process"),
            "{error}"
        );
        assert_eq!(takes_turn(&stage, "3", "chat").await, "A later 2, attempt 1");
        stage.stop().await;
    }

    async fn a7_what_is_made_while_the_session_goes_is_not_kept(stage) {
        let gate = Gate::new();
        let at = gate.clone();
        let works = turns(&Gate::new()).register("Load", move |ctx: ActivityContext, _: String| {
            let at = at.clone();
            async move {
                let init = async {
                    at.pass().await;
                    Ok(7_usize)
                };
                let made = ctx.session().expect("runs on a session").state_or_init(init).await;
                let kept = ctx.session().and_then(|session| session.state::<usize>());
                Ok(format!("{} {kept:?}", made.is_err_and(|error| is_session_lost(&error))))
            }
        });
        stage.run_with(works, flows(), named(&stage, "A")).await;
        stage.start("old", "One", "Load/chat").await;
        gate.is_entered().await;
        assert!(release(&stage, "chat").await);
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A first 1, attempt 1");
        gate.open();
        assert_eq!(stage.output("old").await, Ok("true None".to_owned()));
        stage.stop().await;
    }

    async fn a15_the_first_activity_after_a_move_knows_it_and_can_load_what_is_missing(stage) {
        let works = || {
            activities().register("Say", |ctx: ActivityContext, input: String| async move {
                let session = ctx.session().expect("runs on a session");
                if session.is_first_turn() && input == "more" {
                    return Err(ctx.session_lost("nothing was said here yet"));
                }
                let said = session.state_or_init(async { Ok(std::sync::Mutex::new(String::new())) }).await?;
                let mut said = said.lock().expect("nobody panics");
                said.push_str(&input);
                Ok(said.clone())
            })
        };
        let chat = || {
            orchestrations().register("Chat", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_activity_on_session("Say", "hello ", "chat").await?;
                ctx.schedule_wait("go").await;
                let said = ctx.schedule_activity_on_session("Say", "more", "chat").await;
                match said {
                    Err(error) if is_session_lost(&error) => {
                        ctx.schedule_activity_on_session("Say", "hello again ", "chat").await?;
                        ctx.schedule_activity_on_session("Say", "more", "chat").await
                    }
                    said => said,
                }
            })
        };
        let first = stage.run_with(works(), chat(), named(&stage, "A")).await;
        stage.start("moved", "Chat", "").await;
        stage.start("stayed", "Chat", "").await;
        for instance in ["moved", "stayed"] {
            stage.has(instance, "ExternalSubscribed", 1).await;
        }
        stage.client.raise_event("stayed", "go", "").await.expect("raises");
        assert_eq!(stage.output("stayed").await, Ok("hello hello more".to_owned()));
        first.shutdown(Some(0)).await;
        stage.run_with(works(), chat(), named(&stage, "B")).await;
        stage.client.raise_event("moved", "go", "").await.expect("raises");
        assert_eq!(stage.output("moved").await, Ok("hello again more".to_owned()));
        stage.stop().await;
    }

    async fn d23_an_idle_session_is_released_at_once_and_its_next_attachment_has_a_higher_epoch(stage) {
        node(&stage, "A", &Gate::new(), |options| options.session_idle_timeout = 40 * SECOND).await;
        takes_turn(&stage, "1", "chat").await;
        let before = shown(&stage, "chat").await;
        pass_calmly(&stage, 45 * SECOND, 5 * SECOND).await;
        stage
            .until("it is free", async || shown(&stage, "chat").await.locked_until_ms <= stage.clock.now_ms())
            .await;
        assert_eq!(shown(&stage, "chat").await.epoch, before.epoch, "released by its own owner");
        takes_turn(&stage, "2", "chat").await;
        assert!(shown(&stage, "chat").await.epoch > before.epoch);
        stage.stop().await;
    }
}
