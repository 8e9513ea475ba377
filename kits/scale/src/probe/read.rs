//! Reading one instance.

use anyhow::{Context, Result, ensure};
use steadfast_core::SessionKey;

use super::{Probe, rows};
use crate::figure::Growth;

pub(super) async fn run(probe: &mut Probe<'_>) -> Result<()> {
    let (store, admin) = (probe.store(), probe.admin()?);
    let [old, event, queued, chat] =
        ["old3", "event2", "queued1", "chat1"].map(|template| probe.middle(template, 0));
    let call = async |_| Ok(u64::from(store.state(&old).await?.is_some()));
    probe.count("state", Growth::Flat, call).await?;
    let call = async |_| Ok(u64::from(store.state("zebra").await?.is_some()));
    probe.count("state of an unknown instance", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(store.read_history(&old, None).await?.len()));
    probe.count("read_history", Growth::PerResult, call).await?;
    let call = async |_| Ok(store.stats(&event).await?.context("it exists")?.history_event_count);
    probe.count("stats", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(store.kv_values(&event).await?.len()));
    probe.count("kv_values", Growth::Flat, call).await?;
    let call = async |_| Ok(u64::from(store.turn_of(&event).await?.is_some()));
    probe.count("turn_of", Growth::Flat, call).await?;
    let call = async |_| {
        let work = store.work_of(&queued, 1).await?;
        ensure!(work.len() == 1, "the activity waits");
        Ok(rows(work.len()))
    };
    probe.count("work_of", Growth::Flat, call).await?;
    let call = async |_| Ok(u64::from(store.start_of(&event).await?.is_some()));
    probe.count("start_of", Growth::Flat, call).await?;
    let shared = SessionKey::shared(format!("shared-{chat}"));
    let call = async |_| {
        let session = store.session(&shared).await?.context("the session has a row")?;
        ensure!(session.queued == 1, "the session has work");
        Ok(session.queued)
    };
    probe.count("session", Growth::Flat, call).await?;
    let call = async |_| Ok(admin.get_instance_info(&old).await?.current_execution_id);
    probe.count("get_instance_info", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(admin.get_execution_info(&old, 1).await?.event_count));
    probe.count("get_execution_info", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(admin.list_executions(&old).await?.len()));
    probe.count("list_executions", Growth::Flat, call).await
}
