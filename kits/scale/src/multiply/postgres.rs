//! Copies in a schema of a PostgreSQL server.

use std::collections::HashMap;

use anyhow::Result;
use tokio_postgres::Client;

use super::{AGE_MS, Numbers, PLAIN, Round, Span, TableRule, TimeForm};
use crate::site::connect;

const OF_INSTANCES: &str = "t.instance_id LIKE '{mark}'";
const OF_SESSIONS: &str = "t.instance_id || t.session_id LIKE '{mark}'";
const OF_WORKERS: &str = "t.worker_id LIKE '{mark}'";

const TABLES: &[TableRule] = &[
    TableRule {
        table: "instances",
        rows: OF_INSTANCES,
        numbers: &[("ord", Numbers::Drawn), ("change", Numbers::Drawn), ("parent_life", Numbers::ParentLife)],
        times: &[
            ("created_at", TimeForm::Stamp),
            ("updated_at", TimeForm::Stamp),
            ("ended_ms", TimeForm::Millis),
        ],
        ..PLAIN
    },
    TableRule {
        table: "executions",
        rows: OF_INSTANCES,
        numbers: &[("run_id", Numbers::Drawn)],
        times: &[("started_at", TimeForm::Stamp), ("completed_at", TimeForm::Stamp)],
        ..PLAIN
    },
    TableRule { table: "history", rows: OF_INSTANCES, ..PLAIN },
    TableRule { table: "kv", rows: OF_INSTANCES, ..PLAIN },
    TableRule {
        table: "orchestrator_queue",
        rows: OF_INSTANCES,
        numbers: &[("id", Numbers::Messages), ("parent_life", Numbers::ParentLife)],
        ..PLAIN
    },
    TableRule {
        table: "instance_locks",
        rows: OF_INSTANCES,
        numbers: &[("head", Numbers::Messages)],
        tokens: &["lock_token"],
        ..PLAIN
    },
    TableRule {
        table: "worker_queue",
        rows: OF_INSTANCES,
        numbers: &[("id", Numbers::Work), ("epoch", Numbers::Drawn)],
        tokens: &["lock_token"],
        ..PLAIN
    },
    TableRule { table: "sessions", rows: OF_SESSIONS, numbers: &[("epoch", Numbers::Drawn)], ..PLAIN },
    TableRule { table: "lines", rows: OF_SESSIONS, ..PLAIN },
    TableRule { table: "heads", rows: OF_SESSIONS, numbers: &[("head", Numbers::Work)], ..PLAIN },
    TableRule { table: "watchers", rows: OF_INSTANCES, numbers: &[("id", Numbers::Drawn)], ..PLAIN },
    TableRule { table: "set_aside", rows: OF_INSTANCES, numbers: &[("id", Numbers::Drawn)], ..PLAIN },
    TableRule { table: "workers", rows: OF_WORKERS, ..PLAIN },
    TableRule { table: "worker_handlers", rows: OF_WORKERS, ..PLAIN },
];

/// The sequence of each kind of numbers.
const SEQUENCES: &[(Numbers, &str)] = &[
    (Numbers::Messages, "pg_get_serial_sequence('{name}.orchestrator_queue', 'id')"),
    (Numbers::Work, "pg_get_serial_sequence('{name}.worker_queue', 'id')"),
    (Numbers::Drawn, "'{name}.numbers'"),
];

/// Lists the columns of a table with their types.
const COLUMNS: &str = "SELECT column_name::text, data_type::text FROM information_schema.columns
    WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position";

/// Copies rounds of templates. Returns how many instances and events there are then.
pub(super) async fn copy(
    url: &str,
    schema: &str,
    rounds: &[Round],
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(u64, u64)> {
    let client = connect(url).await?;
    client.batch_execute("SET work_mem TO '64MB'").await?;
    // All numbers of the templates are among those that there are before the first copy.
    let widths = highest(&client, schema).await?;
    for round in rounds {
        let above = highest(&client, schema).await?;
        let span = |(numbers, above)| (numbers, Span { above, width: widths[&numbers] });
        let spans: HashMap<Numbers, Span> = above.into_iter().map(span).collect();
        let mut statements = Vec::new();
        for rule in TABLES {
            statements.push(prepare(&client, schema, rule, round, &spans).await?);
        }
        for (first, last) in round.batches() {
            let series = format!("generate_series({first}::bigint, {last}::bigint)");
            let all: String =
                statements.iter().map(|statement| statement.replace("{series}", &series)).collect();
            client.batch_execute(&format!("BEGIN; {all} COMMIT")).await?;
            tell(&format!("{last} of {} copies of {} instances", round.copies, round.instances));
        }
        for (numbers, sequence) in SEQUENCES {
            let Span { above, width } = spans[numbers];
            let last = above + (i64::try_from(round.copies)? + 1) * width;
            let set = format!("SELECT setval({}, {last})", sequence.replace("{name}", schema));
            client.batch_execute(&set).await?;
        }
        client.batch_execute("DISCARD TEMP").await?;
    }
    for rule in TABLES {
        client.batch_execute(&format!("VACUUM ANALYZE {schema}.{}", rule.table)).await?;
    }
    let counts =
        format!("SELECT (SELECT count(*) FROM {schema}.instances), (SELECT count(*) FROM {schema}.history)");
    let row = client.query_one(&counts, &[]).await?;
    Ok((u64::try_from(row.get::<_, i64>(0))?, u64::try_from(row.get::<_, i64>(1))?))
}

async fn highest(client: &Client, schema: &str) -> Result<HashMap<Numbers, i64>> {
    let mut all = HashMap::new();
    for (numbers, sequence) in SEQUENCES {
        let next = format!("SELECT nextval({})", sequence.replace("{name}", schema));
        all.insert(*numbers, client.query_one(&next, &[]).await?.get(0));
    }
    all.insert(Numbers::ParentLife, all[&Numbers::Drawn]);
    Ok(all)
}

/// Keeps the template rows of a table apart, and returns the statement that copies them.
async fn prepare(
    client: &Client,
    schema: &str,
    rule: &TableRule,
    round: &Round,
    spans: &HashMap<Numbers, Span>,
) -> Result<String> {
    let TableRule { table, .. } = rule;
    let rows = rule.rows.replace("{mark}", &format!("%{}%", round.mark));
    let keep = format!("CREATE TEMP TABLE of_{table} AS SELECT t.* FROM {schema}.{table} AS t WHERE {rows}");
    client.batch_execute(&keep).await?;
    let columns = client.query(COLUMNS, &[&schema, table]).await?;
    let columns: Vec<(String, String)> = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let values: Vec<String> =
        columns.iter().map(|(name, kind)| value(rule, round, spans, name, kind == "text")).collect();
    Ok(format!(
        "INSERT INTO {schema}.{table} ({}) SELECT {} FROM {{series}} AS n(i) CROSS JOIN of_{table} AS t;",
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
        return spans[numbers].raised(column);
    }
    if rule.tokens.contains(&column) {
        return format!("t.{column} || '~' || n.i");
    }
    if let Some((_, form)) = rule.times.iter().find(|(name, _)| *name == column) {
        let age = age(rule.table);
        return match form {
            TimeForm::Millis => format!("t.{column} - {age}"),
            TimeForm::Stamp => format!("t.{column} - ({age}) * interval '1 millisecond'"),
        };
    }
    let mark = round.mark;
    if is_text { format!("replace(t.{column}, '{mark}', '~' || n.i || '~')") } else { format!("t.{column}") }
}

/// Returns how long ago a row of the copy `n.i` ended: what is recent by its id a moment, all else for long.
fn age(table: &str) -> String {
    let ended = if table == "instances" { "t.ended_ms" } else { "t.completed_at" };
    format!(
        "CASE WHEN {ended} IS NULL THEN 0 WHEN t.instance_id LIKE 'recent%' THEN n.i \
         ELSE {AGE_MS} + n.i * 1000 END"
    )
}
