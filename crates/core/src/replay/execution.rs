//! One execution of one orchestration, and its turn on one page: [`Execution::turn`].
//!
//! An [`Execution`] runs the code of one orchestration against its history. It is either kept between turns
//! and given only what is new (*warm*), or replayed from the first event (*cold*). Both decide alike, because
//! the sequence of polls is a function of history alone:
//!
//! - an event that answers something asks for a poll of the root (the future of the handler), and that poll
//!   comes before the next event;
//! - a poll is repeated while something woke the root during it (a channel between two branches);
//! - a new decision becomes an event first and is then played like a recorded one.
//!
//! A turn has three steps: `admit` makes events of messages, `decide` runs the code and makes events of its
//! calls, and `conclude` judges how the execution stands; `close` follows with everything that an end closes.
//! `play` holds what an event does, `drive` the poll of the code.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use super::decide::Draft;
use super::ledger::Ledger;
use super::mismatch::{LastMatch, Mismatch};
use super::outline::{Outline, is_closing};
use super::{Arrival, Identity, Notice, Options, Start, Turn};
use crate::context::misuse::Misuse;
use crate::context::poll_scope::{PollScope, guarded};
use crate::operation::call_keys::CallKeys;
use crate::operation::continue_as_new::Continuation;
use crate::operation::kv::Kv;
use crate::operation::timer;
use crate::vocabulary::error::nondeterminism;
use crate::{ErrorDetails, Event, EventKind, KvEntry, OrchestrationContext, WorkItem};

/// Runs one execution of one orchestration.
///
/// A turn changes the execution as if it were committed. When a commit fails, drop the execution and replay
/// it from the history that the store holds.
///
/// ```
/// use steadfast_core::replay::{Execution, Identity, Setup, Start, Verdict};
/// use steadfast_core::WorkItem;
///
/// let identity = Identity {
///     instance: "greeting-1".into(), execution_id: 1, name: "Greet".into(), version: "1.0.0".into(),
/// };
/// let start = Start { input: "Ada".into(), ..Start::default() };
/// let mut execution = Execution::start(Setup::new(identity), start, |ctx, name| async move {
///     ctx.schedule_activity("Hello", name).await
/// });
///
/// let first = execution.turn(1_000, vec![]);
/// assert_eq!(first.effects.work.len(), 1);
///
/// let answer = WorkItem::ActivityCompleted {
///     instance: "greeting-1".into(), execution_id: 1, id: 2, result: "Hello, Ada".into(),
/// };
/// let second = execution.turn(2_000, vec![answer]);
/// assert_eq!(second.verdict, Verdict::Completed { output: "Hello, Ada".into() });
/// ```
pub struct Execution {
    pub(super) identity: Identity,
    pub(super) options: Options,
    pub(super) scope: Arc<PollScope>,
    pub(super) root: Root,
    pub(super) outline: Outline,
    pub(super) phase: Phase,
    /// The poll that is to happen before the next event is played; `None` if no event asked for one.
    pub(super) due: Option<Due>,
    pub(super) output: Option<Result<String, String>>,
    pub(super) failure: Option<ErrorDetails>,
    /// The first difference between history and code; `failure` holds the same as an error.
    pub(super) mismatch: Option<Mismatch>,
    pub(super) last_match: Option<LastMatch>,
    pub(super) invalid_stamp: Option<Notice>,
    pub(super) verifying: Verifying,
    /// The continue-as-new that the code called, while [`verify`](super::verify()) checks a history that has
    /// ended.
    pub(super) continued: Option<Continuation>,
    pub(super) effort: Effort,
}

pub(super) type Root = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

pub(super) enum Phase {
    /// The execution is new: its first turn will record the start.
    Fresh(Start),
    Live,
    Ended,
}

/// Whether [`verify`](super::verify()) checks a history that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verifying {
    No,
    Yes,
}

/// The parts of the first event that the code can read.
#[derive(Default)]
struct Seen {
    input: String,
    custom_status: Option<String>,
    traceparent: Option<String>,
}

impl Seen {
    fn of(first: &Event) -> Self {
        let EventKind::OrchestrationStarted { input, initial_custom_status, .. } = &first.kind else {
            return Self::default();
        };
        Self {
            input: input.clone(),
            custom_status: initial_custom_status.clone(),
            traceparent: first.traceparent.clone(),
        }
    }
}

/// A poll that is to happen: the time that the code sees during it, and whether it is a replay.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) now_ms: u64,
    /// Does the poll only repeat what an earlier turn decided?
    pub(super) replaying: bool,
}

/// Everything but the start or the history that is needed to make an [`Execution`].
#[derive(Debug, Clone)]
pub struct Setup {
    /// The instance, the number of the execution, and the name and version of the handler.
    pub identity: Identity,
    /// The key-value state at the end of the previous execution; empty for the first execution.
    pub kv: BTreeMap<String, KvEntry>,
    /// The limits of new calls; replay is not bounded by them.
    pub options: Options,
}

impl Setup {
    /// Sets up an execution without key-value state and with default options.
    pub fn new(identity: Identity) -> Self {
        Self { identity, kv: BTreeMap::new(), options: Options::default() }
    }
}

/// The work that an execution did, so that tests can bound it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// The number of events that were played, recorded and new.
    pub events_visited: u64,
    /// The number of polls of the handler's future.
    pub root_polls: u64,
    /// The number of polls of durable futures.
    pub future_polls: u64,
}

impl Execution {
    /// Begins a new execution. Its first turn records the start and runs the handler for the first time.
    pub fn start<H, F>(setup: Setup, start: Start, handler: H) -> Self
    where
        H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let seen = Seen {
            input: start.input.clone(),
            custom_status: start.custom_status.clone(),
            traceparent: start.traceparent.clone(),
        };
        Self::new(setup, Phase::Fresh(start), seen, handler)
    }

    /// Replays a recorded execution, so that its next turn goes on where the last one stopped.
    ///
    /// A history that the code does not repeat is not an error here: the next turn fails the execution, and
    /// [`mismatch`](Self::mismatch) says where they part.
    pub fn replay<H, F>(setup: Setup, history: Vec<Event>, handler: H) -> Self
    where
        H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let mut execution = Self::recorded(setup, &history, handler);
        let has_ended = history.iter().rev().find(|event| !is_closing(event)).is_some_and(Event::is_terminal);
        if has_ended {
            execution.play_ended(&history);
            execution.phase = Phase::Ended;
            execution.end();
            return execution;
        }
        execution.play_all(history);
        execution
    }

    /// Runs one turn: consumes `arrivals` and decides what follows from them.
    ///
    /// `now_ms` is the store's time. A message that is a duplicate, or meant for another execution, changes
    /// nothing. An execution that has ended decides nothing and says so with
    /// [`Verdict::Ended`](super::Verdict::Ended).
    pub fn turn(&mut self, now_ms: u64, arrivals: Vec<WorkItem>) -> Turn {
        self.turn_of(now_ms, arrivals.into_iter().map(Arrival::from).collect())
    }

    /// Runs one turn like [`turn`](Self::turn), with messages that tell how activities failed.
    pub fn turn_of(&mut self, now_ms: u64, arrivals: Vec<Arrival>) -> Turn {
        if matches!(self.phase, Phase::Ended) || self.outline.has_ended() {
            return Turn::ended();
        }
        let mut draft = self.draft(now_ms, &arrivals);
        let carried = self.begin(&mut draft);
        let aborted = self.admit(carried.into_iter().map(Arrival::from).chain(arrivals), &mut draft);
        self.note_foreign_wake();
        match aborted {
            // The failure of an activity or a child that is not the application's own: no user code sees it.
            Some(details) => self.failure = Some(details),
            None if self.failure.is_some() => {}
            None => self.decide(&mut draft),
        }
        let turn = self.conclude(draft);
        if turn.verdict.is_terminal() {
            self.phase = Phase::Ended;
            self.end();
        } else {
            self.phase = Phase::Live;
        }
        turn
    }

    /// Returns the id of the last event, recorded or decided.
    pub fn last_event_id(&self) -> u64 {
        self.outline.last_event_id
    }

    /// Returns the first difference between history and code; `None` while they agree.
    pub fn mismatch(&self) -> Option<&Mismatch> {
        self.mismatch.as_ref()
    }

    /// Sets the waker for a misuse between turns: a future that history does not record wakes the
    /// orchestration, or a task outside the orchestration calls its context. The waker is called at once if
    /// that has happened already. The next turn, even one without arrivals, fails the execution and says why.
    pub fn set_alarm(&self, alarm: Waker) {
        self.scope.set_alarm(alarm);
    }

    /// Estimates the memory that the execution holds, in bytes: its future, its list of open operations, and
    /// payloads that the code has not read. Memory that the code itself has allocated is not counted.
    pub fn estimated_bytes(&self) -> usize {
        let ledger = self.scope.lock().estimated_bytes();
        size_of::<Self>() + size_of_val(&*self.root) + ledger + self.outline.estimated_bytes()
    }

    /// Returns the counts of events played and futures polled since the execution was made.
    pub fn effort(&self) -> Effort {
        Effort { future_polls: self.scope.lock().future_polls, ..self.effort }
    }

    pub(super) fn recorded<H, F>(setup: Setup, history: &[Event], handler: H) -> Self
    where
        H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let seen = history.first().map(Seen::of).unwrap_or_default();
        let mut execution = Self::new(setup, Phase::Live, seen, handler);
        match history.first() {
            None => execution.part(Mismatch::corrupted(1, "empty")),
            Some(first) => execution.invalid_stamp = check_stamp(&first.duroxide_version),
        }
        execution.scope.lock().keys = CallKeys::of(history);
        execution
    }

    fn new<H, F>(setup: Setup, phase: Phase, seen: Seen, handler: H) -> Self
    where
        H: FnOnce(OrchestrationContext, String) -> F + Send + 'static,
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let Setup { identity, kv, options } = setup;
        let Seen { input, custom_status, traceparent } = seen;
        let mut ledger = Ledger::new(identity.clone());
        ledger.kv = Kv::seeded(kv);
        ledger.custom_status = custom_status;
        ledger.traceparent = traceparent;
        let scope = PollScope::driven(ledger);
        let context = OrchestrationContext::within(Arc::clone(&scope));
        Self {
            identity,
            options,
            scope,
            root: Box::pin(async move { handler(context, input).await }),
            outline: Outline::default(),
            phase,
            due: None,
            output: None,
            failure: None,
            mismatch: None,
            last_match: None,
            invalid_stamp: None,
            verifying: Verifying::No,
            continued: None,
            effort: Effort::default(),
        }
    }

    fn draft(&self, now_ms: u64, arrivals: &[Arrival]) -> Draft {
        let now_ms =
            arrivals.iter().filter_map(|arrival| timer::due_ms(&arrival.item)).fold(now_ms, u64::max);
        let mut draft = Draft::new(now_ms, self.outline.next_event_id());
        let mut ledger = self.scope.lock();
        draft.was_stuck = matches!(self.phase, Phase::Live) && !ledger.can_be_answered();
        ledger.begin_turn();
        draft
    }

    /// Fails the execution because history and code part here.
    pub(super) fn part(&mut self, mismatch: Mismatch) {
        if self.failure.is_none() {
            let mismatch = mismatch.after(self.last_match.clone());
            self.failure = Some(ErrorDetails::from(&mismatch));
            self.mismatch = Some(mismatch);
        }
    }

    fn note_foreign_wake(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let misuse = self.scope.lock().misuse().map(Misuse::details);
        self.failure = misuse.or_else(|| {
            self.scope.was_woken_from_outside().then(|| {
                nondeterminism(
                    "the orchestration was woken from outside: it awaits something that history does not \
                     record (a tokio timer, channel or task, a request); await durable futures only, and do \
                     such work in an activity",
                )
            })
        });
    }

    /// Drops the future of the handler. Its destructors run now; they cannot record anything, and their
    /// panics are caught.
    fn end(&mut self) {
        self.scope.end();
        let root = std::mem::replace(&mut self.root, Box::pin(std::future::pending()));
        // The text of such a panic is dropped: the execution has ended and can record no failure.
        drop(guarded(move || drop(root)));
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution")
            .field("identity", &self.identity)
            .field("last_event_id", &self.outline.last_event_id)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

fn check_stamp(stamp: &str) -> Option<Notice> {
    let error = semver::Version::parse(stamp).err()?;
    Some(Notice::InvalidPinnedVersion { version: stamp.to_owned(), error: error.to_string() })
}
