//! The activities that run in this process, so that a turn can cancel one at once (F24).
//!
//! An activity may have more than one run here: its lease was lost, and the work came back while the code of
//! the former run still stops; or its instance was deleted and started again under the same id, and the
//! former one's activity does not know yet that it was withdrawn. So each run has an entry of its own, and a
//! commit cancels the runs that were here before it was handed in.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::ScheduledActivityIdentifier;
use steadfast_store::LeaseToken;

use super::{ActivityCancellation, CancelReason};
use crate::session::Rises;

/// Instance, execution and event id of an activity.
type ActivityKey = (String, u64, u64);

/// The runs of activities in this process, by activity, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct RunningActivities {
    activities: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    runs: HashMap<ActivityKey, Vec<RunHandle>>,
    /// The activities that were withdrawn last while they had no run here. The answer to a fetch that was
    /// under way may bring one of them.
    withdrawn: VecDeque<ActivityKey>,
}

/// Bounds how many withdrawn activities are remembered: more than fetches of a process can be under way.
const MAX_WITHDRAWN: usize = 1_024;

/// Reaches one run of an activity.
#[derive(Debug)]
pub(crate) struct RunHandle {
    /// The lease that it runs under: no other run has it.
    pub(crate) token: LeaseToken,
    pub(crate) cancellation: ActivityCancellation,
    /// Rises when the store should be asked at once whether the lease lives.
    pub(crate) doubts: Rises,
}

/// The activities that a commit withdraws, and which runs they had before it was handed in.
#[derive(Debug)]
pub(crate) struct Withdrawal {
    activities: Vec<ActivityKey>,
    runs: Vec<LeaseToken>,
}

impl RunningActivities {
    /// Enters a run. It can be cancelled until the returned guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, key: ActivityKey, run: RunHandle) -> RunningActivity {
        let token = run.token.clone();
        let mut running = self.lock();
        if let Some(place) = running.withdrawn.iter().position(|withdrawn| *withdrawn == key) {
            running.withdrawn.remove(place);
            // It may be the one that was withdrawn, or one of a later instance: the store knows.
            run.doubts.rise();
        }
        running.runs.entry(key.clone()).or_default().push(run);
        drop(running);
        RunningActivity { all: Arc::clone(self), key, token }
    }

    /// Notes the runs of the activities that a commit is about to withdraw.
    pub(crate) fn before_commit(&self, cancelled: &[ScheduledActivityIdentifier]) -> Withdrawal {
        let key = |activity: &ScheduledActivityIdentifier| {
            (activity.instance.clone(), activity.execution_id, activity.activity_id)
        };
        let activities: Vec<ActivityKey> = cancelled.iter().map(key).collect();
        let running = self.lock();
        let runs = activities.iter().filter_map(|key| running.runs.get(key)).flatten();
        let runs = runs.map(|run| run.token.clone()).collect();
        Withdrawal { activities, runs }
    }

    /// Cancels the activities that a commit has withdrawn, as far as they run in this process.
    ///
    /// A run that began while the commit was under way may be of a later instance of the same id, whose
    /// activity nobody withdrew: it must not end because an answer is late. Only the store knows, so the
    /// lease of such a run is renewed at once.
    pub(crate) fn cancel(&self, withdrawal: &Withdrawal) {
        if withdrawal.activities.is_empty() {
            return;
        }
        let mut running = self.lock();
        let Running { runs, withdrawn } = &mut *running;
        for key in &withdrawal.activities {
            let Some(runs) = runs.get(key) else {
                withdrawn.push_back(key.clone());
                continue;
            };
            for run in runs {
                if withdrawal.runs.contains(&run.token) {
                    run.cancellation.cancel(CancelReason::Withdrawn);
                } else {
                    run.doubts.rise();
                }
            }
        }
        let excess = withdrawn.len().saturating_sub(MAX_WITHDRAWN);
        withdrawn.drain(..excess);
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guards the entry of a run in this process: the run can be cancelled until this is dropped.
pub(crate) struct RunningActivity {
    all: Arc<RunningActivities>,
    key: ActivityKey,
    token: LeaseToken,
}

impl Drop for RunningActivity {
    fn drop(&mut self) {
        let mut running = self.all.lock();
        let Some(runs) = running.runs.get_mut(&self.key) else { return };
        runs.retain(|run| run.token != self.token);
        if runs.is_empty() {
            running.runs.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::session::SeenRises;

    /// Activity 2 of the first execution of `i`.
    fn activity() -> ScheduledActivityIdentifier {
        ScheduledActivityIdentifier { instance: "i".to_owned(), execution_id: 1, activity_id: 2 }
    }

    /// A run of that activity under a lease.
    struct Entered {
        guard: RunningActivity,
        cancellation: ActivityCancellation,
        doubts: SeenRises,
    }

    impl Entered {
        fn under(all: &Arc<RunningActivities>, token: &str) -> Self {
            let (cancellation, doubts) = (ActivityCancellation::default(), Rises::default());
            let seen = doubts.look();
            let token = LeaseToken::Work(token.to_owned());
            let run = RunHandle { token, cancellation: cancellation.clone(), doubts };
            Self { guard: all.enter(("i".to_owned(), 1, 2), run), cancellation, doubts: seen }
        }

        fn has_doubts(&mut self) -> bool {
            self.doubts.risen().now_or_never().is_some()
        }
    }

    #[test]
    fn every_run_of_a_withdrawn_activity_is_cancelled() {
        let all = Arc::new(RunningActivities::default());
        let (former, later) = (Entered::under(&all, "one"), Entered::under(&all, "two"));
        all.cancel(&all.before_commit(&[activity()]));
        assert!(former.cancellation.token.is_cancelled() && later.cancellation.token.is_cancelled());
    }

    #[test]
    fn a_run_that_ends_takes_no_other_run_of_its_activity_along() {
        let all = Arc::new(RunningActivities::default());
        let (former, later) = (Entered::under(&all, "one"), Entered::under(&all, "two"));
        drop(former.guard);
        all.cancel(&all.before_commit(&[activity()]));
        assert!(later.cancellation.token.is_cancelled());
        assert!(!former.cancellation.token.is_cancelled(), "it has ended");
        drop(later.guard);
        assert!(all.lock().runs.is_empty(), "nothing is left of an activity without runs");
    }

    #[test]
    fn a_run_that_begins_after_its_withdrawal_asks_the_store() {
        let all = Arc::new(RunningActivities::default());
        all.cancel(&all.before_commit(&[activity()]));
        assert!(Entered::under(&all, "one").has_doubts());
        assert!(!Entered::under(&all, "two").has_doubts(), "once");
        let many = |id| ScheduledActivityIdentifier { activity_id: id, ..activity() };
        let withdrawn: Vec<_> = (0..2_000).map(many).collect();
        all.cancel(&all.before_commit(&withdrawn));
        assert_eq!(all.lock().withdrawn.len(), MAX_WITHDRAWN);
    }

    #[test]
    fn a_run_that_began_while_the_commit_was_under_way_asks_the_store() {
        let all = Arc::new(RunningActivities::default());
        let mut former = Entered::under(&all, "one");
        let withdrawal = all.before_commit(&[activity()]);
        let mut later = Entered::under(&all, "two");
        all.cancel(&withdrawal);
        assert!(former.cancellation.token.is_cancelled() && !former.has_doubts());
        assert!(!later.cancellation.token.is_cancelled() && later.has_doubts());
    }
}
