//! One orchestration, one activity, one SQLite file: `cargo run --example 01_hello`.
//!
//! Run it twice: the second time the instance exists already, and its recorded result is printed.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{Client, OrchestrationRegistry};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = format!("sqlite:{}", std::env::temp_dir().join("steadfast-hello.db").display());
    let store = Arc::new(SqliteProvider::new(&url, None).await?);
    let activities =
        ActivityRegistry::builder().register("Greet", |_, name| async move { Ok(format!("Hello, {name}!")) });
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx, name| async move { ctx.schedule_activity("Greet", name).await });
    let runtime = Runtime::start_with_store(store.clone(), activities.build(), orchestrations.build()).await;
    let client = Client::new(store);
    client.start_orchestration("hello-1", "Hello", "Ada").await?;
    println!("{}", client.instance("hello-1").wait::<String>().await?.map_err(anyhow::Error::msg)?);
    runtime.shutdown(None).await;
    Ok(())
}
