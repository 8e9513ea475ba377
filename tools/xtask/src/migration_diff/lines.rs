//! The difference of two texts, line by line, with the lines that are the same in between.

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Same,
    Removed,
    Added,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// All lines of both texts, the common ones once: a longest common subsequence, removed lines ahead of added
/// ones.
pub(super) fn compared<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(Mark, &'t str)> {
    // common[i][j] is the length of what `before[i..]` and `after[j..]` have in common.
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for (i, old) in before.iter().enumerate().rev() {
        for (j, new) in after.iter().enumerate().rev() {
            common[i][j] =
                if old == new { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(before.len().max(after.len()));
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            lines.push((Mark::Same, before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == after.len() || (i < before.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push((Mark::Removed, before[i]));
            i += 1;
        } else {
            lines.push((Mark::Added, after[j]));
            j += 1;
        }
    }
    lines
}

/// Writes both texts as one, each line behind its mark; `gap` stands between the two.
pub(super) fn marked(before: &[&str], after: &[&str], gap: &str) -> String {
    let mut text = String::new();
    for (mark, line) in compared(before, after) {
        let shown = format!("{}{gap}{line}", mark.sign());
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_stands_between_what_changes() {
        assert_eq!(marked(&["a", "b", "c"], &["a", "x", "c", "d"], ""), " a\n-b\n+x\n c\n+d\n");
    }

    #[test]
    fn nothing_changes_in_equal_texts() {
        assert!(compared(&["a", "b"], &["a", "b"]).iter().all(|(mark, _)| *mark == Mark::Same));
    }

    #[test]
    fn one_side_may_be_empty() {
        assert_eq!(marked(&[], &["a"], " "), "+ a\n");
        assert_eq!(marked(&["a"], &[], " "), "- a\n");
    }
}
