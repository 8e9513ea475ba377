//! Rebuilding the state of a session that an activity did not find, and running the activity again (D36).

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::is_session_lost;

use super::context::ActivityInfo;
use super::error::ActivityError;
use super::run::{ActivityRun, Invocation, RunEnd};
use crate::dispatch::backoff::Backoff;
use crate::handler::ActivityHandler;
use crate::session::{self, Session, SessionRecoveryPolicy};

/// How the code of an activity ended, and its task if that may still run.
pub(super) struct Ended {
    pub(super) end: RunEnd,
    pub(super) running: Option<Invocation>,
}

impl Ended {
    fn failed(error: ActivityError) -> Self {
        Self { end: RunEnd::Returned(Err(error)), running: None }
    }
}

/// What one try to rebuild led to.
enum Rebuild {
    /// The state was rebuilt, by this activity or by another one of the session.
    Rebuilt,
    /// The rebuild activity failed.
    Failed(String),
    /// The session was detached from this process.
    Detached,
    /// The activity is to stop.
    Stopped(Ended),
}

impl ActivityRun<'_> {
    /// Runs the code. If it says that the state of its session is lost, has the state rebuilt and runs the
    /// code again, as the policy says.
    pub(super) async fn run_code(&self, handler: &Arc<dyn ActivityHandler>) -> Ended {
        let mut left = self.recovery().map_or(0, |(_, policy)| policy.max_rebuilds);
        loop {
            let seen = self.info.session.as_ref().map_or(0, Session::rebuilds);
            let lost = match self.call(handler, &self.info).await {
                Ended { end: RunEnd::Returned(Err(lost)), .. }
                    if is_session_lost(lost.message()) && !lost.is_terminal() =>
                {
                    lost
                }
                ended => return ended,
            };
            let Some((session, policy)) = self.recovery() else { return Ended::failed(lost) };
            if let Err(ended) = self.recover(session, policy, seen, &lost, &mut left).await {
                return ended;
            }
        }
    }

    /// The policy of recovery and the session of this activity, if it has both.
    fn recovery(&self) -> Option<(&Session, &SessionRecoveryPolicy)> {
        self.info.session.as_ref().zip(self.shared.plan.session_recovery.as_ref())
    }

    /// Rebuilds the state until that succeeds. The error is how the activity ends otherwise.
    async fn recover(
        &self,
        session: &Session,
        policy: &SessionRecoveryPolicy,
        seen: u64,
        lost: &ActivityError,
        left: &mut u32,
    ) -> Result<(), Ended> {
        let name = policy.rebuild_activity.as_str();
        let mut backoff = Backoff::new(self.shared.seed);
        let mut why = format!("rebuilt by '{name}' {} times in vain", policy.max_rebuilds);
        while *left > 0 {
            *left -= 1;
            match self.rebuild(session, name, seen).await {
                Rebuild::Rebuilt => return Ok(()),
                Rebuild::Failed(error) => {
                    why = format!("the rebuild activity '{name}' failed: {error}");
                    if *left > 0 {
                        self.wait_for_next_rebuild(backoff.next()).await?;
                    }
                }
                Rebuild::Detached => {
                    why = "the session was detached from this process".to_owned();
                    break;
                }
                Rebuild::Stopped(ended) => return Err(ended),
            }
        }
        self.shared.metrics().record_session_recovery_given_up();
        tracing::warn!(
            target: "steadfast::runtime",
            session_id = session.id(),
            instance = %self.info.instance,
            epoch = session.epoch(),
            activity = %self.info.activity_name,
            why,
            "the state of a session is not restored; the activity fails"
        );
        Err(Ended::failed(lost.clone().because(&why)))
    }

    /// Waits between two rebuilds: what a rebuild needs may be away for a moment.
    async fn wait_for_next_rebuild(&self, wait: Duration) -> Result<(), Ended> {
        let stopped = |end| Err(Ended { end, running: None });
        tokio::select! {
            biased;
            () = self.cancellation.token.cancelled() => stopped(RunEnd::Cancelled),
            () = self.shared.abort.cancelled() => stopped(RunEnd::Aborted),
            () = self.shared.plan.clock.sleep(wait) => Ok(()),
        }
    }

    /// Rebuilds the state of the session once, unless another activity has done so since `seen`.
    async fn rebuild(&self, session: &Session, name: &str, seen: u64) -> Rebuild {
        let stopped = |end| Rebuild::Stopped(Ended { end, running: None });
        let _one_at_a_time = tokio::select! {
            biased;
            guard = session.one_rebuild() => guard,
            () = self.cancellation.token.cancelled() => return stopped(RunEnd::Cancelled),
            () = self.shared.abort.cancelled() => return stopped(RunEnd::Aborted),
        };
        if !session::may_serve(self.shared, session) {
            return Rebuild::Detached;
        }
        if session.rebuilds() > seen {
            return Rebuild::Rebuilt;
        }
        let Some((_, handler)) = self.shared.activities.resolve_handler(name) else {
            return Rebuild::Failed("it is not registered".to_owned());
        };
        tracing::info!(
            target: "steadfast::runtime",
            session_id = session.id(),
            instance = %self.info.instance,
            epoch = session.epoch(),
            activity = %self.info.activity_name,
            rebuild_activity = name,
            "the state of a session is rebuilt"
        );
        let info = ActivityInfo { activity_name: name.to_owned(), is_rebuild: true, ..(*self.info).clone() };
        let ended = self.call(&handler, &Arc::new(info)).await;
        match ended.end {
            RunEnd::Returned(Ok(_)) => {
                session.rebuilt();
                self.shared.metrics().record_session_rebuild("success");
                // The session may have been lost meanwhile: then its activity may not begin here.
                if session::may_serve(self.shared, session) { Rebuild::Rebuilt } else { Rebuild::Detached }
            }
            RunEnd::Returned(Err(error)) => {
                self.shared.metrics().record_session_rebuild("failed");
                let is_here = session::may_serve(self.shared, session);
                if is_here { Rebuild::Failed(error.into_message()) } else { Rebuild::Detached }
            }
            RunEnd::Cancelled | RunEnd::Aborted => Rebuild::Stopped(ended),
        }
    }
}
