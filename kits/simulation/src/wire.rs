//! The wire between a process and the store: calls take time, fail, and lose their answers.

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast_audit::FaultKind;
use steadfast_store::{ProviderError, ProviderErrorKind, Store, StoreCall, forward_store};
use steadfast_testing::program::dice::Dice;

use crate::{
    journal::{Journal, Noted},
    process::Life,
    time::WorldTime,
};

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// It has no effect and fails.
    Fails(ProviderErrorKind),
    /// It has its effect, and an error comes instead of the answer.
    LosesAnswer(ProviderErrorKind),
    /// The answer comes so much later.
    Late(Duration),
    /// The process dies before the call has its effect.
    DiesBefore,
    /// The process dies after the call had its effect, before the answer.
    DiesAfter,
}

impl Disturbance {
    fn fault(self) -> FaultKind {
        match self {
            Self::Fails(_) => FaultKind::Failed,
            Self::LosesAnswer(_) => FaultKind::Unanswered,
            Self::Late(_) => FaultKind::Late,
            Self::DiesBefore | Self::DiesAfter => FaultKind::Killed,
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Self::Late(by) => by,
            Self::Fails(_) | Self::LosesAnswer(_) | Self::DiesBefore | Self::DiesAfter => Duration::ZERO,
        }
    }
}

/// A disturbance that waits for its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The method that it is for; `None` is any.
    pub method: Option<&'static str>,
    /// How many such calls pass before it.
    pub skip: u32,
    /// What happens.
    pub what: Disturbance,
}

/// The line of one process, which outlives the process. Clones share it.
#[derive(Clone, Debug)]
pub struct Line(Arc<Mutex<Condition>>);

#[derive(Debug)]
struct Condition {
    dice: Dice,
    down: bool,
    /// How much longer each call takes.
    slow: Duration,
    planned: Vec<Planned>,
}

impl Line {
    /// Makes a line without trouble, whose delays come from the seed.
    pub fn new(seed: u64) -> Self {
        let condition =
            Condition { dice: Dice::new(seed), down: false, slow: Duration::ZERO, planned: Vec::new() };
        Self(Arc::new(Mutex::new(condition)))
    }

    /// Cuts the line, or mends it.
    pub fn cut(&self, down: bool) {
        self.lock().down = down;
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
        condition.down = false;
        condition.slow = Duration::ZERO;
        condition.planned.clear();
    }

    fn is_down(&self) -> bool {
        self.lock().down
    }

    /// Decides about the next call: how long it is on its way, and what happens to it.
    fn decide(&self, method: &'static str) -> (Duration, Option<Disturbance>) {
        let mut condition = self.lock();
        let micros = 50 + condition.dice.roll() % 2_000;
        let delay = condition.slow.saturating_add(Duration::from_micros(micros));
        let mut met = None;
        condition.planned.retain_mut(|planned| {
            if met.is_some() || planned.method.is_some_and(|named| named != method) {
                return true;
            }
            if planned.skip > 0 {
                planned.skip -= 1;
                return true;
            }
            met = Some(planned.what);
            false
        });
        (delay, met)
    }

    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store as one process reaches it.
pub struct Wire {
    inner: Arc<dyn Store>,
    process: String,
    life: Life,
    line: Line,
    time: WorldTime,
    journal: Journal,
}

impl Wire {
    /// Connects a process with the store.
    pub fn new(
        inner: Arc<dyn Store>,
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

    async fn pass<T>(
        &self,
        call: StoreCall<'_>,
        future: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> Result<T, ProviderError> {
        let method = call.method();
        let (delay, disturbance) = self.line.decide(method);
        self.wait(delay).await;
        if let Some(disturbance) = disturbance {
            self.journal.fault(disturbance.fault(), Some(&self.process), disturbance.lasts());
        }
        let answer = match disturbance {
            _ if self.line.is_down() => Err(unreachable(method)),
            None => self.answer(method, future).await,
            Some(Disturbance::Fails(kind)) => Err(ProviderError::new(kind, method, "simulated")),
            Some(Disturbance::LosesAnswer(kind)) => {
                self.answer(method, future).await.and(Err(ProviderError::new(kind, method, "simulated")))
            }
            Some(Disturbance::Late(by)) => {
                let answer = self.answer(method, future).await;
                self.wait(by).await;
                answer
            }
            Some(Disturbance::DiesBefore) => self.die().await,
            Some(Disturbance::DiesAfter) => {
                let _lost = self.answer(method, future).await;
                self.die().await
            }
        };
        let told = answer.as_ref().map_or_else(|error| format!("{:?}", error.kind), |_| "ok".to_owned());
        self.journal.note(Noted::Call { process: self.process.clone(), method, answer: told });
        answer
    }

    /// Lets the store answer. If the line is cut by then, the answer is lost.
    async fn answer<T>(
        &self,
        method: &'static str,
        future: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.heard().await;
        let answer = future.await;
        self.heard().await;
        if self.line.is_down() { Err(unreachable(method)) } else { answer }
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
}

fn unreachable(method: &'static str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, method, "the line is cut")
}

forward_store!(Wire { inner: inner, around: pass });
