//! An open file, and what SQLite does with it.

use std::{ops::Range, sync::Arc};

use rusqlite::ffi;

use crate::{
    disk::{Disk, DiskState, MountedProcess, Node, Place},
    fault::{Code, Failure, FileCall},
    lock::{Holder, SlotLock},
    shared_memory::SharedMemory,
};

/// An open file of a process.
#[derive(Debug)]
pub(crate) struct Handle {
    disk: Disk,
    process: Arc<MountedProcess>,
    holder: Holder,
    node: u64,
    shared: Option<Arc<SharedMemory>>,
    /// True until the folder was synced: this handle has made the file, and it is a log or a journal.
    syncs_folder: bool,
    /// The file is removed when it is closed.
    is_temporary: Option<String>,
}

impl Handle {
    /// Opens a file with the flags of SQLite.
    pub(crate) fn open(path: &str, flags: i32) -> Result<Self, Code> {
        let Place { disk, process, file } = Place::of(path).ok_or(Code(ffi::SQLITE_CANTOPEN))?;
        let mut state = disk.0.lock();
        state.enter(&process, FileCall::Open)?;
        let (found, has) = (state.find(&file), |flag| flags & flag != 0);
        let must_be_new = has(ffi::SQLITE_OPEN_EXCLUSIVE) && found.is_some();
        if must_be_new || (found.is_none() && !has(ffi::SQLITE_OPEN_CREATE)) {
            return Err(Code(ffi::SQLITE_CANTOPEN));
        }
        let node = found.unwrap_or_else(|| state.create(Some(&file)));
        let holder = Holder { process: process.number, file: state.number() };
        state.nodes.entry(node).or_default().open.insert(holder);
        drop(state);
        let is_log =
            has(ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL);
        let is_temporary = has(ffi::SQLITE_OPEN_DELETEONCLOSE).then_some(file);
        let syncs_folder = is_log && found.is_none();
        Ok(Self { disk, process, holder, node, shared: None, syncs_folder, is_temporary })
    }

    /// Removes a file.
    pub(crate) fn delete(path: &str, sync: bool) -> Result<(), Code> {
        let Place { disk, process, file } = Place::of(path).ok_or(Code(ffi::SQLITE_IOERR_DELETE))?;
        let mut state = disk.0.lock();
        state.enter(&process, FileCall::Delete)?;
        state.delete(&file, sync)
    }

    /// Tells whether there is a file.
    pub(crate) fn exists(path: &str) -> Result<bool, Code> {
        let Place { disk, process, file } = Place::of(path).ok_or(Code(ffi::SQLITE_IOERR_ACCESS))?;
        if process.is_dead() {
            return Err(Code(ffi::SQLITE_IOERR_ACCESS));
        }
        Ok(disk.0.lock().find(&file).is_some())
    }

    /// Fills a buffer. What the file does not have is zero, and the answer says so.
    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: usize) -> Result<(), Code> {
        buffer.fill(0);
        let mut state = self.disk.0.lock();
        let planned = state.meet(&self.process, FileCall::Read)?;
        let bad = || state.bad.iter_mut().find_map(|bad| bad.meet(self.node, offset));
        let failure = planned.or_else(bad);
        let wanted = match failure {
            None => buffer.len(),
            Some(Failure::Part) => buffer.len() / 2,
            Some(failure) => return Err(Code::of(FileCall::Read, failure)),
        };
        let count = state.node(self.node)?.image.read(&mut buffer[..wanted], offset);
        match failure {
            Some(failure) => Err(Code::of(FileCall::Read, failure)),
            None if count < wanted => Err(Code(ffi::SQLITE_IOERR_SHORT_READ)),
            None => Ok(()),
        }
    }

    /// Writes bytes. A write during which the power fails may have arrived.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize) -> Result<(), Code> {
        let mut state = self.disk.0.lock();
        let failure = state.meet(&self.process, FileCall::Write)?;
        let written = match failure {
            None | Some(Failure::PowerLoss) => bytes,
            Some(Failure::Part) => &bytes[..bytes.len() / 2],
            Some(failure) => return Err(Code::of(FileCall::Write, failure)),
        };
        state.check_room(self.node, offset.saturating_add(written.len()))?;
        state.node(self.node)?.image.write(written, offset);
        failure.map_or(Ok(()), |failure| Err(Code::of(FileCall::Write, failure)))
    }

    pub(crate) fn truncate(&mut self, length: usize) -> Result<(), Code> {
        let mut state = self.disk.0.lock();
        state.enter(&self.process, FileCall::Truncate)?;
        state.check_room(self.node, length)?;
        state.node(self.node)?.image.resize(length);
        Ok(())
    }

    /// Makes the file durable, and with a new log its folder.
    pub(crate) fn sync(&mut self) -> Result<(), Code> {
        let mut state = self.disk.0.lock();
        match state.meet(&self.process, FileCall::Sync)? {
            None => {
                state.node(self.node)?.image.sync();
                if std::mem::take(&mut self.syncs_folder) {
                    state.sync_folder();
                }
                Ok(())
            }
            Some(failure) => {
                if matches!(failure, Failure::Io | Failure::BadSector) {
                    state.node(self.node)?.image.forget();
                }
                Err(Code::of(FileCall::Sync, failure))
            }
        }
    }

    pub(crate) fn len(&mut self) -> Result<usize, Code> {
        if self.process.is_dead() {
            return Err(Code(ffi::SQLITE_IOERR_FSTAT));
        }
        Ok(self.disk.0.lock().node(self.node)?.image.len())
    }

    pub(crate) fn lock(&mut self, level: i32) -> Result<(), Code> {
        let mut state = self.disk.0.lock();
        state.enter(&self.process, FileCall::Lock)?;
        let granted = state.node(self.node)?.locks.lock(self.holder, level);
        granted.then_some(()).ok_or(Code(ffi::SQLITE_BUSY))
    }

    pub(crate) fn unlock(&mut self, level: i32) {
        if let Ok(node) = self.disk.0.lock().node(self.node) {
            node.locks.unlock(self.holder, level);
        }
    }

    pub(crate) fn is_reserved(&mut self) -> Result<bool, Code> {
        Ok(self.disk.0.lock().node(self.node)?.locks.is_reserved())
    }

    /// Maps a part of the shared memory. The address is null if there is no such part and none shall be made.
    pub(crate) fn map(&mut self, number: usize, size: usize, make: bool) -> Result<*mut u8, Code> {
        let mut state = self.disk.0.lock();
        state.enter(&self.process, FileCall::Map)?;
        let node = state.node(self.node)?;
        node.mapped.insert(self.holder);
        let shared = self.shared.get_or_insert_with(|| Arc::clone(node.shared.get_or_insert_default()));
        shared.part(number, size, make).ok_or(Code(ffi::SQLITE_IOERR_SHMMAP))
    }

    /// Locks slots of the shared memory.
    pub(crate) fn lock_slots(&mut self, slots: Range<usize>, lock: SlotLock) -> Result<(), Code> {
        if self.process.is_dead() {
            return Err(Code(ffi::SQLITE_IOERR_SHMLOCK));
        }
        let granted = self.disk.0.lock().node(self.node)?.slots.lock(self.holder, slots, lock);
        granted.then_some(()).ok_or(Code(ffi::SQLITE_BUSY))
    }

    pub(crate) fn unlock_slots(&mut self, slots: Range<usize>) {
        if let Ok(node) = self.disk.0.lock().node(self.node) {
            node.slots.unlock(self.holder, slots);
        }
    }

    /// Gives up the shared memory.
    pub(crate) fn unmap(&mut self) {
        if let Ok(node) = self.disk.0.lock().node(self.node) {
            node.slots.retain(|holder| holder != self.holder);
            node.mapped.remove(&self.holder);
            if node.mapped.is_empty() {
                node.shared = None;
            }
        }
        self.shared = None;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.disk.0.lock();
        if let Ok(node) = state.node(self.node) {
            node.keep_only(|holder| holder != self.holder);
            node.open.remove(&self.holder);
        }
        if let Some(file) = self.is_temporary.take()
            && !self.process.is_dead()
        {
            // Another handle may have removed it.
            let _removed = state.delete(&file, false);
        }
        state.sweep();
    }
}

impl DiskState {
    /// Returns a file. One that the power took with it is not there.
    fn node(&mut self, node: u64) -> Result<&mut Node, Code> {
        self.nodes.get_mut(&node).ok_or(Code(ffi::SQLITE_IOERR))
    }
}
