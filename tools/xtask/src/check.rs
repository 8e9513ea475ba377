//! `cargo xtask check`: what a reviewer would otherwise repeat. It compiles, and runs no code of the project.

use anyhow::Result;

use crate::{house, layers, step::Steps, workspace::Workspace};

const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];
const CLIPPY: [&str; 7] =
    ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
const DOCS: [&str; 4] = ["doc", "--workspace", "--all-features", "--no-deps"];

/// Runs format, layers, the house, clippy and docs.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut steps = Steps::default();
    steps.command("format", &mut workspace.cargo(FORMAT));
    steps.action("layers", "cargo xtask layers", || layers::run(workspace));
    steps.action("house", "cargo xtask house", || house::step(workspace));
    steps.command("clippy", &mut workspace.cargo(CLIPPY));
    steps.command("docs", workspace.cargo(DOCS).env("RUSTDOCFLAGS", "-D warnings"));
    steps.finish("check")
}
