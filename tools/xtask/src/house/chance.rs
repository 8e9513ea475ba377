//! A run of the engine follows from a seed: no `select!` draws lots between its branches, no `watch` channel
//! between its receivers, and no event is stamped with the time of the machine.
//!
//! Tokio draws from numbers of its own, which no test can pass in. So every `select!` is `biased`, in the
//! order in which its branches should win, and a value that many tasks wait for is not a `watch` channel. The
//! compatible constructors of an event read the clock of the machine; `Event::at` is told the time of the
//! turn.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::{Finding, tree::Tree};

/// The folders whose sources run in the simulation, or could.
const FOLDERS: [&str; 5] = ["crates/", "stores/", "steadfast/", "kits/simulation/", "kits/testing/"];

/// Files that may draw lots, each with its reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("stores/postgres/src/verbs/poll.rs", "a server decides the order of its answers anyway"),
    ("crates/core/src/vocabulary/event/stamp.rs", "defines the compatible constructors"),
];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let sources = tree.files.iter().filter(|(path, _)| {
        path.ends_with(".rs")
            && path.contains("/src/")
            && FOLDERS.iter().any(|folder| path.starts_with(folder))
            && !EXCEPTIONS.iter().any(|(file, _)| file == path)
    });
    sources
        .flat_map(|(path, text)| {
            // A file that is no Rust is named by the tree.
            let mut found = Vec::new();
            text.parse::<TokenStream>().into_iter().for_each(|tokens| draws(tokens, &mut found));
            found.into_iter().map(|(line, remedy)| Finding {
                check: "chance",
                file: path.clone(),
                line,
                remedy: remedy.to_owned(),
            })
        })
        .collect()
}

/// Finds the places where lots are drawn or the time of the machine is read.
fn draws(tokens: TokenStream, found: &mut Vec<(usize, &'static str)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => draws(group.stream(), found),
            TokenTree::Ident(name) => {
                let line = name.span().start().line;
                found.extend(remedy(name, &tokens[index + 1..]).map(|remedy| (line, remedy)));
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns what to do about a name, by what comes after it.
fn remedy(name: &Ident, after: &[TokenTree]) -> Option<&'static str> {
    let is_path = after.iter().take(2).filter(|token| is_punct(token, ':')).count() == 2;
    let is_macro = after.first().is_some_and(|token| is_punct(token, '!'));
    match (name.to_string().as_str(), after.get(1), after.get(2)) {
        ("select", Some(TokenTree::Group(body)), _) if is_macro && !is_biased(&body.stream()) => {
            Some("begin the `select!` with `biased;`, and order its branches")
        }
        ("watch", ..) if is_path => Some("a `watch` channel wakes in random order: use a `Notify`"),
        ("Event", _, Some(TokenTree::Ident(called)))
            if is_path && (called == "new" || called == "with_event_id") =>
        {
            Some("`Event::at` takes the time of the turn: this reads the clock of the machine")
        }
        _ => None,
    }
}

fn is_punct(token: &TokenTree, is: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == is)
}

fn is_biased(body: &TokenStream) -> bool {
    matches!(body.clone().into_iter().next(), Some(TokenTree::Ident(first)) if first == "biased")
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn a_select_that_draws_lots_is_found_also_inside_of_another_one() {
        let text =
            "async fn a() { tokio::select! { biased; _ = b() => {\ntokio::select! { _ = c() => {} } } } }";
        let found = findings(&tree(&[("crates/a/src/lib.rs", text)]));
        assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [2]);
        assert!(found[0].remedy.contains("biased"), "{}", found[0].remedy);
    }

    #[test]
    fn a_watch_channel_is_found_and_tests_and_tools_may_draw_lots() {
        let text = "fn a() { let b = watch::Sender::new(0); }";
        assert_eq!(findings(&tree(&[("stores/a/src/lib.rs", text)])).len(), 1);
        assert!(findings(&tree(&[("stores/a/tests/a.rs", text), ("tools/a/src/lib.rs", text)])).is_empty());
    }

    #[test]
    fn an_event_that_reads_the_clock_of_the_machine_is_found() {
        let text = "fn a() { let (b, c) = (Event::new(1), Event::at(1)); }";
        assert_eq!(findings(&tree(&[("crates/a/src/lib.rs", text)])).len(), 1);
    }
}
