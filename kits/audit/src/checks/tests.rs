//! Broken evidence: each check must notice it, and must be silent on what is well.

mod history;
mod input;
mod retention;
mod runs;
mod sessions;

use std::{collections::BTreeMap, sync::Arc};

use steadfast_core::{Event, EventKind, replay::Setup};
use steadfast_store::{ExecutionState, InstanceState};

use super::Check;
use crate::{
    Case, Entry, Evidence, Fact, Fault, FaultKind, InstanceRecords, Life, Records, Replayer, Run, SessionRun,
    Terms,
};

/// The store's time at the beginning of the evidence.
const BEGAN_MS: u64 = 1_000_000;

/// Returns the rules that a check finds broken.
fn found(check: Check, case: &Case) -> Vec<&'static str> {
    check(case).into_iter().map(|violation| violation.rule).collect()
}

/// Makes a case without records.
fn case(entries: Vec<Entry>) -> Case {
    let terms = Terms { store_began_ms: Some(BEGAN_MS), ..Terms::default() };
    Case { records: Records::default(), evidence: Evidence::of(entries), terms }
}

/// Adds an instance whose last execution has this history.
fn with(mut case: Case, id: &str, execution: u64, kinds: Vec<(Option<u64>, EventKind)>) -> Case {
    let event = |(place, (source, kind)): (usize, (Option<u64>, EventKind))| {
        Event::at(BEGAN_MS + 60_000, place as u64 + 1, id, execution, source, kind)
    };
    let history: Vec<Event> = kinds.into_iter().enumerate().map(event).collect();
    let status = history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationCompleted { output } => Some(ExecutionState::Completed(output.clone())),
        EventKind::OrchestrationFailed { details } => Some(ExecutionState::Failed(details.clone())),
        EventKind::OrchestrationContinuedAsNew { .. } => Some(ExecutionState::ContinuedAsNew),
        _ => None,
    });
    let state = InstanceState {
        instance: id.to_owned(),
        orchestration: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        execution_id: execution,
        status: status.unwrap_or(ExecutionState::Running),
        custom_status: None,
        custom_status_version: 0,
        parent: None,
        created_at_ms: BEGAN_MS,
        updated_at_ms: BEGAN_MS + 60_000,
        change: 1,
    };
    let instance = case.records.instances.entry(id.to_owned()).or_insert_with(|| InstanceRecords {
        state: state.clone(),
        executions: BTreeMap::new(),
        values: <_>::default(),
        turn: None,
        work: Vec::new(),
    });
    instance.state = state;
    instance.executions.insert(execution, history);
    case
}

/// The first event of an execution.
fn started() -> (Option<u64>, EventKind) {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: "x".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    (None, kind)
}

fn completed(output: &str) -> (Option<u64>, EventKind) {
    (None, EventKind::OrchestrationCompleted { output: output.to_owned() })
}

fn scheduled() -> (Option<u64>, EventKind) {
    let (name, input) = ("a".to_owned(), String::new());
    (None, EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
}

fn result(source: u64, result: &str) -> (Option<u64>, EventKind) {
    (Some(source), EventKind::ActivityCompleted { result: result.to_owned() })
}

fn at(seconds: u64, fact: Fact) -> Entry {
    Entry { at_us: seconds * 1_000_000, fact }
}

fn begins(process: &str) -> Entry {
    at(0, Fact::Process(process.to_owned(), Life::Started))
}

fn dies(seconds: u64, process: &str) -> Entry {
    at(seconds, Fact::Process(process.to_owned(), Life::Dead))
}

/// The run `number` of activity 2 of execution 1 of `i`.
fn run(number: u64, process: &str) -> Run {
    Run {
        number,
        process: process.to_owned(),
        instance: "i".to_owned(),
        execution: 1,
        id: 2,
        name: "a".to_owned(),
        attempt: 1,
        tried: 1,
        call_key: String::new(),
        session: None,
    }
}

fn on_session(run: Run, id: &str, epoch: u64) -> Run {
    let session =
        SessionRun { owner: None, id: id.to_owned(), epoch, is_first: true, state_epoch: Some(epoch) };
    Run { session: Some(session), ..run }
}

fn began(seconds: u64, run: &Run) -> Entry {
    at(seconds, Fact::Began(run.clone()))
}

fn ended(seconds: u64, run: &Run, outcome: Result<&str, &str>) -> Entry {
    let outcome = outcome.map(str::to_owned).map_err(str::to_owned);
    at(seconds, Fact::Ended { process: run.process.clone(), number: run.number, outcome })
}

fn fault(seconds: u64, kind: FaultKind, process: &str, lasts: u64) -> Entry {
    let (process, lasts_us) = (Some(process.to_owned()), lasts * 1_000_000);
    at(seconds, Fact::Fault(Fault { kind, process, lasts_us }))
}

/// Code that never repeats a history.
struct OtherCode;

impl Replayer for OtherCode {
    fn replay(&self, _: Setup, _: Vec<Event>) -> Result<(), String> {
        Err("differs".to_owned())
    }
}

fn with_other_code(mut case: Case) -> Case {
    case.terms.code = Some(Arc::new(OtherCode));
    case
}
