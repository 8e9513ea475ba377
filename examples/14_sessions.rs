//! Conversations that are kept in memory, and move. `cargo run --example 14_sessions`
//!
//! The turns of a conversation run on the worker that has its state in memory. When that worker stops, the
//! next turn goes to another worker, which loads the last checkpoint and goes on.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, Session, registry::ActivityRegistry};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use tokio::sync::Mutex;

const USERS: [&str; 3] = ["ada", "bob", "eve"];

/// The lines of each conversation, with the epoch that loaded them last: a table that every worker reaches.
type Checkpoints = Arc<Mutex<HashMap<String, (u64, Vec<String>)>>>;

async fn load(checkpoints: &Checkpoints, session: &Session) -> Vec<String> {
    let mut rows = checkpoints.lock().await;
    let row = rows.entry(session.id().to_owned()).or_default();
    row.0 = row.0.max(session.epoch());
    row.1.clone()
}

/// Refuses a write of a worker that was replaced and does not know it yet.
async fn save(checkpoints: &Checkpoints, session: &Session, said: &[String]) -> Result<(), &'static str> {
    let mut rows = checkpoints.lock().await;
    let row = rows.get_mut(session.id()).filter(|row| row.0 == session.epoch());
    row.map(|row| row.1 = said.to_vec()).ok_or("another worker has the conversation")
}

async fn conversation(ctx: OrchestrationContext, user: String) -> Result<String, String> {
    for _ in 0..3 {
        let message = ctx.dequeue_event("messages").await;
        let answer = ctx.schedule_activity_on_session("Turn", &message, format!("chat-{user}")).await?;
        ctx.set_kv_value(message, answer);
    }
    Ok(format!("{user} has gone"))
}

async fn turn(ctx: ActivityContext, message: String, checkpoints: Checkpoints) -> Result<String, String> {
    let session = ctx.session().ok_or("a turn runs on a session")?;
    let origin = if session.is_first_turn() { "loaded" } else { "warm" };
    // Loaded by the first turn here, dropped by the runtime when the session detaches.
    let said = session.state_or_init(async { Ok(Mutex::new(load(&checkpoints, session).await)) }).await?;
    let mut said = said.lock().await;
    // A turn that runs again, because its answer was not recorded, finds its own checkpoint.
    if said.last() != Some(&message) {
        said.push(message);
    }
    save(&checkpoints, session, &said).await.map_err(|reason| ctx.session_lost(reason))?;
    Ok(format!("{origin}, knows {}", said.join(" ")))
}

async fn worker(name: &'static str, url: &str, checkpoints: Checkpoints) -> anyhow::Result<Arc<Runtime>> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let activities = ActivityRegistry::builder().register("Turn", move |ctx, message| {
        let answer = turn(ctx, message, checkpoints.clone());
        async move { Ok(format!("{name}: {}", answer.await?)) }
    });
    let orchestrations = OrchestrationRegistry::builder().register("Conversation", conversation);
    let options = RuntimeOptions { worker_node_id: Some(name.to_owned()), ..RuntimeOptions::default() };
    Ok(Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await)
}

/// Sends the same message to every user's conversation, one after the other, and prints the answers.
async fn say(client: &Client, message: &str) -> anyhow::Result<()> {
    for user in USERS {
        client.enqueue_event(user, "messages", message).await?;
        println!("{user} at {}", client.wait_for_kv_value(user, message, Duration::from_secs(10)).await?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("chats.db").display());
    let checkpoints = Checkpoints::default();
    let client = Client::new(Arc::new(SqliteProvider::new(&url, None).await?));
    for user in USERS {
        client.start_orchestration(user, "Conversation", user).await?;
    }

    let first = worker("worker-1", &url, checkpoints.clone()).await?;
    say(&client, "red").await?;
    let second = worker("worker-2", &url, checkpoints).await?;
    println!("worker-2 is here, too");
    say(&client, "green").await?;
    first.shutdown(None).await;
    println!("worker-1 has stopped");
    say(&client, "blue").await?;
    second.shutdown(None).await;
    Ok(())
}
