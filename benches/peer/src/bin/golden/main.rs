//! Prints the JSON of every event, work item and error of the published crate, one line each:
//! a label, a tab, the text.
//!
//! The output is `crates/core/tests/golden/peer.tsv`. Our types must read each line and write it back
//! byte for byte. With the argument `read` it prints texts that it reads instead, and what came of them:
//! `crates/core/tests/golden/peer_read.tsv`.
//!
//! ```text
//! cargo run --bin golden > ../../crates/core/tests/golden/peer.tsv
//! cargo run --bin golden read > ../../crates/core/tests/golden/peer_read.tsv
//! ```

mod error;
mod event;
mod read;
mod work;

use serde::Serialize;

/// One golden text under the label that the test names when it fails.
struct Line {
    label: String,
    json: String,
}

impl Line {
    fn new(label: impl Into<String>, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { label: label.into(), json: serde_json::to_string(value)? })
    }
}

fn main() -> Result<(), serde_json::Error> {
    if std::env::args().nth(1).as_deref() == Some("read") {
        return read::print();
    }
    let mut lines = event::lines()?;
    lines.extend(work::lines()?);
    lines.extend(error::lines()?);
    for Line { label, json } in lines {
        println!("{label}\t{json}");
    }
    Ok(())
}
