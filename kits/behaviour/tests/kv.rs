//! KV state and custom status (2.12).

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::time::Duration;

use steadfast::OrchestrationContext;
use steadfast_behaviour::{activities, on_every_store, orchestrations};

on_every_store! {
    async fn r2_12_values_survive_continue_as_new(stage) {
        let flow = orchestrations().register("Keep", |ctx: OrchestrationContext, input: String| async move {
            if input == "first" {
                ctx.set_kv_value("k", "v");
                return ctx.continue_as_new("second").await;
            }
            Ok(ctx.get_kv_value("k").unwrap_or_default())
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Keep", "first").await, Ok("v".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_12_a_timer_can_pass_between_two_values(stage) {
        let flow = orchestrations().register("Slow", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "1");
            ctx.schedule_timer(Duration::from_secs(3600)).await;
            ctx.set_kv_value("k", "2");
            Ok(ctx.get_kv_value("k").unwrap_or_default())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Slow", "").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.pass(Duration::from_secs(3600));
        assert_eq!(stage.output("a").await, Ok("2".to_owned()));
        stage.stop().await;
    }
}
