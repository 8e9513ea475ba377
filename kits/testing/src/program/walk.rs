//! Ways through a program: every statement in reading order, and one of them changed.

use super::ast::{Block, Name, Operation, Own, Program, Step};

/// A statement: the number of its block in reading order, and its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    block: usize,
    /// The place in the block.
    pub(super) index: usize,
}

/// Gives the sites that are meant; the test sees the block of a statement and its place there.
pub(super) fn sites(program: &Program, is_meant: impl Fn(&[Step], usize) -> bool) -> Vec<Site> {
    let (mut sites, mut block) = (Vec::new(), 0);
    show_blocks(&program.body, &mut |steps| {
        sites.extend(
            (0..steps.len()).filter(|index| is_meant(steps, *index)).map(|index| Site { block, index }),
        );
        block += 1;
    });
    sites
}

/// Gives the program with the block of the site changed, and what the change returned.
pub(super) fn edited<T>(
    program: &Program,
    site: Site,
    change: impl FnOnce(&mut Vec<Step>) -> T,
) -> Option<(Program, T)> {
    let mut program = program.clone();
    let mut blocks_before = site.block;
    let result = change(nth(&mut program.body, &mut blocks_before)?);
    Some((program, result))
}

impl Program {
    /// Returns the program without the statements that start other orchestrations.
    pub fn childless(&self) -> Self {
        Self { body: childless(&self.body) }
    }

    /// Tells whether a statement starts an orchestration of this name, as a child or detached.
    pub fn starts(&self, name: &str) -> bool {
        !sites(self, |block, index| started_by(&block[index]) == Some(name)).is_empty()
    }
}

fn childless(block: &Block) -> Block {
    let mut kept: Vec<Step> = block.0.iter().filter(|step| !starts_another(step)).cloned().collect();
    for inner in kept.iter_mut().flat_map(inner_mut) {
        *inner = childless(inner);
    }
    Block(kept)
}

fn starts_another(step: &Step) -> bool {
    started_by(step).is_some()
}

/// Returns the name of the orchestration that a statement starts.
fn started_by(step: &Step) -> Option<Name> {
    if let Step::Await(Operation::Child { name, .. })
    | Step::Hold { operation: Operation::Child { name, .. }, .. }
    | Step::Detach { name, .. } = step
    {
        Some(*name)
    } else {
        None
    }
}

/// The blocks inside a statement.
pub(super) fn inner(step: &Step) -> Vec<&Block> {
    match step {
        Step::RaceHeld { against: one, .. } | Step::Repeat { body: one, .. } => vec![one],
        Step::IfValue { then: one, otherwise: two, .. }
        | Step::IfOdd { then: one, otherwise: two }
        | Step::Channel { sender: one, receiver: two, .. } => vec![one, two],
        Step::Join(all) | Step::Race(all) | Step::Own(Own::Gather(all)) => all.iter().collect(),
        _ => Vec::new(),
    }
}

fn inner_mut(step: &mut Step) -> Vec<&mut Block> {
    match step {
        Step::RaceHeld { against: one, .. } | Step::Repeat { body: one, .. } => vec![one],
        Step::IfValue { then: one, otherwise: two, .. }
        | Step::IfOdd { then: one, otherwise: two }
        | Step::Channel { sender: one, receiver: two, .. } => vec![one, two],
        Step::Join(all) | Step::Race(all) | Step::Own(Own::Gather(all)) => all.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Shows every list of statements, a block before the blocks inside it.
fn show_blocks(block: &Block, show: &mut impl FnMut(&[Step])) {
    show(&block.0);
    block.0.iter().flat_map(inner).for_each(|inner| show_blocks(inner, show));
}

/// Finds a block by its number in the order of [`show_blocks`].
fn nth<'a>(block: &'a mut Block, blocks_before: &mut usize) -> Option<&'a mut Vec<Step>> {
    if *blocks_before == 0 {
        return Some(&mut block.0);
    }
    *blocks_before -= 1;
    block.0.iter_mut().flat_map(inner_mut).find_map(|inner| nth(inner, blocks_before))
}
