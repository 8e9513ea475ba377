//! What an instance waits for, in one call (F20 and what operators ask).

use std::time::Duration;

use steadfast::client::{
    ClientError, ExecutionState, Explanation, Place, Tries, Waiting, WaitingActivity, WorkPhase, WorkState,
};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{ActivityContext, OrchestrationContext, SessionKey};
use steadfast_behaviour::{Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_clock::Clock;

const MINUTE: Duration = Duration::from_secs(60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const LEASE: Duration = Duration::from_secs(30);

async fn explain(stage: &Stage, instance: &str) -> Explanation {
    stage.client.explain(instance).await.expect("can be explained")
}

/// Waits for the one activity to be as a test wants it, and returns it.
async fn activity(
    stage: &Stage,
    instance: &str,
    wanted: impl Fn(&WaitingActivity) -> bool,
) -> WaitingActivity {
    let the_one = async || match explain(stage, instance).await.waiting.as_slice() {
        [Waiting::Activity(activity)] => Some(activity.clone()),
        _ => None,
    };
    stage.until("the activity", async || the_one().await.is_some_and(|activity| wanted(&activity))).await;
    *the_one().await.expect("it is still there")
}

fn is_leased(activity: &WaitingActivity) -> bool {
    matches!(&activity.place, Place::Queued(WorkState { phase: WorkPhase::Leased { .. }, .. }))
}

fn working() -> OrchestrationRegistryBuilder {
    orchestrations().register("Work", |ctx: OrchestrationContext, tag: String| async move {
        let work = ctx.schedule_activity("Work", "");
        if tag.is_empty() { work.await } else { work.with_tag(tag).await }
    })
}

fn hanging() -> steadfast::runtime::registry::ActivityRegistryBuilder {
    activities().register("Work", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("stopped".to_owned())
    })
}

fn only_turns(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { worker_concurrency: 0, ..stage.options() }
}

fn named(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { worker_concurrency: 1, worker_node_id: Some("n1".to_owned()), ..stage.options() }
}

/// Waits for an approval at most a week, then for the shipping, twice.
fn approving() -> OrchestrationRegistryBuilder {
    orchestrations().register("Approve", |ctx: OrchestrationContext, round: String| async move {
        drop(ctx.schedule_timer(7 * DAY));
        ctx.select2(ctx.schedule_wait("approval"), ctx.schedule_timer(7 * DAY)).await;
        ctx.schedule_wait("shipped").await;
        if round == "first" { ctx.continue_as_new("second").await } else { Ok("done".to_owned()) }
    })
}

/// The events and timers that instance `a` waits for, by their ids; a timer has no name.
async fn waits(stage: &Stage) -> Vec<(u64, &'static str)> {
    let waiting = explain(stage, "a").await.waiting.into_iter();
    let named = waiting.map(|wait| match wait {
        Waiting::Event { event_id, name, .. } if name == "approval" => (event_id, "approval"),
        Waiting::Event { event_id, name, .. } if name == "shipped" => (event_id, "shipped"),
        Waiting::Timer { event_id, .. } => (event_id, ""),
        other => panic!("it should wait for no such thing: {other:?}"),
    });
    named.collect()
}

on_every_store! {
    async fn an_unknown_instance_is_not_found(stage) {
        let error = stage.client.explain("nobody").await.expect_err("there is none");
        assert!(
            matches!(&error, ClientError::InstanceNotFound { instance_id } if instance_id == "nobody"),
            "{error:?}"
        );
    }

    async fn events_queues_and_timers_are_named_with_their_times(stage) {
        let flow = orchestrations().register("Wait", |ctx: OrchestrationContext, _| async move {
            let (timer, event) = (ctx.schedule_timer(MINUTE), ctx.schedule_wait("go"));
            let ((), event, message) = ctx.join3(timer, event, ctx.dequeue_event("mail")).await;
            Ok(format!("{event}+{message}"))
        });
        stage.run(activities(), flow).await;
        let asked_at_ms = stage.clock.now_ms();
        stage.start("a", "Wait", "").await;
        stage.has("a", "QueueSubscribed", 1).await;
        let timer = Waiting::Timer { event_id: 2, asked_at_ms, fire_at_ms: asked_at_ms + 60_000 };
        let queue = Waiting::Queue { event_id: 4, asked_at_ms, name: "mail".to_owned() };
        let told = explain(&stage, "a").await;
        let event = Waiting::Event { event_id: 3, asked_at_ms, name: "go".to_owned() };
        assert_eq!(told.waiting, [timer.clone(), event, queue.clone()]);
        assert!(!told.stuck && !told.has_ended() && told.more == 0);
        let state = told.state.expect("it has begun");
        assert_eq!(
            (state.orchestration.as_str(), state.execution_id, state.status),
            ("Wait", 1, ExecutionState::Running)
        );

        stage.client.raise_event("a", "go", "now").await.expect("is raised");
        stage.has("a", "ExternalEvent", 1).await;
        assert_eq!(explain(&stage, "a").await.waiting, [timer, queue], "what was answered is not waited for");
        stage.stop().await;
    }

    async fn an_instance_that_has_ended_waits_for_nothing(stage) {
        let flow = orchestrations()
            .register("Done", |_: OrchestrationContext, _| async move { Ok("42".to_owned()) });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Done", "").await, Ok("42".to_owned()));
        let told = explain(&stage, "a").await;
        assert!(told.has_ended() && !told.stuck);
        assert_eq!(told.waiting, []);
        assert_eq!(told.state.map(|state| state.status), Some(ExecutionState::Completed("42".to_owned())));
        stage.stop().await;
    }

    async fn f20_an_instance_that_awaits_something_foreign_is_named_stuck(stage) {
        let flow = orchestrations().register("Hang", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait("go").await;
            std::future::pending().await
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Hang", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        assert!(!explain(&stage, "a").await.stuck, "it waits for an event");
        stage.client.raise_event("a", "go", "").await.expect("is raised");
        stage.has("a", "ExternalEvent", 1).await;
        let told = explain(&stage, "a").await;
        assert!(told.stuck && told.waiting.is_empty());
        assert!(
            told.to_string().ends_with("stuck: it waits for nothing that could ever be answered; cancel it"),
            "{told}"
        );
        stage.client.cancel_instance("a", "enough").await.expect("is asked");
        assert!(stage.ends("a").await.is_err());
        assert!(!explain(&stage, "a").await.stuck, "it has ended");
        stage.stop().await;
    }

    async fn children_are_named_with_their_status(stage) {
        let flow = orchestrations()
            .register("Parent", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_sub_orchestration_with_id("Child", "kid", "").await
            })
            .register(
                "Child",
                |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) },
            );
        stage.run(activities(), flow).await;
        let asked_at_ms = stage.clock.now_ms();
        stage.start("a", "Parent", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        let child = Waiting::Child {
            event_id: 2,
            asked_at_ms,
            name: "Child".to_owned(),
            instance: "kid".to_owned(),
            status: Some(ExecutionState::Running),
        };
        let told = explain(&stage, "a").await;
        assert_eq!(told.waiting, [child]);
        let text = told.to_string();
        assert!(
            text.contains("waits for child 'kid' (Child, event 2), for ") && text.ends_with(": running"),
            "{text}"
        );
        stage.stop().await;
    }

    async fn an_activity_is_named_whatever_the_store_can_tell(stage) {
        stage.run_with(activities(), working(), only_turns(&stage)).await;
        stage.start("a", "Work", "gpu").await;
        stage.has("a", "ActivityScheduled", 1).await;
        let told = activity(&stage, "a", |_| true).await;
        assert_eq!((told.event_id, told.name.as_str(), told.tag.as_deref()), (2, "Work", Some("gpu")));
        let unknown = stage.kind == steadfast_behaviour::StoreKind::Wrapped;
        assert_eq!(told.place == Place::Unknown, unknown, "{told:?}");
        assert_eq!(explain(&stage, "a").await.turn.is_none(), unknown);
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn an_instance_that_nobody_runs_has_not_begun(stage) {
        stage.start("a", "Flow", "").await;
        stage.pass(MINUTE);
        let told = explain(&stage, "a").await;
        let turn = told.turn.clone().expect("the store can tell");
        assert_eq!((told.state.is_none(), turn.waiting, turn.leased_until_ms), (true, 1, None));
        assert_eq!(turn.oldest_ms, Some(told.now_ms - 60_000));
        let start = told.start.expect("the store can tell");
        assert_eq!((start.orchestration.as_str(), start.version), ("Flow", None));
        assert_eq!(
            explain(&stage, "a").await.to_string(),
            "a: not begun (Flow)\n1 message waits for a turn, for 1 min\nno worker is live"
        );
    }

    async fn g31_a_start_that_no_live_worker_has_the_code_for_says_so_with_its_name_and_version(stage) {
        stage.run(activities(), working()).await;
        stage.client.start_orchestration_versioned("a", "Work", "3.0.0", "").await.expect("starts");
        stage.start("b", "Typo", "").await;
        stage.until("both are refused", async || stage.faults.abandoned() == 2).await;
        stage.settle().await;
        for (instance, name) in [("a", "Work"), ("b", "Typo")] {
            let told = explain(&stage, instance).await;
            assert_eq!(told.unregistered.as_ref().map(|needed| needed.name.as_str()), Some(name));
        }
        let text = explain(&stage, "a").await.to_string();
        assert!(text.starts_with("a: not begun (Work 3.0.0)\n1 message not due yet"), "{text}");
        let says = "\nnot registered: no live worker has orchestration 'Work' 3.0.0";
        assert!(text.ends_with(says), "{text}");
        stage.stop().await;
    }

    async fn g31_a_turn_that_no_live_worker_has_the_code_for_says_so(stage) {
        let flow = orchestrations().register("Wait", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        assert_eq!(explain(&stage, "a").await.unregistered, None, "it waits for an event and not for a turn");
        stage.client.raise_event("a", "go", "").await.expect("is raised");
        let before = stage.faults.abandoned();
        stage.run(activities(), working()).await;
        stage.until("the turn is refused", async || stage.faults.abandoned() > before).await;
        stage.settle().await;
        let text = explain(&stage, "a").await.to_string();
        assert!(text.contains("\nnot registered: no live worker has orchestration 'Wait' 1.0.0\n"), "{text}");
        stage.stop().await;
    }

    async fn g31_with_no_live_worker_at_all_an_explanation_says_that_and_names_no_handler(stage) {
        stage.run_with(activities(), working(), only_turns(&stage)).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        assert!(!explain(&stage, "a").await.no_worker_is_live);
        stage.stop().await;
        stage.start("b", "Work", "").await;
        for instance in ["a", "b"] {
            let told = explain(&stage, instance).await;
            assert!(told.no_worker_is_live, "{told:?}");
            let text = told.to_string();
            assert!(text.contains("\nno worker is live") && !text.contains("not registered"), "{text}");
        }
    }

    async fn g31_an_activity_that_a_live_worker_has_is_not_called_unregistered(stage) {
        stage.run_with(activities(), working(), only_turns(&stage)).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        assert!(activity(&stage, "a", |_| true).await.is_unregistered);
        stage.faults.hang("fetch_work", u64::MAX);
        let runtime = stage.run(hanging(), orchestrations()).await;
        let is_listed = async || stage.client.workers().await.is_ok_and(|workers| workers.len() == 2);
        stage.until("it is listed", is_listed).await;
        assert!(!activity(&stage, "a", |_| true).await.is_unregistered, "a worker has it");
        runtime.shutdown(Some(0)).await;
        assert!(activity(&stage, "a", |_| true).await.is_unregistered, "that worker has stopped");
        stage.stop().await;
    }

    async fn g31_an_instance_that_has_ended_tells_of_no_message_that_is_not_due(stage) {
        let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
            ctx.select2(ctx.schedule_wait("go"), ctx.schedule_timer(MINUTE)).await;
            Ok("done".to_owned())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Race", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("is raised");
        stage.ends("a").await.expect("completes");
        assert_eq!(explain(&stage, "a").await.to_string(), "a: completed (Race 1.0.0, execution 1)");
        stage.stop().await;
    }

    async fn g31_a_timer_that_the_code_has_dropped_is_not_shown(stage) {
        let shown = async || explain(&stage, "a").await.to_string().contains("timer");
        let delayed = async || explain(&stage, "a").await.turn.map(|turn| turn.delayed);
        stage.run(activities(), approving()).await;
        stage.start("a", "Approve", "first").await;
        stage.has("a", "TimerCreated", 2).await;
        assert_eq!(waits(&stage).await, [(3, "approval"), (4, "")], "a timer is dropped where it was set");
        assert_eq!(delayed().await, Some(1));

        stage.client.raise_event("a", "approval", "").await.expect("is raised");
        stage.has("a", "ExternalSubscribed", 2).await;
        assert_eq!(waits(&stage).await, [(6, "shipped")], "the code awaits no timer");
        assert!(!shown().await && delayed().await == Some(0), "{}", explain(&stage, "a").await);
        stage.stop().await;
        assert!(!shown().await, "it stays known");

        stage.run(activities(), approving()).await;
        stage.client.raise_event("a", "shipped", "").await.expect("is raised");
        stage.until("the second execution", async || waits(&stage).await.len() == 2).await;
        assert_eq!(waits(&stage).await, [(3, "approval"), (4, "")], "its own timer is awaited");
        assert_eq!(delayed().await, Some(1), "the timers of the first execution are left behind");
        stage.stop().await;

        stage.client.raise_event("a", "approval", "").await.expect("is raised");
        stage.run(activities(), approving()).await;
        stage.has("a", "ExternalSubscribed", 2).await;
        assert_eq!(waits(&stage).await, [(6, "shipped")], "a turn from cold tells what it dropped");
        assert!(!shown().await && delayed().await == Some(0), "{}", explain(&stage, "a").await);

        stage.pass(7 * DAY);
        stage.has("a", "TimerFired", 2).await;
        stage.client.raise_event("a", "shipped", "").await.expect("is raised");
        assert_eq!(stage.ends("a").await, Ok("done".to_owned()), "a dropped timer fires all the same");
        stage.stop().await;
    }

    async fn an_activity_that_nobody_takes_says_since_when_and_which_tag_it_needs(stage) {
        stage.run_with(hanging(), working(), stage.options()).await;
        let queued_at_ms = stage.clock.now_ms();
        stage.start("a", "Work", "gpu").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.pass(Duration::from_secs(5));
        let expected = WaitingActivity {
            event_id: 2,
            queued_at_ms,
            name: "Work".to_owned(),
            tag: Some("gpu".to_owned()),
            session: None,
            session_info: None,
            place: Place::Queued(WorkState {
                activity_id: 2,
                name: Some("Work".to_owned()),
                tag: Some("gpu".to_owned()),
                session: None,
                attempts: 0,
                deliveries: 0,
                call: stage.history("a").await[1].call.clone(),
                tries: Tries::default(),
                phase: WorkPhase::Waiting { since_ms: queued_at_ms },
            }),
            is_unregistered: true,
            obstacle: None,
        };
        let told = explain(&stage, "a").await;
        assert_eq!(told.waiting, [Waiting::Activity(Box::new(expected))]);
        assert_eq!(
            told.to_string(),
            "a: running (Work 1.0.0, execution 1)\n\
             waits for activity 'Work' (event 2), queued 5 s ago; nobody has taken it, for 5 s \
             (0 deliveries); only a worker with tag 'gpu' may; not registered: no live worker has \
             activity 'Work' for tag 'gpu'"
        );
        stage.stop().await;
    }

    async fn an_activity_that_runs_names_its_worker_and_the_end_of_its_lease(stage) {
        stage.run_with(hanging(), working(), named(&stage)).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        let told = activity(&stage, "a", is_leased).await;
        let Place::Queued(work) = &told.place else { panic!("{told:?}") };
        let until_ms = stage.clock.now_ms() + LEASE.as_millis() as u64;
        assert_eq!(work.phase, WorkPhase::Leased { worker_id: "work-0-n1".to_owned(), until_ms });
        assert_eq!(work.attempts, 1);
        let text = explain(&stage, "a").await.to_string();
        assert!(text.ends_with("run by work-0-n1 (delivery 1), leased for another 30 s"), "{text}");
        stage.stop().await;
    }

    async fn an_activity_without_code_is_held_back_and_says_until_when(stage) {
        stage.run_with(activities(), working(), named(&stage)).await;
        stage.start("a", "Work", "").await;
        let is_delayed = |activity: &WaitingActivity| {
            matches!(&activity.place, Place::Queued(WorkState { phase: WorkPhase::Delayed { .. }, .. }))
        };
        let told = activity(&stage, "a", is_delayed).await;
        let Place::Queued(work) = told.place else { panic!("{told:?}") };
        let WorkPhase::Delayed { until_ms } = work.phase else { panic!("{work:?}") };
        assert!(until_ms > stage.clock.now_ms(), "{until_ms}");
        let text = explain(&stage, "a").await.to_string();
        assert!(text.contains("; held back after "), "{text}");
        // G31: the reason is said, and not only in the log of the workers.
        assert!(text.ends_with("; not registered: no live worker has activity 'Work'"), "{text}");
        stage.stop().await;
    }

    async fn an_activity_on_a_session_names_who_holds_it(stage) {
        let flow = orchestrations().register("Work", |ctx: OrchestrationContext, _| async move {
            ctx.open_session_with_id("s").await?;
            ctx.schedule_activity_on_session("Work", "", "s").await
        });
        stage.run_with(hanging(), flow, named(&stage)).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        let told = activity(&stage, "a", is_leased).await;
        assert_eq!(told.session, Some(SessionKey::owned("a", "s")));
        let session = told.session_info.expect("somebody holds it");
        assert_eq!(session.owner.map(|owner| owner.id).as_deref(), Some("n1"));
        assert!(session.locked_until_ms > stage.clock.now_ms());
        let text = explain(&stage, "a").await.to_string();
        assert!(text.contains("; on session 's' of 'a', held by n1, for another 30 s"), "{text}");
        stage.stop().await;
    }

    async fn a_wait_for_the_move_of_a_session_is_not_stuck(stage) {
        let flow = orchestrations().register("Watch", |ctx: OrchestrationContext, _| async move {
            ctx.open_session_with_id("s").await?;
            Ok(ctx.wait_for_session_migration("s").await.to)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Watch", "").await;
        stage.has("a", "SessionOpened", 1).await;
        let told = explain(&stage, "a").await;
        assert_eq!(told.waiting, [Waiting::SessionMove { session: SessionKey::owned("a", "s") }]);
        assert!(!told.stuck);
        stage.stop().await;
    }

    async fn a_turn_that_is_leased_is_told_with_its_end(stage) {
        stage.start("a", "Flow", "").await;
        let store = stage.inner();
        let leased = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.expect("is fetched");
        assert!(leased.is_some());
        let told = explain(&stage, "a").await;
        let text = "a: not begun (Flow)\na turn with 1 message is leased, for another 30 s";
        assert_eq!(told.to_string(), text);
    }

    async fn an_explanation_is_reached_by_the_name_of_an_instance_and_passes_errors_on(stage) {
        stage.start("a", "Flow", "").await;
        assert_eq!(stage.client.instance("a").explain().await.expect("is told"), explain(&stage, "a").await);
        stage.faults.outage();
        let error = stage.client.explain("a").await.expect_err("the store is away");
        assert!(error.is_retryable(), "{error:?}");
    }
}
