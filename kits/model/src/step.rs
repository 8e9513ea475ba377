//! What each step does.

mod fetch;
mod life;
mod release;
mod renew;

use crate::world::{SESSIONS, World};
use crate::{Coverage, ModelAction, Rules};

/// A state in which a step is taken.
pub(crate) struct Transition<'a> {
    pub(crate) world: World,
    pub(crate) rules: Rules,
    pub(crate) coverage: &'a Coverage,
}

impl Transition<'_> {
    pub(crate) fn take(&mut self, action: ModelAction) {
        self.act(action);
        for session in 0..SESSIONS {
            self.world.abandon_ended(session);
        }
        self.check_rows();
    }

    fn act(&mut self, action: ModelAction) {
        match action {
            ModelAction::Tick => self.tick(),
            ModelAction::Schedule(session) => self.schedule(session),
            ModelAction::Close => self.close(),
            ModelAction::Open => self.world.store.open(),
            ModelAction::CleanUp => self.clean_up(),
            ModelAction::WorkExpires(session) => self.work_expires(session),
            ModelAction::Restart(process) => self.restart(process),
            ModelAction::Register(process) => self.world.register(process),
            ModelAction::RegisterUnanswered(process) => self.register_unanswered(process),
            ModelAction::Pause(process) => self.world.processes[process].is_paused = true,
            ModelAction::Resume(process) => self.world.processes[process].is_paused = false,
            ModelAction::Expire(process) => self.expire(process),
            ModelAction::SendFetch(process) => self.send_fetch(process),
            ModelAction::Give(process, session) => self.give(process, session),
            ModelAction::RefuseFetch(process) => self.refuse_fetch(process),
            ModelAction::ReceiveFetch(process) => self.receive_fetch(process),
            ModelAction::LoseFetch(process) => self.world.processes[process].fetch = None,
            ModelAction::Begin(process, session) => self.begin(process, session),
            ModelAction::Finish(process, session) => self.finish(process, session),
            ModelAction::SendRenewal(process) => self.send_renewal(process),
            ModelAction::Renew(process, is_late) => self.renew(process, is_late),
            ModelAction::ReceiveRenewal(process) => self.receive_renewal(process),
            ModelAction::LoseRenewal(process) => self.world.processes[process].renewal = None,
            ModelAction::SendRelease(process, session) => self.send_release(process, session),
            ModelAction::Release(process, session) => self.release(process, session),
            ModelAction::ReceiveRelease(process, session) => self.receive_release(process, session),
            ModelAction::GiveUpRelease(process, session) => self.give_up_release(process, session),
            ModelAction::LoseRelease(process, session) => {
                self.world.processes[process].sessions[session].release = None;
            }
        }
    }
}
