//! What the SQLite store costs on top of its own statements. The program measures, prints and judges.

use anyhow::Result;

use crate::{step::Steps, workspace::Workspace};

const RUN: [&str; 5] = ["run", "--release", "--quiet", "--package", "steadfast-bench-store"];

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let mut steps = Steps::default();
    steps.command("store", &mut workspace.cargo(RUN));
    steps.finish("bench")
}
