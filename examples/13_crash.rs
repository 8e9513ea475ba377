//! A process that dies in the middle, and one that goes on. `cargo run --example 13_crash`
//!
//! The program starts itself as a second process, which kills itself in the middle of the third step without
//! any clean-up. Then the program opens the same file: steps with a recorded result are not repeated, the
//! step that was open runs again.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};

async fn journey(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    for city in ["Lisbon", "Madrid", "Paris", "Berlin"] {
        ctx.schedule_activity("Travel", city).await?;
    }
    Ok("arrived".to_owned())
}

/// Set in the process that is to die.
const DOOMED: &str = "STEADFAST_EXAMPLE_DOOMED";

async fn travel(ctx: ActivityContext, city: String) -> Result<String, String> {
    let doomed = std::env::var_os(DOOMED).is_some();
    println!(
        "{} to {city}, attempt {}",
        if doomed { "first process" } else { "second process" },
        ctx.delivery()
    );
    if doomed && city == "Paris" {
        // Runs neither destructors nor a shutdown, like a power failure.
        std::process::abort();
    }
    Ok(city)
}

async fn run(url: &str) -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let activities = ActivityRegistry::builder().register("Travel", travel).build();
    let orchestrations = OrchestrationRegistry::builder().register("Journey", journey).build();
    // Work of a dead process can be fetched again when its lease expires: a short lease, a short example.
    let options = RuntimeOptions {
        worker_lock_timeout: Duration::from_secs(1),
        worker_lock_renewal_buffer: Duration::from_millis(500),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    client.start_orchestration("journey-1", "Journey", "").await?;
    println!("{}", client.instance("journey-1").wait::<String>().await?.map_err(anyhow::Error::msg)?);
    runtime.shutdown(None).await;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if let Some(url) = std::env::var_os(DOOMED) {
        return run(&url.to_string_lossy()).await;
    }
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("journey.db").display());
    let died = std::process::Command::new(std::env::current_exe()?)
        .env(DOOMED, &url)
        .stderr(std::process::Stdio::null())
        .status()?;
    println!("the first process {}", if died.success() { "ended" } else { "died" });
    run(&url).await
}
