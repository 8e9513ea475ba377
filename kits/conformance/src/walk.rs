//! Random walks: the store under test and an oracle take the same steps, and every answer is compared.
//!
//! A walk is a list of [`Step`]s made from a seed. Several holders start, send, fetch, commit, abandon and
//! renew; sessions are claimed, released and cleaned up; instances are deleted and pruned; time moves. Each
//! step runs on both stores under one clock, and both must answer alike. At the end both are looked at from
//! all sides, emptied, and looked at again. What a store may choose (tokens, the values of run ids, epochs
//! and cursors, when it forgets a session without work) is compared by what it means.
//!
//! Steps name holders, instances and sessions, never other steps. So any part of a walk is a walk too, and a
//! failing one is shortened to a story.

mod answer;
mod generate;
mod look;
mod shrink;
mod side;
mod step;
mod trial;
mod turn;
mod work;
mod worker;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;

use crate::bench::DAWN_MS;
use crate::report::text_of;
use crate::subject::OpenStore;
use crate::{BoxError, Subject};
use side::Side;
use step::Step;
pub(crate) use trial::trials;

/// A walk that two stores did not take alike, as short as it could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The seed that makes the walk again, as it was before it was shortened.
    pub seed: u64,
    /// The steps in order, each with the answer that both stores gave.
    pub story: Vec<String>,
    /// The step, or the look afterwards, at which the stores differ.
    pub at: String,
    /// The answer of the store under test.
    pub subject: String,
    /// The answer of the oracle.
    pub oracle: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the stores differ (seed {}):", self.seed)?;
        for (number, line) in (1..).zip(&self.story) {
            writeln!(f, "{number:>4}. {line}")?;
        }
        writeln!(f, "   => {}", self.at)?;
        writeln!(f, "      this store: {}", self.subject)?;
        write!(f, "      the oracle: {}", self.oracle)
    }
}

/// How a walk ended that found no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// Both stores gave the same answers.
    Alike,
    /// One of the stores has no full form, so there is nothing to compare.
    Skipped,
}

/// Takes a walk of `steps` random steps on both stores.
///
/// # Errors
/// [`Divergence`] with a short story when the stores answer differently, or one of them cannot be opened or
/// panics.
pub fn walk(
    subject: &Arc<dyn Subject>,
    oracle: &Arc<dyn Subject>,
    seed: u64,
    steps: usize,
) -> Result<Walked, Box<Divergence>> {
    let steps = generate::steps(seed, steps);
    let taken = |steps: &[Step]| take(subject, oracle, seed, steps);
    taken(&steps).map_err(|found| Box::new(shrink::shortest(steps, found, taken)))
}

/// What went wrong, and after how many steps.
struct Found {
    divergence: Divergence,
    steps: usize,
}

/// Takes these steps on fresh stores.
fn take(
    subject: &Arc<dyn Subject>,
    oracle: &Arc<dyn Subject>,
    seed: u64,
    steps: &[Step],
) -> Result<Walked, Found> {
    let mut told = Story { seed, lines: Vec::new() };
    let end = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let end = runtime.block_on(both(subject, oracle, steps, &mut told));
        runtime.shutdown_background();
        end
    }));
    match end {
        Ok(Ok(end)) => end,
        Ok(Err(error)) => Err(told.ends("opening the stores", &error.to_string(), "opened")),
        Err(panic) => Err(told.ends("a store panicked", &text_of(panic.as_ref()), "no panic")),
    }
}

async fn both(
    subject: &Arc<dyn Subject>,
    oracle: &Arc<dyn Subject>,
    steps: &[Step],
    told: &mut Story,
) -> Result<Result<Walked, Found>, BoxError> {
    let clock = VirtualClock::new(DAWN_MS);
    let mine = OpenStore::new(subject, Arc::new(clock.clone())).await?;
    let theirs = OpenStore::new(oracle, Arc::new(clock.clone())).await?;
    let side = |store: &OpenStore| Side::new(Arc::clone(store.provider()), &clock);
    let (Some(mut one), Some(mut other)) = (side(&mine), side(&theirs)) else {
        return Ok(Ok(Walked::Skipped));
    };
    for step in steps {
        if let Step::Advance(time) = step {
            clock.advance(*time);
        }
        let (mine, theirs) = (one.take(step).await, other.take(step).await);
        if mine != theirs {
            return Ok(Err(told.ends(&step.to_string(), &mine, &theirs)));
        }
        told.goes_on(step, &mine);
    }
    if let Some(found) = compare(&look::AT_THE_END, &mut one, &mut other, told).await {
        return Ok(Err(found));
    }
    let telling = one.tells_what_waits().await && other.tells_what_waits().await;
    for time in [Duration::ZERO, look::LONG] {
        clock.advance(time);
        if telling && let Some(found) = compare(&look::WAITING, &mut one, &mut other, told).await {
            return Ok(Err(found));
        }
    }
    if let Some(found) = compare(&look::AFTERWARDS, &mut one, &mut other, told).await {
        return Ok(Err(found));
    }
    Ok(Ok(Walked::Alike))
}

async fn compare(
    looks: &[(&str, look::Look)],
    one: &mut Side,
    other: &mut Side,
    told: &mut Story,
) -> Option<Found> {
    for (what, look) in looks {
        let (mine, theirs) = (look(one).await, look(other).await);
        if mine != theirs {
            return Some(told.differs(what, &mine, &theirs));
        }
    }
    None
}

struct Story {
    seed: u64,
    lines: Vec<String>,
}

impl Story {
    fn goes_on(&mut self, step: &Step, answer: &str) {
        let answer = if answer.is_empty() { String::new() } else { format!(": {}", excerpt(answer, 0)) };
        self.lines.push(format!("{step}{answer}"));
    }

    fn ends(&mut self, at: &str, subject: &str, oracle: &str) -> Found {
        let story = std::mem::take(&mut self.lines);
        let steps = story.len() + 1;
        let alike = subject.chars().zip(oracle.chars()).take_while(|(one, other)| one == other).count();
        let divergence = Divergence {
            seed: self.seed,
            story,
            at: at.to_owned(),
            subject: excerpt(subject, alike),
            oracle: excerpt(oracle, alike),
        };
        Found { divergence, steps }
    }

    /// Two long answers: only the first line that differs is of interest.
    fn differs(&mut self, what: &str, subject: &[String], oracle: &[String]) -> Found {
        let lines = subject.len().max(oracle.len());
        let at = (0..lines).find(|line| subject.get(*line) != oracle.get(*line)).unwrap_or(0);
        let line = |answer: &[String]| answer.get(at).cloned().unwrap_or_else(|| "nothing".to_owned());
        self.ends(&format!("afterwards, {what}"), &line(subject), &line(oracle))
    }
}

/// How much of an answer is shown, and how much of it before the place of interest.
const SHOWN: usize = 240;
const SHOWN_BEFORE: usize = 60;

/// The part of an answer around a place.
fn excerpt(answer: &str, place: usize) -> String {
    let from = place.saturating_sub(SHOWN_BEFORE);
    let shown: String = answer.chars().skip(from).take(SHOWN).collect();
    let before = if from > 0 { "… " } else { "" };
    let after = if answer.chars().count() > from + SHOWN { " …" } else { "" };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_place_of_interest() {
        let answer = format!("{}here{}", "é".repeat(500), "x".repeat(500));
        let shown = excerpt(&answer, 500);
        assert!(shown.contains("here") && shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert_eq!(excerpt("short", 3), "short");
    }

    #[test]
    fn a_walk_is_a_function_of_its_seed() {
        let tell = |seed| generate::steps(seed, 50).iter().map(Step::to_string).collect::<Vec<_>>();
        assert_eq!(tell(7), tell(7));
        assert_ne!(tell(7), tell(8));
    }
}
