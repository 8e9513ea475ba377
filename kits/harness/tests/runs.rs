//! Short runs of the harness, as `cargo xtask crash` and `cargo xtask soak` start it: they must find nothing,
//! and must have done what they are for.

#![allow(clippy::expect_used, reason = "what a test relies on, it panics without")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use steadfast_harness::tally::Tally;

const SEED: &str = "1";

fn harness(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast-harness")).args(arguments).output();
    let output = output.expect("the harness starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, text)
}

/// Runs the crash harness for a few seconds, and returns what it kept.
fn crashed(store: &str, faults: &[&str]) -> PathBuf {
    let (output, text) =
        harness(&["crash", "--store", store, "--minutes", "0.2", "--window", "40", "--seed", SEED, "--keep"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("every promise was kept"), "{text}");
    let tally = Tally::parse(&text);
    for count in ["started", "kills", "activities that ran", "calls that succeeded"] {
        assert!(tally.get(count) > 0, "no {count}: {text}");
    }
    assert!(faults.iter().any(|fault| tally.get(fault) > 0), "the store had no trouble: {text}");
    let (_, path) = text.trim_end().rsplit_once(" are in ").expect("the folder is named");
    PathBuf::from(path)
}

/// What the line of a run that ended contains.
const ENDED: &str = "\"Ended\"";

/// Returns the ledger of the process that has ended the most runs. Others may have been killed early.
fn ledger_with_ends(folder: &Path) -> (PathBuf, String) {
    let files = fs::read_dir(folder).expect("the folder is there").flatten().map(|file| file.path());
    let is_of_worker = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('w') && name.ends_with(".ledger")
    };
    let texts = files.filter(is_of_worker).map(|path| {
        let text = fs::read_to_string(&path).expect("a ledger can be read");
        (path, text)
    });
    let longest = texts.max_by_key(|(_, text)| text.matches(ENDED).count());
    longest.filter(|(_, text)| text.contains(ENDED)).expect("a run of some process has ended")
}

#[test]
fn i1_processes_on_a_file_keep_every_promise_when_they_are_killed_paused_and_held_up() {
    let folder = crashed("sqlite", &["holds of the file", "holds of the file that were killed"]);
    let path = folder.to_string_lossy().into_owned();
    let audit = || harness(&["audit", "--folder", &path, "--seed", SEED]);
    let (output, text) = audit();
    assert!(output.status.success(), "{text}");
    // A result that no run had is noticed: here, because the ledger of a process has lost its ends.
    let (path_of_ledger, ledger) = ledger_with_ends(&folder);
    let without: Vec<&str> = ledger.lines().filter(|line| !line.contains(ENDED)).collect();
    fs::write(path_of_ledger, without.join("\n") + "\n").expect("the ledger can be written");
    let (output, text) = audit();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("VIOLATION I6: "), "{text}");
    fs::remove_dir_all(folder).expect("the folder can be removed");
}

#[test]
fn i1_processes_on_a_server_keep_every_promise_when_they_and_it_are_killed() {
    let folder = crashed("postgres", &["crashes of the server", "connections ended", "tables locked"]);
    let dump = fs::read_to_string(folder.join("store.sql")).expect("the store was kept");
    assert!(dump.contains("COPY harness.history"), "{} bytes", dump.len());
    fs::remove_dir_all(folder).expect("the folder can be removed");
}

#[test]
fn a_soak_measures_and_judges() {
    for store in ["sqlite", "postgres"] {
        let (output, text) = harness(&[
            "soak",
            "--store",
            store,
            "--minutes",
            "0.2",
            "--interval",
            "0.02",
            "--warm-up",
            "4",
            "--rate",
            "10",
        ]);
        // On a busy machine a figure may rise in so short a time: that it is judged is what counts here.
        assert!(output.status.success() || text.contains("TREND"), "{text}");
        assert!(text.contains(" lines were judged") && !text.contains("too short"), "{text}");
        assert!(!text.contains("ended with"), "{text}");
    }
}

#[test]
fn a_wrong_command_line_is_told_apart_from_a_failed_run() {
    let (output, text) = harness(&["crash", "--minutes", "soon"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("`soon` is no number of minutes"), "{text}");
    let (output, text) = harness(&["crash", "--help"]);
    assert!(output.status.success() && text.contains("--seed") && text.contains("Examples"), "{text}");
}
