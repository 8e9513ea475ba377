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
use steadfast_audit::{Life, Violation, Watch, WatchedStore};
use steadfast_clock::SeededRandom;
use steadfast_memory::MemoryStore;
use steadfast_testing::program::dice::Dice;

use crate::{
    client,
    code::{self, Place},
    engine::{Runtime, RuntimeOptions},
    journal::{Journal, Note, Noted},
    process::Process,
    story::{Story, Trouble},
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
const MOST_STEPS: u64 = 2_000_000;

/// How long after the last trouble everything must have ended.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// How long a world goes on after everything has ended: leases end, and sessions grow idle.
const AFTERMATH: Duration = Duration::from_secs(900);

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
    open: impl FnOnce(Arc<dyn steadfast_clock::Clock>) -> Arc<dyn Store>,
) -> std::io::Result<Played> {
    let mut world = World::new(story, open)?;
    world.begin()?;
    let calm = world.play_events()?;
    world.heal()?;
    let mut violations = Vec::new();
    let ended = client::nudge(&world.client_place(), calm);
    world.client.spawn(ended.task);
    world.run_until(calm.saturating_add(PATIENCE), || ended.flag.load(Ordering::Relaxed))?;
    if world.steps >= MOST_STEPS {
        let text = format!("the tasks never wait: {MOST_STEPS} steps");
        violations.push(Violation { rule: "I7", text });
    }
    if ended.flag.load(Ordering::Relaxed) {
        let end = world.time.now().saturating_add(AFTERMATH);
        world.run_until(end, || false)?;
    }
    let audit = crate::audit::audit(&world.client_place(), story, &world.journal, &world.watch);
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
    store: Arc<dyn Store>,
    watch: Watch,
    journal: Journal,
    seats: Vec<Seat>,
    client: Process,
    client_clock: Arc<HostClock>,
    agenda: BTreeMap<(Duration, u64), Act>,
    planned: u64,
    steps: u64,
}

/// The place of a worker: its host and its line stay when its process dies.
struct Seat {
    host: Arc<HostClock>,
    line: Line,
    process: Option<Process>,
    runtime: Arc<Mutex<Option<Arc<Runtime>>>>,
    starts: u32,
    /// Counts the reasons for which the process does not run.
    frozen: u32,
    /// When a process that was found dead is started again.
    restart: Duration,
}

/// What the world does at a moment.
#[derive(Clone, Copy, Debug)]
enum Act {
    Event(usize),
    Start(usize),
    Thaw(usize),
    Wake(usize, Duration),
    Mend(usize),
    Hasten(usize),
    Instance(usize),
}

impl<'a> World<'a> {
    fn new(
        story: &'a Story,
        open: impl FnOnce(Arc<dyn steadfast_clock::Clock>) -> Arc<dyn Store>,
    ) -> std::io::Result<Self> {
        let time = WorldTime::default();
        let journal = Journal::new(&time);
        let store_clock: Arc<dyn steadfast_clock::Clock> = Arc::new(HostTime(HostClock::new(&time, 0, 0)));
        let store = WatchedStore::new(open(Arc::clone(&store_clock)), store_clock);
        let seats = story.workers.iter().enumerate().map(|(number, worker)| Seat {
            host: HostClock::new(&time, worker.ahead_ms, worker.drift),
            line: Line::new(story.seed ^ (number as u64 + 1) << 32),
            process: None,
            runtime: Arc::default(),
            starts: 0,
            frozen: 0,
            restart: RESTART,
        });
        Ok(Self {
            story,
            dice: Dice::new(story.seed),
            watch: store.watch(),
            store: Arc::new(store),
            journal,
            seats: seats.collect(),
            client: Process::new()?,
            client_clock: HostClock::new(&time, 0, 0),
            time,
            agenda: BTreeMap::new(),
            planned: 0,
            steps: 0,
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

    /// Ends all trouble, and starts what is dead.
    fn heal(&mut self) -> std::io::Result<()> {
        self.journal.note(Noted::World("all trouble ends".to_owned()));
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            seat.line.heal();
            seat.frozen = 0;
            seat.restart = RESTART;
            if seat.process.is_none() {
                self.start(number)?;
            }
        }
        Ok(())
    }

    /// Runs processes and moves time until a moment, or until something holds.
    fn run_until(&mut self, end: Duration, holds: impl Fn() -> bool) -> std::io::Result<()> {
        while self.steps < MOST_STEPS && !holds() {
            self.bury();
            let ready: Vec<usize> = (0..=self.seats.len()).filter(|number| self.is_ready(*number)).collect();
            if let Some(number) = self.dice.pick(&ready).copied() {
                self.steps += 1;
                match self.seats.get(number) {
                    Some(seat) => seat.process.iter().for_each(Process::run),
                    None => self.client.run(),
                }
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

    /// Tells whether a process may run now; the number after the last worker is the client.
    fn is_ready(&self, number: usize) -> bool {
        match self.seats.get(number) {
            Some(seat) => seat.frozen == 0 && seat.process.as_ref().is_some_and(Process::is_ready),
            None => self.client.is_ready(),
        }
    }

    /// Removes the processes that died, and plans when they are started again.
    fn bury(&mut self) {
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            if seat.process.as_ref().is_some_and(|process| process.life().has_ended()) {
                seat.clear();
                let at = self.time.now().saturating_add(seat.restart);
                seat.restart = RESTART;
                self.journal.life(&format!("w{number}.{}", seat.starts), Life::Dead);
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
            Act::Event(number) => self.happen(number),
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
                self.seats.get(number).iter().for_each(|seat| seat.line.cut(false));
                self.journal.note(Noted::World(format!("worker {number} reaches the store again")));
            }
            Act::Hasten(number) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.slow(Duration::ZERO));
            }
            Act::Instance(number) => self.client.spawn(client::start(&self.client_place(), number)),
        }
        Ok(())
    }

    fn happen(&mut self, number: usize) {
        let Some(event) = self.story.events.get(number) else { return };
        self.journal.note(Noted::World(format!("{:?}", event.what)));
        crate::audit::note_faults(&self.journal, &event.what, |number| {
            self.seats.get(number).map(|seat| format!("w{number}.{}", seat.starts))
        });
        let place = self.client_place();
        match event.what.clone() {
            Trouble::Kill(number, back) => self.kill(number, back),
            Trouble::Freeze(number, lasts) => self.freeze(number, lasts, Act::Thaw(number)),
            Trouble::Sleep(number, lasts) => self.freeze(number, lasts, Act::Wake(number, lasts)),
            Trouble::Step(number, by) => self.seats.get(number).iter().for_each(|seat| seat.host.step(by)),
            Trouble::Cut(number, lasts) => self.cut(number, lasts),
            Trouble::Outage(lasts) => (0..self.seats.len()).for_each(|number| self.cut(number, lasts)),
            Trouble::Slow(number, by, lasts) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.slow(by));
                self.later(lasts, Act::Hasten(number));
            }
            Trouble::Disturb(number, planned) => {
                self.seats.get(number).iter().for_each(|seat| seat.line.plan(planned));
            }
            Trouble::Drain(number, back) => self.drain(number, back),
            Trouble::Cancel(number) => self.client.spawn(client::cancel(&place, number)),
            Trouble::Terminate(number) => self.client.spawn(client::terminate(&place, number)),
            Trouble::StartAnew(number) => self.client.spawn(client::start_anew(&place, number)),
            Trouble::Raise(number, name) => self.client.spawn(client::raise(&place, number, name)),
            Trouble::Enqueue(number, name) => self.client.spawn(client::enqueue(&place, number, name)),
            Trouble::Release(session) => self.client.spawn(client::release(&place, session)),
        }
    }

    fn kill(&mut self, number: usize, back: Duration) {
        if let Some(seat) = self.seats.get_mut(number)
            && let Some(process) = &seat.process
        {
            process.life().end();
            seat.restart = back;
        }
    }

    fn freeze(&mut self, number: usize, lasts: Duration, end: Act) {
        if let Some(seat) = self.seats.get_mut(number) {
            seat.frozen += 1;
            self.later(lasts, end);
        }
    }

    fn cut(&mut self, number: usize, lasts: Duration) {
        if let Some(seat) = self.seats.get(number) {
            seat.line.cut(true);
            self.later(lasts, Act::Mend(number));
        }
    }

    fn drain(&mut self, number: usize, back: Duration) {
        let Some(seat) = self.seats.get_mut(number) else { return };
        let Some(process) = &seat.process else { return };
        seat.restart = back;
        let life = process.life().clone();
        let runtime = seat.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone();
        process.spawn(async move {
            if let Some(runtime) = runtime {
                runtime.drain().await;
                runtime.shutdown(Some(5_000)).await;
            }
            life.end();
        });
    }

    /// Starts the process of a worker, if it has none.
    fn start(&mut self, number: usize) -> std::io::Result<()> {
        let (Some(seat), Some(worker)) = (self.seats.get_mut(number), self.story.workers.get(number)) else {
            return Ok(());
        };
        if seat.process.is_some() {
            return Ok(());
        }
        seat.starts += 1;
        let (process, name) = (Process::new()?, format!("w{number}.{}", seat.starts));
        let wire =
            Wire::new(Arc::clone(&self.store), &name, process.life(), &seat.line, &self.time, &self.journal);
        let clock = HostTime(Arc::clone(&seat.host));
        let options = RuntimeOptions {
            orchestration_concurrency: 2,
            worker_concurrency: 3,
            worker_tag_filter: TagFilter::Any,
            worker_node_id: worker.named.then(|| format!("node-{number}")),
            max_sessions_per_runtime: worker.sessions,
            clock: Arc::new(clock.clone()),
            random: Arc::new(SeededRandom::new(code::hash_of(self.story.seed, &name))),
            // Found out by a thread otherwise.
            build_id: Some("simulated".to_owned()),
            ..RuntimeOptions::default()
        };
        let place = Place {
            process: name.clone(),
            life: process.life().clone(),
            clock: Arc::new(clock),
            journal: self.journal.clone(),
            seed: self.story.seed,
        };
        let (activities, orchestrations) =
            (code::activities(&place, worker), code::orchestrations(self.story));
        let slot = Arc::clone(&seat.runtime);
        process.spawn(async move {
            let runtime =
                Runtime::start_with_options(Arc::new(wire), activities, orchestrations, options).await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
        });
        seat.process = Some(process);
        self.journal.life(&name, Life::Started);
        Ok(())
    }

    fn client_place(&self) -> client::Desk {
        let clock: Arc<dyn steadfast_clock::Clock> = Arc::new(HostTime(Arc::clone(&self.client_clock)));
        let line = Line::new(self.story.seed ^ 0xC11E);
        let wire: Arc<dyn Provider> = Arc::new(Wire::new(
            Arc::clone(&self.store),
            "client",
            self.client.life(),
            &line,
            &self.time,
            &self.journal,
        ));
        client::Desk {
            client: Client::with_clock(Arc::clone(&wire), Arc::clone(&clock)),
            provider: wire,
            clock,
            journal: self.journal.clone(),
        }
    }
}

impl Seat {
    /// Drops what is left of a process.
    fn clear(&mut self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The tasks go first: what a runtime does when it is dropped is done by a dead process.
        self.process = None;
        drop(runtime);
    }
}
