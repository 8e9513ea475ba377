//! The time of the file (G2): processes agree on it whatever their wall clocks say, one that is alone moves
//! it forward, and a sleep of the machine neither ends a lease nor delays a timer.

mod alone;
mod disagree;
mod sleep;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use steadfast_clock::{BootId, Clock, MachineTime, Sleep, VirtualClock};
use steadfast_core::{DispatcherCapabilityFilter, TagFilter};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Abandon, Attempt, Cold, LeaseToken, Owner, ProviderErrorKind, SessionRequest, SessionScope, Store,
    TurnRequest, WorkRequest,
};

use crate::stage::{activity, open, start};

const LEASE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);
const NOON_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;

/// A machine that all processes of a test run on.
#[derive(Clone)]
struct Machine {
    time: VirtualClock,
    boot: Option<BootId>,
}

impl Machine {
    fn at_noon() -> Self {
        Self { time: VirtualClock::new(NOON_MS), boot: Some(BootId(1)) }
    }

    /// A clock of one process, whose wall time is ahead of the machine's.
    fn clock(&self, ahead_ms: i64) -> ProcessClock {
        ProcessClock { machine: self.clone(), ahead_ms: Arc::new(AtomicI64::new(ahead_ms)) }
    }

    async fn open(&self, path: &Path, ahead_ms: i64) -> Arc<SqliteProvider> {
        self.clock(ahead_ms).open(path).await
    }

    fn pass(&self, time: Duration) {
        self.time.advance(time);
    }
}

/// The clock of one process of a machine.
#[derive(Clone)]
struct ProcessClock {
    machine: Machine,
    ahead_ms: Arc<AtomicI64>,
}

impl std::fmt::Debug for ProcessClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ms ahead", self.ahead_ms.load(Ordering::Relaxed))
    }
}

impl ProcessClock {
    async fn open(&self, path: &Path) -> Arc<SqliteProvider> {
        open(path, SqliteOptions { clock: Arc::new(self.clone()), ..SqliteOptions::default() }).await
    }

    /// Sets the wall clock.
    fn step(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }
}

impl Clock for ProcessClock {
    fn now_ms(&self) -> u64 {
        self.machine.time.now_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.machine.time.monotonic()
    }

    fn machine(&self) -> MachineTime {
        MachineTime { boot: self.machine.boot, ..self.machine.time.machine() }
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        self.machine.time.sleep_until(deadline)
    }
}

/// Returns the time of the file.
async fn now_ms(store: &SqliteProvider) -> u64 {
    store.oldest_waiting().await.expect("tells").now_ms
}

fn turn(filter: &DispatcherCapabilityFilter) -> TurnRequest<'_> {
    TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: Some(filter),
        warm: &Cold,
        worker: None,
    }
}

fn work(owner: &str) -> WorkRequest {
    WorkRequest {
        worker_id: owner.to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        worker: None,
        session: Some(SessionRequest {
            owner: Owner::unnamed(owner),
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
    }
}

/// Queues a turn, an activity, and an activity of a session.
async fn queue_all(store: &SqliteProvider, instance: &str) {
    store.send(vec![start(instance).into()]).await.expect("starts");
    for (id, session) in [(1, None), (2, Some(instance))] {
        store.enqueue_work(activity(instance, id, session, None)).await.expect("queues");
    }
}

/// Leases all turns and activities that it can.
async fn take_all(store: &SqliteProvider, owner: &str) -> Vec<LeaseToken> {
    let filter = DispatcherCapabilityFilter::default_for_current_build();
    let mut taken = Vec::new();
    while let Some(lease) = store.fetch_turn(turn(&filter)).await.expect("answers") {
        taken.push(lease.token);
    }
    while let Some(lease) = store.fetch_work(work(owner)).await.expect("answers") {
        taken.push(lease.token);
    }
    taken
}

/// Renews leases, all of which must be live.
async fn renew_all(store: &SqliteProvider, leases: &[LeaseToken]) {
    for lease in leases {
        store.renew(lease, LEASE).await.expect("it is held");
    }
}

async fn assert_lost(store: &SqliteProvider, leases: &[LeaseToken]) {
    for lease in leases {
        let lost = store.renew(lease, LEASE).await.expect_err("its time is over");
        assert_eq!(lost.kind, ProviderErrorKind::LeaseLost);
    }
}

/// Gives a lease up for a while.
fn later(delay: Duration) -> Abandon {
    Abandon { retry_after: Some(delay), attempt: Attempt::Uncounted }
}
