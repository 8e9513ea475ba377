//! Cancelling a running instance. `cargo run --example 12_cancellation`
//!
//! The instance and its children end as `Failed`: their code does not run again. Their running activities are
//! told, and have a grace period to clean up.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};

async fn album(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration_with_id("Movie", "movie-1", name).await
}

async fn movie(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.schedule_activity("Render", name).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let (started, mut has_started) = tokio::sync::mpsc::channel(1);
    let activities = ActivityRegistry::builder()
        .register("Render", move |ctx: ActivityContext, name: String| {
            let started = started.clone();
            async move {
                println!("rendering {name}");
                started.send(()).await.map_err(|error| error.to_string())?;
                ctx.cancelled().await;
                println!("stopped rendering {name}: {:?}", ctx.cancel_reason());
                Err("stopped".to_owned())
            }
        })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Album", album).register("Movie", movie).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("album-1", "Album", "holiday").await?;
    has_started.recv().await;
    client.cancel_instance("album-1", "the disk is full").await?;
    let parent = client.instance("album-1").wait::<String>().await?;
    let child = client.instance("movie-1").wait::<String>().await?;
    runtime.shutdown(Some(5_000)).await;
    println!("album-1: {parent:?}");
    println!("movie-1: {child:?}");
    Ok(())
}
