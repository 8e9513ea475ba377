//! Retries with durable pauses. `cargo run --example 11_retries`
//!
//! Each try is an activity in the history of the orchestration; each pause is a timer and survives a restart.
//! So each try has another `idempotency_key()`: a real charge takes a key in its input that all tries share.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{BackoffStrategy, Client, OrchestrationContext, OrchestrationRegistry, Retry, RetryPolicy};

async fn pay(ctx: OrchestrationContext, card: String) -> Result<String, String> {
    let pauses = BackoffStrategy::Fixed { delay: Duration::from_millis(20) };
    let retry = Retry::from(RetryPolicy::new(5).with_backoff(pauses))
        .retry_if(|error| !error.contains("declined"))
        .total_timeout(Duration::from_secs(60));
    ctx.schedule_activity_retrying("Charge", card, retry).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let activities = ActivityRegistry::builder()
        .register("Charge", move |_, card: String| {
            let attempt = counted.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                match card.as_str() {
                    "stolen" => Err("card declined".to_owned()),
                    _ if attempt < 3 => Err("the network is down".to_owned()),
                    _ => Ok("paid".to_owned()),
                }
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Pay", pay).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    for card in ["good", "stolen"] {
        attempts.store(0, Ordering::Relaxed);
        client.start_orchestration(card, "Pay", card).await?;
        let result = client.instance(card).wait::<String>().await?;
        println!("{card}: {result:?} after {} attempts", attempts.load(Ordering::Relaxed));
    }
    runtime.shutdown(None).await;
    Ok(())
}
