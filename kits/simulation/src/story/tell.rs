//! Stories in plain words, for the person who reads one.

use std::fmt::{self, Display, Formatter};

use steadfast_testing::program::ast::names;

use super::{Story, Tags, Trouble, Worker};

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (number, worker) in self.workers.iter().enumerate() {
            writeln!(f, "worker {number}: {worker}")?;
        }
        for (name, child) in names::CHILDREN.iter().zip(&self.children) {
            write!(f, "{name}:\n{child}")?;
        }
        for (number, instance) in self.instances.iter().enumerate() {
            write!(f, "instance {number} at {:?}:\n{}", instance.at, instance.program)?;
        }
        self.events.iter().try_for_each(|event| writeln!(f, "at {:?}: {}", event.at, event.what))
    }
}

impl Display for Worker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            ahead_ms,
            drift,
            named,
            lacks,
            changed,
            sessions,
            attached,
            turns,
            work,
            warm,
            tags,
            parks,
            older_engine,
            retains,
        } = self;
        write!(f, "{turns} turns, {work} activities, {sessions} sessions, {warm} warm")?;
        if *named {
            write!(f, ", named")?;
        }
        if let Some(attached) = attached {
            write!(f, ", holds {attached} sessions")?;
        }
        if *ahead_ms != 0 || *drift != 0 {
            write!(f, ", wall time ahead by {ahead_ms} ms, drift {drift} ppm")?;
        }
        if *tags != Tags::Any {
            write!(f, ", takes {tags:?} activities")?;
        }
        if *parks {
            write!(f, ", parks")?;
        }
        if *older_engine {
            write!(f, ", runs older engines only")?;
        }
        if let Some(retains) = retains {
            write!(f, ", keeps what has ended for {retains:?}")?;
        }
        if !lacks.is_empty() {
            write!(f, ", lacks {}", lacks.join(" "))?;
        }
        changed.iter().try_for_each(|change| write!(f, ", has other code for i{}", change.instance))
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deploy(number, worker, back) => {
                write!(f, "worker {number} becomes, after {back:?}: {worker}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}
