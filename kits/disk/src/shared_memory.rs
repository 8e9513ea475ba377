//! The memory that connections of one database share: the index of its log.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// How large a part is that SQLite asks for.
const PART: usize = 32 * 1024;

/// The parts that are mapped. Code in C reads and writes them; Rust writes them only while no connection has
/// them mapped.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory(Mutex<Vec<Part>>);

/// A part that lives for ever: it is used again when no connection has it mapped.
#[derive(Debug)]
struct Part(&'static [AtomicU64]);

/// The parts that can be used again, all zero.
static FREE: Mutex<Vec<&'static [AtomicU64]>> = Mutex::new(Vec::new());

impl SharedMemory {
    /// Returns the address of a part, which is null if it is not there and shall not be made; `None` if parts
    /// of that size cannot be made.
    pub(crate) fn part(&self, number: usize, size: usize, make: bool) -> Option<*mut u8> {
        if size != PART {
            return None;
        }
        let mut parts = self.parts();
        while make && parts.len() <= number {
            parts.push(Part::new());
        }
        // The address is that of the whole slice, whose atomics may change behind a shared reference.
        Some(parts.get(number).map_or(std::ptr::null_mut(), |part| part.0.as_ptr().cast_mut().cast()))
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn new() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| {
            let words: Vec<AtomicU64> = (0..PART / size_of::<u64>()).map(|_| AtomicU64::new(0)).collect();
            Box::leak(words.into_boxed_slice())
        }))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_address_and_is_made_only_if_asked_for() {
        let memory = SharedMemory::default();
        assert!(memory.part(1, PART, false).is_some_and(<*mut u8>::is_null));
        let first = memory.part(1, PART, true);
        assert!(first.is_some_and(|address| !address.is_null()));
        assert_eq!(memory.part(1, PART, false), first);
        assert_ne!(memory.part(0, PART, false), first);
        assert_eq!(memory.part(0, 4_096, true), None);
    }
}
