//! Damage to a program: one call deleted, inserted, swapped with an unlike neighbour, or changed in a field
//! that matching compares.
//!
//! Whether the damage shows depends on whether the spoiled place is reached: the journal of a replay tells.

use super::super::{
    ast::{Name, Operation, Own, Program, Retry, SessionName, Step, Text, Try},
    dice::Dice,
    walk::{Site, edited, sites},
};

/// A name that no generated program uses.
const INTRUDER: Name = "intruder";
/// A slot that no generated program uses.
const INTRUDERS_SLOT: u8 = 200;

/// A program with one thing changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// What was changed, in words.
    pub what: String,
    /// The changed program.
    pub program: Program,
}

/// Changes one thing at random; `None` if the program makes no call.
pub fn mutate(program: &Program, dice: &mut Dice) -> Option<Mutation> {
    match dice.below(4) {
        0 => delete(program, dice),
        1 => insert(program, dice),
        2 => swap(program, dice).or_else(|| insert(program, dice)),
        _ => change(program, dice),
    }
}

/// Deletes one call.
pub fn delete(program: &Program, dice: &mut Dice) -> Option<Mutation> {
    let sites = sites(program, |block, index| call_of(&block[index]).is_some());
    let site = *dice.pick(&sites)?;
    edit(program, site, |steps| {
        let gone = steps.remove(site.index);
        format!("deleted: {gone:?}")
    })
}

/// Inserts a call that is unlike every other, before one that the program makes.
pub fn insert(program: &Program, dice: &mut Dice) -> Option<Mutation> {
    let sites = sites(program, |block, index| call_of(&block[index]).is_some());
    let site = *dice.pick(&sites)?;
    let intruder = match dice.below(3) {
        0 => Step::SetValue { key: INTRUDER, value: Text::Fixed("") },
        1 => Step::Detach { name: INTRUDER, instance: INTRUDER, input: Text::Fixed("") },
        _ => Step::Hold { slot: INTRUDERS_SLOT, operation: Operation::Wait(INTRUDER) },
    };
    edit(program, site, |steps| {
        let what = format!("inserted: {intruder:?}");
        steps.insert(site.index, intruder);
        what
    })
}

/// Swaps two neighbouring calls that are unlike; `None` if there are none.
pub fn swap(program: &Program, dice: &mut Dice) -> Option<Mutation> {
    let sites = sites(program, |block, index| {
        let (one, two) = (block.get(index).and_then(call_of), block.get(index + 1).and_then(call_of));
        one.zip(two).is_some_and(|(one, two)| one.is_unlike(two))
    });
    let site = *dice.pick(&sites)?;
    edit(program, site, |steps| {
        steps.swap(site.index, site.index + 1);
        format!("swapped: {:?}and: {:?}", steps[site.index], steps[site.index + 1])
    })
}

/// Changes one compared field of one call.
pub fn change(program: &Program, dice: &mut Dice) -> Option<Mutation> {
    let sites = sites(program, |block, index| has_compared_field(&block[index]));
    let site = *dice.pick(&sites)?;
    let field = dice.below(4);
    edit(program, site, |steps| {
        let before = format!("{:?}", steps[site.index]);
        change_field(&mut steps[site.index], field);
        format!("changed: {before}to: {:?}", steps[site.index])
    })
}

/// What tells two calls apart, whatever their inputs turn out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Likeness {
    kind: &'static str,
    name: Name,
}

impl Likeness {
    fn is_unlike(self, other: Self) -> bool {
        // Neighbouring clears match in any order.
        self != other && (self.kind != "clear" || other.kind != "clear")
    }
}

/// The call that a statement makes first, if it makes one by itself.
fn call_of(step: &Step) -> Option<Likeness> {
    let (kind, name) = match step {
        Step::Await(operation) | Step::Hold { operation, .. } => return call_of_operation(operation),
        Step::Retry(Retry { name, .. }) => ("activity", *name),
        Step::Guid => ("activity", "new_guid"),
        Step::Detach { name, .. } => ("detach", *name),
        Step::SetValue { key, .. } => ("set", *key),
        Step::ClearValue(key) => ("clear", *key),
        Step::ClearValues => ("clear all", ""),
        Step::Status(_) => ("status", ""),
        Step::Own(Own::OpenSession) => ("open", ""),
        Step::Own(Own::OpenSessionWithId(id) | Own::OpenSessionWith { id, .. }) => ("open", *id),
        Step::Own(Own::AwaitMigration { .. }) => ("timer", ""),
        Step::Own(Own::CloseSession(_)) => ("close", ""),
        Step::Own(Own::OnSession { name, .. } | Own::Try(Try { name, .. })) => ("activity", *name),
        Step::Own(Own::Gather(_))
        | Step::Resume(_)
        | Step::Drop(_)
        | Step::ResumeAll
        | Step::RaceSlots(..)
        | Step::RaceHeld { .. }
        | Step::IfValue { .. }
        | Step::IfOdd { .. }
        | Step::Repeat { .. }
        | Step::Join(_)
        | Step::Race(_)
        | Step::Channel { .. }
        | Step::ContinueAsNew(_)
        | Step::Return
        | Step::Fail
        | Step::Panic => return None,
    };
    Some(Likeness { kind, name })
}

fn call_of_operation(operation: &Operation) -> Option<Likeness> {
    let (kind, name) = match operation {
        Operation::Activity { name, .. } => ("activity", *name),
        Operation::Timer { .. } => ("timer", ""),
        Operation::Wait(name) => ("wait", *name),
        Operation::Dequeue(name) => ("dequeue", *name),
        // A reserved id is refused without an action.
        Operation::Child { id: Some(id), .. } if id.starts_with("sub::") => return None,
        Operation::Child { name, .. } => ("child", *name),
        Operation::ValueOf { .. } => ("activity", "get_kv_value"),
    };
    Some(Likeness { kind, name })
}

fn has_compared_field(step: &Step) -> bool {
    let alike = [("timer", ""), ("status", ""), ("clear all", ""), ("activity", "new_guid"), ("open", "")];
    call_of(step).is_some_and(|call| !alike.contains(&(call.kind, call.name)))
}

fn change_field(step: &mut Step, field: usize) {
    let intruder = Text::Fixed(INTRUDER);
    match (step, field) {
        (Step::Await(operation) | Step::Hold { operation, .. }, field) => change_operation(operation, field),
        (Step::Retry(retry), 0) => retry.input = intruder,
        (Step::Retry(retry), 1) => retry.session = toggled(retry.session),
        (Step::Retry(retry), _) => retry.name = INTRUDER,
        (Step::Detach { input, .. }, 0) => *input = intruder,
        (Step::Detach { instance, .. }, 1) => *instance = INTRUDER,
        (Step::Detach { name, .. }, _) => *name = INTRUDER,
        (Step::SetValue { value, .. }, 0 | 1) => *value = intruder,
        (Step::SetValue { key, .. }, _) | (Step::ClearValue(key), _) => *key = INTRUDER,
        (Step::Own(Own::OpenSessionWithId(id) | Own::OpenSessionWith { id, .. }), _) => *id = INTRUDER,
        (Step::Own(Own::CloseSession(session)), _) => *session = SessionName::Id(INTRUDER),
        (Step::Own(Own::OnSession { input, .. } | Own::Try(Try { input, .. })), 0) => *input = intruder,
        (Step::Own(Own::OnSession { name, .. } | Own::Try(Try { name, .. })), _) => *name = INTRUDER,
        // Nothing else has a compared field.
        _ => {}
    }
}

fn change_operation(operation: &mut Operation, field: usize) {
    match (operation, field) {
        (Operation::Activity { input, .. } | Operation::Child { input, .. }, 0) => {
            *input = Text::Fixed(INTRUDER);
        }
        (Operation::Activity { tag, .. }, 1) => *tag = toggled(*tag),
        (Operation::Activity { session, .. }, 2) => *session = toggled(*session),
        (Operation::Activity { name, .. } | Operation::Child { name, .. }, _)
        | (Operation::Wait(name) | Operation::Dequeue(name), _) => *name = INTRUDER,
        (Operation::ValueOf { key, .. }, _) => *key = INTRUDER,
        (Operation::Timer { .. }, _) => {}
    }
}

fn toggled(field: Option<Name>) -> Option<Name> {
    if field.is_some() { None } else { Some(INTRUDER) }
}

fn edit(program: &Program, site: Site, change: impl FnOnce(&mut Vec<Step>) -> String) -> Option<Mutation> {
    edited(program, site, change).map(|(program, what)| Mutation { what, program })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::super::{ast::Block, generate},
        *,
    };

    proptest! {
        #[test]
        fn a_mutation_is_another_program(
            program in generate::program(generate::Palette::FULL), seed in any::<u64>(),
        ) {
            if let Some(mutation) = mutate(&program, &mut Dice::new(seed)) {
                prop_assert_ne!(mutation.program, program, "{}", mutation.what);
            }
        }
    }

    #[test]
    fn a_program_without_calls_cannot_be_spoiled() {
        let program = Program { body: Block(vec![Step::Resume(0), Step::Return]) };
        assert!((0..20).all(|seed| mutate(&program, &mut Dice::new(seed)).is_none()));
    }
}
