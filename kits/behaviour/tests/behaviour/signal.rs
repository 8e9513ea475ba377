//! Positional events: `raise_event` and `schedule_wait` (2.5), their marks in history (2.3, 2.4) and F1.
//!
//! To put several messages into one batch, a claim sends them while no runtime runs.

use std::time::Duration;

use steadfast::{AppErrorKind, Either2, ErrorDetails, Event, EventKind, OrchestrationContext};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

async fn waits(ctx: OrchestrationContext, _: String) -> HandlerResult {
    Ok(ctx.schedule_wait("go").await)
}

async fn waits_twice(ctx: OrchestrationContext, _: String) -> HandlerResult {
    let first = ctx.schedule_wait("first").await;
    let second = ctx.schedule_wait("second").await;
    Ok(format!("{first} {second}"))
}

async fn raise(stage: &Stage, instance: &str, name: &str, data: &str) {
    stage.client.raise_event(instance, name, data).await.expect("raises");
}

/// The name and data of every recorded event.
async fn raised(stage: &Stage, instance: &str) -> Vec<(String, String)> {
    let pair = |event: Event| match event.kind {
        EventKind::ExternalEvent { name, data } => Some((name, data)),
        _ => None,
    };
    stage.history(instance).await.into_iter().filter_map(pair).collect()
}

/// The schedule and reason of every wait that history marks as given up.
async fn given_up(stage: &Stage, instance: &str, execution_id: u64) -> Vec<(Option<u64>, String)> {
    let mark = |event: Event| match event.kind {
        EventKind::ExternalSubscribedCancelled { reason } => Some((event.source_event_id, reason)),
        _ => None,
    };
    stage.history_of(instance, execution_id).await.into_iter().filter_map(mark).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
}

on_every_store! {
    async fn r2_5_an_event_answers_the_wait_for_its_name(stage) {
        stage.run(activities(), orchestrations().register("Wait", waits)).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go", "now").await;
        assert_eq!(stage.output("a").await, Ok("now".to_owned()));
        let kinds = ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("a").await, kinds);
        assert!(stage.history("a").await.iter().all(|event| event.source_event_id.is_none()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_5_every_raise_is_recorded_wanted_or_not_and_the_same_twice(stage) {
        stage.start("a", "Wait", "").await;
        for _ in 0..2 {
            raise(&stage, "a", "nobody", "same").await;
        }
        stage.run(activities(), orchestrations().register("Wait", waits)).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let kinds = ["OrchestrationStarted", "ExternalEvent", "ExternalEvent", "ExternalSubscribed"];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(raised(&stage, "a").await, pairs(&[("nobody", "same"), ("nobody", "same")]));
        stage.stop().await;
    }

    async fn r2_5_an_event_nobody_waits_for_is_recorded_and_never_delivered(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations().register("Twice", waits_twice)).await;
        stage.start("a", "Twice", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "second", "early").await;
        stage.has("a", "ExternalEvent", 1).await;
        raise(&stage, "a", "first", "one").await;
        stage.has("a", "ExternalSubscribed", 2).await;
        raise(&stage, "a", "second", "two").await;
        assert_eq!(stage.output("a").await, Ok("one two".to_owned()));
        assert_eq!(
            raised(&stage, "a").await,
            pairs(&[("second", "early"), ("first", "one"), ("second", "two")])
        );
        let warned = lines.saying("WARN", "not delivered");
        assert_eq!(warned.iter().map(|line| line.field("name")).collect::<Vec<_>>(), ["second"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_5_an_event_in_the_batch_of_the_start_is_early(stage) {
        stage.start("a", "Wait", "").await;
        raise(&stage, "a", "go", "early").await;
        stage.run(activities(), orchestrations().register("Wait", waits)).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "a", "go", "in time").await;
        assert_eq!(stage.output("a").await, Ok("in time".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_a_wait_begun_by_a_batch_is_too_late_for_the_rest_of_it(stage) {
        let flow = || orchestrations().register("Twice", waits_twice);
        stage.run(activities(), flow()).await;
        stage.start("a", "Twice", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        raise(&stage, "a", "first", "one").await;
        raise(&stage, "a", "second", "same batch").await;
        stage.run(activities(), flow()).await;
        stage.has("a", "ExternalSubscribed", 2).await;
        raise(&stage, "a", "second", "next batch").await;
        assert_eq!(stage.output("a").await, Ok("one next batch".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_waits_of_a_name_are_answered_in_the_order_they_were_begun(stage) {
        let flow = orchestrations().register("Three", |ctx: OrchestrationContext, _| async move {
            let (one, two, three) =
                (ctx.schedule_wait("go"), ctx.schedule_wait("go"), ctx.schedule_wait("go"));
            // Polled in another order than begun: polling does not decide.
            let (three, one, two) = ctx.join3(three, one, two).await;
            Ok(format!("{one} {two} {three}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Three", "").await;
        stage.has("a", "ExternalSubscribed", 3).await;
        for data in ["1", "2", "3"] {
            raise(&stage, "a", "go", data).await;
        }
        assert_eq!(stage.output("a").await, Ok("1 2 3".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_each_name_has_its_own_line(stage) {
        let flow = orchestrations().register("Names", |ctx: OrchestrationContext, _| async move {
            let (left, right) = (ctx.schedule_wait("left"), ctx.schedule_wait("right"));
            let (left, right) = ctx.join2(left, right).await;
            Ok(format!("{left} {right}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Names", "").await;
        stage.has("a", "ExternalSubscribed", 2).await;
        raise(&stage, "a", "right", "r").await;
        raise(&stage, "a", "left", "l").await;
        assert_eq!(stage.output("a").await, Ok("l r".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_a_wait_that_lost_a_race_takes_nothing(stage) {
        let flow = orchestrations().register("Lose", |ctx: OrchestrationContext, _| async move {
            let (lost, kept) = (ctx.schedule_wait("go"), ctx.schedule_wait("go"));
            let race = ctx.select2(lost, ctx.schedule_timer(Duration::from_secs(5))).await;
            assert!(matches!(race, Either2::Second(())), "the timer is first");
            Ok(kept.await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Lose", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(Duration::from_secs(5));
        stage.has("a", "ExternalSubscribedCancelled", 1).await;
        assert_eq!(given_up(&stage, "a", 1).await, [(Some(2), "dropped_future".to_owned())]);
        raise(&stage, "a", "go", "only one").await;
        assert_eq!(stage.output("a").await, Ok("only one".to_owned()));
        assert_eq!(given_up(&stage, "a", 1).await.len(), 1);
        stage.stop().await;
    }

    async fn r2_5_a_dropped_wait_is_cancelled_at_once_also_for_the_rest_of_the_batch(stage) {
        let flow = || {
            orchestrations().register("Drop", |ctx: OrchestrationContext, _| async move {
                let (dropped, kept) = (ctx.schedule_wait("x"), ctx.schedule_wait("x"));
                ctx.schedule_wait("go").await;
                drop(dropped);
                Ok(kept.await)
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Drop", "").await;
        stage.has("a", "ExternalSubscribed", 3).await;
        stage.stop().await;
        raise(&stage, "a", "go", "").await;
        raise(&stage, "a", "x", "for the one that is left").await;
        stage.run(activities(), flow()).await;
        assert_eq!(stage.output("a").await, Ok("for the one that is left".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_an_event_accepted_and_not_read_goes_with_its_wait(stage) {
        let flow = || {
            orchestrations().register("Unread", |ctx: OrchestrationContext, _| async move {
                let (dropped, kept) = (ctx.schedule_wait("x"), ctx.schedule_wait("x"));
                ctx.schedule_wait("go").await;
                drop(dropped);
                Ok(kept.await)
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Unread", "").await;
        stage.has("a", "ExternalSubscribed", 3).await;
        raise(&stage, "a", "x", "for the dropped one").await;
        raise(&stage, "a", "go", "").await;
        stage.has("a", "ExternalSubscribedCancelled", 1).await;
        // From history alone it must come out the same.
        stage.stop().await;
        stage.run(activities(), flow()).await;
        raise(&stage, "a", "x", "for the other").await;
        assert_eq!(stage.output("a").await, Ok("for the other".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_a_wait_dropped_before_it_is_recorded_is_recorded_and_then_given_up(stage) {
        let flow = orchestrations().register("Brief", |ctx: OrchestrationContext, _| async move {
            drop(ctx.schedule_wait("go"));
            Ok(ctx.schedule_wait("go").await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Brief", "").await;
        stage.has("a", "ExternalSubscribedCancelled", 1).await;
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(given_up(&stage, "a", 1).await, [(Some(2), "dropped_future".to_owned())]);
        raise(&stage, "a", "go", "x").await;
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
    }

    async fn r2_5_a_wait_dropped_before_it_is_recorded_is_open_until_the_mark(stage) {
        let flow =
            orchestrations().register("Leave", |ctx: OrchestrationContext, input: String| async move {
                if input == "second" {
                    return Ok(input);
                }
                drop(ctx.schedule_wait("go"));
                // A turn that continues as new writes no mark of its own for what was dropped, so the end
                // does.
                ctx.continue_as_new("second").await
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Leave", "first").await, Ok("second".to_owned()));
        assert_eq!(given_up(&stage, "a", 1).await, [(Some(2), "orchestration_terminal".to_owned())]);
        stage.stop().await;
    }

    async fn r2_3_a_wait_nobody_answered_is_marked_before_the_end(stage) {
        let flow = orchestrations().register("Three", |ctx: OrchestrationContext, _| async move {
            let all = vec![ctx.schedule_wait("go"), ctx.schedule_wait("go"), ctx.schedule_wait("other")];
            Ok(ctx.join(all).await.concat())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Three", "").await;
        stage.has("a", "ExternalSubscribed", 3).await;
        raise(&stage, "a", "go", "for the first").await;
        stage.has("a", "ExternalEvent", 1).await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        let marks =
            [(Some(3), "orchestration_terminal".to_owned()), (Some(4), "orchestration_terminal".to_owned())];
        assert_eq!(given_up(&stage, "a", 1).await, marks);
        assert_eq!(stage.kinds("a").await.last().map(String::as_str), Some("OrchestrationFailed"));
        stage.stop().await;
    }

    async fn r2_4_a_wait_that_is_held_when_the_code_returns_is_a_dropped_one(stage) {
        let flow = orchestrations().register("Held", |ctx: OrchestrationContext, _| async move {
            let _held = ctx.schedule_wait("go");
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Held", "").await, Ok(String::new()));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(given_up(&stage, "a", 1).await, [(Some(2), "dropped_future".to_owned())]);
        stage.stop().await;
    }

    async fn t3_two_events_of_one_batch_are_both_recorded_also_when_the_first_ends_it(stage) {
        let flow = || orchestrations().register("Wait", waits);
        stage.run(activities(), flow()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        raise(&stage, "a", "go", "1").await;
        raise(&stage, "a", "go", "2").await;
        stage.run(activities(), flow()).await;
        assert_eq!(stage.output("a").await, Ok("1".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalEvent",
            "ExternalEvent",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(raised(&stage, "a").await, pairs(&[("go", "1"), ("go", "2")]));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_8_a_typed_wait_decodes_what_a_typed_raise_encoded(stage) {
        let flow = orchestrations().register("Typed", |ctx: OrchestrationContext, _| async move {
            let numbers: Vec<u32> = ctx.schedule_wait_typed("go").await;
            Ok(numbers.iter().sum::<u32>().to_string())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Typed", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event_typed("a", "go", &vec![1, 2, 3]).await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("6".to_owned()));
        assert_eq!(raised(&stage, "a").await, pairs(&[("go", "[1,2,3]")]));
        stage.stop().await;
    }

    async fn c1_8_a_typed_wait_panics_on_what_it_cannot_decode_and_the_try_form_does_not(stage) {
        let flow = orchestrations()
            .register("Typed", |ctx: OrchestrationContext, _| async move {
                Ok(ctx.schedule_wait_typed::<u32>("go").await.to_string())
            })
            .register("Tries", |ctx: OrchestrationContext, _| async move {
                Ok(format!("{:?}", ctx.try_schedule_wait_typed::<u32>("go").await.is_err()))
            });
        stage.run(activities(), flow).await;
        for (instance, orchestration) in [("a", "Typed"), ("b", "Tries")] {
            stage.start(instance, orchestration, "").await;
            stage.has(instance, "ExternalSubscribed", 1).await;
            raise(&stage, instance, "go", "no number").await;
        }
        let Err(ErrorDetails::Application { kind: AppErrorKind::Panicked, message, retryable: false }) =
            stage.ends("a").await
        else {
            panic!("a panic was expected")
        };
        assert!(message.contains("event data cannot be decoded"), "{message}");
        assert_eq!(stage.output("b").await, Ok("true".to_owned()));
        stage.stop().await;
    }

    async fn f1_an_event_for_nobody_is_settled_and_delays_no_one(stage) {
        raise(&stage, "ghost", "go", "x").await;
        stage.run(activities(), orchestrations().register("Wait", waits)).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        raise(&stage, "ghost", "go", "again").await;
        raise(&stage, "a", "go", "y").await;
        assert_eq!(stage.output("a").await, Ok("y".to_owned()));
        stage
            .until("strays are settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        assert!(stage.history("ghost").await.is_empty());
        // What was dropped stays dropped: the id can be used, and nothing waits for it there.
        stage.start("ghost", "Wait", "").await;
        stage.has("ghost", "ExternalSubscribed", 1).await;
        assert_eq!(stage.kinds("ghost").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        stage.stop().await;
    }

    async fn f1_an_event_for_one_that_has_ended_changes_nothing(stage) {
        let flow =
            orchestrations().register("Done", |_: OrchestrationContext, _| async { Ok("done".to_owned()) });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Done", "").await, Ok("done".to_owned()));
        raise(&stage, "a", "go", "late").await;
        stage
            .until("the event is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        assert_eq!(stage.ends_after("b", "Done", "").await, Ok("done".to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
