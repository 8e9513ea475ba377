//! A race between an activity and a timer. `cargo run --example 04_timeout`
//!
//! The loser is dropped, and dropping a durable future cancels it: the activity is asked to stop.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{ActivityContext, Client, Either2, OrchestrationContext, OrchestrationRegistry};

async fn quote(ctx: OrchestrationContext, part: String) -> Result<String, String> {
    let answer = ctx.schedule_activity("AskSupplier", part);
    let deadline = ctx.schedule_timer(Duration::from_millis(100));
    match ctx.select2(answer, deadline).await {
        Either2::First(quote) => quote,
        Either2::Second(()) => Ok("no answer in time".to_owned()),
    }
}

async fn ask_supplier(ctx: ActivityContext, part: String) -> Result<String, String> {
    if part == "screw" {
        return Ok("4 cents".to_owned());
    }
    ctx.cancelled().await;
    println!("the supplier is no longer asked about a {part}");
    Err("cancelled".to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder().register("AskSupplier", ask_supplier).build();
    let orchestrations = OrchestrationRegistry::builder().register("Quote", quote).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    for part in ["screw", "turbine"] {
        client.start_orchestration(part, "Quote", part).await?;
        let quote = client.instance(part).wait::<String>().await?.map_err(anyhow::Error::msg)?;
        // The cancelled activity prints its line on another task: wait until it has ended.
        if part == "turbine" {
            runtime.clone().shutdown(Some(5_000)).await;
        }
        println!("{part}: {quote}");
    }
    Ok(())
}
