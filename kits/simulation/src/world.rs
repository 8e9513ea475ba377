//! A world that a story is played in: one thread, one time, and nothing that is not decided by the story.

mod trouble;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use steadfast::{
    Client,
    providers::{Provider, Store},
};
use steadfast_audit::{FaultKind, Life, Violation, WatchedStore};
use steadfast_clock::Clock;
use steadfast_memory::MemoryStore;
use steadfast_sqlite::Durability;
use steadfast_testing::program::dice::Dice;

use crate::{
    audit::Witnesses,
    client,
    engine::Runtime,
    ground::{Ground, Machine},
    journal::{Journal, Note, Noted},
    process::Process,
    story::{Story, Worker},
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
    /// Whether the watch over the store has lasted until the end.
    pub is_watched: bool,
}

/// How often processes run at most: a world that does more has tasks that never wait.
const MOST_STEPS: u64 = 400_000;

/// How long after the last trouble everything must have ended.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// How long a world goes on after everything has ended: leases end, and sessions grow idle.
const AFTERMATH: Duration = Duration::from_secs(900);

/// How often a process that stops lets its other tasks run before it ends.
const CLOSING: u32 = 8;

/// How long after its death a process is started again, unless the story says another time.
const RESTART: Duration = Duration::from_secs(2);

/// How far apart two starts of one worker are. A store knows the older one by the millisecond, and which of
/// two that start together is fenced (A13) is nobody's promise.
const BETWEEN_STARTS: Duration = Duration::from_millis(10);

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
        return Ok(world.played(violations));
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
    if !done.load(Ordering::Relaxed) {
        // A story that nobody looks at has kept no promise.
        violations.push(Violation { rule: "I7", text: "the audit has not ended".to_owned() });
    }
    violations.append(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(world.played(violations))
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
    client_store: Option<Arc<WatchedStore>>,
    /// Held by each call of the client that is under way, and by the world.
    calls: Arc<()>,
    agenda: BTreeMap<(Duration, u64), Act>,
    planned: u64,
    steps: u64,
    /// How many sessions each process may serve.
    capacity: BTreeMap<String, usize>,
    /// The activities that each process has no code for.
    lacks: BTreeMap<String, BTreeSet<String>>,
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
    /// Until when the calls of its processes take longer, and until when they do not arrive.
    slow_until: Duration,
    cut_until: Duration,
    /// Counts the sleeps of the machine: older processes of the worker do not run either.
    asleep: u32,
    /// When a process that was found dead is started again.
    restart: Duration,
}

/// A process with the runtime in it, once that has started.
struct Running {
    name: String,
    /// The number of the worker.
    seat: usize,
    began: Duration,
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
    ReturnHistories,
    Hasten(usize),
    Twin(usize, Duration),
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
            slow_until: Duration::ZERO,
            cut_until: Duration::ZERO,
            asleep: 0,
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
            calls: Arc::default(),
            ground,
            time,
            agenda: BTreeMap::new(),
            planned: 0,
            steps: 0,
            capacity: BTreeMap::new(),
            lacks: BTreeMap::new(),
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
        // An answer that is late ends by itself too, and the client goes on after it: it may start anew what
        // it has deleted. Nobody would send that instance anything once all others have ended.
        let (calls, end) = (Arc::downgrade(&self.calls), self.time.now().saturating_add(PATIENCE));
        self.run_until(end, || calls.strong_count() == 1)?;
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
            (seat.frozen, seat.asleep) = (0, 0);
            seat.restart = RESTART;
            seat.next = None;
            if let Some(healed) = self.story.healed(number).filter(|healed| *healed != seat.worker) {
                seat.next = Some(healed);
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
            self.bury()?;
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
        let is_asleep = |ghost: &Running| self.seats.get(ghost.seat).is_some_and(|seat| seat.asleep > 0);
        let ghosts = self.ghosts.iter().filter(|(_, ghost)| !is_asleep(ghost)).map(|(id, _)| Who::Ghost(*id));
        let all = workers.chain(ghosts).chain([Who::Client]);
        all.filter(|who| self.process(*who).is_some_and(Process::is_ready)).collect()
    }

    fn process(&self, who: Who) -> Option<&Process> {
        match who {
            Who::Worker(number) => self.seats.get(number)?.running.as_ref().map(|running| &running.process),
            Who::Ghost(id) => self.ghosts.get(&id).map(|running| &running.process),
            Who::Client => Some(&self.client),
        }
    }

    /// Removes the processes that died, and plans when they are started again. A client is there at once.
    fn bury(&mut self) -> std::io::Result<()> {
        if self.client.life().has_ended() {
            self.journal.note(Noted::World("another client takes the place of one that died".to_owned()));
            self.replace_client()?;
        }
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
        Ok(())
    }

    /// Ends the process of the client and begins another one. What the former had under way is gone.
    fn replace_client(&mut self) -> std::io::Result<()> {
        self.client.life().end();
        self.client_store = None;
        self.client = Process::new()?;
        Ok(())
    }

    fn plan(&mut self, at: Duration, act: Act) {
        self.planned += 1;
        self.agenda.insert((at.max(self.time.now()), self.planned), act);
    }

    fn later(&mut self, after: Duration, act: Act) {
        self.plan(self.time.now().saturating_add(after), act);
    }

    fn played(&self, violations: Vec<Violation>) -> Played {
        let is_watched = self.ground.watch().has_sight();
        Played { notes: self.journal.notes(), violations, steps: self.steps, is_watched }
    }

    fn witnesses(&self) -> Witnesses {
        Witnesses {
            watch: self.ground.watch(),
            capacity: self.capacity.clone(),
            lacks: self.lacks.clone(),
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

impl Drop for Running {
    fn drop(&mut self) {
        // What a runtime does when it is dropped is done by a dead process.
        self.process.life().end();
    }
}
