//! What happens in a world: the troubles of its story, and their ends.

use std::{sync::Arc, time::Duration};

use steadfast_audit::FaultKind;

use super::{Act, BETWEEN_STARTS, World, worker::Stop};
use crate::{
    client,
    ground::{DiskTrouble, Machine},
    journal::Noted,
    story::Trouble,
    wire::Line,
};

impl World<'_> {
    pub(super) fn act(&mut self, act: Act) -> std::io::Result<()> {
        match act {
            Act::Event(number) => self.happen(number)?,
            Act::Start(number) => self.start(number)?,
            Act::Thaw(number) => {
                if let Some(seat) = self.seats.get_mut(number) {
                    seat.frozen = seat.frozen.saturating_sub(1);
                    self.journal.note(Noted::World(format!("worker {number} goes on")));
                }
            }
            Act::Wake(number, slept) => {
                if let Some(seat) = self.seats.get_mut(number) {
                    seat.host.woke_after(slept);
                    seat.frozen = seat.frozen.saturating_sub(1);
                    seat.asleep = seat.asleep.saturating_sub(1);
                    self.journal.note(Noted::World(format!("the machine of worker {number} wakes")));
                }
            }
            Act::Mend(number) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.mend());
                self.journal.note(Noted::World(format!("worker {number} reaches the store again")));
            }
            Act::MendAll => {
                self.lines().for_each(Line::mend);
                self.journal.note(Noted::World("the store can be reached again".to_owned()));
            }
            Act::MakeRoom => {
                match self.ground.machine() {
                    Some(machine) => machine.fill(false),
                    None => self.lines().for_each(Line::make_room),
                }
                self.journal.note(Noted::World("the disk has room again".to_owned()));
            }
            Act::ReturnHistories => {
                self.ground.machine().into_iter().for_each(Machine::return_histories);
                self.journal.note(Noted::World("the disk returns histories again".to_owned()));
            }
            Act::Twin(number, lasts) => self.twin(number, lasts)?,
            Act::KillGhost(id) => self.ghosts.get(&id).iter().for_each(|ghost| ghost.process.life().end()),
            Act::Hasten(number) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.slow(Duration::ZERO));
            }
            Act::Instance(number) => match self.client_place() {
                Ok(place) => self.spawn_call(client::start(&place, number, self.story.input_of(number))),
                Err(error) => self.journal.note(Noted::World(format!("the client has no store: {error}"))),
            },
        }
        Ok(())
    }

    fn happen(&mut self, number: usize) -> std::io::Result<()> {
        let Some(event) = self.story.events.get(number) else { return Ok(()) };
        self.journal.note(Noted::World(event.what.to_string()));
        let is_one_machine = self.ground.machine().is_some();
        crate::audit::note_faults(&self.journal, &event.what, is_one_machine, |number| {
            self.seats.get(number).map(|seat| format!("w{number}.{}", seat.starts))
        });
        match event.what.clone() {
            Trouble::Kill(number, back) => self.kill(number, back),
            Trouble::Freeze(number, lasts) => self.freeze(number, lasts, Act::Thaw(number)),
            Trouble::Sleep(number, lasts) => self.sleep(number, lasts),
            Trouble::Step(number, by) => self.seats.get(number).iter().for_each(|seat| seat.host.step(by)),
            Trouble::StepStore(by) => self.ground.host().step(by),
            Trouble::Cut(number, lasts) => self.cut(number, lasts),
            Trouble::Outage(lasts) => {
                self.lines().for_each(Line::cut);
                self.later(lasts, Act::MendAll);
            }
            Trouble::Full(lasts) => {
                match self.ground.machine() {
                    Some(machine) => machine.fill(true),
                    None => self.lines().for_each(Line::fill),
                }
                self.later(lasts, Act::MakeRoom);
            }
            Trouble::Slow(number, by, lasts) => {
                let until = self.time.now().saturating_add(lasts);
                if let Some(seat) = self.seats.get_mut(number) {
                    seat.line.slow(by);
                    seat.slow_until = seat.slow_until.max(until);
                }
                self.later(lasts, Act::Hasten(number));
            }
            Trouble::Disturb(number, planned) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.plan(planned));
            }
            Trouble::DisturbClient(planned) => self.client_line.plan(planned),
            Trouble::Drain(number, back) => self.stop(number, Stop::Drain, back),
            Trouble::Deploy(number, worker, back) => {
                self.seats.get_mut(number).into_iter().for_each(|seat| seat.next = Some(worker.clone()));
                self.stop(number, Stop::ShutDown, back);
            }
            Trouble::Twin(number, lasts) => return self.twin(number, lasts),
            Trouble::Disk(DiskTrouble::Power(back)) => return self.restart_machine(back),
            Trouble::Disk(DiskTrouble::History(lasts, failure)) => {
                self.ground.machine().into_iter().for_each(|machine| machine.lose_histories(failure));
                self.later(lasts, Act::ReturnHistories);
            }
            Trouble::Disk(trouble) => {
                let machine = self.ground.machine();
                machine.zip(trouble.fault()).into_iter().for_each(|(machine, fault)| machine.plan(fault));
            }
            what => self.call(what),
        }
        Ok(())
    }

    /// Lets a client make a call.
    fn call(&mut self, what: Trouble) {
        let place = match self.client_place() {
            Ok(place) => place,
            Err(error) => {
                return self.journal.note(Noted::World(format!("the client has no store: {error}")));
            }
        };
        match what {
            Trouble::Cancel(target) => self.spawn_call(client::cancel(&place, target)),
            Trouble::Terminate(target) => self.spawn_call(client::terminate(&place, target)),
            Trouble::Delete(target) => self.spawn_call(client::delete(&place, target)),
            // A story that was cut down may have fewer instances.
            Trouble::StartAnew(number) if number >= self.story.instances.len() => {}
            Trouble::StartAnew(number) => {
                let input = self.story.input_of(number);
                self.spawn_call(client::start_anew(&place, number, input));
            }
            Trouble::Raise(target, name) => self.spawn_call(client::raise(&place, target, name)),
            Trouble::Enqueue(target, name) => self.spawn_call(client::enqueue(&place, target, name)),
            Trouble::Release(of, session) => self.spawn_call(client::release(&place, of, session)),
            Trouble::Prune(target) => self.spawn_call(client::prune(&place, target)),
            Trouble::Inspect(target) => self.spawn_call(client::inspect(&place, target)),
            _ => {}
        }
    }

    /// Lets the client do something. It is under way until it has ended, or its process is dead.
    fn spawn_call(&self, call: impl Future<Output = ()> + Send + 'static) {
        let open = Arc::clone(&self.calls);
        self.client.spawn(async move {
            call.await;
            drop(open);
        });
    }

    /// Returns the lines of all workers and of the client.
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.seats.iter().map(|seat| &seat.line).chain([&self.client_line])
    }

    fn kill(&mut self, number: usize, back: Duration) {
        if let Some(seat) = self.seats.get_mut(number)
            && let Some(running) = &seat.running
        {
            running.process.life().end();
            seat.restart = back;
        }
    }

    /// Starts a worker again while its older process runs on for a while. That one has started a while ago:
    /// after a sleep of the machine all that was due happens at one moment.
    fn twin(&mut self, number: usize, lasts: Duration) -> std::io::Result<()> {
        let running = self.seats.get(number).and_then(|seat| seat.running.as_ref());
        let soonest = running.map_or(Duration::ZERO, |older| older.began.saturating_add(BETWEEN_STARTS));
        if soonest > self.time.now() {
            self.plan(soonest, Act::Twin(number, lasts));
            return Ok(());
        }
        if let Some(older) = self.seats.get_mut(number).and_then(|seat| seat.running.take()) {
            self.planned += 1;
            let id = self.planned;
            self.ghosts.insert(id, older);
            self.later(lasts, Act::KillGhost(id));
            self.start(number)?;
        }
        Ok(())
    }

    /// Lets the machine of a worker sleep, and all processes on it. If all processes of the world are,
    /// nothing happens meanwhile.
    fn sleep(&mut self, number: usize, lasts: Duration) {
        let Some(machine) = self.ground.machine() else {
            self.seats.get_mut(number).into_iter().for_each(|seat| seat.asleep += 1);
            for older in self.ghosts.values().filter(|ghost| ghost.seat == number) {
                self.journal.fault(FaultKind::Paused, Some(&older.name), lasts);
            }
            return self.freeze(number, lasts, Act::Wake(number, lasts));
        };
        self.journal.fault(FaultKind::Slept, None, lasts);
        self.time.move_to(self.time.now().saturating_add(lasts));
        machine.host().woke_after(lasts);
        // The store extends live leases by the sleep, which the watch does not follow.
        self.ground.watch().lose_sight();
    }

    /// The power fails: every process of the machine is dead, and the disk has what arrived.
    pub(super) fn restart_machine(&mut self, back: Duration) -> std::io::Result<()> {
        if self.ground.machine().is_none() {
            return Ok(());
        }
        self.journal.note(Noted::World("the power fails".to_owned()));
        self.replace_client()?;
        self.ghosts.values().for_each(|ghost| ghost.process.life().end());
        for seat in &mut self.seats {
            if let Some(running) = &seat.running {
                running.process.life().end();
                seat.restart = back;
            }
        }
        self.bury()?;
        self.ground.machine().into_iter().for_each(Machine::restart);
        Ok(())
    }

    fn freeze(&mut self, number: usize, lasts: Duration, end: Act) {
        if let Some(seat) = self.seats.get_mut(number) {
            seat.frozen += 1;
            self.later(lasts, end);
        }
    }

    fn cut(&mut self, number: usize, lasts: Duration) {
        let until = self.time.now().saturating_add(lasts);
        if let Some(seat) = self.seats.get_mut(number) {
            seat.line.cut();
            seat.cut_until = seat.cut_until.max(until);
            self.later(lasts, Act::Mend(number));
        }
    }
}
