//! Checks of every statement against a fresh schema: each has a file, a comment, a use, and a plan that suits
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::link::connection::Location;
use crate::schema::migrate::migrate;

fn database() -> Connection {
    let mut connection = Connection::open_in_memory().expect("a database in memory");
    migrate(&mut connection, &Location::Memory).expect("the schema of this build");
    connection
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Every statement by its name, which is its path without the ending.
fn statements() -> BTreeMap<String, String> {
    let sql = folder("sql");
    let named = |file: PathBuf| {
        let name = file.strip_prefix(&sql).expect("a path below the folder").with_extension("");
        let text = std::fs::read_to_string(&file).expect("a statement is text");
        (name.to_str().expect("a name is text").to_owned(), text)
    };
    files(&sql).into_iter().map(named).collect()
}

fn is_script(name: &str) -> bool {
    name.starts_with("migrations/") || name == "schema/ledger"
}

#[test]
fn every_statement_can_be_prepared() {
    let database = database();
    for (name, text) in statements().into_iter().filter(|(name, _)| !is_script(name)) {
        if let Err(error) = database.prepare(&text) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn every_statement_says_what_it_does() {
    for (name, text) in statements() {
        assert!(text.starts_with("-- "), "{name} begins with a comment");
    }
}

#[test]
fn every_statement_is_used_and_every_use_has_a_statement() {
    let mut used = BTreeSet::new();
    for path in files(&folder("src")) {
        if path.file_name().is_some_and(|name| name == "statements.rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source is text");
        used.extend(
            text.split("sql!(\"").skip(1).filter_map(|rest| rest.split('"').next().map(str::to_owned)),
        );
    }
    let there: BTreeSet<String> = statements().into_keys().collect();
    assert_eq!(used, there);
}

/// The plan of a statement, a line a step.
fn plan(database: &Connection, text: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {text}")).expect("a plan");
    let count = statement.parameter_count();
    let nothing: Vec<Option<i64>> = vec![Some(1); count];
    let rows = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3)).expect("a plan");
    rows.collect::<Result<_, _>>().expect("a plan")
}

/// S20: the statements of a fetch, a commit and a finish find their rows by index, whatever else is stored.
#[test]
fn hot_statements_walk_over_no_table() {
    let database = database();
    let cold = ["admin/", "schema/", "migrations/", "set_aside/", "kv/", "torn/"];
    let listed = [
        "instance/page/prefix",
        "session/page",
        "session/cleanup",
        "session/cleanup_names",
        "session/of_owner",
        "worker/page",
    ];
    for (name, text) in statements() {
        if cold.iter().any(|group| name.starts_with(group)) || listed.contains(&name.as_str()) {
            continue;
        }
        for step in plan(&database, &text) {
            let walks = step.starts_with("SCAN")
                && !step.contains("CONSTANT ROW")
                && !step.contains("USING INDEX")
                && !step.contains("USING COVERING INDEX")
                && !step.contains("SCAN (subquery");
            assert!(!walks, "{name} walks over a table: {step}");
            assert!(!step.contains("TEMP B-TREE FOR ORDER BY"), "{name} sorts: {step}");
        }
    }
}

#[test]
fn the_oldest_ready_instance_is_one_look_at_its_index() {
    let steps = plan(&database(), &statements()["turn/ready/oldest"]);
    assert_eq!(steps, ["SEARCH instances USING COVERING INDEX instances_ready (pin=?)"]);
}

#[test]
fn the_oldest_free_activity_is_one_look_at_its_index() {
    let steps = plan(&database(), &statements()["work/ready/oldest_free"]);
    let torn = "USING ROWID SEARCH ON TABLE torn_work FOR IN-OPERATOR";
    assert_eq!(steps, ["SEARCH work USING INDEX work_free (tag=?)", torn]);
}

#[test]
fn the_oldest_activity_with_terms_is_one_look_at_an_index() {
    let (database, statements) = (database(), statements());
    let torn = "USING ROWID SEARCH ON TABLE torn_work FOR IN-OPERATOR";
    let any = plan(&database, &statements["work/ready/oldest_called_of_any"]);
    assert_eq!(any, ["SEARCH work USING COVERING INDEX work_called_any", torn]);
    let of_tag = plan(&database, &statements["session/head/first_of_tag"]);
    let look = "SEARCH work USING COVERING INDEX work_session (session=? AND state=? AND tag=?)";
    assert_eq!(of_tag, [look, torn]);
    let ended = plan(&database, &statements["ended_lease/forget_work"]);
    assert_eq!(ended, ["SEARCH ended_leases USING INDEX ended_leases_work (row=?)"]);
}

#[test]
fn the_oldest_activity_of_a_session_is_one_look_at_its_index() {
    let steps = plan(&database(), &statements()["work/ready/heads"]);
    assert_eq!(steps, ["SEARCH heads USING COVERING INDEX heads_by_tag (owner=? AND tag=?)"]);
}

#[test]
fn the_longest_wait_is_one_look_at_an_index_for_each_kind() {
    let (database, statements) = (database(), statements());
    let turns = plan(&database, &statements["turn/ready/waiting_since"]);
    assert_eq!(turns, ["SCAN instances USING COVERING INDEX instances_since"]);
    let work = plan(&database, &statements["work/ready/waiting_since"]);
    for look in [
        "SEARCH work USING INDEX work_since",
        "SEARCH work USING COVERING INDEX work_called_since",
        "SEARCH heads USING COVERING INDEX heads_since",
    ] {
        assert!(work.iter().any(|step| step == look), "{look}: {work:?}");
    }
}

/// G13: a bare count takes one step of the virtual machine however many rows there are, so only the plan
/// shows what it reads.
#[test]
fn gauges_count_running_executions_by_their_index_and_read_no_history() {
    let steps = plan(&database(), &statements()["admin/gauges"]);
    assert!(steps.iter().all(|step| !step.contains("history")), "{steps:?}");
    assert!(steps.iter().any(|step| step.contains("executions_running")), "{steps:?}");
    assert!(steps.iter().all(|step| !step.starts_with("SCAN instances")), "{steps:?}");
}

#[test]
fn what_waits_for_an_instance_is_found_by_its_key() {
    let (database, statements) = (database(), statements());
    for (name, looks) in [
        ("turn/messages_of", ["USING INDEX messages_order (key=? AND state=?)", ""]),
        (
            "work/of_execution",
            ["USING INDEX work_identity (key=? AND execution=?)", "USING INTEGER PRIMARY KEY"],
        ),
        ("session/watch/watched_by", ["USING COVERING INDEX watchers_of (key=? AND execution=?)", ""]),
    ] {
        let steps = plan(&database, &statements[name]);
        for look in looks {
            assert!(steps.iter().any(|step| step.contains(look)), "{name} {look}: {steps:?}");
        }
    }
}

/// A queue gets a new table after its old one was renamed, and SQLite renames it in the triggers of other
/// tables too.
#[test]
fn no_trigger_of_another_table_names_a_queue() {
    let database = database();
    let mut statement = database
        .prepare(
            "SELECT name, sql FROM sqlite_schema
             WHERE type = 'trigger' AND tbl_name NOT IN ('messages', 'work')",
        )
        .expect("the triggers");
    let triggers = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("the triggers");
    for (name, text) in triggers.map(|trigger| trigger.expect("a trigger")) {
        let (name, text): (String, String) = (name, text);
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(words.into_iter().all(|word| word != "messages" && word != "work"), "{name}: {text}");
    }
}

/// What is read of a queue with a torn page is read by indexes alone.
#[test]
fn the_indexes_of_a_queue_are_read_without_its_rows() {
    let database = database();
    let views = ["torn/message/mend/view/", "torn/work/mend/view/"];
    for (name, text) in statements() {
        if views.iter().any(|view| name.starts_with(view)) {
            let steps = plan(&database, &text);
            // An index for work without a session has no session to read, and is not called covering.
            let is_alone =
                |step: &String| step.contains("USING COVERING INDEX") || step.contains("USING INDEX work_");
            assert!(steps.iter().all(is_alone), "{name}: {steps:?}");
        }
    }
    for name in ["torn/message/look/row", "torn/work/look/row"] {
        for step in plan(&database, &statements()[name]) {
            let is_looked_up = step.starts_with("CORRELATED SCALAR SUBQUERY")
                || step.contains("USING COVERING INDEX")
                || step.contains("USING INDEX work_free")
                || step.contains("USING INTEGER PRIMARY KEY");
            assert!(is_looked_up && !step.starts_with("SCAN"), "{name}: {step}");
        }
    }
}
