//! One word per concept: the names that we define avoid the words that the glossary of `ARCHITECTURE.md`
//! replaced.
//!
//! Checked are the names of functions, types, variants, fields, modules, constants and files where they are
//! *defined*; a method of a trait's implementation is named by the trait. A name is split into its words
//! (`LeaseLost`, `lease_lost`), and a ban says how it looks at them:
//!
//! - **anywhere**: the word has no innocent use, and is not in any name;
//! - **edge**: the word is not the first or the last of a name, where it would name the concept;
//! - **whole**: the word alone is not a name, nor is it after `is`, `has` or `was`.
//!
//! Bans of words with an innocent use elsewhere hold in some folders only, tests left out, or for some kinds
//! of names. The name of a test is a sentence: a function of five words or more is looked at for *anywhere*
//! words only. *Untaken*, the word for waiting work that its owner will not take, is a public word and stays.

use super::{
    Finding, is_frozen,
    source::{
        Definition,
        DefinitionKind::{self, Field, Function, Module, Type, Variant},
    },
    tree::Tree,
};

/// A name of so many words is a sentence.
const WORDS_OF_A_SENTENCE: usize = 5;

/// Words that have another one in their place.
struct BannedWords {
    words: &'static [&'static str],
    position: Position,
    /// The kinds of names that it looks at; none means all.
    kinds: &'static [DefinitionKind],
    /// The folders that it holds in; none means all.
    folders: &'static [&'static str],
    instead: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Anywhere,
    Edge,
    Whole,
}
use Position::{Anywhere, Edge, Whole};

const CORE: &[&str] = &["crates/core/src/"];
const RUNTIME: &[&str] = &["crates/runtime/src/"];
const LOCAL_SESSIONS: &[&str] = &["crates/runtime/src/session/", "crates/runtime/src/session.rs"];
const STORES: &[&str] = &["crates/store/src/", "stores/"];
const LIBRARIES: &[&str] = &["crates/", "stores/", "steadfast/"];
const LIBRARIES_AND_KITS: &[&str] = &["crates/", "stores/", "steadfast/", "kits/"];

const BANS: &[BannedWords] = &[
    BannedWords {
        words: &["untake", "untakes", "unlease", "unleased", "unleases"],
        position: Anywhere,
        kinds: &[],
        folders: &[],
        instead: "`abandon`, which gives a lease back; `renew` extends it, `expire` ends it",
    },
    BannedWords {
        words: &["give_back", "gives_back", "given_back", "giving_back", "let_go", "lets_go", "hand_back"],
        position: Edge,
        kinds: &[],
        folders: LIBRARIES_AND_KITS,
        instead: "`abandon`, for a lease; `release`, for a session",
    },
    BannedWords {
        words: &["unclaim", "unclaims", "unclaimed", "dismiss", "dismissed", "dismissal", "greet", "greeted"],
        position: Anywhere,
        kinds: &[],
        folders: LIBRARIES,
        instead: "`claim` and `release` at the store, `attach` and `detach` in the process",
    },
    BannedWords {
        words: &["leave", "leaves", "left", "leaving", "go", "goes"],
        position: Whole,
        kinds: &[Function, Type, Variant],
        folders: RUNTIME,
        instead: "`release` at the store, `detach` in the process",
    },
    BannedWords {
        words: &["over", "finished", "terminal", "gone"],
        position: Whole,
        kinds: &[],
        folders: LIBRARIES,
        instead: "`ended`, for an execution that goes no further",
    },
    // A future may be done.
    BannedWords {
        words: &["done"],
        position: Whole,
        kinds: &[Function, Field],
        folders: LIBRARIES,
        instead: "`ended`, for an execution that goes no further",
    },
    BannedWords {
        words: &["letter", "letters"],
        position: Anywhere,
        kinds: &[],
        folders: LIBRARIES_AND_KITS,
        instead: "`message`, or `Envelope` for one on its way",
    },
    BannedWords {
        words: &["sent"],
        position: Whole,
        kinds: &[Type],
        folders: LIBRARIES_AND_KITS,
        instead: "`Message`, or `Envelope` for one on its way",
    },
    BannedWords {
        words: &["item", "items"],
        position: Whole,
        kinds: &[],
        folders: LIBRARIES,
        instead: "`message` for what is sent to an instance, `work` for what waits for a worker",
    },
    BannedWords {
        words: &[
            "visit", "visited", "repeat", "repeated", "apply", "applied", "bind", "bound", "observe",
            "observed", "fold", "folded", "arrive", "arrived",
        ],
        position: Whole,
        kinds: &[Function, Type, Variant, Module],
        folders: CORE,
        instead: "`play` for a recorded event, `record` for a new one, `settle` for an answer",
    },
    BannedWords {
        words: &["attempt", "attempts"],
        position: Whole,
        kinds: &[Function, Type, Variant, Module],
        folders: RUNTIME,
        instead: "`delivery` for one lease of a piece of work, `try` for one run that ended with an outcome",
    },
    BannedWords {
        words: &["park", "parks", "parked", "parking"],
        position: Edge,
        kinds: &[],
        folders: STORES,
        instead: "`wait`, for a fetch; *parked* is held back because the code does not fit",
    },
    BannedWords {
        words: &["attachment", "live", "kept", "served"],
        position: Whole,
        kinds: &[Type, Module],
        folders: LIBRARIES,
        instead: "`LocalSession`, for a process's view of a session",
    },
    BannedWords {
        words: &["entry", "arrival"],
        position: Whole,
        kinds: &[Type, Module],
        folders: LOCAL_SESSIONS,
        instead: "`LocalSession`, for a process's view of a session",
    },
    BannedWords {
        words: &["utils", "util", "helpers", "helper", "common", "misc", "manager"],
        position: Edge,
        kinds: &[Type, Module],
        folders: &[],
        instead: "the word for what is in it",
    },
];

/// Names that keep a word, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("is_terminal", "compatible name: a status, an error"),
    ("terminal", "an error that is not tried again: `ActivityError::terminal`"),
    ("item", "compatible field: a `WorkItem` and what a lease holds"),
    ("attempt", "compatible call of an activity's context"),
];

/// Files whose names are those of functions in databases, which older processes call.
const NAMES_IN_DATABASES: &str = "stores/postgres/sql/functions/";

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in tree.sources.iter().filter(|source| !is_frozen(&source.path)) {
        found.extend(source.definitions.iter().filter_map(|definition| fault(&source.path, definition)));
    }
    let files = tree.ending(&[".rs", ".sql"]);
    for (path, _) in files.filter(|(path, _)| !is_frozen(path) && !path.starts_with(NAMES_IN_DATABASES)) {
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = file.split('.').next().unwrap_or(file).to_owned();
        found.extend(fault(path, &Definition { kind: Module, name, line: 1, in_tests: false }));
    }
    found.extend(idle_exceptions(tree));
    found
}

fn fault(path: &str, definition: &Definition) -> Option<Finding> {
    let banned = banned(path, definition)?;
    let is_exempt = EXCEPTIONS.iter().any(|(exempt, _)| *exempt == definition.name);
    (!is_exempt).then(|| Finding {
        check: "words",
        file: path.to_owned(),
        line: definition.line,
        remedy: format!("`{}`: use {}", definition.name, banned.instead),
    })
}

/// Finds exceptions that excuse nothing in the tree.
fn idle_exceptions(tree: &Tree) -> impl Iterator<Item = Finding> {
    let excuses = |name: &str| {
        tree.sources.iter().any(|source| {
            let mut named = source.definitions.iter().filter(|definition| definition.name == name);
            named.any(|definition| banned(&source.path, definition).is_some())
        })
    };
    let is_whole = tree.files.contains_key(TABLE);
    EXCEPTIONS.iter().filter(move |(name, _)| is_whole && !excuses(name)).map(|(name, _)| Finding {
        check: "words",
        file: TABLE.to_owned(),
        line: 1,
        remedy: format!("the exception `{name}` excuses nothing: remove it"),
    })
}

const TABLE: &str = "tools/xtask/src/house/words.rs";

/// Returns the ban that a name breaks, exceptions left aside.
fn banned(path: &str, definition: &Definition) -> Option<&'static BannedWords> {
    let words = words_of(&definition.name);
    let is_sentence = definition.kind == Function && words.len() >= WORDS_OF_A_SENTENCE;
    BANS.iter().find(|ban| {
        (ban.kinds.is_empty() || ban.kinds.contains(&definition.kind))
            && ban.holds_in(path)
            && (ban.position == Anywhere || !is_sentence)
            && ban.words.iter().any(|word| stands(&words, word, ban.position))
    })
}

impl BannedWords {
    /// A ban of some folders is about what they build, not about their tests.
    fn holds_in(&self, path: &str) -> bool {
        let is_within = self.folders.iter().any(|folder| path.starts_with(folder));
        self.folders.is_empty() || is_within && (path.contains("/src/") || path.contains("/sql/"))
    }
}

/// Tells whether a word, or several joined by `_`, stands in a name at a position that is banned.
fn stands(words: &[String], word: &str, position: Position) -> bool {
    let parts: Vec<&str> = word.split('_').collect();
    let without_verb = match words {
        [verb, rest @ ..] if matches!(verb.as_str(), "is" | "has" | "was") => rest,
        words => words,
    };
    match position {
        Anywhere => words.windows(parts.len()).any(|window| window == parts),
        Edge => {
            let end = without_verb.len().saturating_sub(parts.len());
            without_verb.get(..parts.len()).is_some_and(|first| first == parts)
                || without_verb[end..] == parts
        }
        Whole => without_verb == parts,
    }
}

/// Splits a name at underscores and before capital letters, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let is_shouted = !part.chars().any(char::is_lowercase);
        let mut word = String::new();
        for c in part.chars() {
            if c.is_uppercase() && !word.is_empty() && !is_shouted {
                words.push(std::mem::take(&mut word));
            }
            word.extend(c.to_lowercase());
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn names(path: &str, text: &str) -> Vec<String> {
        let found = findings(&tree(&[(path, text)]));
        let mut names: Vec<_> =
            found.iter().map(|finding| finding.remedy.split('`').nth(1).unwrap().to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_is_split_into_its_words() {
        assert_eq!(words_of("LeaseLost"), ["lease", "lost"]);
        assert_eq!(words_of("_lease_lost2"), ["lease", "lost2"]);
        assert_eq!(words_of("MAX_PAGE"), ["max", "page"]);
    }

    #[test]
    fn a_word_without_an_innocent_use_is_banned_everywhere() {
        let text = "fn unlease_work() {} struct DeadLetter { unclaimed: u8 }
            fn a_session_that_was_dismissed_comes() {}";
        assert_eq!(
            names("crates/store/src/lib.rs", text),
            ["DeadLetter", "a_session_that_was_dismissed_comes", "unclaimed", "unlease_work"]
        );
    }

    #[test]
    fn a_word_with_an_innocent_use_is_banned_where_it_names_the_concept() {
        let text =
            "fn is_over() {} fn turn_over() {} enum End { Gone, GoneAway } fn visit() {} fn visit_all() {}";
        assert_eq!(names("crates/core/src/lib.rs", text), ["Gone", "is_over", "visit"]);
        assert_eq!(names("crates/client/src/lib.rs", text), ["Gone", "is_over"]);
        assert_eq!(names("tools/xtask/src/main.rs", text), [] as [&str; 0]);
    }

    #[test]
    fn the_name_of_a_test_is_a_sentence() {
        assert!(names("stores/a/tests/all.rs", "fn what_was_leased_is_given_back() {}").is_empty());
        assert_eq!(names("stores/a/src/lib.rs", "fn give_back() {}"), ["give_back"]);
    }

    #[test]
    fn a_trait_chose_the_names_of_its_methods_and_exceptions_keep_theirs() {
        assert!(names("crates/core/src/lib.rs", "impl V for S { fn visit() {} }").is_empty());
        assert!(names("crates/core/src/lib.rs", "fn is_terminal() {} fn untaken_after() {}").is_empty());
        assert!(names("kits/compat/src/lib.rs", "struct Letter;").is_empty());
    }

    #[test]
    fn files_have_names_too() {
        assert_eq!(names("crates/core/src/visit.rs", ""), ["visit"]);
        assert_eq!(findings(&tree(&[("stores/a/sql/unclaim.sql", "")])).len(), 1);
        assert!(findings(&tree(&[("stores/postgres/sql/functions/session/unclaim.sql", "")])).is_empty());
    }
}
