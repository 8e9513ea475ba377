//! New code for new instances, old code for old ones. `cargo run --example 10_versioning`
//!
//! An instance runs the version that it started with to its end, also when a newer one is deployed meanwhile.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

async fn order_v1(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    ctx.dequeue_event("ship").await;
    ctx.schedule_activity("Charge", order).await
}

async fn order_v2(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    let reserved = ctx.schedule_activity("Reserve", &order).await?;
    ctx.dequeue_event("ship").await;
    Ok(format!("{reserved}, {}", ctx.schedule_activity("Charge", order).await?))
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Charge", |_, order| async move { Ok(format!("{order} is charged")) })
        .register("Reserve", |_, order| async move { Ok(format!("{order} is reserved")) })
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let client = Client::new(store.clone());

    let old = OrchestrationRegistry::builder().register_versioned("Order", "1.0.0", order_v1).build();
    let runtime = Runtime::start_with_store(store.clone(), activities(), old).await;
    client.start_orchestration("old", "Order", "order 1").await?;
    while client.get_instance_info("old").await.is_err() {
        tokio::task::yield_now().await;
    }
    runtime.shutdown(None).await;

    // The deployment: both versions are here, so nothing that is under way is left behind.
    let both = OrchestrationRegistry::builder()
        .register_versioned("Order", "1.0.0", order_v1)
        .register_versioned("Order", "2.0.0", order_v2)
        .build();
    let runtime = Runtime::start_with_store(store, activities(), both).await;
    client.start_orchestration("new", "Order", "order 2").await?;
    for id in ["old", "new"] {
        client.enqueue_event(id, "ship", "").await?;
        let result = client.instance(id).wait::<String>().await?.map_err(anyhow::Error::msg)?;
        println!("{id} ({}): {result}", client.get_instance_info(id).await?.orchestration_version);
    }
    runtime.shutdown(None).await;
    Ok(())
}
