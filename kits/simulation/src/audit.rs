//! The auditor: reads the store and the journal after a story, and names each promise that was broken.

use std::collections::{BTreeMap, BTreeSet};

use steadfast::{ErrorDetails, Event, EventKind, OrchestrationStatus};

use crate::{
    client::Desk,
    journal::{Fact, Journal, Run, Told},
    story::Story,
};

/// Audits a world in which all trouble has ended and everything had time to end.
pub fn audit(
    desk: &Desk,
    story: &Story,
    journal: &Journal,
) -> impl Future<Output = Vec<String>> + Send + 'static + use<> {
    let (desk, story, journal) = (desk.clone(), story.clone(), journal.clone());
    async move {
        let mut found = Findings::default();
        let evidence = Evidence::of(&journal);
        found.runs(&story, &evidence);
        found.sessions(&evidence);
        found.instances(&desk, &story, &evidence).await;
        found.list
    }
}

/// The journal, sorted by what the auditor asks for.
#[derive(Default)]
struct Evidence {
    /// The runs in the order of their beginnings.
    runs: Vec<Run>,
    /// The outcomes of runs, by their number.
    outcomes: BTreeMap<usize, Result<String, String>>,
    told: Vec<Told>,
}

impl Evidence {
    fn of(journal: &Journal) -> Self {
        let mut evidence = Self::default();
        for note in journal.notes() {
            match note.what {
                Fact::Began(run) => evidence.runs.push(run),
                Fact::Ended(run, outcome) => drop(evidence.outcomes.insert(run.number, outcome)),
                Fact::Told(told) => evidence.told.push(told),
                Fact::World(_) | Fact::Call { .. } => {}
            }
        }
        evidence
    }
}

/// The promises that were broken.
#[derive(Default)]
struct Findings {
    list: Vec<String>,
}

impl Findings {
    fn add(&mut self, text: String) {
        self.list.push(text);
    }

    /// Without a fault nothing runs twice; with faults, at most once more for each.
    fn runs(&mut self, story: &Story, evidence: &Evidence) {
        let faults = story.events.iter().filter(|event| event.what.is_fault()).count();
        let mut counts: BTreeMap<_, Vec<&Run>> = BTreeMap::new();
        for run in &evidence.runs {
            counts.entry(run.key()).or_default().push(run);
        }
        for (key, runs) in counts {
            let allowed = 1 + faults;
            if runs.len() > allowed {
                self.add(format!("effects: {key:?} ran {} times with {faults} faults", runs.len()));
            }
            for run in runs.iter().filter(|run| run.attempt as usize > allowed) {
                self.add(format!("I12: {run} with {faults} faults"));
            }
        }
    }

    /// An epoch has one process, and the work of an older one does not begin after that of a newer one.
    fn sessions(&mut self, evidence: &Evidence) {
        let mut owners: BTreeMap<(&str, u64), &str> = BTreeMap::new();
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for run in &evidence.runs {
            let Some((key, epoch)) = &run.session else { continue };
            let owner = owners.entry((key, *epoch)).or_insert(&run.process);
            if *owner != run.process {
                self.add(format!("A1: {run}, but the epoch is that of {owner}"));
            }
            let newest = newest.entry(key).or_insert(*epoch);
            if *epoch < *newest {
                self.add(format!("A4: {run} begins after work of epoch {newest}"));
            }
            *newest = (*newest).max(*epoch);
        }
    }

    async fn instances(&mut self, desk: &Desk, story: &Story, evidence: &Evidence) {
        let Ok(all) = desk.client.list_all_instances().await else {
            return self.add("the instances cannot be listed".to_owned());
        };
        for told in &evidence.told {
            if let Told::Started(id) = told
                && !all.contains(id)
                && !evidence.told.contains(&Told::Deleted(id.clone()))
            {
                self.add(format!("I1: {id} was started and does not exist"));
            }
        }
        for instance in &all {
            self.instance(desk, story, instance, evidence).await;
        }
        match desk.client.get_queue_depths().await {
            Ok(depths) if depths.worker_queue == 0 && depths.orchestrator_queue == 0 => {}
            other => self.add(format!("I7: something is left: {other:?}")),
        }
    }

    async fn instance(&mut self, desk: &Desk, story: &Story, instance: &str, evidence: &Evidence) {
        match desk.client.get_orchestration_status(instance).await {
            Ok(OrchestrationStatus::Completed { .. }) => {}
            Ok(OrchestrationStatus::Failed { details, .. }) => {
                if !matches!(details, ErrorDetails::Application { .. }) && !excused(story, instance, &details)
                {
                    self.add(format!("{instance} failed: {}", details.display_message()));
                }
            }
            Ok(other) => {
                let why = desk.client.explain(instance).await.map(|told| told.to_string());
                self.add(format!("I7: {instance} has not ended: {other:?}\n{}", why.unwrap_or_default()));
            }
            Err(error) => self.add(format!("{instance} cannot be read: {error}")),
        }
        let Ok(executions) = desk.client.list_executions(instance).await else { return };
        for execution in executions {
            match desk.client.read_execution_history(instance, execution).await {
                Ok(history) => self.history(instance, execution, &history, evidence),
                Err(error) => self.add(format!("I1: {instance}/{execution} cannot be read: {error}")),
            }
        }
    }

    /// One completion for each action, one end, and no result that no run had.
    fn history(&mut self, instance: &str, execution: u64, history: &[Event], evidence: &Evidence) {
        let mut answered = BTreeSet::new();
        let mut ended = false;
        for event in history {
            if ended && !closes(&event.kind) {
                self.add(format!("I9: {instance}/{execution} goes on after its end: {event:?}"));
            }
            match &event.kind {
                EventKind::ActivityCompleted { result } => {
                    let id = event.source_event_id.unwrap_or(0);
                    let ran = evidence.runs.iter().any(|run| {
                        run.key() == (instance, execution, id)
                            && evidence.outcomes.get(&run.number) == Some(&Ok(result.clone()))
                    });
                    let system = history.iter().any(|event| {
                        event.event_id == id
                            && matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if name.starts_with("__"))
                    });
                    if !ran && !system {
                        self.add(format!("I6: {instance}/{execution} #{id} has a result that no run had"));
                    }
                }
                EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
                | EventKind::OrchestrationContinuedAsNew { .. } => ended = true,
                _ => {}
            }
            if let Some(id) = event.source_event_id
                && is_completion(&event.kind)
                && !answered.insert(id)
            {
                self.add(format!("I6: {instance}/{execution} #{id} is answered twice"));
            }
        }
    }
}

/// Tells whether the story is the reason for a failure: the code was changed or taken away.
fn excused(story: &Story, instance: &str, details: &ErrorDetails) -> bool {
    story.changes_code_of(instance) || (story.lacks_code() && matches!(details, ErrorDetails::Poison { .. }))
}

/// Tells whether an event is the one answer of an action.
fn is_completion(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
    )
}

/// Tells whether an event closes open work of an execution that has ended: it decides nothing.
fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCancelRequested { .. } | EventKind::SubOrchestrationCancelRequested { .. }
    )
}
