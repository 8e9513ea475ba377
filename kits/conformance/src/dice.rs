//! Random numbers whose sequence is a function of the seed.

/// SplitMix64: sixty-four bits of state, good enough to choose with.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The bias of the remainder is far below what a test could see.
        usize::try_from(self.roll() % bound.max(1) as u64).unwrap_or(0)
    }

    /// Says yes so many times in a hundred.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// Picks one of the choices, of which there is at least one.
    pub(crate) fn pick<T: Clone, const N: usize>(&mut self, choices: &[T; N]) -> T {
        choices[self.below(N)].clone()
    }
}
