//! Decorators: a store around another store, for code that wants to see, time or disturb every call.

/// Names one call of a [`Store`](crate::Store), for the function that a decorator puts around all calls.
///
/// There is one variant for each asynchronous method, so a decorator that treats calls differently matches
/// exhaustively and does not compile when a method is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the method of the same name")]
pub enum StoreCall<'a> {
    FetchTurn,
    CommitTurn,
    FetchWork,
    FinishWork,
    /// Carries the token, because the lease of a turn and the lease of work may be treated differently.
    Renew(&'a crate::LeaseToken),
    /// Carries the token, as [`Renew`](Self::Renew) does.
    Abandon(&'a crate::LeaseToken),
    EndTry,
    Excuse,
    Refuse,
    ReportWorker,
    Workers,
    DeleteEnded,
    Gauges,
    RegisterNode,
    RenewSessions,
    /// Of both methods that release sessions, with and without a reason.
    ReleaseSessions,
    CleanupSessions,
    Sessions,
    Session,
    SessionTrail,
    CleanupSessionTrails,
    Start,
    Send,
    EnqueueWork,
    Wait,
    State,
    Instances,
    ReadHistory,
    AppendHistory,
    KvValue,
    KvValues,
    Stats,
    SetAside,
    RetrySetAside,
    DropSetAside,
    TurnOf,
    WorkOf,
    StartOf,
    OldestWaiting,
}

impl StoreCall<'_> {
    /// Returns the name of the method, such as `fetch_turn`.
    pub fn method(self) -> &'static str {
        match self {
            Self::FetchTurn => "fetch_turn",
            Self::CommitTurn => "commit_turn",
            Self::FetchWork => "fetch_work",
            Self::FinishWork => "finish_work",
            Self::Renew(_) => "renew",
            Self::Abandon(_) => "abandon",
            Self::EndTry => "end_try",
            Self::Excuse => "excuse",
            Self::Refuse => "refuse",
            Self::ReportWorker => "report_worker",
            Self::Workers => "workers",
            Self::DeleteEnded => "delete_ended",
            Self::Gauges => "gauges",
            Self::RegisterNode => "register_node",
            Self::RenewSessions => "renew_sessions",
            Self::ReleaseSessions => "release_sessions",
            Self::CleanupSessions => "cleanup_sessions",
            Self::Sessions => "sessions",
            Self::Session => "session",
            Self::SessionTrail => "session_trail",
            Self::CleanupSessionTrails => "cleanup_session_trails",
            Self::Start => "start",
            Self::Send => "send",
            Self::EnqueueWork => "enqueue_work",
            Self::Wait => "wait",
            Self::State => "state",
            Self::Instances => "instances",
            Self::ReadHistory => "read_history",
            Self::AppendHistory => "append_history",
            Self::KvValue => "kv_value",
            Self::KvValues => "kv_values",
            Self::Stats => "stats",
            Self::SetAside => "set_aside",
            Self::RetrySetAside => "retry_set_aside",
            Self::DropSetAside => "drop_set_aside",
            Self::TurnOf => "turn_of",
            Self::WorkOf => "work_of",
            Self::StartOf => "start_of",
            Self::OldestWaiting => "oldest_waiting",
        }
    }
}

/// Implements [`Store`](crate::Store) for a decorator.
///
/// `inner` names the field with the store that is decorated, an `Arc<dyn Store>`. `around` names a method of
/// the decorator that is given the [`StoreCall`] and the future of the call on the inner store. The future
/// does nothing until it is awaited: a decorator that does not await it suppresses the call. The methods that
/// are not asynchronous (`name`, `version`, `admin`, `supports_owned_sessions`, `keeps_tries`) answer what
/// the inner store answers.
///
/// ```
/// use std::future::Future;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use steadfast_store::{ProviderError, Store, StoreCall, forward_store};
///
/// /// Counts the commits of a store.
/// struct Counting {
///     inner: Arc<dyn Store>,
///     commits: AtomicU64,
/// }
///
/// impl Counting {
///     async fn pass<T>(
///         &self,
///         call: StoreCall<'_>,
///         future: impl Future<Output = Result<T, ProviderError>> + Send,
///     ) -> Result<T, ProviderError> {
///         if call == StoreCall::CommitTurn {
///             self.commits.fetch_add(1, Ordering::Relaxed);
///         }
///         future.await
///     }
/// }
///
/// forward_store!(Counting { inner: inner, around: pass });
/// ```
///
/// With `repeat` in the place of `around` the method is given a function that makes the future of the call,
/// as often as it likes: a test can carry one call out twice, as a proxy does that loses an answer and asks
/// again.
///
/// With `admin: method` behind it, that method of the decorator answers `admin`: for a decorator that stands
/// around the calls of management too.
#[macro_export]
macro_rules! forward_store {
    ($decorator:ty { inner: $inner:ident, $how:ident: $around:ident $(, admin: $admin:ident)? }) => {
        $crate::forward_store! {
            @methods $decorator, $inner, $how, $around $(, $admin)?;
            FetchTurn fetch_turn(request: $crate::TurnRequest<'_>) -> Option<$crate::TurnLease>;
            CommitTurn commit_turn(lease: &$crate::LeaseToken, commit: $crate::TurnCommit)
                -> $crate::Committed;
            FetchWork fetch_work(request: $crate::WorkRequest) -> Option<$crate::WorkLease>;
            FinishWork finish_work(lease: &$crate::LeaseToken, outcome: $crate::Outcome) -> ();
            Renew(lease) renew(lease: &$crate::LeaseToken, extend_for: ::std::time::Duration) -> ();
            Abandon(lease) abandon(lease: &$crate::LeaseToken, how: $crate::Abandon) -> ();
            EndTry end_try(lease: &$crate::LeaseToken, ended: $crate::EndedTry) -> ();
            Excuse excuse(lease: &$crate::LeaseToken) -> bool;
            Refuse refuse(lease: &$crate::LeaseToken, refusal: $crate::Refusal) -> $crate::Refused;
            ReportWorker report_worker(report: &$crate::WorkerReport) -> ();
            Workers workers(after: Option<&$crate::WorkerId>) -> Vec<$crate::WorkerInfo>;
            DeleteEnded delete_ended(ended_for: ::std::time::Duration, limit: u32)
                -> $crate::DeleteInstanceResult;
            Gauges gauges() -> $crate::Gauges;
            RegisterNode register_node(start: &$crate::NodeStart) -> $crate::NodeRegistration;
            RenewSessions renew_sessions(request: $crate::RenewSessions) -> $crate::SessionsRenewed;
            ReleaseSessions release_sessions(owner: &$crate::Owner, sessions: &[$crate::SessionRef])
                -> Vec<$crate::SessionRef>;
            ReleaseSessions release_sessions_because(
                owner: &$crate::Owner, sessions: &[$crate::SessionRef], reason: $crate::ReleaseReason
            ) -> Vec<$crate::SessionRef>;
            CleanupSessions cleanup_sessions() -> usize;
            Sessions sessions(after: Option<&$crate::forwarded::SessionKey>) -> Vec<$crate::SessionInfo>;
            Session session(key: &$crate::forwarded::SessionKey) -> Option<$crate::SessionInfo>;
            SessionTrail session_trail(key: &$crate::forwarded::SessionKey)
                -> Vec<$crate::SessionTrailEntry>;
            CleanupSessionTrails cleanup_session_trails(retention: ::std::time::Duration) -> usize;
            Start start(start: $crate::Envelope, also: Vec<$crate::Envelope>) -> $crate::Started;
            Send send(messages: Vec<$crate::Envelope>) -> ();
            EnqueueWork enqueue_work(work: $crate::NewWork) -> ();
            Wait wait(what: $crate::WaitFor<'_>, timeout: ::std::time::Duration) -> $crate::Waited;
            State state(instance: &str) -> Option<$crate::InstanceState>;
            Instances instances(query: &$crate::InstanceQuery) -> $crate::InstancePage;
            ReadHistory read_history(instance: &str, execution_id: Option<u64>)
                -> Vec<$crate::forwarded::Event>;
            AppendHistory append_history(
                instance: &str, execution_id: u64, events: Vec<$crate::forwarded::Event>
            ) -> ();
            KvValue kv_value(instance: &str, key: &str) -> Option<String>;
            KvValues kv_values(instance: &str) -> ::std::collections::HashMap<String, String>;
            Stats stats(instance: &str) -> Option<$crate::forwarded::SystemStats>;
            SetAside set_aside(after: Option<u64>) -> Vec<$crate::SetAside>;
            RetrySetAside retry_set_aside(id: u64) -> ();
            DropSetAside drop_set_aside(id: u64) -> ();
            TurnOf turn_of(instance: &str) -> Option<$crate::TurnState>;
            WorkOf work_of(instance: &str, execution_id: u64) -> Vec<$crate::WorkState>;
            StartOf start_of(instance: &str) -> Option<$crate::WaitingStart>;
            OldestWaiting oldest_waiting() -> $crate::OldestWaiting;
        }
    };
    (
        @methods $decorator:ty, $inner:ident, $how:ident, $around:ident $(, $admin:ident)?;
        $($call:ident $(($token:ident))? $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+
    ) => {
        #[$crate::forwarded::async_trait]
        impl $crate::Store for $decorator {
            fn name(&self) -> &str {
                $crate::Store::name(&*self.$inner)
            }

            fn version(&self) -> &str {
                $crate::Store::version(&*self.$inner)
            }

            fn admin(&self) -> Option<&dyn $crate::ProviderAdmin> {
                $crate::forward_store!(@admin self, $inner $(, $admin)?)
            }

            fn supports_owned_sessions(&self) -> bool {
                $crate::Store::supports_owned_sessions(&*self.$inner)
            }

            fn keeps_tries(&self) -> bool {
                $crate::Store::keeps_tries(&*self.$inner)
            }

            $(async fn $method(&self $(, $argument: $type)*) -> Result<$answer, $crate::ProviderError> {
                let named = $crate::StoreCall::$call $(($token))?;
                $crate::forward_store!(@call $how, self, $inner, $around, named, $method($($argument),*))
            })+
        }
    };
    (@admin $self:ident, $inner:ident) => { $crate::Store::admin(&*$self.$inner) };
    (@admin $self:ident, $inner:ident, $admin:ident) => { $self.$admin() };
    (
        @call around, $self:ident, $inner:ident, $around:ident, $named:ident,
        $method:ident($($argument:ident),*)
    ) => {{
        let call = $crate::Store::$method(&*$self.$inner $(, $argument)*);
        $self.$around($named, call).await
    }};
    (
        @call repeat, $self:ident, $inner:ident, $around:ident, $named:ident,
        $method:ident($($argument:ident),*)
    ) => {{
        let call = || {
            $crate::Store::$method(&*$self.$inner $(, ::std::clone::Clone::clone(&$argument))*)
        };
        $self.$around($named, call).await
    }};
}

/// Items that the code generated by [`forward_store!`](crate::forward_store) refers to; not for other use.
#[doc(hidden)]
pub mod forwarded {
    pub use async_trait::async_trait;
    pub use steadfast_core::{Event, SessionKey, SystemStats};
}
