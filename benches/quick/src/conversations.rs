//! W6: 50 sessions of 10 turns each on two runtimes, every turn on its owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};

use crate::place::{Backing, Place};
use crate::{PATIENCE, ROUNDS};

const SESSIONS: usize = 50;

const TURNS: usize = 10;

/// Which nodes served each session.
type Served = Arc<Mutex<BTreeMap<String, BTreeSet<&'static str>>>>;

pub(crate) async fn run(backing: &Backing) -> Result<()> {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let place = backing.place()?;
        let served = Served::default();
        let one = runtime(&place, "one", &served).await?;
        let other = runtime(&place, "other", &served).await?;
        let client = Client::new(place.store().await?);
        let began = Instant::now();
        for n in 0..SESSIONS {
            client.start_orchestration(format!("talk-{n}"), "Talk", format!("session-{n}")).await?;
        }
        for n in 0..SESSIONS {
            match client.wait_for_orchestration(&format!("talk-{n}"), PATIENCE).await? {
                OrchestrationStatus::Completed { .. } => {}
                other => anyhow::bail!("talk-{n} ended with {other:?}"),
            }
        }
        rates.push((SESSIONS * TURNS) as f64 / began.elapsed().as_secs_f64());
        one.shutdown(None).await;
        other.shutdown(None).await;
        let served = served.lock().unwrap_or_else(PoisonError::into_inner);
        anyhow::ensure!(served.len() == SESSIONS, "{} sessions were served", served.len());
        let moved = served.values().filter(|nodes| nodes.len() > 1).count();
        anyhow::ensure!(moved == 0, "{moved} sessions were served by both runtimes");
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "W6  {SESSIONS} sessions x {TURNS} turns on 2 runtimes: {:.0} turns/s (of {rates:.0?}), \
         every turn on its owner",
        rates[ROUNDS / 2]
    );
    Ok(())
}

async fn runtime(place: &Place, node: &'static str, served: &Served) -> Result<Arc<Runtime>> {
    let served = Arc::clone(served);
    let activities =
        ActivityRegistry::builder().register("Turn", move |ctx: ActivityContext, input: String| {
            let session = ctx.session_id().unwrap_or_default().to_owned();
            served.lock().unwrap_or_else(PoisonError::into_inner).entry(session).or_default().insert(node);
            async move { Ok(input) }
        });
    let orchestrations = OrchestrationRegistry::builder().register("Talk", talk);
    let options = RuntimeOptions {
        orchestration_concurrency: 8,
        worker_concurrency: 8,
        max_sessions_per_runtime: SESSIONS,
        ..RuntimeOptions::default()
    };
    let store = place.store().await?;
    Ok(Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await)
}

async fn talk(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    for turn in 0..TURNS {
        ctx.schedule_activity_on_session("Turn", turn.to_string(), session.as_str()).await?;
    }
    Ok(session)
}
