//! Codes resolve: each code in a comment, a page or the name of a function is defined in
//! `docs/contract/rules.md`.
//!
//! A code is a letter and a number (`S5`), with a second number where its family has sections (`R2.13`). In
//! the name of a function it comes first and in lower case (`s5_…`, `r2_13_…`). The letter says the family,
//! so no two families share one. A name is readable without its code: at least three words follow.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, source::DefinitionKind, tree::Tree};

const RULES: &str = "docs/contract/rules.md";
const CONTRACT: &str = "crates/store/CONTRACT.md";

/// Fewer words after a code do not make a claim.
const WORDS_AFTER_A_CODE: usize = 3;

/// What looks like a code and is none, each with its reason.
const NOT_CODES: [(&str, &str); 0] = [];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let rules = tree.files.get(RULES).map(String::as_str).unwrap_or_default();
    let (defined, mut found) = definitions(rules);
    found.extend(clauses_that_differ(tree, &defined));
    for occurrence in occurrences(tree) {
        let remedy = if !defined.contains_key(&occurrence.code) {
            format!("{} is not defined: define it in {RULES}, or write what it means", occurrence.code)
        } else if occurrence.words_after.is_some_and(|words| words < WORDS_AFTER_A_CODE) {
            format!("the name says too little without {}: make it a claim", occurrence.code)
        } else {
            continue;
        };
        found.push(Finding {
            check: "codes",
            file: occurrence.file.to_owned(),
            line: occurrence.line,
            remedy,
        });
    }
    found
}

/// Counts the places where a code stands.
pub(super) fn count(tree: &Tree) -> usize {
    occurrences(tree).len()
}

/// Reads the lines `- **S1** text` and the headings `## S: family`; finds codes and letters that are used
/// twice.
fn definitions(rules: &str) -> (BTreeMap<String, &str>, Vec<Finding>) {
    let (mut defined, mut families, mut found) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let mut family = "";
    for (index, line) in rules.lines().enumerate() {
        let mut fault =
            |remedy| found.push(Finding { check: "codes", file: RULES.to_owned(), line: index + 1, remedy });
        if let Some((letter, _)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(": ")) {
            family = letter;
            if !families.insert(letter) {
                fault(format!("two families share the letter {letter}: give one of them another"));
            }
        }
        let Some((code, text)) = line.strip_prefix("- **").and_then(|rest| rest.split_once("** ")) else {
            continue;
        };
        if !is_code(code) || !code.starts_with(family) {
            fault(format!("{code} is not a code of the family {family}: move it under its heading"));
        }
        if defined.insert(code.to_owned(), text).is_some() {
            fault(format!("{code} is defined twice: keep one"));
        }
    }
    (defined, found)
}

/// The clauses of the store contract have their numbers and titles there; the rules repeat the titles.
fn clauses_that_differ(tree: &Tree, defined: &BTreeMap<String, &str>) -> Vec<Finding> {
    let contract = tree.files.get(CONTRACT).map(String::as_str).unwrap_or_default();
    let clauses = contract.lines().enumerate().filter_map(|(index, line)| {
        let (code, title) = line.strip_prefix("**")?.split_once("**")?.0.split_once(' ')?;
        is_code(code).then_some((index + 1, code, title))
    });
    clauses
        .filter(|(_, code, title)| !defined.get(*code).is_some_and(|text| text.starts_with(title)))
        .map(|(line, code, title)| Finding {
            check: "codes",
            file: CONTRACT.to_owned(),
            line,
            remedy: format!("{RULES} does not say `- **{code}** {title}`"),
        })
        .collect()
}

struct Occurrence<'a> {
    file: &'a str,
    line: usize,
    code: String,
    /// For the name of a function: how many words follow.
    words_after: Option<usize>,
}

fn occurrences(tree: &Tree) -> Vec<Occurrence<'_>> {
    let mut found = Vec::new();
    for (file, text) in tree.ending(&[".rs", ".sql", ".md"]).filter(|(file, _)| *file != RULES) {
        let mut in_code = false;
        for (index, line) in text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            let prose = match file.rsplit('.').next() {
                Some("md") if in_code => continue,
                Some("md") => line,
                Some("sql") => line.split_once("--").map_or("", |(_, comment)| comment),
                _ => comment_of(line),
            };
            let codes = codes_in(prose);
            found.extend(codes.map(|code| Occurrence { file, line: index + 1, code, words_after: None }));
        }
    }
    for source in &tree.sources {
        for definition in source.definitions.iter().filter(|one| one.kind == DefinitionKind::Function) {
            if let Some((code, words)) = code_of_name(&definition.name) {
                let (file, line) = (source.path.as_str(), definition.line);
                found.push(Occurrence { file, line, code, words_after: Some(words) });
            }
        }
    }
    found.retain(|occurrence| !NOT_CODES.iter().any(|(word, _)| *word == occurrence.code));
    found
}

/// Returns the comment at the end of a line of Rust, or nothing.
fn comment_of(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        return line;
    }
    line.rsplit_once(" // ").map_or("", |(_, comment)| comment)
}

/// Finds words such as `S5` and `R2.13`.
fn codes_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_')
        .map(|word| word.trim_matches('.'))
        .filter(|word| is_code(word))
        .map(str::to_owned)
}

fn is_code(word: &str) -> bool {
    let Some(numbers) = word.strip_prefix(|letter: char| letter.is_ascii_uppercase()) else { return false };
    let is_number = |text: &str| (1..=2).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit());
    numbers.split('.').count() <= 2 && numbers.split('.').all(is_number)
}

/// Returns the code that a name begins with, and how many words follow it.
fn code_of_name(name: &str) -> Option<(String, usize)> {
    let mut words = name.split('_').peekable();
    let mut code = words.next()?.to_uppercase();
    if !is_code(&code) || name.starts_with(char::is_uppercase) {
        return None;
    }
    words.peek()?;
    if let Some(section) = words.next_if(|word| word.chars().all(|c| c.is_ascii_digit())) {
        code += &format!(".{section}");
    }
    Some((code, words.count()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const SOME_RULES: &str = "## S: clauses\n\n- **S1** One holder.\n\n## R: rules\n\n- **R2.13** Workers.\n";

    fn remedies(files: &[(&str, &str)]) -> Vec<String> {
        findings(&tree(files)).into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn codes_that_are_defined_resolve() {
        let source =
            "//! Leases (S1).\nfn s1_one_holder_at_a_time() {}\nfn r2_13_a_worker_takes_work() {} // R2.13\n";
        assert_eq!(remedies(&[(RULES, SOME_RULES), ("a/src/lib.rs", source)]), [] as [&str; 0]);
    }

    #[test]
    fn codes_that_are_not_defined_are_found_in_comments_pages_and_names() {
        let found = remedies(&[
            (RULES, SOME_RULES),
            ("a/src/lib.rs", "/// See F6.\nfn s31_work_of_a_dead_owner_moves<T1>(_: T1) {}\n"),
            ("a/sql/one.sql", "-- Keeps S2.\nSELECT 'S3';\n"),
            ("README.md", "As L4 says.\n```\nS9\n```\n"),
        ]);
        for code in ["F6", "S31", "S2", "L4"] {
            assert!(
                found.iter().any(|remedy| remedy.starts_with(&format!("{code} is not defined"))),
                "{found:?}"
            );
        }
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn a_name_is_readable_without_its_code() {
        let found = remedies(&[(RULES, SOME_RULES), ("a/src/lib.rs", "fn s1_one_holder() {}\n")]);
        assert_eq!(found, ["the name says too little without S1: make it a claim"]);
    }

    #[test]
    fn two_families_share_no_letter_and_a_code_is_defined_once() {
        let rules = "## S: clauses\n- **S1** One.\n- **S1** Two.\n- **R1** Three.\n## S: sessions\n";
        let found = remedies(&[(RULES, rules)]);
        assert!(found[0].contains("defined twice"), "{found:?}");
        assert!(found[1].contains("not a code of the family S"), "{found:?}");
        assert!(found[2].contains("share the letter S"), "{found:?}");
    }

    #[test]
    fn the_titles_of_the_clauses_are_those_of_the_contract() {
        let contract = (CONTRACT, "**S1 One holder.** Text.\n**S2 Whole batch.** Text.\n");
        let found = remedies(&[(RULES, SOME_RULES), contract]);
        assert_eq!(found.len(), 2, "{found:?}"); // its title, and S2 as a code that is not defined
    }

    #[test]
    fn ranges_and_lists_are_codes_and_versions_are_not() {
        let codes = |text| codes_in(text).collect::<Vec<_>>();
        assert_eq!(codes("(I5–I8, F8), R2.13."), ["I5", "I8", "F8", "R2.13"]);
        assert!(codes("P0001 SHA-256 v1 T S123 i64 A_1 2.13").is_empty());
        assert_eq!(code_of_name("i8_a_timer_fires"), Some(("I8".to_owned(), 3)));
        assert_eq!(code_of_name("i8"), None);
    }
}
