//! What a store on SQLite reads, given texts and bytes that it did not write: no panic, an error that says
//! what is wrong, and other instances go on. `kits/testing/tests/readers` lists all readers.

#![allow(clippy::unwrap_used, reason = "a test panics where an expectation does not hold")]

use std::time::Duration;

use proptest::prelude::*;
use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_sqlite::{Durability, SqliteOptions, SqliteProvider};
use steadfast_store::{
    Cold, Cursor, InstanceQuery, NewWork, ProviderErrorKind, Store, TurnCommit, TurnRequest, WorkRequest,
};
use tokio::runtime::Runtime;

const TEXT: &str = r#"[
    {"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,
     "duroxide_version":"0.1.0","type":"OrchestrationStarted","name":"Order","version":"1.0.0","input":"",
     "parent_instance":null,"parent_id":null},
    {"event_id":2,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,
     "duroxide_version":"0.1.0","type":"KeyValueSet","key":"k","value":"v"}
]"#;

fn cases(cases: u32) -> ProptestConfig {
    let times = std::env::var("STEADFAST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u32);
    ProptestConfig { cases: cases.saturating_mul(times), ..ProptestConfig::default() }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A history as JSON with some of its characters replaced, or any text.
fn history() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,25}",
        "[\\[\\]{}\",:\\\\]{1,3}",
        Just("-1".to_owned()),
        Just("null".to_owned()),
        Just("\\ud800".to_owned()),
        Just("\u{0}".to_owned()),
        any::<String>(),
    ];
    let spoiled = prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, piece), 0..4);
    let spoiled = spoiled.prop_map(|changes| {
        changes.iter().fold(TEXT.to_owned(), |text, (at, length, piece)| {
            let characters: Vec<char> = text.chars().collect();
            let at = at.index(characters.len());
            let rest = characters.iter().skip(at + length);
            characters[..at].iter().chain(piece.chars().collect::<Vec<_>>().iter()).chain(rest).collect()
        })
    });
    prop_oneof![5 => spoiled, 1 => any::<String>()]
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn turn_request() -> TurnRequest<'static> {
    TurnRequest {
        lock_timeout: Duration::from_secs(30),
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn an_imported_text_is_a_history_or_is_refused(text in history()) {
        runtime().block_on(async {
            let store = SqliteProvider::new_in_memory().await.unwrap();
            match store.import_history("i", 1, &text).await {
                Ok(()) => {
                    let imported: Vec<Event> = serde_json::from_str(&text).unwrap();
                    prop_assert_eq!(store.read_history("i", None).await.unwrap(), imported);
                }
                Err(error) => {
                    prop_assert_eq!(error.kind, ProviderErrorKind::Invalid, "{}", error);
                    prop_assert!(store.state("i").await.unwrap().is_none(), "nothing is changed");
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_text_is_a_cursor_or_is_refused_by_name(text in any::<String>()) {
        runtime().block_on(async {
            let store = SqliteProvider::new_in_memory().await.unwrap();
            let query = InstanceQuery { after: Some(Cursor(text.clone())), ..InstanceQuery::default() };
            if let Err(error) = store.instances(&query).await {
                prop_assert_eq!(error.kind, ProviderErrorKind::Invalid, "{}", error);
                prop_assert!(error.to_string().contains(&text), "{}", error);
            }
            Ok(())
        })?;
    }

    #[test]
    fn an_instance_of_any_id_is_found_by_it(id in any::<String>(), end in any::<char>()) {
        let id = format!("{id}\u{0}{end}");
        runtime().block_on(async {
            let store = SqliteProvider::new_in_memory().await.unwrap();
            store.start(start(&id).into(), Vec::new()).await.unwrap();
            store.start(start("other").into(), Vec::new()).await.unwrap();
            for _ in 0..2 {
                let lease = store.fetch_turn(turn_request()).await.unwrap().unwrap();
                let name = Some("Order".to_owned());
                let metadata = ExecutionMetadata {
                    orchestration_name: name.clone(),
                    orchestration_version: name,
                    ..ExecutionMetadata::default()
                };
                let commit = TurnCommit { metadata, ..TurnCommit::empty(1) };
                store.commit_turn(&lease.token, commit).await.unwrap();
            }
            let found = async |query: InstanceQuery| {
                let page = store.instances(&query).await.unwrap();
                page.instances.into_iter().map(|state| state.instance).collect::<Vec<_>>()
            };
            let by_prefix = InstanceQuery { id_prefix: Some(id.clone()), ..InstanceQuery::default() };
            prop_assert_eq!(found(by_prefix.clone()).await, std::slice::from_ref(&id));
            let by_both = InstanceQuery { orchestration: Some("Order".to_owned()), ..by_prefix };
            prop_assert_eq!(found(by_both).await, std::slice::from_ref(&id));
            prop_assert!(store.state(&id).await.unwrap().is_some());
            Ok(())
        })?;
    }

}

proptest! {
    // Each case makes a file.
    #![proptest_config(cases(20))]

    #[test]
    fn rows_of_any_bytes_hold_up_no_other_instance(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        runtime().block_on(async {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("store.db");
            let options = SqliteOptions { durability: Durability::ProcessCrash, ..SqliteOptions::default() };
            let url = format!("sqlite:{}", path.display());
            let store = SqliteProvider::new(&url, Some(options)).await.unwrap();
            store.start(start("spoiled").into(), Vec::new()).await.unwrap();
            let event = Event::at(1, 1, "spoiled", 1, None, EventKind::KeyValuesCleared);
            store.append_history("spoiled", 1, vec![event]).await.unwrap();
            store.enqueue_work(work("spoiled")).await.unwrap();
            let file = rusqlite::Connection::open(&path).unwrap();
            for change in [
                "UPDATE messages SET item = CAST(?1 AS TEXT)",
                "UPDATE work SET item = CAST(?1 AS TEXT)",
                "UPDATE history SET event = CAST(?1 AS TEXT)",
            ] {
                prop_assert_eq!(file.execute(change, [&bytes]).unwrap(), 1);
            }
            store.start(start("sound").into(), Vec::new()).await.unwrap();
            store.enqueue_work(work("sound")).await.unwrap();
            let turn = store.fetch_turn(turn_request()).await.unwrap().unwrap();
            prop_assert_eq!(turn.instance, "sound");
            let request = WorkRequest {
                worker_id: "worker".to_owned(),
                lock_timeout: Duration::from_secs(30),
                poll_timeout: Duration::ZERO,
                tags: TagFilter::Any,
                session: None,
                worker: None,
            };
            let work = store.fetch_work(request).await.unwrap().unwrap();
            prop_assert_eq!(work.item.instance(), "sound");
            prop_assert!(store.read_history("spoiled", None).await.is_err());
            Ok(())
        })?;
    }

    #[test]
    fn a_location_of_any_name_is_opened_or_refused(name in "[^/]{0,40}") {
        runtime().block_on(async {
            let folder = tempfile::TempDir::new().unwrap();
            let url = format!("sqlite:{}/{name}", folder.path().display());
            if let Err(error) = SqliteProvider::new(&url, None).await {
                prop_assert!(!error.to_string().is_empty());
            }
            Ok(())
        })?;
    }
}

fn work(instance: &str) -> NewWork {
    NewWork::from(WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 1,
        name: "Step".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    })
}
