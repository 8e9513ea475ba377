//! The document: what is different between two schemas, in Markdown.

use std::collections::{BTreeMap, BTreeSet};

use super::lines::marked;
use super::scratch::{Function, Scratch};

/// Writes what a migration changes.
pub(super) fn written(number: u32, file: &str, before: &Scratch, after: &Scratch) -> String {
    let mut text = format!(
        "# Diff for migration {number:04}\n\n**Migration file:** `{file}`\n\n\
         Each changed function is shown **in full** with `+`/`-` markers on changed lines.\n"
    );
    section(&mut text, "Table Changes", &before.tables, &after.tables, table);
    section(&mut text, "Index Changes", &before.indexes, &after.indexes, index);
    section(&mut text, "Function Changes", &before.functions, &after.functions, function);
    text
}

/// A thing on both sides, or on one.
enum Change<'s, T> {
    New(&'s T),
    Removed(&'s T),
    Modified { before: &'s T, after: &'s T },
}

/// Writes a section with all that is different, in the order of names; nothing when all is the same.
fn section<T: PartialEq>(
    text: &mut String,
    title: &str,
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    write: impl Fn(&Change<'_, T>) -> (String, String),
) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut parts = String::new();
    for name in names {
        let change = match (before.get(name), after.get(name)) {
            (None, Some(after)) => Change::New(after),
            (Some(before), None) => Change::Removed(before),
            (Some(before), Some(after)) if before != after => Change::Modified { before, after },
            _ => continue,
        };
        let (label, part) = write(&change);
        parts.push_str(&format!("\n### `{name}` — {label}\n{part}"));
    }
    if parts.is_empty() {
        parts = "\nNone.\n".to_owned();
    }
    text.push_str(&format!("\n## {title}\n{parts}"));
}

fn table(change: &Change<'_, Vec<String>>) -> (String, String) {
    let listed = |lines: &[String]| {
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        block("sql", &lines)
    };
    match change {
        Change::New(lines) => ("NEW".to_owned(), listed(lines)),
        Change::Removed(lines) => ("Removed".to_owned(), listed(lines)),
        Change::Modified { before, after } => {
            let lines = |lines: &'_ [String]| lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            ("Modified".to_owned(), block("diff", &diff(&lines(before), &lines(after), " ")))
        }
    }
}

fn index(change: &Change<'_, String>) -> (String, String) {
    match change {
        Change::New(text) => ("NEW".to_owned(), block("sql", text)),
        Change::Removed(text) => ("Removed".to_owned(), block("sql", text)),
        Change::Modified { before, after } => {
            ("Modified".to_owned(), block("diff", &diff(before, after, "")))
        }
    }
}

fn function(change: &Change<'_, Function>) -> (String, String) {
    match change {
        Change::New(function) => ("NEW".to_owned(), block("sql", &function.text)),
        Change::Removed(function) => ("Removed".to_owned(), block("sql", &function.text)),
        Change::Modified { before, after } => {
            let full = block("diff", &diff(&before.text, &after.text, ""));
            let full = format!("\nFull function with diff:\n{full}");
            let body = before.body != after.body;
            if before.signature == after.signature {
                return ((if body { "Body Modified" } else { "Modified" }).to_owned(), full);
            }
            let label = if body { "Signature Changed + Body Modified" } else { "Signature Changed" };
            let signatures = block("diff", &diff(&before.signature, &after.signature, " "));
            (label.to_owned(), format!("{signatures}{full}"))
        }
    }
}

fn diff(before: &str, after: &str, gap: &str) -> String {
    marked(&before.lines().collect::<Vec<_>>(), &after.lines().collect::<Vec<_>>(), gap)
}

fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(signature: &str, body: &str) -> Function {
        Function {
            signature: signature.to_owned(),
            body: body.to_owned(),
            text: format!(
                "CREATE OR REPLACE FUNCTION SCHEMA.{signature}\n AS $function$\n{body}\n$function$"
            ),
        }
    }

    fn scratch(functions: &[(&str, Function)]) -> Scratch {
        let functions = functions.iter().map(|(name, function)| ((*name).to_owned(), function.clone()));
        Scratch { functions: functions.collect(), ..Scratch::default() }
    }

    #[test]
    fn a_changed_function_is_shown_in_full_with_its_changes_marked() {
        let before = scratch(&[("f", function("f(a text)", "one\ntwo"))]);
        let after = scratch(&[("f", function("f(a text, b text)", "one\n2"))]);
        let text = written(14, "0014_x.sql", &before, &after);
        let expected = "\
### `f` — Signature Changed + Body Modified
```diff
- f(a text)
+ f(a text, b text)
```

Full function with diff:
```diff
-CREATE OR REPLACE FUNCTION SCHEMA.f(a text)
+CREATE OR REPLACE FUNCTION SCHEMA.f(a text, b text)
  AS $function$
 one
-two
+2
 $function$
```
";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.starts_with("# Diff for migration 0014\n\n**Migration file:** `0014_x.sql`\n"),
            "{text}"
        );
    }

    #[test]
    fn labels_say_what_changed() {
        let label = |before: Option<Function>, after: Option<Function>| {
            let side = |function: Option<Function>| Scratch {
                functions: function.map(|it| ("f".to_owned(), it)).into_iter().collect(),
                ..Scratch::default()
            };
            let text = written(1, "0001_x.sql", &side(before), &side(after));
            text.lines().find_map(|line| line.strip_prefix("### `f` — ").map(str::to_owned))
        };
        let old = || Some(function("f()", "a"));
        assert_eq!(label(None, old()).as_deref(), Some("NEW"));
        assert_eq!(label(old(), None).as_deref(), Some("Removed"));
        assert_eq!(label(old(), Some(function("f()", "b"))).as_deref(), Some("Body Modified"));
        assert_eq!(label(old(), Some(function("f(a text)", "a"))).as_deref(), Some("Signature Changed"));
        assert_eq!(label(old(), old()), None);
    }

    #[test]
    fn a_changed_table_shows_its_lines() {
        let table = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Scratch { tables: BTreeMap::from([("t".to_owned(), lines)]), ..Scratch::default() }
        };
        let text = written(2, "0002_x.sql", &table(&["id BIGINT"]), &table(&["id BIGINT", "name TEXT"]));
        assert!(text.contains("### `t` — Modified\n```diff\n  id BIGINT\n+ name TEXT\n```\n"), "{text}");
    }
}
