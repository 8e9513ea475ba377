//! What calls of a store cost when it is very full.
//!
//! A full store is made in two steps. [`templates`] runs real orchestrations once on an empty store, until
//! some have ended and the others wait. [`multiply`] then copies their rows under new ids with statements of
//! the database, so that every row is one that the engine wrote, and [`verify`] reads a sample of the copies
//! back and replays it.
//!
//! [`measure`] makes a small store and a large one so, runs the same calls on both ([`probe`]), and counts
//! the work of each: steps of SQLite's virtual machine, or blocks that the PostgreSQL server looked at. A
//! call whose work grows with the store although it should not is a fault ([`figure`]).
//!
//! `cargo xtask scale --store sqlite --instances 1000000` prints the table.

pub mod figure;
pub mod multiply;
pub mod probe;
pub mod site;
pub mod templates;
pub mod verify;

use anyhow::{Context, Result};

use figure::Comparison;
use site::Backend;

/// The number of instances of the small store, beside whose figures those of the large one stand.
pub const SMALL: u64 = 1_000;

/// Makes a small store and a large one, runs the same calls on both, and returns the counted work.
///
/// `tell` is told of the progress.
///
/// # Errors
///
/// There is not enough space on the disk, a store cannot be made, a copied history cannot be replayed, or a
/// call fails.
///
/// # Cancel safety
/// A dropped future leaves nothing behind: both stores are temporary.
pub async fn measure(backend: Backend, instances: u64, tell: &(dyn Fn(&str) + Sync)) -> Result<Comparison> {
    site::check_space(backend, SMALL + instances)?;
    let host = site::Host::start(backend)?;
    let mut sites = Vec::new();
    for size in [SMALL, instances] {
        let site = host.site()?;
        templates::write(&site).await.context("the templates cannot be made")?;
        let made = multiply::fill(&site, size, tell).await.context("the rows cannot be copied")?;
        tell(&format!("{size}: {made}"));
        verify::check_sample(&site, &made).await.context("the copies are not what the engine writes")?;
        sites.push((site, made));
    }
    let mut figures = Vec::new();
    for (site, made) in &sites {
        tell(&format!("{}: counting", made.instances));
        figures.push(probe::run(site, made).await?);
    }
    let large = figures.pop().unwrap_or_default();
    let small = figures.pop().unwrap_or_default();
    Comparison::of(backend, [&sites[0].1, &sites[1].1], small, large)
}
