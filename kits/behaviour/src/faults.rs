//! A store in trouble, on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_store::{ProviderError, Store, StoreCall, forward_store};

/// Says what goes wrong in a [`Faulty`] store, and counts its calls. Clones share one list.
///
/// Operations are named like the methods of [`Store`]: `fetch_turn`, `commit_turn`, `fetch_work`, `finish_work`,
/// `renew`, `abandon`, …
#[derive(Debug, Clone, Default)]
pub struct Faults {
    shared: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    calls: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Rule {
    /// None is every operation.
    operation: Option<&'static str>,
    fault: Fault,
    /// How often it still happens.
    times: u64,
}

#[derive(Debug, Clone)]
enum Fault {
    /// The call has no effect and answers this.
    Refuse(ProviderError),
    /// The call has its effect and answers this.
    LoseAnswer(ProviderError),
    /// The call never answers.
    Hang,
    /// The call panics.
    Panic,
}

impl Faults {
    /// The next `times` calls of an operation have no effect and answer with this error.
    pub fn refuse(&self, operation: &'static str, times: u64, error: ProviderError) {
        self.add(Some(operation), Fault::Refuse(error), times);
    }

    /// The next `times` calls of an operation have their effect, but answer with this error.
    pub fn lose_answer(&self, operation: &'static str, times: u64, error: ProviderError) {
        self.add(Some(operation), Fault::LoseAnswer(error), times);
    }

    /// The next `times` calls of an operation never answer.
    pub fn hang(&self, operation: &'static str, times: u64) {
        self.add(Some(operation), Fault::Hang, times);
    }

    /// The next `times` calls of an operation panic.
    pub fn panic(&self, operation: &'static str, times: u64) {
        self.add(Some(operation), Fault::Panic, times);
    }

    /// Every call of every operation fails with a retryable error until [`heal`](Self::heal).
    pub fn outage(&self) {
        let error = ProviderError::retryable("outage", "the store cannot be reached");
        self.add(None, Fault::Refuse(error), u64::MAX);
    }

    /// Ends all trouble.
    pub fn heal(&self) {
        self.lock().rules.clear();
    }

    /// Counts the calls of an operation.
    pub fn calls(&self, operation: &str) -> u64 {
        self.lock().calls.get(operation).copied().unwrap_or(0)
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that is in trouble when told so.
pub struct Faulty {
    inner: Arc<dyn Store>,
    faults: Faults,
}

impl Faulty {
    /// Wraps a store.
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
        match self.faults.meet(call.method()) {
            None => future.await,
            Some(Fault::Refuse(error)) => Err(error),
            Some(Fault::LoseAnswer(error)) => future.await.and(Err(error)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Panic) => panic!("'{}' was told to panic", call.method()),
        }
    }
}

forward_store!(Faulty { inner: inner, around: meet });
