//! What keeps an activity of a session waiting, and which sessions an instance has open.

use std::time::Duration;

use steadfast::client::{OpenSession, SessionObstacle, Waiting};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, OrchestrationContext, SessionConcurrency, SessionOptions};
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};
use steadfast_clock::Clock;

const WHILE: Duration = Duration::from_secs(5);

/// Schedules two activities at once on session `s`, opened as the input says.
fn talking() -> OrchestrationRegistryBuilder {
    orchestrations().register("Talk", |ctx: OrchestrationContext, how: String| async move {
        let options = SessionOptions::default().with_id("s");
        let options = match how.as_str() {
            "serial" => options.with_concurrency(SessionConcurrency::Serial),
            _ => options,
        };
        ctx.open_session_with(options).await?;
        let first = ctx.schedule_activity_on_session("Say", "1", "s");
        let second = ctx.schedule_activity_on_session("Say", "2", "s");
        let (first, _) = ctx.join2(first, second).await;
        first
    })
}

/// Says one word on session `s`, and another one when it is told to.
fn pausing() -> OrchestrationRegistryBuilder {
    orchestrations().register("Talk", |ctx: OrchestrationContext, _| async move {
        ctx.open_session_with_id("s").await?;
        ctx.open_session_with_id("other").await?;
        ctx.schedule_activity_on_session("Say", "", "s").await?;
        ctx.schedule_wait("go on").await;
        ctx.schedule_activity_on_session("Say", "", "s").await
    })
}

fn hanging() -> ActivityRegistryBuilder {
    activities().register("Say", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("stopped".to_owned())
    })
}

fn saying() -> ActivityRegistryBuilder {
    activities().register("Say", |_: ActivityContext, _| async { Ok(String::new()) })
}

fn named(stage: &Stage, node: &str) -> RuntimeOptions {
    RuntimeOptions {
        worker_node_id: Some(node.to_owned()),
        release_sessions_on_shutdown: false,
        ..stage.options()
    }
}

/// What keeps the activities of instance `a` waiting, and the explanation as a text.
async fn obstacles(stage: &Stage) -> (Vec<(u64, Option<SessionObstacle>)>, String) {
    let told = stage.client.explain("a").await.expect("can be explained");
    let text = told.to_string();
    let obstacles = told.waiting.into_iter().filter_map(|wait| match wait {
        Waiting::Activity(activity) => Some((activity.event_id, activity.obstacle)),
        _ => None,
    });
    (obstacles.collect(), text)
}

on_every_full_store! {
    async fn d27_an_activity_of_a_session_says_that_no_worker_takes_work_of_sessions(stage) {
        let options = RuntimeOptions { max_sessions_per_runtime: 0, ..stage.options() };
        stage.run_with(saying(), talking(), options).await;
        stage.start("a", "Talk", "").await;
        stage.has("a", "ActivityScheduled", 2).await;
        stage.pass(WHILE);
        let (found, text) = obstacles(&stage).await;
        let obstacle = Some(SessionObstacle::NoWorkerTakesSessions);
        assert_eq!(found, [(3, obstacle.clone()), (4, obstacle)]);
        let activity = |event| {
            format!(
                "waits for activity 'Say' (event {event}), queued 5 s ago; nobody has taken it, for 5 s: no \
                 live worker that has it takes work of sessions (their max_sessions_per_runtime is 0, or \
                 they are drained); on session 's' of 'a'"
            )
        };
        let expected = [
            "a: running (Talk 1.0.0, execution 1)".to_owned(),
            activity(3),
            activity(4),
            "has session 's' open".to_owned(),
        ];
        assert_eq!(text, expected.join("\n"));
        stage.stop().await;
    }

    async fn d29_an_activity_of_a_serial_session_says_behind_which_one_it_waits(stage) {
        stage.run_with(hanging(), talking(), named(&stage, "n1")).await;
        stage.start("a", "Talk", "serial").await;
        stage.has("a", "ActivityScheduled", 2).await;
        stage.until("the first runs", async || obstacles(&stage).await.1.contains("run by")).await;
        stage.pass(WHILE);
        let (found, text) = obstacles(&stage).await;
        assert_eq!(found, [(3, None), (4, Some(SessionObstacle::Behind { event_id: 3 }))]);
        let line = text.lines().find(|line| line.contains("(event 4)")).expect("it is told");
        assert_eq!(
            line.split_once("; on session").expect("it has a session").0,
            "waits for activity 'Say' (event 4), queued 5 s ago; it waits, for 5 s, behind the activity of \
             event 3: its session is serial"
        );
        stage.stop().await;
    }

    async fn d24_an_activity_that_waits_for_an_owner_that_has_stopped_says_so(stage) {
        stage.run_with(saying(), pausing(), named(&stage, "n1")).await;
        stage.start("a", "Talk", "").await;
        stage.has("a", "ActivityCompleted", 1).await;
        stage.stop().await;
        stage.run_with(saying(), pausing(), named(&stage, "n2")).await;
        stage.client.raise_event("a", "go on", "").await.expect("is raised");
        stage.has("a", "ActivityScheduled", 2).await;
        let (found, text) = obstacles(&stage).await;
        let [(_, Some(SessionObstacle::OwnerIsGone { owner, until_ms }))] = found.as_slice() else {
            panic!("its owner should be gone: {found:?}");
        };
        assert_eq!(owner, "n1");
        assert!(*until_ms > stage.clock.now_ms());
        let expected = ": n1, which owns its session, has stopped or reports no more, and its lease lasts \
                        for another ";
        assert!(text.contains(expected), "{text}");
        stage.stop().await;
    }

    async fn an_explanation_lists_the_sessions_that_the_instance_has_open(stage) {
        stage.run_with(saying(), pausing(), named(&stage, "n1")).await;
        stage.start("a", "Talk", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let told = stage.client.explain("a").await.expect("can be explained");
        let owner = |session: &OpenSession| {
            let owner = session.info.as_ref().and_then(|info| info.owner.clone());
            (session.id.clone(), owner.map(|owner| owner.id))
        };
        let open: Vec<_> = told.sessions.iter().map(owner).collect();
        assert_eq!(open, [("other".to_owned(), None), ("s".to_owned(), Some("n1".to_owned()))]);
        let text = told.to_string();
        let expected = "\nhas session 'other' open\nhas session 's' open, held by n1, for another ";
        assert!(text.contains(expected), "{text}");
        stage.client.cancel_instance("a", "enough").await.expect("is cancelled");
        stage.ends("a").await.expect_err("it is cancelled");
        assert_eq!(stage.client.explain("a").await.expect("can be explained").sessions, []);
        stage.stop().await;
    }
}
