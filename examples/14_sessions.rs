//! Conversations that are kept in memory, and move. `cargo run --example 14_sessions`
//!
//! The turns of a conversation run on the worker that has its state in memory. The session is closed before a
//! long wait, and opened again after it. When its worker stops, the next turn goes to another worker, which
//! loads the last checkpoint and goes on.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, Session, registry::ActivityRegistry};
use steadfast::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions, SessionConcurrency,
    SessionKey, SessionOptions,
};
use tokio::sync::Mutex;

const USERS: [&str; 3] = ["ada", "bob", "eve"];

/// The lines of each conversation, with the epoch that loaded them last: a table that every worker reaches.
/// The key is that of the session: an id alone is unique only within the instance that owns it.
type Checkpoints = Arc<Mutex<HashMap<SessionKey, (u64, Vec<String>)>>>;

async fn load(checkpoints: &Checkpoints, session: &Session) -> Vec<String> {
    let mut rows = checkpoints.lock().await;
    let row = rows.entry(session.key().clone()).or_default();
    row.0 = row.0.max(session.epoch());
    row.1.clone()
}

/// Refuses a write of a worker that was replaced and does not know it yet.
async fn save(checkpoints: &Checkpoints, session: &Session, said: &[String]) -> Result<(), &'static str> {
    let mut rows = checkpoints.lock().await;
    let row = rows.get_mut(session.key()).filter(|row| row.0 == session.epoch());
    row.map(|row| row.1 = said.to_vec()).ok_or("another worker has the conversation")
}

async fn conversation(ctx: OrchestrationContext, user: String) -> Result<String, String> {
    let options = || SessionOptions::default().with_id("chat").with_concurrency(SessionConcurrency::Serial);
    for number in 0..3_usize {
        if number == 2 {
            // The last message may take days: the worker drops what it has in memory now.
            ctx.close_session("chat").await?;
        }
        let message = ctx.dequeue_event("messages").await;
        // A session that is open stays as it is.
        let session = ctx.open_session_with(options()).await?;
        let turn = (number, message);
        let answer: String = ctx.schedule_activity_on_session_typed("Turn", &turn, &session).await?;
        ctx.set_kv_value(format!("answer {number}"), answer);
    }
    Ok(format!("{user} has gone"))
}

/// Turn `number` of a conversation finds the lines of the turns before it.
async fn turn(
    ctx: ActivityContext,
    (number, message): (usize, String),
    checkpoints: Checkpoints,
) -> Result<String, String> {
    let session = ctx.session().ok_or("a turn runs on a session")?;
    let origin = if session.is_first_turn() { "loaded" } else { "warm" };
    // Loaded by the first turn here, dropped by the runtime when the session detaches.
    let said = session.state_or_init(async { Ok(Mutex::new(load(&checkpoints, session).await)) }).await?;
    let mut said = said.lock().await;
    // A turn that runs again, because its answer was not recorded, finds its own line in the checkpoint. Its
    // number tells that apart from a message that was sent twice.
    match said.len() {
        lines if lines == number => said.push(message),
        lines if lines == number + 1 => {}
        lines => return Err(format!("the checkpoint has {lines} lines before turn {number}: whose is it?")),
    }
    save(&checkpoints, session, &said).await.map_err(|reason| ctx.session_lost(reason))?;
    Ok(format!("{origin}, knows {}", said.join(" ")))
}

async fn worker(name: &'static str, url: &str, checkpoints: Checkpoints) -> anyhow::Result<Arc<Runtime>> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let activities = ActivityRegistry::builder().register_typed("Turn", move |ctx, input| {
        let answer = turn(ctx, input, checkpoints.clone());
        async move { Ok(format!("{name}: {}", answer.await?)) }
    });
    let orchestrations = OrchestrationRegistry::builder().register("Conversation", conversation);
    let options = RuntimeOptions { worker_node_id: Some(name.to_owned()), ..RuntimeOptions::default() };
    Ok(Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await)
}

/// Sends the same message to every user's conversation, one after the other, and prints the answers. It is
/// message `number` of each conversation.
async fn say(client: &Client, number: usize, message: &str) -> anyhow::Result<()> {
    for user in USERS {
        client.enqueue_event(user, "messages", message).await?;
        let key = format!("answer {number}");
        println!("{user} at {}", client.wait_for_kv_value(user, &key, Duration::from_secs(10)).await?);
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
    say(&client, 0, "red").await?;
    let second = worker("worker-2", &url, checkpoints).await?;
    println!("worker-2 is here, too");
    say(&client, 1, "green").await?;
    first.shutdown(None).await;
    println!("worker-1 has stopped");
    say(&client, 2, "blue").await?;
    second.shutdown(None).await;
    Ok(())
}
