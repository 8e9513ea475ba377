//! What the processes of a world keep their data on: a server that all of them reach, or a SQLite file on the
//! disk of the one machine that they run on.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use steadfast::providers::Store;
use steadfast_audit::{Watch, WatchedStore};
use steadfast_clock::Clock;
use steadfast_disk::{Disk, DiskFault, Failure, FileCall, Loss, VFS};
use steadfast_sqlite::{Durability, SqliteOptions, SqliteProvider, Threads};
use steadfast_testing::program::dice::Dice;

use crate::{
    process::Process,
    story::{Happening, LARGE_TEXT, Story, Theme, Trouble},
    time::{HostClock, HostTime, WorldTime},
};

/// What the processes of a world keep their data on.
pub enum Ground {
    /// A store on a host of its own, which all processes reach over their lines.
    Server(Arc<WatchedStore>, Arc<HostClock>),
    /// A file on the disk of the machine that all processes run on.
    Machine(Machine),
}

impl Ground {
    /// Makes a server of a store that is given the clock of its host.
    pub fn server(time: &WorldTime, open: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) -> Self {
        let host = HostClock::new(time, 0, 0);
        let clock: Arc<dyn Clock> = Arc::new(HostTime(Arc::clone(&host)));
        Self::Server(Arc::new(WatchedStore::new(open(Arc::clone(&clock)), clock)), host)
    }

    /// Opens the store for a process.
    ///
    /// # Errors
    ///
    /// Why the store cannot be opened, in words.
    pub fn open(&self, process: &Process, name: &str) -> Result<Arc<WatchedStore>, String> {
        match self {
            Self::Server(store, _) => Ok(Arc::<WatchedStore>::clone(store)),
            Self::Machine(machine) => machine.open(process, name),
        }
    }

    /// Returns the host whose wall time is that of the store.
    pub fn host(&self) -> &Arc<HostClock> {
        match self {
            Self::Server(_, host) => host,
            Self::Machine(machine) => &machine.host,
        }
    }

    /// Returns the watch over the store. That of a file ends when it cannot be told what the file holds: a
    /// call failed at the disk, the power failed, or the time of the file was set.
    pub fn watch(&self) -> Watch {
        match self {
            Self::Server(store, _) => store.watch(),
            Self::Machine(machine) => machine.watch.clone(),
        }
    }

    /// Returns the machine that all processes run on, if there is one.
    pub fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Server(..) => None,
            Self::Machine(machine) => Some(machine),
        }
    }
}

/// A machine with a disk, on which all processes run.
pub struct Machine {
    disk: Disk,
    host: Arc<HostClock>,
    durability: Durability,
    /// All processes of the machine are watched together.
    watch: Watch,
}

/// The name of the file of the store, and the length of its pages.
const FILE: &str = "store.db";
const PAGE: usize = 4_096;

/// How long the log may get before it is written back, in pages: it begins anew many times in a story.
const LOG_PAGES: u32 = 60;

/// How often a process looks for commits of others: a story lasts an hour.
const LOOKS: Duration = Duration::from_millis(400);

impl Machine {
    /// Makes the machine of a story, with an empty disk. Its clock is that of the first worker.
    ///
    /// # Errors
    ///
    /// What SQLite says if it does not take the disk.
    pub fn new(story: &Story, time: &WorldTime, durability: Durability) -> std::io::Result<Self> {
        let (ahead_ms, drift) = story.workers.first().map_or((0, 0), |first| (first.ahead_ms, first.drift));
        let disk = Disk::new(story.seed).map_err(std::io::Error::other)?;
        let host = HostClock::of_machine(time, ahead_ms, drift);
        let watch = Watch::new(Arc::new(HostTime(Arc::clone(&host))));
        Ok(Self { disk, host, durability, watch })
    }

    fn open(&self, process: &Process, name: &str) -> Result<Arc<WatchedStore>, String> {
        let mount = self.disk.mount(name);
        let options = SqliteOptions {
            clock: Arc::new(HostTime(Arc::clone(&self.host))),
            threads: Threads::Caller,
            durability: self.durability,
            vfs: Some(VFS.to_owned()),
            other_processes: Some(LOOKS),
            busy_timeout: Duration::ZERO,
            readers: 1,
            wal_pages: LOG_PAGES,
            ..SqliteOptions::default()
        };
        let url = format!("sqlite:{}", mount.path(FILE));
        process.life().then(move || mount.kill());
        match process.now(SqliteProvider::new(&url, Some(options))) {
            Some(Ok(store)) => {
                let life = process.life().clone();
                let is_alive = move || !life.has_ended();
                Ok(Arc::new(WatchedStore::beside(Arc::new(store), &self.watch, is_alive)))
            }
            Some(Err(error)) => Err(format!("{error:?}")),
            None => Err("the store waits while it is opened".to_owned()),
        }
    }

    /// Returns the host of all processes.
    pub fn host(&self) -> &Arc<HostClock> {
        &self.host
    }

    /// Plans a fault of the disk.
    pub fn plan(&self, fault: DiskFault) {
        self.disk.plan(fault);
    }

    /// Fails the reads of all pages that hold nothing but a part of a large input. The message with that
    /// input is consumed by then, so they are pages of a history.
    pub fn lose_histories(&self, failure: LostRead) {
        let bytes = self.disk.bytes(FILE).unwrap_or_default();
        let free = free_pages(&bytes);
        for (number, page) in bytes.chunks_exact(PAGE).enumerate() {
            // An overflow page begins with the number of the next one.
            let is_text = page[4..PAGE / 2].iter().all(|byte| char::from(*byte) == LARGE_TEXT);
            if is_text && !free.contains(&number) {
                self.disk.fail_reads(FILE, number * PAGE, u64::MAX, failure.into());
            }
        }
    }

    /// Lets the disk return all pages again.
    pub fn return_histories(&self) {
        self.disk.return_reads();
    }

    /// Fills the disk, or makes room.
    pub fn fill(&self, is_full: bool) {
        self.disk.set_room(is_full.then(|| self.disk.used()));
    }

    /// Ends the trouble of the disk.
    pub fn heal(&self) {
        self.disk.heal();
    }

    /// Tells whether the power has failed.
    pub fn is_off(&self) -> bool {
        self.disk.is_off()
    }

    /// Starts the machine again after the power failed. All processes must be dead.
    pub fn restart(&self) {
        self.watch.lose_sight();
        self.disk.crash(Loss::Some);
        self.host.restart();
    }
}

/// What goes wrong with the disk of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskTrouble {
    /// The power fails at once, and the processes are started after a while.
    Power(Duration),
    /// The power fails when so many more writes were made.
    PowerAtWrite(u64),
    /// The power fails when so many more syncs were made.
    PowerAtSync(u64),
    /// So many reads fail, after so many that do not.
    Reads(u64, u64),
    /// So many writes fail, after so many that do not.
    Writes(u64, u64),
    /// So many syncs fail, after so many that do not.
    Syncs(u64, u64),
    /// There is no memory for a call, after so many for which there is.
    Memory(u64),
    /// The histories with large inputs cannot be read for a while.
    History(Duration, LostRead),
}

/// How a read fails that the disk does not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostRead {
    /// With an error, so that it may be tried again.
    Refused,
    /// As that of a page that is torn.
    Torn,
}

impl From<LostRead> for Failure {
    fn from(read: LostRead) -> Self {
        match read {
            LostRead::Refused => Self::Io,
            LostRead::Torn => Self::BadSector,
        }
    }
}

/// Lists the free pages of a file: numbers from 0.
fn free_pages(file: &[u8]) -> BTreeSet<usize> {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(0)
    };
    let mut free = BTreeSet::new();
    let mut trunk = number(FIRST_TRUNK);
    while let Some(page) = trunk.checked_sub(1).filter(|page| free.insert(*page)) {
        let (next, count) = (number(page * PAGE), number(page * PAGE + 4).min(PAGE / 4));
        free.extend((0..count).map(|leaf| number(page * PAGE + 8 + leaf * 4).saturating_sub(1)));
        trunk = next;
    }
    free
}

/// Where the header of a file has the number of the first page that lists free ones.
const FIRST_TRUNK: usize = 32;

impl DiskTrouble {
    /// Returns the fault of the disk; `None` if it is not one of calls.
    pub fn fault(self) -> Option<DiskFault> {
        let io = |call, skip, times| DiskFault { call: Some(call), skip, times, failure: Failure::Io };
        match self {
            Self::Power(_) | Self::History(..) => None,
            Self::PowerAtWrite(skip) => Some(DiskFault::once(FileCall::Write, skip, Failure::PowerLoss)),
            Self::PowerAtSync(skip) => Some(DiskFault::once(FileCall::Sync, skip, Failure::PowerLoss)),
            Self::Reads(skip, times) => Some(io(FileCall::Read, skip, times)),
            Self::Writes(skip, times) => Some(io(FileCall::Write, skip, times)),
            Self::Syncs(skip, times) => Some(io(FileCall::Sync, skip, times)),
            Self::Memory(skip) => Some(DiskFault { call: None, skip, times: 1, failure: Failure::NoMemory }),
        }
    }
}

impl Story {
    /// Makes the story of a seed for a machine with a disk: that of [`of`](Self::of), and trouble with the
    /// disk.
    pub fn on_disk(seed: u64) -> Self {
        let mut story = Self::of(seed);
        if Dice::new(seed ^ 0x70E4).below(16) == 0 {
            Theme::Torn.add(&mut story);
        }
        let mut dice = Dice::new(seed ^ 0xD15C);
        let count = dice.below(4);
        // Other trouble with the disk would hide what some stories are about.
        let count = if story.needs_a_sound_disk() { 0 } else { count };
        for _ in 0..count {
            // Most of a story happens in its first minute, and a fault that comes later meets no call.
            let at = Duration::from_millis(dice.roll() % 45_000);
            let (skip, times) = (dice.roll() % 40, 1 + dice.roll() % 3);
            let what = match dice.below(9) {
                0 | 1 => DiskTrouble::Power(Duration::from_millis(1 + dice.roll() % 30_000)),
                2 | 3 => DiskTrouble::PowerAtWrite(skip),
                4 => DiskTrouble::PowerAtSync(skip),
                5 => DiskTrouble::Reads(skip, times),
                6 => DiskTrouble::Writes(skip, times),
                7 => DiskTrouble::Syncs(skip, times),
                _ => DiskTrouble::Memory(skip),
            };
            story.events.push(Happening { at, what: Trouble::Disk(what) });
        }
        story.events.sort_by_key(|event| event.at);
        story
    }
}
