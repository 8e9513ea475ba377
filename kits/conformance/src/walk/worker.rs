//! Workers of a walk: what they report, and how they refuse and excuse what they were given.

use std::fmt;
use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::{
    LeaseToken, ListedHandler, NeededHandler, Refusal, Store, WorkerId, WorkerProcess, WorkerReport,
    WorkerSlots,
};

use super::answer::{done, plain};
use super::side::{Side, abandon, no_turn, no_work, token_of};
use super::step::Held;

/// Something that a worker does beside leasing and finishing.
#[derive(Debug, Clone)]
pub(crate) enum Duty {
    Report { worker: &'static str, lists: Listed, takes_unlisted: bool, is_stopped: bool },
    Refuse { lease: Leased, handler: Listed, delay: Option<Duration>, uncounted: bool },
    Excuse { lease: Leased },
}

/// The lease of a holder, of one of two kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Leased {
    Turn(Held),
    Work(Held),
}

/// The handlers that a worker lists or lacks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Listed {
    /// Those that the instances and activities of a walk need.
    Ours,
    /// Others.
    Others,
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report { worker, lists, takes_unlisted, is_stopped } => {
                let stopped = if *is_stopped { ", stopped" } else { "" };
                let eager = if *takes_unlisted { ", takes unlisted work" } else { "" };
                write!(f, "worker '{worker}' reports: lists {lists:?}{eager}{stopped}")
            }
            Self::Refuse { lease, handler, delay, uncounted } => {
                write!(f, "{lease} refuses for lack of {handler:?}, delay {delay:?}, uncounted {uncounted}")
            }
            Self::Excuse { lease } => write!(f, "{lease} excuses"),
        }
    }
}

impl fmt::Display for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(held) => write!(f, "{held} of a turn"),
            Self::Work(held) => write!(f, "{held} of work"),
        }
    }
}

impl Side {
    pub(super) async fn perform(&mut self, store: &dyn Store, duty: &Duty) -> String {
        match duty {
            Duty::Report { worker, lists, takes_unlisted, is_stopped } => {
                let report = report(worker, *lists, *takes_unlisted, *is_stopped);
                done(store.report_worker(&report).await)
            }
            Duty::Refuse { lease, handler, delay, uncounted } => {
                let handler = match (lease, handler) {
                    (_, Listed::Others) => NeededHandler { name: "Other".to_owned(), version: None },
                    (Leased::Turn(_), Listed::Ours) => {
                        NeededHandler { name: "Orchestration".to_owned(), version: Some("1.0.0".to_owned()) }
                    }
                    (Leased::Work(_), Listed::Ours) => {
                        NeededHandler { name: "Activity".to_owned(), version: None }
                    }
                };
                let refusal = Refusal { handler, if_unlisted: abandon(*delay, *uncounted) };
                plain(store.refuse(&self.token(*lease), refusal).await)
            }
            Duty::Excuse { lease } => plain(store.excuse(&self.token(*lease)).await),
        }
    }

    fn token(&self, lease: Leased) -> LeaseToken {
        match lease {
            Leased::Turn(held) => token_of(&self.turns, held, |lease| &lease.token).unwrap_or_else(no_turn),
            Leased::Work(held) => token_of(&self.works, held, |lease| &lease.token).unwrap_or_else(no_work),
        }
    }

    pub(super) async fn look_at_workers(&mut self) -> Vec<String> {
        vec![plain(self.store().workers(None).await)]
    }
}

fn report(id: &str, lists: Listed, takes_unlisted: bool, is_stopped: bool) -> WorkerReport {
    let listed = |name: &str, versions: &[&str]| {
        let name = match lists {
            Listed::Ours => name,
            Listed::Others => "Other",
        };
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        vec![ListedHandler { name: name.to_owned(), versions }]
    };
    WorkerReport {
        id: WorkerId(id.to_owned()),
        process: WorkerProcess::default(),
        orchestrations: listed("Orchestration", &["1.0.0"]),
        activities: listed("Activity", &[]),
        tags: TagFilter::DefaultOnly,
        serves_sessions: !takes_unlisted,
        engines: None,
        takes_unlisted,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped,
    }
}
