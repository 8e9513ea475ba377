//! A load: instances that run one activity each, and a ledger of the acknowledged calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Cold, History, NewWork, Outcome, ProviderError, Store, TurnCommit, TurnLease, TurnRequest, WorkRequest,
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The calls that were acknowledged.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ledger {
    pub(crate) started: BTreeSet<String>,
    /// The last event of each instance that was committed.
    pub(crate) turned: BTreeMap<String, u64>,
    pub(crate) finished: BTreeSet<(String, u64)>,
}

impl Ledger {
    pub(crate) fn len(&self) -> usize {
        self.started.len()
            + self.turned.values().map(|last| *last as usize).sum::<usize>()
            + self.finished.len()
    }

    /// Starts an instance and serves it to its end. Stops at the first error.
    pub(crate) async fn run(&mut self, store: &SqliteProvider, instance: &str) -> Result<(), ProviderError> {
        store.start(start(instance).into(), Vec::new()).await?;
        self.started.insert(instance.to_owned());
        while self.serve(store).await? {}
        Ok(())
    }

    /// Takes a turn, or runs an activity. False if there is none.
    async fn serve(&mut self, store: &SqliteProvider) -> Result<bool, ProviderError> {
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        if let Some(lease) = store.fetch_turn(request).await? {
            let commit = decide(&lease);
            let last = commit.events.last().map_or(lease.last_event_id, |event| event.event_id);
            store.commit_turn(&lease.token, commit).await?;
            self.turned.insert(lease.instance, last);
            return Ok(true);
        }
        let request = WorkRequest {
            worker_id: "worker".into(),
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            tags: TagFilter::DefaultOnly,
            session: None,
            worker: None,
        };
        let Some(lease) = store.fetch_work(request).await? else { return Ok(false) };
        let WorkItem::ActivityExecute { instance, id, .. } = lease.item else { panic!("only activities") };
        let answer = WorkItem::ActivityCompleted {
            instance: instance.clone(),
            execution_id: 1,
            id,
            result: format!("{instance} {}", "x".repeat(600)),
        };
        store.finish_work(&lease.token, Outcome::from(answer)).await?;
        assert!(self.finished.insert((instance.clone(), id)), "{instance} #{id} was finished twice");
        Ok(true)
    }

    /// Serves what is left, leases that are lost to a dead process included.
    pub(crate) async fn settle(&mut self, store: &SqliteProvider, clock: &VirtualClock) {
        for _ in 0..3 {
            while self.serve(store).await.expect("the disk works") {}
            clock.advance(LEASE * 2);
        }
    }

    /// Says what was acknowledged and is missing.
    pub(crate) async fn missing(&self, store: &SqliteProvider) -> Vec<String> {
        let mut missing = Vec::new();
        for instance in &self.started {
            let history = store.read_history(instance, None).await.expect("a history can be read");
            let waits = store.start_of(instance).await.expect("a start can be read").is_some();
            if history.is_empty() && !waits {
                missing.push(format!("{instance} was started"));
            }
            let last = history.last().map_or(0, |event| event.event_id);
            if last < self.turned.get(instance).copied().unwrap_or(0) {
                missing.push(format!("{instance} has no event {:?}, only {last}", self.turned.get(instance)));
            }
            let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
            assert_eq!(ids, (1..=last).collect::<Vec<_>>(), "{instance} has every event once");
        }
        for (instance, id) in &self.finished {
            let work = store.work_of(instance, 1).await.expect("work can be read");
            if work.iter().any(|work| work.activity_id == *id) {
                missing.push(format!("{instance} #{id} was finished"));
            }
        }
        missing
    }

    /// Checks that every instance that was started ran to its end, each activity with one answer.
    pub(crate) async fn assert_whole(&self, store: &SqliteProvider) {
        for instance in &self.started {
            let history = store.read_history(instance, None).await.expect("a history can be read");
            let kinds: Vec<_> = history.iter().map(|event| std::mem::discriminant(&event.kind)).collect();
            let expected = [started(), scheduled(), answered(instance), ended()];
            assert_eq!(kinds, expected.each_ref().map(std::mem::discriminant), "{instance}: {history:#?}");
            assert_eq!(history[2].kind, answered(instance), "the answer is that of the activity");
        }
    }
}

fn decide(lease: &TurnLease) -> TurnCommit {
    let instance = &lease.instance;
    let History::Whole(history) = &lease.history else { panic!("the history is whole: {lease:?}") };
    let mut commit = TurnCommit { execution_id: 1, ..TurnCommit::default() };
    let mut last = lease.last_event_id;
    assert_eq!(last, history.len() as u64, "{instance}");
    let mut add = |commit: &mut TurnCommit, source, kind| {
        last += 1;
        commit.events.push(Event::at(1_700_000_000_000, last, instance, 1, source, kind));
        last
    };
    for message in &lease.messages {
        match &message.item {
            WorkItem::StartOrchestration { .. } if history.is_empty() => {
                add(&mut commit, None, started());
                let id = add(&mut commit, None, scheduled());
                commit.work.push(activity(instance, id));
                commit.metadata = named("Running");
            }
            WorkItem::ActivityCompleted { id, result, .. } => {
                assert_eq!((history.len(), *id), (2, 2), "{instance} has one answer");
                add(&mut commit, Some(*id), EventKind::ActivityCompleted { result: result.clone() });
                add(&mut commit, None, ended());
                commit.metadata = named("Completed");
            }
            other => panic!("{instance} got {other:?}"),
        }
    }
    commit
}

pub(crate) fn start(instance: &str) -> WorkItem {
    start_with(instance, "x".repeat(700))
}

pub(crate) fn start_with(instance: &str, input: String) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Chain".into(),
        input,
        version: Some("1.0.0".into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> NewWork {
    NewWork::from(WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: 1,
        id,
        name: "Step".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    })
}

pub(crate) fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Chain".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn scheduled() -> EventKind {
    EventKind::ActivityScheduled { name: "Step".into(), input: String::new(), session_id: None, tag: None }
}

fn answered(instance: &str) -> EventKind {
    EventKind::ActivityCompleted { result: format!("{instance} {}", "x".repeat(600)) }
}

fn ended() -> EventKind {
    EventKind::OrchestrationCompleted { output: "done".into() }
}

pub(crate) fn named(status: &str) -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Chain".into()),
        orchestration_version: Some("1.0.0".into()),
        status: Some(status.into()),
        ..ExecutionMetadata::default()
    }
}
