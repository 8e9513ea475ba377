//! The worker processes of a run, and what can be done to them.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use steadfast_audit::{Fact, Fault, FaultKind, Life};
use steadfast_clock::{Clock, SystemClock};

use crate::{address::Address, notes::Notes, worker::Role};

/// How often a process that was asked to end is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What all workers of a run are told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The program to start; its first argument is `worker`.
    pub program: PathBuf,
    /// The store.
    pub address: Address,
    /// The folder of the ledgers and logs.
    pub folder: PathBuf,
    /// Decides the programs.
    pub seed: u64,
    /// Which code they serve.
    pub role: Role,
}

/// The workers of a run. Dropping it kills them.
#[derive(Debug)]
pub struct Crew {
    orders: Orders,
    notes: Notes,
    members: Vec<Member>,
    /// What went wrong that no one did.
    surprises: Vec<String>,
}

/// One node: the same name in all of its lives.
#[derive(Debug)]
struct Member {
    node: String,
    number: usize,
    lives: u32,
    running: Option<Process>,
}

/// One life of a node. Dropping it kills the process.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

impl Crew {
    /// Starts so many workers.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or the driver has no ledger.
    pub fn start(orders: Orders, notes: Notes, size: usize) -> Result<Self> {
        let members = (0..size).map(|number| {
            let node = format!("w{number}");
            Member { node, number, lives: 0, running: None }
        });
        let mut crew = Self { orders, notes, members: members.collect(), surprises: Vec::new() };
        (0..size).try_for_each(|number| crew.spawn(number))?;
        Ok(crew)
    }

    /// Returns how many nodes there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Starts the next life of a node. If an older one runs, it is returned: both run now.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or the driver has no ledger.
    pub fn spawn_beside(&mut self, number: usize) -> Result<Option<Process>> {
        let Some(member) = self.members.get_mut(number) else { bail!("there is no worker {number}") };
        member.lives += 1;
        let name = format!("{}.{}", member.node, member.lives);
        self.notes.note(Fact::Process(name.clone(), Life::Started))?;
        let child = self.orders.command(member, &name)?.spawn().context("a worker cannot be started")?;
        Ok(member.running.replace(Process { name, child }))
    }

    /// Starts the next life of a node that does not run.
    ///
    /// # Errors
    ///
    /// As [`spawn_beside`](Self::spawn_beside).
    pub fn spawn(&mut self, number: usize) -> Result<()> {
        match self.spawn_beside(number)? {
            Some(older) => self.kill_process(older),
            None => Ok(()),
        }
    }

    /// Kills a node as `kill -9` does.
    ///
    /// # Errors
    ///
    /// The driver has no ledger.
    pub fn kill(&mut self, number: usize) -> Result<()> {
        match self.members.get_mut(number).and_then(|member| member.running.take()) {
            Some(process) => self.kill_process(process),
            None => Ok(()),
        }
    }

    /// Kills a process as `kill -9` does.
    ///
    /// # Errors
    ///
    /// The driver has no ledger.
    pub fn kill_process(&mut self, mut process: Process) -> Result<()> {
        let name = process.name.clone();
        self.note_surprise(&mut process);
        let fault = Fault { kind: FaultKind::Killed, process: Some(name.clone()), lasts_us: 0 };
        self.notes.note(Fact::Fault(fault))?;
        drop(process);
        self.notes.note(Fact::Process(name, Life::Dead))?;
        Ok(())
    }

    /// Stops a node where it stands, and returns the name of the process.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent.
    pub fn pause(&mut self, number: usize) -> Result<Option<String>> {
        self.signal(number, Signal::STOP)
    }

    /// Lets a node go on.
    ///
    /// # Errors
    ///
    /// The signal cannot be sent.
    pub fn resume(&mut self, number: usize) -> Result<Option<String>> {
        self.signal(number, Signal::CONT)
    }

    /// Asks a node to shut down in good order, and returns the process to wait for.
    ///
    /// # Errors
    ///
    /// The driver has no ledger.
    pub fn ask_to_stop(&mut self, number: usize) -> Result<Option<Process>> {
        let taken = self.members.get_mut(number).and_then(|member| member.running.take());
        let Some(mut process) = taken else { return Ok(None) };
        self.note_surprise(&mut process);
        let name = process.name.clone();
        self.notes.note(Fact::Process(name.clone(), Life::Stopping))?;
        let fault = Fault { kind: FaultKind::Drained, process: Some(name), lasts_us: 0 };
        self.notes.note(Fact::Fault(fault))?;
        drop(process.child.stdin.take());
        Ok(Some(process))
    }

    /// Takes note that a process that was asked to stop has ended, or kills it.
    ///
    /// # Errors
    ///
    /// The driver has no ledger.
    pub fn stopped(&mut self, process: Process, ended: Ended) -> Result<()> {
        let name = process.name.clone();
        match ended {
            Ended::With(status) if status.success() => {}
            Ended::With(status) => {
                self.surprises.push(format!("{name} was asked to shut down and ended with {status}"));
            }
            Ended::NotIn(patience) => {
                self.surprises.push(format!("{name} was asked to shut down and did not in {patience:?}"));
            }
        }
        drop(process);
        self.notes.note(Fact::Process(name, Life::Dead))?;
        Ok(())
    }

    /// Shuts all nodes down in good order, all at once.
    ///
    /// # Errors
    ///
    /// The driver has no ledger.
    ///
    /// # Cancel safety
    ///
    /// A dropped call kills those that have not ended.
    pub async fn stop_all(&mut self, patience: Duration) -> Result<()> {
        let mut stopping = Vec::new();
        for number in 0..self.size() {
            stopping.extend(self.ask_to_stop(number)?);
        }
        for mut process in stopping {
            let ended = process.ended(patience).await?;
            self.stopped(process, ended)?;
        }
        Ok(())
    }

    /// Starts every node that does not run, and lets every paused one go on.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`resume`](Self::resume).
    pub fn restore(&mut self) -> Result<()> {
        for number in 0..self.size() {
            self.replace_ended(number)?;
            self.resume(number)?;
        }
        Ok(())
    }

    /// Starts a node again that ended by itself, and remembers that it did.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn replace_ended(&mut self, number: usize) -> Result<()> {
        let Some(mut process) = self.members.get_mut(number).and_then(|member| member.running.take()) else {
            return self.spawn(number);
        };
        if self.note_surprise(&mut process) {
            self.notes.note(Fact::Process(process.name.clone(), Life::Dead))?;
            return self.spawn(number);
        }
        if let Some(member) = self.members.get_mut(number) {
            member.running = Some(process);
        }
        Ok(())
    }

    /// Returns the ids of the processes that run.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| Some(member.running.as_ref()?.child.id())).collect()
    }

    /// Returns what went wrong that no one did: ends of processes, and panics in their logs.
    pub fn surprises(&self) -> Vec<String> {
        let mut surprises = self.surprises.clone();
        for member in &self.members {
            let log = self.orders.log(member);
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let panics = text.lines().filter(|line| line.contains("panicked at"));
            surprises.extend(panics.take(5).map(|line| format!("{}: {line}", log.display())));
        }
        surprises
    }

    /// Counts the lines of the logs that have a word.
    pub fn lines_with(&self, word: &str) -> u64 {
        let logs = self.members.iter().map(|member| {
            let text = std::fs::read_to_string(self.orders.log(member)).unwrap_or_default();
            text.lines().filter(|line| line.contains(word)).count() as u64
        });
        logs.sum()
    }

    /// Remembers that a process has ended although no one ended it. Returns whether it has.
    fn note_surprise(&mut self, process: &mut Process) -> bool {
        let ended = process.child.try_wait().ok().flatten();
        if let Some(status) = ended {
            self.surprises.push(format!("{} ended by itself with {status}", process.name));
        }
        ended.is_some()
    }

    fn signal(&mut self, number: usize, signal: Signal) -> Result<Option<String>> {
        let running = self.members.get(number).and_then(|member| member.running.as_ref());
        let Some(process) = running else { return Ok(None) };
        let pid = i32::try_from(process.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process has no id")?, signal).context("a signal cannot be sent")?;
        Ok(Some(process.name.clone()))
    }
}

impl Orders {
    fn command(&self, member: &Member, process: &str) -> Result<Command> {
        let log = self.log(member);
        let log = append(&log).with_context(|| format!("{} does not open", log.display()))?;
        let mut command = Command::new(&self.program);
        command
            .args(["worker", "--node", &member.node, "--number", &member.number.to_string()])
            .args(["--process", process, "--store", &self.address.to_string()])
            .arg("--ledgers")
            .arg(&self.folder)
            .args(["--seed", &self.seed.to_string()])
            .args(["--role", if self.role == Role::Crash { "crash" } else { "soak" }])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log);
        Ok(command)
    }

    fn log(&self, member: &Member) -> PathBuf {
        self.folder.join(format!("{}.log", member.node))
    }
}

/// How a process that was asked to stop did so.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// It ended.
    With(ExitStatus),
    /// It did not, for this long.
    NotIn(Duration),
}

impl Process {
    /// Waits until the process has ended.
    ///
    /// # Errors
    ///
    /// The operating system does not tell.
    ///
    /// # Cancel safety
    ///
    /// Waits only.
    pub async fn ended(&mut self, patience: Duration) -> Result<Ended> {
        let deadline = SystemClock.monotonic() + patience;
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(Ended::With(status)),
                None if SystemClock.monotonic() >= deadline => return Ok(Ended::NotIn(patience)),
                None => SystemClock.sleep(LOOK).await,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it. Stopped ones die too.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
