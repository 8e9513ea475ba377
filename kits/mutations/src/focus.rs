//! What else happens in the stories that a mutant is tried on. Stories are made from seeds all the same: a
//! focus adds events of a kind, so that fewer stories are needed.

use std::time::Duration;

use steadfast_mutations::{
    story::{Happening, Story, Target, Theme, Trouble, Worker},
    wire::{Disturbance, Failure, Planned},
};
use steadfast_testing::program::dice::Dice;

/// A kind of trouble that stories get more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    /// Nothing is added.
    Any,
    /// One worker, and nothing goes wrong.
    Alone,
    /// Only pauses, of more than a lease.
    Pauses,
    /// The calls of workers take longer than the lease of a turn.
    Slows,
    /// Calls of this method fail.
    Fails(&'static str),
    /// Processes die at calls of this method.
    Dies(&'static str),
    /// Three workers, and nothing goes wrong.
    Crowd,
    /// Named workers are started again while their older processes run on.
    Twins,
    /// Workers are killed and back at once, and cannot register.
    Restarts,
    /// Workers drain.
    Drains,
    /// Workers are killed.
    Kills,
    /// Instances are terminated.
    Terminations,
    /// Instances are deleted and started again.
    Deletions,
    /// Messages are sent while no worker runs.
    Messages,
    /// Every story has this theme.
    On(Theme),
}

/// How many workers compete for the same work.
const CROWD: usize = 3;

impl Focus {
    /// Returns the focus for a mutant.
    pub(crate) fn of(mutant: &str) -> Self {
        let named = FOCUSED.iter().find(|(name, _)| *name == mutant);
        named.map_or(Self::Any, |(_, focus)| *focus)
    }

    /// Adds the events of the focus to a story.
    pub(crate) fn applied(self, mut story: Story) -> Story {
        let mut dice = Dice::new(story.seed ^ 0xF0C5);
        if matches!(
            self,
            Self::Alone | Self::Crowd | Self::Pauses | Self::Slows | Self::Drains | Self::Messages
        ) {
            story.events.retain(|event| !event.what.is_fault());
        }
        if self == Self::Alone {
            story.workers.truncate(1);
        }
        if matches!(self, Self::Crowd | Self::Twins | Self::Dies(_)) {
            story.workers.resize_with(CROWD, Worker::plain);
            story.workers.iter_mut().for_each(|worker| worker.sessions = worker.sessions.max(3));
        }
        if matches!(self, Self::Restarts | Self::Twins) {
            story.workers.iter_mut().for_each(|worker| worker.named = true);
        }
        if self == Self::Messages {
            let freeze = |number| Trouble::Freeze(number, Duration::from_secs(12));
            let all = (0..story.workers.len()).map(freeze);
            let at = Duration::from_secs(25);
            story.events.extend(all.map(|what| Happening { at, what }));
        }
        if let Self::On(theme) = self {
            theme.add(&mut story);
        }
        for _ in 0..6 {
            self.add(&mut story, &mut dice);
        }
        story.events.sort_by_key(|event| event.at);
        story
    }

    /// Adds one event, or two that belong together.
    fn add(self, story: &mut Story, dice: &mut Dice) {
        let at = Duration::from_millis(500 + dice.roll() % 60_000);
        let (worker, instance) = (dice.below(story.workers.len()), dice.below(story.instances.len()));
        let long = Duration::from_millis(35_000 + dice.roll() % 30_000);
        let planned =
            |method, what| Trouble::Disturb(worker, Planned { method: Some(method), skip: 0, what });
        let fails = Disturbance::Fails(Failure::Busy);
        let mut also = None;
        let what = match self {
            Self::Any | Self::Alone | Self::Crowd | Self::On(_) => return,
            Self::Twins => Trouble::Twin(worker, long),
            Self::Dies(method) => planned(method, Disturbance::DiesBefore),
            Self::Pauses => Trouble::Freeze(worker, long),
            Self::Slows => Trouble::Slow(worker, Duration::from_secs(6), long),
            Self::Fails(method) => planned(method, fails),
            Self::Restarts => {
                let before = at.saturating_sub(Duration::from_millis(100));
                also = Some(Happening { at: before, what: planned("register_node", fails) });
                Trouble::Kill(worker, Duration::from_millis(200))
            }
            Self::Drains => Trouble::Drain(worker, Duration::from_secs(3)),
            Self::Kills => Trouble::Kill(worker, long / 10),
            Self::Terminations => Trouble::Terminate(Target::Instance(instance)),
            Self::Deletions => Trouble::StartAnew(instance),
            Self::Messages => {
                let at = Duration::from_millis(26_000 + dice.roll() % 10_000);
                also = Some(Happening { at, what: Trouble::Enqueue(Target::Instance(instance), "r") });
                Trouble::Enqueue(Target::Instance(instance), "q")
            }
        };
        let at =
            if self == Self::Messages { Duration::from_millis(26_000 + dice.roll() % 10_000) } else { at };
        story.events.push(Happening { at, what });
        story.events.extend(also);
    }
}

/// The mutants that need more than what any story has.
pub(crate) const FOCUSED: &[(&str, Focus)] = &[
    ("one_failed_renewal_loses_the_lease", Focus::Fails("renew")),
    ("what_is_owed_is_forgotten", Focus::Fails("abandon")),
    ("a_delivery_that_was_outlived_is_not_excused", Focus::Pauses),
    ("every_lost_lease_counts", Focus::Pauses),
    ("sessions_are_kept_at_the_end", Focus::Drains),
    ("a_process_that_stops_keeps_its_leases", Focus::Drains),
    ("a_process_that_is_not_registered_takes_session_work", Focus::Restarts),
    ("a_result_is_handed_in_once", Focus::Fails("finish_work")),
    ("two_deliveries_are_poison_for_an_activity", Focus::Kills),
    ("two_deliveries_are_poison_for_a_turn", Focus::Kills),
    ("passing_trouble_fails_an_orchestration", Focus::Fails("commit_turn")),
    ("a_termination_is_not_seen", Focus::Terminations),
    ("a_running_activity_learns_late_that_it_is_withdrawn", Focus::Alone),
    ("messages_of_a_turn_arrive_in_reverse", Focus::Messages),
    ("a_batch_is_in_reverse_order", Focus::Messages),
    ("an_expired_turn_token_still_holds", Focus::Slows),
    ("an_expired_work_token_still_holds", Focus::Pauses),
    ("an_expired_session_is_never_claimed", Focus::Kills),
    ("a_renewal_revives_an_expired_session", Focus::Pauses),
    ("runs_are_numbered_by_execution", Focus::Deletions),
    ("a_leased_instance_is_leased_again", Focus::Slows),
    ("an_expired_lease_of_a_turn_never_ends", Focus::Dies("commit_turn")),
    ("a_live_lease_of_a_turn_is_ended", Focus::Slows),
    ("messages_are_read_from_the_newest", Focus::Messages),
    ("an_excuse_takes_nothing_back", Focus::Pauses),
    ("work_is_not_excused_after_the_next_fetch", Focus::Pauses),
    ("an_expired_lease_of_work_never_ends", Focus::Kills),
    ("a_live_session_is_claimed_by_any_process", Focus::Crowd),
    ("work_of_a_live_session_is_given_to_any_process", Focus::Crowd),
    ("a_renewal_of_a_session_extends_nothing", Focus::Crowd),
    ("an_owner_is_known_by_its_node_alone", Focus::Twins),
    ("an_older_process_of_a_node_is_heard", Focus::Twins),
    ("a_takeover_keeps_the_epoch", Focus::Crowd),
    ("retention_goes_by_the_clock_of_the_worker", Focus::On(Theme::Retention)),
    ("the_life_of_a_parent_does_not_matter", Focus::On(Theme::Heirs)),
    ("a_dropped_fetch_releases_a_session_that_is_served", Focus::On(Theme::Drops)),
    ("a_sleep_of_the_machine_extends_no_lease", Focus::On(Theme::Clocks)),
    ("a_newcomer_goes_by_its_wall_clock", Focus::On(Theme::Clocks)),
    ("a_history_that_cannot_be_read_fails_the_fetch", Focus::On(Theme::Torn)),
];

/// The mutants of the memory store that stories are known to observe. Most others break what no runtime asks
/// for, or what only a page, a text or a count of the client shows; some survived for a reason that is not
/// known (decision 0014). The conformance kit catches each of them.
pub(crate) const OBSERVED: &[&str] = &[
    "leased_instances_are_leased_again",
    "a_batch_is_in_reverse_order",
    "runs_are_numbered_by_execution",
    "a_tail_repeats_the_last_known_event",
    "an_expired_turn_token_still_holds",
    "an_expired_work_token_still_holds",
    "a_commit_removes_what_arrived_late",
    "a_late_message_is_stamped_with_the_lease",
    "a_timer_is_visible_at_once",
    "a_waiting_fetch_sleeps_past_a_timer",
    "executions_share_their_events",
    "work_cancelled_by_its_own_commit_runs",
    "running_work_is_not_cancelled",
    "an_expired_session_is_never_claimed",
    "a_live_session_is_claimed_by_any_process",
    "epochs_are_counted_by_session",
    "a_renewal_revives_an_expired_session",
    "a_change_wakes_only_one",
    "a_stray_holds_up_everything",
    "withdrawn_work_is_told_as_lost",
    "refused_work_is_counted_although_a_live_worker_lists_it",
    "continue_as_new_closes_the_sessions",
    "work_is_not_excused_after_the_next_fetch",
    "attempts_of_messages_are_not_counted",
    "the_life_of_a_parent_does_not_matter",
];

/// Tells whether stories observe a mutant of the memory store.
pub(crate) fn is_observed(mutant: &str) -> bool {
    OBSERVED.contains(&mutant)
}
