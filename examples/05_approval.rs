//! Waiting for a person. `cargo run --example 05_approval`
//!
//! The wait survives restarts, however long the person takes. The orchestration asks for the wait before it
//! asks the manager, so that a fast answer is not missed; a queue (`dequeue_event`) would keep an early
//! answer.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn expense(ctx: OrchestrationContext, report: String) -> Result<String, String> {
    let decision = ctx.schedule_wait("decision");
    ctx.schedule_activity("AskManager", &report).await?;
    ctx.set_custom_status("waiting for the manager");
    match decision.await.as_str() {
        "approved" => Ok(format!("{report} is paid")),
        other => Err(format!("{report} was {other}")),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register("AskManager", |_, report| async move {
            println!("manager: please look at {report}");
            Ok(String::new())
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Expense", expense).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    for (id, decision) in [("lunch", "approved"), ("yacht", "declined")] {
        client.start_orchestration(id, "Expense", id).await?;
        let (poll, patience) = (std::time::Duration::from_millis(10), std::time::Duration::from_secs(10));
        client.wait_for_status_change(id, 0, poll, patience).await?;
        client.raise_event(id, "decision", decision).await?;
        println!("{:?}", client.instance(id).wait::<String>().await?);
    }
    runtime.shutdown(None).await;
    Ok(())
}
