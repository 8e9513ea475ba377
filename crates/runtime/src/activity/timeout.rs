//! The time that one try may take.

use std::sync::Arc;
use std::time::Duration;

use super::context::CancelReason;
use super::error::ActivityError;
use super::rebuild::Ended;
use super::run::{ActivityRun, Invocation};
use crate::handler::ActivityHandler;

/// The shortest time between two warnings about a try that cannot be stopped.
const BLOCKED_LOOK: Duration = Duration::from_secs(1);

impl ActivityRun<'_> {
    /// Runs the code, and cancels it if the try takes longer than its policy allows.
    pub(super) async fn run_in_time(&self, handler: &Arc<dyn ActivityHandler>) -> Ended {
        let code = self.run_code(handler);
        let Some(timeout) = self.tries.timeout() else { return code.await };
        tokio::pin!(code);
        tokio::select! {
            biased;
            ended = &mut code => return ended,
            () = self.shared.plan.clock.sleep(timeout) => {}
        }
        self.cancellation.cancel(CancelReason::TimedOut);
        code.await
    }

    /// Tells whether the activity was cancelled because its try took too long.
    pub(super) fn has_timed_out(&self) -> bool {
        self.cancellation.reason() == Some(CancelReason::TimedOut)
    }

    /// Waits until the code of a try that took too long has ended, and records that the try failed. The next
    /// try must not run beside it: so the lease is renewed until then, however long that takes.
    pub(super) async fn end_timed_out(&self, running: Option<Invocation>) -> &'static str {
        if let Some(running) = running
            && !self.until_ended(running).await
        {
            // The lease is lost, or the time of a shutdown is up: the try is made again.
            self.shared.abandon_uncounted(&self.token, None).await;
            return "cancelled";
        }
        let text = self.tries.timeout_text(&self.info.activity_name).unwrap_or_default();
        self.fail(ActivityError::timed_out(text)).await
    }

    /// Waits until the code has ended: by itself, or aborted after `activity_cancellation_grace_period`. Code
    /// that blocks its thread cannot be aborted, and is waited for. Returns `false` if the lease is lost, or
    /// the time of a shutdown is up.
    async fn until_ended(&self, mut running: Invocation) -> bool {
        let (clock, grace) = (&self.shared.plan.clock, self.shared.plan.grace);
        let mut patience = grace;
        let mut waited = 0_u32;
        loop {
            tokio::select! {
                biased;
                // The result is not used: the try took too long.
                _ = &mut running => return true,
                () = self.lost.cancelled() => return false,
                () = self.shared.abort.cancelled() => return false,
                () = clock.sleep(patience) => {}
            }
            running.abort();
            patience = grace.max(BLOCKED_LOOK);
            waited = waited.saturating_add(1);
            if waited > 1 {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance = %self.info.instance,
                    activity = %self.info.activity_name,
                    attempt = self.info.attempt,
                    "a try that took too long blocks its thread and cannot be stopped; it keeps its try \
                     until it ends"
                );
            }
        }
    }
}
