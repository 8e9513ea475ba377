//! Workloads of the core alone, for counting instructions: `steadfast-bench-core WORKLOAD SIZE [setup]`.
//!
//! With `setup` a workload stops where the measured part begins, so that the difference of two runs is that
//! part. `cargo xtask bench core` does the subtraction and compares sizes.

use anyhow::{Context, bail};
use steadfast_core::replay::{Execution, Identity, Setup, Start, Turn, Verdict};
use steadfast_core::{Event, EventKind, OrchestrationContext, WorkItem};

/// Enough turns that what a turn costs stands out from what the workload around it costs.
const WARM_TURNS: u64 = 1_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (workload, size, until) = match arguments.as_slice() {
        [workload, size] => (workload, size, Until::End),
        [workload, size, setup] if setup == "setup" => (workload, size, Until::Setup),
        _ => bail!("usage: steadfast-bench-core replay|fan-in|warm SIZE [setup]"),
    };
    let size: u64 = size.parse().with_context(|| format!("'{size}' is no size"))?;
    match workload.as_str() {
        "replay" => replay(size, until),
        "fan-in" => fan_in(size, until),
        "warm" => warm(size, until),
        _ => bail!("'{workload}' is no workload: replay, fan-in or warm"),
    }
}

#[derive(PartialEq, Eq)]
enum Until {
    Setup,
    End,
}

/// A cold replay of a chain that has `size` events.
fn replay(size: u64, until: Until) -> anyhow::Result<()> {
    let history = chain_history(size);
    if until == Until::Setup {
        return Ok(());
    }
    let execution = Execution::replay(setup(), history, chain);
    if execution.effort().events_visited != size {
        bail!("visited {} of {size} events", execution.effort().events_visited);
    }
    Ok(())
}

/// One orchestration that waits for `size` activities, answered one a turn.
fn fan_in(size: u64, until: Until) -> anyhow::Result<()> {
    let start = Start { input: size.to_string(), ..Start::default() };
    let mut execution = Execution::start(setup(), start, scatter);
    let first = execution.turn(0, vec![]);
    if until == Until::Setup {
        return Ok(());
    }
    let mut last = first;
    for id in 2..size + 2 {
        last = execution.turn(id, vec![answer(id)]);
    }
    expect_end(&last)
}

/// Turns on an execution that is kept and has `size` events behind it.
fn warm(size: u64, until: Until) -> anyhow::Result<()> {
    let mut execution = Execution::replay(setup(), chain_history(size), chain);
    if until == Until::Setup {
        return Ok(());
    }
    for _ in 0..WARM_TURNS {
        let open = execution.last_event_id();
        let turn = execution.turn(open, vec![answer(open)]);
        if turn.verdict != (Verdict::Waiting { stuck: false }) {
            bail!("a warm turn ended with {:?}", turn.verdict);
        }
    }
    Ok(())
}

fn expect_end(turn: &Turn) -> anyhow::Result<()> {
    match &turn.verdict {
        Verdict::Completed { .. } => Ok(()),
        other => bail!("the workload ended with {other:?}"),
    }
}

async fn chain(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    loop {
        ctx.schedule_activity("Step", "input").await?;
    }
}

async fn scatter(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let size: u64 = input.parse().map_err(|_| input.clone())?;
    let steps = (0..size).map(|_| ctx.schedule_activity("Step", "input")).collect();
    Ok(ctx.join(steps).await.len().to_string())
}

/// The history of a chain after `size` events, the last of which schedules a step.
fn chain_history(size: u64) -> Vec<Event> {
    let event = |id, source, kind| Event::at(id, id, "bench", 1, source, kind);
    let started = EventKind::OrchestrationStarted {
        name: "Chain".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let mut history = vec![event(1, None, started)];
    for id in 2..=size {
        let kind = if id % 2 == 0 {
            EventKind::ActivityScheduled {
                name: "Step".into(),
                input: "input".into(),
                session_id: None,
                tag: None,
            }
        } else {
            EventKind::ActivityCompleted { result: "output".into() }
        };
        let source = (id % 2 == 1).then(|| id - 1);
        history.push(event(id, source, kind));
    }
    history
}

fn answer(id: u64) -> WorkItem {
    WorkItem::ActivityCompleted { instance: "bench".into(), execution_id: 1, id, result: "output".into() }
}

fn setup() -> Setup {
    Setup::new(Identity {
        instance: "bench".into(),
        execution_id: 1,
        name: "Chain".into(),
        version: "1.0.0".into(),
    })
}
