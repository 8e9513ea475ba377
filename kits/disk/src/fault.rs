//! What goes wrong on a disk, and when.

use rusqlite::ffi;

/// A call of SQLite that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileCall {
    /// A file is opened.
    Open,
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// A file gets another length.
    Truncate,
    /// What was written is made durable.
    Sync,
    /// A file is removed.
    Delete,
    /// The database file is locked.
    Lock,
    /// A part of the index of the log is mapped.
    Map,
}

impl FileCall {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Truncate,
        Self::Sync,
        Self::Delete,
        Self::Lock,
        Self::Map,
    ];
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device has an error: nothing is read or written. A sync that fails so has made nothing durable,
    /// and a later sync does not either: the system takes what it could not write for written.
    Io,
    /// The device has an error that the system tells of as `EIO`: SQLite takes a read that fails so for a
    /// damaged file. Other calls fail as with [`Io`](Self::Io).
    BadSector,
    /// There is no room: nothing is written.
    Full,
    /// There is no memory for the call.
    NoMemory,
    /// The first half of the bytes is read or written, and the call fails. Other calls fail as with
    /// [`Io`](Self::Io).
    Part,
    /// The power fails during the call: it and all calls after it fail, of all processes, until
    /// [`Disk::crash`](crate::Disk::crash) starts the machine again.
    PowerLoss,
}

/// A fault that waits for its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFault {
    /// The call that fails; `None` is any.
    pub call: Option<FileCall>,
    /// How many such calls pass before.
    pub skip: u64,
    /// How many such calls fail, one after the other.
    pub times: u64,
    /// How they fail.
    pub failure: Failure,
}

impl DiskFault {
    /// Fails one call, after so many of its kind have passed.
    pub fn once(call: FileCall, skip: u64, failure: Failure) -> Self {
        Self { call: Some(call), skip, times: 1, failure }
    }
}

/// The faults that wait, in the order in which they were planned.
#[derive(Debug, Default)]
pub(crate) struct Plan(Vec<DiskFault>);

impl Plan {
    pub(crate) fn add(&mut self, fault: DiskFault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Tells how a call fails, if it does.
    pub(crate) fn meet(&mut self, call: FileCall) -> Option<Failure> {
        let mut met = None;
        for fault in &mut self.0 {
            if fault.call.is_some_and(|named| named != call) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if met.is_none() && fault.times > 0 {
                fault.times -= 1;
                met = Some(fault.failure);
            }
        }
        self.0.retain(|fault| fault.times > 0);
        met
    }
}

/// A place of a file whose reads fail.
#[derive(Debug)]
pub(crate) struct BadPlace {
    pub(crate) file: u64,
    pub(crate) offset: usize,
    pub(crate) times: u64,
    pub(crate) failure: Failure,
}

impl BadPlace {
    /// Tells how a read fails that begins here, if it does.
    pub(crate) fn meet(&mut self, file: u64, offset: usize) -> Option<Failure> {
        let is_met = self.file == file && self.offset == offset && self.times > 0;
        self.times -= u64::from(is_met);
        is_met.then_some(self.failure)
    }
}

/// A result code of SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

impl Code {
    /// Returns the code by which a call tells that it failed.
    pub(crate) fn of(call: FileCall, failure: Failure) -> Self {
        Self(match failure {
            Failure::Full => ffi::SQLITE_FULL,
            Failure::NoMemory => ffi::SQLITE_IOERR_NOMEM,
            Failure::BadSector if call == FileCall::Read => ffi::SQLITE_IOERR_CORRUPTFS,
            Failure::Io | Failure::BadSector | Failure::Part | Failure::PowerLoss => match call {
                FileCall::Open => ffi::SQLITE_CANTOPEN,
                FileCall::Read => ffi::SQLITE_IOERR_READ,
                FileCall::Write => ffi::SQLITE_IOERR_WRITE,
                FileCall::Truncate => ffi::SQLITE_IOERR_TRUNCATE,
                FileCall::Sync => ffi::SQLITE_IOERR_FSYNC,
                FileCall::Delete => ffi::SQLITE_IOERR_DELETE,
                FileCall::Lock => ffi::SQLITE_IOERR_LOCK,
                FileCall::Map => ffi::SQLITE_IOERR_SHMMAP,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_the_calls_that_it_was_planned_for() {
        let mut plan = Plan::default();
        plan.add(DiskFault { call: Some(FileCall::Write), skip: 1, times: 2, failure: Failure::Full });
        plan.add(DiskFault { call: None, skip: 4, times: 1, failure: Failure::Io });
        let calls = [FileCall::Write, FileCall::Read, FileCall::Write, FileCall::Write, FileCall::Write];
        let met: Vec<_> = calls.into_iter().map(|call| plan.meet(call)).collect();
        let full = Some(Failure::Full);
        assert_eq!(met, [None, None, full, full, Some(Failure::Io)]);
        assert_eq!(plan.meet(FileCall::Write), None);
    }
}
