//! Power loss: a commit that is acknowledged has been synced, unless less was asked for.

use std::path::Path;
use std::process::{Command, Stdio};

use steadfast_sqlite::{Durability, SqliteOptions};
use steadfast_store::Store;

use crate::process::another;
use crate::stage::{open, place, start};

/// How many calls the other process makes, one after the other: each is a commit of its own.
const CALLS: usize = 40;

/// The other process: it opens the store, and commits one call at a time.
pub(crate) async fn write_some(file: &Path, durability: &str) {
    let durability = match durability {
        "full" => Durability::PowerLoss,
        _ => Durability::ProcessCrash,
    };
    // No write-back in between: it syncs too, and would be counted.
    let store =
        open(file, SqliteOptions { durability, wal_pages: u32::MAX, ..SqliteOptions::default() }).await;
    for number in 0..CALLS {
        store.start(start(&format!("i{number}")).into(), Vec::new()).await.expect("it is started");
    }
    std::process::exit(0);
}

/// Counts the syncs of the log, as the operating system saw them.
fn syncs_of_the_log(durability: &str) -> Option<usize> {
    let installed = Command::new("strace").arg("--version").stdout(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        return None;
    }
    let (folder, path) = place();
    let report = folder.path().join("calls");
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"]).arg(&report);
    let status = another(traced, "writer", durability, &path).stdin(Stdio::null()).status();
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    // A machine may have strace and forbid tracing: then it has not seen the process end.
    if !status.is_ok_and(|status| status.success()) || !text.contains("exited with 0") {
        return None;
    }
    Some(text.lines().filter(|line| line.contains("sync(") && line.contains("-wal")).count())
}

#[test]
fn every_acknowledged_commit_is_synced_unless_less_was_asked_for() {
    let (Some(full), Some(normal)) = (syncs_of_the_log("full"), syncs_of_the_log("normal")) else {
        eprintln!("skipped: syncs are counted with strace, which is not installed or may not trace here");
        return;
    };
    eprintln!("{CALLS} commits: {full} syncs of the log with FULL, {normal} with NORMAL");
    assert!(full >= CALLS, "{CALLS} commits, {full} syncs");
    assert!(normal < CALLS / 4, "{CALLS} commits, {normal} syncs");
}
