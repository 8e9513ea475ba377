//! The part of `cargo metadata` that the commands read.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::workspace::{Workspace, read};

/// Describes the packages of the workspace; others are not in it.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is an ordinary dependency.
    pub(crate) kind: Option<DependencyKind>,
    /// Only a dependency on a folder has one; a workspace member always does.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Dev,
    Build,
}

#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Metadata {
    pub(crate) fn of(workspace: &Workspace) -> Result<Self> {
        let text = read(&mut workspace.cargo(["metadata", "--format-version", "1", "--no-deps"]))?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("cannot read the output of `cargo metadata`")
    }
}
