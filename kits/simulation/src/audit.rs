//! The auditor's questions to a world: its evidence, the terms of its workers, and the code that ran in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use steadfast::{ErrorDetails, Event, EventKind, replay::Setup};
use steadfast_audit::{FaultKind, MayFail, Replayer, Terms, Violation, Watch};
use steadfast_core::replay::verify;
use steadfast_store::store_of;
use steadfast_testing::program::{Program, ast::names};

use crate::{
    client::Desk,
    code,
    ground::DiskTrouble,
    journal::Journal,
    story::{INTRUDER, Story, Target, Trouble},
};

/// Audits a world in which all trouble has ended and everything had time to end.
pub fn audit(
    desk: &Desk,
    story: &Story,
    journal: &Journal,
    witnesses: Witnesses,
) -> impl Future<Output = Vec<Violation>> + Send + 'static + use<> {
    let store = store_of(Arc::clone(&desk.provider), Arc::clone(&desk.clock));
    let store_began_ms = (!sets_the_clock_of_the_store(story, &witnesses)).then_some(witnesses.began_ms);
    let terms = Terms {
        capacity: witnesses.capacity,
        store_began_ms,
        watch: Some(witnesses.watch),
        code: Some(Arc::new(Code::of(story))),
        lacks: witnesses.lacks,
        may_fail: Some(may_fail(story)),
        retention: story.retention(),
        damaged: damaged(story),
        ..Terms::default()
    };
    let evidence = journal.evidence();
    async move {
        match steadfast_audit::audit(&*store, evidence, terms).await {
            Ok(violations) => violations,
            Err(error) => vec![Violation { rule: "I1", text: format!("the store cannot be read: {error}") }],
        }
    }
}

/// What a world knows beside its journal.
#[derive(Clone)]
pub struct Witnesses {
    /// The watch over its store.
    pub watch: Watch,
    /// The wall time of the store when the world began.
    pub began_ms: u64,
    /// Whether the store and all processes have one clock.
    pub one_clock: bool,
    /// How many sessions each process may serve.
    pub capacity: BTreeMap<String, usize>,
    /// The activities that each process has no code for.
    pub lacks: BTreeMap<String, BTreeSet<String>>,
}

fn sets_the_clock_of_the_store(story: &Story, witnesses: &Witnesses) -> bool {
    story.events.iter().any(|event| match event.what {
        // A store in memory reads its wall clock when it is opened, and no more.
        Trouble::StepStore(_) | Trouble::Step(..) => witnesses.one_clock,
        _ => false,
    })
}

/// Names the instances whose histories the disk does not return for a while.
fn damaged(story: &Story) -> BTreeSet<String> {
    let large = story.instances.iter().enumerate().filter(|(_, instance)| instance.is_large);
    let large = large.filter(|_| story.is_torn());
    large.map(|(number, _)| Target::Instance(number).id()).collect()
}

/// Tells which failures have their reason in the story: an instance whose code was changed while it ran does
/// not fit its history, what only changed code starts has no code at all, and a commit that the store calls
/// impossible is not made again.
fn may_fail(story: &Story) -> Arc<MayFail> {
    let is_refused = story.events.iter().any(|event| match &event.what {
        Trouble::Disturb(_, planned) => planned.refuses_commits(),
        _ => false,
    });
    let changed = (0..story.instances.len()).filter(|number| story.programs_of(*number).len() > 1);
    let changed: BTreeSet<String> = changed.map(|number| Target::Instance(number).id()).collect();
    Arc::new(move |state, details| {
        let has_no_code = state.orchestration == INTRUDER;
        match details {
            ErrorDetails::Configuration { .. } => has_no_code || changed.contains(&state.instance),
            ErrorDetails::Poison { .. } => has_no_code,
            ErrorDetails::Infrastructure { operation, .. } => is_refused && operation == "commit_turn",
            ErrorDetails::Application { .. } => false,
        }
    })
}

/// The code of a story, for replays.
struct Code {
    /// By name: the program, and those that it was changed to.
    programs: BTreeMap<String, Vec<Arc<Program>>>,
}

impl Code {
    fn of(story: &Story) -> Self {
        let numbers = 0..story.instances.len();
        let mains = numbers.map(|number| (code::orchestration(number), story.programs_of(number)));
        let children = names::CHILDREN.iter().zip(&story.children);
        let children = children.map(|(name, program)| ((*name).to_owned(), vec![program.clone()]));
        let all = mains.chain(children);
        let programs = all.map(|(name, all)| (name, all.into_iter().map(Arc::new).collect())).collect();
        Self { programs }
    }
}

impl Replayer for Code {
    /// The last turn replayed all of the history, so one of the programs that ran does. A history that fits
    /// no program any more ends with an error that says so.
    fn replay(&self, setup: Setup, history: Vec<Event>) -> Result<(), String> {
        let name = &setup.identity.name;
        let Some(programs) = self.programs.get(name) else {
            return if name == INTRUDER { Ok(()) } else { Err(format!("no code has the name {name}")) };
        };
        if programs.len() > 1 && history.iter().any(does_not_fit) {
            return Ok(());
        }
        let mut differences = programs.iter().map(|program| {
            let program = Arc::clone(program);
            verify(setup.clone(), history.clone(), move |ctx, input| code::interpreted(ctx, input, program))
        });
        let first = differences.next().unwrap_or(Ok(()));
        match first {
            Err(_) if differences.any(|difference| difference.is_ok()) => Ok(()),
            first => first.map_err(|difference| difference.to_string()),
        }
    }
}

/// Tells whether an event says that the code does not fit the history.
fn does_not_fit(event: &Event) -> bool {
    matches!(&event.kind, EventKind::OrchestrationFailed { details: ErrorDetails::Configuration { .. } })
}

/// How long trouble of a disk may last: the power comes back within half a minute, and faults of calls meet
/// their calls within that.
const DISK_TROUBLE: Duration = Duration::from_secs(60);

/// Notes the faults that something in a story is. A disturbance is a fault when it meets its call, and a
/// sleep of the one machine that all processes run on is one of all.
pub(crate) fn note_faults(
    journal: &Journal,
    trouble: &Trouble,
    is_one_machine: bool,
    process: impl Fn(usize) -> Option<String>,
) {
    let note = |kind, number: usize, lasts| {
        if let Some(process) = process(number) {
            journal.fault(kind, Some(&process), lasts);
        }
    };
    match trouble {
        Trouble::Sleep(..) if is_one_machine => {}
        Trouble::Kill(number, back) => note(FaultKind::Killed, *number, *back),
        Trouble::Freeze(number, lasts) | Trouble::Sleep(number, lasts) => {
            note(FaultKind::Paused, *number, *lasts);
        }
        Trouble::Step(number, _) => note(FaultKind::Stepped, *number, Duration::ZERO),
        Trouble::Cut(number, lasts) => note(FaultKind::Cut, *number, *lasts),
        Trouble::Outage(lasts) => journal.fault(FaultKind::Cut, None, *lasts),
        Trouble::Slow(number, by, lasts) => note(FaultKind::Slow, *number, lasts.saturating_add(*by)),
        Trouble::Drain(number, back) => note(FaultKind::Drained, *number, *back),
        Trouble::StepStore(_) => journal.fault(FaultKind::Stepped, None, Duration::ZERO),
        // It concerns one instance, and must be in the way of no other.
        Trouble::Disk(DiskTrouble::History(..)) => {}
        Trouble::Disk(_) => journal.fault(FaultKind::StoreKilled, None, DISK_TROUBLE),
        Trouble::Full(lasts) => journal.fault(FaultKind::Cut, None, *lasts),
        Trouble::Deploy(number, _, back) => note(FaultKind::Drained, *number, *back),
        Trouble::Twin(number, lasts) => note(FaultKind::Killed, *number, *lasts),
        Trouble::Release(..) => journal.fault(FaultKind::Released, None, Duration::ZERO),
        Trouble::Disturb(..)
        | Trouble::DisturbClient(_)
        | Trouble::Delete(_)
        | Trouble::Cancel(_)
        | Trouble::Terminate(_)
        | Trouble::StartAnew(_)
        | Trouble::Raise(..)
        | Trouble::Enqueue(..)
        | Trouble::Prune(_)
        | Trouble::Inspect(_) => {}
    }
}
