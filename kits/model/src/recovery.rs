//! What happens from a state on without further faults: every process goes on, every message arrives in time.

use crate::step::Transition;
use crate::store::Work;
use crate::world::{PROCESSES, World};
use crate::{ModelAction, Rules, SessionModel};

/// The leases within which all work ends: one that a process has in vain, one for which it remembers what it
/// released, and the time to take the work.
const LEASES: u8 = 4;

/// How many fetches a process sends in a tick.
const FETCHES: u8 = 2;

/// What each process has done in a tick.
#[derive(Default)]
struct TickOfWork {
    fetches: [u8; PROCESSES],
    has_renewed: [bool; PROCESSES],
}

impl SessionModel {
    /// Tells whether all work ends if there are no further faults.
    pub(crate) fn recovers(&self, world: &World) -> bool {
        let rules = Rules { messages: usize::MAX, ..self.rules };
        let mut calm = Transition { world: world.clone(), rules, coverage: &self.calm };
        for _ in 0..LEASES * self.rules.lease {
            calm.work_for_a_tick();
            let has_work = calm.world.store.sessions.iter().any(|stored| stored.work != Work::Nothing);
            // What breaks another invariant on the way is met by the search too.
            if !has_work || !calm.world.broken.is_empty() {
                return true;
            }
            calm.take(ModelAction::Tick);
        }
        false
    }
}

impl Transition<'_> {
    /// Lets every process do what it has to do in a tick.
    fn work_for_a_tick(&mut self) {
        let mut tick = TickOfWork::default();
        let mut actions = Vec::new();
        loop {
            actions.clear();
            self.world.actions(self.rules, &mut actions);
            let Some(next) = actions.iter().copied().find(|action| tick.is_next(*action)) else { return };
            tick.note(next);
            self.take(next);
        }
    }
}

impl TickOfWork {
    /// Tells whether the step is one that a process or the store takes without a fault, and takes soon.
    fn is_next(&self, action: ModelAction) -> bool {
        match action {
            ModelAction::Give(process, _) | ModelAction::SendFetch(process) => {
                self.fetches[process] < FETCHES
            }
            ModelAction::Renew(process, false) | ModelAction::SendRenewal(process) => {
                !self.has_renewed[process]
            }
            ModelAction::WorkExpires(_)
            | ModelAction::Register(_)
            | ModelAction::Resume(_)
            | ModelAction::Expire(_)
            | ModelAction::RefuseFetch(_)
            | ModelAction::ReceiveFetch(_)
            | ModelAction::Begin(..)
            | ModelAction::Finish(..)
            | ModelAction::ReceiveRenewal(_)
            | ModelAction::Release(..)
            | ModelAction::ReceiveRelease(..) => true,
            ModelAction::Tick
            | ModelAction::Schedule(_)
            | ModelAction::Close
            | ModelAction::Open
            | ModelAction::CleanUp
            | ModelAction::Restart(_)
            | ModelAction::RegisterUnanswered(_)
            | ModelAction::Pause(_)
            | ModelAction::LoseFetch(_)
            | ModelAction::Renew(_, true)
            | ModelAction::LoseRenewal(_)
            | ModelAction::SendRelease(..)
            | ModelAction::GiveUpRelease(..)
            | ModelAction::LoseRelease(..) => false,
        }
    }

    fn note(&mut self, action: ModelAction) {
        match action {
            ModelAction::Give(process, _) => self.fetches[process] += 1,
            ModelAction::Renew(process, _) => self.has_renewed[process] = true,
            _ => {}
        }
    }
}
