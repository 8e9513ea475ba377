//! A function has at most 70 lines: it is read without scrolling.

use super::{Finding, is_frozen, source::FunctionLength, tree::Tree};

pub(super) const LINES: usize = 70;

/// Functions that may be longer, as file and name, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let is_exempt = |path: &str, function: &FunctionLength| {
        EXCEPTIONS.iter().any(|(file, name, _)| (*file, *name) == (path, function.name.as_str()))
    };
    too_long(tree)
        .filter(|(path, function)| !is_frozen(path) && !is_exempt(path, function))
        .map(|(path, function)| Finding {
            check: "lengths",
            file: path.to_owned(),
            line: function.line,
            remedy: format!(
                "`{}` has {} lines: at most {LINES}, name its parts",
                function.name, function.lines
            ),
        })
        .collect()
}

/// Finds the functions over the limit, with their files.
pub(super) fn too_long(tree: &Tree) -> impl Iterator<Item = (&str, &FunctionLength)> {
    let functions = tree
        .sources
        .iter()
        .flat_map(|source| source.functions.iter().map(|function| (source.path.as_str(), function)));
    functions.filter(|(_, function)| function.lines > LINES)
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn a_function_of_71_lines_is_too_long_and_one_of_70_is_not() {
        let function = |lines: usize| format!("fn a() {{\n{}}}\n", "b();\n".repeat(lines - 2));
        assert!(findings(&tree(&[("a/src/lib.rs", &function(70))])).is_empty());
        let found = findings(&tree(&[("a/src/lib.rs", &function(71))]));
        assert_eq!(found[0].remedy, "`a` has 71 lines: at most 70, name its parts");
    }
}
