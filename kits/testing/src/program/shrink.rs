//! Shorter programs that may still fail: cuts that follow the language instead of the way it was generated.

use std::vec::IntoIter;

use proptest::{
    prelude::Strategy,
    strategy::{NewTree, ValueTree},
    test_runner::TestRunner,
};

use super::{
    ast::{Block, Operation, Own, Program, Retry, Step, Text, Try},
    walk::{edited, inner, sites},
};

/// A strategy for programs whose failures shrink by [`shorter`].
#[derive(Debug, Clone)]
pub struct Shrinking<S>(pub S);

impl<S: Strategy<Value = Program>> Strategy for Shrinking<S> {
    type Tree = Shortening;
    type Value = Program;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        Ok(Shortening::new(self.0.new_tree(runner)?.current()))
    }
}

/// A program on its way to a shorter one.
#[derive(Debug, Clone)]
pub struct Shortening {
    current: Program,
    /// The last program that is known to fail.
    failing: Program,
    /// What else could be cut from it; filled when it first has to be.
    cuts: Option<IntoIter<Program>>,
}

impl Shortening {
    fn new(current: Program) -> Self {
        Self { failing: current.clone(), current, cuts: None }
    }

    fn cut(&mut self) -> bool {
        match self.cuts.as_mut().and_then(Iterator::next) {
            Some(shorter) => {
                self.current = shorter;
                true
            }
            None => {
                self.current.clone_from(&self.failing);
                false
            }
        }
    }
}

impl ValueTree for Shortening {
    type Value = Program;

    fn current(&self) -> Program {
        self.current.clone()
    }

    /// The current program fails: cut from it.
    fn simplify(&mut self) -> bool {
        self.failing.clone_from(&self.current);
        self.cuts = Some(shorter(&self.current).into_iter());
        self.cut()
    }

    /// The current program does not fail: cut something else from the last one that did.
    fn complicate(&mut self) -> bool {
        self.cut()
    }
}

/// Gives every program that is one cut away, the deepest cuts first.
pub fn shorter(program: &Program) -> Vec<Program> {
    let mut programs = Vec::new();
    for cuts in [removals, unwrappings, simplifications] {
        for site in sites(program, |_, _| true) {
            let Some((_, step)) = edited(program, site, |steps| steps[site.index].clone()) else { continue };
            let replaced = cuts(&step).into_iter().filter_map(|steps| {
                edited(program, site, |block| drop(block.splice(site.index..=site.index, steps)))
            });
            programs.extend(replaced.map(|(program, ())| program));
        }
    }
    programs
}

/// Nothing in place of a statement.
fn removals(_: &Step) -> Vec<Vec<Step>> {
    vec![Vec::new()]
}

/// The contents of one of its blocks in place of a statement.
fn unwrappings(step: &Step) -> Vec<Vec<Step>> {
    inner(step).into_iter().map(|block| block.0.clone()).collect()
}

/// A simpler statement of the same kind.
fn simplifications(step: &Step) -> Vec<Vec<Step>> {
    let simpler = match step {
        Step::Await(operation) => simpler_operations(operation).into_iter().map(Step::Await).collect(),
        Step::Hold { slot, operation } => {
            let simpler = simpler_operations(operation).into_iter();
            simpler.map(|operation| Step::Hold { slot: *slot, operation }).collect()
        }
        Step::Retry(retry) => simpler_retries(retry),
        Step::Join(all) => fewer(all).into_iter().map(Step::Join).collect(),
        Step::Race(all) => fewer(all).into_iter().map(Step::Race).collect(),
        Step::Own(Own::Gather(all)) => {
            fewer(all).into_iter().map(|all| Step::Own(Own::Gather(all))).collect()
        }
        Step::Own(Own::Try(tried)) => simpler_tries(tried),
        Step::Own(Own::OpenSessionWith { id, serial, idle_millis }) if *serial || idle_millis.is_some() => {
            vec![Step::Own(Own::OpenSessionWith { id, serial: false, idle_millis: None })]
        }
        Step::Repeat { times, body } if *times > 1 => {
            vec![Step::Repeat { times: times - 1, body: body.clone() }]
        }
        Step::Detach { name, instance, input: Text::Answer } => {
            vec![Step::Detach { name, instance, input: PLAIN }]
        }
        Step::SetValue { key, value: Text::Answer } => vec![Step::SetValue { key, value: PLAIN }],
        Step::ContinueAsNew(Text::Answer) => vec![Step::ContinueAsNew(PLAIN)],
        Step::Status(Some(Text::Answer)) => vec![Step::Status(Some(PLAIN))],
        _ => Vec::new(),
    };
    simpler.into_iter().map(|step| vec![step]).collect()
}

/// The simplest text.
const PLAIN: Text = Text::Fixed("");

fn fewer(all: &[Block]) -> Vec<Vec<Block>> {
    (0..all.len())
        .map(|gone| {
            let mut all = all.to_vec();
            all.remove(gone);
            all
        })
        .collect()
}

fn simpler_operations(operation: &Operation) -> Vec<Operation> {
    let plain = Operation::Activity { name: "a", input: PLAIN, tag: None, session: None };
    let mut simpler = match operation {
        Operation::Activity { name, input, tag, session } => vec![
            Operation::Activity { name, input: *input, tag: None, session: None },
            Operation::Activity { name, input: PLAIN, tag: *tag, session: *session },
            plain,
        ],
        Operation::Child { name, input, id } => vec![
            plain,
            Operation::Child { name, input: *input, id: None },
            Operation::Child { name, input: PLAIN, id: *id },
        ],
        Operation::Timer { .. } | Operation::Wait(_) | Operation::Dequeue(_) | Operation::ValueOf { .. } => {
            vec![plain]
        }
    };
    simpler.retain(|simpler| simpler != operation);
    simpler
}

fn simpler_tries(tried: &Try) -> Vec<Step> {
    let activity = Operation::Activity { name: tried.name, input: tried.input, tag: None, session: None };
    let mut simpler = vec![
        Try { timeout_millis: None, ..tried.clone() },
        Try { total_millis: None, ..tried.clone() },
        Try { pause_millis: 0, ..tried.clone() },
        Try { tries: 1, ..tried.clone() },
        Try { input: PLAIN, session: None, ..tried.clone() },
    ];
    simpler.retain(|simpler| simpler != tried);
    let simpler = simpler.into_iter().map(|tried| Step::Own(Own::Try(tried)));
    std::iter::once(Step::Await(activity)).chain(simpler).collect()
}

fn simpler_retries(retry: &Retry) -> Vec<Step> {
    let activity =
        Operation::Activity { name: retry.name, input: retry.input, tag: None, session: retry.session };
    let mut simpler = vec![
        Retry { timeout_millis: None, ..retry.clone() },
        Retry { pause_millis: 0, ..retry.clone() },
        Retry { attempts: 1, ..retry.clone() },
        Retry { input: PLAIN, session: None, ..retry.clone() },
    ];
    simpler.retain(|simpler| simpler != retry);
    std::iter::once(Step::Await(activity)).chain(simpler.into_iter().map(Step::Retry)).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::generate::{Palette, program, runner},
        *,
    };

    #[test]
    fn a_failing_program_shrinks_to_the_statement_that_fails() -> Result<(), proptest::test_runner::Reason> {
        let programs = program(Palette::FULL);
        let mut runner = runner(3);
        let fails = |program: &Program| format!("{program:?}").contains("panic");
        for _ in 0..200 {
            let mut tree = programs.new_tree(&mut runner)?;
            let fails_at_first = fails(&tree.current());
            while if fails(&tree.current()) { tree.simplify() } else { tree.complicate() } {}
            // The tree rests on the last program that failed.
            assert!(!fails_at_first || tree.current().body.0 == [Step::Panic]);
        }
        Ok(())
    }

    #[test]
    fn every_cut_makes_another_program() -> Result<(), proptest::test_runner::Reason> {
        let program = program(Palette::FULL).new_tree(&mut runner(8))?.current();
        assert!(shorter(&program).iter().all(|shorter| *shorter != program));
        Ok(())
    }
}
