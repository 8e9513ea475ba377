//! Timers: they fire at their recorded time, whichever runtime replays them; delays at both ends of time; the
//! recorded times of timers and values; clocks that jump (1.8, 2.4, I8, F17, S16).

use std::sync::Arc;
use std::time::Duration;

use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    BackoffStrategy, Event, EventKind, OrchestrationContext, OrchestrationStatus, RetryPolicy, RuntimeOptions,
};
use steadfast_behaviour::{
    Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::{Clock, VirtualClock};

/// The wall time at which a stage begins.
const BEGIN_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTE: Duration = Duration::from_secs(60);

fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_, input: String| async move { Ok(input) })
}

/// Registers one orchestration as `Flow`.
fn flow<F>(
    handler: impl Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
) -> OrchestrationRegistryBuilder
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    orchestrations().register("Flow", handler)
}

/// Registers `Plain`, which calls an activity, and `Timer`, which waits a minute before it does.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Plain", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .register("Timer", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_timer(MINUTE).await;
            ctx.schedule_activity("Echo", input).await
        })
}

async fn raise(stage: &Stage, name: &str, data: &str) {
    stage.client.raise_event("a", name, data).await.expect("is sent");
}

/// The times in a history: of timers that were created, and of values that were set.
fn times(history: &[Event]) -> (Vec<u64>, Vec<u64>) {
    let timer = |event: &Event| match event.kind {
        EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms),
        _ => None,
    };
    let value = |event: &Event| match event.kind {
        EventKind::KeyValueSet { last_updated_at_ms, .. } => Some(last_updated_at_ms),
        _ => None,
    };
    (history.iter().filter_map(timer).collect(), history.iter().filter_map(value).collect())
}

/// Sets a value, waits a minute, sets another, waits for `go`, and removes what is older than its first
/// timer.
async fn prunes(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_kv_value("old", "1");
    ctx.schedule_timer(MINUTE).await;
    ctx.set_kv_value("young", "2");
    ctx.schedule_timer(MINUTE).await;
    ctx.schedule_wait("go").await;
    ctx.set_kv_value("new", "3");
    let pruned = ctx.prune_kv_values_updated_before(BEGIN_MS + 60_000);
    let rest = ctx.prune_kv_values_updated_before(u64::MAX);
    Ok(format!("{pruned} {rest}"))
}

on_every_store! {
    async fn i8_a_timer_fires_at_its_recorded_time_whoever_replays_it(stage) {
        let one = || {
            flow(|ctx: OrchestrationContext, _| async move {
                ctx.schedule_timer(MINUTE).await;
                Ok("fired".to_owned())
            })
        };
        stage.run(activities(), one()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.stop().await;
        stage.pass(MINUTE - Duration::from_millis(1));
        stage.run(activities(), one()).await;
        raise(&stage, "poke", "poke").await;
        stage.has("a", "ExternalEvent", 1).await;
        assert_eq!(stage.kinds("a").await.len(), 3, "it does not fire early");
        stage.pass(Duration::from_millis(1));
        assert_eq!(stage.output("a").await, Ok("fired".to_owned()));
        let fired = stage.history("a").await.into_iter().find_map(|event| match event.kind {
            EventKind::TimerFired { fire_at_ms } => Some((event.source_event_id, fire_at_ms)),
            _ => None,
        });
        let (timers, _) = times(&stage.history("a").await);
        assert_eq!(fired, Some((Some(2), timers[0])));
        stage.stop().await;
    }

    async fn r2_4_a_dropped_timer_leaves_no_trace_but_its_firing(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, _| async move {
                    drop(ctx.schedule_timer(MINUTE));
                    Ok(ctx.schedule_wait("go").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.pass(MINUTE);
        stage.has("a", "TimerFired", 1).await;
        raise(&stage, "go", "on").await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        let expected = [
            "OrchestrationStarted",
            "TimerCreated",
            "ExternalSubscribed",
            "TimerFired",
            "ExternalEvent",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, expected);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g11_after_a_downtime_the_approval_of_day_3_comes_before_the_timeout_of_day_7(stage) {
        const DAY: Duration = Duration::from_secs(86_400);
        let flow = || {
            orchestrations().register("Approval", |ctx: OrchestrationContext, _| async move {
                match ctx.select2(ctx.schedule_timer(7 * DAY), ctx.schedule_wait("approved")).await {
                    steadfast::Either2::First(()) => Ok("timed out".to_owned()),
                    steadfast::Either2::Second(by) => Ok(format!("approved by {by}")),
                }
            })
        };
        stage.run(echo(), flow()).await;
        for instance in ["a", "late"] {
            stage.start(instance, "Approval", "").await;
            stage.has(instance, "ExternalSubscribed", 1).await;
        }
        stage.stop().await;
        stage.pass(3 * DAY);
        raise(&stage, "approved", "Ada").await;
        stage.pass(5 * DAY);
        stage.client.raise_event("late", "approved", "Bob").await.expect("is sent");
        stage.pass(2 * DAY);
        stage.run(echo(), flow()).await;
        assert_eq!(stage.output("a").await, Ok("approved by Ada".to_owned()));
        assert_eq!(stage.output("late").await, Ok("timed out".to_owned()), "sent on day 8");
        stage.stop().await;
    }

    async fn i8_durations_at_both_ends_are_legal(stage) {
        let flow = orchestrations().register("Timers", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::ZERO).await;
            let never = ctx.schedule_timer(Duration::MAX);
            let none = RetryPolicy::new(2)
                .with_backoff(BackoffStrategy::Fixed { delay: Duration::ZERO })
                .with_timeout(Duration::MAX);
            let tried = ctx.schedule_activity_with_retry("Fails", "", none).await;
            match ctx.select2(never, ctx.schedule_wait("go")).await {
                steadfast::Either2::First(()) => Err("for ever is over".to_owned()),
                steadfast::Either2::Second(data) => Ok(format!("{tried:?} {data}")),
            }
        });
        let acts = echo().register("Fails", |_, _| async { Err("no".to_owned()) });
        stage.run(acts, flow).await;
        stage.start("a", "Timers", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        // A thousand years.
        stage.pass(Duration::from_secs(1_000 * 365 * 86_400));
        stage.client.raise_event("a", "go", "on").await.expect("raises");
        let status = stage.client.wait_for_orchestration("a", Duration::MAX).await.expect("answers");
        assert!(
            matches!(&status, OrchestrationStatus::Completed { output, .. } if output == r#"Err("no") on"#),
            "{status:?}"
        );
        stage.stop().await;
    }

    async fn c1_8_a_delay_that_no_clock_can_hold_waits_for_ever(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, _| async move {
                    let (longest, go) = (ctx.schedule_timer(Duration::MAX), ctx.schedule_wait("go"));
                    Ok(format!("{:?}", ctx.select2(longest, go).await))
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let (timers, _) = times(&stage.history("a").await);
        assert_eq!(timers, [u64::MAX]);
        raise(&stage, "go", "go").await;
        assert_eq!(stage.output("a").await, Ok("Second(\"go\")".to_owned()));
        stage.stop().await;
    }

    async fn c1_8_times_are_those_of_the_store_and_never_before_what_a_turn_consumes(stage) {
        let begin = stage.clock.now_ms();
        stage.run(activities(), flow(prunes)).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(MINUTE + Duration::from_secs(5));
        stage.has("a", "TimerCreated", 2).await;
        let history = stage.history("a").await;
        let (timers, values) = times(&history);
        assert_eq!(timers, [begin + 60_000, begin + 125_000]);
        assert_eq!(values, [begin, begin + 65_000]);
        let stamps: Vec<u64> = history.iter().map(|event| event.timestamp_ms - begin).collect();
        assert_eq!(stamps, [0, 0, 0, 65_000, 65_000, 65_000]);
        stage.stop().await;
    }

    async fn c1_8_a_runtime_whose_clock_is_slow_does_not_go_back_behind_a_timer(stage) {
        let begin = stage.clock.now_ms();
        let slow = VirtualClock::new(begin - 3_600_000);
        let options = RuntimeOptions { clock: Arc::new(slow.clone()), ..stage.options() };
        stage.run_with(activities(), flow(prunes), options).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(MINUTE);
        slow.advance(Duration::from_secs(1));
        stage.has("a", "TimerCreated", 2).await;
        let (timers, values) = times(&stage.history("a").await);
        if stage.kind == StoreKind::Wrapped {
            // Such a provider tells no time, so turns have the runtime's, and only what they consume corrects
            // it.
            assert_eq!((timers[0], values[0]), (begin - 3_540_000, begin - 3_600_000));
            assert_eq!((timers[1], values[1]), (timers[0] + 60_000, timers[0]));
        } else {
            assert_eq!(
                (timers, values),
                (vec![begin + 60_000, begin + 120_000], vec![begin, begin + 60_000])
            );
        }
        stage.stop().await;
    }

    async fn f17_the_recorded_time_of_a_value_wins_over_the_time_of_a_replay(stage) {
        stage.run(activities(), flow(prunes)).await;
        stage.start("a", "Flow", "").await;
        for timers in 1..=2 {
            stage.has("a", "TimerCreated", timers).await;
            stage.pass(MINUTE);
        }
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        let (_, recorded) = times(&stage.history("a").await);
        stage.pass(Duration::from_secs(86_400));
        stage.run(activities(), flow(prunes)).await;
        raise(&stage, "go", "go").await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()), "only the first is older than a minute");
        let (_, values) = times(&stage.history("a").await);
        assert_eq!(values[..2], recorded);
        stage.stop().await;
    }

    async fn s16_a_clock_that_jumps_ends_no_wait_and_holds_none_up(stage) {
        stage.run(echo(), flows()).await;
        stage.start("back", "Timer", "back").await;
        stage.has("back", "TimerCreated", 1).await;
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        stage.pass(MINUTE - Duration::from_millis(1));
        assert_eq!(stage.ends_after("behind", "Plain", "x").await, Ok("x".to_owned()));
        assert_eq!(stage.kinds("back").await, ["OrchestrationStarted", "TimerCreated"], "not before");
        stage.pass(Duration::from_millis(1));
        assert_eq!(stage.output("back").await, Ok("back".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn s16_a_timer_set_after_a_jump_lasts_as_long_as_it_should(stage) {
        stage.run(echo(), flows()).await;
        for (instance, wall) in [("back", BEGIN_MS - HOUR_MS), ("ahead", BEGIN_MS + 2 * HOUR_MS)] {
            stage.clock.set_wall_ms(wall);
            stage.start(instance, "Timer", instance).await;
            stage.has(instance, "TimerCreated", 1).await;
            stage.pass(MINUTE - Duration::from_millis(1));
            let behind = format!("behind {instance}");
            assert_eq!(stage.ends_after(&behind, "Plain", "x").await, Ok("x".to_owned()));
            assert_eq!(stage.kinds(instance).await, ["OrchestrationStarted", "TimerCreated"], "not before");
            stage.pass(Duration::from_millis(1));
            assert_eq!(stage.output(instance).await, Ok(instance.to_owned()));
        }
        stage.stop().await;
    }
}
