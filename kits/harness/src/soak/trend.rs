//! Whether a row of figures rises: a line is fitted through it by least squares.

use std::fmt::{self, Display, Formatter};

/// The line through a row of figures that are equally far apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    /// How much the line rises from the first figure to the last; negative if it falls.
    pub rise: f64,
    /// The mean of the figures.
    pub level: f64,
    /// The standard error of the rise: how much of it may be noise.
    pub error: f64,
}

/// How many standard errors a rise must have to be none of the noise.
const SURE: f64 = 3.0;

/// How much a figure may change over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Which way is bad.
    pub way: Way,
    /// The part of the level that the line may rise or fall by.
    pub part: f64,
    /// What it may rise or fall by in any case, in the unit of the figure.
    pub floor: f64,
}

/// Which way a figure must not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It must not rise.
    Up,
    /// It must not fall.
    Down,
}

impl Trend {
    /// Fits a line. Fewer than two figures have no trend, and neither have figures that are no numbers.
    ///
    /// Figures that stray from one level by at most `a` have a line that rises by less than `3.1 a`.
    pub fn of(figures: &[f64]) -> Self {
        let count = figures.len() as f64;
        if figures.len() < 2 || figures.iter().any(|figure| !figure.is_finite()) {
            return Self { level: figures.first().copied().unwrap_or(0.0), ..Self::default() };
        }
        let level = figures.iter().sum::<f64>() / count;
        let middle = (count - 1.0) / 2.0;
        let (mut across, mut along) = (0.0, 0.0);
        for (place, figure) in figures.iter().enumerate() {
            let from_middle = place as f64 - middle;
            across += from_middle * (figure - level);
            along += from_middle * from_middle;
        }
        let slope = across / along;
        let strays = figures.iter().enumerate().map(|(place, figure)| {
            let on_the_line = level + slope * (place as f64 - middle);
            (figure - on_the_line).powi(2)
        });
        // A line goes through any two figures: nothing strays from it, and nothing is known of the noise.
        let free = (count - 2.0).max(1.0);
        let error = (strays.sum::<f64>() / free / along).sqrt() * (count - 1.0);
        Self { rise: slope * (count - 1.0), level, error }
    }

    /// Tells whether the line rises or falls by more than the bound allows, and by more than the noise
    /// explains.
    pub fn breaks(&self, bound: &Bound) -> bool {
        let worse = match bound.way {
            Way::Up => self.rise,
            Way::Down => -self.rise,
        };
        worse > bound.floor.max(bound.part * self.level.abs()) && worse > SURE * self.error
    }
}

impl Display for Trend {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = if self.rise < 0.0 { "falls" } else { "rises" };
        write!(f, "{word} by {:.1} at a level of {:.1}", self.rise.abs(), self.level)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const BOUND: Bound = Bound { way: Way::Up, part: 0.2, floor: 0.0 };

    /// A level, and for each figure how far it strays from it, as a part of the level.
    fn noisy(most: f64) -> impl Strategy<Value = (f64, Vec<f64>)> {
        (1.0..1e9, vec(-most..most, 5..200))
    }

    proptest! {
        #[test]
        fn figures_that_stay_at_a_level_have_no_trend((level, noise) in noisy(0.06)) {
            let figures: Vec<f64> = noise.iter().map(|part| level * (1.0 + part)).collect();
            let trend = Trend::of(&figures);
            prop_assert!(!trend.breaks(&BOUND), "{trend}");
            prop_assert!(!trend.breaks(&Bound { way: Way::Down, ..BOUND }), "{trend}");
        }

        #[test]
        fn figures_that_rise_above_the_bound_have_one((level, noise) in noisy(0.06), rise in 0.6..50.0) {
            let last = (noise.len() - 1) as f64;
            let at = |place: usize| 1.0 + rise * place as f64 / last;
            let figures: Vec<f64> =
                noise.iter().enumerate().map(|(place, part)| level * (at(place) + part)).collect();
            let trend = Trend::of(&figures);
            prop_assert!(trend.breaks(&BOUND), "{trend}");
            prop_assert!(!trend.breaks(&Bound { way: Way::Down, ..BOUND }), "{trend}");
            let falling: Vec<f64> = figures.iter().rev().copied().collect();
            let falls = Bound { way: Way::Down, ..BOUND };
            prop_assert!(Trend::of(&falling).breaks(&falls));
        }

        #[test]
        fn a_rise_below_the_floor_is_none(level in 0.0..10.0, count in 2usize..50) {
            let figures: Vec<f64> = (0..count).map(|place| level + place as f64).collect();
            let floor = count as f64;
            let bound = Bound { way: Way::Up, part: 0.0, floor };
            prop_assert!(!Trend::of(&figures).breaks(&bound));
        }
    }

    #[test]
    fn a_machine_that_was_busy_in_the_middle_is_no_trend() {
        let times = [71.1, 77.1, 97.8, 110.2, 134.2, 210.0, 290.5, 150.7, 544.8, 108.0, 59.7];
        let trend = Trend::of(&times);
        assert!(trend.rise > 0.5 * trend.level, "it looks like one: {trend}");
        assert!(!trend.breaks(&BOUND), "{trend}");
    }

    #[test]
    fn too_few_figures_and_no_numbers_have_no_trend() {
        for figures in [&[][..], &[3.0], &[1.0, f64::NAN, 9.0]] {
            assert!(!Trend::of(figures).breaks(&BOUND), "{figures:?}");
        }
    }
}
