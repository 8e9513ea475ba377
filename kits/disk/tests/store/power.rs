//! The power fails at every call in turn.

use steadfast_disk::{DiskFault, Failure, FileCall, Loss};
use steadfast_sqlite::{Durability, OpenError};
use steadfast_store::Store;

use crate::chain::{Ledger, start};
use crate::machine::{Machine, process};

const INSTANCES: usize = 3;

/// Opens a store and runs instances until the power fails. Returns what was acknowledged.
fn run_until_off(machine: &Machine) -> Ledger {
    process(async {
        let mut ledger = Ledger::default();
        let store = match machine.open(&machine.disk.mount("first")).await {
            Ok(store) => store,
            Err(error) => {
                assert!(machine.disk.is_off(), "{error:?}");
                return ledger;
            }
        };
        for number in 0..INSTANCES {
            if let Err(error) = ledger.run(&store, &format!("i{number}")).await {
                assert!(machine.disk.is_off(), "{error:?}");
                break;
            }
        }
        ledger
    })
}

/// What came of a power failure at each call of a run.
#[derive(Debug, Default)]
struct Failures {
    calls: u64,
    acknowledged: usize,
    missing: Vec<String>,
}

/// Lets the power fail at each call of a kind in turn, with each loss.
fn fail_at_every(ready: &Machine, call: FileCall, losses: &[Loss], stride: usize) -> Failures {
    let (mut failures, durability) = (Failures::default(), ready.durability);
    for (number, loss) in losses.iter().enumerate() {
        for skip in (number as u64..).step_by(stride) {
            let machine = ready.copy(skip * 31 + number as u64);
            machine.disk.plan(DiskFault::once(call, skip, Failure::PowerLoss));
            let mut ledger = run_until_off(&machine);
            if !machine.disk.is_off() {
                break;
            }
            machine.restart(*loss);
            machine.assert_sound();
            failures.calls += 1;
            failures.acknowledged += ledger.len();
            process(async {
                let store = machine.reopen("second").await;
                let missing = ledger.missing(&store).await;
                if missing.is_empty() && durability == Durability::PowerLoss {
                    ledger.settle(&store, &machine.clock).await;
                    ledger.assert_whole(&store).await;
                }
                failures.missing.extend(missing.into_iter().map(|what| format!("{skip} {loss:?}: {what}")));
            });
        }
    }
    failures
}

#[test]
fn an_acknowledged_commit_survives_a_power_failure_at_every_write_and_sync() {
    let ready = Machine::ready();
    for call in [FileCall::Write, FileCall::Sync, FileCall::Truncate, FileCall::Delete] {
        let failures = fail_at_every(&ready, call, &[Loss::All, Loss::Some, Loss::Some], stride_of(call));
        let Failures { calls, acknowledged, missing } = failures;
        eprintln!("{call:?}: {calls} power failures, {acknowledged} acknowledged effects");
        assert!(calls > 0 && (acknowledged > 0 || call == FileCall::Delete), "{call:?}");
        assert_eq!(missing, Vec::<String>::new());
    }
}

/// Every call is tried in a run by hand, with `STEADFAST_CASES` set; there are many writes.
fn stride_of(call: FileCall) -> usize {
    let is_long = std::env::var_os("STEADFAST_CASES").is_some();
    if call == FileCall::Write && !is_long { 9 } else { 1 }
}

#[test]
fn a_power_failure_while_the_file_is_made_leaves_one_that_opens() {
    let new = Machine::new(1);
    for call in [FileCall::Sync, FileCall::Truncate, FileCall::Delete] {
        let failures = fail_at_every(&new, call, &[Loss::All, Loss::Some], 2);
        assert!(failures.calls > 0, "{call:?}");
        assert_eq!(failures.missing, Vec::<String>::new());
    }
}

/// The same test finds the fault that `synchronous = NORMAL` would be: it can fail.
#[test]
fn without_a_sync_of_each_commit_the_disk_loses_acknowledged_ones() {
    let mut ready = Machine::ready();
    ready.durability = Durability::ProcessCrash;
    let failures = fail_at_every(&ready, FileCall::Write, &[Loss::All], 15);
    eprintln!("{} power failures, {} acknowledged effects missing", failures.calls, failures.missing.len());
    assert!(!failures.missing.is_empty(), "{failures:?}");
}

#[test]
fn a_torn_part_of_the_log_is_ignored_and_what_was_acknowledged_before_it_is_there() {
    let mut ready = Machine::ready();
    // A log that begins anew is synced before the commit is in it.
    ready.wal_pages = 1_000;
    let mut torn = 0;
    for seed in 0..60 {
        let machine = ready.copy(seed);
        let before = process(async {
            let store = machine.open(&machine.disk.mount("first")).await.expect("the store opens");
            store.start(start("kept").into(), Vec::new()).await.expect("it is started");
            machine.disk.plan(DiskFault::once(FileCall::Sync, 0, Failure::PowerLoss));
            let lost = store.start(start("torn").into(), Vec::new()).await;
            assert!(lost.is_err() && machine.disk.is_off(), "it is not acknowledged: {lost:?}");
            machine.disk.bytes("store.db-wal").expect("a log")
        });
        let loss = if seed == 0 { Loss::Nothing } else { Loss::Some };
        machine.restart(loss);
        let after = machine.disk.bytes("store.db-wal").unwrap_or_default();
        torn += u32::from(after != before);
        machine.assert_sound();
        process(async {
            let store = machine.reopen("second").await;
            assert!(store.start_of("kept").await.expect("it can be read").is_some(), "seed {seed}");
            let is_there = store.start_of("torn").await.expect("it can be read").is_some();
            assert_eq!(is_there, after == before, "seed {seed}: a commit arrived whole or it is none");
        });
    }
    eprintln!("{torn} torn logs");
    assert!(torn > 40, "{torn}");
}

/// SQLite tells the mode of a file before it commits the change of it.
#[test]
fn g60_a_store_whose_file_did_not_get_its_log_is_not_opened() {
    let machine = Machine::new(1);
    process(async {
        machine.disk.plan(DiskFault::once(FileCall::Sync, 0, Failure::Io));
        let refused = machine.open(&machine.disk.mount("first")).await.expect_err("it has no log");
        assert!(matches!(refused, OpenError::Driver(_)), "{refused:?}");
        machine.reopen("second").await;
    });
}

/// The system takes what a failed sync could not write for written: no later sync saves it.
#[test]
fn a_commit_whose_sync_failed_is_an_error_and_the_next_one_is_durable() {
    for skip in 0..40 {
        let machine = Machine::new(skip);
        let mut ledger = Ledger::default();
        process(async {
            machine.disk.plan(DiskFault::once(FileCall::Sync, skip, Failure::Io));
            let mount = machine.disk.mount("first");
            let store = match machine.open(&mount).await {
                Err(OpenError::Driver(_) | OpenError::Migration { .. }) => machine.open(&mount).await,
                opened => opened,
            };
            let store = store.expect("a second try opens the store");
            for number in 0..INSTANCES {
                // One call in the run fails, and its instance is served with the next one.
                drop(ledger.run(&store, &format!("i{number}")).await);
            }
        });
        machine.restart(Loss::All);
        process(async {
            let store = machine.reopen("second").await;
            assert_eq!(ledger.missing(&store).await, Vec::<String>::new(), "sync {skip}");
            ledger.settle(&store, &machine.clock).await;
            ledger.assert_whole(&store).await;
        });
    }
}
