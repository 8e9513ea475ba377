//! Where the activities of open sessions run: with their owner, over turns, beside other work, and elsewhere
//! when the owner dies (D1, D14, D26, D28, D31).

use super::super::bench::{troubled_with, turns};
use super::{plays, turn};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::OrchestrationContext;
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Faults, on_every_full_store, orchestrations};

/// Takes turns on one session, with a plain activity between them and a wait in the middle.
async fn over_turns(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session().await?;
    let mut told = Vec::new();
    for round in 0..4 {
        told.push(turn(&ctx, &session).await?);
        let plain = ctx.schedule_activity("Turn", "").await?;
        if !plain.ends_with("without a session") {
            return Err(plain);
        }
        if round == 1 {
            ctx.schedule_wait("go on").await;
        }
    }
    Ok(told.join(" "))
}

/// Holds two sessions at once, then takes a turn on each and a plain activity, all at the same time.
async fn side_by_side(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (one, other) = (ctx.open_session().await?, ctx.open_session().await?);
    let mut told = Vec::new();
    for activity in ["Hold", "Turn"] {
        let both = [&one, &other].map(|id| ctx.schedule_activity_on_session(activity, "", id));
        for place in ctx.join(both.into()).await {
            told.push(place?.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    Ok(told.join(" "))
}

/// Takes a turn on each of three sessions, waits, and takes another on each.
async fn three(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let mut told = Vec::new();
    let ids = ["one", "two", "three"];
    for id in ids {
        ctx.open_session_with_id(id).await?;
        told.push(turn(&ctx, id).await?);
    }
    ctx.schedule_wait("go on").await;
    for id in ids {
        told.push(turn(&ctx, id).await?);
    }
    Ok(told.join(" "))
}

on_every_full_store! {
    async fn d1_activities_of_an_open_session_run_where_it_is_over_turns_and_waits(stage) {
        let first = plays(&stage, "A", over_turns, |_| {}).await;
        stage.start("1", "Play", "").await;
        stage.has("1", "ExternalSubscribed", 1).await;
        plays(&stage, "B", over_turns, |options| options.max_sessions_per_runtime = 10).await;
        stage.client.raise_event("1", "go on", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A1 A2 A3 A4".to_owned()));
        drop(first);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d14_open_sessions_of_two_owners_are_served_side_by_side_each_where_it_is(stage) {
        let gates = [Gate::new(), Gate::new()];
        for (id, gate) in ["A", "B"].into_iter().zip(&gates) {
            let options = RuntimeOptions {
                worker_node_id: Some(id.to_owned()),
                max_sessions_per_runtime: 1,
                ..stage.options()
            };
            let flows = orchestrations().register("Play", side_by_side);
            stage.run_with(turns(gate), flows, options).await;
        }
        stage.start("1", "Play", "").await;
        // Each may serve one session at a time, so each has one.
        for gate in &gates {
            gate.is_entered().await;
        }
        for gate in &gates {
            gate.open();
        }
        let output = stage.output("1").await.expect("it completes");
        assert!(["A B A B", "B A B A"].contains(&output.as_str()), "{output}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d31_all_open_sessions_of_a_dead_worker_move_when_their_leases_end(stage) {
        let faults = Faults::default();
        let flows = orchestrations().register("Play", three);
        let dead = troubled_with(&stage, "A", &Gate::new(), &faults, flows, |options| {
            options.dispatcher_long_poll_timeout = SECOND;
        })
        .await;
        stage.start("1", "Play", "").await;
        stage.has("1", "ExternalSubscribed", 1).await;
        faults.outage();
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        plays(&stage, "B", three, |_| {}).await;
        stage.client.raise_event("1", "go on", "").await.expect("it is raised");
        let output = stage.ends_as_time_passes("1", SECOND).await;
        assert_eq!(output, Ok("A1 A1 A1 B1 B1 B1".to_owned()), "no state is there before it is made");
        dead.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d1_one_slot_of_each_kind_on_one_thread_is_enough_for_open_sessions(stage) {
        plays(&stage, "A", over_turns, |options| {
            options.orchestration_concurrency = 1;
            options.worker_concurrency = 1;
        })
        .await;
        stage.start("1", "Play", "").await;
        stage.has("1", "ExternalSubscribed", 1).await;
        // Longer than two leases: the renewals run beside the slots.
        pass_calmly(&stage, 70 * SECOND, SECOND).await;
        stage.client.raise_event("1", "go on", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A1 A2 A3 A4".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
