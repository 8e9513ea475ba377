//! An instrumented provider as a [`Store`].

use steadfast_store::{LeaseToken, ProviderError, Store, StoreCall, forward_store};

use super::Watched;

forward_store!(Watched<dyn Store> { inner: inner, around: measure });

impl Watched<dyn Store> {
    /// Runs a call and records what [`measured`] says for its kind.
    async fn measure<T>(
        &self,
        call: StoreCall<'_>,
        future: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        match measured(call) {
            Measured::Timed(operation) => self.timed(operation, future).await,
            Measured::Counted(operation) => self.counted(operation, future).await,
            Measured::Not => future.await,
        }
    }
}

/// What the metrics record of a call, under the name of the operation in the compatible crate.
enum Measured {
    /// How long the call took, and whether it failed.
    Timed(&'static str),
    /// Whether the call failed.
    Counted(&'static str),
    /// The call is not measured.
    Not,
}

fn measured(call: StoreCall<'_>) -> Measured {
    match call {
        StoreCall::FetchTurn => Measured::Timed("fetch_orchestration_item"),
        StoreCall::CommitTurn => Measured::Timed("ack_orchestration_item"),
        StoreCall::FetchWork => Measured::Timed("fetch_work_item"),
        StoreCall::FinishWork => Measured::Timed("ack_work_item"),
        StoreCall::Renew(LeaseToken::Turn(_)) => Measured::Counted("renew_orchestration_item_lock"),
        StoreCall::Renew(LeaseToken::Work(_)) => Measured::Counted("renew_work_item_lock"),
        StoreCall::Abandon(LeaseToken::Turn(_)) => Measured::Counted("abandon_orchestration_item"),
        StoreCall::Abandon(LeaseToken::Work(_)) => Measured::Counted("abandon_work_item"),
        StoreCall::EndTry => Measured::Counted("end_try"),
        StoreCall::Refuse => Measured::Counted("refuse"),
        StoreCall::RenewSessions => Measured::Timed("renew_session_lock"),
        StoreCall::CleanupSessions => Measured::Timed("cleanup_orphaned_sessions"),
        StoreCall::Start | StoreCall::Send => Measured::Timed("enqueue_orchestrator"),
        StoreCall::ReadHistory => Measured::Timed("read"),
        StoreCall::RegisterNode
        | StoreCall::Excuse
        | StoreCall::ReportWorker
        | StoreCall::Workers
        | StoreCall::DeleteEnded
        | StoreCall::Gauges
        | StoreCall::ReleaseSessions
        | StoreCall::Sessions
        | StoreCall::Session
        | StoreCall::SessionTrail
        | StoreCall::CleanupSessionTrails
        | StoreCall::EnqueueWork
        | StoreCall::Wait
        | StoreCall::State
        | StoreCall::Instances
        | StoreCall::AppendHistory
        | StoreCall::KvValue
        | StoreCall::KvValues
        | StoreCall::Stats
        | StoreCall::SetAside
        | StoreCall::RetrySetAside
        | StoreCall::DropSetAside
        | StoreCall::TurnOf
        | StoreCall::WorkOf
        | StoreCall::StartOf
        | StoreCall::OldestWaiting => Measured::Not,
    }
}
