//! Small state that clients can read, and a status for people. `cargo run --example 09_state`
//!
//! Both are committed with the turn that sets them, so a client never reads a value that was not committed.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};

async fn import(ctx: OrchestrationContext, file: String) -> Result<String, String> {
    for part in 1..=3 {
        let rows: u64 = ctx.schedule_activity_typed("Load", &format!("{file}/{part}")).await?;
        let before: u64 = ctx.get_kv_value_typed("rows")?.unwrap_or(0);
        ctx.set_kv_value_typed("rows", &(before + rows));
        ctx.set_custom_status(format!("part {part} of 3 is in"));
        ctx.schedule_wait("go on").await;
    }
    Ok("done".to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register_typed("Load", |_, part: String| async move { Ok(part.len() as u64 * 100) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Import", import).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    let (poll, patience) = (Duration::from_millis(10), Duration::from_secs(10));
    client.start_orchestration("import-1", "Import", "big.csv").await?;
    let mut seen = 0;
    for _ in 0..3 {
        let status = client.wait_for_status_change("import-1", seen, poll, patience).await?;
        if let OrchestrationStatus::Running { custom_status: Some(text), custom_status_version } = status {
            seen = custom_status_version;
            let rows = client.wait_for_kv_value("import-1", "rows", patience).await?;
            println!("{text}: {rows} rows");
        }
        client.raise_event("import-1", "go on", "").await?;
    }
    println!("{:?}", client.instance("import-1").wait::<String>().await?);
    runtime.shutdown(None).await;
    Ok(())
}
