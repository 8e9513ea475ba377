//! Programs as short stories, for the person who reads a shrunk failure.

use std::fmt::{self, Debug, Display, Formatter};

use super::ast::{Block, Operation, Own, Program, Retry, SessionName, Step, Text, Try};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.body.tell(f, 0)
    }
}

/// The story on lines of its own, as property tests print it.
impl Debug for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "program:")?;
        self.body.tell(f, 1)
    }
}

impl Debug for Block {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tell(f, 0)
    }
}

impl Debug for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tell(f, 0)
    }
}

impl Block {
    fn tell(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        if self.0.is_empty() {
            return line(f, depth, "nothing");
        }
        self.0.iter().try_for_each(|step| step.tell(f, depth))
    }
}

impl Step {
    fn tell(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::Await(operation) => line(f, depth, format_args!("await {operation}")),
            Self::Retry(retry) => line(f, depth, retry),
            Self::Guid => line(f, depth, "await a new guid"),
            Self::Hold { slot, operation } => line(f, depth, format_args!("hold #{slot} = {operation}")),
            Self::Resume(slot) => line(f, depth, format_args!("await #{slot}")),
            Self::Drop(slot) => line(f, depth, format_args!("drop #{slot}")),
            Self::ResumeAll => line(f, depth, "await all that is held"),
            Self::RaceSlots(one, two) => {
                line(f, depth, format_args!("race #{one} and #{two}, the loser is kept"))
            }
            Self::RaceHeld { slot, against } => {
                line(f, depth, format_args!("race #{slot}, kept if it loses, against:"))?;
                against.tell(f, depth + 1)
            }
            Self::Detach { name, instance, input } => {
                line(f, depth, format_args!("start {name}({input}) as {instance} and leave it"))
            }
            Self::SetValue { key, value } => line(f, depth, format_args!("set {key} = {value}")),
            Self::ClearValue(key) => line(f, depth, format_args!("clear {key}")),
            Self::ClearValues => line(f, depth, "clear all values"),
            Self::Status(Some(status)) => line(f, depth, format_args!("status {status}")),
            Self::Status(None) => line(f, depth, "reset the status"),
            Self::IfValue { key, then, otherwise } => {
                choice(f, depth, format_args!("if {key} has a value:"), then, otherwise)
            }
            Self::IfOdd { then, otherwise } => {
                choice(f, depth, format_args!("if the answer is odd:"), then, otherwise)
            }
            Self::Repeat { times, body } => {
                line(f, depth, format_args!("{times} times:"))?;
                body.tell(f, depth + 1)
            }
            Self::Join(all) => branches(f, depth, "join:", all),
            Self::Race(all) => branches(f, depth, "race:", all),
            Self::Channel { sender, receiver, receiver_first } => {
                let order = if *receiver_first { "receiver first" } else { "sender first" };
                line(f, depth, format_args!("join over a channel, {order}; it sends after:"))?;
                sender.tell(f, depth + 1)?;
                line(f, depth, "and it receives before:")?;
                receiver.tell(f, depth + 1)
            }
            Self::ContinueAsNew(input) => line(f, depth, format_args!("continue as new with {input}")),
            Self::Return => line(f, depth, "return"),
            Self::Fail => line(f, depth, "fail"),
            Self::Panic => line(f, depth, "panic"),
            Self::Own(own) => own.tell(f, depth),
        }
    }
}

impl Own {
    fn tell(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::OpenSession => line(f, depth, "open a session"),
            Self::OpenSessionWithId(id) => line(f, depth, format_args!("open session {id}")),
            Self::OpenSessionWith { id, serial, idle_millis } => {
                let kind = if *serial { "serial session" } else { "session" };
                match idle_millis {
                    Some(millis) => line(f, depth, format_args!("open {kind} {id}, idle after {millis} ms")),
                    None => line(f, depth, format_args!("open {kind} {id}")),
                }
            }
            Self::CloseSession(session) => line(f, depth, format_args!("close {session}")),
            Self::AwaitMigration { session, millis } => {
                line(f, depth, format_args!("await a move of {session}, at most {millis} ms"))
            }
            Self::OnSession { name, input, session } => {
                line(f, depth, format_args!("await activity {name}({input}) on {session}"))
            }
            Self::Try(tried) => line(f, depth, tried),
            Self::Gather(all) => branches(f, depth, "gather:", all),
        }
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Activity { name, input, tag, session } => {
                write!(f, "activity {name}({input})")?;
                tag.iter().try_for_each(|tag| write!(f, " tagged {tag}"))?;
                session.iter().try_for_each(|session| write!(f, " on session {session}"))
            }
            Self::Timer { millis } => write!(f, "timer of {millis} ms"),
            Self::Wait(name) => write!(f, "event {name}"),
            Self::Dequeue(name) => write!(f, "message of queue {name}"),
            Self::Child { name, input, id } => {
                write!(f, "child {name}({input})")?;
                id.iter().try_for_each(|id| write!(f, " as {id}"))
            }
            Self::ValueOf { instance, key } => write!(f, "value {key} of {instance}"),
        }
    }
}

impl Debug for Operation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for Retry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, input, attempts, pause_millis, timeout_millis, session } = self;
        write!(f, "await activity {name}({input}), up to {attempts} times, {pause_millis} ms apart")?;
        timeout_millis.iter().try_for_each(|millis| write!(f, ", each at most {millis} ms"))?;
        session.iter().try_for_each(|session| write!(f, ", on session {session}"))
    }
}

impl Debug for Retry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for Try {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, input, tries, pause_millis, timeout_millis, total_millis, session } = self;
        write!(f, "await activity {name}({input}), {tries} tries by policy, {pause_millis} ms apart")?;
        timeout_millis.iter().try_for_each(|millis| write!(f, ", each at most {millis} ms"))?;
        total_millis.iter().try_for_each(|millis| write!(f, ", all of them within {millis} ms"))?;
        session.iter().try_for_each(|session| write!(f, ", on {session}"))
    }
}

impl Debug for Try {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(text) => write!(f, "{text:?}"),
            Self::Answer => f.write_str("answer"),
        }
    }
}

impl Debug for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for SessionName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "session {id}"),
            Self::Opened => f.write_str("the opened session"),
        }
    }
}

impl Debug for Own {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tell(f, 0)
    }
}

impl Debug for SessionName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

fn line(f: &mut Formatter<'_>, depth: usize, text: impl Display) -> fmt::Result {
    writeln!(f, "{:width$}{text}", "", width = depth * 4)
}

fn choice(
    f: &mut Formatter<'_>,
    depth: usize,
    question: fmt::Arguments<'_>,
    then: &Block,
    otherwise: &Block,
) -> fmt::Result {
    line(f, depth, question)?;
    then.tell(f, depth + 1)?;
    if otherwise.0.is_empty() {
        return Ok(());
    }
    line(f, depth, "otherwise:")?;
    otherwise.tell(f, depth + 1)
}

fn branches(f: &mut Formatter<'_>, depth: usize, title: &str, all: &[Block]) -> fmt::Result {
    line(f, depth, title)?;
    for (index, branch) in all.iter().enumerate() {
        line(f, depth + 1, format_args!("branch {index}:"))?;
        branch.tell(f, depth + 2)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_like_a_story() {
        let dequeue = |name| Block(vec![Step::Await(Operation::Dequeue(name))]);
        let activity =
            Operation::Activity { name: "a", input: Text::Answer, tag: Some("gpu"), session: None };
        let program = Program {
            body: Block(vec![
                Step::Hold { slot: 0, operation: activity },
                Step::Race(vec![dequeue("q"), dequeue("r")]),
                Step::IfOdd { then: Block(vec![Step::Resume(0)]), otherwise: Block::default() },
                Step::Return,
            ]),
        };
        let story = "\
hold #0 = activity a(answer) tagged gpu
race:
    branch 0:
        await message of queue q
    branch 1:
        await message of queue r
if the answer is odd:
    await #0
return
";
        assert_eq!(program.to_string(), story);
    }
}
