//! Opening, and what runtimes do beside the work: gauges, clean-up, workers, sessions.

use std::time::Duration;

use anyhow::Result;
use steadfast_core::TagFilter;
use steadfast_store::{Appetite, NodeStart, Owner, RenewSessions, Store};

use super::{Probe, rows};
use crate::figure::{Figure, Growth};
use crate::site::{Meter, Site};
use crate::templates::report;

/// How many reports of one worker take all workers that fell silent off the listed ones.
const SWEEPS: u32 = 16;

/// Counts the work of opening the store.
pub(super) async fn open(probe: &mut Probe<'_>, site: &Site) -> Result<()> {
    let mut least = u64::MAX;
    for _ in 0..3 {
        let before = probe.opened.meter.read().await?;
        let opened = site.open().await?;
        // The steps of SQLite are counted from the opening on, the blocks of a server since it started.
        let work = match &opened.meter {
            Meter::Steps(_) => opened.meter.read().await?,
            Meter::Blocks(_) => opened.meter.read().await? - before,
        };
        least = least.min(work);
    }
    probe.figures.push(Figure { name: "open the store", growth: Growth::Flat, work: least, results: 1 });
    Ok(())
}

pub(super) async fn run(probe: &mut Probe<'_>) -> Result<()> {
    let (store, admin) = (probe.store(), probe.admin()?);
    let call = async |_| {
        let gauges = store.gauges().await?;
        Ok(gauges.running_instances + gauges.messages + gauges.work)
    };
    probe.count("gauges", Growth::PerResult, call).await?;
    let call = async |_| {
        let depths = admin.get_queue_depths().await?;
        Ok(rows(depths.orchestrator_queue + depths.worker_queue))
    };
    probe.count("get_queue_depths", Growth::PerResult, call).await?;
    let call = async |_| {
        store.register_node(&NodeStart::new("prober", "start")).await?;
        Ok(1)
    };
    probe.count("register_node", Growth::Flat, call).await?;
    // The workers of a large store fell silent while it was made. Each report takes some of them off the
    // listed ones, in a bounded batch, until none is left.
    for _ in 0..SWEEPS {
        store.report_worker(&report("sweeper")).await?;
    }
    let call = async |round| {
        store.report_worker(&report(&format!("prober{round}"))).await?;
        Ok(1)
    };
    probe.count("report_worker", Growth::Flat, call).await?;
    let owners = [0, 1, 2].map(|round| Owner::unnamed(probe.middle("node", round)));
    let call = async |round| {
        let request = RenewSessions {
            owner: owners[usize::try_from(round)?].clone(),
            extend_for: Duration::from_secs(3600),
            idle_timeout: Duration::from_secs(3600),
            untaken_after: Duration::MAX,
            tags: TagFilter::Any,
            appetite: Appetite::Hungry,
            worker: None,
            held: Vec::new(),
        };
        Ok(rows(store.renew_sessions(request).await?.renewed.len()))
    };
    probe.count("renew_sessions", Growth::Flat, call).await?;
    // No session can be removed: each has work, or belongs to an instance.
    let sessions = all_sessions(store).await?;
    let call = async |_| {
        store.cleanup_sessions().await?;
        Ok(sessions)
    };
    probe.count("cleanup_sessions", Growth::PerResult, call).await
}

/// Returns the number of sessions, each of which a clean-up looks at.
async fn all_sessions(store: &dyn Store) -> Result<u64> {
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.sessions(after.as_ref()).await?;
        let Some(last) = page.last() else { return Ok(count) };
        count += rows(page.len());
        after = Some(last.key.clone());
    }
}
