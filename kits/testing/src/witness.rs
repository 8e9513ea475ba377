//! What a program did while an engine ran it, seen from the program's side.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use steadfast_core::OrchestrationContext;

use crate::program::{
    Program, interpret,
    journal::{Call, Journal},
};

/// Watches one invocation of a program. Clones share what they see.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    journal: Journal,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    polls: Vec<bool>,
    output: Option<Result<String, String>>,
    panicked: bool,
}

impl Witness {
    /// Makes the handler of an orchestration that runs the program and is watched by this witness.
    pub fn handler(
        &self,
        program: &Arc<Program>,
    ) -> impl FnOnce(OrchestrationContext, String) -> HandlerFuture + Send + 'static + use<> {
        let (program, witness) = (Arc::clone(program), self.clone());
        move |ctx, input| Box::pin(witness.watch(ctx, input, program))
    }

    /// Returns the calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.journal.calls()
    }

    /// Returns, for each poll so far, what `is_replaying` said in it.
    pub fn polls(&self) -> Vec<bool> {
        self.seen().polls.clone()
    }

    /// Returns what the program returned; `None` while it has not.
    pub fn output(&self) -> Option<Result<String, String>> {
        self.seen().output.clone()
    }

    /// Tells whether the program panicked.
    pub fn panicked(&self) -> bool {
        self.seen().panicked
    }

    async fn watch(
        self,
        ctx: OrchestrationContext,
        input: String,
        program: Arc<Program>,
    ) -> Result<String, String> {
        let mut run = pin!(interpret::run(ctx.clone(), input, program, self.journal.clone()));
        poll_fn(|cx| {
            self.seen().polls.push(ctx.is_replaying());
            match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
                Ok(polled) => {
                    if let Poll::Ready(output) = &polled {
                        self.seen().output = Some(output.clone());
                    }
                    polled
                }
                Err(panic) => {
                    self.seen().panicked = true;
                    resume_unwind(panic)
                }
            }
        })
        .await
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a handler returns.
pub type HandlerFuture = futures::future::BoxFuture<'static, Result<String, String>>;
