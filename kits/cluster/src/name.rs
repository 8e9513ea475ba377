//! Unique names, readable and safe inside a statement.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Leaves room for suffixes that a store appends: the server cuts names at 63 bytes.
const LONGEST_HINT: usize = 24;

/// Makes a name of lower-case letters, digits and underscores that begins with a letter.
pub(crate) fn unique(hint: &str) -> String {
    let readable = hint.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    format!("t_{}_{:016x}", readable.take(LONGEST_HINT).collect::<String>(), random())
}

/// Returns a number that differs between calls and between processes.
#[allow(clippy::disallowed_methods, reason = "names of tests that share a server must differ")]
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_inside_quotes_and_short() {
        let name = unique("Robert'); \"DROP\" and a very long rest of it, äöü");
        assert!(name.starts_with("t_robert_") && name.len() <= 43, "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
    }

    #[test]
    fn no_two_names_are_alike() {
        assert_ne!(unique("same"), unique("same"));
    }
}
