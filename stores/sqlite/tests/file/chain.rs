//! A load: instances that run a few activities one after the other, and a ledger of the acknowledged calls.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{Event, EventKind, TagFilter, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    ClaimedSession, History, Outcome, Owner, ProviderError, ProviderErrorKind, SessionRequest, SessionScope,
    Store, TurnCommit, TurnLease, WorkRequest,
};

use crate::stage::{activity, completion, event, named, scheduled, started, turn_request};

/// How many activities an instance runs.
pub(crate) const STEPS: u64 = 3;

/// How long sessions are leased: longer than a test, so that none changes its owner.
const SESSION_LEASE: Duration = Duration::from_secs(120);

/// The acknowledged calls, one line each. A line is one write at the end of a file, so a process that is
/// killed leaves whole lines, and the operating system keeps them.
pub(crate) struct Ledger(File);

impl Ledger {
    pub(crate) fn beside(store: &Path) -> Self {
        let open = OpenOptions::new().append(true).create(true).open(Self::path(store));
        Self(open.expect("the ledger opens"))
    }

    fn path(store: &Path) -> PathBuf {
        store.with_extension("ledger")
    }

    fn write(&self, line: &str) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
    }

    pub(crate) fn read(store: &Path) -> Vec<LedgerEntry> {
        let text = std::fs::read_to_string(Self::path(store)).unwrap_or_default();
        text.lines().map(LedgerEntry::of).collect()
    }

    /// Returns the length of the ledger in bytes.
    pub(crate) fn size(store: &Path) -> u64 {
        std::fs::metadata(Self::path(store)).map_or(0, |file| file.len())
    }
}

/// A line of the ledger.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub(crate) enum LedgerEntry {
    Started { instance: String },
    Turned { instance: String, last_event: u64 },
    Completed { instance: String, id: u64 },
    OnSession { session: String, epoch: u64, owner: String },
}

impl LedgerEntry {
    fn of(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().expect("a number in the ledger");
        match words.as_slice() {
            ["started", instance] => Self::Started { instance: (*instance).into() },
            ["turned", instance, last] => {
                Self::Turned { instance: (*instance).into(), last_event: number(last) }
            }
            ["finished", instance, id] => Self::Completed { instance: (*instance).into(), id: number(id) },
            ["served", session, epoch, owner] => {
                Self::OnSession { session: (*session).into(), epoch: number(epoch), owner: (*owner).into() }
            }
            _ => panic!("no line of the ledger: {line:?}"),
        }
    }
}

/// Takes turns and runs activities of chains.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) store: Arc<SqliteProvider>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) owner: String,
    pub(crate) lease: Duration,
    /// The number of sessions that the activities run on; 0 for activities without a session.
    pub(crate) sessions: u64,
}

/// How long a fetch waits before it asks again.
const POLL: Duration = Duration::from_millis(500);

impl Crew {
    pub(crate) async fn start(&self, instance: &str) {
        let start = crate::stage::start(instance);
        // Another process may hold the file for longer than the bound, and the call is then busy.
        while let Err(error) = self.store.start(start.clone().into(), Vec::new()).await {
            expect_busy(&error);
        }
        self.ledger.write(&format!("started {instance}"));
    }

    /// Takes one turn, if there is one. True if it completed an instance.
    pub(crate) async fn turn(&self) -> bool {
        let lease = match self.store.fetch_turn(turn_request(self.lease, POLL)).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return false,
            Err(error) => {
                expect_busy(&error);
                return false;
            }
        };
        let commit = self.decide(&lease);
        let (instance, completed) = (&lease.instance, has_ended(&commit.events));
        let last = commit.events.last().map_or(lease.last_event_id, |event| event.event_id);
        match self.store.commit_turn(&lease.token, commit).await {
            Ok(_) => self.ledger.write(&format!("turned {instance} {last}")),
            Err(error) => {
                expect_busy(&error);
                return false;
            }
        }
        completed
    }

    fn decide(&self, lease: &TurnLease) -> TurnCommit {
        let instance = &lease.instance;
        let History::Whole(history) = &lease.history else { panic!("nothing is held warm") };
        let mut commit = TurnCommit { execution_id: 1, ..TurnCommit::default() };
        if has_ended(history) {
            return commit;
        }
        let mut last = lease.last_event_id;
        let mut add = |commit: &mut TurnCommit, source, kind| {
            last += 1;
            commit.events.push(event(instance, last, source, kind));
            last
        };
        commit.metadata = named("Running");
        let mut done = answers(history).len() as u64;
        for message in &lease.messages {
            match &message.item {
                WorkItem::StartOrchestration { .. } if history.is_empty() => {
                    add(&mut commit, None, started());
                }
                WorkItem::ActivityCompleted { id, result, .. } => {
                    assert!(
                        !answers(history).contains_key(id) && !answers(&commit.events).contains_key(id),
                        "{instance} got the answer to {id} twice"
                    );
                    done += 1;
                    let kind = EventKind::ActivityCompleted { result: result.clone() };
                    add(&mut commit, Some(*id), kind);
                }
                _ => {}
            }
        }
        if commit.events.is_empty() {
            return commit;
        }
        if done == STEPS {
            add(&mut commit, None, EventKind::OrchestrationCompleted { output: "done".into() });
            commit.metadata = named("Completed");
        } else {
            let id = add(&mut commit, None, scheduled());
            let session = (self.sessions > 0).then(|| format!("s{}", hash(instance) % self.sessions));
            commit.work.push(activity(instance, id, session.as_deref(), None));
        }
        commit
    }

    /// Runs one activity, if there is one.
    pub(crate) async fn work(&self) {
        let request = WorkRequest {
            worker_id: self.owner.clone(),
            lock_timeout: self.lease,
            poll_timeout: POLL,
            tags: TagFilter::DefaultOnly,
            session: (self.sessions > 0).then(|| SessionRequest {
                owner: Owner::unnamed(&self.owner),
                lock_timeout: SESSION_LEASE,
                scope: SessionScope::Claim,
                leave_out: Vec::new(),
            }),
            worker: None,
        };
        let lease = match self.store.fetch_work(request).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return,
            Err(error) => return expect_busy(&error),
        };
        if let Some(ClaimedSession { key, epoch, .. }) = &lease.session {
            self.ledger.write(&format!("served {} {epoch} {}", key.session_id, self.owner));
        }
        let WorkItem::ActivityExecute { instance, id, .. } = &lease.item else { panic!("only activities") };
        match self.store.finish_work(&lease.token, Outcome::from(completion(instance, *id))).await {
            Ok(()) => self.ledger.write(&format!("finished {instance} {id}")),
            Err(error) => expect_busy(&error),
        }
    }
}

/// While other processes write, calls may be busy, and a lease may expire while its holder waits.
fn expect_busy(error: &ProviderError) {
    assert!(matches!(error.kind, ProviderErrorKind::Busy | ProviderErrorKind::LeaseLost), "{error:?}");
}

fn has_ended(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event.kind, EventKind::OrchestrationCompleted { .. }))
}

/// Counts the answers in a history by the event that they answer.
fn answers(events: &[Event]) -> BTreeMap<u64, u64> {
    let answers = events.iter().filter(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }));
    answers.filter_map(|event| Some((event.source_event_id?, event.event_id))).collect()
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(7, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// Checks that an instance ran as it should: every event once, every activity once, one end.
pub(crate) async fn assert_whole(store: &SqliteProvider, instance: &str) {
    let history = Store::read_history(store, instance, None).await.expect("a history");
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, (1..=2 + 2 * STEPS).collect::<Vec<_>>(), "{instance}");
    assert_eq!(answers(&history).len() as u64, STEPS, "{instance}");
    assert!(has_ended(&history), "{instance}");
}
