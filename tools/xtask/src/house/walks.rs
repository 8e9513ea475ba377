//! The walks of `ARCHITECTURE.md` name files and functions that exist.
//!
//! A walk is a section whose heading begins with `Walk`. A step writes a file from the root and a function
//! that is defined in it, each in backticks and side by side: `` `crates/core/src/lib.rs` `name` ``. Each
//! numbered step has such a pair.

use super::{Finding, source::DefinitionKind, tree::Tree};

const PAGE: &str = "ARCHITECTURE.md";

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.files.get(PAGE) else { return Vec::new() };
    steps(text).iter().flat_map(|step| faults(tree, step)).collect()
}

/// A paragraph or a list item of a walk.
struct Step {
    line: usize,
    is_numbered: bool,
    text: String,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut in_walk, mut after_blank) = (false, true);
    for (index, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            in_walk = heading.starts_with("Walk");
        } else if in_walk {
            let is_numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
            match steps.last_mut() {
                Some(step) if !after_blank && !is_numbered => step.text += &format!(" {}", line.trim()),
                _ => steps.push(Step { line: index + 1, is_numbered, text: line.trim().to_owned() }),
            }
        }
        after_blank = line.trim().is_empty() || line.starts_with("## ");
    }
    steps
}

fn faults(tree: &Tree, step: &Step) -> Vec<Finding> {
    let finding = |remedy| Finding { check: "walks", file: PAGE.to_owned(), line: step.line, remedy };
    let pairs = pairs(&step.text);
    if pairs.is_empty() && step.is_numbered {
        return vec![finding("the step names no file and function: write `path.rs` `function`".to_owned())];
    }
    pairs.iter().filter_map(|(path, function)| fault(tree, path, function)).map(finding).collect()
}

/// Finds a file and a function side by side in backticks.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    // Odd parts are in backticks; the part between two of them must be blank.
    let inside = (1..parts.len()).step_by(2);
    inside
        .filter(|&index| parts[index].ends_with(".rs") && index + 2 < parts.len())
        .filter(|&index| !parts[index + 1].is_empty() && parts[index + 1].trim().is_empty())
        .map(|index| (parts[index], parts[index + 2]))
        .collect()
}

fn fault(tree: &Tree, path: &str, function: &str) -> Option<String> {
    let Some(source) = tree.sources.iter().find(|source| source.path == path) else {
        return Some(format!("there is no file `{path}`: write its path from the root"));
    };
    let name = function.trim_end_matches("()").rsplit("::").next().unwrap_or(function);
    let is_defined = source
        .definitions
        .iter()
        .any(|definition| definition.kind == DefinitionKind::Function && definition.name == name)
        || source.functions.iter().any(|defined| defined.name == name);
    (!is_defined).then(|| format!("`{path}` defines no function `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const SOURCE: (&str, &str) = ("a/src/lib.rs", "fn process() {} impl T for S { fn fetch() {} }");

    fn remedies(page: &str) -> Vec<String> {
        let found = findings(&tree(&[SOURCE, (PAGE, page)]));
        found.into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn a_step_that_names_what_exists_is_well() {
        let page =
            "## Walk one: a turn\n\n1. First `a/src/lib.rs`\n   `process`, then `a/src/lib.rs` `S::fetch`.\n";
        assert_eq!(remedies(page), [] as [&str; 0]);
    }

    #[test]
    fn a_file_or_a_function_that_does_not_exist_is_named() {
        let page = "## Walk one\n\n1. `b.rs` `process` and `a/src/lib.rs` `visit`.\n";
        let found = remedies(page);
        assert!(found[0].contains("no file `b.rs`") && found[1].contains("no function `visit`"), "{found:?}");
    }

    #[test]
    fn a_numbered_step_names_a_place() {
        assert_eq!(
            remedies("## Walk one\n\nA word before.\n1. It fetches.\n2. `a/src/lib.rs` `process`.\n").len(),
            1
        );
        assert_eq!(remedies("## Which room\n\n1. It fetches.\n").len(), 0);
    }
}
