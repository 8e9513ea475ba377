//! Orchestrations that start orchestrations. `cargo run --example 06_children`
//!
//! A child is an instance of its own, with its own history; the parent waits for it as for an activity.
//! Cancelling the parent cancels the children.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn release(ctx: OrchestrationContext, version: String) -> Result<String, String> {
    let regions = ["eu", "us", "asia"];
    let rollouts =
        regions.map(|region| ctx.schedule_sub_orchestration("Rollout", format!("{version} in {region}")));
    Ok(ctx.try_join(rollouts.into()).await?.join("\n"))
}

async fn rollout(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    ctx.schedule_activity("Deploy", &what).await?;
    ctx.schedule_activity("Check", &what).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register("Deploy", |_, what| async move { Ok(what) })
        .register("Check", |_, what| async move { Ok(format!("{what} is healthy")) })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Release", release).register("Rollout", rollout).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("release-9", "Release", "v9").await?;
    println!("{}", client.instance("release-9").wait::<String>().await?.map_err(anyhow::Error::msg)?);
    for id in client.get_instance_tree("release-9").await?.all_ids {
        println!("{id}");
    }
    runtime.shutdown(None).await;
    Ok(())
}
