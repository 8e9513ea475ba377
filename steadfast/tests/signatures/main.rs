//! Everything that a public signature names can be named from `steadfast`.
//!
//! The facade re-exports items of the other crates one by one, so a type that a method returns is easily
//! forgotten: a user can then hold a value of it and cannot write its name. This test reads the sources of
//! the facade and of the crates behind it, and follows `mod` and `use` from each `lib.rs`. It reports every
//! type of these crates that a reachable signature names and the facade does not export. It does not see
//! items that a macro generates.

#![allow(clippy::expect_used, clippy::panic, reason = "what the test relies on, it panics without")]

mod resolve;
mod signature;
mod source;

use std::collections::BTreeSet;

use resolve::{Definition, Workspace};
use signature::signatures_of;

#[test]
fn every_type_that_a_public_signature_names_is_exported() {
    let workspace = Workspace::load();
    let missing = missing(&workspace, &workspace.exports("steadfast"));
    assert!(missing.is_empty(), "steadfast does not export:\n{}", missing.join("\n"));
}

#[test]
fn a_type_that_is_left_out_is_found() {
    let workspace = Workspace::load();
    let mut exports = workspace.exports("steadfast");
    let (named, left): (BTreeSet<_>, BTreeSet<_>) =
        exports.into_iter().partition(|exported| workspace.name(*exported) != "SetAside");
    exports = named;
    assert_eq!(left.len(), 1, "the example of this test is exported");
    let missing = missing(&workspace, &exports);
    let client = "steadfast_client::Client::list_set_aside names steadfast_store::SetAside";
    assert!(missing.iter().any(|line| line == client), "{missing:?}");
}

#[test]
fn the_walk_reaches_every_kind_of_item() {
    let workspace = Workspace::load();
    let exports = workspace.exports("steadfast");
    let named: BTreeSet<String> = exports.iter().map(|exported| workspace.name(*exported)).collect();
    let examples = [
        ("a struct", "Client"),
        ("an enum", "EventKind"),
        ("a trait", "Provider"),
        ("a function", "is_session_lost"),
        ("a constant", "INITIAL_EVENT_ID"),
        ("an alias", "ProviderRef"),
        ("an item of a module that is exported as a whole", "ActivityRegistry"),
        ("an item behind a feature", "PostgresProvider"),
    ];
    for (what, name) in examples {
        assert!(named.contains(name), "{what}: {name}");
    }
}

/// Lists what signatures of exported items name and the facade does not export, as lines for people.
fn missing(workspace: &Workspace, exports: &BTreeSet<Definition>) -> Vec<String> {
    let mut lines = BTreeSet::new();
    for exported in exports {
        for mention in signatures_of(workspace, *exported) {
            for named in workspace.types(mention.crate_index, mention.module, &mention.path) {
                if !exports.contains(&named) {
                    let named =
                        format!("{}::{}", workspace.crate_name(named.crate_index), workspace.name(named));
                    lines.insert(format!("{} names {named}", mention.place));
                }
            }
        }
    }
    lines.into_iter().collect()
}
