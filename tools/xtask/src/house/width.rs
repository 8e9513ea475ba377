//! Lines end at 110 columns, in Rust, SQL and Markdown: two files fit side by side.

use super::{Finding, is_frozen, tree::Tree};

pub(super) const COLUMNS: usize = 110;

const ENDS: [&str; 3] = [".rs", ".sql", ".md"];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let files = tree.ending(&ENDS).filter(|(path, _)| !is_frozen(path) && !is_migration(path));
    files.flat_map(|(path, text)| too_wide(path, text)).collect()
}

/// Migrations keep their text: a database has the hash of each one that it has run, and refuses another text.
fn is_migration(path: &str) -> bool {
    path.starts_with("stores/") && path.contains("/sql/migrations/")
}

fn too_wide(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate().filter(|(_, line)| columns(line) > COLUMNS && can_be_broken(line));
    lines
        .map(|(index, line)| Finding {
            check: "width",
            file: path.to_owned(),
            line: index + 1,
            remedy: format!("{} columns: break the line at {COLUMNS}", columns(line)),
        })
        .collect()
}

/// Counts characters, not bytes.
fn columns(line: &str) -> usize {
    line.chars().count()
}

/// A single word, such as a link or a long name in a list, stays whole.
fn can_be_broken(line: &str) -> bool {
    let words = line.trim_start_matches([' ', '-', '*', '|', '/', '!', '>']);
    words.trim_end().contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn a_line_of_111_characters_is_too_wide_and_one_of_110_is_not() {
        let (fits, wide) = (format!("é {}", "a".repeat(108)), format!("é {}", "a".repeat(109)));
        let found = findings(&tree(&[("a.md", &format!("{fits}\n{wide}\n"))]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
        assert!(found[0].remedy.starts_with("111 columns"), "{}", found[0].remedy);
    }

    #[test]
    fn a_single_word_a_migration_and_other_kinds_of_files_may_be_wide() {
        let word = format!("- {}", "a".repeat(200));
        let line = "a ".repeat(200);
        let migration = "stores/sqlite/sql/migrations/0001_tables.sql";
        assert!(findings(&tree(&[("a.md", &word), ("b.txt", &line), (migration, &line)])).is_empty());
    }
}
