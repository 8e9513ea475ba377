//! A small generator of random numbers whose sequence is a function of its seed, here and in the peer.

/// SplitMix64: sixty-four bits of state, good enough to choose with.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Gives the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Gives a number below `bound`; zero if `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            // The bias of the remainder is far below what a test could see.
            bound => usize::try_from(self.roll() % bound as u64).unwrap_or(0),
        }
    }

    /// Says yes `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.roll() % 1000 < u64::from(per_mille)
    }

    /// Picks one of the choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_a_function_of_the_seed() {
        let (mut one, mut other) = (Dice::new(7), Dice::new(7));
        assert!((0..100).all(|_| one.roll() == other.roll()));
        assert_ne!(Dice::new(1).roll(), Dice::new(2).roll());
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Dice::new(3).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
