//! The locks of a file, as SQLite asks for them.

use std::collections::BTreeMap;

use rusqlite::ffi;

/// Who holds a lock: an open file of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) process: u64,
    pub(crate) file: u64,
}

/// How a database file is locked; a holder that is not listed has no lock.
#[derive(Debug, Default)]
pub(crate) struct FileLocks(BTreeMap<Holder, i32>);

impl FileLocks {
    /// Takes a lock. False if another one is in the way; who asked for all of the file then keeps new readers
    /// away.
    pub(crate) fn lock(&mut self, holder: Holder, level: i32) -> bool {
        let held = self.0.get(&holder).copied().unwrap_or(ffi::SQLITE_LOCK_NONE);
        if held >= level {
            return true;
        }
        let others = self.0.iter().filter(|(other, _)| **other != holder).map(|(_, level)| *level).max();
        let others = others.unwrap_or(ffi::SQLITE_LOCK_NONE);
        let granted = match level {
            ffi::SQLITE_LOCK_SHARED => others < ffi::SQLITE_LOCK_PENDING,
            ffi::SQLITE_LOCK_RESERVED => others < ffi::SQLITE_LOCK_RESERVED,
            _ if others >= ffi::SQLITE_LOCK_RESERVED => false,
            _ => others == ffi::SQLITE_LOCK_NONE,
        };
        if granted {
            self.0.insert(holder, level);
        } else if level == ffi::SQLITE_LOCK_EXCLUSIVE && others < ffi::SQLITE_LOCK_RESERVED {
            self.0.insert(holder, ffi::SQLITE_LOCK_PENDING);
        }
        granted
    }

    pub(crate) fn unlock(&mut self, holder: Holder, level: i32) {
        if level == ffi::SQLITE_LOCK_NONE {
            self.0.remove(&holder);
        } else if let Some(held) = self.0.get_mut(&holder) {
            *held = level.min(*held);
        }
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.0.values().any(|level| *level >= ffi::SQLITE_LOCK_RESERVED)
    }

    /// Ends the locks of holders that are gone.
    pub(crate) fn retain(&mut self, stays: impl Fn(Holder) -> bool) {
        self.0.retain(|holder, _| stays(*holder));
    }
}

/// The locks on the index of the log: numbered slots, each shared by many or held by one.
#[derive(Debug, Default)]
pub(crate) struct SlotLocks(BTreeMap<(usize, Holder), SlotLock>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotLock {
    Shared,
    Exclusive,
}

impl SlotLocks {
    /// Takes all of the slots, or none.
    pub(crate) fn lock(&mut self, holder: Holder, slots: std::ops::Range<usize>, lock: SlotLock) -> bool {
        let is_free = self.0.iter().all(|((slot, other), held)| {
            !slots.contains(slot)
                || *other == holder
                || (lock == SlotLock::Shared && *held == SlotLock::Shared)
        });
        if is_free {
            self.0.extend(slots.map(|slot| ((slot, holder), lock)));
        }
        is_free
    }

    pub(crate) fn unlock(&mut self, holder: Holder, slots: std::ops::Range<usize>) {
        self.0.retain(|(slot, other), _| *other != holder || !slots.contains(slot));
    }

    /// Ends the locks of holders that are gone.
    pub(crate) fn retain(&mut self, stays: impl Fn(Holder) -> bool) {
        self.0.retain(|(_, holder), _| stays(*holder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Holder = Holder { process: 1, file: 1 };
    const B: Holder = Holder { process: 2, file: 2 };

    #[test]
    fn one_writes_beside_readers_and_waits_for_them_to_end() {
        let mut locks = FileLocks::default();
        assert!(locks.lock(A, ffi::SQLITE_LOCK_SHARED) && locks.lock(B, ffi::SQLITE_LOCK_SHARED));
        assert!(locks.lock(A, ffi::SQLITE_LOCK_RESERVED) && !locks.lock(B, ffi::SQLITE_LOCK_RESERVED));
        assert!(!locks.lock(A, ffi::SQLITE_LOCK_EXCLUSIVE), "B reads");
        locks.unlock(B, ffi::SQLITE_LOCK_NONE);
        assert!(!locks.lock(B, ffi::SQLITE_LOCK_SHARED), "A waits for the file");
        assert!(locks.lock(A, ffi::SQLITE_LOCK_EXCLUSIVE));
        locks.retain(|holder| holder.process != A.process);
        assert!(locks.lock(B, ffi::SQLITE_LOCK_SHARED) && !locks.is_reserved());
    }

    #[test]
    fn a_slot_is_shared_by_many_or_held_by_one() {
        let mut slots = SlotLocks::default();
        assert!(slots.lock(A, 3..4, SlotLock::Shared) && slots.lock(B, 3..4, SlotLock::Shared));
        assert!(!slots.lock(A, 3..8, SlotLock::Exclusive), "B shares one of them");
        slots.unlock(B, 3..4);
        assert!(slots.lock(A, 3..8, SlotLock::Exclusive) && !slots.lock(B, 7..8, SlotLock::Shared));
        slots.retain(|holder| holder.process != A.process);
        assert!(slots.lock(B, 7..8, SlotLock::Exclusive));
    }
}
