//! A store that fails, hangs or loses answers on demand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steadfast::{Event, SessionKey, SystemStats};
use steadfast_store::{
    Abandon, Committed, Envelope, InstancePage, InstanceQuery, InstanceState, LeaseToken, NewWork,
    OldestWaiting, Outcome, Owner, ProviderAdmin, ProviderError, RenewSessions, SessionInfo, SessionRef,
    SessionsRenewed, SetAside, Started, Store, TurnCommit, TurnLease, TurnRequest, TurnState, WaitFor,
    Waited, WorkLease, WorkRequest, WorkState,
};

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

macro_rules! forward {
    ($($(#[$meta:meta])* async fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)+) => {
        #[async_trait]
        impl Store for Faulty {
            fn name(&self) -> &str {
                self.inner.name()
            }

            fn version(&self) -> &str {
                self.inner.version()
            }

            fn admin(&self) -> Option<&dyn ProviderAdmin> {
                self.inner.admin()
            }

            fn supports_owned_sessions(&self) -> bool {
                self.inner.supports_owned_sessions()
            }

            $(async fn $name(&self $(, $argument: $type)*) -> Result<$answer, ProviderError> {
                match self.faults.meet(stringify!($name)) {
                    None => self.inner.$name($($argument),*).await,
                    Some(Fault::Refuse(error)) => Err(error),
                    Some(Fault::LoseAnswer(error)) => self.inner.$name($($argument),*).await.and(Err(error)),
                    Some(Fault::Hang) => std::future::pending().await,
                    Some(Fault::Panic) => panic!("'{}' was told to panic", stringify!($name)),
                }
            })+
        }
    };
}

forward! {
    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Option<TurnLease>;
    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Committed;
    async fn fetch_work(&self, request: WorkRequest) -> Option<WorkLease>;
    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> ();
    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> ();
    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> ();
    async fn register_node(&self, node_id: &str) -> u64;
    async fn renew_sessions(&self, request: RenewSessions) -> SessionsRenewed;
    async fn release_sessions(&self, owner: &Owner, sessions: &[SessionRef]) -> Vec<SessionRef>;
    async fn cleanup_sessions(&self) -> usize;
    async fn sessions(&self, after: Option<&SessionKey>) -> Vec<SessionInfo>;
    async fn session(&self, key: &SessionKey) -> Option<SessionInfo>;
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Started;
    async fn send(&self, messages: Vec<Envelope>) -> ();
    async fn enqueue_work(&self, work: NewWork) -> ();
    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Waited;
    async fn state(&self, instance: &str) -> Option<InstanceState>;
    async fn instances(&self, query: &InstanceQuery) -> InstancePage;
    async fn read_history(&self, instance: &str, execution_id: Option<u64>) -> Vec<Event>;
    async fn append_history(&self, instance: &str, execution_id: u64, events: Vec<Event>) -> ();
    async fn kv_value(&self, instance: &str, key: &str) -> Option<String>;
    async fn kv_values(&self, instance: &str) -> HashMap<String, String>;
    async fn stats(&self, instance: &str) -> Option<SystemStats>;
    async fn set_aside(&self, after: Option<u64>) -> Vec<SetAside>;
    async fn retry_set_aside(&self, id: u64) -> ();
    async fn drop_set_aside(&self, id: u64) -> ();
    async fn turn_of(&self, instance: &str) -> Option<TurnState>;
    async fn work_of(&self, instance: &str, execution_id: u64) -> Vec<WorkState>;
    async fn oldest_waiting(&self) -> OldestWaiting;
}
