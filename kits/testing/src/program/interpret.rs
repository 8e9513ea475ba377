//! From a program to async code on an orchestration context.
//!
//! This file is compiled against our library and against the published crate: it names both as `api`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{
    channel::oneshot,
    future::{BoxFuture, select_all},
};

use super::{
    api::{BackoffStrategy, DurableFuture, Either2, Either3, OrchestrationContext, RetryPolicy},
    ast::{Block, LAST_EXECUTION, Name, Operation, Program, Retry, Slot, Step, Text},
    journal::{Call, Journal},
    own,
};

/// How much of the answer flows into an input, so that texts stay short.
const FLOWING_CHARS: usize = 12;

/// Runs a program once, as the handler of an orchestration does. Its input is the first answer.
///
/// # Errors
///
/// Gives the program's own failure.
///
/// # Panics
///
/// Panics where the program says so.
pub async fn run(
    ctx: OrchestrationContext,
    input: String,
    program: Arc<Program>,
    journal: Journal,
) -> Result<String, String> {
    let mut scope = Scope { ctx, journal, answer: input, slots: BTreeMap::new(), opened: None };
    match scope.block(&program.body).await {
        Flow::Next => Ok(scope.answer),
        Flow::End(result) => result,
    }
}

/// What follows a statement.
pub(super) enum Flow {
    /// The next one.
    Next,
    /// The end of the branch.
    End(Result<String, String>),
}

/// What a block knows while it runs. Its methods that await take `&mut self`: durable futures are `Send` and
/// not `Sync`, and a reference to them that lives across an await has to be `Send` too.
pub(super) struct Scope {
    pub(super) ctx: OrchestrationContext,
    pub(super) journal: Journal,
    pub(super) answer: String,
    /// The id of the session that `open_session` made.
    pub(super) opened: Option<String>,
    slots: BTreeMap<Slot, DurableFuture<String>>,
}

impl Scope {
    pub(super) fn block<'a>(&'a mut self, block: &'a Block) -> BoxFuture<'a, Flow> {
        Box::pin(async move {
            for step in &block.0 {
                if let Flow::End(result) = self.step(step).await {
                    return Flow::End(result);
                }
            }
            Flow::Next
        })
    }

    /// Prepares a branch: it starts with this answer, keeps its own slots, and ends with an answer.
    pub(super) fn branch<'a>(&self, block: &'a Block) -> BoxFuture<'a, String> {
        let scope = self.fork();
        Box::pin(scope.finish(block))
    }

    fn fork(&self) -> Self {
        Self {
            ctx: self.ctx.clone(),
            journal: self.journal.clone(),
            answer: self.answer.clone(),
            slots: BTreeMap::new(),
            opened: self.opened.clone(),
        }
    }

    async fn finish(mut self, block: &Block) -> String {
        match self.block(block).await {
            Flow::Next => self.answer,
            Flow::End(result) => told(result),
        }
    }

    async fn step(&mut self, step: &Step) -> Flow {
        match step {
            Step::Await(operation) => self.answer = self.start(operation).await,
            Step::Retry(retry) => self.answer = self.retry(retry).await,
            Step::Guid => self.answer = self.guid().await,
            Step::Hold { slot, operation } => self.hold(*slot, operation),
            Step::Resume(slot) => self.resume(*slot).await,
            Step::Drop(slot) => drop(self.slots.remove(slot)),
            Step::ResumeAll => self.resume_all().await,
            Step::RaceSlots(first, second) => self.race_slots(*first, *second).await,
            Step::RaceHeld { slot, against } => self.race_held(*slot, against).await,
            Step::Detach { name, instance, input } => self.detach(name, instance, *input),
            Step::SetValue { key, value } => self.set_value(key, *value),
            Step::ClearValue(key) => self.clear_value(key),
            Step::ClearValues => self.clear_values(),
            Step::Status(status) => self.status(*status),
            Step::IfValue { key, then, otherwise } => return self.if_value(key, then, otherwise).await,
            Step::IfOdd { then, otherwise } => return self.if_odd(then, otherwise).await,
            Step::Repeat { times, body } => return self.repeat(*times, body).await,
            Step::Join(branches) => self.answer = self.join(branches).await,
            Step::Race(branches) => self.race(branches).await,
            Step::Channel { sender, receiver, receiver_first } => {
                self.answer = self.channel(sender, receiver, *receiver_first).await;
            }
            Step::ContinueAsNew(input) => return self.continue_as_new(*input).await,
            Step::Return => return Flow::End(Ok(self.answer.clone())),
            Step::Fail => return Flow::End(Err(format!("failed after {}", self.flowing()))),
            // Unlike `panic!`, this does not print a message for a panic that is part of the program.
            Step::Panic => std::panic::resume_unwind(Box::new("the program panics".to_owned())),
            Step::Own(own) => return own::run(self, own).await,
        }
        Flow::Next
    }

    pub(super) fn text(&self, text: Text) -> String {
        match text {
            Text::Fixed(text) => text.to_owned(),
            Text::Answer => self.flowing(),
        }
    }

    fn flowing(&self) -> String {
        self.answer.chars().take(FLOWING_CHARS).collect()
    }
}

/// Operations: one durable future each.
impl Scope {
    fn start(&self, operation: &Operation) -> DurableFuture<String> {
        match operation {
            Operation::Activity { name, input, tag, session } => {
                self.activity(name, self.text(*input), *tag, *session)
            }
            Operation::Timer { millis } => self.timer(*millis),
            Operation::Wait(name) => {
                self.journal.note(Call::Wait { name: (*name).to_owned() });
                self.ctx.schedule_wait(*name)
            }
            Operation::Dequeue(name) => {
                self.journal.note(Call::Dequeue { name: (*name).to_owned() });
                self.ctx.dequeue_event(*name)
            }
            Operation::Child { name, input, id } => self.child(name, self.text(*input), *id),
            Operation::ValueOf { instance, key } => self.value_of(instance, key),
        }
    }

    fn activity(
        &self,
        name: Name,
        input: String,
        tag: Option<Name>,
        session: Option<Name>,
    ) -> DurableFuture<String> {
        self.journal.note(Call::Activity {
            name: name.to_owned(),
            input: input.clone(),
            session: session.map(str::to_owned),
            tag: tag.map(str::to_owned),
        });
        let future = match session {
            Some(session) => self.ctx.schedule_activity_on_session(name, input, session),
            None => self.ctx.schedule_activity(name, input),
        };
        match tag {
            Some(tag) => future.with_tag(tag).map(told),
            None => future.map(told),
        }
    }

    fn timer(&self, millis: u64) -> DurableFuture<String> {
        self.journal.note(Call::Timer);
        self.ctx.schedule_timer(Duration::from_millis(millis)).map(|()| "tick".to_owned())
    }

    fn child(&self, name: Name, input: String, id: Option<Name>) -> DurableFuture<String> {
        // A reserved id is refused at once and never becomes an action.
        if id.is_none_or(|id| !id.starts_with("sub::")) {
            self.journal.note(Call::Child { name: name.to_owned(), input: input.clone() });
        }
        let future = match id {
            Some(id) => self.ctx.schedule_sub_orchestration_with_id(name, id, input),
            None => self.ctx.schedule_sub_orchestration(name, input),
        };
        // The wording of the refusal is each library's own and must not flow into later inputs.
        future.map(|result| match result {
            Err(error) if error.contains("reserved marker") => "!reserved".to_owned(),
            other => told(other),
        })
    }

    fn value_of(&self, instance: Name, key: Name) -> DurableFuture<String> {
        self.journal.note(Call::Activity {
            name: "__duroxide_syscall:get_kv_value".to_owned(),
            input: format!(r#"{{"instance_id":"{instance}","key":"{key}"}}"#),
            session: None,
            tag: None,
        });
        self.ctx.get_kv_value_from_instance(instance, key).map(|result| match result {
            Ok(value) => value.unwrap_or_else(|| "-".to_owned()),
            Err(_) => "!unreadable".to_owned(),
        })
    }

    async fn guid(&mut self) -> String {
        self.journal.note(Call::Activity {
            name: "__duroxide_syscall:new_guid".to_owned(),
            input: String::new(),
            session: None,
            tag: None,
        });
        told(self.ctx.new_guid().await)
    }

    async fn retry(&mut self, retry: &Retry) -> String {
        let backoff = match retry.pause_millis {
            0 => BackoffStrategy::None,
            millis => BackoffStrategy::Fixed { delay: Duration::from_millis(millis) },
        };
        let mut policy = RetryPolicy::new(u32::from(retry.attempts.max(1))).with_backoff(backoff);
        if let Some(millis) = retry.timeout_millis {
            policy = policy.with_timeout(Duration::from_millis(millis));
        }
        let (name, input) = (retry.name, self.text(retry.input));
        told(match retry.session {
            Some(session) => {
                self.ctx.schedule_activity_with_retry_on_session(name, input, policy, session).await
            }
            None => self.ctx.schedule_activity_with_retry(name, input, policy).await,
        })
    }
}

/// Futures that are created in one place and awaited, raced or dropped in another.
impl Scope {
    fn hold(&mut self, slot: Slot, operation: &Operation) {
        let future = self.start(operation);
        drop(self.slots.insert(slot, future));
    }

    async fn resume(&mut self, slot: Slot) {
        if let Some(future) = self.slots.remove(&slot) {
            self.answer = future.await;
        }
    }

    async fn resume_all(&mut self) {
        let held: Vec<_> = std::mem::take(&mut self.slots).into_values().collect();
        if !held.is_empty() {
            self.answer = self.ctx.join(held).await.join(",");
        }
    }

    async fn race_slots(&mut self, first: Slot, second: Slot) {
        let (one, two) = (self.slots.remove(&first), self.slots.remove(&second));
        let (mut one, mut two) = match (one, two) {
            (Some(one), Some(two)) => (one, two),
            (Some(only), None) | (None, Some(only)) => {
                self.answer = only.await;
                return;
            }
            (None, None) => return,
        };
        let winner = self.ctx.select2(&mut one, &mut two).await;
        let (slot, loser) = if winner.is_first() { (second, two) } else { (first, one) };
        self.slots.insert(slot, loser);
        let (index, answer) = winner.into_tuple();
        self.answer = format!("{index}:{answer}");
    }

    async fn race_held(&mut self, slot: Slot, against: &Block) {
        let branch = self.branch(against);
        let Some(mut held) = self.slots.remove(&slot) else {
            self.answer = branch.await;
            return;
        };
        let winner = self.ctx.select2(&mut held, branch).await;
        self.answer = match winner {
            Either2::First(answer) => answer,
            Either2::Second(answer) => {
                self.slots.insert(slot, held);
                answer
            }
        };
    }
}

/// Calls that answer at once.
impl Scope {
    fn detach(&self, name: Name, instance: Name, input: Text) {
        let input = self.text(input);
        self.journal.note(Call::Detach {
            name: name.to_owned(),
            instance: instance.to_owned(),
            input: input.clone(),
        });
        self.ctx.schedule_orchestration(name, instance, input);
    }

    fn set_value(&self, key: Name, value: Text) {
        let value = self.text(value);
        self.journal.note(Call::SetValue { key: key.to_owned(), value: value.clone() });
        self.ctx.set_kv_value(key, value);
    }

    fn clear_value(&self, key: Name) {
        self.journal.note(Call::ClearValue { key: key.to_owned() });
        self.ctx.clear_kv_value(key);
    }

    fn clear_values(&self) {
        self.journal.note(Call::ClearValues);
        self.ctx.clear_all_kv_values();
    }

    fn status(&self, status: Option<Text>) {
        self.journal.note(Call::Status);
        match status {
            Some(status) => self.ctx.set_custom_status(self.text(status)),
            None => self.ctx.reset_custom_status(),
        }
    }

    async fn continue_as_new(&mut self, input: Text) -> Flow {
        if self.ctx.execution_id() >= LAST_EXECUTION {
            return Flow::End(Ok(self.answer.clone()));
        }
        let input = self.text(input);
        self.journal.note(Call::ContinueAsNew { input: input.clone() });
        Flow::End(self.ctx.continue_as_new(input).await)
    }
}

/// Choices, repetition and concurrency.
impl Scope {
    async fn if_value(&mut self, key: Name, then: &Block, otherwise: &Block) -> Flow {
        match self.ctx.get_kv_value(key) {
            Some(value) => {
                self.answer = value;
                self.block(then).await
            }
            None => self.block(otherwise).await,
        }
    }

    async fn if_odd(&mut self, then: &Block, otherwise: &Block) -> Flow {
        if self.answer.len() % 2 == 1 { self.block(then).await } else { self.block(otherwise).await }
    }

    async fn repeat(&mut self, times: u8, body: &Block) -> Flow {
        for _ in 0..times {
            if let Flow::End(result) = self.block(body).await {
                return Flow::End(result);
            }
        }
        Flow::Next
    }

    async fn join(&mut self, branches: &[Block]) -> String {
        match branches {
            [one, two] => {
                let (one, two) = self.ctx.join2(self.branch(one), self.branch(two)).await;
                format!("{one},{two}")
            }
            [one, two, three] => {
                let branches = (self.branch(one), self.branch(two), self.branch(three));
                let (one, two, three) = self.ctx.join3(branches.0, branches.1, branches.2).await;
                format!("{one},{two},{three}")
            }
            all => {
                let all = all.iter().map(|block| self.branch(block)).collect();
                self.ctx.join(all).await.join(",")
            }
        }
    }

    async fn race(&mut self, branches: &[Block]) {
        let (index, answer) = match branches {
            [] => return,
            [one, two] => self.ctx.select2(self.branch(one), self.branch(two)).await.into_tuple(),
            [one, two, three] => {
                let branches = (self.branch(one), self.branch(two), self.branch(three));
                match self.ctx.select3(branches.0, branches.1, branches.2).await {
                    Either3::First(answer) => (0, answer),
                    Either3::Second(answer) => (1, answer),
                    Either3::Third(answer) => (2, answer),
                }
            }
            all => {
                let (answer, index, losers) = select_all(all.iter().map(|block| self.branch(block))).await;
                drop(losers);
                (index, answer)
            }
        };
        self.answer = format!("{index}:{answer}");
    }

    async fn channel(&mut self, sender: &Block, receiver: &Block, receiver_first: bool) -> String {
        let (send, receive) = oneshot::channel();
        let sending = self.branch(sender);
        let sending = async move {
            let answer = sending.await;
            // The receiver may be gone: then nobody is interested in the text.
            send.send(answer.clone()).err().unwrap_or(answer)
        };
        let mut scope = self.fork();
        let receiving = async move {
            scope.answer = receive.await.unwrap_or_else(|_| "!closed".to_owned());
            scope.finish(receiver).await
        };
        let (one, two) = if receiver_first {
            self.ctx.join2(receiving, sending).await
        } else {
            let (sent, received) = self.ctx.join2(sending, receiving).await;
            (received, sent)
        };
        format!("{one},{two}")
    }
}

/// The answer that a result gives.
pub(super) fn told(result: Result<String, String>) -> String {
    result.unwrap_or_else(|error| format!("!{error}"))
}
