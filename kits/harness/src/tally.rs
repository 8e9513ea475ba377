//! Counts with names: what is printed while a run is under way, and at its end.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// Counts by name. It is used by one thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally(RefCell<BTreeMap<String, u64>>);

impl Tally {
    /// Raises the count of a name by one; a name without a count begins at zero.
    pub fn count(&self, name: &str) {
        self.add(name, 1);
    }

    /// Raises the count of a name by `more`.
    pub fn add(&self, name: &str, more: u64) {
        let mut counts = self.0.borrow_mut();
        let count = counts.entry(name.to_owned()).or_default();
        *count = count.saturating_add(more);
    }

    /// Returns a count; 0 if there was none.
    pub fn get(&self, name: &str) -> u64 {
        self.0.borrow().get(name).copied().unwrap_or(0)
    }

    /// Returns all counts in one line.
    pub fn line(&self) -> String {
        let counts = self.0.borrow();
        let all: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        all.join(", ")
    }

    /// Reads the counts of a printed summary; lines of another form are passed over.
    pub fn parse(text: &str) -> Self {
        let counts = text.lines().filter_map(|line| {
            let (count, name) = line.strip_prefix("  ")?.trim_start().split_once("  ")?;
            Some((name.trim().to_owned(), count.parse().ok()?))
        });
        Self(RefCell::new(counts.collect()))
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.borrow().iter().try_for_each(|(name, count)| writeln!(f, "  {count:>9}  {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_as_it_was_printed() {
        let tally = Tally::default();
        tally.count("kills");
        tally.count("kills");
        tally.add("runs of activities", 123_456_789_012);
        let text = format!("summary of 3 minutes:\n{tally}no violation, 2 kills\n");
        assert_eq!(Tally::parse(&text), tally);
        assert_eq!((tally.get("kills"), tally.get("pauses")), (2, 0));
    }

    #[test]
    fn a_line_names_every_count() {
        let tally = Tally::default();
        tally.count("pauses");
        tally.add("kills", 3);
        assert_eq!(tally.line(), "3 kills, 1 pauses");
    }
}
