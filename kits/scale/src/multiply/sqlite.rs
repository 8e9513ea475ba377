//! Copies in a SQLite file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

use super::{AGE_MS, Numbers, PLAIN, Round, Span, TableRule, TimeForm};

/// The tables in the order in which they are copied: what a trigger looks for comes behind what it is on.
const TABLES: &[TableRule] = &[
    TableRule {
        table: "executions",
        rows: OF_INSTANCES,
        numbers: &[("key", Numbers::Keys), ("run", Numbers::Drawn)],
        times: &[("started_at", TimeForm::Millis), ("completed_at", TimeForm::Millis)],
        ..PLAIN
    },
    TableRule {
        table: "instances",
        rows: "t.instance LIKE '{mark}'",
        numbers: &[
            ("key", Numbers::Keys),
            ("head", Numbers::Messages),
            ("ord", Numbers::Drawn),
            ("change", Numbers::Drawn),
            ("parent_life", Numbers::ParentLife),
        ],
        times: &[
            ("created_at", TimeForm::Millis),
            ("updated_at", TimeForm::Millis),
            ("ended_at", TimeForm::Millis),
        ],
        tokens: &["token"],
        ..PLAIN
    },
    TableRule {
        table: "history",
        rows: OF_INSTANCES,
        numbers: &[("key", Numbers::Keys)],
        chosen: &["seq"],
        ..PLAIN
    },
    TableRule { table: "kv", rows: OF_INSTANCES, numbers: &[("key", Numbers::Keys)], ..PLAIN },
    TableRule {
        table: "messages",
        rows: OF_INSTANCES,
        numbers: &[("key", Numbers::Keys), ("seq", Numbers::Messages), ("life", Numbers::ParentLife)],
        tokens: &["token"],
        ..PLAIN
    },
    TableRule {
        table: "sessions",
        rows: "t.instance || t.session_id LIKE '{mark}'",
        numbers: &[("id", Numbers::Sessions), ("epoch", Numbers::Drawn)],
        ..PLAIN
    },
    TableRule {
        table: "work",
        rows: OF_INSTANCES,
        numbers: &[
            ("key", Numbers::Keys),
            ("seq", Numbers::Work),
            ("session", Numbers::Sessions),
            ("epoch", Numbers::Drawn),
        ],
        tokens: &["token"],
        ..PLAIN
    },
    TableRule {
        table: "heads",
        rows: "t.session IN (SELECT id FROM sessions WHERE instance || session_id LIKE '{mark}')",
        numbers: &[("session", Numbers::Sessions), ("head", Numbers::Work)],
        ..PLAIN
    },
    TableRule { table: "watchers", rows: OF_INSTANCES, numbers: &[("key", Numbers::Keys)], ..PLAIN },
    TableRule {
        table: "set_aside",
        rows: "t.instance LIKE '{mark}'",
        numbers: &[("id", Numbers::Drawn)],
        ..PLAIN
    },
    TableRule { table: "workers", rows: "t.id LIKE '{mark}'", ..PLAIN },
    TableRule { table: "worker_handlers", rows: "t.worker LIKE '{mark}'", ..PLAIN },
];

const OF_INSTANCES: &str = "t.key IN (SELECT key FROM instances WHERE instance LIKE '{mark}')";

/// Finds the highest number of each kind.
const HIGHEST: &[(Numbers, &str)] = &[
    (Numbers::Keys, "SELECT max(key) FROM instances"),
    (Numbers::Messages, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'"),
    (Numbers::Work, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'work'"),
    (Numbers::Sessions, "SELECT coalesce(max(id), 0) FROM sessions"),
    (Numbers::Drawn, "SELECT value FROM counter"),
    (Numbers::ParentLife, "SELECT value FROM counter"),
];

/// Copies rounds of templates. Returns how many instances and events there are then.
pub(super) fn copy(path: &Path, rounds: &[Round], tell: &(dyn Fn(&str) + Sync)) -> Result<(u64, u64)> {
    let mut file = Connection::open(path)?;
    file.busy_timeout(std::time::Duration::from_secs(30))?;
    file.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA temp_store = MEMORY")?;
    // All numbers of the templates are among those that there are before the first copy.
    let widths = highest(&file)?;
    for round in rounds {
        let above = highest(&file)?;
        let span = |(numbers, above)| (numbers, Span { above, width: widths[&numbers].max(1) });
        let spans: HashMap<Numbers, Span> = above.into_iter().map(span).collect();
        let mut statements = Vec::new();
        for rule in TABLES {
            statements.push(prepare(&file, rule, round, &spans)?);
        }
        for (first, last) in round.batches() {
            let all = file.transaction()?;
            for statement in &statements {
                all.execute(statement, [i64::try_from(first)?, i64::try_from(last)?])?;
            }
            all.commit()?;
            tell(&format!("{last} of {} copies of {} instances", round.copies, round.instances));
        }
        let drawn = spans[&Numbers::Drawn];
        let copies = i64::try_from(round.copies)?;
        file.execute("UPDATE counter SET value = value + ?1", [(copies + 1) * drawn.width])?;
        file.execute_batch(
            &TABLES
                .iter()
                .fold(String::new(), |all, rule| all + &format!("DROP TABLE temp.of_{};", rule.table)),
        )?;
    }
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let counts =
        "SELECT (SELECT count(*) FROM instances WHERE name IS NOT NULL), (SELECT count(*) FROM history)";
    let (instances, events): (i64, i64) = file.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((u64::try_from(instances)?, u64::try_from(events)?))
}

fn highest(file: &Connection) -> Result<HashMap<Numbers, i64>> {
    let look =
        |(numbers, look): &(Numbers, &str)| Ok((*numbers, file.query_row(look, [], |row| row.get(0))?));
    HIGHEST.iter().map(look).collect()
}

/// Keeps the template rows of a table apart, and returns the statement that copies them.
fn prepare(
    file: &Connection,
    rule: &TableRule,
    round: &Round,
    spans: &HashMap<Numbers, Span>,
) -> Result<String> {
    let TableRule { table, .. } = rule;
    let rows = rule.rows.replace("{mark}", &format!("%{}%", round.mark));
    file.execute_batch(&format!(
        "CREATE TEMP TABLE of_{table} AS SELECT t.* FROM main.{table} AS t WHERE {rows}"
    ))?;
    let mut columns = file.prepare("SELECT name, type FROM pragma_table_info(?1) ORDER BY cid")?;
    let columns = columns.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let columns = columns.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    let copied = |column: &&(String, String)| !rule.chosen.contains(&column.0.as_str());
    let names: Vec<&str> = columns.iter().filter(copied).map(|(name, _)| name.as_str()).collect();
    let values: Vec<String> = columns
        .iter()
        .filter(copied)
        .map(|(name, kind)| value(rule, round, spans, name, kind == "TEXT"))
        .collect();
    Ok(format!(
        "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
         INSERT INTO main.{table} ({}) SELECT {} FROM n CROSS JOIN temp.of_{table} AS t",
        names.join(", "),
        values.join(", ")
    ))
}

/// Returns the value that a column of the copy `n.i` has.
fn value(
    rule: &TableRule,
    round: &Round,
    spans: &HashMap<Numbers, Span>,
    column: &str,
    is_text: bool,
) -> String {
    if let Some((_, numbers)) = rule.numbers.iter().find(|(name, _)| *name == column) {
        if *numbers == Numbers::ParentLife && !round.moves_parents {
            return format!("t.{column}");
        }
        let raised = spans[numbers].raised(column);
        // Work without a session has none, or 0 in its place.
        return if column == "session" { format!("iif(t.session = 0, 0, {raised})") } else { raised };
    }
    if rule.tokens.contains(&column) {
        return format!("t.{column} || '~' || n.i");
    }
    if rule.times.iter().any(|(name, _)| *name == column) {
        return format!("t.{column} - {}", age(rule.table));
    }
    let mark = round.mark;
    if is_text { format!("replace(t.{column}, '{mark}', '~' || n.i || '~')") } else { format!("t.{column}") }
}

/// Returns how long ago a row of the copy `n.i` ended: what is recent by its id a moment, all else for long.
fn age(table: &str) -> String {
    let (ended, is_recent) = match table {
        "instances" => ("t.ended_at", "t.instance LIKE 'recent%'"),
        _ => {
            ("t.completed_at", "t.key IN (SELECT key FROM main.instances WHERE instance LIKE 'recent%~t~%')")
        }
    };
    format!("CASE WHEN {ended} IS NULL THEN 0 WHEN {is_recent} THEN n.i ELSE {AGE_MS} + n.i * 1000 END")
}
