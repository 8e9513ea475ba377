//! Texts to read: those of the wire format, spoiled in some way, and those of the corpus.

use proptest::prelude::*;
use proptest::sample::{Index, select};

const GOLDEN: [&str; 3] = [
    include_str!("../../../../crates/core/tests/golden/own.tsv"),
    include_str!("../../../../crates/core/tests/golden/peer.tsv"),
    include_str!("../../../../crates/core/tests/golden/peer_read.tsv"),
];

/// Pieces that a writer would not put there: numbers that fit no type, characters that need care, and
/// beginnings of everything that JSON has.
const PIECES: [&str; 28] = [
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "-9223372036854775809",
    "1e400",
    "0.5",
    "null",
    "true",
    "\u{0}",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\u{feff}",
    "\u{202e}",
    "\u{10ffff}",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"type\":\"OrchestrationStarted\",",
    "\"event_id\":0,",
    "\"execution_id\":18446744073709551615,",
    "{\"secs\":-1,\"nanos\":-1}",
    "[[[[[[[[[[[[[[[[",
];

/// Texts of the wire format.
pub(crate) fn golden() -> Vec<&'static str> {
    let lines = GOLDEN.into_iter().flat_map(str::lines);
    lines.filter_map(|line| line.split('\t').nth(1)).collect()
}

/// Texts that every run gives to every reader.
pub(crate) fn corpus() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/corpus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a text of the corpus");
        (path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut texts: Vec<_> = std::fs::read_dir(folder).expect("the corpus").map(read).collect();
    assert!(texts.len() >= 5, "the corpus is kept");
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    texts.extend([
        ("deep arrays".to_owned(), deep("[", "]")),
        ("deep objects".to_owned(), deep("{\"kind\":", "}")),
        ("an open string of a megabyte".to_owned(), format!("\"{}", "a".repeat(1 << 20))),
        ("a megabyte of escapes".to_owned(), format!("\"{}\"", "\\u0000".repeat(1 << 17))),
        ("a number of a megabyte".to_owned(), "9".repeat(1 << 20)),
    ]);
    texts
}

/// One change of a text.
#[derive(Debug, Clone)]
enum Change {
    Cut(Index),
    Behead(Index),
    Insert(Index, &'static str),
    Replace(Index, &'static str),
    Double(Index, Index),
    Number(Index, &'static str),
    Nest(u16),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<Index>().prop_map(Change::Cut),
        any::<Index>().prop_map(Change::Behead),
        (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<Index>(), select(&PIECES[..])).prop_map(|(at, piece)| Change::Replace(at, piece)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Double(from, to)),
        (any::<Index>(), select(&PIECES[..8])).prop_map(|(which, number)| Change::Number(which, number)),
        (0_u16..400).prop_map(Change::Nest),
    ]
}

/// A text of the wire format with up to three changes, or any text at all.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let spoiled = (select(golden()), prop::collection::vec(change(), 0..4)).prop_map(|(text, changes)| {
        changes.iter().fold(text.to_owned(), |text, change| apply(&text, change))
    });
    let bytes = prop::collection::vec(any::<u8>(), 0..200)
        .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    prop_oneof![6 => spoiled, 1 => bytes, 1 => any::<String>()]
}

fn apply(text: &str, change: &Change) -> String {
    let at = |index: &Index| {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        *index.get(&ends)
    };
    match change {
        Change::Cut(index) => text[..at(index)].to_owned(),
        Change::Behead(index) => text[at(index)..].to_owned(),
        Change::Insert(index, piece) => format!("{}{piece}{}", &text[..at(index)], &text[at(index)..]),
        Change::Replace(index, piece) => {
            let rest: String = text[at(index)..].chars().skip(piece.chars().count()).collect();
            format!("{}{piece}{rest}", &text[..at(index)])
        }
        Change::Double(from, to) => {
            let (from, to) = (at(from).min(at(to)), at(from).max(at(to)));
            format!("{}{}", &text[..to], &text[from..])
        }
        Change::Number(which, number) => with_number(text, which, number),
        Change::Nest(depth) => {
            format!("{}{text}{}", "[".repeat((*depth).into()), "]".repeat((*depth).into()))
        }
    }
}

/// Replaces one of the numbers of a text.
fn with_number(text: &str, which: &Index, number: &str) -> String {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let begins: Vec<usize> =
        (0..text.len()).filter(|at| is_digit(*at) && (*at == 0 || !is_digit(at - 1))).collect();
    if begins.is_empty() {
        return text.to_owned();
    }
    let begin = *which.get(&begins);
    let end = (begin..text.len()).find(|at| !is_digit(*at)).unwrap_or(text.len());
    format!("{}{number}{}", &text[..begin], &text[end..])
}
