//! Shortening a walk that failed: any part of it that still fails is a better story.

use super::step::Step;
use super::{Divergence, Found, Walked};

/// Bounds how often a walk is taken again while it is shortened: a store may be slow to open.
const MOST_TRIES: usize = 600;

/// Finds a short walk that fails too, and tells its end.
pub(super) fn shortest(
    steps: Vec<Step>,
    found: Found,
    take: impl Fn(&[Step]) -> Result<Walked, Found>,
) -> Divergence {
    let mut best = Best { steps, found, tries: 0, take };
    best.cut();
    loop {
        let before = best.size();
        best.drop_parts();
        best.drop_deeds();
        if best.size() == before || best.tries >= MOST_TRIES {
            return best.found.divergence;
        }
    }
}

struct Best<T> {
    steps: Vec<Step>,
    found: Found,
    tries: usize,
    take: T,
}

impl<T: Fn(&[Step]) -> Result<Walked, Found>> Best<T> {
    fn size(&self) -> usize {
        let deeds = |step: &Step| if let Step::CommitTurn { deeds, .. } = step { deeds.len() } else { 0 };
        self.steps.iter().map(|step| 1 + deeds(step)).sum()
    }

    /// Nothing after the step that failed was needed.
    fn cut(&mut self) {
        self.steps.truncate(self.found.steps);
    }

    /// Leaves out larger parts first, then smaller ones, down to single steps.
    fn drop_parts(&mut self) {
        let mut part = (self.steps.len() / 2).max(1);
        loop {
            let mut from = 0;
            while from < self.steps.len() {
                let mut shorter = self.steps.clone();
                shorter.drain(from..(from + part).min(shorter.len()));
                if !self.try_instead(shorter) {
                    from += part;
                }
            }
            if part == 1 {
                return;
            }
            part /= 2;
        }
    }

    /// Leaves out single decisions of turns.
    fn drop_deeds(&mut self) {
        let mut at = 0;
        while at < self.steps.len() {
            let mut deed = 0;
            while let Some(simpler) = without_deed(&self.steps, at, deed) {
                if !self.try_instead(simpler) {
                    deed += 1;
                }
            }
            at += 1;
        }
    }

    fn try_instead(&mut self, steps: Vec<Step>) -> bool {
        if self.tries >= MOST_TRIES {
            return false;
        }
        self.tries += 1;
        let Err(found) = (self.take)(&steps) else { return false };
        (self.steps, self.found) = (steps, found);
        self.cut();
        true
    }
}

/// The steps with one decision less, if there is such a one.
fn without_deed(steps: &[Step], at: usize, deed: usize) -> Option<Vec<Step>> {
    let mut steps = steps.to_vec();
    match steps.get_mut(at)? {
        Step::CommitTurn { deeds, .. } if deed < deeds.len() => _ = deeds.remove(deed),
        _ => return None,
    }
    Some(steps)
}
