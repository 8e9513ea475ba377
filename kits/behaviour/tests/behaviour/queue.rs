//! Queued events: `enqueue_event` and `dequeue_event` (2.6), F1, F18. Across executions: `carrying.rs`.
//!
//! To put several messages into one batch, a claim sends them while no runtime runs.

use std::time::Duration;

use steadfast::{AppErrorKind, Either2, ErrorDetails, Event, EventKind, OrchestrationContext};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};
use steadfast_store::MAX_TURN_MESSAGES;

use crate::workbench::HandlerResult;

/// More messages than one turn is given.
const MANY: usize = MAX_TURN_MESSAGES + 10;

async fn takes_two(ctx: OrchestrationContext, _: String) -> HandlerResult {
    let first = ctx.dequeue_event("q").await;
    let second = ctx.dequeue_event("q").await;
    Ok(format!("{first} {second}"))
}

async fn put(stage: &Stage, instance: &str, queue: &str, data: &str) {
    stage.client.enqueue_event(instance, queue, data).await.expect("enqueues");
}

/// The names and data of the messages that an execution received, in order.
async fn delivered(stage: &Stage, instance: &str, execution_id: u64) -> Vec<(String, String)> {
    let pair = |event: Event| match event.kind {
        EventKind::QueueEventDelivered { name, data } => Some((name, data)),
        _ => None,
    };
    stage.history_of(instance, execution_id).await.into_iter().filter_map(pair).collect()
}

/// The schedule and reason of every dequeue that history marks as given up.
async fn given_up(stage: &Stage, instance: &str) -> Vec<(Option<u64>, String)> {
    let mark = |event: Event| match event.kind {
        EventKind::QueueSubscriptionCancelled { reason } => Some((event.source_event_id, reason)),
        _ => None,
    };
    stage.history(instance).await.into_iter().filter_map(mark).collect()
}

async fn queue_is_empty(stage: &Stage) {
    let empty = async || stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0;
    stage.until("no message waits", empty).await;
}

on_every_store! {
    async fn r2_6_messages_are_taken_in_the_order_of_arrival(stage) {
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        stage.start("a", "Two", "").await;
        stage.has("a", "QueueSubscribed", 1).await;
        put(&stage, "a", "q", "1").await;
        stage.has("a", "QueueSubscribed", 2).await;
        put(&stage, "a", "q", "2").await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "QueueSubscribed",
            "QueueEventDelivered",
            "QueueSubscribed",
            "QueueEventDelivered",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_6_a_message_waits_until_it_is_taken(stage) {
        stage.start("a", "Two", "").await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        let kinds = [
            "OrchestrationStarted",
            "QueueEventDelivered",
            "QueueEventDelivered",
            "QueueSubscribed",
            "QueueSubscribed",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
    }

    async fn r2_6_equal_messages_are_two_messages(stage) {
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        stage.start("a", "Two", "").await;
        put(&stage, "a", "q", "same").await;
        put(&stage, "a", "q", "same").await;
        assert_eq!(stage.output("a").await, Ok("same same".to_owned()));
        stage.stop().await;
    }

    async fn r2_6_each_queue_has_its_own_line(stage) {
        let flow = orchestrations().register("Names", |ctx: OrchestrationContext, _| async move {
            let (left, right) = (ctx.dequeue_event("left"), ctx.dequeue_event("right"));
            let (left, right) = ctx.join2(left, right).await;
            Ok(format!("{left} {right}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Names", "").await;
        put(&stage, "a", "right", "r").await;
        put(&stage, "a", "left", "l").await;
        assert_eq!(stage.output("a").await, Ok("l r".to_owned()));
        stage.stop().await;
    }

    async fn r2_6_a_dequeue_that_has_not_looked_yet_keeps_its_place(stage) {
        let flow = orchestrations().register("Held", |ctx: OrchestrationContext, _| async move {
            let (held, next) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            let next = next.await;
            Ok(format!("{next} {}", held.await))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Held", "").await;
        stage.has("a", "QueueSubscribed", 2).await;
        put(&stage, "a", "q", "1").await;
        stage.has("a", "QueueEventDelivered", 1).await;
        put(&stage, "a", "q", "2").await;
        assert_eq!(stage.output("a").await, Ok("2 1".to_owned()));
        stage.stop().await;
    }

    async fn r2_6_a_dropped_dequeue_gives_its_place_to_the_next(stage) {
        let flow = orchestrations().register("Lose", |ctx: OrchestrationContext, _| async move {
            let (lost, kept) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            let race = ctx.select2(lost, ctx.schedule_timer(Duration::from_secs(5))).await;
            assert!(matches!(race, Either2::Second(())), "the timer is first");
            Ok(kept.await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Lose", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(Duration::from_secs(5));
        stage.has("a", "QueueSubscriptionCancelled", 1).await;
        assert_eq!(given_up(&stage, "a").await, [(Some(2), "dropped_future".to_owned())]);
        put(&stage, "a", "q", "1").await;
        assert_eq!(stage.output("a").await, Ok("1".to_owned()));
        stage.stop().await;
    }

    async fn r2_6_a_place_is_freed_at_the_drop_with_the_message_kept_for_it(stage) {
        let flow = || {
            orchestrations().register("Drop", |ctx: OrchestrationContext, _| async move {
                let (dropped, kept) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                ctx.schedule_wait("go").await;
                drop(dropped);
                let first = kept.await;
                ctx.schedule_wait("end").await;
                Ok(first)
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Drop", "").await;
        stage.has("a", "QueueSubscribed", 2).await;
        put(&stage, "a", "q", "1").await;
        stage.has("a", "QueueEventDelivered", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.has("a", "ExternalSubscribed", 2).await;
        // From history alone it must come out the same.
        stage.stop().await;
        stage.run(activities(), flow()).await;
        stage.client.raise_event("a", "end", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("1".to_owned()));
        stage.stop().await;
    }

    async fn r2_6_a_dequeue_dropped_before_it_is_recorded_takes_nothing(stage) {
        stage.start("a", "Brief", "").await;
        put(&stage, "a", "q", "1").await;
        let flow = orchestrations().register("Brief", |ctx: OrchestrationContext, _| async move {
            drop(ctx.dequeue_event("q"));
            Ok(ctx.dequeue_event("q").await)
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.output("a").await, Ok("1".to_owned()));
        assert_eq!(given_up(&stage, "a").await, [(Some(3), "dropped_future".to_owned())]);
        stage.stop().await;
    }

    async fn r2_2_of_two_dequeues_of_one_queue_the_newer_may_be_asked_first(stage) {
        let flow = || {
            orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
                let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                let (which, winner) = ctx.select2(newer, older).await.into_tuple();
                ctx.schedule_wait("end").await;
                Ok(format!("{which} {winner} {}", ctx.dequeue_event("q").await))
            })
        };
        stage.start("a", "Race", "").await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        stage.run(activities(), flow()).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        // The live turn and its replay must decide alike.
        stage.stop().await;
        stage.run(activities(), flow()).await;
        stage.client.raise_event("a", "end", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("1 1 2".to_owned()));
        stage.stop().await;
    }

    async fn f18_an_answer_once_given_does_not_move_when_an_older_dequeue_is_dropped(stage) {
        let flow = || {
            orchestrations().register("Shift", |ctx: OrchestrationContext, _| async move {
                let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                let newer = newer.await;
                drop(older);
                let left = ctx.dequeue_event("q").await;
                let next = ctx.dequeue_event("q").await;
                Ok(format!("{newer} {left} {next}"))
            })
        };
        stage.run(activities(), flow()).await;
        stage.start("a", "Shift", "").await;
        stage.has("a", "QueueSubscribed", 2).await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        stage.has("a", "QueueSubscribed", 4).await;
        stage.stop().await;
        put(&stage, "a", "q", "3").await;
        stage.run(activities(), flow()).await;
        assert_eq!(stage.output("a").await, Ok("2 1 3".to_owned()));
        assert_eq!(given_up(&stage, "a").await, [(Some(2), "dropped_future".to_owned())]);
        stage.stop().await;
    }

    async fn r2_6_messages_for_an_instance_that_does_not_exist_are_dropped(stage) {
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        put(&stage, "a", "q", "too early").await;
        queue_is_empty(&stage).await;
        stage.start("a", "Two", "").await;
        stage.has("a", "QueueSubscribed", 1).await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f1_messages_for_nobody_are_dropped_also_when_others_are_among_them(stage) {
        put(&stage, "ghost", "q", "1").await;
        stage.client.raise_event("ghost", "go", "").await.expect("raises");
        put(&stage, "ghost", "q", "2").await;
        stage.client.cancel_instance("ghost", "boo").await.expect("cancels");
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        queue_is_empty(&stage).await;
        stage.start("a", "Two", "").await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        assert!(stage.history("ghost").await.is_empty());
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_6_messages_ahead_of_a_start_that_waits_are_kept(stage) {
        put(&stage, "a", "q", "1").await;
        stage.start("a", "Two", "").await;
        put(&stage, "a", "q", "2").await;
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        stage.stop().await;
    }

    async fn i5_more_messages_than_a_turn_takes_stay_in_order_also_ahead_of_their_start(stage) {
        let flow = orchestrations().register("All", |ctx: OrchestrationContext, _| async move {
            for number in 0..MANY {
                let found = ctx.dequeue_event("q").await;
                if found != number.to_string() {
                    return Err(format!("{found} in place of {number}"));
                }
            }
            Ok("all".to_owned())
        });
        for number in 0..MANY - 1 {
            put(&stage, "a", "q", &number.to_string()).await;
        }
        stage.start("a", "All", "").await;
        put(&stage, "a", "q", &(MANY - 1).to_string()).await;
        stage.run(activities(), flow).await;
        assert_eq!(stage.output("a").await, Ok("all".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_6_messages_after_the_end_are_settled(stage) {
        let flow =
            orchestrations().register("Done", |_: OrchestrationContext, _| async { Ok("done".to_owned()) });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Done", "").await, Ok("done".to_owned()));
        put(&stage, "a", "q", "late").await;
        queue_is_empty(&stage).await;
        assert_eq!(stage.ends_after("b", "Done", "").await, Ok("done".to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_dequeues_that_no_message_is_there_for_are_marked_before_the_end(stage) {
        let flow = orchestrations().register("Three", |ctx: OrchestrationContext, _| async move {
            let held = vec![ctx.dequeue_event("q"), ctx.dequeue_event("q"), ctx.dequeue_event("other")];
            ctx.schedule_wait("never").await;
            Ok(ctx.join(held).await.concat())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Three", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        put(&stage, "a", "q", "for the first").await;
        stage.has("a", "QueueEventDelivered", 1).await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        let marks =
            [(Some(3), "orchestration_terminal".to_owned()), (Some(4), "orchestration_terminal".to_owned())];
        assert_eq!(given_up(&stage, "a").await, marks);
        // Positional waits come before queues, and both before the end.
        let kinds = [
            "OrchestrationCancelRequested",
            "ExternalSubscribedCancelled",
            "QueueSubscriptionCancelled",
            "QueueSubscriptionCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await.split_off(6), kinds);
        stage.stop().await;
    }

    async fn c1_8_a_typed_dequeue_decodes_what_a_typed_enqueue_encoded(stage) {
        let flow = orchestrations().register("Typed", |ctx: OrchestrationContext, _| async move {
            let numbers: Vec<u32> = ctx.dequeue_event_typed("q").await;
            Ok(numbers.iter().sum::<u32>().to_string())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Typed", "").await;
        stage.client.enqueue_event_typed("a", "q", &vec![1, 2, 3]).await.expect("enqueues");
        assert_eq!(stage.output("a").await, Ok("6".to_owned()));
        assert_eq!(delivered(&stage, "a", 1).await, [("q".to_owned(), "[1,2,3]".to_owned())]);
        stage.stop().await;
    }

    async fn c1_8_a_typed_dequeue_panics_on_what_it_cannot_decode_and_the_try_form_does_not(stage) {
        let flow = orchestrations()
            .register("Typed", |ctx: OrchestrationContext, _| async move {
                Ok(ctx.dequeue_event_typed::<u32>("q").await.to_string())
            })
            .register("Tries", |ctx: OrchestrationContext, _| async move {
                Ok(ctx.try_dequeue_event_typed::<u32>("q").await.is_err().to_string())
            });
        stage.run(activities(), flow).await;
        for (instance, orchestration) in [("a", "Typed"), ("b", "Tries")] {
            stage.start(instance, orchestration, "").await;
            put(&stage, instance, "q", "no number").await;
        }
        let Err(ErrorDetails::Application { kind: AppErrorKind::Panicked, message, retryable: false }) =
            stage.ends("a").await
        else {
            panic!("a panic was expected")
        };
        assert!(message.contains("queue message cannot be decoded"), "{message}");
        assert_eq!(stage.output("b").await, Ok("true".to_owned()));
        stage.stop().await;
    }

    #[allow(deprecated, reason = "the old spellings are what is shown")]
    async fn c1_8_the_old_spellings_mean_the_same(stage) {
        let flow = orchestrations().register("Old", |ctx: OrchestrationContext, _| async move {
            let text = ctx.schedule_wait_persistent("q").await;
            let number: u32 = ctx.schedule_wait_persistent_typed("q").await;
            Ok(format!("{text} {number}"))
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Old", "").await;
        stage.client.raise_event_persistent("a", "q", "text").await.expect("enqueues");
        stage.client.raise_event_persistent("a", "q", "7").await.expect("enqueues");
        assert_eq!(stage.output("a").await, Ok("text 7".to_owned()));
        stage.stop().await;
    }

    async fn c1_11_a_message_can_be_sent_together_with_the_start(stage) {
        stage.run(activities(), orchestrations().register("Two", takes_two)).await;
        for data in ["1", "2"] {
            stage.client.signal_with_start("a", "Two", "", "q", data).await.expect("starts or is there");
        }
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        stage.stop().await;
    }
}
