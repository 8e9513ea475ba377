//! Each of the first calls of a run fails in turn.

use steadfast_disk::{DiskFault, Failure, FileCall, Loss};
use steadfast_store::ProviderErrorKind;

use crate::chain::Ledger;
use crate::machine::{Machine, process};

const INSTANCES: usize = 3;

/// What came of a run in which calls failed.
struct Disturbed {
    has_met_the_fault: bool,
    has_failed: bool,
}

/// Opens a store, runs instances, and checks all that was acknowledged, before and after a power failure.
fn run_with(ready: &Machine, fault: DiskFault) -> Disturbed {
    let machine = ready.copy(fault.skip);
    machine.disk.plan(fault);
    let what = format!("{fault:?}");
    let mut ledger = Ledger::default();
    let (mut has_failed, mut has_met_the_fault) = (false, false);
    process(async {
        let mount = machine.disk.mount("first");
        let store = match machine.open(&mount).await {
            Ok(store) => store,
            Err(_) => {
                has_failed = true;
                machine.open(&mount).await.unwrap_or_else(|error| panic!("{what}: a second try: {error:?}"))
            }
        };
        for number in 0..INSTANCES {
            let instance = format!("i{number}");
            if let Err(error) = ledger.run(&store, &instance).await {
                has_failed = true;
                let expected = match fault.failure {
                    Failure::Full => ProviderErrorKind::Full,
                    _ => ProviderErrorKind::Unavailable,
                };
                assert_eq!(error.kind, expected, "{what}: {error:?}");
            }
        }
        assert_eq!(ledger.missing(&store).await, Vec::<String>::new(), "{what}");
        has_met_the_fault = fault.call.is_none_or(|call| machine.disk.count(call) > fault.skip);
        machine.disk.heal();
        ledger.settle(&store, &machine.clock).await;
        ledger.assert_whole(&store).await;
    });
    machine.restart(Loss::All);
    machine.assert_sound();
    process(async {
        let store = machine.reopen("second").await;
        assert_eq!(ledger.missing(&store).await, Vec::<String>::new(), "{what}, and the power failed later");
        ledger.assert_whole(&store).await;
    });
    Disturbed { has_met_the_fault, has_failed }
}

/// Fails each call of a kind in turn: the first ones of a store that is made anew, and those of one that was
/// there.
fn fail_each(call: FileCall, failures: &[Failure], most: u64) {
    for ready in [Machine::new(1), Machine::ready()] {
        fail_each_on(&ready, call, failures, most);
    }
}

fn fail_each_on(ready: &Machine, call: FileCall, failures: &[Failure], most: u64) {
    for failure in failures {
        let (mut met, mut failed) = (0, 0);
        // Every call is tried in a run by hand, with `STEADFAST_CASES` set.
        let stride = if std::env::var_os("STEADFAST_CASES").is_some() || most < 50 { 1 } else { 4 };
        for skip in (0..most).step_by(stride) {
            let run = run_with(ready, DiskFault::once(call, skip, *failure));
            failed += u32::from(run.has_failed);
            if !run.has_met_the_fault {
                break;
            }
            met += 1;
        }
        eprintln!("{call:?} {failure:?}: {met} calls failed in turn, {failed} runs met an error");
        assert!(met > 0 || call == FileCall::Delete, "{call:?} {failure:?}");
    }
}

#[test]
fn a_read_that_fails_is_an_error_value_and_loses_nothing() {
    fail_each(FileCall::Read, &[Failure::Io, Failure::NoMemory, Failure::Part], 120);
}

#[test]
fn a_write_that_fails_is_an_error_value_and_loses_nothing() {
    fail_each(FileCall::Write, &[Failure::Io, Failure::NoMemory, Failure::Part, Failure::Full], 120);
}

#[test]
fn a_sync_that_fails_is_an_error_value_and_loses_nothing() {
    fail_each(FileCall::Sync, &[Failure::Io, Failure::NoMemory, Failure::Full], 100);
}

#[test]
fn any_other_call_that_fails_is_an_error_value_and_loses_nothing() {
    for call in [FileCall::Open, FileCall::Truncate, FileCall::Delete, FileCall::Lock, FileCall::Map] {
        fail_each(call, &[Failure::Io, Failure::NoMemory], 40);
    }
}
