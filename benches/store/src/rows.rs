//! What a round begins with: activities that are leased, and instances that are leased with their completion.

use std::path::Path;

use rusqlite::{Connection, params};
use steadfast_core::{Event, EventKind, WorkItem};
use steadfast_sqlite::SqliteProvider;

/// Leases end long after the run.
const UNTIL: i64 = 9_000_000_000_000;

pub(crate) fn working(pair: usize) -> String {
    format!("working-{pair}")
}

pub(crate) fn turning(pair: usize) -> String {
    format!("turning-{pair}")
}

pub(crate) fn work_token(pair: usize) -> String {
    format!("work-{}", pair + 1_000_000)
}

pub(crate) fn turn_token(pair: usize) -> String {
    format!("turn-{}", pair + 1_000_000)
}

pub(crate) fn completion(instance: &str) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 2,
        result: "done".into(),
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Step".into(),
        input: "{\"order\":1}".into(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn scheduled() -> EventKind {
    EventKind::ActivityScheduled {
        name: "Step".into(),
        input: "{\"order\":1}".into(),
        session_id: None,
        tag: None,
    }
}

/// What a turn appends: the completion of one activity, and the schedule of the next.
pub(crate) fn step(instance: &str) -> Vec<Event> {
    let completed = EventKind::ActivityCompleted { result: "done".into() };
    vec![event(instance, 3, Some(2), completed), event(instance, 4, None, scheduled())]
}

fn event(instance: &str, id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::at(1_700_000_000_000, id, instance, 1, source, kind)
}

/// Makes a file with `pairs` of each kind.
pub(crate) fn prepare(file: &Path, pairs: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    drop(runtime.block_on(SqliteProvider::new(&format!("sqlite:{}", file.display()), None))?);
    let mut connection = Connection::open(file)?;
    let all = connection.transaction()?;
    {
        let mut instance = all.prepare(
            "INSERT INTO instances (key, instance, name, version, ord, turn, token, locked_until)
             VALUES (?1, ?2, 'Chain', '1.0.0', ?1, ?3, ?4, ?5)",
        )?;
        let mut execution = all.prepare(
            "INSERT INTO executions (key, execution, run, status, started_at) \
             VALUES (?1, 1, ?1, 'Running', 0)",
        )?;
        let mut history = all.prepare(
            "INSERT INTO history (key, execution, event_id, kind, event) VALUES (?1, 1, ?2, ?3, ?4)",
        )?;
        let mut work = all.prepare(
            "INSERT INTO work (key, execution, activity, state, tag, visible_at, since, attempts, token, \
             locked_until,
                 worker, item)
             VALUES (?1, 1, 2, 2, '', 0, 0, 1, ?2, ?3, 'worker', ?4)",
        )?;
        let mut message = all.prepare(
            "INSERT INTO messages (key, state, visible_at, attempts, token, starts, item) \
             VALUES (?1, 1, 0, 1, ?2, 0, ?3)",
        )?;
        for pair in 0..pairs {
            let (one, other) = (2 * pair as i64 + 1, 2 * pair as i64 + 2);
            let (working, turning) = (working(pair), turning(pair));
            instance.execute(params![one, working, 0, None::<String>, None::<i64>])?;
            instance.execute(params![other, turning, 2, turn_token(pair), UNTIL])?;
            for (key, name) in [(one, &working), (other, &turning)] {
                execution.execute([key])?;
                for (id, kind) in [(1, scheduled()), (2, scheduled())] {
                    let text = serde_json::to_string(&event(name, id, None, kind.clone()))?;
                    history.execute(params![key, id as i64, kind.name(), text])?;
                }
            }
            let item = serde_json::to_string(&activity(&working, 2))?;
            work.execute(params![one, work_token(pair), UNTIL, item])?;
            message.execute(params![
                other,
                turn_token(pair),
                serde_json::to_string(&completion(&turning))?
            ])?;
        }
    }
    all.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
