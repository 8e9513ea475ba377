//! The auditor's questions to a world: its evidence, the terms of its workers, and the code that ran in it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use steadfast::{ErrorDetails, Event, replay::Setup};
use steadfast_audit::{FaultKind, MayFail, Replayer, Terms, Violation, Watch};
use steadfast_core::replay::verify;
use steadfast_store::store_of;
use steadfast_testing::program::{Program, ast::names};

use crate::{
    client::Desk,
    code,
    journal::Journal,
    story::{Story, Trouble},
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
        watch: witnesses.watch,
        code: Some(Arc::new(Code::of(story))),
        lacks_code: story.lacks_code(),
        may_fail: Some(may_fail(story)),
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
    /// The watch over its store, if it was watched.
    pub watch: Option<Watch>,
    /// The wall time of the store when the world began.
    pub began_ms: u64,
    /// Whether the store and all processes have one clock.
    pub one_clock: bool,
    /// How many sessions each process may serve.
    pub capacity: BTreeMap<String, usize>,
}

fn sets_the_clock_of_the_store(story: &Story, witnesses: &Witnesses) -> bool {
    story.events.iter().any(|event| match event.what {
        Trouble::StepStore(_) => true,
        Trouble::Step(..) => witnesses.one_clock,
        _ => false,
    })
}

/// Tells which failures have their reason in the story: code that was changed or taken away.
fn may_fail(story: &Story) -> Arc<MayFail> {
    let story = story.clone();
    Arc::new(move |instance, details| {
        story.changes_code_of(instance)
            || (story.lacks_code() && matches!(details, ErrorDetails::Poison { .. }))
    })
}

/// The code of a story, for replays.
struct Code {
    story: Story,
    programs: BTreeMap<String, Arc<Program>>,
}

impl Code {
    fn of(story: &Story) -> Self {
        let instances = story.instances.iter().enumerate();
        let mains = instances.map(|(number, instance)| (code::orchestration(number), &instance.program));
        let children = names::CHILDREN.iter().map(|name| (*name).to_owned()).zip(&story.children);
        let programs = mains.chain(children).map(|(name, program)| (name, Arc::new(program.clone())));
        Self { story: story.clone(), programs: programs.collect() }
    }
}

impl Replayer for Code {
    fn replay(&self, setup: Setup, history: Vec<Event>) -> Result<(), String> {
        if self.story.changes_code_of(&setup.identity.instance) {
            return Ok(());
        }
        let Some(program) = self.programs.get(&setup.identity.name).map(Arc::clone) else {
            return Err(format!("no code has the name {}", setup.identity.name));
        };
        verify(setup, history, move |ctx, input| code::interpreted(ctx, input, program))
            .map_err(|difference| difference.to_string())
    }
}

/// How long trouble of a disk may last: the power comes back within half a minute, and faults of calls meet
/// their calls within that.
const DISK_TROUBLE: Duration = Duration::from_secs(60);

/// Notes the faults that something in a story is. A disturbance is a fault when it meets its call.
pub(crate) fn note_faults(journal: &Journal, trouble: &Trouble, process: impl Fn(usize) -> Option<String>) {
    let note = |kind, number: usize, lasts| {
        if let Some(process) = process(number) {
            journal.fault(kind, Some(&process), lasts);
        }
    };
    match trouble {
        Trouble::Kill(number, back) => note(FaultKind::Killed, *number, *back),
        Trouble::Freeze(number, lasts) | Trouble::Sleep(number, lasts) => {
            note(FaultKind::Paused, *number, *lasts);
        }
        Trouble::Step(number, _) => note(FaultKind::Stepped, *number, Duration::ZERO),
        Trouble::Cut(number, lasts) => note(FaultKind::Cut, *number, *lasts),
        Trouble::Outage(lasts) => journal.fault(FaultKind::Cut, None, *lasts),
        Trouble::Slow(number, by, lasts) => note(FaultKind::Slow, *number, lasts.saturating_add(*by)),
        Trouble::Drain(number, back) => note(FaultKind::Drained, *number, *back),
        Trouble::StepStore(_) => journal.fault(FaultKind::StoreKilled, None, Duration::ZERO),
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
        | Trouble::Enqueue(..) => {}
    }
}
