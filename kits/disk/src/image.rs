//! The bytes of a file: what processes read, what is durable, and what lies between.

use steadfast_testing::program::dice::Dice;

use crate::disk::Loss;

/// A part of a write that arrives whole or not at all.
const SECTOR: usize = 512;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileImage {
    /// What a process reads.
    seen: Vec<u8>,
    /// What is there after the power failed, if nothing else arrives.
    durable: Vec<u8>,
    /// The changes since the last sync.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl FileImage {
    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.seen
    }

    /// Reads what there is, and returns how much that was.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: usize) -> usize {
        let there = self.seen.get(offset..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        count
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize) {
        self.change(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn resize(&mut self, length: usize) {
        self.change(Change::Resize(length));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    /// Makes all changes durable.
    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// Takes the changes for durable although they are not, as a system does after a sync that failed.
    pub(crate) fn forget(&mut self) {
        self.pending.clear();
    }

    /// The power fails: what is durable stays, and of the rest what arrived.
    pub(crate) fn crash(&mut self, loss: Loss, dice: &mut Dice) {
        let changes = std::mem::take(&mut self.pending);
        // Changes arrive in any order until a sync, so any of them may be missing.
        let mut arrived: Box<dyn FnMut(&mut Dice) -> bool> = match (loss, dice.below(3)) {
            (Loss::All, _) => Box::new(|_| false),
            (Loss::Nothing, _) => Box::new(|_| true),
            (Loss::Some, 0) => {
                let mut left = dice.below(changes.len() + 1);
                Box::new(move |_| {
                    let arrives = left > 0;
                    left = left.saturating_sub(1);
                    arrives
                })
            }
            (Loss::Some, 1) => Box::new(|dice| dice.chance(900)),
            (Loss::Some, _) => Box::new(|dice| dice.chance(500)),
        };
        for change in changes {
            if !arrived(dice) {
                continue;
            }
            if loss == Loss::Some && dice.chance(300) {
                change.sectors().into_iter().filter(|_| dice.chance(500)).for_each(|sector| {
                    sector.apply(&mut self.durable);
                });
            } else {
                change.apply(&mut self.durable);
            }
        }
        self.seen.clone_from(&self.durable);
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Resize(length) => to.resize(*length, 0),
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
        }
    }

    /// Cuts a write where sectors of the disk begin.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, bytes } = self else { return vec![self.clone()] };
        let mut parts = Vec::new();
        let mut from = 0;
        while from < bytes.len() {
            let start = offset + from;
            let end = (bytes.len()).min(from + SECTOR - start % SECTOR);
            parts.push(Self::Write { offset: start, bytes: bytes[from..end].to_vec() });
            from = end;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> FileImage {
        let mut image = FileImage::default();
        image.write(&[1; 2_000], 0);
        image.sync();
        image.write(&[2; 2_000], 1_000);
        image
    }

    #[test]
    fn what_was_synced_stays_and_what_was_not_is_lost() {
        let mut image = written();
        assert_eq!((image.len(), image.bytes()[1_500]), (3_000, 2), "a process reads what was written");
        image.crash(Loss::All, &mut Dice::new(1));
        assert_eq!(image.bytes(), [1; 2_000]);
    }

    #[test]
    fn a_torn_write_arrives_by_sectors_and_changes_nothing_beside_it() {
        let mut torn = 0;
        for seed in 0..100 {
            let mut image = written();
            image.crash(Loss::Some, &mut Dice::new(seed));
            assert_eq!(image.bytes()[..1_000], [1; 1_000]);
            // The sectors of the write: 1000..1024, 1024..1536, 1536..2048 and so on.
            let sectors = [1_000..1_024, 1_024..1_536, 1_536..2_000];
            let values: Vec<_> = sectors
                .map(|range| {
                    let first = image.bytes()[range.start];
                    assert!(image.bytes()[range].iter().all(|byte| *byte == first), "a sector is whole");
                    first
                })
                .to_vec();
            torn += u32::from(values.contains(&1) && values.contains(&2));
        }
        assert!(torn > 5, "{torn}");
    }

    #[test]
    fn what_a_failed_sync_forgot_no_later_sync_makes_durable() {
        let mut image = written();
        image.forget();
        image.write(&[3], 0);
        image.sync();
        image.crash(Loss::Nothing, &mut Dice::new(1));
        let mut expected = vec![1; 2_000];
        expected[0] = 3;
        assert_eq!(image.bytes(), expected);
    }
}
