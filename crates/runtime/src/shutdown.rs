//! The end of a runtime: its time runs, what still runs is stopped, and the call returns although code of the
//! application may hold its thread (G14).

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Clock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::dispatch::ABANDON_TIME;
use crate::invocations::Invocations;
use crate::runtime::RuntimeShared;

/// How long a shutdown waits for aborted code of the application to be dropped. Code that does not hold its
/// thread is dropped at once.
const DROP_TIME: Duration = Duration::from_millis(100);

/// The time of one shutdown. It holds no store.
#[derive(Clone)]
struct ShutdownTime {
    timeout: Duration,
    /// When the time is up, by the monotonic clock.
    is_up: Duration,
    tasks: TaskTracker,
    invocations: Invocations,
    /// How long tasks may take after the time is up, until they are left behind.
    patience: Duration,
    /// Cancelled when the time is up.
    abort: CancellationToken,
    /// Cancelled when the call must return, whatever still runs.
    must_return: CancellationToken,
    clock: Arc<dyn Clock>,
}

/// Waits until all tasks of a runtime that stops have ended. After `timeout` those that still run are
/// stopped; a little later it returns although code of the application runs on, and names that code.
pub(crate) async fn wait(shared: &RuntimeShared, tokio: &tokio::runtime::Handle, timeout: Duration) {
    shared.invocations.close();
    if timeout.is_zero() {
        shared.abort.cancel();
    }
    let must_return = CancellationToken::new();
    let time = ShutdownTime {
        timeout,
        is_up: shared.plan.clock.monotonic().saturating_add(timeout),
        patience: patience(shared),
        tasks: shared.tasks.clone(),
        invocations: shared.invocations.clone(),
        abort: shared.abort.clone(),
        must_return: must_return.clone(),
        clock: Arc::clone(&shared.plan.clock),
    };
    // This call may be awaited outside tokio, where no timer runs, or be dropped, so a task lets the time
    // run. If the application blocks every thread of tokio that task does not run either, so a thread does
    // the same. Time that passes only when it is told needs no thread of its own.
    tokio.spawn(time.clone().run(Telling::Log));
    if shared.plan.clock.passes_by_itself() {
        time.run_on_a_thread();
    }
    let ended = async {
        shared.tasks.wait().await;
        shared.invocations.wait().await;
        shared.worker_row.until_stop_is_reported().await;
    };
    tokio::select! {
        biased;
        () = ended => {}
        () = must_return.cancelled() => {
            warn_of_the_rest(&shared.invocations.names());
        }
    }
}

/// Says what is left behind: code of the application, by name, or calls that the store has not answered.
fn warn_of_the_rest(names: &[String]) {
    if names.is_empty() {
        tracing::warn!(
            target: "steadfast::runtime",
            "the runtime has ended, and the store has not answered all of its calls; what they were to give \
             back is free when its lease has ended"
        );
        return;
    }
    tracing::warn!(
        target: "steadfast::runtime",
        left = names.join(", "),
        "the runtime has ended, and code of the application still runs; does it block its thread?"
    );
}

/// Whether a shutdown that takes too long is logged: the task and the thread do the same, and one says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    Log,
    Silent,
}

/// Returns how long tasks may take after the time of a shutdown is up: slots abandon their leases, then
/// sessions are detached, each with a call of a hook.
fn patience(shared: &RuntimeShared) -> Duration {
    let plan = &shared.plan;
    let hooks = if plan.session_hooks.is_some() { plan.session_hook_timeout } else { Duration::ZERO };
    hooks.saturating_mul(2).saturating_add(ABANDON_TIME + DROP_TIME)
}

impl ShutdownTime {
    /// Lets the time run on a thread of its own. A machine that has no thread left does without.
    fn run_on_a_thread(self) {
        let run = move || {
            let timers = tokio::runtime::Builder::new_current_thread().enable_time().build();
            match timers {
                Ok(timers) => timers.block_on(self.run(Telling::Silent)),
                Err(error) => {
                    tracing::debug!(target: "steadfast::runtime", %error, "no timer for the shutdown");
                }
            }
        };
        let thread = std::thread::Builder::new().name("steadfast-shutdown".to_owned()).spawn(run);
        if let Err(error) = thread {
            tracing::debug!(target: "steadfast::runtime", %error, "no thread for the shutdown");
        }
    }

    async fn run(self, telling: Telling) {
        let Self { timeout, is_up, patience, tasks, invocations, abort, must_return, clock } = self;
        tokio::select! {
            biased;
            () = tasks.wait() => {}
            () = clock.sleep_until(is_up) => {
                if telling == Telling::Log && !timeout.is_zero() {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        ?timeout,
                        "shutdown took too long; what still runs is given back"
                    );
                }
                abort.cancel();
            }
        }
        tokio::select! {
            biased;
            () = tasks.wait() => {}
            () = clock.sleep(patience) => {}
        }
        tokio::select! {
            biased;
            () = invocations.wait() => {}
            () = clock.sleep(DROP_TIME) => must_return.cancel(),
        }
        if !tasks.is_empty() {
            must_return.cancel();
        }
    }
}
