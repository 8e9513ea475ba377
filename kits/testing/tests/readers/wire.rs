//! The wire format: what can be read is written back as a text that reads as the same value; what cannot be
//! read is refused with a reason.

use std::fmt::Debug;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_core::codec::{decode, decode_named, encode};
use steadfast_core::{
    CarriedSession, ErrorDetails, Event, EventKind, SessionKey, SystemStats, TagFilter, WorkItem,
    build_child_instance_id, is_auto_generated_sub_orch_id,
};

use crate::cases;
use crate::spoil::{corpus, golden, text};

/// Reads a text as a type, and checks the value or the reason.
fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) -> bool {
    match serde_json::from_str::<T>(text) {
        Ok(value) => {
            let written = serde_json::to_string(&value).expect("what was read can be written");
            let again: T = serde_json::from_str(&written).expect("what was written can be read");
            assert_eq!(again, value);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn read_as_everything(text: &str) -> usize {
    let read = [
        read::<Event>(text),
        read::<EventKind>(text),
        read::<Vec<Event>>(text),
        read::<WorkItem>(text),
        read::<ErrorDetails>(text),
        read::<SystemStats>(text),
        read::<CarriedSession>(text),
    ];
    read.into_iter().filter(|was_read| *was_read).count()
}

/// Reads a payload as types that code asks for.
fn read_as_payload(text: &str) {
    for error in [
        decode::<u64>(text).err(),
        decode::<Vec<(String, i8)>>(text).err(),
        decode::<Option<bool>>(text).err(),
        decode::<std::time::Duration>(text).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(!error.is_empty());
    }
    let string: String = decode(text).unwrap_or_else(|_| text.to_owned());
    let written = encode(&string).expect("a string can be written");
    assert_eq!(written, string);
    if let Err(error) = decode_named::<u64>("input of activity 'Charge'", text) {
        assert!(error.contains("input of activity 'Charge'") && error.contains("u64"), "{error}");
        assert!(error.len() < 2_000, "{} bytes of reason for {} bytes", error.len(), text.len());
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn a_spoiled_text_is_refused_or_reads_as_what_it_is_written_back_as(text in text()) {
        read_as_everything(&text);
    }

    #[test]
    fn a_spoiled_payload_is_refused_with_its_name_and_a_short_reason(text in text()) {
        read_as_payload(&text);
    }

    #[test]
    fn any_text_is_an_id_or_a_key(id in any::<String>(), other in any::<String>()) {
        let child = build_child_instance_id(&id, &other);
        prop_assert!(child.contains(&other));
        is_auto_generated_sub_orch_id(&other);
        prop_assert_ne!(SessionKey::shared(&id), SessionKey::owned(&other, &id));
    }

    #[test]
    fn any_tags_make_a_filter_or_an_error(tags in prop::collection::vec(any::<String>(), 0..40)) {
        match TagFilter::try_tags(tags.clone()) {
            Ok(filter) => prop_assert!(tags.iter().all(|tag| filter.matches(Some(tag)))),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn the_corpus_breaks_no_reader() {
    for (name, text) in corpus() {
        let read = read_as_everything(&text);
        read_as_payload(&text);
        assert!(read <= 7, "{name}");
    }
}

#[test]
fn ten_thousand_tags_are_refused_with_the_limit() {
    let error = TagFilter::try_tags((0..10_000).map(|n| n.to_string())).unwrap_err();
    assert!(error.to_string().contains("10000") || error.to_string().contains("10,000"), "{error}");
}

/// Without this the properties could pass because nothing is ever read.
#[test]
fn the_texts_that_are_spoiled_can_be_read_before() {
    let read = golden().iter().filter(|text| read_as_everything(text) > 0).count();
    assert!(read >= 100, "{read} texts of {}", golden().len());
}
