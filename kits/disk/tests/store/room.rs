//! A disk without room.

use steadfast_sqlite::OpenError;
use steadfast_store::{ProviderErrorKind, Store};

use crate::chain::{Ledger, start_with};
use crate::machine::{Machine, process};

#[test]
fn a_full_disk_is_an_error_value_and_the_store_goes_on_when_there_is_room_again() {
    let mut machine = Machine::new(1);
    // The log is not written back meanwhile, so that it grows.
    machine.wal_pages = 1_000;
    process(async {
        let store = machine.reopen("first").await;
        let mut ledger = Ledger::default();
        ledger.run(&store, "before").await.expect("there is room");
        machine.disk.set_room(Some(machine.disk.used() + 200_000));
        let mut refused = 0;
        for number in 0..60 {
            let instance = format!("i{number}");
            match store.start(start_with(&instance, "x".repeat(3_000)).into(), Vec::new()).await {
                Ok(_) => drop(ledger.started.insert(instance)),
                Err(error) => {
                    assert_eq!(error.kind, ProviderErrorKind::Full, "{error:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && refused < 60, "{refused}");
        assert_eq!(ledger.missing(&store).await, Vec::<String>::new(), "reads go on");
        machine.disk.set_room(None);
        ledger.run(&store, "after").await.expect("there is room");
        ledger.settle(&store, &machine.clock).await;
        ledger.assert_whole(&store).await;
    });
    machine.assert_sound();
}

#[test]
fn a_store_cannot_be_opened_without_room_and_can_when_there_is_some() {
    let machine = Machine::new(1);
    process(async {
        for room in [0, 4_096, 20_000, 60_000] {
            machine.disk.set_room(Some(room));
            let refused = machine.open(&machine.disk.mount("first")).await;
            let refused = refused.expect_err("there is no room for the tables");
            let source = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
            assert!(source.contains("full") || matches!(refused, OpenError::Full { .. }), "{refused:?}");
        }
        machine.disk.set_room(None);
        let store = machine.reopen("second").await;
        Ledger::default().run(&store, "i").await.expect("there is room");
    });
}
