//! Text that Postgres cannot hold.
//!
//! A `TEXT` of Postgres cannot contain U+0000, which Rust and JSON and the other stores allow. In plain
//! strings that character is written as U+0001 `0`, and U+0001 itself as U+0001 `1`. Equality, prefixes and
//! the order of bytes stay as they were. JSON texts write U+0000 as `\u0000` by themselves and are not
//! escaped.

use std::borrow::Cow;

const MARK: char = '\u{1}';

/// Returns the text as Postgres can hold it.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([MARK, '0']),
            MARK => escaped.extend([MARK, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// Returns the text as it was before [`escape`].
pub(crate) fn unescape(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            MARK => plain.push(match characters.next() {
                Some('0') => '\0',
                _ => MARK,
            }),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 8] = ["", "a", "\0", "\u{1}", "a\0b", "a\u{1}0b", "\0\u{1}\0", "a\u{2}"];

    #[test]
    fn what_was_escaped_comes_back() {
        for text in TEXTS {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'), "{escaped:?}");
            assert_eq!(unescape(escaped.into_owned()), text);
        }
    }

    #[test]
    fn the_order_of_bytes_and_prefixes_stay() {
        for one in TEXTS {
            for other in TEXTS {
                assert_eq!(one.cmp(other), escape(one).cmp(&escape(other)), "{one:?} {other:?}");
                assert_eq!(
                    one.starts_with(other),
                    escape(one).starts_with(&*escape(other)),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
