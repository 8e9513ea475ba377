//! Broken promises to clients.

use steadfast_core::EventKind;

use super::*;
use crate::{Told, checks::input};

fn enqueued(data: &str) -> Told {
    Told::Enqueued("i".to_owned(), "q".to_owned(), data.to_owned())
}

/// A message that is asked for at a second, and told half a second later.
fn sent(seconds: u64, data: &str) -> Vec<Entry> {
    let told = Entry { at_us: seconds * 1_000_000 + 500_000, fact: Fact::Told(enqueued(data)) };
    vec![at(seconds, Fact::Asked(enqueued(data))), told]
}

fn delivered(data: &str) -> (Option<u64>, EventKind) {
    (None, EventKind::QueueEventDelivered { name: "q".to_owned(), data: data.to_owned() })
}

/// An instance that began at once, to which `a` and then `b` were sent, and which recorded `kinds`.
fn received(kinds: Vec<(Option<u64>, EventKind)>) -> Case {
    let entries = [sent(70, "a"), sent(72, "b")].concat();
    let mut history = vec![started()];
    history.extend(kinds);
    with(case(entries), "i", 1, history)
}

#[test]
fn an_instance_that_was_started_and_is_not_there_is_noticed() {
    let told = case(vec![at(1, Fact::Told(Told::Started("i".to_owned())))]);
    assert_eq!(found(input::what_a_client_was_told_is_there, &told), ["I1"]);
    let there = with(told, "i", 1, vec![started()]);
    assert!(found(input::what_a_client_was_told_is_there, &there).is_empty());
}

#[test]
fn a_message_that_was_not_sent_or_comes_twice_is_noticed() {
    let check = input::no_message_is_made_up;
    assert!(found(check, &received(vec![delivered("a"), delivered("b")])).is_empty());
    assert_eq!(found(check, &received(vec![delivered("a"), delivered("a")])), ["I5"]);
    assert_eq!(found(check, &received(vec![delivered("c")])), ["I5"]);
}

#[test]
fn a_message_that_is_overtaken_or_lost_is_noticed() {
    let check = input::messages_keep_their_order;
    assert!(found(check, &received(vec![delivered("a"), delivered("b")])).is_empty());
    assert!(found(check, &received(vec![delivered("a")])).is_empty());
    assert_eq!(found(check, &received(vec![delivered("b"), delivered("a")])), ["I5"]);
    assert_eq!(found(check, &received(vec![delivered("b")])), ["I5"]);
}

#[test]
fn an_instance_that_outlives_its_termination_is_noticed() {
    let terminated = |seconds| {
        let told = Fact::Told(Told::Terminated("i".to_owned()));
        let case = case(vec![begins("p"), at(seconds, told)]);
        found(input::a_termination_ends_its_instance, &with(case, "i", 1, vec![started(), completed("x")]))
    };
    assert!(terminated(58).is_empty(), "it ended at 60 s");
    assert_eq!(terminated(20), ["I1"]);
}
