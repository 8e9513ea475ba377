//! The calls whose work is counted.
//!
//! | calls | file |
//! |---|---|
//! | opening the store, gauges, clean-up, workers, sessions | `upkeep.rs` |
//! | starting, sending, fetching and committing turns, fetching and finishing work | `fetch.rs` |
//! | lists by every filter, page by page | `list.rs` |
//! | reading one instance | `read.rs` |
//! | retention, deleting and pruning | `delete.rs` |

mod delete;
mod fetch;
mod list;
mod read;
mod upkeep;

use anyhow::{Context, Result};
use steadfast_store::{ProviderAdmin, Store};

use crate::figure::{Figure, Growth};
use crate::multiply::Made;
use crate::site::{Opened, Site};

/// How often each call is made; the least work counts, because now and then a call also cleans up.
const ROUNDS: u64 = 3;

/// Makes all calls on a store, those that remove rows last, and returns their work.
///
/// # Errors
///
/// A call fails, or does not find what it must.
///
/// # Cancel safety
/// A dropped future leaves some rows removed.
pub async fn run(site: &Site, made: &Made) -> Result<Vec<Figure>> {
    let opened = site.open().await?;
    let mut probe = Probe { opened: &opened, made, figures: Vec::new() };
    upkeep::open(&mut probe, site).await?;
    list::run(&mut probe).await?;
    read::run(&mut probe).await?;
    fetch::run(&mut probe).await?;
    upkeep::run(&mut probe).await?;
    delete::run(&mut probe).await?;
    Ok(probe.figures)
}

/// A full store, and the work that was counted on it.
struct Probe<'a> {
    opened: &'a Opened,
    made: &'a Made,
    figures: Vec<Figure>,
}

impl<'a> Probe<'a> {
    /// Counts a call that returns how many rows it gave or removed. The call is told the number of its round.
    async fn count(
        &mut self,
        name: &'static str,
        growth: Growth,
        call: impl AsyncFn(u64) -> Result<u64>,
    ) -> Result<()> {
        let mut least: Option<Figure> = None;
        for round in 0..ROUNDS {
            let before = self.opened.meter.read().await?;
            let results = call(round).await.with_context(|| name.to_owned())?;
            let work = self.opened.meter.read().await? - before;
            if least.as_ref().is_none_or(|least| work < least.work) {
                least = Some(Figure { name, growth, work, results });
            }
        }
        self.figures.extend(least);
        Ok(())
    }

    fn store(&self) -> &'a dyn Store {
        self.opened.store.as_ref()
    }

    fn admin(&self) -> Result<&'a dyn ProviderAdmin> {
        self.opened.store.admin().context("the store has no management")
    }

    /// Returns the id of an instance in the middle of the store, another one in each round.
    fn middle(&self, template: &str, round: u64) -> String {
        self.made.id(template, self.made.sets / 2 + round)
    }
}

/// Returns a number of rows.
fn rows(count: usize) -> u64 {
    count as u64
}
