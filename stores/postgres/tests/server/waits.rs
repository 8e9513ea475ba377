//! A wait for the end of an instance reads the instance when the wait begins and when the instance has ended,
//! and not at every commit. This holds in the process that commits and in other processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata, WorkItem};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{Cold, ExecutionState, ProviderAdmin, Store, TurnCommit, TurnRequest, WaitFor, Waited};
use tokio::task::JoinHandle;

use crate::{server, start_of, until_ok};

/// Longer than any test takes, so that no wait ends by polling.
const LONG: Duration = Duration::from_secs(600);

const PATIENCE: Duration = Duration::from_secs(60);

struct StoreProcess {
    store: Arc<PostgresProvider>,
    counts: Arc<Counts>,
}

impl StoreProcess {
    async fn open(schema: &str, listen: bool) -> Self {
        let counts = Arc::new(Counts::default());
        let options = PostgresOptions {
            listen,
            max_connections: 4,
            poll_interval: LONG,
            counts: Some(Arc::clone(&counts)),
            ..PostgresOptions::default()
        };
        let store = PostgresProvider::new_with_options(server().url(), Some(schema), options).await.unwrap();
        let process = Self { store: Arc::new(store), counts };
        if listen {
            // The first statement announces that the process listens.
            process.has_sent(1).await;
        }
        process
    }

    fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Acquire)
    }

    async fn has_sent(&self, count: u64) {
        until_ok(|| async {
            let sent = self.sent();
            if sent >= count && self.counts.is_quiet() { Ok(()) } else { Err(format!("{sent} of {count}")) }
        })
        .await;
    }

    async fn turn(&self, commit: TurnCommit) {
        let request = TurnRequest {
            lock_timeout: LONG,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        let lease = self.store.fetch_turn(request).await.unwrap().expect("an instance is ready");
        self.store.commit_turn(&lease.token, TurnCommit { execution_id: 1, ..commit }).await.unwrap();
    }

    async fn begin(&self) {
        self.store.start(start_of("a").into(), Vec::new()).await.unwrap();
        let started = EventKind::OrchestrationStarted {
            name: "Order".to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        };
        self.turn(TurnCommit { events: vec![event(1, started)], metadata, ..TurnCommit::default() }).await;
    }

    async fn go_on(&self, events: Vec<Event>, metadata: ExecutionMetadata) {
        let (instance, name, data) = ("a".to_owned(), "poke".to_owned(), String::new());
        let poke = WorkItem::ExternalRaised { instance, name, data };
        self.store.send(vec![poke.into()]).await.unwrap();
        self.turn(TurnCommit { events, metadata, ..TurnCommit::default() }).await;
    }

    async fn some_turns(&self, turns: u64) {
        for turn in 0..turns {
            let note = EventKind::CustomStatusUpdated { status: Some(turn.to_string()) };
            self.go_on(vec![event(2 + turn, note)], ExecutionMetadata::default()).await;
        }
    }

    async fn complete(&self, id: u64) {
        let output = EventKind::OrchestrationCompleted { output: "done".to_owned() };
        let metadata = ExecutionMetadata {
            status: Some("Completed".to_owned()),
            output: Some("done".to_owned()),
            ..ExecutionMetadata::default()
        };
        self.go_on(vec![event(id, output)], metadata).await;
    }

    /// Begins to wait for the end, and returns once the wait has sent this many statements.
    async fn begin_waiting(&self, look: u64) -> JoinHandle<Waited> {
        let (store, before) = (Arc::clone(&self.store), self.sent());
        let wait =
            tokio::spawn(async move { store.wait(WaitFor::End { instance: "a" }, LONG).await.unwrap() });
        self.has_sent(before + look).await;
        wait
    }
}

fn event(id: u64, kind: EventKind) -> Event {
    Event::at(1_700_000_000_000, id, "a", 1, None, kind)
}

async fn ended(wait: JoinHandle<Waited>) {
    let waited = tokio::time::timeout(PATIENCE, wait).await.expect("the wait is woken").unwrap();
    let Waited::Seen(Some(end)) = waited else { panic!("the wait returned {waited:?}") };
    assert_eq!(end.status, ExecutionState::Completed("done".to_owned()));
}

/// How many waits for the end of an instance there are.
#[derive(Debug, Clone, Copy, Default)]
struct WaitCounts {
    /// Waits that begin before the instance is started.
    before: usize,
    /// Waits that begin after its first turn.
    after: usize,
}

/// Looking at an instance takes one statement; finding that it does not exist takes two.
const LOOK: u64 = 1;
const LOOK_IN_VAIN: u64 = 2;

/// Counts the statements of an instance that has this many turns between its first and its last.
async fn statements(turns: u64, waits: WaitCounts) -> u64 {
    let schema = server().schema("waits");
    let process = StoreProcess::open(schema.name(), false).await;
    let mut waiting = Vec::new();
    for _ in 0..waits.before {
        waiting.push(process.begin_waiting(LOOK_IN_VAIN).await);
    }
    process.begin().await;
    for _ in 0..waits.after {
        waiting.push(process.begin_waiting(LOOK).await);
    }
    process.some_turns(turns).await;
    process.complete(2 + turns).await;
    for wait in waiting {
        ended(wait).await;
    }
    process.sent()
}

#[tokio::test]
async fn the_turns_of_an_instance_cost_a_wait_for_its_end_nothing() {
    for turns in [2, 20] {
        let alone = statements(turns, WaitCounts::default()).await;
        // One look when the wait begins, and one at the end.
        for (waits, each) in [
            (WaitCounts { after: 4, ..WaitCounts::default() }, 2 * LOOK),
            (WaitCounts { before: 4, ..WaitCounts::default() }, LOOK_IN_VAIN + LOOK),
        ] {
            assert_eq!(statements(turns, waits).await - alone, 4 * each, "{turns} turns, {waits:?}");
        }
    }
}

#[tokio::test]
async fn the_turns_of_an_instance_cost_a_wait_in_another_process_nothing() {
    let schema = server().schema("waits");
    let working = StoreProcess::open(schema.name(), true).await;
    let waiting = StoreProcess::open(schema.name(), true).await;
    working.begin().await;
    let before = waiting.sent();
    let wait = waiting.begin_waiting(LOOK).await;
    working.some_turns(20).await;
    assert!(!wait.is_finished(), "it has not ended");
    working.complete(22).await;
    ended(wait).await;
    // One look when the wait began, one at the end, two because the process began to listen, and perhaps
    // another announcement that it listens.
    let sent = waiting.sent() - before;
    assert!((2..=5).contains(&sent), "{sent} statements");
}

#[tokio::test]
async fn a_process_that_waits_for_the_end_is_told_of_a_deletion() {
    let schema = server().schema("waits");
    let working = StoreProcess::open(schema.name(), true).await;
    let waiting = StoreProcess::open(schema.name(), true).await;
    working.begin().await;
    let wait = waiting.begin_waiting(LOOK).await;
    working.store.delete_instances_atomic(&["a".to_owned()], true).await.unwrap();
    let waited = tokio::time::timeout(PATIENCE, wait).await.expect("the wait is woken").unwrap();
    assert_eq!(waited, Waited::Seen(None));
}

#[tokio::test]
async fn g21_every_waiting_fetch_knows_the_next_moment_that_one_of_them_has_learned() {
    let schema = server().schema("moments");
    let process = StoreProcess::open(schema.name(), false).await;
    let fetch = || {
        let store = Arc::clone(&process.store);
        tokio::spawn(async move {
            let (lock_timeout, poll_timeout) = (LONG, LONG);
            let request = TurnRequest { lock_timeout, poll_timeout, filter: None, warm: &Cold, worker: None };
            store.fetch_turn(request).await.unwrap().map(|lease| lease.instance)
        })
    };
    let before = process.sent();
    let (one, other) = (fetch(), fetch());
    process.has_sent(before + 1).await;
    // One of them learns that a start becomes visible in a second, and is given another instance before.
    let later =
        steadfast_store::Envelope { message: start_of("later").into(), delay: Some(Duration::from_secs(2)) };
    process.store.start(later, Vec::new()).await.unwrap();
    process.store.start(start_of("now").into(), Vec::new()).await.unwrap();
    let both = tokio::time::timeout(PATIENCE, async { [one.await.unwrap(), other.await.unwrap()] });
    let mut found = both.await.expect("a fetch was not woken in time").map(Option::unwrap);
    found.sort();
    assert_eq!(found, ["later", "now"]);
}
