//! A store that fails, hangs or loses answers on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_store::{ProviderError, Store, StoreCall, forward_store};
use tokio::sync::Semaphore;

/// Says what goes wrong in a [`Faulty`] store, and counts its calls. Clones share one list.
///
/// Operations are named like the methods of [`Store`]: `fetch_turn`, `commit_turn`, `fetch_work`,
/// `finish_work`, `renew`, `abandon`, …
#[derive(Debug, Clone, Default)]
pub struct Faults {
    shared: Arc<Mutex<Trouble>>,
}

#[derive(Debug, Default)]
struct Trouble {
    rules: Vec<Rule>,
    calls: BTreeMap<&'static str, u64>,
    /// Counts the calls to abandon or refuse a lease that were answered.
    abandoned: u64,
}

#[derive(Debug)]
struct Rule {
    /// `None` stands for every operation.
    operation: Option<&'static str>,
    fault: Fault,
    /// How many more calls the fault happens to.
    times: u64,
}

#[derive(Debug, Clone)]
enum Fault {
    /// The call has no effect and answers this.
    Refuse(ProviderError),
    /// The call has its effect and answers this.
    LoseAnswer(ProviderError),
    /// The call has its effect, and its answer comes when the semaphore has a permit.
    HoldAnswer(Arc<Semaphore>),
    /// The call never answers.
    Hang,
    /// The call panics.
    Panic,
}

impl Faults {
    /// Makes the next `times` calls of an operation answer with this error, without an effect.
    pub fn refuse(&self, operation: &'static str, times: u64, error: ProviderError) {
        self.add(Some(operation), Fault::Refuse(error), times);
    }

    /// Makes the next `times` calls of an operation answer with this error although they have their effect.
    pub fn lose_answer(&self, operation: &'static str, times: u64, error: ProviderError) {
        self.add(Some(operation), Fault::LoseAnswer(error), times);
    }

    /// Makes the answer to the next call of an operation come late: the call has its effect at once, and
    /// answers when the returned semaphore gets a permit.
    pub fn hold_answer(&self, operation: &'static str) -> Arc<Semaphore> {
        let open = Arc::new(Semaphore::new(0));
        self.add(Some(operation), Fault::HoldAnswer(Arc::clone(&open)), 1);
        open
    }

    /// Makes the next `times` calls of an operation hang: they have no effect and never answer.
    pub fn hang(&self, operation: &'static str, times: u64) {
        self.add(Some(operation), Fault::Hang, times);
    }

    /// Makes the next `times` calls of an operation panic.
    pub fn panic(&self, operation: &'static str, times: u64) {
        self.add(Some(operation), Fault::Panic, times);
    }

    /// Makes every call of every operation fail with a retryable error until [`heal`](Self::heal).
    pub fn outage(&self) {
        let error = ProviderError::retryable("outage", "the store cannot be reached");
        self.add(None, Fault::Refuse(error), u64::MAX);
    }

    /// Forgets all faults; calls that hang stay so.
    pub fn heal(&self) {
        self.lock().rules.clear();
    }

    /// Counts the calls of an operation so far, those with a fault included.
    pub fn calls(&self, operation: &str) -> u64 {
        self.lock().calls.get(operation).copied().unwrap_or(0)
    }

    /// Makes the next attempt to give a lease back answer with this error, without an effect: to abandon it,
    /// or to refuse it for a missing handler.
    pub fn keep_lease(&self, error: &ProviderError) {
        for operation in ["abandon", "refuse"] {
            self.refuse(operation, 1, error.clone());
        }
    }

    /// Counts the calls so far that gave a lease back (abandoned or refused) and were answered, those with a
    /// fault included. A call under way does not count: its lease is still held, and ends if time passes.
    pub fn abandoned(&self) -> u64 {
        self.lock().abandoned
    }

    fn add(&self, operation: Option<&'static str>, fault: Fault, times: u64) {
        self.lock().rules.push(Rule { operation, fault, times });
    }

    fn meet(&self, operation: &'static str) -> Option<Fault> {
        let mut state = self.lock();
        *state.calls.entry(operation).or_insert(0) += 1;
        let rule = state
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.operation.is_none_or(|named| named == operation))?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Trouble> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that forwards every call to another one, except those that its [`Faults`] are for.
pub struct Faulty {
    inner: Arc<dyn Store>,
    faults: Faults,
}

impl Faulty {
    /// Wraps a store; the faults can be changed at any time through another clone of `faults`.
    pub fn new(inner: Arc<dyn Store>, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

impl Faulty {
    /// Lets a call through, unless it is to meet a fault.
    async fn meet<T>(
        &self,
        call: StoreCall<'_>,
        future: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let answer = match self.faults.meet(call.method()) {
            None => future.await,
            Some(Fault::Refuse(error)) => Err(error),
            Some(Fault::LoseAnswer(error)) => future.await.and(Err(error)),
            Some(Fault::HoldAnswer(open)) => {
                let answer = future.await;
                open.acquire().await.expect("the semaphore is never closed").forget();
                answer
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Panic) => panic!("'{}' was told to panic", call.method()),
        };
        if matches!(call.method(), "abandon" | "refuse") {
            self.faults.lock().abandoned += 1;
        }
        answer
    }
}

forward_store!(Faulty { inner: inner, around: meet });
