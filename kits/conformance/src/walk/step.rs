//! The steps of a walk, and how a story tells them.

use std::fmt;
use std::time::Duration;

use steadfast_core::TagFilter;

use super::worker::Duty;

/// Something that is done to a store. Names are from small sets, so that steps meet each other.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Advance(Duration),
    Start {
        instance: &'static str,
        also: bool,
    },
    Send {
        instance: &'static str,
        note: Note,
        delay: Option<Duration>,
    },
    FetchTurn {
        holder: usize,
        lease: Duration,
        warm: Warmth,
        worker: Option<&'static str>,
    },
    CommitTurn {
        lease: Held,
        deeds: Vec<Deed>,
    },
    RenewTurn {
        lease: Held,
        time: Duration,
    },
    AbandonTurn {
        lease: Held,
        delay: Option<Duration>,
        uncounted: bool,
    },
    Enqueue {
        instance: &'static str,
        session: Option<&'static str>,
        tag: Option<&'static str>,
    },
    FetchWork {
        holder: usize,
        lease: Duration,
        tags: TagFilter,
        session: Option<Ask>,
        worker: Option<&'static str>,
    },
    FinishWork {
        lease: Held,
        outcome: Finish,
    },
    RenewWork {
        lease: Held,
        time: Duration,
    },
    AbandonWork {
        lease: Held,
        delay: Option<Duration>,
        uncounted: bool,
    },
    EndTry {
        lease: Held,
        delay: Duration,
    },
    Register {
        node: &'static str,
    },
    RenewSessions {
        owner: Who,
        time: Duration,
        idle: Duration,
        patience: Duration,
        full: bool,
        tags: TagFilter,
        worker: Option<&'static str>,
    },
    RenewCompatible {
        owners: Vec<&'static str>,
        time: Duration,
        idle: Duration,
    },
    Release {
        owner: Who,
        stale: bool,
    },
    CleanUp,
    Worker(Duty),
    DeleteEnded {
        age: Duration,
    },
    Delete {
        instance: &'static str,
        force: bool,
    },
    DeleteBulk {
        limit: u32,
    },
    Prune {
        instance: &'static str,
        keep: u32,
    },
    PruneBulk {
        keep: u32,
    },
    Look {
        instance: &'static str,
    },
    LookAtSessions,
}

/// What the one who asks for a turn holds warm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warmth {
    Cold,
    /// The last run of each instance that was committed to.
    Newest,
    /// The run before that.
    Former,
}

/// A message to an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Note {
    Event(u8),
    Queue(u8),
    Cancel,
    Terminate,
    Start,
}

/// The lease that a holder has, or the one it had before that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) holder: usize,
    pub(crate) former: bool,
}

/// A worker process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    /// One without a name of its own.
    Process(&'static str),
    /// The newest start of a node, or the one before it.
    Node { name: &'static str, former: bool },
}

impl Who {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Process(id) | Self::Node { name: id, .. } => id,
        }
    }
}

/// Which sessions a fetch asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) owner: Who,
    pub(crate) lease: Duration,
    /// Serves only this one: the worker is full.
    pub(crate) only: Option<Place>,
    pub(crate) leave_out: Option<Place>,
}

/// A session as a turn names it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Shared(&'static str),
    /// One of the instance, if it is open; else the shared one of that id.
    Owned(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Finish {
    Completed,
    Failed,
    Nothing,
    /// Something that completes no activity.
    Nonsense,
}

/// Something that a turn decides.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Schedules an activity, or a few alike.
    Schedule {
        session: Option<Place>,
        tag: Option<&'static str>,
        times: u8,
    },
    Timer(Duration),
    Set {
        key: &'static str,
        value: u8,
    },
    Clear {
        key: &'static str,
    },
    ClearAll,
    Status(Option<u8>),
    Open {
        session: &'static str,
        idle: Option<Duration>,
        serial: bool,
    },
    Close {
        session: &'static str,
    },
    Watch(Place),
    /// Withdraws an activity that the instance scheduled.
    Cancel {
        nth: usize,
    },
    Tell {
        instance: &'static str,
    },
    Child {
        instance: &'static str,
    },
    /// Uses an event id that is taken.
    Repeat,
    Complete,
    Fail,
    ContinueAsNew,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance(time) => write!(f, "{time:?} pass"),
            Self::Start { instance, also } => {
                write!(f, "start '{instance}'{}", if *also { " and send to it" } else { "" })
            }
            Self::Send { instance, note, delay } => {
                write!(f, "send {note:?} to '{instance}'{}", later(*delay))
            }
            Self::FetchTurn { holder, lease, warm, worker } => {
                let warm = match warm {
                    Warmth::Cold => "",
                    Warmth::Newest => ", holding the newest runs warm",
                    Warmth::Former => ", holding former runs warm",
                };
                write!(f, "holder {holder} asks for a turn for {lease:?}{warm}{}", by(*worker))
            }
            Self::CommitTurn { lease, deeds } => write!(f, "{lease} commits its turn: {deeds:?}"),
            Self::RenewTurn { lease, time } => write!(f, "{lease} renews its turn for {time:?}"),
            Self::AbandonTurn { lease, delay, uncounted } => {
                write!(f, "{lease} abandons its turn{}{}", later(*delay), count(*uncounted))
            }
            Self::Enqueue { instance, session, tag } => {
                write!(f, "queue work for '{instance}', session {session:?}, tag {tag:?}")
            }
            Self::FetchWork { holder, lease, tags, session, worker } => {
                write!(f, "holder {holder} asks for work for {lease:?}, tags {tags:?}{}", by(*worker))?;
                session.as_ref().map_or(Ok(()), |ask| write!(f, ", {ask}"))
            }
            Self::FinishWork { lease, outcome } => write!(f, "{lease} finishes its work: {outcome:?}"),
            Self::RenewWork { lease, time } => write!(f, "{lease} renews its work for {time:?}"),
            Self::AbandonWork { lease, delay, uncounted } => {
                write!(f, "{lease} abandons its work{}{}", later(*delay), count(*uncounted))
            }
            Self::EndTry { lease, delay } => write!(f, "{lease} ends its try{}", later(Some(*delay))),
            Self::Register { node } => write!(f, "node '{node}' starts"),
            Self::RenewSessions { owner, time, idle, patience, full, tags, worker } => {
                let appetite = if *full { "full" } else { "hungry" };
                write!(
                    f,
                    "{owner}, {appetite}, renews its sessions for {time:?}, idle after {idle:?}, \
                     untaken after \
                     {patience:?}, tags {tags:?}{}",
                    by(*worker)
                )
            }
            Self::RenewCompatible { owners, time, idle } => {
                write!(f, "renew the sessions of {owners:?} for {time:?}, idle after {idle:?}")
            }
            Self::Release { owner, stale } => {
                write!(f, "{owner} releases {}", if *stale { "all it ever had" } else { "its last session" })
            }
            Self::CleanUp => write!(f, "clean up sessions"),
            Self::Worker(duty) => write!(f, "{duty}"),
            Self::DeleteEnded { age } => write!(f, "delete what ended {age:?} ago"),
            Self::Delete { instance, force } => {
                write!(f, "delete '{instance}'{}", if *force { " by force" } else { "" })
            }
            Self::DeleteBulk { limit } => write!(f, "delete at most {limit} ended instances"),
            Self::Prune { instance, keep } => write!(f, "prune '{instance}' to {keep}"),
            Self::PruneBulk { keep } => write!(f, "prune all to {keep}"),
            Self::Look { instance } => write!(f, "look at '{instance}'"),
            Self::LookAtSessions => write!(f, "look at the sessions"),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "holder {}{}", self.holder, if self.former { ", with its former lease," } else { "" })
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(id) => write!(f, "process '{id}'"),
            Self::Node { name, former } => {
                write!(f, "{}node '{name}'", if *former { "the former start of " } else { "" })
            }
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sessions for {} for {:?}", self.owner, self.lease)?;
        if let Some(only) = self.only {
            write!(f, ", only {only:?}")?;
        }
        self.leave_out.map_or(Ok(()), |place| write!(f, ", without {place:?}"))
    }
}

fn by(worker: Option<&str>) -> String {
    worker.map(|worker| format!(", as worker '{worker}'")).unwrap_or_default()
}

fn later(delay: Option<Duration>) -> String {
    delay.map(|delay| format!(", {delay:?} later")).unwrap_or_default()
}

fn count(uncounted: bool) -> &'static str {
    if uncounted { ", uncounted" } else { "" }
}
