//! Removing: retention, single instances, trees, in bulk, and old executions.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steadfast_store::{InstanceFilter, ProviderAdmin, PruneOptions};

use super::Probe;
use crate::figure::{Figure, Growth};
use crate::multiply::AGE_MS;
use crate::templates::FANS;

/// How many roots a call may remove.
const LIMIT: u32 = 10;

/// Longer ago than anything ended.
const LONG_AGO: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

pub(super) async fn run(probe: &mut Probe<'_>) -> Result<()> {
    let store = probe.store();
    let call = async |_| Ok(store.delete_ended(LONG_AGO, LIMIT).await?.instances_deleted);
    probe.count("delete_ended that finds nothing", Growth::Flat, call).await?;
    let call = async |_| {
        let deleted = store.delete_ended(Duration::from_millis(AGE_MS), LIMIT).await?;
        ensure!(deleted.instances_deleted >= u64::from(LIMIT), "much has ended: {deleted:?}");
        Ok(deleted.instances_deleted)
    };
    probe.count("delete_ended of much", Growth::PerResult, call).await?;
    single(probe).await?;
    tree(probe).await?;
    prune(probe).await?;
    bulk(probe).await
}

async fn single(probe: &mut Probe<'_>) -> Result<()> {
    let admin = probe.admin()?;
    for (name, template, force) in [
        ("delete_instance that has ended", "old5", false),
        ("delete_instance that runs, by force", "event2", true),
        ("delete_instance with sessions, by force", "chat1", true),
        ("delete_instance with two children", "parent1", false),
    ] {
        let ids = [0, 1, 2].map(|round| probe.middle(template, round));
        let call = async |round| {
            let deleted = admin.delete_instance(&ids[usize::try_from(round)?], force).await?;
            Ok(deleted.instances_deleted)
        };
        probe.count(name, Growth::PerResult, call).await?;
    }
    Ok(())
}

async fn bulk(probe: &mut Probe<'_>) -> Result<()> {
    let admin = probe.admin()?;
    let ids = [0, 1, 2].map(|round| vec![probe.middle("old6", round), probe.middle("old7", round)]);
    let call = async |round| {
        let instance_ids = Some(ids[usize::try_from(round)?].clone());
        let filter = InstanceFilter { instance_ids, ..InstanceFilter::default() };
        delete_bulk(admin, filter, 2).await
    };
    probe.count("delete_instance_bulk by ids", Growth::PerResult, call).await?;
    let call = async |_| {
        let filter = InstanceFilter { limit: Some(LIMIT), ..InstanceFilter::default() };
        delete_bulk(admin, filter, u64::from(LIMIT)).await
    };
    probe.count("delete_instance_bulk of the oldest", Growth::PerResult, call).await?;
    let recent = probe.store().state(&probe.middle("recent1", 0)).await?.context("it exists")?;
    let before = Some(recent.updated_at_ms.saturating_sub(AGE_MS / 2));
    let call = async |_| {
        let filter =
            InstanceFilter { completed_before: before, limit: Some(LIMIT), ..InstanceFilter::default() };
        delete_bulk(admin, filter, u64::from(LIMIT)).await
    };
    probe.count("delete_instance_bulk by age", Growth::PerResult, call).await?;
    let call = async |_| {
        let filter = InstanceFilter { completed_before: Some(1), ..InstanceFilter::default() };
        delete_bulk(admin, filter, 0).await
    };
    probe.count("delete_instance_bulk by age that finds nothing", Growth::Flat, call).await
}

async fn delete_bulk(admin: &dyn ProviderAdmin, filter: InstanceFilter, at_least: u64) -> Result<u64> {
    let deleted = admin.delete_instance_bulk(filter).await?.instances_deleted;
    ensure!(deleted >= at_least, "{deleted} instances were deleted");
    Ok(deleted)
}

async fn prune(probe: &mut Probe<'_>) -> Result<()> {
    let admin = probe.admin()?;
    let one = probe.middle("old8", 0);
    let call = async |_| Ok(admin.prune_executions(&one, PruneOptions::default()).await?.instances_processed);
    probe.count("prune_executions", Growth::Flat, call).await?;
    let call = async |_| {
        let filter = InstanceFilter { instance_ids: Some(vec![one.clone()]), ..InstanceFilter::default() };
        let pruned = admin.prune_executions_bulk(filter, PruneOptions::default()).await?;
        ensure!(pruned.instances_processed == 1, "one instance is named");
        Ok(1)
    };
    probe.count("prune_executions_bulk by ids", Growth::Flat, call).await?;
    let call = async |_| {
        let filter = InstanceFilter { limit: Some(LIMIT), ..InstanceFilter::default() };
        Ok(admin.prune_executions_bulk(filter, PruneOptions::default()).await?.instances_processed)
    };
    probe.count("prune_executions_bulk of the oldest", Growth::Flat, call).await?;
    let call = async |_| {
        let filter = InstanceFilter { completed_before: Some(1), ..InstanceFilter::default() };
        Ok(admin.prune_executions_bulk(filter, PruneOptions::default()).await?.instances_processed)
    };
    let why = Growth::Known("no index has the ends of all instances");
    probe.count("prune_executions_bulk by age that finds nothing", why, call).await
}

/// Deletes a parent with very many children, which can be done once.
async fn tree(probe: &mut Probe<'_>) -> Result<()> {
    let admin = probe.admin()?;
    let before = probe.opened.meter.read().await?;
    let deleted = admin.delete_instance(FANS[0].0, false).await?.instances_deleted;
    let work = probe.opened.meter.read().await? - before;
    ensure!(deleted > probe.made.children, "{deleted} instances were deleted");
    let name = "delete_instance with very many children";
    probe.figures.push(Figure { name, growth: Growth::PerResult, work, results: deleted });
    Ok(())
}
