//! A chain: each step gets the result of the step before. `cargo run --example 02_chain`
//!
//! A step whose result is recorded never runs again; after a crash the chain goes on at the step that was
//! open.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn bake(ctx: OrchestrationContext, flour: String) -> Result<String, String> {
    let dough = ctx.schedule_activity("Knead", flour).await?;
    let loaf = ctx.schedule_activity("Shape", dough).await?;
    ctx.schedule_activity("Bake", loaf).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register("Knead", |_, flour| async move { Ok(format!("dough of {flour}")) })
        .register("Shape", |_, dough| async move { Ok(format!("a loaf of {dough}")) })
        .register("Bake", |_, loaf| async move { Ok(format!("bread from {loaf}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Bake", bake).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("bread-1", "Bake", "rye").await?;
    println!("{}", client.instance("bread-1").wait::<String>().await?.map_err(anyhow::Error::msg)?);

    runtime.shutdown(None).await;
    Ok(())
}
