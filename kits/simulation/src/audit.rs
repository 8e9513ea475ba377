//! The auditor's questions to a world: its evidence, the terms of its workers, and the code that ran in it.

use std::{collections::BTreeMap, sync::Arc};

use steadfast::{Event, replay::Setup};
use steadfast_audit::{Fact, FaultKind, Life, Replayer, Terms, Violation, Watch};
use steadfast_core::replay::verify;
use steadfast_store::store_of;
use steadfast_testing::program::{Program, ast::names};

use crate::{
    client::Desk,
    code,
    journal::{Journal, Noted},
    story::{Story, Trouble},
    time::FIRST_WALL_MS,
};

/// Audits a world in which all trouble has ended and everything had time to end.
pub fn audit(
    desk: &Desk,
    story: &Story,
    journal: &Journal,
    watch: &Watch,
) -> impl Future<Output = Vec<Violation>> + Send + 'static + use<> {
    let store = store_of(Arc::clone(&desk.provider), Arc::clone(&desk.clock));
    let terms = Terms {
        capacity: capacity(story, journal),
        lacking: story
            .workers
            .iter()
            .flat_map(|worker| &worker.lacks)
            .map(|name| (*name).to_owned())
            .collect(),
        store_began_ms: Some(FIRST_WALL_MS),
        watch: Some(watch.clone()),
        code: Some(Arc::new(Code::of(story))),
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

/// The code of a story, for replays.
struct Code(BTreeMap<String, Arc<Program>>);

impl Code {
    fn of(story: &Story) -> Self {
        let instances = story.instances.iter().enumerate();
        let mains = instances.map(|(number, instance)| (code::orchestration(number), &instance.program));
        let children = names::CHILDREN.iter().map(|name| (*name).to_owned()).zip(&story.children);
        Self(mains.chain(children).map(|(name, program)| (name, Arc::clone(program))).collect())
    }
}

impl Replayer for Code {
    fn replay(&self, setup: Setup, history: Vec<Event>) -> Result<(), String> {
        let Some(program) = self.0.get(&setup.identity.name).map(Arc::clone) else {
            return Err(format!("no code has the name {}", setup.identity.name));
        };
        verify(setup, history, move |ctx, input| code::interpreted(ctx, input, program))
            .map_err(|difference| difference.to_string())
    }
}

/// Returns how many sessions each process of the story may serve.
fn capacity(story: &Story, journal: &Journal) -> BTreeMap<String, usize> {
    let mut capacity = BTreeMap::new();
    for note in journal.notes() {
        if let Noted::Fact(Fact::Process(process, Life::Started)) = note.what {
            let number = process.trim_start_matches('w').split('.').next().and_then(|text| text.parse().ok());
            if let Some(worker) = number.and_then(|number: usize| story.workers.get(number)) {
                capacity.insert(process, worker.sessions);
            }
        }
    }
    capacity
}

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
        Trouble::Step(number, _) => note(FaultKind::Stepped, *number, std::time::Duration::ZERO),
        Trouble::Cut(number, lasts) => note(FaultKind::Cut, *number, *lasts),
        Trouble::Outage(lasts) => journal.fault(FaultKind::Cut, None, *lasts),
        Trouble::Slow(number, by, lasts) => note(FaultKind::Slow, *number, lasts.saturating_add(*by)),
        Trouble::Drain(number, back) => note(FaultKind::Drained, *number, *back),
        Trouble::Release(_) => journal.fault(FaultKind::Released, None, std::time::Duration::ZERO),
        Trouble::Disturb(..)
        | Trouble::Cancel(_)
        | Trouble::Terminate(_)
        | Trouble::StartAnew(_)
        | Trouble::Raise(..)
        | Trouble::Enqueue(..) => {}
    }
}
