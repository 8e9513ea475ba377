//! Each call of a store costs about the same in a store of ten thousand instances as in one of a thousand
//! (S20), counted in steps of SQLite's virtual machine and in blocks of a PostgreSQL server.
//!
//! `STEADFAST_INSTANCES` sets another size; `cargo xtask scale` prints the table.

use steadfast_scale::measure;
use steadfast_scale::site::Backend;

async fn check(backend: Backend) -> anyhow::Result<()> {
    let asked = std::env::var("STEADFAST_INSTANCES").ok().and_then(|text| text.parse().ok());
    let comparison = measure(backend, asked.unwrap_or(10_000), &|_| ()).await?;
    assert!(comparison.faults().is_empty(), "{:?} grow with the store:\n{comparison}", comparison.faults());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_sqlite_costs_more_because_the_store_is_full() -> anyhow::Result<()> {
    check(Backend::Sqlite).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_postgres_costs_more_because_the_store_is_full() -> anyhow::Result<()> {
    check(Backend::Postgres).await
}
