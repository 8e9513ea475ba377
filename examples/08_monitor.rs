//! An orchestration without an end, with a short history. `cargo run --example 08_monitor`
//!
//! Each round is an execution of its own with a history of its own. The next round gets its state as input.
//! (A real monitor would not stop after four rounds.)

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn monitor(ctx: OrchestrationContext, round: String) -> Result<String, String> {
    let round: u32 = round.parse().map_err(|_| format!("'{round}' is no number"))?;
    let state = ctx.schedule_activity("Look", round.to_string()).await?;
    if state == "gone" {
        return Ok(format!("gone in round {round}"));
    }
    ctx.schedule_timer(Duration::from_millis(20)).await;
    ctx.continue_as_new((round + 1).to_string()).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register("Look", |_, round: String| async move {
            Ok(if round == "4" { "gone".to_owned() } else { "there".to_owned() })
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Monitor", monitor).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("watch", "Monitor", "1").await?;
    println!("{}", client.instance("watch").wait::<String>().await?.map_err(anyhow::Error::msg)?);
    for execution in client.list_executions("watch").await? {
        let events = client.read_execution_history("watch", execution).await?.len();
        println!("execution {execution}: {events} events");
    }
    runtime.shutdown(None).await;
    Ok(())
}
