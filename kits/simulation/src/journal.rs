//! What happened in a world, noted beside the engine: what the world did, the calls of the store, and the
//! evidence that the auditor looks at.

use std::{
    fmt::{self, Display, Formatter},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast_audit::{Entry, Evidence, Fault, FaultKind, Life, Run, SessionRun};

use crate::{engine::ActivityContext, time::WorldTime};

/// The notes of one world, in the order of its time. Clones share them.
#[derive(Clone, Debug)]
pub struct Journal {
    time: WorldTime,
    notes: Arc<Mutex<Vec<Note>>>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The moment, in true time.
    pub at: Duration,
    /// What happened.
    pub what: Noted,
}

/// The kinds of things that are noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The world did something: it began a fault, ended one, or started a process.
    World(String),
    /// A process called the store, and what came of it.
    Call {
        /// The process.
        process: String,
        /// The method.
        method: &'static str,
        /// `ok`, or the kind of the error.
        answer: String,
    },
    /// Something that the auditor looks at.
    Fact(steadfast_audit::Fact),
}

impl Journal {
    /// Begins an empty journal.
    pub fn new(time: &WorldTime) -> Self {
        Self { time: time.clone(), notes: Arc::default() }
    }

    /// Adds a note.
    pub fn note(&self, what: Noted) {
        let at = self.time.now();
        self.lock().push(Note { at, what });
    }

    /// Notes a fact.
    pub fn fact(&self, fact: steadfast_audit::Fact) {
        self.note(Noted::Fact(fact));
    }

    /// Notes a fault.
    pub fn fault(&self, kind: FaultKind, process: Option<&str>, lasts: Duration) {
        let lasts_us = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
        let process = process.map(str::to_owned);
        self.fact(steadfast_audit::Fact::Fault(Fault { kind, process, lasts_us }));
    }

    /// Notes that a process began or ended its life.
    pub fn life(&self, process: &str, life: Life) {
        self.fact(steadfast_audit::Fact::Process(process.to_owned(), life));
    }

    /// Notes that an activity begins in a process, and returns the run.
    pub async fn begin(&self, process: &str, ctx: &ActivityContext) -> Run {
        let session = match ctx.session() {
            Some(session) => {
                let (epoch, is_first) = (session.epoch(), session.is_first_turn());
                let state = session.state_or_init(async move { Ok::<u64, String>(epoch) }).await;
                Some(SessionRun {
                    owner: session.key().instance.clone(),
                    id: session.key().session_id.clone(),
                    epoch,
                    is_first,
                    state_epoch: state.ok().map(|epoch| *epoch),
                })
            }
            None => None,
        };
        let at = self.time.now();
        let mut notes = self.lock();
        let run = Run {
            number: notes.len() as u64,
            process: process.to_owned(),
            instance: ctx.instance_id().to_owned(),
            execution: ctx.execution_id(),
            id: ctx.activity_id(),
            name: ctx.activity_name().to_owned(),
            attempt: ctx.counted_deliveries(),
            tried: ctx.attempt(),
            call_key: ctx.idempotency_key(),
            session,
        };
        notes.push(Note { at, what: Noted::Fact(steadfast_audit::Fact::Began(run.clone())) });
        run
    }

    /// Returns the notes so far.
    pub fn notes(&self) -> Vec<Note> {
        self.lock().clone()
    }

    /// Returns what the auditor looks at.
    pub fn evidence(&self) -> Evidence {
        let notes = self.lock();
        let entries = notes.iter().filter_map(|note| match &note.what {
            Noted::Fact(fact) => {
                let at_us = u64::try_from(note.at.as_micros()).unwrap_or(u64::MAX);
                Some(Entry { at_us, fact: fact.clone() })
            }
            Noted::World(_) | Noted::Call { .. } => None,
        });
        Evidence::of(entries.collect())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} ", self.at.as_secs_f64())?;
        match &self.what {
            Noted::World(text) => write!(f, "** {text}"),
            Noted::Call { process, method, answer } => write!(f, "{process}: {method} -> {answer}"),
            Noted::Fact(steadfast_audit::Fact::Began(run)) => write!(f, "begins {run}"),
            Noted::Fact(fact) => write!(f, "{fact:?}"),
        }
    }
}
