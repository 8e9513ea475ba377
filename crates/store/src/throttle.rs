//! Log lines that repeat: trouble that lasts is told once in a while, with the number of lines left out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a line is left out after it was written.
const QUIET: Duration = Duration::from_secs(30);

/// Bounds how many different lines are remembered. When there are more, the oldest is forgotten, and is
/// written again when it comes.
const MAX_LINES: usize = 64;

/// Decides which of many equal log lines are written: the first one, and then one every 30 seconds for as
/// long as they come (G22). Lines that differ do not delay each other.
#[derive(Debug, Default)]
pub struct LineThrottle {
    lines: Mutex<BTreeMap<String, WrittenLine>>,
}

#[derive(Debug)]
struct WrittenLine {
    at: Duration,
    left_out: u64,
}

impl LineThrottle {
    /// Makes a throttle that has seen no line.
    pub const fn new() -> Self {
        Self { lines: Mutex::new(BTreeMap::new()) }
    }

    /// Tells whether a line is to be written now. Returns how many equal lines were left out since the last
    /// one, or `None` if this one is left out too. `now` is monotonic time.
    pub fn tell(&self, line: &str, now: Duration) -> Option<u64> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = lines.get_mut(line) {
            if now.saturating_sub(written.at) < QUIET {
                written.left_out += 1;
                return None;
            }
            written.at = now;
            return Some(std::mem::take(&mut written.left_out));
        }
        if lines.len() >= MAX_LINES {
            let oldest = lines.iter().min_by_key(|(_, written)| written.at).map(|(line, _)| line.clone());
            oldest.map(|line| lines.remove(&line));
        }
        lines.insert(line.to_owned(), WrittenLine { at: now, left_out: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g22_a_line_that_repeats_is_written_once_in_a_while_with_the_number_left_out() {
        let lines = LineThrottle::new();
        let at = |tenths: u64| Duration::from_millis(100 * tenths);
        let written: Vec<_> = (0..600).filter_map(|tick| lines.tell("no right", at(tick))).collect();
        assert_eq!(written, [0, 299]);
        assert_eq!(lines.tell("no schema", at(600)), Some(0), "another line is written at once");
        assert_eq!(lines.tell("no right", at(600)), Some(299));
    }

    #[test]
    fn g22_the_lines_that_are_remembered_are_bounded() {
        let lines = LineThrottle::new();
        for n in 0..1_000_u64 {
            assert_eq!(lines.tell(&n.to_string(), Duration::from_millis(n)), Some(0));
        }
        assert_eq!(lines.lines.lock().unwrap_or_else(PoisonError::into_inner).len(), MAX_LINES);
    }
}
