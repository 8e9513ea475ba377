//! Checks the options of a runtime, and derives from them the values that its loops use.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, Random, Sleep};
use steadfast_core::limits::MAX_NAME_BYTES;
use steadfast_core::replay::Options as ReplayOptions;
use steadfast_core::{DispatcherCapabilityFilter, SemverRange, TagFilter};

use crate::observability::ObservabilityConfig;
use crate::options::{OnMissingHandler, RuntimeOptions, UnregisteredBackoffConfig};
use crate::registry::ActivityRegistry;
use crate::session::{SessionHooks, SessionRecoveryPolicy};
use crate::turn::warm::WarmLimit;

/// Tells which option of a runtime is not valid, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// `session_idle_timeout` is too short: a session would become idle between two renewals of its activity.
    #[error(
        "session_idle_timeout ({idle:?}) must be longer than worker_lock_timeout minus \
         worker_lock_renewal_buffer ({renewal:?}): otherwise a session would be let go while its \
         activity runs"
    )]
    SessionIdleTimeout {
        /// The given `session_idle_timeout`.
        idle: Duration,
        /// `worker_lock_timeout` minus `worker_lock_renewal_buffer`, which it must exceed.
        renewal: Duration,
    },
    /// A time is zero: a lease would expire, or a hook or a turn be dropped, before it began.
    #[error("{option} must not be zero: give it some time, the default is {default:?}")]
    Zero {
        /// The name of the option.
        option: &'static str,
        /// The default of that option.
        default: Duration,
    },
    /// `worker_node_id` is the empty text.
    #[error("worker_node_id is empty: give the process a name, or leave the option out")]
    EmptyNodeId,
    /// `worker_node_id` is longer than a store can keep.
    #[error(
        "worker_node_id has {bytes} bytes, and at most {MAX_NAME_BYTES} are possible: give a shorter name"
    )]
    LongNodeId {
        /// The size of the given name.
        bytes: usize,
    },
    /// `build_id` is the empty text or contains NUL, which not every store can keep.
    #[error("build_id must not be empty or contain NUL: name the build, or leave the option out")]
    BuildId,
    /// The rebuild activity of `session_recovery` is not registered.
    #[error(
        "session_recovery names the rebuild activity '{name}', which is not registered: register it, or \
         leave the option out"
    )]
    RebuildActivity {
        /// The given name.
        name: String,
    },
    /// `max_rebuilds` of `session_recovery` is 0.
    #[error("max_rebuilds of session_recovery must be at least 1: to rebuild nothing, leave the option out")]
    MaxRebuilds,
}

/// The options as the loops use them.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) poll: Duration,
    pub(crate) min_poll: Duration,
    pub(crate) turn_slots: usize,
    pub(crate) worker_slots: usize,
    pub(crate) turn_lease: LeasePlan,
    pub(crate) work_lease: LeasePlan,
    pub(crate) session_lease: LeasePlan,
    pub(crate) session_idle: Duration,
    pub(crate) session_cleanup: Duration,
    pub(crate) session_trail: Duration,
    pub(crate) max_sessions: usize,
    pub(crate) max_attached_sessions: Option<usize>,
    pub(crate) session_untaken: Duration,
    pub(crate) release_on_shutdown: bool,
    pub(crate) session_hooks: Option<Arc<dyn SessionHooks>>,
    pub(crate) session_hook_timeout: Duration,
    pub(crate) session_recovery: Option<SessionRecoveryPolicy>,
    pub(crate) session_leak: Option<Duration>,
    pub(crate) node_id: Option<String>,
    pub(crate) tags: TagFilter,
    pub(crate) unregistered: UnregisteredBackoffConfig,
    pub(crate) on_missing_handler: OnMissingHandler,
    pub(crate) build_id: Option<String>,
    pub(crate) max_attempts: u32,
    pub(crate) grace: Duration,
    pub(crate) versions: SemverRange,
    pub(crate) filter: DispatcherCapabilityFilter,
    pub(crate) replay: ReplayOptions,
    pub(crate) warm: WarmLimit,
    pub(crate) max_turn_time: Duration,
    pub(crate) retention: Option<Duration>,
    pub(crate) observability: ObservabilityConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl Plan {
    /// Tells whether orchestrations stay in memory between their turns.
    pub(crate) fn keeps_warm(&self) -> bool {
        self.warm.executions > 0
    }

    /// How long after a renewal this process serves a session: nine tenths of the lease, so that it stops
    /// before another process may begin.
    pub(crate) fn session_proof(&self) -> Duration {
        self.session_lease.lasts.saturating_sub(self.session_lease.lasts / 10)
    }

    /// Tells the time by which the leases of sessions are counted: the monotonic clock, and how long the
    /// machine has slept. The monotonic clock stands still in a sleep, and the store of another machine does
    /// not.
    pub(crate) fn session_now(&self) -> Duration {
        self.clock.monotonic().saturating_add(self.clock.machine().slept)
    }

    /// Waits until [`session_now`](Self::session_now) reads `at`, later by as much as the machine sleeps
    /// meanwhile.
    pub(crate) fn sleep_until_session(&self, at: Duration) -> Sleep {
        self.clock.sleep(at.saturating_sub(self.session_now()))
    }

    /// How long after it was asked for a lease of work has not ended: nine tenths of its time, because the
    /// clock of the store may be the faster one.
    pub(crate) fn work_proof(&self) -> Duration {
        self.work_lease.lasts.saturating_sub(self.work_lease.lasts / 10)
    }

    /// How long a fetch that may bring work of sessions waits: half of that time, because the lease of a
    /// session that it brings is counted from the moment at which the fetch was sent.
    pub(crate) fn session_poll(&self) -> Duration {
        self.poll.min(self.session_proof() / 2)
    }
}

impl Plan {
    /// Checks the options that name registered code.
    pub(crate) fn check_registry(&self, activities: &ActivityRegistry) -> Result<(), OptionsError> {
        match &self.session_recovery {
            Some(policy) if activities.resolve_handler(&policy.rebuild_activity).is_none() => {
                Err(OptionsError::RebuildActivity { name: policy.rebuild_activity.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// How long a lease lasts, and the time between two renewals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeasePlan {
    pub(crate) lasts: Duration,
    pub(crate) renew_every: Duration,
}

impl LeasePlan {
    fn new(lasts: Duration, buffer: Duration) -> Self {
        Self { lasts, renew_every: renewal_interval(lasts, buffer) }
    }
}

/// Returns the time between two renewals: for leases of 15 s and more a buffer before their end, for shorter
/// ones half their time; never so long that one failed renewal would lose the lease.
fn renewal_interval(lasts: Duration, buffer: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    let interval = if lasts >= Duration::from_secs(15) {
        lasts.saturating_sub(buffer).max(SECOND)
    } else {
        Duration::from_secs((lasts.as_secs_f64() * 0.5).ceil() as u64).max(SECOND)
    };
    interval.min(lasts / 2).max(Duration::from_millis(1))
}

fn check_node_id(id: Option<&str>) -> Result<(), OptionsError> {
    match id.map(str::len) {
        Some(0) => Err(OptionsError::EmptyNodeId),
        Some(bytes) if bytes > MAX_NAME_BYTES => Err(OptionsError::LongNodeId { bytes }),
        Some(_) | None => Ok(()),
    }
}

impl TryFrom<RuntimeOptions> for Plan {
    type Error = OptionsError;

    fn try_from(options: RuntimeOptions) -> Result<Self, OptionsError> {
        refuse_zeros(&options)?;
        let renewal = options
            .worker_lock_timeout
            .checked_sub(options.worker_lock_renewal_buffer)
            .unwrap_or(Duration::from_secs(1));
        if options.session_idle_timeout <= renewal {
            return Err(OptionsError::SessionIdleTimeout { idle: options.session_idle_timeout, renewal });
        }
        check_node_id(options.worker_node_id.as_deref())?;
        if options.build_id.as_ref().is_some_and(|id| id.is_empty() || id.contains('\0')) {
            return Err(OptionsError::BuildId);
        }
        if options.session_recovery.as_ref().is_some_and(|policy| policy.max_rebuilds == 0) {
            return Err(OptionsError::MaxRebuilds);
        }
        let versions =
            options.supported_replay_versions.unwrap_or_else(SemverRange::default_for_current_build);
        Ok(Self {
            poll: options.dispatcher_long_poll_timeout,
            min_poll: options.dispatcher_min_poll_interval,
            turn_slots: options.orchestration_concurrency,
            worker_slots: options.worker_concurrency,
            turn_lease: LeasePlan::new(
                options.orchestrator_lock_timeout,
                options.orchestrator_lock_renewal_buffer,
            ),
            work_lease: LeasePlan::new(options.worker_lock_timeout, options.worker_lock_renewal_buffer),
            session_lease: LeasePlan::new(options.session_lock_timeout, options.session_lock_renewal_buffer),
            session_idle: options.session_idle_timeout,
            session_cleanup: options.session_cleanup_interval,
            session_trail: options.session_trail_retention,
            max_sessions: options.max_sessions_per_runtime,
            max_attached_sessions: options.max_attached_sessions,
            session_untaken: options
                .session_untaken_after
                .unwrap_or_else(|| options.session_lock_timeout.saturating_mul(2)),
            release_on_shutdown: options.release_sessions_on_shutdown,
            session_hooks: options.session_hooks,
            session_hook_timeout: options.session_hook_timeout,
            session_recovery: options.session_recovery,
            session_leak: options.session_leak_after,
            node_id: options.worker_node_id,
            tags: options.worker_tag_filter,
            unregistered: options.unregistered_backoff,
            on_missing_handler: options.on_missing_handler,
            build_id: options.build_id,
            max_attempts: options.max_attempts,
            grace: options.activity_cancellation_grace_period,
            filter: DispatcherCapabilityFilter { supported_duroxide_versions: vec![versions.clone()] },
            versions,
            replay: ReplayOptions {
                max_payload_bytes: options.max_payload_bytes,
                max_sessions: options.max_sessions_per_orchestration,
                require_open_sessions: options.require_open_sessions,
                owned_sessions: false,
                carry_forward_overflow: options.carry_forward_overflow,
            },
            warm: WarmLimit { executions: options.max_warm_orchestrations, bytes: options.max_warm_bytes },
            max_turn_time: options.max_turn_time,
            retention: options.retain_finished_for,
            observability: options.observability,
            clock: options.clock,
            random: options.random,
        })
    }
}

fn refuse_zeros(options: &RuntimeOptions) -> Result<(), OptionsError> {
    let defaults = RuntimeOptions::default();
    for (option, value, default) in [
        ("orchestrator_lock_timeout", options.orchestrator_lock_timeout, defaults.orchestrator_lock_timeout),
        ("worker_lock_timeout", options.worker_lock_timeout, defaults.worker_lock_timeout),
        ("session_lock_timeout", options.session_lock_timeout, defaults.session_lock_timeout),
        ("session_hook_timeout", options.session_hook_timeout, defaults.session_hook_timeout),
        ("max_turn_time", options.max_turn_time, defaults.max_turn_time),
        (
            "session_leak_after",
            options.session_leak_after.unwrap_or(Duration::MAX),
            defaults.session_leak_after.unwrap_or_default(),
        ),
    ] {
        if value.is_zero() {
            return Err(OptionsError::Zero { option, default });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn long_leases_are_renewed_a_buffer_before_their_end() {
        assert_eq!(renewal_interval(30 * SECOND, 15 * SECOND), 15 * SECOND);
        assert_eq!(renewal_interval(40 * SECOND, 25 * SECOND), 15 * SECOND);
    }

    #[test]
    fn a_lease_can_always_be_renewed_twice_in_its_time() {
        for lasts in [SECOND / 10, SECOND / 2, SECOND, 3 * SECOND, 14 * SECOND, 15 * SECOND, 30 * SECOND] {
            for buffer in [Duration::ZERO, SECOND, 5 * SECOND, 100 * SECOND] {
                assert!(renewal_interval(lasts, buffer) * 2 <= lasts, "{lasts:?} with {buffer:?}");
            }
        }
    }

    #[test]
    fn a_session_must_outlive_the_renewals_of_its_activity() {
        let options = RuntimeOptions { session_idle_timeout: 25 * SECOND, ..RuntimeOptions::default() };
        let error = Plan::try_from(options).expect_err("is refused");
        assert!(error.to_string().contains("session_idle_timeout"), "{error}");
        let options = RuntimeOptions { session_idle_timeout: 26 * SECOND, ..RuntimeOptions::default() };
        assert!(Plan::try_from(options).is_ok());
    }

    #[test]
    fn a_lease_that_ends_at_once_is_refused() {
        let options = RuntimeOptions { worker_lock_timeout: Duration::ZERO, ..RuntimeOptions::default() };
        assert_eq!(
            Plan::try_from(options).expect_err("is refused"),
            OptionsError::Zero { option: "worker_lock_timeout", default: 30 * SECOND }
        );
    }

    /// Durations of every size, those at the ends above all.
    fn durations() -> impl Strategy<Value = Duration> {
        prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::from_nanos(1)),
            Just(Duration::MAX),
            (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
            (0..100_000_u64).prop_map(Duration::from_millis),
        ]
    }

    proptest! {
        #[test]
        fn options_of_any_size_make_a_plan_or_an_error(
            times in prop::array::uniform8(durations()), counts in prop::array::uniform4(any::<usize>()),
        ) {
            let [turn, turn_buffer, work, work_buffer, session, session_buffer, idle, hook] = times;
            let options = RuntimeOptions {
                orchestrator_lock_timeout: turn,
                orchestrator_lock_renewal_buffer: turn_buffer,
                worker_lock_timeout: work,
                worker_lock_renewal_buffer: work_buffer,
                session_lock_timeout: session,
                session_lock_renewal_buffer: session_buffer,
                session_idle_timeout: idle,
                session_hook_timeout: hook,
                max_turn_time: turn,
                dispatcher_long_poll_timeout: idle,
                orchestration_concurrency: counts[0],
                worker_concurrency: counts[1],
                max_sessions_per_runtime: counts[2],
                max_warm_bytes: counts[3],
                ..RuntimeOptions::default()
            };
            match Plan::try_from(options) {
                Ok(plan) => {
                    for lease in [plan.turn_lease, plan.work_lease, plan.session_lease] {
                        prop_assert!(lease.renew_every > Duration::ZERO);
                    }
                    prop_assert!(plan.session_poll() <= plan.session_proof());
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
