//! What happened in a world, noted beside the engine: the runs of activities, and what clients were told.

use std::{
    fmt::{self, Display, Formatter},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast::ActivityContext;

use crate::time::WorldTime;

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
    pub what: Fact,
}

/// The kinds of things that are noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
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
    /// An activity began to run.
    Began(Run),
    /// An activity ended with an outcome.
    Ended(Run, Result<String, String>),
    /// A client was told that a call succeeded.
    Told(Told),
}

/// One run of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Counts the runs of the world.
    pub number: usize,
    /// The life of a process: its name and how often it was started before.
    pub process: String,
    /// The instance that scheduled it.
    pub instance: String,
    /// The execution of that instance.
    pub execution: u64,
    /// The event that scheduled it.
    pub id: u64,
    /// The activity.
    pub name: String,
    /// The delivery that the code was told.
    pub attempt: u32,
    /// The session with its epoch.
    pub session: Option<(String, u64)>,
}

/// A call of a client that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The instance was started.
    Started(String),
    /// An event was raised for an instance, with this name and data.
    Raised(String, String, String),
    /// A message was put into a queue of an instance, with this name and data.
    Enqueued(String, String, String),
    /// The instance was asked to cancel.
    Cancelled(String),
    /// The instance was terminated.
    Terminated(String),
    /// The instance was deleted.
    Deleted(String),
}

impl Journal {
    /// Begins an empty journal.
    pub fn new(time: &WorldTime) -> Self {
        Self { time: time.clone(), notes: Arc::default() }
    }

    /// Adds a note.
    pub fn note(&self, what: Fact) {
        let at = self.time.now();
        self.lock().push(Note { at, what });
    }

    /// Notes that an activity begins in a process, and returns the run.
    pub fn begin(&self, process: &str, ctx: &ActivityContext) -> Run {
        let at = self.time.now();
        let mut notes = self.lock();
        let run = Run {
            number: notes.len(),
            process: process.to_owned(),
            instance: ctx.instance_id().to_owned(),
            execution: ctx.execution_id(),
            id: ctx.activity_id(),
            name: ctx.activity_name().to_owned(),
            attempt: ctx.attempt(),
            session: ctx.session().map(|session| (format!("{:?}", session.key()), session.epoch())),
        };
        notes.push(Note { at, what: Fact::Began(run.clone()) });
        run
    }

    /// Returns the notes so far.
    pub fn notes(&self) -> Vec<Note> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// Returns the key of the activity, which all of its runs share.
    pub fn key(&self) -> (&str, u64, u64) {
        (&self.instance, self.execution, self.id)
    }
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { process, instance, execution, id, name, attempt, session, .. } = self;
        write!(f, "{name} of {instance}/{execution} #{id} in {process}, delivery {attempt}")?;
        session.iter().try_for_each(|(key, epoch)| write!(f, ", session {key} epoch {epoch}"))
    }
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} ", self.at.as_secs_f64())?;
        match &self.what {
            Fact::World(text) => write!(f, "** {text}"),
            Fact::Call { process, method, answer } => write!(f, "{process}: {method} -> {answer}"),
            Fact::Began(run) => write!(f, "begins {run}"),
            Fact::Ended(run, outcome) => write!(f, "ends {run}: {outcome:?}"),
            Fact::Told(told) => write!(f, "client is told {told:?}"),
        }
    }
}
