//! A world that a story is played in: one thread, one time, and nothing that is not decided by the story.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use steadfast::{
    Client, TagFilter,
    providers::{Provider, Store},
};
use steadfast_audit::{FaultKind, Life, Violation};
use steadfast_clock::{Clock, SeededRandom};
use steadfast_memory::MemoryStore;
use steadfast_sqlite::Durability;
use steadfast_testing::program::{ast::names, dice::Dice};

use crate::{
    audit::Witnesses,
    client,
    code::{self, Place},
    engine::{OnMissingHandler, Runtime, RuntimeOptions},
    ground::{DiskTrouble, Ground, Machine},
    journal::{Journal, Note, Noted},
    process::Process,
    story::{Story, Tags, Trouble, Worker},
    time::{HostClock, HostTime, WorldTime},
    wire::{Line, Wire},
};

/// What came of a story.
#[derive(Debug)]
pub struct Played {
    /// All that happened.
    pub notes: Vec<Note>,
    /// The promises that were broken; empty if all held.
    pub violations: Vec<Violation>,
    /// How often the world let a process run.
    pub steps: u64,
}

/// How often processes run at most: a world that does more has tasks that never wait.
const MOST_STEPS: u64 = 400_000;

/// How long after the last trouble everything must have ended.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// How long a world goes on after everything has ended: leases end, and sessions grow idle.
const AFTERMATH: Duration = Duration::from_secs(900);

/// How often a process that stops lets its other tasks run before it ends.
const CLOSING: u32 = 8;

/// How long after its death a process is started again, unless the story says another time.
const RESTART: Duration = Duration::from_secs(2);

/// Plays a story.
///
/// # Errors
///
/// What the operating system says if it cannot give descriptors to a process.
pub fn play(story: &Story) -> std::io::Result<Played> {
    play_on(story, |clock| Arc::new(MemoryStore::with_clock(clock)))
}

/// Plays a story on a store that is made for it.
///
/// # Errors
///
/// As [`play`].
pub fn play_on(
    story: &Story,
    open: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>,
) -> std::io::Result<Played> {
    play_in(story, |time| Ok(Ground::server(time, open)))
}

/// Plays a story on a machine: each process opens the same SQLite file, on a disk that fails as the story
/// says.
///
/// # Errors
///
/// As [`play`].
pub fn play_on_disk(story: &Story, durability: Durability) -> std::io::Result<Played> {
    play_in(story, |time| Machine::new(story, time, durability).map(Ground::Machine))
}

fn play_in(
    story: &Story,
    ground: impl FnOnce(&WorldTime) -> std::io::Result<Ground>,
) -> std::io::Result<Played> {
    let mut world = World::new(story, ground)?;
    world.begin()?;
    let calm = world.play_events()?;
    world.heal()?;
    let mut violations = Vec::new();
    let ended = client::nudge(&world.client_place()?, calm);
    world.client.spawn(ended.task);
    world.run_until(calm.saturating_add(PATIENCE), || ended.flag.load(Ordering::Relaxed))?;
    if world.steps >= MOST_STEPS {
        let text = format!("the tasks never wait: {MOST_STEPS} steps");
        violations.push(Violation { rule: "I7", text });
        // An audit of a world that spins would take as long as the world.
        return Ok(Played { notes: world.journal.notes(), violations, steps: world.steps });
    }
    if ended.flag.load(Ordering::Relaxed) {
        let end = world.time.now().saturating_add(AFTERMATH);
        world.run_until(end, || false)?;
    }
    let witnesses = world.witnesses();
    let audit = crate::audit::audit(&world.client_place()?, story, &world.journal, witnesses);
    let done = Arc::new(AtomicBool::new(false));
    let found: Arc<Mutex<Vec<Violation>>> = Arc::default();
    let (flag, list) = (Arc::clone(&done), Arc::clone(&found));
    world.client.spawn(async move {
        let all = audit.await;
        *list.lock().unwrap_or_else(PoisonError::into_inner) = all;
        flag.store(true, Ordering::Relaxed);
    });
    let end = world.time.now().saturating_add(PATIENCE);
    world.steps = 0;
    world.run_until(end, || done.load(Ordering::Relaxed))?;
    violations.append(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Played { notes: world.journal.notes(), violations, steps: world.steps })
}

struct World<'a> {
    story: &'a Story,
    time: WorldTime,
    dice: Dice,
    ground: Ground,
    journal: Journal,
    seats: Vec<Seat>,
    /// Processes that run on beside the newer ones of their workers.
    ghosts: BTreeMap<u64, Running>,
    client: Process,
    client_clock: Arc<HostClock>,
    client_line: Line,
    /// The store as the client has opened it.
    client_store: Option<Arc<dyn Store>>,
    agenda: BTreeMap<(Duration, u64), Act>,
    planned: u64,
    steps: u64,
    /// How many sessions each process may serve.
    capacity: BTreeMap<String, usize>,
    /// The wall time of the store when the world began.
    began_ms: u64,
}

/// The place of a worker: its host and its line stay when its process dies.
struct Seat {
    host: Arc<HostClock>,
    line: Line,
    /// The code and the options of the process that runs, or ran last.
    worker: Worker,
    /// The code and the options of the next process, if they are others.
    next: Option<Worker>,
    running: Option<Running>,
    starts: u32,
    /// Counts the reasons for which the process does not run.
    frozen: u32,
    /// When a process that was found dead is started again.
    restart: Duration,
}

/// A process with the runtime in it, once that has started.
struct Running {
    name: String,
    process: Process,
    runtime: Arc<Mutex<Option<Arc<Runtime>>>>,
    is_stopping: bool,
}

/// A process that the world may let run.
#[derive(Clone, Copy, Debug)]
enum Who {
    Worker(usize),
    Ghost(u64),
    Client,
}

/// What the world does at a moment.
#[derive(Clone, Copy, Debug)]
enum Act {
    Event(usize),
    Start(usize),
    Thaw(usize),
    Wake(usize, Duration),
    Mend(usize),
    MendAll,
    MakeRoom,
    Hasten(usize),
    KillGhost(u64),
    Instance(usize),
}

impl<'a> World<'a> {
    fn new(
        story: &'a Story,
        ground: impl FnOnce(&WorldTime) -> std::io::Result<Ground>,
    ) -> std::io::Result<Self> {
        let time = WorldTime::default();
        let journal = Journal::new(&time);
        let ground = ground(&time)?;
        let began_ms = HostTime(Arc::clone(ground.host())).now_ms();
        let host = |ahead_ms, drift| match ground.machine() {
            Some(machine) => Arc::clone(machine.host()),
            None => HostClock::new(&time, ahead_ms, drift),
        };
        let seats = story.workers.iter().enumerate().map(|(number, worker)| Seat {
            host: host(worker.ahead_ms, worker.drift),
            line: Line::new(story.seed ^ (number as u64 + 1) << 32),
            worker: worker.clone(),
            next: None,
            running: None,
            starts: 0,
            frozen: 0,
            restart: RESTART,
        });
        Ok(Self {
            story,
            dice: Dice::new(story.seed),
            journal,
            seats: seats.collect(),
            ghosts: BTreeMap::new(),
            client: Process::new()?,
            client_clock: host(0, 0),
            client_line: Line::new(story.seed ^ 0xC11E),
            client_store: None,
            ground,
            time,
            agenda: BTreeMap::new(),
            planned: 0,
            steps: 0,
            capacity: BTreeMap::new(),
            began_ms,
        })
    }

    fn begin(&mut self) -> std::io::Result<()> {
        for number in 0..self.seats.len() {
            self.start(number)?;
        }
        for (number, instance) in self.story.instances.iter().enumerate() {
            self.plan(instance.at, Act::Instance(number));
        }
        for (number, event) in self.story.events.iter().enumerate() {
            self.plan(event.at, Act::Event(number));
        }
        Ok(())
    }

    /// Plays until all trouble has begun and the troubles that end by themselves have ended.
    fn play_events(&mut self) -> std::io::Result<Duration> {
        while let Some((at, _)) = self.agenda.last_key_value().map(|(key, _)| *key) {
            if self.steps >= MOST_STEPS {
                break;
            }
            self.run_until(at, || false)?;
        }
        Ok(self.time.now())
    }

    /// Ends all trouble, and starts what is dead. Every worker has the code again that the story gives it.
    fn heal(&mut self) -> std::io::Result<()> {
        self.journal.note(Noted::World("all trouble ends".to_owned()));
        self.client_line.heal();
        self.ground.machine().into_iter().for_each(Machine::heal);
        self.ghosts.values().for_each(|ghost| ghost.process.life().end());
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            seat.line.heal();
            seat.frozen = 0;
            seat.restart = RESTART;
            seat.next = None;
            if let Some(first) = self.story.workers.get(number).filter(|first| **first != seat.worker) {
                seat.next = Some(first.clone());
                for dead in seat.running.take().iter() {
                    self.journal.fault(FaultKind::Killed, Some(&dead.name), Duration::ZERO);
                    self.journal.life(&dead.name, Life::Dead);
                }
            }
            if seat.running.is_none() {
                self.start(number)?;
            }
        }
        Ok(())
    }

    /// Runs processes and moves time until a moment, or until something holds.
    fn run_until(&mut self, end: Duration, holds: impl Fn() -> bool) -> std::io::Result<()> {
        while self.steps < MOST_STEPS && !holds() {
            // A process that runs, and one that is started, may have met it.
            if self.ground.machine().is_some_and(Machine::is_off) {
                self.restart_machine(RESTART)?;
            }
            self.bury();
            let ready = self.ready();
            if let Some(who) = self.dice.pick(&ready) {
                self.steps += 1;
                self.process(*who).iter().for_each(|process| process.run());
                continue;
            }
            let act = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let alarm = self.time.next();
            let Some(at) = [act, alarm].into_iter().flatten().min().filter(|at| *at <= end) else {
                self.time.move_to(end);
                return Ok(());
            };
            if act == Some(at) {
                self.time.move_to(at);
                let (_, act) = self.agenda.pop_first().unwrap_or(((at, 0), Act::Thaw(usize::MAX)));
                self.act(act)?;
            } else {
                self.time.ring_one(at);
            }
        }
        Ok(())
    }

    /// Lists the processes that may run now.
    fn ready(&self) -> Vec<Who> {
        let workers = (0..self.seats.len()).filter(|number| self.seats[*number].frozen == 0).map(Who::Worker);
        let all = workers.chain(self.ghosts.keys().copied().map(Who::Ghost)).chain([Who::Client]);
        all.filter(|who| self.process(*who).is_some_and(Process::is_ready)).collect()
    }

    fn process(&self, who: Who) -> Option<&Process> {
        match who {
            Who::Worker(number) => self.seats.get(number)?.running.as_ref().map(|running| &running.process),
            Who::Ghost(id) => self.ghosts.get(&id).map(|running| &running.process),
            Who::Client => Some(&self.client),
        }
    }

    /// Removes the processes that died, and plans when they are started again.
    fn bury(&mut self) {
        let dead = self.ghosts.extract_if(.., |_, ghost| ghost.process.life().has_ended());
        dead.for_each(|(_, dead)| self.journal.life(&dead.name, Life::Dead));
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            if seat.running.as_ref().is_some_and(|running| running.process.life().has_ended()) {
                seat.running.take().iter().for_each(|dead| self.journal.life(&dead.name, Life::Dead));
                let at = self.time.now().saturating_add(seat.restart);
                seat.restart = RESTART;
                self.plan(at, Act::Start(number));
            }
        }
    }

    fn plan(&mut self, at: Duration, act: Act) {
        self.planned += 1;
        self.agenda.insert((at.max(self.time.now()), self.planned), act);
    }

    fn later(&mut self, after: Duration, act: Act) {
        self.plan(self.time.now().saturating_add(after), act);
    }

    fn act(&mut self, act: Act) -> std::io::Result<()> {
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
            Act::KillGhost(id) => self.ghosts.get(&id).iter().for_each(|ghost| ghost.process.life().end()),
            Act::Hasten(number) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.slow(Duration::ZERO));
            }
            Act::Instance(number) => match self.client_place() {
                Ok(place) => self.client.spawn(client::start(&place, number)),
                Err(error) => self.journal.note(Noted::World(format!("the client has no store: {error}"))),
            },
        }
        Ok(())
    }

    fn happen(&mut self, number: usize) -> std::io::Result<()> {
        let Some(event) = self.story.events.get(number) else { return Ok(()) };
        self.journal.note(Noted::World(event.what.to_string()));
        crate::audit::note_faults(&self.journal, &event.what, |number| {
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
                self.seats.get(number).iter().for_each(|seat| seat.line.slow(by));
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
            Trouble::Cancel(target) => self.client.spawn(client::cancel(&place, target)),
            Trouble::Terminate(target) => self.client.spawn(client::terminate(&place, target)),
            Trouble::Delete(target) => self.client.spawn(client::delete(&place, target)),
            Trouble::StartAnew(number) => self.client.spawn(client::start_anew(&place, number)),
            Trouble::Raise(target, name) => self.client.spawn(client::raise(&place, target, name)),
            Trouble::Enqueue(target, name) => self.client.spawn(client::enqueue(&place, target, name)),
            Trouble::Release(of, session) => self.client.spawn(client::release(&place, of, session)),
            _ => {}
        }
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

    /// Starts a worker again while its older process runs on for a while.
    fn twin(&mut self, number: usize, lasts: Duration) -> std::io::Result<()> {
        if let Some(older) = self.seats.get_mut(number).and_then(|seat| seat.running.take()) {
            self.planned += 1;
            let id = self.planned;
            self.ghosts.insert(id, older);
            self.later(lasts, Act::KillGhost(id));
            self.start(number)?;
        }
        Ok(())
    }

    /// Lets the machine of a worker sleep. If all processes are on it, nothing happens meanwhile.
    fn sleep(&mut self, number: usize, lasts: Duration) {
        let Some(machine) = self.ground.machine() else {
            return self.freeze(number, lasts, Act::Wake(number, lasts));
        };
        self.journal.fault(FaultKind::Paused, None, lasts);
        self.time.move_to(self.time.now().saturating_add(lasts));
        machine.host().woke_after(lasts);
    }

    /// The power fails: every process of the machine is dead, and the disk has what arrived.
    fn restart_machine(&mut self, back: Duration) -> std::io::Result<()> {
        if self.ground.machine().is_none() {
            return Ok(());
        }
        self.journal.note(Noted::World("the power fails".to_owned()));
        self.client.life().end();
        self.client_store = None;
        self.client = Process::new()?;
        self.ghosts.values().for_each(|ghost| ghost.process.life().end());
        for seat in &mut self.seats {
            if let Some(running) = &seat.running {
                running.process.life().end();
                seat.restart = back;
            }
        }
        self.bury();
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
        if let Some(seat) = self.seats.get(number) {
            seat.line.cut();
            self.later(lasts, Act::Mend(number));
        }
    }

    /// Stops a worker, which is started again after a while.
    fn stop(&mut self, number: usize, how: Stop, back: Duration) {
        let Some(seat) = self.seats.get_mut(number) else { return };
        let Some(Running { process, runtime, is_stopping, .. }) = &mut seat.running else { return };
        seat.restart = back;
        if std::mem::replace(is_stopping, true) {
            return;
        }
        let (life, runtime) = (process.life().clone(), Arc::clone(runtime));
        process.spawn(async move {
            let runtime = runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(runtime) = runtime {
                if how == Stop::Drain {
                    runtime.drain().await;
                }
                runtime.shutdown(Some(5_000)).await;
                // A store that runs in the process closes its file as the last of its tasks.
                for _ in 0..CLOSING {
                    tokio::task::yield_now().await;
                }
            }
            life.end();
        });
    }

    /// Starts the process of a worker, if it has none.
    fn start(&mut self, number: usize) -> std::io::Result<()> {
        let Some(seat) = self.seats.get_mut(number) else { return Ok(()) };
        if seat.running.is_some() {
            return Ok(());
        }
        seat.starts += 1;
        if let Some(next) = seat.next.take() {
            seat.worker = next;
        }
        let (process, name) = (Process::new()?, format!("w{number}.{}", seat.starts));
        let store = match self.ground.open(&process, &name) {
            Ok(store) => store,
            Err(error) => {
                self.journal.note(Noted::World(format!("{name} cannot open the store: {error}")));
                process.life().end();
                self.later(RESTART, Act::Start(number));
                return Ok(());
            }
        };
        let wire = Wire::new(store, &name, process.life(), &seat.line, &self.time, &self.journal);
        let clock = HostTime(Arc::clone(&seat.host));
        let options = RuntimeOptions {
            worker_node_id: seat.worker.named.then(|| format!("node-{number}")),
            clock: Arc::new(clock.clone()),
            random: Arc::new(SeededRandom::new(code::hash_of(self.story.seed, &name))),
            ..options(&seat.worker)
        };
        let place = Place {
            process: name.clone(),
            life: process.life().clone(),
            clock: Arc::new(clock),
            journal: self.journal.clone(),
            seed: self.story.seed,
        };
        let activities = code::activities(&place, &seat.worker);
        let orchestrations = code::orchestrations(self.story, &seat.worker);
        let runtime: Arc<Mutex<Option<Arc<Runtime>>>> = Arc::default();
        let slot = Arc::clone(&runtime);
        process.spawn(async move {
            let runtime =
                Runtime::start_with_options(Arc::new(wire), activities, orchestrations, options).await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
        });
        self.journal.life(&name, Life::Started);
        self.capacity.insert(name.clone(), seat.worker.sessions);
        seat.running = Some(Running { name, process, runtime, is_stopping: false });
        Ok(())
    }

    fn witnesses(&self) -> Witnesses {
        Witnesses {
            watch: self.ground.watch(),
            capacity: self.capacity.clone(),
            began_ms: self.began_ms,
            one_clock: self.ground.machine().is_some(),
        }
    }

    /// Returns what a client works with.
    ///
    /// # Errors
    ///
    /// Why the store cannot be opened.
    fn client_place(&mut self) -> std::io::Result<client::Desk> {
        let store = match &self.client_store {
            Some(store) => Arc::clone(store),
            None => self.ground.open(&self.client, "client").map_err(std::io::Error::other)?,
        };
        self.client_store = Some(Arc::clone(&store));
        let clock: Arc<dyn Clock> = Arc::new(HostTime(Arc::clone(&self.client_clock)));
        let wire: Arc<dyn Provider> = Arc::new(Wire::new(
            store,
            "client",
            self.client.life(),
            &self.client_line,
            &self.time,
            &self.journal,
        ));
        Ok(client::Desk {
            client: Client::with_clock(Arc::clone(&wire), Arc::clone(&clock)),
            provider: wire,
            clock,
            journal: self.journal.clone(),
        })
    }
}

/// How a worker is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It gives up its sessions first.
    Drain,
    ShutDown,
}

/// Returns the options of a worker, without its name, its clock and its random numbers.
fn options(worker: &Worker) -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: worker.turns,
        worker_concurrency: worker.work,
        worker_tag_filter: match worker.tags {
            Tags::Any => TagFilter::Any,
            Tags::Plain => TagFilter::DefaultOnly,
            Tags::Tagged => TagFilter::Tags(names::TAGS.iter().map(|tag| (*tag).to_owned()).collect()),
        },
        max_sessions_per_runtime: worker.sessions,
        max_attached_sessions: worker.attached,
        max_warm_orchestrations: worker.warm,
        on_missing_handler: if worker.parks { OnMissingHandler::Park } else { OnMissingHandler::Fail },
        // Found out by a thread otherwise.
        build_id: Some("simulated".to_owned()),
        ..RuntimeOptions::default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What a runtime does when it is dropped is done by a dead process.
        self.process.life().end();
    }
}
