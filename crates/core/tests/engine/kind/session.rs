//! Sessions: where activities go, what opening and closing does, and hearing of moves.

use std::time::Duration;

use steadfast_core::replay::{CloseCause, Execution, SessionChange, Turn, Verdict};
use steadfast_core::{
    BackoffStrategy, CarriedSession, EventKind, OrchestrationContext, RetryPolicy, SessionConcurrency,
    SessionKey, SessionOptions, SessionPool, WorkItem, engine_session_id,
};

use crate::support::*;

fn open(id: &str) -> SessionChange {
    SessionChange::Open { session_id: id.into(), idle_timeout_ms: None, concurrency: None }
}

fn close(id: &str) -> SessionChange {
    SessionChange::Close { session_id: id.into(), cause: CloseCause::Call }
}

fn close_by_end(id: &str) -> SessionChange {
    SessionChange::Close { session_id: id.into(), cause: CloseCause::End }
}

/// Runs `act` on a store with owned sessions until its first turn ends.
fn first_turn<F>(act: fn(OrchestrationContext) -> F) -> Turn
where
    F: Future<Output = Outcome> + Send + 'static,
{
    story(move |ctx, _| act(ctx)).owned_sessions().turn([])
}

fn long() -> String {
    "x".repeat(1_025)
}

fn refusal<F>(act: fn(OrchestrationContext) -> F) -> String
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let details = failure_of(&first_turn(act));
    assert!(
        matches!(
            &details,
            steadfast_core::ErrorDetails::Application {
                kind: steadfast_core::AppErrorKind::OrchestrationFailed,
                retryable: false,
                ..
            }
        ),
        "{details:?}"
    );
    details.display_message()
}

// --- scheduling (rules 1-6)

#[test]
fn an_id_that_is_open_means_the_owned_session_and_any_other_the_shared_one() {
    let turn = first_turn(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        let owned = ctx.schedule_activity_on_session("a", "", "x");
        let shared = ctx.schedule_activity_on_session("b", "", "y");
        ctx.join2(owned, shared).await.0
    });
    assert_eq!(sent(&turn), ["work 3 a() on i/x", "work 4 b() on y"]);
}

#[test]
fn an_activity_before_the_open_is_shared_and_one_after_it_is_owned() {
    let turn = first_turn(|ctx| async move {
        let before = ctx.schedule_activity_on_session("a", "", "x");
        let opened = ctx.open_session_with_id("x");
        let after = ctx.schedule_activity_on_session("b", "", "x");
        opened.await?;
        ctx.join2(before, after).await.0
    });
    assert_eq!(sent(&turn), ["work 2 a() on x", "work 4 b() on i/x"]);
    assert_eq!(turn.effects.work[1].session, Some(SessionKey::owned("i", "x")));
}

#[test]
fn a_closed_id_may_not_be_used_until_it_is_opened_again() {
    let text = refusal(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        ctx.open_session_with_id("y").await?;
        ctx.close_session("x").await?;
        ctx.schedule_activity_on_session("a", "", "x").await
    });
    assert_eq!(
        text,
        "schedule_activity_on_session called for session 'x' which is not open (open: 'y'); it was closed: \
         open it again with open_session_with_id"
    );
    let turn = first_turn(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        ctx.close_session("x").await?;
        ctx.open_session_with_id("x").await?;
        ctx.schedule_activity_on_session("a", "", "x").await
    });
    assert_eq!(sent(&turn), ["work 5 a() on i/x"]);
}

#[test]
fn an_id_of_the_engines_form_that_is_not_open_here_may_not_be_used() {
    let text =
        refusal(
            |ctx| async move { ctx.schedule_activity_on_session("a", "", "session::of-my-parent").await },
        );
    assert_eq!(
        text,
        "schedule_activity_on_session called for session 'session::of-my-parent' which is not open (no \
         session is open); only the instance that got this id from open_session may use it, while it is \
         open: open a session here, or share one by an id of your own"
    );
}

#[test]
fn shared_sessions_are_allowed_unless_open_ones_are_required() {
    let on_shared = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity_on_session("a", "", "y").await
    };
    story(on_shared).waits([]);
    let mut strict = story(on_shared).options(|options| options.require_open_sessions = true);
    assert_eq!(
        strict.failure([]),
        "schedule_activity_on_session called for session 'y' which is not open (no session is open); \
         require_open_sessions is on: open it with open_session_with_id"
    );
}

#[test]
fn ids_that_are_empty_too_long_reserved_or_hold_a_nul_are_refused_and_nothing_is_written() {
    assert_has(
        &refusal(|ctx| async move { ctx.schedule_activity_on_session("a", "", "").await }),
        "1 to 1024 bytes",
    );
    assert_has(&refusal(|ctx| async move { ctx.open_session_with_id("").await }), "1 to 1024 bytes");
    assert_has(
        &refusal(|ctx| async move { ctx.close_session("").await.map(|()| String::new()) }),
        "1 to 1024 bytes",
    );
    assert_has(
        &refusal(|ctx| async move { Ok(ctx.wait_for_session_migration("").await.to) }),
        "1 to 1024 bytes",
    );
    for text in [
        refusal(|ctx| async move { ctx.open_session_with_id(long()).await }),
        refusal(|ctx| async move { ctx.schedule_activity("a", "").on_session(long()).await }),
        refusal(|ctx| async move { ctx.close_session(&long()).await.map(|()| String::new()) }),
    ] {
        assert_eq!(text, "session id size (1025 bytes) exceeds limit (1024 bytes)");
    }
    assert_has(
        &refusal(|ctx| async move { ctx.open_session_with_id("session::mine").await }),
        "begins with 'session::'",
    );
    assert_has(&refusal(|ctx| async move { ctx.open_session_with_id("a\0").await }), "NUL");
    let turn = first_turn(|ctx| async move { ctx.open_session_with_id("a\0").await });
    assert_eq!((turn.events.len(), turn.effects.sessions.len()), (2, 0));
}

#[test]
fn another_session_on_replay_is_a_mismatch() {
    let on = |session: Option<&'static str>| {
        move |ctx: OrchestrationContext, _: String| async move {
            match session {
                Some(id) => ctx.schedule_activity_on_session("a", "", id).await,
                None => ctx.schedule_activity("a", "").await,
            }
        }
    };
    let mut story = story(on(Some("x")));
    story.waits([]);
    for changed in [Some("y"), None] {
        let (turn, mismatch) = story.changed(on(changed));
        assert_has(&failure_of(&turn).display_message(), "nondeterministic: schedule mismatch");
        assert_eq!(mismatch.position, 2);
    }
}

#[test]
fn the_session_of_an_activity_is_in_its_event_and_in_its_work() {
    let turn = first_turn(|ctx| async move {
        let on = ctx.schedule_activity_on_session("a", "1", "x");
        let off = ctx.schedule_activity("b", "2");
        ctx.join2(on, off).await.0
    });
    let recorded: Vec<_> = turn
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ActivityScheduled { name, session_id, .. } => {
                Some((name.as_str(), session_id.as_deref()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(recorded, [("a", Some("x")), ("b", None)]);
    let queued: Vec<_> = turn
        .effects
        .work
        .iter()
        .map(|work| match &work.item {
            WorkItem::ActivityExecute { name, session_id, .. } => (name.as_str(), session_id.as_deref()),
            other => panic!("queued for a worker: {other:?}"),
        })
        .collect();
    assert_eq!(queued, recorded);
    let keys: Vec<_> = turn.effects.work.iter().map(|work| work.session.clone()).collect();
    assert_eq!(keys, [Some(SessionKey::shared("x")), None]);
}

#[test]
fn a_recorded_session_is_matched_on_replay_and_the_next_activity_joins_it() {
    let on_x = EventKind::ActivityScheduled {
        name: "a".into(),
        input: "1".into(),
        session_id: Some("x".into()),
        tag: None,
    };
    let mut execution =
        Execution::replay(setup(), history([started("x"), (None, on_x)]), |ctx, session| async move {
            let one = ctx.schedule_activity_on_session("a", "1", session.as_str()).await?;
            ctx.schedule_activity_on_session("b", one, session).await
        });
    let turn = execution.turn(9_000, vec![done(2, "one")]);
    assert_eq!(turn.verdict, Verdict::Waiting { stuck: false });
    assert_eq!(sent(&turn), ["work 4 b(one) on x"], "what is recorded is not queued again");
}

#[test]
fn a_typed_activity_on_a_session_is_the_same_activity() {
    let mut story = story(|ctx, _| async move {
        let sum: u32 = ctx.schedule_activity_on_session_typed("a", &vec![1, 2], "x").await?;
        Ok((sum + 1).to_string())
    });
    assert_eq!(sent(&story.waits([])), ["work 2 a([1,2]) on x"]);
    assert_eq!(story.output([done(2, "3")]), "4");
}

#[test]
fn the_loser_of_a_race_is_withdrawn_and_its_session_goes_on() {
    let mut story = story(|ctx, _| async move {
        let turn = ctx.schedule_activity_on_session("keep alive", "", "x");
        let go = ctx.schedule_wait("go");
        ctx.select2(go, turn).await;
        ctx.schedule_activity_on_session("turn", "", "x").await
    });
    assert_eq!(sent(&story.waits([])), ["work 2 keep alive() on x"]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(withdrawn(&turn), [2]);
    assert!(sent(&turn).iter().any(|line| line.ends_with("turn() on x")), "{:?}", sent(&turn));
    assert_eq!(turn.effects.sessions, [], "nothing happens to the session");
}

// --- opening and closing (rules 7-13)

#[test]
fn the_engine_makes_an_id_of_instance_execution_and_event() {
    let mut story = story(|ctx, _| async move { ctx.open_session().await }).owned_sessions().execution(3);
    let turn = story.turn([]);
    let id = engine_session_id("i", 3, 2);
    assert_eq!(turn.verdict, Verdict::Completed { output: id.clone() });
    assert_eq!(turn.effects.sessions, [open(&id), close_by_end(&id)]);
}

#[test]
fn an_engine_made_id_is_compared_on_replay() {
    let mut story = story(|ctx, _| async move {
        let id = ctx.open_session().await?;
        ctx.schedule_activity_on_session("a", "", id).await
    })
    .owned_sessions();
    story.waits([]);
    let EventKind::SessionOpened { session_id, .. } = &mut story.history[1].kind else { panic!() };
    *session_id = engine_session_id("i", 1, 99);
    let turn = story.replayed().turn(2_000, vec![]);
    assert_has(&failure_of(&turn).display_message(), "schedule mismatch");
}

#[test]
fn every_open_and_close_records_its_event_also_a_no_op() {
    let turn = first_turn(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        ctx.open_session_with_id("x").await?;
        ctx.close_session("never opened").await?;
        ctx.close_session("x").await?;
        ctx.close_session("x").await?;
        Ok("done".into())
    });
    assert_eq!(
        lines(&turn.events)[1..],
        [
            "2 SessionOpened(x)",
            "3 SessionOpened(x)",
            "4 SessionClosed(never opened)",
            "5 SessionClosed(x)",
            "6 SessionClosed(x)",
            "7 Completed(done)"
        ]
    );
}

#[test]
fn the_options_of_a_session_are_recorded_and_compared() {
    let opens = |options: SessionOptions| {
        move |ctx: OrchestrationContext, _: String| {
            let options = options.clone();
            async move {
                ctx.open_session_with(options).await?;
                Ok(ctx.schedule_wait("never").await)
            }
        }
    };
    let serial = SessionOptions::default()
        .with_id("x")
        .with_idle_timeout(Duration::from_micros(1_500))
        .with_concurrency(SessionConcurrency::Serial);
    let mut story = story(opens(serial.clone())).owned_sessions();
    let turn = story.waits([]);
    assert_eq!(
        turn.effects.sessions,
        [SessionChange::Open {
            session_id: "x".into(),
            idle_timeout_ms: Some(2),
            concurrency: Some(SessionConcurrency::Serial)
        }]
    );
    for changed in [
        serial.clone().with_id("y"),
        serial.clone().with_idle_timeout(Duration::from_secs(9)),
        serial.with_concurrency(SessionConcurrency::Unbounded),
    ] {
        assert_eq!(story.changed(opens(changed)).1.position, 2);
    }
}

#[test]
fn opening_beyond_the_limit_fails_and_opening_an_open_id_does_not_count() {
    let opens = |count: usize| {
        let mut story = story(move |ctx, _| async move {
            for n in 0..count {
                ctx.open_session_with_id(n.to_string()).await?;
                ctx.open_session_with_id("0").await?;
            }
            Ok(ctx.schedule_wait("never").await)
        })
        .owned_sessions()
        .options(|options| options.max_sessions = 2);
        story.turn([])
    };
    assert_eq!(opens(2).verdict, Verdict::Waiting { stuck: false });
    assert_eq!(
        failure_of(&opens(3)).display_message(),
        "max sessions per orchestration exceeded (limit: 2, open: 2); open: '0', '1': close one with \
         close_session, or raise max_sessions_per_orchestration"
    );
}

#[test]
fn a_refusal_names_some_of_the_open_sessions_and_of_a_long_id_its_beginning() {
    let text = refusal(|ctx| async move {
        ctx.open_session_with_id("ä".repeat(100)).await?;
        for n in 0..7 {
            ctx.open_session_with_id(n.to_string()).await?;
        }
        ctx.close_session("6").await?;
        ctx.schedule_activity_on_session("a", "", "6").await
    });
    assert_has(&text, "(open: '0', '1', '2', '3', '4' and 2 more)");
    let text = refusal(|ctx| async move {
        ctx.open_session_with_id("ä".repeat(100)).await?;
        ctx.open_session_with_id("x").await?;
        ctx.close_session("x").await?;
        ctx.schedule_activity_on_session("a", "", "x").await
    });
    assert_has(&text, &format!("(open: '{}…')", "ä".repeat(60)));
}

#[test]
fn limits_of_sessions_are_judged_when_a_call_is_first_made_and_not_on_replay() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("a").await?;
        ctx.open_session_with_id("b").await?;
        ctx.schedule_activity_on_session("a", "", "shared").await
    })
    .owned_sessions();
    story.waits([]);
    let mut strict = story.setup().clone();
    strict.options.max_sessions = 1;
    strict.options.require_open_sessions = true;
    strict.options.owned_sessions = false;
    let mut execution =
        steadfast_core::replay::Execution::replay(strict, story.history.clone(), |ctx, _| async move {
            ctx.open_session_with_id("a").await?;
            ctx.open_session_with_id("b").await?;
            ctx.schedule_activity_on_session("a", "", "shared").await
        });
    assert_eq!(execution.turn(2_000, vec![done(4, "r")]).verdict, Verdict::Completed { output: "r".into() });
}

#[test]
fn a_store_without_owned_sessions_refuses_to_open_one() {
    let mut story = story(|ctx, _| async move { ctx.open_session().await });
    assert_eq!(story.failure([]), "Provider does not support sessions");
}

#[test]
fn close_then_open_in_one_turn_leaves_the_session_open_with_new_options() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("x").await?;
        ctx.schedule_wait("go").await;
        ctx.close_session("x").await?;
        ctx.open_session_with(
            SessionOptions::default().with_id("x").with_idle_timeout(Duration::from_secs(1)),
        )
        .await?;
        ctx.schedule_activity_on_session("a", "", "x").with_tag("other pool").await
    })
    .owned_sessions();
    story.waits([]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(turn.effects.sessions.len(), 2);
    assert_eq!(turn.effects.sessions[0], close("x"));
    assert!(matches!(&turn.effects.sessions[1], SessionChange::Open { idle_timeout_ms: Some(1_000), .. }));
    assert_eq!(sent(&turn), ["work 7 a() on i/x"]);
}

#[test]
fn a_call_that_changes_no_session_is_recorded_and_has_no_effect() {
    let turn = first_turn(|ctx| async move {
        ctx.close_session("never").await?;
        ctx.open_session_with_id("x").await?;
        ctx.open_session_with_id("x").await?;
        ctx.close_session("x").await?;
        ctx.close_session("x").await?;
        ctx.open_session_with_id("x").await?;
        Ok(ctx.schedule_wait("never").await)
    });
    assert_eq!(turn.events.len(), 8, "{:?}", turn.events);
    assert_eq!(turn.effects.sessions, [open("x"), close("x"), open("x")]);
}

#[test]
fn an_activity_whose_session_was_closed_is_not_tried_again() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("x").await?;
        let retry = RetryPolicy::new(5).with_backoff(BackoffStrategy::None);
        let turn = ctx.schedule_activity_with_retry_on_session("turn", "", retry, "x");
        let closes = async {
            ctx.schedule_wait("go").await;
            ctx.close_session("x").await?;
            ctx.open_session_with_id("x").await
        };
        let (turn, closes) = ctx.join2(turn, closes).await;
        closes?;
        Ok(turn.unwrap_err())
    })
    .owned_sessions();
    story.waits([]);
    let turn = story.waits([failed(3, "flaky")]);
    assert_eq!(sent(&turn), ["work 6 turn() on i/x"], "any other error is tried again");
    assert_eq!(story.output([raise("go", "")]), "canceled: session 'x' closed");
}

#[test]
fn closing_answers_and_withdraws_the_activities_of_the_session_and_of_no_other() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("x").await?;
        let a = ctx.schedule_activity_on_session("a", "", "x");
        let b = ctx.schedule_activity_on_session("b", "", "x");
        let other = ctx.schedule_activity_on_session("c", "", "y");
        ctx.schedule_wait("go").await;
        ctx.close_session("x").await?;
        let lost = a.await.unwrap_err();
        let kept = b.await?;
        Ok(format!("{lost} | {kept} | {}", other.await?))
    })
    .owned_sessions();
    story.waits([]);
    story.waits([done(4, "in time")]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(
        lines(&turn.events)[1..],
        ["9 SessionClosed(x)", "10 ActivityCancelRequested(session_closed) of 3"]
    );
    assert_eq!(withdrawn(&turn), [3]);
    let late = story.waits([done(3, "too late")]);
    assert_eq!(late.events, [], "a later completion is not recorded");
    assert_eq!(story.output([done(5, "shared")]), "canceled: session 'x' closed | in time | shared");
}

#[test]
fn an_activity_that_was_asked_to_stop_is_not_asked_again_when_its_session_closes() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("x").await?;
        let earlier = ctx.schedule_activity_on_session("a", "", "x");
        let now = ctx.schedule_activity_on_session("b", "", "x");
        ctx.schedule_wait("go").await;
        drop(earlier);
        ctx.schedule_wait("go").await;
        drop(now);
        ctx.close_session("x").await?;
        Ok(ctx.schedule_wait("never").await)
    })
    .owned_sessions();
    story.waits([]);
    assert_eq!(story.events([raise("go", "")])[2..], ["8 ActivityCancelRequested(dropped_future) of 3"]);
    let turn = story.waits([raise("go", "")]);
    assert_eq!(
        lines(&turn.events)[1..],
        [
            "10 SessionClosed(x)",
            "11 ActivityCancelRequested(session_closed) of 4",
            "12 ExternalSubscribed(never)"
        ]
    );
    assert_eq!(withdrawn(&turn), [4]);
}

#[test]
fn an_answer_that_a_closed_session_gave_and_nobody_read_is_not_reported_as_dropped() {
    let mut story = story(|ctx, _| async move {
        ctx.open_session_with_id("x").await?;
        let activity = ctx.schedule_activity_on_session("a", "", "x");
        ctx.schedule_wait("go").await;
        ctx.close_session("x").await?;
        drop(activity);
        Ok(ctx.schedule_wait("never").await)
    })
    .owned_sessions();
    story.waits([]);
    assert_eq!(
        story.events([raise("go", "")])[1..],
        [
            "6 SessionClosed(x)",
            "7 ActivityCancelRequested(session_closed) of 3",
            "8 ExternalSubscribed(never)"
        ]
    );
}

#[test]
fn a_terminal_state_closes_owned_sessions_and_a_continuation_carries_them() {
    let ends = |how: &'static str| {
        let mut story = story(move |ctx, _| async move {
            ctx.open_session_with_id("z").await?;
            let with = SessionOptions::default().with_id("a").with_concurrency(SessionConcurrency::Serial);
            ctx.open_session_with(with).await?;
            std::mem::forget(ctx.schedule_activity_on_session("a", "", "a").with_tag("gpu"));
            ctx.schedule_wait("go").await;
            match how {
                "complete" => Ok(String::new()),
                "fail" => Err(String::new()),
                _ => ctx.continue_as_new("next").await,
            }
        })
        .owned_sessions();
        story.waits([]);
        story.turn([raise("go", "")])
    };
    for how in ["complete", "fail"] {
        assert_eq!(ends(how).effects.sessions, [close_by_end("a"), close_by_end("z")], "{how}");
    }
    let turn = ends("continue");
    assert_eq!(turn.effects.sessions, []);
    let WorkItem::ContinueAsNewWithSessions { sessions, .. } = &turn.effects.messages[0] else {
        panic!("{turn:?}")
    };
    let carried = |id: &str, concurrency, pool| CarriedSession {
        session_id: id.into(),
        idle_timeout_ms: None,
        concurrency,
        pool,
    };
    assert_eq!(
        sessions,
        &[
            carried("z", None, None),
            carried("a", Some(SessionConcurrency::Serial), Some(SessionPool::Tag("gpu".into())))
        ],
        "in the order in which they were opened"
    );
}

#[test]
fn a_successor_finds_the_carried_sessions_open_before_its_code_runs() {
    let carried =
        CarriedSession { session_id: "x".into(), idle_timeout_ms: None, concurrency: None, pool: None };
    let mut story = story(|ctx, _| async move {
        let answer = ctx.schedule_activity_on_session("a", "", "x").await?;
        ctx.close_session("x").await?;
        Ok(answer)
    })
    .owned_sessions()
    .execution(2)
    .started(|start| start.sessions = vec![carried]);
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[..2], ["1 Started()", "2 SessionsCarried(x)"]);
    assert_eq!(sent(&turn), ["work 3 a() on i/x"]);
    assert_eq!(turn.effects.sessions, []);
}

#[test]
fn a_child_shares_a_session_by_its_id_and_inherits_none() {
    let mut story =
        story(|ctx, session| async move { ctx.schedule_activity_on_session("a", "", session).await })
            .owned_sessions()
            .parent(parent())
            .input("x");
    assert_eq!(sent(&story.waits([])), ["work 2 a() on x"], "whatever its parent has open under that id");
}

#[test]
fn without_open_sessions_a_continuation_is_the_compatible_one() {
    let turn = first_turn(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        ctx.close_session("x").await?;
        ctx.continue_as_new("next").await
    });
    assert_eq!(sent(&turn), ["continue(next)"]);
}

#[test]
fn a_dropped_open_still_opens() {
    let turn = first_turn(|ctx| async move {
        drop(ctx.open_session_with_id("x"));
        ctx.schedule_activity_on_session("a", "", "x").await
    });
    assert_eq!(sent(&turn), ["work 3 a() on i/x"]);
    assert_eq!(turn.effects.sessions, [open("x")]);
}

// --- tags (rule 30)

#[test]
fn all_activities_of_an_owned_session_carry_one_tag() {
    let text = refusal(|ctx| async move {
        ctx.open_session_with_id("x").await?;
        let first = ctx.schedule_activity_on_session("a", "", "x").with_tag("gpu");
        let second = ctx.schedule_activity_on_session("b", "", "x");
        ctx.join2(first, second).await.0
    });
    assert_has(&text, "session 'x' runs activities of tag 'gpu', and this one is of no tag");
    let mixed = first_turn(|ctx| async move {
        let first = ctx.schedule_activity_on_session("a", "", "shared").with_tag("gpu");
        let second = ctx.schedule_activity_on_session("b", "", "shared");
        ctx.join2(first, second).await.0
    });
    assert_eq!(mixed.verdict, Verdict::Waiting { stuck: false }, "a shared session takes any");
}

#[test]
fn the_tag_of_a_session_survives_a_continuation() {
    let carried = CarriedSession {
        session_id: "x".into(),
        idle_timeout_ms: None,
        concurrency: None,
        pool: Some(SessionPool::Default),
    };
    let mut story =
        story(|ctx, _| async move { ctx.schedule_activity_on_session("a", "", "x").with_tag("gpu").await })
            .owned_sessions()
            .started(|start| start.sessions = vec![carried]);
    assert_has(&story.failure([]), "runs activities of no tag, and this one is of tag 'gpu'");
}

// --- migrations (rule 37)

#[test]
fn a_wait_for_a_migration_asks_the_store_and_answers_with_the_move() {
    let mut story = story(|ctx, _| async move {
        let moved = ctx.wait_for_session_migration("s").await;
        Ok(format!("{} {} {:?} {}", moved.id, moved.epoch, moved.from, moved.to))
    });
    let turn = story.waits([]);
    assert_eq!(turn.events.len(), 1, "a wait leaves no event");
    assert_eq!(turn.effects.sessions, [SessionChange::Watch { key: SessionKey::shared("s") }]);
    assert_eq!(story.waits([migrated("other", 3)]).events.len(), 1);
    assert_eq!(story.output([migrated("s", 4)]), "s 4 Some(\"a\") b");
}

#[test]
fn a_wait_on_an_owned_session_watches_that_one() {
    let turn = first_turn(|ctx| async move {
        let opened = ctx.open_session_with_id("s");
        let moved = ctx.wait_for_session_migration("s");
        opened.await?;
        Ok(moved.await.to)
    });
    assert_eq!(turn.effects.sessions, [open("s"), SessionChange::Watch { key: SessionKey::owned("i", "s") }]);
}

#[test]
fn two_waits_at_once_both_answer() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.wait_for_session_migration("s"), ctx.wait_for_session_migration("s"));
        let (a, b) = ctx.join2(a, b).await;
        Ok(format!("{} {}", a.epoch, b.epoch))
    });
    story.waits([]);
    assert_eq!(story.output([migrated("s", 4)]), "4 4");
}

#[test]
fn a_loop_of_waits_hears_of_every_epoch_that_is_still_current() {
    let mut story = story(|ctx, _| async move {
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.push(ctx.wait_for_session_migration("s").await.epoch);
            ctx.schedule_activity("work", "").await?;
        }
        Ok(format!("{seen:?}"))
    });
    story.waits([]);
    story.waits([migrated("s", 4)]);
    // It moves while the loop is busy, and again: the newest is heard of as soon as the loop waits.
    story.waits([migrated("s", 5), migrated("s", 6)]);
    story.waits([done(3, "")]);
    // A repeated one, and two that overtook each other.
    story.waits([migrated("s", 6), migrated("s", 9), migrated("s", 8)]);
    story.waits([done(7, "")]);
    let last = story.history.iter().rev().find_map(|event| match event.kind {
        EventKind::ActivityScheduled { .. } => Some(event.event_id),
        _ => None,
    });
    assert_eq!(story.output([done(last.unwrap(), "")]), "[4, 6, 9]");
}

#[test]
fn a_restart_asks_the_store_only_for_new_waits() {
    let mut story = story(|ctx, _| async move {
        let first = ctx.wait_for_session_migration("s").await;
        let second = ctx.wait_for_session_migration("s").await;
        Ok(format!("{} {}", first.epoch, second.epoch))
    });
    story.waits([]);
    story.restart();
    assert_eq!(story.waits([raise("x", "")]).effects.sessions, []);
    let turn = story.waits([migrated("s", 4)]);
    assert_eq!(turn.effects.sessions.len(), 1);
    assert_eq!(story.output([migrated("s", 5)]), "4 5");
}

#[test]
fn a_dropped_wait_leaves_nothing_to_answer() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.wait_for_session_migration("s"));
        futures::future::pending().await
    });
    assert_eq!(story.turn([]).verdict, Verdict::Waiting { stuck: true });
    assert_eq!(story.turn([migrated("s", 2)]).events.len(), 1);
}
