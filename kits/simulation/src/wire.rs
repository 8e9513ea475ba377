//! The wire between a process and the store: calls take time, fail, are repeated, and lose their answers.

mod desk;

use std::{
    any::Any,
    future::{pending, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use steadfast_audit::{FaultKind, WatchedStore};
use steadfast_store::{
    ClaimedSession, LeaseToken, ProviderAdmin, ProviderError, ProviderErrorKind, Store, StoreCall, TurnLease,
    WorkLease, forward_store,
};
use steadfast_testing::program::{ast::Name, dice::Dice};
use tokio::runtime::Handle;

use crate::{
    journal::{Journal, Noted},
    process::Life,
    time::WorldTime,
};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disturbance {
    /// It has no effect and fails.
    Fails(Failure),
    /// It has its effect, and an error comes instead of the answer.
    LosesAnswer(Failure),
    /// The answer comes so much later.
    Late(Duration),
    /// It is carried out twice, because its first answer was lost on the way: the second one is heard. Calls
    /// that no lease or name guards are carried out once.
    Twice,
    /// A fetch is dropped when it has been polled so often, and is made again, as by a runtime that asks for
    /// other work. It leaves nothing (S5), also if the store had granted it something by then. Another call
    /// is not dropped: it might have had its effect.
    Drops(u32),
    /// The process dies before the call has its effect.
    DiesBefore,
    /// The process dies after the call had its effect, before the answer.
    DiesAfter,
}

impl Disturbance {
    fn fault(self) -> FaultKind {
        match self {
            Self::Fails(Failure::Busy | Failure::Unavailable | Failure::Full) | Self::Drops(_) => {
                FaultKind::Failed
            }
            // Whether the call had its effect or not: a holder that is told that its lease is gone gives up.
            Self::Fails(_) | Self::LosesAnswer(Failure::LeaseLost | Failure::Withdrawn) => FaultKind::Misled,
            Self::LosesAnswer(_) | Self::Twice => FaultKind::Unanswered,
            Self::Late(_) => FaultKind::Late,
            Self::DiesBefore | Self::DiesAfter => FaultKind::Killed,
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Self::Late(by) => by,
            _ => Duration::ZERO,
        }
    }
}

/// The kinds of errors of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is the kind of the same name")]
pub enum Failure {
    Busy,
    Unavailable,
    LeaseLost,
    Withdrawn,
    Conflict,
    NotFound,
    Refused,
    Full,
    Corrupt,
    Invalid,
    Unsupported,
    Other,
}

impl Failure {
    /// Every kind of error.
    pub const ALL: [Self; 12] = [
        Self::Busy,
        Self::Unavailable,
        Self::LeaseLost,
        Self::Withdrawn,
        Self::Conflict,
        Self::NotFound,
        Self::Refused,
        Self::Full,
        Self::Corrupt,
        Self::Invalid,
        Self::Unsupported,
        Self::Other,
    ];

    fn error(self, method: &'static str) -> ProviderError {
        ProviderError::new(self.kind(), method, "simulated")
    }

    /// Returns the kind of error.
    pub fn kind(self) -> ProviderErrorKind {
        match self {
            Self::Busy => ProviderErrorKind::Busy,
            Self::Unavailable => ProviderErrorKind::Unavailable,
            Self::LeaseLost => ProviderErrorKind::LeaseLost,
            Self::Withdrawn => ProviderErrorKind::Withdrawn,
            Self::Conflict => ProviderErrorKind::Conflict,
            Self::NotFound => ProviderErrorKind::NotFound,
            Self::Refused => ProviderErrorKind::Refused,
            Self::Full => ProviderErrorKind::Full,
            Self::Corrupt => ProviderErrorKind::Corrupt,
            Self::Invalid => ProviderErrorKind::Invalid,
            Self::Unsupported => ProviderErrorKind::Unsupported,
            Self::Other => ProviderErrorKind::Other,
        }
    }
}

/// A disturbance that waits for its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Planned {
    /// The method that it is for; `None` is any.
    pub method: Option<Name>,
    /// How many such calls pass before it.
    pub skip: u32,
    /// What happens.
    pub what: Disturbance,
}

impl Planned {
    /// Tells whether a commit may be told that it is impossible: that fails its execution.
    pub fn refuses_commits(&self) -> bool {
        let is_refusal = matches!(
            self.what,
            Disturbance::Fails(Failure::Invalid | Failure::Other)
                | Disturbance::LosesAnswer(Failure::Invalid | Failure::Other)
        );
        is_refusal && self.method.is_none_or(|method| method == "commit_turn")
    }
}

/// The line of one process, which outlives the process. Clones share it.
#[derive(Clone, Debug)]
pub struct Line(Arc<Mutex<Condition>>);

#[derive(Debug)]
struct Condition {
    dice: Dice,
    /// Counts the reasons for which no call arrives.
    cuts: u32,
    /// Counts the reasons for which the disk of the store is full.
    fulls: u32,
    /// How much longer each call takes.
    slow: Duration,
    planned: Vec<Planned>,
}

/// What is decided about a call when it is made.
struct Decision {
    there: Duration,
    back: Duration,
    disturbance: Option<Disturbance>,
}

impl Line {
    /// Makes a line without trouble, whose delays come from the seed.
    pub fn new(seed: u64) -> Self {
        let (dice, planned) = (Dice::new(seed), Vec::new());
        Self(Arc::new(Mutex::new(Condition { dice, cuts: 0, fulls: 0, slow: Duration::ZERO, planned })))
    }

    /// Cuts the line. It is mended as often as it was cut.
    pub fn cut(&self) {
        self.lock().cuts += 1;
    }

    /// Mends one cut.
    pub fn mend(&self) {
        let mut condition = self.lock();
        condition.cuts = condition.cuts.saturating_sub(1);
    }

    /// Lets the disk of the store be full for the calls of this line.
    pub fn fill(&self) {
        self.lock().fulls += 1;
    }

    /// Makes room on the disk.
    pub fn make_room(&self) {
        let mut condition = self.lock();
        condition.fulls = condition.fulls.saturating_sub(1);
    }

    /// Makes each call take so much longer.
    pub fn slow(&self, by: Duration) {
        self.lock().slow = by;
    }

    /// Adds a disturbance.
    pub fn plan(&self, planned: Planned) {
        self.lock().planned.push(planned);
    }

    /// Ends all trouble.
    pub fn heal(&self) {
        let mut condition = self.lock();
        (condition.cuts, condition.fulls, condition.slow) = (0, 0, Duration::ZERO);
        condition.planned.clear();
    }

    fn is_cut(&self) -> bool {
        self.lock().cuts > 0
    }

    fn is_full(&self) -> bool {
        self.lock().fulls > 0
    }

    /// Decides about the next call: how long it is on its way, and what happens to it.
    fn decide(&self, method: &'static str) -> Decision {
        let mut condition = self.lock();
        let mut way = || Duration::from_micros(50 + condition.dice.roll() % 1_000);
        let (there, back) = (way(), way());
        let mut disturbance = None;
        condition.planned.retain_mut(|planned| {
            if disturbance.is_some() || planned.method.is_some_and(|named| named != method) {
                return true;
            }
            if planned.skip > 0 {
                planned.skip -= 1;
                return true;
            }
            disturbance = Some(planned.what);
            false
        });
        Decision { there: there.saturating_add(condition.slow), back, disturbance }
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store as one process reaches it.
pub struct Wire {
    inner: Arc<WatchedStore>,
    process: String,
    life: Life,
    line: Line,
    time: WorldTime,
    journal: Journal,
}

/// What the wire knows about a call.
#[derive(Clone, Copy)]
struct Passage {
    method: &'static str,
    /// Whether it needs room on the disk.
    writes: bool,
    /// Whether it may be carried out twice.
    is_guarded: bool,
    /// Whether it leaves nothing if it is dropped.
    is_fetch: bool,
}

impl Passage {
    fn of(call: StoreCall<'_>) -> Self {
        let is_fetch = matches!(call, StoreCall::FetchTurn | StoreCall::FetchWork);
        Self { method: call.method(), writes: writes(call), is_guarded: is_guarded(call), is_fetch }
    }

    fn reads(method: &'static str) -> Self {
        Self { method, writes: false, is_guarded: true, is_fetch: false }
    }

    fn removes(method: &'static str) -> Self {
        Self { method, writes: true, is_guarded: true, is_fetch: false }
    }
}

impl Wire {
    /// Connects a process with the store.
    pub fn new(
        inner: Arc<WatchedStore>,
        process: &str,
        life: &Life,
        line: &Line,
        time: &WorldTime,
        journal: &Journal,
    ) -> Self {
        Self {
            inner,
            process: process.to_owned(),
            life: life.clone(),
            line: line.clone(),
            time: time.clone(),
            journal: journal.clone(),
        }
    }

    async fn pass<T, F>(
        &self,
        call: StoreCall<'_>,
        make: impl Fn() -> F + Send + Sync,
    ) -> Result<T, ProviderError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ProviderError>> + Send,
    {
        self.carry(Passage::of(call), make).await
    }

    async fn carry<T, F>(
        &self,
        passage: Passage,
        make: impl Fn() -> F + Send + Sync,
    ) -> Result<T, ProviderError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ProviderError>> + Send,
    {
        let method = passage.method;
        let Decision { there, back, disturbance } = self.line.decide(method);
        self.wait(there).await;
        if let Some(disturbance) = disturbance {
            self.journal.fault(disturbance.fault(), Some(&self.process), disturbance.lasts());
        }
        let mut answer = match disturbance {
            _ if self.line.is_cut() => Err(unreachable(method)),
            _ if self.line.is_full() && passage.writes => Err(Failure::Full.error(method)),
            Some(Disturbance::Fails(failure)) => Err(failure.error(method)),
            Some(Disturbance::DiesBefore) => self.die().await,
            Some(Disturbance::Drops(polls)) if passage.is_fetch => {
                self.heard().await;
                match self.drop_after(polls, make()).await {
                    Some(answer) => answer,
                    None => self.answer(method, make()).await,
                }
            }
            _ => self.answer(method, make()).await,
        };
        match disturbance {
            Some(Disturbance::LosesAnswer(failure)) => answer = answer.and(Err(failure.error(method))),
            Some(Disturbance::Twice) if passage.is_guarded => {
                self.wait(back).await;
                answer = self.answer(method, make()).await;
            }
            Some(Disturbance::DiesAfter) => self.die().await?,
            Some(
                Disturbance::Fails(_)
                | Disturbance::DiesBefore
                | Disturbance::Twice
                | Disturbance::Late(_)
                | Disturbance::Drops(_),
            )
            | None => {}
        }
        let late = disturbance.map_or(Duration::ZERO, Disturbance::lasts);
        let on_its_way = Undelivered::of(self, &answer);
        self.wait(back.saturating_add(late)).await;
        on_its_way.arrives();
        if self.line.is_cut() && answer.is_ok() {
            answer = self.lose(method, &answer);
        }
        let told = answer.as_ref().map_or_else(|error| format!("{:?}", error.kind), |_| "ok".to_owned());
        self.journal.note(Noted::Call { process: self.process.clone(), method, answer: told });
        answer
    }

    /// Lets the store answer. If the line is cut by then, the answer is lost.
    async fn answer<T: 'static>(
        &self,
        method: &'static str,
        future: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.heard().await;
        let answer = future.await;
        self.heard().await;
        if self.line.is_cut() { self.lose(method, &answer) } else { answer }
    }

    /// Loses an answer. A lease in it is a fault of its own: a process cannot excuse a delivery that it never
    /// heard of, and each fetch that waits when the line is cut may be given one.
    fn lose<T: 'static>(
        &self,
        method: &'static str,
        answer: &Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        if granted(answer).is_some() {
            self.journal.fault(FaultKind::Unanswered, Some(&self.process), Duration::ZERO);
        }
        Err(unreachable(method))
    }

    /// Polls a fetch so often, then drops it. The store of a process that dies at that moment cannot take
    /// back what the fetch was granted, so the watch ends.
    async fn drop_after<T>(&self, polls: u32, fetch: impl Future<Output = T>) -> Option<T> {
        self.inner.expect_drops();
        let (mut fetch, mut left) = (Box::pin(fetch), polls);
        let answer = poll_fn(|context| match left.checked_sub(1) {
            Some(rest) => {
                left = rest;
                fetch.as_mut().poll(context).map(Some)
            }
            None => Poll::Ready(None),
        });
        let answer = answer.await;
        if answer.is_none() {
            drop(fetch);
            let (time, at, watch) = (self.time.clone(), self.time.now(), self.inner.watch());
            self.life.then(move || {
                if time.now() == at {
                    watch.lose_sight();
                }
            });
        }
        answer
    }

    async fn wait(&self, delay: Duration) {
        self.heard().await;
        self.time.until(self.time.now().saturating_add(delay)).await;
        self.heard().await;
    }

    /// Goes on if the process lives.
    async fn heard(&self) {
        if self.life.has_ended() {
            pending::<()>().await;
        }
    }

    async fn die<T>(&self) -> Result<T, ProviderError> {
        self.life.end();
        pending().await
    }

    /// Returns the management of the store, over this wire.
    fn desk(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.admin().map(|_| self as &dyn ProviderAdmin)
    }

    fn admin_for(&self, method: &'static str) -> Result<&dyn ProviderAdmin, ProviderError> {
        self.inner.admin().ok_or_else(|| Failure::Unsupported.error(method))
    }
}

/// A lease on its way to the process that asked for it. If the process asks no more, the store takes it back:
/// a fetch that is dropped leaves nothing (S5).
struct Undelivered<'a> {
    wire: &'a Wire,
    lease: Option<GrantedLease>,
}

/// A lease that a fetch was given, and the session that it claimed with it.
type GrantedLease = (LeaseToken, Option<ClaimedSession>);

/// Returns the lease in an answer, if it is that of a fetch which was given one.
fn granted<T: 'static>(answer: &Result<T, ProviderError>) -> Option<GrantedLease> {
    let answer = answer.as_ref().ok()? as &dyn Any;
    let turn = answer.downcast_ref::<Option<TurnLease>>().and_then(Option::as_ref);
    let work = answer.downcast_ref::<Option<WorkLease>>().and_then(Option::as_ref);
    let turn = turn.map(|turn| (turn.token.clone(), None));
    turn.or_else(|| work.map(|work| (work.token.clone(), work.session.clone())))
}

impl<'a> Undelivered<'a> {
    fn of<T: 'static>(wire: &'a Wire, answer: &Result<T, ProviderError>) -> Self {
        Self { wire, lease: granted(answer) }
    }

    fn arrives(mut self) {
        self.lease = None;
    }
}

impl Drop for Undelivered<'_> {
    fn drop(&mut self) {
        let Some((token, claimed)) = self.lease.take().filter(|_| !self.wire.life.has_ended()) else {
            return;
        };
        let store = Arc::clone(&self.wire.inner);
        let mut taking = Box::pin(async move {
            // A lease that cannot be taken back ends by itself.
            let _answer = store.take_back(&token, claimed.as_ref()).await;
        });
        let has_waited = taking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        if let (true, Ok(process)) = (has_waited, Handle::try_current()) {
            drop(process.spawn(taking));
        }
    }
}

fn unreachable(method: &'static str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, method, "the line is cut")
}

/// Tells whether a call needs room on the disk.
fn writes(call: StoreCall<'_>) -> bool {
    match call {
        StoreCall::FetchTurn
        | StoreCall::CommitTurn
        | StoreCall::FetchWork
        | StoreCall::FinishWork
        | StoreCall::Renew(_)
        | StoreCall::Abandon(_)
        | StoreCall::EndTry
        | StoreCall::Excuse
        | StoreCall::Refuse
        | StoreCall::ReportWorker
        | StoreCall::DeleteEnded
        | StoreCall::RegisterNode
        | StoreCall::RenewSessions
        | StoreCall::ReleaseSessions
        | StoreCall::CleanupSessions
        | StoreCall::CleanupSessionTrails
        | StoreCall::Start
        | StoreCall::Send
        | StoreCall::EnqueueWork
        | StoreCall::AppendHistory
        | StoreCall::RetrySetAside
        | StoreCall::DropSetAside => true,
        StoreCall::Workers
        | StoreCall::Gauges
        | StoreCall::Sessions
        | StoreCall::Session
        | StoreCall::SessionTrail
        | StoreCall::Wait
        | StoreCall::State
        | StoreCall::Instances
        | StoreCall::ReadHistory
        | StoreCall::KvValue
        | StoreCall::KvValues
        | StoreCall::Stats
        | StoreCall::SetAside
        | StoreCall::TurnOf
        | StoreCall::WorkOf
        | StoreCall::StartOf
        | StoreCall::OldestWaiting => false,
    }
}

/// Tells whether a lease, a name or nothing at all decides what a second call does: messages would be sent
/// twice.
fn is_guarded(call: StoreCall<'_>) -> bool {
    !matches!(call, StoreCall::Start | StoreCall::Send | StoreCall::EnqueueWork | StoreCall::AppendHistory)
}

forward_store!(Wire { inner: inner, repeat: pass, admin: desk });
