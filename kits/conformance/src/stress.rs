//! Stress: many tasks hammer a store under the clock of the machine, and what must hold is checked.
//!
//! Each instance schedules a few activities, some of them on sessions, and completes when all have answered.
//! Turn workers and activity workers serve them as a runtime would, except that they also give up, go away
//! without a word, and show tokens twice. In the end every instance must have completed once, with every
//! answer once, and nothing may be left. How fast that was is told and not judged.

mod crew;
mod ledger;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::EventKind;
use steadfast_store::{Provider, ProviderError};

use crate::Subject;
use crate::bench::start_of;
use crate::report::note;
use crate::subject::OpenStore;
use crew::Crew;

/// The size of a stress run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stress {
    /// How many instances run; 60 by default.
    pub instances: usize,
    /// How many activities each instance schedules; 4 by default.
    pub activities: u64,
    /// How many tasks take turns, and as many run activities; 8 by default.
    pub tasks: usize,
    /// How many sessions the activities share, every other activity on one; 5 by default.
    pub sessions: usize,
    /// How long leases last, 250 ms by default: what a task abandons silently can be leased again after this.
    pub lease: Duration,
    /// How long the whole run may take before it fails; 60 s by default.
    pub patience: Duration,
}

impl Default for Stress {
    fn default() -> Self {
        Self {
            instances: 60,
            activities: 4,
            tasks: 8,
            sessions: 5,
            lease: Duration::from_millis(250),
            patience: Duration::from_secs(60),
        }
    }
}

/// What a stress run did, and in which time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stressed {
    /// Instances that completed.
    pub instances: u64,
    /// Turns that were committed.
    pub turns: u64,
    /// Activities that were finished.
    pub activities: u64,
    /// Leases that were abandoned, left to expire, or found lost.
    pub mishaps: u64,
    /// Time from the first start to the last completion.
    pub elapsed: Duration,
}

impl fmt::Display for Stressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a_second = |count: u64| count as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON);
        write!(
            f,
            "{} instances, {} turns and {} activities in {:?}: {:.0} turns and {:.0} activities a second, \
             {} mishaps",
            self.instances,
            self.turns,
            self.activities,
            self.elapsed,
            a_second(self.turns),
            a_second(self.activities),
            self.mishaps,
        )
    }
}

/// Hammers a fresh store of the subject, on threads of its own.
///
/// # Errors
/// A text that says what does not hold.
pub fn stress(subject: &Arc<dyn Subject>, plan: Stress) -> Result<Stressed, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(plan.tasks.clamp(1, MOST_THREADS))
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let end = runtime.block_on(async {
        let opened = OpenStore::new(subject, Arc::new(SystemClock)).await;
        let store = opened.map_err(|error| format!("the store could not be opened: {error}"))?;
        hammer(Arc::clone(store.provider()), plan).await
    });
    runtime.shutdown_background();
    end
}

/// Bounds the threads of a run: more tasks than cores is the point, more threads is not.
const MOST_THREADS: usize = 4;

/// Hammers a store that follows the clock of the machine.
///
/// # Errors
/// As [`stress`].
pub async fn hammer(provider: Arc<dyn Provider>, plan: Stress) -> Result<Stressed, String> {
    let began = SystemClock.monotonic();
    let crew = Arc::new(Crew::new(provider, plan));
    let mut members = vec![tokio::spawn(Arc::clone(&crew).start_all())];
    for number in 0..plan.tasks {
        members.push(tokio::spawn(Arc::clone(&crew).take_turns(number)));
        members.push(tokio::spawn(Arc::clone(&crew).run_activities(number)));
    }
    for member in members {
        member.await.map_err(|error| format!("a task ended badly: {error}"))??;
    }
    let elapsed = SystemClock.monotonic().saturating_sub(began);
    crew.ledger.check()?;
    check_instances(&crew).await?;
    check_nothing_is_left(&crew).await?;
    Ok(Stressed {
        instances: crew.ledger.completed.load(Ordering::Relaxed),
        turns: crew.ledger.turns.load(Ordering::Relaxed),
        activities: crew.ledger.activities.load(Ordering::Relaxed),
        mishaps: crew.ledger.mishaps.load(Ordering::Relaxed),
        elapsed,
    })
}

/// Every instance: one start, one end, every activity scheduled once and answered once, no gap between
/// events.
async fn check_instances(crew: &Crew) -> Result<(), String> {
    for number in 0..crew.plan.instances {
        let instance = instance_id(number);
        let history = crew.provider.read(&instance).await.map_err(failed)?;
        let count =
            |wanted: fn(&EventKind) -> bool| history.iter().filter(|event| wanted(&event.kind)).count();
        let counts = [
            ("starts", count(|kind| matches!(kind, EventKind::OrchestrationStarted { .. })), 1),
            ("ends", count(|kind| matches!(kind, EventKind::OrchestrationCompleted { .. })), 1),
            (
                "schedules",
                count(|kind| matches!(kind, EventKind::ActivityScheduled { .. })),
                crew.plan.activities,
            ),
            (
                "answers",
                count(|kind| matches!(kind, EventKind::ActivityCompleted { .. })),
                crew.plan.activities,
            ),
        ];
        for (what, found, expected) in counts {
            if found as u64 != expected {
                return Err(format!("'{instance}' has {found} {what}, not {expected}"));
            }
        }
        if !history.iter().map(|event| event.event_id).eq(1..=history.len() as u64) {
            return Err(format!("the events of '{instance}' have gaps"));
        }
    }
    Ok(())
}

async fn check_nothing_is_left(crew: &Crew) -> Result<(), String> {
    if let Some(admin) = crew.provider.as_management_capability() {
        let depths = admin.get_queue_depths().await.map_err(failed)?;
        if (depths.orchestrator_queue, depths.worker_queue) != (0, 0) {
            return Err(format!("something is left in the queues: {depths:?}"));
        }
        let metrics = admin.get_system_metrics().await.map_err(failed)?;
        if metrics.completed_instances != crew.plan.instances as u64 {
            return Err(format!("{} instances should have completed: {metrics:?}", crew.plan.instances));
        }
    }
    SystemClock.sleep(crew.plan.lease).await;
    crew.provider.cleanup_orphaned_sessions(crew.plan.lease).await.map_err(failed)?;
    if let Some(store) = Arc::clone(&crew.provider).into_store() {
        let left = store.sessions(None).await.map_err(failed)?;
        if !left.is_empty() {
            return Err(format!("sessions are left that nobody needs: {left:?}"));
        }
    }
    Ok(())
}

fn instance_id(number: usize) -> String {
    format!("stress-{number}")
}

fn failed(error: ProviderError) -> String {
    format!("a call failed: {error} (kind {:?})", error.kind)
}

/// A run of the usual size as a test.
pub(crate) fn trial(subject: &Arc<dyn Subject>) -> Trial {
    let subject = Arc::clone(subject);
    let run = move || {
        let stressed = stress(&subject, Stress::default()).map_err(Failed::from)?;
        note(&format!("{}: {stressed}", subject.name()));
        Ok(())
    };
    Trial::test("stress_many_tasks_leave_nothing_behind", run).with_kind("stress")
}
