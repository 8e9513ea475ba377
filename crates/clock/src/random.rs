//! Random numbers: those of the machine, and a sequence that follows from a seed.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws random numbers.
///
/// The trait is object safe: options hold an `Arc<dyn Random>`.
pub trait Random: Debug + Send + Sync {
    /// Draws 128 random bits.
    fn draw(&self) -> u128;
}

/// Draws the random numbers of the machine, which suit the names of processes and guids.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that draws from the machine")]
    fn draw(&self) -> u128 {
        // A guid of the fourth kind has six bits that are not random, at other places after the turn.
        let (one, other) = (uuid::Uuid::new_v4().as_u128(), uuid::Uuid::new_v4().as_u128());
        one ^ other.rotate_left(64)
    }
}

/// Draws a sequence that follows from a seed, for tests: two of one seed draw the same.
#[derive(Debug, Default)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Begins the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        // The generator SplitMix64: each number of the sequence is a hash of its place in it.
        let place = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let once = (place ^ (place >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let twice = (once ^ (once >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        twice ^ (twice >> 31)
    }
}

/// How far the place moves with each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random for SeededRandom {
    fn draw(&self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_draws_the_same_sequence_and_another_seed_another_one() {
        let draws = |seed| {
            let random = SeededRandom::new(seed);
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert_ne!(draws(7)[0], draws(7)[1]);
    }

    #[test]
    fn each_bit_of_the_machines_numbers_is_zero_at_times_and_one_at_times() {
        let draws: Vec<u128> = (0..200).map(|_| SystemRandom.draw()).collect();
        assert_eq!(draws.iter().fold(0, |bits, draw| bits | draw), u128::MAX);
        assert_eq!(draws.iter().fold(u128::MAX, |bits, draw| bits & draw), 0);
    }
}
