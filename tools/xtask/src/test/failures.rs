//! The tests that failed, from the report that nextest writes: a long run names them again where its reader
//! looks, at the end.

use std::path::Path;

use anyhow::{Context, Result};
use roxmltree::{Document, Node};

/// Where the profile `all` has nextest write its report, under the target folder.
pub(crate) const REPORT: &str = "nextest/all/junit.xml";

/// Enough to see a panic and what led to it.
const LINES_OF_A_TEST: usize = 25;
const TESTS_IN_FULL: usize = 8;

/// Says which tests of a run failed and how each of them ended; `None` if the report names none.
pub(crate) fn described(report: &Path) -> Result<Option<String>> {
    let text = std::fs::read_to_string(report)
        .with_context(|| format!("no report of the tests in {}", report.display()))?;
    described_in(&text)
}

fn described_in(report: &str) -> Result<Option<String>> {
    let document = Document::parse(report).context("cannot read the report of the tests")?;
    let failed: Vec<_> = document.descendants().filter_map(Failed::of).collect();
    if failed.is_empty() {
        return Ok(None);
    }
    let count = failed.len();
    let mut lines = vec![format!("{count} test{} failed", if count == 1 { "" } else { "s" })];
    for (index, test) in failed.iter().enumerate() {
        lines.push(format!("{} {} ({})", test.binary, test.name, test.how));
        if index < TESTS_IN_FULL {
            lines.extend(test.last_lines.iter().map(|line| format!("  | {line}")));
        }
    }
    Ok(Some(lines.join("\n")))
}

struct Failed<'a> {
    binary: &'a str,
    name: &'a str,
    how: &'a str,
    last_lines: Vec<&'a str>,
}

impl<'a> Failed<'a> {
    fn of(node: Node<'a, 'a>) -> Option<Self> {
        let failure = node
            .has_tag_name("testcase")
            .then_some(node)?
            .children()
            .find(|child| child.has_tag_name("failure") || child.has_tag_name("error"))?;
        let printed = ["system-out", "system-err"].into_iter().flat_map(|name| {
            let output = node.children().find(|child| child.has_tag_name(name));
            last_lines(output.and_then(|output| output.text()).unwrap_or_default())
        });
        Some(Self {
            binary: node.attribute("classname").unwrap_or_default(),
            name: node.attribute("name").unwrap_or_default(),
            how: failure.attribute("type").unwrap_or("failed"),
            last_lines: printed.collect(),
        })
    }
}

fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_OF_A_TEST)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cases: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run" tests="3"><testsuite name="store" tests="3">
            <testcase name="a_claim" classname="store" time="0.1"/>{cases}</testsuite></testsuites>"#
        )
    }

    #[test]
    fn a_run_without_a_failure_describes_none() {
        assert_eq!(described_in(&report("")).unwrap(), None);
    }

    #[test]
    fn a_failure_is_described_with_its_binary_its_name_and_the_end_of_what_it_printed() {
        let failed = r#"<testcase name="a_lie" classname="store::server">
            <failure message="thread panicked" type="test failure with exit code 101">again</failure>
            <system-out>running 1 test</system-out><system-err>thread panicked:
left &lt; right</system-err></testcase>"#;
        let text = described_in(&report(failed)).unwrap().unwrap();
        assert_eq!(
            text,
            "1 test failed\nstore::server a_lie (test failure with exit code 101)\n  | running 1 test\n  \
             | thread panicked:\n  | left < right"
        );
    }

    #[test]
    fn of_much_output_the_end_is_kept() {
        let many: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        let kept = last_lines(&many);
        assert_eq!((kept.len(), kept.last()), (LINES_OF_A_TEST, Some(&"line 100")));
    }

    #[test]
    fn of_many_failures_all_are_named() {
        let one = r#"<testcase name="a_lie" classname="store"><failure type="failed"/></testcase>"#;
        let text = described_in(&report(&one.repeat(20))).unwrap().unwrap();
        assert_eq!(text.matches("a_lie").count(), 20);
    }

    #[test]
    fn a_report_that_is_none_is_an_error() {
        assert!(described_in("not a report").is_err());
        assert!(described(Path::new("no such report")).unwrap_err().to_string().contains("no such report"));
    }
}
