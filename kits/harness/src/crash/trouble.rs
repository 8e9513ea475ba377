//! What goes wrong: in one lane the workers, in another one the store.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use rusqlite::Connection;
use steadfast_audit::{Fact, Fault, FaultKind};
use steadfast_clock::{Clock, SystemClock};
use steadfast_cluster::Server;
use steadfast_testing::program::dice::Dice;

use crate::{
    address::SCHEMA,
    crew::Crew,
    holder::Lock,
    notes::{Notes, now_us},
    place::Place,
    tally::Tally,
};

/// How many things go wrong with workers at a time.
const LANES: usize = 2;
/// How long a worker may take to shut down in the middle of trouble: calls of the store may wait as long.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// How long a lock on a table may take to be granted.
const LOCK_PATIENCE_MS: u64 = 5_000;

/// The tables that are locked.
const TABLES: [&str; 7] =
    ["instances", "instance_locks", "orchestrator_queue", "worker_queue", "history", "sessions", "workers"];

/// Causes trouble.
#[derive(Clone, Copy)]
pub(super) struct Trouble<'a> {
    pub(super) place: &'a Place,
    /// The program that is also the foreign process.
    pub(super) program: &'a Path,
    pub(super) notes: &'a Notes,
    pub(super) tally: &'a Tally,
}

impl Trouble<'_> {
    /// Troubles the workers until a moment, several at a time.
    pub(super) async fn workers(&self, crew: &RefCell<Crew>, mut dice: Dice, until: Duration) -> Result<()> {
        let busy = RefCell::new(BTreeSet::new());
        let lane = |dice: Dice| self.worker_lane(crew, &busy, dice, until);
        let lanes: Vec<_> = (0..LANES).map(|_| lane(Dice::new(dice.roll()))).collect();
        futures::future::try_join_all(lanes).await.map(drop)
    }

    /// Troubles one worker after the other, or all at once.
    async fn worker_lane(
        &self,
        crew: &RefCell<Crew>,
        busy: &RefCell<BTreeSet<usize>>,
        mut dice: Dice,
        until: Duration,
    ) -> Result<()> {
        let size = crew.borrow().size();
        while pause(between(&mut dice, 300, 2_500), until).await {
            let victim = dice.below(size);
            let victims: Vec<usize> = if dice.chance(60) { (0..size).collect() } else { vec![victim] };
            if victims.iter().any(|victim| busy.borrow().contains(victim)) {
                continue;
            }
            busy.borrow_mut().extend(&victims);
            victims.iter().try_for_each(|victim| crew.borrow_mut().replace_ended(*victim))?;
            match dice.below(100) {
                0..45 => self.kill(crew, &victims, Duration::ZERO).await?,
                45..60 => self.kill(crew, &victims, between(&mut dice, 200, 4_000)).await?,
                60..84 => self.pause(crew, &victims, between(&mut dice, 500, 8_000)).await?,
                84..93 => self.shut_down(crew, &victims).await?,
                _ => self.replace(crew, victim, between(&mut dice, 500, 5_000)).await?,
            }
            busy.borrow_mut().retain(|number| !victims.contains(number));
        }
        Ok(())
    }

    /// Troubles the store until a moment.
    pub(super) async fn store(&self, mut dice: Dice, until: Duration) -> Result<()> {
        while pause(between(&mut dice, 1_000, 7_000), until).await {
            let choice = dice.below(100);
            match self.place {
                Place::File(file) => match choice {
                    0..50 => self.hold(file, Lock::Write, between(&mut dice, 200, 7_000), false).await?,
                    50..75 => self.hold(file, Lock::Write, between(&mut dice, 200, 3_000), true).await?,
                    _ => self.hold(file, Lock::Read, between(&mut dice, 200, 6_000), false).await?,
                },
                Place::Server(server) => match choice {
                    0..25 => self.crash(server, between(&mut dice, 0, 4_000)).await?,
                    25..70 => self.terminate(&mut dice).await?,
                    _ => self.lock_table(&mut dice).await?,
                },
            }
        }
        Ok(())
    }

    /// Kills nodes, and starts them again after a time.
    async fn kill(&self, crew: &RefCell<Crew>, victims: &[usize], away: Duration) -> Result<()> {
        for victim in victims {
            crew.borrow_mut().kill(*victim)?;
            self.tally.count("kills");
        }
        SystemClock.sleep(away).await;
        victims.iter().try_for_each(|victim| crew.borrow_mut().spawn(*victim))
    }

    /// Stops processes where they stand. One that writes to the file at that moment keeps the others out.
    async fn pause(&self, crew: &RefCell<Crew>, victims: &[usize], lasts: Duration) -> Result<()> {
        let began_us = now_us();
        let mut paused = Vec::new();
        for victim in victims {
            paused.extend(crew.borrow_mut().pause(*victim)?);
            self.tally.count("pauses");
        }
        let is_held = self.is_held().await?;
        SystemClock.sleep(lasts).await;
        for victim in victims {
            crew.borrow_mut().resume(*victim)?;
        }
        for process in paused {
            self.note(began_us, FaultKind::Paused, Some(process))?;
        }
        if is_held {
            self.tally.count("pauses inside a write to the file");
            self.note(began_us, FaultKind::Cut, None)?;
        }
        Ok(())
    }

    /// Shuts nodes down in good order, and starts them again.
    async fn shut_down(&self, crew: &RefCell<Crew>, victims: &[usize]) -> Result<()> {
        for victim in victims {
            let asked = crew.borrow_mut().ask_to_stop(*victim)?;
            let Some(mut process) = asked else { continue };
            self.tally.count("shutdowns");
            let ended = process.ended(STOP_PATIENCE).await?;
            crew.borrow_mut().stopped(process, ended)?;
        }
        victims.iter().try_for_each(|victim| crew.borrow_mut().spawn(*victim))
    }

    /// Tells whether a process that does not run holds the right to write to the file.
    async fn is_held(&self) -> Result<bool> {
        let Place::File(file) = self.place else { return Ok(false) };
        let probe = Connection::open(file)?;
        probe.busy_timeout(Duration::ZERO)?;
        for _ in 0..10 {
            SystemClock.sleep(Duration::from_millis(30)).await;
            if probe.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts a process under the name of one that runs, as a hasty deployment does, and kills the older one
    /// later.
    async fn replace(&self, crew: &RefCell<Crew>, victim: usize, beside: Duration) -> Result<()> {
        self.tally.count("nodes started twice");
        let older = crew.borrow_mut().spawn_beside(victim)?;
        SystemClock.sleep(beside).await;
        match older {
            Some(older) => crew.borrow_mut().kill_process(older),
            None => Ok(()),
        }
    }

    /// Lets a foreign process hold the file, and may kill it in the middle.
    async fn hold(&self, file: &Path, lock: Lock, lasts: Duration, is_killed: bool) -> Result<()> {
        let word = if lock == Lock::Write { "write" } else { "read" };
        let mut command = Command::new(self.program);
        command.args(["hold", "--lock", word, "--millis", &lasts.as_millis().to_string(), "--file"]);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began_us = now_us();
        let mut holder = Holder(command.spawn().context("a foreign process cannot be started")?);
        let time = if is_killed { lasts / 2 } else { lasts + Duration::from_secs(12) };
        let deadline = SystemClock.monotonic() + time;
        while holder.0.try_wait()?.is_none() && SystemClock.monotonic() < deadline {
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
        drop(holder);
        self.tally.count(match (lock, is_killed) {
            (Lock::Write, false) => "holds of the file",
            (Lock::Write, true) => "holds of the file that were killed",
            (Lock::Read, _) => "long reads of the file",
        });
        if lock == Lock::Write { self.note(began_us, FaultKind::Cut, None) } else { Ok(()) }
    }

    /// Stops the server as a crash does, and starts it again.
    async fn crash(&self, server: &Arc<Server>, away: Duration) -> Result<()> {
        let began_us = now_us();
        self.tally.count("crashes of the server");
        let stopped = Arc::clone(server);
        tokio::task::spawn_blocking(move || stopped.stop_immediately()).await??;
        SystemClock.sleep(away).await;
        let started = Arc::clone(server);
        tokio::task::spawn_blocking(move || started.start_again()).await??;
        self.note(began_us, FaultKind::StoreKilled, None)
    }

    /// Ends connections at the server: all of them, or each with even odds.
    async fn terminate(&self, dice: &mut Dice) -> Result<()> {
        let began_us = now_us();
        let odds = if dice.chance(500) { "1" } else { "0.5" };
        let text = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < {odds}"
        );
        if let Ok(client) = self.place.connect().await
            && let Ok(row) = client.query_one(&text, &[]).await
        {
            let count: i64 = row.get(0);
            self.tally.add("connections ended", u64::try_from(count).unwrap_or(0));
        }
        self.note(began_us, FaultKind::Cut, None)
    }

    /// Locks a table for longer than some leases.
    async fn lock_table(&self, dice: &mut Dice) -> Result<()> {
        let began_us = now_us();
        let lasts = between(dice, 500, 7_000);
        let table = dice.pick(&TABLES).copied().unwrap_or("instances");
        let text = format!(
            "SET lock_timeout = {LOCK_PATIENCE_MS}; BEGIN; \
             LOCK TABLE {SCHEMA}.{table} IN ACCESS EXCLUSIVE MODE"
        );
        if let Ok(client) = self.place.connect().await
            && client.batch_execute(&text).await.is_ok()
        {
            SystemClock.sleep(lasts).await;
            // The end of the connection would free it too.
            drop(client.batch_execute("ROLLBACK").await);
            self.tally.count("tables locked");
        }
        self.note(began_us, FaultKind::Cut, None)
    }

    /// Writes down a fault that began at a moment and ends now.
    fn note(&self, began_us: u64, kind: FaultKind, process: Option<String>) -> Result<()> {
        let lasts_us = now_us().saturating_sub(began_us);
        self.notes.note_at(began_us, Fact::Fault(Fault { kind, process, lasts_us }))?;
        Ok(())
    }
}

/// A foreign process. Dropping it kills it.
struct Holder(std::process::Child);

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Draws a time, in milliseconds.
fn between(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.roll() % (to - from).max(1))
}

/// Waits, and returns whether the trouble goes on.
async fn pause(time: Duration, until: Duration) -> bool {
    let next = SystemClock.monotonic() + time;
    SystemClock.sleep_until(next.min(until)).await;
    next < until
}
