//! A worker process: it serves until its input ends, and dies with the process that started it.

use std::{
    collections::HashSet,
    io::Read,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use async_trait::async_trait;
use clap::{Args, ValueEnum};
use rustix::process::{Signal, set_parent_process_death_signal};
use steadfast::{
    RuntimeOptions, TagFilter,
    providers::Provider,
    runtime::{CarryForwardOverflow, DetachReason, OnMissingHandler, Runtime, Session, SessionHooks},
};
use steadfast_audit::{Fact, Fault, FaultKind};
use steadfast_clock::{Clock, MachineTime, Sleep, SystemClock};
use steadfast_testing::program::ast::names;
use tracing_subscriber::EnvFilter;

use crate::{
    address::Address,
    code::Code,
    notes::{Notes, micros, now_us},
    soak,
};

/// The lease of a turn under trouble: short, so that much happens in a minute.
pub const TURN_LEASE: Duration = Duration::from_secs(2);
/// The lease of an activity under trouble.
pub const WORK_LEASE: Duration = Duration::from_secs(3);
/// The lease of a session under trouble.
pub const SESSION_LEASE: Duration = Duration::from_secs(3);
/// How often work may be delivered under trouble: the default of the runtime.
pub const MAX_ATTEMPTS: u32 = 10;

/// How long a shutdown lets activities finish.
const GRACE_MS: u64 = 2_000;
/// How long the store may be away before a worker gives up to open it.
const OPEN_PATIENCE: Duration = Duration::from_secs(120);
/// How often a worker that cannot open the store tries again.
const OPEN_PAUSE: Duration = Duration::from_millis(200);
/// How often the pulse of a process beats, and what counts as standing still.
const BEAT: Duration = Duration::from_millis(20);
const STANDSTILL: Duration = Duration::from_millis(250);

/// What the driver tells a worker.
#[derive(Args, Clone, Debug)]
pub struct WorkerArguments {
    /// The store
    #[arg(long)]
    pub store: Address,
    /// The name of the node, which its restarts share
    #[arg(long)]
    pub node: String,
    /// The number of the node: workers differ in their options
    #[arg(long)]
    pub number: usize,
    /// The name of this life of the node
    #[arg(long)]
    pub process: String,
    /// The folder of the ledgers
    #[arg(long)]
    pub ledgers: PathBuf,
    /// Decides the programs
    #[arg(long)]
    pub seed: u64,
    /// Which code it serves
    #[arg(long)]
    pub role: Role,
}

/// What a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Random programs, with short leases.
    Crash,
    /// A steady load, with default leases and retention.
    Soak,
}

/// Serves until the input ends.
///
/// # Errors
///
/// The store did not open for two minutes, or there is no ledger.
pub fn run(arguments: &WorkerArguments) -> Result<()> {
    // Also a stopped process ends then, and one whose driver was killed.
    set_parent_process_death_signal(Some(Signal::KILL)).context("it cannot die with the driver")?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(std::io::stderr).init();
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    threads.block_on(serve(arguments))
}

async fn serve(arguments: &WorkerArguments) -> Result<()> {
    let notes = Notes::begin(&arguments.ledgers, &arguments.process)?;
    let _pulse = watch_pulse(notes.clone());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let clock: Arc<dyn Clock> = match arguments.role {
        Role::Crash => Arc::new(WrongClock::of(arguments.number)),
        Role::Soak => Arc::new(SystemClock),
    };
    let provider = open(&arguments.store, &clock).await?;
    let (activities, orchestrations, options) = match arguments.role {
        Role::Crash => {
            let code = Code::of(arguments.seed)?;
            (
                code.activities(arguments.number, &notes),
                code.orchestrations(arguments.number),
                RuntimeOptions { clock, ..troubled(arguments) },
            )
        }
        Role::Soak => {
            (soak::code::activities(), soak::code::orchestrations(), soak::code::options(arguments))
        }
    };
    let runtime = Runtime::try_start(provider, activities, orchestrations, options).await?;
    // The end of the input, however it comes, asks for the end of the process.
    drop(ended.await);
    runtime.shutdown(Some(GRACE_MS)).await;
    Ok(())
}

/// Opens the store, which may be away at the moment.
async fn open(address: &Address, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Provider>> {
    let deadline = SystemClock.monotonic() + OPEN_PATIENCE;
    loop {
        match address.open_by(Arc::clone(clock)).await {
            Ok(provider) => return Ok(provider),
            Err(error) if SystemClock.monotonic() >= deadline => {
                return Err(error.context("the store did not open for two minutes"));
            }
            Err(_) => SystemClock.sleep(OPEN_PAUSE).await,
        }
    }
}

/// The options of a worker under trouble. Workers differ, as those of a fleet may.
fn troubled(arguments: &WorkerArguments) -> RuntimeOptions {
    let number = arguments.number;
    let tags = HashSet::from_iter(names::TAGS.iter().map(|tag| (*tag).to_owned()));
    RuntimeOptions {
        worker_node_id: Some(arguments.node.clone()),
        orchestration_concurrency: 6,
        worker_concurrency: 10,
        max_attempts: MAX_ATTEMPTS,
        // Else deliveries count while the one worker that lacks the code is the only one that has reported.
        on_missing_handler: OnMissingHandler::Park,
        orchestrator_lock_timeout: TURN_LEASE,
        worker_lock_timeout: WORK_LEASE,
        session_lock_timeout: SESSION_LEASE,
        session_idle_timeout: Duration::from_secs(4),
        session_cleanup_interval: Duration::from_secs(5),
        max_sessions_per_runtime: if number % 4 == 2 { 2 } else { 10 },
        max_attached_sessions: (number % 4 == 3).then_some(4),
        // Two of four serve the tag, so that one of them may be away.
        worker_tag_filter: if number.is_multiple_of(2) {
            TagFilter::DefaultAnd(tags)
        } else {
            TagFilter::DefaultOnly
        },
        max_warm_orchestrations: match number % 4 {
            1 => 0,
            2 => 3,
            _ => 1_000,
        },
        session_hooks: number.is_multiple_of(2).then(|| Arc::new(SlowHooks) as Arc<dyn SessionHooks>),
        carry_forward_overflow: CarryForwardOverflow::Keep,
        activity_cancellation_grace_period: Duration::from_secs(1),
        ..RuntimeOptions::default()
    }
}

/// The clock of a machine whose wall time is wrong.
#[derive(Debug)]
struct WrongClock {
    by_ms: i64,
}

impl WrongClock {
    /// One of four workers is ahead, one is behind.
    fn of(worker: usize) -> Self {
        let by_ms = match worker % 4 {
            1 => 600_000,
            2 => -3_600_000,
            _ => 0,
        };
        Self { by_ms }
    }
}

impl Clock for WrongClock {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.by_ms)
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    fn machine(&self) -> MachineTime {
        SystemClock.machine()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        SystemClock.sleep_until(deadline)
    }
}

/// Hooks that take a moment, as those that load and save state do.
#[derive(Debug)]
struct SlowHooks;

#[async_trait]
impl SessionHooks for SlowHooks {
    async fn on_attach(&self, _: &Session) {
        SystemClock.sleep(Duration::from_millis(30)).await;
    }

    async fn on_detach(&self, _: &Session, _: DetachReason) {
        SystemClock.sleep(Duration::from_millis(100)).await;
    }
}

/// Notes when the process stood still: whoever reads the ledger must know that it was not at fault.
///
/// The thread ends when the returned sender is dropped.
fn watch_pulse(notes: Notes) -> mpsc::Sender<()> {
    let (keep, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut last = SystemClock.monotonic();
        while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            let now = SystemClock.monotonic();
            let stood = now.saturating_sub(last);
            if stood >= STANDSTILL {
                let at_us = now_us().saturating_sub(micros(stood));
                let fault = Fault {
                    kind: FaultKind::Paused,
                    process: Some(notes.process().to_owned()),
                    lasts_us: micros(stood),
                };
                // A ledger that cannot be written ends the activities, which say so.
                drop(notes.note_at(at_us, Fact::Fault(fault)));
            }
            last = SystemClock.monotonic();
        }
    });
    keep
}
