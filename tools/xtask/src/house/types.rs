//! A type name is used once in a crate: structs, enums, traits and aliases of its `src`, tests left out.
//!
//! Associated types and types that a macro makes do not count. Across crates a name means one thing; a reader
//! checks that.

use std::collections::BTreeMap;

use super::{
    Finding,
    source::{Definition, DefinitionKind},
    tree::Tree,
};

/// Pairs of a crate's folder and a name that may be used more than once there, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for ((package, name), places) in named_twice(tree) {
        if EXCEPTIONS.iter().any(|(folder, exempt, _)| (*folder, *exempt) == (package, name)) {
            continue;
        }
        let (first, line) = places[0];
        found.extend(places[1..].iter().map(|(path, here)| Finding {
            check: "types",
            file: (*path).to_owned(),
            line: *here,
            remedy: format!("`{name}` is also defined in {first}:{line}: name each for what it is"),
        }));
    }
    found
}

type Places<'a> = Vec<(&'a str, usize)>;

/// Finds the names that a crate gives to several types, with the places of each.
pub(super) fn named_twice(tree: &Tree) -> BTreeMap<(&str, &str), Places<'_>> {
    let mut places: BTreeMap<_, Places<'_>> = BTreeMap::new();
    for source in &tree.sources {
        let package = tree.package_of(&source.path);
        if !source.path.starts_with(&format!("{package}/src/")) {
            continue;
        }
        for definition in source.definitions.iter().filter(|definition| is_ours(definition)) {
            let key = (package, definition.name.as_str());
            places.entry(key).or_default().push((&source.path, definition.line));
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

fn is_ours(definition: &Definition) -> bool {
    definition.kind == DefinitionKind::Type && !definition.in_tests
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn a_name_used_twice_in_a_crate_is_found_with_both_places() {
        let found = findings(&tree(&[
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "struct State;"),
            ("a/src/wait.rs", "\nenum State {}"),
        ]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].file.as_str(), found[0].line), ("a/src/wait.rs", 2));
        assert!(found[0].remedy.contains("a/src/lib.rs:1"), "{}", found[0].remedy);
    }

    #[test]
    fn crates_tests_and_associated_types_do_not_collide() {
        let found = findings(&tree(&[
            ("a/Cargo.toml", ""),
            ("b/Cargo.toml", ""),
            ("a/src/lib.rs", "struct State; #[cfg(test)] mod tests { struct State; }"),
            ("a/src/next.rs", "trait Next { type State; }"),
            ("a/tests/all.rs", "struct State;"),
            ("b/src/lib.rs", "struct State;"),
        ]));
        assert_eq!(found, []);
    }
}
