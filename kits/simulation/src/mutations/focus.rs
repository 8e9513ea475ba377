//! What else happens in the stories that a mutant is tried on. Stories are made from seeds all the same: a
//! focus adds events of a kind, so that fewer stories are needed.

use std::time::Duration;

use steadfast_store::ProviderErrorKind;
use steadfast_testing::program::dice::Dice;

use crate::{
    story::{Happening, Story, Trouble},
    wire::{Disturbance, Planned},
};

/// A kind of trouble that stories get more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Nothing is added.
    Any,
    /// Nothing goes wrong.
    Calm,
    /// Only pauses, of more than a lease.
    Pauses,
    /// Answers to this method are late by more than a lease.
    Late(&'static str),
    /// Calls of this method fail.
    Fails(&'static str),
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
    /// Many messages are sent.
    Messages,
}

impl Focus {
    /// Returns the focus for a mutant.
    pub(super) fn of(mutant: &str) -> Self {
        let named = FOCUSED.iter().find(|(name, _)| *name == mutant);
        named.map_or(Self::Any, |(_, focus)| *focus)
    }

    /// Adds the events of the focus to a story.
    pub(super) fn applied(self, mut story: Story) -> Story {
        let mut dice = Dice::new(story.seed ^ 0xF0C5);
        let (workers, instances) = (story.workers.len(), story.instances.len());
        if matches!(self, Self::Calm | Self::Pauses | Self::Drains) {
            story.events.retain(|event| !event.what.is_fault());
        }
        if self == Self::Restarts {
            story.workers.iter_mut().for_each(|worker| worker.named = true);
        }
        for _ in 0..6 {
            let at = Duration::from_millis(500 + dice.roll() % 60_000);
            let (worker, instance) = (dice.below(workers), dice.below(instances));
            let long = Duration::from_millis(35_000 + dice.roll() % 30_000);
            let planned =
                |method, what| Trouble::Disturb(worker, Planned { method: Some(method), skip: 0, what });
            let what = match self {
                Self::Any | Self::Calm => continue,
                Self::Pauses => Trouble::Freeze(worker, long),
                Self::Late(method) => planned(method, Disturbance::Late(long)),
                Self::Fails(method) => planned(method, Disturbance::Fails(ProviderErrorKind::Busy)),
                Self::Restarts => Trouble::Kill(worker, Duration::from_millis(200)),
                Self::Drains => Trouble::Drain(worker, Duration::from_secs(3)),
                Self::Kills => Trouble::Kill(worker, long / 10),
                Self::Terminations => Trouble::Terminate(instance),
                Self::Deletions => Trouble::StartAnew(instance),
                Self::Messages => Trouble::Enqueue(instance, "q"),
            };
            if self == Self::Restarts {
                let fails = planned("register_node", Disturbance::Fails(ProviderErrorKind::Busy));
                story
                    .events
                    .push(Happening { at: at.saturating_sub(Duration::from_millis(100)), what: fails });
            }
            story.events.push(Happening { at, what });
        }
        story.events.sort_by_key(|event| event.at);
        story
    }
}

/// The mutants that need more than what any story has.
const FOCUSED: &[(&str, Focus)] = &[
    ("one_failed_renewal_loses_the_lease", Focus::Fails("renew")),
    ("what_is_owed_is_forgotten", Focus::Pauses),
    ("a_delivery_that_was_outlived_is_not_excused", Focus::Pauses),
    ("every_lost_lease_counts", Focus::Pauses),
    ("a_claim_counts_from_the_answer", Focus::Late("fetch_work")),
    ("a_late_claim_is_served", Focus::Late("fetch_work")),
    ("a_released_epoch_is_entered_again", Focus::Late("fetch_work")),
    ("a_renewal_counts_from_its_answer", Focus::Late("renew_sessions")),
    ("sessions_are_kept_at_the_end", Focus::Drains),
    ("a_process_that_is_not_registered_takes_session_work", Focus::Restarts),
    ("a_result_is_handed_in_once", Focus::Fails("finish_work")),
    ("two_deliveries_are_poison_for_an_activity", Focus::Kills),
    ("two_deliveries_are_poison_for_a_turn", Focus::Kills),
    ("an_activity_without_its_lease_is_given_up", Focus::Pauses),
    ("a_lost_lease_reads_as_withdrawn", Focus::Pauses),
    ("passing_trouble_fails_an_orchestration", Focus::Fails("commit_turn")),
    ("a_termination_is_not_seen", Focus::Terminations),
];

/// The mutants of the memory store that no story can observe, each with the reason.
const UNOBSERVED: &[(&str, &str)] = &[];

/// Tells whether a story can observe a mutant of the memory store.
pub(super) fn is_observable(mutant: &str) -> bool {
    !UNOBSERVED.iter().any(|(name, _)| *name == mutant)
}
