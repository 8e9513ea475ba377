//! Starting and sending, turns and work.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steadfast_core::{ExecutionMetadata, TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Cold, Outcome, Owner, SessionRef, SessionRequest, SessionScope, TurnCommit,
    TurnRequest, WorkLease, WorkRequest,
};

use super::Probe;
use crate::figure::Growth;
use crate::templates::{APPROVED, WAITING_TAG};

const LEASE: Duration = Duration::from_secs(30);

const UNCOUNTED: Abandon = Abandon { retry_after: None, attempt: Attempt::Uncounted };

pub(super) async fn run(probe: &mut Probe<'_>) -> Result<()> {
    messages(probe).await?;
    turns(probe).await?;
    work(probe).await
}

async fn messages(probe: &mut Probe<'_>) -> Result<()> {
    let store = probe.store();
    let call = async |round| {
        let start = WorkItem::StartOrchestration {
            instance: format!("new{round}"),
            orchestration: "Order".to_owned(),
            input: String::new(),
            version: Some("1.0.0".to_owned()),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        store.start(start.into(), Vec::new()).await?;
        Ok(1)
    };
    probe.count("start", Growth::Flat, call).await?;
    let waiting = [0, 1, 2].map(|round| probe.middle("event1", round));
    let call = async |round| {
        let instance = waiting[usize::try_from(round)?].clone();
        let raised = WorkItem::ExternalRaised { instance, name: APPROVED.to_owned(), data: String::new() };
        store.send(vec![raised.into()]).await?;
        Ok(1)
    };
    probe.count("send", Growth::Flat, call).await
}

async fn turns(probe: &mut Probe<'_>) -> Result<()> {
    let store = probe.store();
    let request = || TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let call = async |_| {
        let lease = store.fetch_turn(request()).await?.context("a turn waits")?;
        store.abandon(&lease.token, UNCOUNTED).await?;
        Ok(1)
    };
    probe.count("fetch_turn and abandon", Growth::Flat, call).await?;
    let call = async |_| {
        let lease = store.fetch_turn(request()).await?.context("a turn waits")?;
        store.renew(&lease.token, LEASE).await?;
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        };
        let commit = TurnCommit { metadata, ..TurnCommit::empty(lease.execution_id) };
        store.commit_turn(&lease.token, commit).await?;
        Ok(1)
    };
    probe.count("fetch_turn, renew and commit_turn", Growth::Flat, call).await?;
    let call = async |_| {
        let oldest = store.oldest_waiting().await?;
        Ok(u64::from(oldest.message_ms.is_some()))
    };
    probe.count("oldest_waiting", Growth::Flat, call).await
}

async fn work(probe: &mut Probe<'_>) -> Result<()> {
    let store = probe.store();
    let request = |tag: &str, session: Option<SessionRequest>| WorkRequest {
        worker_id: "prober".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Tags([tag.to_owned()].into()),
        session,
        worker: None,
    };
    let claim = || SessionRequest {
        owner: Owner::unnamed("prober"),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let call = async |_| {
        let lease = store.fetch_work(request("none", Some(claim()))).await?;
        ensure!(lease.is_none(), "no work has the tag");
        Ok(0)
    };
    probe.count("fetch_work that finds nothing", Growth::Flat, call).await?;
    let call = async |_| {
        let lease = store.fetch_work(request(WAITING_TAG, None)).await?.context("work waits")?;
        store.abandon(&lease.token, UNCOUNTED).await?;
        Ok(1)
    };
    probe.count("fetch_work and abandon", Growth::Flat, call).await?;
    let call = async |_| {
        let lease = store.fetch_work(request(WAITING_TAG, Some(claim()))).await?.context("work waits")?;
        store.renew(&lease.token, LEASE).await?;
        store.finish_work(&lease.token, Outcome { completion: Some(completion(&lease)?.into()) }).await?;
        Ok(1)
    };
    probe.count("fetch_work, renew and finish_work", Growth::Flat, call).await?;
    let call = async |_| {
        let mut others = Vec::new();
        let claimed = loop {
            let request = request(WAITING_TAG, Some(claim()));
            let lease = store.fetch_work(request).await?.context("work on a session waits")?;
            match lease.session {
                Some(session) => break (lease.token, session),
                None => others.push(lease.token),
            }
        };
        let (token, session) = claimed;
        store.abandon(&token, UNCOUNTED).await?;
        let claim = SessionRef { key: session.key, epoch: session.epoch };
        store.release_sessions(&Owner::unnamed("prober"), &[claim]).await?;
        for token in &others {
            store.abandon(token, UNCOUNTED).await?;
        }
        Ok(1 + others.len() as u64)
    };
    probe.count("fetch_work of a session, and release", Growth::PerResult, call).await
}

/// The answer to an activity.
fn completion(lease: &WorkLease) -> Result<WorkItem> {
    let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &lease.item else {
        anyhow::bail!("work is an activity");
    };
    let (instance, execution_id, id) = (instance.clone(), *execution_id, *id);
    Ok(WorkItem::ActivityCompleted { instance, execution_id, id, result: "done".to_owned() })
}
