//! Many activities at once, and their results together. `cargo run --example 03_fan_out`
//!
//! `join` returns results in the order of its input, whichever ends first; `try_join` stops at the first
//! error.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn count_words(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let lines = text.lines().map(|line| ctx.schedule_activity_typed::<_, u64>("Count", &line)).collect();
    let counts = ctx.try_join(lines).await?;
    Ok(format!("{counts:?}, {} in all", counts.iter().sum::<u64>()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register_typed("Count", |_, line: String| async move { Ok(line.split_whitespace().count() as u64) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("CountWords", count_words).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("count-1", "CountWords", "one two three\nfour five\nsix").await?;
    println!("{}", client.instance("count-1").wait::<String>().await?.map_err(anyhow::Error::msg)?);

    runtime.shutdown(None).await;
    Ok(())
}
