//! What clients do: they start instances, send them what they wait for, and sometimes cancel them.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use anyhow::{Result, anyhow};
use futures::{StreamExt, TryStreamExt, stream};
use steadfast::{Client, ClientError, SessionKey};
use steadfast_audit::{Fact, Fault, FaultKind, Told};
use steadfast_clock::{Clock, SystemClock};
use steadfast_testing::program::{ast::names, dice::Dice};

use crate::{code, notes::Notes, tally::Tally};

/// How many clients there are.
const CLIENTS: u64 = 8;
/// How many instances are sent messages at a time at the end.
const NUDGES: usize = 16;
/// How long a client waits for an answer before it goes on without one.
const CALL: Duration = Duration::from_secs(10);
/// How often the list of running instances is read.
const LIST: Duration = Duration::from_millis(700);
/// The pause between two rounds of messages at the end.
const ROUND: Duration = Duration::from_millis(500);
/// The most unexpected errors that are kept.
const SURPRISES: usize = 10;

/// The clients of a run, all in the driver.
pub(super) struct Clients<'a> {
    client: Client,
    notes: Notes,
    tally: &'a Tally,
    seed: u64,
    load: LoadOptions,
    started: Cell<u64>,
    messages: Cell<u64>,
    running: RefCell<Vec<String>>,
    surprises: RefCell<Vec<String>>,
}

/// What clients do.
#[derive(Clone, Copy)]
pub(super) struct LoadOptions {
    /// How many instances run at a time.
    pub(super) window: usize,
    /// Whether instances are deleted and started again under their ids.
    pub(super) deletions: bool,
}

impl<'a> Clients<'a> {
    pub(super) fn new(client: Client, notes: Notes, tally: &'a Tally, seed: u64, load: LoadOptions) -> Self {
        let (started, messages) = Default::default();
        let (running, surprises) = Default::default();
        Self { client, notes, tally, seed, load, started, messages, running, surprises }
    }

    /// Returns how many instances run, as far as is known.
    pub(super) fn running(&self) -> usize {
        self.running.borrow().len()
    }

    /// Returns the errors that no trouble explains.
    pub(super) fn surprises(&self) -> Vec<String> {
        self.surprises.borrow().clone()
    }

    /// Keeps the workers busy until a moment.
    pub(super) async fn load(&self, until: Duration) -> Result<()> {
        let one = |number: u64| self.one(Dice::new(self.seed.wrapping_add(1_000 + number)), until);
        let all: Vec<_> = (0..CLIENTS).map(one).collect();
        let (listed, worked) = tokio::join!(self.list_until(until), futures::future::try_join_all(all));
        listed.and(worked.map(drop))
    }

    /// Sends every instance that runs what it may wait for, until all have ended. Returns whether they have.
    pub(super) async fn settle(&self, patience: Duration) -> Result<bool> {
        let began = SystemClock.monotonic();
        let (mut dice, mut told) = (Dice::new(self.seed), began);
        while SystemClock.monotonic() < began + patience {
            SystemClock.sleep(ROUND).await;
            if self.list().await && self.running.borrow().is_empty() && self.is_empty().await {
                println!("  all have ended {:.1} s later", (SystemClock.monotonic() - began).as_secs_f64());
                return Ok(true);
            }
            let running = self.running.borrow().clone();
            let nudged = stream::iter(&running).map(|instance| self.nudge(instance)).buffer_unordered(NUDGES);
            nudged.try_collect::<()>().await?;
            if SystemClock.monotonic() - told > Duration::from_secs(10) {
                told = SystemClock.monotonic();
                let example = dice.pick(&running).cloned().unwrap_or_default();
                println!("  {} still run, such as {example}", running.len());
            }
        }
        self.explain_running().await;
        Ok(false)
    }

    /// Sends an instance everything that it may wait for.
    async fn nudge(&self, instance: &str) -> Result<()> {
        for name in names::EVENTS {
            self.raise(instance, name).await?;
        }
        for name in names::QUEUES {
            self.enqueue(instance, name).await?;
        }
        Ok(())
    }

    /// One client: a call every few milliseconds.
    async fn one(&self, mut dice: Dice, until: Duration) -> Result<()> {
        while SystemClock.monotonic() < until {
            SystemClock.sleep(Duration::from_millis(5 + dice.roll() % 30)).await;
            let running = self.running.borrow().clone();
            let is_room = running.len() < self.load.window;
            let instance = match dice.pick(&running) {
                Some(instance) if !(is_room && dice.chance(300)) => instance.clone(),
                _ if is_room => {
                    self.start(&mut dice).await?;
                    continue;
                }
                _ => continue,
            };
            self.disturb(&mut dice, instance).await?;
        }
        Ok(())
    }

    async fn start(&self, dice: &mut Dice) -> Result<()> {
        let number = self.started.get();
        self.started.set(number + 1);
        self.start_as(dice, format!("i{number}")).await
    }

    /// Deletes an instance with all that it has under way, and starts another one under its id.
    async fn start_anew(&self, dice: &mut Dice, instance: String) -> Result<()> {
        let call = async { self.client.delete_instance(&instance, true).await.map(drop) };
        self.tell(Told::Deleted(instance.clone()), call).await?;
        self.tally.count("deletions");
        self.start_as(dice, instance).await
    }

    async fn start_as(&self, dice: &mut Dice, instance: String) -> Result<()> {
        let program = dice.below(code::PROGRAMS);
        // It runs soon; a list that is read meanwhile may miss it.
        self.running.borrow_mut().push(instance.clone());
        let call = self.client.start_orchestration(instance.clone(), code::name(program), "x");
        self.tell(Told::Started(instance), call).await
    }

    /// Does something to an instance that runs, or did a moment ago.
    async fn disturb(&self, dice: &mut Dice, instance: String) -> Result<()> {
        match dice.below(1_000) {
            0..10 => {
                let call = self.client.cancel_instance(instance.clone(), "not wanted any more");
                self.tell(Told::Cancelled(instance), call).await
            }
            10..14 => {
                let call = self.client.terminate_instance(instance.clone(), "enough");
                self.tell(Told::Terminated(instance), call).await
            }
            14..24 => self.release(dice).await,
            24..44 if self.load.deletions && !instance.contains(':') => self.start_anew(dice, instance).await,
            24..500 => self.raise(&instance, dice.pick(names::EVENTS).copied().unwrap_or("e")).await,
            _ => self.enqueue(&instance, dice.pick(names::QUEUES).copied().unwrap_or("q")).await,
        }
    }

    /// Takes a shared session away from its owner, as an operator may.
    async fn release(&self, dice: &mut Dice) -> Result<()> {
        let session = SessionKey::shared(dice.pick(names::SESSIONS).copied().unwrap_or("s"));
        let fault = Fault { kind: FaultKind::Released, process: None, lasts_us: 0 };
        self.note(Fact::Fault(fault)).await?;
        let answer = tokio::time::timeout(CALL, self.client.release_session(&session)).await;
        if let Ok(Ok(true)) = answer {
            self.tally.count("sessions released by hand");
        }
        Ok(())
    }

    async fn raise(&self, instance: &str, name: &str) -> Result<()> {
        let data = self.data(name);
        let call = self.client.raise_event(instance, name, data.as_str());
        self.tell(Told::Raised(instance.to_owned(), name.to_owned(), data.clone()), call).await
    }

    async fn enqueue(&self, instance: &str, name: &str) -> Result<()> {
        let data = self.data(name);
        let call = self.client.enqueue_event(instance, name, data.as_str());
        self.tell(Told::Enqueued(instance.to_owned(), name.to_owned(), data.clone()), call).await
    }

    /// Makes data that no other message has.
    fn data(&self, name: &str) -> String {
        self.messages.set(self.messages.get() + 1);
        format!("{name}{}", self.messages.get())
    }

    /// Makes a call, and writes down that it was asked for and whether it succeeded.
    async fn tell(&self, told: Told, call: impl Future<Output = Result<(), ClientError>>) -> Result<()> {
        self.note(Fact::Asked(told.clone())).await?;
        match tokio::time::timeout(CALL, call).await {
            Ok(Ok(())) => {
                if matches!(told, Told::Started(_)) {
                    self.tally.count("started");
                }
                self.tally.count("calls that succeeded");
                self.note(Fact::Told(told)).await
            }
            Ok(Err(error)) => {
                self.tally.count("calls that failed");
                self.note_surprise(&told, &error);
                Ok(())
            }
            Err(_) => {
                self.tally.count("calls without an answer");
                Ok(())
            }
        }
    }

    /// An error that another try cannot mend is none that trouble explains, unless the instance has ended.
    fn note_surprise(&self, told: &Told, error: &ClientError) {
        let mut surprises = self.surprises.borrow_mut();
        let may_be_gone = matches!(told, Told::Terminated(_) | Told::Deleted(_));
        if !error.is_retryable() && !may_be_gone && surprises.len() < SURPRISES {
            surprises.push(format!("a client was told about {told:?}: {error}"));
        }
    }

    async fn note(&self, fact: Fact) -> Result<()> {
        self.notes.noted(fact).await.map_err(|error| anyhow!(error))
    }

    async fn list_until(&self, until: Duration) -> Result<()> {
        while SystemClock.monotonic() < until {
            SystemClock.sleep(LIST).await;
            self.list().await;
        }
        Ok(())
    }

    /// Reads which instances run. Returns whether the store answered.
    async fn list(&self) -> bool {
        let running = tokio::time::timeout(CALL, self.client.list_instances_by_status("Running")).await;
        match running {
            Ok(Ok(running)) => {
                *self.running.borrow_mut() = running;
                true
            }
            _ => false,
        }
    }

    /// Tells whether nothing waits in the store.
    async fn is_empty(&self) -> bool {
        match tokio::time::timeout(CALL, self.client.get_queue_depths()).await {
            Ok(Ok(depths)) => depths.orchestrator_queue == 0 && depths.worker_queue == 0,
            _ => false,
        }
    }

    /// Says of some instances that did not end what they wait for.
    async fn explain_running(&self) {
        let running = self.running.borrow().clone();
        println!("  {} did not end", running.len());
        for instance in running.iter().take(SURPRISES) {
            match self.client.explain(instance).await {
                Ok(explanation) => println!("{explanation}"),
                Err(error) => println!("{instance} cannot be explained: {error}"),
            }
        }
    }
}
