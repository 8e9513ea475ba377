//! Readers of stored and sent texts, on texts that no writer of ours wrote: no panic, no hang, and what is
//! read is written back and read again as the same value.
//!
//! | reader | where it is fed |
//! |---|---|
//! | `Event`, histories as JSON arrays | `wire.rs`, `replay.rs` |
//! | `WorkItem`, `ErrorDetails`, `SystemStats`, `CarriedSession` | `wire.rs` |
//! | histories given to replay, messages given to a turn | `replay.rs` |
//! | typed payloads (`codec::decode`, `decode_named`) | `wire.rs` |
//! | tags (`TagFilter::try_tags`), session keys, ids of children | `wire.rs` |
//! | `import_history`, stored rows of any bytes | `stores/sqlite/tests/readers.rs` |
//! | cursors of lists, ids and prefixes, locations | `stores/sqlite/tests/readers.rs` |
//! | connection strings, escaped texts | `stores/postgres/src/tests/readers.rs` |
//! | notifications, reports of workers | `stores/postgres/src/tests/readers.rs` |
//! | `RuntimeOptions` | `crates/runtime/src/plan.rs` |
//!
//! `corpus/` holds texts that are given to every reader in each run, beside the random ones; a text that once
//! broke a reader is added there. `STEADFAST_CASES=100` runs a hundred times as many random texts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test panics where an expectation does not hold"
)]

mod replay;
mod spoil;
mod wire;

use proptest::test_runner::Config;

/// Returns the configuration of a property that runs so many cases, or as many times more as asked for.
fn cases(cases: u32) -> Config {
    let times = std::env::var("STEADFAST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u32);
    Config { cases: cases.saturating_mul(times), ..Config::default() }
}
