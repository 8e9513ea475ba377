//! The disk of one machine: its files, the processes that use them, and what goes wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rusqlite::ffi;
use steadfast_testing::program::dice::Dice;

use crate::{
    fault::{BadPlace, Code, DiskFault, Failure, FileCall, Plan},
    image::FileImage,
    lock::{FileLocks, Holder, SlotLocks},
    shared_memory::SharedMemory,
    shim,
};

/// The disk of one machine. Clones are the same disk; its files are gone when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Disk(pub(crate) Arc<SharedDisk>);

/// Why there can be no disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// SQLite does not take the file system.
    #[error("SQLite does not take the file system: code {0}")]
    Refused(i32),
}

/// What becomes of writes that were not synced, when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of them are lost.
    All,
    /// None of them is lost.
    Nothing,
    /// The dice decide: some are lost, in any order, and of some only parts arrive.
    Some,
}

#[derive(Debug)]
pub(crate) struct SharedDisk {
    id: u64,
    state: Mutex<DiskState>,
}

/// All that is known of a disk.
#[derive(Debug)]
pub(crate) struct DiskState {
    dice: Dice,
    pub(crate) nodes: BTreeMap<u64, Node>,
    /// The files by name, as processes see them.
    names: BTreeMap<String, u64>,
    /// The same as it is after the power failed.
    durable_names: BTreeMap<String, u64>,
    processes: BTreeMap<String, Arc<MountedProcess>>,
    /// The numbers that were given to files and processes.
    numbers: u64,
    plan: Plan,
    pub(crate) bad: Vec<BadPlace>,
    counts: BTreeMap<FileCall, u64>,
    room: Option<usize>,
    is_off: bool,
}

/// A file, whatever its name.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) image: FileImage,
    pub(crate) locks: FileLocks,
    pub(crate) slots: SlotLocks,
    pub(crate) shared: Option<Arc<SharedMemory>>,
    /// The open files that have the shared memory mapped.
    pub(crate) mapped: BTreeSet<Holder>,
    /// The files that are open.
    pub(crate) open: BTreeSet<Holder>,
}

#[derive(Debug)]
pub(crate) struct MountedProcess {
    pub(crate) number: u64,
    is_dead: AtomicBool,
}

/// A process of the machine, as the disk knows it. Clones are the same process.
#[derive(Clone, Debug)]
pub struct Mount {
    disk: Disk,
    name: String,
    process: Arc<MountedProcess>,
}

/// The disks of this program, by their number.
static DISKS: Mutex<BTreeMap<u64, Weak<SharedDisk>>> = Mutex::new(BTreeMap::new());

/// Bounds a file: what is larger is a mistake of the test.
const LARGEST_FILE: usize = 1 << 30;

impl Disk {
    /// Makes an empty disk. The seed decides what is lost when the power fails.
    ///
    /// # Errors
    ///
    /// [`DiskError::Refused`] if SQLite does not take the file system.
    pub fn new(seed: u64) -> Result<Self, DiskError> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        shim::register().map_err(|Code(code)| DiskError::Refused(code))?;
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let state = DiskState {
            dice: Dice::new(seed),
            nodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            processes: BTreeMap::new(),
            numbers: 0,
            plan: Plan::default(),
            bad: Vec::new(),
            counts: BTreeMap::new(),
            room: None,
            is_off: false,
        };
        let disk = Arc::new(SharedDisk { id, state: Mutex::new(state) });
        disks().insert(id, Arc::downgrade(&disk));
        Ok(Self(disk))
    }

    /// Makes another disk with the same files, as they are after a power failure with [`Loss::All`].
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn copy(&self, seed: u64) -> Result<Self, DiskError> {
        let copy = Self::new(seed)?;
        let from = self.0.lock();
        let mut to = copy.0.lock();
        to.durable_names.clone_from(&from.durable_names);
        to.numbers = from.numbers;
        for number in from.durable_names.values() {
            let image = from.nodes.get(number).map(|node| node.image.clone()).unwrap_or_default();
            to.nodes.insert(*number, Node { image, ..Node::default() });
        }
        to.crash(Loss::All);
        drop(to);
        Ok(copy)
    }

    /// Lets a process use the disk under a name. A process of that name that is still there is killed.
    pub fn mount(&self, name: &str) -> Mount {
        let name = name.replace('/', "-");
        let mut state = self.0.lock();
        let process = Arc::new(MountedProcess { number: state.number(), is_dead: AtomicBool::new(false) });
        let former = state.processes.insert(name.clone(), Arc::clone(&process));
        former.iter().for_each(|former| state.kill(former));
        Mount { disk: self.clone(), name, process: Arc::clone(&process) }
    }

    /// Plans a fault.
    pub fn plan(&self, fault: DiskFault) {
        self.0.lock().plan.add(fault);
    }

    /// Fails the next reads of a file that begin at an offset. Returns whether there is such a file.
    pub fn fail_reads(&self, file: &str, offset: usize, times: u64, failure: Failure) -> bool {
        let mut state = self.0.lock();
        let Some(file) = state.find(file) else { return false };
        state.bad.push(BadPlace { file, offset, times, failure });
        true
    }

    /// Lets the reads pass that [`fail_reads`](Self::fail_reads) fails.
    pub fn return_reads(&self) {
        self.0.lock().bad.clear();
    }

    /// Bounds the length of all files together, in bytes; `None` bounds nothing.
    pub fn set_room(&self, room: Option<usize>) {
        self.0.lock().room = room;
    }

    /// Forgets the faults that were planned and have not come, and makes room.
    pub fn heal(&self) {
        let mut state = self.0.lock();
        state.plan.clear();
        state.bad.clear();
        state.room = None;
    }

    /// The power fails and comes back: all processes are dead, and of what was not synced there is what the
    /// loss says.
    pub fn crash(&self, loss: Loss) {
        self.0.lock().crash(loss);
    }

    /// Tells whether the power is off because of [`Failure::PowerLoss`].
    pub fn is_off(&self) -> bool {
        self.0.lock().is_off
    }

    /// Returns how many calls of a kind were made, failed ones included.
    pub fn count(&self, call: FileCall) -> u64 {
        self.0.lock().counts.get(&call).copied().unwrap_or(0)
    }

    /// Returns the length of all files together, in bytes.
    pub fn used(&self) -> usize {
        self.0.lock().used()
    }

    /// Returns what processes read of a file.
    pub fn bytes(&self, file: &str) -> Option<Vec<u8>> {
        let state = self.0.lock();
        state.names.get(file).and_then(|node| state.nodes.get(node)).map(|node| node.image.bytes().to_vec())
    }

    /// Changes bytes of a file durably, as a disk does that forgets. Returns whether there is such a file.
    pub fn overwrite(&self, file: &str, offset: usize, bytes: &[u8]) -> bool {
        let mut state = self.0.lock();
        let Some(node) = state.names.get(file).copied() else { return false };
        let Some(node) = state.nodes.get_mut(&node) else { return false };
        node.image.write(bytes, offset);
        node.image.sync();
        true
    }
}

impl Mount {
    /// Returns the path by which this process opens a file of the disk.
    pub fn path(&self, file: &str) -> String {
        format!("/disk-{}/{}/{file}", self.disk.0.id, self.name)
    }

    /// Kills the process: its locks are free, and nothing that it still does has an effect. The process must
    /// not be inside a transaction that another thread runs.
    pub fn kill(&self) {
        self.disk.0.lock().kill(&self.process);
    }
}

impl SharedDisk {
    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedDisk {
    fn drop(&mut self) {
        disks().remove(&self.id);
    }
}

fn disks() -> MutexGuard<'static, BTreeMap<u64, Weak<SharedDisk>>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file as a path names it: the disk, the process and the name of the file.
pub(crate) struct Place {
    pub(crate) disk: Disk,
    pub(crate) process: Arc<MountedProcess>,
    pub(crate) file: String,
}

impl Place {
    /// Reads a path of [`Mount::path`], and what SQLite adds to one.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("/disk-")?.splitn(3, '/');
        let id: u64 = parts.next()?.parse().ok()?;
        let (process, file) = (parts.next()?, parts.next()?);
        let disk = Disk(disks().get(&id)?.upgrade()?);
        let process = Arc::clone(disk.0.lock().processes.get(process)?);
        Some(Self { disk, process, file: file.to_owned() })
    }
}

impl DiskState {
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Lets a call pass, or says how it fails. A dead process and a machine that is off do nothing.
    pub(crate) fn enter(&mut self, process: &MountedProcess, call: FileCall) -> Result<(), Code> {
        match self.meet(process, call)? {
            None => Ok(()),
            Some(failure) => Err(Code::of(call, failure)),
        }
    }

    /// The same, for a call that does a part of its work before it fails as planned.
    pub(crate) fn meet(&mut self, process: &MountedProcess, call: FileCall) -> Result<Option<Failure>, Code> {
        if self.is_off || process.is_dead() {
            return Err(Code::of(call, Failure::Io));
        }
        *self.counts.entry(call).or_default() += 1;
        let failure = self.plan.meet(call);
        self.is_off = failure == Some(Failure::PowerLoss);
        Ok(failure)
    }

    pub(crate) fn find(&self, file: &str) -> Option<u64> {
        self.names.get(file).copied()
    }

    pub(crate) fn create(&mut self, file: Option<&str>) -> u64 {
        let number = self.number();
        self.nodes.insert(number, Node::default());
        if let Some(file) = file {
            self.names.insert(file.to_owned(), number);
        }
        number
    }

    pub(crate) fn delete(&mut self, file: &str, sync: bool) -> Result<(), Code> {
        self.names.remove(file).ok_or(Code(ffi::SQLITE_IOERR_DELETE_NOENT))?;
        if sync {
            self.sync_folder();
        }
        self.sweep();
        Ok(())
    }

    /// Makes the names durable.
    pub(crate) fn sync_folder(&mut self) {
        self.durable_names.clone_from(&self.names);
    }

    /// Says whether a file may grow to a length.
    pub(crate) fn check_room(&self, node: u64, length: usize) -> Result<(), Code> {
        let now = self.nodes.get(&node).map_or(0, |node| node.image.len());
        let grows = length.saturating_sub(now);
        let is_full = self.room.is_some_and(|room| self.used().saturating_add(grows) > room);
        match grows > 0 && (is_full || length > LARGEST_FILE) {
            true => Err(Code(ffi::SQLITE_FULL)),
            false => Ok(()),
        }
    }

    fn used(&self) -> usize {
        self.nodes.values().map(|node| node.image.len()).sum()
    }

    fn kill(&mut self, process: &MountedProcess) {
        process.is_dead.store(true, Ordering::Relaxed);
        self.nodes.values_mut().for_each(|node| node.keep_only(|holder| holder.process != process.number));
    }

    fn crash(&mut self, loss: Loss) {
        for process in std::mem::take(&mut self.processes).into_values() {
            process.is_dead.store(true, Ordering::Relaxed);
        }
        let names: BTreeSet<String> = self.names.keys().chain(self.durable_names.keys()).cloned().collect();
        for name in names {
            let (seen, durable) = (self.names.get(&name).copied(), self.durable_names.get(&name).copied());
            let stays = match loss {
                Loss::All => durable,
                Loss::Nothing => seen,
                Loss::Some => *self.dice.pick(&[seen, durable]).unwrap_or(&durable),
            };
            match stays {
                Some(node) => self.names.insert(name, node),
                None => self.names.remove(&name),
            };
        }
        self.sync_folder();
        for node in self.nodes.values_mut() {
            node.keep_only(|_| false);
            node.open.clear();
            node.image.crash(loss, &mut self.dice);
        }
        self.sweep();
        self.is_off = false;
    }

    /// Removes the files that have no name and are not open.
    pub(crate) fn sweep(&mut self) {
        let named: BTreeSet<u64> = self.names.values().chain(self.durable_names.values()).copied().collect();
        self.nodes.retain(|number, node| named.contains(number) || !node.open.is_empty());
    }
}

impl Node {
    /// Ends the locks and the mappings of holders that are gone. With the last mapping the shared memory
    /// ends: the next connection makes it anew from the log.
    pub(crate) fn keep_only(&mut self, stays: impl Fn(Holder) -> bool) {
        self.locks.retain(&stays);
        self.slots.retain(&stays);
        self.mapped.retain(|holder| stays(*holder));
        if self.mapped.is_empty() {
            self.shared = None;
        }
    }
}

impl MountedProcess {
    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }
}
