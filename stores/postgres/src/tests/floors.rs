//! Every function that makes a row runnable lowers the floor of its order (decision 0007).
//!
//! Fetches look from the floors upwards, so a row that becomes runnable with an older key is not seen until
//! `lower_floor` has named that key. This test reads the texts of all functions, finds the writes that make a
//! row runnable, and looks for the call of `lower_floor` that has to follow: in the function itself, in a
//! function that it calls, or in every caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::schema::build::Build;

/// Writes whose keys need no call, with the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "queue_work",
    "work",
    "the id is drawn by a transaction that has a number, so it is above all floors",
)];

/// The texts of functions by name, without comments, with single spaces.
type FunctionTexts = BTreeMap<String, String>;

fn texts() -> FunctionTexts {
    let code = |text: &str| {
        let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    Build::this().functions.iter().map(|it| (it.short().to_owned(), code(it.text))).collect()
}

/// A column and the value that is written to it.
type Assignment<'t> = (&'t str, &'t str);

/// A write to a table, and where it stands in the text.
struct Write<'t> {
    table: &'t str,
    assignments: Vec<Assignment<'t>>,
    at: usize,
}

impl Write<'_> {
    fn value(&self, column: &str) -> Option<&str> {
        self.assignments.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
    }

    /// Tells whether a column gets a value that is not the literal NULL.
    fn sets(&self, column: &str) -> bool {
        self.value(column).is_some_and(|value| value != "NULL")
    }

    /// Tells whether the stored state may become this one.
    fn may_become(&self, state: &str) -> bool {
        self.value("state").is_some_and(|value| value.split_whitespace().any(|word| word == state))
    }

    /// The orders in which the row may come to count.
    fn orders(&self) -> Vec<Counting> {
        let orders: &[(Counting, bool)] = match self.table {
            "orchestrator_queue" => {
                &[(ByKey("due_messages"), self.may_become("0")), (Elsewhere("turns"), self.may_become("1"))]
            }
            "instance_locks" => {
                &[(ByKey("turns"), self.sets("head")), (ByKey("leased_turns"), self.sets("locked_until"))]
            }
            "worker_queue" => &[
                (ByKey("due_work"), self.may_become("0")),
                (ByKey("work"), self.may_become("1")),
                (Elsewhere("heads"), self.may_become("1")),
                (ByKey("leased_work"), self.sets("locked_until")),
            ],
            "heads" => &[(ByKey("heads"), self.sets("head"))],
            "sessions" => {
                &[(ByKey("held_sessions"), self.sets("locked_until") && self.value("held") != Some("false"))]
            }
            _ => &[],
        };
        orders.iter().filter(|(_, counts)| *counts).map(|(order, _)| *order).collect()
    }
}

/// How a written row comes to count in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// By a key that is written with it: the function itself, or each of its callers, lowers the floor.
    ByKey(&'static str),
    /// By a row of another table, which a function that is called later writes.
    Elsewhere(&'static str),
}
use Counting::{ByKey, Elsewhere};

/// Finds the places of a pattern, each at its end.
fn ends_of<'t>(text: &'t str, pattern: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(pattern).map(|(at, found)| at + found.len())
}

fn word(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Splits a list at its commas, up to one of the words or to the end of the parentheses that it stands in.
fn list<'t>(text: &'t str, ends: &[&str]) -> Vec<&'t str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        let is_end = character == ';' || ends.iter().any(|end| text[at..].starts_with(end));
        if depth < 0 || (depth == 0 && is_end) {
            parts.push(text[from..at].trim());
            return parts;
        }
        if depth == 0 && character == ',' {
            parts.push(text[from..at].trim());
            from = at + 1;
        }
    }
    parts.push(text[from..].trim());
    parts
}

fn assignments(text: &str) -> Vec<Assignment<'_>> {
    let parts = list(text, &[" FROM ", " WHERE ", " RETURNING "]);
    parts.into_iter().filter_map(|part| part.split_once(" = ")).collect()
}

fn writes(text: &str) -> Vec<Write<'_>> {
    let mut writes = Vec::new();
    for at in ends_of(text, "UPDATE {schema}.") {
        if let Some(set) = text[at..].find(" SET ") {
            writes.push(Write {
                table: word(&text[at..]),
                assignments: assignments(&text[at + set + 5..]),
                at,
            });
        }
    }
    for at in ends_of(text, "INSERT INTO {schema}.") {
        let rest = &text[at..];
        let statement = &rest[..rest.find(';').unwrap_or(rest.len())];
        let columns = statement.find('(').map(|open| list(&statement[open + 1..], &[])).unwrap_or_default();
        let values = match (statement.find(" VALUES ("), statement.find("SELECT ")) {
            (Some(values), _) => list(&statement[values + 9..], &[]),
            (None, Some(select)) => list(&statement[select + 7..], &[" FROM "]),
            (None, None) => Vec::new(),
        };
        let mut assignments: Vec<_> = columns.into_iter().zip(values).collect();
        if let Some(set) = statement.find(" DO UPDATE SET ") {
            assignments.extend(self::assignments(&statement[set + 15..]));
        }
        writes.push(Write { table: word(rest), assignments, at });
    }
    writes
}

/// The places at which a text calls functions, behind a place.
fn calls(text: &str, from: usize) -> Vec<(&str, usize)> {
    let is_call = |at: &usize| text[*at + word(&text[*at..]).len()..].starts_with('(');
    let places = ends_of(text, "{schema}.").filter(|at| *at > from).filter(is_call);
    places.map(|at| (word(&text[at..]), at)).collect()
}

/// Tells whether a function calls, behind a place and through any number of functions, one that lowers a
/// floor.
fn leads_to<'t>(
    texts: &'t FunctionTexts,
    name: &str,
    order: &str,
    from: usize,
    seen: &mut BTreeSet<&'t str>,
) -> bool {
    let Some(text) = texts.get(name) else { return false };
    lowers(text, order, from)
        || calls(text, from)
            .iter()
            .any(|(called, _)| seen.insert(called) && leads_to(texts, called, order, 0, seen))
}

fn lowers(text: &str, order: &str, from: usize) -> bool {
    text[from..].contains(&format!("lower_floor('{order}'"))
}

/// Bounds how far callers are followed.
const MAX_CALLERS: usize = 4;

/// Tells whether a floor is lowered behind a place of a function: there, or in every function that calls it.
fn is_covered(texts: &FunctionTexts, name: &str, counts: Counting, from: usize, depth: usize) -> bool {
    let is_covered_here = match counts {
        ByKey(order) => lowers(&texts[name], order, from),
        Elsewhere(order) => leads_to(texts, name, order, from, &mut BTreeSet::new()),
    };
    if is_covered_here || depth == MAX_CALLERS {
        return is_covered_here;
    }
    let mut callers = Vec::new();
    for (caller, text) in texts.iter().filter(|(caller, _)| *caller != name) {
        let places = calls(text, 0).into_iter().filter(|(called, _)| *called == name);
        callers.extend(places.map(|(_, at)| (caller, at)));
    }
    !callers.is_empty()
        && callers.iter().all(|(caller, at)| is_covered(texts, caller, counts, *at, depth + 1))
}

/// The writes behind which no floor is lowered: function and order.
fn forgotten(texts: &FunctionTexts) -> BTreeSet<(String, &'static str)> {
    let mut forgotten = BTreeSet::new();
    for (name, text) in texts {
        for write in writes(text) {
            for counts in write.orders() {
                if !is_covered(texts, name, counts, write.at, 0) {
                    let (ByKey(order) | Elsewhere(order)) = counts;
                    forgotten.insert((name.clone(), order));
                }
            }
        }
    }
    forgotten
}

#[test]
fn every_function_that_makes_a_row_runnable_lowers_the_floor() {
    let excepted: BTreeSet<(String, &str)> =
        EXCEPTIONS.iter().map(|(name, order, _)| ((*name).to_owned(), *order)).collect();
    assert_eq!(forgotten(&texts()), excepted);
}

#[test]
fn a_function_that_forgets_to_lower_a_floor_is_noticed() {
    let texts = texts();
    let known = forgotten(&texts);
    let mut unnoticed = Vec::new();
    for (name, text) in
        texts.iter().filter(|(name, _)| !["lower_floor", "tend_floors"].contains(&name.as_str()))
    {
        let all: BTreeSet<&str> = ends_of(text, "lower_floor('").map(|at| word(&text[at..])).collect();
        for order in all {
            let without = text.replace(&format!("lower_floor('{order}'"), "forgotten('");
            let texts = texts.iter().map(|(other, text)| {
                (other.clone(), if other == name { without.clone() } else { text.clone() })
            });
            if forgotten(&texts.collect()) == known {
                unnoticed.push((name, order));
            }
        }
    }
    assert!(unnoticed.is_empty(), "a call that is missing is not noticed: {unnoticed:?}");
}

#[test]
fn the_writes_of_a_text_are_found() {
    let text = "WITH moved AS (UPDATE {schema}.worker_queue AS w \
                SET state = CASE WHEN a > b THEN 0 ELSE 1 END, locked_until = NULL \
                FROM a WHERE w.id = a.id RETURNING w.id) SELECT 1; \
                INSERT INTO {schema}.heads AS h (tag, head) SELECT f(a, b), c FROM x \
                ON CONFLICT (tag) DO UPDATE SET head = excluded.head WHERE true;";
    let found: Vec<_> = writes(text).iter().map(|write| (write.table.to_owned(), write.orders())).collect();
    let expected = [
        ("worker_queue", vec![ByKey("due_work"), ByKey("work"), Elsewhere("heads")]),
        ("heads", vec![ByKey("heads")]),
    ];
    assert_eq!(found, expected.map(|(table, orders)| (table.to_owned(), orders)));
}
