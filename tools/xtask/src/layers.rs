//! `cargo xtask layers`: the direction of dependencies, as a check.
//!
//! [`table`] says what is allowed, [`graph`] reads what is there; this file compares the two.

mod graph;
mod table;

use anyhow::{Result, bail};

use crate::{
    metadata::Metadata,
    workspace::{Workspace, read},
};
use graph::{Edge, EdgeKind, Graph};
use table::{BANNED_FROM_CORE, Ban, CORE, Row, TABLE};

const CORE_TREE: [&str; 11] = [
    "tree",
    "--package",
    CORE,
    "--edges",
    "normal",
    "--all-features",
    "--target",
    "all",
    "--prefix",
    "none",
    "--quiet",
];

/// Compares the workspace with the table, and what `core` pulls in with the list of bans.
///
/// # Errors
///
/// Names every edge, package and dependency that breaks a rule.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let graph = Graph::of(&Metadata::of(workspace)?);
    let tree = graph::packages_in_tree(&read(&mut workspace.cargo(CORE_TREE))?);
    let mut faults = broken_edges(&graph, TABLE);
    faults.extend(banned_packages(&tree, BANNED_FROM_CORE));
    if faults.is_empty() {
        println!(
            "layers: as the table allows (packages: {}, edges: {}); \
             {CORE} pulls in nothing banned (packages: {})",
            graph.packages.len(),
            graph.edges.len(),
            tree.len(),
        );
        return Ok(());
    }
    bail!("rules broken: {}\n  {}", faults.len(), faults.join("\n  "))
}

fn broken_edges(graph: &Graph, table: &[Row]) -> Vec<String> {
    let row = |package: &str| table.iter().find(|row| row.package == package);
    let unknown = graph.packages.iter().filter(|package| row(package).is_none()).map(|package| {
        format!("package {package} is not in the table: add a row for it in tools/xtask/src/layers/table.rs")
    });
    let broken = graph.edges.iter().filter_map(|edge| {
        let row = row(&edge.from)?;
        (!allows(row, edge)).then(|| breach(row, edge))
    });
    unknown.chain(broken).collect()
}

fn allows(row: &Row, edge: &Edge) -> bool {
    let named = |packages: &[&str]| packages.contains(&edge.to.as_str());
    match edge.kind {
        EdgeKind::Normal | EdgeKind::Build => named(row.may_use),
        EdgeKind::Dev => named(row.may_use) || named(row.tests_may_use),
    }
}

fn breach(row: &Row, edge: &Edge) -> String {
    let allowed = match edge.kind {
        EdgeKind::Normal | EdgeKind::Build => row.may_use.to_vec(),
        EdgeKind::Dev => [row.may_use, row.tests_may_use].concat(),
    };
    let allowed =
        if allowed.is_empty() { "no package of the workspace".to_owned() } else { allowed.join(", ") };
    let section = edge.kind.section();
    format!("edge {} → {} ([{section}]) is not allowed: it may use {allowed}", edge.from, edge.to)
}

fn banned_packages(tree: &[String], bans: &[Ban]) -> Vec<String> {
    tree.iter()
        .filter_map(|package| {
            let ban = bans.iter().find(|ban| ban.names(package))?;
            Some(format!(
                "{CORE} depends on {package}, but must not know {}; \
                 see how: cargo tree -p {CORE} -e normal -i {package}",
                ban.what
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(packages: &[&str], edges: &[(&str, &str, EdgeKind)]) -> Graph {
        Graph {
            packages: packages.iter().map(|&name| name.to_owned()).collect(),
            edges: edges
                .iter()
                .map(|&(from, to, kind)| Edge { from: from.to_owned(), to: to.to_owned(), kind })
                .collect(),
        }
    }

    fn faults_of(from: &str, to: &str, kind: EdgeKind) -> Vec<String> {
        broken_edges(&graph(&[from, to], &[(from, to, kind)]), TABLE)
    }

    #[test]
    fn a_graph_that_follows_the_direction_has_no_faults() {
        let graph = graph(
            &[
                "steadfast",
                "steadfast-core",
                "steadfast-clock",
                "steadfast-store",
                "steadfast-runtime",
                "xtask",
            ],
            &[
                ("steadfast", "steadfast-core", EdgeKind::Normal),
                ("steadfast", "steadfast-runtime", EdgeKind::Normal),
                ("steadfast-store", "steadfast-core", EdgeKind::Normal),
                ("steadfast-runtime", "steadfast-store", EdgeKind::Normal),
                ("steadfast-runtime", "steadfast-clock", EdgeKind::Normal),
            ],
        );
        assert_eq!(broken_edges(&graph, TABLE), Vec::<String>::new());
    }

    #[test]
    fn a_broken_edge_is_named_with_what_would_be_allowed() {
        assert_eq!(
            faults_of("steadfast-core", "steadfast-clock", EdgeKind::Normal),
            ["edge steadfast-core → steadfast-clock ([dependencies]) is not allowed: \
              it may use no package of the workspace"]
        );
        assert_eq!(
            faults_of("steadfast-clock", "steadfast-store", EdgeKind::Build),
            ["edge steadfast-clock → steadfast-store ([build-dependencies]) is not allowed: \
              it may use steadfast-core"]
        );
    }

    #[test]
    fn every_fault_of_a_broken_graph_is_reported() {
        let broken = graph(
            &["steadfast-core", "steadfast-sqlite", "steadfast-runtime", "steadfast-cli", "steadfast-extra"],
            &[
                ("steadfast-core", "steadfast-runtime", EdgeKind::Normal),
                ("steadfast-runtime", "steadfast-sqlite", EdgeKind::Normal),
                ("steadfast-sqlite", "steadfast-runtime", EdgeKind::Normal),
                ("steadfast-cli", "steadfast-core", EdgeKind::Normal),
                ("steadfast-extra", "steadfast-core", EdgeKind::Normal),
            ],
        );
        let faults = broken_edges(&broken, TABLE);
        assert_eq!(faults.len(), 5, "{faults:#?}");
    }

    #[test]
    fn a_package_that_is_not_in_the_table_is_told_to_be_added() {
        let faults = broken_edges(&graph(&["steadfast-extra"], &[]), TABLE);
        assert_eq!(
            faults,
            ["package steadfast-extra is not in the table: \
                 add a row for it in tools/xtask/src/layers/table.rs"]
        );
    }

    #[test]
    fn tests_may_use_kits_where_code_may_not() {
        for package in ["steadfast-runtime", "steadfast-sqlite", "steadfast-cli"] {
            assert!(faults_of(package, "steadfast-testing", EdgeKind::Dev).is_empty(), "{package}");
            assert_eq!(faults_of(package, "steadfast-testing", EdgeKind::Normal).len(), 1, "{package}");
        }
    }

    #[test]
    fn tests_may_not_use_whatever_they_like() {
        let faults = faults_of("steadfast-sqlite", "steadfast-runtime", EdgeKind::Dev);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("([dev-dependencies])"), "{}", faults[0]);
        assert_eq!(faults_of("steadfast-runtime", "steadfast-sqlite", EdgeKind::Dev).len(), 1);
    }

    #[test]
    fn a_banned_dependency_of_core_is_named_with_the_reason() {
        let tree = ["steadfast-core", "serde", "tokio", "getrandom"].map(str::to_owned);
        let faults = banned_packages(&tree, BANNED_FROM_CORE);
        assert_eq!(faults.len(), 2, "{faults:#?}");
        assert!(faults[0].contains("depends on tokio, but must not know an async runtime"), "{}", faults[0]);
        assert!(
            faults[1].contains("depends on getrandom, but must not know random numbers"),
            "{}",
            faults[1]
        );
    }

    #[test]
    fn the_libraries_that_core_is_built_from_are_not_banned() {
        let tree = ["semver", "serde", "serde_json", "thiserror", "tracing", "uuid"].map(str::to_owned);
        assert_eq!(banned_packages(&tree, BANNED_FROM_CORE), Vec::<String>::new());
    }
}
