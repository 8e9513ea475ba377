//! Queue messages across continue-as-new: none is lost or read twice, and the order stays (I5, 2.3).

use steadfast::runtime::CarryForwardOverflow;
use steadfast::{Event, EventKind, OrchestrationContext, RuntimeOptions};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};

use crate::workbench::HandlerResult;

/// Waits to be told, then goes on in a new execution that takes as many messages as the input says.
async fn carries(ctx: OrchestrationContext, input: String) -> HandlerResult {
    let Ok(count) = input.parse::<usize>() else {
        ctx.schedule_wait("go").await;
        return ctx.continue_as_new(input.trim_start_matches("then ")).await;
    };
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(ctx.dequeue_event("q").await);
    }
    Ok(taken.join(" "))
}

async fn put(stage: &Stage, instance: &str, queue: &str, data: &str) {
    stage.client.enqueue_event(instance, queue, data).await.expect("enqueues");
}

/// Starts an instance of [`carries`] and lets it go on once `messages` wait unread in its first execution.
async fn carry(stage: &Stage, instance: &str, input: &str, messages: &[String]) {
    stage.start(instance, "Carry", input).await;
    stage.has(instance, "ExternalSubscribed", 1).await;
    for message in messages {
        put(stage, instance, "q", message).await;
    }
    stage.has(instance, "QueueEventDelivered", messages.len()).await;
    stage.client.raise_event(instance, "go", "").await.expect("raises");
}

/// The names and data of the messages that an execution received, in order.
async fn delivered(stage: &Stage, instance: &str, execution_id: u64) -> Vec<(String, String)> {
    let pair = |event: Event| match event.kind {
        EventKind::QueueEventDelivered { name, data } => Some((name, data)),
        _ => None,
    };
    stage.history_of(instance, execution_id).await.into_iter().filter_map(pair).collect()
}

async fn carried(stage: &Stage, instance: &str, execution_id: u64) -> Option<Vec<(String, String)>> {
    match stage.history_of(instance, execution_id).await.into_iter().next().map(|event| event.kind) {
        Some(EventKind::OrchestrationStarted { carry_forward_events, .. }) => carry_forward_events,
        other => panic!("{other:?}"),
    }
}

async fn is_at(stage: &Stage, instance: &str, execution_id: u64) {
    stage.reaches(instance, |events| events.iter().any(|event| event.execution_id == execution_id)).await;
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m{number}")).collect()
}

on_every_store! {
    async fn i5_unread_messages_follow_into_the_next_execution_in_order(stage) {
        stage.run(activities(), orchestrations().register("Carry", carries)).await;
        carry(&stage, "a", "then 4", &numbered(3)).await;
        is_at(&stage, "a", 2).await;
        put(&stage, "a", "q", "newer").await;
        assert_eq!(stage.output("a").await, Ok("m0 m1 m2 newer".to_owned()));
        let pairs: Vec<_> = numbered(3).into_iter().map(|data| ("q".to_owned(), data)).collect();
        assert_eq!(carried(&stage, "a", 2).await, Some(pairs));
        assert_eq!(carried(&stage, "a", 1).await, None);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i5_messages_of_all_names_are_carried_in_the_order_of_arrival(stage) {
        let flow =
            orchestrations().register("Mixed", |ctx: OrchestrationContext, input: String| async move {
                if input == "first" {
                    ctx.schedule_wait("go").await;
                    return ctx.continue_as_new("second").await;
                }
                let (b, a) = (ctx.dequeue_event("b").await, ctx.dequeue_event("a").await);
                Ok(format!("{b} {a}"))
            });
        stage.run(activities(), flow).await;
        stage.start("i", "Mixed", "first").await;
        stage.has("i", "ExternalSubscribed", 1).await;
        for (queue, data) in [("b", "1"), ("a", "2"), ("b", "3")] {
            put(&stage, "i", queue, data).await;
        }
        stage.has("i", "QueueEventDelivered", 3).await;
        stage.client.raise_event("i", "go", "").await.expect("raises");
        assert_eq!(stage.output("i").await, Ok("1 2".to_owned()));
        let order =
            [("b", "1"), ("a", "2"), ("b", "3")].map(|(name, data)| (name.to_owned(), data.to_owned()));
        assert_eq!(carried(&stage, "i", 2).await.as_deref(), Some(&order[..]));
        assert_eq!(delivered(&stage, "i", 2).await, order);
        stage.stop().await;
    }

    async fn i5_what_was_taken_does_not_come_again_and_what_was_only_reserved_does(stage) {
        let flow = orchestrations().register("Part", |ctx: OrchestrationContext, input: String| async move {
            if input == "first" {
                let taken = ctx.dequeue_event("q").await;
                let _reserved = ctx.dequeue_event("q");
                ctx.schedule_wait("go").await;
                return ctx.continue_as_new(taken).await;
            }
            Ok(format!("{input} {}", ctx.dequeue_event("q").await))
        });
        stage.start("a", "Part", "first").await;
        put(&stage, "a", "q", "1").await;
        put(&stage, "a", "q", "2").await;
        stage.run(activities(), flow).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("1 2".to_owned()));
        assert_eq!(carried(&stage, "a", 2).await, Some(vec![("q".to_owned(), "2".to_owned())]));
        stage.stop().await;
    }

    async fn i5_a_message_in_the_batch_that_continues_follows_too(stage) {
        let flow = || orchestrations().register("Carry", carries);
        stage.run(activities(), flow()).await;
        stage.start("a", "Carry", "then 2").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        put(&stage, "a", "q", "before").await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        put(&stage, "a", "q", "after").await;
        stage.run(activities(), flow()).await;
        assert_eq!(stage.output("a").await, Ok("before after".to_owned()));
        assert_eq!(carried(&stage, "a", 2).await.map(|carried| carried.len()), Some(2));
        stage.stop().await;
    }

    async fn i5_unread_messages_follow_through_several_executions(stage) {
        let flow = orchestrations().register("Many", |ctx: OrchestrationContext, input: String| async move {
            let mut so_far = input;
            so_far.push_str(&ctx.dequeue_event("q").await);
            if so_far.len() < 5 { ctx.continue_as_new(so_far).await } else { Ok(so_far) }
        });
        stage.start("a", "Many", "").await;
        for letter in ["a", "b", "c", "d", "e"] {
            put(&stage, "a", "q", letter).await;
        }
        stage.run(activities(), flow).await;
        assert_eq!(stage.output("a").await, Ok("abcde".to_owned()));
        assert_eq!(stage.observer().list_executions("a").await.expect("lists"), [1, 2, 3, 4, 5]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i5_a_hundred_messages_are_carried_and_none_is_dropped(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations().register("Carry", carries)).await;
        carry(&stage, "a", "then 100", &numbered(100)).await;
        assert_eq!(stage.output("a").await, Ok(numbered(100).join(" ")));
        assert_eq!(lines.saying("WARN", "Dropping carry-forward event beyond limit"), []);
        stage.stop().await;
    }

    async fn i5_messages_beyond_a_hundred_are_dropped_each_with_a_warning(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations().register("Carry", carries)).await;
        carry(&stage, "a", "then 101", &numbered(103)).await;
        is_at(&stage, "a", 2).await;
        put(&stage, "a", "q", "newer").await;
        let taken = numbered(100).join(" ");
        assert_eq!(stage.output("a").await, Ok(format!("{taken} newer")));
        let dropped = lines.saying("WARN", "Dropping carry-forward event beyond limit");
        assert_eq!(
            dropped.iter().map(|line| line.field("data")).collect::<Vec<_>>(),
            ["m100", "m101", "m102"]
        );
        assert!(dropped.iter().all(|line| line.field("instance") == "a" && line.field("name") == "q"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i5_with_keep_all_messages_follow_in_order_and_nothing_is_warned(stage) {
        let (lines, _guard) = Lines::collect();
        let options =
            RuntimeOptions { carry_forward_overflow: CarryForwardOverflow::Keep, ..stage.options() };
        stage.run_with(activities(), orchestrations().register("Carry", carries), options).await;
        carry(&stage, "a", "then 131", &numbered(130)).await;
        is_at(&stage, "a", 2).await;
        put(&stage, "a", "q", "newer").await;
        let taken = numbered(130).join(" ");
        assert_eq!(stage.output("a").await, Ok(format!("{taken} newer")));
        assert_eq!(carried(&stage, "a", 2).await.map(|carried| carried.len()), Some(100));
        assert_eq!(lines.saying("WARN", "Dropping carry-forward event beyond limit"), []);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
