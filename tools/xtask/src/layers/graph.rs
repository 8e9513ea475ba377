//! What depends on what, as cargo tells it.

use std::collections::BTreeSet;

use crate::metadata::{DependencyKind, Metadata};

/// Holds the packages of the workspace and the dependencies between them; libraries from outside are not in
/// it.
pub(super) struct Graph {
    pub(super) packages: BTreeSet<String>,
    pub(super) edges: Vec<Edge>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: EdgeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeKind {
    Normal,
    Build,
    Dev,
}

impl EdgeKind {
    /// Names the section of a manifest that makes such an edge.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Normal => "dependencies",
            Self::Build => "build-dependencies",
            Self::Dev => "dev-dependencies",
        }
    }
}

impl From<Option<DependencyKind>> for EdgeKind {
    fn from(kind: Option<DependencyKind>) -> Self {
        match kind {
            None => Self::Normal,
            Some(DependencyKind::Build) => Self::Build,
            Some(DependencyKind::Dev) => Self::Dev,
        }
    }
}

impl Graph {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let packages: BTreeSet<_> = metadata.packages.iter().map(|package| package.name.clone()).collect();
        let mut edges = Vec::new();
        for package in &metadata.packages {
            for dependency in &package.dependencies {
                // A library from a registry may share the name of one of ours; only ours has a path.
                if dependency.path.is_some() && packages.contains(&dependency.name) {
                    let (from, to) = (package.name.clone(), dependency.name.clone());
                    edges.push(Edge { from, to, kind: dependency.kind.into() });
                }
            }
        }
        Self { packages, edges }
    }
}

/// Reads the names, each once, from what `cargo tree --prefix none` prints.
pub(super) fn packages_in_tree(tree: &str) -> Vec<String> {
    let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "target_directory": "target",
        "packages": [
            { "name": "a", "targets": [], "dependencies": [
                { "name": "b", "kind": null, "path": "b" },
                { "name": "serde", "kind": null },
                { "name": "c", "kind": "build", "path": "c" },
                { "name": "c", "kind": "dev", "path": "c" }
            ] },
            { "name": "b", "targets": [], "dependencies": [
                { "name": "a", "kind": null, "source": "registry", "path": null },
                { "name": "outside", "kind": null, "path": "elsewhere/outside" }
            ] },
            { "name": "c", "targets": [], "dependencies": [] }
        ]
    }"#;

    #[test]
    fn edges_between_workspace_packages_are_read_with_their_kind() {
        let graph = Graph::of(&Metadata::parse(METADATA).unwrap());
        let edge = |from: &str, to: &str, kind| Edge { from: from.into(), to: to.into(), kind };
        assert_eq!(
            graph.edges,
            [
                edge("a", "b", EdgeKind::Normal),
                edge("a", "c", EdgeKind::Build),
                edge("a", "c", EdgeKind::Dev)
            ]
        );
        assert_eq!(graph.packages.len(), 3);
    }

    #[test]
    fn a_tree_gives_each_name_once() {
        let tree =
            "core v0.2.0 (/somewhere)\nserde v1.0.1\nserde_derive v1.0.1 (proc-macro)\nserde v1.0.1 (*)\n\n";
        assert_eq!(packages_in_tree(tree), ["core", "serde", "serde_derive"]);
    }
}
