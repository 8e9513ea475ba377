//! A saga: earlier steps are undone when a later step fails. `cargo run --example 07_saga`
//!
//! Compensation is ordinary code, and as durable as the rest: if the process dies in the middle of it,
//! another one goes on.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};

const STEPS: [(&str, &str); 3] =
    [("BookFlight", "CancelFlight"), ("BookHotel", "CancelHotel"), ("BookCar", "CancelCar")];

async fn trip(ctx: OrchestrationContext, place: String) -> Result<String, String> {
    let mut undo = Vec::new();
    for (book, cancel) in STEPS {
        match ctx.schedule_activity(book, &place).await {
            Ok(_) => undo.push(cancel),
            Err(error) => {
                for cancel in undo.into_iter().rev() {
                    ctx.schedule_activity(cancel, &place).await?;
                }
                return Err(format!("{book} failed: {error}"));
            }
        }
    }
    Ok(format!("off to {place}"))
}

fn activity(name: &'static str, place: &str) -> Result<String, String> {
    if name == "BookCar" && place == "Venice" {
        return Err("no roads".to_owned());
    }
    println!("{name} {place}");
    Ok(String::new())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let mut activities = ActivityRegistry::builder();
    for name in STEPS.into_iter().flat_map(|(book, cancel)| [book, cancel]) {
        activities = activities.register(name, move |_, place| async move { activity(name, &place) });
    }
    let orchestrations = OrchestrationRegistry::builder().register("Trip", trip).build();
    let runtime = Runtime::start_with_store(store.clone(), activities.build(), orchestrations).await;

    let client = Client::new(store);
    for place in ["Rome", "Venice"] {
        client.start_orchestration(place, "Trip", place).await?;
        println!("{:?}", client.instance(place).wait::<String>().await?);
    }
    runtime.shutdown(None).await;
    Ok(())
}
