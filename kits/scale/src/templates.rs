//! The instances whose rows are copied: real orchestrations that a real runtime has run.
//!
//! One set has twenty instances with about fifty events each. Most have ended; the others wait for a timer,
//! an event, an activity, or their first turn. Every id has the mark [`SET`], in whose place a copy has its
//! number. Beside the set there are two parents whose children are copied under the mark [`CHILD`]: one that
//! has ended, and one that still waits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::ActivityRegistry;
use steadfast::{
    Client, OrchestrationContext, OrchestrationRegistry, PruneOptions, RuntimeOptions, TagFilter,
};
use steadfast_store::{
    Abandon, Attempt, Cold, ListedHandler, MAX_UNREADABLE_ATTEMPTS, Owner, SessionRequest, SessionScope,
    Store, TurnRequest, WaitFor, Waited, WorkRequest, WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};

use crate::site::{Opened, Site, connect};

/// Stands in every id of the set; a copy has its number there.
pub const SET: &str = "~t~";

/// Stands in the ids of the children of the two large parents.
pub const CHILD: &str = "~m~";

/// The number of instances in a set.
pub const SET_SIZE: u64 = 20;

/// The tag of activities that no worker takes.
pub const WAITING_TAG: &str = "gpu";

/// The name that a message must have to let an approval go on.
pub const APPROVED: &str = "approved";

const PATIENCE: Duration = Duration::from_secs(120);

/// Longer than any run takes: leases of the set are live while calls are counted.
const LEASE: Duration = Duration::from_secs(6 * 3600);

/// The instances of a set that have ended or wait when the runtime stops: id without its mark, orchestration,
/// and whether it ends.
const STARTED: [(&str, &str, bool); 17] = [
    ("old1", "Order", true),
    ("old2", "Order", true),
    ("old3", "Order", true),
    ("old4", "Order", true),
    ("old5", "Order", true),
    ("old6", "Order", true),
    ("old7", "Order", true),
    ("old8", "Order", true),
    ("failed1", "Refund", true),
    ("recent1", "Order", true),
    ("recent2", "Order", true),
    ("parent1", "Parent", true),
    ("timer1", "Reminder", false),
    ("event1", "Approval", false),
    ("event2", "Approval", false),
    ("queued1", "Render", false),
    ("chat1", "Chat", false),
];

/// The large parents: id, and whether it ends.
pub const FANS: [(&str, bool); 2] = [("fan-ended", true), ("fan-running", false)];

/// Writes the set and the large parents into an empty store.
///
/// # Errors
///
/// The store fails, or an orchestration does not come as far as it must.
///
/// # Cancel safety
/// A dropped future leaves a part of the set.
pub async fn write(site: &Site) -> Result<()> {
    let opened = site.open().await?;
    let options = RuntimeOptions {
        worker_tag_filter: TagFilter::DefaultOnly,
        release_sessions_on_shutdown: true,
        ..RuntimeOptions::default()
    };
    let runtime =
        Runtime::start_with_options(opened.provider.clone(), activities(), orchestrations(), options).await;
    let client = Client::new(opened.provider.clone());
    for (id, orchestration, _) in STARTED {
        client.start_orchestration(format!("{id}{SET}"), orchestration, "").await?;
    }
    for (id, ends) in FANS {
        client.start_orchestration(id, "Fan", if ends { "ends" } else { "waits" }).await?;
    }
    let fans = FANS.map(|(id, ends)| (id.to_owned(), ends));
    for (id, ends) in STARTED.map(|(id, _, ends)| (format!("{id}{SET}"), ends)).into_iter().chain(fans) {
        reaches(&client, opened.store.as_ref(), &id, ends).await?;
    }
    runtime.shutdown(None).await;
    leave_waiting(site, &opened, &client).await
}

/// Waits until an instance has ended, or says that it waits.
async fn reaches(client: &Client, store: &dyn Store, id: &str, ends: bool) -> Result<()> {
    if ends {
        client.wait_for_orchestration(id, PATIENCE).await?;
        return Ok(());
    }
    let mut seen = 0;
    loop {
        let wait = WaitFor::Instance { instance: id, seen };
        let Waited::Seen(Some(state)) = store.wait(wait, PATIENCE).await? else {
            anyhow::bail!("{id} does not come to wait");
        };
        if state.custom_status.as_deref() == Some("waits") {
            return Ok(());
        }
        seen = state.change;
    }
}

/// Adds what waits while no runtime runs: a start, a message, leased work of a session, a row that was set
/// aside, and a worker.
async fn leave_waiting(site: &Site, opened: &Opened, client: &Client) -> Result<()> {
    let store = opened.store.as_ref();
    set_a_message_aside(site, opened, client).await?;
    client.start_orchestration(format!("start1{SET}"), "Order", "").await?;
    client.raise_event(format!("event2{SET}"), APPROVED, "yes").await?;
    let session = SessionRequest {
        owner: Owner::unnamed(format!("node{SET}")),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest {
        worker_id: format!("node{SET}"),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Tags([WAITING_TAG.to_owned()].into()),
        session: Some(session),
        worker: None,
    };
    // One activity of the chat stays leased, with its session; the others wait.
    let mut others = Vec::new();
    loop {
        let Some(lease) = store.fetch_work(request.clone()).await? else {
            anyhow::bail!("no work on a session waits");
        };
        if lease.session.is_some() {
            break;
        }
        others.push(lease.token);
    }
    for token in others {
        store.abandon(&token, Abandon { retry_after: None, attempt: Attempt::Uncounted }).await?;
    }
    store.report_worker(&report(&format!("node{SET}"))).await?;
    let admin = store.admin().context("the store has no management")?;
    for (id, _) in FANS {
        let pruned = admin.prune_executions(id, PruneOptions::default()).await?;
        ensure!(pruned.executions_deleted == 1, "{id} has one former execution");
    }
    Ok(())
}

/// Has a message set aside: it cannot be read, and this is its last try.
async fn set_a_message_aside(site: &Site, opened: &Opened, client: &Client) -> Result<()> {
    let instance = format!("event1{SET}");
    client.raise_event(&instance, "damaged", "").await?;
    let tries = i64::from(MAX_UNREADABLE_ATTEMPTS) - 1;
    match site {
        Site::File { .. } => {
            let file = rusqlite::Connection::open(site.file().unwrap_or_default())?;
            let changed = file.execute(
                "UPDATE messages SET item = '{', attempts = ?1
                 WHERE key = (SELECT key FROM instances WHERE instance = ?2)",
                rusqlite::params![tries, instance],
            )?;
            ensure!(changed == 1, "one message was sent");
        }
        Site::Schema { url, schema } => {
            let change = format!(
                "UPDATE {}.orchestrator_queue SET work_item = '{{', attempt_count = {tries}
                 WHERE instance_id = '{instance}'",
                schema.name()
            );
            connect(url).await?.batch_execute(&change).await?;
        }
    }
    let request = TurnRequest {
        lock_timeout: Duration::from_secs(30),
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let turn = opened.store.fetch_turn(request).await?;
    ensure!(turn.is_none(), "the message cannot be read");
    ensure!(opened.store.set_aside(None).await?.len() == 1, "the message was set aside");
    Ok(())
}

/// A report of a worker that has the code of the templates.
pub fn report(id: &str) -> WorkerReport {
    let listed = |name: &str, versions: &[&str]| ListedHandler {
        name: name.to_owned(),
        versions: versions.iter().map(|version| (*version).to_owned()).collect(),
    };
    WorkerReport {
        id: WorkerId(id.to_owned()),
        process: WorkerProcess::default(),
        orchestrations: vec![listed("Order", &["1.0.0"]), listed("Approval", &["1.0.0"])],
        activities: vec![listed("Step", &[])],
        tags: TagFilter::DefaultOnly,
        serves_sessions: true,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("Step", |_, input: String| async move { Ok(input) }).build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", order)
        .register("Refund", refund)
        .register("Parent", parent)
        .register("Reminder", reminder)
        .register("Approval", approval)
        .register("Render", render)
        .register("Chat", chat)
        .register("Fan", fan)
        .register("Leaf", leaf)
        .build()
}

/// Runs activities beside each other.
async fn steps(ctx: &OrchestrationContext, count: u32) -> Result<(), String> {
    let all = (0..count).map(|n| ctx.schedule_activity("Step", format!("step {n} of an order"))).collect();
    ctx.join(all).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
}

/// An orchestration with nothing but activities.
pub async fn order(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 29).await?;
    Ok("shipped".to_owned())
}

async fn refund(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 29).await?;
    Err("the bank refuses".to_owned())
}

async fn parent(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let first = ctx.schedule_sub_orchestration("Order", "");
    let second = ctx.schedule_sub_orchestration("Order", "");
    let (first, second) = ctx.join2(first, second).await;
    first?;
    second
}

async fn reminder(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 28).await?;
    ctx.set_custom_status("waits");
    ctx.schedule_timer(Duration::from_secs(365 * 24 * 3600)).await;
    Ok("reminded".to_owned())
}

/// An orchestration that waits for an event, and keeps values and a status meanwhile.
pub async fn approval(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 28).await?;
    ctx.set_kv_value("amount", "1200");
    ctx.set_kv_value("customer", "ada");
    ctx.set_custom_status("waits");
    Ok(ctx.schedule_wait(APPROVED).await)
}

async fn render(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 28).await?;
    ctx.set_custom_status("waits");
    ctx.schedule_activity("Step", "frames").with_tag(WAITING_TAG).await
}

/// Has work on a session of its own, and on one that all instances share.
async fn chat(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 26).await?;
    let own = ctx.open_session().await?;
    let shared = format!("shared-{}", ctx.instance_id());
    ctx.schedule_activity_on_session("Step", "hello", &shared).await?;
    ctx.set_custom_status("waits");
    let first = ctx.schedule_activity_on_session("Step", "and then", &own).with_tag(WAITING_TAG);
    let second = ctx.schedule_activity_on_session("Step", "and then", &shared).with_tag(WAITING_TAG);
    let (first, second) = ctx.join2(first, second).await;
    first?;
    second
}

/// Starts a child, and continues as new: the history that knows the child can then be pruned.
async fn fan(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "ended" => Ok("all children are there".to_owned()),
        "waiting" => {
            ctx.set_custom_status("waits");
            Ok(ctx.schedule_wait(APPROVED).await)
        }
        first => {
            let child = format!("{}/leaf{CHILD}", ctx.instance_id());
            ctx.schedule_sub_orchestration_with_id("Leaf", child, "").await?;
            ctx.continue_as_new(if first == "ends" { "ended" } else { "waiting" }).await
        }
    }
}

async fn leaf(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    steps(&ctx, 3).await?;
    Ok("grown".to_owned())
}
