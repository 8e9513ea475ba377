//! The counted work of calls, and what is said of how it grows.

use std::fmt::{self, Display, Formatter};

use anyhow::{Result, ensure};

use crate::multiply::Made;
use crate::site::Backend;

/// By how much the work of a call may grow: an index of more rows has more levels, and each look reads one
/// more block of it.
const FACTOR: f64 = 3.0;

/// How the work of a call may depend on the size of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It must not depend on it.
    Flat,
    /// It is divided by what the call returned or removed, and must not depend on the size then.
    PerResult,
    /// It does, for this reason; it is shown and not judged.
    Known(&'static str),
}

/// The work of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was called.
    pub name: &'static str,
    /// How the work may grow.
    pub growth: Growth,
    /// The counted work: steps or blocks.
    pub work: u64,
    /// How many rows the call returned or removed.
    pub results: u64,
}

impl Figure {
    /// Returns the work that is compared.
    fn compared(&self) -> f64 {
        let work = self.work as f64;
        match self.growth {
            Growth::PerResult => work / self.results.max(1) as f64,
            Growth::Flat | Growth::Known(_) => work,
        }
    }
}

/// The figures of a small store and of a large one.
#[derive(Debug, Clone)]
pub struct Comparison {
    backend: Backend,
    made: [Made; 2],
    rows: Vec<(Figure, Figure)>,
}

impl Comparison {
    /// Puts the figures of two stores beside each other.
    ///
    /// # Errors
    ///
    /// They are not of the same calls.
    pub fn of(backend: Backend, made: [&Made; 2], small: Vec<Figure>, large: Vec<Figure>) -> Result<Self> {
        let names = |figures: &[Figure]| figures.iter().map(|figure| figure.name).collect::<Vec<_>>();
        ensure!(names(&small) == names(&large), "the two stores were asked different things");
        Ok(Self { backend, made: made.map(Made::clone), rows: small.into_iter().zip(large).collect() })
    }

    /// Returns the calls whose work grows with the store although it should not.
    pub fn faults(&self) -> Vec<&'static str> {
        self.rows.iter().filter(|(small, large)| self.is_fault(small, large)).map(|row| row.0.name).collect()
    }

    fn is_fault(&self, small: &Figure, large: &Figure) -> bool {
        // What a few more levels of indexes cost in a call that does next to nothing else.
        let levels = match (self.backend, large.growth) {
            (Backend::Sqlite, _) => 300.0,
            (Backend::Postgres, Growth::PerResult) => 10.0,
            (Backend::Postgres, _) => 40.0,
        };
        !matches!(large.growth, Growth::Known(_)) && large.compared() > FACTOR * small.compared() + levels
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [small, large] = &self.made;
        writeln!(f, "small: {small}\nlarge: {large}\n")?;
        let width = self.rows.iter().map(|row| row.0.name.chars().count()).max().unwrap_or(0);
        let unit = self.backend.unit();
        writeln!(f, "{:<width$} {:>12} {:>12} {:>8}", unit, "small", "large", "factor")?;
        for (small, large) in &self.rows {
            let factor = large.compared() / small.compared().max(1.0);
            let note = match large.growth {
                _ if self.is_fault(small, large) => " GROWS".to_owned(),
                Growth::Flat => String::new(),
                Growth::PerResult => format!(" each of {} and {}", small.results, large.results),
                Growth::Known(why) => format!(" {why}"),
            };
            let (name, of_small, of_large) = (large.name, small.compared(), large.compared());
            writeln!(f, "{name:<width$} {of_small:>12.0} {of_large:>12.0} {factor:>8.1}{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(growth: Growth, work: u64, results: u64) -> Figure {
        Figure { name: "call", growth, work, results }
    }

    fn faults(small: Figure, large: Figure) -> usize {
        let made = Made { instances: 1, events: 1, sets: 1, children: 1 };
        let comparison = Comparison::of(Backend::Sqlite, [&made, &made], vec![small], vec![large])
            .expect("the same calls");
        comparison.faults().len()
    }

    #[test]
    fn work_that_grows_by_more_than_levels_of_an_index_is_a_fault() {
        assert_eq!(faults(figure(Growth::Flat, 1_000, 1), figure(Growth::Flat, 3_300, 1)), 0);
        assert_eq!(faults(figure(Growth::Flat, 1_000, 1), figure(Growth::Flat, 3_301, 1)), 1);
    }

    #[test]
    fn work_that_grows_with_its_result_is_none() {
        assert_eq!(faults(figure(Growth::PerResult, 1_000, 10), figure(Growth::PerResult, 10_000, 100)), 0);
        assert_eq!(faults(figure(Growth::PerResult, 1_000, 10), figure(Growth::PerResult, 70_000, 100)), 1);
    }

    #[test]
    fn figures_of_different_calls_are_not_compared() {
        let made = Made { instances: 1, events: 1, sets: 1, children: 1 };
        let small = vec![figure(Growth::Flat, 1, 1)];
        assert!(Comparison::of(Backend::Sqlite, [&made, &made], small, Vec::new()).is_err());
    }
}
